//! Object references.

mod calls;
mod implicit_operations;
mod priority;
mod route_key;
mod routes;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use deckwatch_cdr::{
    DecodeError, EncodeError, Parse, ParseReference, Reader, TypeCode, Typed, Write,
    WriteReference, Writer,
};
use deckwatch_giop::Ior;
use deckwatch_sync::PiMutex;

use crate::call_side::{CallSide, WholeOrb};
use crate::connection::bidirectional::{self, Bidirectional};
use crate::contexts::ExtraContext;
use crate::contexts::hops::{PassedBy, contexts_of};
use crate::limits::PERMANENT_FORWARDS_MAX;
use crate::origin::Origin;
use crate::policy::{self, Overrides, Policy, PolicyType, SetOverrideType};
use crate::raise::{self, own};
use crate::transport::Endpoint;
use crate::wire;
use crate::{Completion, SystemException, current};

pub(crate) use calls::understand;
pub(crate) use routes::Routes;

/// A reference to an object: cheap to clone, usable from any thread. A nil reference is `None` of an `Option`.
///
/// Two references are equal if their IORs are.
#[derive(Clone)]
pub struct ObjectRef(Arc<Inner>);

/// The fields that every call reads come first, in as few cache lines as possible: a client of many objects finds none
/// in the cache.
#[repr(C)]
pub(crate) struct Inner {
    orb: OnceLock<Arc<CallSide>>,
    routes: OnceLock<Routes>,
    /// The reference that a permanent forward has put in its place.
    successor: OnceLock<Arc<Inner>>,
    /// `None`: no policy is set.
    overrides: Option<Box<Overrides>>,
    is_forwarded: AtomicBool,
    /// A call through it has reached a server.
    is_bound: AtomicBool,
    /// How many permanent forwards have led here.
    generation: u8,
    /// Where requests go after a location forward; read only while `is_forwarded`.
    forward: PiMutex<Option<Arc<Routes>>>,
    /// The bidirectional connection that it arrived over, if its server is called over that.
    way_back: Option<Weak<Bidirectional>>,
    place: OnceLock<Option<(Endpoint, Vec<u8>)>>,
    /// The contexts of the services that have passed on the request that calls through it belong to.
    passed_on: Option<Arc<[ExtraContext]>>,
    ior: Ior,
    /// The peer that gave it.
    origin: Origin,
    /// Keeps the ORB alive; no call looks at it.
    whole: OnceLock<Arc<dyn WholeOrb>>,
}

impl ObjectRef {
    /// A reference that this program has made.
    pub(crate) fn new(ior: Ior, orb: Arc<CallSide>) -> Self {
        Self::of_origin(ior, orb, Origin::Own)
    }

    pub(crate) fn of_origin(ior: Ior, orb: Arc<CallSide>, origin: Origin) -> Self {
        let of = OnceLock::from(orb);
        Self(Arc::new(Inner::new(ior, of, origin, Overrides::default())))
    }

    fn with(&self, overrides: Overrides) -> Self {
        let current = self.0.current();
        let (ior, orb) = (current.ior.clone(), current.orb.clone());
        let mut inner = Inner::new(ior, orb, current.origin, overrides);
        inner.passed_on.clone_from(&current.passed_on);
        inner.place = current.place.clone();
        inner.way_back = current.way_back.clone();
        if let Some(routes) = current.routes.get() {
            inner.routes = OnceLock::from(routes.for_another());
        }
        Self(Arc::new(inner))
    }

    /// A reference of the same ORB.
    pub(crate) fn like(&self, ior: Ior) -> Self {
        let (orb, origin) = (self.0.orb.clone(), self.0.origin);
        Self(Arc::new(Inner::new(ior, orb, origin, Overrides::default())))
    }

    /// The same without its ORB, for a table of `orb`: with it, the table would keep the ORB alive. A reference of
    /// another ORB is returned as it is.
    pub(crate) fn kept_by(&self, orb: &CallSide) -> Self {
        let current = self.0.current();
        if current
            .orb
            .get()
            .is_some_and(|own| !std::ptr::eq(&**own, orb))
        {
            return self.clone();
        }
        let (ior, origin) = (current.ior.clone(), current.origin);
        let inner = Inner::new(ior, OnceLock::new(), origin, *current.overrides());
        Self(Arc::new(inner))
    }

