//! The poller of the simulated world.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use deckwatch_orb::transport::{Event, Interest, Poller, Source, TransportError};

use super::{End, State, World};

pub(super) struct SimPoller {
    pub(super) world: World,
    pub(super) watched: Mutex<BTreeMap<u64, (u64, Interest)>>,
    /// Tokens of the ends that wait for room to write.
    pub(super) rooms: Mutex<BTreeMap<u64, u64>>,
}

impl SimPoller {
    fn set(&self, source: Source<'_>, token: u64, interest: Interest) {
        if let Source::Simulated(id) = source {
            self.watched.lock().unwrap().insert(id, (token, interest));
            if let Some(end) = self.world.state().ends.get_mut(&id) {
                end.told = None;
            }
        }
    }

    /// The end, with its token, whose room to write has not been reported yet.
    fn room(&self, state: &State) -> Option<(u64, u64)> {
        let rooms = self.rooms.lock().unwrap();
        let mut waiting = rooms.iter().map(|(id, token)| (*id, *token));
        waiting.find(|(id, _)| {
            let end = state.ends.get(id);
            end.is_some_and(|end| !end.is_room_told && state.room(end) != 0)
        })
    }
}

impl Poller for SimPoller {
    fn watch(
        &self,
        source: Source<'_>,
        token: u64,
        interest: Interest,
    ) -> Result<(), TransportError> {
        self.set(source, token, interest);
        Ok(())
    }

    fn rewatch(&self, source: Source<'_>, token: u64, interest: Interest) {
        self.set(source, token, interest);
    }

    fn watch_room(&self, source: Source<'_>, token: u64) -> Result<(), TransportError> {
        if let Source::Simulated(id) = source {
            self.rooms.lock().unwrap().insert(id, token);
            if let Some(end) = self.world.state().ends.get_mut(&id) {
                end.is_room_told = false;
            }
        }
        Ok(())
    }

    fn forget_room(&self, source: Source<'_>) {
        if let Source::Simulated(id) = source {
            self.rooms.lock().unwrap().remove(&id);
        }
    }

    fn forget(&self, source: Source<'_>) {
        if let Source::Simulated(id) = source {
            self.watched.lock().unwrap().remove(&id);
        }
    }

    fn wait(&self, _: Option<Duration>) -> Option<Event> {
        let watched = self.watched.lock().unwrap();
        let mut state = self.world.state();
        let now = state.now;
        if let Some((id, token)) = self.room(&state) {
            let end = state.ends.get_mut(&id).expect("it has room");
            end.is_room_told = true;
            return Some(Event {
                token,
                ended: false,
            });
        }
        for (id, (token, interest)) in watched
            .iter()
            .filter(|(_, (_, interest))| *interest != Interest::Nothing)
        {
            if state
                .listeners
                .get(id)
                .is_some_and(|(_, waiting)| !waiting.is_empty())
            {
                return Some(Event {
                    token: *token,
                    ended: false,
                });
            }
            let Some(end) = state.ends.get_mut(id) else {
                continue;
            };
            let is_handed_over = *interest == Interest::Handover && end.told.is_none();
            if end.has_news(now) || is_handed_over {
                end.told = Some(now);
                return Some(Event {
                    token: *token,
                    ended: end.is_broken || end.ended_at.is_some_and(|at| at <= now),
                });
            }
        }
        None
    }

    fn is_pending(&self) -> bool {
        let watched = self.watched.lock().unwrap();
        let state = self.world.state();
        let is_ready = |id: &u64| {
            let waits = state
                .listeners
                .get(id)
                .map(|(_, waiting)| !waiting.is_empty());
            let tells = |end: &End| end.has_news(state.now);
            waits.unwrap_or(false) || state.ends.get(id).is_some_and(tells)
        };
        self.room(&state).is_some() || watched.keys().any(is_ready)
    }

    fn wake(&self) {}

    fn close(&self) {}
}
