//! Foreign ORBs: built by their scripts from what the package registries have, kept for the next time.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::BenchError;

/// An ORB that is no part of this project.
pub(crate) struct Foreign {
    /// Its name in tables.
    pub(crate) name: &'static str,
    /// Programs that its build needs.
    tools: &'static [&'static str],
    /// A file of its own that must be there, and what it says.
    header: Option<(&'static str, &'static str)>,
    /// What is built, by file name; `build` is the script, `ends` what it makes.
    sources: &'static [(&'static str, &'static str)],
    /// What it cannot do, or what of it cannot be seen: told with every result.
    pub(crate) notes: &'static [&'static str],
}

const ECHO: (&str, &str) = (
    "echo.idl",
    include_str!("../../../../idl/deckwatch/echo.idl"),
);
const BENCH: (&str, &str) = (
    "bench.idl",
    include_str!("../../../../idl/deckwatch/bench.idl"),
);

/// All of them.
pub(crate) const ALL: [Foreign; 3] = [
    Foreign {
        name: "omniorb",
        tools: &["omniidl", "g++"],
        header: Some((
            "/usr/include/omniORB4/CORBA.h",
            "omniORB's headers are not installed",
        )),
        sources: &[
            ("build", include_str!("../../../../bench/omniorb/build")),
            ("ends.cc", include_str!("../../../../bench/omniorb/ends.cc")),
            ECHO,
            BENCH,
        ],
        notes: &["omniorb has no priorities: a server's threads are all of one"],
    },
    Foreign {
        name: "jacorb",
        tools: &["java", "javac", "mvn", "chrt", "taskset"],
        header: None,
        sources: &[
            ("build", include_str!("../../../../bench/jacorb/build")),
            ("pom.xml", include_str!("../../../../bench/jacorb/pom.xml")),
            (
                "Ends.java",
                include_str!("../../../../bench/jacorb/Ends.java"),
            ),
            (
                "jacorb.properties",
                include_str!("../../../../bench/jacorb/jacorb.properties"),
            ),
            ECHO,
            BENCH,
        ],
        notes: &[
            "jacorb has no priorities: its real-time operations raise NO_IMPLEMENT",
            "jacorb's allocations and locks are the virtual machine's own and are not counted; its waits are",
        ],
    },
    Foreign {
        name: "rustorb",
        tools: &["cargo"],
        header: None,
        sources: &[
            ("build", include_str!("../../../../bench/rustorb/build")),
            (
                "Cargo.toml",
                include_str!("../../../../bench/rustorb/manifest.toml"),
            ),
            ("main.rs", include_str!("../../../../bench/rustorb/main.rs")),
        ],
        notes: &[
            "rustorb has no priorities, and may serve one-ways of a connection out of order",
            "rustorb's locks are inlined into it and are not counted; its waits are",
        ],
    },
];

/// omniORB again, for the experiments of the papers.
pub(crate) const OMNIORB_SUBJECTS: Foreign = Foreign {
    name: "omniorb-subjects",
    tools: &["omniidl", "g++"],
    header: Some((
        "/usr/include/omniORB4/CORBA.h",
        "omniORB's headers are not installed",
    )),
    sources: &[
        (
            "build",
            include_str!("../../../../bench/omniorb-subjects/build"),
        ),
        (
            "ends.cc",
            include_str!("../../../../bench/omniorb-subjects/ends.cc"),
        ),
        ECHO,
        (
            "experiment.idl",
            include_str!("../../../../idl/deckwatch/experiment.idl"),
        ),
    ],
    notes: &[],
};

impl Foreign {
    /// What is missing here to build it, in words.
    pub(crate) fn missing(&self) -> Option<String> {
        let absent: Vec<&str> = (self.tools.iter().copied())
            .filter(|program| super::sockperf::find(program).is_none())
            .collect();
        if !absent.is_empty() {
            return Some(format!("{} not installed", absent.join(" and ")));
        }
        let (path, words) = self.header?;
        (!Path::new(path).exists()).then(|| words.to_owned())
    }

    /// Its program, built where it is not there yet; `own` is where this program is.
    pub(crate) fn program(&self, own: &Path) -> Result<PathBuf, BenchError> {
        let mut hasher = DefaultHasher::new();
        self.sources.hash(&mut hasher);
        let folder = cache(own).join(format!("{}-{:016x}", self.name, hasher.finish()));
        let program = folder.join("ends");
        if program.exists() {
            return Ok(program);
        }
        std::fs::create_dir_all(&folder).map_err(file(&folder))?;
        // Benches that begin at the same time: one builds, the others wait and find it there.
        let lock = folder.join("lock");
        let building = std::fs::File::create(&lock).map_err(file(&lock))?;
        building.lock().map_err(file(&lock))?;
        if program.exists() {
            return Ok(program);
        }
        for (name, text) in self.sources {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(file(&path))?;
        }
        let what = format!("The {} peer", self.name);
        let output = Command::new("sh")
            .arg("build")
            .current_dir(&folder)
            .stdin(Stdio::null())
            .output()
            .map_err(|source| BenchError::CannotStart {
                what: format!("The build of the {} ends", self.name),
                source,
            })?;
        if output.status.success() && program.exists() {
            return Ok(program);
        }
        let said =
            [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
        let lines: Vec<&str> = said.iter().flat_map(|text| text.lines()).collect();
        let error = lines
            .iter()
            .position(|line| line.to_lowercase().contains("error"));
        let reason = lines[error.unwrap_or(0)..].iter().take(LINES_SAID);
        let reason = reason.copied().collect::<Vec<_>>().join("\n");
        Err(BenchError::CannotBuild { what, reason })
    }
}

/// Lines of a compiler's complaint that are passed on.
const LINES_SAID: usize = 4;
fn file(path: &Path) -> impl FnOnce(std::io::Error) -> BenchError {
    let path = path.to_owned();
    move |source| BenchError::File { path, source }
}

/// Beside what cargo built, where it built this program; else in the user's cache.
fn cache(own: &Path) -> PathBuf {
    let is_cargo_s = |folder: &&Path| folder.join("CACHEDIR.TAG").exists();
    if let Some(target) = own.ancestors().skip(1).find(is_cargo_s) {
        return target.join("bench");
    }
    let user = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    user.unwrap_or_else(std::env::temp_dir)
        .join("deckwatch/bench")
}
