//! Reads and writes the result document. It is written completely or not at all; this version and all earlier ones are
//! read.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use deckwatch_os::regular;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{ResultDocument, SCHEMA_VERSION};
use crate::limits::RESULT_OCTETS_MAX;

/// Why a result document cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultError {
    /// The file cannot be opened, read, written or renamed.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is larger than any result document.
    #[error("{path}: is larger than any result document ({RESULT_OCTETS_MAX} octets)")]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a result document, or is damaged; the reason names line and column.
    #[error("{path}: is not a sound result document: {source}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was expected, and where.
        source: serde_json::Error,
    },
    /// The document is of a version that this program does not know.
    #[error(
        "{path}: has schema version {found}, but this program reads versions 1 to {newest}; read it with the version of deckwatch that wrote it, or a newer one"
    )]
    UnknownVersion {
        /// The file.
        path: PathBuf,
        /// The document's version.
        found: u64,
        /// The newest version that this program reads.
        newest: u32,
    },
}

/// The only field that is read before the version is known.
#[derive(Deserialize)]
struct Version {
    schema_version: u64,
}

impl ResultDocument {
    /// Reads a document of this version or an earlier one.
    ///
    /// # Errors
    /// [`ResultError`]: the file cannot be read, is larger than [`RESULT_OCTETS_MAX`], is damaged, or is of a later
    /// version.
    pub fn load(path: &Path) -> Result<Self, ResultError> {
        load_versioned(path, SCHEMA_VERSION)
    }

    /// Writes the document to a temporary file and renames it, so that no reader finds a part of it.
    ///
    /// # Errors
    /// [`ResultError::File`] if the file cannot be written. [`ResultError::Damaged`] if the document holds a value that
    /// JSON cannot represent (a number that is not finite is written as null and cannot be read back).
    pub fn save(&self, path: &Path) -> Result<(), ResultError> {
        save_whole(self, path)
    }
}

/// Reads a document whose version is at most `newest`.
///
/// # Errors
/// [`ResultError`]: the file cannot be read, is larger than [`RESULT_OCTETS_MAX`], is damaged, or is of a later
/// version.
pub fn load_versioned<T: DeserializeOwned>(path: &Path, newest: u32) -> Result<T, ResultError> {
    let file_error = |source| ResultError::File {
        path: path.to_owned(),
        source,
    };
    let damaged = |source| ResultError::Damaged {
        path: path.to_owned(),
        source,
    };
    let text = regular::read_text(path, RESULT_OCTETS_MAX).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => ResultError::TooLarge {
            path: path.to_owned(),
        },
        _ => file_error(error),
    })?;
    let Version {
        schema_version: found,
    } = serde_json::from_str(&text).map_err(damaged)?;
    if found == 0 || found > u64::from(newest) {
        return Err(ResultError::UnknownVersion {
            path: path.to_owned(),
            found,
            newest,
        });
    }
    serde_json::from_str(&text).map_err(damaged)
}

/// Writes a document to a temporary file and renames it. If the new document does not fit on the disk, the old file
/// stays.
///
/// # Errors
/// [`ResultError::File`] if the file cannot be written; [`ResultError::Damaged`] if the document holds a value that
/// JSON cannot represent.
pub fn save_whole<T: Serialize>(document: &T, path: &Path) -> Result<(), ResultError> {
    let file_error = |source| ResultError::File {
        path: path.to_owned(),
        source,
    };
    let mut text = serde_json::to_vec_pretty(document).map_err(|source| ResultError::Damaged {
        path: path.to_owned(),
        source,
    })?;
    text.push(b'\n');
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let written = File::create(&partial)
        .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()));
    written
        .and_then(|()| std::fs::rename(&partial, path))
        .map_err(|source| {
            let _ = std::fs::remove_file(&partial);
            file_error(source)
        })
}

