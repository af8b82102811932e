//! `deckwatch channel --group`: the primary is killed in mid-stream, and consumers miss no event.

use std::collections::HashSet;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use deckwatch_event::channel_group::{MemberRef, Role, Standing};
use deckwatch_event::rtec_event_channel_admin::ProxyPushConsumerRef;

use crate::stored_channel::{Channel, PATIENCE, client, consume, event, real_time, supply};

/// A group of processes on this host.
struct Group {
    addresses: Vec<String>,
    members: Vec<Option<Channel>>,
}

impl Group {
    fn start(count: usize) -> Self {
        let free = |_| TcpListener::bind("127.0.0.1:0").expect("a port");
        let free: Vec<_> = (0..count).map(free).collect();
        let address = |it: &TcpListener| it.local_addr().expect("bound").to_string();
        let addresses = free.iter().map(address).collect();
        drop(free);
        let mut group = Self {
            addresses,
            members: (0..count).map(|_| None).collect(),
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
        self.members[place] = Some(Channel::of(&mut command));
    }

    /// Waits until the primary has this many backups. Returns its place.
    fn primary_with(&self, backups: u32) -> usize {
        let orb = client();
        let begun = Instant::now();
        loop {
            for (place, address) in self.addresses.iter().enumerate() {
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

    fn kill(&mut self, place: usize) {
        self.members[place].take().expect("it runs").kill();
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
    let mut got = HashSet::new();
    let mut copies = 0;
    let mut take = |until: Option<i32>| {
        let begun = Instant::now();
        while until.is_none_or(|last| (1..=last).any(|it| !got.contains(&it))) {
            match taken.recv_timeout(Duration::from_millis(1)) {
                Ok(number) => copies += usize::from(!got.insert(number)),
                Err(_) if until.is_none() => break,
                Err(_) => {
                    let missing: Vec<_> = (1..=until.unwrap_or(0))
                        .filter(|it| !got.contains(it))
                        .take(5)
                        .collect();
                    assert!(begun.elapsed() < PATIENCE, "missing {missing:?}");
                }
            }
        }
    };
    for _ in 0..KILLS {
        let primary = group.primary_with(2);
        let begun = Instant::now();
        let moment = Duration::from_micros(random(&mut seed, 50_000));
        while begun.elapsed() < moment {
            take(None);
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
    take(Some(pushed));
    assert!(pushed > 100, "{pushed}");
    println!("{pushed} events, {copies} of them twice, {KILLS} kills");
    assert_eq!(proxy.object().non_existent(), Ok(false), "its proxy lives");
    orb.shutdown(true).expect("it ends");
}
