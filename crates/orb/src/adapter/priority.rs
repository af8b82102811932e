//! The real-time policies of an adapter: its threadpool, its priorities, and their components in references (RTCORBA
//! 1.2, RTPortableServer).

use std::borrow::Cow;
use std::iter;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use deckwatch_giop::ior::TaggedComponent;

use super::components::{exposed_policies, lane_endpoints};
use super::names::Directory;
use super::{IdAssignment, Lifespan, ObjectId, Poa, PoaError, PoaState, Policies, ThreadPolicy};
use crate::call_side::CallSide;
use crate::limits::OBJECT_PRIORITIES_MAX;
use crate::rt::{self, Priority, PriorityModel, PriorityModelPolicy};
use crate::rtorb::{PoolLane, Threadpool};
use crate::transport::Endpoint;
use crate::wire::Reach;
use crate::{Completion, ObjectRef, Servant, SystemException, minor};
use crate::{raise, raise::own};

/// The threadpool and the priorities of an adapter.
pub(crate) struct Realtime {
    pub(crate) pool: Arc<Threadpool>,
    pub(crate) model: Option<PriorityModelPolicy>,
    /// The lane for clients that send no priority.
    first: usize,
    /// The number of the pool whose requests need no further check; `NO_POOL` if all requests need one.
    mark: u32,
    /// The length of an id that the adapter makes, without a priority; `None` if it makes no ids.
    id_size: Option<usize>,
    /// The priorities that may follow an id, a bit each, for a pool without lanes. A peer may use no others.
    given: OnceLock<Box<[AtomicU64]>>,
    /// The priorities of objects with references but no activation yet, if the id does not have the priority. `None` if
    /// objects have no priorities of their own.
    reserved: Option<Box<Directory<Reservation>>>,
}

/// The priority that a reference was made with.
#[derive(Clone, Copy)]
struct Reservation {
    priority: Priority,
    /// The object has been activated since. Its deactivation removes the reservation.
    is_taken_up: bool,
}

/// Returns the value of `Realtime::mark`. A client that propagates its priority has chosen the lane by it, so requests
/// are served by the lane that they arrive at.
fn mark(model: Option<PriorityModelPolicy>, pool: &Threadpool) -> u32 {
    match model.map(|model| model.priority_model) {
        None => pool.id.0,
        Some(PriorityModel::ClientPropagated) if pool.has_lanes => pool.id.0,
        Some(_) => NO_POOL,
    }
}

/// Returns the lane for clients that send no priority, such as ORBs without real-time CORBA. It is the lane of the
/// server priority, else the first lane in the band of that priority, else the first lane of the pool.
fn first_lane(policies: &Policies, pool: &Threadpool) -> usize {
    let Some(model) = policies.priority_model.filter(|_| pool.has_lanes) else {
        return 0;
    };
    let bands = policies.priority_bands;
    let mut bands = bands.iter().flat_map(|bands| bands.iter());
    let band = bands.find(|band| band.holds(model.server_priority));
    let find = |is_it: &dyn Fn(Priority) -> bool| {
        let mut lanes = pool.lanes.iter();
        lanes.position(|at| at.lane.id.priority.is_some_and(is_it))
    };
    let of_band = || find(&|priority| band.is_some_and(|band| band.holds(priority)));
    let same = find(&|priority| priority == model.server_priority);
    same.or_else(of_band).unwrap_or(0)
}

/// No pool has this number.
const NO_POOL: u32 = u32::MAX;

impl Realtime {
    /// # Errors
    /// The exception of `create_poa` for policies that contradict each other.
    pub(super) fn new(policies: &Policies, pool: Arc<Threadpool>) -> Result<Self, PoaError> {
        check(policies, &pool)?;
        let id_size = match (policies.id_assignment, policies.lifespan) {
            (IdAssignment::UserId, _) => None,
            (IdAssignment::SystemId, Lifespan::Transient) => Some(SYSTEM_ID_SIZE),
            (IdAssignment::SystemId, Lifespan::Persistent) => Some(2 * SYSTEM_ID_SIZE),
        };
        Ok(Self {
            id_size,
            given: OnceLock::new(),
            model: policies.priority_model,
            first: first_lane(policies, &pool),
            mark: mark(policies.priority_model, &pool),
            pool,
            reserved: policies.priority_model.map(|_| Box::new(Directory::new())),
        })
    }

