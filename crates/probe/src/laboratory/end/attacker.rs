//! A peer that attacks a server of [`super::attacked`] without pause, or one of [`super::names`] at a rate, until its time
//! is over. Its connections have several addresses of loopback, so that it is not bounded by the
//! share of one.

mod detour;

use std::net::{AddrParseError, IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use deckwatch_cdr::{Any, EncodeError, Write, Writer};
use deckwatch_event::client::Connected;
use deckwatch_event::{cos_event_channel_admin as cos, cos_event_comm::PushConsumerRef};
use deckwatch_giop::ior::IiopProfile;
use deckwatch_giop::{Format, Ior, RequestHeader, Response, Target, write_cancel_request};
use deckwatch_naming::{NAME_SERVICE, limits::COMPONENTS_MAX};
use deckwatch_orb::cos_naming::{NameComponent, NamingContextRef};
use deckwatch_orb::transport::{Endpoint, SocketTransport, StreamOptions, Transport as _};
use deckwatch_orb::{ObjectRef, Orb};
use deckwatch_os::clock::{monotonic_ns, sleep_until};
use deckwatch_os::process::raise_open_files;
use deckwatch_os::stream::StreamSocket;

use super::commands::{Command, Samples};
use super::{EndPlan, refused, words};
use crate::bench::Attack;
use crate::laboratory::error::LaboratoryError;
use crate::limits::{ATTACKED_CONNECTIONS, END_PATIENCE};
use detour::Detour;

/// A peer with one kind of attack.
pub(super) struct Attacker {
    attack: Attack,
    orb: Orb,
    /// Addresses and keys of the low lane's object and of the root context. A naming service has the latter alone.
    low: IiopProfile,
    naming: IiopProfile,
    channel: ObjectRef,
    root: ObjectRef,
    shared: Option<Endpoint>,
    /// Reads nothing and answers nothing.
    silent: Silent,
    detour: Detour,
}

impl Attacker {
    /// Prepares an attack on the server that has printed the plan's reference.
    pub(super) fn new(plan: &EndPlan) -> Result<Self, LaboratoryError> {
        let _ = raise_open_files();
        let absent = || refused("The reference")("a part of it is missing");
        let attack = plan.attack.ok_or_else(absent)?;
        let text = plan.reference.as_deref().unwrap_or_default();
        let parts: Vec<&str> = text.split(',').collect();
        let [low, channel, naming, shared] = match parts[..] {
            [root] if attack.is_on_names() => [root, root, root, ""],
            [_, low, channel, naming, shared] => [low, channel, naming, shared],
            _ => return Err(absent()),
        };
        let orb = Orb::builder().build().map_err(refused("The ORB"))?;
        let object = |text: &str| {
            let object = orb.string_to_object(text).map_err(refused("The reference"));
            object?.ok_or_else(absent)
        };
        let silent = Silent::start().map_err(refused("The silent server"))?;
        let profiles = (profile(low)?, profile(naming)?);
        let server = address(&profiles.1).map_err(refused("The reference"))?;
        let detour = Detour::start(server).map_err(refused("The relay"))?;
        let url = |number: u64| match attack {
            Attack::HostNames => Some(format!(
                "corbaloc::bench-{number}.invalid:2809/{NAME_SERVICE}"
            )),
            Attack::OutwardCalls | Attack::SilentContexts => Some(url_of(silent.port)),
            Attack::CircularContexts => Some(url_of(detour.port)),
            _ => None,
        };
        let root = object(naming)?;
        bind_names(&orb, root.clone(), url)?;
        Ok(Self {
            attack,
            low: profiles.0,
            naming: profiles.1,
            channel: object(channel)?,
            root,
            shared: shared.parse().ok(),
            silent,
            detour,
            orb,
        })
    }

    /// Attacks for the time of the command.
    pub(super) fn run(&self, command: &Command, samples: &mut Samples) -> Result<(), String> {
        let begin_ns = monotonic_ns();
        let until_ns = begin_ns + command.budget_ns;
        let steps = match self.attack {
            Attack::OutwardCalls | Attack::HostNames => self.resolve(until_ns)?,
            Attack::SilentConsumer => self.push_events(until_ns)?,
            Attack::Places => self.take_places(until_ns)?,
            Attack::Connections => self.connect(until_ns)?,
            Attack::UnfinishedMessages => self.send_unfinished(until_ns)?,
            Attack::SharedMemory => self.connect_shared(until_ns)?,
            Attack::Cancels => self.cancel(until_ns)?,
            // What counts is how many calls the service has made.
            Attack::SilentContexts => {
                self.resolve_at_a_rate(begin_ns, until_ns)?;
                self.silent.count()
            }
            Attack::CircularContexts => {
                self.detour.take_count();
                self.resolve_at_a_rate(begin_ns, until_ns)?;
                self.detour.take_count()
            }
        };
        self.silent.forget();
        if steps == 0 {
            return Err("the attack had no effect".to_owned());
        }
        samples.set_sum(steps, (monotonic_ns() - begin_ns).unsigned_abs());
        Ok(())
    }

    /// Resolves names of the naming service that lead out of it, and waits for no reply.
    fn resolve(&self, until_ns: i64) -> Result<u64, String> {
        let mut held = Held::of(OUTWARD_HELD);
        attack_until(until_ns, |step| {
            let name = [component(step % NAMES), component(0)];
            let message = request(&self.naming, "resolve", |w| name.to_vec().write(w))?;
            held.write(&self.naming, step, &message)
        })
    }

    /// The same at a rate, as patient peers do. In a circle, each name leads out of the service as often as it may.
    fn resolve_at_a_rate(&self, begin_ns: i64, until_ns: i64) -> Result<(), String> {
        let mut held = Held::of(OUTWARD_HELD);
        let mut due_ns = begin_ns;
        attack_until(until_ns, |step| {
            let (name, period_ns) = match self.attack {
                Attack::CircularContexts => (vec![component(0); COMPONENTS_MAX], CIRCLE_PERIOD_NS),
                _ => (
                    vec![component(step % NAMES), component(0)],
                    RESOLVE_PERIOD_NS,
                ),
            };
            let message = request(&self.naming, "resolve", |w| name.write(w))?;
            held.write(&self.naming, step, &message)?;
            due_ns += period_ns;
            sleep_until(due_ns.min(until_ns));
            Ok(())
        })?;
        Ok(())
    }

    /// Pushes large events to a channel whose only consumer reads nothing.
    fn push_events(&self, until_ns: i64) -> Result<u64, String> {
        let _consumed = self.consume(0)?;
        let supplied = self.supply()?;
        let event = Any::from_value(&vec![3_u8; EVENT_SIZE]).map_err(words)?;
        attack_until(until_ns, |_| supplied.push(&event).map_err(words))
    }

    /// Takes places of the channel and of the naming service in turn, and goes on where it has its share.
    fn take_places(&self, until_ns: i64) -> Result<u64, String> {
        let root = NamingContextRef::unchecked_narrow(self.root.clone());
        // A proxy that is dropped gives its place back.
        let (mut consumed, mut supplied) = (Vec::new(), Vec::new());
        let mut taken = 0;
        attack_until(until_ns, |step| {
            let is_taken = match step % 3 {
                0 => self.consume(step).map(|one| consumed.push(one)).is_ok(),
                1 => self.supply().map(|one| supplied.push(one)).is_ok(),
                _ => root.new_context().is_ok(),
            };
            taken += u64::from(is_taken);
            Ok(())
        })?;
        Ok(taken)
    }

    /// Connects a consumer that never answers; those with odd numbers are at host names without an address.
    fn consume(&self, number: u64) -> Result<Connected<cos::ProxyPushSupplierRef>, String> {
        let channel = cos::EventChannelRef::unchecked_narrow(self.channel.clone());
        let obtain = cos::ConsumerAdminRef::obtain_push_supplier;
        let consumed = Connected::obtain(channel.for_consumers(), obtain, END_PATIENCE);
        let consumed = consumed.map_err(words)?;
        let url = match number % 2 {
            0 => format!("corbaloc::127.0.0.1:{}/consumer", self.silent.port),
            _ => format!("corbaloc::bench-{number}.invalid:2809/consumer"),
        };
        let own = self.orb.string_to_object(&url).map_err(words)?;
        let own = own.map(PushConsumerRef::unchecked_narrow);
        consumed
            .connect_push_consumer(own.as_ref())
            .map_err(words)?;
        Ok(consumed)
    }

    /// Connects a supplier.
    fn supply(&self) -> Result<Connected<cos::ProxyPushConsumerRef>, String> {
        let channel = cos::EventChannelRef::unchecked_narrow(self.channel.clone());
        let obtain = cos::SupplierAdminRef::obtain_push_consumer;
        let supplied = Connected::obtain(channel.for_suppliers(), obtain, END_PATIENCE);
        let supplied = supplied.map_err(words)?;
        supplied.connect_push_supplier(None).map_err(words)?;
        Ok(supplied)
    }

    /// Takes places at the low lane's listener, each with a part of a request.
    fn connect(&self, until_ns: i64) -> Result<u64, String> {
        let message = request(&self.low, "ping", |_| Ok(()))?;
        let mut held = Held::of(ATTACKED_CONNECTIONS + ATTACKED_CONNECTIONS / 2);
        attack_until(until_ns, |step| {
            held.write(&self.low, step, &message[..HALF_HEADER])
        })
    }

    /// Sends requests of some megabytes without their last octet.
    fn send_unfinished(&self, until_ns: i64) -> Result<u64, String> {
        let argument = vec![7_u8; UNFINISHED_SIZE];
        let message = request(&self.low, "sink_octets", |w| argument.write(w))?;
        let mut held = Held::of(UNFINISHED_HELD);
        attack_until(until_ns, |step| {
            held.write(&self.low, step, &message[..message.len() - 1])
        })
    }

    /// Makes connections through shared memory that stay silent. All are dropped once no more is accepted.
    fn connect_shared(&self, until_ns: i64) -> Result<u64, String> {
        let endpoint = self.shared.as_ref().ok_or("no endpoint of shared memory")?;
        let transport = SocketTransport::default();
        let mut held = Vec::new();
        attack_until(until_ns, |_| {
            match transport.connect(endpoint, &StreamOptions::default(), None) {
                Ok(stream) if held.len() < SHARED_HELD => held.push(stream),
                _ => held.clear(),
            }
            Ok(())
        })
    }

    /// Sends the first fragment of a request, then CancelRequests for others.
    fn cancel(&self, until_ns: i64) -> Result<u64, String> {
        let mut message = request(&self.low, "sink_octets", |w| vec![7_u8; 1_024].write(w))?;
        // The flag for more fragments.
        message[6] |= 2;
        let mut id = 1_000;
        while message.len() < CANCELS_SIZE {
            write_cancel_request(&mut message, format(), id).map_err(words)?;
            id += 1;
        }
        let mut held = Held::of(CANCELS_HELD);
        attack_until(until_ns, |step| held.write(&self.low, step, &message))
    }
}

/// Connections of an attack; the oldest ends for the next.
struct Held {
    streams: Vec<StreamSocket>,
    count_max: usize,
}

impl Held {
    fn of(count_max: usize) -> Self {
        Self {
            streams: Vec::with_capacity(count_max),
            count_max,
        }
    }

    /// Connects from one of several addresses and writes as much as the server takes: it may close the connection
    /// early, or not accept it in time.
    fn write(&mut self, to: &IiopProfile, step: u64, octets: &[u8]) -> Result<(), String> {
        let place = usize::try_from(step).unwrap_or(0) % self.count_max;
        let to = address(to).map_err(words)?;
        let deadline_ns = (monotonic_ns() + WAIT_NS).unsigned_abs();
        let Ok(stream) = StreamSocket::connect_from(address_of(step), to, Some(deadline_ns)) else {
            return Ok(());
        };
        // A refused write is what an attack expects.
        let _ = stream.write_all(octets, Some(deadline_ns));
        match self.streams.get_mut(place) {
            Some(oldest) => *oldest = stream,
            None => self.streams.push(stream),
        }
        Ok(())
    }
}

/// A server that accepts connections, reads nothing and never answers.
struct Silent {
    port: u16,
    held: Arc<Mutex<Vec<TcpStream>>>,
}

impl Silent {
    fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let held = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&held);
        std::thread::Builder::new().spawn(move || {
            for stream in listener.incoming().flatten() {
                kept.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(stream);
            }
        })?;
        Ok(Self { port, held })
    }

    /// How many connections it holds.
    fn count(&self) -> u64 {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.len() as u64
    }

    /// Ends all connections.
    fn forget(&self) {
        self.held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

/// Repeats `step` with its number until the time is over. Returns how often.
fn attack_until(
    until_ns: i64,
    mut step: impl FnMut(u64) -> Result<(), String>,
) -> Result<u64, String> {
    let mut steps = 0;
    while monotonic_ns() < until_ns {
        step(steps)?;
        steps += 1;
    }
    Ok(steps)
}

/// Binds contexts that lead to the URLs of an attack.
fn bind_names(
    orb: &Orb,
    root: ObjectRef,
    url: impl Fn(u64) -> Option<String>,
) -> Result<(), LaboratoryError> {
    let root = NamingContextRef::unchecked_narrow(root);
    for number in 0..NAMES {
        let Some(url) = url(number) else {
            return Ok(());
        };
        let there = orb.string_to_object(&url).map_err(refused("The name"))?;
        let there = there.map(NamingContextRef::unchecked_narrow);
        root.bind_context(&[component(number)], there.as_ref())
            .map_err(refused("The naming service"))?;
    }
    Ok(())
}

fn url_of(port: u16) -> String {
    format!("corbaloc::127.0.0.1:{port}/{NAME_SERVICE}")
}

/// One of the addresses that connections come from.
fn address_of(step: u64) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2 + (step % ADDRESSES) as u8))
}

