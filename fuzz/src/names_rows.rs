//! The rows of a naming service's store, and the lines of its export: valid ones, and one lie in each.
//!
//! A row with a lie is not read: no name answers with what was not written under it. An export with a line too few or
//! too many is refused, and any other lie in it is refused with its line or makes a store that is sound.

use deckwatch_naming::store::rows::{BindingRow, ContextRow, Target, Whole};
use deckwatch_naming::store::{ImportError, Into, ROOT, Store, StoreError};
use deckwatch_store::sum::Tally;

use crate::choices::Choices;

const IDS: &[&str] = &[
    "",
    "a",
    "b",
    "ab",
    "fleet",
    "na\u{efef}v",
    "\"",
    "0123456789abcdef0123456789abcdef",
];
const KINDS: &[&str] = &["", "a", "b", "ship"];
const MAKERS: &[&str] = &["", "unknown", "uid 7", "cert:rts.ship", "10.1.2.3"];
const IORS: &[&str] = &[
    "IOR:000000000000000100000000000000000000000000000000",
    "IOR:010000000100000000000000000000000",
    "IOR:000000000000000561626364000000000000000000",
];
/// Changes of a store before it is exported.
const CHANGES_MAX: usize = 12;

/// A row of one of the tables, with its key.
#[derive(Clone, Debug, PartialEq)]
enum Row {
    Binding((u64, &'static str, &'static str), BindingRow),
    Context(u64, ContextRow),
    Whole(Whole),
}

impl Row {
    fn of(choices: &mut Choices<'_>) -> Self {
        let tally = |choices: &mut Choices<'_>| Tally {
            count: u64::from(choices.octet()),
            sum: u64::from(choices.long()),
        };
        match choices.octet() % 4 {
            0 => Self::Whole(Whole {
                next_context: u64::from(choices.octet()),
                contexts: tally(choices),
                bindings: u64::from(choices.octet()),
            }),
            1 => {
                let row = ContextRow {
                    maker: (*choices.one(MAKERS)).to_owned(),
                    made_s: u64::from(choices.long()),
                    was_bound: choices.octet() & 1 != 0,
                    bindings: tally(choices),
                };
                Self::Context(u64::from(choices.octet() % 4), row)
            }
            _ => {
                let key = (
                    u64::from(choices.octet() % 4),
                    *choices.one(IDS),
                    *choices.one(KINDS),
                );
                let ior = (*choices.one(IORS)).to_owned();
                let target = match choices.octet() % 3 {
                    0 => Target::Context(u64::from(choices.octet())),
                    1 => Target::ForeignContext(ior),
                    _ => Target::Object(ior),
                };
                let maker = (*choices.one(MAKERS)).to_owned();
                Self::Binding(key, BindingRow { maker, target })
            }
        }
    }

    fn write(&self) -> Vec<u8> {
        match self {
            Self::Binding(key, row) => row.write(*key).0,
            Self::Context(number, row) => row.write(*number).0,
            Self::Whole(row) => row.write(),
        }
    }

    /// Reads octets as the row with this one's key.
    fn read(&self, octets: &[u8]) -> Option<Self> {
        match self {
            Self::Binding(key, _) => {
                BindingRow::parse(*key, octets).map(|(row, _)| Self::Binding(*key, row))
            }
            Self::Context(number, _) => {
                ContextRow::parse(*number, octets).map(|(row, _)| Self::Context(*number, row))
            }
            Self::Whole(_) => Whole::parse(octets).map(Self::Whole),
        }
    }

    fn has_key_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Binding(one, _), Self::Binding(two, _)) => one == two,
            (Self::Context(one, _), Self::Context(two, _)) => one == two,
            (Self::Whole(_), Self::Whole(_)) => true,
            _ => false,
        }
    }
}