    /// A reference out of such a table, usable through `orb`.
    pub(crate) fn given_by(&self, orb: &Arc<CallSide>) -> Self {
        if self.0.orb.get().is_some() {
            return self.clone();
        }
        let own = OnceLock::from(Arc::clone(orb));
        let (ior, origin) = (self.0.ior.clone(), self.0.origin);
        let inner = Inner::new(ior, own, origin, *self.0.overrides());
        Self(Arc::new(inner))
    }

    /// The same as a reference that a peer of this origin has given.
    pub(crate) fn given_as(self, origin: Origin) -> Self {
        if self.0.origin == origin {
            return self;
        }
        let (ior, orb) = (self.ior().clone(), self.0.orb.clone());
        let overrides = *self.0.overrides();
        Self(Arc::new(Inner::new(ior, orb, origin, overrides)))
    }

    /// The peer that gave it, if the ORB restricts where references of peers lead ([`crate::OrbBuilder::reach`]); else
    /// this program.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.0.current().origin
    }

    /// Checks that one of its addresses may be called: the peer that gave it may not have all of them called
    /// ([`crate::OrbBuilder::reach`]). A host name is checked with the call.
    ///
    /// # Errors
    /// NO_PERMISSION.
    pub fn require_reach(&self) -> Result<(), SystemException> {
        let current = self.0.current();
        if current.origin == Origin::Own || current.way_back.is_some() {
            return Ok(());
        }
        let client = &current.orb()?.client;
        let here = client.transport.host_name();
        let addresses = wire::profiles(&current.ior, &here, client.transport.tls_use());
        if client.is_any_reachable(current.origin, &addresses) {
            return Ok(());
        }
        Err(raise::no_permission(own::OUT_OF_REACH, Completion::No))
    }

    /// A reference whose calls say that this many services have passed on the request that they belong to: each service
    /// that calls others for its callers counts one more than [`crate::PoaCurrent::hops`], and ends what leads in a
    /// circle.
    #[must_use]
    pub fn with_hops(&self, hops: u8) -> Self {
        self.passed_on_with(contexts_of(hops, &PassedBy::NOBODY))
    }

    /// A reference whose calls have these contexts of the services that have passed the request on.
    pub(crate) fn passed_on_with(&self, contexts: Arc<[ExtraContext]>) -> Self {
        let mut made = self.with(*self.0.overrides());
        if let Some(inner) = Arc::get_mut(&mut made.0) {
            inner.passed_on = Some(contexts);
            // A call without overrides looks for nothing of this kind.
            inner.overrides.get_or_insert_default();
        }
        made
    }

    /// A new reference to the same object with these policies; they take precedence over the thread's and the ORB's.
    ///
    /// # Errors
    /// BAD_PARAM with the standard's minor code 30 for two policies of one kind.
    pub fn set_policy_overrides(
        &self,
        policies: &[Policy],
        how: SetOverrideType,
    ) -> Result<Self, SystemException> {
        Ok(self.with(self.0.overrides().changed(policies, how)?))
    }

    /// The policies of these kinds that are set for this reference; all of them if `kinds` is empty.
    #[must_use]
    pub fn policy_overrides(&self, kinds: &[PolicyType]) -> Vec<Policy> {
        self.0.overrides().list(kinds)
    }

    /// The policy of this kind that a call from this thread would have: the reference's, else the thread's, else the
    /// ORB's, else the default. `None`: no limit.
    ///
    /// # Errors
    /// INV_POLICY for an unknown kind; BAD_INV_ORDER for a reference without an ORB.
    pub fn client_policy(&self, kind: PolicyType) -> Result<Option<Policy>, SystemException> {
        self.in_force(self.0.orb()?).in_force(kind)
    }

    /// Whether a call from this thread has default policies only.
    #[inline]
    fn is_all_default(&self, orb: &CallSide) -> bool {
        self.0.overrides.is_none() && orb.policies.is_empty() && !policy::is_any_at_thread()
    }

    #[inline(never)]
    fn in_force(&self, orb: &Arc<CallSide>) -> Overrides {
        let outer = policy::at_thread(Arc::as_ptr(orb).cast()).over(orb.policies.read());
        self.0.overrides().over(outer)
    }

    /// A reference with another limit on the time from call to reply ([`Policy::RelativeRoundtripTimeout`]). `None`: no
    /// limit.
    #[must_use]
    pub fn with_round_trip_timeout(&self, limit: Option<Duration>) -> Self {
        let limit = limit.unwrap_or(Duration::MAX);
        self.with(Overrides::one(Policy::RelativeRoundtripTimeout(limit)).over(*self.0.overrides()))
    }

    /// A reference with another limit on the time to connect ([`Policy::ConnectionTimeout`]). `None`:
    /// [`crate::limits::CONNECT_TIMEOUT`].
    #[must_use]
    pub fn with_connect_timeout(&self, limit: Option<Duration>) -> Self {
        let limit = limit.unwrap_or(Duration::MAX);
        self.with(Overrides::one(Policy::ConnectionTimeout(limit)).over(*self.0.overrides()))
    }

    /// The interoperable object reference.
    #[must_use]
    pub fn ior(&self) -> &Ior {
        &self.0.current().ior
    }

    /// The repository id in its IOR; may be empty or that of a base interface.
    #[must_use]
    pub fn type_id(&self) -> &str {
        &self.ior().type_id
    }

    /// The object key of its first IIOP profile.
    #[must_use]
    pub fn object_key(&self) -> Option<&[u8]> {
        self.0.current().key()
    }

    /// Whether its server is called over the bidirectional connection that it arrived over.
    pub(crate) fn has_way_back(&self) -> bool {
        self.0.current().way_back.is_some()
    }

    /// Whether it leads to a listener of the ORB that holds it.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.0.orb.get().is_some_and(|orb| self.leads_to(orb))
    }

    /// Whether it leads to a listener of `orb`.
    pub(crate) fn leads_to(&self, orb: &CallSide) -> bool {
        self.0
            .current()
            .place()
            .as_ref()
            .is_some_and(|(endpoint, _)| orb.whole().is_some_and(|whole| whole.publishes(endpoint)))
    }
}

