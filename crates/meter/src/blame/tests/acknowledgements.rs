//! Messages behind lost or held acknowledgements and replies. The stamps are those of real runs.

use super::*;

/// Reads stamps in milliseconds with two decimals; `-` if there is none.
fn stamps<const N: usize>(line: &str) -> [i64; N] {
    let stamp = |word: &str| match word {
        "-" => NO_STAMP,
        _ => word.replace('.', "").parse::<i64>().expect("a number") * 10_000,
    };
    let all: Vec<i64> = line.split_whitespace().map(stamp).collect();
    all.try_into().expect("so many stamps")
}

/// Returns a message that awaits no reply, from its stamps: due, sent, returned, kernel transmit, kernel receive and
/// received.
fn sent_once(line: &str) -> Sample {
    let [
        due_ns,
        sent_ns,
        returned_ns,
        kernel_transmit_ns,
        kernel_receive_ns,
        received_ns,
    ] = stamps(line);
    Sample {
        sequence: u64::try_from(due_ns / (50 * MS)).expect("not negative"),
        due_ns,
        sent_ns,
        returned_ns,
        kernel_transmit_ns,
        kernel_receive_ns,
        received_ns,
        handled_ns: received_ns,
        ..Sample::NONE
    }
}

/// Returns a two-way call: the stamps of [`sent_once`], then reply transmit and reply receive.
fn call(line: &str) -> Sample {
    let all: [&str; 8] = (line.split_whitespace().collect::<Vec<_>>().try_into()).expect("eight");
    let [reply_transmit_ns, reply_receive_ns] = stamps(&all[6..].join(" "));
    Sample {
        reply_transmit_ns,
        reply_receive_ns,
        ..sent_once(&all[..6].join(" "))
    }
}

/// Returns the layer of each message: the largest part, or where it was lost.
fn layers(road: Road, samples: &[Sample]) -> Vec<Layer> {
    let calls = calls(road, samples.iter());
    let splitter = Splitter::new(road, samples, &calls);
    let layer = |sample: &Sample| {
        if sample.received_ns == NO_STAMP {
            splitter.lost_in(sample, 50 * MS)
        } else {
            largest_layer(&splitter.split(sample))
        }
    };
    samples.iter().map(layer).collect()
}

#[test]
fn what_the_suppliers_kernel_has_accepted_waits_for_acknowledgements_and_not_for_the_stack() {
    // The first message has arrived, but its acknowledgement is lost.
    let samples = [
        sent_once("2950.00 2950.06 2950.14 2950.08 2950.11 2950.16"),
        sent_once("3000.00 3000.05 3000.08 5898.43 5898.49 5898.54"),
        sent_once("3050.00 3050.10 3050.14 5898.43 5898.49 5898.56"),
    ];
    for road in [Road::RAW, Road::MIDDLEWARE] {
        assert_eq!(layers(road, &samples)[1..], [Layer::Network; 2], "{road:?}");
        let parts = split_on(road, &samples, 1);
        assert_eq!(parts.of(road.send_layer()), 30_000);
    }
}

#[test]
fn calls_behind_one_whose_reply_is_lost_are_charged_to_the_network() {
    let samples = [
        call("2750.00 2750.06 2750.54 2750.20 2750.23 2750.41 2750.46 2750.48"),
        call("2800.00 2800.05 3800.29 2800.22 2800.24 2800.42 2800.47 6147.43"),
        call("2850.00 3800.34 4800.51 - - - - -"),
        call("2900.00 4800.56 5800.73 - - - - -"),
        call("2950.00 5800.79 5801.41 5801.12 5801.12 5801.32 5801.35 5801.36"),
        call("5750.00 5807.78 5807.87 5807.79 5807.80 5807.83 5807.84 5807.85"),
    ];
    assert_eq!(layers(Road::MIDDLEWARE, &samples)[2..], [Layer::Network; 4]);
    // Without its late reply the network is not proved to have had it for so long, but the call was there when it
    // ended.
    let mut never = samples;
    never[1].reply_receive_ns = NO_STAMP;
    assert_eq!(layers(Road::MIDDLEWARE, &never)[2..], [Layer::Network; 4]);
}

