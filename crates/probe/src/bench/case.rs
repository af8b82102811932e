//! The calls of a bench: octets or structs of a size, with a period, and their baseline.

use deckwatch_cdr::{Any, EncodeError, Write, Writer};
use deckwatch_event::RtecEventData;
use deckwatch_event::rtec_event_comm::{Event, EventHeader};
use deckwatch_giop::Ior;
use deckwatch_orb::cos_naming::NameComponent;

use super::attack::Attack;
use super::kind;
use crate::laboratory::LaboratoryError;
use crate::laboratory::payload::{STRUCT_SIZE, element, message_sizes, plain};

/// The operation of a call and the type of its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `sequence<octet>`, there and back.
    Octets,
    /// `sequence<ComplexStruct>`, from figure 7 of the submarine paper, there and back; each takes 40 octets.
    Structs,
    /// `sequence<octet>`, with an empty reply.
    SinkOctets,
    /// `sequence<ComplexStruct>`, with an empty reply.
    SinkStructs,
    /// `sequence<PlainStruct>`, whose CDR is its layout in memory, with an empty reply; each takes 40 octets.
    SinkPlain,
    /// `sequence<octet>` in one-way messages without pause, until the server has counted them all.
    StreamOctets,
    /// `resolve` of a naming service, of a name of one component, whose id has so many octets.
    Resolve,
    /// An event with a `sequence<octet>` to a number of consumers, pushed once all have received the one before.
    Push,
    /// The same without pause.
    PushStream,
    /// As [`Self::Push`], over a real-time channel: the octets are the payload.
    RtPush,
    /// The same without pause.
    RtPushStream,
}

impl Operation {
    /// All operations of calls to the objects of the bench.
    pub const ALL: [Self; 6] = [
        Self::Octets,
        Self::Structs,
        Self::SinkOctets,
        Self::SinkStructs,
        Self::SinkPlain,
        Self::StreamOctets,
    ];

    /// The article and the word for an event of this operation.
    pub(super) const fn an_event(self) -> &'static str {
        match self {
            Self::RtPush | Self::RtPushStream => "a real-time event",
            _ => "an event",
        }
    }

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
            Self::Resolve => "resolve",
            Self::Push => "push",
            Self::PushStream => "push-stream",
            Self::RtPush => "rt-push",
            Self::RtPushStream => "rt-push-stream",
        }
    }

    /// The operation of that name.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .chain([Self::Resolve])
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
            Self::Resolve => "resolve",
            Self::Push | Self::PushStream | Self::RtPush | Self::RtPushStream => "push",
        }
    }

    const fn element_size(self) -> usize {
        match self {
            Self::Octets
            | Self::SinkOctets
            | Self::StreamOctets
            | Self::Resolve
            | Self::Push
            | Self::PushStream
            | Self::RtPush
            | Self::RtPushStream => 1,
            Self::Structs | Self::SinkStructs | Self::SinkPlain => STRUCT_SIZE,
        }
    }

    fn write(self, count: usize, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self {
            Self::Octets | Self::SinkOctets | Self::StreamOctets => vec![0_u8; count].write(w),
            Self::Structs | Self::SinkStructs => vec![element(); count].write(w),
            Self::SinkPlain => vec![plain(); count].write(w),
            Self::Resolve => vec![resolved_name(count)].write(w),
            Self::Push | Self::PushStream => Any::from_value(&vec![0_u8; count])?.write(w),
            Self::RtPush | Self::RtPushStream => vec![real_time_event(0, count)].write(w),
        }
    }

    /// Writes the result of a call to the object that `reference` leads to.
    fn write_result(
        self,
        count: usize,
        reference: &str,
        w: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        match self {
            Self::Octets | Self::Structs => self.write(count, w),
            // The root context is bound to the name.
            Self::Resolve => reference.parse().unwrap_or_else(|_| Ior::nil()).write(w),
            _ => Ok(()),
        }
    }
}

/// The name that clients of a naming service resolve.
pub(crate) fn resolved_name(id_len: usize) -> NameComponent {
    NameComponent {
        id: "n".repeat(id_len),
        kind: String::new(),
    }
}