impl Inner {
    fn new(ior: Ior, orb: OnceLock<Arc<CallSide>>, origin: Origin, overrides: Overrides) -> Self {
        let whole = orb.get().and_then(|orb| orb.whole());
        Self {
            ior,
            orb,
            whole: whole.map_or_else(OnceLock::new, OnceLock::from),
            place: OnceLock::new(),
            routes: OnceLock::new(),
            forward: PiMutex::new(None),
            is_forwarded: AtomicBool::new(false),
            is_bound: AtomicBool::new(false),
            overrides: (!overrides.is_empty()).then(|| Box::new(overrides)),
            successor: OnceLock::new(),
            generation: 0,
            passed_on: None,
            origin,
            way_back: None,
        }
    }

    /// A new reference to the same object.
    pub(crate) fn to_object(&self) -> ObjectRef {
        let (ior, orb) = (self.ior.clone(), self.orb.clone());
        ObjectRef(Arc::new(Self::new(
            ior,
            orb,
            self.origin,
            *self.overrides(),
        )))
    }

    /// The reference that permanent forwards have put in its place, or itself.
    #[inline]
    pub(crate) fn current(&self) -> &Self {
        let mut current = self;
        while let Some(successor) = current.successor.get() {
            current = successor;
        }
        current
    }

    /// Puts the reference of a permanent forward in its place. Returns `None` after [`PERMANENT_FORWARDS_MAX`] of them.
    pub(crate) fn give_way(&self, ior: &Ior, routes: &Routes) -> Option<&Self> {
        if self.generation >= PERMANENT_FORWARDS_MAX {
            return None;
        }
        let successor = self.successor.get_or_init(|| {
            let (ior, orb) = (ior.clone(), self.orb.clone());
            let mut successor = Self::new(ior, orb, self.origin, *self.overrides());
            successor.passed_on.clone_from(&self.passed_on);
            successor.generation = self.generation + 1;
            successor.routes = OnceLock::from(routes.for_another());
            Arc::new(successor)
        });
        Some(successor)
    }

