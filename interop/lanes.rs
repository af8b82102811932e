//! Real-time CORBA between this ORB and TAO, each as client and as server: lanes, priority models, bands.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::common::{Running, scratch, try_run};
use crate::echo;
use crate::gaps::gap;
use crate::tao::{Tao, real_time};
use crate::watched::Watched;
use deckwatch_orb::{
    Counter, ObjectRef, Orb, Policies, Priority, PriorityBand, PriorityBands, PriorityModel,
    PriorityModelPolicy, Protocol, ProtocolProperties, Protocols, Scheduling, Servant,
    SystemException, SystemExceptionKind as Kind, TcpProtocolProperties, ThreadpoolLane,
    protocol_type,
};
use witness::deckwatch::{Witness, WitnessRef, WitnessSkeleton};

#[allow(
    clippy::redundant_closure,
    reason = "what it suggests is not general enough over lifetimes"
)]
mod witness {
    include!(concat!(env!("OUT_DIR"), "/witness.rs"));
}

/// A witness that returns the priority and the name of its thread.
struct Watch(Orb);

impl Witness for Watch {
    fn served_at<'a>(&'a self) -> Result<(i16, Cow<'a, str>), SystemException> {
        let priority = self
            .0
            .rt_current()
            .the_priority()
            .map_or(-1, Priority::value);
        let thread = format!("{:?}", std::thread::current().id());
        Ok((priority, Cow::Owned(thread.replace(' ', ""))))
    }
}

const IDL: &str = "deckwatch/witness.idl";

/// The priorities of two lanes.
const USUAL: [i16; 2] = [5, 90];

fn priority(number: i16) -> Priority {
    Priority::new(number).expect("not negative")
}

fn propagated(number: i16) -> PriorityModelPolicy {
    PriorityModelPolicy {
        priority_model: PriorityModel::ClientPropagated,
        server_priority: priority(number),
    }
}

fn declared(number: i16) -> PriorityModelPolicy {
    PriorityModelPolicy {
        priority_model: PriorityModel::ServerDeclared,
        server_priority: priority(number),
    }
}

fn bands(list: &[(i16, i16)]) -> Policies {
    let band = |&(low, high): &(i16, i16)| PriorityBand {
        low: priority(low),
        high: priority(high),
    };
    let bands = PriorityBands::new(&list.iter().map(band).collect::<Vec<_>>());
    Policies {
        priority_bands: Some(bands.expect("in order")),
        ..Policies::default()
    }
}

/// A server of ours whose real-time threads run in the time-sharing class.
struct Ours {
    orb: Orb,
}

impl Ours {
    fn new() -> Self {
        Self::at(&["127.0.0.1:0"])
    }

    fn at(endpoints: &[&str]) -> Self {
        let mut builder = Orb::builder().scheduling(Scheduling::Other);
        for endpoint in endpoints {
            builder = builder.listen(endpoint).expect("an endpoint");
        }
        let orb = builder.build().expect("an ORB");
        let root = orb.root_poa().expect("it listens");
        root.the_poa_manager().activate().expect("a fresh manager");
        Self { orb }
    }

    /// A witness in an adapter with this priority model, with lanes or without.
    fn object(&self, model: PriorityModelPolicy, lanes: &[i16]) -> String {
        self.object_with(model, lanes, &Policies::default())
    }

    /// As `object`, with further policies.
    fn object_with(&self, model: PriorityModelPolicy, lanes: &[i16], more: &Policies) -> String {
        let servant = Arc::new(WitnessSkeleton::new(Watch(self.orb.clone())));
        self.serve(servant, model, lanes, more).to_string()
    }

