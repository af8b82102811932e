//! A minimal ORB within one process, without a network: only the parts that generated code uses.

use std::cell::RefCell;
use std::sync::Arc;

use deckwatch_cdr::{
    ByteOrder, DecodeError, DecodeFact, EncodeError, Parse, ParseReference, Reader, TypeCode,
    Typed, Unwritten, UserException, Write, WriteReference, Writer,
};
pub(crate) use deckwatch_giop::{Completion, SystemException, SystemExceptionKind, minor};

pub(crate) type Result<T> = std::result::Result<T, SystemException>;

/// No exception of the test has words.
pub(crate) const fn exception_detail(_: &SystemException) -> Option<String> {
    None
}

/// No interface of the test is called asynchronously.
pub(crate) struct AsynchronousReply;

pub(crate) type Deliver = Box<dyn FnOnce(AsynchronousReply) -> Result<()> + Send>;

thread_local! {
    /// All objects for which a reference was created.
    static OBJECTS: RefCell<Vec<Arc<dyn Servant>>> = const { RefCell::new(Vec::new()) };
}

pub(crate) trait Servant: Send + Sync + 'static {
    fn repository_ids(&self) -> &'static [&'static str];
    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<()>;
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ObjectRef(u32);

pub(crate) struct ServerRequest<'r> {
    operation: &'r [u8],
    body: &'r [u8],
    reply: Vec<u8>,
    raised: Option<&'static str>,
}

impl<'r> ServerRequest<'r> {
    pub(crate) fn operation(&self) -> &'r [u8] {
        self.operation
    }

    pub(crate) fn arguments(&self) -> Reader<'r> {
        Reader::new(self.body, ByteOrder::NATIVE)
    }

    pub(crate) fn reply(&mut self) -> Result<Writer<'_>> {
        self.reply.clear();
        Ok(Writer::new(&mut self.reply))
    }

    pub(crate) fn reply_with(
        &mut self,
        results: impl FnOnce(&mut Writer<'_>) -> std::result::Result<(), EncodeError>,
    ) -> Result<()> {
        results(&mut self.reply()?)
            .map_err(|error| SystemException::from(error).with_completion(Completion::Yes))
    }

    pub(crate) fn raise<E: UserException>(&mut self, exception: &E) -> Result<()> {
        self.raised = Some(E::REPOSITORY_ID);
        Ok(exception.write(&mut self.reply()?)?)
    }
}

impl ObjectRef {
    pub(crate) fn to(servant: Arc<dyn Servant>) -> Self {
        OBJECTS.with_borrow_mut(|objects| {
            objects.push(servant);
            Self(objects.len() as u32 - 1)
        })
    }

    fn servant(&self) -> Arc<dyn Servant> {
        OBJECTS.with_borrow(|objects| Arc::clone(&objects[self.0 as usize]))
    }

    pub(crate) fn is_a(&self, repository_id: &str) -> Result<bool> {
        Ok(self.servant().repository_ids().contains(&repository_id))
    }

    pub(crate) fn invoke<'c, T, E: From<SystemException>, R: Into<Unwritten<'c>>>(
        &self,
        operation: &str,
        arguments: impl Fn(&mut Writer<'_>) -> std::result::Result<R, EncodeError>,
        results: impl FnOnce(&mut Reader<'_>) -> std::result::Result<T, DecodeError>,
        exceptions: impl FnOnce(&str, &mut Reader<'_>) -> std::result::Result<Option<E>, DecodeError>,
    ) -> std::result::Result<T, E> {
        let mut body = Vec::new();
        let rest = arguments(&mut Writer::new(&mut body)).map_err(SystemException::from)?;
        body.extend_from_slice(rest.into().octets());
        let mut request = ServerRequest {
            operation: operation.as_bytes(),
            body: &body,
            reply: Vec::new(),
            raised: None,
        };
        self.servant().dispatch(&mut request)?;
        let mut reader = Reader::new(&request.reply, ByteOrder::NATIVE);
        match request.raised {
            None => Ok(results(&mut reader).map_err(SystemException::from)?),
            Some(id) => Err(exceptions(id, &mut reader)
                .map_err(SystemException::from)?
                .unwrap()),
        }
    }

    pub(crate) fn send_callback(
        &self,
        _: &str,
        _: impl Fn(&mut Writer<'_>) -> std::result::Result<(), EncodeError>,
        _: Option<Deliver>,
    ) -> Result<()> {
        unreachable!("no interface of the test is called asynchronously")
    }

    pub(crate) fn invoke_oneway<'c, R: Into<Unwritten<'c>>>(
        &self,
        operation: &str,
        arguments: impl Fn(&mut Writer<'_>) -> std::result::Result<R, EncodeError>,
    ) -> Result<()> {
        self.invoke(operation, arguments, |_| Ok(()), |_, _| Ok(None))
    }
}

/// A reference is marshalled as a type id followed by its object's number. An empty type id means nil.
impl WriteReference for ObjectRef {
    fn write_reference(&self, w: &mut Writer<'_>) -> std::result::Result<(), EncodeError> {
        "object".write(w)?;
        self.0.write(w)
    }
}

impl ParseReference for ObjectRef {
    fn parse_reference(r: &mut Reader<'_>) -> std::result::Result<Option<Self>, DecodeError> {
        let kind = String::parse(r)?;
        let number = u32::parse(r)?;
        match kind.as_str() {
            "" => Ok(None),
            "object" => Ok(Some(Self(number))),
            _ => Err(r.error(DecodeFact::ReferenceMalformed)),
        }
    }
}

impl Typed for ObjectRef {
    fn type_code() -> TypeCode {
        TypeCode::object()
    }
}
