//! The operations that every object has, whatever its interface (CORBA 3.3 part 1, clause 8.3).

use std::hash::{DefaultHasher, Hash, Hasher};

use deckwatch_cdr::{EncodeError, Parse, Reader, Write, Writer};

use super::ObjectRef;
use super::calls::CallScratch;
use crate::client::{CallKind, call_object};
use crate::{SystemException, SystemExceptionKind as Kind, current, wire};

impl ObjectRef {
    /// Whether the object has the interface of this repository id. Calls the object if the reference's own type does
    /// not tell.
    ///
    /// # Errors
    /// The system exception of the call.
    pub fn is_a(&self, repository_id: &str) -> Result<bool, SystemException> {
        if repository_id == self.type_id() || repository_id == wire::OBJECT_REPOSITORY_ID {
            return Ok(true);
        }
        self.ask("_is_a", |w| repository_id.write(w))
    }

    /// Whether the object is known not to exist. A server that raises BAD_OPERATION is called by the operation's old
    /// name, `_not_existent`.
    ///
    /// # Errors
    /// The system exception of the call, except OBJECT_NOT_EXIST.
    pub fn non_existent(&self) -> Result<bool, SystemException> {
        let asked_by = |name| self.ask(name, |_| Ok(()));
        let answer = match asked_by("_non_existent") {
            Err(exception) if exception.kind == Kind::BadOperation => asked_by("_not_existent"),
            answer => answer,
        };
        match answer {
            Err(exception) if exception.kind == Kind::ObjectNotExist => Ok(true),
            answer => answer,
        }
    }

    /// Its interface definition in an interface repository; `None` if the server has none for it.
    ///
    /// # Errors
    /// INTF_REPOS without a repository, as at every server of this ORB; else the system exception of the call.
    pub fn interface(&self) -> Result<Option<Self>, SystemException> {
        self.ask("_interface", |_| Ok(()))
    }

    /// The component that it is a facet of; `None` if it is no facet.
    ///
    /// # Errors
    /// The system exception of the call.
    pub fn component(&self) -> Result<Option<Self>, SystemException> {
        self.ask("_component", |_| Ok(()))
    }

    /// The repository id of its most derived interface, as the object itself returns it.
    ///
    /// # Errors
    /// The system exception of the call.
    pub fn repository_id(&self) -> Result<String, SystemException> {
        self.ask("_repository_id", |_| Ok(()))
    }

    fn ask<T: for<'a> Parse<'a>>(
        &self,
        question: &str,
        arguments: impl Fn(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<T, SystemException> {
        let answer = |r: &mut Reader<'_>| T::parse(r);
        self.invoke(question, arguments, answer, |_, _| Ok(None))
    }

    /// Whether both references have the same first address and key. `false` does not prove that the objects differ.
    #[must_use]
    pub fn is_equivalent(&self, other: &Self) -> bool {
        let place = |reference: &Self| reference.0.current().place().clone();
        self == other || place(self).is_some_and(|here| place(other) == Some(here))
    }

    /// A number from 0 to `maximum` that is equal for equivalent references. It does not change, even if a server
    /// forwards the reference for good (Object::hash).
    #[must_use]
    pub fn hash(&self, maximum: u32) -> u32 {
        // Without random keys: the number is the same in every process.
        let mut hasher = DefaultHasher::new();
        match self.0.place() {
            Some((endpoint, key)) => (endpoint, key).hash(&mut hasher),
            None => self.0.ior.hash(&mut hasher),
        }
        let numbers = u64::from(maximum) + 1;
        (hasher.finish() % numbers) as u32
    }

    /// Binds the reference now instead of at the first call: connects, follows forwards and sends a LocateRequest.
    /// RebindPolicy does not apply. With real-time policies, the connection is that of the calling thread's priority:
    /// its lane and band. Returns whether the object exists.
    ///
    /// # Errors
    /// The system exception that a call would raise.
    pub fn validate_connection(&self) -> Result<bool, SystemException> {
        let orb = self.0.orb()?;
        current::enter_strong(orb);
        let origin = self.0.current();
        origin.unbind();
        let mut scratch = CallScratch::default();
        let mut call = self.call(orb, "LocateRequest", &(), &mut scratch);
        call.kind = CallKind::Locate;
        match call_object(&orb.client, origin, &call) {
            Ok(reply) => {
                reply.give_back(&orb.client);
                Ok(true)
            }
            Err(exception) if exception.kind == Kind::ObjectNotExist => Ok(false),
            Err(exception) => Err(exception),
        }
    }
}
