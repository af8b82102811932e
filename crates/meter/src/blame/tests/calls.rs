//! Sends behind calls: what held up the call is charged.

use super::*;

#[test]
fn a_send_held_up_by_the_call_before_is_charged_to_what_held_up_that_call() {
    let mut first = prompt(0);
    hold_up(&mut first, Layer::Stack, 98 * MS);
    let mut second = prompt(1);
    hold_up(&mut second, Layer::Sender, 52 * MS);
    // Due at 50 ms; the call before returned at 100 ms; sent at 103 ms.
    assert_eq!((first.returned_ns / MS, second.sent_ns / MS), (100, 103));
    assert_eq!(ms(&split(&[first, second], 1)), [3, 0, 1 + 50, 1, 0, 1, 0]);
}

#[test]
fn a_chain_of_held_up_calls_leads_back_to_the_one_that_began_it() {
    // Call 0 spends until 400 ms in the network. Calls 1 to 4 follow one after the other, each a prompt two-way call of
    // 2 ms.
    let mut samples: Vec<Sample> = (0..5).map(prompt).collect();
    for (index, sample) in samples.iter_mut().enumerate() {
        let late_ns = if index == 0 {
            0
        } else {
            400 * MS + (i64::try_from(index).expect("small") - 1) * 6 * MS - sample.sent_ns
        };
        hold_up(sample, Layer::Sender, late_ns);
        *sample = replied(*sample);
    }
    hold_up(&mut samples[0], Layer::Network, 394 * MS);
    samples[0] = replied(samples[0]);
    assert_eq!(samples[0].returned_ns, 400 * MS);
    let parts = split_on(Road::MIDDLEWARE, &samples, 4);
    assert_eq!(samples[4].sent_ns / MS, 418);
    assert_eq!(
        parts.of(Layer::Network) / MS,
        200 + 1,
        "from due at 200 until call 0 came back, and its own"
    );
    assert_eq!(parts.sum(), samples[4].received_ns - samples[4].due_ns);
}

#[test]
fn a_message_never_sent_behind_a_call_that_never_came_back_is_charged_to_that_call() {
    let stuck = Sample {
        returned_ns: NO_STAMP,
        kernel_receive_ns: NO_STAMP,
        received_ns: NO_STAMP,
        handled_ns: NO_STAMP,
        ..prompt(1)
    };
    let unsent = Sample {
        sent_ns: NO_STAMP,
        returned_ns: NO_STAMP,
        kernel_transmit_ns: NO_STAMP,
        kernel_receive_ns: NO_STAMP,
        received_ns: NO_STAMP,
        handled_ns: NO_STAMP,
        ..prompt(2)
    };
    // In the network; at a consumer that was not woken; at a consumer that is handling it.
    let arrived = Sample {
        kernel_receive_ns: prompt(1).kernel_receive_ns,
        ..stuck
    };
    let in_hand = Sample {
        received_ns: prompt(1).received_ns,
        ..arrived
    };
    for (call, layer) in [
        (stuck, Layer::Network),
        (arrived, Layer::WakeUp),
        (in_hand, Layer::Application),
    ] {
        let samples = [prompt(0), call, unsent];
        let calls = calls(RAW, samples.iter());
        assert_eq!(
            Splitter::new(RAW, &samples, &calls).lost_in(&unsent, 50 * MS),
            layer
        );
    }
}

#[test]
fn calls_through_a_middleware_hold_up_only_their_own_destination() {
    let road = Road::MIDDLEWARE;
    let mut slow = prompt(0);
    hold_up(&mut slow, Layer::Stack, 98 * MS);
    let mut other = prompt(1);
    hold_up(&mut other, Layer::Sender, 52 * MS);
    for (destination, expected) in [(0, [3, 51, 0, 1, 0, 1, 0]), (1, [53, 1, 0, 1, 0, 1, 0])] {
        other.destination = destination;
        let calls = calls(road, [slow, other].iter());
        assert_eq!(
            ms(&Splitter::new(road, &[other], &calls).split(&other)),
            expected,
            "supplied by thread {destination}"
        );
    }
}

