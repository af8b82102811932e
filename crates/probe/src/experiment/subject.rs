//! What is called: subjects with generated skeletons, subjects that learn at run time what they are asked, and where they all are.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deckwatch_cdr::{Any, Char, TypeCode, Typed as _};
use deckwatch_dynamic::{
    ArgMode, DynamicImplementation, DynamicRequest, DynamicServant, NamedValue,
};
use deckwatch_orb::{
    Completion, ObjectId, ObjectRef, Poa, Priority, Servant, SystemException, SystemExceptionKind,
};
use deckwatch_os::clock;
use deckwatch_sync::PiMutex;

use crate::bench::idl::deckwatch::ComplexStruct;
use crate::bench::idl::experiment::{Alert, Subject, SubjectRef, SubjectSkeleton, Subjects};

/// What every subject of a server shares.
pub(super) struct Shared {
    /// One-ways served.
    told: AtomicU64,
    /// How long a subject keeps its processor busy in each call: a delay that must show.
    delay: Duration,
    /// How often a subject takes a lock in each call: locks that must be counted.
    locks: u32,
    lock: PiMutex<u64>,
}

impl Shared {
    /// Subjects that do so beside their work.
    pub(super) fn new(delay: Duration, locks: u32) -> Self {
        Self {
            told: AtomicU64::new(0),
            delay,
            locks,
            lock: PiMutex::new(0),
        }
    }

    /// What each call does beside its work.
    fn serve(&self) {
        busy(u64::try_from(self.delay.as_nanos()).unwrap_or(u64::MAX));
        for _ in 0..self.locks {
            *self.lock.lock("inserted") += 1;
        }
    }

    fn take_told(&self) {
        self.serve();
        self.told.fetch_add(1, Ordering::Relaxed);
    }
}

/// Keeps the processor busy for so long.
pub(super) fn busy(ns: u64) {
    if ns > 0 {
        let until_ns = clock::monotonic_ns().saturating_add_unsigned(ns);
        while clock::monotonic_ns() < until_ns {
            std::hint::spin_loop();
        }
    }
}

/// A subject with a generated skeleton.
pub(super) struct Generated(Arc<Shared>);

/// Gives back what it gets, and takes what comes one way.
macro_rules! passes {
    ($($process:ident $stream:ident $element:ty;)*) => {
        $(
            fn $process<'a>(&'a self, m: &'a [$element]) -> Result<Cow<'a, [$element]>, SystemException> {
                self.0.serve();
                Ok(Cow::Borrowed(m))
            }

            fn $stream(&self, _: &[$element]) -> Result<(), SystemException> {
                self.0.take_told();
                Ok(())
            }
        )*
    };
}

impl Subject for Generated {
    fn nothing(&self) -> Result<(), SystemException> {
        self.0.serve();
        Ok(())
    }

    fn compute(&self, busy_ns: u64) -> Result<(), SystemException> {
        self.0.serve();
        busy(busy_ns);
        Ok(())
    }

    fn take_octets(&self, _: &[u8]) -> Result<(), SystemException> {
        self.0.serve();
        Ok(())
    }

    fn take_structs(&self, _: &[ComplexStruct]) -> Result<(), SystemException> {
        self.0.serve();
        Ok(())
    }

    fn tell_nothing(&self) -> Result<(), SystemException> {
        self.0.take_told();
        Ok(())
    }

    fn told(&self) -> Result<u64, SystemException> {
        Ok(self.0.told.load(Ordering::Relaxed))
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

/// A subject behind the dynamic skeleton interface; it knows the operations of `deckwatch invoke`.
struct Dynamic {
    shared: Arc<Shared>,
    octets: TypeCode,
    structs: TypeCode,
}

impl Dynamic {
    fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            octets: TypeCode::sequence(&TypeCode::octet(), 0),
            structs: TypeCode::sequence(&ComplexStruct::type_code(), 0),
        }
    }
}

