//! Who leads, what a backup takes from whom, and what it knows when it takes over. The members have no thread: a test
//! moves them step by step.

use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use super::*;
use crate::channel_group::ProxyKind;
use crate::group::scripted::{self, NOBODY, Scripted, locked, standing};
use crate::store::encapsulate;

/// How long a test waits for a thread, on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A member without its thread.
struct Stepped {
    orb: Orb,
    member: RtGroupMember,
}

impl Stepped {
    /// A member at `place`; `others` are the ports of the others, in their order.
    fn at(place: usize, others: &[u16]) -> Self {
        Self::with(place, others, RtChannelOptions::default())
    }

    fn with(place: usize, others: &[u16], options: RtChannelOptions) -> Self {
        let orb = scripted::orb();
        let group = scripted::group(&orb, place, others);
        let store = ChannelStore::in_memory().expect("a store");
        let started = Inner::start(&orb, options, group, store);
        let (inner, reference) = started.expect("a member");
        let member = RtGroupMember {
            inner,
            reference,
            thread: None,
        };
        Self { orb, member }
    }

    /// A backup at place 1 of the primary at place 0, with this epoch.
    fn following(epoch: u64, others: &[u16]) -> Self {
        let member = Self::at(1, others);
        member.follow(epoch);
        member
    }

    fn follow(&self, epoch: u64) {
        let mut state = self.inner().state.lock("group.state");
        state.role = Role::Following;
        state.epoch = epoch;
        state.leader = Some(0);
    }

    fn inner(&self) -> &Arc<Inner> {
        &self.member.inner
    }

    fn servant(&self) -> MemberServant {
        MemberServant(Arc::downgrade(self.inner()))
    }

    fn role(&self) -> Role {
        self.inner().role()
    }

    fn epoch(&self) -> u64 {
        self.inner().state.lock("group.state").epoch
    }

    fn replication(&self) -> Arc<Replication> {
        let state = self.inner().state.lock("group.state");
        state.replication.clone().expect("it leads")
    }

    /// The records that it has, and the numbers of the pushes.
    fn held(&self) -> (Vec<(u64, Vec<u8>)>, Vec<u64>) {
        let state = self.inner().state.lock("group.state");
        let rows = state.held.rows.clone().into_iter().collect();
        (rows, state.held.kept.keys().copied().collect())
    }

    fn standing(&self) -> Standing {
        self.member.standing()
    }
}

impl Drop for Stepped {
    fn drop(&mut self) {
        let _ = self.orb.shutdown(true); // The test has failed, or is at its end.
    }
}

fn push(number: u64) -> KeptPush {
    KeptPush {
        number,
        ..KeptPush::default()
    }
}

fn change(number: u64, record: &[u8]) -> Change {
    Change {
        number,
        record: record.to_vec(),
    }
}

fn snapshot(epoch: u64) -> Snapshot {
    Snapshot {
        epoch,
        records: Vec::new(),
        pushes: Vec::new(),
    }
}

fn refusal<T>(outcome: Result<T, MemberKeepError>) -> Option<Option<Kind>> {
    match outcome {
        Ok(_) => None,
        Err(MemberKeepError::Superseded(_)) => Some(None),
        Err(MemberKeepError::System(raised)) => Some(Some(raised.kind)),
    }
}

#[test]
fn leader_with_the_highest_epoch_is_the_newest() {
    let standings = [
        (0, standing(Role::Leading, 3)),
        (1, standing(Role::Leading, 5)),
        (2, standing(Role::Following, 9)),
        (3, standing(Role::Leading, 4)),
    ];
    assert_eq!(newest_leader(&standings), Some((5, 1)));
    assert_eq!(newest_leader(&standings[2..3]), None);
}

#[test]
fn first_member_leads_at_once_if_no_other_answers_and_the_next_one_is_patient() {
    let first = Stepped::at(0, &[NOBODY]);
    first.inner().look_for_primary(false);
    assert_eq!((first.role(), first.epoch()), (Role::Leading, 1));
    let second = Stepped::at(1, &[NOBODY]);
    second.inner().look_for_primary(false);
    assert_eq!(second.role(), Role::Starting);
    second.inner().look_for_primary(true);
    assert_eq!((second.role(), second.epoch()), (Role::Leading, 1));
}

