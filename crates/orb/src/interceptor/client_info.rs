//! ClientRequestInfo (CORBA 3.3 part 1, 16.3.13; table 16.1 says which operation is allowed at which point).

use deckwatch_cdr::{Any, ByteOrder, Parse, Reader, TypeCode};
use deckwatch_giop::ior::{IiopProfile, TaggedComponent, TaggedProfile};
use deckwatch_giop::{Ior, Response};

use super::current::{SlotError, SlotId, Slots};
use super::facts::{self, ReplyStatus, require};
use crate::SystemException;
use crate::contexts::ExtraContext;
use crate::policy::{Overrides, Policy, PolicyType, SyncScope};
use crate::wire::Profile;
use crate::{Completion, ObjectRef, ServiceContext, minor, raise};

/// The interception points of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    SendRequest,
    ReceiveReply,
    ReceiveException,
    ReceiveOther,
}

/// An outgoing request, as interceptors see it.
#[derive(Debug)]
pub struct ClientRequestInfo {
    pub(super) point: Point,
    pub(super) request_id: u32,
    pub(super) operation: String,
    pub(super) target: ObjectRef,
    pub(super) profile: Profile,
    pub(super) response: Response,
    pub(super) is_synchronous: bool,
    pub(super) policies: Overrides,
    pub(super) request_contexts: Vec<ExtraContext>,
    /// Those of the attempt before this one.
    pub(super) earlier_contexts: Vec<ExtraContext>,
    pub(super) is_repeated: bool,
    pub(super) reply_contexts: Vec<ExtraContext>,
    pub(super) slots: Slots,
    pub(super) slot_count: SlotId,
    pub(super) status: ReplyStatus,
    /// The exception that was received, and its repository id.
    pub(super) exception: Option<(Any, String)>,
    pub(super) forward: Option<ObjectRef>,
}

impl ClientRequestInfo {
    /// An id that is unique among the requests of the ORB that are under way. It is not the id in the message.
    #[must_use]
    pub const fn request_id(&self) -> u32 {
        self.request_id
    }

    /// The operation's name; `_get_a` and `_set_a` for an attribute `a`.
    #[must_use]
    pub fn operation(&self) -> &str {
        &self.operation
    }

    /// The arguments.
    ///
    /// # Errors
    /// NO_RESOURCES with the standard's minor code 1: stubs marshal arguments without keeping their values.
    /// BAD_INV_ORDER with minor code 14 at points where the standard does not allow it.
    pub fn arguments(&self) -> Result<Vec<Any>, SystemException> {
        require(matches!(
            self.point,
            Point::SendRequest | Point::ReceiveReply
        ))?;
        Err(facts::not_available())
    }

    /// The exceptions that the operation may raise.
    ///
    /// # Errors
    /// NO_RESOURCES with the standard's minor code 1.
    pub fn exceptions(&self) -> Result<Vec<TypeCode>, SystemException> {
        Err(facts::not_available())
    }

    /// The names of the context that the operation declares.
    ///
    /// # Errors
    /// NO_RESOURCES with the standard's minor code 1.
    pub fn contexts(&self) -> Result<Vec<String>, SystemException> {
        Err(facts::not_available())
    }

    /// The context that the request carries.
    ///
    /// # Errors
    /// NO_RESOURCES with the standard's minor code 1.
    pub fn operation_context(&self) -> Result<Vec<String>, SystemException> {
        Err(facts::not_available())
    }

    /// The result.
    ///
    /// # Errors
    /// As [`ClientRequestInfo::arguments`].
    pub fn result(&self) -> Result<Any, SystemException> {
        require(self.point == Point::ReceiveReply)?;
        Err(facts::not_available())
    }

    /// Whether a reply is expected.
    #[must_use]
    pub const fn response_expected(&self) -> bool {
        self.response.is_expected()
    }

    /// Returns whether the calling thread waits for the reply and passes the ending point; false for one-ways and for
    /// asynchronous and deferred requests. The standard does not have it.
    #[must_use]
    pub const fn is_synchronous(&self) -> bool {
        self.is_synchronous
    }

    /// The sync scope of a one-way.
    #[must_use]
    pub fn sync_scope(&self) -> SyncScope {
        self.policies.sync_scope()
    }

    /// How the request ended.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 before it has ended.
    pub fn reply_status(&self) -> Result<ReplyStatus, SystemException> {
        require(self.point != Point::SendRequest)?;
        Ok(self.status)
    }

    /// The object that the request is forwarded to.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 unless the request is forwarded.
    pub fn forward_reference(&self) -> Result<&ObjectRef, SystemException> {
        require(self.point == Point::ReceiveOther)?;
        self.forward.as_ref().ok_or_else(facts::out_of_place)
    }

    /// The content of a slot of the request: what the calling thread had there when it made the call.
    ///
    /// # Errors
    /// [`SlotError::InvalidSlot`].
    pub fn slot(&self, id: SlotId) -> Result<Any, SlotError> {
        if id >= self.slot_count {
            return Err(SlotError::InvalidSlot);
        }
        Ok(self.slots.get(id))
    }

