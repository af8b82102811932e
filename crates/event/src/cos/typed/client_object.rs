//! The object of a typed client: the channel calls the client for it in the thread that serves the client's request, so
//! that it takes a place of the calls outwards (ADR 0025).

use deckwatch_orb::outward::{Outward, UnderWay, is_refusal};
use deckwatch_orb::{
    Completion, ObjectRef, SystemException, SystemExceptionKind as Kind, own_minor,
};

use crate::cos_event_channel_admin::TypeError;

/// Returns the object that `get` returns when it is called with the client, if that has the interface.
///
/// # Errors
/// TypeError for a client without an object of the interface; TRANSIENT if too many calls are under way; the exception
/// of a client that does not answer, which is always TRANSIENT for a peer over the network.
pub(super) fn client_object<E: From<SystemException> + From<TypeError>>(
    outward: &Outward,
    client: &ObjectRef,
    interface: &str,
    get: impl FnOnce(ObjectRef) -> Result<Option<ObjectRef>, SystemException>,
) -> Result<ObjectRef, E> {
    let call = outward.begin()?;
    let called = call.to(client)?;
    match ask(&call, called, interface, get) {
        Ok(object) => Ok(object.ok_or(TypeError {})?),
        Err(exception) if call.has_failed(client) && !is_refusal(exception) => {
            let minor = own_minor::OUTWARD_FAILED;
            Err(SystemException::new(Kind::Transient, minor, Completion::No).into())
        }
        Err(exception) => Err(exception.into()),
    }
}

fn ask(
    call: &UnderWay<'_>,
    client: ObjectRef,
    interface: &str,
    get: impl FnOnce(ObjectRef) -> Result<Option<ObjectRef>, SystemException>,
) -> Result<Option<ObjectRef>, SystemException> {
    let object = match get(client) {
        Err(exception) if exception.kind == Kind::BadOperation => None,
        object => object?,
    };
    let Some(object) = object else {
        return Ok(None);
    };
    Ok(call.to(&object)?.is_a(interface)?.then_some(object))
}
