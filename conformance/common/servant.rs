//! The servant of the suite, written by hand against the interface that generated code uses.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};

use deckwatch_cdr::{
    Any, DecodeError, EncodeError, Parse, Reader, UserException, WString, Write, Writer,
};
use deckwatch_orb::{
    Completion, ObjectRef, Servant, ServerRequest, SystemException, SystemExceptionKind, minor,
};

pub(crate) const PROBE_ID: &str = "IDL:conformance/Probe:1.0";
pub(crate) const BASE_ID: &str = "IDL:conformance/Base:1.0";
pub(crate) const REFUSED_ID: &str = "IDL:conformance/Refused:1.0";

/// A gate that a test opens; servants wait at it.
#[derive(Default)]
pub(crate) struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
    arrived: AtomicU64,
}

impl Gate {
    pub(crate) fn pass(&self) {
        self.arrived.fetch_add(1, Ordering::SeqCst);
        let open = self.open.lock().expect("nobody panics with it");
        drop(
            self.changed
                .wait_while(open, |open| !*open)
                .expect("nobody panics with it"),
        );
    }

    pub(crate) fn open(&self) {
        *self.open.lock().expect("nobody panics with it") = true;
        self.changed.notify_all();
    }

    #[track_caller]
    pub(crate) fn wait_for_arrivals(&self, count: u64) {
        super::wait_for(|| self.arrived.load(Ordering::SeqCst) >= count);
    }
}

/// Echoes its arguments, and records the order of its calls.
#[derive(Default)]
pub(crate) struct Probe {
    pub(crate) calls: AtomicU64,
    pub(crate) notes: Mutex<Vec<u32>>,
    pub(crate) gate: Gate,
}

impl Probe {
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    pub(crate) fn notes(&self) -> Vec<u32> {
        self.notes.lock().expect("nobody panics with it").clone()
    }
}

struct Refused {
    code: u32,
}

impl Write for Refused {
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.code.write(w)
    }
}

impl std::fmt::Debug for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Refused({})", self.code)
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "refused with {}", self.code)
    }
}

impl std::error::Error for Refused {}

impl UserException for Refused {
    const REPOSITORY_ID: &'static str = REFUSED_ID;
}

impl Servant for Probe {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[PROBE_ID, BASE_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let mut r = request.arguments();
        match request.operation() {
            b"ping" => {
                request.reply()?;
            }
            b"octets" => {
                let octets = r.read_octet_sequence()?;
                request.reply()?.write_octet_sequence(octets)?;
            }
            b"who" => {
                let id = request.object_id();
                request.reply()?.write_octet_sequence(id)?;
            }
            b"number" => {
                let number = u64::parse(&mut r)?;
                number.write(&mut request.reply()?)?;
            }
            b"characters" => {
                let count = String::parse(&mut r)?.chars().count();
                request.reply()?.write_count(count)?;
            }
            b"text" => echo::<String>(request, &mut r)?,
            b"wide_text" => echo::<WString>(request, &mut r)?,
            b"any" => echo::<Any>(request, &mut r)?,
            b"object" => echo::<Option<ObjectRef>>(request, &mut r)?,
            b"refuse" => {
                let code = r.read_u32()?;
                request.raise(&Refused { code })?;
            }
            b"fail" => {
                return Err(SystemException::new(
                    SystemExceptionKind::NoPermission,
                    7,
                    Completion::Yes,
                ));
            }
            b"note" => self
                .notes
                .lock()
                .expect("nobody panics with it")
                .push(r.read_u32()?),
            b"meet" => {
                self.gate.pass();
                request.reply()?;
            }
            b"panic" => panic!("a servant panics, as the test asked it to"),
            _ => {
                return Err(SystemException::new(
                    SystemExceptionKind::BadOperation,
                    minor::OPERATION_UNKNOWN,
                    Completion::No,
                ));
            }
        }
        Ok(())
    }
}

fn echo<'r, T: Write + for<'a> Parse<'a>>(
    request: &mut ServerRequest<'r>,
    r: &mut Reader<'r>,
) -> Result<(), SystemException> {
    let value = T::parse(r)?;
    Ok(value.write(&mut request.reply()?)?)
}

/// Calls an operation without arguments or results.
pub(crate) fn call(object: &ObjectRef, operation: &str) -> Result<(), SystemException> {
    object.invoke(operation, |_| Ok(()), |_| Ok(()), |_, _| Ok(None))
}

/// Calls an operation that echoes its argument.
pub(crate) fn call_with<T: Write + for<'a> Parse<'a>>(
    object: &ObjectRef,
    operation: &str,
    value: &T,
) -> Result<T, SystemException> {
    let read = |r: &mut Reader<'_>| -> Result<T, DecodeError> { T::parse(r) };
    object.invoke(operation, |w| value.write_last(w), read, |_, _| Ok(None))
}

/// Calls the one-way `note`.
pub(crate) fn note(object: &ObjectRef, value: u32) -> Result<(), SystemException> {
    object.invoke_oneway("note", |w| value.write(w))
}
