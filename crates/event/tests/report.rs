//! The state of a channel over the network, as `deckwatch events list` reads it, and the type and the operations of the
//! channel's object.

use crate::access::{access, rule};
use crate::raw::Silent;
use crate::shares::stranger;
use crate::support::{PATIENCE, World, number, seen_by, wait_for};
use deckwatch_access::Action;
use deckwatch_event::cos_event_channel_admin::EventChannelRef;
use deckwatch_event::cos_event_comm::{PullSupplierRef, PushConsumerRef};
use deckwatch_event::deckwatch::{ChannelReport, ChannelStatusRef, ConsumerStatusRef};
use deckwatch_event::{ChannelOptions, EventChannel, limits};
use deckwatch_giop::Ior;
use deckwatch_giop::ior::IiopProfile;
use deckwatch_orb::{ObjectRef, SystemExceptionKind as Kind};

fn report(world: &World) -> ChannelReport {
    let status = ChannelStatusRef::unchecked_narrow(world.channel.object().clone());
    status.report().expect("it answers")
}

/// Host and port of an object.
fn address(object: &ObjectRef) -> String {
    let profile = object.ior().iiop_profiles().next();
    let profile = profile.expect("a profile").expect("whole");
    format!("{}:{}", profile.host, profile.port)
}

#[test]
fn report_has_each_counter_of_the_channel_in_its_place() {
    const QUEUE: usize = 4;
    let all = [Action::Supply, Action::Consume, Action::Observe];
    let world = World::with(ChannelOptions {
        queue_len: QUEUE,
        share_percent: 1,
        access: access(vec![
            rule("127.0.0.1", &all, None),
            rule("127.0.0.2", &[Action::Consume], None),
        ]),
        ..ChannelOptions::default()
    });
    let (consumer, events) = world.consumer();
    world.connect(consumer.clone());
    let first = world.supplier();
    let _second = world.supplier();
    let _third = world.supplier();
    let _pullers = [world.puller(), world.puller()];
    let (pulled, _stock) = world.pulled_supplier();
    let (also_pulled, _stock) = world.pulled_supplier();
    let pull_from = |supplier: PullSupplierRef| {
        let proxy = world.obtain_pull_consumer();
        let connected = proxy.connect_pull_supplier(Some(&supplier));
        connected.expect("connected");
    };
    pull_from(pulled);
    pull_from(also_pulled);
    // A supplier that is gone at the first call, and a consumer.
    pull_from(PullSupplierRef::unchecked_narrow(world.nobody()));
    wait_for(|| world.served.counts().suppliers_lost == 1);
    world.connect(world.nobody());
    for value in 1..=3 {
        first.push(&number(value)).expect("permitted");
        assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(value)));
    }
    wait_for(|| world.served.counts().consumers_lost == 1);
    // One that takes nothing keeps a queue, and loses what has no place in it.
    let silent = Silent::new();
    let slow = silent.object(&world.user);
    world.connect(slow.clone());
    for value in 0..30 {
        first.push(&number(value)).expect("permitted");
        assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(value)));
    }
    // One peer more than its share, and one that may not supply.
    let stranger = stranger();
    let channel = seen_by(&stranger, &world.server, world.served.reference().object());
    let channel = EventChannelRef::unchecked_narrow(channel);
    let suppliers = channel.for_suppliers().unwrap().expect("one");
    for _ in 0..5 {
        assert!(suppliers.obtain_push_consumer().is_err());
    }
    let consumers = channel.for_consumers().unwrap().expect("one");
    let mut connected = 0;
    while connected <= limits::PULLERS_MAX / 100 {
        let proxy = consumers.obtain_pull_supplier().unwrap().expect("a proxy");
        let outcome = proxy.connect_pull_consumer(None);
        assert_eq!(outcome.is_ok(), connected < limits::PULLERS_MAX / 100);
        connected += 1;
    }

    let is_settled = || {
        let counts = world.served.counts();
        counts.received == 33 && counts.delivered >= 33
    };
    wait_for(is_settled);
    let (counts, report) = (world.served.counts(), report(&world));
    assert_eq!((counts.received, report.received), (33, 33));
    assert_eq!(report.delivered, counts.delivered);
    assert!(counts.displaced > 0, "{counts:?}");
    assert_eq!(report.dropped, counts.displaced);
    assert_eq!(report.failed, counts.failed);
    assert_eq!((report.consumers_lost, report.suppliers_lost), (1, 1));
    assert_eq!((report.refused, report.denied), (1, 5));
    assert_eq!((report.consumers, report.suppliers), (2, 3));
    let pullers = 2 + limits::PULLERS_MAX as u32 / 100;
    assert_eq!(
        (report.pulling_consumers, report.pulled_suppliers),
        (pullers, 2)
    );
    assert_eq!(report.queued, QUEUE as u64);
    let longest: Vec<_> = report
        .longest_queues
        .iter()
        .map(|one| &one.address[..])
        .collect();
    assert_eq!(longest, [address(&slow), address(&consumer)]);
    assert_eq!(report.longest_queues[0].queued, QUEUE as u64);
    assert_eq!(report.longest_queues[1].delivered, 33);
    assert!(report.time_ns > 0);
    assert!(world.served.size() > 0, "queued events take room");
    world.end();
    stranger.shutdown(true).expect("it ends");
}