    fn serve(
        &self,
        servant: Arc<dyn Servant>,
        model: PriorityModelPolicy,
        lanes: &[i16],
        more: &Policies,
    ) -> ObjectRef {
        let rt = self.orb.rt_orb();
        let lane = |number: &i16| ThreadpoolLane {
            lane_priority: priority(*number),
            static_threads: 1,
            dynamic_threads: 0,
        };
        let pool = if lanes.is_empty() {
            rt.create_threadpool(0, 1, 0, model.server_priority, None)
        } else {
            let lanes: Vec<_> = lanes.iter().map(lane).collect();
            rt.create_threadpool_with_lanes(0, &lanes, false, None)
        };
        let policies = Policies {
            threadpool: Some(pool.expect("the time-sharing class needs no permission")),
            priority_model: Some(model),
            ..*more
        };
        let root = self.orb.root_poa().expect("it listens");
        let poa = root.create_poa("lanes", Some(root.the_poa_manager()), &policies);
        let poa = poa.expect("policies that go together");
        let id = poa.activate_object(servant).expect("an id");
        poa.id_to_reference(&id).expect("it is active")
    }

    fn assert_nothing_was_forwarded(&self) {
        assert_eq!(self.orb.counters().read(Counter::LanesMissed), 0);
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.orb.shutdown(true); // The test may have shut it down.
    }
}

/// TAO's client with real-time CORBA, or a counted skip.
fn client() -> Option<PathBuf> {
    let tao = Tao::find()?;
    Some(tao.real_time_program("tao/lanes/client.cc", IDL))
}

/// The output of TAO's client for these arguments: for each, the priority and the serving thread, or the exception.
fn tao_calls(program: &Path, reference: &str, words: &[&str]) -> Vec<(String, String)> {
    let said = try_run(real_time(program).arg(reference).args(words));
    let said = said.unwrap_or_else(|said| panic!("TAO calls with {words:?}: {said}"));
    let line = |line: &str| {
        let (_, answer) = line.split_once(": ").expect("a word and an answer");
        match answer
            .strip_prefix("served at ")
            .and_then(|rest| rest.split_once(" by "))
        {
            Some((priority, thread)) => (priority.to_owned(), thread.to_owned()),
            None => (answer.to_owned(), String::new()),
        }
    };
    said.lines().map(line).collect()
}

/// The priorities at which the calls were served, or the exceptions.
fn seen(said: &[(String, String)]) -> Vec<&str> {
    said.iter().map(|(seen, _)| seen.as_str()).collect()
}

#[test]
fn a_tao_client_reaches_the_lane_of_its_priority_and_the_servant_sees_it() {
    let Some(client) = client() else { return };
    let ours = Ours::new();
    // The lane for callers without a priority is first in the reference, but not in the pool.
    let reference = ours.object(propagated(90), &USUAL);
    let said = tao_calls(&client, &reference, &["5", "90", "5", "90", "42"]);
    assert_eq!(seen(&said)[..4], ["5", "90", "5", "90"]);
    // For a priority without a lane, TAO finds no endpoint and sends no request.
    assert!(seen(&said)[4].starts_with("TRANSIENT"), "{said:?}");
    assert_eq!((&said[0].1, &said[1].1), (&said[2].1, &said[3].1));
    assert_ne!(said[0].1, said[1].1);
    ours.assert_nothing_was_forwarded();
}

#[test]
fn a_tao_client_is_served_at_the_priority_that_our_object_declares() {
    let Some(client) = client() else { return };
    for number in USUAL {
        let ours = Ours::new();
        let reference = ours.object(declared(number), &USUAL);
        let said = tao_calls(&client, &reference, &["-", "5", "90", "42"]);
        let declared = number.to_string();
        assert_eq!(seen(&said), [&declared; 4]);
        ours.assert_nothing_was_forwarded();
    }
}

#[test]
fn a_tao_client_of_our_pool_without_lanes_is_served_at_its_priority() {
    let Some(client) = client() else { return };
    let ours = Ours::new();
    let reference = ours.object(propagated(5), &[]);
    let said = tao_calls(&client, &reference, &["0", "77", "32767"]);
    assert_eq!(seen(&said), ["0", "77", "32767"]);
}

