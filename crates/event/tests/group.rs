//! Members of a group that reach each other through relays, so that a test can lose a request or cut the way.

mod leading;

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use deckwatch_event::rt::RtChannelOptions;
use deckwatch_event::rtec_event_channel_admin::{
    EventChannelRef, ProxyPushConsumerRef, ProxyPushSupplierRef, SupplierQOS,
};
use deckwatch_event::rtec_event_comm::{
    Event, PushConsumer, PushConsumerRef, PushConsumerSkeleton,
};
use deckwatch_event::{ChannelStore, GroupOptions, RtGroupMember, Standing};
use deckwatch_orb::{ObjectRef, Orb, Policy, Servant, SetOverrideType, SyncScope, SystemException};

use crate::realtime::{event, list};
use crate::support::{PATIENCE, serving_orb, serving_orb_at};

/// The way to one member for the others.
#[derive(Clone)]
struct Relay {
    port: u16,
    /// Takes what comes, and passes nothing on.
    is_cut: Arc<AtomicBool>,
    /// The next chunk with a call of `keep` is lost.
    loses_keep: Arc<AtomicBool>,
    /// What comes waits.
    is_held: Arc<AtomicBool>,
    /// Questions for the standing that were not passed on.
    unanswered: Arc<AtomicUsize>,
}

impl Relay {
    fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let relay = Self {
            port: listener.local_addr().expect("bound").port(),
            is_cut: Arc::default(),
            loses_keep: Arc::default(),
            is_held: Arc::default(),
            unanswered: Arc::default(),
        };
        let way = relay.clone();
        std::thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else {
                    continue;
                };
                let (back, answered) = (far.try_clone(), near.try_clone());
                let (back, answered) = (back.expect("a socket"), answered.expect("a socket"));
                let (there, here) = (way.clone(), way.clone());
                std::thread::spawn(move || there.pass(back, answered, false));
                std::thread::spawn(move || here.pass(near, far, true));
            }
        });
        relay
    }

    fn pass(&self, mut from: TcpStream, mut to: TcpStream, is_there: bool) {
        let mut chunk = [0; 1 << 16];
        while let Ok(count @ 1..) = from.read(&mut chunk) {
            while self.is_held.load(SeqCst) {
                std::thread::yield_now();
            }
            let names = |operation: &[u8]| {
                let mut windows = chunk[..count].windows(operation.len());
                is_there && windows.any(|it| it == operation)
            };
            let is_lost = names(b"keep\0") && self.loses_keep.swap(false, SeqCst);
            if is_lost || self.is_cut.load(SeqCst) {
                let is_question = names(b"report_standing\0");
                self.unanswered.fetch_add(usize::from(is_question), SeqCst);
            } else if to.write_all(&chunk[..count]).is_err() {
                break;
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    }

    fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, SeqCst);
    }
}

/// A member and its ORB.
struct Member {
    orb: Orb,
    member: RtGroupMember,
}

impl Member {
    /// A member at a port; `others` are the ways to the members before and behind it.
    fn start(port: u16, place: usize, members: &[u16]) -> Self {
        Self::start_with(port, place, members, RtChannelOptions::default())
    }

    fn start_with(port: u16, place: usize, members: &[u16], options: RtChannelOptions) -> Self {
        let orb = serving_orb_at(&format!("127.0.0.1:{port}"));
        let members = members.iter();
        let group = GroupOptions {
            members: members
                .map(|port| ("127.0.0.1".to_owned(), *port))
                .collect(),
            place,
        };
        let store = ChannelStore::in_memory().expect("a store");
        let member = RtGroupMember::start(&orb, options, group, store).expect("a member");
        Self { orb, member }
    }

    fn wait_for(&self, is_so: impl Fn(Standing) -> bool) {
        let begun = Instant::now();
        while !is_so(self.member.standing()) {
            let standing = self.member.standing();
            assert!(begun.elapsed() < PATIENCE, "it stays {standing:?}");
            std::thread::yield_now();
        }
    }

    /// As the end of its process: nobody is notified.
    fn end(self) {
        drop(self.member);
        self.orb.shutdown(false).expect("it ends");
    }
}

fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    let free = [(); COUNT].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    free.map(|it| it.local_addr().expect("bound").port())
}

/// Two members, the first of which is the primary, and the ways to each.
struct Pair {
    first: Member,
    second: Member,
    to_first: Relay,
    to_second: Relay,
}

impl Pair {
    fn start() -> Self {
        Self::start_with(&RtChannelOptions::default())
    }

    fn start_with(options: &RtChannelOptions) -> Self {
        Self::start_each([options, options])
    }

    fn start_each([of_first, of_second]: [&RtChannelOptions; 2]) -> Self {
        let [one, two] = free_ports();
        let (to_first, to_second) = (Relay::to(one), Relay::to(two));
        let first = Member::start_with(one, 0, &[one, to_second.port], of_first.clone());
        first.wait_for(|it| matches!(it, Standing::Primary(_)));
        let second = Member::start_with(two, 1, &[to_first.port, two], of_second.clone());
        first.wait_for(|it| it == Standing::Primary(1));
        second.wait_for(|it| it == Standing::Backup(0));
        Self {
            first,
            second,
            to_first,
            to_second,
        }
    }
}

