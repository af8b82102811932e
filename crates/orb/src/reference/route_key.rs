//! What selects the route of a call: the policies of the caller, those in the reference, and the caller's priority
//! (RTCORBA 1.2: PriorityModelPolicy, PriorityBandedConnectionPolicy, PrivateConnectionPolicy, ClientProtocolPolicy).

use super::routes::Candidate;
use crate::policy::{Overrides, PolicyType};
use crate::rt::{
    self, Exposed, NetworkPriorityMapping, Priority, PriorityBand, PriorityModel, Protocol,
    ProtocolProperties,
};
use crate::transport::{Endpoint, StreamOptions};
use crate::{Completion, SystemException, minor};
use crate::{raise, raise::own};

/// What selects a route: calls with equal keys share one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct RouteKey {
    lane: LaneChoice,
    /// The band whose priorities share the connection.
    pub(super) band: Option<PriorityBand>,
    from: ProtocolSource,
    pub(super) is_private: bool,
    /// The CORBA priority that packets are mapped from, if they have one.
    packets: Option<Priority>,
}

/// Which lane a call goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LaneChoice {
    /// The first one.
    Any,
    /// One of this priority, if there is one.
    Rather(Priority),
    /// One of this priority.
    Of(Priority),
    /// The first one whose priority is in the band.
    In(PriorityBand),
}

/// Whose list of protocols applies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProtocolSource {
    Nobody,
    Reference,
    /// The caller's, by the number of its list.
    Caller(u16),
}

/// Why a call has no route.
pub(super) struct Inconsistent {
    minor: u32,
    /// The kinds of the policies that contradict each other.
    pub(super) policies: &'static [PolicyType],
}

const BANDS: &[PolicyType] = &[PolicyType::PRIORITY_BANDED_CONNECTION];
const BANDS_AND_MODEL: &[PolicyType] = &[
    PolicyType::PRIORITY_BANDED_CONNECTION,
    PolicyType::PRIORITY_MODEL,
];
const MODEL: &[PolicyType] = &[PolicyType::PRIORITY_MODEL];
const PROTOCOLS: &[PolicyType] = &[PolicyType::CLIENT_PROTOCOL];

impl Inconsistent {
    const fn new(minor: u32, policies: &'static [PolicyType]) -> Self {
        Self { minor, policies }
    }

    pub(super) fn exception(self) -> SystemException {
        raise::inv_policy(self.minor, Completion::No)
    }
}

impl RouteKey {
    /// The key of a call of this priority, from the policies in force and those in its reference. Does not allocate.
    pub(super) fn of(
        exposed: Option<&Exposed>,
        policies: &Overrides,
        priority: Option<Priority>,
    ) -> Result<Self, Inconsistent> {
        let from = ProtocolSource::of(exposed, policies)?;
        let bands = bands(exposed, policies)?;
        let model = exposed.and_then(|exposed| exposed.model);
        let has_lanes = exposed.is_some_and(|exposed| exposed.has_lanes);
        let mut key = Self {
            lane: LaneChoice::Any,
            band: None,
            from,
            is_private: policies.is_private(),
            packets: None,
        };
        let Some(model) = model else {
            if !bands.is_empty() {
                return Err(Inconsistent::new(own::BANDS_WITHOUT_MODEL, BANDS));
            }
            key.set_packets(exposed, policies, priority);
            return Ok(key);
        };
        let declared = model.server_priority;
        // A caller without a priority is served at the server's own.
        let (served, lane) = match (model.priority_model, priority) {
            (PriorityModel::ClientPropagated, Some(priority)) => {
                (priority, LaneChoice::Of(priority))
            }
            _ => (declared, LaneChoice::Rather(declared)),
        };
        if !bands.is_empty() {
            let band = bands.iter().find(|band| band.holds(served));
            let band = *band.ok_or(Inconsistent::new(own::BANDS_MISSED, BANDS_AND_MODEL))?;
            key.band = Some(band);
        }
        if has_lanes {
            key.lane = match key.band {
                Some(band) if lane == LaneChoice::Of(served) => LaneChoice::In(band),
                _ => lane,
            };
        }
        key.set_packets(exposed, policies, Some(served));
        Ok(key)
    }

    fn set_packets(
        &mut self,
        exposed: Option<&Exposed>,
        policies: &Overrides,
        priority: Option<Priority>,
    ) {
        let is_wanted = |protocol: &Protocol| match &protocol.properties {
            Some(ProtocolProperties::Tcp(tcp)) => tcp.enable_network_priority,
            _ => false,
        };
        if self.protocols(exposed, policies).iter().any(is_wanted) {
            self.packets = priority;
        }
    }

