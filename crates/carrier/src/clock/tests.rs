//! Two ends on loopback, and far ends that lie.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deckwatch_meter::clock::Tracker;
use deckwatch_os::clock::monotonic_ns;
use zerocopy::IntoBytes as _;

use super::datagram::{Datagram, NONE, SIZE, WireSync};
use super::{Counts, Prober, Responder};
use crate::host_clock::Exchange;
use crate::limits::{CLOCK_PROBERS_MAX, CLOCK_QUESTIONS_MAX};

/// Probes until `enough`, at most for a minute.
fn probe(prober: &mut Prober, enough: impl Fn(&Counts, &[Exchange]) -> bool) -> Vec<Exchange> {
    let mut exchanges = Vec::new();
    let until_ns = monotonic_ns() + 60_000_000_000;
    while !enough(&prober.counts(), &exchanges) {
        assert!(monotonic_ns() < until_ns, "{:?}", prober.counts());
        let turn_ns = monotonic_ns() + 20_000_000;
        prober.run(turn_ns, |exchange| exchanges.push(exchange));
    }
    exchanges
}

/// Runs `near` while `far` answers, again and again.
fn against<T>(mut far: impl FnMut() + Send, near: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                far();
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(near));
        is_over.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn loopback() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    let patience = Some(Duration::from_millis(20));
    socket.set_read_timeout(patience).expect("set");
    socket
}

/// A far end that answers each question with these datagrams.
fn lying(
    socket: &UdpSocket,
    lie: impl Fn(&Datagram) -> Vec<Vec<u8>> + Send,
) -> impl FnMut() + Send {
    move || {
        let mut octets = [0; SIZE + 1];
        let Ok((len, from)) = socket.recv_from(&mut octets) else {
            return;
        };
        let question = Datagram::parse_question(&octets[..len]).expect("a question");
        for answer in lie(&question) {
            // What does not fit is lost, as on any network.
            let _ = socket.send_to(&answer, from);
        }
    }
}

#[test]
fn exchanges_of_one_clock_have_stamps_in_the_order_of_their_road() {
    let mut responder = Responder::bind("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let mut prober = Prober::connect(responder.address(), None).expect("connected");
    let exchanges = against(
        || responder.turn(Duration::from_millis(20)),
        || probe(&mut prober, |_, exchanges| exchanges.len() >= 100),
    );
    for of in &exchanges {
        let road = [of.t1_ns, of.t2_ns, of.t3_ns, of.t4_ns];
        // Each stamp is converted with an error.
        let error_ns = 2 * prober.stamp_error_ns() as i64 + 1_000;
        assert!(road.is_sorted_by(|a, b| a - error_ns <= *b), "{of:?}");
    }
    let counts = prober.counts();
    assert_eq!((counts.lost, counts.ignored, counts.steps), (0, 0, 0));
    assert!(
        counts.exchanges >= 100 && counts.exchanges < counts.answered,
        "{counts:?}"
    );
    assert_eq!(responder.ignored(), 0);
    let far = prober.far_sync().expect("told");
    assert_eq!(far.status, super::sync_state(0).status);
    // One machine: nothing is ahead.
    let ahead_ns = prober.realtime_ahead_ns(0).expect("told");
    assert!(ahead_ns.abs() < 10_000, "{ahead_ns}");
}

#[test]
fn several_probers_of_one_responder_do_not_mix_their_exchanges() {
    let mut responder = Responder::bind("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let to = responder.address();
    against(
        || responder.turn(Duration::from_millis(20)),
        || {
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        let mut prober = Prober::connect(to, None).expect("connected");
                        let all = probe(&mut prober, |_, exchanges| exchanges.len() >= 50);
                        let possible = |of: &&Exchange| of.under_way_ns().is_some();
                        assert!(all.iter().filter(possible).count() >= 50);
                    });
                }
            });
        },
    );
}

