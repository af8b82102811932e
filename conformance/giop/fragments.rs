//! Fragments by clause (CORBA 3.3 part 2, clauses 9.4.9 and 9.5), at the server: tests send octets made by hand and
//! check the octets of the replies.

use crate::common;
use crate::common::message::{
    CANCEL_REQUEST, CLOSE_CONNECTION, FRAGMENT, LOCATE_REQUEST, MESSAGE_ERROR, MORE_FRAGMENTS,
    NO_EXCEPTION, REPLY, locate,
};
use crate::common::{
    Address, FORMS, ORDERS, Octets, Order, Received, World, in_each_world, message,
};
use deckwatch_orb::Orb;

const OBJECT_HERE: u32 = 1;

in_each_world! {
    fn a_fragmented_request_is_served_once_it_is_whole(world) {
        for form in [(1, Order::Big), (1, Order::Little), (2, Order::Big), (2, Order::Little)] {
            let payload: Vec<u8> = (0..200).collect();
            let whole = world.request(form, "octets").with(|o| { o.sequence(&payload); });
            let mut wire = world.dial();
            for part in fragments(&whole, form, &[56, 48, 64]) {
                wire.say(&part);
            }
            let mut reply = wire.ask(&[]).reply();
            assert_eq!((reply.id, reply.body.sequence()), (7, payload), "{form:?}");
        }
    }

    fn fragments_of_several_requests_of_1_2_may_be_interleaved(world) {
        let form = (2, Order::Big);
        let [a, b] = [1, 2].map(|id| {
            let whole = world.request(form, "octets").id(id).with(|o| { o.sequence(&[id as u8; 150]); });
            fragments(&whole, form, &[64, 64, 64])
        });
        let mut wire = world.dial();
        for (a, b) in a.iter().zip(&b) {
            wire.say(a);
            wire.say(b);
        }
        let mut replies = [wire.hear().unwrap().reply(), wire.hear().unwrap().reply()];
        replies.sort_by_key(|reply| reply.id);
        let [mut a, mut b] = replies;
        assert_eq!((a.body.sequence(), b.body.sequence()), (vec![1; 150], vec![2; 150]));
    }

    fn other_messages_may_stand_between_the_fragments_of_one(world) {
        let form = (2, Order::Little);
        let whole = world.request(form, "octets").id(1).with(|o| { o.sequence(&[3; 100]); });
        let parts = fragments(&whole, form, &[64, 64]);
        let mut wire = world.dial();
        wire.say(&parts[0]);
        assert_eq!(wire.ask(&world.request(form, "ping").id(2).bare()).reply().id, 2);
        wire.say(&message(form, CANCEL_REQUEST, |o| { o.u32(77); }));
        for part in &parts[1..] {
            wire.say(part);
        }
        let mut reply = wire.ask(&[]).reply();
        assert_eq!((reply.id, reply.body.sequence()), (1, vec![3; 100]));
    }

    fn a_cancelled_train_of_fragments_is_given_up(world) {
        let form = (2, Order::Big);
        let whole = world.request(form, "octets").id(1).with(|o| { o.sequence(&[3; 100]); });
        let mut wire = world.dial();
        wire.say(&fragments(&whole, form, &[64, 64])[0]);
        wire.say(&message(form, CANCEL_REQUEST, |o| { o.u32(1); }));
        // The request id can be used again.
        let mut reply = wire.ask(&world.request(form, "octets").id(1).with(|o| { o.sequence(b"new"); })).reply();
        assert_eq!((reply.id, reply.body.sequence()), (1, b"new".to_vec()));
        assert_eq!(world.probe.calls(), 1);
    }

    fn a_fragmented_locate_request_of_1_2_is_answered(world) {
        let form = (2, Order::Big);
        let (tag, profile) = world.profile();
        let whole = locate(form, 6, &Address::Profile(tag, profile));
        let mut wire = world.dial();
        for part in fragments(&whole, form, &[24]) {
            wire.say(&part);
        }
        let mut body = wire.ask(&[]).body();
        assert_eq!((body.u32(), body.u32()), (6, OBJECT_HERE));
    }

    fn fragments_of_1_1_are_aligned_each_from_its_own_header(world) {
        for order in ORDERS {
            let form = (1, order);
            // With this operation name, the first fragment does not end at a multiple of 8. The number after the next
            // header is aligned as if a message started there.
            let head = world.request(form, "number").bare();
            let mut first = head.clone();
            first[6] |= MORE_FRAGMENTS;
            let last = message(form, FRAGMENT, |o| { o.u64(0x0102_0304_0506_0708); });
            assert_eq!(last.len(), 24, "four octets of padding behind its header");
            let mut wire = world.dial();
            wire.say(&first);
            let mut reply = wire.ask(&last).reply();
            assert_eq!(reply.status, NO_EXCEPTION, "{order:?}");
            let numbers = [reply.body.align(8).u32(), reply.body.u32()];
            assert!([[0x0102_0304, 0x0506_0708], [0x0506_0708, 0x0102_0304]].contains(&numbers));
        }
    }

    fn a_fragment_of_nothing_is_a_message_error(world) {
        for form in [(1, Order::Big), (2, Order::Big)] {
            let mut wire = world.dial();
            let stray = message(form, FRAGMENT, |o| { o.u32(3).u32(4); });
            assert_eq!(wire.ask(&stray).kind(), MESSAGE_ERROR);
            wire.expect_end();
        }
        world.expect_served();
    }

    fn messages_that_may_not_be_fragmented_are_refused_as_fragments(world) {
        for (form, kind) in [
            ((1, Order::Big), LOCATE_REQUEST),
            ((2, Order::Big), CANCEL_REQUEST),
            ((2, Order::Big), CLOSE_CONNECTION),
            ((2, Order::Big), MESSAGE_ERROR),
        ] {
            let mut wire = world.dial();
            let mut octets = message(form, kind, |o| { o.u32(1); });
            octets[6] |= MORE_FRAGMENTS;
            assert_eq!(wire.ask(&octets).kind(), MESSAGE_ERROR, "type {kind} of {form:?}");
        }
    }
}

