//! CDR, the Common Data Representation (CORBA 3.3 part 2, clause 9.3), over borrowed slices; TypeCode and Any.
//!
//! A [`Reader`] walks a slice and copies nothing that it can lend. A [`Writer`] appends to a caller's buffer and
//! allocates only where the capacity of that buffer ends. Neither does I/O nor reads a clock. [`limits`] bounds what a
//! peer's octets can cost; a [`DecodeFact`] at an offset says what is wrong with them.
//!
//! ```
//! use deckwatch_cdr::{ByteOrder, Parse, Reader, Write, Writer};
//! let mut buffer = Vec::new();
//! (7_u16, 0.5_f64).0.write(&mut Writer::new(&mut buffer))?;
//! let mut reader = Reader::new(&buffer, ByteOrder::NATIVE);
//! assert_eq!(u16::parse(&mut reader)?, 7);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod any;
mod array;
mod bounded;
mod bounded_string;
mod character;
mod codec;
mod divided;
pub mod enumerated;
mod error;
mod fixed;
pub mod fuzzing;
#[doc(hidden)]
pub mod generated;
pub mod limits;
mod order;
pub mod plain;
mod primitive;
mod reader;
mod reference;
mod room;
mod sequence;
mod text;
mod traits;
pub mod typecode;
mod typed;
mod unwritten;
pub mod value;
pub mod valuetype;
mod walk;
mod wide;
mod window;
mod writer;

pub use any::Any;
pub use bounded::BoundedVec;
pub use bounded_string::BoundedString;
pub use character::{Char, LongDouble};
pub use codec::{CharSet, Codec, Version, WideSet};
pub use divided::Divided;
pub use error::{DecodeError, DecodeFact, EncodeError};
pub use fixed::{Fixed, FixedError, fixed_text};
pub use order::ByteOrder;
pub use reader::Reader;
pub use reference::{ParseReference, WriteReference};
pub use text::WString;
pub use traits::{Parse, UserException, Write};
pub use typecode::TypeCode;
pub use typed::Typed;
pub use unwritten::Unwritten;
pub use window::{ReadWindow, WriteWindow};
pub use writer::Writer;

/// Used by the derives of generated structs.
#[doc(hidden)]
pub use zerocopy;
