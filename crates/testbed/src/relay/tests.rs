//! A relay in virtual time against theory.

use super::*;
use crate::limits::RELAY_FRAMES_IN_FLIGHT_MAX;
use crate::link::{Impairment, LinkSpec};
use crate::presets::{PRESETS, preset};

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
const MIDDLE: Head = Head {
    to: Destination::Host(B),
    packet_bytes: 1500,
    band: Band::Middle,
};

fn link(name: &str) -> LinkSpec {
    preset(name).unwrap().link().unwrap()
}

/// A switch with the hosts A, B and C.
fn star(spec: &LinkSpec) -> Relay<u64> {
    Relay::new(
        &Layout::star(["A", "B", "C"].map(str::to_owned).into(), spec),
        1,
    )
    .unwrap()
}

fn drain(relay: &mut Relay<u64>) -> Vec<Departure<u64>> {
    std::iter::from_fn(|| relay.poll(u64::MAX, 0)).collect()
}

/// Each frame is marked with the time of its arrival; returns the delays.
fn delays(departures: &[Departure<u64>]) -> Vec<u64> {
    let delay = |departure: &Departure<u64>| departure.due_ns - departure.frame;
    departures.iter().map(delay).collect()
}

fn mean(values: &[u64]) -> f64 {
    values.iter().sum::<u64>() as f64 / values.len() as f64
}

#[track_caller]
fn assert_within(value: f64, expected: f64, share: f64) {
    let ratio = value / expected;
    assert!((ratio - 1.0).abs() <= share, "{value} is not {expected}");
}

#[test]
fn one_frame_takes_its_octets_at_the_rate_on_both_hops_of_each_network() {
    for spec in PRESETS.iter().filter_map(|preset| preset.spec().link()) {
        let longest = spec.mtu_bytes.min(9152 + 28);
        for packet_bytes in (64..=longest).step_by(16).chain([longest]) {
            let mut relay = star(&spec);
            relay.arrive(
                1000,
                A,
                Head {
                    packet_bytes,
                    ..MIDDLE
                },
                1000,
            );
            let took = delays(&drain(&mut relay))[0];
            let due_ns = 2e9 * spec.transmission_s(packet_bytes.into());
            assert!((took as f64 - due_ns).abs() < 2.0, "{took} {due_ns}");
        }
    }
}

#[test]
fn goodput_is_that_of_theory_on_fast_ethernet_gigabit_and_oc3() {
    const FRAMES: u64 = 20_000;
    for (name, payload) in [
        ("fast-ethernet", 1472),
        ("fast-ethernet", 18),
        ("gigabit-ethernet", 1472),
        ("gigabit-ethernet", 64),
        ("atm-oc3", 1472),
        ("atm-oc3", 9152),
    ] {
        let mut spec = link(name);
        spec.queue_frames = u32::MAX;
        let mut relay = star(&spec);
        let head = Head {
            packet_bytes: payload + 28,
            ..MIDDLE
        };
        // A sender that is a tenth too fast.
        let gap_ns = 0.9e9 * spec.transmission_s(head.packet_bytes.into());
        let mut octets = 0;
        let mut times = Vec::new();
        for number in 0..FRAMES {
            let at_ns = (number as f64 * gap_ns) as u64;
            relay.arrive(at_ns, A, head, at_ns);
            while let Some(departure) = relay.poll(at_ns, 0) {
                times.push(departure.due_ns);
                octets += u64::from(payload);
            }
        }
        let span_ns = times[times.len() - 1] - times[0];
        let rate = (octets - u64::from(payload)) as f64 * 8e9 / span_ns as f64;
        let theory = preset(name).unwrap();
        let theory = theory.udp_goodput_bits_per_s(payload.into()).unwrap();
        assert_within(rate, theory, 0.0005);
    }
}

/// Sends frames from A and from C to B, each at random at half of `load`, and returns the delays of A's.
fn crossed(spec: &LinkSpec, load: f64, frames: usize) -> Vec<u64> {
    let service_ns = 1e9 * spec.transmission_s(MIDDLE.packet_bytes.into());
    // Short hops to the switch: they do not smooth what arrives there.
    let mut layout = Layout::star(["A", "B", "C"].map(str::to_owned).into(), spec);
    for link in [A, C] {
        layout.links[link].spec.rate_bits_per_s *= 10_000;
    }
    let mut relay = Relay::new(&layout, 1).unwrap();
    let mut random = Random(7);
    let mut at = 0.0;
    let mut all = Vec::new();
    for number in 0..frames {
        at += -random.share().ln() * service_ns / load;
        let at_ns = at as u64;
        relay.arrive(at_ns, [A, C][number % 2], MIDDLE, at_ns);
        all.extend(std::iter::from_fn(|| relay.poll(at_ns, 0)));
    }
    all.extend(drain(&mut relay));
    assert_eq!(all.len(), frames);
    delays(&all)
}

