//! The servant that is called: it gives back what it gets, or takes it; and does in between what it was asked to.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deckwatch_cdr::Any;
use deckwatch_orb::{Completion, ObjectRef, SystemException, SystemExceptionKind};
use deckwatch_os::clock;
use deckwatch_sync::PiMutex;

use super::idl::deckwatch::{ComplexStruct, Echo, EchoRefuseError};
use super::idl::deckwatch_bench::{Bench, PlainStruct};

/// What a servant is told to do in each request beside its work, to see that it shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inserted {
    /// Nothing.
    #[default]
    Nothing,
    /// It keeps its processor busy for so long.
    Delay(Duration),
    /// It takes memory and gives it back.
    Allocation,
    /// It takes a lock and gives it back.
    Lock,
    /// It asks the kernel for something.
    SystemCall,
}

impl Inserted {
    /// Its name on the command line, and its value.
    #[must_use]
    pub fn words(self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Delay(delay) => Some(format!("delay:{}", delay.as_nanos())),
            Self::Allocation => Some("allocation".to_owned()),
            Self::Lock => Some("lock".to_owned()),
            Self::SystemCall => Some("call".to_owned()),
        }
    }

    /// What [`Self::words`] says.
    #[must_use]
    pub fn of_words(words: &str) -> Option<Self> {
        Some(match words {
            "allocation" => Self::Allocation,
            "lock" => Self::Lock,
            "call" => Self::SystemCall,
            _ => Self::Delay(Duration::from_nanos(
                words.strip_prefix("delay:")?.parse().ok()?,
            )),
        })
    }
}

/// Gives back what it gets.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    /// What it does beside.
    pub(super) inserted: Inserted,
    /// What it locks for that.
    lock: PiMutex<u64>,
    /// One-way messages that have arrived.
    calls: AtomicU64,
}

impl Mirror {
    pub(super) fn new(inserted: Inserted) -> Self {
        Self {
            inserted,
            ..Self::default()
        }
    }

    fn busy(&self) {
        match self.inserted {
            Inserted::Nothing => {}
            Inserted::Delay(delay) => {
                let delay_ns = i64::try_from(delay.as_nanos()).unwrap_or(i64::MAX / 2);
                let until_ns = clock::monotonic_ns() + delay_ns;
                while clock::monotonic_ns() < until_ns {
                    std::hint::spin_loop();
                }
            }
            Inserted::Allocation => drop(std::hint::black_box(Box::new(0_u64))),
            Inserted::Lock => *self.lock.lock("bench.inserted") += 1,
            Inserted::SystemCall => {
                std::hint::black_box(std::process::id());
            }
        }
    }
}

/// The bench asks for some operations alone.
const NOT_HERE: SystemException = SystemException::new(
    SystemExceptionKind::NoImplement,
    deckwatch_giop::minor::NONE,
    Completion::No,
);

impl Echo for Mirror {
    fn echo_octets<'a>(&'a self, data: &'a [u8]) -> Result<Cow<'a, [u8]>, SystemException> {
        self.busy();
        Ok(Cow::Borrowed(data))
    }

    fn echo_complex_sequence<'a>(
        &'a self,
        data: &'a [ComplexStruct],
    ) -> Result<Cow<'a, [ComplexStruct]>, SystemException> {
        self.busy();
        Ok(Cow::Borrowed(data))
    }

    fn calls(&self) -> Result<u64, SystemException> {
        Ok(self.calls.load(Ordering::Relaxed))
    }

    fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn echo_string<'a>(&'a self, message: &'a str) -> Result<Cow<'a, str>, SystemException> {
        Ok(Cow::Borrowed(message))
    }

    fn echo_complex(&self, data: &ComplexStruct) -> Result<ComplexStruct, SystemException> {
        Ok(*data)
    }

    fn echo_any(&self, _: &Any) -> Result<Any, SystemException> {
        Err(NOT_HERE)
    }

    fn echo_object(&self, _: Option<&ObjectRef>) -> Result<Option<ObjectRef>, SystemException> {
        Err(NOT_HERE)
    }

    fn refuse(&self, _: &str, _: i32) -> Result<(), EchoRefuseError> {
        Err(NOT_HERE.into())
    }

    fn send_octets(&self, _: &[u8]) -> Result<(), SystemException> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn send_complex_sequence(&self, _: &[ComplexStruct]) -> Result<(), SystemException> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

impl Bench for Mirror {
    fn sink_octets(&self, _: &[u8]) -> Result<(), SystemException> {
        self.busy();
        Ok(())
    }

    fn sink_complex_sequence(&self, _: &[ComplexStruct]) -> Result<(), SystemException> {
        self.busy();
        Ok(())
    }

    fn sink_plain_sequence(&self, _: &[PlainStruct]) -> Result<(), SystemException> {
        self.busy();
        Ok(())
    }
}
