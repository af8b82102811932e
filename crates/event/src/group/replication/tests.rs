//! What a primary keeps, what its backups must have, and who replaces it.

use std::sync::atomic::Ordering::SeqCst;

use deckwatch_cdr::Codec;
use deckwatch_orb::delivery::{Deliveries, DeliveryOptions, Form};
use deckwatch_orb::{Completion, Orb};

use super::*;
use crate::channel_group::Change;
use crate::group::scripted::{NOBODY, Scripted, group, locked, orb};

const EPOCH: u64 = 7;

/// The primary's side at place 1; the others are at the places 0 and 2.
struct Primary {
    orb: Orb,
    side: Replication,
}

impl Primary {
    fn with(kept_max: usize, others: [u16; 2]) -> Self {
        let orb = orb();
        let (_, others) = group(&orb, 1, &others);
        let side = Replication::new(EPOCH, kept_max, Arc::new(others));
        Self { orb, side }
    }

    fn alone(kept_max: usize) -> Self {
        Self::with(kept_max, [NOBODY; 2])
    }

    fn of(others: &[Scripted; 2]) -> Self {
        Self::with(8, others.each_ref().map(Scripted::port))
    }

    fn add(&self, place: u16) -> Vec<u64> {
        let member = self.side.others.member(usize::from(place));
        let member = member.expect("another member").clone();
        let pushes = self.side.add(place, member).into_iter();
        pushes.map(|push| push.number).collect()
    }

    fn begin(&self, size: usize) -> Arc<KeptPush> {
        let push = self.side.begin(3, -1, vec![0; size]);
        push.expect("it is the primary")
    }

    fn forgotten(&self) -> u64 {
        self.side.forgotten.load(Relaxed)
    }
}

impl Drop for Primary {
    fn drop(&mut self) {
        let _ = self.orb.shutdown(true); // The test has failed, or is at its end.
    }
}

fn peers(standing: (Role, u64)) -> [Scripted; 2] {
    [(); 2].map(|()| Scripted::reporting(&[standing]))
}

fn failure() -> MemberKeepError {
    SystemException::new(Kind::Internal, 0, Completion::No).into()
}

#[test]
fn push_is_kept_until_it_and_all_before_it_are_delivered() {
    let primary = Primary::alone(8);
    let side = &primary.side;
    assert_eq!((side.delivered(), side.has_kept()), (0, false));
    let pushes = [(); 3].map(|()| primary.begin(1).number);
    assert_eq!(pushes, [1, 2, 3]);
    assert_eq!((side.delivered(), side.has_kept()), (0, true));
    let deliveries = Deliveries::start(&primary.orb, DeliveryOptions::default());
    let deliveries = deliveries.expect("a thread");
    let body = deliveries.marshal(Form::native(Codec::default()), |w| w.write_u32(1));
    let body = body.expect("room");
    let queued = body.clone();
    side.note_offered(2, Vec::new());
    assert_eq!(side.delivered(), 0, "the first is not offered");
    side.note_offered(1, vec![body]);
    assert_eq!(side.delivered(), 0, "a consumer has not taken the first");
    assert_eq!(primary.add(0), [1, 2, 3]);
    drop(queued);
    assert_eq!(side.delivered(), 2);
    assert_eq!(primary.add(2), [3]);
    side.note_offered(3, Vec::new());
    assert_eq!((side.has_kept(), side.delivered()), (false, 3));
    assert_eq!(primary.forgotten(), 0);
}

#[test]
fn pushes_of_the_former_primary_come_before_those_of_the_new_one() {
    let primary = Primary::alone(8);
    let side = &primary.side;
    for number in [8, 9] {
        let push = KeptPush {
            number,
            ..KeptPush::default()
        };
        side.adopt(push, Vec::new());
    }
    assert_eq!(side.delivered(), 9, "no consumer is left for them");
    assert_eq!(primary.begin(1).number, 10);
    side.note_again(2);
    side.note_again(3);
    assert_eq!(side.redelivered.load(Relaxed), 5);
    assert_eq!(side.epoch(), EPOCH);
}

