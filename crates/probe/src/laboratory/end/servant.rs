//! The servant that all clients call. It returns its argument, or takes it, and does the inserted work.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use deckwatch_cdr::{Any, Char};
use deckwatch_orb::{Completion, ObjectRef, SystemException, SystemExceptionKind};

use crate::laboratory::idl::deckwatch::{ComplexStruct, Echo, EchoRefuseError};
use crate::laboratory::idl::deckwatch_bench::{Bench, PlainStruct};
use crate::laboratory::idl::experiment::{Alert, Subject};
use crate::laboratory::inserted::{Inserted, Locks, busy};

/// The state that all servants of a server share.
pub(super) struct Shared {
    inserted: Inserted,
    /// The locks that [`Inserted::Locks`] takes.
    locks: Locks,
    /// One-ways served.
    oneways: AtomicU64,
}

impl Shared {
    pub(super) fn new(inserted: Inserted) -> Self {
        Self {
            inserted,
            locks: Locks::default(),
            oneways: AtomicU64::new(0),
        }
    }

    /// Does the inserted work.
    pub(super) fn work(&self) {
        self.inserted.perform(&self.locks);
    }

    /// Does the inserted work and counts a one-way.
    pub(super) fn take_oneway(&self) {
        self.work();
        self.count_oneway();
    }

    fn count_oneway(&self) {
        self.oneways.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn oneways(&self) -> u64 {
        self.oneways.load(Ordering::Relaxed)
    }
}

/// The servant of the bench's objects and of subjects with generated skeletons.
pub(super) struct LaboratoryServant(pub(super) Arc<Shared>);

/// The bench calls only some operations of `Echo`.
const NOT_HERE: SystemException = SystemException::new(
    SystemExceptionKind::NoImplement,
    deckwatch_giop::minor::NONE,
    Completion::No,
);

impl Echo for LaboratoryServant {
    fn echo_octets<'a>(&'a self, data: &'a [u8]) -> Result<Cow<'a, [u8]>, SystemException> {
        self.0.work();
        Ok(Cow::Borrowed(data))
    }

    fn echo_complex_sequence<'a>(
        &'a self,
        data: &'a [ComplexStruct],
    ) -> Result<Cow<'a, [ComplexStruct]>, SystemException> {
        self.0.work();
        Ok(Cow::Borrowed(data))
    }

    fn calls(&self) -> Result<u64, SystemException> {
        Ok(self.0.oneways())
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
        self.0.count_oneway();
        Ok(())
    }

    fn send_complex_sequence(&self, _: &[ComplexStruct]) -> Result<(), SystemException> {
        self.0.count_oneway();
        Ok(())
    }
}

impl Bench for LaboratoryServant {
    fn sink_octets(&self, _: &[u8]) -> Result<(), SystemException> {
        self.0.work();
        Ok(())
    }

    fn sink_complex_sequence(&self, _: &[ComplexStruct]) -> Result<(), SystemException> {
        self.0.work();
        Ok(())
    }

    fn sink_plain_sequence(&self, _: &[PlainStruct]) -> Result<(), SystemException> {
        self.0.work();
        Ok(())
    }
}

/// Operations that return their argument, and one-ways that take it.
macro_rules! passes {
    ($($process:ident $stream:ident $element:ty;)*) => {
        $(
            fn $process<'a>(&'a self, m: &'a [$element]) -> Result<Cow<'a, [$element]>, SystemException> {
                self.0.work();
                Ok(Cow::Borrowed(m))
            }

            fn $stream(&self, _: &[$element]) -> Result<(), SystemException> {
                self.0.take_oneway();
                Ok(())
            }
        )*
    };
}

impl Subject for LaboratoryServant {
    fn nothing(&self) -> Result<(), SystemException> {
        self.0.work();
        Ok(())
    }

    fn compute(&self, busy_ns: u64) -> Result<(), SystemException> {
        self.0.work();
        busy(busy_ns);
        Ok(())
    }

    fn take_octets(&self, _: &[u8]) -> Result<(), SystemException> {
        self.0.work();
        Ok(())
    }

    fn take_structs(&self, _: &[ComplexStruct]) -> Result<(), SystemException> {
        self.0.work();
        Ok(())
    }

    fn tell_nothing(&self) -> Result<(), SystemException> {
        self.0.take_oneway();
        Ok(())
    }

    fn told(&self) -> Result<u64, SystemException> {
        Ok(self.0.oneways())
    }

    passes! {
        process_octets stream_octets u8;
        process_chars stream_chars Char;
        process_wchars stream_wchars char;
        process_booleans stream_booleans bool;
        process_shorts stream_shorts i16;
        process_ushorts stream_ushorts u16;
        process_longs stream_longs i32;
        process_ulongs stream_ulongs u32;
        process_longlongs stream_longlongs i64;
        process_ulonglongs stream_ulonglongs u64;
        process_floats stream_floats f32;
        process_doubles stream_doubles f64;
        process_strings stream_strings String;
        process_enums stream_enums Alert;
        process_anys stream_anys Any;
        process_structs stream_structs ComplexStruct;
    }
}

/// A servant of the bench without inserted work.
pub(crate) fn of_bench() -> Arc<dyn deckwatch_orb::Servant> {
    use crate::laboratory::idl::deckwatch_bench::BenchSkeleton;
    let shared = Arc::new(Shared::new(Inserted::Nothing));
    Arc::new(BenchSkeleton::new(LaboratoryServant(shared)))
}