#[test]
fn member_that_starts_waits_for_earlier_ones_and_for_those_that_have_the_state_of_the_group() {
    let cases = [
        // Its place, the place and the role of another one, whether it leads.
        (1, 0, Role::Starting, false),
        (0, 1, Role::Starting, true),
        (0, 1, Role::Following, false),
        (0, 1, Role::TakingOver, false),
        (0, 1, Role::Ended, true),
        (1, 2, Role::Ended, true),
        (1, 2, Role::Following, false),
    ];
    for (place, other, role, leads) in cases {
        let peer = Scripted::reporting(&[(role, 0)]);
        let mut others = [NOBODY; 2];
        others[if other < place { other } else { other - 1 }] = peer.port();
        let member = Stepped::at(place, &others);
        member.inner().look_for_primary(true);
        let has_led = member.role() == Role::Leading;
        assert_eq!(has_led, leads, "{place} beside {other}, {role:?}");
    }
}

#[test]
fn member_that_starts_waits_for_one_that_takes_connections_and_does_not_answer() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("bound").port();
    let orb = scripted::orb();
    let (group, _) = scripted::group(&orb, 0, &[port, NOBODY]);
    let others = Others::new(&orb, &group).expect("references");
    let store = ChannelStore::in_memory().expect("a store");
    let options = RtChannelOptions::default();
    let started = Inner::start(&orb, options, (group, others), store);
    let (inner, _) = started.expect("a member");
    inner.look_for_primary(true);
    assert_eq!(inner.role(), Role::Starting);
    drop(silent);
    inner.look_for_primary(true);
    assert_eq!(inner.role(), Role::Leading);
    orb.shutdown(true).expect("it ends");
}

#[test]
fn member_alone_that_is_not_the_first_waits_before_it_leads() {
    let orb = scripted::orb();
    let (group, _) = scripted::group(&orb, 1, &[NOBODY]);
    let store = ChannelStore::in_memory().expect("a store");
    let begun = Instant::now();
    let member = RtGroupMember::start(&orb, RtChannelOptions::default(), group, store);
    let member = member.expect("a thread");
    while member.standing() != Standing::Primary(0) {
        assert_eq!(member.standing(), Standing::Starting);
        assert!(begun.elapsed() < PATIENCE, "it does not lead");
        std::thread::yield_now();
    }
    assert!(begun.elapsed() >= limits::TAKE_OVER_AFTER);
    // Its thread ends with it.
    let inner = Arc::downgrade(&member.inner);
    drop(member);
    assert!(inner.upgrade().is_none());
    orb.shutdown(true).expect("it ends");
}

#[test]
fn member_that_joins_has_the_snapshot_and_what_came_before_it() {
    let primary = Scripted::reporting(&[(Role::Leading, 6)]);
    let member = Stepped::at(1, &[primary.port()]);
    let servant = member.servant();
    let refusals = Arc::new(Mutex::new(Vec::new()));
    let refused = Arc::clone(&refusals);
    primary.admits(move || {
        let changes = [change(1, b""), change(2, b"new"), change(4, b"")];
        servant.change(6, &changes).expect("it joins");
        let keeps = [(6, 9), (5, 10), (7, 11)];
        let outcomes = keeps.map(|(epoch, number)| refusal(servant.keep(epoch, 0, &push(number))));
        locked(&refused).extend(outcomes);
        Snapshot {
            epoch: 6,
            records: vec![change(1, b"old"), change(2, b"old"), change(3, b"whole")],
            pushes: vec![push(8)],
        }
    });
    member.inner().look_for_primary(true);
    let rows = vec![(2, b"new".to_vec()), (3, b"whole".to_vec())];
    assert_eq!(member.held(), (rows, vec![8, 9]));
    assert_eq!((member.role(), member.epoch()), (Role::Following, 6));
    assert_eq!(member.standing(), Standing::Backup(0));
    // A primary that it does not join has not its answer that it is safe.
    let refusals = locked(&refusals).clone();
    assert_eq!(refusals, [None, Some(None), Some(Some(Kind::Transient))]);
}

#[test]
fn snapshot_of_another_epoch_than_the_primary_has_reported_is_not_taken() {
    let primary = Scripted::reporting(&[(Role::Leading, 6)]);
    primary.admits(|| snapshot(5));
    let member = Stepped::following(5, &[primary.port()]);
    assert_eq!(refusal(member.servant().keep(5, 0, &push(3))), None);
    member.inner().join((6, 0));
    assert_eq!((member.epoch(), member.held().1), (5, vec![3]));
    primary.admits(|| snapshot(6));
    member.inner().join((6, 0));
    assert_eq!((member.epoch(), member.held().1), (6, vec![]));
}

