//! The journal of a sweep: its parameters, then each finished point as one line. A sweep that stopped goes on behind
//! it, even after a crash in the middle of a line.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use deckwatch_meter::experiment::Measurement;
use deckwatch_os::regular;
use serde::{Deserialize, Serialize};

use crate::laboratory::LaboratoryError;
use crate::limits::SWEEP_JOURNAL_SIZE_MAX;

/// Name of the journal in the result folder.
pub const JOURNAL_FILE: &str = "journal.jsonl";

/// An open journal.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    /// The points that were finished before.
    pub(super) finished: Vec<Measurement>,
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct Head {
    parameters: BTreeMap<String, String>,
}

impl Journal {
    /// Opens the journal at `path`, or begins it.
    ///
    /// # Errors
    /// [`LaboratoryError::Differs`]: the finished points have other parameters. [`LaboratoryError::File`]: it cannot be
    /// read or written.
    pub(super) fn open(
        path: &Path,
        parameters: &BTreeMap<String, String>,
    ) -> Result<Self, LaboratoryError> {
        let cannot = |source| LaboratoryError::File {
            path: path.to_path_buf(),
            source,
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = regular::open_with(path, &mut options).map_err(cannot)?;
        let mut text = Vec::new();
        let limit = SWEEP_JOURNAL_SIZE_MAX;
        (&mut file)
            .take(limit + 1)
            .read_to_end(&mut text)
            .map_err(cannot)?;
        if text.len() as u64 > limit {
            let what = format!("it has more than {limit} octets");
            return Err(cannot(io::Error::new(io::ErrorKind::InvalidData, what)));
        }
        // What follows the last line end was not written whole.
        let whole = text.iter().rposition(|octet| *octet == b'\n');
        text.truncate(whole.map_or(0, |end| end + 1));
        let mut finished = Vec::new();
        for (number, line) in text.split_inclusive(|octet| *octet == b'\n').enumerate() {
            let damaged = |error: serde_json::Error| {
                let what = format!("line {} is damaged: {error}", number + 1);
                cannot(io::Error::new(io::ErrorKind::InvalidData, what))
            };
            if number == 0 {
                let head: Head = serde_json::from_slice(line).map_err(damaged)?;
                compare(path, &head.parameters, parameters)?;
            } else {
                finished.push(serde_json::from_slice(line).map_err(damaged)?);
            }
        }
        file.set_len(text.len() as u64).map_err(cannot)?;
        file.seek(SeekFrom::End(0)).map_err(cannot)?;
        let mut journal = Self {
            path: path.to_path_buf(),
            file,
            finished,
        };
        if text.is_empty() {
            let parameters = parameters.clone();
            journal.write(&Head { parameters })?;
        }
        Ok(journal)
    }

    /// Adds a finished point.
    pub(super) fn add(&mut self, point: &Measurement) -> Result<(), LaboratoryError> {
        self.write(point)
    }

    fn write(&mut self, line: &impl Serialize) -> Result<(), LaboratoryError> {
        let written = serde_json::to_string(line).map_err(io::Error::other);
        // One write, so that only a crash of the machine can tear the line.
        let written = written.and_then(|text| self.file.write_all(format!("{text}\n").as_bytes()));
        let written = written.and_then(|()| self.file.sync_data());
        written.map_err(|source| LaboratoryError::File {
            path: self.path.clone(),
            source,
        })
    }
}

/// Refuses parameters that differ from those of the finished points.
fn compare(
    path: &Path,
    before: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Result<(), LaboratoryError> {
    let mut names: Vec<&String> = before.keys().chain(now.keys()).collect();
    names.sort();
    names.dedup();
    let of = |all: &BTreeMap<String, String>, name: &String| {
        all.get(name)
            .cloned()
            .unwrap_or_else(|| "not set".to_owned())
    };
    let differs: Vec<String> = names
        .into_iter()
        .filter(|name| before.get(*name) != now.get(*name))
        .map(|name| {
            let (before, now) = (of(before, name), of(now, name));
            format!("its {name} was `{before}`, and `{now}` is asked for")
        })
        .collect();
    if differs.is_empty() {
        return Ok(());
    }
    Err(LaboratoryError::Differs {
        path: path.to_path_buf(),
        differs: differs.join("; "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(messages: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("messages".to_owned(), messages.to_owned())])
    }

    fn point(size: f64) -> Measurement {
        Measurement {
            system: "udp".to_owned(),
            case: String::new(),
            group: String::new(),
            factors: BTreeMap::from([("size_octets".to_owned(), size)]),
            values: BTreeMap::new(),
            runs: BTreeMap::new(),
            ends: Vec::new(),
            samples: 0,
            histogram: Vec::new(),
        }
    }

    #[test]
    fn finished_points_come_back_and_a_line_that_was_torn_does_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(JOURNAL_FILE);
        let mut journal = Journal::open(&path, &parameters("200")).expect("begun");
        journal.add(&point(16.0)).expect("written");
        journal.add(&point(32.0)).expect("written");
        drop(journal);
        let text = std::fs::read_to_string(&path).expect("read");
        // For each length that a crash can leave, the whole lines count.
        let second = text.len() - 10;
        std::fs::write(&path, &text[..second]).expect("torn");
        let mut again = Journal::open(&path, &parameters("200")).expect("resumed");
        assert_eq!(again.finished, [point(16.0)]);
        again.add(&point(48.0)).expect("written");
        let third = Journal::open(&path, &parameters("200")).expect("resumed");
        assert_eq!(third.finished, [point(16.0), point(48.0)]);
    }

    #[test]
    fn other_parameters_are_refused_with_both_values() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(JOURNAL_FILE);
        drop(Journal::open(&path, &parameters("200")).expect("begun"));
        let error = Journal::open(&path, &parameters("300")).expect_err("other messages");
        let words = error.to_string();
        assert!(
            words.contains("its messages was `200`, and `300` is asked for"),
            "{words}"
        );
    }

    #[test]
    fn a_damaged_line_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(JOURNAL_FILE);
        drop(Journal::open(&path, &parameters("200")).expect("begun"));
        let mut text = std::fs::read_to_string(&path).expect("read");
        text.push_str("{\"system\": 3}\n");
        std::fs::write(&path, text).expect("written");
        let error = Journal::open(&path, &parameters("200")).expect_err("damaged");
        let source = std::error::Error::source(&error).map(ToString::to_string);
        let words = format!("{error} {source:?}");
        assert!(words.contains("line 2 is damaged"), "{words}");
    }
}
