//! Foreign ORBs. Their scripts build them once, from installed packages and the package registries.

use std::fs::{DirBuilder, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use deckwatch_os::namespace::kill_process_group;
use deckwatch_os::process::effective_user;
use deckwatch_os::signal;

use super::OMNIORB;
use super::error::LaboratoryError;
use super::process::POLL_INTERVAL;

/// A foreign ORB.
pub(crate) struct Foreign {
    /// Its name in results.
    pub(crate) name: &'static str,
    /// Programs that its build needs.
    tools: &'static [&'static str],
    /// A file that its build needs, and the message if the file is missing.
    header: Option<(&'static str, &'static str)>,
    /// Its files, by name. The script `build` makes the program `ends`.
    sources: &'static [(&'static str, &'static str)],
    /// Its limits, or the limits of counting it; shown with every result.
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

/// What the Rust programs share.
const END: (&str, &str) = ("end.rs", include_str!("../../../../bench/end.rs"));

/// Names that other files compare.
pub(crate) const JACORB: &str = "jacorb";
pub(crate) const RUSTORB: &str = "rustorb";

/// All foreign ORBs.
pub(crate) const ALL: [Foreign; 3] = [
    Foreign {
        name: OMNIORB,
        tools: &["omniidl", "g++"],
        header: Some((
            "/usr/include/omniORB4/CORBA.h",
            "omniORB's headers are not installed",
        )),
        sources: &[
            ("build", include_str!("../../../../bench/omniorb/build")),
            ("ends.cc", include_str!("../../../../bench/omniorb/ends.cc")),
            ("end.h", include_str!("../../../../bench/omniorb/end.h")),
            (
                "objects.h",
                include_str!("../../../../bench/omniorb/objects.h"),
            ),
            (
                "subjects.h",
                include_str!("../../../../bench/omniorb/subjects.h"),
            ),
            ECHO,
            BENCH,
            (
                "experiment.idl",
                include_str!("../../../../idl/deckwatch/experiment.idl"),
            ),
        ],
        notes: &["omniorb has no priorities: a server's threads are all of one"],
    },
    Foreign {
        name: JACORB,
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
        name: RUSTORB,
        tools: &["cargo"],
        header: None,
        sources: &[
            ("build", include_str!("../../../../bench/rustorb/build")),
            (
                "Cargo.toml",
                include_str!("../../../../bench/rustorb/manifest.toml"),
            ),
            (
                "Cargo.lock",
                include_str!("../../../../bench/rustorb/manifest.lock"),
            ),
            ("main.rs", include_str!("../../../../bench/rustorb/main.rs")),
            END,
        ],
        notes: &[
            "rustorb has no priorities, and may serve one-ways of a connection out of order",
            "rustorb's locks are inlined into it and are not counted; its waits are",
        ],
    },
];

/// The names of all foreign systems.
pub const PEERS: [&str; ALL.len() + EVENT_PEERS.len()] = [
    ALL[0].name,
    ALL[1].name,
    ALL[2].name,
    EVENT_PEERS[0],
    EVENT_PEERS[1],
    EVENT_PEERS[2],
    EVENT_PEERS[3],
];

/// Cyclone DDS, whose ends serve no calls.
pub(crate) const CYCLONE_DDS: Foreign = Foreign {
    name: CYCLONE,
    tools: &["idlc", "gcc"],
    header: Some((
        "/usr/include/dds/dds.h",
        "Cyclone DDS' headers are not installed",
    )),
    sources: &[
        ("build", include_str!("../../../../bench/cyclone/build")),
        ("ends.c", include_str!("../../../../bench/cyclone/ends.c")),
        (
            "event.idl",
            include_str!("../../../../bench/cyclone/event.idl"),
        ),
    ],
    notes: &[],
};

/// Zenoh, whose server is a router. Its ends serve no calls.
pub(crate) const ZENOH_ROUTER: Foreign = Foreign {
    name: ZENOH,
    tools: &["cargo"],
    header: None,
    sources: &[
        ("build", include_str!("../../../../bench/zenoh/build")),
        (
            "Cargo.toml",
            include_str!("../../../../bench/zenoh/manifest.toml"),
        ),
        (
            "Cargo.lock",
            include_str!("../../../../bench/zenoh/manifest.lock"),
        ),
        ("main.rs", include_str!("../../../../bench/zenoh/main.rs")),
        END,
    ],
    notes: &[],
};

/// Systems that distribute events, besides those of ours.
pub(crate) const OMNI_EVENTS: &str = "omnievents";
pub(crate) const CYCLONE: &str = "cyclone-dds";
pub(crate) const ZENOH: &str = "zenoh";
pub(crate) const TAO: &str = "tao";
pub(crate) const EVENT_PEERS: [&str; 4] = [OMNI_EVENTS, CYCLONE, TAO, ZENOH];

/// The path of a program on PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// omniORB's transport for SSL, a library that its programs load beside them.
pub(crate) fn ssl_transport() -> Option<PathBuf> {
    const NAME: &str = "libomnisslTP4.so.2";
    let inside = std::fs::read_dir("/usr/lib").into_iter().flatten();
    let inside = inside.filter_map(|entry| Some(entry.ok()?.path()));
    ["/usr/lib", "/usr/lib64", "/usr/local/lib"]
        .map(PathBuf::from)
        .into_iter()
        .chain(inside)
        .map(|folder| folder.join(NAME))
        .find(|file| file.is_file())
}

impl Foreign {
    /// The tools or files that are missing to build it, in words. Returns `None` if none is missing.
    pub(crate) fn missing(&self) -> Option<String> {
        let absent: Vec<&str> = (self.tools.iter().copied())
            .filter(|program| find(program).is_none())
            .collect();
        if !absent.is_empty() {
            return Some(format!("{} not installed", absent.join(" and ")));
        }
        let (path, words) = self.header?;
        (!Path::new(path).exists()).then(|| words.to_owned())
    }

    /// Its program; builds it if there is none yet. `own` is the path of this program.
    pub(crate) fn program(&self, own: &Path) -> Result<PathBuf, LaboratoryError> {
        let mut hasher = DefaultHasher::new();
        self.sources.hash(&mut hasher);
        let folder = cache(own)?.join(format!("{}-{:016x}", self.name, hasher.finish()));
        let program = folder.join("ends");
        if program.exists() {
            return Ok(program);
        }
        std::fs::create_dir_all(&folder).map_err(file(&folder))?;
        // If several processes start at the same time, one builds, and the others wait for it.
        let lock = folder.join("lock");
        let building = File::create(&lock).map_err(file(&lock))?;
        building.lock().map_err(file(&lock))?;
        if program.exists() {
            return Ok(program);
        }
        for (name, text) in self.sources {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(file(&path))?;
        }
        build(&folder, self.name, signal::ending)?;
        Ok(program)
    }
}

/// Lines of a build error that are shown.
const ERROR_LINES: usize = 4;

/// Runs the script `build` of a folder, which makes `ends`. It takes minutes. If the user wants to end meanwhile, the
/// build is killed with all processes that it has started.
fn build(
    folder: &Path,
    name: &str,
    ending: impl Fn() -> Option<&'static str>,
) -> Result<(), LaboratoryError> {
    let cannot_start = |source| LaboratoryError::CannotStart {
        what: format!("The build of the {name} ends"),
        source,
    };
    let path = folder.join("said");
    let said = File::create(&path).map_err(file(&path))?;
    // In a process group of its own, so that Ctrl-C reaches this program alone, which ends its processes itself.
    let mut building = Command::new("sh")
        .arg("build")
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(said.try_clone().map_err(file(&path))?)
        .stderr(said)
        .process_group(0)
        .spawn()
        .map_err(cannot_start)?;
    let status = loop {
        if let Some(status) = building.try_wait().map_err(cannot_start)? {
            break status;
        }
        if let Some(by) = ending() {
            // It may have ended meanwhile.
            let _ = kill_process_group(building.id());
            let _ = building.wait();
            return Err(LaboratoryError::Interrupted(by));
        }
        std::thread::sleep(POLL_INTERVAL);
    };
    if status.success() && folder.join("ends").exists() {
        return Ok(());
    }
    let said = std::fs::read(&path).map_err(file(&path))?;
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said.lines().collect();
    let error = lines
        .iter()
        .position(|line| line.to_lowercase().contains("error"));
    let reason = lines[error.unwrap_or(0)..].iter().take(ERROR_LINES);
    Err(LaboratoryError::CannotBuild {
        what: format!("The {name} peer"),
        reason: reason.copied().collect::<Vec<_>>().join("\n"),
    })
}

fn file(path: &Path) -> impl FnOnce(std::io::Error) -> LaboratoryError {
    let path = path.to_owned();
    move |source| LaboratoryError::File { path, source }
}

/// The folder for built programs. It is beside cargo's output if cargo built this program, else in the user's cache,
/// else a folder of the user's own among the temporary ones.
fn cache(own: &Path) -> Result<PathBuf, LaboratoryError> {
    let is_cargo_output = |folder: &&Path| folder.join("CACHEDIR.TAG").exists();
    if let Some(target) = own.ancestors().skip(1).find(is_cargo_output) {
        let found = std::fs::metadata(target).map_err(file(target))?;
        let is_ours = found.uid() == effective_user() || found.uid() == 0;
        if is_ours && found.mode() & 0o002 == 0 {
            return Ok(target.join("bench"));
        }
        return Err(unsafe_folder(target, "others may write to it"));
    }
    // The XDG specification: relative and empty paths are ignored.
    let of = |name: &str| {
        let folder = PathBuf::from(std::env::var_os(name)?);
        folder.is_absolute().then_some(folder)
    };
    let user = of("XDG_CACHE_HOME").or_else(|| Some(of("HOME")?.join(".cache")));
    let folder = match user {
        Some(cache) => cache.join("deckwatch/bench"),
        None => std::env::temp_dir().join(format!("deckwatch-bench-{}", effective_user())),
    };
    make_own(&folder)?;
    Ok(folder)
}

/// Makes the folder, or checks that no other user can write to it: its programs are run.
fn make_own(folder: &Path) -> Result<(), LaboratoryError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(file(folder))?;
    let found = std::fs::symlink_metadata(folder).map_err(file(folder))?;
    let fault = if !found.is_dir() {
        "it is a link to a folder"
    } else if found.uid() != effective_user() {
        "it belongs to another user"
    } else if found.mode() & 0o022 != 0 {
        "others may write to it"
    } else {
        return Ok(());
    };
    Err(unsafe_folder(folder, fault))
}

