//! What is called: octets of a size, or sequences of structs that take as many; how often, and beside what.

use deckwatch_cdr::{BoundedString, Char, EncodeError, Write, Writer};
use deckwatch_giop::ior::IiopProfile;
use deckwatch_giop::{Format, Ior, ReplyHeader, ReplyStatus, RequestHeader, Response, Target};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::BenchError;
use super::idl::deckwatch::ComplexStruct;
use super::idl::deckwatch_bench::PlainStruct;

/// What is called, and with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// `sequence<octet>`, both ways.
    Octets,
    /// `sequence<ComplexStruct>`, of figure 7 of the submarine paper, both ways; each takes 40 octets.
    Structs,
    /// `sequence<octet>`, answered with nothing.
    SinkOctets,
    /// `sequence<ComplexStruct>`, answered with nothing.
    SinkStructs,
    /// `sequence<PlainStruct>`, whose CDR is its layout in memory, answered with nothing; each takes 40 octets.
    SinkPlain,
    /// `sequence<octet>` in one-way messages behind each other, until the server has counted them all.
    StreamOctets,
}

impl Operation {
    /// Every one.
    pub const ALL: [Self; 6] = [
        Self::Octets,
        Self::Structs,
        Self::SinkOctets,
        Self::SinkStructs,
        Self::SinkPlain,
        Self::StreamOctets,
    ];

    /// Its name in tables and commands.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Octets => "octets",
            Self::Structs => "structs",
            Self::SinkOctets => "sink-octets",
            Self::SinkStructs => "sink-structs",
            Self::SinkPlain => "sink-plain",
            Self::StreamOctets => "stream-octets",
        }
    }

    /// The operation of that name.
    pub(super) fn of_word(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.word() == word)
    }

    const fn idl_name(self) -> &'static str {
        match self {
            Self::Octets => "echo_octets",
            Self::Structs => "echo_complex_sequence",
            Self::SinkOctets => "sink_octets",
            Self::SinkStructs => "sink_complex_sequence",
            Self::SinkPlain => "sink_plain_sequence",
            Self::StreamOctets => "send_octets",
        }
    }

    const fn element_size(self) -> usize {
        match self {
            Self::Octets | Self::SinkOctets | Self::StreamOctets => 1,
            Self::Structs | Self::SinkStructs | Self::SinkPlain => STRUCT_SIZE,
        }
    }

    fn write(self, count: usize, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self {
            Self::Octets | Self::SinkOctets | Self::StreamOctets => vec![0_u8; count].write(w),
            Self::Structs | Self::SinkStructs => vec![element(); count].write(w),
            Self::SinkPlain => vec![plain(); count].write(w),
        }
    }

    const fn gives_back(self) -> bool {
        matches!(self, Self::Octets | Self::Structs)
    }
}

/// What a peer's runs are compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Beside {
    /// Raw TCP messages of the octets that our GIOP messages have.
    #[default]
    RawTcp,
    /// The same peer's calls with as many plain octets.
    Octets,
    /// The same peer's calls where one object is active alone.
    OneObject,
}

/// Octets of one struct of either kind on the wire, in a sequence.
pub(crate) const STRUCT_SIZE: usize = 40;

/// The element that is sent, as often as the size asks for.
pub(crate) fn element() -> ComplexStruct {
    ComplexStruct {
        s: 12,
        l: 34_567,
        f: 0.5,
        d: 2.25,
        c: Char(b'x'),
        name: BoundedString::try_from(NAME).unwrap_or_default(),
    }
}

/// Seven characters and their null bring an element to a multiple of eight octets.
const NAME: &str = "contact";

/// The same octets on the wire and in memory.
pub(super) const fn plain() -> PlainStruct {
    PlainStruct {
        x: 0.25,
        y: 0.5,
        z: 0.75,
        at: 1_234_567_890_123,
        track: 42,
        quality: 0.875,
    }
}

/// One operation at one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// What is called.
    pub kind: Operation,
    /// Octets of the payload, length field apart; of structs, the nearest whole number of them below.
    pub size: usize,
    /// From one call to the next, nanoseconds; none: as soon as the one before has its answer.
    pub period_ns: Option<u64>,
    /// What it is compared with.
    pub beside: Beside,
}

