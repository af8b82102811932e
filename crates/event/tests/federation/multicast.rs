//! Channels on a multicast group, over loopback.

use super::*;
use crate::realtime::{Told, next};
use crate::support::{PATIENCE, serving_orb_at};
use deckwatch_cdr::{Write as _, Writer};
use deckwatch_event::ChannelStore;
use deckwatch_event::federation::{Multicast, MulticastCounts, MulticastError, MulticastOptions};
use deckwatch_event::rtec_event_comm::Event;
use deckwatch_os::multicast;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

const HOME: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// A group whose port no other test has.
fn group() -> SocketAddrV4 {
    let free = UdpSocket::bind((HOME, 0)).expect("loopback");
    let port = free.local_addr().expect("bound").port();
    SocketAddrV4::new(Ipv4Addr::new(239, 255, 77, 2), port)
}

fn on(group: SocketAddrV4) -> MulticastOptions {
    MulticastOptions {
        group,
        interface: HOME,
        ttl: 1,
        network_priority: None,
        sent: Vec::new(),
    }
}

/// A channel on a group, a consumer of all its events, and a supplier.
struct Member {
    world: World,
    multicast: Multicast,
    sets: Told<Vec<Event>>,
    supplier: ProxyPushConsumerRef,
}

impl Member {
    fn new(options: &MulticastOptions) -> Self {
        let world = World::new();
        let multicast = Multicast::start(&world.server, &world.served, options);
        let (_proxy, sets) = world.connect(&any_of(&[(0, 0)]));
        Self {
            multicast: multicast.expect("loopback has multicast"),
            sets,
            supplier: world.supply(&[]),
            world,
        }
    }

    fn counts(&self) -> MulticastCounts {
        self.multicast.counts()
    }

    fn end(mut self) {
        self.multicast.close();
        self.world.end();
    }
}

/// The octets of a set of one event.
fn request(event: &Event) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut w = Writer::new(&mut octets);
    w.write_u32(1).unwrap();
    event.write(&mut w).unwrap();
    octets
}

/// One datagram as TAO writes it on a little-endian host, without a checksum.
fn datagram(request: u32, whole: &[u8], size: usize, number: usize) -> Vec<u8> {
    let part: Vec<_> = whole.chunks(size).nth(number).expect("a part").to_vec();
    let words = [
        request,
        whole.len() as u32,
        part.len() as u32,
        (number * size) as u32,
        number as u32,
        whole.len().div_ceil(size) as u32,
        0,
    ];
    let mut octets = b"\x01ABC".to_vec();
    words
        .iter()
        .for_each(|word| octets.extend(word.to_le_bytes()));
    octets.extend(part);
    octets
}

fn of_size(payload: usize) -> Event {
    let mut event = event(1, 20, "");
    event.data.payload = (0..payload).map(|at| (at % 251) as u8).collect();
    event
}

#[test]
fn events_cross_the_group_once_and_do_not_go_back() {
    let group = group();
    let (one, other) = (Member::new(&on(group)), Member::new(&on(group)));
    let mut pushed = event(1, 20, "from one");
    pushed.header.ttl = 9;
    one.supplier.push(&[pushed.clone()]).unwrap();
    assert_eq!(next(&one.sets), ["from one"], "to its own consumers");
    let there = other.sets.recv_timeout(PATIENCE).unwrap().expect("a set");
    pushed.header.ttl = 8;
    assert_eq!(there, [pushed]);
    let mut local = event(1, 20, "stays");
    local.header.ttl = 0;
    other.supplier.push(&[local]).unwrap();
    assert_eq!(next(&other.sets), ["stays"]);
    other.supplier.push(&[event(1, 21, "back")]).unwrap();
    assert_eq!([next(&other.sets), next(&one.sets)], [["back"], ["back"]]);
    for member in [&one, &other] {
        // Counted behind what is counted.
        wait_for(|| member.counts().own == 1 && member.counts().sent == 1);
        wait_for(|| member.counts().received == 1);
        let counts = member.counts();
        assert_eq!((counts.sent, counts.received, counts.doubled), (1, 1, 0));
        assert_eq!((counts.malformed, counts.corrupt, counts.unsent), (0, 0, 0));
    }
    one.end();
    other.end();
}