#[test]
fn backup_takes_changes_and_pushes_of_its_primary_alone() {
    let options = RtChannelOptions {
        queue_len: 2,
        ..RtChannelOptions::default()
    };
    let member = Stepped::with(1, &[NOBODY], options);
    let servant = member.servant();
    let keep = |epoch, delivered, number| refusal(servant.keep(epoch, delivered, &push(number)));
    // Its process may have started again: the primary is not replaced.
    assert_eq!(keep(5, 0, 1), Some(Some(Kind::Transient)));
    member.follow(5);
    assert_eq!(keep(4, 0, 1), Some(None));
    assert_eq!(keep(6, 0, 1), Some(Some(Kind::Transient)));
    let changes = [change(1, b"one"), change(2, b"two")];
    assert_eq!(servant.change(5, &changes), Ok(()));
    assert_eq!(servant.change(5, &[change(1, b"")]), Ok(()));
    for number in 1..=2 {
        assert_eq!(keep(5, 0, number), None);
    }
    let rows = vec![(2, b"two".to_vec())];
    assert_eq!(member.held(), (rows.clone(), vec![1, 2]));
    assert_eq!(member.member.counts().forgotten, 0);
    for number in 3..=4 {
        assert_eq!(keep(5, 0, number), None);
    }
    assert_eq!(member.held(), (rows.clone(), vec![3, 4]));
    assert_eq!(member.member.counts().forgotten, 2);
    assert_eq!(keep(5, 3, 5), None);
    assert_eq!(member.held(), (rows, vec![4, 5]));
    assert_eq!(member.member.counts().forgotten, 2);
    for role in [Role::TakingOver, Role::Leading, Role::Ended] {
        member.inner().state.lock("group.state").role = role;
        assert_eq!(keep(5, 0, 6), Some(None), "{role:?}");
        assert_eq!(keep(6, 0, 6), Some(Some(Kind::Transient)), "{role:?}");
    }
}

#[test]
fn backup_forgets_what_its_primary_has_delivered() {
    let primary = Scripted::reporting(&[(Role::Leading, 5)]);
    let member = Stepped::following(5, &[primary.port()]);
    for number in 1..=3 {
        assert_eq!(refusal(member.servant().keep(5, 0, &push(number))), None);
    }
    *locked(&primary.script.delivered) = Some(2);
    member.inner().follow();
    assert_eq!(member.held().1, [3]);
    assert_eq!(primary.script.asked.load(SeqCst), 0);
    // The primary has excluded this member. The member asks it for its standing, and joins again.
    *locked(&primary.script.delivered) = None;
    primary.admits(|| Snapshot {
        pushes: vec![push(7)],
        ..snapshot(5)
    });
    member.inner().follow();
    assert_eq!(member.held().1, [7]);
}

/// Elects as the member at place 1, which follows a primary with epoch 5. The others, at the places 0 and 2, report
/// these standings one after the other.
fn elected(others: [&[(Role, u64)]; 2]) -> (Role, u64) {
    let others = others.map(Scripted::reporting);
    for (place, other) in others.iter().enumerate() {
        // The epoch shows which was joined.
        other.admits(move || snapshot(6 - place as u64));
    }
    let member = Stepped::following(5, &others.each_ref().map(Scripted::port));
    member.inner().elect(5);
    (member.role(), member.epoch())
}

#[test]
fn backup_joins_a_primary_that_is_no_older_than_its_own() {
    let other = (Role::Ended, 9);
    assert_eq!(
        elected([&[(Role::Leading, 6)], &[other]]),
        (Role::Following, 6)
    );
    assert_eq!(
        elected([&[other], &[(Role::Leading, 5)]]),
        (Role::Following, 5)
    );
    assert_eq!(
        elected([&[(Role::Leading, 4)], &[other]]),
        (Role::Leading, 6)
    );
}

#[test]
fn backup_waits_for_those_that_take_over_before_it() {
    let other = (Role::Starting, 0);
    let led = (Role::Leading, 6);
    for waiting in [
        (Role::Following, 5),
        (Role::Following, 6),
        (Role::TakingOver, 4),
    ] {
        let standings = [waiting, waiting, led];
        let outcome = elected([&standings, &[other]]);
        assert_eq!(outcome, (Role::Following, 6), "{waiting:?}");
    }
    // One behind it in the list has more than itself.
    let newer = [(Role::Following, 6), (Role::Leading, 5)];
    assert_eq!(elected([&[other], &newer]), (Role::Following, 5));
}

