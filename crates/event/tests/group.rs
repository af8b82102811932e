//! Members of a group that reach each other through relays, so that a test can lose a request or cut the way.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
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
struct Relay {
    port: u16,
    /// Takes what comes, and passes nothing on.
    is_cut: Arc<AtomicBool>,
    /// The next chunk with a call of `keep` is lost.
    loses_keep: Arc<AtomicBool>,
}

impl Relay {
    fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let relay = Self {
            port: listener.local_addr().expect("bound").port(),
            is_cut: Arc::default(),
            loses_keep: Arc::default(),
        };
        let (is_cut, loses) = (Arc::clone(&relay.is_cut), Arc::clone(&relay.loses_keep));
        std::thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else {
                    continue;
                };
                let (back, answered) = (far.try_clone(), near.try_clone());
                let (back, answered) = (back.expect("a socket"), answered.expect("a socket"));
                let (cut, none) = (Arc::clone(&is_cut), Arc::default());
                std::thread::spawn(move || pass(back, answered, &cut, &none));
                let (cut, loses) = (Arc::clone(&is_cut), Arc::clone(&loses));
                std::thread::spawn(move || pass(near, far, &cut, &loses));
            }
        });
        relay
    }

    fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, SeqCst);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, is_cut: &AtomicBool, loses: &AtomicBool) {
    let mut chunk = [0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut chunk) {
        let is_keep = chunk[..count].windows(5).any(|it| it == b"keep\0");
        let is_lost = is_keep && loses.swap(false, SeqCst);
        if !is_lost && !is_cut.load(SeqCst) && to.write_all(&chunk[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// A member and its ORB.
struct Member {
    orb: Orb,
    member: RtGroupMember,
}

impl Member {
    /// A member at a port; `others` are the ways to the members before and behind it.
    fn start(port: u16, place: usize, members: &[u16]) -> Self {
        let orb = serving_orb_at(&format!("127.0.0.1:{port}"));
        let members = members.iter();
        let group = GroupOptions {
            members: members
                .map(|port| ("127.0.0.1".to_owned(), *port))
                .collect(),
            place,
        };
        let store = ChannelStore::in_memory().expect("a store");
        let options = RtChannelOptions::default();
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

/// Two members, the first of which is the primary, and the ways to each.
struct Pair {
    first: Member,
    second: Member,
    to_first: Relay,
    to_second: Relay,
}

impl Pair {
    fn start() -> Self {
        let free = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
        let [one, two] = free.map(|it| it.local_addr().expect("bound").port());
        let (to_first, to_second) = (Relay::to(one), Relay::to(two));
        let first = Member::start(one, 0, &[one, to_second.port]);
        first.wait_for(|it| matches!(it, Standing::Primary(_)));
        let second = Member::start(two, 1, &[to_first.port, two]);
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

/// The clients of a group in an ORB of their own.
struct Clients {
    orb: Orb,
    taken: Receiver<i32>,
    gate: Sender<()>,
    supplier: ProxyPushConsumerRef,
    _proxy: ProxyPushSupplierRef,
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
            _proxy: proxy,
        }
    }

    /// Pushes an event until a push returns.
    fn push(&self, number: i32) {
        let begun = Instant::now();
        while let Err(refused) = self.supplier.push(&[event(number, 17, "")]) {
            assert!(begun.elapsed() < PATIENCE, "no member serves: {refused}");
            std::thread::yield_now();
        }
    }

    /// Lets the consumer go on, and waits until it has got this event.
    fn expect(&mut self, number: i32) {
        let (closed, _) = channel();
        self.gate = closed;
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