    /// Returns whether a request that arrived at a lane of this pool is served without a check of its priority.
    #[inline]
    pub(crate) const fn is_plain_at(&self, pool: u32) -> bool {
        self.mark == pool
    }

    /// Returns the priority that the server declares for an object; `None` if clients propagate theirs.
    pub(crate) fn declared(&self, own: Option<Priority>) -> Option<Priority> {
        let model = self.model?;
        let is_declared = model.priority_model == PriorityModel::ServerDeclared;
        is_declared.then(|| own.unwrap_or(model.server_priority))
    }

    /// Returns the lanes that serve an object: the lane for clients without a priority first, then the others in pool
    /// order. With a declared priority, returns the lane of that priority only.
    fn lanes(&self, own: Option<Priority>) -> impl Iterator<Item = &PoolLane> {
        let all = &self.pool.lanes;
        let declared = self.declared(own).filter(|_| self.pool.has_lanes);
        let is_it = |at: &PoolLane| at.lane.id.priority == declared;
        let only = declared.and_then(|_| all.iter().position(is_it));
        let first = only.unwrap_or(self.first);
        let others = all.iter().enumerate();
        let others = others.filter(move |(at, _)| only.is_none() && *at != first);
        iter::once(&all[first]).chain(others.map(|(_, at)| at))
    }

    /// Returns the endpoints and components of a reference to an object of this priority.
    pub(super) fn reach(
        &self,
        policies: &Policies,
        own: Option<Priority>,
    ) -> Result<Reach<'_>, SystemException> {
        let first = self.lanes(own).next();
        Ok(Reach {
            endpoints: first.map_or(Cow::Borrowed(&[]), |at| policies.places(&at.published)),
            components: self.components(policies, own)?,
        })
    }

    /// Sets the protocols and connection options of the pool's lanes.
    pub(super) fn set_protocols(
        &self,
        policies: &Policies,
        orb: &CallSide,
    ) -> Result<(), SystemException> {
        let Some(protocols) = policies.server_protocol else {
            return Ok(());
        };
        let mapping = orb.client.network_mapping();
        let mut first_said = Vec::new();
        for PoolLane { lane, .. } in &self.pool.lanes {
            match lane.set_protocols(protocols, &*mapping) {
                Ok(true) => first_said.push(lane),
                Ok(false) => {}
                Err(exception) => {
                    first_said.iter().for_each(|lane| lane.forget_protocols());
                    return Err(exception);
                }
            }
        }
        Ok(())
    }

    fn components(
        &self,
        policies: &Policies,
        own: Option<Priority>,
    ) -> Result<Cow<'static, [TaggedComponent]>, SystemException> {
        let Some(model) = self.model else {
            return Ok(Cow::Borrowed(&[]));
        };
        let told = PriorityModelPolicy {
            server_priority: self.declared(own).unwrap_or(model.server_priority),
            ..model
        };
        let mut components = Vec::with_capacity(2);
        if self.pool.has_lanes {
            components.extend(lane_endpoints(policies, self.lanes(own))?);
        }
        components.push(exposed_policies(policies, told)?);
        Ok(Cow::Owned(components))
    }

    /// Returns the priority of a reference that was made before its object was active.
    pub(crate) fn reserved(&self, id: &[u8]) -> Option<Priority> {
        let kept = self.reserved.as_ref()?.look(id, |one| one.priority);
        kept.or_else(|| self.told(id))
    }

    /// Returns the priority in an id that the adapter has made.
    fn told(&self, id: &[u8]) -> Option<Priority> {
        let told = id.get(self.id_size?..)?;
        let number = i16::from_be_bytes(told.try_into().ok()?);
        let priority = Priority::try_from(number).ok()?;
        let is_known = if self.pool.has_lanes {
            self.pool.lane_at(priority).is_some()
        } else {
            let (word, bit) = place(priority);
            let given = self.given.get();
            given.is_some_and(|given| given[word].load(Ordering::Relaxed) & bit != 0)
        };
        is_known.then_some(priority)
    }

    /// Appends a priority to an id, so that the adapter need not keep it.
    fn telling(&self, id: &ObjectId, priority: Priority) -> ObjectId {
        if !self.pool.has_lanes {
            let words = (0..=place(Priority::MAX).0).map(|_| AtomicU64::new(0));
            let given = self.given.get_or_init(|| words.collect());
            let (word, bit) = place(priority);
            given[word].fetch_or(bit, Ordering::Relaxed);
        }
        ObjectId::new([&**id, &priority.value().to_be_bytes()].concat())
    }

    /// Keeps the priority of a reference if its id does not have it.
    ///
    /// # Errors
    /// BAD_INV_ORDER if the object has another priority already, NO_RESOURCES at [`OBJECT_PRIORITIES_MAX`].
    fn reserve(&self, id: &[u8], priority: Priority) -> Result<(), SystemException> {
        let full = raise::no_resources(minor::NONE, Completion::No);
        let Some(reserved) = &self.reserved else {
            return Err(other_priority());
        };
        let told = self.told(id);
        let reservation = Reservation {
            priority,
            is_taken_up: false,
        };
        reserved.change(id, full, |before, count| {
            let before_it = before.map(|before| before.priority).or(told);
            match before_it {
                Some(before_it) if before_it != priority => Err(other_priority()),
                None if count >= OBJECT_PRIORITIES_MAX => Err(full),
                Some(_) if before.is_none_or(|before| !before.is_taken_up) => Ok(None),
                _ => Ok(Some(reservation)),
            }
        })
    }

    /// Marks the reservation as used, and returns the priority of an object that is being activated.
    pub(super) fn take_up(&self, id: &[u8]) -> Option<Priority> {
        let reserved = self.reserved.as_ref()?;
        if reserved.look(id, |one| one.is_taken_up) != Some(false) {
            return self.reserved(id);
        }
        // If the directory is full, the reservation stays unmarked.
        let _ = reserved.change(id, (), |before, _| {
            let fresh = before.filter(|before| !before.is_taken_up);
            Ok(fresh.map(|before| Reservation {
                is_taken_up: true,
                ..*before
            }))
        });
        self.reserved(id)
    }

    /// Removes the priority of an object that is deactivated and that only the application can activate again.
    pub(super) fn give_back(&self, id: &[u8]) {
        if let Some(reserved) = &self.reserved {
            reserved.forget_if(id, |one| one.is_taken_up);
        }
    }
}