#[test]
fn bands_lead_a_tao_client_to_our_lane_in_them_whoever_says_them() {
    let Some(client) = client() else { return };
    let ours = Ours::new();
    let lanes = [10, 60];
    let told = bands(&[(0, 49), (50, 32_767)]);
    let told = ours.object_with(propagated(10), &lanes, &told);
    let said = tao_calls(&client, &told, &["3", "49", "50", "32767"]);
    assert_eq!(said[0].1, said[1].1);
    assert_eq!(said[2].1, said[3].1);
    assert_ne!(said[0].1, said[2].1, "{said:?}");
    let ours = Ours::new();
    let untold = ours.object(propagated(10), &lanes);
    let words = ["0-49", "50-99", "3", "49", "50", "100"];
    let said = tao_calls(&client, &untold, &words);
    assert_eq!(said[0].1, said[1].1);
    assert_ne!(said[0].1, said[2].1);
    assert!(seen(&said)[3].starts_with("INV_POLICY"), "{said:?}");
    ours.assert_nothing_was_forwarded();
}

#[test]
fn a_tao_client_reads_how_our_object_wants_to_be_asked_and_validates_its_connection() {
    let Some(client) = client() else { return };
    let ours = Ours::new();
    let tcp = TcpProtocolProperties::default();
    let protocols = Protocols::new(&[Protocol {
        protocol_type: protocol_type::TCP,
        properties: Some(ProtocolProperties::Tcp(tcp)),
    }]);
    let more = Policies {
        client_protocol: Some(protocols.expect("sound")),
        ..bands(&[(0, 32_767)])
    };
    let reference = ours.object_with(propagated(5), &USUAL, &more);
    let said = tao_calls(&client, &reference, &["90", "v"]);
    // In one band of all priorities, TAO takes the first lane.
    assert_eq!(seen(&said), ["5", "valid"]);
}

/// A URL has no lanes. The first call goes to the ORB's own endpoint, which forwards it with a reference that has them.
#[test]
fn a_tao_client_that_comes_by_a_url_is_sent_to_the_lanes() {
    let Some(client) = client() else { return };
    let by_url = |model| {
        let ours = Ours::new();
        let servant = Arc::new(WitnessSkeleton::new(Watch(ours.orb.clone())));
        let reference = ours.serve(servant, model, &USUAL, &Policies::default());
        ours.orb
            .register_plain_key(b"Watch", &reference)
            .expect("a fresh key");
        let endpoint = ours.orb.endpoints()[0].url_address();
        let url = format!("corbaloc:{endpoint}/Watch");
        let said = tao_calls(&client, &url, &["5", "90", "5"]);
        assert_ne!(ours.orb.counters().read(Counter::LanesMissed), 0);
        said
    };
    assert_eq!(seen(&by_url(declared(90))), ["90"; 3]);
    let said = by_url(propagated(5));
    assert_eq!((seen(&said)[0], seen(&said)[2]), ("5", "5"));
    let outcome = if seen(&said)[1] == "90" {
        Ok(())
    } else {
        Err(said)
    };
    gap("tao-policies-of-forwards", &outcome);
}

#[test]
fn a_tao_client_finds_the_lanes_of_a_server_with_several_addresses() {
    let Some(client) = client() else { return };
    let folder = scratch("tao-addresses");
    let path = format!("unix:{}", folder.join("lanes").display());
    let ours = Ours::at(&["127.0.0.1:0", "127.0.0.2:0", &path]);
    let reference = ours.object(propagated(5), &USUAL);
    let said = tao_calls(&client, &reference, &["90", "5", "v"]);
    assert_eq!(seen(&said), ["90", "5", "valid"]);
    drop(ours);
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

/// Our client calls at these priorities, or without a priority.
fn we_call(reference: &str, numbers: &[Option<i16>]) -> Vec<Result<(i16, String), Kind>> {
    let builder = Orb::builder().scheduling(Scheduling::Other);
    let caller = builder.build().expect("a client needs nothing");
    let object = caller.string_to_object(reference);
    let object = object.expect("a reference").expect("not nil");
    let witness = WitnessRef::unchecked_narrow(object);
    let call = |number: &Option<i16>| {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                if let Some(number) = number {
                    let set = caller.rt_current().set_the_priority(priority(*number));
                    set.expect("the time-sharing class needs no permission");
                }
                witness.served_at().map_err(|exception| exception.kind)
            });
            thread.join().expect("it ends")
        })
    };
    let said = numbers.iter().map(call).collect();
    caller.shutdown(true).expect("it ends");
    said
}

