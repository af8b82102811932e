//! Many threads call while objects and adapters are created and destroyed. Every call ends in one of the allowed ways,
//! every servant is etherealized once, and nothing waits forever.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::{Bench, Server, TEST_ID, call, client_of, seen_by};
use deckwatch_orb::{
    AdapterActivator, ObjectRef, Orb, Poa, PoaError, Policies, RequestProcessing, Servant,
    ServantActivator, ServantManager, ServantManagerError, SystemException,
    SystemExceptionKind as Kind, minor,
};

const OBJECTS: usize = 6;
const CALLERS: usize = 4;
const CALLS: usize = 150;

/// Counts: servants incarnated and etherealized, adapters created, errors found.
#[derive(Default)]
struct Book {
    made: AtomicUsize,
    back: AtomicUsize,
    overlaps: AtomicUsize,
    adapters: AtomicUsize,
    served_twice: AtomicUsize,
}

/// The servant activator of one adapter. A later adapter of the same name has another.
struct Keeper {
    book: Arc<Book>,
    /// Calls in progress.
    within: AtomicUsize,
    alive: Mutex<HashSet<Vec<u8>>>,
}

impl Keeper {
    fn enter<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.within.fetch_add(1, Ordering::SeqCst) != 0 {
            self.book.overlaps.fetch_add(1, Ordering::SeqCst);
        }
        std::thread::yield_now();
        let result = work();
        self.within.fetch_sub(1, Ordering::SeqCst);
        result
    }
}

impl ServantActivator for Keeper {
    fn incarnate(&self, id: &[u8], _: &Poa) -> Result<Arc<dyn Servant>, ServantManagerError> {
        self.enter(|| {
            self.book.made.fetch_add(1, Ordering::SeqCst);
            if !self.alive.lock().unwrap().insert(id.to_vec()) {
                self.book.served_twice.fetch_add(1, Ordering::SeqCst);
            }
            Ok(Arc::new(Bench::default()) as Arc<dyn Servant>)
        })
    }

    fn etherealize(&self, id: &[u8], _: &Poa, _: Arc<dyn Servant>, _: bool, _: bool) {
        self.enter(|| {
            self.book.back.fetch_add(1, Ordering::SeqCst);
            assert!(self.alive.lock().unwrap().remove(id));
        });
    }
}

struct Maker(Arc<Book>);

impl AdapterActivator for Maker {
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> Result<bool, SystemException> {
        let policies = Policies {
            request_processing: RequestProcessing::UseServantManager,
            ..Policies::persistent()
        };
        let made = parent.create_poa(name, Some(parent.the_poa_manager()), &policies);
        let Ok(made) = made else { return Ok(false) };
        self.0.adapters.fetch_add(1, Ordering::SeqCst);
        let keeper = Arc::new(Keeper {
            book: Arc::clone(&self.0),
            within: AtomicUsize::new(0),
            alive: Mutex::default(),
        });
        let set = made.set_servant_manager(ServantManager::Activator(keeper));
        Ok(set.is_ok())
    }
}

fn is_expected(exception: SystemException) -> bool {
    matches!(
        (exception.kind, exception.minor),
        // The adapter was being destroyed, or another thread was creating it again meanwhile.
        (
            Kind::Transient,
            minor::ADAPTER_DESTROYED | minor::REQUEST_DISCARDED
        ) | (Kind::ObjectNotExist, minor::ADAPTER_UNKNOWN)
    )
}

fn callers(objects: &[ObjectRef], served: &Arc<AtomicUsize>) -> Vec<std::thread::JoinHandle<()>> {
    let callers = (0..CALLERS).map(|caller| {
        let (objects, served) = (objects.to_vec(), Arc::clone(served));
        std::thread::spawn(move || {
            for round in 0..CALLS {
                match call(&objects[(caller + round * 7) % OBJECTS], "ping") {
                    Ok(()) => _ = served.fetch_add(1, Ordering::SeqCst),
                    Err(exception) => assert!(is_expected(exception), "{exception:?}"),
                }
            }
        })
    });
    callers.collect()
}

