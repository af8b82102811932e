//! The counts of a switch's full queue: each frame has arrived or is counted as dropped.

use std::time::{Duration, Instant};

use deckwatch_testbed::{NetworkSpec, preset};

use crate::frames::sockets;
use crate::program::relayed;
use crate::{measuring, testbed};

/// Frames that a priority of a port holds.
const QUEUED: u32 = 10;
const SENT: u64 = 50;
const PATIENCE: Duration = Duration::from_secs(20);

fn check(network: &NetworkSpec) {
    let Some(testbed) = testbed(network) else {
        return;
    };
    let drops = || testbed.queue_drops().expect("counted");
    assert_eq!(drops(), 0);
    let (from, to) = sockets(&testbed);
    let port = testbed.port("B").expect("a port");
    port.hold().expect("held");
    for number in 0..SENT {
        from.send(&number.to_be_bytes()).expect("sent");
    }
    // A shaper may pass a frame or two before it stands still.
    let begun = Instant::now();
    while drops() < SENT - u64::from(QUEUED) - 2 {
        assert!(begun.elapsed() < PATIENCE, "{} drops", drops());
        std::thread::yield_now();
    }
    port.release().expect("released");
    to.set_read_timeout(Some(Duration::from_millis(500)))
        .expect("set");
    let mut octets = [0; 8];
    let mut received = 0;
    while to.recv(&mut octets).is_ok() {
        received += 1;
    }
    assert!(received >= u64::from(QUEUED), "{received}");
    let counted = received + drops();
    match testbed.relay_state().expect("the relay answers") {
        Some(state) => {
            assert_eq!(counted, SENT);
            assert_eq!(state.ledger.lines.queue_full, SENT - received);
            assert!(state.ledger.adds_up(), "{:?}", state.ledger);
        }
        // The frame that wakes a held shaper finds its queue full too.
        None => assert!((SENT..=SENT + 1).contains(&counted), "{counted}"),
    }
}

#[test]
fn a_frame_that_finds_a_switch_queue_full_is_counted_by_shapers_and_by_a_relay() {
    let _alone = measuring();
    for mut network in [
        preset("fast-ethernet").expect("a preset"),
        preset("gigabit-ethernet").expect("a preset"),
        relayed("fast-ethernet"),
    ] {
        network.queue_frames = QUEUED;
        check(&network);
    }
}