/// TAO's server, and its reference.
fn tao_serves(tao: &Tao, words: &[&str]) -> (Running, String) {
    let program = tao.real_time_program("tao/lanes/server.cc", IDL);
    let mut process = Running::start(
        real_time(&program)
            .args([
                "-ORBListenEndpoints",
                "iiop://127.0.0.1:0",
                "-ORBLaneListenEndpoints",
                "*:*",
                "iiop://127.0.0.1:0",
            ])
            .args(words),
    );
    let reference = process.line_with("IOR:");
    (process, reference)
}

#[test]
fn our_client_reaches_taos_lane_of_its_priority_and_taos_servant_sees_it() {
    let Some(tao) = Tao::find() else { return };
    let (_process, reference) = tao_serves(&tao, &["propagated", "5", "5", "90"]);
    let said = we_call(
        &reference,
        &[Some(5), Some(90), Some(5), Some(90), None, Some(42)],
    );
    let lane = |index: usize| said[index].clone().expect("a lane");
    let numbers: Vec<i16> = (0..5).map(|index| lane(index).0).collect();
    assert_eq!(numbers, [5, 90, 5, 90, 5]);
    assert_eq!((lane(0), lane(1)), (lane(2), lane(3)));
    assert_ne!(lane(0).1, lane(1).1);
    assert_eq!(said[5], Err(Kind::InvPolicy));
}

#[test]
fn tao_reads_the_priority_that_our_requests_say() {
    let Some(tao) = Tao::find() else { return };
    let (_process, reference) = tao_serves(&tao, &["propagated", "7"]);
    let said = we_call(&reference, &[Some(0), Some(77), Some(32_767), None]);
    let numbers: Vec<_> = said
        .into_iter()
        .map(|said| said.map(|(seen, _)| seen))
        .collect();
    assert_eq!(numbers, [Ok(0), Ok(77), Ok(32_767), Ok(7)]);
}

#[test]
fn an_object_of_tao_that_declares_its_priority_is_served_by_that_lane() {
    let Some(tao) = Tao::find() else { return };
    let (_process, reference) = tao_serves(&tao, &["declared", "90", "5", "90"]);
    for said in we_call(&reference, &[None, Some(5), Some(90), Some(42)]) {
        assert_eq!(said.map(|(seen, _)| seen), Ok(90));
    }
}

#[test]
fn bands_that_tao_tells_lead_us_to_its_lanes() {
    let Some(tao) = Tao::find() else { return };
    let words = ["propagated", "10", "10", "60", "0-49", "50-32767", "tcp"];
    let (_process, reference) = tao_serves(&tao, &words);
    let said = we_call(&reference, &[Some(3), Some(49), Some(50), Some(32_767)]);
    let seen: Vec<_> = said
        .iter()
        .map(|said| said.as_ref().map(|(seen, _)| *seen))
        .collect();
    assert_eq!(seen, [Ok(10), Ok(10), Ok(60), Ok(60)]);
}