#[test]
fn large_events_are_divided_and_joined() {
    let group = group();
    let (one, other) = (Member::new(&on(group)), Member::new(&on(group)));
    for size in [0, 1_200, 1_440, 64 << 10, 1 << 20] {
        let mut large = of_size(size);
        one.supplier.push(&[large.clone()]).unwrap();
        let there = other.sets.recv_timeout(PATIENCE).unwrap().expect("a set");
        large.header.ttl = 0;
        assert!(there == [large], "{size} octets: {:?}", other.counts());
    }
    one.end();
    other.end();
}

#[test]
fn only_the_types_of_the_options_go_to_the_group() {
    let group = group();
    let sent = vec![Header {
        event_type: 20,
        source: 0,
    }];
    let (one, other) = (
        Member::new(&MulticastOptions { sent, ..on(group) }),
        Member::new(&on(group)),
    );
    one.supplier
        .push(&[event(1, 21, "not"), event(1, 20, "this")])
        .unwrap();
    assert_eq!(next(&other.sets), ["this"]);
    wait_for(|| one.counts().sent == 1);
    one.end();
    other.end();
}

#[test]
fn datagrams_of_tao_are_taken_reordered_doubled_and_lost() {
    let group = group();
    let member = Member::new(&on(group));
    let sender = multicast::sender(group, HOME, 1).expect("a socket");
    let send = |octets: &[u8]| {
        sender.send(octets).expect("sent");
    };
    let named = |payload: &str| request(&event(1, 20, payload));
    let (whole, lost, last) = (named("whole"), named("lost"), named("last"));
    let size = whole.len().div_ceil(3);
    for number in [2, 0, 0, 1, 1] {
        send(&datagram(5, &whole, size, number));
    }
    assert_eq!(next(&member.sets), ["whole"]);
    send(&datagram(6, &lost, size, 0));
    send(&datagram(6, &lost, size, 2));
    // A checksum that is wrong, a datagram that is none, and a request that is no set.
    let mut corrupt = datagram(7, &lost, lost.len(), 0);
    corrupt[28..32].copy_from_slice(&[1, 2, 3, 4]);
    send(&corrupt);
    send(b"none");
    send(&datagram(8, &[0xff; 9], 9, 0));
    send(&datagram(9, &last, last.len(), 0));
    assert_eq!(next(&member.sets), ["last"]);
    wait_for(|| member.counts().incomplete == 1);
    let counts = member.counts();
    assert_eq!((counts.received, counts.doubled), (2, 2));
    assert_eq!((counts.corrupt, counts.malformed, counts.own), (1, 2, 0));
    member.end();
}

#[test]
fn what_is_sent_is_what_tao_reads() {
    let group = group();
    let listener = multicast::receiver(group, HOME).expect("a socket");
    listener.set_read_timeout(Some(PATIENCE)).unwrap();
    let member = Member::new(&on(group));
    let mut pushed = event(1, 20, "to all");
    member.supplier.push(&[pushed.clone()]).unwrap();
    let mut octets = [0; 2_048];
    let (size, _) = listener.recv_from(&mut octets).expect("a datagram");
    pushed.header.ttl = 0;
    let request = request(&pushed);
    let mut expected = datagram(1, &request, request.len(), 0);
    // The checksum stands behind six numbers; its own test is beside the parser.
    expected[28..32].copy_from_slice(&octets[28..32]);
    assert_eq!(octets[..size], expected);
    member.end();
}

#[test]
fn wrong_group_and_interface_are_refused() {
    let world = World::new();
    let start = |options: &MulticastOptions| {
        let refused = Multicast::start(&world.server, &world.served, options).err();
        matches!(refused, Some(MulticastError::Socket(_)))
    };
    assert!(start(&on(SocketAddrV4::new(HOME, 7))));
    let interface = Ipv4Addr::new(203, 0, 113, 9);
    assert!(start(&MulticastOptions {
        interface,
        ..on(group())
    }));
    assert!(world.served.consumers().is_empty());
    world.end();
}

