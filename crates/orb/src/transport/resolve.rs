//! Resolves host names within a deadline. The system's resolver has none: each name that is asked occupies a thread
//! until it answers.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use deckwatch_os::stream;

use super::{Instant64, TransportError};
use crate::limits::{
    RESOLUTION_FAILED_FOR, RESOLUTION_SHARE, RESOLUTIONS_KEPT_MAX, RESOLUTIONS_MAX,
    RESOLUTIONS_OF_PEERS_MAX,
};
use crate::peers::Peer;

/// The addresses of a host. Only a name is resolved; an address is used directly, and never waits for names. `by`: the
/// peer that gave the name, if that is not this program.
pub(super) fn addresses(
    host: &str,
    port: u16,
    by: Option<Peer>,
    deadline: Option<Instant64>,
) -> Result<Vec<SocketAddr>, TransportError> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let mut found = if is_link_local(host) {
        let found = ask_system(host);
        (!found.is_empty())
            .then_some(found)
            .ok_or(TransportError::UnknownHost)?
    } else {
        RESOLVER.resolve(host, by, deadline)?
    };
    found.iter_mut().for_each(|address| address.set_port(port));
    Ok(found)
}

/// Whether it is an address with the name of an interface: no server is asked about it.
fn is_link_local(host: &str) -> bool {
    let address = host.split_once('%').map(|(address, _)| address);
    address.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
}

static RESOLVER: LazyLock<Arc<Resolver>> = LazyLock::new(|| Resolver::new(ask_system));

fn ask_system(host: &str) -> Vec<SocketAddr> {
    let found = (host, 0).to_socket_addrs();
    found.map(Iterator::collect).unwrap_or_default()
}

/// The names that are being resolved, and those that had no address a moment ago.
struct Resolver {
    questions: Mutex<HashMap<String, Arc<Question>>>,
    /// Notified with each answer.
    answered: Condvar,
    ask: Box<Ask>,
}

/// Asks the system, however long that takes.
type Ask = dyn Fn(&str) -> Vec<SocketAddr> + Send + Sync;

/// One name. All callers that need it meanwhile wait for the same answer.
struct Question {
    by: Option<Peer>,
    /// The addresses, and when they were found.
    answer: OnceLock<(Vec<SocketAddr>, Instant64)>,
}

