//! A chain with real frames, which a relay carries.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deckwatch_os::clock::{monotonic_ns, realtime_ns, sleep_until};
use deckwatch_os::schedule::{Class, set_class, set_timer_slack};
use deckwatch_os::stamp;

use super::{A, B, Chain, ChainLatency, HOSTS, Latencies, Schedule, X, Y};
use crate::bed::Testbed;
use crate::error::TestbedError;
use crate::host::{Host, HostSpec};
use crate::network::{Emulation, NetworkSpec};
use crate::relay::process::RelayProgram;

/// Measures a chain with real frames, which a relay carries: one that sleeps between frames, or one that never does. Its
/// latencies contain the hosts' own time.
///
/// # Errors
/// As [`Testbed::create_by`]; [`TestbedError::OnLoopback`] where hosts cannot be emulated.
pub fn measure(
    chain: &Chain,
    emulation: Emulation,
    program: &RelayProgram,
) -> Result<ChainLatency, TestbedError> {
    let network = NetworkSpec {
        name: "chain".to_owned(),
        rate_bits_per_s: Some(chain.link.rate_bits_per_s),
        mtu_bytes: chain.link.mtu_bytes,
        burst_bytes: 0,
        queue_frames: chain.link.queue_frames,
        link_layer: chain.link.link_layer,
        emulation,
        layout: Some(chain.layout()),
        seed: chain.seed,
    };
    if let Some(reason) = Testbed::obstacle() {
        return Err(TestbedError::OnLoopback { reason });
    }
    let testbed = Testbed::create_by(program, &network, &HOSTS.map(HostSpec::new))?;
    let opening = || TestbedError::system("Opening a socket on a host of the chain");
    let sockets: Result<Vec<UdpSocket>, TestbedError> = testbed
        .hosts()
        .iter()
        .map(|host| socket_on(host).map_err(opening()))
        .collect();
    let sockets = sockets?;
    for (from, to) in [(A, B), (X, Y)] {
        let address = sockets[to].local_addr().map_err(opening())?;
        sockets[from].connect(address).map_err(opening())?;
    }
    stamp::stamp_received(&sockets[B]).map_err(opening())?;
    stamp::await_stamps(STAMPS_WAIT)
        .then_some(())
        .ok_or(std::io::ErrorKind::TimedOut.into())
        .map_err(opening())?;
    sockets[B]
        .set_read_timeout(Some(QUIET))
        .map_err(opening())?;
    let latencies = run(chain, &sockets);
    testbed.check()?;
    Ok(latencies.of(chain))
}

fn run(chain: &Chain, sockets: &[UdpSocket]) -> Latencies {
    let ended = AtomicBool::new(false);
    let started_ns = monotonic_ns() + START_NS;
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(chain, &sockets[B]));
        for from in [A, X] {
            let ended = &ended;
            scope.spawn(move || send(chain, from, &sockets[from], started_ns, ended));
        }
        let latencies = receiver.join();
        ended.store(true, Ordering::Relaxed);
        latencies.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn send(chain: &Chain, from: usize, socket: &UdpSocket, started_ns: i64, ended: &AtomicBool) {
    // The thread sleeps between packets. Without the class it wakes later.
    let _ = set_class(Class::Fifo(5)); // The latencies are counted from the moment of sending.
    set_timer_slack(Duration::from_nanos(1));
    let packet_bytes = if from == A {
        chain.packet_bytes
    } else {
        chain.link.mtu_bytes
    };
    let mut datagram = vec![0; (packet_bytes as usize).saturating_sub(HEADERS).max(STAMP)];
    let mut schedule = Schedule::new(chain);
    let mut sent = 0;
    while !ended.load(Ordering::Relaxed) && (from != A || sent < chain.count) {
        // A thread that never sends must not look for a next time for ever, least of all in a real-time class.
        let Some(at_ns) = schedule.next_of(from) else {
            return;
        };
        sleep_until(started_ns.saturating_add_unsigned(at_ns));
        datagram[..STAMP].copy_from_slice(&realtime_ns().to_be_bytes());
        // A full queue of the host drops it, which shows as a lost packet.
        let _ = socket.send(&datagram);
        sent += 1;
    }
}

/// Receives until all packets have come, or none comes for a while.
fn receive(chain: &Chain, socket: &UdpSocket) -> Latencies {
    let _ = set_class(Class::Fifo(6)); // The kernel stamps the arrival.
    let mut latencies = Latencies::default();
    let mut datagram = vec![0; chain.packet_bytes as usize];
    for _ in 0..chain.count {
        let Ok(received) = stamp::receive(socket, &mut datagram) else {
            break;
        };
        let sent = datagram
            .first_chunk()
            .map(|octets| i64::from_be_bytes(*octets));
        if let (Some(at_ns), Some(sent_ns)) = (received.stamp_realtime_ns, sent) {
            latencies.add((at_ns - sent_ns).max(0).cast_unsigned());
        }
    }
    latencies
}

fn socket_on(host: &Host) -> std::io::Result<UdpSocket> {
    let bind = || UdpSocket::bind((host.address(), 0));
    match host.namespace() {
        Some(namespace) => namespace.run_inside(bind)?,
        None => UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)),
    }
}

/// Octets of the IPv4 and UDP headers.
const HEADERS: usize = 28;
/// Octets of the time of sending.
const STAMP: usize = 8;
/// The threads are ready by then.
const START_NS: i64 = 50_000_000;
/// After so long without a packet the rest is lost.
const QUIET: Duration = Duration::from_secs(2);
/// The kernel begins to stamp arrivals some time after it was asked to.
const STAMPS_WAIT: Duration = Duration::from_secs(10);
