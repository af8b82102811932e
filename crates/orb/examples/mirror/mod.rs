//! The servant that the examples, the interop tests and the tests of generated code share: it gives back what it gets.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use deckwatch_cdr::Any;
use deckwatch_orb::{ObjectRef, SystemException};

#[allow(
    clippy::redundant_closure,
    reason = "what it suggests is not general enough over lifetimes"
)]
mod idl {
    include!(concat!(env!("OUT_DIR"), "/echo.rs"));
}
pub(crate) use idl::deckwatch::*;

/// Gives back what it gets, refuses what it is asked to refuse, and counts one-ways that come in order.
#[derive(Default)]
pub(crate) struct Mirror {
    calls: AtomicU64,
}

impl Echo for Mirror {
    fn calls(&self) -> Result<u64, SystemException> {
        Ok(self.calls.load(Ordering::SeqCst))
    }

    fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn echo_string<'a>(&'a self, message: &'a str) -> Result<Cow<'a, str>, SystemException> {
        Ok(Cow::Borrowed(message))
    }

    fn echo_octets<'a>(&'a self, data: &'a [u8]) -> Result<Cow<'a, [u8]>, SystemException> {
        Ok(Cow::Borrowed(data))
    }

    fn echo_complex(&self, data: &ComplexStruct) -> Result<ComplexStruct, SystemException> {
        Ok(*data)
    }

    fn echo_complex_sequence<'a>(
        &'a self,
        data: &'a [ComplexStruct],
    ) -> Result<Cow<'a, [ComplexStruct]>, SystemException> {
        Ok(Cow::Borrowed(data))
    }

    fn echo_any(&self, data: &Any) -> Result<Any, SystemException> {
        Ok(data.clone())
    }

    fn echo_object(
        &self,
        reference: Option<&ObjectRef>,
    ) -> Result<Option<ObjectRef>, SystemException> {
        Ok(reference.cloned())
    }

    fn refuse(&self, reason: &str, code: i32) -> Result<(), EchoRefuseError> {
        Err(Refused {
            reason: reason.to_owned(),
            code,
        }
        .into())
    }

    fn send_octets(&self, data: &[u8]) -> Result<(), SystemException> {
        let calls = self.calls.load(Ordering::SeqCst);
        if data.first() == Some(&(calls as u8)) {
            self.calls.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }

    fn send_complex_sequence(&self, data: &[ComplexStruct]) -> Result<(), SystemException> {
        self.calls.fetch_add(data.len() as u64, Ordering::SeqCst);
        Ok(())
    }
}
