//! Which member leads, when it serves, and what a push to it may do.

use std::sync::atomic::Ordering::SeqCst;

use deckwatch_access::Action;
use deckwatch_event::Standing;
use deckwatch_event::dispatch::{Dispatching, LaneOptions, QueueFull, QueueOptions, QueueOrder};
use deckwatch_event::rt::RtChannelOptions;
use deckwatch_event::rtec_event_channel_admin::ProxyPushConsumerRef;
use deckwatch_orb::{Orb, Priority, Scheduling, SystemExceptionKind as Kind};

use super::{Clients, Member, Pair, Relay, free_ports, push};
use crate::access::{access, rule};
use crate::realtime::event;
use crate::support::{PATIENCE, wait_for};

#[test]
fn member_that_starts_beside_a_primary_that_hangs_does_not_lead() {
    let [one, two] = free_ports();
    let to_first = Relay::to(one);
    let first = Member::start(one, 0, &[one, two]);
    first.wait_for(|it| it == Standing::Primary(0));
    to_first.cut(true);
    let second = Member::start(two, 1, &[to_first.port, two]);
    // Each question lasts for the time limit of a call: they take longer than a member is patient.
    wait_for(|| to_first.unanswered.load(SeqCst) >= 4);
    assert_eq!(second.member.standing(), Standing::Starting);
    to_first.cut(false);
    second.wait_for(|it| it == Standing::Backup(0));
    first.end();
    second.end();
}

#[test]
fn push_is_served_only_once_the_other_backups_have_joined_the_new_primary() {
    let [one, two, three] = free_ports();
    let to_second = Relay::to(two);
    let first = Member::start(one, 0, &[one, two, three]);
    first.wait_for(|it| it == Standing::Primary(0));
    let second = Member::start(two, 1, &[one, two, three]);
    let third = Member::start(three, 2, &[one, to_second.port, three]);
    first.wait_for(|it| it == Standing::Primary(2));
    let mut clients = Clients::of(&first);
    clients.push(1);
    assert_eq!(clients.taken.recv_timeout(PATIENCE), Ok(1));
    to_second.is_held.store(true, SeqCst);
    first.end();
    second.wait_for(|it| matches!(it, Standing::Primary(_)));
    let member = format!("corbaloc::127.0.0.1:{two}/ChannelMember");
    let member = clients.orb.string_to_object(&member).expect("a URL");
    let member = member.expect("not nil");
    let supplier = clients.supplier.clone();
    let standing = std::thread::scope(|scope| {
        let pushing = scope.spawn(|| {
            push(&supplier, 2);
            second.member.standing()
        });
        // The second member serves, but not its channel.
        for _ in 0..50 {
            assert_eq!(member.non_existent(), Ok(false));
        }
        to_second.is_held.store(false, SeqCst);
        pushing.join().expect("it pushes")
    });
    assert_eq!(standing, Standing::Primary(1));
    clients.expect(2);
    for member in [second, third] {
        member.end();
    }
    clients.orb.shutdown(false).expect("it ends");
}

#[test]
fn push_to_a_group_asks_the_access_table() {
    let permitted = [
        rule("127.0.0.1", &[Action::Consume], None),
        rule("127.0.0.1", &[Action::Supply], Some((16, 17))),
    ];
    let [one, two] = free_ports();
    let options = RtChannelOptions {
        access: access(permitted.into()),
        ..RtChannelOptions::default()
    };
    let first = Member::start_with(one, 0, &[one, two], options);
    first.wait_for(|it| it == Standing::Primary(0));
    let mut clients = Clients::of(&first);
    let forged = [event(1, 17, "good"), event(2, 18, "forged")];
    let denied = clients.supplier.push(&forged).expect_err("not permitted");
    assert_eq!(denied.kind, Kind::NoPermission);
    clients.push(3);
    assert_eq!(
        clients.taken.recv_timeout(PATIENCE),
        Ok(3),
        "nothing before it"
    );
    let channel = first.member.channel().expect("it leads");
    assert_eq!(channel.counts().denied, 1);
    clients.open();
    drop(channel);
    first.end();
    clients.orb.shutdown(false).expect("it ends");
}

fn lane(priority: i16) -> LaneOptions {
    LaneOptions {
        priority: Priority::new(priority).expect("a priority"),
        threads: 1,
        queue: QueueOptions {
            len: 16,
            order: QueueOrder::Arrival,
            when_full: QueueFull::DropNew,
        },
    }
}

/// The event sets that each lane of a primary has dispatched.
fn dispatched(member: &Member) -> Vec<u64> {
    let channel = member.member.channel().expect("it leads");
    let lanes = channel.lanes().into_iter();
    lanes.map(|lane| lane.dispatched).collect()
}

#[test]
fn priority_of_a_push_chooses_its_lane_in_each_primary() {
    let pair = Pair::start_with(&RtChannelOptions {
        dispatching: Dispatching::Lanes([5, 9].map(lane).into()),
        allow_priority_fallback: true,
        ..RtChannelOptions::default()
    });
    let mut clients = Clients::of(&pair.first);
    // In the time-sharing class a priority takes no rights: it selects lanes all the same.
    let orb = Orb::builder().scheduling(Scheduling::Other).build();
    let orb = orb.expect("an ORB");
    let text = clients.orb.object_to_string(clients.supplier.object());
    let seen = orb.string_to_object(&text).expect("an IOR");
    let supplier = ProxyPushConsumerRef::unchecked_narrow(seen.expect("not nil"));
    let urgent = Priority::new(9).expect("a priority");
    orb.rt_current().set_the_priority(urgent).expect("set");
    supplier.push(&[event(2, 17, "")]).expect("served");
    assert_eq!(clients.taken.recv_timeout(PATIENCE), Ok(2));
    wait_for(|| dispatched(&pair.first) == [0, 1]);
    // Its consumer has not returned: the next primary offers the event again.
    pair.first.end();
    pair.second.wait_for(|it| it == Standing::Primary(0));
    wait_for(|| dispatched(&pair.second) == [0, 1]);
    clients.expect(2);
    pair.second.end();
    for orb in [orb, clients.orb] {
        orb.shutdown(false).expect("it ends");
    }
}
