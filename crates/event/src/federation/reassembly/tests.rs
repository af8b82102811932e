//! The joining of fragments, within its bounds.

use super::*;
use crate::federation::fragment::fragments;
use crate::limits::MULTICAST_REQUEST_SIZE_MAX;

fn from(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

fn request(number: u32, octets: &[u8]) -> Vec<Fragment<'_>> {
    fragments(octets, ByteOrder::Little, number, 4).collect()
}

const OCTETS: [u8; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

#[track_caller]
fn is_whole(taken: &Taken<'_>) {
    assert_eq!(*taken, Taken::Whole(Cow::Borrowed(&OCTETS)));
}

#[test]
fn fragments_in_any_order_and_doubled_make_one_request() {
    let orders = [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]];
    for (number, order) in (0_u32..).zip(orders) {
        let mut all = Reassembly::default();
        let parts = request(number, &OCTETS);
        for at in &order[..2] {
            assert_eq!(all.take(from(1), &parts[*at], 0), Taken::Pending);
            assert_eq!(all.take(from(1), &parts[*at], 0), Taken::Doubled);
        }
        is_whole(&all.take(from(1), &parts[order[2]], 0));
        assert_eq!(all.take(from(1), &parts[order[2]], 0), Taken::Doubled);
        assert_eq!(all.size(), 0);
    }
}

#[test]
fn requests_of_several_senders_and_numbers_are_kept_apart() {
    let mut all = Reassembly::default();
    let (one, two) = (request(1, &OCTETS), request(2, &OCTETS));
    for parts in [&one, &two] {
        for port in [7, 8] {
            for part in &parts[..2] {
                assert_eq!(all.take(from(port), part, 0), Taken::Pending);
            }
        }
    }
    for parts in [&two, &one] {
        for port in [8, 7] {
            is_whole(&all.take(from(port), &parts[2], 0));
        }
    }
    assert_eq!((all.size(), all.displaced, all.incomplete), (0, 0, 0));
}

#[test]
fn request_with_a_missing_fragment_is_given_up_in_time_and_its_rest_ignored() {
    let mut all = Reassembly::default();
    let (parts, later) = (request(1, &OCTETS), request(2, &OCTETS));
    let limit_ns = MULTICAST_TIMEOUT.as_nanos() as u64;
    all.take(from(1), &parts[0], 5);
    all.take(from(1), &later[0], 6);
    all.expire(limit_ns + 4);
    assert_eq!(all.incomplete, 0);
    all.expire(limit_ns + 5);
    assert_eq!(all.incomplete, 1);
    assert_eq!(all.take(from(1), &parts[1], limit_ns + 5), Taken::Doubled);
    all.take(from(1), &later[1], limit_ns + 5);
    is_whole(&all.take(from(1), &later[2], limit_ns + 5));
    assert_eq!(all.size(), 0);
}

#[test]
fn sender_that_is_quiet_is_forgotten_and_may_count_anew() {
    let mut all = Reassembly::default();
    let alone: Vec<_> = fragments(&OCTETS, ByteOrder::Big, 90, 16).collect();
    is_whole(&all.take(from(1), &alone[0], 0));
    assert_eq!(all.take(from(1), &alone[0], 0), Taken::Doubled);
    let restarted: Vec<_> = fragments(&OCTETS, ByteOrder::Big, 0, 16).collect();
    all.expire(MULTICAST_QUIET.as_nanos() as u64);
    is_whole(&all.take(from(1), &restarted[0], 0));
}

#[test]
fn request_numbers_go_on_after_the_last() {
    let mut all = Reassembly::default();
    for number in [u32::MAX - 1, u32::MAX, 0, 1] {
        let alone: Vec<_> = fragments(&OCTETS, ByteOrder::Big, number, 16).collect();
        is_whole(&all.take(from(1), &alone[0], 0));
        assert_eq!(all.take(from(1), &alone[0], 0), Taken::Doubled);
    }
}

#[test]
fn fragments_that_contradict_each_other_make_no_request() {
    let mut all = Reassembly::default();
    let parts = request(1, &OCTETS);
    all.take(from(1), &parts[0], 0);
    let order = ByteOrder::Big;
    let count = 4;
    let request_size = 11;
    for other in [
        Fragment { order, ..parts[1] },
        Fragment { count, ..parts[1] },
        Fragment {
            request_size,
            ..parts[1]
        },
        Fragment {
            count: 1,
            ..parts[1]
        },
    ] {
        assert_eq!(all.take(from(1), &other, 0), Taken::Malformed);
    }
    // Two that overlap leave a gap.
    let offset = 0;
    assert_eq!(
        all.take(from(1), &Fragment { offset, ..parts[1] }, 0),
        Taken::Pending
    );
    let gap = all.take(
        from(1),
        &Fragment {
            offset,
            octets: &OCTETS[..1],
            ..parts[2]
        },
        0,
    );
    assert_eq!(gap, Taken::Pending);
    all.expire(u64::MAX);
    assert_eq!((all.size(), all.incomplete), (0, 1));
}

