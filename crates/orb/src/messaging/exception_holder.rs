//! The exception of a call for its reply handler (Messaging::ExceptionHolder, CORBA 3.3 part 1, clause 17.7).

use deckwatch_cdr::{
    ByteOrder, Codec, DecodeError, DecodeFact, EncodeError, Parse, Reader, Write, Writer,
};

use crate::{Completion, SystemException, minor, raise};

/// The exception of an asynchronous call. It is marshalled as the standard's valuetype.
#[derive(Clone, Debug, PartialEq)]
pub struct ExceptionHolder {
    is_system: bool,
    order: ByteOrder,
    codec: Codec,
    /// Repository id and members, as in a reply.
    marshaled: Vec<u8>,
    /// The position in `marshaled` at which the exception begins. It keeps the alignment of the reply: before
    /// GIOP 1.2 a reply body need not begin at a multiple of 8.
    begin: usize,
}

/// The repository id of the valuetype.
const REPOSITORY_ID: &str = "IDL:omg.org/Messaging/ExceptionHolder:1.0";

/// The value tag: a single repository id, no chunks (CORBA 3.3 part 2, clause 9.3.4.1).
const VALUE_TAG: u32 = 0x7fff_ff02;

impl ExceptionHolder {
    pub(super) fn of_system(exception: SystemException) -> Self {
        let mut marshaled = Vec::new();
        let written = exception.write(&mut Writer::new(&mut marshaled));
        debug_assert!(written.is_ok(), "an exception of ours can be written");
        Self {
            is_system: true,
            order: ByteOrder::NATIVE,
            codec: Codec::DEFAULT,
            marshaled,
            begin: 0,
        }
    }

    /// Makes a holder from the body of a reply.
    pub(super) fn of_user(mut body: Reader<'_>) -> Self {
        let (order, codec) = (body.order(), body.codec());
        let begin = body.position() % 8;
        let mut marshaled = vec![0; begin];
        let rest = body.read_octets(body.remaining());
        marshaled.extend_from_slice(rest.unwrap_or_default());
        Self {
            is_system: false,
            order,
            codec,
            marshaled,
            begin,
        }
    }

    /// Returns whether it is a system exception.
    #[must_use]
    pub const fn is_system_exception(&self) -> bool {
        self.is_system
    }

    /// Returns the exception. `exceptions` makes a user exception from its repository id and its members; any other is
    /// a system exception. Generated `raise_` operations call it.
    pub fn raise_exception<E: From<SystemException>>(
        &self,
        exceptions: impl FnOnce(&str, &mut Reader<'_>) -> Result<Option<E>, DecodeError>,
    ) -> E {
        let mut body = Reader::new(&self.marshaled, self.order)
            .at_position(self.begin)
            .with_codec(self.codec);
        if self.is_system {
            let exception = SystemException::parse(&mut body);
            return exception.unwrap_or_else(SystemException::from).into();
        }
        let unknown = raise::unknown(minor::UNKNOWN_USER_EXCEPTION, Completion::Yes);
        let read = match body.read_string_octets() {
            Ok(id) => exceptions(std::str::from_utf8(id).unwrap_or(""), &mut body),
            Err(error) => Err(error),
        };
        match read {
            Ok(Some(exception)) => exception,
            Ok(None) => unknown.into(),
            Err(error) => SystemException::from(error).of_reply().into(),
        }
    }
}

impl Write for ExceptionHolder {
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        if self.begin != 0 {
            // The members would have another alignment at the receiver.
            return Err(EncodeError::TypeUnsupported);
        }
        VALUE_TAG.write(w)?;
        REPOSITORY_ID.write(w)?;
        self.is_system.write(w)?;
        (self.order == ByteOrder::Little).write(w)?;
        w.write_octet_sequence(&self.marshaled)
    }
}

impl<'a> Parse<'a> for ExceptionHolder {
    const SIZE_MIN: usize = 12;

    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let tag = r.read_u32()?;
        if tag != VALUE_TAG {
            return Err(r.error(DecodeFact::TypeMismatch));
        }
        if r.read_string_octets()? != REPOSITORY_ID.as_bytes() {
            return Err(r.error(DecodeFact::TypeMismatch));
        }
        let is_system = bool::parse(r)?;
        let order = if bool::parse(r)? {
            ByteOrder::Little
        } else {
            ByteOrder::Big
        };
        Ok(Self {
            is_system,
            order,
            codec: r.codec(),
            marshaled: r.read_octet_sequence()?.to_vec(),
            begin: 0,
        })
    }
}