    /// A service context that interceptors have added to the request.
    ///
    /// # Errors
    /// BAD_PARAM with the standard's minor code 26 if there is none of this id.
    pub fn request_service_context(&self, id: u32) -> Result<ServiceContext<'_>, SystemException> {
        facts::find(&self.request_contexts, id)
    }

    /// Returns whether the interceptor was called for an earlier attempt of this request already. Known only for
    /// requests that no caller waits for ([`ClientRequestInfo::is_synchronous`]): a thread of the ORB may send them
    /// again. The standard does not have it.
    #[must_use]
    pub const fn is_repeated(&self) -> bool {
        self.is_repeated
    }

    /// Returns a service context that interceptors added to the attempt before this one, where
    /// [`ClientRequestInfo::is_repeated`]. The standard does not have it.
    ///
    /// # Errors
    /// BAD_PARAM with the standard's minor code 26 if there is none of this id.
    pub fn earlier_service_context(&self, id: u32) -> Result<ServiceContext<'_>, SystemException> {
        facts::find(&self.earlier_contexts, id)
    }

    /// A service context of the reply.
    ///
    /// # Errors
    /// BAD_PARAM with the standard's minor code 26 if there is none of this id, BAD_INV_ORDER with 14 before the
    /// request has ended.
    pub fn reply_service_context(&self, id: u32) -> Result<ServiceContext<'_>, SystemException> {
        require(self.point != Point::SendRequest)?;
        facts::find(&self.reply_contexts, id)
    }

    /// The object that the caller has called.
    #[must_use]
    pub const fn target(&self) -> &ObjectRef {
        &self.target
    }

    /// The object that the request is sent to: another one after a forward.
    #[must_use]
    pub fn effective_target(&self) -> ObjectRef {
        let ior = self.effective_ior().unwrap_or_default();
        self.target.like(ior)
    }

    /// The profile of that object that the request is sent by.
    #[must_use]
    pub fn effective_profile(&self) -> TaggedProfile {
        let (_, index) = self.profile.whole();
        let profiles = self.effective_ior().map(|ior| ior.profiles);
        let profile = profiles.and_then(|all| all.into_iter().nth(index));
        profile.unwrap_or_default()
    }

    fn effective_ior(&self) -> Option<Ior> {
        let (octets, _) = self.profile.whole();
        Ior::parse(&mut Reader::new(octets, ByteOrder::NATIVE)).ok()
    }

    /// The exception that was received. A user exception, whose type is not known here, is UNKNOWN with the standard's
    /// minor code 1; [`ClientRequestInfo::received_exception_id`] returns its id.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 if there is none.
    pub fn received_exception(&self) -> Result<&Any, SystemException> {
        let received = self.received()?;
        Ok(&received.0)
    }

    /// The repository id of that exception.
    ///
    /// # Errors
    /// As [`ClientRequestInfo::received_exception`].
    pub fn received_exception_id(&self) -> Result<&str, SystemException> {
        let received = self.received()?;
        Ok(&received.1)
    }

    fn received(&self) -> Result<&(Any, String), SystemException> {
        require(self.point == Point::ReceiveException)?;
        self.exception.as_ref().ok_or_else(facts::out_of_place)
    }

    /// The first component of this tag in the profile that the request is sent by.
    ///
    /// # Errors
    /// BAD_PARAM with the standard's minor code 28 if there is none.
    pub fn effective_component(&self, tag: u32) -> Result<TaggedComponent, SystemException> {
        let mut all = self.effective_components(tag)?;
        Ok(all.swap_remove(0))
    }

    /// All components of this tag in that profile; at least one.
    ///
    /// # Errors
    /// As [`ClientRequestInfo::effective_component`].
    pub fn effective_components(&self, tag: u32) -> Result<Vec<TaggedComponent>, SystemException> {
        let profile = IiopProfile::from_octets(&self.effective_profile().data);
        let mut all = profile.map_or_else(|_| Vec::new(), |profile| profile.components);
        all.retain(|component| component.tag == tag);
        if all.is_empty() {
            return Err(raise::bad_param(
                minor::COMPONENT_ID_INVALID,
                Completion::No,
            ));
        }
        Ok(all)
    }

    /// The policy of this kind that the request has; `None`: no limit.
    ///
    /// # Errors
    /// INV_POLICY with the standard's minor code 2 for an unknown kind.
    pub fn request_policy(&self, kind: PolicyType) -> Result<Option<Policy>, SystemException> {
        let unknown = |_| raise::inv_policy(minor::POLICY_FACTORY_MISSING, Completion::No);
        self.policies.in_force(kind).map_err(unknown)
    }

    /// Adds a service context to the request; `data` is its encapsulation.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 15 if there is one of this id and `replace` is false, with 14 once
    /// the request has been sent.
    pub fn add_request_service_context(
        &mut self,
        id: u32,
        data: &[u8],
        replace: bool,
    ) -> Result<(), SystemException> {
        require(self.point == Point::SendRequest)?;
        facts::add(&mut self.request_contexts, id, data, replace)
    }
}