/// Returns the word and the bit of a priority in `Realtime::given`.
fn place(priority: Priority) -> (usize, u64) {
    let number = usize::from(priority.value().unsigned_abs());
    (number / 64, 1 << (number % 64))
}

/// The length of the number in an id that the adapter makes. The incarnation of the ORB, of the same length, follows it
/// under PERSISTENT.
const SYSTEM_ID_SIZE: usize = size_of::<u64>();

impl Policies {
    /// Returns the published endpoints of a lane that the server protocols allow, the most preferred first.
    pub(crate) fn places<'p>(&self, published: &'p [Endpoint]) -> Cow<'p, [Endpoint]> {
        let Some(protocols) = self.server_protocol else {
            return Cow::Borrowed(published);
        };
        let of = |kind: u32| {
            published
                .iter()
                .filter(move |at| at.protocol_type() == kind)
        };
        let kinds = protocols.iter().map(|protocol| protocol.protocol_type);
        Cow::Owned(kinds.flat_map(of).cloned().collect())
    }
}

fn other_priority() -> SystemException {
    raise::bad_inv_order(own::OBJECT_PRIORITY_CHANGED, Completion::No)
}

/// Policy type ids, as [`PoaError::InvalidPolicy`] names them.
const THREAD: u16 = 16;
const PRIORITY_MODEL: u16 = 40;
pub(super) const THREADPOOL: u16 = 41;
const PRIORITY_BANDS: u16 = 45;

/// Refuses policies that contradict each other or the threadpool.
fn check(policies: &Policies, pool: &Threadpool) -> Result<(), PoaError> {
    if pool.has_lanes && policies.thread == ThreadPolicy::MainThreadModel {
        return Err(PoaError::InvalidPolicy(THREAD));
    }
    let Some(model) = policies.priority_model else {
        if pool.has_lanes {
            return Err(PoaError::InvalidPolicy(THREADPOOL));
        }
        return match policies.priority_bands {
            Some(_) => Err(raise::inv_policy(own::BANDS_WITHOUT_MODEL, Completion::No).into()),
            None => Ok(()),
        };
    };
    let is_declared = model.priority_model == PriorityModel::ServerDeclared;
    if is_declared && pool.has_lanes && pool.lane_at(model.server_priority).is_none() {
        return Err(PoaError::InvalidPolicy(PRIORITY_MODEL));
    }
    let Some(bands) = policies.priority_bands else {
        return Ok(());
    };
    let is_missed = |band: &rt::PriorityBand| {
        let mut lanes = pool.lanes.iter().filter_map(|at| at.lane.id.priority);
        pool.has_lanes && !lanes.any(|priority| band.holds(priority))
    };
    let mut declared = bands
        .iter()
        .filter(|band| band.holds(model.server_priority));
    if bands.is_empty() || bands.iter().any(is_missed) || (is_declared && declared.next().is_none())
    {
        return Err(PoaError::InvalidPolicy(PRIORITY_BANDS));
    }
    Ok(())
}

