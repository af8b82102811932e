//! Start and end times of requests and replies in virtual time, where "too late" and "not yet" are exact.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::world::{BEGUN_UTC_NS, World};
use crate::support::{Bench, call, note, seen_by};
use deckwatch_dynamic::Poller;
use deckwatch_orb::transport::Transport;
use deckwatch_orb::{
    Completion, Counter, Deliver, ObjectRef, Orb, Policy, Servant, SetOverrideType, SyncScope,
    SystemException, SystemExceptionKind as Kind, UtcT, limits, own_minor,
};

const LATENCY_NS: u64 = 250_000;
const EXACT: Duration = Duration::ZERO;

struct Pair {
    world: World,
    client: Orb,
    server: Orb,
    bench: Arc<Bench>,
    object: ObjectRef,
}

impl Pair {
    /// `bounds`: the known clock bounds of client and server; `ahead_ns`: how far the server's clock is ahead.
    fn new(bounds: [Option<Duration>; 2], ahead_ns: i64) -> Self {
        let world = World::new(1, (LATENCY_NS, LATENCY_NS));
        let orb = |world: &World, host, bound: Option<Duration>| {
            world.orb_with(host, |builder| match bound {
                Some(bound) => builder.clock_bound(bound),
                None => builder,
            })
        };
        let client = orb(&world, "client", bounds[0]);
        let server = orb(&world.with_clock_ahead(ahead_ns), "server", bounds[1]);
        let root = server.root_poa().unwrap();
        root.the_poa_manager().activate().unwrap();
        let bench = Arc::new(Bench::default());
        let servant: Arc<dyn Servant> = bench.clone();
        let object = seen_by(&client, &root.servant_to_reference(&servant).unwrap());
        // Opens the connection before any time is measured.
        assert_eq!(call(&object, "ping"), Ok(()));
        Self {
            world,
            client,
            server,
            bench,
            object,
        }
    }

    fn with(&self, policies: &[Policy]) -> ObjectRef {
        let how = SetOverrideType::AddOverride;
        self.object.set_policy_overrides(policies, how).unwrap()
    }

    fn now_ns(&self) -> u64 {
        self.world.now().0
    }

    /// The UTC time that is `ahead_ns` from now.
    fn utc(&self, ahead_ns: i64) -> UtcT {
        let unix_ns = BEGUN_UTC_NS + self.now_ns();
        UtcT::from_unix_ns(unix_ns.saturating_add_signed(ahead_ns), Duration::ZERO)
    }

    fn notes(&self) -> Vec<u32> {
        self.bench.order.lock().unwrap().clone()
    }

    /// Calls that have reached the servant, without the first.
    fn served(&self) -> u64 {
        self.bench.calls.load(Ordering::SeqCst) - 1
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.world.end();
    }
}

const fn timeout(minor: u32, completed: Completion) -> Result<(), SystemException> {
    Err(SystemException::new(Kind::Timeout, minor, completed))
}

const ENDED: Result<(), SystemException> = timeout(own_minor::END_TIME_PASSED, Completion::No);

const MS: i64 = 1_000_000;

#[test]
fn a_request_whose_end_has_passed_is_not_sent() {
    let pair = Pair::new([None, None], 0);
    let sent = pair.client.counters().read(Counter::RequestsSent);
    for policy in [
        Policy::RequestEndTime(pair.utc(-1_000)),
        Policy::ReplyEndTime(pair.utc(-1_000)),
        Policy::RelativeRequestTimeout(Duration::ZERO),
    ] {
        let begun = pair.now_ns();
        assert_eq!(call(&pair.with(&[policy]), "ping"), ENDED, "{policy:?}");
        assert_eq!(pair.now_ns(), begun);
    }
    let counters = pair.client.counters();
    assert_eq!(counters.read(Counter::RequestsPastEnd), 3);
    assert_eq!(
        counters.read(Counter::RequestsSent) - sent,
        0,
        "nothing went out"
    );
    let object = pair.with(&[Policy::RequestEndTime(pair.utc(-1_000))]);
    assert_eq!(note(&object, 1), ENDED);
    pair.world.settle();
    assert_eq!(pair.served(), 0);
}

