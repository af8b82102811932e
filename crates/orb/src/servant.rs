//! Servants, and the request that a servant serves.

use std::borrow::Cow;

use deckwatch_cdr::{EncodeError, Reader, UserException, Writer};
use deckwatch_giop::{OpenMessage, ReplyStatus, Request, ServiceContext, ServiceContexts};

use crate::rt::Priority;
use crate::wire::{self, Sizes};
use crate::{Poa, SystemException, contexts};

/// The implementation of one or more objects. Generated skeletons implement this trait.
pub trait Servant: Send + Sync + 'static {
    /// The interfaces of all its objects, most derived first.
    fn repository_ids(&self) -> &'static [&'static str];

    /// The most derived interface of an object, for references and for `_repository_id`. The default is the first of
    /// [`Servant::repository_ids`].
    fn primary_interface(&self, _object_id: &[u8], _poa: &Poa) -> Cow<'static, str> {
        Cow::Borrowed(self.repository_ids().first().copied().unwrap_or(""))
    }

    /// Returns whether an object has an interface, for `_is_a`. The default searches [`Servant::repository_ids`].
    fn is_a(&self, _object_id: &[u8], _poa: &Poa, interface: &[u8]) -> bool {
        let mut ids = self.repository_ids().iter();
        ids.any(|id| id.as_bytes() == interface)
    }

    /// Returns whether an object does not exist, for `_non_existent`. A default servant decides it for each of its
    /// objects.
    ///
    /// # Errors
    /// A system exception goes to the caller.
    fn non_existent(&self, _object_id: &[u8]) -> Result<bool, SystemException> {
        Ok(false)
    }

    /// Serves one request: reads the arguments, calls the operation, and writes the results or an exception.
    ///
    /// # Errors
    /// The system exception for the caller; BAD_OPERATION for an unknown operation.
    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException>;
}

/// A request that a servant serves.
#[derive(Debug)]
pub struct ServerRequest<'r> {
    request: &'r Request<'r>,
    object_id: &'r [u8],
    reply: &'r mut Vec<u8>,
    /// The message that has been begun in `reply`.
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

    /// The name of the operation as received.
    #[must_use]
    pub fn operation(&self) -> &'r [u8] {
        self.request.operation
    }

    /// A reader at the first argument.
    #[must_use]
    pub fn arguments(&self) -> Reader<'r> {
        self.request.body
    }

    /// All service contexts of the request, including those that the ORB does not know.
    #[must_use]
    pub fn service_contexts(&self) -> ServiceContexts<'r> {
        self.request.contexts
    }

    /// The CORBA priority that the request carries, if its reference says that callers propagate theirs. A malformed
    /// one counts as none.
    #[must_use]
    pub fn priority(&self) -> Option<Priority> {
        contexts::read::priority(self.request).ok().flatten()
    }

    /// The id of the target object within its adapter.
    #[must_use]
    pub fn object_id(&self) -> &'r [u8] {
        self.object_id
    }

    /// Returns whether the caller waits for a reply.
    #[must_use]
    pub fn response_expected(&self) -> bool {
        self.request.response.is_expected()
    }

    /// Begins the reply and returns a writer for the results, in order. Anything written before is dropped.
    ///
    /// # Errors
    /// MARSHAL if the header alone exceeds the size limit of a message.
    pub fn reply(&mut self) -> Result<Writer<'_>, SystemException> {
        Ok(self.begin(ReplyStatus::NoException)?)
    }

    /// Begins the reply and has `results` write into it. An error raises with completion YES: the servant has done its
    /// work.
    ///
    /// # Errors
    /// The exception for the error of `results`, such as MARSHAL.
    pub fn reply_with(
        &mut self,
        results: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        let written = self
            .begin(ReplyStatus::NoException)
            .and_then(|mut writer| results(&mut writer));
        written.map_err(|error| SystemException::from(error).of_reply())
    }

    /// Makes `exception` the reply. Anything written before is dropped.
    ///
    /// # Errors
    /// MARSHAL if the exception cannot be written.
    pub fn raise<E: UserException>(&mut self, exception: &E) -> Result<(), SystemException> {
        self.write_exception(exception)
            .map_err(|error| SystemException::from(error).of_reply())
    }

    /// Makes the user exception that `exception` writes, its repository id and its members, the reply. For servants
    /// without a generated type of the exception.
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

    /// A writer for results that are dropped, without a reply header.
    fn results_for_nobody(&mut self) -> Writer<'_> {
        self.open = None;
        self.reply.clear();
        Writer::new(self.reply)
            .with_codec(self.request.body.codec())
            .with_limit(self.sizes.message_max)
    }

    /// Completes the reply. If the servant has begun none, the reply has no results.
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
