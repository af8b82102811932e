//! The requests that this thread serves: the state behind `PortableServer::Current`, and the check whether a wait would
//! never end.
//!
//! The frame of an active object is three numbers, so that a request needs neither a lock nor a reference count for it.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

use super::PoaState;
use crate::{Servant, SlotKey};

/// One request in progress.
#[derive(Default)]
pub(super) struct Frame {
    incarnation: u64,
    adapter: Option<SlotKey>,
    /// The active object; the request has it pinned.
    pub(super) object: Option<SlotKey>,
    /// The servant in use if there is no active object.
    pub(super) without: Option<Without>,
    pub(super) id: Vec<u8>,
}

pub(super) struct Without {
    pub(super) adapter: Arc<PoaState>,
    pub(super) servant: Option<Arc<dyn Servant>>,
}

/// Frames are reused, so that their memory is allocated once.
#[derive(Default)]
struct Frames {
    all: Vec<Frame>,
    depth: usize,
}

thread_local! {
    static FRAMES: RefCell<Frames> = const { RefCell::new(Frames { all: Vec::new(), depth: 0 }) };
}

/// Allocates what a thread needs, before its first request.
pub(crate) fn prepare() {
    FRAMES.with_borrow_mut(|frames| {
        if frames.all.is_empty() {
            frames.all.resize_with(NESTED, || Frame {
                id: Vec::with_capacity(ID_SIZE),
                ..Frame::default()
            });
        }
    });
}

/// The depth of nested requests that needs no allocation: the call of a servant manager and that of its servant.
const NESTED: usize = 4;

/// The length of an id that needs no allocation. Ids of active objects are not copied.
const ID_SIZE: usize = 64;

/// Removes the frame on drop.
pub(crate) struct Entered(PhantomData<*const ()>);

/// Enters a request for an active object, which the caller has pinned.
pub(crate) fn enter(state: &PoaState, object: SlotKey) -> Entered {
    push(state, |frame| frame.object = Some(object))
}

/// Enters a request for an object that is not active, or a call to a servant manager.
pub(crate) fn enter_without_object(
    state: &Arc<PoaState>,
    servant: Option<&Arc<dyn Servant>>,
    id: &[u8],
) -> Entered {
    push(state, |frame| {
        frame.id.extend_from_slice(id);
        frame.without = Some(Without {
            adapter: Arc::clone(state),
            servant: servant.cloned(),
        });
    })
}

fn push(state: &PoaState, fill: impl FnOnce(&mut Frame)) -> Entered {
    FRAMES.with_borrow_mut(|frames| {
        if frames.all.len() == frames.depth {
            frames.all.push(Frame::default());
        }
        let frame = &mut frames.all[frames.depth];
        frames.depth += 1;
        frame.incarnation = state.identity.incarnation;
        frame.adapter = Some(state.slot());
        fill(frame);
    });
    Entered(PhantomData)
}

impl Drop for Entered {
    fn drop(&mut self) {
        // Dropped outside of the borrow: the drop of a servant may read the current request.
        let _without = FRAMES.with_borrow_mut(|frames| {
            frames.depth -= 1;
            let frame = &mut frames.all[frames.depth];
            frame.object = None;
            frame.id.clear();
            frame.without.take()
        });
    }
}

fn any(incarnation: u64, is_it: impl Fn(&Frame) -> bool) -> bool {
    FRAMES.with_borrow(|frames| {
        let mut open = frames.all[..frames.depth].iter();
        open.any(|frame| frame.incarnation == incarnation && is_it(frame))
    })
}

/// Returns whether this thread is in an upcall of the ORB.
pub(super) fn is_within(incarnation: u64) -> bool {
    any(incarnation, |_| true)
}

/// Returns whether this thread is in an upcall of the adapter.
pub(super) fn is_within_adapter(incarnation: u64, adapter: SlotKey) -> bool {
    any(incarnation, |frame| frame.adapter == Some(adapter))
}

/// Returns whether this thread serves the active object.
pub(super) fn is_within_object(incarnation: u64, object: SlotKey) -> bool {
    any(incarnation, |frame| frame.object == Some(object))
}

/// Calls `look` with the innermost request of the ORB.
pub(super) fn innermost<T>(incarnation: u64, look: impl FnOnce(&Frame) -> T) -> Option<T> {
    FRAMES.with_borrow(|frames| {
        let mut open = frames.all[..frames.depth].iter().rev();
        open.find(|frame| frame.incarnation == incarnation)
            .map(look)
    })
}
