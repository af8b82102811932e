//! The sender of a load on a link.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use deckwatch_meter::pacing::{Arrivals, Extent, Schedule};
use deckwatch_os::clock::{monotonic_ns, sleep_until};
use deckwatch_os::socket::{path_mtu, set_send_buffer};

use super::{Buffer, NetPlan, Protocol, Sending};
use crate::limits::{CONNECT_PATIENCE, SEND_LOOK};
use crate::{LoadError, Stop};

/// Waits until the sink accepts connections, which it does for both protocols.
pub(super) fn wait_for_sink(plan: &NetPlan, stop: &Stop) -> Result<(), LoadError> {
    let until = Instant::now() + plan.patience;
    while !plan.patience.is_zero() && !stop.is_set() {
        match TcpStream::connect_timeout(&plan.to, CONNECT_PATIENCE) {
            Ok(_) => break,
            Err(error) if Instant::now() >= until => {
                return Err(LoadError::Connect { to: plan.to, error });
            }
            Err(_) => std::thread::sleep(SEND_LOOK),
        }
    }
    Ok(())
}

/// A connected socket of either protocol.
pub(super) enum Socket {
    Udp(UdpSocket),
    Tcp(TcpStream),
}

impl Socket {
    pub(super) fn open(plan: &NetPlan) -> Result<Self, LoadError> {
        let to = plan.to;
        let refused = |error| LoadError::Connect { to, error };
        match plan.protocol {
            Protocol::Udp => {
                let any: SocketAddr = if to.is_ipv4() {
                    (Ipv4Addr::UNSPECIFIED, 0).into()
                } else {
                    (Ipv6Addr::UNSPECIFIED, 0).into()
                };
                let socket = UdpSocket::bind(any).map_err(refused)?;
                socket.connect(to).map_err(refused)?;
                socket.set_write_timeout(Some(SEND_LOOK)).map_err(refused)?;
                set_buffer(&socket, plan.buffer).map_err(refused)?;
                Ok(Self::Udp(socket))
            }
            Protocol::Tcp => {
                let socket = TcpStream::connect_timeout(&to, CONNECT_PATIENCE).map_err(refused)?;
                socket.set_nodelay(true).map_err(refused)?;
                socket.set_write_timeout(Some(SEND_LOOK)).map_err(refused)?;
                set_buffer(&socket, plan.buffer).map_err(refused)?;
                Ok(Self::Tcp(socket))
            }
        }
    }

    /// Returns the largest IP packet to the sink.
    pub(super) fn mtu(&self) -> u32 {
        let mtu = match self {
            Self::Udp(socket) => path_mtu(socket),
            Self::Tcp(socket) => path_mtu(socket),
        };
        mtu.unwrap_or(USUAL_MTU)
    }

    /// Sends one message. Returns false if the load was stopped meanwhile.
    fn send(&mut self, message: &[u8], stop: &Stop) -> io::Result<bool> {
        let mut rest = message;
        while !rest.is_empty() {
            let written = match self {
                Self::Udp(socket) => socket.send(rest),
                Self::Tcp(socket) => socket.write(rest),
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => rest = &rest[count..],
                // The buffer stayed full for as long as the socket may wait.
                Err(error) if is_wait(&error) => {
                    if stop.is_set() {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

fn is_wait(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

fn set_buffer(socket: &impl std::os::fd::AsFd, buffer: Buffer) -> io::Result<()> {
    let octets = match buffer {
        Buffer::Default => return Ok(()),
        Buffer::Max => largest_buffer("/proc/sys/net/core/wmem_max"),
        Buffer::Octets(octets) => octets,
    };
    set_send_buffer(socket, octets).map(|_| ())
}

/// Returns the largest buffer that the system allows to every process.
pub(super) fn largest_buffer(file: &str) -> u32 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    // Network namespaces of old kernels do not have the file.
    text.trim().parse().unwrap_or(LARGEST_USUAL)
}

/// Sends until the schedule is over, or the load is stopped.
pub(super) fn send(
    plan: &NetPlan,
    mut socket: Socket,
    arrivals: Option<Arrivals>,
    end: Instant,
    stop: &Stop,
    sending: &Sending,
) -> Result<(), LoadError> {
    let lost = |error| LoadError::Connection { to: plan.to, error };
    let mut message = vec![0; plan.size_octets as usize];
    let mut one = |sequence: u64| {
        message[..SEQUENCE].copy_from_slice(&sequence.to_be_bytes());
        match socket.send(&message, stop) {
            Ok(true) => {
                sending.messages.fetch_add(1, Relaxed);
                sending.octets.fetch_add(message.len() as u64, Relaxed);
                Ok(true)
            }
            Ok(false) => Ok(false),
            // A stream that broke stays broken. A datagram may be refused, for example before the sink is there.
            Err(error) if plan.protocol == Protocol::Tcp => Err(lost(error)),
            Err(error) => {
                let is_unheard = error.kind() == io::ErrorKind::ConnectionRefused;
                sending.unheard.fetch_add(is_unheard.into(), Relaxed);
                sending.errors.fetch_add(1, Relaxed);
                Ok(true)
            }
        }
    };
    let Some(arrivals) = arrivals else {
        for sequence in 0.. {
            if stop.is_set() || Instant::now() >= end || !one(sequence)? {
                break;
            }
        }
        return Ok(());
    };
    let schedule = Schedule {
        start_ns: monotonic_ns(),
        offset: Duration::ZERO,
        arrivals,
        extent: Extent::Duration {
            duration: end.saturating_duration_since(Instant::now()),
        },
        warm_up: 0,
    };
    schedule.check().map_err(|_| LoadError::Rate)?;
    for due in schedule.dues() {
        if !wait_until(due.due_ns, stop) || Instant::now() >= end {
            break;
        }
        let late_ns = u64::try_from(monotonic_ns() - due.due_ns).unwrap_or(0);
        sending.late_ns_max.fetch_max(late_ns, Relaxed);
        if !one(due.sequence)? {
            break;
        }
    }
    Ok(())
}

/// Sleeps until a time. Returns false if the load was stopped meanwhile.
fn wait_until(due_ns: i64, stop: &Stop) -> bool {
    loop {
        if stop.is_set() {
            return false;
        }
        let now_ns = monotonic_ns();
        if now_ns >= due_ns {
            return true;
        }
        sleep_until(due_ns.min(now_ns + SEND_LOOK.as_nanos() as i64));
    }
}

/// Octets of the sequence number at the head of a message.
pub(super) const SEQUENCE: usize = 8;

/// Where the kernel does not tell.
const USUAL_MTU: u32 = 1_500;

/// The largest buffer of a Linux without other settings.
const LARGEST_USUAL: u32 = 212_992;