#[test]
fn mean_waits_are_those_of_a_queue_with_random_arrivals_and_constant_service() {
    for load in [0.5, 0.75, 0.9] {
        let mut spec = link("fast-ethernet");
        spec.queue_frames = u32::MAX;
        let service_ns = 1e9 * spec.transmission_s(1500);
        let waited = mean(&crossed(&spec, load, 400_000)) - service_ns;
        assert_within(waited, service_ns * load / (2.0 * (1.0 - load)), 0.05);
    }
}

/// Sends `count` frames, far apart, over a link with an impairment on the way to B.
fn impaired(impairment: Impairment, count: u64) -> (Relay<u64>, Vec<Departure<u64>>) {
    let mut layout = Layout::star(["A", "B"].map(str::to_owned).into(), &link("fast-ethernet"));
    layout.links[B].spec.impairment = impairment;
    let mut relay = Relay::new(&layout, 3).unwrap();
    let mut all = Vec::new();
    for number in 0..count {
        relay.arrive(number * 1_000_000, A, MIDDLE, number * 1_000_000);
        all.extend(std::iter::from_fn(|| relay.poll(number * 1_000_000, 0)));
        assert!(relay.ledger().adds_up(), "{:?}", relay.ledger());
    }
    all.extend(drain(&mut relay));
    (relay, all)
}

/// Whether a count is what a share of `n` trials gives, within 4 standard deviations.
#[track_caller]
fn assert_binomial(count: u64, n: u64, share: f64) {
    let expected = n as f64 * share;
    let deviation = (expected * (1.0 - share)).sqrt();
    assert!(
        (count as f64 - expected).abs() < 4.0 * deviation,
        "{count} of {n}"
    );
}

#[test]
fn losses_and_duplicates_are_the_shares_asked_for() {
    const FRAMES: u64 = 50_000;
    for share in [0.001, 0.01, 0.3] {
        let loss = Impairment {
            loss: share,
            ..Impairment::default()
        };
        let (relay, all) = impaired(loss, FRAMES);
        let ledger = relay.ledger();
        assert_binomial(ledger.lines.lost, FRAMES, share);
        assert_eq!(all.len() as u64 + ledger.lines.lost, FRAMES);
        assert!(ledger.adds_up(), "{ledger:?}");
        let twice = Impairment {
            duplicate: share,
            ..Impairment::default()
        };
        let (relay, all) = impaired(twice, FRAMES);
        let ledger = relay.ledger();
        assert_binomial(ledger.lines.duplicated, FRAMES, share);
        assert_eq!(all.len() as u64 - ledger.lines.duplicated, FRAMES);
        assert!(ledger.adds_up(), "{ledger:?}");
    }
}

#[test]
fn a_delay_is_added_and_jitter_is_even_and_keeps_the_order() {
    let sent_ns = 2 * 123_040;
    let slow = Impairment {
        delay_ns: 2_000_000,
        ..Impairment::default()
    };
    let (_, all) = impaired(slow, 10);
    assert!(
        delays(&all)
            .iter()
            .all(|&delay| delay == 2_000_000 + sent_ns)
    );
    let uneven = Impairment {
        jitter_ns: 500_000,
        ..slow
    };
    let (_, all) = impaired(uneven, 20_000);
    let delays = delays(&all);
    assert_within(
        mean(&delays) - (2_000_000 + sent_ns) as f64,
        250_000.0,
        0.02,
    );
    assert!(delays.iter().max() <= Some(&(2_500_000 + sent_ns)));
    let wild = Impairment {
        jitter_ns: 50_000_000,
        ..slow
    };
    let (_, all) = impaired(wild, 1000);
    assert!(all.iter().map(|one| one.frame).is_sorted());
}

#[test]
fn the_share_to_be_reordered_is_overtaken() {
    let reordered = Impairment {
        reorder: 0.1,
        reorder_delay_ns: 1_500_000,
        ..Impairment::default()
    };
    let (relay, all) = impaired(reordered, 10_000);
    let numbers: Vec<u64> = all.iter().map(|one| one.frame).collect();
    let overtaken = numbers.windows(2).filter(|pair| pair[0] > pair[1]).count() as u64;
    // A frame that follows a late one and is late itself does not overtake it.
    assert_binomial(overtaken, 10_000, 0.1 * 0.9);
    assert!(relay.ledger().adds_up());
}

