//! Blame of synthetic samples, for which the right layer is known.

mod acknowledgements;
mod calls;
mod lost;

use super::*;

pub(crate) const MS: i64 = 1_000_000;

/// Returns a message due at `sequence` times 50 ms. It spends 1 ms in each layer of a path without a channel and is
/// handled for 1 ms. Its call returns when it is transmitted.
pub(crate) fn prompt(sequence: u64) -> Sample {
    let due_ns = i64::try_from(sequence).expect("small") * 50 * MS;
    Sample {
        sequence,
        due_ns,
        sent_ns: due_ns + MS,
        returned_ns: due_ns + 2 * MS,
        kernel_transmit_ns: due_ns + 2 * MS,
        kernel_receive_ns: due_ns + 3 * MS,
        received_ns: due_ns + 4 * MS,
        handled_ns: due_ns + 5 * MS,
        ..Sample::NONE
    }
}

/// Delays the stamps from the end of `layer` on by `ns`.
pub(crate) fn hold_up(sample: &mut Sample, layer: Layer, ns: i64) {
    let later = [
        (Layer::Sender, &mut sample.sent_ns),
        (Layer::Stack, &mut sample.returned_ns),
        (Layer::Stack, &mut sample.kernel_transmit_ns),
        (Layer::Network, &mut sample.kernel_receive_ns),
        (Layer::WakeUp, &mut sample.received_ns),
        (Layer::Application, &mut sample.handled_ns),
    ];
    for (_, stamp_ns) in later.into_iter().filter(|(of, _)| *of >= layer) {
        *stamp_ns += ns;
    }
}

const RAW: Road = Road {
    middleware: false,
    channel: false,
};

fn split(samples: &[Sample], index: usize) -> Parts {
    split_on(RAW, samples, index)
}

fn split_on(road: Road, samples: &[Sample], index: usize) -> Parts {
    let calls = calls(road, samples.iter());
    Splitter::new(road, samples, &calls).split(&samples[index])
}

/// Returns the layer in which a message, sent as `second`, is lost if it never leaves behind `first`.
fn never_left(first: Sample, second: Sample, deadline_ns: i64) -> Layer {
    let never = Sample {
        kernel_transmit_ns: NO_STAMP,
        kernel_receive_ns: NO_STAMP,
        received_ns: NO_STAMP,
        handled_ns: NO_STAMP,
        ..second
    };
    let samples = [first, never];
    let calls = calls(RAW, samples.iter());
    Splitter::new(RAW, &samples, &calls).lost_in(&never, deadline_ns)
}

/// Makes the call of a message two-way: the reply leaves 1 ms after the message is handled, and the call returns at once.
fn replied(sample: Sample) -> Sample {
    Sample {
        reply_transmit_ns: sample.handled_ns + MS,
        reply_receive_ns: sample.handled_ns + MS,
        returned_ns: sample.handled_ns + MS,
        ..sample
    }
}

fn ms(parts: &Parts) -> [i64; 7] {
    assert_eq!(parts.of(Layer::Unknown), 0);
    std::array::from_fn(|index| parts.of(Layer::ALL[index]) / MS)
}

#[test]
fn each_layer_has_the_time_between_its_stamps() {
    assert_eq!(ms(&split(&[prompt(0)], 0)), [1, 0, 1, 1, 0, 1, 0]);
    for (layer, expected) in [
        (Layer::Sender, [8, 0, 1, 1, 0, 1, 0]),
        (Layer::Stack, [1, 0, 8, 1, 0, 1, 0]),
        (Layer::Network, [1, 0, 1, 8, 0, 1, 0]),
        (Layer::WakeUp, [1, 0, 1, 1, 0, 8, 0]),
    ] {
        let mut sample = prompt(0);
        hold_up(&mut sample, layer, 7 * MS);
        assert_eq!(ms(&split(&[sample], 0)), expected);
    }
}

