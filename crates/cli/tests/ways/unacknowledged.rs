//! Streams whose acknowledgements are lost: nothing else is, and the supplier's kernel keeps what it accepted.

use std::num::NonZeroU32;

use deckwatch_meter::sample::Layer;
use deckwatch_os::clock::sleep_until;

use super::super::watched::WatchedRun;
use super::super::watched::disturbance::Failure;
use super::super::{Beat, failure, found};
use super::said;

/// The carriers whose messages pass a stream.
const STREAMS: [&str; 4] = ["tcp", "corba-oneway", "corba", "event"];
/// The last message before all frames to the supplier are dropped, and the last message meanwhile. That is longer than
/// the time limit of a call, 1 s.
const DROPPED: (u64, u64) = (20, 44);

fn mission() -> String {
    let flow = |carrier: &str| {
        format!(
            "[[flows]]\nname = \"NAV-{carrier}\"\noctets = 384\nfrom = \"RTS\"\nto = [\"SONAR\"]\ncarrier = \"{carrier}\"\n\
             rate_hz = 20\ndeadline = \"120ms\"\nlate = \"1 in 100\"\ncount = 66\nwarm_up = \"200ms\"\n"
        )
    };
    format!(
        "name = \"unacknowledged\"\nnetwork = {{ preset = \"gigabit-ethernet\" }}\n\
         hosts = [{{ name = \"RTS\" }}, {{ name = \"SONAR\" }}]\n{}",
        STREAMS.map(flow).concat()
    )
}

pub(crate) fn check() -> Result<(), Failure> {
    let run = WatchedRun::start("unacknowledged", &mission(), &[]);
    let beat = Beat {
        start_ns: run.start_ns(),
    };
    let supplier = run.port("RTS");
    let each = NonZeroU32::new(1).expect("not 0");
    sleep_until(beat.after(DROPPED.0));
    supplier.lose_every(each).expect("loses");
    sleep_until(beat.after(DROPPED.1));
    supplier.lose_none().expect("loses none");
    let finished = run.finish();
    let mut wrong = Vec::new();
    for flow in &finished.document.flows {
        let late = found(finished.samples_of(flow));
        // When the first of them leaves again is for TCP to say.
        let by_network = late.values().all(|blame| *blame == Some(Layer::Network));
        let is_affected = late.len() as u64 >= (DROPPED.1 - DROPPED.0) / 2;
        if !by_network || !is_affected {
            wrong.push(said(flow, &late));
        }
    }
    failure(wrong, &finished)
}
