//! Which requests this thread is serving: what `PortableServer::Current` tells, and what says whether waiting would never end.
//!
//! An active object's frame is three numbers, so that a request takes no lock and no count for it.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

use super::PoaState;
use crate::{Servant, SlotKey};

/// One request, from the adapter's side.
#[derive(Default)]
pub(super) struct Frame {
    incarnation: u64,
    adapter: Option<SlotKey>,
    /// The active object; the request has it pinned.
    pub(super) object: Option<SlotKey>,
    /// Where there is no active object: what is served instead.
    pub(super) without: Option<Without>,
    pub(super) id: Vec<u8>,
}

pub(super) struct Without {
    pub(super) adapter: Arc<PoaState>,
    pub(super) servant: Option<Arc<dyn Servant>>,
}

/// Frames are kept for the next request, so that their memory is taken once.
#[derive(Default)]
struct Frames {
    all: Vec<Frame>,
    depth: usize,
}

thread_local! {
    static FRAMES: RefCell<Frames> = const { RefCell::new(Frames { all: Vec::new(), depth: 0 }) };
}

/// Takes what a thread needs to serve, before its first request.
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

/// Requests that a thread serves within one another without taking memory: a servant manager's call and its servant's.
const NESTED: usize = 4;

/// Octets of an id that is kept without taking memory; active objects' need not be.
const ID_SIZE: usize = 64;

/// The request is being served while this lives.
pub(crate) struct Entered(PhantomData<*const ()>);

/// A request for an active object, which the caller has pinned.
pub(crate) fn enter(state: &PoaState, object: SlotKey) -> Entered {
    push(state, |frame| frame.object = Some(object))
}

/// A request for an object that is not active, or a call to a servant manager.
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
        // Outside of the borrow: a servant's end may ask for the current request.
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

/// Whether this thread is in an upcall of the ORB.
pub(super) fn is_within(incarnation: u64) -> bool {
    any(incarnation, |_| true)
}

/// Whether this thread is in an upcall of the adapter.
pub(super) fn is_within_adapter(incarnation: u64, adapter: SlotKey) -> bool {
    any(incarnation, |frame| frame.adapter == Some(adapter))
}

/// Whether this thread serves the active object.
pub(super) fn is_within_object(incarnation: u64, object: SlotKey) -> bool {
    any(incarnation, |frame| frame.object == Some(object))
}

/// Looks at the innermost request of the ORB.
pub(super) fn innermost<T>(incarnation: u64, look: impl FnOnce(&Frame) -> T) -> Option<T> {
    FRAMES.with_borrow(|frames| {
        let mut open = frames.all[..frames.depth].iter().rev();
        open.find(|frame| frame.incarnation == incarnation)
            .map(look)
    })
}
