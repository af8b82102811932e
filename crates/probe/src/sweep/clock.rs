//! The ends that relate the clocks of two far hosts: one answers, the other one asks.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use deckwatch_carrier::clock::{Prober, Responder};
use deckwatch_meter::clock::{Tracker, Window};
use deckwatch_os::clock::monotonic_ns;

use crate::limits::CLOCK_PATIENCE;

/// Answers questions about this host's clock until the process ends. Returns where.
pub(super) fn respond(address: IpAddr) -> io::Result<SocketAddr> {
    let mut responder = Responder::bind((address, 0).into())?;
    let address = responder.address();
    let answering = move || {
        loop {
            responder.turn(TURN);
        }
    };
    std::thread::Builder::new().spawn(answering)?;
    Ok(address)
}

/// Asks about another host's clock until the process ends.
pub(super) struct Watch(Receiver<Window>);

impl Watch {
    pub(super) fn start(peer: SocketAddr, from: IpAddr) -> io::Result<Self> {
        let mut prober = Prober::connect(peer, Some(from))?;
        let (tell, found) = channel();
        let asking = move || {
            let mut tracker = Tracker::default();
            let mut is_heard = true;
            while is_heard {
                let until_ns = monotonic_ns() + TURN.as_nanos() as i64;
                let mut windows = Vec::new();
                prober.run(until_ns, |exchange| windows.extend(tracker.note(exchange)));
                for mut window in windows {
                    window.widen(prober.stamp_error_ns());
                    is_heard = tell.send(window).is_ok();
                }
            }
        };
        std::thread::Builder::new().spawn(asking)?;
        Ok(Self(found))
    }

    /// The windows since the last time, with one that ends after now: what was measured until now lies between two of
    /// them. After [`CLOCK_PATIENCE`] it returns those that there are.
    pub(super) fn windows(&self) -> Vec<Window> {
        let (now_ns, until) = (monotonic_ns(), Instant::now() + CLOCK_PATIENCE);
        let mut found = Vec::new();
        while let Ok(window) = self
            .0
            .recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            found.push(window);
            if window.ends[1].near_ns > now_ns {
                break;
            }
        }
        found
    }
}

/// How long a thread asks or answers before it looks up.
const TURN: Duration = Duration::from_millis(100);
