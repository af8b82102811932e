//! What a channel with a store records of its clients, and when.

use std::sync::atomic::Ordering::SeqCst;

use deckwatch_access::Table;
use deckwatch_orb::{Access, AccessWatcher};
use deckwatch_testkit::Disk;

use super::*;
use crate::cos_event_comm::PushConsumerRef;
use crate::rt::{RtChannelOptions, RtEventChannel};
use crate::{ChannelOptions, EventChannel};

fn store_on(disk: &Disk) -> ChannelStore {
    let disk = disk.clone();
    ChannelStore::on(move || disk.clone()).expect("a store")
}

/// The numbers of the recorded clients.
fn recorded(disk: &Disk) -> Vec<u64> {
    numbers(&store_on(disk).proxies().expect("records"))
}

fn numbers(records: &[ProxyRecord]) -> Vec<u64> {
    records.iter().map(|record| record.number).collect()
}

/// A life of a channel with this disk, whose clients are connected.
fn life(disk: &Disk) -> Home {
    life_with(disk, None)
}

fn life_with(disk: &Disk, access: Option<Access>) -> Home {
    let orb = Orb::builder().build().expect("an ORB");
    let gate = Gate::new(&orb, access, true);
    let started = Home::stored(&orb, store_on(disk), ChannelKind::Cos, gate);
    let (home, _) = started.expect("a home");
    home.end_restoring();
    home
}

fn client(number: u64) -> Client<'static, NoQos> {
    Client {
        number,
        kind: ProxyKind::PushConsumer,
        reference: None,
        qos: None,
        is_suspended: false,
    }
}

fn record(home: &Home, number: u64) {
    let recorded = home.record(&client(number), || Ok(()));
    recorded.expect("it is connected");
}

fn kind<T: std::fmt::Debug>(outcome: Result<T, SystemException>) -> Kind {
    outcome.expect_err("it fails").kind
}

#[test]
fn number_of_an_object_has_the_life_of_its_channel_in_its_upper_half() {
    let disk = Disk::default();
    for epoch in 1..=2 {
        let home = life(&disk);
        let numbers = [(); 2].map(|()| home.next_number());
        assert_eq!(numbers.map(|number| number >> 32), [epoch; 2]);
        assert!(numbers[0] < numbers[1], "{numbers:?}");
    }
}

#[test]
fn client_is_recorded_before_it_is_connected_and_until_it_disconnects() {
    let disk = Disk::default();
    let home = life(&disk);
    let connect = || {
        let ledger = home.ledger.as_ref().expect("a store");
        Ok(ledger.store.proxies().expect("records"))
    };
    let seen = home.record(&client(1), connect).expect("it is connected");
    assert_eq!(numbers(&seen), [1]);
    record(&home, 2);
    assert_eq!(home.forget(1), Ok(()));
    assert_eq!(home.forget(1), Ok(()), "it is not recorded");
    drop(home);
    assert_eq!(recorded(&disk), [2]);
}

#[test]
fn client_of_a_channel_that_restores_its_clients_is_not_recorded_anew() {
    let disk = Disk::default();
    let orb = Orb::builder().build().expect("an ORB");
    let gate = Gate::new(&orb, None, true);
    let started = Home::stored(&orb, store_on(&disk), ChannelKind::Cos, gate);
    let (home, records) = started.expect("a home");
    assert_eq!(records, []);
    record(&home, 1);
    home.end_restoring();
    record(&home, 2);
    drop(home);
    assert_eq!(recorded(&disk), [2]);
}

#[test]
fn client_that_is_gone_is_forgotten_with_the_next_change_or_at_the_end() {
    let disk = Disk::default();
    let home = life(&disk);
    for number in 1..=4 {
        record(&home, number);
    }
    let stored = || {
        let ledger = home.ledger.as_ref().expect("a store");
        numbers(&ledger.store.proxies().expect("records"))
    };
    home.forget_later(1);
    home.forget_later(9);
    assert_eq!(stored(), [1, 2, 3, 4]);
    assert_eq!(home.forget(2), Ok(()));
    assert_eq!(stored(), [3, 4]);
    home.forget_later(3);
    drop(home);
    assert_eq!(recorded(&disk), [4]);
}

#[test]
fn client_whose_first_connect_failed_is_recorded_once_it_is_connected() {
    let disk = Disk::default();
    let home = life(&disk);
    let refused = home.record(&client(1), || {
        Err::<(), _>(crate::raise::raise(Kind::Transient))
    });
    assert_eq!(kind(refused), Kind::Transient);
    record(&home, 1);
    assert_eq!(home.record_suspended(1, true), Ok(()));
    drop(home);
    let records = store_on(&disk).proxies().expect("records");
    assert_eq!(numbers(&records), [1]);
    assert!(records[0].is_suspended);
}

#[test]
fn row_that_changed_while_it_was_written_is_written_again() {
    let row: Arc<[u8]> = Arc::from([1]);
    let mut state = State {
        later: Rows::from([(1, None), (2, Some(row))]),
        ..State::default()
    };
    state.note_written(&Rows::from([(1, None), (2, None)]));
    let left: Vec<u64> = state.later.keys().copied().collect();
    assert_eq!(left, [2]);
}