#[test]
fn new_primary_serves_only_after_the_time_that_the_other_backups_have_to_join_it() {
    let followers = [(Role::Following, 5), (Role::Leading, 5)];
    let earlier = [(Role::Following, 4), (Role::Leading, 6)];
    let begun = Instant::now();
    assert_eq!(elected([&earlier, &followers]), (Role::Leading, 6));
    assert!(begun.elapsed() >= limits::BACKUP_TIMEOUT);
}

#[test]
fn new_primary_has_the_records_and_the_pushes_of_the_former_one() {
    let member = Stepped::following(5, &[NOBODY]);
    let record = ProxyRecord {
        number: 1 << 32,
        kind: ProxyKind::PushConsumer,
        client: String::new(),
        qos: encapsulate(&crate::rtec_event_channel_admin::SupplierQOS::default()).expect("octets"),
        is_suspended: false,
        identity: clients::to_record(None),
    };
    let row = encapsulate(&record).expect("octets");
    let servant = member.servant();
    assert_eq!(servant.change(5, &[change(record.number, &row)]), Ok(()));
    assert_eq!(refusal(servant.keep(5, 0, &push(3))), None);
    member.inner().elect(5);
    assert_eq!(member.standing(), Standing::Primary(0));
    assert_eq!((member.epoch(), member.replication().epoch()), (6, 6));
    assert_eq!(member.replication().delivered(), 3, "it had no event");
    let snapshot = servant.join(0).expect("it leads");
    assert_eq!(snapshot.epoch, 6);
    assert_eq!(snapshot.records, [change(record.number, &row)]);
    assert_eq!(member.standing(), Standing::Primary(1));
}

#[test]
fn backup_whose_records_cannot_be_read_fails_to_take_over() {
    let member = Stepped::following(5, &[NOBODY]);
    let servant = member.servant();
    assert_eq!(servant.change(5, &[change(1, b"junk")]), Ok(()));
    assert_eq!(member.standing(), Standing::Backup(0));
    member.inner().elect(5);
    assert_eq!(member.standing(), Standing::Failed);
    let reported = servant.report_standing().expect("it answers");
    assert_eq!(reported, standing(Role::Ended, 5));
}

#[test]
fn primary_answers_the_watch_of_its_backups_alone() {
    let member = Stepped::at(0, &[NOBODY, NOBODY]);
    let servant = member.servant();
    let not_leading = |place, epoch| {
        let answer = servant.watch(place, epoch);
        matches!(answer, Err(MemberWatchError::NotLeading(_)))
    };
    assert!(not_leading(1, 0), "it does not lead yet");
    member.inner().look_for_primary(true);
    assert!(not_leading(1, 1), "it has not joined");
    assert_eq!(servant.join(1).map(|it| it.epoch), Ok(1));
    assert!(servant.join(0).is_err(), "it is itself");
    member.replication().adopt(push(7), Vec::new());
    assert_eq!(servant.watch(1, 1), Ok(7));
    assert!(not_leading(1, 2), "another epoch");
    assert!(not_leading(2, 1), "another place");
}

#[test]
fn primary_that_finds_a_rival_ends() {
    let rival =
        Scripted::reporting(&[(Role::Starting, 0), (Role::Starting, 0), (Role::Leading, 9)]);
    let member = Stepped::at(0, &[rival.port()]);
    let servant = member.servant();
    member.inner().look_for_primary(true);
    let reported = |role| servant.report_standing() == Ok(standing(role, 1));
    assert!(reported(Role::Leading));
    member.inner().look_for_rival();
    assert_eq!(member.standing(), Standing::Primary(0));
    member.inner().look_for_rival();
    assert_eq!(member.standing(), Standing::Superseded);
    assert!(reported(Role::Ended));
}

#[test]
fn superseded_primary_admits_no_backup_and_reports_its_end_while_it_delivers() {
    let member = Stepped::at(0, &[NOBODY]);
    let servant = member.servant();
    member.inner().look_for_primary(true);
    let replication = member.replication();
    let kept = replication.begin(1, -1, Vec::new());
    assert_eq!(kept.map(|push| push.number), Ok(1));
    replication.supersede();
    assert_eq!(member.standing(), Standing::Leaving);
    let reported = servant.report_standing().expect("it answers");
    assert_eq!(reported, standing(Role::Ended, 1));
    let refused = servant.join(1);
    assert!(matches!(refused, Err(MemberJoinError::NotLeading(_))));
    // It does not wait for its consumers once its process ends.
    member.inner().is_closed.store(true, Release);
    member.inner().look_for_rival();
    assert_eq!(member.standing(), Standing::Superseded);
    assert!(replication.has_kept());
}
