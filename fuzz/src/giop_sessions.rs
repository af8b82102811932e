//! Sessions of GIOP at a whole ORB: adapter, lane, connection and servant, without a socket, a thread or a clock.
//!
//! A session is valid but for one lie. What was whole before the lie is answered as the standard says; behind the end of
//! the connection nothing is served; what the peer held is given back.

mod octets;
mod session;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use deckwatch_orb::{
    BidirectionalPolicyValue, Completion, Orb, Policies, Policy, Servant, ServerRequest,
    SystemException, SystemExceptionKind, fuzzing,
};

use crate::counted;
use crate::pipe::{Done, Pipe};
use octets::{CLOSE_CONNECTION, HEADER, LOCATE_REPLY, MESSAGE_ERROR, REPLY};
use session::{Expected, KEY, Outcome, Session};

/// Octets of the largest message, and of all unfinished ones: a lie about a size must not cost more.
const MESSAGE_MAX: usize = 64 << 10;
/// Octets that one session may have allocated at a time, and that may be left of all of them.
const MEMORY_MAX: usize = 4 << 20;
/// Turns of an ORB for one chunk, at most: more would be a circle.
const TURNS_MAX: usize = 10_000;

/// Echoes octets, and notes the numbers of its requests.
struct Fuzzed(Pipe);

impl Servant for Fuzzed {
    fn repository_ids(&self) -> &'static [&'static str] {
        &["IDL:deckwatch.test/Fuzzed:1.0"]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let mut arguments = request.arguments();
        let number = arguments.read_u32()?;
        self.0.note(Done::Served(number));
        match request.operation() {
            b"echo" => {
                let octets = arguments.read_octet_sequence()?;
                Ok(request.reply()?.write_octet_sequence(octets)?)
            }
            b"note" => Ok(()),
            b"raise" => Err(raised(SystemExceptionKind::NoPermission)),
            _ => Err(raised(SystemExceptionKind::BadOperation)),
        }
    }
}

const fn raised(kind: SystemExceptionKind) -> SystemException {
    SystemException::new(kind, 0, Completion::No)
}

fn serve(pipe: &Pipe, is_bidirectional: bool) -> Orb {
    let way = if is_bidirectional {
        BidirectionalPolicyValue::Both
    } else {
        BidirectionalPolicyValue::Normal
    };
    let orb = Orb::builder()
        .transport(Arc::new(pipe.clone()))
        .turned_by_hand()
        .message_size_max(MESSAGE_MAX)
        .inbound_size_max(4 * MESSAGE_MAX)
        .policy(Policy::Bidirectional(way))
        .listen("here:2809")
        .expect("an address")
        .build()
        .expect("an ORB in memory");
    let root = orb.root_poa().expect("a root");
    let policies = Policies {
        bidirectional: way,
        ..Policies::root()
    };
    let manager = root.the_poa_manager();
    let poa = root.create_poa("fuzzed", Some(&manager), &policies);
    let poa = poa.expect("a new name");
    manager.activate().expect("a fresh manager");
    let servant: Arc<dyn Servant> = Arc::new(Fuzzed(pipe.clone()));
    let object = poa
        .servant_to_reference(&servant)
        .expect("implicit activation");
    orb.register_plain_key(KEY, &object).expect("a free key");
    orb
}

fn settle(orb: &Orb) {
    let busy = (0..TURNS_MAX).all(|_| orb.turn(Some(Duration::ZERO)));
    assert!(!busy, "the ORB turns in a circle");
}

/// An ORB that serves one session after the other.
struct Place {
    pipe: Pipe,
    orb: Orb,
    /// What is allocated while it serves none.
    allocated: usize,
}

impl Place {
    fn new(is_bidirectional: bool) -> Self {
        let pipe = Pipe::default();
        let orb = serve(&pipe, is_bidirectional);
        Self {
            pipe,
            orb,
            allocated: counted::begin(),
        }
    }
}

thread_local! {
    static PLACES: RefCell<[Place; 2]> = RefCell::new([false, true].map(Place::new));
}

/// Plays the session that these octets make.
///
/// # Panics
/// Where a promise is broken.
pub fn play(octets: &[u8]) {
    let session = Session::of(octets);
    PLACES.with_borrow_mut(|places| {
        let place = &mut places[usize::from(session.is_bidirectional)];
        let before = counted::begin();
        let done = play_at(place, &session);
        let most = counted::most().saturating_sub(before);
        assert!(most <= MEMORY_MAX, "{most} octets for one session");
        judge(&session, &done);
        drop((done, session));
        let left = counted::begin().saturating_sub(place.allocated);
        assert!(left <= MEMORY_MAX, "{left} octets are left of sessions");
    });
}

fn play_at(place: &Place, session: &Session) -> Vec<Done> {
    let Place { pipe, orb, .. } = place;
    pipe.connect();
    settle(orb);
    let all = session.messages.concat();
    let chunk = if session.chunk == 0 {
        all.len().max(1)
    } else {
        session.chunk
    };
    for some in all.chunks(chunk) {
        pipe.bring(some);
        settle(orb);
    }
    if session.is_silent {
        for _ in 0..40 {
            pipe.pass(Duration::from_secs(1));
            settle(orb);
        }
        let within = session.is_cut && session.ends_at.is_none_or(|at| session.lie_at <= Some(at));
        let has_begun = session.messages.last().is_some_and(|last| !last.is_empty());
        assert!(
            !(within && has_begun && pipe.is_open()),
            "a message that does not end is waited for without end"
        );
    }
    pipe.end();
    settle(orb);
    assert!(!pipe.is_open(), "the connection outlives its peer");
    assert_eq!(fuzzing::held(orb), [0; 4], "a share is not given back");
    pipe.take_done()
}

