//! Frames of hostile hosts at a relay: what it reads of each, and where each goes. The ledger adds up.

#![no_main]

use deckwatch_testbed::Layout;
use deckwatch_testbed::preset;
use deckwatch_testbed::relay::{Head, Relay};

const HOSTS: usize = 3;
/// Octets of an Ethernet header.
const HEADER: usize = 14;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    let network = preset("gigabit-ethernet").expect("it is known");
    let link = network.link().expect("it is emulated");
    let names = (0..HOSTS).map(|host| format!("H{host}")).collect();
    let mut relay = Relay::new(&Layout::star(names, &link), 1).expect("a star");
    let mut rest = octets;
    let mut now_ns = 0;
    // Each frame follows its sender, the microseconds since the last one, and its length.
    while let [sender, later, low, high, tail @ ..] = rest {
        let size = usize::from(u16::from_le_bytes([*low, *high])).min(tail.len());
        let (frame, behind) = tail.split_at(size);
        rest = behind;
        now_ns += u64::from(*later) * 1_000;
        let head = Head::parse(frame);
        assert_eq!(head.is_some(), frame.len() >= HEADER);
        if let Some(head) = head {
            assert_eq!(head.packet_bytes as usize, frame.len() - HEADER);
            relay.arrive(now_ns, usize::from(*sender) % (HOSTS + 1), head, ());
        }
        while let Some(departure) = relay.poll(now_ns, 0) {
            assert!(departure.host < HOSTS && departure.due_ns <= now_ns);
        }
        assert!(relay.ledger().adds_up());
    }
    while relay.poll(u64::MAX, 0).is_some() {}
    let ledger = relay.ledger();
    assert!(ledger.adds_up() && ledger.inside == 0, "{ledger:?}");
});