#[test]
fn calls_behind_one_whose_request_is_lost_are_charged_to_the_network() {
    // The second call did not leave, and ended 340 ms after the first request had arrived at last.
    let samples = [
        call("2750.00 2750.04 2750.46 2750.16 2750.18 2750.34 2750.38 2750.40"),
        call("2800.00 2800.04 3800.21 2800.17 4460.03 4460.23 4460.29 4460.31"),
        call("2850.00 3800.26 4800.42 - - - - -"),
        call("2900.00 4800.48 4801.08 4800.69 4800.72 4800.93 4800.97 4800.98"),
        call("4750.00 4804.91 4804.99 4804.92 4804.93 4804.95 4804.96 4804.97"),
    ];
    assert_eq!(layers(Road::MIDDLEWARE, &samples)[1..], [Layer::Network; 4]);
}

#[test]
fn a_call_that_left_late_behind_one_without_its_reply_hands_on_the_same_layer() {
    // A flooded link: call 103 waits 121 ms to leave and 84 ms on the way, behind call 102.
    let samples = [
        call("5050.00 6196.88 6320.00 6196.96 6319.60 6319.85 6319.90 6319.91"),
        call("5100.00 6320.05 7320.31 6320.12 7659.52 7659.75 7659.80 7659.82"),
        call("5150.00 7320.36 7526.13 7441.81 7525.50 7525.94 7525.97 7525.98"),
        call("7350.00 7530.65 7530.72 7530.67 7530.67 7530.69 7530.70 7530.70"),
    ];
    assert_eq!(layers(Road::MIDDLEWARE, &samples)[1..], [Layer::Network; 3]);
}

#[test]
fn a_call_behind_one_that_a_stopped_consumer_did_not_answer_is_charged_to_the_consumer() {
    // The request of the first has arrived and is not read until 6 s; the next one does not leave.
    let samples = [
        call("1000.00 1000.05 1000.50 1000.20 1000.25 1000.40 1000.45 1000.46"),
        call("1050.00 1050.05 2050.20 1050.20 1050.25 6000.00 6000.10 6000.15"),
        call("1100.00 2050.25 3050.40 - - - - -"),
        call("1150.00 3050.45 4050.60 - - - - -"),
    ];
    assert_eq!(layers(Road::MIDDLEWARE, &samples)[1..], [Layer::WakeUp; 3]);
}

#[test]
fn a_call_that_did_not_leave_behind_one_that_was_answered_is_the_middlewares() {
    let samples = [
        call("1000.00 1000.05 1000.50 1000.20 1000.25 1000.40 1000.45 1000.46"),
        call("1050.00 1050.05 2050.20 - - - - -"),
        call("1100.00 2050.25 2051.00 2050.30 2050.40 2050.50 2050.60 2050.70"),
    ];
    assert_eq!(
        layers(Road::MIDDLEWARE, &samples)[1..],
        [Layer::Middleware; 2]
    );
}

#[test]
fn a_call_that_lacks_its_stamps_but_arrived_shows_nothing_of_the_connection() {
    // The capture ends within the first call.
    let samples = [
        call("1000.00 1000.05 1000.50 1000.20 1000.25 1000.40 1000.45 1000.46"),
        call("1050.00 1050.05 1050.50 1050.20 - 1050.40 - -"),
        call("1100.00 1100.05 1180.50 - - 1180.40 - -"),
        call("1200.00 1200.05 1280.50 - - 1280.40 - -"),
    ];
    assert_eq!(layers(Road::MIDDLEWARE, &samples)[2..], [Layer::Unknown; 2]);
    // The clock was set during the second.
    let mut stepped = samples;
    stepped[1] = call("1050.00 1050.05 1050.50 - - - - -");
    stepped[1].flags.clock_step = true;
    assert_eq!(layers(Road::MIDDLEWARE, &stepped)[2..], [Layer::Unknown; 2]);
}

/// Returns a message through a channel: due, channel receive, channel transmit, received, reply receive.
fn pushed(line: &str) -> Sample {
    let [
        due_ns,
        channel_receive_ns,
        channel_transmit_ns,
        received_ns,
        reply_receive_ns,
    ] = stamps(line);
    Sample {
        sequence: u64::try_from(due_ns / (50 * MS)).expect("not negative"),
        due_ns,
        sent_ns: due_ns,
        returned_ns: channel_receive_ns + MS,
        kernel_transmit_ns: channel_receive_ns,
        channel_receive_ns,
        channel_reply_ns: channel_receive_ns + MS,
        channel_transmit_ns,
        kernel_receive_ns: received_ns,
        received_ns,
        handled_ns: received_ns,
        reply_transmit_ns: received_ns,
        reply_receive_ns,
        ..Sample::NONE
    }
}

