//! `deckwatch channel --group`: the primary is killed in mid-stream, and consumers miss no event.

use std::collections::HashSet;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use deckwatch_event::channel_group::{MemberRef, Role, Standing};
use deckwatch_event::rtec_event_channel_admin::ProxyPushConsumerRef;
use deckwatch_event::rtec_scheduler::SchedulerRef;
use deckwatch_orb::{Policy, SetOverrideType, SyncScope};
use rustix::process::Signal;

use crate::real_time_channel;
use crate::stored_channel::{
    Channel, Folder, PATIENCE, Taker, client, consume, event, real_time, supply,
};
use crate::watched::signal;

/// A group of processes on this host.
struct Group {
    addresses: Vec<String>,
    members: Vec<Option<Channel>>,
    /// The members have stores in this folder.
    stores: Option<Folder>,
    /// More options of each member.
    more: Vec<String>,
}

impl Group {
    fn start(count: usize) -> Self {
        Self::start_with(count, None, Vec::new())
    }

    fn start_with(count: usize, stores: Option<Folder>, more: Vec<String>) -> Self {
        let free = |_| TcpListener::bind("127.0.0.1:0").expect("a port");
        let free: Vec<_> = (0..count).map(free).collect();
        let address = |it: &TcpListener| it.local_addr().expect("bound").to_string();
        let addresses = free.iter().map(address).collect();
        drop(free);
        let mut group = Self {
            addresses,
            members: (0..count).map(|_| None).collect(),
            stores,
            more,
        };
        for place in 0..count {
            group.start_member(place);
        }
        group
    }

    fn start_member(&mut self, place: usize) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
        command.args(["channel", "--real-time", "--queue", "4096", "--group"]);
        command.arg(self.addresses.join(",")).arg("--listen");
        command.arg(&self.addresses[place]).stderr(Stdio::null());
        command.args(&self.more);
        if let Some(folder) = &self.stores {
            command
                .arg("--store")
                .arg(folder.path().join(place.to_string()));
        }
        self.members[place] = Some(Channel::of(&mut command));
    }

    /// Waits until the primary has this many backups. Returns its place.
    fn primary_with(&self, backups: u32) -> usize {
        self.primary_among(|_| true, backups)
    }

    /// The same, of members whose places `may_answer`.
    fn primary_among(&self, may_answer: impl Fn(usize) -> bool, backups: u32) -> usize {
        let orb = client();
        let begun = Instant::now();
        loop {
            let places = self.addresses.iter().enumerate();
            for (place, address) in places.filter(|(place, _)| may_answer(*place)) {
                let url = format!("corbaloc::{address}/ChannelMember");
                let member = orb.string_to_object(&url).expect("a URL").expect("not nil");
                let standing = MemberRef::unchecked_narrow(member).report_standing();
                let leads = |it: &Standing| it.member_role == Role::Leading;
                if standing.is_ok_and(|it| leads(&it) && it.backups >= backups) {
                    orb.shutdown(true).expect("it ends");
                    return place;
                }
            }
            assert!(begun.elapsed() < PATIENCE, "no primary has its backups");
            std::thread::yield_now();
        }
    }

    /// Stops or continues a member.
    fn signal(&self, place: usize, which: Signal) {
        let member = self.members[place].as_ref().expect("it runs");
        signal(&[member.process.id()], which);
    }

    fn kill(&mut self, place: usize) {
        self.members[place].take().expect("it runs").kill();
    }
}

/// The numbers that a consumer has got.
struct Taken {
    from: Receiver<i32>,
    got: HashSet<i32>,
    copies: usize,
}

impl Taken {
    fn new(from: Receiver<i32>) -> Self {
        Self {
            from,
            got: HashSet::new(),
            copies: 0,
        }
    }

    fn note(&mut self, number: i32) {
        self.copies += usize::from(!self.got.insert(number));
    }

    /// Takes what has come.
    fn drain(&mut self) {
        while let Ok(number) = self.from.recv_timeout(Duration::from_millis(1)) {
            self.note(number);
        }
    }

    /// Waits for further numbers.
    fn await_more(&mut self, count: usize) {
        let (begun, before) = (Instant::now(), self.got.len());
        while self.got.len() < before + count {
            assert!(begun.elapsed() < PATIENCE, "no push returns");
            self.drain();
        }
    }

    /// Waits for all numbers from 1.
    fn expect_all(&mut self, last: i32) {
        let begun = Instant::now();
        loop {
            self.drain();
            let missing = (1..=last).filter(|number| !self.got.contains(number));
            let missing: Vec<_> = missing.take(5).collect();
            if missing.is_empty() {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "missing {missing:?} of {last}");
        }
    }
}

