//! Servers with threadpools, and a servant that reports the priority of its thread.

use std::sync::Arc;

use deckwatch_orb::transport::Endpoint;
use deckwatch_orb::{
    ObjectRef, Orb, OrbBuilder, Poa, Policies, Priority, PriorityModel, PriorityModelPolicy,
    Scheduling, Servant, ServerRequest, SystemException, ThreadpoolId, ThreadpoolLane,
};

use super::ior::{Ior, Profile, TAG_INTERNET_IOP};
use super::message::{NO_EXCEPTION, Reply, Request};
use super::octets::{Cursor, Octets, Order};
use super::servant::{PROBE_ID, Probe};
use super::wire::{TAG_DECKWATCH_SHARED_MEMORY, TAG_OMNIORB_UNIX_TRANS, Wire};
use super::{Over, listening};

pub(crate) const TAG_POLICIES: u32 = 2;
pub(crate) const TAO_TAG_ENDPOINTS: u32 = 0x5441_4F02;
/// A component of this ORB: lanes reachable within the host.
const TAG_DECKWATCH_LANES: u32 = 0x4457_0002;
pub(crate) const RT_CORBA_PRIORITY: u32 = 10;
pub(crate) const RT_CORBA_PRIORITY_RANGE: u32 = 11;

/// A server whose real-time threads run in the time-sharing class, so that every host permits their priorities.
pub(crate) struct LaneWorld {
    pub(crate) orb: Orb,
    pub(crate) root: Poa,
    pub(crate) witness: Arc<Witness>,
}

/// A [`Probe`] with one more operation: `the_priority` returns the priority of the serving thread, -1 if it has none.
pub(crate) struct Witness {
    orb: std::sync::OnceLock<Orb>,
    pub(crate) probe: Probe,
}

impl Servant for Witness {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[PROBE_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        if request.operation() != b"the_priority" {
            return self.probe.dispatch(request);
        }
        let orb = self.orb.get().expect("set before it is served");
        let priority = orb.rt_current().the_priority();
        let priority = priority.map_or(-1, Priority::value);
        let thread = std::thread::current();
        let mut reply = request.reply()?;
        reply.write_octets(&priority.to_ne_bytes())?;
        Ok(reply.write_octet_sequence(thread.name().unwrap_or_default().as_bytes())?)
    }
}

/// The [`Priority`] with this number.
pub(crate) fn priority(number: i16) -> Priority {
    Priority::new(number).expect("not negative")
}

/// A lane with one thread.
pub(crate) fn lane(number: i16) -> ThreadpoolLane {
    ThreadpoolLane {
        lane_priority: priority(number),
        static_threads: 1,
        dynamic_threads: 0,
    }
}

pub(crate) fn propagated(number: i16) -> Option<PriorityModelPolicy> {
    Some(PriorityModelPolicy {
        priority_model: PriorityModel::ClientPropagated,
        server_priority: priority(number),
    })
}

pub(crate) fn declared(number: i16) -> Option<PriorityModelPolicy> {
    Some(PriorityModelPolicy {
        priority_model: PriorityModel::ServerDeclared,
        server_priority: priority(number),
    })
}

impl LaneWorld {
    pub(crate) fn new(over: Over) -> Self {
        Self::with(over, Orb::builder())
    }

    pub(crate) fn with(over: Over, builder: OrbBuilder) -> Self {
        Self::at(listening(over, builder.scheduling(Scheduling::Other)))
    }

    pub(crate) fn at(orb: Orb) -> Self {
        let root = orb.root_poa().expect("it listens");
        root.the_poa_manager().activate().expect("a fresh manager");
        let witness = Arc::new(Witness {
            orb: orb.clone().into(),
            probe: Probe::default(),
        });
        Self { orb, root, witness }
    }

    /// Creates a threadpool with one lane of one thread for each priority.
    pub(crate) fn pool(&self, priorities: &[i16]) -> ThreadpoolId {
        let lanes: Vec<_> = priorities.iter().map(|number| lane(*number)).collect();
        let rt = self.orb.rt_orb();
        let made = rt.create_threadpool_with_lanes(0, &lanes, false, None);
        made.expect("the time-sharing class needs no permission")
    }