/// An event of a real-time channel with this payload.
pub(crate) fn real_time_event(event_type: i32, payload: usize) -> Event {
    Event {
        header: EventHeader {
            r#type: event_type,
            source: 1,
            ttl: 1,
            ..EventHeader::default()
        },
        data: RtecEventData {
            payload: vec![3; payload],
            ..RtecEventData::default()
        },
    }
}

/// The baseline of a system's runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beside {
    /// Raw TCP messages with the octets of our GIOP messages. The send buffers are those of the system.
    #[default]
    RawTcp,
    /// The same with the buffers that the kernel chooses.
    UntunedRawTcp,
    /// The same system's calls with as many plain octets.
    Octets,
    /// The same system's calls to a server with one object.
    OneObject,
    /// The same system's calls over plain TCP.
    PlainCalls,
    /// The same calls to a server that nobody attacks.
    NoAttack(Attack),
    /// The same system's events without consumers of other events.
    NoOthers,
    /// The same system's events without a load of low priority.
    NoLoad,
}

/// The consumers of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumers {
    /// Their number; 0 for calls.
    pub count: u16,
    /// Each has an endpoint and a thread of its own; else all are of one ORB.
    pub are_apart: bool,
}

impl Consumers {
    /// No consumers: calls.
    const NONE: Self = Self::together(0);

    /// Consumers of one ORB.
    #[must_use]
    pub const fn together(count: u16) -> Self {
        Self {
            count,
            are_apart: false,
        }
    }

    /// Consumers that have an ORB each.
    #[must_use]
    pub const fn apart(count: u16) -> Self {
        Self {
            count,
            are_apart: true,
        }
    }

    /// In words, to be appended to a name.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self { count: 0, .. } => String::new(),
            Self { count: 1, .. } => " to one consumer".to_owned(),
            Self {
                count,
                are_apart: true,
            } => format!(" to {count} consumers, an endpoint each"),
            Self { count, .. } => format!(" to {count} consumers at one endpoint"),
        }
    }
}

/// One operation at one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The operation.
    pub operation: Operation,
    /// Octets of the payload without the length field. Structs are rounded down to a whole number.
    pub size: usize,
    /// Nanoseconds from one call to the next. Without a period, a call starts at the reply of the one before.
    pub period_ns: Option<u64>,
    /// The baseline.
    pub beside: Beside,
    /// The consumers of events.
    pub consumers: Consumers,
}

impl Case {
    /// Calls without pause, beside raw TCP.
    #[must_use]
    pub const fn new(operation: Operation, size: usize) -> Self {
        Self {
            operation,
            size,
            period_ns: None,
            beside: Beside::RawTcp,
            consumers: Consumers::NONE,
        }
    }

    /// Events of `size` octets to `consumers`.
    #[must_use]
    pub const fn push(operation: Operation, size: usize, consumers: Consumers) -> Self {
        Self {
            consumers,
            ..Self::new(operation, size)
        }
    }

    /// The same with another baseline.
    #[must_use]
    pub const fn beside(self, beside: Beside) -> Self {
        Self { beside, ..self }
    }

    /// The same with one call each `period_ns` nanoseconds.
    #[must_use]
    pub const fn every(self, period_ns: u64) -> Self {
        let period_ns = Some(period_ns);
        Self { period_ns, ..self }
    }

    /// A call of the high lane, or of the naming service, under an attack, beside one to a server that nobody attacks.
    #[must_use]
    pub const fn under(attack: Attack) -> Self {
        let call = if attack.is_on_names() {
            kind::RESOLVE
        } else {
            kind::SMALL
        };
        call.every(kind::PRIORITY_PERIOD_NS)
            .beside(Beside::NoAttack(attack))
    }

    /// As many plain octets, with an empty reply.
    pub(super) fn as_octets(self) -> Self {
        Self {
            operation: Operation::SinkOctets,
            size: self.count() * self.operation.element_size(),
            ..self
        }
    }

