//! Messages that never arrived, or were never read.

use super::*;

#[test]
fn a_message_that_arrived_after_the_last_received_one_is_unread_and_an_earlier_one_was_dropped() {
    let unreceived = |sample: Sample| Sample {
        received_ns: NO_STAMP,
        handled_ns: NO_STAMP,
        ..sample
    };
    let never = Sample {
        kernel_transmit_ns: NO_STAMP,
        kernel_receive_ns: NO_STAMP,
        ..unreceived(prompt(2))
    };
    // The consumer received the first message at 4 ms and was stopped then.
    for (arrived_ns, layer) in [
        (4 * MS + 1, Layer::WakeUp),
        (4 * MS, Layer::Unknown),
        (4 * MS - 1, Layer::Unknown),
    ] {
        let second = Sample {
            kernel_receive_ns: arrived_ns,
            ..unreceived(prompt(1))
        };
        let samples = [prompt(0), second, never];
        let calls = calls(RAW, samples.iter());
        let splitter = Splitter::new(RAW, &samples, &calls);
        assert_eq!(splitter.lost_in(&never, 50 * MS), layer, "{arrived_ns}");
    }
}

#[test]
fn a_message_lost_while_the_consumer_is_busy_is_the_applications() {
    let busy = Sample {
        handled_ns: NO_STAMP,
        ..prompt(1)
    };
    let lost = Sample {
        received_ns: NO_STAMP,
        handled_ns: NO_STAMP,
        ..prompt(2)
    };
    let samples = [prompt(0), busy, lost];
    let splitter_calls = calls(RAW, samples.iter());
    assert_eq!(
        Splitter::new(RAW, &samples, &splitter_calls).lost_in(&lost, 50 * MS),
        Layer::Application
    );
}

#[test]
fn where_no_handling_is_stamped_a_lost_message_is_not_the_applications() {
    let unhandled = Sample {
        handled_ns: NO_STAMP,
        ..prompt(0)
    };
    let lost = Sample {
        received_ns: NO_STAMP,
        handled_ns: NO_STAMP,
        ..prompt(1)
    };
    let samples = [unhandled, lost];
    let calls = calls(RAW, samples.iter());
    let splitter = Splitter::new(RAW, &samples, &calls);
    assert_eq!(splitter.lost_in(&lost, 50 * MS), Layer::WakeUp);
}
