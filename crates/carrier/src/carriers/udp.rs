//! The carrier `udp`: one datagram for each message, one connected socket for each destination.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use deckwatch_meter::blame::Road;
use deckwatch_os::bulk::{self, Datagrams};
use deckwatch_os::{clock, socket, stamp};

use crate::arrival::{Arrival, Handler, Shared};
use crate::batch::Batch;
use crate::body::{Body, SequenceReader};
use crate::carrier::{Carrier, ConnectTo, Delivery, Framing, ListenAt, Needs};
use crate::error::PartError;
use crate::limits::{
    DATAGRAM_SIZE_MAX, PENDING_STAMPS_MAX, RECEIVE_BUFFER_BYTES, SEND_BUFFER_BYTES, SEND_WAIT_MAX,
    STAMP_BUFFER_BYTES, STAMPS_A_TURN_MAX, STAMPS_BEGIN_MAX, STOP_LOOK,
};
use crate::pending::PendingStamps;
use crate::receiver::Receiver;
use crate::sender::{SendError, Sender, Sent, TransmitStamp};
use crate::talk::Ready;

/// One datagram for each message, one connected socket for each destination.
#[derive(Debug)]
pub struct Udp;

impl Carrier for Udp {
    fn name(&self) -> &'static str {
        "udp"
    }

    fn summary(&self) -> &'static str {
        "One datagram a message"
    }

    fn road(&self) -> Road {
        Road::RAW
    }

    fn framing(&self) -> Framing {
        Framing::Datagram
    }

    fn delivery(&self) -> Delivery {
        Delivery::BestEffort
    }

    fn needs(&self) -> Needs {
        Needs {
            size_bytes_max: DATAGRAM_SIZE_MAX,
            ..Needs::default()
        }
    }

    fn connect(&self, to: &ConnectTo<'_>) -> Result<Box<dyn Sender>, PartError> {
        let destination = to.socket_address()?;
        let ipv6 = destination.is_ipv6();
        let make = || {
            let socket = UdpSocket::bind((to.address, 0))?;
            socket.connect(destination)?;
            socket.set_nonblocking(true)?;
            let priority = to.network_priority;
            socket::set_priority(&socket, ipv6, priority.dscp, priority.socket_priority)?;
            if let Some(size_bytes) = to.socket.send_buffer.asked(SEND_BUFFER_BYTES) {
                socket::set_send_buffer(&socket, size_bytes)?;
            }
            stamp::report_send_errors(&socket, ipv6)?;
            if !to.socket.unstamped {
                socket::set_receive_buffer(&socket, STAMP_BUFFER_BYTES)?;
                stamp::stamp_sent_datagrams(&socket)?;
            }
            Ok(socket)
        };
        let socket = make().map_err(|error| PartError::socket(self.name(), destination, error))?;
        Ok(Box::new(UdpSender {
            socket,
            unstamped: to.socket.unstamped,
            batch: (to.socket.unstamped).then(|| Batch::unframed(to.body)),
            pending: PendingStamps::new(),
            early: Vec::with_capacity(PENDING_STAMPS_MAX),
            wait_ns_max: i64::try_from(to.deadline.min(SEND_WAIT_MAX).as_nanos())
                .unwrap_or(i64::MAX),
            count: 0,
            refusals: 0,
            waits: 0,
        }))
    }

    fn listen(&self, at: &ListenAt<'_>) -> Result<Box<dyn Receiver>, PartError> {
        let make = || {
            let socket = UdpSocket::bind((at.address, 0))?;
            let receive_buffer = at.settings.receive_buffer;
            if let Some(size_bytes) = receive_buffer.asked(RECEIVE_BUFFER_BYTES) {
                socket::set_receive_buffer(&socket, size_bytes)?;
            }
            socket.set_read_timeout(Some(STOP_LOOK))?;
            if !at.settings.unstamped {
                stamp::stamp_received(&socket)?;
                // Without stamps, messages still arrive, and the join counts the missing stamps.
                let _ = stamp::await_stamps(STAMPS_BEGIN_MAX);
            }
            let address = socket.local_addr()?;
            Ok((socket, address))
        };
        let (socket, address) = make().map_err(|error| {
            PartError::socket(self.name(), SocketAddr::new(at.address, 0), error)
        })?;
        Ok(Box::new(UdpReceiver {
            socket,
            address,
            reader: at.body.sequence_reader(),
            datagrams: (at.settings.unstamped).then(|| Datagrams::new(at.body.octets().len())),
            sequences: Vec::with_capacity(bulk::DATAGRAMS_MAX),
            // Not zero: zeroed memory is mapped lazily, and the page faults would delay the first message.
            buffer: vec![u8::MAX; DATAGRAM_SIZE_MAX as usize],
        }))
    }
}

/// Sends to one destination.
#[derive(Debug)]
struct UdpSender {
    socket: UdpSocket,
    unstamped: bool,
    /// Without stamps. With them, each datagram is sent and counted alone.
    batch: Option<Batch>,
    /// Datagrams, keyed by the kernel's count of them.
    pending: PendingStamps,
    /// Stamps read during a wait, for the next `collect`.
    early: Vec<TransmitStamp>,
    wait_ns_max: i64,
    count: u32,
    refusals: u64,
    waits: u64,
}

impl UdpSender {
    /// Restarts the kernel's count. Whether the kernel counts a datagram that failed depends on its version.
    fn count_anew(&mut self) {
        if !self.unstamped && stamp::stamp_sent_datagrams(&self.socket).is_ok() {
            self.count = 0;
            self.pending.clear();
        }
    }