/// A consumer that does not return from its first push before the test lets it.
struct Gated {
    told: Mutex<Sender<i32>>,
    gate: Mutex<Receiver<()>>,
}

impl PushConsumer for Gated {
    fn push(&self, data: &[Event]) -> Result<(), SystemException> {
        for event in data {
            let _ = self.told.lock().expect("whole").send(event.header.source);
        }
        let _ = self.gate.lock().expect("whole").recv(); // It is closed once all may pass.
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Pushes an event until a push returns.
fn push(supplier: &ProxyPushConsumerRef, number: i32) {
    let begun = Instant::now();
    while let Err(refused) = supplier.push(&[event(number, 17, "")]) {
        assert!(begun.elapsed() < PATIENCE, "no member serves: {refused}");
        std::thread::yield_now();
    }
}

/// The clients of a group in an ORB of their own.
struct Clients {
    orb: Orb,
    taken: Receiver<i32>,
    gate: Sender<()>,
    supplier: ProxyPushConsumerRef,
    proxy: ProxyPushSupplierRef,
}

impl Clients {
    /// They know the channel by a reference of this member.
    fn of(member: &Member) -> Self {
        let orb = serving_orb();
        let text = member
            .orb
            .object_to_string(member.member.reference().object());
        let seen = orb.string_to_object(&text).expect("an IOR");
        let channel_seen = EventChannelRef::unchecked_narrow(seen.expect("not nil"));
        let (told, taken) = channel();
        let (gate, leave) = channel();
        let servant: Arc<dyn Servant> = Arc::new(PushConsumerSkeleton::new(Gated {
            told: Mutex::new(told),
            gate: Mutex::new(leave),
        }));
        let root = orb.root_poa().expect("a root adapter");
        let object = root.servant_to_reference(&servant).expect("a reference");
        let admin = channel_seen.for_consumers().expect("one").expect("one");
        let proxy = admin.obtain_push_supplier().expect("one").expect("one");
        let consumer = PushConsumerRef::unchecked_narrow(object);
        let connected = proxy.connect_push_consumer(Some(&consumer), &list(&[(0, 17)]));
        connected.expect("connected");
        let admin = channel_seen.for_suppliers().expect("one").expect("one");
        let supplying = admin.obtain_push_consumer().expect("one").expect("one");
        let connected = supplying.connect_push_supplier(None, &SupplierQOS::default());
        connected.expect("connected");
        let served = [Policy::SyncScope(SyncScope::WithTarget)];
        let object: &ObjectRef = supplying.object();
        let object = object.set_policy_overrides(&served, SetOverrideType::AddOverride);
        Self {
            supplier: ProxyPushConsumerRef::unchecked_narrow(object.expect("a policy")),
            orb,
            taken,
            gate,
            proxy,
        }
    }

    fn push(&self, number: i32) {
        push(&self.supplier, number);
    }

    /// Lets the consumer go on.
    fn open(&mut self) {
        let (closed, _) = channel();
        self.gate = closed;
    }

    /// Lets the consumer go on, and waits until it has got this event.
    fn expect(&mut self, number: i32) {
        self.open();
        let next = || self.taken.recv_timeout(PATIENCE);
        while next().expect("it was acknowledged") != number {}
    }
}

#[test]
fn backup_that_missed_one_call_has_the_push_that_the_primary_acknowledges() {
    let pair = Pair::start();
    let mut clients = Clients::of(&pair.first);
    clients.push(1);
    assert_eq!(clients.taken.recv_timeout(PATIENCE), Ok(1));
    // The consumer is busy: what follows stays in the primary's queue. The backup cannot ask for it.
    pair.to_first.cut(true);
    pair.to_second.loses_keep.store(true, SeqCst);
    clients.push(2);
    assert!(!pair.to_second.loses_keep.load(SeqCst), "a call was lost");
    pair.to_second.cut(true);
    pair.first.end();
    pair.second.wait_for(|it| it == Standing::Primary(0));
    clients.expect(2);
    pair.second.end();
    clients.orb.shutdown(false).expect("it ends");
}

#[test]
fn primary_that_was_cut_off_delivers_what_it_has_acknowledged_before_it_ends() {
    let pair = Pair::start();
    let mut clients = Clients::of(&pair.first);
    clients.push(1);
    assert_eq!(clients.taken.recv_timeout(PATIENCE), Ok(1));
    pair.to_first.cut(true);
    pair.to_second.cut(true);
    pair.second.wait_for(|it| it == Standing::Primary(0));
    // Both serve: the primary goes on without its backup.
    clients.push(2);
    pair.to_first.cut(false);
    pair.to_second.cut(false);
    // Its consumer holds the first event, and the second one waits.
    pair.first.wait_for(|it| it == Standing::Leaving);
    clients.supplier.object().non_existent().expect("served");
    assert_eq!(pair.first.member.standing(), Standing::Leaving);
    clients.expect(2);
    pair.first.wait_for(|it| it == Standing::Superseded);
    assert!(matches!(
        pair.second.member.standing(),
        Standing::Primary(_)
    ));
    pair.first.end();
    clients.push(3);
    clients.expect(3);
    pair.second.end();
    clients.orb.shutdown(false).expect("it ends");
}

#[test]
fn backup_that_joins_late_has_the_clients_and_the_pushes_of_its_primary() {
    let [one, two] = free_ports();
    let first = Member::start(one, 0, &[one, two]);
    first.wait_for(|it| it == Standing::Primary(0));
    let mut clients = Clients::of(&first);
    // The consumer holds the first one, and the second one waits.
    for number in [1, 2] {
        clients.push(number);
    }
    assert_eq!(clients.taken.recv_timeout(PATIENCE), Ok(1));
    let second = Member::start(two, 1, &[one, two]);
    first.wait_for(|it| it == Standing::Primary(1));
    first.end();
    second.wait_for(|it| it == Standing::Primary(0));
    assert_eq!(second.member.counts().redelivered, 2);
    clients.expect(2);
    clients.push(3);
    clients.expect(3);
    second.end();
    clients.orb.shutdown(false).expect("it ends");
}

#[test]
fn clients_of_a_backup_are_sent_to_the_primary() {
    let pair = Pair::start();
    let mut clients = Clients::of(&pair.second);
    clients.open();
    for number in 1..=3 {
        clients.push(number);
        assert_eq!(clients.taken.recv_timeout(PATIENCE), Ok(number));
    }
    assert!(pair.second.member.channel().is_none());
    let served = pair.first.member.channel().expect("it leads");
    assert_eq!(served.counts().received, 3);
    drop(served);
    // A proxy that no longer exists raises OBJECT_NOT_EXIST, not the TRANSIENT of a member that does not lead yet.
    clients.proxy.disconnect_push_supplier().expect("it leaves");
    let gone = clients.proxy.disconnect_push_supplier();
    let gone = gone.expect_err("it has left");
    assert_eq!(
        gone.kind,
        deckwatch_orb::SystemExceptionKind::ObjectNotExist
    );
    pair.first.end();
    pair.second.end();
    clients.orb.shutdown(false).expect("it ends");
}

#[test]
fn pushes_that_a_member_no_longer_keeps_and_those_that_it_repeats_are_counted() {
    let keeping = |queue_len| RtChannelOptions {
        queue_len,
        ..RtChannelOptions::default()
    };
    let pair = Pair::start_each([&keeping(4), &keeping(3)]);
    let mut clients = Clients::of(&pair.first);
    // The consumer holds the first one.
    for number in 1..=6 {
        clients.push(number);
    }
    assert_eq!(clients.taken.recv_timeout(PATIENCE), Ok(1));
    let [first, second] = [&pair.first, &pair.second].map(|it| it.member.counts());
    assert_eq!((first.forgotten, first.redelivered), (2, 0));
    assert_eq!((second.forgotten, second.redelivered), (3, 0));
    assert_eq!((first.backups_lost, second.backups_lost), (0, 0));
    pair.first.end();
    pair.second.wait_for(|it| it == Standing::Primary(0));
    let counts = pair.second.member.counts();
    assert_eq!((counts.forgotten, counts.redelivered), (3, 3));
    clients.expect(6);
    pair.second.end();
    clients.orb.shutdown(false).expect("it ends");
}

#[test]
fn backup_that_does_not_answer_is_left_out_and_counted() {
    let pair = Pair::start();
    let mut clients = Clients::of(&pair.first);
    clients.open();
    pair.to_second.cut(true);
    pair.to_first.cut(true);
    clients.push(1);
    assert_eq!(clients.taken.recv_timeout(PATIENCE), Ok(1));
    assert_eq!(pair.first.member.counts().backups_lost, 1);
    assert_eq!(pair.first.member.standing(), Standing::Primary(0));
    pair.first.end();
    pair.second.end();
    clients.orb.shutdown(false).expect("it ends");
}

#[test]
fn group_of_one_and_a_place_beyond_the_group_are_bad_parameters() {
    use deckwatch_event::limits::GROUP_MEMBERS_MAX;
    let orb = serving_orb();
    for (count, place) in [(1, 0), (GROUP_MEMBERS_MAX + 1, 0), (2, 2)] {
        let group = GroupOptions {
            members: vec![("127.0.0.1".to_owned(), 9); count],
            place,
        };
        let store = ChannelStore::in_memory().expect("a store");
        let refused = RtGroupMember::start(&orb, RtChannelOptions::default(), group, store);
        assert!(refused.is_err(), "{count} members, place {place}");
    }
    orb.shutdown(true).expect("it ends");
}