impl DynamicServant for Dynamic {
    fn primary_interface(&self, _object_id: &[u8], _poa: &Poa) -> String {
        SubjectRef::REPOSITORY_ID.to_owned()
    }

    fn invoke(&self, request: &mut DynamicRequest<'_>) -> Result<(), SystemException> {
        let taken =
            |type_code: &TypeCode| vec![NamedValue::parameter("m", type_code.clone(), ArgMode::In)];
        let is_oneway = match request.operation() {
            "nothing" => false,
            "tell_nothing" => true,
            "take_octets" => request.arguments(taken(&self.octets)).map(|_| false)?,
            "stream_octets" => request.arguments(taken(&self.octets)).map(|_| true)?,
            "take_structs" => request.arguments(taken(&self.structs)).map(|_| false)?,
            "stream_structs" => request.arguments(taken(&self.structs)).map(|_| true)?,
            "told" => {
                request.arguments(Vec::new())?;
                let told = self.shared.told.load(Ordering::Relaxed);
                return request.set_result(Any::from_value(&told)?);
            }
            _ => return Err(request.unknown_operation()),
        };
        if is_oneway {
            self.shared.take_told();
        } else {
            self.shared.serve();
        }
        Ok(())
    }
}

/// Where the subjects are: lets as many be active as it is told.
pub(super) struct Hall {
    poa: Poa,
    shared: Arc<Shared>,
    /// The priorities of the first subject and of all others, where the adapter has lanes for them.
    lanes: Option<(u8, u8)>,
    /// Those with skeletons, and those without.
    active: PiMutex<[Vec<(ObjectId, ObjectRef)>; 2]>,
}

impl Hall {
    pub(super) fn new(poa: Poa, shared: Arc<Shared>, lanes: Option<(u8, u8)>) -> Self {
        Self {
            poa,
            shared,
            lanes,
            active: PiMutex::new([Vec::new(), Vec::new()]),
        }
    }

    fn servant(&self, is_dynamic: bool) -> Arc<dyn Servant> {
        let shared = Arc::clone(&self.shared);
        if is_dynamic {
            Arc::new(DynamicImplementation::new(Dynamic::new(shared)))
        } else {
            Arc::new(SubjectSkeleton::new(Generated(shared)))
        }
    }
}

/// An experiment may have so many subjects active of each kind: twenty times those of the FFI report.
const SUBJECTS_MAX: usize = 10_000;

const REFUSED: SystemException = SystemException::new(
    SystemExceptionKind::BadParam,
    deckwatch_giop::minor::NONE,
    Completion::No,
);

impl Subjects for Hall {
    fn activate(&self, count: u32, are_dynamic: bool) -> Result<(), SystemException> {
        let count = count as usize;
        if count > SUBJECTS_MAX {
            return Err(REFUSED);
        }
        let mut active = self.active.lock("subjects");
        let own = &mut active[usize::from(are_dynamic)];
        while own.len() > count {
            let Some((id, _)) = own.pop() else { break };
            self.poa.deactivate_object(&id).map_err(|_| REFUSED)?;
        }
        while own.len() < count {
            let servant = self.servant(are_dynamic);
            let id = match self.lanes {
                None => self.poa.activate_object(servant),
                Some((high, low)) => {
                    let number = if own.is_empty() { high } else { low };
                    let priority = Priority::new(number.into()).unwrap_or_default();
                    self.poa.activate_object_with_priority(servant, priority)
                }
            };
            let id = id.map_err(|_| REFUSED)?;
            let reference = self.poa.id_to_reference(&id);
            own.push((id, reference.map_err(|_| REFUSED)?));
        }
        Ok(())
    }

    fn by_index(
        &self,
        index: u32,
        is_dynamic: bool,
    ) -> Result<Option<SubjectRef>, SystemException> {
        let active = self.active.lock("subjects");
        let found = active[usize::from(is_dynamic)].get(index as usize);
        let found = found.map(|(_, reference)| SubjectRef::unchecked_narrow(reference.clone()));
        found.map(Some).ok_or(REFUSED)
    }
}