    /// Creates a child adapter of the root adapter.
    pub(crate) fn adapter(&self, name: &str, policies: &Policies) -> Poa {
        let manager = self.root.the_poa_manager();
        let made = self.root.create_poa(name, Some(manager), policies);
        made.expect("policies that go together")
    }

    /// Activates the witness in an adapter and decodes its reference.
    pub(crate) fn object(&self, poa: &Poa) -> DecodedReference {
        let id = poa.activate_object(self.servant()).expect("an id");
        DecodedReference::of(&poa.id_to_reference(&id).expect("it is active"))
    }

    pub(crate) fn servant(&self) -> Arc<dyn Servant> {
        self.witness.clone()
    }
}

impl Drop for LaneWorld {
    fn drop(&mut self) {
        self.witness.probe.gate.open();
        let _ = self.orb.shutdown(true); // The test may have shut it down.
    }
}

/// A reference of such a server, decoded by hand.
#[derive(Debug)]
pub(crate) struct DecodedReference {
    pub(crate) text: String,
    pub(crate) profile: Profile,
    /// Host, port and priority of each lane.
    pub(crate) lanes: Vec<(String, u16, i16)>,
    /// Endpoint and priority of each lane within the host.
    local: Vec<(Endpoint, i16)>,
    /// Types and values of the policies in the reference.
    pub(crate) policies: Vec<(u32, Vec<u8>)>,
}

impl DecodedReference {
    pub(crate) fn of(reference: &ObjectRef) -> Self {
        Self::of_ior(
            &reference.to_string(),
            &Ior::of_text(&reference.to_string()),
        )
    }

    pub(crate) fn of_ior(text: &str, ior: &Ior) -> Self {
        let iiop = |(tag, _): &&(u32, Vec<u8>)| *tag == TAG_INTERNET_IOP;
        let (_, data) = ior.profiles.iter().find(iiop).expect("an IIOP profile");
        let profile = Profile::read(data);
        let component = |tag: u32| {
            let found = profile.components.iter().find(|(found, _)| *found == tag);
            found.map(|(_, data)| Cursor::encapsulated(data))
        };
        let lanes = component(TAO_TAG_ENDPOINTS).map_or_else(Vec::new, |mut body| {
            let count = body.u32();
            let one = |_| (body.string(), body.u16(), body.u16().cast_signed());
            (0..count).map(one).collect()
        });
        let policies = component(TAG_POLICIES).map_or_else(Vec::new, |mut body| {
            let count = body.u32();
            (0..count).map(|_| (body.u32(), body.sequence())).collect()
        });
        Self {
            text: text.to_owned(),
            local: local_lanes(&profile),
            profile,
            lanes,
            policies,
        }
    }

    /// The priority model and the server's priority.
    pub(crate) fn model(&self) -> (u32, i16) {
        let (_, value) = self
            .policies
            .iter()
            .find(|(number, _)| *number == 40)
            .expect("a priority model");
        let mut value = Cursor::encapsulated(value);
        (value.u32(), value.u16().cast_signed())
    }

    /// The host and port of the profile itself.
    pub(crate) fn address(&self) -> (String, u16) {
        (self.profile.host.clone(), self.profile.port)
    }

    /// The host and port of the lane with this priority.
    pub(crate) fn lane(&self, number: i16) -> (String, u16) {
        let is_it = |(_, _, priority): &&(String, u16, i16)| *priority == number;
        let (host, port, _) = self.lanes.iter().find(is_it).expect("such a lane");
        (host.clone(), *port)
    }

    /// The endpoint of the profile itself, over any transport.
    pub(crate) fn place(&self) -> Endpoint {
        if self.profile.port != 0 {
            return Endpoint::tcp(&self.profile.host, self.profile.port);
        }
        let place = |(tag, data): &(u32, Vec<u8>)| {
            let mut data = Cursor::encapsulated(data);
            let mut both = || (data.string(), data.string());
            local_place(*tag == TAG_DECKWATCH_SHARED_MEMORY, both())
        };
        let is_it = |(tag, _): &&(u32, Vec<u8>)| {
            [TAG_OMNIORB_UNIX_TRANS, TAG_DECKWATCH_SHARED_MEMORY].contains(tag)
        };
        let mut components = self.profile.components.iter();
        components.find(is_it).map(place).expect("a place")
    }