#[test]
fn a_request_that_comes_past_its_end_is_dropped_where_the_clocks_are_known() {
    let pair = Pair::new([Some(EXACT), Some(EXACT)], 0);
    // A request arrives after one latency.
    for (limit_ns, outcome) in [(LATENCY_NS - 10_000, ENDED), (LATENCY_NS + 10_000, Ok(()))] {
        let limit = Duration::from_nanos(limit_ns);
        let object = pair.with(&[Policy::RelativeRequestTimeout(limit)]);
        assert_eq!(call(&object, "ping"), outcome, "{limit:?}");
    }
    let ahead_ns = i64::try_from(LATENCY_NS).unwrap() - 10_000;
    let object = pair.with(&[Policy::RequestEndTime(pair.utc(ahead_ns))]);
    assert_eq!(call(&object, "ping"), ENDED);
    assert_eq!(pair.served(), 1);
    assert_eq!(pair.server.counters().read(Counter::RequestsDropped), 2);
}

#[test]
fn a_request_whose_reply_would_be_late_is_dropped_and_its_caller_has_gone() {
    let pair = Pair::new([Some(EXACT), Some(EXACT)], 0);
    let limit = Duration::from_nanos(LATENCY_NS - 10_000);
    let object = pair.with(&[Policy::RelativeRoundtripTimeout(limit)]);
    let waited = timeout(own_minor::TIMED_OUT_WAITING, Completion::Maybe);
    assert_eq!(call(&object, "ping"), waited);
    pair.world.settle();
    assert_eq!(pair.served(), 0);
    assert_eq!(pair.server.counters().read(Counter::RequestsDropped), 1);
}

#[test]
fn a_oneway_past_its_end_is_dropped_without_a_word() {
    let pair = Pair::new([Some(EXACT), Some(EXACT)], 0);
    let limit = Duration::from_nanos(LATENCY_NS - 10_000);
    let object = pair.with(&[Policy::RelativeRequestTimeout(limit)]);
    assert_eq!(note(&object, 1), Ok(()));
    pair.world.settle();
    // A caller that waits for the servant's outcome gets the exception.
    let object = object
        .set_policy_overrides(
            &[Policy::SyncScope(SyncScope::WithTarget)],
            SetOverrideType::AddOverride,
        )
        .unwrap();
    assert_eq!(note(&object, 2), ENDED);
    assert_eq!(pair.served(), 0);
    assert_eq!(pair.server.counters().read(Counter::RequestsDropped), 2);
}

#[test]
fn without_a_bound_of_its_clock_a_server_drops_nothing_and_counts_it() {
    let pair = Pair::new([Some(EXACT), None], 0);
    let limit = Duration::from_nanos(LATENCY_NS - 10_000);
    let object = pair.with(&[Policy::RelativeRequestTimeout(limit)]);
    assert_eq!(call(&object, "ping"), Ok(()));
    assert_eq!(pair.server.counters().read(Counter::TimesIgnored), 1);
    assert_eq!(pair.server.counters().read(Counter::RequestsDropped), 0);
}

#[test]
fn a_clock_that_is_off_within_its_bound_drops_nothing_that_is_in_time() {
    // The server's clock is a second ahead: by this clock, every request is late.
    let in_time = Policy::RelativeRequestTimeout(Duration::from_millis(1));
    let off = |bound_ms| {
        let bound = Duration::from_millis(bound_ms);
        let pair = Pair::new([Some(EXACT), Some(bound)], 1_000 * MS);
        let called = call(&pair.with(&[in_time]), "ping");
        (
            called,
            pair.server.counters().read(Counter::RequestsDropped),
        )
    };
    assert_eq!(off(1_000), (Ok(()), 0));
    assert_eq!(off(900), (ENDED, 1), "a bound that is a lie has its price");
    // The same if the bound of the caller's clock is the large one.
    let bounds = [Some(Duration::from_secs(1)), Some(EXACT)];
    let pair = Pair::new(bounds, 1_000 * MS);
    assert_eq!(call(&pair.with(&[in_time]), "ping"), Ok(()));
}

