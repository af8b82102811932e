//! Messages are cut out however octets arrive; what is buffered meanwhile is bounded.

use super::*;
use crate::accounts::Accounts;
use crate::peers::Peer;

const SIZE_MAX: usize = 1 << 20;

/// Framing does not read the body: this one has arbitrary octets.
fn message(body: usize) -> Vec<u8> {
    let mut octets = b"GIOP\x01\x02\0\x06".to_vec();
    octets.extend(u32::try_from(body).unwrap().to_be_bytes());
    octets.resize(octets.len() + body, 7);
    octets
}

fn put(inbound: &mut Inbound, slab: &Slab, mut octets: &[u8]) {
    while !octets.is_empty() {
        let space = inbound.space(slab).unwrap();
        let count = space.len().min(octets.len());
        space[..count].copy_from_slice(&octets[..count]);
        inbound.handle_bytes(count);
        octets = &octets[count..];
    }
}

#[test]
fn messages_are_cut_out_however_the_octets_arrive() {
    let slab = Slab::new(BUFFER_SIZE, 0);
    let octets = [message(3), message(0), message(40_000)].concat();
    for step in [1, 7, 1_000, octets.len()] {
        let mut inbound = Inbound::new(SIZE_MAX, None);
        let mut lens = Vec::new();
        for part in octets.chunks(step) {
            put(&mut inbound, &slab, part);
            while let Some(place) = inbound.poll_message().unwrap() {
                lens.push(inbound.message(place).len());
            }
        }
        assert_eq!(lens, [15, 12, 40_012]);
        assert!(!inbound.is_within_message());
    }
}

#[test]
fn what_follows_a_detached_message_stays() {
    let slab = Slab::new(BUFFER_SIZE, 0);
    let mut inbound = Inbound::new(SIZE_MAX, None);
    put(
        &mut inbound,
        &slab,
        &[message(3), message(5), vec![b'G']].concat(),
    );
    let place = inbound.poll_message().unwrap().unwrap();
    assert!(inbound.has_more());
    let arrived = inbound.detach(place, &slab).unwrap();
    assert_eq!(arrived.message().octets(), message(3));
    let place = inbound.poll_message().unwrap().unwrap();
    assert_eq!(inbound.message(place), message(5));
    assert!(!inbound.has_more());
    assert!(inbound.is_within_message());
}

#[test]
fn a_header_that_claims_much_costs_nothing_and_one_that_claims_too_much_is_a_fault() {
    let slab = Slab::new(BUFFER_SIZE, 0);
    let mut inbound = Inbound::new(SIZE_MAX, None);
    put(&mut inbound, &slab, &message(SIZE_MAX - 12)[..20]);
    assert_eq!(inbound.poll_message(), Ok(None));
    assert_eq!(inbound.buffer.as_ref().unwrap().len(), BUFFER_SIZE);
    let mut inbound = Inbound::new(SIZE_MAX, None);
    put(&mut inbound, &slab, &message(SIZE_MAX)[..12]);
    assert_eq!(inbound.poll_message(), Err(ProtocolError::MessageTooLarge));
}

#[test]
fn behind_a_large_message_no_more_than_the_next_header_is_read() {
    let slab = Slab::new(BUFFER_RETAINED_MAX, 0);
    let mut inbound = Inbound::new(SIZE_MAX, None);
    let octets = [message(60_000), message(60_000), message(3)].concat();
    let mut rest = &octets[..];
    let mut left_over = Vec::new();
    while !rest.is_empty() {
        // As much as there is room for; the first read is no longer than the header that tells the size.
        let space = inbound.space(&slab).unwrap();
        let count = if rest.len() == octets.len() {
            HEADER_SIZE
        } else {
            space.len().min(rest.len())
        };
        space[..count].copy_from_slice(&rest[..count]);
        inbound.handle_bytes(count);
        rest = &rest[count..];
        while inbound.poll_message().unwrap().is_some() {
            left_over.push(inbound.filled - inbound.consumed);
        }
    }
    assert_eq!(left_over, [HEADER_SIZE, HEADER_SIZE, 0]);
}

