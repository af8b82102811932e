//! Which addresses the calls of a reference go to: all of them in turn or, with real-time policies, those of the lane,
//! connections and protocols that the policies in force and the caller's priority select. The first call that needs a
//! route makes it; later calls find it without a lock.

use std::sync::{Arc, OnceLock, Weak};

use deckwatch_giop::Ior;

use super::route_key::{Inconsistent, RouteKey};
use crate::call_side::CallSide;
use crate::client::{Call, Client, CollocatedServer, Quality, Target};
use crate::connection::bidirectional::Bidirectional;
use crate::limits::{LANE_TARGETS_MAX, ROUTES_MAX, TARGETS_MAX};
use crate::origin::Origin;
use crate::policy::{Overrides, PolicyType};
use crate::rt::{Exposed, Priority};
use crate::transport::Endpoint;
use crate::wire::{self, Address, Profile};
use crate::{Completion, SystemException, minor};
use crate::{raise, raise::own};

/// The routes of one reference, or of one location forward.
pub(crate) struct Routes {
    /// All addresses: for calls without real-time policies. Empty if the reference has some.
    plain: Arc<[Target]>,
    real_time: Option<Arc<RealTime>>,
    /// The peer that gave the reference.
    origin: Origin,
    made: OnceLock<Box<Route>>,
}

/// The real-time policies and the addresses of a reference that has such policies.
struct RealTime {
    exposed: Exposed,
    addresses: Vec<(Address, Option<Weak<dyn CollocatedServer>>)>,
}

/// An address that a call may go to.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) endpoint: &'a Endpoint,
    profile: &'a Profile,
    /// The priority of the lane that listens there, if the reference has it.
    pub(super) lane: Option<Priority>,
    here: Option<&'a Weak<dyn CollocatedServer>>,
}

/// The targets of calls with the same route key.
struct Route {
    key: RouteKey,
    targets: Arc<[Target]>,
    next: OnceLock<Box<Self>>,
}

impl Routes {
    /// The routes of a reference.
    pub(super) fn of(
        ior: &Ior,
        orb: &CallSide,
        origin: Origin,
        way_back: Option<&Weak<Bidirectional>>,
    ) -> Result<Self, SystemException> {
        let client = &orb.client;
        let exposed = Exposed::of(ior);
        let limit = match &exposed {
            Some(exposed) if exposed.has_lanes => LANE_TARGETS_MAX,
            _ => TARGETS_MAX,
        };
        let (here, tls) = (client.transport.host_name(), client.transport.tls_use());
        let mut addresses = wire::profiles(ior, &here, tls);
        client.keep_reachable(origin, &mut addresses);
        addresses.truncate(limit);
        if addresses.is_empty() {
            return Err(raise::inv_objref(own::NO_KNOWN_PROFILE, Completion::No));
        }
        // A peer's reference must not give its calls the rights of this process: they take the way of any other.
        let whole = orb.whole().filter(|_| origin == Origin::Own);
        let here = |at: &Address| whole.as_ref()?.collocated_server(&at.endpoint);
        let addresses = addresses.into_iter().map(|at| (here(&at), at));
        let addresses = addresses.map(|(here, at)| (at, here));
        let (plain, real_time) = match exposed {
            Some(exposed) => {
                let addresses = addresses.collect();
                let real_time = RealTime { exposed, addresses };
                (Arc::default(), Some(Arc::new(real_time)))
            }
            None => {
                let plain = addresses.map(|(address, here)| Target {
                    binding: client.bindings.shared(
                        address.endpoint,
                        address.profile.code_sets,
                        Quality {
                            origin,
                            ..Quality::default()
                        },
                    ),
                    profile: address.profile,
                    here,
                    carries_priority: false,
                    way_back: way_back.cloned(),
                });
                (plain.collect(), None)
            }
        };
        Ok(Self {
            plain,
            real_time,
            origin,
            made: OnceLock::new(),
        })
    }

    /// The same for another reference to the object, without its private connections.
    pub(super) fn for_another(&self) -> Self {
        Self {
            plain: Arc::clone(&self.plain),
            real_time: self.real_time.clone(),
            origin: self.origin,
            made: OnceLock::new(),
        }
    }

    /// The real-time policies in the reference.
    pub(super) fn exposed(&self) -> Option<&Exposed> {
        self.real_time.as_deref().map(|said| &said.exposed)
    }

    /// The targets of a call, most preferred first.
    ///
    /// # Errors
    /// INV_POLICY if the policies in force contradict each other or the caller's priority; DATA_CONVERSION if that has
    /// no packet priority; NO_RESOURCES at [`ROUTES_MAX`].
    #[inline]
    pub(crate) fn choose(
        &self,
        client: &Client,
        call: &Call<'_>,
    ) -> Result<&Arc<[Target]>, SystemException> {
        if self.real_time.is_none() && !call.policies.is_real_time() {
            return Ok(&self.plain);
        }
        self.choose_route(client, call.policies, call.priority)
    }