#[test]
fn a_tao_without_real_time_and_we_call_each_other() {
    let Some(tao) = Tao::find() else { return };
    let client = tao.plain_program("omniorb/echo/client.cc", "deckwatch/echo.idl");
    let server = tao.plain_program("omniorb/echo/server.cc", "deckwatch/echo.idl");
    let ours = Ours::new();
    let reference = echo::activate(&ours.orb).expect("an echo object");
    let url = format!("corbaloc:{}/Echo", ours.orb.endpoints()[0].url_address());
    for target in [&reference.to_string(), &url] {
        try_run(Command::new(&client).args([target, "2000"]))
            .unwrap_or_else(|said| panic!("TAO calls us: {said}"));
    }
    let mut process =
        Running::start(Command::new(&server).args(["-ORBListenEndpoints", "iiop://127.0.0.1:0"]));
    let theirs = process.line_with("IOR:");
    let caller = Orb::builder().build().expect("an ORB");
    echo::call(&caller, &theirs, 2_000).expect("we call TAO");
    caller.shutdown(true).expect("it ends");
}

/// Both sides support ISO 8859-1 and UTF-8. TAO, whose native code set is the former, converts UTF-8 wrongly when it
/// reads, and chooses UTF-8 when it calls.
#[test]
fn letters_beyond_ascii_go_to_tao_and_come_back() {
    let Some(tao) = Tao::find() else { return };
    let server = tao.plain_program("omniorb/echo/server.cc", "deckwatch/echo.idl");
    let mut process =
        Running::start(Command::new(&server).args(["-ORBListenEndpoints", "iiop://127.0.0.1:0"]));
    let theirs = process.line_with("IOR:");
    let caller = Orb::builder().build().expect("an ORB");
    let object = caller.string_to_object(&theirs).expect("a reference");
    let echo = echo::mirror::EchoRef::unchecked_narrow(object.expect("not nil"));
    assert_eq!(echo.echo_string("Grüße").as_deref(), Ok("Grüße"));
    // TAO has no such letter, and ISO 8859-1 does not have it either.
    let anchor = echo.echo_string("\u{2693}");
    assert_eq!(anchor.map_err(|e| e.kind), Err(Kind::DataConversion));
    caller.shutdown(true).expect("it ends");
    let client = tao.plain_program("tao/text/caller.cc", "deckwatch/echo.idl");
    let ours = Ours::new();
    let reference = echo::activate(&ours.orb).expect("an echo object");
    let called = |options: &[&str]| {
        let reference = reference.to_string();
        try_run(Command::new(&client).args(options).arg(reference))
    };
    gap("tao-reads-utf-8", &called(&[]));
    called(&["-ORBNegotiateCodesets", "0"]).expect("without a choice it is ISO 8859-1");
}

/// Without real-time CORBA, TAO does not use the lanes in a reference. It calls the lane of the server's priority or of
/// the object's. With a URL, it is forwarded there.
#[test]
fn a_tao_without_real_time_calls_objects_that_our_lanes_serve() {
    let Some(tao) = Tao::find() else { return };
    let client = tao.plain_program("omniorb/echo/client.cc", "deckwatch/echo.idl");
    let call = |reference: &str| {
        try_run(Command::new(&client).args([reference, "20"]))
            .unwrap_or_else(|said| panic!("TAO calls us: {said}"))
    };
    for model in [propagated(90), declared(90)] {
        let ours = Ours::new();
        let watched = Watched::new(&ours.orb, echo::servant());
        let reference = ours.serve(watched.clone(), model, &USUAL, &Policies::default());
        call(&reference.to_string());
        assert_eq!(watched.take(), [90], "{model:?}");
        ours.assert_nothing_was_forwarded();
        ours.orb
            .register_plain_key(b"Watch", &reference)
            .expect("a fresh key");
        call(&format!(
            "corbaloc:{}/Watch",
            ours.orb.endpoints()[0].url_address()
        ));
        let forwards = ours.orb.counters().read(Counter::LanesMissed);
        assert_ne!(forwards, 0, "{model:?}");
        assert_eq!(watched.take(), [90], "{model:?}");
    }
}
