//! The sink of loads on links: takes datagrams and streams at one address, and counts.

use std::io::{self, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::Scope;
use std::time::Instant;

use deckwatch_os::clock::{monotonic_ns, sleep_until};
use deckwatch_os::socket::{dropped, set_receive_buffer};
use serde::{Deserialize, Serialize};

use super::source::{SEQUENCE, largest_buffer};
use crate::held::Unit;
use crate::limits::{CONNECTIONS_MAX, DRAIN_MAX, MESSAGE_OCTETS_MAX, SEND_LOOK};
use crate::{Held, LoadError, LoadReport, Second, Stop};

/// The sink of loads on links. Its receive buffers are the largest that the system allows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SinkPlan {
    /// Where it listens, for both protocols.
    pub at: SocketAddr,
}

/// What a sink has received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// Datagrams.
    pub datagrams: u64,
    /// Numbers of datagrams that are missing below the highest one.
    pub missing: u64,
    /// Datagrams that found the receive buffer full; they are missing too.
    pub overflows: u64,
    /// Connections that were accepted.
    pub connections: u64,
    /// Octets of messages, of both protocols.
    pub octets: u64,
}

#[derive(Default)]
struct Counts {
    datagrams: AtomicU64,
    missing: AtomicU64,
    connections: AtomicU64,
    octets: AtomicU64,
}

/// Receives until it is stopped or `end` has come.
pub(crate) fn run(
    plan: &SinkPlan,
    stop: &Stop,
    end: Instant,
    tell: &mut dyn FnMut(&Second),
) -> Result<LoadReport, LoadError> {
    let at = plan.at;
    let busy = |error| LoadError::Listen { at, error };
    let listener = TcpListener::bind(at).map_err(busy)?;
    listener.set_nonblocking(true).map_err(busy)?;
    let datagrams = UdpSocket::bind(at).map_err(busy)?;
    datagrams.set_read_timeout(Some(SEND_LOOK)).map_err(busy)?;
    let largest = largest_buffer("/proc/sys/net/core/rmem_max");
    set_receive_buffer(&datagrams, largest).map_err(busy)?;
    set_receive_buffer(&listener, largest).map_err(busy)?;
    let counts = Counts::default();
    let over = Stop::default();
    let mut held = Held {
        of: format!("sink at {at}"),
        unit: Unit::BitsPerS,
        ..Held::default()
    };
    std::thread::scope(|scope| {
        scope.spawn(|| receive_datagrams(&datagrams, &counts, &over));
        scope.spawn(|| accept(scope, &listener, &counts, &over));
        watch(
            &counts,
            &mut held,
            &|| stop.is_set() || Instant::now() >= end,
            tell,
        );
        over.set();
    });
    Ok(LoadReport {
        held: vec![held],
        received: Some(Received {
            datagrams: counts.datagrams.load(Relaxed),
            missing: counts.missing.load(Relaxed),
            overflows: dropped(&datagrams).map_err(busy)?.into(),
            connections: counts.connections.load(Relaxed),
            octets: counts.octets.load(Relaxed),
        }),
        ..LoadReport::default()
    })
}

fn watch(counts: &Counts, held: &mut Held, ends: &dyn Fn() -> bool, tell: &mut dyn FnMut(&Second)) {
    let (mut last_ns, mut last_octets, mut at_s) = (monotonic_ns(), 0, 0);
    while !ends() {
        sleep_until(monotonic_ns() + SEND_LOOK.as_nanos() as i64);
        let now_ns = monotonic_ns();
        let seconds = (now_ns - last_ns) as f64 / 1e9;
        if seconds < 1.0 {
            continue;
        }
        at_s += 1;
        let octets = counts.octets.load(Relaxed);
        let rate = (octets - last_octets) as f64 * 8.0 / seconds;
        (last_ns, last_octets) = (now_ns, octets);
        let second = Second {
            at_s,
            index: 0,
            of: held.of.clone(),
            asked: None,
            unit: held.unit,
            achieved: rate,
            own: rate,
            stolen: 0.0,
        };
        if at_s > 1 {
            held.add(&second);
        }
        tell(&second);
    }
}

fn receive_datagrams(socket: &UdpSocket, counts: &Counts, over: &Stop) {
    let mut buffer = vec![0; MESSAGE_OCTETS_MAX as usize];
    // A sender that begins anew begins at 0.
    let mut next = 0;
    let mut drained = Drained::default();
    loop {
        let received = socket.recv(&mut buffer);
        if drained.is_over(over, received.is_err()) {
            break;
        }
        let Ok(len) = received else {
            continue; // Nothing came within the time-out.
        };
        counts.datagrams.fetch_add(1, Relaxed);
        counts.octets.fetch_add(len as u64, Relaxed);
        if let Some(sequence) = buffer[..len].first_chunk::<SEQUENCE>() {
            let sequence = u64::from_be_bytes(*sequence);
            counts
                .missing
                .fetch_add(missing(sequence, &mut next), Relaxed);
        }
    }
}

/// A receiver that is stopped takes what has arrived, for a bounded time.
#[derive(Default)]
struct Drained(Option<Instant>);

impl Drained {
    fn is_over(&mut self, over: &Stop, nothing_came: bool) -> bool {
        if !over.is_set() {
            return false;
        }
        let since = *self.0.get_or_insert_with(Instant::now);
        nothing_came || since.elapsed() > DRAIN_MAX
    }
}

/// Returns how many numbers are missing before this one. A number that was left out and comes late is not taken back.
fn missing(sequence: u64, next: &mut u64) -> u64 {
    let gap = sequence.saturating_sub(*next);
    if sequence == 0 || sequence >= *next {
        *next = sequence.saturating_add(1);
    }
    gap
}

fn accept<'s>(
    scope: &'s Scope<'s, '_>,
    listener: &TcpListener,
    counts: &'s Counts,
    over: &'s Stop,
) {
    while !over.is_set() {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(_) => {
                sleep_until(monotonic_ns() + SEND_LOOK.as_nanos() as i64);
                continue;
            }
        };
        // A connection above the bound is closed at once.
        if counts.connections.fetch_add(1, Relaxed) < CONNECTIONS_MAX {
            scope.spawn(move || receive_stream(stream, counts, over));
        }
    }
}

fn receive_stream(mut stream: TcpStream, counts: &Counts, over: &Stop) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(SEND_LOOK))?;
    let mut buffer = vec![0; MESSAGE_OCTETS_MAX as usize];
    let mut drained = Drained::default();
    loop {
        let read = stream.read(&mut buffer);
        if drained.is_over(over, read.is_err()) {
            break;
        }
        match read {
            Ok(0) => break,
            Ok(len) => {
                counts.octets.fetch_add(len as u64, Relaxed);
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_left_out_are_missing_and_a_new_sender_begins_at_0() {
        let mut next = 0;
        let found: Vec<u64> = [0, 1, 4, 3, 5, 0, 1, 3]
            .map(|it| missing(it, &mut next))
            .into();
        assert_eq!(found, [0, 0, 2, 0, 0, 0, 0, 1]);
        let mut next = 0;
        assert_eq!(missing(u64::MAX, &mut next), u64::MAX, "a hostile number");
        assert_eq!(missing(7, &mut next), 0);
    }
}
