//! Both ends of bidirectional connections.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use deckwatch_cdr::{DecodeError, Parse, Reader, Write};
use deckwatch_dynamic::{CreateRequest, PollableSetError, Poller, RequestError};
use deckwatch_orb::{
    BidirectionalPolicyValue, Deliver, ObjectRef, Orb, OrbBuilder, Policies, Policy, Servant,
    ServerRequest, SystemException, UtcT,
};

use super::ior::{Ior, TAG_INTERNET_IOP, iiop_profile};
use super::message::{NO_EXCEPTION, Received, Request};
use super::servant::Probe;
use super::{Cursor, Octets, Order, Over, Wire, listening};

pub(crate) const BI_DIR_IIOP: u32 = 5;
pub(crate) const INVOCATION_POLICIES: u32 = 7;
pub(crate) const REQUEST_START: u32 = 27;
pub(crate) const FORM: (u8, Order) = (2, Order::Big);

pub(crate) fn both() -> Policies {
    Policies {
        bidirectional: BidirectionalPolicyValue::Both,
        ..Policies::root()
    }
}

/// Starts a listening ORB and activates this servant in an adapter with these policies.
fn serving(
    builder: OrbBuilder,
    policies: &Policies,
    servant: Arc<dyn Servant>,
) -> (Orb, ObjectRef) {
    let orb = listening(Over::Tcp, builder);
    let root = orb.root_poa().unwrap();
    let manager = root.the_poa_manager();
    manager.activate().unwrap();
    let poa = root.create_poa("both", Some(manager), policies).unwrap();
    let object = poa.servant_to_reference(&servant).unwrap();
    (orb, object)
}

/// An ORB that opens bidirectional connections, and one of its objects.
pub(crate) struct Opener {
    pub(crate) orb: Orb,
    pub(crate) probe: Arc<Probe>,
    pub(crate) object: ObjectRef,
}

impl Opener {
    pub(crate) fn new(policies: &Policies) -> Self {
        let builder = Orb::builder().round_trip_timeout(super::PATIENCE);
        let builder = builder.policy(Policy::Bidirectional(BidirectionalPolicyValue::Both));
        let probe = Arc::new(Probe::default());
        let (orb, object) = serving(builder, policies, probe.clone());
        Self { orb, probe, object }
    }

    /// A request for the object, as a server sends it back over the connection.
    pub(crate) fn request(&self, id: u32, operation: &str) -> Request {
        Request::new(FORM, self.object.object_key().unwrap(), operation).id(id)
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        let _ = self.orb.shutdown(true); // The test may have shut it down.
    }
}

pub(crate) fn parse_number(r: &mut Reader<'_>) -> Result<u64, DecodeError> {
    u64::parse(r)
}

pub(crate) fn ping(object: &ObjectRef) -> Result<(), SystemException> {
    object.invoke("ping", |_| Ok(()), |_| Ok(()), |_, _| Ok(None))
}

/// The listen points that a request announces, if any.
pub(crate) fn announced(asked: &Received) -> Option<Vec<(String, u16)>> {
    let contexts = asked.asked().contexts;
    let (_, data) = contexts.into_iter().find(|(id, _)| *id == BI_DIR_IIOP)?;
    let mut r = Cursor::encapsulated(&data);
    let count = r.u32();
    Some((0..count).map(|_| (r.string(), r.u16())).collect())
}

/// Keeps the reference that `keep` passes to it; the other operations call the kept object in different ways.
#[derive(Default)]
pub(crate) struct Caller {
    pub(crate) kept: Mutex<Option<ObjectRef>>,
    /// For each asynchronous call, whether it returned results.
    pub(crate) told: Arc<Mutex<Vec<bool>>>,
}

impl Caller {
    pub(crate) fn kept(&self) -> ObjectRef {
        self.kept.lock().unwrap().clone().expect("one was given")
    }
}

