//! What an interceptor may ask of a request that comes in (CORBA 3.3 part 1, table 16.2: which question at which point).

use deckwatch_cdr::{Any, TypeCode};
use deckwatch_giop::{Request, Response};

use super::current::{self, SlotError, SlotId, Slots};
use super::facts::{self, ReplyStatus, require};
use super::server_flow::ServerFlow;
use crate::policy::SyncScope;
use crate::{ObjectRef, Poa, Policies, Servant, ServiceContext, SystemException};

/// Where an interceptor of the server's side is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    RequestServiceContexts,
    Request,
    ServantReturned,
    SendReply,
    SendException,
    SendOther,
}

/// A request that comes in, as interceptors see it.
pub struct ServerRequestInfo<'r> {
    pub(super) point: Point,
    pub(super) request: &'r Request<'r>,
    pub(super) flow: &'r mut ServerFlow,
    /// Where it is about to be called.
    pub(super) servant: Option<&'r dyn Servant>,
    pub(super) status: ReplyStatus,
    pub(super) exception: Option<Any>,
    pub(super) raised: Option<SystemException>,
    pub(super) forward: Option<ObjectRef>,
}

impl ServerRequestInfo<'_> {
    /// Tells this request from the others that the ORB serves. It is not the number that travelled.
    #[must_use]
    pub const fn request_id(&self) -> u32 {
        self.flow.request_id
    }

    /// The operation's name; `_get_a` and `_set_a` for an attribute `a`.
    #[must_use]
    pub fn operation(&self) -> String {
        String::from_utf8_lossy(self.request.operation).into_owned()
    }

    /// The arguments.
    ///
    /// # Errors
    /// NO_RESOURCES with the standard's minor code 1: skeletons read them as they are asked for. BAD_INV_ORDER with minor code 14 where the standard
    /// does not have them.
    pub fn arguments(&self) -> Result<Vec<Any>, SystemException> {
        require(matches!(self.point, Point::Request | Point::SendReply))?;
        Err(facts::not_available())
    }

    /// The exceptions that the operation may raise.
    ///
    /// # Errors
    /// As [`ServerRequestInfo::arguments`].
    pub fn exceptions(&self) -> Result<Vec<TypeCode>, SystemException> {
        self.behind_the_first_point()?;
        Err(facts::not_available())
    }

    /// The names of the context that the operation declares.
    ///
    /// # Errors
    /// As [`ServerRequestInfo::arguments`].
    pub fn contexts(&self) -> Result<Vec<String>, SystemException> {
        self.behind_the_first_point()?;
        Err(facts::not_available())
    }

    /// The context that travelled with the request.
    ///
    /// # Errors
    /// As [`ServerRequestInfo::arguments`].
    pub fn operation_context(&self) -> Result<Vec<String>, SystemException> {
        require(matches!(self.point, Point::Request | Point::SendReply))?;
        Err(facts::not_available())
    }

    /// The result.
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

    /// Whether the caller waits for an answer.
    #[must_use]
    pub const fn response_expected(&self) -> bool {
        self.request.response.is_expected()
    }

    /// What the caller of a one-way waits for, as far as it travels.
    #[must_use]
    pub const fn sync_scope(&self) -> SyncScope {
        match self.request.response {
            Response::Nothing => SyncScope::WithTransport,
            Response::Receipt => SyncScope::WithServer,
            Response::Outcome => SyncScope::WithTarget,
        }
    }

    /// What has become of the request.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 before it has ended.
    pub fn reply_status(&self) -> Result<ReplyStatus, SystemException> {
        self.has_ended()?;
        Ok(self.status)
    }

    /// Where the caller is sent.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 unless it is sent elsewhere.
    pub fn forward_reference(&self) -> Result<&ObjectRef, SystemException> {
        require(self.point == Point::SendOther)?;
        self.forward.as_ref().ok_or_else(facts::out_of_place)
    }

    /// What is in a slot of the request.
    ///
    /// # Errors
    /// [`SlotError::InvalidSlot`].
    pub fn slot(&self, id: SlotId) -> Result<Any, SlotError> {
        self.check_slot(id)?;
        Ok(Slots::of_thread(&self.flow.all).get(id))
    }

    /// Puts a value into a slot: the servant finds it in its `PICurrent`.
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

    /// A service context that came with the request.
    ///
    /// # Errors
    /// BAD_PARAM with the standard's minor code 26 where there is none of this id.
    pub fn request_service_context(&self, id: u32) -> Result<ServiceContext<'_>, SystemException> {
        let data = self.request.contexts.find(id);
        let data = data.ok_or_else(facts::no_context)?;
        Ok(ServiceContext { id, data })
    }

    /// A service context that interceptors have added to the reply.
    ///
    /// # Errors
    /// BAD_PARAM with the standard's minor code 26 where there is none of this id, BAD_INV_ORDER with 14 before the request has ended.
    pub fn reply_service_context(&self, id: u32) -> Result<ServiceContext<'_>, SystemException> {
        self.has_ended()?;
        facts::find(&self.flow.reply_contexts, id)
    }

    /// Adds a service context to the reply, also where that is not begun yet; `data` is its encapsulation.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 15 where there is one of this id and it is not to `replace` it.
    pub fn add_reply_service_context(
        &mut self,
        id: u32,
        data: &[u8],
        replace: bool,
    ) -> Result<(), SystemException> {
        facts::add(&mut self.flow.reply_contexts, id, data, replace)
    }

    /// The exception that is sent. A user exception, whose type is not known here, shows as UNKNOWN with the standard's minor code 1.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 where there is none.
    pub fn sending_exception(&self) -> Result<&Any, SystemException> {
        require(self.point == Point::SendException)?;
        self.exception.as_ref().ok_or_else(facts::out_of_place)
    }

    /// Returns the system exception that is sent, from the return of the servant on. It is no question of the standard.
    #[must_use]
    pub const fn raised(&self) -> Option<SystemException> {
        self.raised
    }

    /// The id of the object within its adapter.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 before the object has been looked for, NO_RESOURCES with 1 where it was not found.
    pub fn object_id(&self) -> Result<&[u8], SystemException> {
        self.behind_the_first_point()?;
        let found = self.flow.object.as_ref();
        Ok(&found.ok_or_else(facts::not_available)?.0)
    }

    /// What tells the object's adapter from all others.
    ///
    /// # Errors
    /// As [`ServerRequestInfo::object_id`].
    pub fn adapter_id(&self) -> Result<Vec<u8>, SystemException> {
        Ok(self.adapter()?.id())
    }

    /// The names of the adapters from the root's to the object's own.
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

    /// What [`crate::OrbBuilder::server_id`] or `-ORBServerId` has said.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 before the object has been looked for.
    pub fn server_id(&self) -> Result<&str, SystemException> {
        self.behind_the_first_point()?;
        Ok(&self.flow.all.server_id)
    }

    /// The name of the ORB.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 before the object has been looked for.
    pub fn orb_id(&self) -> Result<&str, SystemException> {
        self.behind_the_first_point()?;
        Ok(&self.flow.all.orb_id)
    }

    /// The repository id of the object's most derived interface.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 but where its servant is about to be called.
    pub fn target_most_derived_interface(&self) -> Result<String, SystemException> {
        let servant = self.servant()?;
        let interface = servant.primary_interface(self.object_id()?, self.adapter()?);
        Ok(interface.into_owned())
    }

    /// Whether the object has an interface.
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

    /// The policies of the object's adapter: `get_server_policy` of all kinds at once.
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
