//! Damaged stores. A name is answered rightly or the store does not open; never is a name missing or another's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use deckwatch_store::redb::{TableDefinition, WriteTransaction};
use deckwatch_testkit::damage::{Random, damage};

use super::super::rows::{BINDINGS, CONTEXTS, ContextRow, UNKNOWN, WHOLE, Whole};
use super::*;

/// Names of a store, with what they are bound to.
type Names = BTreeMap<(u64, String), Target>;

const CONTEXTS_COUNT: u64 = 20;
const NAMES_COUNT: u64 = 2_000;

fn target(number: u64) -> Target {
    object(&format!("IOR:{number:064x}"))
}

/// Fills a store in one transaction, then changes names one at a time. The last changes are those that a database that
/// goes back to an older state forgets.
fn filled(path: &Path) -> (Store, Names) {
    let store = Store::open(path).unwrap();
    let mut names = Names::new();
    store
        .change(|ledger, _| {
            for context in 1..=CONTEXTS_COUNT {
                assert_eq!(add_context(ledger, Room::OF_SERVICE, "")?, context);
                let (id, target) = (format!("context-{context}"), Target::Context(context));
                ledger.set_binding((ROOT, &id, ""), Some(&binding(&target)))?;
                names.insert((ROOT, id), target);
            }
            for number in 0..NAMES_COUNT {
                let key = (1 + number % CONTEXTS_COUNT, format!("name-{number:05}"));
                let bound = binding(&target(number));
                ledger.set_binding((key.0, &key.1, ""), Some(&bound))?;
                names.insert(key, bound.target);
            }
            Ok::<_, StoreError>(())
        })
        .unwrap();
    for number in 0..10 {
        let context = 1 + number % CONTEXTS_COUNT;
        let (again, late) = (format!("name-{number:05}"), format!("late-{number:05}"));
        let (one, other) = (target(number + 500_000), target(number + 600_000));
        let bind = |id: &str, target: &Target, replace| {
            store.bind(context, id, "", &binding(target), replace)
        };
        bind(&again, &one, true).unwrap();
        bind(&late, &other, false).unwrap();
        names.insert((context, again), one);
        names.insert((context, late), other);
        let gone = (
            1 + (100 + number) % CONTEXTS_COUNT,
            format!("name-{:05}", 100 + number),
        );
        assert!(store.unbind(gone.0, &gone.1, "").unwrap());
        names.remove(&gone);
    }
    (store, names)
}

/// Panics unless a store has exactly these names, each with its target.
fn compare(store: &Store, names: &Names, seed: &str) {
    for ((context, id), target) in names {
        let found = store.lookup(*context, id, "");
        assert_eq!(
            found.unwrap().as_ref(),
            Some(target),
            "{seed}: {context} {id}"
        );
    }
    let listed: usize = (0..=CONTEXTS_COUNT)
        .map(|context| store.list(context, None, usize::MAX).unwrap().len())
        .sum();
    assert_eq!(listed, names.len(), "{seed}");
    let numbers: Vec<u64> = (0..=CONTEXTS_COUNT).collect();
    assert_eq!(store.contexts().unwrap(), numbers, "{seed}");
}

