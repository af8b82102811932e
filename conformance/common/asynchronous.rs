//! Asynchronous calls of an operation that takes and returns a number, and peers that reply to them.

use std::sync::mpsc::{Receiver, Sender, channel};

use deckwatch_cdr::{DecodeError, Parse, Reader, Write};
use deckwatch_dynamic::Poller;
use deckwatch_orb::{Deliver, ExceptionHolder, ObjectRef, SystemException};

use super::message::NO_EXCEPTION;
use super::{Over, PATIENCE, Peer, Received};

/// The outcome that a reply handler receives.
pub(crate) type Outcome = Result<u64, ExceptionHolder>;

/// A reply handler that forwards its outcome to a channel.
pub(crate) fn passing_on(told: Sender<Outcome>) -> Deliver {
    Box::new(move |reply| {
        let _ = told.send(reply.results(number_of)); // The test may be over.
        Ok(())
    })
}

/// Calls the operation asynchronously; the outcome arrives on the returned channel.
pub(crate) fn ask(object: &ObjectRef, number: u64) -> Receiver<Outcome> {
    let (told, heard) = channel();
    let deliver = Some(passing_on(told));
    let sent = object.send_callback("number", |w| number.write(w), deliver);
    assert_eq!(sent, Ok(()));
    heard
}

#[track_caller]
pub(crate) fn heard(from: &Receiver<Outcome>) -> Outcome {
    from.recv_timeout(PATIENCE).expect("the handler is called")
}

pub(crate) fn poller(object: &ObjectRef, number: u64) -> Poller {
    Poller::send(object, "number", |w| number.write(w)).expect("it is sent")
}

pub(crate) fn poll(poller: &Poller, timeout_ms: u32) -> Result<u64, SystemException> {
    poller.poll("number", timeout_ms, number_of, |_, _| Ok(None))
}

/// The system exception in an exception holder.
#[track_caller]
pub(crate) fn system(told: Outcome) -> SystemException {
    let holder = told.expect_err("an exception");
    assert!(holder.is_system_exception());
    holder.raise_exception(|_, _| Ok(None))
}

pub(crate) fn number_of(r: &mut Reader<'_>) -> Result<u64, DecodeError> {
    u64::parse(r)
}

/// A reply that returns the number of its request.
pub(crate) fn same(asked: &Received) -> Vec<u8> {
    let number = asked.asked().body.u64();
    asked.answered(NO_EXCEPTION, |octets| {
        octets.u64(number);
    })
}

/// A peer that echoes each number, once per message on the returned channel.
pub(crate) fn answering_when_let(over: Over) -> (Peer, Sender<()>) {
    let (open, opened) = channel();
    let peer = Peer::answering(over, move |_, asked| {
        let _ = opened.recv(); // Sent, or the test is over.
        same(asked)
    });
    (peer, open)
}