    /// The operation and the baseline, in words.
    #[must_use]
    pub fn words(self) -> String {
        let beside = match self.beside {
            Beside::RawTcp => "",
            Beside::UntunedRawTcp => " beside untuned raw TCP",
            Beside::Octets => " beside octets",
            Beside::OneObject => ", many objects",
            Beside::PlainCalls => " beside plain calls",
            Beside::NoAttack(attack) => {
                return format!("{}, under {}", self.operation.word(), attack.word());
            }
            Beside::NoOthers => ", consumers of other events",
            Beside::NoLoad => ", a load of low priority",
        };
        format!(
            "{}{}{beside}",
            self.operation.word(),
            self.consumers.words()
        )
    }

    /// The number of octets or structs.
    #[must_use]
    pub fn count(self) -> usize {
        (self.size / self.operation.element_size()).max(1)
    }

    /// Its result is a rate, not round trips.
    #[must_use]
    pub const fn is_stream(self) -> bool {
        matches!(
            self.operation,
            Operation::StreamOctets | Operation::PushStream | Operation::RtPushStream
        )
    }

    /// It is about events: a raw fan-out has no replies.
    #[must_use]
    pub const fn is_push(self) -> bool {
        self.consumers.count > 0
    }

    /// The kind of a client's command: the operation, and the consumers of events.
    pub(super) fn command(self) -> String {
        let Consumers { count, are_apart } = self.consumers;
        let word = self.operation.word();
        match (count, are_apart) {
            (0, _) => word.to_owned(),
            (_, true) => format!("{word}/{count}/apart"),
            (_, false) => format!("{word}/{count}/together"),
        }
    }