#[test]
fn relative_limits_do_not_travel_where_the_callers_clock_is_not_known() {
    let pair = Pair::new([None, Some(EXACT)], 0);
    let limit = Duration::from_nanos(LATENCY_NS - 10_000);
    let object = pair.with(&[Policy::RelativeRequestTimeout(limit)]);
    assert_eq!(call(&object, "ping"), Ok(()));
}

#[test]
fn a_request_waits_for_its_start_at_the_caller() {
    let pair = Pair::new([None, None], 0);
    let begun = pair.now_ns();
    let start = Policy::RequestStartTime(pair.utc(5 * MS));
    let object = pair.with(&[start]);
    assert_eq!(call(&object, "ping"), Ok(()));
    let start_ns = pair.now_ns() - 2 * LATENCY_NS;
    // A unit of TimeT is 100 ns.
    assert_eq!((start_ns - begun).div_ceil(100) * 100, 5_000_000);
    let before = pair.now_ns();
    assert_eq!(call(&object, "ping"), Ok(()), "its start is past now");
    assert_eq!(pair.now_ns() - before, 2 * LATENCY_NS);
}

/// The caller's clock is 3 ms ahead of the server's. A request with a start time in 2 ms arrives 5 ms too early, less
/// one latency.
fn hasty() -> Pair {
    Pair::new([None, Some(EXACT)], -3 * MS)
}

#[test]
fn a_request_before_its_start_is_put_aside_and_others_are_served_meanwhile() {
    let pair = hasty();
    let begun = pair.now_ns();
    let early = pair.with(&[Policy::RequestStartTime(pair.utc(2 * MS))]);
    assert_eq!(note(&early, 1), Ok(()));
    let waited_ns = (pair.now_ns() - begun).div_ceil(100) * 100;
    assert_eq!(waited_ns, 2_000_000, "its caller has waited");
    assert_eq!(call(&pair.object, "ping"), Ok(()));
    assert_eq!(note(&pair.object, 2), Ok(()));
    pair.world.pass(Duration::from_millis(2));
    assert_eq!(pair.notes(), [2], "what comes behind does not wait");
    pair.world.pass(Duration::from_millis(1));
    assert_eq!(pair.notes(), [2, 1]);
    assert_eq!(pair.server.counters().read(Counter::RequestsEarly), 1);
}

#[test]
fn requests_put_aside_are_served_by_their_starts_and_equals_as_they_came() {
    let pair = hasty();
    let base = pair.utc(0);
    for (number, start_us) in [(1, 1_900), (2, 1_700), (3, 1_900), (4, 1_800)] {
        let start = UtcT::new(base.time + start_us * 10, 0, 0);
        // A caller does not wait for a start time that its own clock has passed.
        pair.world
            .pass(Duration::from_micros(u64::from(number == 1) * 1_950));
        let object = pair.with(&[Policy::RequestStartTime(start)]);
        assert_eq!(note(&object, number), Ok(()));
    }
    pair.world.pass(Duration::from_millis(5));
    assert_eq!(pair.notes(), [2, 4, 1, 3]);
}