    /// Sends a datagram as soon as the send buffer has room. Waits for the deadline at most: a datagram that leaves later
    /// is late in any case.
    fn send_with_room(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.waits += 1;
        let until_ns = clock::monotonic_ns().saturating_add(self.wait_ns_max);
        loop {
            // With stamps to read, the poll returns at once.
            self.take_early_stamps();
            socket::wait_writable([self.socket.as_fd()].into_iter(), until_ns);
            match self.socket.send(octets) {
                Err(error)
                    if error.kind() == ErrorKind::WouldBlock
                        && clock::monotonic_ns() < until_ns => {}
                result => return result,
            }
        }
    }

    fn take_early_stamps(&mut self) {
        let mut early = std::mem::take(&mut self.early);
        while let Ok(Some(report)) = stamp::take_report(&self.socket) {
            self.note(report, &mut |stamp| {
                // The capacity is that of `pending`; further messages stay without stamps.
                if early.len() < early.capacity() {
                    early.push(stamp);
                }
            });
        }
        self.early = early;
    }

    fn note(&mut self, report: stamp::Report, stamps: &mut dyn FnMut(TransmitStamp)) {
        match report {
            stamp::Report::Stamp { id, realtime_ns } => {
                if let Some(sequence) = self.pending.sequence_at(id) {
                    stamps(TransmitStamp {
                        sequence,
                        realtime_ns,
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
            // The error is about an earlier datagram; this one has not been sent.
            result = self.socket.send(body.octets());
        }
        if matches!(&result, Err(error) if error.kind() == ErrorKind::WouldBlock) {
            result = self.send_with_room(body.octets());
        }
        match result {
            Ok(_) => {
                if !self.unstamped {
                    self.pending.push(self.count, sequence);
                    self.count = self.count.wrapping_add(1);
                }
                Ok(Sent::Whole)
            }
            Err(error) => {
                self.count_anew();
                Err(SendError::from_io(&error))
            }
        }
    }

    fn send_many(&mut self, sequences: Range<u64>, body: &mut Body) -> Result<u64, SendError> {
        if let Some(batch) = &mut self.batch {
            let size = batch.size();
            let (octets, _) = batch.fill(body, &sequences);
            if let Ok(count) = bulk::send(&self.socket, octets, size) {
                return Ok(count as u64);
            }
        }
        // The first datagram alone meets the same error, or waits for room.
        body.set_sequence(sequences.start);
        self.send(sequences.start, body).map(|_| 1)
    }

    fn collect(&mut self, stamps: &mut dyn FnMut(TransmitStamp)) -> bool {
        self.early.drain(..).for_each(&mut *stamps);
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

    fn waits(&self) -> u64 {
        self.waits
    }
}

/// Receives at one destination.
#[derive(Debug)]
struct UdpReceiver {
    socket: UdpSocket,
    address: SocketAddr,
    reader: SequenceReader,
    buffer: Vec<u8>,
    /// Those of one call in bulk. Only without stamps.
    datagrams: Option<Datagrams>,
    sequences: Vec<u64>,
}

impl UdpReceiver {
    /// Receives one datagram. Without stamps, a plain call is cheaper.
    fn receive(&mut self) -> io::Result<stamp::Received> {
        if self.datagrams.is_none() {
            return stamp::receive(&self.socket, &mut self.buffer);
        }
        let len = self.socket.recv(&mut self.buffer)?;
        Ok(stamp::Received {
            len,
            truncated: false,
            stamp_realtime_ns: None,
            dropped: None,
        })
    }

    /// In bulk, receives all datagrams that are there. Returns false if they come one by one.
    fn receive_many(&mut self, handler: &mut dyn Handler, shared: &Shared) -> bool {
        let Some(datagrams) = self.datagrams.as_mut().filter(|_| shared.is_bulk()) else {
            return false;
        };
        if datagrams.receive(&self.socket).is_err() {
            self.note_drops(shared); // a timeout or a signal
            return true;
        }
        let returned_ns = clock::monotonic_ns();
        self.sequences.clear();
        for datagram in datagrams.iter() {
            match self.reader.read(datagram) {
                Some(sequence) => self.sequences.push(sequence),
                None => {
                    shared.malformed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        handler.handle_all(&self.sequences, (returned_ns, clock::monotonic_ns()));
        true
    }

    /// Datagrams dropped after the last one received show only in this counter.
    fn note_drops(&self, shared: &Shared) {
        if let Ok(dropped) = socket::dropped(&self.socket) {
            shared.dropped.store(dropped.into(), Ordering::Relaxed);
        }
    }
}

impl Receiver for UdpReceiver {
    fn announce(&self, ready: &mut Ready) {
        ready.endpoint = self.address.to_string();
        ready.listening = Some(self.address);
    }

    fn receive_all(&mut self, mut handler: Box<dyn Handler>, shared: &Arc<Shared>) {
        while !shared.stopped() {
            if self.receive_many(&mut *handler, shared) {
                continue;
            }
            let Ok(received) = self.receive() else {
                self.note_drops(shared); // a timeout or a signal
                continue;
            };
            let sequence = self.reader.read(&self.buffer[..received.len]);
            let received_ns = clock::monotonic_ns();
            if let Some(dropped) = received.dropped {
                shared.dropped.store(dropped.into(), Ordering::Relaxed);
            }
            let Some(sequence) = sequence else {
                shared.malformed.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            handler.handle(Arrival {
                sequence,
                kernel_receive_realtime_ns: received.stamp_realtime_ns,
                shared_stamp: false,
                received_ns,
            });
        }
    }
}
