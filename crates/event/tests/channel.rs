//! The event channel as suppliers and consumers see it, over IIOP on loopback.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deckwatch_cdr::typecode::ValueModifier;
use deckwatch_cdr::{Any, ByteOrder, Reader, TypeCode, WString, Write as _, Writer};
use deckwatch_event::cos_event_channel_admin::{
    EventChannelRef, ProxyPushConsumerConnectPushSupplierError, ProxyPushConsumerRef,
    ProxyPushSupplierConnectPushConsumerError, ProxyPushSupplierRef,
};
use deckwatch_event::cos_event_comm::{
    PushConsumer, PushConsumerPushError, PushConsumerRef, PushConsumerSkeleton, PushSupplier,
    PushSupplierRef, PushSupplierSkeleton,
};
use deckwatch_event::{ChannelOptions, EventChannel, limits};
use deckwatch_giop::Ior;
use deckwatch_giop::ior::IiopProfile;
use deckwatch_giop::ior::code_sets::{CodeSetComponent, CodeSetInfo, ISO_8859_1};
use deckwatch_orb::transport::{
    Endpoint, Instant64, Listener, Poller, SocketTransport, Stream, StreamOptions, Transport,
    TransportError,
};
use deckwatch_orb::{ObjectRef, Orb, SystemException, SystemExceptionKind};

const PATIENCE: Duration = Duration::from_secs(20);

/// A consumer that hands on what it gets, and waits for leave before each.
struct Taker {
    taken: Sender<Option<u32>>,
    leave: Option<Mutex<Receiver<()>>>,
}

impl PushConsumer for Taker {
    fn push<'a>(&'a self, data: &'a Any) -> Result<(), PushConsumerPushError> {
        if let Some(leave) = &self.leave {
            leave
                .lock()
                .expect("one event at a time")
                .recv_timeout(PATIENCE)
                .expect("leave is given");
        }
        self.taken
            .send(Some(data.extract::<u32>().expect("an unsigned long")))
            .expect("the test listens");
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.taken.send(None).expect("the test listens");
        Ok(())
    }
}

/// The sockets of the system, with a clock that the test sets forward.
#[derive(Default)]
struct Later {
    sockets: SocketTransport,
    ahead_ns: AtomicU64,
}

impl Later {
    fn pass(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).expect("less than a lifetime");
        self.ahead_ns.fetch_add(ns, Ordering::Relaxed);
    }
}

impl Transport for Later {
    fn now(&self) -> Instant64 {
        Instant64(self.sockets.now().0 + self.ahead_ns.load(Ordering::Relaxed))
    }

    fn connect(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
        deadline: Option<Instant64>,
    ) -> Result<Box<dyn Stream>, TransportError> {
        self.sockets.connect(endpoint, options, deadline)
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
    ) -> Result<Box<dyn Listener>, TransportError> {
        self.sockets.listen(endpoint, options)
    }

    fn poller(&self) -> Result<Box<dyn Poller>, TransportError> {
        self.sockets.poller()
    }

    fn outward_hosts(&self, over_ipv6: bool) -> Vec<String> {
        self.sockets.outward_hosts(over_ipv6)
    }

    fn host_name(&self) -> String {
        self.sockets.host_name()
    }
}

fn serving_orb() -> Orb {
    serving_orb_over(Arc::new(SocketTransport::default()))
}

fn serving_orb_over(transport: Arc<dyn Transport>) -> Orb {
    let orb = Orb::builder()
        .transport(transport)
        .listen("127.0.0.1:0")
        .expect("an endpoint")
        .build()
        .expect("an ORB");
    orb.root_poa()
        .expect("a root adapter")
        .the_poa_manager()
        .activate()
        .expect("an active manager");
    orb
}

/// The channel as another ORB's program would have it.
fn remote(channel: &EventChannel, server: &Orb, user: &Orb) -> EventChannelRef {
    let text = server.object_to_string(channel.reference().object());
    EventChannelRef::unchecked_narrow(
        user.string_to_object(&text)
            .expect("an IOR")
            .expect("not nil"),
    )
}

fn supplier_of(channel: &EventChannelRef) -> ProxyPushConsumerRef {
    let admin = channel.for_suppliers().unwrap().expect("an administration");
    let proxy = admin.obtain_push_consumer().unwrap().expect("a proxy");
    proxy.connect_push_supplier(None).unwrap();
    proxy
}