#[test]
fn no_read_of_a_large_message_is_longer_than_a_higher_lane_may_wait() {
    let slab = Slab::new(BUFFER_SIZE, 0);
    let mut inbound = Inbound::new(SIZE_MAX, None);
    let octets = message(SIZE_MAX - HEADER_SIZE);
    let mut longest = 0;
    let mut rest = &octets[..];
    while !rest.is_empty() {
        let room = inbound.space(&slab).unwrap().len();
        longest = longest.max(room);
        let count = room.min(rest.len());
        put(&mut inbound, &slab, &rest[..count]);
        rest = &rest[count..];
    }
    assert_eq!(longest, READ_SIZE_MAX);
    let place = inbound.poll_message().unwrap().unwrap();
    assert!(inbound.message(place) == octets);
}

#[test]
fn an_idle_connection_holds_no_buffer() {
    let slab = Slab::new(BUFFER_SIZE, 0);
    let mut inbound = Inbound::new(SIZE_MAX, None);
    put(&mut inbound, &slab, &message(3)[..14]);
    inbound.rest(&slab);
    assert!(inbound.buffer.is_some());
    put(&mut inbound, &slab, &message(3)[14..]);
    assert!(inbound.poll_message().unwrap().is_some());
    inbound.rest(&slab);
    assert!(inbound.buffer.is_none());
}

#[test]
fn unfinished_messages_of_many_connections_share_an_account() {
    let slab = Slab::new(BUFFER_SIZE, 0);
    let accounts = Accounts::new([2 * BUFFER_SIZE; 4]);
    let connect = || Inbound::new(SIZE_MAX, Some(accounts.of(Peer::User(1))));
    let octets = message(SIZE_MAX - 12);
    let (mut first, mut second, mut third) = (connect(), connect(), connect());
    put(&mut first, &slab, &octets[..BUFFER_SIZE + 1]);
    put(&mut second, &slab, &octets[..BUFFER_SIZE]);
    assert_eq!(second.space(&slab), Err(OverBudget));
    put(&mut third, &slab, &message(3));
    assert!(third.poll_message().unwrap().is_some());
    drop(first);
    assert!(second.space(&slab).is_ok());
    second.discard(&slab);
    assert_eq!(accounts.bound(Bound::Inbound).held(), 0);
}

#[test]
fn an_unfinished_message_is_known_by_its_beginning() {
    let slab = Slab::new(BUFFER_SIZE, 0);
    let mut inbound = Inbound::new(SIZE_MAX, None);
    let octets = message(3);
    put(&mut inbound, &slab, &octets[..5]);
    assert!(inbound.pause(&slab, || Instant64(7)));
    put(&mut inbound, &slab, &octets[5..9]);
    assert!(inbound.pause(&slab, || Instant64(8)));
    assert_eq!(inbound.begun(), Some(Instant64(7)));
    put(&mut inbound, &slab, &[&octets[9..], &octets[..5]].concat());
    assert!(inbound.poll_message().unwrap().is_some());
    assert!(inbound.pause(&slab, || Instant64(9)));
    assert_eq!(inbound.begun(), Some(Instant64(9)));
    put(&mut inbound, &slab, &octets[5..]);
    assert!(inbound.poll_message().unwrap().is_some());
    assert!(!inbound.pause(&slab, || Instant64(10)));
    assert_eq!(inbound.begun(), None);
}

#[test]
fn a_train_that_does_not_end_keeps_its_beginning_and_trains_that_overlap_have_their_own() {
    let slab = Slab::new(BUFFER_SIZE, 0);
    let mut inbound = Inbound::new(SIZE_MAX, None);
    let part = |kind, more, id| {
        let mut octets = vec![b'G', b'I', b'O', b'P', 1, 2, more, kind, 0, 0, 0, 4];
        octets.extend(u32::to_be_bytes(id));
        octets
    };
    let mut take = |octets: &[u8], now| {
        put(&mut inbound, &slab, octets);
        while let Some(place) = inbound.poll_message().unwrap() {
            if wire::is_fragmented(inbound.message(place.clone())) {
                inbound.join(place, &slab).unwrap();
            }
        }
        inbound.pause(&slab, || Instant64(now));
        inbound.begun()
    };
    assert_eq!(take(&part(0, 2, 1), 7), Some(Instant64(7)));
    assert_eq!(take(&message(3), 8), Some(Instant64(7)));
    assert_eq!(take(&part(0, 2, 2), 9), Some(Instant64(7)));
    assert_eq!(take(&part(7, 2, 1), 10), Some(Instant64(7)));
    assert_eq!(take(&part(7, 0, 1), 11), Some(Instant64(11)));
    assert_eq!(take(&message(3), 12), Some(Instant64(11)));
    assert_eq!(take(&part(7, 0, 2), 13), None);
}