/// Returns the JSON Schema of a result document, as published in `docs/schema`.
#[must_use]
pub fn json_schema() -> String {
    let schema = schemars::schema_for!(ResultDocument);
    format!("{:#}\n", schema.as_value())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::provenance::{Readings, Tree};
    use crate::result::{ClockNote, Environment, Provenance, Verdict, VerdictKind};

    fn document() -> ResultDocument {
        let clock = ClockNote {
            shared: true,
            note: "one kernel".to_owned(),
            conversion_error_ns: 80,
            latency_error_ns: None,
            latency_assumed_ns: None,
            sync: Default::default(),
        };
        // Two readings may differ, by stolen time for example.
        let readings = Readings::take();
        let provenance = Provenance {
            command: vec!["deckwatch".to_owned(), "run".to_owned()],
            version: "0.1.0".to_owned(),
            profile: "release".to_owned(),
            started_at: "2026-11-21T09:33:45.000Z".to_owned(),
            duration_s: 20.5,
            mission_path: "nav.toml".to_owned(),
            mission_text: "name = \"nav\"\n".to_owned(),
            machine: BTreeMap::from([("kernel".to_owned(), "6.18".to_owned())]),
            disturbance: readings.until(&readings).to_map(),
            clock,
        };
        let environment = Environment {
            kind: "loopback".to_owned(),
            network: "lo".to_owned(),
            fidelity: None,
            fallback_reason: None,
            hosts: BTreeMap::new(),
            loads: Vec::new(),
            load_results: Vec::new(),
        };
        let verdict = Verdict {
            kind: VerdictKind::Unproven,
            reasons: vec!["Too few.".to_owned()],
            remedies: Vec::new(),
            messages_needed: Some(9_585),
        };
        ResultDocument {
            schema_version: SCHEMA_VERSION,
            mission: "nav".to_owned(),
            variant: None,
            published: None,
            provenance,
            environment,
            flows: Vec::new(),
            verdict,
            warnings: Vec::new(),
            deaths: Vec::new(),
            left_out: Vec::new(),
        }
    }

    #[test]
    fn a_document_comes_back_as_it_was_saved() {
        let tree = Tree::new("result");
        let path = tree.root().join("result.json");
        document().save(&path).expect("saved");
        assert_eq!(ResultDocument::load(&path).expect("loaded"), document());
        assert_eq!(
            std::fs::read_dir(tree.root()).expect("a folder").count(),
            1,
            "nothing is left beside it"
        );
    }

    #[test]
    fn what_cannot_be_put_in_its_place_leaves_nothing_beside_it() {
        let tree = Tree::new("unwritable-result");
        let path = tree.root().join("result.json");
        std::fs::create_dir_all(path.join("of somebody else")).expect("a folder in its place");
        let error = document().save(&path).expect_err("no place for it");
        assert!(matches!(error, ResultError::File { .. }), "{error}");
        let names = std::fs::read_dir(tree.root()).expect("a folder").count();
        assert_eq!(names, 1);
    }

    #[test]
    fn a_document_without_the_fidelity_of_its_network_is_read() {
        let tree = Tree::new("older-result");
        let path = tree.root().join("result.json");
        let mut older = serde_json::to_value(document()).expect("JSON");
        let environment = older["environment"].as_object_mut().expect("an object");
        assert!(environment.remove("fidelity").is_some());
        std::fs::write(&path, older.to_string()).expect("written");
        assert_eq!(ResultDocument::load(&path).expect("loaded"), document());
    }

    #[test]
    fn a_later_version_is_refused_before_its_contents_are_looked_at() {
        let tree = Tree::new("later");
        let path = tree.root().join("result.json");
        for found in [0, u64::from(SCHEMA_VERSION) + 1, u64::MAX] {
            std::fs::write(
                &path,
                format!(r#"{{"shape": "of another time", "schema_version": {found}}}"#),
            )
            .expect("written");
            let error = ResultDocument::load(&path).expect_err("another version");
            assert!(
                matches!(error, ResultError::UnknownVersion { found: version, .. } if version == found)
            );
            assert!(
                error
                    .to_string()
                    .contains("this program reads versions 1 to 1"),
                "{error}"
            );
        }
    }

    #[test]
    fn damaged_documents_are_refused_with_file_line_and_column() {
        let tree = Tree::new("damaged-result");
        let path = tree.root().join("result.json");
        assert!(matches!(
            ResultDocument::load(&path),
            Err(ResultError::File { .. })
        ));
        for text in ["", "[]", "{}", "{\n  \"schema_version\": 1\n}", "\u{0}"] {
            std::fs::write(&path, text).expect("written");
            let error = ResultDocument::load(&path).expect_err("not a document");
            assert!(matches!(error, ResultError::Damaged { .. }), "{error}");
            let said = error.to_string();
            assert!(
                said.contains("result.json") && said.contains("line"),
                "{said}"
            );
        }
        std::fs::write(&path, [0xff, 0xfe]).expect("written");
        assert!(matches!(
            ResultDocument::load(&path),
            Err(ResultError::File { .. })
        ));
    }

    #[test]
    fn the_published_schema_is_current() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/result-1.json");
        if std::env::var_os("DECKWATCH_WRITE_SCHEMA").is_some() {
            std::fs::write(&path, json_schema()).expect("written");
        }
        let published = std::fs::read_to_string(&path).expect("docs/schema/result-1.json");
        // Compared as values: the order of members is not part of a schema, and depends on serde_json's build features.
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert!(
            value(&published) == value(&json_schema()),
            "run this test once with DECKWATCH_WRITE_SCHEMA=1 and commit docs/schema/result-1.json"
        );
    }
}