#[test]
fn a_damaged_store_is_refused_or_answers_every_name_rightly() {
    let folder = folder("damaged");
    let path = folder.join("names.redb");
    let earlier = {
        let earlier = folder.join("earlier.redb");
        drop(filled(&earlier));
        std::fs::read(&earlier).unwrap()
    };
    let (store, names) = filled(&path);
    // As a process that was killed leaves it, and as one that ended leaves it.
    let killed = std::fs::read(&path).unwrap();
    compare(&store, &names, "undamaged");
    drop(store);
    let closed = std::fs::read(&path).unwrap();
    let (mut refused, mut answered) = (0, 0);
    for seed in 0..300 {
        let mut random = Random(seed);
        let whole = if seed % 2 == 0 { &killed } else { &closed };
        let mut octets = whole.clone();
        let how = damage(&mut octets, &earlier, &mut random);
        std::fs::write(&path, &octets).unwrap();
        match Store::open(&path) {
            Ok(store) => {
                compare(&store, &names, &format!("seed {seed}, {how}"));
                answered += 1;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    println!("{refused} damaged stores were refused, {answered} answered every name rightly");
    assert!(refused > 50 && answered > 50, "{refused} {answered}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// The header of the database has a slot for each of its two states.
#[test]
fn a_store_whose_newer_state_is_damaged_still_has_the_last_change() {
    let folder = folder("slots");
    let path = folder.join("names.redb");
    let (store, names) = filled(&path);
    let killed = std::fs::read(&path).unwrap();
    drop(store);
    // Behind the version of its form, which has the same value in both.
    for slot in [65..192, 193..320] {
        let mut octets = killed.clone();
        octets[slot.clone()].fill(0);
        std::fs::write(&path, &octets).unwrap();
        let store = Store::open(&path).unwrap();
        compare(&store, &names, &format!("slot {slot:?}"));
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Changes rows behind the back of the store. Returns its file.
fn changed_behind(name: &str, change: impl FnOnce(&WriteTransaction)) -> PathBuf {
    let path = folder(name).join("names.redb");
    let store = Store::open(&path).unwrap();
    let inner = store.bind_new_context(ROOT, "fleet", "", "").unwrap();
    for id in ["a", "b", "c"] {
        let bound = binding(&object(&format!("IOR:{id}")));
        store.bind(inner, id, "ship", &bound, false).unwrap();
    }
    store
        .database
        .change(|write| {
            change(write);
            Ok::<_, StoreError>(())
        })
        .unwrap();
    path
}

fn found(path: &Path) -> Vec<Damage> {
    let refused = Store::open(path).expect_err("a damaged store");
    let (store, report) = Store::examine(path).unwrap();
    assert_eq!(report.damaged, report.damages.len() as u64);
    match refused {
        StoreError::Unsound(other) => assert_eq!(other.damages, report.damages),
        other => panic!("{other}"),
    }
    drop(store);
    report.damages
}

#[test]
fn a_damaged_row_is_named_and_is_neither_missing_nor_another() {
    let path = changed_behind("row", |write| {
        let mut table = write.open_table(BINDINGS).unwrap();
        let row = table
            .get((1, "a", "ship"))
            .unwrap()
            .unwrap()
            .value()
            .to_vec();
        table.insert((1, "b", "ship"), row.as_slice()).unwrap();
    });
    let (store, report) = Store::examine(&path).unwrap();
    let damage = Damage::binding((1, "b", "ship"));
    assert_eq!(report.damages, std::slice::from_ref(&damage));
    assert_eq!(
        damage.to_string(),
        "the name `b.ship` in context 1 is damaged"
    );
    let is_damaged = |error: StoreError| matches!(error, StoreError::Damaged(of) if of == damage);
    assert!(is_damaged(store.lookup(1, "b", "ship").unwrap_err()));
    assert!(is_damaged(store.list(1, None, 9).unwrap_err()));
    assert!(is_damaged(store.unbind(1, "b", "ship").unwrap_err()));
    let bound = binding(&object("IOR:x"));
    assert!(is_damaged(
        store.bind(1, "b", "ship", &bound, true).unwrap_err()
    ));
    assert_eq!(store.lookup(1, "a", "ship").unwrap(), Some(object("IOR:a")));
    drop(store);
    assert_eq!(found(&path), [damage]);
}

#[test]
fn a_row_with_an_inverted_bit_is_named_and_all_others_are_exported() {
    let folder = folder("bits");
    let path = folder.join("names.redb");
    let (store, names) = filled(&path);
    let whole = std::fs::read(&path).unwrap();
    drop(store);
    let mut random = Random(5);
    for _ in 0..20 {
        let number = 200 + random.next(1_000);
        let name = format!("name-{number:05}");
        // No other part of a page has these octets. Pages of earlier states may have them, too.
        let bound = format!("{number:064x}");
        let (place, bit) = (random.next(64), 1 << random.next(7));
        let mut octets = whole.clone();
        for at in 0..octets.len() - 64 {
            if whole[at..].starts_with(bound.as_bytes()) {
                octets[at + place] ^= bit;
            }
        }
        std::fs::write(&path, &octets).unwrap();
        assert!(Store::open(&path).is_err());
        let (store, report) = Store::examine(&path).unwrap();
        let context = 1 + number as u64 % CONTEXTS_COUNT;
        let damage = Damage::binding((context, &name, ""));
        assert_eq!(report.damages, [damage, Damage::Pages]);
        let exported = store.export(&mut Vec::new()).unwrap();
        assert_eq!(exported.bindings, names.len() as u64 - 1);
        drop(store);
        assert!(std::fs::read(&path).unwrap() == octets);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_row_whose_key_lies_about_its_context_costs_no_other_row() {
    let folder = folder("keys");
    let path = folder.join("names.redb");
    let (store, names) = filled(&path);
    let whole = std::fs::read(&path).unwrap();
    drop(store);
    let mut random = Random(7);
    for _ in 0..20 {
        let number = 200 + random.next(1_000);
        let context = 1 + number as u64 % CONTEXTS_COUNT;
        let mut key = context.to_le_bytes().to_vec();
        key.extend(format!("name-{number:05}").bytes());
        let (place, bit) = (random.next(8), 1 << random.next(8));
        let mut octets = whole.clone();
        for at in 0..octets.len() - key.len() {
            if whole[at..].starts_with(&key) {
                octets[at + place] ^= bit;
            }
        }
        assert!(octets != whole);
        std::fs::write(&path, &octets).unwrap();
        let (store, report) = Store::examine(&path).unwrap();
        assert!(report.damages.contains(&Damage::Pages));
        let exported = store.export(&mut Vec::new()).unwrap();
        let lost = names.len() as u64 - exported.bindings;
        assert_eq!(
            lost, 1,
            "{number}: octet {place}, bit {bit}: {:?}",
            report.damages
        );
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_name_that_vanished_or_came_back_is_seen() {
    let gone = changed_behind("gone", |write| {
        let mut table = write.open_table(BINDINGS).unwrap();
        table.remove((1, "b", "ship")).unwrap();
    });
    let (written, found_count) = (3, 2);
    assert_eq!(
        found(&gone),
        [
            Damage::Names {
                context: 1,
                written,
                found: found_count
            },
            Damage::Bindings {
                written: 4,
                found: 3
            }
        ]
    );
    let older = changed_behind("older", |write| {
        let mut table = write.open_table(BINDINGS).unwrap();
        let (row, _) = binding(&object("IOR:older")).write((1, "b", "ship"));
        table.insert((1, "b", "ship"), row.as_slice()).unwrap();
    });
    let found = found(&older);
    let written = 3;
    assert_eq!(
        found,
        [Damage::Names {
            context: 1,
            written,
            found: written
        }]
    );
    assert_eq!(
        found[0].to_string(),
        "a name in context 1 is not the one that was written last"
    );
}

#[test]
fn contexts_and_counts_that_are_damaged_are_seen() {
    let gone = changed_behind("context", |write| {
        write.open_table(CONTEXTS).unwrap().remove(1).unwrap();
    });
    let damages = found(&gone);
    let of_contexts = Damage::Contexts {
        written: 2,
        found: 1,
    };
    assert!(damages.contains(&of_contexts), "{damages:?}");
    assert!(damages.contains(&Damage::binding((1, "a", "ship"))));
    let damaged = changed_behind("context-row", |write| {
        let mut table = write.open_table(CONTEXTS).unwrap();
        table.insert(1, &b"short"[..]).unwrap();
    });
    assert_eq!(found(&damaged), [Damage::Context(1)]);
    let counts = changed_behind("counts", |write| {
        let mut table = write.open_table(WHOLE).unwrap();
        table.insert(FORMAT, &b"short"[..]).unwrap();
    });
    assert_eq!(found(&counts), [Damage::Whole]);
    // The next number is behind the last context.
    let text = super::exports::exported(&Store::examine(&counts).unwrap().0);
    let head = r#"{"deckwatch_names":1,"contexts":2,"bindings":4,"next_context":2}"#;
    assert_eq!(text.lines().next(), Some(head));
    let next = changed_behind("next", |write| {
        let mut table = write.open_table(WHOLE).unwrap();
        let whole = Whole::parse(table.get(FORMAT).unwrap().unwrap().value()).unwrap();
        let next_context = 1;
        let row = Whole {
            next_context,
            ..whole
        };
        table.insert(FORMAT, row.write().as_slice()).unwrap();
    });
    assert_eq!(found(&next), [Damage::Whole]);
    let older = changed_behind("older-context", |write| {
        let mut table = write.open_table(CONTEXTS).unwrap();
        let row = table.get(1).unwrap().unwrap().value().to_vec();
        let (mut context, _) = ContextRow::parse(1, &row).unwrap();
        context.made_s -= 1;
        table.insert(1, context.write(1).0.as_slice()).unwrap();
    });
    let count = 2;
    let of_contexts = Damage::Contexts {
        written: count,
        found: count,
    };
    assert_eq!(found(&older), [of_contexts]);
}

#[test]
fn each_damage_is_said_in_words() {
    let (context, written) = (7, 3);
    let names = |found| Damage::Names {
        context,
        written,
        found,
    };
    let contexts = |found| Damage::Contexts { written, found };
    let found = 2;
    for (damage, words) in [
        (
            Damage::binding((7, "a", "ship")),
            "the name `a.ship` in context 7 is damaged",
        ),
        (Damage::Context(7), "the row of context 7 is damaged"),
        (
            names(3),
            "a name in context 7 is not the one that was written last",
        ),
        (names(2), "context 7 has 2 names instead of 3"),
        (
            contexts(3),
            "a context is not the one that was written last",
        ),
        (contexts(2), "there are 2 contexts instead of 3"),
        (
            Damage::Bindings { written, found },
            "there are 2 names instead of 3",
        ),
        (
            Damage::Whole,
            "the row with the counts of the store is damaged",
        ),
        (
            Damage::Pages,
            "pages of the file do not match their checksums",
        ),
    ] {
        assert_eq!(damage.to_string(), words);
    }
}

#[test]
fn a_report_has_the_first_damages_and_the_number_of_the_others() {
    let mut report = Report::default();
    assert_eq!(report.to_string(), "");
    report.add(Damage::Context(0));
    assert_eq!(report.to_string(), "the row of context 0 is damaged");
    for number in 1..limits::DAMAGES_MAX as u64 {
        report.add(Damage::Context(number));
    }
    assert_eq!(report.to_string().lines().count(), limits::DAMAGES_MAX);
    report.add(Damage::Whole);
    report.add(Damage::Pages);
    assert_eq!(report.damages.len(), limits::DAMAGES_MAX);
    let text = report.to_string();
    assert_eq!(text.lines().count(), limits::DAMAGES_MAX + 1);
    assert_eq!(text.lines().last(), Some("and 2 more"));
}

#[test]
fn a_store_that_is_in_use_is_refused_and_is_not_damaged() {
    let folder = folder("in-use");
    let path = folder.join("names.redb");
    let store = Store::open(&path).unwrap();
    let again = [
        Store::open(&path).map(drop),
        Store::examine(&path).map(drop),
    ];
    for refused in again {
        let error = refused.expect_err("it is open");
        assert!(error.is_in_use() && !error.is_damage(), "{error}");
    }
    drop(store);
    std::fs::remove_dir_all(folder).unwrap();
    let unsound = StoreError::Unsound(Box::default());
    for error in [StoreError::Damaged(Damage::Whole), unsound] {
        assert!(error.is_damage() && !error.is_in_use(), "{error}");
    }
    assert!(!StoreError::Full.is_damage());
}

#[test]
fn what_is_no_store_is_refused_and_stays_as_it_is() {
    let folder = folder("no-store");
    let path = folder.join("names.redb");
    for content in [&b""[..], b"names", &[0; 8_192]] {
        std::fs::write(&path, content).unwrap();
        assert!(Store::open(&path).is_err());
        assert!(Store::examine(&path).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }
    assert!(Store::open(Path::new("/dev/zero")).is_err());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_store_of_the_first_format_is_converted_once() {
    const OLD_CONTEXTS: TableDefinition<'_, u64, ()> = TableDefinition::new("contexts");
    const OLD_BINDINGS: TableDefinition<'_, (u64, &str, &str), (u8, &[u8])> =
        TableDefinition::new("bindings");
    const OLD_NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
    let folder = folder("first-format");
    let path = folder.join("names.redb");
    let fill = |write: &WriteTransaction, next: Option<u64>| {
        let mut contexts = write.open_table(OLD_CONTEXTS)?;
        for number in [ROOT, 2, 5] {
            contexts.insert(number, ())?;
        }
        let mut bindings = write.open_table(OLD_BINDINGS)?;
        let number = 2_u64.to_be_bytes();
        bindings.insert((ROOT, "fleet", ""), (0, &number[..]))?;
        bindings.insert((2, "other", ""), (1, &b"IOR:01"[..]))?;
        bindings.insert((2, "alpha", "ship"), (2, &b"IOR:02"[..]))?;
        let mut numbers = write.open_table(OLD_NUMBERS)?;
        if let Some(next) = next {
            numbers.insert("next_context", next)?;
        }
        Ok(())
    };
    let of_next =
        |path: &Path, next| deckwatch_store::Store::open(path, &|write| fill(write, next)).unwrap();
    drop(of_next(&path, Some(9)));
    for _ in 0..2 {
        let store = Store::open(&path).unwrap();
        assert_eq!(store.contexts().unwrap(), [ROOT, 2, 5]);
        let lookup = |context, id, kind| store.lookup(context, id, kind).unwrap();
        assert_eq!(lookup(ROOT, "fleet", ""), Some(Target::Context(2)));
        assert_eq!(
            lookup(2, "other", ""),
            Some(Target::ForeignContext("IOR:01".to_owned()))
        );
        assert_eq!(lookup(2, "alpha", "ship"), Some(object("IOR:02")));
    }
    let (store, report) = Store::examine(&path).unwrap();
    let counts = (report.contexts, report.bindings, report.damaged);
    assert_eq!(counts, (3, 3, 0));
    let orphans = store.orphans().unwrap();
    let [orphan] = &orphans[..] else {
        panic!("{orphans:?}");
    };
    assert_eq!((orphan.number, &*orphan.context.maker), (5, UNKNOWN));
    assert!(orphan.context.made_s > 1_700_000_000, "it is made now");
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.create_context("", &never).unwrap().number, 9);
    let without = folder.join("without-next.redb");
    drop(of_next(&without, None));
    let behind = Store::open(&without).unwrap();
    let made = behind.create_context("", &never).unwrap();
    assert_eq!(made.number, 6, "behind the last one");
    // A program of the first format cannot take it for an empty store of its own.
    let tables = store.database.look(|read| {
        let refused = read.open_table(OLD_CONTEXTS).is_err();
        Ok::<_, StoreError>(refused)
    });
    assert!(tables.unwrap());
    drop(store);
    std::fs::remove_dir_all(folder).unwrap();
}
