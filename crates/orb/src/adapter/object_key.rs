//! Object keys of this ORB. Peers treat them as opaque; only [`ObjectKey::parse`] reads them.
//!
//! * a transient object: the ORB's incarnation, slot and generation. Found without a search; stale in every later incarnation;
//! * an object named by its adapter's path and its object id: persistent, or bound to an incarnation;
//! * anything else is a plain key, such as the `NameService` of a `corbaloc:`.

use crate::SlotKey;

/// What an object key says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKey<'k> {
    /// An active object of this or an earlier incarnation.
    Transient {
        /// The life of the ORB that made it.
        incarnation: u64,
        /// Where it is.
        slot: SlotKey,
    },
    /// An object of a transient adapter, by id.
    TransientNamed {
        /// The life of the ORB that made it.
        incarnation: u64,
        /// Names of the adapters below the root, joined by `/`.
        path: &'k [u8],
        /// Id within the adapter.
        id: &'k [u8],
    },
    /// An object of a persistent adapter, by id.
    Persistent {
        /// Names of the adapters below the root, joined by `/`.
        path: &'k [u8],
        /// Id within the adapter.
        id: &'k [u8],
    },
    /// A key that somebody chose.
    Plain(&'k [u8]),
}

const MAGIC: [u8; 3] = [0xdc, b'D', b'W'];
const TRANSIENT: u8 = b'T';
const TRANSIENT_NAMED: u8 = b'I';
const PERSISTENT: u8 = b'P';

impl<'k> ObjectKey<'k> {
    /// Reads a key. What is not of our form is a plain key.
    #[must_use]
    pub fn parse(octets: &'k [u8]) -> Self {
        Self::parse_own(octets).unwrap_or(Self::Plain(octets))
    }

    fn parse_own(octets: &'k [u8]) -> Option<Self> {
        let (kind, rest) = octets.strip_prefix(&MAGIC)?.split_first()?;
        match *kind {
            TRANSIENT => {
                let (incarnation, rest) = rest.split_first_chunk()?;
                let (slot, generation) = rest.split_first_chunk()?;
                let generation = u32::from_be_bytes(generation.try_into().ok()?);
                let slot = SlotKey {
                    slot: u32::from_be_bytes(*slot),
                    generation,
                };
                Some(Self::Transient {
                    incarnation: u64::from_be_bytes(*incarnation),
                    slot,
                })
            }
            TRANSIENT_NAMED => {
                let (incarnation, rest) = rest.split_first_chunk()?;
                let (path, id) = split_path(rest)?;
                Some(Self::TransientNamed {
                    incarnation: u64::from_be_bytes(*incarnation),
                    path,
                    id,
                })
            }
            PERSISTENT => {
                let (path, id) = split_path(rest)?;
                Some(Self::Persistent { path, id })
            }
            _ => None,
        }
    }

    /// The octets that travel.
    #[must_use]
    pub fn to_octets(self) -> Vec<u8> {
        let mut octets = MAGIC.to_vec();
        match self {
            Self::Transient { incarnation, slot } => {
                octets.push(TRANSIENT);
                octets.extend(incarnation.to_be_bytes());
                octets.extend(slot.slot.to_be_bytes());
                octets.extend(slot.generation.to_be_bytes());
            }
            Self::TransientNamed {
                incarnation,
                path,
                id,
            } => {
                octets.push(TRANSIENT_NAMED);
                octets.extend(incarnation.to_be_bytes());
                write_path(&mut octets, path, id);
            }
            Self::Persistent { path, id } => {
                octets.push(PERSISTENT);
                write_path(&mut octets, path, id);
            }
            Self::Plain(octets) => return octets.to_vec(),
        }
        octets
    }
}

fn split_path(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = octets.split_first_chunk()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))
}

fn write_path(octets: &mut Vec<u8>, path: &[u8], id: &[u8]) {
    let len = u16::try_from(path.len()).expect("adapter paths are bounded when adapters are made");
    octets.extend(len.to_be_bytes());
    octets.extend(path);
    octets.extend(id);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_key_reads_back_as_it_was_written() {
        let slot = SlotKey {
            slot: 7,
            generation: 9,
        };
        let keys = [
            ObjectKey::Transient {
                incarnation: 1 << 60,
                slot,
            },
            ObjectKey::TransientNamed {
                incarnation: 5,
                path: b"a/b",
                id: b"\0id",
            },
            ObjectKey::Persistent {
                path: b"names",
                id: b"",
            },
            ObjectKey::Plain(b"NameService"),
        ];
        for key in keys {
            assert_eq!(ObjectKey::parse(&key.to_octets()), key);
        }
    }

    #[test]
    fn a_cut_key_is_a_plain_key_and_never_another_object() {
        let slot = SlotKey {
            slot: 7,
            generation: 9,
        };
        let octets = ObjectKey::Transient {
            incarnation: 3,
            slot,
        }
        .to_octets();
        for end in 0..octets.len() {
            assert_eq!(
                ObjectKey::parse(&octets[..end]),
                ObjectKey::Plain(&octets[..end])
            );
        }
        let octets = ObjectKey::Persistent {
            path: b"names",
            id: b"x",
        }
        .to_octets();
        assert_eq!(
            ObjectKey::parse(&octets[..8]),
            ObjectKey::Plain(&octets[..8])
        );
    }
}
