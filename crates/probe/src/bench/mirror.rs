//! The servant that is called: it gives back what it gets, after a delay where one was asked for.

use std::borrow::Cow;
use std::time::Duration;

use deckwatch_cdr::Any;
use deckwatch_orb::{Completion, ObjectRef, SystemException, SystemExceptionKind};
use deckwatch_os::clock;

use super::idl::deckwatch::{ComplexStruct, Echo, EchoRefuseError};

/// Gives back what it gets.
#[derive(Debug)]
pub(super) struct Mirror {
    /// How long it keeps its processor busy first: a delay that must show in the result.
    pub(super) delay: Duration,
}

impl Mirror {
    fn busy(&self) {
        if !self.delay.is_zero() {
            let until_ns = clock::monotonic_ns()
                + i64::try_from(self.delay.as_nanos()).unwrap_or(i64::MAX / 2);
            while clock::monotonic_ns() < until_ns {
                std::hint::spin_loop();
            }
        }
    }
}

/// The bench asks for two operations alone.
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
        Err(NOT_HERE)
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
        Ok(())
    }

    fn send_complex_sequence(&self, _: &[ComplexStruct]) -> Result<(), SystemException> {
        Ok(())
    }
}
