//! The supplier's side of every carrier.

use std::fmt;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use crate::body::Body;
use crate::carrier::ReceiverSettings;
use crate::receiver::Receiver;

/// Sends one stream to one destination, or to the channel. Used by one thread.
pub trait Sender: Send {
    /// Sends one message; `body` holds its sequence number. Returns within the drain of the deadline, even if the peer
    /// does not read.
    ///
    /// # Errors
    /// [`SendError`] if the local side or the middleware refuses the message. The message is lost; the schedule
    /// continues.
    fn send(&mut self, sequence: u64, body: &Body) -> Result<Sent, SendError>;

    /// Sends the first of these messages, or as many as one system call takes. Each is a message of its own, as if sent
    /// alone. Returns how many were accepted, or why the first was refused. A rest of the last one may be in the backlog.
    ///
    /// # Errors
    /// As [`Sender::send`].
    fn send_many(&mut self, sequences: Range<u64>, body: &mut Body) -> Result<u64, SendError> {
        body.set_sequence(sequences.start);
        self.send(sequences.start, body).map(|_| 1)
    }

    /// Returns a receiver of what the peer sends back over this sender's connection, for a carrier with
    /// [`crate::carrier::Carrier::carries_answers`].
    fn answers(&self, settings: ReceiverSettings, body: &Body) -> Option<Box<dyn Receiver>> {
        let _ = (settings, body);
        None
    }

    /// Passes the kernel stamps of earlier messages to `stamps`. Does not block, and takes a fraction of a millisecond
    /// at most. Returns true if there may be more.
    fn collect(&mut self, stamps: &mut dyn FnMut(TransmitStamp)) -> bool {
        let _ = stamps;
        false
    }

    /// Returns the socket that must become writable before the rest of an earlier message can be sent, if there is a
    /// rest.
    fn backlog(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Sends as much of the backlog as the socket accepts. Does not block.
    fn flush(&mut self) {}

    /// Returns the number of datagrams that the network or the peer's host has refused so far.
    fn refusals(&self) -> u64 {
        0
    }

    /// Returns the number of sends that have waited for room in the send buffer so far.
    fn waits(&self) -> u64 {
        0
    }
}

/// How a message was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The kernel or the middleware has accepted the whole message.
    Whole,
    /// A part of the message is in the backlog until the peer reads.
    Waiting,
}

/// The kernel's transmit stamp of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmitStamp {
    /// The sequence number of the message.
    pub sequence: u64,
    /// When the message entered the queueing discipline, nanoseconds of CLOCK_REALTIME.
    pub realtime_ns: i64,
}

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// The kernel refused the message with this `errno`.
    Refused(u16),
    /// The peer does not read, and the backlog is full.
    BacklogFull,
    /// The connection is lost.
    Disconnected,
    /// The middleware did not accept the message in time.
    TimedOut,
    /// The middleware raised a system exception: the index of its standard name.
    Raised(u16),
}

impl SendError {
    /// Returns the code of the error in a record; never zero.
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Self::Refused(errno) => 0x0001_0000 | errno as u32,
            Self::BacklogFull => 0x0002_0000,
            Self::Disconnected => 0x0003_0000,
            Self::TimedOut => 0x0004_0000,
            Self::Raised(kind) => 0x0005_0000 | kind as u32,
        }
    }

    /// Returns the error of a code, or `None` for zero and for codes of a later version.
    #[must_use]
    pub const fn from_code(code: u32) -> Option<Self> {
        let low = (code & 0xFFFF) as u16;
        match code >> 16 {
            1 => Some(Self::Refused(low)),
            2 => Some(Self::BacklogFull),
            3 => Some(Self::Disconnected),
            4 => Some(Self::TimedOut),
            5 => Some(Self::Raised(low)),
            _ => None,
        }
    }

    /// Converts the kernel's error of a send.
    #[must_use]
    pub fn from_io(error: &std::io::Error) -> Self {
        let errno = error
            .raw_os_error()
            .and_then(|errno| u16::try_from(errno).ok());
        Self::Refused(errno.unwrap_or(u16::MAX))
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(errno) => {
                let error = std::io::Error::from_raw_os_error(i32::from(*errno));
                write!(f, "The kernel refused the message: {error}.")
            }
            Self::BacklogFull => f.write_str("The peer does not read and the backlog is full."),
            Self::Disconnected => f.write_str("The connection is lost."),
            Self::TimedOut => f.write_str("The middleware did not take the message in time."),
            Self::Raised(kind) => write!(f, "The middleware raised system exception {kind}."),
        }
    }
}

impl std::error::Error for SendError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back_as_the_errors_they_stand_for() {
        for error in [
            SendError::Refused(105),
            SendError::BacklogFull,
            SendError::Disconnected,
            SendError::TimedOut,
            SendError::Raised(3),
        ] {
            assert_eq!(SendError::from_code(error.code()), Some(error));
        }
        assert_eq!(SendError::from_code(0), None);
        assert!(size_of::<SendError>() <= 16);
    }
}
