//! Byte order of CDR octets (CORBA 3.3 part 2, clause 9.3.1).

/// Which end of a multi-octet value comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Most significant octet first; flag value 0.
    Big,
    /// Least significant octet first; flag value 1.
    Little,
}

impl ByteOrder {
    /// The order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "little") {
        Self::Little
    } else {
        Self::Big
    };

    /// The order meant by a byte-order flag: 0 is big, 1 little, else `None`.
    #[must_use]
    pub const fn from_flag(flag: u8) -> Option<Self> {
        match flag {
            0 => Some(Self::Big),
            1 => Some(Self::Little),
            _ => None,
        }
    }

    /// The flag octet that announces this order.
    #[must_use]
    pub const fn flag(self) -> u8 {
        match self {
            Self::Big => 0,
            Self::Little => 1,
        }
    }

    /// Whether values can be copied without swapping.
    #[must_use]
    #[inline]
    pub const fn is_native(self) -> bool {
        matches!(
            (self, Self::NATIVE),
            (Self::Big, Self::Big) | (Self::Little, Self::Little)
        )
    }

    /// The other order.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Big => Self::Little,
            Self::Little => Self::Big,
        }
    }
}
