//! The codec: GIOP version and transmission code sets, which decide the form of characters (CORBA 3.3 part 2, clause
//! 7.10).

/// A GIOP version, as far as it changes the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// GIOP 1.0: no wide characters.
    V1_0,
    /// GIOP 1.1: wide characters of two octets in the message's byte order, wide strings ended by a null.
    V1_1,
    /// GIOP 1.2: wide characters with a length of their own.
    V1_2,
}

impl Version {
    /// The minor number; the major is 1.
    #[must_use]
    pub const fn minor(self) -> u8 {
        match self {
            Self::V1_0 => 0,
            Self::V1_1 => 1,
            Self::V1_2 => 2,
        }
    }

    /// The version of a minor number under major 1.
    #[must_use]
    pub const fn from_minor(minor: u8) -> Option<Self> {
        match minor {
            0 => Some(Self::V1_0),
            1 => Some(Self::V1_1),
            2 => Some(Self::V1_2),
            _ => None,
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "1.{}", self.minor())
    }
}

/// Transmission code set of `char` and `string`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CharSet {
    /// ISO 8859-1, the default without negotiation. OSF registry 0x00010001.
    Latin1,
    /// UTF-8. OSF registry 0x05010001.
    Utf8,
}

/// Transmission code set of `wchar` and `wstring`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WideSet {
    /// UTF-16. OSF registry 0x00010109.
    Utf16,
    /// The peer declares no wide characters. They are not written; any that arrive are read as UTF-16.
    None,
}

/// GIOP version and code sets of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Codec {
    /// GIOP version.
    pub version: Version,
    /// Code set of `string`.
    pub chars: CharSet,
    /// Code set of `wstring`.
    pub wide: WideSet,
}

impl Codec {
    /// GIOP 1.2 with ISO 8859-1 and UTF-16: the default without negotiation.
    pub const DEFAULT: Self = Self {
        version: Version::V1_2,
        chars: CharSet::Latin1,
        wide: WideSet::Utf16,
    };

    /// This codec at another GIOP version.
    #[must_use]
    pub const fn with_version(self, version: Version) -> Self {
        Self { version, ..self }
    }

    /// This codec with another code set of `wstring`.
    #[must_use]
    pub const fn with_wide(self, wide: WideSet) -> Self {
        Self { wide, ..self }
    }

    /// This codec with another code set of `string`.
    #[must_use]
    pub const fn with_chars(self, chars: CharSet) -> Self {
        Self { chars, ..self }
    }
}

impl Default for Codec {
    fn default() -> Self {
        Self::DEFAULT
    }
}