/// Returns the priority of the object itself, if it has one.
pub(super) fn priority_of(
    state: &PoaState,
    slot: Option<crate::SlotKey>,
    id: &[u8],
) -> Option<Priority> {
    state.realtime.model?;
    let adapter = state.adapter.upgrade()?;
    let active = slot.and_then(|slot| adapter.objects.pin(slot));
    match active {
        Some(object) => object.priority,
        None => state.realtime.reserved(id),
    }
}

/// RTPortableServer::POA.
impl Poa {
    /// A reference to an object of this adapter, for a client that used another lane.
    pub(crate) fn own_reference(&self, id: &[u8]) -> Result<ObjectRef, SystemException> {
        self.reference_to(id, "").map_err(|error| match error {
            PoaError::System(exception) => exception,
            _ => super::unknown_adapter(),
        })
    }

    /// As [`Poa::create_reference`], for an object with its own priority.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless SERVER_DECLARED and SYSTEM_ID; BAD_PARAM if no lane has the priority.
    pub fn create_reference_with_priority(
        &self,
        repository_id: &str,
        priority: Priority,
    ) -> Result<ObjectRef, PoaError> {
        self.require_priority(priority)?;
        let id = self.0.realtime.telling(&self.new_reference_id()?, priority);
        self.reference_to(&id, repository_id)
    }

    /// As [`Poa::create_reference_with_id`], for an object with its own priority.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless SERVER_DECLARED; BAD_PARAM if no lane has the priority; BAD_INV_ORDER if the
    /// object has another priority; and as [`Poa::create_reference_with_id`].
    pub fn create_reference_with_id_and_priority(
        &self,
        id: &[u8],
        repository_id: &str,
        priority: Priority,
    ) -> Result<ObjectRef, PoaError> {
        self.require_priority(priority)?;
        self.check_id(id)?;
        let slot = self.0.map.slot_of(id);
        match slot {
            Some(_) if priority_of(&self.0, slot, id) != Some(priority) => {
                return Err(other_priority().into());
            }
            Some(_) => {}
            None => self.0.realtime.reserve(id, priority)?,
        }
        self.reference_to(id, repository_id)
    }

    /// As [`Poa::activate_object`], with a priority for the object.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless SERVER_DECLARED; BAD_PARAM if no lane has the priority; and as
    /// [`Poa::activate_object`].
    pub fn activate_object_with_priority(
        &self,
        servant: Arc<dyn Servant>,
        priority: Priority,
    ) -> Result<ObjectId, PoaError> {
        self.require_priority(priority)?;
        let id = self.0.realtime.telling(&self.new_reference_id()?, priority);
        self.insert(&id, servant, Some(priority))?;
        Ok(id)
    }

    /// As [`Poa::activate_object_with_id`], with a priority for the object.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless SERVER_DECLARED; BAD_PARAM if no lane has the priority; BAD_INV_ORDER if a
    /// reference to the object was made with another priority; and as [`Poa::activate_object_with_id`].
    pub fn activate_object_with_id_and_priority(
        &self,
        id: &[u8],
        servant: Arc<dyn Servant>,
        priority: Priority,
    ) -> Result<(), PoaError> {
        self.require_priority(priority)?;
        self.require(self.0.retains())?;
        self.check_id(id)?;
        let reserved = self.0.realtime.reserved(id);
        if reserved.is_some_and(|reserved| reserved != priority) {
            return Err(other_priority().into());
        }
        self.insert(&ObjectId::new(id), servant, Some(priority))
    }

    /// Checks that objects of the adapter may have this priority.
    fn require_priority(&self, priority: Priority) -> Result<(), PoaError> {
        let realtime = &self.0.realtime;
        self.require(realtime.declared(None).is_some())?;
        if realtime.pool.has_lanes && realtime.pool.lane_at(priority).is_none() {
            return Err(raise::bad_param(own::PRIORITY_WITHOUT_LANE, Completion::No).into());
        }
        Ok(())
    }
}