#[test]
fn what_a_channel_does_not_forward_after_it_gave_a_consumer_up_is_charged_to_what_made_it() {
    let mut samples = vec![
        pushed("2800.00 2800.27 2800.58 2800.80 6134.89"),
        pushed("2900.00 2900.25 6134.91 6135.34 6135.35"),
        pushed("2950.00 2950.24 - - -"),
        pushed("6100.00 6100.26 - - -"),
        pushed("6150.00 6150.27 - - -"),
        pushed("6200.00 6200.27 - - -"),
    ];
    assert_eq!(layers(Road::CHANNEL, &samples)[1..], [Layer::Network; 5]);
    // A channel that does not answer either does not run.
    samples[5].channel_reply_ns = NO_STAMP;
    let found = layers(Road::CHANNEL, &samples);
    assert_eq!(found[4..], [Layer::Network, Layer::Channel]);
    // If it forwards a later one, it had not given the consumer up.
    samples.push(pushed("6250.00 6250.27 6250.50 6250.70 6250.80"));
    let found = layers(Road::CHANNEL, &samples);
    assert_eq!(found[4..6], [Layer::Channel; 2]);
}

#[test]
fn what_never_leaves_behind_a_message_that_never_arrives_waits_for_the_network() {
    let mut samples = [
        sent_once("1000.00 1000.05 1000.15 1000.10 1000.20 1000.30"),
        sent_once("1050.00 1050.05 1050.15 1050.10 - -"),
        sent_once("1100.00 1100.05 1100.15 1100.10 - -"),
        sent_once("1150.00 1150.05 1150.15 - - -"),
    ];
    assert_eq!(layers(Road::RAW, &samples)[1..], [Layer::Network; 3]);
    // A datagram arrives after one that did not, so nothing waited for that one.
    let arrived = sent_once("1100.00 1100.05 1100.15 1100.10 1100.20 1100.30");
    samples[2] = arrived;
    let found = layers(Road::RAW, &samples);
    assert_eq!((found[1], found[3]), (Layer::Network, Layer::Unknown));
    // A message that was refused before others left did not wait to the end.
    samples[3] = samples[2];
    samples[2] = sent_once("1075.00 1075.05 1075.15 - - -");
    assert_eq!(layers(Road::RAW, &samples)[2], Layer::Stack);
}

#[test]
fn a_wait_behind_a_call_without_its_reply_ends_when_the_next_message_leaves() {
    let samples = [
        call("100.00 100.05 1100.00 100.10 - - - -"),
        call("150.00 1100.05 1105.00 1103.00 1103.10 1103.20 1103.30 1104.90"),
        call("200.00 1106.00 1107.00 1106.10 1106.20 1106.30 1106.40 1106.90"),
    ];
    let seen = Seen::of(samples.iter());
    let spans = unanswered::unanswered(Road::MIDDLEWARE, samples.iter(), &seen);
    assert_eq!(spans, [(1_100 * MS, 1_103 * MS, Layer::Network)]);
}

#[test]
fn messages_that_never_left_and_nothing_that_arrived_are_no_proof_of_the_network() {
    let samples = [
        sent_once("100.00 100.05 - - - -"),
        sent_once("150.00 150.05 - - - -"),
    ];
    let seen = Seen::of(samples.iter());
    let behind = behind::Behind::new(Road::RAW, samples.iter(), &seen);
    assert_eq!(behind.without_leaving(0, 1_000 * MS).sum(), 0);
}

#[test]
fn a_channel_has_given_a_consumer_up_from_the_first_message_that_it_did_not_forward() {
    let kept = |sequence: u64, forwards: bool| {
        let received_ns = i64::try_from(sequence).expect("small") * 50 * MS;
        Sample {
            sequence,
            channel_receive_ns: received_ns,
            channel_transmit_ns: if forwards { received_ns + MS } else { NO_STAMP },
            channel_reply_ns: received_ns + 2 * MS,
            ..Sample::NONE
        }
    };
    let samples = [kept(1, true), kept(2, true), kept(3, false), kept(4, false)];
    let given_up = pushes::GivenUp::find(&samples).expect("it forwards nothing more");
    assert_eq!(given_up.first_ns(200 * MS), Some(150 * MS));
    assert_eq!(given_up.first_ns(100 * MS), None, "it was forwarded");
}
