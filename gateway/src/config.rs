//! The file that says which events cross, and how: parsed and checked before anything is connected.

mod map;

use std::fmt;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

pub(crate) use map::Mapping;
pub use map::{Congestion, Direction, MapPriority};

use crate::limits::{FILE_SIZE_MAX, MAPPINGS_MAX};

/// A whole file, checked.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) channel: ChannelSource,
    pub(crate) listen: Option<String>,
    pub(crate) zenoh: ZenohTable,
    pub(crate) mappings: Vec<Mapping>,
}

/// Where the reference of the channel comes from.
#[derive(Clone, Debug)]
pub(crate) enum ChannelSource {
    /// `IOR:`, `corbaloc:` or `corbaname:`.
    Reference(String),
    /// A file that holds one. It is read at each connect: a channel that starts anew may write another.
    File(PathBuf),
}

/// A mistake in the file, and where it is.
#[derive(Debug, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct ConfigError {
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// What is wrong, and what to write instead.
    pub message: String,
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    channel: Spanned<String>,
    listen: Option<Spanned<String>>,
    zenoh: Spanned<ZenohTable>,
    #[serde(rename = "map", default)]
    maps: Vec<Spanned<map::Written>>,
}

/// The settings of the zenoh session.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ZenohTable {
    /// A file of zenoh's own, for all that has no key here.
    pub(crate) config: Option<PathBuf>,
    pub(crate) mode: Option<Mode>,
    #[serde(default)]
    pub(crate) connect: Vec<String>,
    #[serde(default)]
    pub(crate) listen: Vec<String>,
    /// Finds peers and routers by multicast.
    #[serde(default)]
    pub(crate) scouting: bool,
}

/// The part of this program in zenoh's network.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// Exchanges events with peers that it is linked with. Routers do not pass events from peer to peer.
    Peer,
    /// Exchanges events by way of a router.
    Client,
}

impl Mode {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Peer => "peer",
            Self::Client => "client",
        }
    }
}

/// A mistake, and the octets of the text that it is about.
pub(crate) struct Mistake {
    at: Range<usize>,
    message: String,
}

impl Mistake {
    pub(crate) fn at(at: Range<usize>, message: impl fmt::Display) -> Self {
        Self {
            at,
            message: message.to_string(),
        }
    }
}

impl Config {
    /// Reads and checks a file. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// [`ConfigError`] with the place of the first mistake.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let unreadable = |error: std::io::Error| ConfigError {
            file: path.display().to_string(),
            line: 1,
            column: 1,
            message: format!("cannot be read: {error}"),
        };
        let text = read_text(path).map_err(unreadable)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let parsed = Self::parse_in(&text, folder);
        parsed.map_err(|mistake| mistake.located(&path.display().to_string(), &text))
    }

    fn parse_in(text: &str, folder: &Path) -> Result<Self, Mistake> {
        let written: Written = toml::from_str(text).map_err(|error| {
            let at = error.span().unwrap_or(0..0);
            Mistake::at(at, error.message())
        })?;
        let channel = channel(&written.channel, folder)?;
        let listen = written.listen.as_ref().map(listen).transpose()?;
        let mut zenoh = written.zenoh.get_ref().clone();
        zenoh.config = zenoh.config.map(|file| folder.join(file));
        let reaches = !zenoh.connect.is_empty() || !zenoh.listen.is_empty();
        if zenoh.config.is_none() && !zenoh.scouting && !reaches {
            return Err(Mistake::at(
                written.zenoh.span(),
                "reaches nobody: write connect = [\"tcp/HOST:7447\"], listen = [\"tcp/0.0.0.0:7447\"], \
                 scouting = true, or config = \"FILE\" of zenoh's own",
            ));
        }
        let mappings = mappings(&written.maps)?;
        Ok(Self {
            channel,
            listen,
            zenoh,
            mappings,
        })
    }
}

fn channel(written: &Spanned<String>, folder: &Path) -> Result<ChannelSource, Mistake> {
    let text = written.get_ref().trim();
    if text.is_empty() {
        return Err(Mistake::at(
            written.span(),
            "is empty: write a reference (corbaname::HOST:PORT#NAME, corbaloc:, IOR:) or a file that holds one",
        ));
    }
    if !is_reference(text) {
        return Ok(ChannelSource::File(folder.join(text)));
    }
    match text.parse::<deckwatch_giop::ObjectUrl>() {
        Ok(_) => Ok(ChannelSource::Reference(text.to_owned())),
        Err(error) => Err(Mistake::at(
            written.span(),
            format!("is no reference: {error}"),
        )),
    }
}

fn listen(written: &Spanned<String>) -> Result<String, Mistake> {
    let text = written.get_ref();
    match deckwatch_orb::Orb::builder().listen(text) {
        Ok(_) => Ok(text.clone()),
        Err(error) => Err(Mistake::at(
            written.span(),
            format!("{error}; write HOST:PORT, port 0 for a free one"),
        )),
    }
}

fn mappings(written: &[Spanned<map::Written>]) -> Result<Vec<Mapping>, Mistake> {
    if written.is_empty() {
        return Err(Mistake::at(0..0, "has no [[map]]: nothing would cross"));
    }
    if written.len() > MAPPINGS_MAX {
        let message = format!("is one [[map]] more than the {MAPPINGS_MAX} that a file may have");
        return Err(Mistake::at(written[MAPPINGS_MAX].span(), message));
    }
    let mut mappings: Vec<Mapping> = Vec::new();
    for one in written {
        let mapping = Mapping::of(one.get_ref())?;
        if let Some(earlier) = mappings.iter().position(|other| other.overlaps(&mapping)) {
            let message = format!(
                "overlaps with [[map]] {} ({}): an event would cross twice; give them other types, sources, keys or \
                 directions",
                earlier + 1,
                mappings[earlier].key.text(),
            );
            return Err(Mistake::at(one.span(), message));
        }
        mappings.push(mapping);
    }
    Ok(mappings)
}

impl Mistake {
    fn located(self, file: &str, text: &str) -> ConfigError {
        let before = text.get(..self.at.start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        ConfigError {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: self.message,
        }
    }
}

/// Reads a small text file.
pub(crate) fn read_text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(FILE_SIZE_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_SIZE_MAX {
        let words = format!("it has more than {FILE_SIZE_MAX} octets");
        return Err(std::io::Error::other(words));
    }
    Ok(text)
}

fn is_reference(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let schemes = ["ior:", "corbaloc:", "corbaname:"];
    schemes.iter().any(|scheme| text.starts_with(scheme))
}

#[cfg(test)]
mod tests;
