//! Bodies of requests that are marshalled once, and the one bound on their octets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use deckwatch_cdr::{ByteOrder, Codec, EncodeError, Version, Writer};
use deckwatch_sync::{Budget, Handles, Pool};

use crate::limits::{BUFFER_RETAINED_MAX, DELIVERY_BODIES_KEPT};

/// How a body is marshalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    /// The byte order, which any receiver reads.
    pub order: ByteOrder,
    /// GIOP version and code sets, which are those of the receiver's connection.
    pub codec: Codec,
}

impl Form {
    /// This codec in the byte order of this machine.
    #[must_use]
    pub const fn native(codec: Codec) -> Self {
        Self {
            order: ByteOrder::NATIVE,
            codec,
        }
    }
}

/// The arguments of a request, marshalled once for any number of receivers. Cheap to clone.
///
/// Its octets count against the bound of their [`super::Deliveries`] until the last clone is dropped. The memory is then
/// used for a later body.
pub struct Marshalled(Option<Arc<Body>>);

struct Body {
    handles: Handles,
    octets: Vec<u8>,
    form: Form,
    /// What a request with it calls, in place of the outlet's operation.
    operation: Option<Arc<str>>,
    /// The place in the order in which bodies were made.
    number: u64,
    /// What was taken of the bound.
    charged: usize,
    store: Weak<Store>,
}

/// Where the bodies of one engine come from.
#[derive(Debug)]
pub(super) struct Store {
    kept: Pool<Arc<Body>>,
    bound: Budget,
    numbers: AtomicU64,
}

/// Octets that are kept beside the bodies of an engine, and count against the same bound until this is dropped.
#[derive(Debug)]
pub struct Charge {
    store: Arc<Store>,
    size: usize,
}

impl Charge {
    pub(super) fn new(
        store: &Arc<Store>,
        size: usize,
        make_room: impl FnMut() -> bool,
    ) -> Option<Self> {
        let store = Arc::clone(store);
        let has_room = store.bound.take_or(size, make_room);
        // Only a charge gives octets back that were taken.
        has_room.then(|| Self { store, size })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.store.bound.give(self.size);
    }
}

/// Why there is no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MarshalError {
    /// The arguments cannot be marshalled in this form.
    Encode(EncodeError),
    /// It does not fit the bound on octets, although all that could be dropped was dropped.
    NoRoom,
}

impl std::fmt::Display for MarshalError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Encode(error) => std::fmt::Display::fmt(error, f),
            Self::NoRoom => f.write_str("The bound on the octets of all events is reached."),
        }
    }
}

impl std::error::Error for MarshalError {}

impl Marshalled {
    fn body(&self) -> &Body {
        self.0
            .as_ref()
            .expect("a handle has its body until it is dropped")
    }

    /// The octets, aligned as from a multiple of 8.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.body().octets
    }

    /// How they are marshalled.
    #[must_use]
    pub fn form(&self) -> Form {
        self.body().form
    }

    /// The operation that a request with it calls, if it was marshalled for one.
    pub(super) fn operation(&self) -> Option<&str> {
        self.body().operation.as_deref()
    }

    /// The octets of memory that it holds.
    #[must_use]
    pub fn size(&self) -> usize {
        self.body().charged
    }

    /// Whether there is another handle: of a queue, or of a write under way.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.body().handles.are_several()
    }

    /// The place in the order in which bodies were made.
    pub(super) fn number(&self) -> u64 {
        self.body().number
    }
}

impl Clone for Marshalled {
    fn clone(&self) -> Self {
        self.body().handles.add();
        Self(self.0.clone())
    }
}

impl Drop for Marshalled {
    fn drop(&mut self) {
        let Some(body) = self.0.take() else {
            return;
        };
        if body.handles.end()
            && let Some(store) = body.store.upgrade()
        {
            store.bound.give(body.charged);
            // A full pool drops it.
            let _ = store.kept.put(body);
        }
    }
}

impl std::fmt::Debug for Marshalled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Marshalled")
            .field("form", &self.form())
            .field("len", &self.octets().len())
            .finish_non_exhaustive()
    }
}

impl Store {
    pub(super) fn new(size_max: usize) -> Arc<Self> {
        Arc::new(Self {
            kept: Pool::with_capacity(DELIVERY_BODIES_KEPT),
            bound: Budget::new(size_max),
            numbers: AtomicU64::new(0),
        })
    }

    /// Octets of all bodies.
    pub(super) fn held(&self) -> usize {
        self.bound.held()
    }

    pub(super) const fn size_max(&self) -> usize {
        self.bound.max()
    }