#[test]
fn more_pushes_than_may_be_kept_are_forgotten_from_the_oldest_on() {
    let primary = Primary::alone(2);
    for _ in 0..2 {
        primary.begin(0);
    }
    assert_eq!(primary.forgotten(), 0);
    assert_eq!(primary.add(0), [1, 2]);
    primary.begin(0);
    assert_eq!(primary.forgotten(), 1);
    assert_eq!((primary.add(0), primary.side.delivered()), (vec![2, 3], 1));
}

#[test]
fn pushes_of_a_larger_size_than_may_be_kept_are_forgotten_from_the_oldest_on() {
    // The octets are zeros that nobody reads: they take no memory.
    let half = KEPT_SIZE_MAX / 2;
    let primary = Primary::alone(8);
    for _ in 0..2 {
        primary.begin(half);
    }
    assert_eq!(primary.forgotten(), 0, "just as much as may be kept");
    primary.begin(half);
    assert_eq!((primary.forgotten(), primary.side.delivered()), (1, 1));
    primary.begin(1);
    assert_eq!((primary.forgotten(), primary.side.delivered()), (2, 2));
    for number in [3, 4] {
        primary.side.note_offered(number, Vec::new());
    }
    assert!(!primary.side.has_kept());
    for _ in 0..2 {
        primary.begin(half);
    }
    assert_eq!(primary.forgotten(), 2, "what is delivered takes no room");
}

#[test]
fn member_that_joins_again_is_one_backup() {
    let primary = Primary::alone(8);
    let side = &primary.side;
    assert_eq!((side.backup_count(), side.has_missing()), (0, true));
    primary.add(0);
    assert_eq!((side.backup_count(), side.has_missing()), (1, true));
    assert_eq!([0, 2].map(|place| side.has(place)), [true, false]);
    primary.add(2);
    primary.add(0);
    assert_eq!((side.backup_count(), side.has_missing()), (2, false));
    assert_eq!([0, 2].map(|place| side.has(place)), [true, true]);
}

#[test]
fn backup_that_has_joined_again_is_not_left_out_for_what_it_was() {
    let primary = Primary::alone(8);
    let side = &primary.side;
    let at = |place: u16| {
        let backups = side.backups.lock("group.backups");
        let mut backups = backups.iter();
        let found = backups.find(|backup| backup.place == place).cloned();
        found.expect("a backup")
    };
    primary.add(0);
    let before = at(0);
    primary.add(2);
    primary.add(0);
    side.leave_out(&before);
    assert_eq!((side.has(0), side.has(2)), (true, true));
    assert_eq!(side.backups_lost.load(Relaxed), 0);
    side.leave_out(&at(0));
    assert_eq!((side.has(0), side.has(2)), (false, true));
    assert_eq!(side.backups_lost.load(Relaxed), 1);
}

#[test]
fn each_backup_gets_each_push_and_each_change() {
    let others = peers((Role::Following, EPOCH));
    let primary = Primary::of(&others);
    primary.add(0);
    primary.add(2);
    primary.begin(1);
    primary.side.note_offered(1, Vec::new());
    let push = primary.begin(1);
    assert_eq!(primary.side.keep(&push), Ok(()));
    let changes = vec![Change {
        number: 4,
        record: vec![1, 2],
    }];
    assert_eq!(primary.side.change(&changes), Ok(()));
    for other in &others {
        assert_eq!(*locked(&other.script.kept), [(EPOCH, 1, 2)]);
        assert_eq!(*locked(&other.script.changed), [(EPOCH, changes.clone())]);
    }
}