#[test]
fn a_channel_stands_between_two_hops_of_the_network() {
    let road = Road::CHANNEL;
    let sample = Sample {
        channel_receive_ns: 5 * MS,
        channel_transmit_ns: 11 * MS,
        kernel_receive_ns: 14 * MS,
        received_ns: 15 * MS,
        ..prompt(0)
    };
    let parts = Splitter::new(road, &[sample], &Calls::default()).split(&sample);
    assert_eq!(ms(&parts), [1, 1, 0, 3 + 3, 6, 1, 0]);
}

/// Returns a message of the carrier `event` that passes the channel from 3 to 4 ms after due, and is handled from 6 to
/// 7 ms.
fn through_channel(sequence: u64) -> Sample {
    let due_ns = prompt(sequence).due_ns;
    Sample {
        channel_receive_ns: due_ns + 3 * MS,
        channel_transmit_ns: due_ns + 4 * MS,
        kernel_receive_ns: due_ns + 5 * MS,
        received_ns: due_ns + 6 * MS,
        handled_ns: due_ns + 7 * MS,
        ..prompt(sequence)
    }
}

/// Returns two messages. The push of the first was delayed by 194 ms in `layer` and returned at 201 ms; the channel
/// forwards the second at 202 ms.
fn behind_a_push_held_up_in(layer: Layer) -> [Sample; 2] {
    let mut first = through_channel(0);
    hold_up(&mut first, layer, 194 * MS);
    (first.sent_ns, first.returned_ns, first.kernel_transmit_ns) = (MS, 2 * MS, 2 * MS);
    let second = Sample {
        channel_transmit_ns: 202 * MS,
        kernel_receive_ns: 203 * MS,
        received_ns: 204 * MS,
        handled_ns: 205 * MS,
        ..through_channel(1)
    };
    [first, second]
}

#[test]
fn waiting_in_a_channel_behind_a_push_is_charged_to_what_held_up_that_push() {
    let road = Road::CHANNEL;
    for (layer, expected) in [
        (Layer::Network, [1, 1, 0, 2 + 148, 1, 1, 0]),
        (Layer::WakeUp, [1, 1, 0, 2, 1, 1 + 148, 0]),
        (Layer::Application, [1, 1, 0, 2, 1, 1, 148]),
    ] {
        let samples = behind_a_push_held_up_in(layer);
        let calls = calls(road, samples.iter());
        let splitter = Splitter::new(road, &samples, &calls);
        // The channel received the second message at 53 ms and forwarded it at 202 ms.
        assert_eq!(ms(&splitter.split(&samples[1])), expected, "{layer:?}");
        // Nothing delayed the first message.
        assert_eq!(splitter.split(&samples[0]).of(Layer::Channel), MS);
    }
}

#[test]
fn what_a_channel_never_passed_on_is_charged_like_the_push_that_never_came_back() {
    let road = Road::CHANNEL;
    let in_time = through_channel(0);
    // The consumer was stopped: its kernel has the second message, the channel has the third.
    let stuck = Sample {
        received_ns: NO_STAMP,
        handled_ns: NO_STAMP,
        ..through_channel(1)
    };
    let waiting = Sample {
        channel_transmit_ns: NO_STAMP,
        kernel_receive_ns: NO_STAMP,
        ..stuck
    };
    let waiting = Sample {
        sequence: 2,
        due_ns: 100 * MS,
        channel_receive_ns: 103 * MS,
        ..waiting
    };
    let samples = [in_time, stuck, waiting];
    let calls = calls(road, samples.iter());
    let splitter = Splitter::new(road, &samples, &calls);
    assert_eq!(splitter.lost_in(&stuck, 50 * MS), Layer::WakeUp);
    assert_eq!(splitter.lost_in(&waiting, 50 * MS), Layer::WakeUp);
    // Without an earlier push, the channel itself lost the message.
    let alone = Splitter::new(road, &[in_time, waiting], &calls);
    assert_eq!(alone.lost_in(&waiting, 50 * MS), Layer::Channel);
}