    /// Connects to the endpoint of the profile itself.
    pub(crate) fn dial(&self) -> Wire {
        Wire::reach(&self.place()).expect("it listens")
    }

    /// The endpoint of the lane with this priority, over any transport.
    pub(crate) fn place_of(&self, number: i16) -> Endpoint {
        let is_it = |(_, priority): &&(Endpoint, i16)| *priority == number;
        match self.local.iter().find(is_it) {
            Some((place, _)) => place.clone(),
            None => {
                let (host, port) = self.lane(number);
                Endpoint::tcp(&host, port)
            }
        }
    }

    /// Connects to the lane with this priority.
    pub(crate) fn dial_lane(&self, number: i16) -> Wire {
        Wire::reach(&self.place_of(number)).expect("it listens")
    }

    /// The priorities of the lanes, in the order of the reference.
    pub(crate) fn order(&self) -> Vec<i16> {
        let by_tcp = self.lanes.iter().map(|(_, _, number)| *number);
        by_tcp
            .chain(self.local.iter().map(|(_, number)| *number))
            .collect()
    }

    /// Calls `the_priority` at this lane, with the lane's priority in the request. Returns the priority and the name of
    /// the serving thread.
    #[track_caller]
    pub(crate) fn ask_lane(&self, number: i16) -> (i16, String) {
        self.ask_over(self.dial_lane(number), Some(number))
    }

    pub(crate) fn request(&self, operation: &str) -> Request {
        Request::new((2, Order::Big), &self.profile.key, operation)
    }

    /// Calls `the_priority` at this address, with a priority in the request if given. Returns the priority and the name
    /// of the serving thread.
    #[track_caller]
    pub(crate) fn ask_priority(
        &self,
        address: &(String, u16),
        number: Option<i16>,
    ) -> (i16, String) {
        self.ask_over(Wire::at(address), number)
    }

    /// As `ask_priority`, over an open connection.
    #[track_caller]
    pub(crate) fn ask_over(&self, mut wire: Wire, number: Option<i16>) -> (i16, String) {
        let mut request = self.request("the_priority");
        if let Some(number) = number {
            request = request.context(RT_CORBA_PRIORITY, &priority_context(number));
        }
        heard_priority(wire.ask(&request.bare()).reply())
    }
}

fn local_place(is_shared: bool, (host, path): (String, String)) -> Endpoint {
    if is_shared {
        Endpoint::SharedMemory { host, path }
    } else {
        Endpoint::Unix { host, path }
    }
}

fn local_lanes(profile: &Profile) -> Vec<(Endpoint, i16)> {
    const SHARED_MEMORY: u32 = 0x5441_4F02;
    let mut components = profile.components.iter();
    let found = components.find(|(tag, _)| *tag == TAG_DECKWATCH_LANES);
    let Some((_, data)) = found else {
        return Vec::new();
    };
    let mut body = Cursor::encapsulated(data);
    let count = body.u32();
    let one = |_| {
        let protocol = body.u32();
        let place = local_place(protocol == SHARED_MEMORY, (body.string(), body.string()));
        (place, body.u16().cast_signed())
    };
    (0..count).map(one).collect()
}

/// Decodes the reply of `the_priority`.
#[track_caller]
pub(crate) fn heard_priority(mut reply: Reply) -> (i16, String) {
    assert_eq!(reply.status, NO_EXCEPTION, "{reply:?}");
    let octets = reply.body.raw(2);
    let priority = i16::from_ne_bytes([octets[0], octets[1]]);
    let name = reply.body.sequence();
    (priority, String::from_utf8(name).expect("plain names"))
}

/// The data of an RTCorbaPriority service context.
pub(crate) fn priority_context(number: i16) -> Vec<u8> {
    let mut data = Octets::encapsulation(Order::Big);
    data.u16(number.cast_unsigned());
    data.octets
}