fn activate(orb: &Orb, leave: Option<Receiver<()>>) -> (ObjectRef, Receiver<Option<u32>>) {
    let (taken, events) = channel();
    let taker = Taker {
        taken,
        leave: leave.map(Mutex::new),
    };
    let poa = orb.root_poa().unwrap();
    let id = poa
        .activate_object(Arc::new(PushConsumerSkeleton::new(taker)))
        .unwrap();
    (poa.id_to_reference(&id).unwrap(), events)
}

fn connect(channel: &EventChannelRef, consumer: ObjectRef) -> ProxyPushSupplierRef {
    let admin = channel.for_consumers().unwrap().expect("an administration");
    let proxy = admin.obtain_push_supplier().unwrap().expect("a proxy");
    proxy
        .connect_push_consumer(Some(&PushConsumerRef::unchecked_narrow(consumer)))
        .unwrap();
    proxy
}

fn number(value: u32) -> Any {
    Any::from_value(&value).expect("a number fits")
}

#[test]
fn each_consumers_thread_is_prepared_before_its_first_event() {
    let (server, user) = (serving_orb(), serving_orb());
    let (prepared, threads) = channel();
    let served = EventChannel::start_prepared(&server, ChannelOptions::default(), move || {
        let name = std::thread::current().name().map(str::to_owned);
        prepared.send(name).expect("the test listens");
    });
    let channel = remote(&served.unwrap(), &server, &user);
    let takers: Vec<_> = (0..2).map(|_| activate(&user, None)).collect();
    for (reference, _) in &takers {
        connect(&channel, reference.clone());
    }
    supplier_of(&channel).push(&number(7)).unwrap();
    for (_, events) in &takers {
        assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(7)));
    }
    let threads: Vec<_> = threads.try_iter().flatten().collect();
    assert_eq!(threads.len(), 2);
    assert!(threads.iter().all(|name| name.starts_with("consumer-")));
    server.shutdown(true).expect("it ends");
    user.shutdown(true).expect("it ends");
}

#[test]
fn every_consumer_gets_every_event_in_order() {
    let (server, user) = (serving_orb(), serving_orb());
    let served = EventChannel::start(&server, ChannelOptions::default()).unwrap();
    let channel = remote(&served, &server, &user);
    let takers: Vec<_> = (0..3).map(|_| activate(&user, None)).collect();
    let proxies: Vec<_> = takers
        .iter()
        .map(|(reference, _)| connect(&channel, reference.clone()))
        .collect();
    let supplier = supplier_of(&channel);
    for value in 0..100 {
        supplier.push(&number(value)).unwrap();
    }
    for (_, events) in &takers {
        let got: Vec<u32> = (0..100)
            .map(|_| events.recv_timeout(PATIENCE).unwrap().expect("an event"))
            .collect();
        assert_eq!(got, (0..100).collect::<Vec<u32>>());
    }
    assert_eq!(
        (served.counts().received, served.counts().displaced),
        (100, 0)
    );
    proxies[0].disconnect_push_supplier().unwrap();
    supplier.push(&number(100)).unwrap();
    assert_eq!(takers[1].1.recv_timeout(PATIENCE), Ok(Some(100)));
    assert_eq!(takers[2].1.recv_timeout(PATIENCE), Ok(Some(100)));
    assert!(
        takers[0].1.try_recv().is_err(),
        "who has disconnected gets nothing"
    );
    channel.destroy().unwrap();
    assert_eq!(
        takers[1].1.recv_timeout(PATIENCE),
        Ok(None),
        "the end is told"
    );
    let Err(PushConsumerPushError::System(gone)) = supplier.push(&number(101)) else {
        panic!("pushed to the dead")
    };
    assert_eq!(gone.kind, SystemExceptionKind::ObjectNotExist);
    server.shutdown(true).expect("it ends");
    user.shutdown(true).expect("it ends");
}

