//! What a call wants of the way it goes: the policies of the caller and those of the reference put together, and the priority of the
//! caller (RTCORBA 1.2: PriorityModelPolicy, PriorityBandedConnectionPolicy, PrivateConnectionPolicy, ClientProtocolPolicy).

use super::routes::Place;
use crate::policy::{Overrides, PolicyType};
use crate::rt::{
    self, Exposed, NetworkPriorityMapping, Priority, PriorityBand, PriorityModel, Protocol,
    ProtocolProperties,
};
use crate::transport::{Endpoint, StreamOptions};
use crate::{Completion, SystemException, minor};
use crate::{raise, raise::own};

/// What a call wants of its way; calls that want the same go the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct RouteKey {
    lane: Lane,
    /// The band whose priorities share the connection.
    pub(super) band: Option<PriorityBand>,
    from: Source,
    pub(super) is_private: bool,
    /// The priority that packets have on the network.
    packets: Option<Priority>,
}

/// Which lane a call goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// Whichever comes first.
    Any,
    /// One of this priority where there is one.
    Rather(Priority),
    /// One of this priority.
    Of(Priority),
    /// The first whose priority lies in the band.
    In(PriorityBand),
}

/// Whose list of protocols counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Nobody,
    Reference,
    /// The caller, by the number of his list.
    Caller(u16),
}

/// Why a call has no way.
pub(super) struct Inconsistent {
    minor: u32,
    /// The kinds of the policies that do not go together.
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
    /// What a call of this priority wants under the policies that are in force and those that its reference says. Takes no memory.
    pub(super) fn of(
        exposed: Option<&Exposed>,
        policies: &Overrides,
        priority: Option<Priority>,
    ) -> Result<Self, Inconsistent> {
        let from = Source::of(exposed, policies)?;
        let bands = bands(exposed, policies)?;
        let model = exposed.and_then(|exposed| exposed.model);
        let has_lanes = exposed.is_some_and(|exposed| exposed.has_lanes);
        let mut want = Self {
            lane: Lane::Any,
            band: None,
            from,
            is_private: policies.is_private(),
            packets: None,
        };
        let Some(model) = model else {
            if !bands.is_empty() {
                return Err(Inconsistent::new(own::BANDS_WITHOUT_MODEL, BANDS));
            }
            want.set_packets(exposed, policies, priority);
            return Ok(want);
        };
        let declared = model.server_priority;
        // A caller without a priority is served at the one that the server has for such.
        let (served, lane) = match (model.priority_model, priority) {
            (PriorityModel::ClientPropagated, Some(priority)) => (priority, Lane::Of(priority)),
            _ => (declared, Lane::Rather(declared)),
        };
        if !bands.is_empty() {
            let band = bands.iter().find(|band| band.holds(served));
            let band = *band.ok_or(Inconsistent::new(own::BANDS_MISSED, BANDS_AND_MODEL))?;
            want.band = Some(band);
        }
        if has_lanes {
            want.lane = match want.band {
                Some(band) if lane == Lane::Of(served) => Lane::In(band),
                _ => lane,
            };
        }
        want.set_packets(exposed, policies, Some(served));
        Ok(want)
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

    /// The protocols that may be used, most preferred first; none: all.
    pub(super) fn protocols<'p>(
        &self,
        exposed: Option<&'p Exposed>,
        policies: &Overrides,
    ) -> &'p [Protocol] {
        match (self.from, exposed) {
            (Source::Caller(_), _) => policies.protocols(),
            (Source::Reference, Some(exposed)) => &exposed.protocols,
            _ => &[],
        }
    }

    /// Those of all addresses that a call can go to, most preferred first.
    pub(super) fn fitting<'a>(
        &self,
        all: Vec<Place<'a>>,
        protocols: &[Protocol],
    ) -> Result<Vec<Place<'a>>, Inconsistent> {
        let some =
            |is_it: &dyn Fn(Priority) -> bool| all.iter().any(|at| at.lane.is_some_and(is_it));
        let lane = match (self.lane, self.band) {
            (Lane::Rather(priority), band) if !some(&|lane| lane == priority) => match band {
                Some(band) if some(&|lane| band.holds(lane)) => Lane::In(band),
                _ => Lane::Any,
            },
            (lane, _) => lane,
        };
        // Of a band's lanes the first: the others are for other callers.
        let mut lanes = all.iter().filter_map(|at| at.lane);
        let first = match lane {
            Lane::In(band) => lanes.find(|priority| band.holds(*priority)),
            Lane::Rather(priority) | Lane::Of(priority) => Some(priority),
            Lane::Any => None,
        };
        let is_there = |at: &Place<'_>| match lane {
            Lane::Any => true,
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

    /// How a connection to this endpoint is made.
    ///
    /// # Errors
    /// DATA_CONVERSION where its packets are to have a priority and the mapping has none.
    pub(super) fn options(
        &self,
        protocols: &[Protocol],
        endpoint: &Endpoint,
        mapping: &dyn NetworkPriorityMapping,
    ) -> Result<StreamOptions, SystemException> {
        rt::stream_options(protocols, endpoint, mapping, self.packets)
    }
}

impl Source {
    fn of(exposed: Option<&Exposed>, policies: &Overrides) -> Result<Self, Inconsistent> {
        let is_set = !policies.protocols().is_empty();
        Ok(match protocols(exposed, policies)? {
            [] => Self::Nobody,
            _ if is_set => Self::Caller(policies.protocols_number()),
            _ => Self::Reference,
        })
    }
}

/// The protocols of whoever names some.
pub(super) fn protocols<'p>(
    exposed: Option<&'p Exposed>,
    policies: &Overrides,
) -> Result<&'p [Protocol], Inconsistent> {
    let said = exposed.map_or(&[][..], |exposed| &exposed.protocols);
    either(policies.protocols(), said, PROTOCOLS)
}

/// The bands of whoever names some.
pub(super) fn bands<'p>(
    exposed: Option<&'p Exposed>,
    policies: &Overrides,
) -> Result<&'p [PriorityBand], Inconsistent> {
    let said = exposed.map_or(&[][..], |exposed| &exposed.bands);
    either(policies.bands(), said, BANDS)
}

/// What the caller has set or what the reference says; a policy without a list leaves it to the other.
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
