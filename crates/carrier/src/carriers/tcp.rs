//! The carrier `tcp`: one connection for each destination, with TCP_NODELAY. Each message follows its length in four
//! octets, big-endian.

use std::collections::VecDeque;
use std::io::{ErrorKind, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use deckwatch_meter::blame::Road;
use deckwatch_os::{clock, socket, stamp};

use crate::arrival::{Arrival, Handler, Shared};
use crate::body::{Body, FRAME_HEADER_SIZE, SequenceReader};
use crate::carrier::{Carrier, ConnectTo, Delivery, Framing, ListenAt, ReceiverSettings};
use crate::error::PartError;
use crate::limits::{
    BACKLOG_BYTES_MAX, BODY_SIZE_MAX, CONNECT_TIME_MAX, RECEIVE_BUFFER_BYTES, SEND_BUFFER_BYTES,
    STAMP_BUFFER_BYTES, STAMPS_A_TURN_MAX, STAMPS_BEGIN_MAX, STOP_LOOK,
};
use crate::pending::PendingStamps;
use crate::receiver::Receiver;
use crate::sender::{SendError, Sender, Sent, TransmitStamp};
use crate::talk::Ready;

/// One connection for each destination, with TCP_NODELAY; each message follows its length.
#[derive(Debug)]
pub struct Tcp;

impl Carrier for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn summary(&self) -> &'static str {
        "One connection a destination, without delay"
    }

    fn road(&self) -> Road {
        Road::RAW
    }

    fn framing(&self) -> Framing {
        Framing::Length
    }

    fn delivery(&self) -> Delivery {
        Delivery::InOrder
    }

    fn connect(&self, to: &ConnectTo<'_>) -> Result<Box<dyn Sender>, PartError> {
        let destination = to.socket_address()?;
        let ipv6 = destination.is_ipv6();
        let make = || {
            let stream = socket::connect_from(to.address, destination, CONNECT_TIME_MAX)?;
            stream.set_nodelay(!to.socket.delays)?;
            stream.set_nonblocking(true)?;
            let priority = to.network_priority;
            socket::set_priority(&stream, ipv6, priority.dscp, priority.socket_priority)?;
            if let Some(size_bytes) = to.socket.send_buffer.asked(SEND_BUFFER_BYTES) {
                socket::set_send_buffer(&stream, size_bytes)?;
            }
            if !to.socket.unstamped {
                socket::set_receive_buffer(&stream, STAMP_BUFFER_BYTES)?;
                stamp::stamp_sent_octets(&stream)?;
            }
            Ok(stream)
        };
        let stream = make().map_err(|error| PartError::socket(self.name(), destination, error))?;
        let backlog_bytes_max = BACKLOG_BYTES_MAX.max(to.body.framed().len());
        Ok(Box::new(TcpSender {
            stream,
            pending: PendingStamps::new(),
            offset: 0,
            backlog: VecDeque::with_capacity(backlog_bytes_max),
            backlog_bytes_max,
            disconnected: false,
        }))
    }

    fn listen(&self, at: &ListenAt<'_>) -> Result<Box<dyn Receiver>, PartError> {
        let make = || {
            let listener = TcpListener::bind((at.address, 0))?;
            listener.set_nonblocking(true)?;
            // Wait here so that the first message has a stamp. Without stamps, messages still arrive, and the join
            // counts the missing stamps.
            if !at.settings.unstamped {
                stamp::stamp_received(&listener)?;
                let _ = stamp::await_stamps(STAMPS_BEGIN_MAX);
            }
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) = make().map_err(|error| {
            PartError::socket(self.name(), SocketAddr::new(at.address, 0), error)
        })?;
        Ok(Box::new(TcpReceiver {
            listener,
            address,
            settings: at.settings,
            reader: at.body.sequence_reader(),
            // Not zero: zeroed memory is mapped lazily, and the page faults would delay the first message.
            buffer: vec![u8::MAX; BODY_SIZE_MAX as usize + FRAME_HEADER_SIZE],
        }))
    }
}

/// Sends to one destination.
#[derive(Debug)]
struct TcpSender {
    stream: TcpStream,
    /// Messages, keyed by the stream offset of their last octet.
    pending: PendingStamps,
    /// Octets accepted so far, including the backlog.
    offset: u32,
    backlog: VecDeque<u8>,
    backlog_bytes_max: usize,
    disconnected: bool,
}

impl TcpSender {
    /// Writes to the socket. Returns how many octets the kernel accepts now.
    fn write(&mut self, octets: &[u8]) -> Result<usize, SendError> {
        loop {
            match (&self.stream).write(octets) {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.disconnected = true;
                    self.backlog.clear();
                    return Err(SendError::Disconnected);
                }
            }
        }
    }
}

