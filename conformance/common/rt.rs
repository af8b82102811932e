//! References of real-time servers in TAO's form, made by hand, and callers with a priority.

use std::time::Duration;

use deckwatch_orb::{
    Completion, ObjectRef, Orb, OrbBuilder, Policy, Priority, PriorityBand, PriorityBands,
    Protocol, Protocols, Scheduling, SetOverrideType, SystemException, SystemExceptionKind as Kind,
};

use deckwatch_os::schedule::{self, Class};

use super::Over;
use super::ior::{Ior, TAG_INTERNET_IOP, iiop_profile};
use super::lanes::{RT_CORBA_PRIORITY, RT_CORBA_PRIORITY_RANGE, TAG_POLICIES, TAO_TAG_ENDPOINTS};
use super::message::{Asked, LOCATE_REPLY, LOCATE_REQUEST, NO_EXCEPTION, Received, message};
use super::octets::{Cursor, Octets, Order};
use super::wire::Peer;

/// Whether this process may have real-time threads. Counts a skip if not.
pub(crate) fn may_be_real_time() -> bool {
    limit_real_time();
    let tried = std::thread::spawn(|| schedule::set_class(Class::Fifo(99)).is_ok());
    let may = tried.join().expect("no panic");
    if !may {
        deckwatch_testkit::skip("real-time-class", "SCHED_FIFO needs CAP_SYS_NICE");
    }
    may
}

/// Sets a limit: the kernel ends this process if a real-time thread runs for two seconds without blocking. All tests of
/// a program set the same limit, because only a privileged process may raise it again.
pub(crate) fn limit_real_time() {
    schedule::limit_real_time(Duration::from_secs(2)).expect("no lower limit");
}

/// A reference as a real-time server makes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reference {
    /// Ports of the lanes with their priorities. The first port is also that of the profile.
    pub(crate) lanes: Vec<(u16, i16)>,
    /// The port of the profile if the reference has no lanes.
    pub(crate) port: u16,
    /// Types and values of the policies.
    pub(crate) policies: Vec<(u32, Vec<u8>)>,
    /// Other components.
    pub(crate) components: Vec<(u32, Vec<u8>)>,
}

impl Reference {
    /// A reference to lanes; each lane is one peer.
    pub(crate) fn with_lanes(lanes: &[(&Peer, i16)]) -> Self {
        let lanes = lanes.iter().map(|(peer, number)| (peer.port(), *number));
        Self {
            lanes: lanes.collect(),
            ..Self::default()
        }
    }

    /// A reference to a server without lanes.
    pub(crate) fn without_lanes(peer: &Peer) -> Self {
        Self {
            port: peer.port(),
            ..Self::default()
        }
    }

    /// CLIENT_PROPAGATED: requests run at their caller's priority, or at this one if the caller has none.
    pub(crate) fn propagated(self, number: i16) -> Self {
        self.model(0, number)
    }

    /// SERVER_DECLARED: requests run at this priority.
    pub(crate) fn declared(self, number: i16) -> Self {
        self.model(1, number)
    }

    fn model(self, model: u32, number: i16) -> Self {
        self.policy(40, |o| {
            o.u32(model).u16(number.cast_unsigned());
        })
    }

    /// Priority bands: calls in the same band share a connection.
    pub(crate) fn bands(self, bands: &[(i16, i16)]) -> Self {
        self.policy(45, |o| {
            o.u32(u32::try_from(bands.len()).expect("tests are short"));
            for (low, high) in bands {
                o.u16(low.cast_unsigned()).u16(high.cast_unsigned());
            }
        })
    }

    pub(crate) fn policy(mut self, number: u32, write: impl FnOnce(&mut Octets)) -> Self {
        let mut value = Octets::encapsulation(Order::Little);
        write(&mut value);
        self.policies.push((number, value.octets));
        self
    }

    pub(crate) fn component(mut self, tag: u32, data: &[u8]) -> Self {
        self.components.push((tag, data.to_vec()));
        self
    }

