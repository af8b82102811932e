//! Copies this program to far hosts that lack it, by commands that every Unix has: no shell takes part.
//!
//! The copy lies in a folder that is named by its digest, below the folder in which the commands start (for `ssh` the
//! user's own). It gets its name only when it is whole, so that two coordinators can copy at once.

use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};

use super::files::hex;
use super::probe::{Answer, ReachError, check_build, send};
use super::{PROGRAM, Reach};
use crate::limits::{HELLO_PATIENCE, INSTALL_RATE_MIN_BYTES_PER_S, INSTALL_SIZE_MAX};
use crate::mission::{Location, Mission};

/// Copies this program to each far host of a mission that has no program of this build, and makes the mission use the
/// copy. `told` gets a sentence for each copy.
///
/// # Errors
/// [`ReachError`] of the first host to which it cannot be copied.
pub fn install(
    mission: &mut Mission,
    program: &Path,
    build: &str,
    told: &mut dyn FnMut(&str),
) -> Result<(), ReachError> {
    let mut copy = None;
    let mut known: Vec<(Reach, Reach)> = Vec::new();
    for host in &mut mission.hosts {
        let Location::Far(reach) = &mut host.location else {
            continue;
        };
        let alike =
            |of: &&(Reach, Reach)| of.0.words == reach.words && of.0.program == reach.program;
        if let Some((_, installed)) = known.iter().find(alike) {
            reach.program.clone_from(&installed.program);
            continue;
        }
        let asked = reach.clone();
        match check_build(&host.name, reach, build) {
            Ok(()) => {}
            Err(ReachError::NoProgram { .. } | ReachError::OtherBuild { .. }) => {
                let copy = match &mut copy {
                    Some(copy) => copy,
                    none => none.insert(Copy::read(&host.name, program)?),
                };
                let path = copy.path();
                if copy.put(&host.name, reach)? {
                    told(&format!("Copied this program to {} as {path}.", host.name));
                }
                reach.program = Some(path);
                starts(&host.name, reach, build)?;
            }
            Err(error) => return Err(error),
        }
        known.push((asked, reach.clone()));
    }
    Ok(())
}

/// Checks that the copy is this program and starts.
fn starts(host: &str, reach: &Reach, build: &str) -> Result<(), ReachError> {
    check_build(host, reach, build).map_err(|error| ReachError::NotInstalled {
        host: host.to_owned(),
        step: format!("start of {}", reach.program()),
        how: format!(
            "{}; a host with another C library needs the static build (./dev static)",
            error.to_string().trim_end_matches('.')
        ),
    })
}

/// This program's file.
struct Copy {
    octets: Vec<u8>,
    digest: String,
}

impl Copy {
    fn read(host: &str, program: &Path) -> Result<Self, ReachError> {
        let mut octets = Vec::new();
        let read = std::fs::File::open(program)
            .and_then(|file| file.take(INSTALL_SIZE_MAX + 1).read_to_end(&mut octets));
        let how = match read {
            Ok(size) if size as u64 > INSTALL_SIZE_MAX => "it is too large".to_owned(),
            Ok(_) => {
                let digest = hex(&Sha256::digest(&octets));
                return Ok(Self { octets, digest });
            }
            Err(error) => error.to_string(),
        };
        Err(ReachError::NotInstalled {
            host: host.to_owned(),
            step: format!("reading of {}", program.display()),
            how,
        })
    }

    fn folder(&self) -> String {
        format!("{FOLDER}/{}", self.digest)
    }

    fn path(&self) -> String {
        format!("{}/{PROGRAM}", self.folder())
    }

    /// Puts the program on a host. Returns false if it is there already.
    fn put(&self, host: &str, reach: &Reach) -> Result<bool, ReachError> {
        let path = self.path();
        if self.is_at(host, reach, &path)? {
            return Ok(false);
        }
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let unfinished = format!("{path}.{}x{:x}", std::process::id(), since.as_nanos());
        let run = |words: &[&str], octets: &[u8]| {
            let size_bytes = octets.len() as u64;
            let patience =
                HELLO_PATIENCE + Duration::from_secs(size_bytes / INSTALL_RATE_MIN_BYTES_PER_S);
            let answer = send(host, reach, words, octets.to_vec(), patience)?;
            succeeded(host, words, &answer)
        };
        run(&["mkdir", "-p", &self.folder()], &[])?;
        run(
            &["dd", &format!("of={unfinished}"), "bs=65536"],
            &self.octets,
        )?;
        if !self.is_at(host, reach, &unfinished)? {
            run(&["rm", "-f", &unfinished], &[])?;
            return Err(ReachError::NotInstalled {
                host: host.to_owned(),
                step: "dd".to_owned(),
                how: "the digest of the copy differs".to_owned(),
            });
        }
        run(&["chmod", "755", &unfinished], &[])?;
        run(&["mv", "-f", &unfinished, &path], &[])?;
        Ok(true)
    }

    /// Whether a file on a host has the digest of this program.
    fn is_at(&self, host: &str, reach: &Reach, path: &str) -> Result<bool, ReachError> {
        let words = ["sha256sum", path];
        let answer = send(host, reach, &words, Vec::new(), HELLO_PATIENCE)?;
        let text = String::from_utf8_lossy(&answer.output);
        let digest = text.split_ascii_whitespace().next();
        Ok(answer.status == Some(0) && digest == Some(&self.digest))
    }
}

fn succeeded(host: &str, words: &[&str], answer: &Answer) -> Result<(), ReachError> {
    if answer.status == Some(0) {
        return Ok(());
    }
    Err(ReachError::NotInstalled {
        host: host.to_owned(),
        step: words.join(" "),
        how: answer.how(),
    })
}

/// The folder of the copies, below that in which the commands start.
const FOLDER: &str = ".deckwatch";