#[test]
fn a_line_carries_no_more_frames_than_it_may_and_counts_the_others() {
    const BEYOND: u64 = 10;
    let far = Impairment {
        // Longer than the frames take to be sent, a millisecond each.
        delay_ns: 30_000_000_000,
        ..Impairment::default()
    };
    let most = RELAY_FRAMES_IN_FLIGHT_MAX as u64;
    let (relay, all) = impaired(far, most + BEYOND);
    let ledger = relay.ledger();
    assert_eq!((all.len() as u64, ledger.lines.queue_full), (most, BEYOND));
    assert!(ledger.adds_up(), "{ledger:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let all = |_| {
        let some = Impairment {
            loss: 0.1,
            jitter_ns: 9999,
            ..Impairment::default()
        };
        delays(&impaired(some, 1000).1)
    };
    assert_eq!(all(1), all(2));
}

#[test]
fn an_urgent_frame_waits_for_the_frame_on_the_line_and_for_no_other() {
    let mut relay = star(&link("fast-ethernet"));
    relay.hold(B);
    for number in 0..5 {
        relay.arrive(number, C, MIDDLE, 100 + number);
    }
    let last = Head {
        band: Band::Last,
        ..MIDDLE
    };
    relay.arrive(10, C, last, 200);
    assert!(relay.poll(10_000_000, 0).is_none());
    let urgent = Head {
        band: Band::First,
        packet_bytes: 64,
        ..MIDDLE
    };
    // The urgent frame is at the port while the first of the others is on the line.
    relay.release(10_000_000, B);
    relay.arrive(10_000_000, A, urgent, 300);
    let all = drain(&mut relay);
    let order: Vec<u64> = all.iter().map(|one| one.frame).collect();
    assert_eq!(order, [100, 300, 101, 102, 103, 104, 200]);
    let wire_ns = (64 + 38) * 80;
    assert_eq!(all[0].due_ns, 10_123_040);
    assert_eq!(all[1].due_ns, 10_123_040 + wire_ns);
}

#[test]
fn frames_of_all_priorities_leave_one_after_the_other_in_their_order() {
    let mut relay = star(&link("fast-ethernet"));
    relay.hold(B);
    for (number, band) in (0..).zip([Band::Last, Band::Middle, Band::First].repeat(2)) {
        relay.arrive(number, C, Head { band, ..MIDDLE }, number);
    }
    assert!(relay.poll(10_000_000, 0).is_none());
    relay.release(10_000_000, B);
    let all = drain(&mut relay);
    let order: Vec<u64> = all.iter().map(|one| one.frame).collect();
    assert_eq!(order, [2, 5, 1, 4, 0, 3]);
    let times: Vec<u64> = all.iter().map(|one| one.due_ns).collect();
    let each = (1..=6).map(|place| 10_000_000 + place * 123_040);
    assert_eq!(times, each.collect::<Vec<u64>>());
}

#[test]
fn a_full_queue_drops_and_the_ledger_adds_up_at_any_moment() {
    let mut spec = link("fast-ethernet");
    spec.queue_frames = 10;
    let mut relay = star(&spec);
    relay.lose(B, NonZeroU32::new(7));
    for number in 0..300 {
        let at_ns = number * 61_520;
        relay.arrive(at_ns, [A, C][number as usize % 2], MIDDLE, at_ns);
        let group = Head {
            to: Destination::All,
            packet_bytes: 100,
            ..MIDDLE
        };
        relay.arrive(at_ns, A, group, at_ns);
        relay.arrive(
            at_ns,
            A,
            Head {
                to: Destination::Nobody,
                ..group
            },
            at_ns,
        );
        relay.arrive(
            at_ns,
            A,
            Head {
                packet_bytes: 1501,
                ..MIDDLE
            },
            at_ns,
        );
        while relay.poll(at_ns, 0).is_some() {}
        assert!(relay.ledger().adds_up(), "{:?}", relay.ledger());
    }
    drain(&mut relay);
    let ledger = relay.ledger();
    assert!(ledger.adds_up() && ledger.inside == 0, "{ledger:?}");
    assert!(ledger.lines.queue_full > 50, "{ledger:?}");
    assert_eq!((ledger.lines.too_long, ledger.unroutable), (300, 300));
    assert_eq!(ledger.copied, 300);
    let to_b = relay.counts_to(B).unwrap();
    assert_eq!(to_b.lost_on_purpose, to_b.offered.div_ceil(7));
    let dropped = to_b.lost_on_purpose + to_b.queue_full;
    assert_eq!(to_b.arrived, to_b.offered - dropped);
}