#[test]
fn foreign_datagrams_are_counted_and_change_nothing() {
    let mut responder = Responder::bind("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let stranger = loopback();
    let to = responder.address();
    let foreign = [&b""[..], b"hello", &[0; SIZE], &[0xff; SIZE], &[7; 1400]];
    for octets in foreign {
        stranger.send_to(octets, to).expect("sent");
    }
    let mut answered = Datagram::question(1, 2);
    answered.nonce = 9.into();
    let answer = answered.answer(None, WireSync::default());
    stranger.send_to(answer.as_bytes(), to).expect("sent");
    while responder.ignored() < 6 {
        responder.turn(Duration::from_millis(20));
    }
    assert_eq!(responder.answered(), 0);
    assert!(stranger.recv(&mut [0; 8]).is_err(), "nothing came back");
    // More probers than are remembered are answered all the same.
    for nonce in 0..3 * CLOCK_PROBERS_MAX as u64 {
        let question = Datagram::question(nonce, 0);
        stranger.send_to(question.as_bytes(), to).expect("sent");
        responder.turn(Duration::from_millis(20));
    }
    while responder.answered() < 3 * CLOCK_PROBERS_MAX as u64 {
        responder.turn(Duration::from_millis(20));
    }
    assert!(responder.remembered() <= CLOCK_PROBERS_MAX);
}

#[test]
fn answers_without_the_nonce_for_no_question_or_twice_are_ignored() {
    let far = loopback();
    let to = far.local_addr().expect("bound");
    let lie = |question: &Datagram| {
        let good = question.answer(None, WireSync::default());
        let mut other_nonce = good;
        other_nonce.nonce = (question.nonce.get() ^ 1).into();
        let mut never_asked = good;
        never_asked.sequence = (question.sequence.get() + 1_000_000).into();
        let question = *question;
        let all: [&[u8]; 6] = [
            other_nonce.as_bytes(),
            never_asked.as_bytes(),
            question.as_bytes(),
            &good.as_bytes()[1..],
            good.as_bytes(),
            good.as_bytes(),
        ];
        all.map(<[u8]>::to_vec).to_vec()
    };
    let mut prober = Prober::connect(to, None).expect("connected");
    let enough = |counts: &Counts, _: &[Exchange]| counts.answered >= 20 && counts.ignored >= 100;
    let exchanges = against(lying(&far, lie), || probe(&mut prober, enough));
    assert_eq!(exchanges, []);
    let counts = prober.counts();
    assert!(counts.ignored <= 5 * counts.asked, "{counts:?}");
    // Five of six datagrams to each question, but for those under way at the end.
    assert!(2 * counts.ignored >= 9 * counts.answered, "{counts:?}");
    assert!(counts.answered <= counts.asked, "{counts:?}");
}

#[test]
fn an_answer_without_the_nonce_is_no_answer() {
    let far = loopback();
    let to = far.local_addr().expect("bound");
    let lie = |question: &Datagram| {
        let mut other_nonce = question.answer(None, WireSync::default());
        other_nonce.nonce = (question.nonce.get() ^ 1).into();
        vec![other_nonce.as_bytes().to_vec()]
    };
    let mut prober = Prober::connect(to, None).expect("connected");
    let enough = |counts: &Counts, _: &[Exchange]| counts.ignored + counts.answered >= 20;
    against(lying(&far, lie), || probe(&mut prober, enough));
    assert_eq!(prober.counts().answered, 0);
    assert_eq!(prober.far_sync(), None);
}

#[test]
fn stamps_that_lie_make_no_relation_of_the_clocks() {
    let far = loopback();
    let to = far.local_addr().expect("bound");
    let stamps = [
        (i64::MAX, i64::MIN),
        (i64::MIN, i64::MAX),
        (0, i64::MAX),
        (7, 6),
        (i64::MAX, i64::MAX),
        (0, 3_600_000_000_000),
    ];
    let lie = move |question: &Datagram| {
        let sequence = question.sequence.get();
        let (t2_ns, t3_ns) = stamps[sequence as usize % stamps.len()];
        let before = sequence.checked_sub(1).map(|before| (before, t2_ns, t3_ns));
        let answer = question.answer(before, WireSync::default());
        vec![answer.as_bytes().to_vec()]
    };
    let mut prober = Prober::connect(to, None).expect("connected");
    let enough = |_: &Counts, exchanges: &[Exchange]| exchanges.len() >= 100;
    let exchanges = against(lying(&far, lie), || probe(&mut prober, enough));
    let mut tracker = Tracker::default();
    for exchange in &exchanges {
        assert_eq!(tracker.note(*exchange), None);
    }
    assert_eq!(tracker.impossible(), exchanges.len() as u64);
}

#[test]
fn a_flood_stops_neither_the_questions_nor_the_end() {
    let far = loopback();
    let to = far.local_addr().expect("bound");
    let lie = |question: &Datagram| {
        let before = (NONE - 1, i64::MAX, i64::MIN);
        let answer = question.answer(Some(before), WireSync::default());
        vec![answer.as_bytes().to_vec(); 500]
    };
    let mut prober = Prober::connect(to, None).expect("connected");
    let enough = |counts: &Counts, _: &[Exchange]| counts.asked >= 50 && counts.ignored >= 5_000;
    let exchanges = against(lying(&far, lie), || probe(&mut prober, enough));
    assert_eq!(exchanges, []);
}

#[test]
fn a_far_end_that_is_silent_or_closed_loses_the_questions_and_takes_no_memory() {
    let silent = loopback();
    let mut prober = Prober::connect(silent.local_addr().expect("bound"), None).expect("connected");
    let exchanges = probe(&mut prober, |counts, _| counts.lost >= 20);
    assert_eq!((exchanges, prober.counts().answered), (vec![], 0));
    assert!(prober.waiting() <= CLOCK_QUESTIONS_MAX);
    let gone = loopback();
    let mut prober = Prober::connect(gone.local_addr().expect("bound"), None).expect("connected");
    drop(gone);
    let exchanges = probe(&mut prober, |counts, _| counts.refused >= 5);
    assert_eq!(exchanges, []);
}