#[test]
fn what_cannot_leave_until_its_consumer_takes_something_is_held_up_by_the_consumer() {
    // Both were sent before the consumer stopped reading. The second left only when the consumer read the first.
    let mut first = prompt(0);
    hold_up(&mut first, Layer::WakeUp, 196 * MS);
    let mut second = prompt(1);
    hold_up(&mut second, Layer::Stack, 150 * MS);
    second.returned_ns = 52 * MS;
    // The first is unread from 3 to 200 ms; the second is sent at 51 ms and leaves at 202 ms.
    // From 200 to 202 ms the consumer's kernel may still have had to open its window.
    assert_eq!(
        ms(&split(&[first, second], 1)),
        [1, 0, 0, 1 + 2, 0, 1 + 149, 0]
    );
    // The second left while the first was still unread, so it had not waited for the consumer to read.
    first.received_ns = 300 * MS;
    first.handled_ns = 301 * MS;
    assert_eq!(ms(&split(&[first, second], 1)), [1, 0, 1, 1 + 150, 0, 1, 0]);
    // A message that never left is charged the same way if the consumer was behind for as long.
    assert_eq!(never_left(first, second, 50 * MS), Layer::WakeUp);
    assert_eq!(never_left(first, second, 600 * MS), Layer::Unknown);
}

#[test]
fn waiting_behind_the_previous_handling_is_the_applications() {
    let mut first = prompt(0);
    first.handled_ns = 90 * MS;
    let mut second = prompt(1);
    (second.received_ns, second.handled_ns) = (91 * MS, 92 * MS);
    // In the kernel at 53 ms, the servant is busy until 90 ms, the consumer wakes at 91 ms.
    assert_eq!(ms(&split(&[first, second], 1)), [1, 0, 1, 1, 0, 1, 37]);
}

#[test]
fn a_two_way_call_held_up_by_its_servant_is_charged_to_the_application() {
    let mut first = prompt(0);
    first.handled_ns = 200 * MS;
    let mut second = prompt(1);
    hold_up(&mut second, Layer::Sender, 151 * MS);
    let samples = [replied(first), replied(second)];
    let parts = split_on(Road::MIDDLEWARE, &samples, 1);
    assert_eq!(ms(&parts), [1, 1, 0, 1, 0, 1, 151]);
}

/// Returns two two-way calls. The first takes 194 ms longer on its way back than usual, at a place that `delay` chooses by
/// adding to stamps; the second is due meanwhile and sent 1 ms after the first returned.
fn behind_a_slow_way_back(delay: impl Fn(&mut Sample, i64)) -> [Sample; 2] {
    let mut first = replied(prompt(0));
    delay(&mut first, 194 * MS);
    first.returned_ns = 200 * MS;
    let mut second = prompt(1);
    hold_up(&mut second, Layer::Sender, 150 * MS);
    assert_eq!(second.sent_ns, 201 * MS);
    [first, replied(second)]
}

#[test]
fn the_way_back_of_a_call_is_charged_by_the_stamps_of_the_reply() {
    // The second waits from 50 to 200 ms for the first to return, and 1 ms more.
    let in_consumer = behind_a_slow_way_back(|first, ns| {
        first.reply_transmit_ns += ns;
        first.reply_receive_ns += ns;
    });
    let on_the_way = behind_a_slow_way_back(|first, ns| first.reply_receive_ns += ns);
    let at_supplier = behind_a_slow_way_back(|_, _| {});
    for (samples, expected) in [
        (in_consumer, [1, 1 + 150, 0, 1, 0, 1, 0]),
        (on_the_way, [1, 1, 0, 1 + 150, 0, 1, 0]),
        (at_supplier, [1 + 150, 1, 0, 1, 0, 1, 0]),
    ] {
        assert_eq!(ms(&split_on(Road::MIDDLEWARE, &samples, 1)), expected);
    }
}

