//! ServerRequestInfo (CORBA 3.3 part 1, clause 16.3.14; table 16.2 says which operation is allowed at which point).

use deckwatch_cdr::{Any, TypeCode};
use deckwatch_giop::{Request, Response};

use super::current::{self, SlotError, SlotId, Slots};
use super::facts::{self, ReplyStatus, require};
use super::server_flow::ServerFlow;
use crate::policy::SyncScope;
use crate::{ObjectRef, Poa, Policies, Servant, ServiceContext, SystemException};

/// The interception points of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    RequestServiceContexts,
    Request,
    ServantReturned,
    SendReply,
    SendException,
    SendOther,
}

/// An incoming request, as interceptors see it.
pub struct ServerRequestInfo<'r> {
    pub(super) point: Point,
    pub(super) request: &'r Request<'r>,
    pub(super) flow: &'r mut ServerFlow,
    /// Set at `Point::Request` only.
    pub(super) servant: Option<&'r dyn Servant>,
    pub(super) status: ReplyStatus,
    pub(super) exception: Option<Any>,
    pub(super) raised: Option<SystemException>,
    pub(super) forward: Option<ObjectRef>,
}

impl ServerRequestInfo<'_> {
    /// Returns an id that is unique among the requests that the ORB serves. It is not the id in the message.
    #[must_use]
    pub const fn request_id(&self) -> u32 {
        self.flow.request_id
    }

    /// Returns the operation's name; `_get_a` and `_set_a` for an attribute `a`.
    #[must_use]
    pub fn operation(&self) -> String {
        String::from_utf8_lossy(self.request.operation).into_owned()
    }

    /// Returns the arguments.
    ///
    /// # Errors
    /// NO_RESOURCES with the standard's minor code 1: skeletons read arguments without keeping their values.
    /// BAD_INV_ORDER with minor code 14 at points where the standard does not allow it.
    pub fn arguments(&self) -> Result<Vec<Any>, SystemException> {
        require(matches!(self.point, Point::Request | Point::SendReply))?;
        Err(facts::not_available())
    }

    /// Returns the exceptions that the operation may raise.
    ///
    /// # Errors
    /// As [`ServerRequestInfo::arguments`].
    pub fn exceptions(&self) -> Result<Vec<TypeCode>, SystemException> {
        self.behind_the_first_point()?;
        Err(facts::not_available())
    }

    /// Returns the names of the context that the operation declares.
    ///
    /// # Errors
    /// As [`ServerRequestInfo::arguments`].
    pub fn contexts(&self) -> Result<Vec<String>, SystemException> {
        self.behind_the_first_point()?;
        Err(facts::not_available())
    }

    /// Returns the context that the request carries.
    ///
    /// # Errors
    /// As [`ServerRequestInfo::arguments`].
    pub fn operation_context(&self) -> Result<Vec<String>, SystemException> {
        require(matches!(self.point, Point::Request | Point::SendReply))?;
        Err(facts::not_available())
    }

    /// Returns the result.
    ///
    /// # Errors
    /// As [`ServerRequestInfo::arguments`].
    pub fn result(&self) -> Result<Any, SystemException> {
        require(self.point == Point::SendReply)?;
        Err(facts::not_available())
    }

    fn behind_the_first_point(&self) -> Result<(), SystemException> {
        require(self.point != Point::RequestServiceContexts)
    }

    fn has_ended(&self) -> Result<(), SystemException> {
        require(!matches!(
            self.point,
            Point::RequestServiceContexts | Point::Request
        ))
    }

    /// Returns whether a reply is expected.
    #[must_use]
    pub const fn response_expected(&self) -> bool {
        self.request.response.is_expected()
    }

    /// Returns the sync scope of a one-way, as far as the request header has it.
    #[must_use]
    pub const fn sync_scope(&self) -> SyncScope {
        match self.request.response {
            Response::Nothing => SyncScope::WithTransport,
            Response::Receipt => SyncScope::WithServer,
            Response::Outcome => SyncScope::WithTarget,
        }
    }

    /// Returns how the request ended.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 before it has ended.
    pub fn reply_status(&self) -> Result<ReplyStatus, SystemException> {
        self.has_ended()?;
        Ok(self.status)
    }

    /// Returns the object that the caller is forwarded to.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 unless the caller is forwarded.
    pub fn forward_reference(&self) -> Result<&ObjectRef, SystemException> {
        require(self.point == Point::SendOther)?;
        self.forward.as_ref().ok_or_else(facts::out_of_place)
    }

    /// Returns the value of a slot of the request.
    ///
    /// # Errors
    /// [`SlotError::InvalidSlot`].
    pub fn slot(&self, id: SlotId) -> Result<Any, SlotError> {
        self.check_slot(id)?;
        Ok(Slots::of_thread(&self.flow.all).get(id))
    }

    /// Sets the value of a slot. The servant reads it from its `PICurrent`.
    ///
    /// # Errors
    /// [`SlotError::InvalidSlot`].
    pub fn set_slot(&mut self, id: SlotId, value: Any) -> Result<(), SlotError> {
        self.check_slot(id)?;
        current::set_here(self.flow.all.number, id, value);
        Ok(())
    }

    fn check_slot(&self, id: SlotId) -> Result<(), SlotError> {
        let is_known = id < self.flow.all.slots;
        is_known.then_some(()).ok_or(SlotError::InvalidSlot)
    }

    /// Returns a service context of the request.
    ///
    /// # Errors
    /// BAD_PARAM with the standard's minor code 26 if there is none of this id.
    pub fn request_service_context(&self, id: u32) -> Result<ServiceContext<'_>, SystemException> {
        let data = self.request.contexts.find(id);
        let data = data.ok_or_else(facts::no_context)?;
        Ok(ServiceContext { id, data })
    }

    /// Returns a service context that interceptors have added to the reply.
    ///
    /// # Errors
    /// BAD_PARAM with the standard's minor code 26 if there is none of this id, BAD_INV_ORDER with 14 before the
    /// request has ended.
    pub fn reply_service_context(&self, id: u32) -> Result<ServiceContext<'_>, SystemException> {
        self.has_ended()?;
        facts::find(&self.flow.reply_contexts, id)
    }

    /// Adds a service context to the reply, at any point; `data` is its encapsulation.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 15 if there is one of this id and `replace` is false.
    pub fn add_reply_service_context(
        &mut self,
        id: u32,
        data: &[u8],
        replace: bool,
    ) -> Result<(), SystemException> {
        facts::add(&mut self.flow.reply_contexts, id, data, replace)
    }

    /// Returns the exception that is sent. A user exception, whose type is not known here, is UNKNOWN with the
    /// standard's minor code 1.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 if there is none.
    pub fn sending_exception(&self) -> Result<&Any, SystemException> {
        require(self.point == Point::SendException)?;
        self.exception.as_ref().ok_or_else(facts::out_of_place)
    }

    /// Returns the system exception that is sent; `None` if there is none, or before the servant has returned. The
    /// standard does not have this operation.
    #[must_use]
    pub const fn raised(&self) -> Option<SystemException> {
        self.raised
    }

    /// Returns the id of the object within its adapter.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 before the lookup of the object, NO_RESOURCES with 1 if it was
    /// not found.
    pub fn object_id(&self) -> Result<&[u8], SystemException> {
        self.behind_the_first_point()?;
        let found = self.flow.object.as_ref();
        Ok(&found.ok_or_else(facts::not_available)?.0)
    }

    /// Returns an id that is unique among the adapters of the ORB.
    ///
    /// # Errors
    /// As [`ServerRequestInfo::object_id`].
    pub fn adapter_id(&self) -> Result<Vec<u8>, SystemException> {
        Ok(self.adapter()?.id())
    }

    /// Returns the names from the root adapter to the object's adapter.
    ///
    /// # Errors
    /// As [`ServerRequestInfo::object_id`].
    pub fn adapter_name(&self) -> Result<Vec<String>, SystemException> {
        Ok(self.adapter()?.adapter_name())
    }

    fn adapter(&self) -> Result<&Poa, SystemException> {
        self.behind_the_first_point()?;
        let found = self.flow.object.as_ref();
        Ok(&found.ok_or_else(facts::not_available)?.1)
    }

    /// Returns the id that [`crate::OrbBuilder::server_id`] or `-ORBServerId` has set.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 before the lookup of the object.
    pub fn server_id(&self) -> Result<&str, SystemException> {
        self.behind_the_first_point()?;
        Ok(&self.flow.all.server_id)
    }

    /// Returns the id of the ORB.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 before the lookup of the object.
    pub fn orb_id(&self) -> Result<&str, SystemException> {
        self.behind_the_first_point()?;
        Ok(&self.flow.all.orb_id)
    }

    /// Returns the repository id of the object's most derived interface.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 at all points but
    /// [`super::ServerRequestInterceptor::receive_request`].
    pub fn target_most_derived_interface(&self) -> Result<String, SystemException> {
        let servant = self.servant()?;
        let interface = servant.primary_interface(self.object_id()?, self.adapter()?);
        Ok(interface.into_owned())
    }

    /// Returns whether the object has an interface.
    ///
    /// # Errors
    /// As [`ServerRequestInfo::target_most_derived_interface`].
    pub fn target_is_a(&self, interface: &str) -> Result<bool, SystemException> {
        let servant = self.servant()?;
        Ok(servant.is_a(self.object_id()?, self.adapter()?, interface.as_bytes()))
    }

    fn servant(&self) -> Result<&dyn Servant, SystemException> {
        require(self.point == Point::Request)?;
        self.servant.ok_or_else(facts::out_of_place)
    }

    /// Returns the policies of the object's adapter: `get_server_policy` for all types at once.
    ///
    /// # Errors
    /// As [`ServerRequestInfo::object_id`].
    pub fn server_policies(&self) -> Result<&Policies, SystemException> {
        Ok(self.adapter()?.policies())
    }
}

impl std::fmt::Debug for ServerRequestInfo<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerRequestInfo")
            .field("request_id", &self.request_id())
            .field("operation", &self.operation())
            .field("point", &self.point)
            .finish_non_exhaustive()
    }
}