#[test]
fn slow_consumer_loses_its_oldest_events_and_holds_up_nobody() {
    let (server, user) = (serving_orb(), serving_orb());
    let options = ChannelOptions {
        queue_len: 4,
        ..ChannelOptions::default()
    };
    let served = EventChannel::start(&server, options).unwrap();
    let channel = remote(&served, &server, &user);
    let (leave, gate) = std::sync::mpsc::channel();
    let (slow, slow_events) = activate(&user, Some(gate));
    let (fast, fast_events) = activate(&user, None);
    connect(&channel, slow);
    connect(&channel, fast);
    let supplier = supplier_of(&channel);
    for value in 0..20 {
        supplier.push(&number(value)).unwrap();
        assert_eq!(
            fast_events.recv_timeout(PATIENCE),
            Ok(Some(value)),
            "the other consumer is served at once"
        );
    }
    for _ in 0..20 {
        leave.send(()).unwrap();
    }
    let mut got = vec![
        slow_events
            .recv_timeout(PATIENCE)
            .unwrap()
            .expect("an event"),
    ];
    while got.last() != Some(&19) {
        got.push(
            slow_events
                .recv_timeout(PATIENCE)
                .unwrap()
                .expect("an event"),
        );
    }
    assert_eq!(
        got[got.len() - 4..],
        [16, 17, 18, 19],
        "the newest are kept"
    );
    assert!(got.is_sorted());
    assert_eq!(
        served.counts().displaced,
        20 - got.len() as u64,
        "every loss is counted"
    );
    server.shutdown(true).expect("it ends");
    user.shutdown(true).expect("it ends");
}

#[test]
fn dead_consumer_is_let_go_and_the_others_go_on() {
    let (server, user) = (serving_orb(), serving_orb());
    let served = EventChannel::start(&server, ChannelOptions::default()).unwrap();
    let channel = remote(&served, &server, &user);
    let (live, events) = activate(&user, None);
    let dead = user
        .string_to_object("corbaloc::127.0.0.1:9/nobody")
        .unwrap()
        .expect("not nil");
    connect(&channel, live);
    connect(&channel, dead);
    let supplier = supplier_of(&channel);
    let mut value = 0;
    while served.counts().consumers_lost == 0 {
        supplier.push(&number(value)).unwrap();
        assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(value)));
        value += 1;
    }
    assert!(served.counts().failed >= u64::from(limits::FAILURES_MAX));
    server.shutdown(true).expect("it ends");
    user.shutdown(true).expect("it ends");
}

#[test]
fn protocol_of_connecting_is_kept() {
    let (server, user) = (serving_orb(), serving_orb());
    let served = EventChannel::start(&server, ChannelOptions::default()).unwrap();
    let channel = remote(&served, &server, &user);
    let (taker, _events) = activate(&user, None);
    let consumer = PushConsumerRef::unchecked_narrow(taker);
    let admin = channel.for_consumers().unwrap().expect("an administration");
    let proxy = admin.obtain_push_supplier().unwrap().expect("a proxy");
    let Err(ProxyPushSupplierConnectPushConsumerError::System(nil)) =
        proxy.connect_push_consumer(None)
    else {
        panic!("connected nobody");
    };
    assert_eq!(nil.kind, SystemExceptionKind::BadParam);
    proxy.connect_push_consumer(Some(&consumer)).unwrap();
    assert!(matches!(
        proxy.connect_push_consumer(Some(&consumer)),
        Err(ProxyPushSupplierConnectPushConsumerError::AlreadyConnected(
            _
        ))
    ));
    let unconnected = channel
        .for_suppliers()
        .unwrap()
        .expect("one")
        .obtain_push_consumer()
        .unwrap()
        .expect("a proxy");
    assert!(matches!(
        unconnected.push(&number(1)),
        Err(PushConsumerPushError::Disconnected(_))
    ));
    assert_eq!(
        admin.obtain_pull_supplier().unwrap_err().kind,
        SystemExceptionKind::NoImplement
    );
    server.shutdown(true).expect("it ends");
    user.shutdown(true).expect("it ends");
}