#[test]
fn a_reply_that_never_arrived_before_the_call_returned_was_lost_in_the_network() {
    let mut samples = behind_a_slow_way_back(|_, _| {});
    samples[0].reply_receive_ns = NO_STAMP;
    let parts = split_on(Road::MIDDLEWARE, &samples, 1);
    // Until the second has left, nothing shows that the connection works again.
    assert_eq!(ms(&parts), [1, 0, 0, 1 + 1 + 150, 0, 1, 0]);
}

#[test]
fn a_way_back_without_stamps_is_charged_to_no_layer() {
    for road in [Road::MIDDLEWARE, Road::CHANNEL] {
        let samples = behind_a_slow_way_back(|_, _| {}).map(|sample| Sample {
            reply_transmit_ns: NO_STAMP,
            reply_receive_ns: NO_STAMP,
            // Without taps there are no kernel stamps either.
            kernel_transmit_ns: NO_STAMP,
            kernel_receive_ns: NO_STAMP,
            ..sample
        });
        let parts = split_on(road, &samples, 1);
        let waited = if road.channel {
            // Nothing is known of the call but its beginning and end.
            Layer::Middleware
        } else {
            Layer::Unknown
        };
        assert!(parts.of(waited) >= 150 * MS, "{parts:?}");
        assert_eq!(parts.sum(), samples[1].received_ns - samples[1].due_ns);
    }
}

#[test]
fn a_call_to_a_channel_is_the_channels_until_it_replies_and_then_the_suppliers() {
    for (reply_ns, layer) in [(199, Layer::Channel), (4, Layer::Sender)] {
        let mut samples = [through_channel(0), through_channel(1)];
        (samples[0].channel_reply_ns, samples[0].returned_ns) = (reply_ns * MS, 200 * MS);
        (samples[1].sent_ns, samples[1].received_ns) = (201 * MS, 206 * MS);
        samples[1].channel_reply_ns = 205 * MS;
        let parts = split_on(Road::CHANNEL, &samples, 1);
        assert!(parts.of(layer) >= 150 * MS, "{layer:?} {parts:?}");
        assert_eq!(parts.of(Layer::Unknown), 0);
    }
}

#[test]
fn a_push_lasts_until_its_reply_is_back_at_the_channel() {
    let mut samples = [through_channel(0), through_channel(1)];
    for sample in &mut samples {
        sample.reply_transmit_ns = sample.handled_ns;
        sample.reply_receive_ns = sample.handled_ns + MS;
    }
    // The reply of the first push is lost and arrives 193 ms later, when it is sent again.
    samples[0].reply_receive_ns = 201 * MS;
    hold_up(&mut samples[1], Layer::Network, 149 * MS);
    samples[1].channel_transmit_ns = 203 * MS;
    let parts = split_on(Road::CHANNEL, &samples, 1);
    // The channel received the second message at 53 ms.
    assert_eq!(ms(&parts), [1, 1, 0, 1 + 148 + 1, 2, 1, 0]);
}