#[test]
fn no_more_requests_are_put_aside_than_may_be() {
    let pair = hasty();
    let start = Policy::RequestStartTime(pair.utc(2 * MS));
    let early = pair.with(&[start]);
    // One peer may hold a half.
    let max = u32::try_from(limits::EARLY_REQUESTS_MAX / 2).unwrap();
    for number in 0..max {
        assert_eq!(note(&early, number), Ok(()));
    }
    pair.world.pass(Duration::from_millis(1));
    let refused = call(&early, "ping").unwrap_err();
    assert_eq!(
        (refused.kind, refused.completed),
        (Kind::Transient, Completion::No)
    );
    pair.world.pass(Duration::from_millis(5));
    assert_eq!(pair.notes(), (0..max).collect::<Vec<_>>());
    // There is room for another request again.
    assert_eq!(pair.server.counters().read(Counter::RequestsDiscarded), 1);
    let early = pair.with(&[Policy::RequestStartTime(pair.utc(2 * MS))]);
    assert_eq!(note(&early, max), Ok(()));
    pair.world.pass(Duration::from_millis(5));
    assert_eq!(pair.served(), u64::from(max) + 1);
}

#[test]
fn a_request_put_aside_goes_with_its_connection_and_with_its_server() {
    let pair = hasty();
    let early = pair.with(&[Policy::RequestStartTime(pair.utc(2 * MS))]);
    assert_eq!(note(&early, 1), Ok(()));
    pair.world.pass(Duration::from_millis(1));
    (0..2).for_each(|pick| pair.world.reset(pick * 2));
    pair.world.pass(Duration::from_millis(5));
    assert_eq!(pair.notes(), []);
    assert_eq!(call(&pair.object, "ping"), Ok(()));
    let early = pair.with(&[Policy::RequestStartTime(pair.utc(2 * MS))]);
    assert_eq!(note(&early, 2), Ok(()));
    pair.world.pass(Duration::from_millis(1));
    pair.world.end_one("server");
    assert_eq!(pair.notes(), []);
    assert_eq!(pair.server.counters().read(Counter::RequestsDiscarded), 2);
}

#[test]
fn a_reply_waits_for_its_start() {
    let pair = Pair::new([None, None], 0);
    let begun = pair.now_ns();
    let start = Policy::ReplyStartTime(pair.utc(5 * MS));
    assert_eq!(call(&pair.with(&[start]), "ping"), Ok(()));
    let took = pair.now_ns() - begun;
    assert_eq!(took.div_ceil(100) * 100, 5_000_000);
    assert_eq!(pair.served(), 1);
}

#[test]
fn a_reply_that_waits_for_its_start_keeps_no_handler_and_no_poller_from_others() {
    let pair = Pair::new([None, None], 0);
    let begun = pair.now_ns();
    let given = Arc::new(Mutex::new(Vec::new()));
    let call_back = |object: &ObjectRef, name| {
        let (given, world) = (Arc::clone(&given), pair.world.clone());
        let deliver = move |_| {
            let at_us = (world.now().0 - begun).div_ceil(100) / 10;
            given.lock().unwrap().push((name, at_us));
            Ok(())
        };
        let deliver: Deliver = Box::new(deliver);
        object
            .send_callback("ping", |_| Ok(()), Some(deliver))
            .unwrap();
    };
    let late = |ms: i64| pair.with(&[Policy::ReplyStartTime(pair.utc(ms * MS))]);
    call_back(&late(8), "last");
    call_back(&late(5), "late");
    call_back(&pair.object, "soon");
    let poller = Poller::send(&late(3), "ping", |_| Ok(())).unwrap();
    pair.world.pass(Duration::from_millis(1));
    assert_eq!(*given.lock().unwrap(), [("soon", 500)]);
    assert_eq!(
        poller.is_ready(0),
        Ok(false),
        "its reply is not to be had yet"
    );
    assert_eq!(poller.is_ready(u32::MAX), Ok(true));
    let now_ns = pair.now_ns();
    assert_eq!((now_ns - begun).div_ceil(100) * 100, 3_000_000);
    pair.world.pass(Duration::from_millis(10));
    let given = given.lock().unwrap();
    let names: Vec<_> = given.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["soon", "late", "last"]);
}