/// Pushes a custom value as a program of the other byte order does; the reply's status.
fn push_in_the_other_order(server: &Orb, proxy: &ObjectRef) -> u32 {
    let order = ByteOrder::NATIVE.opposite();
    let mut octets = Vec::new();
    let mut w = Writer::new(&mut octets).with_order(order);
    let mut write = || {
        w.write_octets(b"GIOP\x01\x02")?;
        w.write_octets(&[u8::from(order == ByteOrder::Little), 0])?;
        // The message's size, the request's id, a response, a target by its key.
        w.write_u32(0)?;
        w.write_u32(1)?;
        w.write_octets(&[3, 0, 0, 0, 0, 0])?;
        w.write_octet_sequence(proxy.object_key().expect("an IIOP profile"))?;
        "push".write(&mut w)?;
        w.write_u32(0)?;
        w.align(8)?;
        let custom = ValueModifier::Custom;
        TypeCode::value("IDL:C:1.0", "C", custom, None, &[]).write(&mut w)?;
        w.write_u32(0x7fff_ff0a)?;
        "IDL:C:1.0".write(&mut w)?;
        // A chunk of a number, and the end.
        w.write_u32(4)?;
        w.write_u32(7)?;
        w.write_u32(u32::MAX)
    };
    write().expect("a few octets");
    let size = w.position() - 12;
    w.patch_u32(8, size as u32);
    let Endpoint::Tcp { host, port } = &server.endpoints()[0] else {
        panic!("it listens by TCP");
    };
    let mut peer = TcpStream::connect((host.as_str(), *port)).expect("it listens");
    peer.write_all(&octets).expect("it reads");
    let mut reply = [0; 24];
    peer.read_exact(&mut reply).expect("it answers");
    let order = ByteOrder::from_flag(reply[6] & 1).expect("a byte order");
    let mut status = Reader::new(&reply[16..20], order);
    status.read_u32().expect("a status")
}

#[test]
fn events_that_cannot_be_written_for_a_consumer_are_not_held_against_it() {
    let (server, user) = (serving_orb(), serving_orb());
    let served = EventChannel::start(&server, ChannelOptions::default()).unwrap();
    let channel = remote(&served, &server, &user);
    let (consumer, events) = activate(&user, None);
    let _proxy = connect(&channel, consumer);
    let supplier = supplier_of(&channel);
    for _ in 0..=limits::FAILURES_MAX {
        assert_eq!(push_in_the_other_order(&server, supplier.object()), 0);
    }
    supplier.push(&number(1)).unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(1)));
    assert_eq!(served.counts().failed, u64::from(limits::FAILURES_MAX) + 1);
    channel.destroy().unwrap();
    server.shutdown(true).expect("it ends");
    user.shutdown(true).expect("it ends");
}

/// The object as a server of this minor version of GIOP and these code sets would publish it.
fn published_by(minor: u8, sets: Option<&CodeSetInfo>, object: &ObjectRef, orb: &Orb) -> ObjectRef {
    let Endpoint::Tcp { host, port } = &orb.endpoints()[0] else {
        panic!("it listens by TCP");
    };
    let key = object.object_key().expect("an IIOP profile");
    let component = sets.map(|sets| sets.to_component().expect("a few octets"));
    let profile = IiopProfile {
        minor,
        components: component.into_iter().collect(),
        ..IiopProfile::new(host, *port, key)
    };
    let ior = Ior::with_iiop(object.type_id(), &profile).expect("a reference");
    let object = orb.string_to_object(&ior.to_string()).expect("an IOR");
    object.expect("not nil")
}

#[test]
fn texts_that_a_consumer_has_no_code_set_for_are_not_held_against_it() {
    let (server, user) = (serving_orb(), serving_orb());
    let served = EventChannel::start(&server, ChannelOptions::default()).unwrap();
    let channel = remote(&served, &server, &user);
    let narrow = CodeSetInfo {
        chars: CodeSetComponent {
            native: ISO_8859_1,
            conversion: Vec::new(),
        },
        wide: CodeSetComponent::default(),
    };
    let takers = [(0, None), (2, Some(&narrow))].map(|(minor, sets)| {
        let (reference, events) = activate(&user, None);
        connect(&channel, published_by(minor, sets, &reference, &user));
        events
    });
    let supplier = supplier_of(&channel);
    let texts = [
        Any::from_value(&WString("a".to_owned())).unwrap(),
        Any::from_value(&'a').unwrap(),
        Any::from_value("\u{20ac}").unwrap(),
    ];
    for text in &texts {
        for _ in 0..=limits::FAILURES_MAX {
            supplier.push(text).unwrap();
        }
        supplier.push(&number(1)).unwrap();
        for events in &takers {
            assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(1)), "after {text:?}");
        }
    }
    let counts = served.counts();
    let unwritten = takers.len() * texts.len() * (limits::FAILURES_MAX as usize + 1);
    assert_eq!(
        (counts.failed, counts.consumers_lost),
        (unwritten as u64, 0)
    );
    channel.destroy().unwrap();
    server.shutdown(true).expect("it ends");
    user.shutdown(true).expect("it ends");
}

