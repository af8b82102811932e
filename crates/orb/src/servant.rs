//! What serves an object, and the request it is handed.

use std::borrow::Cow;

use deckwatch_cdr::{EncodeError, Reader, UserException, Writer};
use deckwatch_giop::{OpenMessage, ReplyStatus, Request, ServiceContext, ServiceContexts};

use crate::wire::{self, Sizes};
use crate::{Poa, SystemException};

/// An object's implementation, as generated skeletons give it.
pub trait Servant: Send + Sync + 'static {
    /// The interfaces that all its objects have, most derived first.
    fn repository_ids(&self) -> &'static [&'static str];

    /// The most derived interface of an object: what references to it say, and what `_repository_id` answers. The default is the first of
    /// [`Servant::repository_ids`].
    fn primary_interface(&self, _object_id: &[u8], _poa: &Poa) -> Cow<'static, str> {
        Cow::Borrowed(self.repository_ids().first().copied().unwrap_or(""))
    }

    /// Whether an object has an interface: what `_is_a` answers. The default looks for it in [`Servant::repository_ids`].
    fn is_a(&self, _object_id: &[u8], _poa: &Poa, interface: &[u8]) -> bool {
        let mut ids = self.repository_ids().iter();
        ids.any(|id| id.as_bytes() == interface)
    }

    /// Whether the object is not there: what `_non_existent` answers. A default servant knows that of each of its objects.
    ///
    /// # Errors
    /// A system exception goes to the caller.
    fn non_existent(&self, _object_id: &[u8]) -> Result<bool, SystemException> {
        Ok(false)
    }

    /// Serves one request: reads the arguments, calls the operation, writes the results or raises.
    ///
    /// # Errors
    /// The system exception that the caller is to get, BAD_OPERATION for an operation it does not have.
    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException>;
}

/// A request on its way through a servant.
#[derive(Debug)]
pub struct ServerRequest<'r> {
    request: &'r Request<'r>,
    object_id: &'r [u8],
    reply: &'r mut Vec<u8>,
    /// What has been begun in `reply`.
    open: Option<OpenMessage>,
    /// The service contexts of the reply.
    contexts: &'r [ServiceContext<'r>],
    sizes: Sizes,
}

impl<'r> ServerRequest<'r> {
    #[inline]
    pub(crate) fn new(
        request: &'r Request<'r>,
        object_id: &'r [u8],
        reply: &'r mut Vec<u8>,
        contexts: &'r [ServiceContext<'r>],
        sizes: Sizes,
    ) -> Self {
        Self {
            request,
            object_id,
            reply,
            open: None,
            contexts,
            sizes,
        }
    }

    /// The operation's name as it travelled.
    #[must_use]
    pub fn operation(&self) -> &'r [u8] {
        self.request.operation
    }

    /// The arguments, from the first one on.
    #[must_use]
    pub fn arguments(&self) -> Reader<'r> {
        self.request.body
    }

    /// The service contexts that travelled with it, those that mean nothing to the ORB too.
    #[must_use]
    pub fn service_contexts(&self) -> ServiceContexts<'r> {
        self.request.contexts
    }

    /// The id, within its adapter, of the object that is asked.
    #[must_use]
    pub fn object_id(&self) -> &'r [u8] {
        self.object_id
    }

    /// Whether the caller waits for a reply.
    #[must_use]
    pub fn response_expected(&self) -> bool {
        self.request.response.is_expected()
    }

    /// Begins the reply; the results are written into it in order. What had been written before is forgotten.
    ///
    /// # Errors
    /// MARSHAL where even the header passes the limit of a message.
    pub fn reply(&mut self) -> Result<Writer<'_>, SystemException> {
        Ok(self.begin(ReplyStatus::NoException)?)
    }

    /// Begins the reply and has the results written into it; what cannot be written raises with completion YES, since the servant has done its work.
    ///
    /// # Errors
    /// MARSHAL and its kin, as `results` fails.
    pub fn reply_with(
        &mut self,
        results: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        let written = self
            .begin(ReplyStatus::NoException)
            .and_then(|mut writer| results(&mut writer));
        written.map_err(|error| SystemException::from(error).of_reply())
    }

    /// Makes `exception` the reply. What had been written before is forgotten.
    ///
    /// # Errors
    /// MARSHAL where the exception cannot be written.
    pub fn raise<E: UserException>(&mut self, exception: &E) -> Result<(), SystemException> {
        self.write_exception(exception)
            .map_err(|error| SystemException::from(error).of_reply())
    }

    /// Makes the user exception that `exception` writes, its repository id and its members, the reply. For servants without a
    /// generated type of the exception.
    ///
    /// # Errors
    /// As [`ServerRequest::raise`].
    pub fn raise_with(
        &mut self,
        exception: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        let written = self
            .begin(ReplyStatus::UserException)
            .and_then(|mut writer| exception(&mut writer));
        written.map_err(|error| SystemException::from(error).of_reply())
    }

    fn write_exception<E: UserException>(&mut self, exception: &E) -> Result<(), EncodeError> {
        let mut writer = self.begin(ReplyStatus::UserException)?;
        writer.write_string_octets(E::REPOSITORY_ID.as_bytes())?;
        exception.write(&mut writer)
    }

    fn begin(&mut self, status: ReplyStatus) -> Result<Writer<'_>, EncodeError> {
        if status == ReplyStatus::NoException && !self.response_expected() {
            return Ok(self.results_for_nobody());
        }
        let open = wire::begin_reply(self.reply, self.request, status, self.contexts, self.sizes)?;
        self.open = Some(open);
        Ok(open.writer(self.reply))
    }

    /// What a servant may write that nobody is waiting for: the head of a reply is not worth its time.
    fn results_for_nobody(&mut self) -> Writer<'_> {
        self.open = None;
        self.reply.clear();
        Writer::new(self.reply)
            .with_codec(self.request.body.codec())
            .with_limit(self.sizes.message_max)
    }

    /// States the size of the reply; a servant that has begun none has no results.
    pub(crate) fn finish(&mut self) -> Result<(), EncodeError> {
        if self.open.is_none() {
            if !self.response_expected() {
                return Ok(());
            }
            self.begin(ReplyStatus::NoException)?;
        }
        let open = self.open.take();
        open.map_or(Ok(()), |open| open.finish(self.reply).map(drop))
    }
}