#[test]
fn requests_senders_and_octets_are_bounded() {
    let mut all = Reassembly::default();
    let bound = MULTICAST_PENDING_MAX as u32;
    for number in 0..=bound {
        all.take(from(1), &request(number, &OCTETS)[0], number.into());
    }
    assert_eq!(all.displaced, 1);
    assert_eq!(
        all.take(from(1), &request(0, &OCTETS)[1], 99),
        Taken::Doubled,
        "the oldest went"
    );

    for port in 0..MULTICAST_SENDERS_MAX as u16 {
        let one = SocketAddr::from(([192, 0, 2, 2 + (port % 8) as u8], port));
        all.take(one, &request(1, &OCTETS)[0], 200);
    }
    assert_eq!(all.senders.len(), MULTICAST_SENDERS_MAX);
    assert!(all.senders.contains_key(&from(1)), "it is alone");
    assert_eq!(all.displaced, 2, "one of an address with most went");

    let mut all = Reassembly::default();
    for number in 0..10 {
        let large = Fragment {
            request_size: MULTICAST_REQUEST_SIZE_MAX,
            ..request(number, &OCTETS)[0]
        };
        all.take(from(number as u16), &large, number.into());
        assert!(all.size() <= MULTICAST_PENDING_SIZE_MAX);
    }
    assert!(all.displaced >= 6);
}

#[test]
fn senders_of_one_address_leave_room_for_those_of_others() {
    let stranger = |port: u16| SocketAddr::from(([192, 0, 2, 66], port));
    let large = |number: u32| Fragment {
        request_size: MULTICAST_REQUEST_SIZE_MAX,
        ..request(number, &OCTETS)[0]
    };
    let mut all = Reassembly::default();
    // The good sender is quiet for longest, and has the largest request.
    let good = request(1, &OCTETS);
    let waiting = large(2);
    assert_eq!(all.take(from(1), &good[0], 0), Taken::Pending);
    assert_eq!(all.take(from(1), &waiting, 0), Taken::Pending);
    for port in 0..2 * MULTICAST_SENDERS_MAX as u16 {
        let part = Fragment {
            request_size: MULTICAST_REQUEST_SIZE_MAX / 2,
            ..request(1, &OCTETS)[0]
        };
        assert_eq!(all.take(stranger(port), &part, 1), Taken::Pending);
        assert!(all.size() <= MULTICAST_PENDING_SIZE_MAX);
        assert!(all.senders.len() <= 1 + MULTICAST_SENDERS_SHARE);
    }
    assert_eq!(all.take(from(1), &waiting, 2), Taken::Doubled);
    assert_eq!(all.senders[&from(1)].pending.len(), 2);
    assert_eq!(all.take(from(1), &good[1], 2), Taken::Pending);
    is_whole(&all.take(from(1), &good[2], 2));
}

#[test]
fn numbers_around_the_first_one_of_a_sender_are_told_from_each_other() {
    // The first datagram that arrives need not be the first that was sent.
    for first in [5_u32, 0] {
        let mut all = Reassembly::default();
        for step in [0, 1, 2, 7, 8, 9] {
            let number = first.wrapping_sub(step);
            let alone: Vec<_> = fragments(&OCTETS, ByteOrder::Big, number, 16).collect();
            is_whole(&all.take(from(1), &alone[0], 0));
            assert_eq!(all.take(from(1), &alone[0], 0), Taken::Doubled, "{number}");
        }
    }
}

#[test]
fn sender_is_forgotten_when_it_was_quiet_and_has_nothing_unfinished() {
    let mut all = Reassembly::default();
    let quiet_ns = MULTICAST_QUIET.as_nanos() as u64;
    let alone: Vec<_> = fragments(&OCTETS, ByteOrder::Big, 1, 16).collect();
    all.take(from(1), &alone[0], 0);
    all.take(from(2), &alone[0], quiet_ns / 2);
    all.expire(quiet_ns - 1);
    assert_eq!(all.senders.len(), 2);
    all.expire(quiet_ns);
    assert_eq!(all.senders.len(), 1, "the one that was heard later");
    all.take(from(3), &request(1, &OCTETS)[0], 2 * quiet_ns);
    assert!(all.size() > 0);
    all.expire(2 * quiet_ns);
    assert_eq!(all.senders.len(), 1, "the one with a request");
    all.expire(2 * quiet_ns + MULTICAST_TIMEOUT.as_nanos() as u64);
    assert_eq!((all.size(), all.incomplete), (0, 1));
}

#[test]
fn requests_that_take_all_octets_to_the_last_are_kept() {
    let mut all = Reassembly::default();
    let parts = |number| request(number, &OCTETS);
    // Beside its octets, a request has a word for each 64 fragments.
    let size_max = MULTICAST_PENDING_SIZE_MAX / 4;
    assert!(size_max <= MULTICAST_REQUEST_SIZE_MAX as usize);
    let whole = |number: u32| Fragment {
        request_size: size_max as u32 - size_of::<u64>() as u32,
        ..parts(number)[0]
    };
    for number in 0..4 {
        all.take(from(1), &whole(number), number.into());
    }
    assert_eq!((all.size(), all.displaced), (MULTICAST_PENDING_SIZE_MAX, 0));
    all.take(from(1), &parts(4)[0], 4);
    assert_eq!(all.displaced, 1);
}

#[test]
fn fragments_that_overlap_are_no_request_though_they_have_its_octets() {
    let mut all = Reassembly::default();
    let half = Fragment {
        octets: &OCTETS[..5],
        ..request(1, &OCTETS)[0]
    };
    assert_eq!(all.take(from(1), &half, 0), Taken::Pending);
    assert_eq!(
        all.take(from(1), &Fragment { number: 1, ..half }, 0),
        Taken::Pending,
        "the third is missing"
    );
}
