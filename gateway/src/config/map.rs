//! One mapping: which events, which keys, which way, and how zenoh treats them.

use std::fmt;
use std::ops::RangeInclusive;

use deckwatch_event::rtec_event_comm::EventHeader;
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use toml::Spanned;

use super::Mistake;
use crate::key::Template;
use crate::limits::{FILTER_TYPES_MAX, QUEUE_LEN_DEFAULT, QUEUE_LEN_MAX, TYPE_MIN};

/// Which way events cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the channel to zenoh.
    Out,
    /// From zenoh to the channel.
    In,
    /// Both ways.
    Both,
}

/// Zenoh's priorities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "zenoh's names")]
pub enum MapPriority {
    RealTime,
    InteractiveHigh,
    InteractiveLow,
    DataHigh,
    #[default]
    Data,
    DataLow,
    Background,
}

/// What zenoh does where a link is congested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Congestion {
    /// Zenoh drops the event. The receiving gateway finds the gap.
    #[default]
    Drop,
    /// Zenoh makes the mapping wait. Its queue fills, and drops.
    Block,
}

/// A `[[map]]` as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    direction: Direction,
    r#type: Spanned<Types>,
    source: Option<i32>,
    key: Spanned<String>,
    #[serde(default)]
    priority: MapPriority,
    #[serde(default)]
    congestion: Congestion,
    #[serde(default)]
    express: bool,
    queue: Option<Spanned<usize>>,
}

/// A mapping, checked.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    pub(crate) direction: Direction,
    types: RangeInclusive<i32>,
    /// `None`: any.
    source: Option<i32>,
    pub(crate) key: Template,
    pub(crate) priority: MapPriority,
    pub(crate) congestion: Congestion,
    pub(crate) express: bool,
    pub(crate) queue_len: usize,
}

impl Direction {
    pub(crate) fn is_out(self) -> bool {
        self != Self::In
    }

    pub(crate) fn is_in(self) -> bool {
        self != Self::Out
    }
}

impl Mapping {
    pub(super) fn of(written: &Written) -> Result<Self, Mistake> {
        let types = written.r#type.get_ref().0.clone();
        if *types.start() < TYPE_MIN || types.is_empty() {
            let message = format!(
                "types of applications begin at {TYPE_MIN}; write a number, or \"{TYPE_MIN}..=99\" for a range"
            );
            return Err(Mistake::at(written.r#type.span(), message));
        }
        let key = Template::parse(written.key.get_ref());
        let key = key.map_err(|message| Mistake::at(written.key.span(), message))?;
        if !key.has_type() && types.start() != types.end() {
            let message = "the events of several types would have one key: write {type} in it";
            return Err(Mistake::at(written.key.span(), message));
        }
        if written.direction.is_in() && !key.has_source() && written.source.is_none() {
            let message = "a plain publication would have no source: write {source} in the key, \
                           or `source` beside it";
            return Err(Mistake::at(written.key.span(), message));
        }
        let queue_len = match &written.queue {
            None => QUEUE_LEN_DEFAULT,
            Some(len) if (1..=QUEUE_LEN_MAX).contains(len.get_ref()) => *len.get_ref(),
            Some(len) => {
                let message = format!("a queue has 1 to {QUEUE_LEN_MAX} places");
                return Err(Mistake::at(len.span(), message));
            }
        };
        Ok(Self {
            direction: written.direction,
            types,
            source: written.source,
            key,
            priority: written.priority,
            congestion: written.congestion,
            express: written.express,
            queue_len,
        })
    }

    /// Whether an event of this header is one of the mapping's.
    pub(crate) fn fits(&self, header: &EventHeader) -> bool {
        let is_from = self.source.is_none_or(|source| source == header.source);
        is_from && self.types.contains(&header.r#type)
    }

    /// Returns type and source of the events with a key. `None` if the key is none of the mapping's.
    pub(crate) fn read_key(&self, key: &str) -> Option<EventHeader> {
        let numbers = self.key.read(key)?;
        let header = EventHeader {
            r#type: numbers.event_type.unwrap_or(*self.types.start()),
            source: numbers.source.or(self.source).unwrap_or_default(),
            ..EventHeader::default()
        };
        self.fits(&header).then_some(header)
    }

    /// Type and source of the headers that the channel is asked for, or told of; 0 for any.
    pub(crate) fn headers(&self) -> Vec<(i32, i32)> {
        let source = self.source.unwrap_or(0);
        let count = i64::from(*self.types.end()) - i64::from(*self.types.start()) + 1;
        if count > FILTER_TYPES_MAX {
            vec![(0, source)]
        } else {
            self.types.clone().map(|one| (one, source)).collect()
        }
    }

    /// Whether an event could cross by both mappings in one direction.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let both_ways = (self.direction.is_out() && other.direction.is_out())
            || (self.direction.is_in() && other.direction.is_in());
        let types =
            self.types.start() <= other.types.end() && other.types.start() <= self.types.end();
        let sources = match (self.source, other.source) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        both_ways && types && sources && self.key.intersects(&other.key)
    }
}

/// `17`, or `"16..=99"`.
pub(super) struct Types(RangeInclusive<i32>);

impl<'de> Deserialize<'de> for Types {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TypesVisitor)
    }
}

struct TypesVisitor;

impl Visitor<'_> for TypesVisitor {
    type Value = Types;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or a range such as \"16..=99\"")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Types, E> {
        let number = i32::try_from(number).map_err(|_| E::custom("a type has 32 bits"))?;
        Ok(Types(number..=number))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Types, E> {
        let ends = text.split_once("..=");
        let range = ends.and_then(|(first, last)| {
            let number = |text: &str| text.trim().parse::<i32>().ok();
            Some(number(first)?..=number(last)?)
        });
        let range = range.ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))?;
        Ok(Types(range))
    }
}
