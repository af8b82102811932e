//! The elements of the sequences that are sent: every basic type, and the submarine paper's ComplexStruct.

use deckwatch_cdr::{Any, Char, EncodeError, Write, Writer};
use deckwatch_orb::SystemException;

use super::idl::experiment::{Alert, SubjectRef};
use super::payload::{STRUCT_SIZE, element};

/// Makes the enum of kinds, their names and their calls from one table.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $word:literal $idl:literal $size:literal $process:ident $stream:ident $value:expr;)*) => {
        /// The element of a sequence.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ElementKind {
            $($(#[$doc])* $kind,)*
        }

        impl ElementKind {
            /// Every kind.
            pub const ALL: [Self; 16] = [$(Self::$kind,)*];

            /// Its name on the command line and in the operations.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$kind => $word,)* }
            }

            /// The element's type in IDL.
            #[must_use]
            pub const fn idl(self) -> &'static str {
                match self { $(Self::$kind => $idl,)* }
            }

            /// Octets of one element on the wire, in a long sequence.
            #[must_use]
            pub const fn size(self) -> usize {
                match self { $(Self::$kind => $size,)* }
            }

            /// The names of the operation that returns its argument, and of the one-way.
            pub(crate) const fn operations(self) -> (&'static str, &'static str) {
                match self { $(Self::$kind => (stringify!($process), stringify!($stream)),)* }
            }

            /// Writes a sequence of `count` elements.
            pub(crate) fn write(self, count: usize, w: &mut Writer<'_>) -> Result<(), EncodeError> {
                match self { $(Self::$kind => vec![$value; count].write(w),)* }
            }

            /// A call that sends `count` elements there and back. One call before it checks that they come back
            /// unchanged.
            pub(crate) fn process(self, subject: &SubjectRef, count: usize) -> Result<One<'_>, String> {
                match self {
                    $(Self::$kind => {
                        let sent = vec![$value; count];
                        if subject.$process(&sent).map_err(said)? != sent {
                            return Err("the result is not the argument".to_owned());
                        }
                        Ok(Box::new(move || {
                            let got = subject.$process(&sent).map_err(said)?;
                            same_len(got.len(), count)
                        }))
                    })*
                }
            }

            /// A one-way call that sends `count` elements.
            pub(crate) fn stream(self, subject: &SubjectRef, count: usize) -> One<'_> {
                match self {
                    $(Self::$kind => {
                        let sent = vec![$value; count];
                        Box::new(move || subject.$stream(&sent).map_err(said))
                    })*
                }
            }
        }
    };
}

/// One call.
pub(crate) type One<'s> = Box<dyn FnMut() -> Result<(), String> + 's>;

kinds! {
    /// `octet`.
    Octet "octet" "octet" 1 process_octets stream_octets 7_u8;
    /// `char`, the paper's simple sequence.
    Char "char" "char" 1 process_chars stream_chars Char(b'x');
    /// `wchar`, in GIOP 1.2.
    WChar "wchar" "wchar" 3 process_wchars stream_wchars 'x';
    /// `boolean`.
    Boolean "boolean" "boolean" 1 process_booleans stream_booleans true;
    /// `short`.
    Short "short" "short" 2 process_shorts stream_shorts -12_i16;
    /// `unsigned short`.
    UShort "ushort" "unsigned short" 2 process_ushorts stream_ushorts 12_u16;
    /// `long`.
    Long "long" "long" 4 process_longs stream_longs -34_567_i32;
    /// `unsigned long`.
    ULong "ulong" "unsigned long" 4 process_ulongs stream_ulongs 34_567_u32;
    /// `long long`.
    LongLong "longlong" "long long" 8 process_longlongs stream_longlongs -1_234_567_890_123_i64;
    /// `unsigned long long`.
    ULongLong "ulonglong" "unsigned long long" 8 process_ulonglongs stream_ulonglongs 1_234_567_890_123_u64;
    /// `float`.
    Float "float" "float" 4 process_floats stream_floats 0.5_f32;
    /// `double`.
    Double "double" "double" 8 process_doubles stream_doubles 2.25_f64;
    /// `string`, of seven characters.
    Text "string" "string" 12 process_strings stream_strings TEXT.to_owned();
    /// An enumeration.
    Enum "enum" "enum" 4 process_enums stream_enums Alert::Warning;
    /// `any`, with a `long` in it.
    Any "any" "any" 8 process_anys stream_anys Any::from_value(&34_567_i32).unwrap_or_else(|_| Any::empty());
    /// The paper's ComplexStruct.
    Struct "struct" "ComplexStruct" 40 process_structs stream_structs element();
}

/// Twelve octets with its length and terminating null.
const TEXT: &str = "contact";

const _: () = assert!(ElementKind::Struct.size() == STRUCT_SIZE);

impl ElementKind {
    /// The kind of this name.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// The number of elements that fit into `octets`; at least one.
    #[must_use]
    pub fn count(self, octets: usize) -> usize {
        (octets / self.size()).max(1)
    }
}

fn said(error: SystemException) -> String {
    error.to_string()
}

fn same_len(got: usize, sent: usize) -> Result<(), String> {
    if got == sent {
        return Ok(());
    }
    Err("the result has another length than the argument".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_take_the_octets_that_are_said() {
        for kind in ElementKind::ALL {
            let size = |count: usize| {
                let mut buffer = Vec::new();
                kind.write(count, &mut Writer::new(&mut buffer))
                    .expect("in bounds");
                buffer.len()
            };
            assert_eq!(size(22) - size(20), 2 * kind.size(), "{kind:?}");
            assert_eq!(ElementKind::of_word(kind.word()), Some(kind));
        }
    }

    #[test]
    fn at_least_one_element_is_sent() {
        assert_eq!(ElementKind::Struct.count(1), 1);
        assert_eq!(ElementKind::Struct.count(119), 2);
        assert_eq!(ElementKind::Octet.count(119), 119);
    }
}