/// Pushes numbers until it is stopped; each until its push returns. Returns how many.
fn stream(supplier: ProxyPushConsumerRef, stop: Arc<AtomicBool>) -> JoinHandle<i32> {
    std::thread::spawn(move || {
        let mut number = 0;
        while !stop.load(SeqCst) {
            let begun = Instant::now();
            while supplier.push(&[event(number + 1, 17)]).is_err() {
                assert!(begun.elapsed() < PATIENCE, "no member serves");
                std::thread::yield_now();
            }
            number += 1;
        }
        number
    })
}

/// A number below `bound` from a seed that it changes.
fn random(seed: &mut u64, bound: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    (*seed >> 33) % bound
}

#[test]
fn no_event_is_missed_when_primaries_are_killed_in_mid_stream() {
    const KILLS: usize = 20;
    let mut seed = 7;
    let mut group = Group::start(3);
    let first = group.primary_with(2);
    let orb = client();
    let channel = real_time(&orb, group.members[first].as_ref().expect("it runs"));
    let (proxy, taken) = consume(&orb, &channel, 17);
    let stop = Arc::new(AtomicBool::new(false));
    let streaming = stream(supply(&channel), Arc::clone(&stop));
    let mut taken = Taken::new(taken);
    for _ in 0..KILLS {
        let primary = group.primary_with(2);
        let begun = Instant::now();
        let moment = Duration::from_micros(random(&mut seed, 50_000));
        while begun.elapsed() < moment {
            taken.drain();
        }
        group.kill(primary);
        if random(&mut seed, 4) == 0 {
            // The first backup dies while it takes over.
            let next = (0..3).find(|place| group.members[*place].is_some());
            let next = next.expect("two are left");
            group.kill(next);
            group.start_member(next);
        }
        group.start_member(primary);
    }
    group.primary_with(2);
    stop.store(true, SeqCst);
    let pushed = streaming.join().expect("it pushes");
    taken.expect_all(pushed);
    assert!(pushed > 100, "{pushed}");
    println!(
        "{pushed} events, {} of them twice, {KILLS} kills",
        taken.copies
    );
    assert_eq!(proxy.object().non_existent(), Ok(false), "its proxy lives");
    orb.shutdown(true).expect("it ends");
}

/// When each event came, until nothing comes any more.
fn arrivals(taken: Receiver<i32>, stop: Arc<AtomicBool>) -> JoinHandle<Vec<Instant>> {
    std::thread::spawn(move || {
        let mut came = Vec::new();
        while !stop.load(SeqCst) {
            if taken.recv_timeout(Duration::from_millis(50)).is_ok() {
                came.push(Instant::now());
            }
        }
        came
    })
}

/// As [`stream`], an event in each period. Late ones follow at once.
fn paced_stream(supplier: ProxyPushConsumerRef, stop: Arc<AtomicBool>) -> JoinHandle<i32> {
    std::thread::spawn(move || {
        let (begun, mut number) = (Instant::now(), 0_i32);
        while !stop.load(SeqCst) {
            number += 1;
            let due = begun + GAP_PERIOD * number.unsigned_abs();
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            while supplier.push(&[event(number, 17)]).is_err() {
                assert!(begun.elapsed() < 10 * PATIENCE, "no member serves");
                std::thread::yield_now();
            }
        }
        number
    })
}

const GAP_PERIOD: Duration = Duration::from_millis(20);

/// The largest gap around a kill, in ordinary gaps: a backup that waited for its time limit of 1 s, instead of taking
/// over when the connection is closed, would have 50 of 20 ms by that alone.
const GAPS_MAX: f64 = 50.0;

