//! The carrier `udp`: one datagram a message, a connected socket a destination.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use deckwatch_os::{clock, socket, stamp};

use crate::arrival::{Arrival, Handler, Shared};
use crate::body::{Body, SequenceReader};
use crate::limits::{
    DATAGRAM_SIZE_MAX, RECEIVE_BUFFER_BYTES, SEND_BUFFER_BYTES, STAMP_BUFFER_BYTES,
    STAMPS_A_TURN_MAX, STAMPS_BEGIN_MAX, STOP_LOOK,
};
use crate::part::PartError;
use crate::pending::PendingStamps;
use crate::plan::NetworkPriority;
use crate::receiver::Receiver;
use crate::sender::{SendError, Sender, Sent, TransmitStamp};
use crate::stamp_clock::StampClock;
use crate::talk::Ready;

/// Sends to one destination.
#[derive(Debug)]
pub struct UdpSender {
    socket: UdpSocket,
    clock: Arc<StampClock>,
    /// Datagrams by the kernel's count.
    pending: PendingStamps,
    count: u32,
    refusals: u64,
}

impl UdpSender {
    /// A socket from `address` to `destination`.
    ///
    /// # Errors
    /// [`PartError`] when the kernel refuses.
    pub fn connect(
        address: IpAddr,
        destination: SocketAddr,
        priority: NetworkPriority,
        clock: Arc<StampClock>,
    ) -> Result<Self, PartError> {
        let ipv6 = destination.is_ipv6();
        let make = || {
            let socket = UdpSocket::bind((address, 0))?;
            socket.connect(destination)?;
            socket.set_nonblocking(true)?;
            socket::set_priority(&socket, ipv6, priority.dscp, priority.socket_priority)?;
            socket::set_send_buffer(&socket, SEND_BUFFER_BYTES)?;
            socket::set_receive_buffer(&socket, STAMP_BUFFER_BYTES)?;
            stamp::report_send_errors(&socket, ipv6)?;
            stamp::stamp_sent_datagrams(&socket)?;
            Ok(socket)
        };
        let socket = make().map_err(|error| PartError::socket("udp", destination, error))?;
        Ok(Self {
            socket,
            clock,
            pending: PendingStamps::new(),
            count: 0,
            refusals: 0,
        })
    }

    /// Whether a failed datagram was counted by the kernel depends on its version: count anew.
    fn count_anew(&mut self) {
        if stamp::stamp_sent_datagrams(&self.socket).is_ok() {
            self.count = 0;
            self.pending.clear();
        }
    }

    fn note(&mut self, report: stamp::Report, stamps: &mut dyn FnMut(TransmitStamp)) {
        match report {
            stamp::Report::Stamp {
                id,
                point,
                realtime_ns,
            } => {
                if let Some(sequence) = self.pending.sequence_at(id) {
                    stamps(TransmitStamp {
                        sequence,
                        point,
                        at_ns: self.clock.to_monotonic(realtime_ns),
                    });
                }
            }
            stamp::Report::Refused { local: false, .. } => self.refusals += 1,
            _ => {}
        }
    }
}

impl Sender for UdpSender {
    fn send(&mut self, sequence: u64, body: &Body) -> Result<Sent, SendError> {
        let mut result = self.socket.send(body.octets());
        if matches!(&result, Err(error) if error.kind() == ErrorKind::ConnectionRefused) {
            // That is about an earlier datagram; this one has not been tried.
            result = self.socket.send(body.octets());
        }
        match result {
            Ok(_) => {
                self.pending.push(self.count, sequence);
                self.count = self.count.wrapping_add(1);
                Ok(Sent::Whole)
            }
            Err(error) => {
                self.count_anew();
                Err(SendError::from_io(&error))
            }
        }
    }

    fn collect(&mut self, stamps: &mut dyn FnMut(TransmitStamp)) -> bool {
        for _ in 0..STAMPS_A_TURN_MAX {
            match stamp::take_report(&self.socket) {
                Ok(Some(report)) => self.note(report, stamps),
                Ok(None) | Err(_) => return false,
            }
        }
        true
    }

    fn refusals(&self) -> u64 {
        self.refusals
    }
}

/// Receives at one destination.
#[derive(Debug)]
pub struct UdpReceiver {
    socket: UdpSocket,
    clock: Arc<StampClock>,
    reader: SequenceReader,
    buffer: Vec<u8>,
}

impl UdpReceiver {
    /// A socket at `address`, at a port of the kernel's choice.
    ///
    /// # Errors
    /// [`PartError`] when the kernel refuses.
    pub fn bind(
        address: IpAddr,
        buffer_bytes: Option<u32>,
        reader: SequenceReader,
        clock: Arc<StampClock>,
    ) -> Result<Self, PartError> {
        let make = || {
            let socket = UdpSocket::bind((address, 0))?;
            socket::set_receive_buffer(&socket, buffer_bytes.unwrap_or(RECEIVE_BUFFER_BYTES))?;
            socket.set_read_timeout(Some(STOP_LOOK))?;
            stamp::stamp_received(&socket)?;
            // Where it does not, messages stay without, and the join says so.
            let _stamps = stamp::await_stamps(STAMPS_BEGIN_MAX);
            Ok(socket)
        };
        let socket =
            make().map_err(|error| PartError::socket("udp", SocketAddr::new(address, 0), error))?;
        Ok(Self {
            socket,
            clock,
            reader,
            // Not zeros, which would be pages that the first message has to fetch.
            buffer: vec![u8::MAX; DATAGRAM_SIZE_MAX as usize],
        })
    }
}

impl Receiver for UdpReceiver {
    fn announce(&self, ready: &mut Ready) -> Result<(), PartError> {
        let unbound = SocketAddr::new(IpAddr::from([0, 0, 0, 0]), 0);
        let address = self
            .socket
            .local_addr()
            .map_err(|error| PartError::socket("udp", unbound, error))?;
        ready.endpoint = address.to_string();
        ready.listening = Some(address);
        Ok(())
    }

    fn receive_all(&mut self, mut handler: Box<dyn Handler>, shared: &Arc<Shared>) {
        while !shared.stopped() {
            let Ok(received) = stamp::receive(&self.socket, &mut self.buffer) else {
                // The time to look whether to stop, or a signal; what was dropped behind the last datagram is told by no other.
                if let Ok(dropped) = socket::dropped(&self.socket) {
                    shared.overflows.store(dropped.into(), Ordering::Relaxed);
                }
                continue;
            };
            let sequence = self.reader.read(&self.buffer[..received.len]);
            let received_ns = clock::monotonic_ns();
            if let Some(dropped) = received.dropped {
                shared.overflows.store(dropped.into(), Ordering::Relaxed);
            }
            let Some(sequence) = sequence else {
                shared.malformed.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            handler.handle(Arrival {
                sequence,
                kernel_receive_ns: received
                    .stamp_realtime_ns
                    .map(|stamp| self.clock.to_monotonic(stamp)),
                shared_stamp: false,
                received_ns,
            });
        }
    }
}