#[test]
fn proxies_that_nobody_connects_to_give_way_to_newer_ones() {
    let (server, user) = (serving_orb(), serving_orb());
    let served = EventChannel::start(&server, ChannelOptions::default()).unwrap();
    let channel = remote(&served, &server, &user);
    let kept = supplier_of(&channel);
    let suppliers = channel.for_suppliers().unwrap().expect("one");
    let consumers = channel.for_consumers().unwrap().expect("one");
    let first = suppliers.obtain_push_consumer().unwrap().expect("a proxy");
    for _ in 0..limits::PROXIES_WAITING_MAX {
        consumers.obtain_push_supplier().unwrap().expect("a proxy");
    }
    let Err(ProxyPushConsumerConnectPushSupplierError::System(gone)) =
        first.connect_push_supplier(None)
    else {
        panic!("connected to a proxy that gave way");
    };
    assert_eq!(gone.kind, SystemExceptionKind::ObjectNotExist);
    kept.push(&number(1)).unwrap();
    assert_eq!(served.counts().received, 1, "who is connected stays");
    server.shutdown(true).expect("it ends");
    user.shutdown(true).expect("it ends");
}

/// A supplier that is there.
struct Present;

impl PushSupplier for Present {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

fn connect_supplier(
    channel: &EventChannelRef,
    reference: Option<&ObjectRef>,
) -> Result<ProxyPushConsumerRef, ProxyPushConsumerConnectPushSupplierError> {
    let admin = channel.for_suppliers().unwrap().expect("an administration");
    let proxy = admin.obtain_push_consumer().unwrap().expect("a proxy");
    let supplier = reference.map(|object| PushSupplierRef::unchecked_narrow(object.clone()));
    proxy.connect_push_supplier(supplier.as_ref())?;
    Ok(proxy)
}

#[test]
fn suppliers_that_have_died_give_way_where_there_is_room_for_no_other() {
    let clock = Arc::new(Later::default());
    let (server, user) = (serving_orb_over(clock.clone()), serving_orb());
    let served = EventChannel::start(&server, ChannelOptions::default()).unwrap();
    let channel = remote(&served, &server, &user);
    let poa = user.root_poa().unwrap();
    let servant = PushSupplierSkeleton::new(Present);
    let id = poa.activate_object(Arc::new(servant)).unwrap();
    let present = poa.id_to_reference(&id).unwrap();
    let quiet = connect_supplier(&channel, Some(&present)).unwrap();
    let pushing = connect_supplier(&channel, None).unwrap();
    pushing.push(&number(1)).unwrap();
    let dead = user
        .string_to_object("corbaloc::127.0.0.1:9/nobody")
        .unwrap()
        .expect("not nil");
    let dead: Vec<_> = (2..limits::SUPPLIERS_MAX)
        .map(|_| connect_supplier(&channel, Some(&dead)).unwrap())
        .collect();
    let Err(ProxyPushConsumerConnectPushSupplierError::System(full)) =
        connect_supplier(&channel, None)
    else {
        panic!("connected in the place of one that has just connected");
    };
    assert_eq!(full.kind, SystemExceptionKind::NoResources);
    assert_eq!(served.counts().suppliers_lost, 0);
    clock.pass(limits::SUPPLIER_QUIET_MIN);
    pushing.push(&number(1)).unwrap();
    for _ in 0..limits::SUPPLIERS_ASKED_MAX {
        let newcomer = connect_supplier(&channel, None).unwrap();
        newcomer.push(&number(2)).unwrap();
    }
    let Err(PushConsumerPushError::System(gone)) = dead[0].push(&number(3)) else {
        panic!("a dead supplier has kept its place");
    };
    assert_eq!(gone.kind, SystemExceptionKind::ObjectNotExist);
    quiet.push(&number(4)).unwrap();
    pushing.push(&number(5)).unwrap();
    let lost = limits::SUPPLIERS_ASKED_MAX as u64;
    assert_eq!(served.counts().suppliers_lost, lost);
    server.shutdown(true).expect("it ends");
    user.shutdown(true).expect("it ends");
}

#[test]
fn suppliers_without_a_reference_give_way_only_while_they_are_quiet() {
    let clock = Arc::new(Later::default());
    let (server, user) = (serving_orb_over(clock.clone()), serving_orb());
    let served = EventChannel::start(&server, ChannelOptions::default()).unwrap();
    let channel = remote(&served, &server, &user);
    let all: Vec<_> = (0..limits::SUPPLIERS_MAX)
        .map(|_| connect_supplier(&channel, None).unwrap())
        .collect();
    for supplier in &all {
        supplier.push(&number(1)).unwrap();
    }
    // The second comes a moment after the first, in which nobody was due to push.
    for _ in 0..2 {
        let Err(ProxyPushConsumerConnectPushSupplierError::System(full)) =
            connect_supplier(&channel, None)
        else {
            panic!("connected in the place of one that pushes");
        };
        assert_eq!(full.kind, SystemExceptionKind::NoResources);
    }
    clock.pass(limits::SUPPLIER_QUIET_MIN);
    all[0].push(&number(2)).unwrap();
    let again = all[0].connect_push_supplier(None);
    let Err(ProxyPushConsumerConnectPushSupplierError::AlreadyConnected(_)) = again else {
        panic!("connected twice: {again:?}");
    };
    assert_eq!(served.counts().suppliers_lost, 0, "let go for nobody");
    connect_supplier(&channel, None).unwrap();
    all[0].push(&number(3)).unwrap();
    let Err(PushConsumerPushError::System(gone)) = all[1].push(&number(3)) else {
        panic!("the one that has been quiet for the longest has kept its place");
    };
    assert_eq!(gone.kind, SystemExceptionKind::ObjectNotExist);
    server.shutdown(true).expect("it ends");
    user.shutdown(true).expect("it ends");
}

#[test]
fn a_channel_is_no_consumer_of_itself() {
    let (server, user) = (serving_orb(), serving_orb());
    let served = EventChannel::start(&server, ChannelOptions::default()).unwrap();
    let channel = remote(&served, &server, &user);
    let supplier = supplier_of(&channel);
    let admin = channel.for_consumers().unwrap().expect("an administration");
    let proxy = admin.obtain_push_supplier().unwrap().expect("a proxy");
    let itself = PushConsumerRef::unchecked_narrow(supplier.object().clone());
    assert!(matches!(
        proxy.connect_push_consumer(Some(&itself)),
        Err(ProxyPushSupplierConnectPushConsumerError::TypeError(_))
    ));
    let (taker, events) = activate(&user, None);
    let other = PushConsumerRef::unchecked_narrow(taker);
    proxy.connect_push_consumer(Some(&other)).unwrap();
    supplier.push(&number(1)).unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(1)));
    server.shutdown(true).expect("it ends");
    user.shutdown(true).expect("it ends");
    assert_eq!(
        (served.counts().received, events.try_iter().count()),
        (1, 0)
    );
}

