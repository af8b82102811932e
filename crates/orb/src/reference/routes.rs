//! Where the calls through a reference go: at all of its addresses in turn, or where real-time CORBA is used, at those of the lane, the
//! connections and the protocols that the policies in force and the priority of the caller ask for. Each such way is made by the first
//! call that takes it; the later ones find it without a lock.

use std::sync::{Arc, OnceLock, Weak};

use deckwatch_giop::Ior;

use super::route_key::{Inconsistent, RouteKey};
use crate::client::{Call, Client, Quality, Target};
use crate::connection::bidirectional::Bidirectional;
use crate::lane::Lane;
use crate::limits::{LANE_TARGETS_MAX, ROUTES_MAX, TARGETS_MAX};
use crate::orb::OrbCore;
use crate::policy::{Overrides, PolicyType};
use crate::rt::{Exposed, Priority};
use crate::transport::Endpoint;
use crate::wire::{self, Address, Profile};
use crate::{Completion, SystemException, minor};
use crate::{raise, raise::own};

/// Where calls go that one reference, or what it was forwarded to, leads to.
pub(crate) struct Routes {
    /// Every address: for calls that nothing real-time is said of. Empty where the reference says something.
    plain: Arc<[Target]>,
    real_time: Option<Arc<RealTime>>,
    ways: OnceLock<Box<Way>>,
}

/// What a reference says of real time.
struct RealTime {
    exposed: Exposed,
    addresses: Vec<(Address, Option<Weak<Lane>>)>,
}

/// An address that a call may go to.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) endpoint: &'a Endpoint,
    profile: &'a Profile,
    /// The priority of the lane that listens there, where that is told.
    pub(super) lane: Option<Priority>,
    here: Option<&'a Weak<Lane>>,
}

/// Where calls go that want the same.
struct Way {
    want: RouteKey,
    targets: Arc<[Target]>,
    next: OnceLock<Box<Self>>,
}

impl Routes {
    /// The ways that a reference leads.
    pub(super) fn of(
        ior: &Ior,
        orb: &OrbCore,
        way_back: Option<&Weak<Bidirectional>>,
    ) -> Result<Self, SystemException> {
        let client = &orb.client;
        let exposed = Exposed::of(ior);
        let limit = match &exposed {
            Some(exposed) if exposed.has_lanes => LANE_TARGETS_MAX,
            _ => TARGETS_MAX,
        };
        let here = client.transport.host_name();
        let addresses: Vec<_> = wire::profiles(ior, &here).take(limit).collect();
        if addresses.is_empty() {
            return Err(raise::inv_objref(own::NO_KNOWN_PROFILE, Completion::No));
        }
        let here = |at: &Address| orb.collocated_lane(&at.endpoint).map(Arc::downgrade);
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
                        Quality::default(),
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
            ways: OnceLock::new(),
        })
    }

    /// The same for another reference to the object: its private connections are its own.
    pub(super) fn for_another(&self) -> Self {
        Self {
            plain: Arc::clone(&self.plain),
            real_time: self.real_time.clone(),
            ways: OnceLock::new(),
        }
    }

    /// What the reference says of real time.
    pub(super) fn exposed(&self) -> Option<&Exposed> {
        self.real_time.as_deref().map(|said| &said.exposed)
    }

    /// Where a call goes, most preferred first.
    ///
    /// # Errors
    /// INV_POLICY where the policies in force do not go together, or with the priority of the caller; DATA_CONVERSION where its packets
    /// have no priority; NO_RESOURCES at [`ROUTES_MAX`].
    #[inline]
    pub(crate) fn choose(
        &self,
        client: &Client,
        call: &Call<'_>,
    ) -> Result<&Arc<[Target]>, SystemException> {
        if self.real_time.is_none() && !call.policies.is_real_time() {
            return Ok(&self.plain);
        }
        self.choose_way(client, call.policies, call.priority)
    }

    fn choose_way(
        &self,
        client: &Client,
        policies: &Overrides,
        priority: Option<Priority>,
    ) -> Result<&Arc<[Target]>, SystemException> {
        let want =
            RouteKey::of(self.exposed(), policies, priority).map_err(Inconsistent::exception)?;
        let mut made = None;
        let (mut place, mut count) = (&self.ways, 0);
        loop {
            if let Some(way) = place.get() {
                if way.want == want {
                    return Ok(&way.targets);
                }
                (place, count) = (&way.next, count + 1);
                continue;
            }
            if count >= ROUTES_MAX {
                return Err(raise::no_resources(minor::NONE, Completion::No));
            }
            let targets = match made.take() {
                Some(targets) => targets,
                None => self.make(client, policies, want)?,
            };
            // Where another thread is faster its way stands here, and this one may be wanted further on.
            made = Some(Arc::clone(&targets));
            place.get_or_init(|| {
                Box::new(Way {
                    want,
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
        want: RouteKey,
    ) -> Result<Arc<[Target]>, SystemException> {
        let fitting = self.fitting(policies, want);
        let fitting = fitting.map_err(Inconsistent::exception)?;
        let protocols = want.protocols(self.exposed(), policies);
        let carries_priority = self.exposed().is_some_and(Exposed::is_propagated);
        let network = client.network_mapping();
        let target = |at: Place<'_>| {
            let quality = Quality {
                band: want.band,
                options: want.options(protocols, at.endpoint, &*network)?,
            };
            let (endpoint, code_sets) = (at.endpoint.clone(), at.profile.code_sets);
            Ok(Target {
                binding: match want.is_private {
                    true => client.bindings.private(endpoint, quality),
                    false => client.bindings.shared(endpoint, code_sets, quality),
                },
                profile: at.profile.clone(),
                here: at.here.cloned(),
                carries_priority,
                way_back: None,
            })
        };
        fitting.into_iter().take(TARGETS_MAX).map(target).collect()
    }

    /// The addresses that a call can go to, most preferred first.
    fn fitting(
        &self,
        policies: &Overrides,
        want: RouteKey,
    ) -> Result<Vec<Place<'_>>, Inconsistent> {
        let plain = self.plain.iter().map(|target| Place {
            endpoint: target.binding.endpoint(),
            profile: &target.profile,
            lane: None,
            here: target.here.as_ref(),
        });
        let said = self.real_time.iter().flat_map(|said| &said.addresses);
        let said = said.map(|(address, here)| Place {
            endpoint: &address.endpoint,
            profile: &address.profile,
            lane: address.lane,
            here: here.as_ref(),
        });
        let protocols = want.protocols(self.exposed(), policies);
        want.fitting(plain.chain(said).collect(), protocols)
    }

    /// The kinds of the policies that keep a call of this priority from being made.
    pub(super) fn inconsistent(
        &self,
        policies: &Overrides,
        priority: Option<Priority>,
    ) -> &'static [PolicyType] {
        let wanted = RouteKey::of(self.exposed(), policies, priority);
        let fitting = wanted.and_then(|want| self.fitting(policies, want).map(drop));
        fitting.map_or_else(|inconsistent| inconsistent.policies, |()| &[])
    }
}