/// One answer of the ORB.
struct Answer {
    kind: u8,
    id: u32,
    status: u32,
    message: Vec<u8>,
}

impl Answer {
    /// Reads an answer by the letter of the standard.
    fn of(message: &[u8]) -> Self {
        let is_little = message[6] & 1 != 0;
        let long = |at: usize| {
            let octets = message[at..at + 4].try_into().expect("four");
            if is_little {
                u32::from_le_bytes(octets)
            } else {
                u32::from_be_bytes(octets)
            }
        };
        let kind = message[7];
        let mut at = HEADER;
        // Before GIOP 1.2 the contexts of a reply come first.
        if kind == REPLY && message[5] < 2 {
            at += 4;
            for _ in 0..long(HEADER) {
                at = at.next_multiple_of(4) + 8 + long(at.next_multiple_of(4) + 4) as usize;
            }
            at = at.next_multiple_of(4);
        }
        let (id, status) = if kind == REPLY || kind == LOCATE_REPLY {
            (long(at), long(at + 4))
        } else {
            (0, 0)
        };
        let message = message.to_vec();
        Self {
            kind,
            id,
            status,
            message,
        }
    }
}

/// Compares what happened with what was to come.
fn judge(session: &Session, done: &[Done]) {
    let written: Vec<u8> = done
        .iter()
        .flat_map(|done| match done {
            Done::Written(octets) => &octets[..],
            _ => &[],
        })
        .copied()
        .collect();
    let answers = answers_of(&written);
    let served: Vec<u32> = done
        .iter()
        .filter_map(|done| match done {
            Done::Served(number) => Some(*number),
            _ => None,
        })
        .collect();
    judge_end(&answers, done);
    for expected in &session.expected {
        if session.is_certain(expected) {
            judge_one(session, expected, &answers, &served);
        }
    }
    // Behind the client's own end nothing is served, unless the lie has hidden the end.
    let hides_end = |end: usize| session.lie_at.is_some_and(|at| at <= end);
    if let Some(end) = session.ends_at.filter(|end| !hides_end(*end)) {
        for late in session.expected.iter().filter(|one| one.whole_at > end) {
            let number = late.served.unwrap_or(u32::MAX);
            let is_served = served.contains(&number) && session.lie_at.is_none();
            assert!(!is_served, "request {number} is served behind the end");
        }
    }
    if session.lie_at.is_none() {
        let count = |one: &Expected| one.served.is_some() && session.is_certain(one);
        let certain = session.expected.iter().filter(|one| count(one)).count();
        let own = session
            .expected
            .iter()
            .filter(|one| one.served.is_none())
            .count();
        assert!(
            (certain..=certain + own).contains(&served.len()),
            "{certain} requests, and the servant was called {} times",
            served.len()
        );
        let complains = answers.iter().any(|answer| answer.kind == MESSAGE_ERROR);
        assert!(!complains, "a valid session is answered by MessageError");
    }
}

fn answers_of(mut written: &[u8]) -> Vec<Answer> {
    let mut answers = Vec::new();
    while !written.is_empty() {
        assert!(
            written.len() >= HEADER && &written[..5] == b"GIOP\x01",
            "no GIOP is written"
        );
        let size: [u8; 4] = written[8..HEADER].try_into().expect("four");
        let size = if written[6] & 1 != 0 {
            u32::from_le_bytes(size)
        } else {
            u32::from_be_bytes(size)
        };
        let end = HEADER + size as usize;
        assert!(end <= written.len(), "half a message is written");
        answers.push(Answer::of(&written[..end]));
        written = &written[end..];
    }
    answers
}

/// A farewell is the last word, and nothing is served or written behind it.
fn judge_end(answers: &[Answer], done: &[Done]) {
    for (place, answer) in answers.iter().enumerate() {
        let is_last = place + 1 == answers.len();
        match answer.kind {
            REPLY | LOCATE_REPLY => {}
            CLOSE_CONNECTION | MESSAGE_ERROR => assert!(is_last, "a word behind the farewell"),
            other => panic!("a server writes a message of type {other}"),
        }
    }
    let is_end = |done: &Done| match done {
        Done::Ended => true,
        Done::Written(octets) => {
            matches!(octets.get(7), Some(&(CLOSE_CONNECTION | MESSAGE_ERROR)))
        }
        Done::Served(_) => false,
    };
    if let Some(end) = done.iter().position(is_end) {
        let behind = &done[end + 1..];
        let is_quiet = behind.iter().all(|done| *done == Done::Ended);
        assert!(is_quiet, "behind the end: {behind:?}");
    }
}

fn judge_one(session: &Session, expected: &Expected, answers: &[Answer], served: &[u32]) {
    let mut own = answers.iter().filter(|answer| answer.id == expected.id);
    if let Some(number) = expected.served {
        assert!(
            served.contains(&number),
            "request {number} was not served: {expected:?}"
        );
    }
    if expected.outcome == Outcome::Nothing {
        // A lie may give the number of this one to a later request.
        let is_answered = session.lie_at.is_none() && own.next().is_some();
        return assert!(!is_answered, "a one-way is answered: {expected:?}");
    }
    let Some(answer) = own.next() else {
        panic!("no answer: {expected:?}");
    };
    match &expected.outcome {
        Outcome::Nothing | Outcome::Any => {}
        Outcome::Located(status) => {
            assert_eq!(
                (answer.kind, answer.status),
                (LOCATE_REPLY, *status),
                "{expected:?}"
            );
        }
        Outcome::Reply { status, echo } => {
            assert_eq!(
                (answer.kind, answer.status),
                (REPLY, *status),
                "{expected:?}"
            );
            if let Some(echo) = echo {
                assert!(answer.message.ends_with(echo), "another echo: {expected:?}");
            }
        }
    }
}