#[test]
fn what_is_disconnected_is_no_object_any_more() {
    let (server, user) = (serving_orb(), serving_orb());
    let served = EventChannel::start(&server, ChannelOptions::default()).unwrap();
    let channel = remote(&served, &server, &user);
    let supplier = supplier_of(&channel);
    let (reference, _events) = activate(&user, None);
    let consumer = connect(&channel, reference);
    let dead = user
        .string_to_object("corbaloc::127.0.0.1:9/nobody")
        .unwrap()
        .expect("not nil");
    let lost = connect(&channel, dead);
    while served.counts().consumers_lost == 0 {
        supplier.push(&number(1)).unwrap();
    }
    while lost.object().is_a("IDL:nobody/Asks:1.0").is_ok() {
        std::thread::yield_now();
    }
    supplier.disconnect_push_consumer().unwrap();
    consumer.disconnect_push_supplier().unwrap();
    for object in [supplier.object(), consumer.object(), lost.object()] {
        let gone = object.is_a("IDL:nobody/Asks:1.0").unwrap_err();
        assert_eq!(gone.kind, SystemExceptionKind::ObjectNotExist);
    }
    channel.destroy().unwrap();
    let gone = channel.for_consumers().unwrap_err();
    assert_eq!(gone.kind, SystemExceptionKind::ObjectNotExist);
    server.shutdown(true).expect("it ends");
    user.shutdown(true).expect("it ends");
}

/// A consumer that disconnects at its first event, before it has taken it.
struct Leaver {
    proxy: Mutex<Option<ProxyPushSupplierRef>>,
    taken: Sender<Option<u32>>,
}

