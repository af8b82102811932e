//! Admission at run time: the RT_Info of a consumer depends on those of the suppliers that it gets events from. A
//! connect that would make an operation miss its deadline is refused.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use deckwatch_orb::{
    Orb, Priority, PriorityMappingManager, SystemException, SystemExceptionKind as Kind, own_minor,
};
use deckwatch_sync::PiMutex;

use super::scheduling::{Edge, Scheduling, SchedulingError, Table};
use crate::dispatch::{Dispatching, QueueOrder};
use crate::limits::{ADMITTED_PAIRS_MAX, UNADMITTED_KEPT_MAX};
use crate::peers::{Peer, Place, Places};
use crate::raise::{raise, refuse, refused_because};

/// What a channel knows of its schedule, and has declared to it.
pub(super) struct Admission {
    scheduling: Scheduling,
    mapping: PriorityMappingManager,
    lanes: Vec<(Priority, QueueOrder)>,
    /// Held while the scheduler computes: clients that name RT_Infos connect one after the other.
    state: PiMutex<State>,
    /// Clients that have left since the last connect. No thread that sends events waits for the scheduler.
    left: PiMutex<Vec<u64>>,
    refusals: PiMutex<Refusals>,
}

struct State {
    table: Arc<Table>,
    /// The connections that need each dependency: numbers of a consumer and of a supplier.
    pairs: BTreeMap<Edge, BTreeSet<Pair>>,
    /// What each client holds of the share of its peer: the pairs that its connect has made.
    places: HashMap<u64, Place>,
    /// The dependencies that this channel has declared.
    added: BTreeSet<Edge>,
}

/// The last refusals, for the operator.
#[derive(Default)]
struct Refusals {
    count: u64,
    last: VecDeque<String>,
}

/// Numbers of a connected consumer and of a connected supplier.
pub(super) type Pair = (u64, u64);

/// The dependencies that a connection needs, each with the clients that it connects.
pub(super) type Needed = BTreeSet<(Edge, Pair)>;

impl State {
    /// Forgets what some connections needed.
    fn forget(&mut self, is_gone: impl Fn(&Pair) -> bool) {
        for pairs in self.pairs.values_mut() {
            pairs.retain(|pair| !is_gone(pair));
        }
        self.pairs.retain(|_, pairs| !pairs.is_empty());
    }
}

impl Admission {
    /// # Errors
    /// BAD_PARAM for dispatching without lanes; NO_RESOURCES for a schedule without a rate or that misses deadlines.
    pub(super) fn new(
        scheduling: Scheduling,
        orb: &Orb,
        dispatching: &Dispatching,
    ) -> Result<Self, SystemException> {
        let Dispatching::Lanes(lanes) = dispatching else {
            return Err(raise(Kind::BadParam));
        };
        let lanes = lanes
            .iter()
            .map(|lane| (lane.priority, lane.queue.order))
            .collect();
        let mapping = orb.priority_mapping_manager();
        let table = scheduling.read(&*mapping.mapping()).map_err(system)?;
        Ok(Self {
            scheduling,
            mapping,
            lanes,
            state: PiMutex::new(State {
                table: Arc::new(table),
                pairs: BTreeMap::new(),
                places: HashMap::new(),
                added: BTreeSet::new(),
            }),
            left: PiMutex::default(),
            refusals: PiMutex::default(),
        })
    }

    /// Connects a client that names RT_Infos. `needs` returns the dependencies that the connection needs, and `enter`
    /// makes it; both see the clients that are connected by then. Returns the schedule with it.
    ///
    /// # Errors
    /// NO_RESOURCES for a connection that would make an operation miss its deadline, or that needs another lane;
    /// IMP_LIMIT beyond the share of the peer; BAD_PARAM for a handle that the scheduler does not know; what `enter`
    /// returns.
    pub(super) fn connect<T>(
        &self,
        (number, peer, shares): (u64, Peer, &Arc<Places>),
        handles: &[i32],
        needs: impl FnOnce() -> Needed,
        enter: impl FnOnce(&Table) -> Result<T, SystemException>,
    ) -> Result<(T, Arc<Table>), SystemException> {
        let mut state = self.state.lock("rt.admission");
        self.take_back(&mut state);
        let needed = needs();
        let mut place = shares.take_many(peer, 0)?;
        // It may have been connected before.
        let before = state.places.get(&number).map_or(0, Place::count);
        place.resize(needed.len().saturating_sub(before))?;
        let admitted = self.admit(&state, number, handles, &needed);
        let (table, added) = admitted.inspect_err(|refused| self.note(*refused))?;
        match enter(&table) {
            Ok(entered) => {
                state.added.extend(added);
                state.places.remove(&number);
                // Only this thread takes such places: there is room for what it has given back.
                let _ = place.resize(needed.len());
                state.places.insert(number, place);
                state.forget(|pair| is_of(pair, number));
                for (edge, pair) in needed {
                    state.pairs.entry(edge).or_default().insert(pair);
                }
                state.table = Arc::clone(&table);
                Ok((entered, table))
            }
            Err(error) => {
                self.scheduling.remove(&added);
                Err(error)
            }
        }
    }