#[test]
fn a_reply_that_waits_for_its_start_is_told_of_the_end_of_its_orb() {
    let pair = Pair::new([None, None], 0);
    let given = Arc::new(Mutex::new(None));
    let told = Arc::clone(&given);
    let deliver: Deliver = Box::new(move |reply| {
        let raised = reply.results(|_| Ok(())).unwrap_err();
        *told.lock().unwrap() = Some(raised.is_system_exception());
        Ok(())
    });
    let object = pair.with(&[Policy::ReplyStartTime(pair.utc(9 * MS))]);
    object
        .send_callback("ping", |_| Ok(()), Some(deliver))
        .unwrap();
    pair.world.pass(Duration::from_millis(1));
    assert_eq!(*given.lock().unwrap(), None);
    pair.world.end_one("client");
    assert_eq!(*given.lock().unwrap(), Some(true));
}

#[test]
fn a_start_behind_its_end_is_timeout_at_once_and_one_too_far_ahead_is_imp_limit() {
    let pair = Pair::new([None, None], 0);
    let begun = pair.now_ns();
    for policies in [
        [
            Policy::RequestStartTime(pair.utc(5 * MS)),
            Policy::RequestEndTime(pair.utc(4 * MS)),
        ],
        [
            Policy::ReplyStartTime(pair.utc(5 * MS)),
            Policy::ReplyEndTime(pair.utc(4 * MS)),
        ],
        [
            Policy::RequestStartTime(pair.utc(5 * MS)),
            Policy::RelativeRoundtripTimeout(Duration::from_millis(4)),
        ],
    ] {
        assert_eq!(call(&pair.with(&policies), "ping"), ENDED, "{policies:?}");
    }
    let far = SystemException::new(Kind::ImpLimit, own_minor::START_TOO_FAR, Completion::No);
    for policy in [
        Policy::RequestStartTime(pair.utc(61_000 * MS)),
        Policy::ReplyStartTime(pair.utc(61_000 * MS)),
    ] {
        assert_eq!(call(&pair.with(&[policy]), "ping"), Err(far));
    }
    assert_eq!(pair.now_ns(), begun);
    assert_eq!(pair.served(), 0);
}

#[test]
fn the_earlier_of_two_ends_counts() {
    let pair = Pair::new([Some(EXACT), Some(EXACT)], 0);
    let early = Duration::from_nanos(LATENCY_NS - 10_000);
    let (soon, late) = (i64::try_from(LATENCY_NS).unwrap() - 10_000, 50 * MS);
    for policies in [
        [
            Policy::RelativeRequestTimeout(early),
            Policy::RequestEndTime(pair.utc(late)),
        ],
        [
            Policy::RelativeRequestTimeout(Duration::from_millis(50)),
            Policy::RequestEndTime(pair.utc(soon)),
        ],
    ] {
        assert_eq!(call(&pair.with(&policies), "ping"), ENDED, "{policies:?}");
    }
    assert_eq!(pair.served(), 0);
}

#[test]
fn calls_of_own_objects_keep_their_times_too() {
    let pair = Pair::new([None, Some(EXACT)], 0);
    let own = seen_by(&pair.server, &pair.object);
    let with = |policy| {
        let how = SetOverrideType::AddOverride;
        own.set_policy_overrides(&[policy], how).unwrap()
    };
    for end in [
        Policy::RequestEndTime(pair.utc(-1_000)),
        Policy::RelativeRequestTimeout(Duration::ZERO),
    ] {
        assert_eq!(call(&with(end), "ping"), ENDED, "{end:?}");
        assert_eq!(note(&with(end), 1), ENDED, "{end:?}");
    }
    let begun = pair.now_ns();
    assert_eq!(
        note(&with(Policy::RequestStartTime(pair.utc(5 * MS))), 2),
        Ok(())
    );
    assert_eq!(
        call(&with(Policy::ReplyStartTime(pair.utc(5 * MS))), "ping"),
        Ok(())
    );
    assert_eq!((pair.now_ns() - begun).div_ceil(100) * 100, 10_000_000);
    assert_eq!(pair.served(), 2);
}