    fn choose_route(
        &self,
        client: &Client,
        policies: &Overrides,
        priority: Option<Priority>,
    ) -> Result<&Arc<[Target]>, SystemException> {
        let key =
            RouteKey::of(self.exposed(), policies, priority).map_err(Inconsistent::exception)?;
        let mut targets_made = None;
        let (mut place, mut count) = (&self.made, 0);
        loop {
            if let Some(route) = place.get() {
                if route.key == key {
                    return Ok(&route.targets);
                }
                (place, count) = (&route.next, count + 1);
                continue;
            }
            if count >= ROUTES_MAX {
                return Err(raise::no_resources(minor::NONE, Completion::No));
            }
            let targets = match targets_made.take() {
                Some(targets) => targets,
                None => self.make(client, policies, key)?,
            };
            // If another thread has set this place first, the targets are for a later one.
            targets_made = Some(Arc::clone(&targets));
            place.get_or_init(|| {
                Box::new(Route {
                    key,
                    targets,
                    next: OnceLock::new(),
                })
            });
        }
    }

    #[cold]
    fn make(
        &self,
        client: &Client,
        policies: &Overrides,
        key: RouteKey,
    ) -> Result<Arc<[Target]>, SystemException> {
        let fitting = self.fitting(policies, key);
        let fitting = fitting.map_err(Inconsistent::exception)?;
        let protocols = key.protocols(self.exposed(), policies);
        let carries_priority = self.exposed().is_some_and(Exposed::is_propagated);
        let network = client.network_mapping();
        let target = |at: Candidate<'_>| {
            let quality = Quality {
                band: key.band,
                origin: self.origin,
                options: key.options(protocols, at.endpoint, &*network)?,
            };
            let (endpoint, code_sets) = (at.endpoint.clone(), at.profile.code_sets);
            Ok(Target {
                binding: if key.is_private {
                    client.bindings.private(endpoint, quality)
                } else {
                    client.bindings.shared(endpoint, code_sets, quality)
                },
                profile: at.profile.clone(),
                here: at.here.cloned(),
                carries_priority,
                way_back: None,
            })
        };
        fitting.into_iter().take(TARGETS_MAX).map(target).collect()
    }

    /// The addresses that fit a call, most preferred first.
    fn fitting(
        &self,
        policies: &Overrides,
        key: RouteKey,
    ) -> Result<Vec<Candidate<'_>>, Inconsistent> {
        let plain = self.plain.iter().map(|target| Candidate {
            endpoint: target.binding.endpoint(),
            profile: &target.profile,
            lane: None,
            here: target.here.as_ref(),
        });
        let said = self.real_time.iter().flat_map(|said| &said.addresses);
        let said = said.map(|(address, here)| Candidate {
            endpoint: &address.endpoint,
            profile: &address.profile,
            lane: address.lane,
            here: here.as_ref(),
        });
        let protocols = key.protocols(self.exposed(), policies);
        key.fitting(plain.chain(said).collect(), protocols)
    }

    /// The kinds of the policies that forbid a call of this priority.
    pub(super) fn inconsistent(
        &self,
        policies: &Overrides,
        priority: Option<Priority>,
    ) -> &'static [PolicyType] {
        let wanted = RouteKey::of(self.exposed(), policies, priority);
        let fitting = wanted.and_then(|key| self.fitting(policies, key).map(drop));
        fitting.map_or_else(|inconsistent| inconsistent.policies, |()| &[])
    }
}

#[cfg(test)]
mod tests {
    use deckwatch_giop::ior::{IiopProfile, LaneEndpoint, alternate_address};

    use super::*;
    use crate::Orb;

    /// How many addresses of a peer's reference with these profiles are used.
    fn used(profiles: &[IiopProfile]) -> usize {
        let orb = Orb::builder().build().unwrap();
        let profiles = profiles.iter().map(IiopProfile::to_tagged);
        let ior = Ior {
            type_id: String::new(),
            profiles: profiles.collect::<Result<_, _>>().unwrap(),
        };
        let routes = Routes::of(&ior, &orb.0.calls, Origin::Host, None).unwrap();
        let real_time = routes.real_time.map_or(0, |said| said.addresses.len());
        routes.plain.len() + real_time
    }

    #[test]
    fn only_the_first_of_many_addresses_are_used() {
        let of = |count: u16| {
            let others = (1..count).map(|port| alternate_address("127.0.0.2", port).unwrap());
            used(&[IiopProfile {
                components: others.collect(),
                ..IiopProfile::new("127.0.0.1", 1, b"key")
            }])
        };
        let max = u16::try_from(TARGETS_MAX).unwrap();
        assert_eq!([of(max - 1), of(max)], [TARGETS_MAX - 1, TARGETS_MAX]);
        assert_eq!(of(200), TARGETS_MAX);
    }

    #[test]
    fn only_the_first_of_many_lanes_are_used() {
        let profile = |count: u16| {
            let lane = |number| LaneEndpoint {
                host: "127.0.0.1".to_owned(),
                port: number,
                priority: number.cast_signed(),
            };
            let lanes: Vec<_> = (1..=count).map(lane).collect();
            IiopProfile {
                components: vec![LaneEndpoint::list_to_component(&lanes).unwrap()],
                ..IiopProfile::new("127.0.0.1", 1, b"key")
            }
        };
        let max = u16::try_from(LANE_TARGETS_MAX).unwrap();
        assert_eq!(used(&[profile(max)]), LANE_TARGETS_MAX);
        assert_eq!(used(&[profile(max), profile(1)]), LANE_TARGETS_MAX);
        assert_eq!(used(&[profile(max - 2), profile(1)]), LANE_TARGETS_MAX - 1);
    }
}