/// A server that creates its adapter `storm` on demand, and the counts.
fn stormy() -> (Server, Arc<Book>) {
    let server = Server::start();
    let book = Arc::new(Book::default());
    let maker = Maker(Arc::clone(&book));
    server
        .root
        .set_the_activator(Some(Arc::new(maker)))
        .unwrap();
    (server, book)
}

fn objects_of(client: &Orb, poa: &Poa) -> Vec<ObjectRef> {
    (0..OBJECTS)
        .map(|number| {
            let id = number.to_string();
            let made = poa.create_reference_with_id(id.as_bytes(), TEST_ID);
            seen_by(client, &made.unwrap())
        })
        .collect()
}

fn check(server: &Server, book: &Book) {
    server.orb.shutdown(true).unwrap();
    assert_eq!(book.overlaps.load(Ordering::SeqCst), 0);
    assert_eq!(book.served_twice.load(Ordering::SeqCst), 0);
    let (made, back) = (&book.made, &book.back);
    assert_eq!(made.load(Ordering::SeqCst), back.load(Ordering::SeqCst));
}

#[test]
fn objects_that_are_deactivated_under_load_are_made_anew_and_every_servant_goes_back_once() {
    let (server, book) = stormy();
    let (client, _) = client_of(&server);
    let poa = server.root.find_poa("storm", true).unwrap();
    let objects = objects_of(&client, &poa);
    let served = Arc::new(AtomicUsize::new(0));
    let callers = callers(&objects, &served);
    let mut number = 0_usize;
    while callers.iter().any(|caller| !caller.is_finished()) {
        number += 1;
        let id = (number % OBJECTS).to_string();
        match poa.deactivate_object(id.as_bytes()) {
            Ok(()) | Err(PoaError::ObjectNotActive) => {}
            Err(other) => panic!("{other:?}"),
        }
        std::thread::yield_now();
    }
    for caller in callers {
        caller.join().unwrap();
    }
    // Calls were refused only for want of a thread that could wait.
    assert!(served.load(Ordering::SeqCst) > CALLERS * CALLS / 2);
    assert!(book.made.load(Ordering::SeqCst) > OBJECTS);
    check(&server, &book);
}

#[test]
fn adapters_that_are_destroyed_under_load_are_made_anew() {
    let (server, book) = stormy();
    let (client, _) = client_of(&server);
    let objects = objects_of(&client, &server.root.find_poa("storm", true).unwrap());
    let served = Arc::new(AtomicUsize::new(0));
    let callers = callers(&objects, &served);
    while callers.iter().any(|caller| !caller.is_finished()) {
        if let Ok(poa) = server.root.find_poa("storm", false) {
            let wait = served.load(Ordering::SeqCst).is_multiple_of(2);
            match poa.destroy(true, wait) {
                Ok(()) => {}
                Err(PoaError::System(it)) => assert_eq!(it.kind, Kind::ObjectNotExist),
                Err(other) => panic!("{other:?}"),
            }
        }
        let before = served.load(Ordering::SeqCst);
        while served.load(Ordering::SeqCst) == before && callers.iter().any(|it| !it.is_finished())
        {
            std::thread::yield_now();
        }
    }
    for caller in callers {
        caller.join().unwrap();
    }
    assert!(book.adapters.load(Ordering::SeqCst) > 1);
    assert!(served.load(Ordering::SeqCst) > 0);
    check(&server, &book);
}

#[test]
fn managers_that_change_under_load_hold_and_let_go_and_lose_no_request() {
    let server = Server::start();
    let (_client, bench) = client_of(&server);
    let done = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let bench = bench.clone();
            std::thread::spawn(move || {
                for _ in 0..CALLS {
                    assert_eq!(call(&bench, "ping"), Ok(()));
                }
            })
        })
        .collect();
    let manager = server.root.the_poa_manager().clone();
    let changer = std::thread::spawn({
        let done = Arc::clone(&done);
        move || {
            while !done.load(Ordering::SeqCst) {
                manager.hold_requests(true).unwrap();
                manager.activate().unwrap();
                std::thread::yield_now();
            }
        }
    });
    for caller in callers {
        caller.join().unwrap();
    }
    done.store(true, Ordering::SeqCst);
    changer.join().unwrap();
    let calls = server.bench.calls.load(Ordering::SeqCst);
    assert_eq!(calls, (CALLERS * CALLS) as u64);
}
