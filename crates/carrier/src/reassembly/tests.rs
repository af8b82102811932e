//! Streams with gaps, retransmissions and reordering, as networks and captures cause them.

use super::*;

fn frames(bodies: &[&[u8]]) -> Vec<u8> {
    let mut octets = Vec::new();
    for body in bodies {
        octets.extend_from_slice(&u32::try_from(body.len()).expect("small").to_be_bytes());
        octets.extend_from_slice(body);
    }
    octets
}

/// Processes packets of (offset in the stream, octets). Returns the messages' bodies, each with the offset of the
/// packet that completed it, and the unread count.
fn read(
    cut: Cut,
    first: u32,
    open: bool,
    packets: &[(usize, &[u8])],
) -> (Vec<(Vec<u8>, i64)>, u64) {
    let mut stream = Reassembly::new(cut);
    let mut messages = Vec::new();
    let mut note = |message: &[u8], stamp: i64| messages.push((message.to_vec(), stamp));
    if open {
        stream.open(first.wrapping_sub(1));
    }
    for (stamp, &(at, octets)) in (0..).zip(packets) {
        let at = first.wrapping_add(u32::try_from(at).expect("small"));
        stream.take(at, octets, stamp, &mut note);
    }
    stream.finish(&mut note);
    (messages, stream.unread())
}

fn bodies(messages: &[(Vec<u8>, i64)]) -> Vec<(&[u8], i64)> {
    messages
        .iter()
        .map(|(message, stamp)| (&message[4..], *stamp))
        .collect()
}

const TWO: Cut = Cut::Length(2);

#[test]
fn each_message_has_the_stamp_of_its_last_octet() {
    let octets = frames(&[b"ab", b"cd", b"ef"]);
    // Cut inside the first length, at the end of the second message, and the remaining octets at once.
    for first in [1, u32::MAX - 7] {
        let packets = [(0, &octets[..2]), (2, &octets[2..12]), (12, &octets[12..])];
        let (messages, unread) = read(TWO, first, true, &packets);
        assert_eq!(
            bodies(&messages),
            [(&b"ab"[..], 1), (&b"cd"[..], 1), (&b"ef"[..], 2)]
        );
        assert_eq!(unread, 0);
    }
}

#[test]
fn what_waits_behind_a_lost_packet_arrives_with_its_retransmission() {
    let octets = frames(&[b"ab", b"cd", b"ef", b"gh"]);
    let packets = [
        (0, &octets[..6]),
        (12, &octets[12..18]),
        (18, &octets[18..]),
        (6, &octets[6..12]),
        (12, &octets[12..18]), // needless retransmission
    ];
    let (messages, _) = read(TWO, 9, true, &packets);
    assert_eq!(
        bodies(&messages),
        [
            (&b"ab"[..], 0),
            (&b"cd"[..], 3),
            (&b"ef"[..], 3),
            (&b"gh"[..], 3)
        ]
    );
}

#[test]
fn a_retransmission_with_more_octets_adds_the_new_ones_only() {
    let octets = frames(&[b"ab", b"cd"]);
    let packets = [(0, &octets[..6]), (0, &octets[..12]), (3, &octets[3..9])];
    let (messages, _) = read(TWO, 0, true, &packets);
    assert_eq!(bodies(&messages), [(&b"ab"[..], 0), (&b"cd"[..], 1)]);
}

#[test]
fn what_the_capture_missed_costs_only_the_messages_that_it_touched() {
    let octets = frames(&[b"ab", b"cd", b"ef", b"gh", b"ij"]);
    // Octets 8..13 were never captured: the second message from its length on, and the third message's first octet.
    let packets = [
        (0, &octets[..8]),
        (13, &octets[13..18]),
        (18, &octets[18..24]),
        (24, &octets[24..]),
    ];
    let (messages, unread) = read(TWO, 0, true, &packets);
    assert_eq!(
        bodies(&messages),
        [(&b"ab"[..], 0), (&b"gh"[..], 2), (&b"ij"[..], 3)]
    );
    assert_eq!(unread, 1);
}

#[test]
fn a_gap_inside_a_message_of_known_length_does_not_lose_the_next() {
    let octets = frames(&[b"abcdefgh", b"ijklmnop"]);
    let packets = [(0, &octets[..6]), (9, &octets[9..20]), (20, &octets[20..])];
    let (messages, unread) = read(Cut::Length(8), 0, true, &packets);
    assert_eq!(bodies(&messages), [(&b"ijklmnop"[..], 2)]);
    assert_eq!(unread, 1);
}

#[test]
fn a_stream_that_was_open_before_the_capture_is_read_from_its_next_message() {
    let octets = frames(&[b"ab", b"cd"]);
    let (messages, _) = read(TWO, 5, false, &[(0, &octets[3..])]);
    assert_eq!(bodies(&messages), [(&b"cd"[..], 0)]);
    let giop = *b"GIOP\x01\x02\0\x05\0\0\0\0";
    let (messages, _) = read(
        Cut::Giop,
        5,
        false,
        &[(0, b"half a mess"), (11, &giop), (23, &giop)],
    );
    let stamps: Vec<i64> = messages.iter().map(|message| message.1).collect();
    assert_eq!(stamps, [1, 2]);
}

#[test]
fn octets_that_are_no_message_are_passed_over() {
    let giop = *b"GIOP\x01\x02\0\x05\0\0\0\0";
    let (messages, unread) = read(
        Cut::Giop,
        0,
        true,
        &[(0, &giop), (12, b"garbage is no"), (25, &giop)],
    );
    assert_eq!(messages.len(), 2);
    assert_eq!(unread, 1);
}

#[test]
fn what_is_kept_for_a_gap_is_bounded() {
    let mut stream = Reassembly::new(TWO);
    stream.open(u32::MAX);
    let block = vec![0; 1 << 16];
    for index in 0..300_u32 {
        stream.take(1 + (index << 16), &block, 0, &mut |_, _| {});
        assert!(stream.early_octets <= EARLY_OCTETS_MAX + block.len());
    }
    stream.finish(&mut |_, _| {});
    assert_eq!((stream.early_octets, stream.early.len()), (0, 0));
}