    /// Makes a body of what `write` writes. `make_room` drops something, or returns false.
    pub(super) fn marshal(
        self: &Arc<Self>,
        (form, operation): (Form, Option<&Arc<str>>),
        size_max: usize,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
        make_room: impl FnMut() -> bool,
    ) -> Result<Marshalled, MarshalError> {
        let mut body = self.empty();
        // Nothing else holds an empty body.
        let inside = Arc::get_mut(&mut body).ok_or(MarshalError::NoRoom)?;
        let mut writer = Writer::new(&mut inside.octets)
            .with_order(form.order)
            .with_codec(form.codec)
            .with_limit(size_max);
        write(&mut writer).map_err(MarshalError::Encode)?;
        inside.form = form;
        inside.operation = operation.cloned();
        self.charge(body, make_room)
    }

    /// Makes a body of these octets.
    pub(super) fn copy(
        self: &Arc<Self>,
        form: Form,
        octets: &[u8],
        make_room: impl FnMut() -> bool,
    ) -> Result<Marshalled, MarshalError> {
        let mut body = self.empty();
        let inside = Arc::get_mut(&mut body).ok_or(MarshalError::NoRoom)?;
        let made = inside.octets.try_reserve_exact(octets.len());
        made.map_err(|_| MarshalError::NoRoom)?;
        inside.octets.extend_from_slice(octets);
        inside.form = form;
        self.charge(body, make_room)
    }

    fn charge(
        self: &Arc<Self>,
        mut body: Arc<Body>,
        make_room: impl FnMut() -> bool,
    ) -> Result<Marshalled, MarshalError> {
        let inside = Arc::get_mut(&mut body).ok_or(MarshalError::NoRoom)?;
        // Where octets become scarce, a small event does not keep the buffer of a large one.
        let is_scarce = self.bound.held() > self.bound.max() / 2;
        if is_scarce && inside.octets.capacity() > 2 * inside.octets.len() {
            inside.octets.shrink_to_fit();
        }
        let size = inside.octets.capacity();
        if !self.bound.take_or(size, make_room) {
            return Err(MarshalError::NoRoom);
        }
        inside.charged = size;
        inside.number = self.numbers.fetch_add(1, Ordering::Relaxed);
        inside.handles.begin();
        Ok(Marshalled(Some(body)))
    }

    /// A body that nothing else holds, without octets.
    fn empty(self: &Arc<Self>) -> Arc<Body> {
        // A body whose last but one handle is being dropped right now is left to that thread.
        if let Some(mut kept) = self.kept.take()
            && let Some(inside) = Arc::get_mut(&mut kept)
        {
            inside.octets.clear();
            inside.operation = None;
            inside.octets.shrink_to(BUFFER_RETAINED_MAX);
            return kept;
        }
        Arc::new(Body {
            handles: Handles::default(),
            octets: Vec::new(),
            form: Form::native(Codec::DEFAULT.with_version(Version::V1_2)),
            operation: None,
            number: 0,
            charged: 0,
            store: Arc::downgrade(self),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: Form = Form::native(Codec::DEFAULT);

    #[test]
    fn a_charge_without_room_takes_nothing_and_gives_nothing_back() {
        let store = Store::new(1_000);
        let held = Charge::new(&store, 600, || false).unwrap();
        assert!(Charge::new(&store, 600, || false).is_none());
        assert_eq!(store.held(), 600);
        drop(held);
        assert_eq!(store.held(), 0);
    }

    #[test]
    fn octets_count_until_the_last_handle_is_dropped_and_their_memory_is_used_again() {
        let store = Store::new(1_000);
        let first = store.copy(FORM, &[7; 600], || false).unwrap();
        let second = first.clone();
        assert_eq!(
            store.copy(FORM, &[8; 600], || false).unwrap_err(),
            MarshalError::NoRoom
        );
        let place = first.octets().as_ptr();
        drop(first);
        assert_eq!(store.held(), 600);
        drop(second);
        assert_eq!(store.held(), 0);
        let again = store.copy(FORM, &[9; 600], || false).unwrap();
        assert_eq!(
            (again.octets().as_ptr(), again.octets()),
            (place, &[9; 600][..])
        );
    }

    #[test]
    fn buffers_of_large_events_do_not_take_the_room_of_small_ones() {
        const LARGE: usize = BUFFER_RETAINED_MAX;
        let store = Store::new(8 * LARGE);
        let make = |octets: &[u8]| store.copy(FORM, octets, || false).expect("room");
        let large: Vec<_> = (0..8).map(|_| make(&[7; LARGE])).collect();
        drop(large);
        let small: Vec<_> = (0..100).map(|_| make(&[7; 100])).collect();
        assert!(store.held() < 6 * LARGE, "{} octets", store.held());
        drop(small);
        assert_eq!(store.held(), 0);
    }

    #[test]
    fn what_is_in_the_way_is_dropped_until_there_is_room() {
        let store = Store::new(1_000);
        let mut held: Vec<_> = (0..2)
            .map(|_| store.copy(FORM, &[0; 500], || false).unwrap())
            .collect();
        let made = store.copy(FORM, &[0; 900], || held.pop().is_some());
        assert!(made.is_ok() && held.is_empty());
    }
}