impl Servant for Caller {
    fn repository_ids(&self) -> &'static [&'static str] {
        &["IDL:conformance/Caller:1.0"]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        match request.operation() {
            b"keep" => {
                let object: Option<ObjectRef> = Parse::parse(&mut request.arguments())?;
                *self.kept.lock().unwrap() = object;
            }
            b"call" => ping(&self.kept())?,
            b"send" => {
                let told = Arc::clone(&self.told);
                let deliver: Deliver = Box::new(move |reply| {
                    let given = reply.results(|_| Ok(()));
                    told.lock().unwrap().push(given.is_ok());
                    Ok(())
                });
                self.kept()
                    .send_callback("ping", |_| Ok(()), Some(deliver))?;
            }
            b"poll" => {
                let poller = Poller::send(&self.kept(), "ping", |_| Ok(()))?;
                poller.poll::<_, SystemException>("ping", u32::MAX, |_| Ok(()), |_, _| Ok(None))?;
            }
            b"await" => {
                let poller = Poller::send(&self.kept(), "ping", |_| Ok(()))?;
                let ready = poller.create_pollable_set().ready_pollable(u32::MAX);
                if let Err(PollableSetError::System(raised)) = ready {
                    return Err(raised);
                }
            }
            b"fetch" => {
                let mut asked = self.kept().create_request("ping");
                asked.send_deferred()?;
                if let Err(RequestError::System(raised)) = asked.response() {
                    return Err(raised);
                }
            }
            _ => self.kept().invoke_oneway("note", |w| 5_u32.write(w))?,
        }
        request.reply()?;
        Ok(())
    }
}

/// A server that calls back over the connection, and the key of its object.
pub(crate) struct Acceptor {
    pub(crate) orb: Orb,
    pub(crate) caller: Arc<Caller>,
    pub(crate) key: Vec<u8>,
}

impl Acceptor {
    pub(crate) fn new(policies: &Policies) -> Self {
        Self::with(Orb::builder(), policies)
    }

    pub(crate) fn with(builder: OrbBuilder, policies: &Policies) -> Self {
        let builder = builder
            .round_trip_timeout(super::PATIENCE)
            .connect_timeout(Duration::from_secs(5));
        let caller = Arc::new(Caller::default());
        let (orb, reference) = serving(builder, policies, caller.clone());
        let key = reference.object_key().unwrap().to_vec();
        Self { orb, caller, key }
    }

    pub(crate) fn request(&self, id: u32, operation: &str) -> Request {
        Request::new(FORM, &self.key, operation).id(id)
    }

    /// Makes the server keep a reference to the object `Fake` at a port without a listener. The request announces
    /// `points` as the caller's listen points.
    pub(crate) fn keep(&self, wire: &mut Wire, points: &[(&str, u16)]) {
        let request = self.request(2, "keep").context(BI_DIR_IIOP, &said(points));
        let answer = wire.ask(&request.with(|octets| nowhere(FORM.0).write(octets)));
        assert_eq!(answer.reply().status, NO_EXCEPTION);
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.caller.kept.lock().unwrap().take();
        let _ = self.orb.shutdown(true); // The test may have shut it down.
    }
}

/// The data of a BI_DIR_IIOP service context with these listen points.
pub(crate) fn said(points: &[(&str, u16)]) -> Vec<u8> {
    let mut octets = Octets::encapsulation(Order::Little);
    octets.u32(points.len().try_into().unwrap());
    for (host, port) in points {
        octets.string(host).u16(*port);
    }
    octets.octets
}

/// The UTC time that is `wait` from now.
pub(crate) fn time_in(wait: Duration) -> UtcT {
    let since_1970 = (SystemTime::now() + wait).duration_since(SystemTime::UNIX_EPOCH);
    let unix_ns = u64::try_from(since_1970.unwrap().as_nanos()).unwrap();
    UtcT::from_unix_ns(unix_ns, Duration::ZERO)
}

/// The data of a service context with a request start time that is `wait` from now.
pub(crate) fn starting_in(wait: Duration) -> Vec<u8> {
    let mut time = Octets::encapsulation(Order::Big);
    time.u64(time_in(wait).time).u32(0).u16(0).u16(0);
    let mut octets = Octets::encapsulation(Order::Big);
    octets.u32(1).u32(REQUEST_START).sequence(&time.octets);
    octets.octets
}

/// An address without a listener.
pub(crate) const NOWHERE: (&str, u16) = ("127.0.0.1", 1);

pub(crate) fn nowhere(minor: u8) -> Ior {
    Ior {
        type_id: "IDL:conformance/Fake:1.0".to_owned(),
        profiles: vec![(
            TAG_INTERNET_IOP,
            iiop_profile(Order::Big, minor, NOWHERE, b"Fake", &[]),
        )],
    }
}