impl Case {
    /// Calls behind each other, beside raw TCP.
    #[must_use]
    pub const fn new(kind: Operation, size: usize) -> Self {
        Self {
            kind,
            size,
            period_ns: None,
            beside: Beside::RawTcp,
        }
    }

    /// The same, beside something else.
    #[must_use]
    pub const fn beside(self, beside: Beside) -> Self {
        Self { beside, ..self }
    }

    /// The same, one call each `period_ns` nanoseconds.
    #[must_use]
    pub const fn every(self, period_ns: u64) -> Self {
        let period_ns = Some(period_ns);
        Self { period_ns, ..self }
    }

    /// As many plain octets, answered with nothing.
    pub(super) fn as_octets(self) -> Self {
        Self {
            kind: Operation::SinkOctets,
            size: self.count() * self.kind.element_size(),
            ..self
        }
    }

    /// What is counted: octets or structs.
    #[must_use]
    pub fn count(self) -> usize {
        (self.size / self.kind.element_size()).max(1)
    }

    /// What it does is told by a rate, not by round trips.
    #[must_use]
    pub const fn is_stream(self) -> bool {
        matches!(self.kind, Operation::StreamOctets)
    }

    /// Octets of our request and of our reply on the wire, GIOP headers included: what raw TCP carries beside them. A one-way has no reply.
    ///
    /// # Errors
    /// [`BenchError::Reference`] where `reference` is none of our own.
    pub fn message_sizes(self, reference: &str) -> Result<(usize, usize), BenchError> {
        let there = |w: &mut Writer<'_>| self.kind.write(self.count(), w);
        let back = |w: &mut Writer<'_>| match self.kind.gives_back() {
            true => there(w),
            false => Ok(()),
        };
        let (there, back) = message_sizes(reference, self.kind.idl_name(), there, back)?;
        Ok((there, if self.is_stream() { 0 } else { back }))
    }
}

