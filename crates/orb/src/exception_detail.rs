//! Why a system exception was raised, in words: the service context ExceptionDetailMessage.
//!
//! A [`SystemException`] is a small value without text. Its text stays with the thread: the one that raises it, until
//! its reply is written, and the one that receives it, until the next system exception. A request without an exception
//! costs nothing.

use std::cell::{Cell, RefCell};

use deckwatch_cdr::Divided;
use deckwatch_giop::{Message, exception_detail_context, parse_exception_detail};

use crate::{SystemException, context_id};

thread_local! {
    static LAST: RefCell<Option<(SystemException, String)>> = const { RefCell::new(None) };
    /// Whether `LAST` was ever set. The first use of `LAST` registers a destructor, which allocates: an exception
    /// without words must not.
    static HAS_WORDS: Cell<bool> = const { Cell::new(false) };
}

fn keep(last: Option<(SystemException, String)>) {
    if last.is_some() || HAS_WORDS.get() {
        HAS_WORDS.set(true);
        LAST.set(last);
    }
}

/// Keeps why this thread raises an exception, in words. The reply that carries the exception carries them too, cut off
/// at [`deckwatch_giop::limits::EXCEPTION_DETAIL_UNITS_MAX`]. Returns the exception.
pub fn explain_exception(exception: SystemException, detail: String) -> SystemException {
    keep(Some((exception, detail)));
    exception
}

/// Returns why an exception was raised, in words: of the last exception that this thread has received in a reply or
/// [explained](explain_exception), if it is an equal one. A peer's words have no control characters.
#[must_use]
pub fn exception_detail(exception: &SystemException) -> Option<String> {
    if !HAS_WORDS.get() {
        return None;
    }
    LAST.with_borrow(|last| {
        let (of, detail) = last.as_ref()?;
        (of == exception).then(|| detail.clone())
    })
}

/// Takes the words for the reply that carries an exception: the octets of the context.
pub(crate) fn take_for_reply(exception: SystemException) -> Option<Vec<u8>> {
    if !HAS_WORDS.get() {
        return None;
    }
    let (_, detail) = LAST.take().filter(|(of, _)| *of == exception)?;
    exception_detail_context(&detail).ok()
}

/// Keeps the words of an exception that has arrived in a reply, or that it has none.
pub(crate) fn receive(exception: SystemException, message: &Divided<'_>) {
    let detail = match Message::parse_joined(message) {
        Ok(Message::Reply(reply)) => reply.contexts.find(context_id::EXCEPTION_DETAIL_MESSAGE),
        _ => None,
    };
    // Words that cannot be read are none: the exception is what counts.
    let words = detail.and_then(|data| parse_exception_detail(data).ok());
    keep(words.map(|words| (exception, words)));
}