impl Sender for TcpSender {
    fn send(&mut self, sequence: u64, body: &Body) -> Result<Sent, SendError> {
        if self.disconnected {
            return Err(SendError::Disconnected);
        }
        let frame = body.framed();
        if self.backlog.len() + frame.len() > self.backlog_bytes_max {
            return Err(SendError::BacklogFull);
        }
        let taken = if self.backlog.is_empty() {
            self.write(frame)?
        } else {
            0
        };
        self.backlog.extend(&frame[taken..]);
        let size = u32::try_from(frame.len()).expect("bodies are bounded");
        self.offset = self.offset.wrapping_add(size);
        self.pending.push(self.offset.wrapping_sub(1), sequence);
        Ok(if taken == frame.len() {
            Sent::Whole
        } else {
            Sent::Waiting
        })
    }

    fn collect(&mut self, stamps: &mut dyn FnMut(TransmitStamp)) -> bool {
        for _ in 0..STAMPS_A_TURN_MAX {
            match stamp::take_report(&self.stream) {
                Ok(Some(stamp::Report::Stamp { id, realtime_ns })) => {
                    if let Some(sequence) = self.pending.sequence_at(id) {
                        stamps(TransmitStamp {
                            sequence,
                            realtime_ns,
                        });
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return false,
            }
        }
        true
    }

    fn backlog(&self) -> Option<BorrowedFd<'_>> {
        (!self.backlog.is_empty()).then(|| self.stream.as_fd())
    }

    fn flush(&mut self) {
        while !self.backlog.is_empty() {
            let waiting = std::mem::take(&mut self.backlog);
            let taken = self.write(waiting.as_slices().0);
            let Ok(taken) = taken else { return };
            self.backlog = waiting;
            self.backlog.drain(..taken);
            if taken == 0 {
                return;
            }
        }
    }
}

/// Receives at one destination, one connection at a time.
#[derive(Debug)]
struct TcpReceiver {
    listener: TcpListener,
    address: SocketAddr,
    settings: ReceiverSettings,
    reader: SequenceReader,
    buffer: Vec<u8>,
}

impl Receiver for TcpReceiver {
    fn announce(&self, ready: &mut Ready) {
        ready.endpoint = self.address.to_string();
        ready.listening = Some(self.address);
    }

    fn receive_all(&mut self, mut handler: Box<dyn Handler>, shared: &Arc<Shared>) {
        while !shared.stopped() {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if self.prepare(&stream).is_ok() {
                        self.receive_connection(&stream, &mut *handler, shared);
                    }
                }
                Err(_) => {
                    let look_ns =
                        clock::monotonic_ns() + i64::try_from(STOP_LOOK.as_nanos()).unwrap_or(0);
                    socket::wait_readable(std::iter::once(self.listener.as_fd()), look_ns);
                }
            }
        }
    }
}

impl TcpReceiver {
    fn prepare(&self, stream: &TcpStream) -> std::io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(STOP_LOOK))?;
        if let Some(size_bytes) = self.settings.receive_buffer.asked(RECEIVE_BUFFER_BYTES) {
            socket::set_receive_buffer(stream, size_bytes)?;
        }
        if self.settings.unstamped {
            return Ok(());
        }
        stamp::stamp_received(stream)
    }

    fn receive_connection(
        &mut self,
        stream: &TcpStream,
        handler: &mut dyn Handler,
        shared: &Shared,
    ) {
        let mut filled = 0;
        while !shared.stopped() {
            let received = match stamp::receive(stream, &mut self.buffer[filled..]) {
                Ok(received) if received.len > 0 => received,
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
                {
                    continue;
                }
                Ok(_) | Err(_) => return, // the supplier has closed the connection
            };
            filled += received.len;
            let stamp_realtime_ns = received.stamp_realtime_ns;
            let Some(used) = self.deliver(filled, stamp_realtime_ns, handler) else {
                shared.malformed.fetch_add(1, Ordering::Relaxed);
                return;
            };
            self.buffer.copy_within(used..filled, 0);
            filled -= used;
        }
    }

    /// Passes the complete messages in the first `filled` octets to the handler. Returns how many octets they take, or
    /// `None` if a frame is not a message.
    fn deliver(
        &self,
        filled: usize,
        stamp_realtime_ns: Option<i64>,
        handler: &mut dyn Handler,
    ) -> Option<usize> {
        let mut used = 0;
        while let Some((header, rest)) =
            self.buffer[used..filled].split_first_chunk::<FRAME_HEADER_SIZE>()
        {
            let size = u32::from_be_bytes(*header);
            if size > BODY_SIZE_MAX {
                return None;
            }
            let Some(octets) = rest.get(..size as usize) else {
                break;
            };
            let sequence = self.reader.read(octets)?;
            let received_ns = clock::monotonic_ns();
            used += FRAME_HEADER_SIZE + octets.len();
            handler.handle(Arrival {
                sequence,
                kernel_receive_realtime_ns: stamp_realtime_ns,
                shared_stamp: used != filled,
                received_ns,
            });
        }
        Some(used)
    }
}
