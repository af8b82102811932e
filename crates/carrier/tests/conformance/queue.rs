//! A carrier that a test adds: a bounded queue in the process. It needs no change to the product's files.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deckwatch_carrier::arrival::{Arrival, Handler, Shared};
use deckwatch_carrier::body::{Body, SequenceReader};
use deckwatch_carrier::carrier::{Carrier, ConnectTo, Delivery, Framing, ListenAt};
use deckwatch_carrier::error::PartError;
use deckwatch_carrier::receiver::Receiver;
use deckwatch_carrier::sender::{SendError, Sender, Sent};
use deckwatch_carrier::talk::Ready;
use deckwatch_meter::blame::Road;
use deckwatch_os::clock;

/// Appends each message to the queue of its destination.
pub(crate) struct Queue;

static QUEUES: Mutex<BTreeMap<String, SyncSender<Vec<u8>>>> = Mutex::new(BTreeMap::new());
static COUNT: AtomicU32 = AtomicU32::new(0);

impl Carrier for Queue {
    fn name(&self) -> &'static str {
        "queue"
    }

    fn summary(&self) -> &'static str {
        "A queue within the process"
    }

    fn road(&self) -> Road {
        Road::MIDDLEWARE
    }

    fn framing(&self) -> Framing {
        Framing::Unseen
    }

    fn delivery(&self) -> Delivery {
        Delivery::InOrder
    }

    fn connect(&self, to: &ConnectTo<'_>) -> Result<Box<dyn Sender>, PartError> {
        let queues = QUEUES.lock().expect("no panic");
        let queue = queues.get(to.endpoint).ok_or(PartError::NoConsumer)?;
        Ok(Box::new(QueueSender(queue.clone())))
    }

    fn listen(&self, at: &ListenAt<'_>) -> Result<Box<dyn Receiver>, PartError> {
        let endpoint = format!("queue:{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let (queue, messages) = mpsc::sync_channel(64);
        QUEUES
            .lock()
            .expect("no panic")
            .insert(endpoint.clone(), queue);
        Ok(Box::new(QueueReceiver {
            endpoint,
            messages,
            reader: at.body.sequence_reader(),
        }))
    }
}

struct QueueSender(SyncSender<Vec<u8>>);

impl Sender for QueueSender {
    fn send(&mut self, _sequence: u64, body: &Body) -> Result<Sent, SendError> {
        match self.0.try_send(body.octets().to_vec()) {
            Ok(()) => Ok(Sent::Whole),
            Err(TrySendError::Full(_)) => Err(SendError::BacklogFull),
            Err(TrySendError::Disconnected(_)) => Err(SendError::Disconnected),
        }
    }
}

struct QueueReceiver {
    endpoint: String,
    messages: mpsc::Receiver<Vec<u8>>,
    reader: SequenceReader,
}

impl Receiver for QueueReceiver {
    fn announce(&self, ready: &mut Ready) {
        ready.endpoint.clone_from(&self.endpoint);
    }

    fn receive_all(&mut self, mut handler: Box<dyn Handler>, shared: &Arc<Shared>) {
        while !shared.stopped() {
            match self.messages.recv_timeout(Duration::from_millis(10)) {
                Ok(octets) => {
                    let sequence = self.reader.read(&octets).expect("a message");
                    handler.handle(Arrival {
                        sequence,
                        kernel_receive_realtime_ns: None,
                        shared_stamp: false,
                        received_ns: clock::monotonic_ns(),
                    });
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}