impl PushConsumer for Leaver {
    fn push<'a>(&'a self, data: &'a Any) -> Result<(), PushConsumerPushError> {
        if let Some(proxy) = self.proxy.lock().expect("whole").take() {
            proxy.disconnect_push_supplier().expect("an answer");
        }
        let value = data.extract::<u32>().expect("an unsigned long");
        self.taken.send(Some(value)).expect("the test listens");
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn consumer_may_disconnect_from_within_its_push_and_gets_nothing_more() {
    let (server, user) = (serving_orb(), serving_orb());
    let served = EventChannel::start(&server, ChannelOptions::default()).unwrap();
    let channel = remote(&served, &server, &user);
    let (taken, events) = std::sync::mpsc::channel();
    let leaver = Arc::new(Leaver {
        proxy: Mutex::default(),
        taken,
    });
    let poa = user.root_poa().unwrap();
    let id = poa
        .activate_object(Arc::new(PushConsumerSkeleton::new(leaver.clone())))
        .unwrap();
    let mut proxy = leaver.proxy.lock().unwrap();
    *proxy = Some(connect(&channel, poa.id_to_reference(&id).unwrap()));
    let supplier = supplier_of(&channel);
    for value in 0..10 {
        supplier.push(&number(value)).unwrap();
    }
    drop(proxy);
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(0)));
    supplier.push(&number(10)).unwrap();
    server.shutdown(true).expect("it ends");
    user.shutdown(true).expect("it ends");
    assert_eq!(events.try_iter().count(), 0);
    assert_eq!(served.counts().received, 11);
}

#[test]
fn channel_ends_at_once_though_a_consumer_and_a_supplier_do_not_answer() {
    let (server, user) = (serving_orb(), serving_orb());
    let served = EventChannel::start(&server, ChannelOptions::default()).unwrap();
    let channel = remote(&served, &server, &user);
    assert!(!served.has_ended());
    // It takes connections and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("corbaloc::{}/silent", silent.local_addr().unwrap());
    let nobody = user.string_to_object(&url).unwrap().expect("not nil");
    connect(&channel, nobody.clone());
    let (reference, events) = activate(&user, None);
    connect(&channel, reference);
    let admin = channel.for_suppliers().unwrap().expect("one");
    let proxy = admin.obtain_push_consumer().unwrap().expect("a proxy");
    proxy
        .connect_push_supplier(Some(&PushSupplierRef::unchecked_narrow(nobody)))
        .unwrap();
    proxy.push(&number(1)).unwrap();
    let hurried = channel
        .object()
        .with_round_trip_timeout(Some(Duration::from_secs(5)));
    EventChannelRef::unchecked_narrow(hurried)
        .destroy()
        .expect("nobody is waited for");
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(1)));
    assert_eq!(events.recv_timeout(PATIENCE), Ok(None), "the end is told");
    user.shutdown(true).expect("it ends");
    server.shutdown(true).expect("it ends");
}

#[test]
fn a_consumers_thread_that_panics_takes_its_proxy_with_it_and_nobody_else() {
    let (server, user) = (serving_orb(), serving_orb());
    let first = std::sync::atomic::AtomicBool::new(true);
    let served = EventChannel::start_prepared(&server, ChannelOptions::default(), move || {
        assert!(
            !first.swap(false, std::sync::atomic::Ordering::SeqCst),
            "the first is not to be prepared, as the test asked for"
        );
    });
    let channel = remote(&served.unwrap(), &server, &user);
    let (unlucky, _nothing) = activate(&user, None);
    let (lucky, events) = activate(&user, None);
    let proxy = connect(&channel, unlucky);
    while proxy.object().is_a("IDL:nobody/Asks:1.0").is_ok() {
        std::thread::yield_now();
    }
    connect(&channel, lucky);
    supplier_of(&channel).push(&number(7)).unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(7)));
    server.shutdown(true).expect("it ends");
    user.shutdown(true).expect("it ends");
}

#[test]
fn the_end_of_the_orb_ends_the_threads_of_a_channel_that_nobody_has_destroyed() {
    let (server, user) = (serving_orb(), serving_orb());
    let held = Arc::new(());
    let of_threads = held.clone();
    let served = EventChannel::start_prepared(&server, ChannelOptions::default(), move || {
        let _prepared = &of_threads;
    })
    .unwrap();
    let channel = remote(&served, &server, &user);
    let (reference, events) = activate(&user, None);
    connect(&channel, reference);
    supplier_of(&channel).push(&number(7)).unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(7)));
    server.shutdown(true).expect("it ends");
    drop(served);
    let begun = std::time::Instant::now();
    while Arc::strong_count(&held) > 1 {
        assert!(begun.elapsed() < PATIENCE, "a thread goes on");
        std::thread::yield_now();
    }
    user.shutdown(true).expect("it ends");
}
