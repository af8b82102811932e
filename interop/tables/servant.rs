//! A servant that serves `Types` from the tables.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use deckwatch_cdr::{Any, Char, LongDouble, TypeCode, WString};
use deckwatch_orb::{Completion, ObjectRef, Orb, Servant, SystemException, SystemExceptionKind};

use super::*;

#[derive(Default)]
pub(crate) struct Tables {
    next: AtomicU32,
    liked: Mutex<Contact>,
}

/// Activates a servant of the tables in `orb`.
pub(crate) fn activate(orb: &Orb) -> ObjectRef {
    let root = orb.root_poa().expect("a root POA");
    root.the_poa_manager().activate().expect("a fresh manager");
    let servant: Arc<dyn Servant> = Arc::new(TypesSkeleton::new(Tables::default()));
    root.servant_to_reference(&servant)
        .expect("implicit activation")
}

/// The exception for a caller that sent a value different from the table.
fn different(operation: &str, row: u16) -> SystemException {
    eprintln!("{operation} received row {row}: different");
    SystemException::new(SystemExceptionKind::BadParam, row.into(), Completion::No)
}

macro_rules! give {
    ($operation:ident, $same:ident, $lend:ident, $argument:ty, $reply:ty, $rows:ident) => {
        #[allow(clippy::needless_lifetimes, reason = "some types have no use for it")]
        fn $operation<'a>(
            &'a self,
            row: u16,
            a: $argument,
            b: $argument,
        ) -> Result<($reply, $reply, $reply), SystemException> {
            let rows = values::$rows();
            let value = |further| at(&rows, row, further);
            let is_first = $same(compared!($lend, a), value(0));
            if !(is_first && $same(compared!($lend, b), value(1))) {
                return Err(different(stringify!($operation), row));
            }
            let reply = |further| value(further).clone().into();
            Ok((reply(2), reply(0), reply(1)))
        }
    };
}
macro_rules! compared {
    (copied, $value:expr) => {
        &$value
    };
    (lent, $value:expr) => {
        $value
    };
}

impl Base for Tables {
    fn label(&self) -> Result<Cow<'_, str>, SystemException> {
        Ok("tables".into())
    }

    fn half(&self, number: i32) -> Result<i32, BaseHalfError> {
        if number % 2 != 0 {
            return Err(values::refused().into());
        }
        Ok(number / 2)
    }
}

impl Types for Tables {
    every_type!(give);

    fn turn_objects(
        &self,
        a: Option<&ObjectRef>,
        b: Option<&ObjectRef>,
        c: Option<&ObjectRef>,
    ) -> Result<(Option<ObjectRef>, Option<ObjectRef>, Option<ObjectRef>), SystemException> {
        Ok((a.cloned(), c.cloned(), b.cloned()))
    }

    fn turn_types(
        &self,
        a: &TypeCode,
        b: &TypeCode,
        c: &TypeCode,
    ) -> Result<(TypeCode, TypeCode, TypeCode), SystemException> {
        Ok((a.clone(), c.clone(), b.clone()))
    }

    fn call_back<'a>(
        &'a self,
        who: Option<&ListenerRef>,
        text: &'a str,
    ) -> Result<Cow<'a, str>, TypesCallBackError> {
        let nil = SystemException::new(SystemExceptionKind::InvObjref, 0, Completion::No);
        match who.ok_or(nil)?.heard(text) {
            Ok(heard) => Ok(heard.into()),
            Err(ListenerHeardError::Closed(closed)) => Err(closed.into()),
            Err(ListenerHeardError::System(exception)) => Err(exception.into()),
        }
    }

    fn mirror_octets<'a>(&'a self, data: &'a [u8]) -> Result<Cow<'a, [u8]>, SystemException> {
        Ok(data.into())
    }

    fn mirror_string<'a>(&'a self, data: &'a str) -> Result<Cow<'a, str>, SystemException> {
        Ok(data.into())
    }

    fn mirror_any(&self, data: &Any) -> Result<Any, SystemException> {
        Ok(data.clone())
    }

    fn mirror_readings<'a>(
        &'a self,
        data: &'a [Reading],
    ) -> Result<Cow<'a, [Reading]>, SystemException> {
        Ok(data.into())
    }

    fn mirror_contacts<'a>(
        &'a self,
        data: &'a [Contact],
    ) -> Result<Cow<'a, [Contact]>, SystemException> {
        Ok(data.into())
    }

    fn refuse(&self) -> Result<(), TypesRefuseError> {
        Err(values::refused().into())
    }

    fn shut(&self) -> Result<(), TypesShutError> {
        Err(Closed {}.into())
    }

    fn fail(&self) -> Result<(), SystemException> {
        Err(SystemException::new(
            SystemExceptionKind::NoPermission,
            7,
            Completion::Yes,
        ))
    }

    fn favourite(&self) -> Result<Contact, SystemException> {
        Ok(self.liked.lock().expect("no servant panics").clone())
    }

    fn set_favourite(&self, value: &Contact) -> Result<(), SystemException> {
        *self.liked.lock().expect("no servant panics") = value.clone();
        Ok(())
    }

    fn note(&self, number: u32, _: &[u8]) -> Result<(), SystemException> {
        let _in_turn =
            self.next
                .compare_exchange(number, number + 1, Ordering::SeqCst, Ordering::SeqCst);
        Ok(())
    }

    fn noted(&self) -> Result<u32, SystemException> {
        Ok(self.next.load(Ordering::SeqCst))
    }
}

/// A listener that echoes its text; the word `close` makes it raise `Closed`.
pub(crate) struct Ear;

impl Listener for Ear {
    fn heard<'a>(&'a self, text: &'a str) -> Result<Cow<'a, str>, ListenerHeardError> {
        if text == "close" {
            return Err(Closed {}.into());
        }
        Ok(text.into())
    }
}