#[test]
fn channel_that_crashes_and_starts_from_its_store_keeps_no_dead_consumer_of_the_group() {
    let folder = std::env::temp_dir().join(format!("deckwatch-group-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("store");
    let mut port = 0;
    for life in 1..=3 {
        let orb = serving_orb_at(&format!("127.0.0.1:{port}"));
        port = orb
            .endpoints()
            .iter()
            .find_map(|at| at.port())
            .expect("TCP");
        let store = ChannelStore::open(&file).expect("a store");
        let served =
            RtEventChannel::start_stored(&orb, RtChannelOptions::default(), store).unwrap();
        let mut multicast = Multicast::start(&orb, &served, &on(group())).unwrap();
        assert_eq!(served.consumers().len(), 1, "life {life}");
        // Too late to disconnect: as if it had crashed.
        orb.shutdown(true).expect("it ends");
        multicast.close();
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn channel_that_is_closed_or_dropped_is_in_the_group_no_more() {
    let group = group();
    for is_closed in [true, false] {
        let mut member = Member::new(&on(group));
        assert_eq!(member.world.served.consumers().len(), 2, "and the group");
        if is_closed {
            member.multicast.close();
            assert_eq!(member.world.served.consumers().len(), 1);
        }
        let Member {
            world, multicast, ..
        } = member;
        drop(multicast);
        assert_eq!(world.served.consumers().len(), 1);
        world.end();
    }
}

#[test]
fn what_the_group_lacks_is_said_in_words() {
    let no_group = MulticastOptions {
        group: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0),
        ..on(group())
    };
    let world = World::new();
    let refused = Multicast::start(&world.server, &world.served, &no_group).err();
    let refused = refused.expect("no group").to_string();
    assert!(
        refused.starts_with("no socket for the group: "),
        "{refused}"
    );
    world.end();
}

#[test]
fn datagrams_of_a_divided_event_are_within_their_bound() {
    use deckwatch_event::limits::MULTICAST_DATAGRAM_SIZE;
    let group = group();
    let listener = multicast::receiver(group, HOME).expect("a socket");
    listener.set_read_timeout(Some(PATIENCE)).unwrap();
    let member = Member::new(&on(group));
    let large = of_size(4_000);
    let (mut octets, mut sizes, mut left) = ([0; 4_096], Vec::new(), request(&large).len());
    member.supplier.push(&[large]).unwrap();
    while left > 0 {
        let (size, _) = listener.recv_from(&mut octets).expect("a datagram");
        sizes.push(size);
        left -= size - 32;
    }
    let last = sizes.pop();
    assert_eq!(sizes, [MULTICAST_DATAGRAM_SIZE; 2]);
    assert!(last.is_some_and(|size| size < MULTICAST_DATAGRAM_SIZE));
    member.end();
}

#[test]
fn channel_on_two_groups_passes_events_from_one_to_the_other() {
    let (left, right) = (group(), group());
    let bridge = Member::new(&on(left));
    let other = Multicast::start(&bridge.world.server, &bridge.world.served, &on(right));
    let mut other = other.expect("loopback has multicast");
    let (one, two) = (Member::new(&on(left)), Member::new(&on(right)));
    let mut far = event(1, 20, "far");
    far.header.ttl = 9;
    one.supplier.push(&[far.clone()]).unwrap();
    assert_eq!(next(&bridge.sets), ["far"]);
    assert_eq!(next(&two.sets), ["far"]);
    two.supplier.push(&[far]).unwrap();
    assert_eq!(next(&two.sets), ["far"], "its own");
    assert_eq!(next(&bridge.sets), ["far"]);
    assert_eq!(next(&one.sets), ["far"], "its own");
    assert_eq!(next(&one.sets), ["far"]);
    other.close();
    for member in [bridge, one, two] {
        member.end();
    }
}