    pub(crate) fn ior(&self) -> Ior {
        let mut components = self.components.clone();
        if !self.policies.is_empty() {
            let mut data = Octets::encapsulation(Order::Little);
            data.u32(u32::try_from(self.policies.len()).expect("tests are short"));
            for (number, value) in &self.policies {
                data.u32(*number).sequence(value);
            }
            components.push((TAG_POLICIES, data.octets));
        }
        if !self.lanes.is_empty() {
            let mut data = Octets::encapsulation(Order::Little);
            data.u32(u32::try_from(self.lanes.len()).expect("tests are short"));
            for (port, number) in &self.lanes {
                data.string("127.0.0.1")
                    .u16(*port)
                    .u16(number.cast_unsigned());
            }
            components.push((TAO_TAG_ENDPOINTS, data.octets));
        }
        let port = self.lanes.first().map_or(self.port, |(port, _)| *port);
        let address = ("127.0.0.1", port);
        let profile = iiop_profile(Order::Little, 2, address, b"Fake", &components);
        Ior {
            type_id: "IDL:conformance/Fake:1.0".to_owned(),
            profiles: vec![(TAG_INTERNET_IOP, profile)],
        }
    }

    /// The reference in a client of ours.
    pub(crate) fn seen_by(&self, client: &Orb) -> ObjectRef {
        let text = self.ior().text(Order::Little);
        let object = client.string_to_object(&text).expect("a reference");
        object.expect("not nil")
    }
}

/// A client whose native priorities need no permission.
pub(crate) fn client() -> Orb {
    client_of(Orb::builder())
}

pub(crate) fn client_of(builder: OrbBuilder) -> Orb {
    let builder = builder.scheduling(Scheduling::Other);
    builder.build().expect("a client needs nothing")
}

/// Runs `work` in a thread of this priority.
pub(crate) fn at<T: Send>(client: &Orb, number: i16, work: impl FnOnce() -> T + Send) -> T {
    fresh(|| {
        let priority = Priority::new(number).expect("not negative");
        let set = client.rt_current().set_the_priority(priority);
        set.expect("the time-sharing class needs no permission");
        work()
    })
}

/// Runs `work` in a new thread, which has no CORBA priority.
pub(crate) fn fresh<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(work);
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The reply of a server without results, to requests and LocateRequests.
pub(crate) fn done(heard: &Received) -> Vec<u8> {
    if heard.kind() == LOCATE_REQUEST {
        let id = heard.body().u32();
        return message(heard.form(), LOCATE_REPLY, |o| {
            o.u32(id).u32(1);
        });
    }
    heard.answered(NO_EXCEPTION, |_| ())
}

/// The priority in the request's RTCorbaPriority service context.
pub(crate) fn said_priority(asked: &Asked) -> Option<i16> {
    let context = asked
        .contexts
        .iter()
        .find(|(id, _)| *id == RT_CORBA_PRIORITY);
    context.map(|(_, data)| {
        assert_eq!(data.len(), 4, "byte order, padding, a short: {data:02x?}");
        Cursor::encapsulated(data).u16().cast_signed()
    })
}

/// The lowest and the highest priority in the request's RTCorbaPriorityRange service context.
pub(crate) fn said_range(asked: &Asked) -> Option<(i16, i16)> {
    let is_range = |(id, _): &&(u32, Vec<u8>)| *id == RT_CORBA_PRIORITY_RANGE;
    asked.contexts.iter().find(is_range).map(|(_, data)| {
        assert_eq!(
            data.len(),
            6,
            "byte order, padding, two shorts: {data:02x?}"
        );
        let mut range = Cursor::encapsulated(data);
        (range.u16().cast_signed(), range.u16().cast_signed())
    })
}

/// A server that replies to every request.
pub(crate) fn lane() -> Peer {
    Peer::answering_all(Over::Tcp, |_, heard| done(heard))
}

/// Two lanes, at priorities 5 and 20, and a reference to them.
pub(crate) fn two_lanes() -> (Peer, Peer, Reference) {
    let (low, high) = (lane(), lane());
    let reference = Reference::with_lanes(&[(&low, 5), (&high, 20)]);
    (low, high, reference)
}

pub(crate) fn with(object: &ObjectRef, policies: &[Policy]) -> ObjectRef {
    let with = object.set_policy_overrides(policies, SetOverrideType::AddOverride);
    with.expect("one of a kind")
}

pub(crate) fn banded(bands: &[(i16, i16)]) -> Policy {
    let priority = |number| Priority::new(number).expect("not negative");
    let band = |&(low, high): &(i16, i16)| PriorityBand {
        low: priority(low),
        high: priority(high),
    };
    let bands: Vec<_> = bands.iter().map(band).collect();
    Policy::PriorityBandedConnection(PriorityBands::new(&bands).expect("in order"))
}

pub(crate) fn protocols(list: &[Protocol]) -> Policy {
    Policy::ClientProtocol(Protocols::new(list).expect("sound"))
}

pub(crate) fn refused(minor: u32) -> Result<(), SystemException> {
    Err(SystemException::new(Kind::InvPolicy, minor, Completion::No))
}