    fn admit(
        &self,
        state: &State,
        number: u64,
        handles: &[i32],
        needed: &Needed,
    ) -> Result<(Arc<Table>, Vec<Edge>), SystemException> {
        // A client that connects again gives up its pairs.
        let others = state.pairs.values().flatten();
        let others = others.filter(|pair| !is_of(pair, number)).count();
        if others + needed.len() > ADMITTED_PAIRS_MAX {
            return Err(raise(Kind::NoResources));
        }
        let read = || self.scheduling.read(&*self.mapping.mapping());
        let before = read().map_err(system)?;
        for &handle in handles {
            before.check_handle(handle)?;
        }
        let new: BTreeSet<Edge> = needed
            .iter()
            .map(|(edge, _)| *edge)
            .filter(|edge| !state.pairs.contains_key(edge))
            .collect();
        if new.is_empty() {
            self.check_lanes(&before)?;
            return Ok((Arc::new(before), Vec::new()));
        }
        let new: Vec<Edge> = new.into_iter().collect();
        let added = self.scheduling.add(&new)?;
        let checked = read().map_err(system).and_then(|table| {
            table.check_against(&before)?;
            self.check_lanes(&table)?;
            Ok(table)
        });
        match checked {
            Ok(table) => Ok((Arc::new(table), added)),
            Err(error) => {
                self.scheduling.remove(&added);
                Err(error)
            }
        }
    }

    /// # Errors
    /// NO_RESOURCES for a schedule whose priorities are not those of the lanes.
    fn check_lanes(&self, table: &Table) -> Result<(), SystemException> {
        let missing = table.lanes.iter().find(|lane| !self.lanes.contains(lane));
        let Some((priority, order)) = missing else {
            return Ok(());
        };
        let detail = format!(
            "the schedule would need a lane of priority {priority}, ordered by {order}. Declare the operation with its \
             rate before the channel starts.",
            order = order.name()
        );
        let minor = own_minor::SCHEDULE_NEEDS_LANE;
        Err(refuse(Kind::NoResources, minor, detail))
    }

    /// Takes back what clients needed that have left.
    fn take_back(&self, state: &mut State) {
        let left = std::mem::take(&mut *self.left.lock("rt.left"));
        if !left.is_empty() {
            state.forget(|pair| left.contains(&pair.0) || left.contains(&pair.1));
            state.places.retain(|number, _| !left.contains(number));
        }
        let State { pairs, added, .. } = state;
        let stale: Vec<Edge> = added
            .iter()
            .filter(|edge| !pairs.contains_key(edge))
            .copied()
            .collect();
        if !stale.is_empty() {
            self.scheduling.remove(&stale);
            added.retain(|edge| !stale.contains(edge));
        }
    }

    pub(super) fn scheduling(&self) -> &Scheduling {
        &self.scheduling
    }

    /// A client that named RT_Infos has left. What it needed is taken back before the next client connects.
    pub(super) fn leave(&self, number: u64) {
        self.left.lock("rt.left").push(number);
    }

    fn note(&self, refused: SystemException) {
        let words = refused_because(refused);
        let mut refusals = self.refusals.lock("rt.refusals");
        refusals.count += 1;
        if refusals.last.len() == UNADMITTED_KEPT_MAX {
            refusals.last.pop_front();
        }
        refusals.last.push_back(words);
    }

    /// Connects that were refused.
    pub(super) fn refused(&self) -> u64 {
        self.refusals.lock("rt.refusals").count
    }

    /// Returns the last refusals in words, and forgets them.
    pub(super) fn take_refusals(&self) -> Vec<String> {
        let last = &mut self.refusals.lock("rt.refusals").last;
        std::mem::take(last).into()
    }
}

/// Returns true for a pair of this client.
fn is_of(pair: &Pair, number: u64) -> bool {
    [pair.0, pair.1].contains(&number)
}

/// What a client receives if the scheduler fails.
fn system(error: SchedulingError) -> SystemException {
    match error {
        SchedulingError::Scheduler(exception) => exception,
        error => refuse(
            Kind::NoResources,
            own_minor::SCHEDULE_INFEASIBLE,
            error.to_string(),
        ),
    }
}