/// Octets on the wire of our request of `operation` with the arguments that `there` writes and of our reply with what `back` writes.
///
/// # Errors
/// [`BenchError::Reference`] where `reference` is none of our own.
pub(crate) fn message_sizes(
    reference: &str,
    operation: &str,
    there: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    back: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Result<(usize, usize), BenchError> {
    let unusable = |reason: &dyn std::fmt::Display| BenchError::Reference(reason.to_string());
    let ior: Ior = reference.parse().map_err(|error| unusable(&error))?;
    let profile: Option<IiopProfile> = ior.iiop_profiles().flatten().next();
    let key = profile
        .ok_or_else(|| unusable(&"it has no IIOP profile"))?
        .object_key;
    let format = Format {
        size_max: usize::MAX,
        ..Format::default()
    };
    let request = || {
        let mut buffer = Vec::new();
        let open = RequestHeader {
            id: 1,
            response: Response::Outcome,
            target: Target::Key(&key),
            operation,
            contexts: &[],
        }
        .begin(&mut buffer, format)?;
        there(&mut open.writer(&mut buffer))?;
        open.finish(&mut buffer).map(|_| buffer.len())
    };
    let reply = || {
        let mut buffer = Vec::new();
        let open = ReplyHeader {
            id: 1,
            status: ReplyStatus::NoException,
            contexts: &[],
        }
        .begin(&mut buffer, format)?;
        back(&mut open.writer(&mut buffer))?;
        open.finish(&mut buffer).map(|_| buffer.len())
    };
    let of = |error: EncodeError| unusable(&error);
    Ok((request().map_err(of)?, reply().map_err(of)?))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use deckwatch_orb::{Orb, OrbBuilder, Servant};

    use super::super::idl::deckwatch_bench::{BenchRef, BenchSkeleton};
    use super::super::mirror::Mirror;
    use super::*;

    /// Carries connections on to `address`, and counts what goes each way.
    fn relay(address: SocketAddr, counts: &Arc<[AtomicUsize; 2]>) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its number").port();
        let counts = Arc::clone(counts);
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let far = TcpStream::connect(address).expect("the server");
                let clones = (near.try_clone(), far.try_clone());
                let (near_back, far_back) = (clones.0.expect("same"), clones.1.expect("same"));
                let (there, back) = (Arc::clone(&counts), Arc::clone(&counts));
                std::thread::spawn(move || carry(far_back, near_back, &back[1]));
                std::thread::spawn(move || carry(near, far, &there[0]));
            }
        });
        port
    }

    fn carry(mut from: TcpStream, mut to: TcpStream, count: &AtomicUsize) {
        let mut octets = [0; 4_096];
        while let Ok(got @ 1..) = from.read(&mut octets) {
            // Counted before it is passed on: who has the reply finds all of it counted.
            count.fetch_add(got, Ordering::SeqCst);
            if to.write_all(&octets[..got]).is_err() {
                return;
            }
        }
    }

    #[test]
    fn raw_messages_have_the_sizes_that_ours_have_on_the_wire() {
        let server = Orb::builder()
            .listen("127.0.0.1:0")
            .and_then(OrbBuilder::build)
            .expect("a server");
        let servant: Arc<dyn Servant> = Arc::new(BenchSkeleton::new(Mirror::default()));
        let root = server.root_poa().expect("a root adapter");
        let reference = root.servant_to_reference(&servant).expect("a reference");
        root.the_poa_manager().activate().expect("active");
        let text = reference.to_string();
        let ior: Ior = text.parse().expect("our own");
        let mut profile: IiopProfile = ior.iiop_profiles().flatten().next().expect("IIOP");
        let counts = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        profile.port = relay(SocketAddr::from(([127, 0, 0, 1], profile.port)), &counts);
        profile.host = "127.0.0.1".to_owned();
        let through = Ior::with_iiop("", &profile).expect("fits").to_string();
        let client = Orb::builder().build().expect("a client");
        let object = client.string_to_object(&through).expect("sound");
        let echo = BenchRef::unchecked_narrow(object.expect("not nil"));
        // The first message of a connection says more than the others: code sets.
        echo.send_octets(&[]).expect("sent");
        while echo.calls().expect("answered") == 0 {}
        let counted = || [0, 1].map(|way: usize| counts[way].load(Ordering::SeqCst));
        for size in [64, 65, 71, 1_024, 65_536] {
            for kind in Operation::ALL {
                let case = Case::new(kind, size);
                let count = case.count();
                let before = counted();
                let called = match kind {
                    Operation::Octets => echo.echo_octets(&vec![1; count]).map(drop),
                    Operation::Structs => {
                        let data = vec![element(); count];
                        echo.echo_complex_sequence(&data).map(drop)
                    }
                    Operation::SinkOctets => echo.sink_octets(&vec![1; count]),
                    Operation::SinkStructs => echo.sink_complex_sequence(&vec![element(); count]),
                    Operation::SinkPlain => echo.sink_plain_sequence(&vec![plain(); count]),
                    Operation::StreamOctets => {
                        // A connection of its own, whose first message says more too.
                        let sent = || counted()[0] - before[0];
                        echo.send_octets(&vec![1; count]).expect("sent");
                        let (there, _) = case.message_sizes(&text).expect("our own");
                        let until = Instant::now() + Duration::from_secs(10);
                        while sent() < there && Instant::now() < until {
                            std::thread::yield_now();
                        }
                        assert_eq!(sent(), there, "{case:?}");
                        continue;
                    }
                };
                called.expect("answered");
                let after = counted();
                let sizes = case.message_sizes(&text).expect("our own");
                assert_eq!(
                    (after[0] - before[0], after[1] - before[1]),
                    sizes,
                    "{case:?}"
                );
            }
        }
        server.shutdown(true).expect("it ends");
    }

    #[test]
    fn structs_take_the_octets_that_are_said() {
        let size = |count: usize| {
            let mut buffer = Vec::new();
            vec![element(); count]
                .write(&mut Writer::new(&mut buffer))
                .expect("in bounds");
            buffer.len()
        };
        assert_eq!(size(11) - size(10), STRUCT_SIZE);
        let plain_size = |count: usize| {
            let mut buffer = Vec::new();
            vec![plain(); count]
                .write(&mut Writer::new(&mut buffer))
                .expect("in bounds");
            buffer.len()
        };
        assert_eq!(plain_size(11) - plain_size(10), STRUCT_SIZE);
        assert_eq!(size_of::<PlainStruct>(), STRUCT_SIZE);
        let case = Case::new(Operation::Structs, 65_536);
        assert_eq!((case.count(), case.as_octets().count()), (1_638, 65_520));
    }
}
