//! The file `carrier.toml` of an adapter.

use std::path::{Path, PathBuf};

use deckwatch_os::regular;
use deckwatch_text::escaped;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::carrier::Delivery;
use crate::limits::{
    ADAPTER_NAME_LEN_MAX, ADAPTER_SUMMARY_LEN_MAX, ADAPTER_WORDS_MAX, BODY_SIZE_MAX,
    MANIFEST_SIZE_MAX,
};

/// The version of the protocol between a part and the program of an external carrier.
pub const PROTOCOL: u32 = 1;

/// Name of the manifest in an adapter's folder.
pub(super) const MANIFEST_FILE: &str = "carrier.toml";

/// What an adapter declares about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The carrier's name in mission files, on the command line and in results.
    pub name: String,
    /// How the carrier transports a message, in a few words.
    pub summary: String,
    /// The kind of middleware, for example `message queue`.
    pub family: String,
    /// Name of the program, in the folder of the manifest once it is built.
    pub program: String,
    /// Version of the protocol that the program uses.
    pub protocol: u32,
    /// What happens to accepted messages.
    #[serde(default)]
    pub delivery: DeliveryWord,
    /// A send is a call that waits for the consumer's reply.
    #[serde(default)]
    pub calls_back: bool,
    /// The program has a sending thread for each destination.
    #[serde(default)]
    pub thread_for_each: bool,
    /// One send serves all destinations.
    #[serde(default)]
    pub one_slot: bool,
    /// The program also plays a broker, on the supplier's host.
    #[serde(default)]
    pub broker: bool,
    /// Octets of the largest message.
    #[serde(default = "size_bytes_max")]
    pub size_bytes_max: u32,
    /// Debian packages that building and running need.
    #[serde(default)]
    pub packages: Vec<String>,
    /// The command that builds the program, run beside the folder `adapters`.
    #[serde(default)]
    pub build: Vec<String>,
}

/// What happens to messages that a sender accepted, as a manifest writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeliveryWord {
    /// Each message arrives once, in the order of sending.
    #[default]
    InOrder,
    /// Messages may be lost, duplicated or reordered.
    BestEffort,
}

impl From<DeliveryWord> for Delivery {
    fn from(word: DeliveryWord) -> Self {
        match word {
            DeliveryWord::InOrder => Self::InOrder,
            DeliveryWord::BestEffort => Self::BestEffort,
        }
    }
}

const fn size_bytes_max() -> u32 {
    BODY_SIZE_MAX
}

impl Manifest {
    /// Reads the manifest of an adapter's folder.
    ///
    /// # Errors
    /// [`ManifestError`] with the place of the fault.
    pub fn read(folder: &Path) -> Result<Self, ManifestError> {
        let path = folder.join(MANIFEST_FILE);
        match regular::read_text(&path, MANIFEST_SIZE_MAX) {
            Ok(text) => Self::parse(&path, &text),
            Err(error) => Err(ManifestError::Unreadable { path, error }),
        }
    }