#[test]
fn what_waits_in_the_suppliers_kernel_behind_messages_in_flight_waits_for_the_network() {
    // The link is saturated: the first message takes 150 ms, and the second leaves when the first has arrived.
    let mut first = prompt(0);
    hold_up(&mut first, Layer::Network, 150 * MS);
    let mut second = prompt(1);
    hold_up(&mut second, Layer::Stack, 101 * MS);
    second.returned_ns = 51 * MS;
    assert_eq!(
        (first.kernel_receive_ns / MS, second.kernel_transmit_ns / MS),
        (153, 153)
    );
    assert_eq!(ms(&split(&[first, second], 1)), [1, 0, 0, 1 + 102, 0, 0, 1]);
    // If nothing is in flight, the acknowledgements may be.
    assert_eq!(
        ms(&split(&[prompt(0), second], 1)),
        [1, 0, 0, 1 + 102, 0, 1, 0]
    );
    // If the call has not returned, the kernel may not have had it.
    let blocked = Sample {
        returned_ns: second.kernel_transmit_ns,
        ..second
    };
    assert_eq!(ms(&split(&[first, blocked], 1)), [1, 0, 102, 1, 0, 0, 1]);
    // If the call waited for room in the send buffer, the messages in flight had the room.
    let mut for_room = blocked;
    for_room.flags.waited_for_room = true;
    assert_eq!(
        ms(&split(&[first, for_room], 1)),
        [1, 0, 0, 1 + 102, 0, 0, 1]
    );
    assert_eq!(
        ms(&split(&[prompt(0), for_room], 1)),
        [1, 0, 102, 1, 0, 1, 0]
    );
    // So had the message that was due while that call waited.
    let mut third = prompt(2);
    hold_up(&mut third, Layer::Sender, 52 * MS);
    assert_eq!(third.sent_ns, for_room.returned_ns);
    let parts = split(&[first, for_room, third], 2);
    assert_eq!(ms(&parts), [0, 0, 0, 53 + 1, 0, 1, 1]);
    let never_returned = Sample {
        returned_ns: NO_STAMP,
        ..second
    };
    let unstamped = Sample {
        kernel_transmit_ns: NO_STAMP,
        ..first
    };
    // It is not known when the kernel had it, or whether the first was in flight.
    for samples in [[first, never_returned], [unstamped, for_room]] {
        assert_eq!(ms(&split(&samples, 1)), [1, 0, 102, 1, 0, 0, 1]);
    }
    // A message that never left behind one that took long is charged the same way.
    assert_eq!(never_left(first, second, 50 * MS), Layer::Network);
}

#[test]
fn a_message_without_the_stamps_that_others_have_is_charged_to_no_layer() {
    let stepped = |sample: Sample| Sample {
        kernel_transmit_ns: NO_STAMP,
        kernel_receive_ns: NO_STAMP,
        flags: crate::sample::SampleFlags {
            clock_step: true,
            ..sample.flags
        },
        ..sample
    };
    let mut late = prompt(1);
    hold_up(&mut late, Layer::Network, 90 * MS);
    let samples = [prompt(0), stepped(late)];
    let parts = split(&samples, 1);
    assert_eq!(
        (parts.of(Layer::Sender), parts.of(Layer::Unknown)),
        (MS, 93 * MS)
    );
    assert_eq!(parts.sum(), 94 * MS);
    let lost = Sample {
        received_ns: NO_STAMP,
        handled_ns: NO_STAMP,
        ..stepped(late)
    };
    let samples = [prompt(0), lost];
    let calls = calls(RAW, samples.iter());
    let splitter = Splitter::new(RAW, &samples, &calls);
    assert_eq!(splitter.lost_in(&lost, 50 * MS), Layer::Unknown);
}

#[test]
fn a_missing_stamp_leaves_layers_together_under_the_first() {
    let sample = Sample {
        kernel_transmit_ns: NO_STAMP,
        ..prompt(0)
    };
    assert_eq!(ms(&split(&[sample], 0)), [1, 0, 2, 0, 0, 1, 0]);
    assert_eq!(RAW.merged(&[sample]), ["stack and network"]);
    let bare = Sample {
        kernel_receive_ns: NO_STAMP,
        ..sample
    };
    assert_eq!(ms(&split(&[bare], 0)), [1, 0, 3, 0, 0, 0, 0]);
    assert_eq!(RAW.merged(&[bare]), ["stack and network and wake-up"]);
    assert_eq!(
        RAW.names(&[bare])[Layer::Stack as usize],
        "stack and network and wake-up"
    );
    assert_eq!(
        RAW.names(&[bare])[Layer::Application as usize],
        "application"
    );
    // One message with the stamp is enough to separate the layers.
    assert!(RAW.merged(&[bare, prompt(1)]).is_empty());
}