#[test]
fn a_frame_that_comes_as_the_line_becomes_free_is_in_the_ledger() {
    let spec = link("gigabit-ethernet");
    let mut alone = star(&spec);
    alone.arrive(0, A, MIDDLE, 0);
    assert!(alone.poll(0, 0).is_none());
    let free_ns = alone.next_due(0).expect("it is on the line");
    // Both are known before the first one is on the line: the second comes before the first has left.
    let mut relay = star(&spec);
    relay.arrive(0, A, MIDDLE, 0);
    relay.arrive(free_ns, A, MIDDLE, 1);
    assert!(relay.poll(free_ns, 0).is_none());
    let ledger = relay.ledger();
    assert!(ledger.adds_up() && ledger.inside == 2, "{ledger:?}");
    assert_eq!(drain(&mut relay).len(), 2);
    assert!(relay.ledger().adds_up() && relay.ledger().inside == 0);
}

#[test]
fn parts_of_a_nanosecond_add_up_on_a_busy_line() {
    let mut spec = link("gigabit-ethernet");
    spec.rate_bits_per_s = 100_000_000_000;
    spec.queue_frames = u32::MAX;
    let mut relay = star(&spec);
    relay.hold(B);
    let short = Head {
        packet_bytes: 46,
        ..MIDDLE
    };
    for number in 0..900 {
        relay.arrive(0, A, short, number);
    }
    assert!(relay.poll(1_000_000, 0).is_none());
    relay.release(1_000_000, B);
    // 84 octets take 6.72 ns.
    let last = drain(&mut relay).pop().unwrap();
    assert_eq!(last.due_ns, 1_000_000 + 6_048);
}

#[test]
fn a_queue_holds_its_frames_and_the_first_is_the_first_lost() {
    let mut spec = link("fast-ethernet");
    spec.queue_frames = 10;
    let mut relay = star(&spec);
    relay.lose(B, NonZeroU32::new(100));
    relay.hold(B);
    for number in 0..15 {
        relay.arrive(number, C, MIDDLE, number);
    }
    assert!(relay.poll(10_000_000, 0).is_none());
    relay.release(10_000_000, B);
    let frames: Vec<u64> = drain(&mut relay).iter().map(|one| one.frame).collect();
    assert_eq!(frames, (1..=10).collect::<Vec<u64>>());
    assert_eq!(relay.ledger().lines.queue_full, 4);
}

#[test]
fn a_frame_to_its_own_sender_goes_nowhere() {
    let mut relay = star(&link("fast-ethernet"));
    relay.arrive(0, B, MIDDLE, 0);
    assert!(drain(&mut relay).is_empty());
    assert_eq!(relay.ledger().unroutable, 1);
}

#[test]
fn a_frame_to_all_reaches_every_host_but_its_sender() {
    let mut relay = star(&link("gigabit-ethernet"));
    let group = Head {
        to: Destination::All,
        ..MIDDLE
    };
    relay.arrive(0, C, group, 0);
    let mut hosts: Vec<usize> = drain(&mut relay).iter().map(|one| one.host).collect();
    hosts.sort_unstable();
    assert_eq!(hosts, [A, B]);
}

#[test]
fn a_lead_brings_frames_out_early_and_changes_neither_times_nor_choices() {
    let run = |lead_ns: u64| {
        let mut relay = star(&link("fast-ethernet"));
        let mut all = Vec::new();
        for number in 0..2000_u64 {
            let at_ns = number * 70_000;
            let band = [Band::Middle, Band::First][usize::from(number % 7 == 3)];
            let head = Head { band, ..MIDDLE };
            relay.arrive(at_ns, [A, C][number as usize % 2], head, at_ns);
            while let Some(departure) = relay.poll(at_ns, lead_ns) {
                assert!(departure.due_ns <= at_ns + lead_ns);
                all.push((departure.due_ns, departure.frame));
            }
            let next_ns = relay.next_due(lead_ns);
            assert!(next_ns.is_some_and(|next_ns| next_ns > at_ns));
        }
        all.extend(drain(&mut relay).iter().map(|one| (one.due_ns, one.frame)));
        all
    };
    assert_eq!(run(0), run(60_000));
    assert_eq!(run(0), run(500_000));
}

#[test]
fn a_late_caller_changes_no_time() {
    let run = |calls: u64| {
        let mut relay = star(&link("fast-ethernet"));
        let mut all = Vec::new();
        for number in 0..1000_u64 {
            let at_ns = number * 100_000;
            relay.arrive(at_ns, [A, C][number as usize % 2], MIDDLE, at_ns);
            if number % calls == 0 {
                all.extend(std::iter::from_fn(|| relay.poll(at_ns, 0)));
            }
        }
        all.extend(drain(&mut relay));
        delays(&all)
    };
    assert_eq!(run(1), run(137));
}