#[test]
fn backup_that_fails_twice_is_left_out_and_one_that_fails_once_is_not() {
    let others = peers((Role::Following, EPOCH));
    let primary = Primary::of(&others);
    primary.add(0);
    primary.add(2);
    let kept = |place: usize| locked(&others[place].script.kept).len();
    locked(&others[0].script.keeps).push_back(failure());
    assert_eq!(primary.side.keep(&primary.begin(1)), Ok(()));
    assert_eq!((kept(0), kept(1)), (2, 1), "the first was called again");
    assert_eq!(primary.side.backup_count(), 2);
    locked(&others[0].script.keeps).extend([failure(), failure()]);
    assert_eq!(primary.side.keep(&primary.begin(1)), Ok(()));
    assert_eq!((kept(0), kept(1)), (4, 2));
    assert_eq!([0, 2].map(|place| primary.side.has(place)), [false, true]);
    assert_eq!(primary.side.backups_lost.load(Relaxed), 1);
}

#[test]
fn primary_that_a_backup_has_replaced_acknowledges_nothing() {
    let others = peers((Role::Following, EPOCH));
    let primary = Primary::of(&others);
    primary.add(0);
    primary.add(2);
    locked(&others[0].script.keeps).push_back(Superseded {}.into());
    assert!(!primary.side.is_superseded());
    let push = primary.begin(1);
    let refused = primary.side.keep(&push).map_err(|it| it.kind);
    assert_eq!(refused, Err(Kind::Transient));
    assert!(primary.side.is_superseded());
    assert_eq!(primary.side.backups_lost.load(Relaxed), 0);
    let refused = primary.side.begin(3, -1, Vec::new());
    let refused = refused.map(|it| it.number).map_err(|it| it.kind);
    assert_eq!(refused, Err(Kind::Transient));
}

#[test]
fn missing_members_are_asked_for_a_rival_before_a_push_once_the_lease_has_ended() {
    let others = peers((Role::Starting, 0));
    let primary = Primary::of(&others);
    let side = &primary.side;
    let asked = || others.each_ref().map(|it| it.script.asked.load(SeqCst));
    let answered_at = |at| *side.asked.lock("group.asked") = at;
    let long_ago = Instant64(side.others.now().0 - LEASE.as_nanos() as u64);
    let later = side.others.now().after(LEASE * 1_000);
    primary.add(0);
    answered_at(later);
    assert_eq!(side.change(&Vec::new()), Ok(()));
    assert_eq!(asked(), [0, 0], "they were asked just now");
    answered_at(long_ago);
    assert_eq!(side.change(&Vec::new()), Ok(()));
    assert_eq!(asked(), [1, 1]);
    let renewed = *side.asked.lock("group.asked");
    assert!(renewed > long_ago, "{renewed:?}");
    primary.add(2);
    answered_at(long_ago);
    assert_eq!(side.change(&Vec::new()), Ok(()));
    assert_eq!(asked(), [1, 1], "all are backups");
}

#[test]
fn rival_with_a_higher_epoch_or_an_earlier_place_replaces_the_primary() {
    // The primary is at place 1.
    let cases = [
        (Role::Leading, EPOCH + 1, [true, true]),
        (Role::Leading, EPOCH, [true, false]),
        (Role::Leading, EPOCH - 1, [false, false]),
        (Role::TakingOver, EPOCH + 1, [true, true]),
        (Role::TakingOver, EPOCH, [true, true]),
        (Role::TakingOver, EPOCH - 1, [false, false]),
        (Role::Following, EPOCH + 1, [false, false]),
        (Role::Starting, EPOCH + 1, [false, false]),
        (Role::Ended, EPOCH + 1, [false, false]),
    ];
    for (role, epoch, expected) in cases {
        let rival = Scripted::reporting(&[(role, epoch)]);
        let at = rival.port();
        let is_replaced = [[at, NOBODY], [NOBODY, at]].map(|others| {
            let primary = Primary::with(8, others);
            primary.side.look_for_rival();
            primary.side.is_superseded()
        });
        assert_eq!(is_replaced, expected, "{role:?} {epoch}");
    }
}
