//! The receiving side of [`super::Tcp`]: connections that are accepted, and answers over one's own.

use std::io::{ErrorKind, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use deckwatch_os::{clock, socket, stamp};

use super::{AnsweringSender, prepare_to_send};
use crate::arrival::{Arrival, Handler, Shared};
use crate::body::{Body, FRAME_HEADER_SIZE, SequenceReader};
use crate::carrier::{ReceiverSettings, SocketSettings};
use crate::limits::{BATCH_BYTES, BODY_SIZE_MAX, RECEIVE_BUFFER_BYTES, STOP_LOOK};
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::talk::Ready;

/// Receives at one destination, one connection at a time.
#[derive(Debug)]
pub(super) struct TcpReceiver {
    pub(super) listener: TcpListener,
    pub(super) address: SocketAddr,
    /// Where the connection for answers goes, and its settings.
    pub(super) answers: Option<(Arc<OnceLock<Arc<TcpStream>>>, SocketSettings)>,
    pub(super) reading: Reading,
}

/// Receives what the peer sends back over a connection.
#[derive(Debug)]
pub(super) struct TcpAnswers {
    pub(super) stream: Arc<TcpStream>,
    pub(super) reading: Reading,
}

/// What the reading of a connection needs.
#[derive(Debug)]
pub(super) struct Reading {
    settings: ReceiverSettings,
    reader: SequenceReader,
    buffer: Vec<u8>,
    /// Octets of the buffer that one call may fill: a whole message at least.
    read_max: usize,
    /// Messages of one call, in bulk.
    sequences: Vec<u64>,
}

impl Receiver for TcpReceiver {
    fn announce(&self, ready: &mut Ready) {
        ready.endpoint = self.address.to_string();
        ready.listening = Some(self.address);
    }

    fn answering(&mut self, settings: SocketSettings, body: &Body) -> Option<Box<dyn Sender>> {
        let accepted = Arc::new(OnceLock::new());
        self.answers = Some((Arc::clone(&accepted), settings));
        Some(Box::new(AnsweringSender {
            accepted,
            settings,
            body: body.clone(),
            sender: None,
        }))
    }

    fn receive_all(&mut self, mut handler: Box<dyn Handler>, shared: &Arc<Shared>) {
        while !shared.stopped() {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if self.prepare(&stream).is_ok() {
                        let stream = self.share(stream);
                        self.reading.receive(&stream, &mut *handler, shared);
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
        if let Some((_, settings)) = self.answers {
            prepare_to_send(stream, settings)?;
        }
        self.reading.prepare(stream)
    }

    /// Gives the first connection to the sender of the answers.
    fn share(&self, stream: TcpStream) -> Arc<TcpStream> {
        let stream = Arc::new(stream);
        if let Some((accepted, _)) = &self.answers {
            // A later connection has no answers.
            let _ = accepted.set(Arc::clone(&stream));
        }
        stream
    }
}

impl Receiver for TcpAnswers {
    fn announce(&self, _ready: &mut Ready) {}

    fn receive_all(&mut self, mut handler: Box<dyn Handler>, shared: &Arc<Shared>) {
        if self.reading.prepare(&self.stream).is_ok() {
            self.reading.receive(&self.stream, &mut *handler, shared);
        }
    }
}

impl Reading {
    pub(super) fn new(settings: ReceiverSettings, body: &Body) -> Self {
        let size = body.framed().len();
        Self {
            settings,
            reader: body.sequence_reader(),
            // Not zero: zeroed memory is mapped lazily, and the page faults would delay the first message.
            buffer: vec![u8::MAX; BODY_SIZE_MAX as usize + FRAME_HEADER_SIZE],
            read_max: BATCH_BYTES.max(size),
            sequences: Vec::with_capacity(BATCH_BYTES.max(size) / size.max(1)),
        }
    }

    fn prepare(&self, stream: &TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(STOP_LOOK))?;
        if let Some(size_bytes) = self.settings.receive_buffer.asked(RECEIVE_BUFFER_BYTES) {
            socket::set_receive_buffer(stream, size_bytes)?;
        }
        if self.settings.unstamped {
            return Ok(());
        }
        stamp::stamp_received(stream)
    }

    /// Reads a connection until it is closed or the part stops.
    fn receive(&mut self, stream: &TcpStream, handler: &mut dyn Handler, shared: &Shared) {
        let mut filled = 0;
        while !shared.stopped() {
            let (len, stamp_realtime_ns) = match self.read(stream, filled) {
                Ok((len, stamp)) if len > 0 => (len, stamp),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
                {
                    continue;
                }
                Ok(_) | Err(_) => return, // the supplier has closed the connection
            };
            filled += len;
            let used = if self.settings.unstamped && shared.is_bulk() {
                self.deliver_all(filled, handler)
            } else {
                self.deliver(filled, stamp_realtime_ns, handler)
            };
            let Some(used) = used else {
                shared.malformed.fetch_add(1, Ordering::Relaxed);
                return;
            };
            if used < filled {
                self.buffer.copy_within(used..filled, 0);
            }
            filled -= used;
        }
    }

    /// Reads behind the first `filled` octets. Without stamps, a plain call is cheaper.
    fn read(&mut self, stream: &TcpStream, filled: usize) -> std::io::Result<(usize, Option<i64>)> {
        if self.settings.unstamped {
            let end = self.buffer.len().min(filled + self.read_max);
            let mut stream = stream;
            return Ok((stream.read(&mut self.buffer[filled..end])?, None));
        }
        let received = stamp::receive(stream, &mut self.buffer[filled..])?;
        Ok((received.len, received.stamp_realtime_ns))
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
        while let Some((sequence, size)) = self.next(used, filled)? {
            let received_ns = clock::monotonic_ns();
            used += size;
            handler.handle(Arrival {
                sequence,
                kernel_receive_realtime_ns: stamp_realtime_ns,
                shared_stamp: used != filled,
                received_ns,
            });
        }
        Some(used)
    }

    /// As [`Self::deliver`], with two times for all messages.
    fn deliver_all(&mut self, filled: usize, handler: &mut dyn Handler) -> Option<usize> {
        let returned_ns = clock::monotonic_ns();
        self.sequences.clear();
        let mut used = 0;
        while let Some((sequence, size)) = self.next(used, filled)? {
            used += size;
            self.sequences.push(sequence);
        }
        handler.handle_all(&self.sequences, (returned_ns, clock::monotonic_ns()));
        Some(used)
    }

    /// Returns the sequence number of the message behind `used` octets, and the octets of its frame. Returns
    /// `Some(None)` if it is not complete, and `None` if it is not a message.
    fn next(&self, used: usize, filled: usize) -> Option<Option<(u64, usize)>> {
        let there = self.buffer[used..filled].split_first_chunk::<FRAME_HEADER_SIZE>();
        let Some((header, rest)) = there else {
            return Some(None);
        };
        let size = u32::from_be_bytes(*header);
        if size > BODY_SIZE_MAX {
            return None;
        }
        let Some(octets) = rest.get(..size as usize) else {
            return Some(None);
        };
        let sequence = self.reader.read(octets)?;
        Some(Some((sequence, FRAME_HEADER_SIZE + octets.len())))
    }
}