#[test]
fn the_gap_around_a_kill_is_a_bounded_multiple_of_the_ordinary_one() {
    const KILLS: usize = 7;
    let mut group = Group::start(3);
    let first = group.primary_with(2);
    let orb = client();
    let channel = real_time(&orb, group.members[first].as_ref().expect("it runs"));
    let (_proxy, taken) = consume(&orb, &channel, 17);
    let (stop, ended) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let arrivals = arrivals(taken, Arc::clone(&ended));
    let streaming = paced_stream(supply(&channel), Arc::clone(&stop));
    let mut kills = Vec::new();
    for _ in 0..KILLS {
        let primary = group.primary_with(2);
        // Ordinary gaps stand before each kill.
        std::thread::sleep(10 * GAP_PERIOD);
        kills.push(Instant::now());
        group.kill(primary);
        group.primary_with(1);
        group.start_member(primary);
    }
    group.primary_with(2);
    stop.store(true, SeqCst);
    streaming.join().expect("it pushes");
    ended.store(true, SeqCst);
    let came = arrivals.join().expect("it takes");
    let gap_ms = |pair: &[Instant]| (pair[1] - pair[0]).as_secs_f64() * 1e3;
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let ordinary = median(came.windows(2).map(gap_ms).collect());
    // The first gap that ends after a kill and is longer than any other around it: events under way still arrive.
    let around = |killed: &Instant| {
        let near = came.windows(2).filter(|pair| pair[1] >= *killed);
        near.take(10).map(gap_ms).fold(0.0, f64::max)
    };
    let gaps: Vec<f64> = kills.iter().map(around).collect();
    let gap = median(gaps.clone());
    println!(
        "the gap around {KILLS} kills: median {gap:.1} ms, {:.1} ordinary gaps of {ordinary:.1} ms; all: {gaps:.1?}",
        gap / ordinary
    );
    assert!(gap <= GAPS_MAX * ordinary, "{gap} ms of {ordinary} ms");
    orb.shutdown(true).expect("it ends");
}

#[test]
fn no_event_is_missed_when_primaries_hang_and_go_on() {
    const HANGS: usize = 3;
    let mut group = Group::start(3);
    let first = group.primary_with(2);
    let orb = client();
    let channel = real_time(&orb, group.members[first].as_ref().expect("it runs"));
    let (proxy, taken) = consume(&orb, &channel, 17);
    let mut taken = Taken::new(taken);
    let stop = Arc::new(AtomicBool::new(false));
    // A supplier that does not wait for a primary that hangs.
    let supplier = supply(&channel);
    let limit = Some(Duration::from_millis(700));
    let hurried = supplier.object().with_round_trip_timeout(limit);
    let hurried = ProxyPushConsumerRef::unchecked_narrow(hurried);
    let streaming = stream(hurried, Arc::clone(&stop));
    for _ in 0..HANGS {
        let hung = group.primary_with(2);
        taken.drain();
        group.signal(hung, Signal::STOP);
        let next = group.primary_among(|place| place != hung, 1);
        assert_ne!(next, hung);
        taken.drain();
        group.signal(hung, Signal::CONT);
        let mut former = group.members[hung].take().expect("it runs");
        let ended = former.process.wait().expect("it ends");
        assert_eq!(ended.code(), Some(2), "another is the primary");
        group.start_member(hung);
    }
    group.primary_with(2);
    stop.store(true, SeqCst);
    let pushed = streaming.join().expect("it pushes");
    taken.expect_all(pushed);
    println!("{pushed} events, {} of them twice", taken.copies);
    assert_eq!(proxy.object().non_existent(), Ok(false), "its proxy lives");
    orb.shutdown(true).expect("it ends");
}

#[test]
fn backup_that_hangs_delays_a_push_and_is_whole_again_before_it_takes_over() {
    const HANGS: usize = 3;
    let mut group = Group::start(3);
    let first = group.primary_with(2);
    let orb = client();
    let channel = real_time(&orb, group.members[first].as_ref().expect("it runs"));
    let (_proxy, taken) = consume(&orb, &channel, 17);
    let mut taken = Taken::new(taken);
    let stop = Arc::new(AtomicBool::new(false));
    let streaming = stream(supply(&channel), Arc::clone(&stop));
    for _ in 0..HANGS {
        let primary = group.primary_with(2);
        // The supplier has found this primary: it knows no time limit, and would wait for a member that hangs.
        taken.await_more(100);
        let hung: Vec<_> = (0..3).filter(|place| *place != primary).collect();
        for &place in &hung {
            group.signal(place, Signal::STOP);
        }
        // Both are left out, and pushes go on.
        group.primary_among(|place| place == primary, 0);
        taken.await_more(100);
        for &place in &hung {
            group.signal(place, Signal::CONT);
        }
        group.primary_with(2);
        group.kill(primary);
        group.start_member(primary);
    }
    group.primary_with(2);
    stop.store(true, SeqCst);
    let pushed = streaming.join().expect("it pushes");
    taken.expect_all(pushed);
    orb.shutdown(true).expect("it ends");
}

