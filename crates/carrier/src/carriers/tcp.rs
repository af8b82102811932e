//! The carrier `tcp`: one connection for each destination, with TCP_NODELAY. Each message follows its length in four
//! octets, big-endian. The peer may send answers over the same connection.

mod receiving;

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::{Arc, OnceLock};

use deckwatch_meter::blame::Road;
use deckwatch_os::{socket, stamp};

use crate::batch::Batch;
use crate::body::Body;
use crate::carrier::{
    Carrier, ConnectTo, Delivery, Framing, ListenAt, ReceiverSettings, SocketSettings,
};
use crate::error::PartError;
use crate::limits::{
    BACKLOG_BYTES_MAX, CONNECT_TIME_MAX, SEND_BUFFER_BYTES, STAMP_BUFFER_BYTES, STAMPS_A_TURN_MAX,
    STAMPS_BEGIN_MAX,
};
use crate::pending::PendingStamps;
use crate::receiver::Receiver;
use crate::sender::{SendError, Sender, Sent, TransmitStamp};
use receiving::{Reading, TcpAnswers, TcpReceiver};

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

    fn carries_answers(&self) -> bool {
        true
    }

    fn connect(&self, to: &ConnectTo<'_>) -> Result<Box<dyn Sender>, PartError> {
        let destination = to.socket_address()?;
        let ipv6 = destination.is_ipv6();
        let make = || {
            let stream = socket::connect_from(to.address, destination, CONNECT_TIME_MAX)?;
            let priority = to.network_priority;
            socket::set_priority(&stream, ipv6, priority.dscp, priority.socket_priority)?;
            prepare_to_send(&stream, to.socket)?;
            if !to.socket.unstamped {
                socket::set_receive_buffer(&stream, STAMP_BUFFER_BYTES)?;
                stamp::stamp_sent_octets(&stream)?;
            }
            Ok(stream)
        };
        let stream = make().map_err(|error| PartError::socket(self.name(), destination, error))?;
        Ok(Box::new(TcpSender::new(
            Arc::new(stream),
            to.socket,
            to.body,
        )))
    }

    fn listen(&self, at: &ListenAt<'_>) -> Result<Box<dyn Receiver>, PartError> {
        let make = || {
            let listener = TcpListener::bind((at.address, 0))?;
            listener.set_nonblocking(true)?;
            // Connections that it accepts inherit this.
            let priority = at.network_priority;
            let ipv6 = at.address.is_ipv6();
            socket::set_priority(&listener, ipv6, priority.dscp, priority.socket_priority)?;
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
            answers: None,
            reading: Reading::new(at.settings, at.body),
        }))
    }
}

fn prepare_to_send(stream: &TcpStream, settings: SocketSettings) -> std::io::Result<()> {
    stream.set_nodelay(!settings.delays)?;
    if let Some(size_bytes) = settings.send_buffer.asked(SEND_BUFFER_BYTES) {
        socket::set_send_buffer(stream, size_bytes)?;
    }
    Ok(())
}

/// Sends to one destination.
#[derive(Debug)]
struct TcpSender {
    /// Its reads block, for the receiver of the answers.
    stream: Arc<TcpStream>,
    /// Without stamps. With them, each message is written alone.
    batch: Option<Batch>,
    /// Messages, keyed by the stream offset of their last octet.
    pending: PendingStamps,
    /// Octets accepted so far, including the backlog.
    offset: u32,
    backlog: VecDeque<u8>,
    backlog_bytes_max: usize,
    disconnected: bool,
}

impl TcpSender {
    fn new(stream: Arc<TcpStream>, settings: SocketSettings, body: &Body) -> Self {
        let batch = settings.unstamped.then(|| Batch::framed(body));
        let backlog_bytes_max = BACKLOG_BYTES_MAX.max(body.framed().len());
        Self {
            stream,
            batch,
            pending: PendingStamps::new(),
            offset: 0,
            backlog: VecDeque::with_capacity(backlog_bytes_max),
            backlog_bytes_max,
            disconnected: false,
        }
    }

    /// Writes to the socket. Returns how many octets the kernel accepts now.
    fn write(&mut self, octets: &[u8]) -> Result<usize, SendError> {
        loop {
            match socket::send_now(&self.stream, octets) {
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
        if self.batch.is_none() {
            let size = u32::try_from(frame.len()).expect("bodies are bounded");
            self.offset = self.offset.wrapping_add(size);
            self.pending.push(self.offset.wrapping_sub(1), sequence);
        }
        Ok(if taken == frame.len() {
            Sent::Whole
        } else {
            Sent::Waiting
        })
    }

    fn send_many(&mut self, sequences: Range<u64>, body: &mut Body) -> Result<u64, SendError> {
        let is_ready = self.backlog.is_empty() && !self.disconnected;
        let batch = if is_ready { self.batch.take() } else { None };
        let Some(mut batch) = batch else {
            body.set_sequence(sequences.start);
            return self.send(sequences.start, body).map(|_| 1);
        };
        let (octets, count) = batch.fill(body, &sequences);
        let written = self.write(octets);
        if let Ok(taken) = written {
            // At most one batch, which is less than the backlog may have.
            self.backlog.extend(&octets[taken..]);
        }
        self.batch = Some(batch);
        written.map(|_| count)
    }

    fn answers(&self, settings: ReceiverSettings, body: &Body) -> Option<Box<dyn Receiver>> {
        Some(Box::new(TcpAnswers {
            stream: Arc::clone(&self.stream),
            reading: Reading::new(settings, body),
        }))
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

/// Sends answers over the first connection that a receiver accepts.
#[derive(Debug)]
struct AnsweringSender {
    accepted: Arc<OnceLock<Arc<TcpStream>>>,
    settings: SocketSettings,
    /// With the octets that all messages share.
    body: Body,
    sender: Option<TcpSender>,
}

impl AnsweringSender {
    fn sender(&mut self) -> Result<&mut TcpSender, SendError> {
        if self.sender.is_none() {
            let stream = self.accepted.get().ok_or(SendError::Disconnected)?;
            let sender = TcpSender::new(Arc::clone(stream), self.settings, &self.body);
            self.sender = Some(sender);
        }
        self.sender.as_mut().ok_or(SendError::Disconnected)
    }
}

impl Sender for AnsweringSender {
    fn send(&mut self, sequence: u64, body: &Body) -> Result<Sent, SendError> {
        self.sender()?.send(sequence, body)
    }

    fn send_many(&mut self, sequences: Range<u64>, body: &mut Body) -> Result<u64, SendError> {
        self.sender()?.send_many(sequences, body)
    }

    fn collect(&mut self, stamps: &mut dyn FnMut(TransmitStamp)) -> bool {
        self.sender
            .as_mut()
            .is_some_and(|sender| sender.collect(stamps))
    }

    fn backlog(&self) -> Option<BorrowedFd<'_>> {
        self.sender.as_ref()?.backlog()
    }

    fn flush(&mut self) {
        if let Some(sender) = &mut self.sender {
            sender.flush();
        }
    }
}