#[test]
fn client_whose_leave_cannot_be_written_stays_and_the_failure_is_counted() {
    let disk = Disk::default();
    let home = life(&disk);
    record(&home, 1);
    disk.fill(true);
    assert_eq!(home.forget(9), Ok(()), "it is not recorded");
    assert_eq!(home.store_failures(), 0);
    assert_eq!(kind(home.forget(1)), Kind::PersistStore);
    assert_eq!(home.store_failures(), 1);
    home.forget_all();
    assert_eq!(home.store_failures(), 2);
    disk.fill(false);
    drop(home);
    assert_eq!(recorded(&disk), [1]);
}

#[test]
fn destroyed_channel_forgets_all_its_clients() {
    let disk = Disk::default();
    let home = life(&disk);
    for number in 1..=2 {
        record(&home, number);
    }
    home.forget_later(1);
    home.forget_all();
    drop(home);
    assert_eq!(recorded(&disk), [0; 0]);
}

#[test]
fn clients_of_a_destroyed_channel_are_not_asked_about_again() {
    let orb = Orb::builder().build().expect("an ORB");
    let nobody = Access::new(Table::new(Vec::new()));
    let home = Home::transient(&orb, Gate::new(&orb, Some(nobody), true)).expect("a home");
    let stranger = deckwatch_orb::Identity {
        caller: deckwatch_orb::Caller::Unknown,
        name: None,
        is_this_host: false,
    };
    let stranger = Known::new(stranger, ProxyKind::PushConsumer);
    home.clients.set(1, Some(stranger));
    let refused = || home.refused_clients(|_, _| None);
    assert_eq!(refused(), [(1, ProxyKind::PushConsumer)]);
    home.forget_all();
    assert_eq!(refused(), []);
}

#[test]
fn channel_whose_disk_is_full_connects_nobody_and_counts_that() {
    let orb = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
    let orb = orb.build().expect("an ORB");
    let disk = Disk::default();
    let channel = EventChannel::start_stored(&orb, ChannelOptions::default(), store_on(&disk));
    let channel = channel.expect("a channel");
    let nobody = orb.string_to_object("corbaloc::127.0.0.1:1/nobody");
    let nobody = nobody.expect("a URL").expect("not nil");
    let admin = channel
        .reference()
        .for_consumers()
        .expect("one")
        .expect("one");
    let proxy = admin.obtain_push_supplier().expect("one").expect("one");
    disk.fill(true);
    let consumer = PushConsumerRef::unchecked_narrow(nobody);
    let refused = proxy.connect_push_consumer(Some(&consumer));
    let refused = refused.expect_err("it cannot be recorded").to_string();
    assert!(refused.contains("PERSIST_STORE"), "{refused}");
    assert_eq!(channel.store_failures(), 1);
    orb.shutdown(true).expect("it ends");
}

#[test]
fn real_time_channel_counts_what_it_could_not_record() {
    use crate::rtec_event_channel_admin::SupplierQOS;
    let orb = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
    let orb = orb.build().expect("an ORB");
    let disk = Disk::default();
    let channel = RtEventChannel::start_stored(&orb, RtChannelOptions::default(), store_on(&disk));
    let channel = channel.expect("a channel");
    let admin = channel
        .reference()
        .for_suppliers()
        .expect("one")
        .expect("one");
    let proxy = admin.obtain_push_consumer().expect("one").expect("one");
    disk.fill(true);
    let refused = proxy.connect_push_supplier(None, &SupplierQOS::default());
    let refused = refused.expect_err("it cannot be recorded").to_string();
    assert!(refused.contains("PERSIST_STORE"), "{refused}");
    assert_eq!(channel.store_failures(), 1);
    orb.shutdown(true).expect("it ends");
}

/// Counts how often clients are asked about again.
#[derive(Default)]
struct Watcher(AtomicU64);

impl AccessWatcher for Watcher {
    fn ask_again(&self) -> usize {
        self.0.fetch_add(1, SeqCst);
        0
    }
}

#[test]
fn clients_are_asked_about_again_if_the_table_changes_while_one_connects() {
    let access = Access::new(Table::new(Vec::new()));
    let home = life_with(&Disk::default(), Some(access.clone()));
    let watcher = Arc::new(Watcher::default());
    let watching: Arc<dyn AccessWatcher> = Arc::clone(&watcher) as _;
    home.gate.watch(Arc::downgrade(&watching));
    record(&home, 1);
    assert_eq!(watcher.0.load(SeqCst), 0);
    let replaced = home.record(&client(2), || {
        access.replace(Table::new(Vec::new()));
        Ok(watcher.0.load(SeqCst))
    });
    assert_eq!(replaced, Ok(1), "the new table is in force");
    assert_eq!(watcher.0.load(SeqCst), 2, "the client is connected");
}
