//! One dynamic call.

use std::cell::RefCell;

use deckwatch_cdr::value::{Value, read_value, write_value};
use deckwatch_cdr::{DecodeError, Reader, TypeCode, Writer};
use deckwatch_idl::model::Mode;
use deckwatch_orb::{ObjectRef, SystemException};
use deckwatch_text::escaped;

use super::signature::Signature;

/// How a call ended.
pub(super) enum Outcome {
    /// The results, in the order of [`Signature::returned`].
    Returned(Vec<Value>),
    /// A one-way request, which has no reply.
    Sent,
    /// A user exception: its index in [`Signature::raises`], and its members.
    Raised(usize, Value),
    /// A system exception, and further information about it.
    Failed(SystemException, Option<String>),
}

impl From<SystemException> for Outcome {
    fn from(exception: SystemException) -> Self {
        Self::Failed(exception, None)
    }
}

/// Calls the operation. `values` are those of [`Signature::sent`].
pub(super) fn call(target: &ObjectRef, signature: &Signature, values: &[Value]) -> Outcome {
    let arguments = |w: &mut Writer<'_>| {
        let mut sent = signature.sent().zip(values);
        sent.try_for_each(|(parameter, value)| write_value(&parameter.code, value, w))?;
        if signature.context {
            w.write_u32(0)
        } else {
            Ok(())
        }
    };
    if signature.oneway {
        let sent = target.invoke_oneway(&signature.wire_name, arguments);
        return sent.map_or_else(Outcome::from, |()| Outcome::Sent);
    }
    let unread = RefCell::new(None);
    let note = |what: &str, error: DecodeError| {
        *unread.borrow_mut() = Some(format!("{what} cannot be read: {error}"));
        error
    };
    let results = |r: &mut Reader<'_>| {
        let returned = signature.returned().into_iter();
        let read =
            returned.map(|(name, code)| read_value(code, r).map_err(|error| note(name, error)));
        read.collect::<Result<Vec<Value>, _>>()
    };
    let exceptions = |id: &str, r: &mut Reader<'_>| {
        let place = signature
            .raises
            .iter()
            .position(|(_, code)| code.id() == Some(id));
        let Some(place) = place else {
            let text = format!(
                "the server raised {}, which the operation does not declare",
                escaped(id)
            );
            *unread.borrow_mut() = Some(text);
            return Ok(None);
        };
        let (name, code) = &signature.raises[place];
        let members = read_members(code, r).map_err(|error| note(name, error))?;
        Ok(Some(Outcome::Raised(place, members)))
    };
    let outcome = target.invoke(&signature.wire_name, arguments, results, exceptions);
    match outcome {
        Ok(values) => Outcome::Returned(values),
        Err(Outcome::Failed(exception, _)) => Outcome::Failed(exception, unread.take()),
        Err(outcome) => outcome,
    }
}

/// Reads the members of an exception, after its repository id.
fn read_members(code: &TypeCode, r: &mut Reader<'_>) -> Result<Value, DecodeError> {
    let members = (0..code.member_count()).filter_map(|index| code.member_type(index));
    let members = members.map(|member| read_value(&member, r));
    members.collect::<Result<_, _>>().map(Value::Struct)
}

/// `in`, `out` or `inout`.
pub(super) const fn mode_text(mode: Mode) -> &'static str {
    match mode {
        Mode::In => "in",
        Mode::Out => "out",
        Mode::InOut => "inout",
    }
}