fn address(of: &IiopProfile) -> Result<SocketAddr, AddrParseError> {
    Ok(SocketAddr::new(of.host.parse()?, of.port))
}

fn component(number: u64) -> NameComponent {
    NameComponent {
        id: format!("name-{number}"),
        kind: String::new(),
    }
}

fn profile(reference: &str) -> Result<IiopProfile, LaboratoryError> {
    let ior: Ior = reference.parse().map_err(refused("The reference"))?;
    let profile = ior.iiop_profiles().flatten().next();
    profile.ok_or_else(|| refused("The reference")("it has no IIOP profile"))
}

/// A request.
fn request(
    to: &IiopProfile,
    operation: &str,
    arguments: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Result<Vec<u8>, String> {
    let mut buffer = Vec::new();
    let header = RequestHeader {
        id: 7,
        response: Response::Outcome,
        target: Target::Key(&to.object_key),
        operation,
        contexts: &[],
    };
    let open = header.begin(&mut buffer, format()).map_err(words)?;
    arguments(&mut open.writer(&mut buffer)).map_err(words)?;
    open.finish(&mut buffer).map_err(words)?;
    Ok(buffer)
}

fn format() -> Format {
    Format {
        size_max: usize::MAX,
        ..Format::default()
    }
}

/// Addresses of loopback that the connections come from.
const ADDRESSES: u64 = 8;
/// Names that lead out of the naming service.
const NAMES: u64 = 32;
/// Connections that wait for the reply of a name.
const OUTWARD_HELD: usize = 256;
/// A hundred names a second: all calls that a service makes wait within a fifth of a second.
const RESOLVE_PERIOD_NS: i64 = 10_000_000;
/// Ten names a second in a circle: some ten kilobytes, and twenty calls.
const CIRCLE_PERIOD_NS: i64 = 100_000_000;
/// Octets of an event.
const EVENT_SIZE: usize = 1 << 20;
/// Octets of a request that is not finished, nearly the largest message, and how many are held: more than the inbound
/// bound of a lane has room for.
const UNFINISHED_SIZE: usize = 15 << 20;
const UNFINISHED_HELD: usize = 32;
/// Octets of a request that are less than its header.
const HALF_HEADER: usize = 20;
/// Connections through shared memory, more than a lane accepts.
const SHARED_HELD: usize = 600;
/// Octets of CancelRequests behind a fragment, and connections that have them.
const CANCELS_SIZE: usize = 64 << 10;
const CANCELS_HELD: usize = 16;
/// How long a connection may wait for its server.
const WAIT_NS: i64 = 100_000_000;