#[test]
fn a_call_that_awaits_no_reply_is_not_charged_to_what_its_message_meets_after_it_left() {
    for road in [RAW, Road::MIDDLEWARE] {
        let mut first = prompt(0);
        hold_up(&mut first, Layer::Network, 70 * MS);
        first.returned_ns = 90 * MS;
        let mut second = prompt(1);
        hold_up(&mut second, Layer::Sender, 42 * MS);
        // Due at 50 ms; the call before returned at 90 ms; sent at 93 ms.
        let parts = split_on(road, &[first, second], 1);
        assert_eq!(
            (parts.of(Layer::Sender), parts.of(Layer::Network)),
            (43 * MS, MS)
        );
    }
}

#[test]
fn a_call_ends_where_its_message_leaves_or_at_the_channel_or_with_its_reply() {
    let layers = |road: Road, awaits_reply: bool| -> Vec<Layer> {
        let sample = prompt(0);
        let stamps = road.call(&sample, awaits_reply);
        stamps.map(|milestone| milestone.layer).collect()
    };
    let (left, back) = (Layer::Middleware, Layer::Sender);
    for road in [Road::MIDDLEWARE, Road::CHANNEL] {
        assert_eq!(layers(road, false), [left, back]);
    }
    assert_eq!(
        layers(Road::CHANNEL, true),
        [left, Layer::Network, Layer::Channel, back]
    );
    assert_eq!(
        layers(Road::MIDDLEWARE, true),
        [
            left,
            Layer::Network,
            Layer::WakeUp,
            Layer::Application,
            Layer::Middleware,
            Layer::Network,
            back
        ]
    );
}

#[test]
fn a_call_whose_return_has_no_stamp_is_charged_only_if_it_is_the_last_and_others_returned() {
    let unreturned = |sample: Sample| Sample {
        returned_ns: NO_STAMP,
        ..sample
    };
    // In the middle: the supplier was free afterwards.
    let mut last = prompt(2);
    hold_up(&mut last, Layer::Sender, 7 * MS);
    let samples = [prompt(0), unreturned(prompt(1)), last];
    assert_eq!(ms(&split(&samples, 2)), [8, 0, 1, 1, 0, 1, 0]);
    // Where no return is stamped, it is not known whether a call lasted.
    let lost = |sample: Sample| Sample {
        kernel_receive_ns: NO_STAMP,
        received_ns: NO_STAMP,
        handled_ns: NO_STAMP,
        ..unreturned(sample)
    };
    let unsent = Sample {
        sent_ns: NO_STAMP,
        kernel_transmit_ns: NO_STAMP,
        ..lost(prompt(2))
    };
    let samples = [unreturned(prompt(0)), lost(prompt(1)), unsent];
    let calls = calls(RAW, samples.iter());
    let splitter = Splitter::new(RAW, &samples, &calls);
    assert_eq!(splitter.lost_in(&unsent, 50 * MS), Layer::Sender);
}

#[test]
fn a_send_held_up_by_a_call_that_waited_for_the_consumer_is_charged_to_the_consumer() {
    // The first message is unread from 3 to 200 ms, and the call for the second blocks from 51 to 202 ms.
    let mut first = prompt(0);
    hold_up(&mut first, Layer::WakeUp, 196 * MS);
    let mut second = prompt(1);
    hold_up(&mut second, Layer::Stack, 150 * MS);
    let mut third = prompt(2);
    hold_up(&mut third, Layer::Sender, 102 * MS);
    let parts = split(&[first, second, third], 2);
    assert_eq!(parts.of(Layer::Stack), 0);
    assert!(parts.of(Layer::WakeUp) >= 102 * MS, "{parts:?}");
}

#[test]
fn a_call_that_is_under_way_is_in_the_layer_after_its_last_stamp() {
    let in_flight = |road: Road, sample: Sample, other: Sample| {
        let seen = Seen::of([sample, other].iter());
        crate::blame::split::in_flight(road, &sample, &seen)
    };
    let handled = prompt(0);
    let left = Sample {
        reply_transmit_ns: 5 * MS,
        ..handled
    };
    let back = Sample {
        reply_receive_ns: 6 * MS,
        ..left
    };
    let road = Road::MIDDLEWARE;
    assert_eq!(in_flight(road, handled, back), Layer::Middleware);
    assert_eq!(in_flight(road, left, back), Layer::Network);
    assert_eq!(in_flight(road, back, back), Layer::Sender);
    assert_eq!(in_flight(Road::CHANNEL, back, back), Layer::Channel);
    // No other message has the stamp either.
    assert_eq!(in_flight(road, handled, handled), Layer::Unknown);
    assert_eq!(in_flight(road, left, handled), Layer::Unknown);
}