    /// Octets of our request and of our reply on the wire, with GIOP headers. Raw TCP sends as many. A one-way has no
    /// reply.
    ///
    /// # Errors
    /// [`LaboratoryError::Reference`]: `reference` is not one of our own.
    pub fn message_sizes(self, reference: &str) -> Result<(usize, usize), LaboratoryError> {
        let there = |w: &mut Writer<'_>| self.operation.write(self.count(), w);
        let back = |w: &mut Writer<'_>| self.operation.write_result(self.count(), reference, w);
        let (there, back) = message_sizes(reference, self.operation.idl_name(), there, back)?;
        let has_reply = !self.is_stream() && !self.is_push();
        Ok((there, if has_reply { back } else { 0 }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use deckwatch_giop::ior::IiopProfile;
    use deckwatch_orb::{Orb, OrbBuilder, Servant};

    use super::*;
    use crate::laboratory::end::servant;
    use crate::laboratory::idl::deckwatch_bench::BenchRef;

    /// Relays connections to `address`, and counts the octets of each direction.
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
            // Counted before it is sent: a client that has the reply finds all of it counted.
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
        let servant: Arc<dyn Servant> = servant::of_bench();
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
        // The first message of a connection has a service context more than the others: code sets.
        echo.send_octets(&[]).expect("sent");
        while echo.calls().expect("answered") == 0 {}
        let counted = || [0, 1].map(|way: usize| counts[way].load(Ordering::SeqCst));
        for size in [64, 65, 71, 1_024, 65_536] {
            for operation in Operation::ALL {
                let case = Case::new(operation, size);
                let count = case.count();
                let before = counted();
                let called = match operation {
                    Operation::Octets => echo.echo_octets(&vec![1; count]).map(drop),
                    Operation::Structs => {
                        let data = vec![element(); count];
                        echo.echo_complex_sequence(&data).map(drop)
                    }
                    Operation::SinkOctets => echo.sink_octets(&vec![1; count]),
                    Operation::SinkStructs => echo.sink_complex_sequence(&vec![element(); count]),
                    Operation::SinkPlain => echo.sink_plain_sequence(&vec![plain(); count]),
                    Operation::Resolve
                    | Operation::Push
                    | Operation::PushStream
                    | Operation::RtPush
                    | Operation::RtPushStream => panic!("no call"),
                    Operation::StreamOctets => {
                        // The connection for one-ways is another; its first message has the code sets too.
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
    fn a_push_takes_its_event_on_the_wire_and_no_reply() {
        let key = IiopProfile::new("127.0.0.1", 1, &[7; 20]);
        let reference = Ior::with_iiop("", &key).expect("fits").to_string();
        let of = |size| {
            let case = Case::push(Operation::Push, size, Consumers::apart(35));
            case.message_sizes(&reference).expect("our own")
        };
        let (small, large) = (of(0), of(384));
        assert_eq!((small.1, large.1), (0, 0));
        assert_eq!(large.0 - small.0, 384 - 1);
    }

    #[test]
    fn as_many_octets_as_structs_take_are_called() {
        let case = Case::new(Operation::Structs, 65_536);
        assert_eq!((case.count(), case.as_octets().count()), (1_638, 65_520));
    }

    #[test]
    fn an_operation_of_calls_is_known_by_its_word() {
        for operation in Operation::ALL.into_iter().chain([Operation::Resolve]) {
            assert_eq!(Operation::of_word(operation.word()), Some(operation));
        }
        for other in ["", "octet", Operation::Push.word()] {
            assert_eq!(Operation::of_word(other), None, "{other}");
        }
    }

    #[test]
    fn a_resolve_takes_its_name_there_and_a_reference_back() {
        let sizes = |key_len: usize, id_len: usize| {
            let key = IiopProfile::new("127.0.0.1", 1, &vec![7; key_len]);
            let reference = Ior::with_iiop("", &key).expect("fits").to_string();
            let case = Case::new(Operation::Resolve, id_len);
            case.message_sizes(&reference).expect("our own")
        };
        let (there, back) = sizes(20, 16);
        assert_eq!(sizes(20, 32), (there + 16, back));
        assert_eq!(sizes(36, 16), (there + 16, back + 16));
        let name = resolved_name(3);
        assert_eq!((name.id.as_str(), name.kind.as_str()), ("nnn", ""));
    }

    #[test]
    fn a_real_time_event_has_its_type_one_hop_and_its_payload() {
        let Event { header, data } = real_time_event(7, 5);
        assert_eq!((header.r#type, header.source, header.ttl), (7, 1, 1));
        assert_eq!(data.payload, [3; 5]);
    }

    #[test]
    fn words_name_the_operation_its_consumers_and_what_it_is_beside() {
        let call = Case::new(Operation::Octets, 64);
        assert_eq!(call.words(), "octets");
        let attack = Attack::ALL[0];
        for (beside, words) in [
            (Beside::UntunedRawTcp, "octets beside untuned raw TCP"),
            (Beside::Octets, "octets beside octets"),
            (Beside::OneObject, "octets, many objects"),
            (Beside::PlainCalls, "octets beside plain calls"),
            (Beside::NoOthers, "octets, consumers of other events"),
            (Beside::NoLoad, "octets, a load of low priority"),
            (
                Beside::NoAttack(attack),
                &format!("octets, under {}", attack.word()),
            ),
        ] {
            assert_eq!(call.beside(beside).words(), words);
        }
        let push = |consumers| Case::push(Operation::Push, 384, consumers);
        for (consumers, words, command) in [
            (
                Consumers::together(1),
                "push to one consumer",
                "push/1/together",
            ),
            (
                Consumers::together(35),
                "push to 35 consumers at one endpoint",
                "push/35/together",
            ),
            (
                Consumers::apart(35),
                "push to 35 consumers, an endpoint each",
                "push/35/apart",
            ),
        ] {
            let case = push(consumers);
            assert_eq!(
                (case.words(), case.command()),
                (words.to_owned(), command.to_owned())
            );
            assert!(case.is_push() && !call.is_push());
        }
        assert_eq!(call.command(), "octets");
    }

    #[test]
    fn calls_under_an_attack_come_at_the_period_of_a_high_lane() {
        for attack in Attack::ALL {
            let case = Case::under(attack);
            assert_eq!(case.period_ns, Some(kind::PRIORITY_PERIOD_NS));
        }
    }

    #[test]
    fn only_one_ways_and_pushes_without_pause_are_streams() {
        let streams = [
            Operation::StreamOctets,
            Operation::PushStream,
            Operation::RtPushStream,
        ];
        let others = [Operation::Push, Operation::RtPush, Operation::Resolve];
        for operation in Operation::ALL.into_iter().chain(streams).chain(others) {
            let is_stream = streams.contains(&operation);
            assert_eq!(
                Case::new(operation, 64).is_stream(),
                is_stream,
                "{operation:?}"
            );
        }
    }
}
