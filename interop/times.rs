//! End times of requests between this ORB and JacORB, each as client and as server. One clock is wrong by an hour, so
//! that a request that is sent in time arrives too late by the other clock.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::around::Around;
use crate::common::{Running, free_port, try_run};
use crate::jacorb::jacorb_program;
use deckwatch_orb::{
    Counter, Orb, Policy, Servant, ServerRequest, SetOverrideType, SystemException,
    SystemExceptionKind as Kind, UtcT,
};

const HOUR: Duration = Duration::from_secs(3_600);
const MINUTES: Duration = Duration::from_secs(600);

/// A servant without operations; clients only call `_non_existent`.
struct Nothing;

impl Servant for Nothing {
    fn repository_ids(&self) -> &'static [&'static str] {
        &["IDL:deckwatch.test/Nothing:1.0"]
    }

    fn dispatch(&self, _: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        Ok(())
    }
}

/// An ORB whose clock is ahead by this many seconds and has a bound of zero.
fn wrong_by(ahead_s: i64) -> Orb {
    let transport = Around::with_utc_ahead(ahead_s * 1_000_000_000);
    let builder = Orb::builder().transport(Arc::new(transport));
    let builder = builder.clock_bound(Duration::ZERO);
    let builder = builder.listen("127.0.0.1:0").expect("an endpoint");
    builder.build().expect("an ORB")
}

#[test]
fn the_end_times_of_jacorb_are_kept_and_those_that_have_passed_by_our_clock_are_timeout() {
    let Some(program) = jacorb_program("deckwatch/types.idl") else {
        return;
    };
    for (ahead_s, told, dropped) in [(0, "answered", 0), (3_600, "TIMEOUT", 2)] {
        let orb = wrong_by(ahead_s);
        let root = orb.root_poa().expect("it listens");
        root.the_poa_manager().activate().expect("a fresh manager");
        let servant: Arc<dyn Servant> = Arc::new(Nothing);
        let reference = root.servant_to_reference(&servant);
        let reference = reference.expect("implicit activation").to_string();
        let mut client = program.command();
        let said = try_run(client.args(["times", &reference])).expect("it ends well");
        for kind in [28, 30] {
            let line = format!("times {kind} ");
            let line = said.lines().find_map(|said| said.strip_prefix(&line));
            let (end, came) = line.and_then(|line| line.split_once(' ')).expect("a line");
            assert_eq!(came, told, "{ahead_s} {kind}: {said}");
            // JacORB's time ten minutes from now is the same time here.
            let end = UtcT::new(end.parse().expect("a number"), 0, 0).unix_ns();
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let ahead = Duration::from_nanos(end).saturating_sub(now.expect("later"));
            assert!(ahead > MINUTES / 2 && ahead <= MINUTES, "{ahead:?}");
        }
        let counters = orb.counters();
        assert_eq!(counters.read(Counter::RequestsDropped), dropped);
        assert_eq!(counters.read(Counter::TimesIgnored), 0);
        orb.shutdown(true).expect("it ends");
    }
}

#[test]
fn jacorb_keeps_our_end_times_and_drops_what_has_passed_by_its_clock() {
    let Some(program) = jacorb_program("deckwatch/types.idl") else {
        return;
    };
    let mut command = program.command();
    let ports = [0, 1, 2].map(|_| free_port().to_string());
    let mut server = Running::start(command.arg("server").args(ports));
    let references = [0, 1, 2].map(|_| server.line_with("IOR:"));
    // By this ORB's clock, the end time was an hour ago.
    let orb = wrong_by(-3_600);
    let object = orb.string_to_object(&references[2]);
    let object = object.expect("a reference").expect("not nil");
    let ends_at = |end: SystemTime| {
        let policy = Policy::RequestEndTime(end.into());
        let how = SetOverrideType::AddOverride;
        let object = object.set_policy_overrides(&[policy], how);
        object.expect("one policy").non_existent()
    };
    let now = SystemTime::now();
    assert_eq!(ends_at(now + HOUR), Ok(false));
    let raised = ends_at(now - MINUTES).expect_err("it has passed there");
    assert_eq!(raised.kind, Kind::Timeout, "{raised}");
    assert_eq!(orb.counters().read(Counter::RequestsPastEnd), 0);
    orb.shutdown(true).expect("it ends");
}
