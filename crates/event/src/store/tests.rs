//! Stores that are no store of this channel, and damaged ones.

use std::collections::BTreeMap;
use std::path::PathBuf;

use deckwatch_store::redb::TableDefinition;
use deckwatch_testkit::damage::{Random, damage};

use super::rows::{FORMAT_NAME, NUMBERS, PROXIES};
use super::*;
use crate::channel_group::ProxyKind;

/// A file that goes with the test.
fn file(name: &str) -> PathBuf {
    let name = format!("deckwatch-channel-{name}-{}", std::process::id());
    std::env::temp_dir().join(name)
}

/// The file as any program may write it.
fn raw(path: &Path) -> deckwatch_store::Store {
    deckwatch_store::Store::open(path, &|_| Ok(())).unwrap()
}

fn record(number: u64) -> ProxyRecord {
    ProxyRecord {
        number,
        kind: ProxyKind::PushSupplier,
        client: format!("IOR:{number:064x}"),
        qos: vec![7; 40],
        is_suspended: number.is_multiple_of(3),
        identity: crate::clients::to_record(None),
    }
}

fn put(store: &ChannelStore, records: &[ProxyRecord]) {
    let rows: Vec<_> = records
        .iter()
        .map(|record| (record.number, encapsulate(record).unwrap()))
        .collect();
    let rows = rows.iter().map(|(number, row)| (*number, Some(&row[..])));
    store.put(rows).unwrap();
}

fn records(numbers: impl IntoIterator<Item = u64>) -> Vec<ProxyRecord> {
    numbers.into_iter().map(record).collect()
}

/// Changes the row of a proxy behind the store's back.
fn tamper(store: &deckwatch_store::Store, number: u64, change: impl FnOnce(Vec<u8>) -> Vec<u8>) {
    let changed = store.change(|write| {
        let mut table = write.open_table(PROXIES)?;
        let row = table.remove(number)?.expect("a row").value().to_vec();
        let row = change(row);
        if !row.is_empty() {
            table.insert(number, row.as_slice())?;
        }
        Ok::<_, redb::Error>(())
    });
    changed.unwrap();
}