fn unsafe_folder(folder: &Path, why: &str) -> LaboratoryError {
    LaboratoryError::File {
        path: folder.to_owned(),
        source: std::io::Error::other(format!("{why}, and programs in it would be run")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_build_that_is_interrupted_leaves_no_process() {
        let folder = std::env::temp_dir().join(format!("deckwatch-build-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let script = "sleep 600 & echo $! > made && mv made started\nwait\n";
        std::fs::write(folder.join("build"), script).unwrap();
        let started = folder.join("started");
        let interrupted = build(&folder, "slow", || started.exists().then_some("SIGTERM"));
        assert!(
            matches!(interrupted, Err(LaboratoryError::Interrupted("SIGTERM"))),
            "{interrupted:?}"
        );
        let sleeping = std::fs::read_to_string(&started).unwrap();
        let sleeping = sleeping.trim().parse().unwrap();
        // It has been killed; the kernel may not have removed it yet.
        while deckwatch_os::namespace::start_time_of_process(sleeping).is_some() {
            std::thread::yield_now();
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_build_that_fails_says_why_from_its_first_error_on() {
        let folder = std::env::temp_dir().join(format!("deckwatch-fails-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let script = "echo reading; echo 'ends.cc: error: no' >&2; echo more; exit 1\n";
        std::fs::write(folder.join("build"), script).unwrap();
        let failed = build(&folder, "broken", || None);
        let Err(LaboratoryError::CannotBuild { what, reason }) = failed else {
            panic!("{failed:?}");
        };
        assert_eq!(what, "The broken peer");
        assert_eq!(reason, "ends.cc: error: no\nmore");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_that_another_may_write_to_or_chose_is_not_used() {
        let base = std::env::temp_dir().join(format!("deckwatch-own-{}", std::process::id()));
        let refused = |folder: &Path, words: &str| {
            let why = make_own(folder).unwrap_err().to_string();
            assert!(why.contains(words), "{why}");
        };
        make_own(&base).unwrap();
        make_own(&base).unwrap();
        let mode = std::fs::metadata(&base).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
        let link = base.join("link");
        std::os::unix::fs::symlink(&base, &link).unwrap();
        refused(&link, "a link");
        let open = base.join("open");
        make_own(&open).unwrap();
        std::fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        refused(&open, "others may write to it");
        if effective_user() == 0 {
            std::os::unix::fs::chown(&base, Some(65_534), None).unwrap();
            refused(&base, "another user");
        }
        std::fs::remove_dir_all(base).unwrap();
    }
}