    /// The protocols that may be used, most preferred first; all if it is empty.
    pub(super) fn protocols<'p>(
        &self,
        exposed: Option<&'p Exposed>,
        policies: &Overrides,
    ) -> &'p [Protocol] {
        match (self.from, exposed) {
            (ProtocolSource::Caller(_), _) => policies.protocols(),
            (ProtocolSource::Reference, Some(exposed)) => &exposed.protocols,
            _ => &[],
        }
    }

    /// The addresses of `all` that fit a call, most preferred first.
    pub(super) fn fitting<'a>(
        &self,
        all: Vec<Candidate<'a>>,
        protocols: &[Protocol],
    ) -> Result<Vec<Candidate<'a>>, Inconsistent> {
        let some =
            |is_it: &dyn Fn(Priority) -> bool| all.iter().any(|at| at.lane.is_some_and(is_it));
        let lane = match (self.lane, self.band) {
            (LaneChoice::Rather(priority), band) if !some(&|lane| lane == priority) => match band {
                Some(band) if some(&|lane| band.holds(lane)) => LaneChoice::In(band),
                _ => LaneChoice::Any,
            },
            (lane, _) => lane,
        };
        // The first lane of a band; the others are for other callers.
        let mut lanes = all.iter().filter_map(|at| at.lane);
        let first = match lane {
            LaneChoice::In(band) => lanes.find(|priority| band.holds(*priority)),
            LaneChoice::Rather(priority) | LaneChoice::Of(priority) => Some(priority),
            LaneChoice::Any => None,
        };
        let is_there = |at: &Candidate<'_>| match lane {
            LaneChoice::Any => true,
            _ => at.lane.is_some() && at.lane == first,
        };
        let of_lane: Vec<_> = all.into_iter().filter(is_there).collect();
        if of_lane.is_empty() {
            let policies = self.band.map_or(MODEL, |_| BANDS_AND_MODEL);
            return Err(Inconsistent::new(own::LANES_MISSED, policies));
        }
        if protocols.is_empty() {
            return Ok(of_lane);
        }
        let by = |protocol: &Protocol| {
            let number = protocol.protocol_type;
            let of_lane = of_lane.iter();
            of_lane.filter(move |at| at.endpoint.protocol_type() == number)
        };
        let fitting: Vec<_> = protocols.iter().flat_map(by).copied().collect();
        if fitting.is_empty() {
            return Err(Inconsistent::new(own::PROTOCOLS_MISSED, PROTOCOLS));
        }
        Ok(fitting)
    }

    /// The options of a connection to this endpoint.
    ///
    /// # Errors
    /// DATA_CONVERSION if packets should have a priority and the mapping has none for it.
    pub(super) fn options(
        &self,
        protocols: &[Protocol],
        endpoint: &Endpoint,
        mapping: &dyn NetworkPriorityMapping,
    ) -> Result<StreamOptions, SystemException> {
        rt::stream_options(protocols, endpoint, mapping, self.packets)
    }
}

impl ProtocolSource {
    fn of(exposed: Option<&Exposed>, policies: &Overrides) -> Result<Self, Inconsistent> {
        let is_set = !policies.protocols().is_empty();
        Ok(match protocols(exposed, policies)? {
            [] => Self::Nobody,
            _ if is_set => Self::Caller(policies.protocols_number()),
            _ => Self::Reference,
        })
    }
}

/// The protocols that the caller or the reference lists.
pub(super) fn protocols<'p>(
    exposed: Option<&'p Exposed>,
    policies: &Overrides,
) -> Result<&'p [Protocol], Inconsistent> {
    let said = exposed.map_or(&[][..], |exposed| &exposed.protocols);
    either(policies.protocols(), said, PROTOCOLS)
}

/// The bands that the caller or the reference lists.
pub(super) fn bands<'p>(
    exposed: Option<&'p Exposed>,
    policies: &Overrides,
) -> Result<&'p [PriorityBand], Inconsistent> {
    let said = exposed.map_or(&[][..], |exposed| &exposed.bands);
    either(policies.bands(), said, BANDS)
}

/// The caller's list or the reference's; at most one of them may have entries.
fn either<'p, T>(
    set: &'p [T],
    said: &'p [T],
    kind: &'static [PolicyType],
) -> Result<&'p [T], Inconsistent> {
    match (set.is_empty(), said.is_empty()) {
        (true, _) => Ok(said),
        (false, true) => Ok(set),
        (false, false) => Err(Inconsistent::new(minor::POLICIES_IRRECONCILABLE, kind)),
    }
}