#[test]
fn group_with_stores_keeps_its_clients_when_all_members_are_killed() {
    let mut group = Group::start_with(2, Some(Folder::new("group-stores")), Vec::new());
    let first = group.primary_with(1);
    let orb = client();
    let channel = real_time(&orb, group.members[first].as_ref().expect("it runs"));
    let (_proxy, taken) = consume(&orb, &channel, 17);
    let supplier = supply(&channel);
    let push = |number: i32| {
        let begun = Instant::now();
        while supplier.push(&[event(number, 17)]).is_err() {
            assert!(begun.elapsed() < PATIENCE, "no member serves");
            std::thread::yield_now();
        }
    };
    push(1);
    assert_eq!(taken.recv_timeout(PATIENCE), Ok(1));
    // The second becomes the primary, then both are killed.
    group.kill(first);
    group.start_member(first);
    let second = group.primary_with(1);
    assert_ne!(second, first);
    // A backup that does not know its primary for a moment answers TRANSIENT.
    let begun = Instant::now();
    while channel.for_consumers().is_err() {
        assert!(begun.elapsed() < PATIENCE, "no member serves");
        std::thread::yield_now();
    }
    let (_later, also) = consume(&orb, &channel, 17);
    push(2);
    group.kill(first);
    group.kill(second);
    group.start_member(second);
    group.primary_among(|place| place == second, 0);
    group.start_member(first);
    assert_eq!(group.primary_with(1), second);
    push(3);
    for taken in [taken, also] {
        let mut taken = Taken::new(taken);
        let begun = Instant::now();
        while !taken.got.contains(&3) {
            assert!(begun.elapsed() < PATIENCE, "it is connected again");
            taken.drain();
        }
        assert!(taken.got.contains(&2));
    }
    orb.shutdown(true).expect("it ends");
}

#[test]
fn primary_that_hung_without_backups_acknowledges_nothing_once_another_has_taken_over() {
    let group = Group::start(2);
    let first = group.primary_with(1);
    let orb = client();
    let channel = real_time(&orb, group.members[first].as_ref().expect("it runs"));
    let supplier = supply(&channel);
    // The same object at this member alone.
    let mut ior = supplier.object().ior().clone();
    ior.profiles.truncate(1);
    let alone = orb.string_to_object(&ior.to_string()).expect("an IOR");
    let served = [Policy::SyncScope(SyncScope::WithTarget)];
    let alone = alone.expect("not nil");
    let alone = alone.set_policy_overrides(&served, SetOverrideType::AddOverride);
    let alone = ProxyPushConsumerRef::unchecked_narrow(alone.expect("a policy"));
    group.signal(1 - first, Signal::STOP);
    alone.push(&[event(1, 17)]).expect("the backup is left out");
    group.signal(first, Signal::STOP);
    group.signal(1 - first, Signal::CONT);
    group.primary_among(|place| place != first, 0);
    group.signal(first, Signal::CONT);
    let late = alone.push(&[event(2, 17)]);
    assert!(late.is_err(), "the other member does not have this push");
    orb.shutdown(true).expect("it ends");
}

#[test]
fn group_takes_its_lanes_from_a_schedule_and_refuses_what_would_be_late_after_a_kill_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("s.toml");
    std::fs::write(&file, real_time_channel::SCHEDULE).expect("a file");
    let schedule = ["--priority-fallback".to_owned(), "--schedule".to_owned()];
    let schedule = schedule.into_iter().chain([file.display().to_string()]);
    let mut group = Group::start_with(2, None, schedule.collect());
    let first = group.primary_with(1);
    let orb = client();
    let channel = real_time(&orb, group.members[first].as_ref().expect("it runs"));
    let url = format!("corbaloc::{}/ScheduleService", group.addresses[first]);
    let scheduler = orb.string_to_object(&url).expect("a URL").expect("not nil");
    let scheduler = SchedulerRef::unchecked_narrow(scheduler);
    let handle = |name: &str| scheduler.lookup(name).expect("it is declared");
    let (read, log, track) = (handle("read"), handle("log"), handle("track"));
    let supplier = real_time_channel::supply(&channel, read);
    let (told, taken) = std::sync::mpsc::channel();
    let taker = Taker(Mutex::new(told));
    real_time_channel::consume_by(&orb, &channel, log, taker).expect("it is in time");
    let expect_refusal = || {
        real_time_channel::expect_late_draw(real_time_channel::consume(&orb, &channel, track));
    };
    expect_refusal();
    group.kill(first);
    group.primary_with(0);
    let begun = Instant::now();
    // A one-way may be lost with the connection to the member that was killed.
    let push = || {
        let _ = supplier.push(&[event(7, 20)]);
        taken.recv_timeout(Duration::from_millis(200))
    };
    while push() != Ok(7) {
        assert!(begun.elapsed() < PATIENCE, "the consumer is not connected");
    }
    expect_refusal();
    orb.shutdown(true).expect("it ends");
}
