//! A disk that becomes full, a file that cannot be made, and files that are damaged.

use std::os::unix::fs::PermissionsExt as _;

use deckwatch_testkit::Disk;
use redb::{ReadableTable as _, TableDefinition};

use super::*;

const ROWS: TableDefinition<'_, u64, &str> = TableDefinition::new("rows");

fn fill(write: &WriteTransaction) -> Result<(), redb::Error> {
    write.open_table(ROWS)?;
    Ok(())
}

fn insert(store: &Store, key: u64, value: &str) -> Result<(), redb::Error> {
    store.change(|write| {
        write.open_table(ROWS)?.insert(key, value)?;
        Ok(())
    })
}

fn keys(store: &Store) -> Result<Vec<u64>, redb::Error> {
    store.look(|read| {
        let table = read.open_table(ROWS)?;
        table.iter()?.map(|row| Ok(row?.0.value())).collect()
    })
}

#[test]
fn a_disk_that_was_full_is_written_again_once_it_has_room() {
    let disk = Disk::default();
    let opened = disk.clone();
    let store = Store::on(move || opened.clone(), &fill).unwrap();
    insert(&store, 1, "before").unwrap();
    disk.fill(true);
    for _ in 0..3 {
        assert!(insert(&store, 2, "lost").is_err());
    }
    disk.fill(false);
    insert(&store, 3, "after").unwrap();
    assert_eq!(keys(&store).unwrap(), [1, 3]);
}

/// A folder that goes with the test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("deckwatch-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_store_that_could_not_be_made_leaves_nothing_behind() {
    let folder = folder("no-store");
    let path = folder.join("it.redb");
    // The temporary name of a new store is taken by a directory.
    let beside = beside(&path, "new");
    std::fs::create_dir(&beside).unwrap();
    assert!(Store::open(&path, &fill).is_err());
    assert!(!path.exists());
    std::fs::remove_dir(&beside).unwrap();
    drop(Store::open(&path, &fill).unwrap());
    assert!(!beside.exists());
    // Only its user may read it.
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn rights_of_others_to_an_existing_store_are_taken() {
    let folder = folder("rights");
    let path = folder.join("it.redb");
    assert_eq!(Store::open(&path, &fill).unwrap().rights_taken(), None);
    let open_to_others = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(&path, open_to_others).unwrap();
    drop(Store::examine(&path, &fill).unwrap());
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o644, "what is examined stays as it is");
    let taken = Store::open(&path, &fill).unwrap().rights_taken();
    assert_eq!((taken, mode()), (Some(0o644), 0o600));
    assert_eq!(Store::open(&path, &fill).unwrap().rights_taken(), None);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_damaged_file_is_an_error_and_never_a_panic() {
    let folder = folder("damaged");
    let path = folder.join("it.redb");
    let store = Store::open(&path, &fill).unwrap();
    for key in 0..20 {
        insert(&store, key, &"row ".repeat(20)).unwrap();
    }
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    // The first page holds the header of the database; rows of the table follow somewhere behind.
    let places = (0..320)
        .step_by(5)
        .chain((512..whole.len()).step_by(whole.len() / 128));
    let (mut refused, mut sound) = (0, 0);
    for place in places {
        let mut octets = whole.clone();
        octets[place] ^= 0x55;
        std::fs::write(&path, &octets).unwrap();
        let read = Store::open(&path, &fill).and_then(|store| keys(&store));
        match read {
            Err(_) => refused += 1,
            Ok(_) => sound += 1,
        }
    }
    assert!(refused > 0, "no damage was found; {sound} were read");
    for len in [0, 1, 100, 4096, whole.len() / 2] {
        std::fs::write(&path, &whole[..len]).unwrap();
        let _ = Store::open(&path, &fill); // It may be refused or empty.
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_store_that_is_examined_stays_as_it_is() {
    let folder = folder("examined");
    let path = folder.join("it.redb");
    let store = Store::open(&path, &fill).unwrap();
    insert(&store, 1, "one").unwrap();
    let killed = std::fs::read(&path).unwrap();
    assert!(Store::examine(&path, &fill).is_err(), "it is in use");
    drop(store);
    for whole in [killed, std::fs::read(&path).unwrap()] {
        std::fs::write(&path, &whole).unwrap();
        let store = Store::examine(&path, &fill).unwrap();
        for key in 2..500 {
            insert(&store, key, &"row ".repeat(20)).unwrap();
        }
        assert_eq!(keys(&store).unwrap().len(), 499);
        drop(store);
        assert!(std::fs::read(&path).unwrap() == whole);
    }
    assert!(Store::examine(&folder.join("none"), &fill).is_err());
    assert!(!folder.join("none").exists());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_store_whose_database_panicked_returns_errors_and_is_dropped() {
    let store = Store::in_memory(&fill).unwrap();
    let panicked: Result<(), redb::Error> = store.look(|_| panic!("as the database does"));
    assert!(matches!(panicked, Err(redb::Error::Corrupted(_))));
    assert!(matches!(keys(&store), Err(redb::Error::Corrupted(_))));
    assert!(insert(&store, 1, "one").is_err());
}

/// Inverts bits of one octet of a row, in a copy that a killed process left or in one that was closed.
#[test]
fn the_rows_of_a_damaged_file_are_read_without_the_checksums_of_its_pages() {
    let folder = folder("salvaged");
    let path = folder.join("it.redb");
    let store = Store::open(&path, &fill).unwrap();
    for key in 0..200 {
        insert(&store, key, &format!("row number {key:03}")).unwrap();
    }
    assert!(Store::salvage(&path).is_err(), "it is in use");
    let killed = std::fs::read(&path).unwrap();
    drop(store);
    let row = b"row number 077";
    for mut octets in [killed, std::fs::read(&path).unwrap()] {
        let at: Vec<usize> = (0..octets.len() - row.len())
            .filter(|&at| octets[at..].starts_with(row))
            .collect();
        at.iter().for_each(|&at| octets[at] = b'R');
        std::fs::write(&path, &octets).unwrap();
        assert!(Store::examine(&path, &fill).is_err(), "a page is damaged");
        let store = Store::salvage(&path).unwrap();
        let rows: Vec<String> = store
            .look(|read| {
                let table = read.open_table(ROWS)?;
                let rows = table.iter()?.map(|row| Ok(row?.1.value().to_owned()));
                rows.collect::<Result<_, redb::Error>>()
            })
            .unwrap();
        let expected = |key| match key {
            77 => "Row number 077".to_owned(),
            key => format!("row number {key:03}"),
        };
        assert!(rows.into_iter().eq((0..200).map(expected)));
        assert!(insert(&store, 1, "one").is_err());
        drop(store);
        assert!(std::fs::read(&path).unwrap() == octets);
    }
    std::fs::remove_dir_all(folder).unwrap();
}
