//! Filters of the real-time event channel: the flat lists that consumers send, as expressions over event headers.
//!
//! A list is in prefix order. A designator opens a group or a modifier, and the entries behind it are its operands:
//!
//! | entry | operands | emits |
//! | --- | --- | --- |
//! | type and source; 0 is any, in the entry and in the event | - | an event that matches both |
//! | NULL | - | every event |
//! | DISJUNCTION, GLOBAL | a group | what its operands emit |
//! | CONJUNCTION | a group | the events of all operands, once each operand has emitted |
//! | LOGICAL_AND | a group | an event that every operand matches |
//! | NEGATION | one | an event that the operand does not match |
//! | BITMASK, then an entry with masks | one | what the operand emits of events that have bits of both masks |
//! | MASKED_TYPE, then masks, then values | - | an event that has the values under the masks |
//! | TIMEOUT, INTERVAL_TIMEOUT, DEADLINE_TIMEOUT | - | an event of that type when its time is over |
//!
//! * The `source` of a group is the number of its operands. With 0, the group extends to the next group or to the end
//!   of the list. The whole list is a disjunction.
//! * An event is offered to the operands of a group in order, until one emits it.
//! * A conjunction keeps the first event of each operand, and starts again when it has emitted.
//! * A LOGICAL_AND or a NEGATION looks at one event: a conjunction below it matches what any of its operands matches.
//! * A deadline is restarted by everything that the filter emits.

mod build;
mod error;
mod expression;
mod index;
mod state;
#[cfg(test)]
mod tests;

pub use error::{FilterError, FilterFact};
pub use expression::{Filter, Timer, TimerKind};
pub use index::{Candidates, Index};
pub use state::MatchState;

/// The event types that have a meaning of their own, as TAO numbers them.
pub mod designator {
    /// In an entry or an event: any type.
    pub const ANY: i32 = 0;
    /// A one-shot timeout, counted from the connect.
    pub const TIMEOUT: i32 = 4;
    /// A timeout that repeats.
    pub const INTERVAL_TIMEOUT: i32 = 5;
    /// A timeout that every emitted event restarts.
    pub const DEADLINE_TIMEOUT: i32 = 6;
    /// Opens a disjunction. TAO's helper classes write it in front of a list without groups.
    pub const GLOBAL: i32 = 7;
    /// Opens a conjunction.
    pub const CONJUNCTION: i32 = 8;
    /// Opens a disjunction.
    pub const DISJUNCTION: i32 = 9;
    /// Negates the next operand.
    pub const NEGATION: i32 = 10;
    /// Opens a logical and.
    pub const LOGICAL_AND: i32 = 11;
    /// Masks the next operand; the masks are the next entry.
    pub const BITMASK: i32 = 12;
    /// The masks are the next entry, the values the one behind it.
    pub const MASKED_TYPE: i32 = 13;
    /// Matches every event.
    pub const NULL: i32 = 14;
    /// The first type for applications.
    pub const UNDEFINED: i32 = 16;
    /// In an entry or an event: any source.
    pub const SOURCE_ANY: i32 = 0;
}

/// The fields of an event's header that filters read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// `EventHeader::type`.
    pub event_type: i32,
    /// `EventHeader::source`.
    pub source: i32,
}

impl Header {
    /// Returns whether an entry with this header matches an event; 0 is any in both.
    #[must_use]
    pub const fn matches(self, event: Self) -> bool {
        meets(self.event_type, event.event_type, designator::ANY)
            && meets(self.source, event.source, designator::SOURCE_ANY)
    }
}

const fn meets(wanted: i32, found: i32, any: i32) -> bool {
    wanted == any || found == any || wanted == found
}

/// One entry of a filter's list: what counts in the header of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// A [`designator`], or the type of an event.
    pub event_type: i32,
    /// The source of an event, or the number of a group's operands.
    pub source: i32,
    /// `creation_time`: the time of a timeout, in units of 100 ns.
    pub time: u64,
}

/// What a filter is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// An event.
    Event(Header),
    /// The filter's own timer with this index, whose time is over.
    Timer(u32),
}