/// Writes the row that these octets make, with one lie, and reads it.
///
/// # Panics
/// Where a promise is broken.
pub fn play_row(octets: &[u8]) {
    let mut choices = Choices::new(octets);
    let row = Row::of(&mut choices);
    let mut written = row.write();
    assert_eq!(row.read(&written).as_ref(), Some(&row), "a sound row");
    let place = choices.below(written.len());
    let lie = choices.octet();
    let octet = choices.octet();
    match lie % 6 {
        0 => written[place] ^= octet.max(1),
        1 => written.truncate(place),
        2 => written.insert(place, octet),
        3 => {
            written.remove(place);
        }
        other => {
            // Another row stands under this one's key; or its end alone does.
            let another = Row::of(&mut choices);
            let its = another.write();
            let is_whole = other == 4;
            let end = if is_whole {
                its.len()
            } else {
                its.len().min(written.len()).min(8)
            };
            let is_same = row.has_key_of(&another) && (is_whole || row == another);
            if is_whole {
                written.clear();
            }
            written.truncate(written.len().saturating_sub(end));
            written.extend(&its[its.len() - end..]);
            if is_same {
                assert_eq!(row.read(&written), Some(another));
                return;
            }
        }
    }
    assert_eq!(row.read(&written), None, "a lie is read");
}

/// A store that these choices made.
fn store(choices: &mut Choices<'_>) -> Store {
    let store = Store::in_memory().expect("memory");
    for _ in 0..choices.below(CHANGES_MAX) {
        let contexts = store.contexts().expect("memory");
        let within = *choices.one(&contexts);
        let (id, kind) = (*choices.one(IDS), *choices.one(KINDS));
        let maker = *choices.one(MAKERS);
        let ior = (*choices.one(&IORS[..1])).to_owned();
        let bind = |target| {
            let maker = maker.to_owned();
            store.bind(within, id, kind, &BindingRow { maker, target }, false)
        };
        let done = match choices.octet() % 6 {
            0 | 1 => store.bind_new_context(within, id, kind, maker).map(drop),
            2 => store.create_context(maker, &|_| false).map(drop),
            3 => bind(Target::ForeignContext(ior)),
            4 => store.unbind(within, id, kind).map(drop),
            _ => bind(Target::Object(ior)),
        };
        assert!(
            matches!(done, Ok(()) | Err(StoreError::AlreadyBound)),
            "{done:?}"
        );
    }
    store
}

fn exported(store: &Store) -> Vec<u8> {
    let mut text = Vec::new();
    store.export(&mut text).expect("a sound store");
    text
}

fn imported(text: &[u8]) -> Result<Store, ImportError> {
    let store = Store::in_memory().expect("memory");
    store.import(text, Into::Empty)?;
    assert!(store.contexts().expect("memory").contains(&ROOT));
    Ok(store)
}

/// Exports the store that these octets make, and imports it with one lie.
///
/// # Panics
/// Where a promise is broken.
pub fn play_lines(octets: &[u8]) {
    let mut choices = Choices::new(octets);
    let text = exported(&store(&mut choices));
    let again = imported(&text).expect("its own lines");
    assert_eq!(
        exported(&again),
        text,
        "what was exported is what is imported"
    );
    let mut lines: Vec<&[u8]> = text.split_inclusive(|octet| *octet == b'\n').collect();
    let at = choices.below(lines.len());
    let lie = choices.octet();
    let lied = match lie % 5 {
        0 => {
            lines.remove(at);
            lines.concat()
        }
        1 => {
            lines.insert(at, lines[at]);
            lines.concat()
        }
        2 => {
            let other = choices.below(lines.len());
            lines.swap(at, other);
            lines.concat()
        }
        // The last line may have no end.
        3 => text[..choices.below(text.len() - 1)].to_vec(),
        _ => {
            let mut text = text.clone();
            let place = choices.below(text.len());
            text[place] = choices.octet();
            text
        }
    };
    match imported(&lied) {
        Ok(store) => {
            assert!(
                !matches!(lie % 5, 0 | 1 | 3),
                "a line is missing, or too many"
            );
            let text = exported(&store);
            let again = imported(&text).expect("its own lines");
            assert_eq!(exported(&again), text, "an import is sound");
        }
        // A line end that was put in makes a line more, and the end of the file is behind the last one.
        Err(ImportError::Line { line, fault }) => {
            assert!((1..=lines.len() + 2).contains(&line) && !fault.is_empty());
        }
        Err(_) => assert!(lie % 5 == 4, "the lie has its line"),
    }
}