impl Resolver {
    fn new(ask: impl Fn(&str) -> Vec<SocketAddr> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            questions: Mutex::default(),
            answered: Condvar::new(),
            ask: Box::new(ask),
        })
    }

    fn questions(&self) -> MutexGuard<'_, HashMap<String, Arc<Question>>> {
        self.questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A caller whose deadline has passed leaves the thread that asks behind.
    fn resolve(
        self: &Arc<Self>,
        host: &str,
        by: Option<Peer>,
        deadline: Option<Instant64>,
    ) -> Result<Vec<SocketAddr>, TransportError> {
        let mut questions = self.questions();
        let now = Instant64(stream::monotonic_ns());
        questions.retain(|_, question| question.holds(now));
        let question = match questions.get(host) {
            Some(question) => Arc::clone(question),
            None => {
                if !has_room(&questions, by) {
                    return Err(TransportError::Exhausted);
                }
                let question = self.begin(host, by)?;
                questions.insert(host.to_owned(), Arc::clone(&question));
                question
            }
        };
        loop {
            if let Some((found, _)) = question.answer.get() {
                let none = TransportError::UnknownHost;
                return (!found.is_empty()).then(|| found.clone()).ok_or(none);
            }
            let left = deadline.map_or(Duration::MAX, |deadline| {
                deadline.since(Instant64(stream::monotonic_ns()))
            });
            if left.is_zero() {
                return Err(TransportError::TimedOut);
            }
            let waited = self.answered.wait_timeout(questions, left);
            (questions, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Asks the system in a thread of its own.
    fn begin(
        self: &Arc<Self>,
        host: &str,
        by: Option<Peer>,
    ) -> Result<Arc<Question>, TransportError> {
        let question = Arc::new(Question {
            by,
            answer: OnceLock::new(),
        });
        let (own, asked, host) = (Arc::clone(self), Arc::clone(&question), host.to_owned());
        let asking = std::thread::Builder::new()
            .name("orb-resolver".to_owned())
            .spawn(move || {
                let found = (own.ask)(&host);
                let mut questions = own.questions();
                let is_kept = found.is_empty() && questions.len() <= RESOLUTIONS_KEPT_MAX;
                if !is_kept {
                    questions.remove(&host);
                }
                asked
                    .answer
                    .get_or_init(|| (found, Instant64(stream::monotonic_ns())));
                own.answered.notify_all();
            });
        match asking {
            Ok(_) => Ok(question),
            Err(_) => Err(TransportError::Exhausted),
        }
    }
}

impl Question {
    /// Whether it is open, or was answered with nothing a moment ago.
    fn holds(&self, now: Instant64) -> bool {
        let answer = self.answer.get();
        answer.is_none_or(|(_, at)| now.since(*at) < RESOLUTION_FAILED_FOR)
    }
}

/// Whether one more name of a peer may be asked. Names of peers leave room for those of this program.
fn has_room(questions: &HashMap<String, Arc<Question>>, by: Option<Peer>) -> bool {
    let open = questions.values();
    let open = open.filter(|question| question.answer.get().is_none());
    let (mut all, mut of_peers, mut of_peer) = (0, 0, 0);
    for question in open {
        all += 1;
        of_peers += usize::from(question.by.is_some());
        of_peer += usize::from(question.by == by);
    }
    let has_share =
        by.is_none() || of_peers < RESOLUTIONS_OF_PEERS_MAX && of_peer < RESOLUTION_SHARE;
    all < RESOLUTIONS_MAX && has_share
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A resolver whose names that begin with `silent` have no answer until `gate` is opened; `nobody` has no address.
    struct Trial {
        resolver: Arc<Resolver>,
        gate: Arc<(Mutex<bool>, Condvar)>,
        asked: Arc<AtomicUsize>,
    }

    fn address() -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], 0))
    }

    fn trial() -> Trial {
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        let asked = Arc::new(AtomicUsize::new(0));
        let (opened, count) = (Arc::clone(&gate), Arc::clone(&asked));
        let resolver = Resolver::new(move |host| {
            count.fetch_add(1, Ordering::SeqCst);
            if host.starts_with("silent") {
                let (is_open, changed) = &*opened;
                let is_open = is_open.lock().expect("whole");
                drop(changed.wait_while(is_open, |is_open| !*is_open));
            }
            match host {
                "nobody" => Vec::new(),
                _ => vec![address()],
            }
        });
        Trial {
            resolver,
            gate,
            asked,
        }
    }

    impl Trial {
        fn ask(&self, host: &str, by: Option<Peer>) -> Result<Vec<SocketAddr>, TransportError> {
            let soon = Instant64(stream::monotonic_ns() + 1_000_000);
            let deadline = host.starts_with("silent").then_some(soon);
            self.resolver.resolve(host, by, deadline)
        }

        fn open(&self) {
            *self.gate.0.lock().expect("whole") = true;
            self.gate.1.notify_all();
        }
    }

    fn peer(number: u8) -> Option<Peer> {
        Some(Peer::Address(IpAddr::from([192, 0, 2, number])))
    }

    #[test]
    fn names_of_a_peer_leave_room_for_those_of_others_and_of_this_program() {
        let trial = trial();
        let mut hosts = 0..;
        let mut silent = |by| {
            let host = format!("silent{}", hosts.next().expect("endless"));
            trial.ask(&host, by)
        };
        let (timed_out, refused) = (
            Err(TransportError::TimedOut),
            Err(TransportError::Exhausted),
        );
        for _ in 0..RESOLUTION_SHARE {
            assert_eq!(silent(peer(1)), timed_out);
        }
        assert_eq!(silent(peer(1)), refused, "its share");
        assert_eq!(trial.ask("ship", peer(2)), Ok(vec![address()]));
        for number in 2.. {
            if usize::from(number) * RESOLUTION_SHARE > RESOLUTIONS_OF_PEERS_MAX {
                break;
            }
            for _ in 0..RESOLUTION_SHARE {
                assert_eq!(silent(peer(number)), timed_out);
            }
        }
        assert_eq!(trial.ask("ship", peer(99)), refused, "that of all peers");
        assert_eq!(trial.ask("ship", None), Ok(vec![address()]));
        for _ in RESOLUTIONS_OF_PEERS_MAX..RESOLUTIONS_MAX {
            assert_eq!(silent(None), timed_out);
        }
        assert_eq!(trial.ask("ship", None), refused, "the whole");
        trial.open();
        while trial.ask("ship", peer(1)) == refused {
            std::thread::yield_now();
        }
    }

    #[test]
    fn callers_of_the_same_name_share_one_question() {
        let trial = trial();
        for by in [peer(1), peer(2), None] {
            assert_eq!(trial.ask("silent", by), Err(TransportError::TimedOut));
        }
        let answers = std::thread::scope(|scope| {
            let ask = || trial.resolver.resolve("silent", peer(1), None);
            let waiting: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            trial.open();
            let answers = waiting.into_iter().map(|one| one.join().expect("whole"));
            answers.collect::<Vec<_>>()
        });
        assert_eq!(answers, vec![Ok(vec![address()]); 8]);
        let asked = trial.asked.load(Ordering::SeqCst);
        // A caller that came after the answer asks anew.
        assert!((1..=8).contains(&asked), "{asked}");
    }

    #[test]
    fn name_without_an_address_is_not_asked_again_at_once() {
        let trial = trial();
        for _ in 0..4 {
            let found = trial.ask("nobody", peer(1));
            assert_eq!(found, Err(TransportError::UnknownHost));
        }
        assert_eq!(trial.asked.load(Ordering::SeqCst), 1);
        let question = Question {
            by: None,
            answer: OnceLock::from((Vec::new(), Instant64(0))),
        };
        assert!(question.holds(Instant64(1)));
        assert!(!question.holds(Instant64(0).after(RESOLUTION_FAILED_FOR)));
    }

    #[test]
    fn address_with_a_scope_asks_no_server() {
        assert!(is_link_local("fe80::1%eth0") && is_link_local("fe80::1%2"));
        assert!(!is_link_local("ship") && !is_link_local("ship%eth0"));
    }
}