common::over_each! {
    fn no_primitive_is_broken_by_the_border_of_a_fragment(over) {
        const SEQUENCE: u32 = 19;
        const ULONGLONG: u32 = 24;
        const COUNT: u32 = 500;
        let world = World::with(over, Orb::builder().fragment_size(1024));
        for order in ORDERS {
            let request = world.request((1, order), "any").with(|o| {
                let mut inside = Octets::encapsulation(order);
                inside.u32(ULONGLONG).u32(0);
                o.u32(SEQUENCE).sequence(&inside.octets).u32(COUNT);
                for value in 0..COUNT {
                    o.u64(u64::from(value));
                }
            });
            let mut wire = world.dial();
            let mut part = wire.ask(&request);
            let mut body = part.reply().body;
            assert_eq!((body.u32(), body.sequence().len(), body.u32()), (SEQUENCE, 12, COUNT));
            for value in 0..u64::from(COUNT) {
                if body.rest().is_empty() {
                    assert_eq!(part.flags() & MORE_FRAGMENTS, MORE_FRAGMENTS);
                    part = wire.hear().expect("the next fragment");
                    body = part.body();
                }
                assert_eq!(body.u64(), value, "in fragments of 1.1, each aligned from its own header");
            }
            assert_eq!((body.rest(), part.flags() & MORE_FRAGMENTS), (&[][..], 0));
        }
    }

    fn large_replies_go_out_in_fragments_that_end_where_the_version_wants(over) {
        let world = World::with(over, Orb::builder().fragment_size(1024));
        let payload: Vec<u8> = (0..5_000).map(|index| index as u8).collect();
        for form in FORMS {
            let mut wire = world.dial();
            let mut part = wire.ask(&world.request(form, "octets").id(77).with(|o| { o.sequence(&payload); }));
            assert_eq!((part.kind(), part.minor()), (REPLY, form.0));
            let mut joined = part.octets.clone();
            joined[6] &= !MORE_FRAGMENTS;
            let mut parts = 1;
            while part.flags() & MORE_FRAGMENTS != 0 {
                assert!(part.octets.len() <= 1024 && part.octets.len().is_multiple_of(8), "{} octets", part.octets.len());
                part = wire.hear().expect("the next fragment");
                assert_eq!((part.kind(), part.minor(), part.order()), (FRAGMENT, form.0, part.order()));
                let mut data = part.body();
                if form.0 == 2 {
                    assert_eq!(data.u32(), 77, "each fragment of 1.2 names its request");
                }
                joined.extend(data.rest());
                parts += 1;
            }
            assert_eq!(parts > 1, form.0 > 0, "{form:?}");
            let mut reply = Received { octets: joined }.reply();
            assert_eq!(reply.body.sequence(), payload, "{form:?}");
        }
    }
}

/// Divides a message into fragments. The first has `sizes[0]` octets, header included; the next ones have the other
/// sizes as data; the last has the rest.
fn fragments(whole: &[u8], form: (u8, Order), sizes: &[usize]) -> Vec<Vec<u8>> {
    let (first, mut rest) = whole.split_at(sizes[0]);
    let mut first = first.to_vec();
    let id = first[12..16].to_vec();
    let sized = message(form, first[7], |o| {
        o.raw(&first[12..]);
    });
    first[8..12].copy_from_slice(&sized[8..12]);
    first[6] |= MORE_FRAGMENTS;
    let mut parts = vec![first];
    for (index, size) in sizes[1..].iter().copied().chain([usize::MAX]).enumerate() {
        let (data, left) = rest.split_at(size.min(rest.len()));
        rest = left;
        let mut part = message(form, FRAGMENT, |o| {
            if form.0 == 2 {
                o.raw(&id);
            }
            o.raw(data);
        });
        let is_last = index + 1 == sizes.len();
        if !is_last {
            part[6] |= MORE_FRAGMENTS;
        }
        parts.push(part);
    }
    parts
}
