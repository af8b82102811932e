//! Encodes values for a service context or a component, and decodes them (CORBA 3.3 part 2, clause 7.8; IOP::Codec).

use std::fmt;

use deckwatch_cdr::{
    Any, ByteOrder, CharSet, DecodeError, DecodeFact, EncodeError, Parse, Reader, TypeCode,
    Version, Write, Writer,
};

/// An encoding format and its version (IOP::Encoding).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// The format. Only [`Encoding::CDR_ENCAPS`] is supported.
    pub format: i16,
    /// The major version; for encapsulations that of GIOP.
    pub major_version: u8,
    /// Minor version.
    pub minor_version: u8,
}

impl Encoding {
    /// IOP::ENCODING_CDR_ENCAPS: a CDR encapsulation as in GIOP.
    pub const CDR_ENCAPS: i16 = 0;

    /// Returns the encoding of GIOP 1.`minor` encapsulations.
    #[must_use]
    pub const fn cdr_encaps(minor: u8) -> Self {
        Self {
            format: Self::CDR_ENCAPS,
            major_version: 1,
            minor_version: minor,
        }
    }
}

/// No codec supports this encoding (IOP::CodecFactory::UnknownEncoding).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownEncoding;

impl fmt::Display for UnknownEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("No codec has this encoding; known are encapsulations of GIOP 1.0 to 1.2.")
    }
}

impl std::error::Error for UnknownEncoding {}

/// Makes codecs. It is the initial reference `CodecFactory`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodecFactory;

impl CodecFactory {
    /// Makes a codec of this encoding, with UTF-8 for `string`.
    ///
    /// # Errors
    /// [`UnknownEncoding`].
    pub fn create_codec(self, encoding: Encoding) -> Result<Codec, UnknownEncoding> {
        let version = Version::from_minor(encoding.minor_version);
        let is_known = encoding.format == Encoding::CDR_ENCAPS && encoding.major_version == 1;
        match version {
            Some(version) if is_known => Ok(Codec { version }),
            _ => Err(UnknownEncoding),
        }
    }
}

/// Why a codec fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodecError {
    /// The octets are not of this encoding.
    FormatMismatch(DecodeError),
    /// The octets are not a value of the type.
    TypeMismatch,
    /// The encoding has no values of this type.
    InvalidTypeForEncoding(EncodeError),
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FormatMismatch(error) => {
                write!(f, "The octets are no encapsulation of a value. {error}")
            }
            Self::TypeMismatch => f.write_str("The octets are no value of the type."),
            Self::InvalidTypeForEncoding(error) => {
                write!(f, "The value cannot be encoded. {error}")
            }
        }
    }
}

impl std::error::Error for CodecError {}

/// Writes and reads values of one encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codec {
    version: Version,
}

impl Codec {
    fn form(self) -> deckwatch_cdr::Codec {
        let form = deckwatch_cdr::Codec::DEFAULT.with_version(self.version);
        form.with_chars(CharSet::Utf8)
    }

    /// Encodes a value with its type.
    ///
    /// # Errors
    /// [`CodecError::InvalidTypeForEncoding`].
    pub fn encode(self, value: &Any) -> Result<Vec<u8>, CodecError> {
        self.encapsulation(value, |w| value.write(w))
    }

    /// Encodes a value without its type.
    ///
    /// # Errors
    /// [`CodecError::InvalidTypeForEncoding`].
    pub fn encode_value(self, value: &Any) -> Result<Vec<u8>, CodecError> {
        self.encapsulation(value, |w| value.write_value(w))
    }

    /// Uses the byte order that the value requires, or the native one. An encapsulation names its byte order.
    fn encapsulation(
        self,
        value: &Any,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<Vec<u8>, CodecError> {
        let mut octets = Vec::new();
        let order = value.sole_form().map_or(ByteOrder::NATIVE, |form| form.0);
        let w = Writer::new(&mut octets).with_order(order);
        let mut w = w.with_codec(self.form());
        let written = w.write_u8(order.flag());
        written
            .and_then(|()| write(&mut w))
            .map_err(CodecError::InvalidTypeForEncoding)?;
        Ok(octets)
    }

    /// Decodes the octets of [`Codec::encode`].
    ///
    /// # Errors
    /// [`CodecError::FormatMismatch`].
    pub fn decode(self, octets: &[u8]) -> Result<Any, CodecError> {
        let mut r = self.opened(octets)?;
        Any::parse(&mut r).map_err(CodecError::FormatMismatch)
    }

    /// Decodes the octets of [`Codec::encode_value`] as a value of this type.
    ///
    /// # Errors
    /// [`CodecError::FormatMismatch`]; [`CodecError::TypeMismatch`] if the octets are of another type.
    pub fn decode_value(self, octets: &[u8], type_code: &TypeCode) -> Result<Any, CodecError> {
        let mut r = self.opened(octets)?;
        Any::read(type_code.clone(), &mut r).map_err(mismatch)
    }

    fn opened(self, octets: &[u8]) -> Result<Reader<'_>, CodecError> {
        let r = Reader::new(octets, ByteOrder::Big).with_codec(self.form());
        r.into_encapsulation().map_err(CodecError::FormatMismatch)
    }
}

/// Too few octets for the type, or octets that no value of the type has, count as a type mismatch.
fn mismatch(error: DecodeError) -> CodecError {
    match error.fact {
        DecodeFact::NestingTooDeep => CodecError::FormatMismatch(error),
        _ => CodecError::TypeMismatch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deckwatch_cdr::typecode::ValueModifier;

    /// A custom value with a number and a string in its state.
    fn opaque(order: ByteOrder) -> Any {
        let custom = TypeCode::value("IDL:C:1.0", "C", ValueModifier::Custom, None, &[]);
        let mut octets = Vec::new();
        let mut w = Writer::new(&mut octets).with_order(order);
        w.write_u32(0x7fff_ff08).expect("room");
        w.write_u32(12).expect("room");
        w.write_u32(7).expect("room");
        "abc".write(&mut w).expect("room");
        w.write_u32(u32::MAX).expect("room");
        let mut r = Reader::new(&octets, order);
        Any::read(custom, &mut r).expect("a custom value")
    }

    #[test]
    fn an_opaque_any_is_encoded_in_the_byte_order_it_came_in() {
        let codec = CodecFactory.create_codec(Encoding::cdr_encaps(2));
        let codec = codec.expect("it is known");
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let any = opaque(order);
            let octets = codec.encode(&any).expect("it can be encoded");
            assert_eq!(codec.decode(&octets).as_ref(), Ok(&any));
            let octets = codec.encode_value(&any).expect("it can be encoded");
            let decoded = codec.decode_value(&octets, any.type_code());
            assert_eq!(decoded.and_then(|any| codec.encode_value(&any)), Ok(octets));
        }
    }
}