    /// Parses the text of the manifest at `path`.
    ///
    /// # Errors
    /// As [`Manifest::read`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, ManifestError> {
        let fault = |fact: String| ManifestError::Fault {
            path: path.to_owned(),
            fact,
        };
        if text.len() as u64 > MANIFEST_SIZE_MAX {
            let kib = MANIFEST_SIZE_MAX >> 10;
            return Err(fault(format!("it is larger than {kib} KiB")));
        }
        let manifest: Self = toml::from_str(text).map_err(|error| fault(not_toml(text, &error)))?;
        match manifest.fault() {
            Some((key, fact)) => Err(fault(format!("{}: {fact}", place_of(text, key)))),
            None => Ok(manifest),
        }
    }

    /// Returns the key of the first value that cannot be used, and the reason.
    fn fault(&self) -> Option<(&'static str, String)> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let begins = self.name.starts_with(|c: char| c.is_ascii_lowercase());
        if !begins || self.name.len() > ADAPTER_NAME_LEN_MAX || !self.name.chars().all(plain) {
            let most = ADAPTER_NAME_LEN_MAX;
            let fact = format!(
                "`name` has lower-case letters, digits and `-`, begins with a letter and has at most {most} octets"
            );
            return Some(("name", fact));
        }
        if self.protocol != PROTOCOL {
            let fact = format!(
                "`protocol` is {}, and this program has version {PROTOCOL}",
                self.protocol
            );
            return Some(("protocol", fact));
        }
        for (key, text) in [("summary", &self.summary), ("family", &self.family)] {
            let is_long = text.len() > ADAPTER_SUMMARY_LEN_MAX;
            if text.is_empty() || is_long || text.contains(char::is_control) {
                let fact = format!("`{key}` is one line of 1 to {ADAPTER_SUMMARY_LEN_MAX} octets");
                return Some((key, fact));
            }
        }
        let is_name = !matches!(&*self.program, "" | "." | "..");
        if !is_name || self.program.contains(['/', '\0']) {
            let fact = "`program` is the name of a file in the folder of the manifest";
            return Some(("program", fact.to_owned()));
        }
        if !(8..=BODY_SIZE_MAX).contains(&self.size_bytes_max) {
            let fact = format!("`size_bytes_max` is 8 to {BODY_SIZE_MAX}");
            return Some(("size_bytes_max", fact));
        }
        for (key, words) in [("packages", &self.packages), ("build", &self.build)] {
            let fits = |word: &String| word.len() <= ADAPTER_SUMMARY_LEN_MAX;
            if words.len() > ADAPTER_WORDS_MAX || !words.iter().all(fits) {
                let fact = format!(
                    "`{key}` has at most {ADAPTER_WORDS_MAX} words of {ADAPTER_SUMMARY_LEN_MAX} octets"
                );
                return Some((key, fact));
            }
        }
        None
    }
}

/// Returns what TOML says of a text, with its place, on one line.
fn not_toml(text: &str, error: &toml::de::Error) -> String {
    let start = error.span().map_or(0, |span| span.start);
    let before = text.get(..start).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    format!("line {line}: {}", escaped(error.message()))
}

/// Returns the line of a key, in words.
fn place_of(text: &str, key: &str) -> String {
    let has_key = |line: &str| {
        let rest = line.trim_start().strip_prefix(key);
        rest.is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let line = text.lines().position(has_key).map_or(1, |line| line + 1);
    format!("line {line}")
}

/// Why a manifest cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The manifest.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The text is no manifest.
    #[error("{}: {fact}", path.display())]
    Fault {
        /// The manifest.
        path: PathBuf,
        /// What is wrong, with its place.
        fact: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = r#"
# A comment.
name = "zeromq"
summary = "ZeroMQ PUB/SUB over TCP"
family = "message queue"
program = "zeromq"
protocol = 1
delivery = "best-effort"
one_slot = true
"#;

    fn parse(text: &str) -> Result<Manifest, ManifestError> {
        Manifest::parse(Path::new("a/carrier.toml"), text)
    }

    #[test]
    fn a_manifest_has_defaults_for_what_most_carriers_leave_out() {
        let manifest = parse(SOUND).expect("sound");
        assert_eq!(manifest.delivery, DeliveryWord::BestEffort);
        assert!(manifest.one_slot && !manifest.broker);
        assert_eq!(manifest.size_bytes_max, BODY_SIZE_MAX);
    }

    #[test]
    fn a_fault_is_reported_with_its_file_and_line() {
        for (from, to, line, fact) in [
            ("\"zeromq\"\nsum", "\"Zero MQ\"\nsum", "line 3", "`name`"),
            ("protocol = 1", "protocol = 2", "line 7", "`protocol` is 2"),
            ("\"zeromq\"\npro", "\"../sh\"\npro", "line 6", "`program`"),
            ("one_slot", "one_slots", "line 9", "unknown field"),
            ("best-effort", "exactly", "line 8", "unknown variant"),
            (
                "family = \"m",
                "size_bytes_max = 7\nfamily = \"m",
                "line 5",
                "8 to",
            ),
            ("family = \"m", "family = \"\\n", "line 5", "one line"),
            ("= true", "= ", "line 9", ""),
        ] {
            let text = SOUND.replace(from, to);
            assert_ne!(text, SOUND, "{from}");
            let error = parse(&text).expect_err(to).to_string();
            assert!(error.starts_with("a/carrier.toml: "), "{error}");
            assert!(
                error.contains(line) && error.contains(fact),
                "{to}: {error}"
            );
        }
        let long = format!("{SOUND}# {}", "x".repeat(1 << 16));
        assert!(
            parse(&long)
                .expect_err("long")
                .to_string()
                .contains("64 KiB")
        );
    }
}
