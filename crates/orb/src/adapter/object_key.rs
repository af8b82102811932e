//! Object keys of this ORB. They are opaque to peers; only [`ObjectKey::parse`] reads them. There are four forms:
//!
//! * an active transient object: the ORB's incarnation, slot and generation, found without a search. Its adapter and id
//!   follow, for the case that the object has been activated again. Stale in every later incarnation;
//! * a transient object by its adapter (slot and generation) and its id: stale when the adapter is destroyed;
//! * a persistent object by its adapter's path and its id;
//! * anything else is a plain key, such as the `NameService` of a `corbaloc:`.

use crate::SlotKey;

/// The parts of an object key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKey<'k> {
    /// An active object of this or an earlier incarnation.
    Transient {
        /// The incarnation of the ORB that made it.
        incarnation: u64,
        /// The slot of the object.
        slot: SlotKey,
        /// The slot of its adapter.
        adapter: SlotKey,
        /// Id within the adapter.
        id: &'k [u8],
    },
    /// An object of a transient adapter, by id.
    TransientNamed {
        /// The incarnation of the ORB that made it.
        incarnation: u64,
        /// The slot of its adapter.
        adapter: SlotKey,
        /// Id within the adapter.
        id: &'k [u8],
    },
    /// An object of a persistent adapter, by id.
    Persistent {
        /// Names of the adapters below the root, each but the first after a zero octet.
        path: &'k [u8],
        /// Id within the adapter.
        id: &'k [u8],
    },
    /// A key that the application chose.
    Plain(&'k [u8]),
}

const MAGIC: [u8; 3] = [0xdc, b'D', b'W'];
const TRANSIENT: u8 = b'T';
const TRANSIENT_NAMED: u8 = b'I';
const PERSISTENT: u8 = b'P';

impl<'k> ObjectKey<'k> {
    /// Reads a key. A key of no other form is a plain key.
    #[must_use]
    pub fn parse(octets: &'k [u8]) -> Self {
        Self::parse_own(octets).unwrap_or(Self::Plain(octets))
    }

    fn parse_own(octets: &'k [u8]) -> Option<Self> {
        let (kind, rest) = octets.strip_prefix(&MAGIC)?.split_first()?;
        match *kind {
            TRANSIENT => {
                let (incarnation, rest) = split_u64(rest)?;
                let (slot, rest) = split_slot(rest)?;
                let (adapter, id) = split_slot(rest)?;
                Some(Self::Transient {
                    incarnation,
                    slot,
                    adapter,
                    id,
                })
            }
            TRANSIENT_NAMED => {
                let (incarnation, rest) = split_u64(rest)?;
                let (adapter, id) = split_slot(rest)?;
                Some(Self::TransientNamed {
                    incarnation,
                    adapter,
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

    /// The slot of a key that is an [`ObjectKey::Transient`] of this incarnation.
    #[inline]
    pub(super) fn slot_in(octets: &[u8], incarnation: u64) -> Option<SlotKey> {
        let (head, rest) = octets.split_first_chunk::<12>()?;
        let (slot, _) = split_slot(rest)?;
        let is_whole = rest.len() >= 2 * size_of::<SlotKey>();
        let [a, b, c, kind, its_incarnation @ ..] = *head;
        let is_it = [a, b, c] == MAGIC
            && kind == TRANSIENT
            && u64::from_be_bytes(its_incarnation) == incarnation;
        (is_whole && is_it).then_some(slot)
    }

    /// The octets of the key.
    #[must_use]
    pub fn to_octets(self) -> Vec<u8> {
        let mut octets = MAGIC.to_vec();
        match self {
            Self::Transient {
                incarnation,
                slot,
                adapter,
                id,
            } => {
                octets.push(TRANSIENT);
                octets.extend(incarnation.to_be_bytes());
                write_slot(&mut octets, slot);
                write_slot(&mut octets, adapter);
                octets.extend(id);
            }
            Self::TransientNamed {
                incarnation,
                adapter,
                id,
            } => {
                octets.push(TRANSIENT_NAMED);
                octets.extend(incarnation.to_be_bytes());
                write_slot(&mut octets, adapter);
                octets.extend(id);
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

fn split_u64(octets: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = octets.split_first_chunk()?;
    Some((u64::from_be_bytes(*number), rest))
}

fn split_slot(octets: &[u8]) -> Option<(SlotKey, &[u8])> {
    let (slot, rest) = octets.split_first_chunk()?;
    let (generation, rest) = rest.split_first_chunk()?;
    let key = SlotKey {
        slot: u32::from_be_bytes(*slot),
        generation: u32::from_be_bytes(*generation),
    };
    Some((key, rest))
}

fn write_slot(octets: &mut Vec<u8>, key: SlotKey) {
    octets.extend(key.slot.to_be_bytes());
    octets.extend(key.generation.to_be_bytes());
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

    const SLOT: SlotKey = SlotKey {
        slot: 7,
        generation: 9,
    };
    const ADAPTER: SlotKey = SlotKey {
        slot: 1,
        generation: 0,
    };

    #[test]
    fn every_kind_of_key_reads_back_as_it_was_written() {
        let keys = [
            ObjectKey::Transient {
                incarnation: 1 << 60,
                slot: SLOT,
                adapter: ADAPTER,
                id: b"id",
            },
            ObjectKey::TransientNamed {
                incarnation: 5,
                adapter: ADAPTER,
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
        let keys = [
            ObjectKey::Transient {
                incarnation: 3,
                slot: SLOT,
                adapter: ADAPTER,
                id: b"",
            },
            ObjectKey::TransientNamed {
                incarnation: 3,
                adapter: ADAPTER,
                id: b"",
            },
            ObjectKey::Persistent {
                path: b"names",
                id: b"",
            },
        ];
        for key in keys {
            let octets = key.to_octets();
            let is_slot = matches!(key, ObjectKey::Transient { .. });
            let slot = ObjectKey::slot_in(&octets, 3);
            assert_eq!(slot, is_slot.then_some(SLOT));
            assert_eq!(ObjectKey::slot_in(&octets, 4), None);
            for end in 0..octets.len() {
                assert_eq!(ObjectKey::slot_in(&octets[..end], 3), None);
                assert_eq!(
                    ObjectKey::parse(&octets[..end]),
                    ObjectKey::Plain(&octets[..end])
                );
            }
        }
    }
}