#[test]
fn a_channel_keeps_its_port_and_each_life_has_another_number() {
    let path = file("lives");
    let store = ChannelStore::open(&path).unwrap();
    assert_eq!(store.port().unwrap(), None);
    store.keep_port(7_000).unwrap();
    assert_eq!(store.begin(ChannelKind::RealTime).unwrap(), 1);
    drop(store);
    let store = ChannelStore::open(&path).unwrap();
    assert_eq!(store.port().unwrap(), Some(7_000));
    assert_eq!(store.begin(ChannelKind::RealTime).unwrap(), 2);
    let other = store.begin(ChannelKind::Cos);
    assert!(matches!(other, Err(ChannelStoreError::OtherKind)));
    drop(store);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn member_that_takes_over_has_the_records_of_the_former_primary_alone() {
    let store = ChannelStore::in_memory().unwrap();
    assert_eq!(store.begin(ChannelKind::RealTime).unwrap(), 1);
    put(&store, &records([1, 2]));
    let row = encapsulate(&record(3)).unwrap();
    store.take_over(9, &[(3, row)]).unwrap();
    assert_eq!(store.proxies().unwrap(), records([3]));
    assert_eq!(store.begin(ChannelKind::RealTime).unwrap(), 10);
    let other = store.begin(ChannelKind::Cos);
    assert!(matches!(other, Err(ChannelStoreError::OtherKind)));
}

#[test]
fn the_store_of_another_service_is_refused_and_left_as_it_is() {
    const OTHER: TableDefinition<'_, u64, u64> = TableDefinition::new("other");
    let path = file("other");
    let made =
        raw(&path).change(|write| write.open_table(OTHER).map(drop).map_err(redb::Error::from));
    made.unwrap();
    let refused = ChannelStore::open(&path);
    assert!(matches!(refused, Err(ChannelStoreError::Damaged(_))));
    let tables = raw(&path).look(|read| Ok::<_, redb::Error>(read.list_tables()?.count()));
    assert_eq!(tables.unwrap(), 1);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_store_without_the_table_of_its_proxies_is_none() {
    let path = file("no-proxies");
    drop(ChannelStore::open(&path).unwrap());
    let removed = raw(&path).change(|write| Ok::<_, redb::Error>(write.delete_table(PROXIES)?));
    assert!(removed.unwrap(), "it was there");
    let refused = ChannelStore::open(&path).unwrap_err().to_string();
    assert_eq!(refused, "the store is damaged: it is no store of a channel");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn damaged_rows_are_named_and_left_out_and_their_numbers_are_not_given_again() {
    let path = file("rows");
    let store = ChannelStore::open(&path).unwrap();
    assert_eq!(store.begin(ChannelKind::RealTime).unwrap(), 1);
    put(&store, &records(1..=9));
    drop(store);
    let opened = raw(&path);
    tamper(&opened, 2, |mut row| {
        row[20] ^= 1;
        row
    });
    tamper(&opened, 5, |mut row| {
        *row.last_mut().unwrap() ^= 1;
        row
    });
    tamper(&opened, 7, |_| b"short".to_vec());
    drop(opened);
    let store = ChannelStore::open(&path).unwrap();
    assert_eq!(store.damaged_proxies(), [2, 5, 7]);
    assert_eq!(store.begin(ChannelKind::RealTime).unwrap(), 2);
    let whole = records([1, 3, 4, 6, 8, 9]);
    assert_eq!(store.proxies().unwrap(), whole);
    drop(store);
    let store = ChannelStore::open(&path).unwrap();
    assert_eq!(store.damaged_proxies(), [0; 0], "they were told once");
    assert_eq!(store.proxies().unwrap(), whole);
    // A proxy that was left out can be written again, and the count of proxies stays exact.
    put(&store, &records([2]));
    store.put([(9, None)].into_iter()).unwrap();
    drop(store);
    let store = ChannelStore::open(&path).unwrap();
    assert_eq!(store.proxies().unwrap(), records([1, 2, 3, 4, 6, 8]));
    drop(store);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn rows_that_vanished_or_came_back_are_not_served() {
    type Tamper = fn(&deckwatch_store::Store);
    let earlier: Tamper = |opened| {
        let earlier = ProxyRecord {
            is_suspended: true,
            ..record(1)
        };
        let mut row = encapsulate(&earlier).unwrap();
        let key = 1_u64.to_be_bytes();
        deckwatch_store::sum::append("proxies", &[&key], &mut row);
        tamper(opened, 1, |_| row);
    };
    let swapped: Tamper = |opened| {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        tamper(opened, 1, |row| {
            one.clone_from(&row);
            row
        });
        tamper(opened, 2, |row| {
            other.clone_from(&row);
            one
        });
        tamper(opened, 1, |_| other);
    };
    let counts: Tamper = |opened| {
        let changed = opened.change(|write| {
            let mut table = write.open_table(WHOLE)?;
            let mut row = table.remove(rows::FORMAT)?.expect("a row").value().to_vec();
            row[8] ^= 1;
            table.insert(rows::FORMAT, row.as_slice())?;
            Ok::<_, redb::Error>(())
        });
        changed.unwrap();
    };
    let cases: [(&str, Tamper, bool); 4] = [
        (
            "vanished",
            |opened| tamper(opened, 1, |_| Vec::new()),
            false,
        ),
        ("earlier", earlier, false),
        ("swapped", swapped, true),
        ("counts", counts, false),
    ];
    for (name, change, is_served) in cases {
        let path = file(name);
        let store = ChannelStore::open(&path).unwrap();
        store.begin(ChannelKind::RealTime).unwrap();
        put(&store, &records(1..=3));
        drop(store);
        change(&raw(&path));
        match ChannelStore::open(&path) {
            Ok(store) if is_served => {
                assert_eq!(store.damaged_proxies(), [1, 2], "{name}");
                assert_eq!(store.proxies().unwrap(), records([3]), "{name}");
            }
            refused => assert!(
                matches!(refused, Err(ChannelStoreError::Damaged(_))) && !is_served,
                "{name}: {refused:?}"
            ),
        }
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_row_that_is_damaged_while_the_channel_runs_is_not_counted_as_written() {
    let store = ChannelStore::in_memory().unwrap();
    put(&store, &records([7]));
    tamper(&store.database, 7, |_| vec![1, 2, 3]);
    let replaced = store.put([(7, None)].into_iter());
    assert!(matches!(replaced, Err(ChannelStoreError::Damaged(_))));
    put(&store, &records([8]));
}

#[test]
fn a_store_without_checksums_is_converted_and_a_damaged_one_is_not() {
    let path = file("first");
    let all = records([1, 2, 5]);
    let make = |last: &[u8]| {
        let made = raw(&path).change(|write| {
            let mut numbers = write.open_table(NUMBERS)?;
            for (name, number) in [(FORMAT_NAME, 1), ("kind", 2), ("epoch", 6), ("port", 7_001)] {
                numbers.insert(name, number)?;
            }
            let mut proxies = write.open_table(PROXIES)?;
            for record in &all {
                proxies.insert(record.number, encapsulate(record).unwrap().as_slice())?;
            }
            proxies.insert(9, last)?;
            Ok::<_, redb::Error>(())
        });
        made.unwrap();
    };
    make(&[1, 2, 3]);
    let damaged = ChannelStore::open(&path).unwrap_err().to_string();
    assert_eq!(damaged, "the store is damaged: a proxy cannot be read");
    make(&encapsulate(&record(9)).unwrap());
    for life in [7, 8] {
        let store = ChannelStore::open(&path).unwrap();
        assert_eq!(store.port().unwrap(), Some(7_001));
        assert_eq!(store.begin(ChannelKind::RealTime).unwrap(), life);
        assert_eq!(store.proxies().unwrap(), records([1, 2, 5, 9]));
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_damaged_file_is_refused_or_has_each_proxy_as_it_was_written() {
    let path = file("damaged");
    let store = ChannelStore::open(&path).unwrap();
    store.begin(ChannelKind::RealTime).unwrap();
    put(&store, &records(1..=200));
    drop(store);
    let earlier = std::fs::read(&path).unwrap();
    let store = ChannelStore::open(&path).unwrap();
    for number in 0..5 {
        put(&store, &records([300 + number]));
        store.put([(1 + 7 * number, None)].into_iter()).unwrap();
    }
    let mut written: BTreeMap<u64, ProxyRecord> = BTreeMap::new();
    for record in store.proxies().unwrap() {
        written.insert(record.number, record);
    }
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    let (mut refused, mut sound) = (0, 0);
    for seed in 0..40 {
        let mut octets = whole.clone();
        let how = damage(&mut octets, &earlier, &mut Random(seed));
        std::fs::write(&path, &octets).unwrap();
        let Ok(store) = ChannelStore::open(&path) else {
            refused += 1;
            continue;
        };
        sound += 1;
        let found = store.proxies().unwrap();
        let left_out = store.damaged_proxies();
        assert_eq!(found.len() + left_out.len(), written.len(), "{seed}: {how}");
        for record in found {
            assert_eq!(written.get(&record.number), Some(&record), "{seed}: {how}");
        }
    }
    assert!(
        refused > 0 && sound > 0,
        "{refused} refused, {sound} served"
    );
    std::fs::remove_file(path).unwrap();
}
