//! Stores that are no store of this channel.

use super::*;

/// A file that goes with the test.
fn file(name: &str) -> std::path::PathBuf {
    let name = format!("deckwatch-channel-{name}-{}", std::process::id());
    std::env::temp_dir().join(name)
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
fn the_store_of_another_service_is_refused_and_left_as_it_is() {
    const OTHER: TableDefinition<'_, u64, u64> = TableDefinition::new("other");
    let path = file("other");
    let fill = |write: &WriteTransaction| {
        write.open_table(OTHER)?;
        Ok(())
    };
    drop(deckwatch_store::Store::open(&path, &fill).unwrap());
    let refused = ChannelStore::open(&path);
    assert!(matches!(refused, Err(ChannelStoreError::Damaged(_))));
    let store = deckwatch_store::Store::open(&path, &fill).unwrap();
    let tables = store.look(|read| Ok::<_, redb::Error>(read.list_tables()?.count()));
    assert_eq!(tables.unwrap(), 1);
    drop(store);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_row_that_is_no_record_is_reported() {
    let store = ChannelStore::in_memory().unwrap();
    let rows = [(7, Some(&[1_u8, 2, 3][..]))];
    store.put(rows.into_iter()).unwrap();
    let damaged = store.proxies().unwrap_err().to_string();
    assert_eq!(damaged, "the store is damaged: a proxy cannot be read");
}