    #[inline]
    fn orb(&self) -> Result<&Arc<CallSide>, SystemException> {
        if let Some(orb) = self.orb.get() {
            orb.require_life()?;
            return Ok(orb);
        }
        self.join_orb()
    }

    #[cold]
    fn join_orb(&self) -> Result<&Arc<CallSide>, SystemException> {
        let none = raise::bad_inv_order(0, Completion::No);
        let orb = current::orb().ok_or(none)?;
        let orb = self.orb.get_or_init(|| orb);
        if self.whole.get().is_none() {
            // Another thread may have set the same.
            let _ = self.whole.set(orb.whole().ok_or(none)?);
        }
        Ok(orb)
    }

    /// Its first address and its key.
    fn place(&self) -> &Option<(Endpoint, Vec<u8>)> {
        self.place.get_or_init(|| wire::place(&self.ior))
    }

    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.place().as_ref().map(|(_, key)| key.as_slice())
    }

    /// The routes to its own addresses.
    #[inline]
    pub(crate) fn routes(&self) -> Result<&Routes, SystemException> {
        match self.routes.get() {
            Some(routes) => Ok(routes),
            None => self.find_routes(),
        }
    }

    #[cold]
    fn find_routes(&self) -> Result<&Routes, SystemException> {
        let routes = Routes::of(&self.ior, self.orb()?, self.origin, self.way_back.as_ref())?;
        Ok(self.routes.get_or_init(|| routes))
    }

    /// The policies set for it.
    fn overrides(&self) -> &Overrides {
        self.overrides.as_deref().unwrap_or(&policy::NO_OVERRIDES)
    }

    pub(crate) fn resolve(&self, ior: &Ior) -> Result<Routes, SystemException> {
        Routes::of(ior, self.orb()?, self.origin, None)
    }

    #[inline]
    pub(crate) fn is_bound(&self) -> bool {
        self.is_bound.load(Ordering::Relaxed)
    }

    /// A server has replied: from now on RebindPolicy applies.
    #[inline]
    pub(crate) fn bind(&self) {
        if !self.is_bound() {
            self.is_bound.store(true, Ordering::Relaxed);
        }
    }

    /// Drops its location forward, and is unbound again.
    fn unbind(&self) {
        self.remember(None);
        self.is_bound.store(false, Ordering::Relaxed);
    }

    /// Whether a location forward holds.
    #[inline]
    pub(crate) fn is_forwarded(&self) -> bool {
        self.is_forwarded.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn forwarded(&self) -> Option<Arc<Routes>> {
        if !self.is_forwarded() {
            return None;
        }
        self.forward.lock("reference.forward").clone()
    }

    pub(crate) fn remember(&self, forward: Option<Arc<Routes>>) {
        let mut kept = self.forward.lock("reference.forward");
        self.is_forwarded
            .store(forward.is_some(), Ordering::Release);
        *kept = forward;
    }
}

impl PartialEq for ObjectRef {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.ior() == other.ior()
    }
}

impl Eq for ObjectRef {}

impl fmt::Debug for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectRef").field(self.ior()).finish()
    }
}

/// The stringified reference (`IOR:`...).
impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.ior(), f)
    }
}

impl WriteReference for ObjectRef {
    fn write_reference(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        Write::write(self.ior(), w)
    }
}

impl ParseReference for ObjectRef {
    fn parse_reference(r: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        let ior = Ior::parse(r)?;
        if ior.is_nil() {
            return Ok(None);
        }
        let of = current::orb();
        let origin = of.as_ref().map_or(Origin::Own, |orb| orb.origin_here());
        let of = of.map_or_else(OnceLock::new, OnceLock::from);
        let way_back = bidirectional::way_back(r, &ior);
        let mut inner = Inner::new(ior, of, origin, Overrides::default());
        inner.way_back = way_back;
        Ok(Some(Self(Arc::new(inner))))
    }
}

impl Typed for ObjectRef {
    fn type_code() -> TypeCode {
        TypeCode::object()
    }
}