#[test]
fn object_of_a_channel_has_both_interfaces_and_its_references_name_the_standard_s() {
    const CHANNEL: &str = EventChannelRef::REPOSITORY_ID;
    let world = World::new();
    let object = world.channel.object();
    assert_eq!(object.type_id(), CHANNEL);
    let profile = object.ior().iiop_profiles().next();
    let profile = profile.expect("a profile").expect("whole");
    let profile = IiopProfile::new(&profile.host, profile.port, &profile.object_key);
    let ior = Ior::with_iiop("", &profile).expect("a reference");
    let untyped = world.user.string_to_object(&ior.to_string()).unwrap();
    let untyped = untyped.expect("not nil");
    for (interface, has_it) in [
        (CHANNEL, true),
        (ChannelStatusRef::REPOSITORY_ID, true),
        (PushConsumerRef::REPOSITORY_ID, false),
    ] {
        assert_eq!(untyped.is_a(interface), Ok(has_it), "{interface}");
    }
    assert_eq!(untyped.non_existent(), Ok(false));
    world.end();
}

#[test]
fn options_out_of_bounds_are_bad_parameters() {
    let orb = crate::support::serving_orb();
    let usual = ChannelOptions::default;
    let start = |options| EventChannel::start(&orb, options).map(drop);
    for (which, options) in [
        (
            "queue",
            ChannelOptions {
                queue_len: 0,
                ..usual()
            },
        ),
        (
            "queue",
            ChannelOptions {
                queue_len: limits::QUEUE_LEN_MAX + 1,
                ..usual()
            },
        ),
        (
            "size",
            ChannelOptions {
                size_max: limits::CHANNEL_SIZE_MIN - 1,
                ..usual()
            },
        ),
        (
            "share",
            ChannelOptions {
                share_percent: 0,
                ..usual()
            },
        ),
        (
            "share",
            ChannelOptions {
                share_percent: 101,
                ..usual()
            },
        ),
        (
            "window",
            ChannelOptions {
                window: 0,
                ..usual()
            },
        ),
        (
            "window",
            ChannelOptions {
                window: limits::WINDOW_MAX + 1,
                ..usual()
            },
        ),
        (
            "period",
            ChannelOptions {
                pull_period: std::time::Duration::ZERO,
                ..usual()
            },
        ),
        (
            "period",
            ChannelOptions {
                pull_period: limits::PULL_PERIOD_MAX + std::time::Duration::from_nanos(1),
                ..usual()
            },
        ),
    ] {
        let refused = start(options).expect_err(which);
        assert_eq!(refused.kind, Kind::BadParam, "{which}");
    }
    start(ChannelOptions {
        queue_len: 1,
        size_max: limits::CHANNEL_SIZE_MIN,
        share_percent: 100,
        window: limits::WINDOW_MAX,
        pull_period: limits::PULL_PERIOD_MAX,
        ..usual()
    })
    .expect("all are within their bounds");
    orb.shutdown(true).expect("it ends");
}

#[test]
fn report_of_a_real_time_channel_has_each_counter_in_its_place() {
    use crate::realtime::{any_of, event, next};
    use deckwatch_event::rt::RtChannelOptions;
    let world = crate::realtime::World::of(
        crate::support::serving_orb(),
        RtChannelOptions {
            access: access(vec![rule(
                "127.0.0.1",
                &[Action::Supply, Action::Consume, Action::Observe],
                Some((16, 31)),
            )]),
            ..RtChannelOptions::default()
        },
    );
    let (proxy, sets) = world.connect(&any_of(&[(0, 20)]));
    let _other = world.connect(&any_of(&[(0, 21)]));
    let supplier = world.supply(&[(1, 20)]);
    let _second = world.supply(&[]);
    let _third = world.supply(&[]);
    supplier.push(&[event(1, 20, "first")]).unwrap();
    assert_eq!(next(&sets), ["first"]);
    proxy.suspend_connection().unwrap();
    supplier.push(&[event(1, 20, "lost")]).unwrap();
    wait_for(|| world.served.counts().lost.iter().sum::<u64>() == 1);
    let own = ConsumerStatusRef::unchecked_narrow(proxy.object().clone());
    let own = own.report().expect("its own");
    assert_eq!((own.dropped, own.queued), (1, 0), "lost before its queue");
    assert!(world.channel.destroy().is_err(), "not permitted");
    wait_for(|| world.served.counts().delivered == 1);
    let status = ChannelStatusRef::unchecked_narrow(world.channel.object().clone());
    let report = status.report().expect("permitted");
    let counts = world.served.counts();
    assert_eq!((report.received, report.delivered), (2, 1));
    assert_eq!((report.dropped, report.denied), (1, 1));
    assert_eq!(
        (report.failed, report.refused),
        (counts.failed, counts.refused)
    );
    assert_eq!((report.consumers, report.suppliers), (2, 3));
    assert!(report.time_ns > 0);
    world.end();
}
