//! The omniORB ends: built from our IDL where omniidl, a C++ compiler and omniORB's headers are installed, and kept for the next time.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::BenchError;

/// What is built, by file name.
const SOURCES: [(&str, &str); 3] = [
    ("build", include_str!("../../../../bench/omniorb/build")),
    ("ends.cc", include_str!("../../../../bench/omniorb/ends.cc")),
    (
        "echo.idl",
        include_str!("../../../../idl/deckwatch/echo.idl"),
    ),
];

/// The header by which omniORB's development files are known.
const HEADER: &str = "/usr/include/omniORB4/CORBA.h";

/// What is missing here for the omniORB ends, in words.
pub(crate) fn missing() -> Option<String> {
    let absent: Vec<&str> = ["omniidl", "g++"]
        .into_iter()
        .filter(|program| super::sockperf::find(program).is_none())
        .collect();
    if !absent.is_empty() {
        return Some(format!("{} not installed", absent.join(" and ")));
    }
    (!Path::new(HEADER).exists()).then(|| "omniORB's headers are not installed".to_owned())
}

/// The program, built where it is not there yet; `own` is where this program is.
pub(super) fn program(own: &Path) -> Result<PathBuf, BenchError> {
    let mut hasher = DefaultHasher::new();
    SOURCES.hash(&mut hasher);
    let folder = cache(own).join(format!("omniorb-{:016x}", hasher.finish()));
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
    for (name, text) in SOURCES {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(file(&path))?;
    }
    let output = Command::new("sh")
        .arg("build")
        .current_dir(&folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| BenchError::CannotStart {
            what: "The build of the omniORB ends".to_owned(),
            source,
        })?;
    if output.status.success() {
        return Ok(program);
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(BenchError::CannotBuild {
        what: "The omniORB peer".to_owned(),
        reason: said.lines().take(LINES_SAID).collect::<Vec<_>>().join("\n"),
    })
}

/// Lines of a compiler's complaint that are passed on.
const LINES_SAID: usize = 20;

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