#[test]
fn stamps_that_run_back_are_held_to_the_one_before() {
    let sample = Sample {
        kernel_transmit_ns: 3 * MS + 100,
        returned_ns: 4 * MS,
        ..prompt(0)
    };
    let parts = split(&[sample], 0);
    assert_eq!(parts.of(Layer::Network), 0);
    assert_eq!(parts.sum(), 4 * MS);
}

#[test]
fn lost_messages_are_blamed_on_the_layer_after_their_furthest_stamp() {
    let lost = Sample {
        received_ns: NO_STAMP,
        handled_ns: NO_STAMP,
        ..prompt(1)
    };
    let cases = [
        (lost, Layer::WakeUp),
        (
            Sample {
                kernel_receive_ns: NO_STAMP,
                ..lost
            },
            Layer::Network,
        ),
        (
            Sample {
                kernel_receive_ns: NO_STAMP,
                kernel_transmit_ns: NO_STAMP,
                ..lost
            },
            Layer::Unknown,
        ),
        (
            Sample {
                kernel_receive_ns: NO_STAMP,
                kernel_transmit_ns: NO_STAMP,
                sent_ns: NO_STAMP,
                returned_ns: NO_STAMP,
                ..lost
            },
            Layer::Sender,
        ),
    ];
    for (lost, layer) in cases {
        let samples = [prompt(0), lost];
        let calls = calls(RAW, samples.iter());
        assert_eq!(
            Splitter::new(RAW, &samples, &calls).lost_in(&lost, 50 * MS),
            layer
        );
    }
}

#[test]
fn a_layer_that_always_takes_long_is_not_blamed_for_the_one_that_once_took_longer() {
    let mut typical = Parts::default();
    typical.add(Layer::Network, 40 * MS);
    typical.add(Layer::WakeUp, MS);
    let mut late = typical;
    late.add(Layer::WakeUp, 20 * MS);
    assert_eq!(excess_layer(&late, &typical, 50 * MS), Layer::WakeUp);
    assert_eq!(
        excess_layer(&late, &typical, 30 * MS),
        Layer::Network,
        "the usual way is itself too long"
    );
    assert_eq!(largest_layer(&late), Layer::Network);
    assert_eq!(largest_layer(&Parts::default()), Layer::Sender);
}

#[test]
fn medians_are_taken_layer_by_layer() {
    let all: Vec<Parts> = [(1, 9), (2, 7), (3, 8)]
        .into_iter()
        .map(|(sender, network)| {
            let mut parts = Parts::default();
            parts.add(Layer::Sender, sender);
            parts.add(Layer::Network, network);
            parts
        })
        .collect();
    let found = medians(&all);
    assert_eq!(
        (
            found.of(Layer::Sender),
            found.of(Layer::Network),
            found.of(Layer::Stack)
        ),
        (2, 8, 0)
    );
    assert_eq!(medians(&[]), Parts::default());
}

#[test]
fn one_stamp_of_a_reply_shows_that_replies_are_stamped() {
    let stamps: [fn(&mut Sample) -> &mut i64; 3] = [
        |sample| &mut sample.reply_transmit_ns,
        |sample| &mut sample.reply_receive_ns,
        |sample| &mut sample.channel_reply_ns,
    ];
    assert!(!Seen::of([prompt(0)].iter()).has_replies());
    for stamp in stamps {
        let mut stamped = prompt(0);
        *stamp(&mut stamped) = 5 * MS;
        assert!(Seen::of([stamped].iter()).has_replies());
    }
}

#[test]
fn only_a_middleware_without_a_channel_sends_to_each_destination_with_a_thread_of_its_own() {
    let roads = [Road::RAW, Road::MIDDLEWARE, Road::CHANNEL];
    assert_eq!(roads.map(Road::has_thread_for_each), [false, true, false]);
    let odd = Road {
        channel: true,
        ..Road::RAW
    };
    assert!(!odd.has_thread_for_each());
}
