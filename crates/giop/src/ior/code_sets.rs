//! Code set negotiation (CORBA 3.3 part 2, clause 7.10.2.6).

use super::TaggedComponent;
use super::component_tag;
use super::iiop::encapsulation;
use super::view::encapsulated;
use deckwatch_cdr::{CharSet, DecodeError, EncodeError, Parse, Write};

/// OSF registry number of ISO 8859-1.
pub const ISO_8859_1: u32 = 0x0001_0001;
/// OSF registry number of UTF-8.
pub const UTF_8: u32 = 0x0501_0001;
/// OSF registry number of UTF-16.
pub const UTF_16: u32 = 0x0001_0109;

/// The code sets that a server has for one kind of character.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeSetComponent {
    /// Its native code set.
    pub native: u32,
    /// Its conversion code sets.
    pub conversion: Vec<u32>,
}

/// Content of the code sets component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeSetInfo {
    /// Of `char` and `string`.
    pub chars: CodeSetComponent,
    /// Of `wchar` and `wstring`.
    pub wide: CodeSetComponent,
}

/// The transmission code sets a client chose: content of the code sets service context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeSetContext {
    /// Of `char` and `string`.
    pub chars: u32,
    /// Of `wchar` and `wstring`.
    pub wide: u32,
}

impl CodeSetInfo {
    /// What this ORB offers: UTF-8 as native code set, ISO 8859-1 by conversion, and UTF-16.
    #[must_use]
    pub fn ours() -> Self {
        Self {
            chars: CodeSetComponent {
                native: UTF_8,
                conversion: vec![ISO_8859_1],
            },
            wide: CodeSetComponent {
                native: UTF_16,
                conversion: Vec::new(),
            },
        }
    }

    /// Reads the component's encapsulation.
    ///
    /// # Errors
    /// What is wrong with its octets.
    pub fn from_octets(data: &[u8]) -> Result<Self, DecodeError> {
        let mut r = encapsulated(data)?;
        let mut one = || {
            Ok(CodeSetComponent {
                native: r.read_u32()?,
                conversion: Vec::parse(&mut r)?,
            })
        };
        Ok(Self {
            chars: one()?,
            wide: one()?,
        })
    }

    /// The component for a profile.
    ///
    /// # Errors
    /// [`EncodeError::LengthTooLarge`].
    pub fn to_component(&self) -> Result<TaggedComponent, EncodeError> {
        let data = encapsulation(|w| {
            self.chars.native.write(w)?;
            self.chars.conversion.write(w)?;
            self.wide.native.write(w)?;
            self.wide.conversion.write(w)
        })?;
        Ok(TaggedComponent {
            tag: component_tag::CODE_SETS,
            data,
        })
    }

    /// Whether the server declares a code set for wide characters.
    #[must_use]
    pub fn has_wide(&self) -> bool {
        self.wide.native != 0 || !self.wide.conversion.is_empty()
    }

    /// Returns the code sets to use with this server: UTF-8 where the server has or converts it, else its native ISO
    /// 8859-1. Without a common one, the standard's fallback: UTF-8 and UTF-16, which every server must support; a
    /// server that does not raises an exception. (The standard would prefer a server's native ISO 8859-1 to its
    /// converted UTF-8, and lose characters.)
    ///
    /// With TAO, known by its ORB type, keep the standard's order: when it converts from UTF-8, it silently replaces
    /// letters beyond ASCII with `@`.
    #[must_use]
    pub fn negotiate(&self, orb_type: Option<u32>) -> CodeSetContext {
        let takes = |component: &CodeSetComponent, set| {
            component.native == set || component.conversion.contains(&set)
        };
        let is_latin_tao = orb_type == Some(super::TAO) && self.chars.native == ISO_8859_1;
        let sets = if is_latin_tao {
            [ISO_8859_1, UTF_8]
        } else {
            [UTF_8, ISO_8859_1]
        };
        let common = sets.into_iter().find(|set| takes(&self.chars, *set));
        CodeSetContext {
            chars: common.unwrap_or(UTF_8),
            wide: UTF_16,
        }
    }
}

impl CodeSetContext {
    /// Reads the service context's encapsulation.
    ///
    /// # Errors
    /// What is wrong with its octets.
    pub fn from_octets(data: &[u8]) -> Result<Self, DecodeError> {
        let mut r = encapsulated(data)?;
        Ok(Self {
            chars: r.read_u32()?,
            wide: r.read_u32()?,
        })
    }

    /// The service context's encapsulation.
    #[must_use]
    pub fn to_octets(self) -> [u8; 12] {
        let mut octets = [0; 12];
        let order = deckwatch_cdr::ByteOrder::NATIVE;
        octets[0] = order.flag();
        octets[4..8].copy_from_slice(&self.chars.to_ne_bytes());
        octets[8..].copy_from_slice(&self.wide.to_ne_bytes());
        octets
    }

    /// Returns the code set of `string`, where this ORB supports it and that of `wstring`.
    #[must_use]
    pub const fn char_set(self) -> Option<CharSet> {
        match self {
            Self {
                chars: ISO_8859_1,
                wide: UTF_16 | 0,
            } => Some(CharSet::Latin1),
            Self {
                chars: UTF_8,
                wide: UTF_16 | 0,
            } => Some(CharSet::Utf8),
            _ => None,
        }
    }
}

/// Returns the name of a code set in the OSF registry, for those in use.
#[must_use]
pub const fn code_set_name(set: u32) -> Option<&'static str> {
    Some(match set {
        ISO_8859_1 => "ISO 8859-1",
        0x0001_0002 => "ISO 8859-2",
        0x0001_0005 => "ISO 8859-5",
        0x0001_000F => "ISO 8859-15",
        0x0001_0020 => "ISO 646 (ASCII)",
        0x0001_0100 => "UCS-2 level 1",
        0x0001_0101 => "UCS-2 level 2",
        0x0001_0102 => "UCS-2 level 3",
        0x0001_0104 => "UCS-4 level 1",
        0x0001_0106 => "UCS-4 level 3",
        UTF_16 => "UTF-16",
        UTF_8 => "UTF-8",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn component_and_context_come_back_as_they_were_written() {
        let ours = CodeSetInfo::ours();
        assert_eq!(
            CodeSetInfo::from_octets(&ours.to_component().unwrap().data),
            Ok(ours.clone())
        );
        let context = ours.negotiate(None);
        assert_eq!(
            CodeSetContext::from_octets(&context.to_octets()),
            Ok(context)
        );
        assert_eq!(
            (context.chars, context.wide, context.char_set()),
            (UTF_8, UTF_16, Some(CharSet::Utf8))
        );
    }

    #[test]
    fn a_latin_server_is_spoken_to_in_latin_and_a_strange_one_in_the_fallback() {
        let latin = |chars, wide| CodeSetInfo {
            chars: CodeSetComponent {
                native: chars,
                conversion: Vec::new(),
            },
            wide: CodeSetComponent {
                native: wide,
                conversion: Vec::new(),
            },
        };
        assert_eq!(
            latin(ISO_8859_1, UTF_16).negotiate(None).char_set(),
            Some(CharSet::Latin1)
        );
        assert_eq!(
            latin(ISO_8859_1, 0).negotiate(None).char_set(),
            Some(CharSet::Latin1)
        );
        let fallback = CodeSetContext {
            chars: UTF_8,
            wide: UTF_16,
        };
        assert_eq!(latin(0x0001_0002, UTF_16).negotiate(None), fallback);
        assert_eq!(latin(UTF_8, 0x0001_0100).negotiate(None), fallback);
    }
}
