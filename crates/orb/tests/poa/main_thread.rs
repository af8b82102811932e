//! MAIN_THREAD_MODEL: servants and servant managers are called on the one thread that the application provides.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use crate::support::{
    Bench, CallError, Refused, Server, TEST_ID, call, call_octets, call_refuse, client_of, seen_by,
    wait_for,
};
use deckwatch_orb::{
    Completion, ObjectRef, Orb, Poa, Policies, RequestProcessing, Servant, ServantActivator,
    ServantManager, ServantManagerError, ServerRequest, SystemException,
    SystemExceptionKind as Kind, ThreadPolicy, minor,
};

/// A servant that records the threads it is called on, and how many are in it.
#[derive(Default)]
struct Witness {
    bench: Bench,
    threads: Mutex<Vec<ThreadId>>,
    within: AtomicUsize,
    overlaps: AtomicUsize,
}

impl Witness {
    fn note(&self) {
        self.threads.lock().unwrap().push(thread::current().id());
    }
}

impl Servant for Witness {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[TEST_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        if self.within.fetch_add(1, Ordering::SeqCst) != 0 {
            self.overlaps.fetch_add(1, Ordering::SeqCst);
        }
        self.note();
        thread::yield_now();
        self.within.fetch_sub(1, Ordering::SeqCst);
        self.bench.dispatch(request)
    }
}

fn policies() -> Policies {
    Policies {
        thread: ThreadPolicy::MainThreadModel,
        ..Policies::persistent()
    }
}

fn child(server: &Server, name: &str, policies: &Policies) -> Poa {
    let manager = server.root.the_poa_manager();
    server
        .root
        .create_poa(name, Some(manager), policies)
        .unwrap()
}

fn at(client: &Orb, poa: &Poa, id: &[u8]) -> ObjectRef {
    let made = poa.create_reference_with_id(id, TEST_ID).unwrap();
    seen_by(client, &made)
}

/// A thread that calls `run`, as a program's main thread does.
fn run(orb: &Orb) -> thread::JoinHandle<()> {
    let orb = orb.clone();
    thread::spawn(move || orb.run().unwrap())
}

#[test]
fn every_request_is_served_on_the_thread_that_runs_the_orb_one_at_a_time() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let witness = Arc::new(Witness::default());
    let objects: Vec<_> = ["a", "b"]
        .iter()
        .map(|name| {
            let poa = child(&server, name, &policies());
            poa.activate_object_with_id(b"id", witness.clone()).unwrap();
            at(&client, &poa, b"id")
        })
        .collect();
    // The first request waits for a main thread; requests for other objects do not.
    let first = thread::spawn({
        let object = objects[0].clone();
        move || call(&object, "ping")
    });
    let plain = client.string_to_object(&server.text).unwrap().unwrap();
    assert_eq!(call(&plain, "ping"), Ok(()));
    assert!(witness.threads.lock().unwrap().is_empty());
    let main = run(&server.orb);
    assert_eq!(first.join().unwrap(), Ok(()));
    let callers: Vec<_> = (0..3)
        .map(|caller| {
            let object = objects[caller % 2].clone();
            thread::spawn(move || {
                for len in 0..40 {
                    let octets = vec![7; len * 100];
                    assert_eq!(call_octets(&object, &octets).unwrap(), octets);
                }
            })
        })
        .collect();
    for caller in callers {
        caller.join().unwrap();
    }
    assert_eq!(witness.overlaps.load(Ordering::SeqCst), 0);
    let threads = witness.threads.lock().unwrap().clone();
    assert_eq!(threads.len(), 121);
    assert!(threads.iter().all(|it| *it == main.thread().id()));
    server.orb.shutdown(true).unwrap();
    main.join().unwrap();
}

#[test]
fn what_a_servant_of_the_main_thread_raises_goes_to_the_caller() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let poa = child(&server, "main", &policies());
    poa.activate_object_with_id(b"id", Arc::new(Witness::default()))
        .unwrap();
    let main = run(&server.orb);
    let object = at(&client, &poa, b"id");
    let refused = Err(CallError::Refused(Refused { code: 5 }));
    assert_eq!(call_refuse(&object, 5), refused);
    assert_eq!(call(&object, "fail").unwrap_err().kind, Kind::NoPermission);
    assert_eq!(call(&object, "panic").unwrap_err().kind, Kind::Unknown);
    assert_eq!(object.is_a(TEST_ID), Ok(true));
    let nobody = at(&client, &poa, b"nobody");
    let unknown =
        SystemException::new(Kind::ObjectNotExist, minor::ADAPTER_UNKNOWN, Completion::No);
    assert_eq!(call(&nobody, "ping"), Err(unknown));
    assert_eq!(call(&object, "ping"), Ok(()));
    server.orb.shutdown(true).unwrap();
    main.join().unwrap();
}

#[test]
fn a_thread_that_performs_work_by_hand_serves_when_it_likes() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let witness = Arc::new(Witness::default());
    let poa = child(&server, "main", &policies());
    poa.activate_object_with_id(b"id", witness.clone()).unwrap();
    assert_eq!(server.orb.work_pending(), Ok(false));
    let object = at(&client, &poa, b"id");
    let caller = thread::spawn(move || call(&object, "ping"));
    wait_for(|| server.orb.work_pending().unwrap());
    assert!(witness.threads.lock().unwrap().is_empty());
    server.orb.perform_work().unwrap();
    assert_eq!(caller.join().unwrap(), Ok(()));
    assert_eq!(*witness.threads.lock().unwrap(), [thread::current().id()]);
    assert_eq!(server.orb.work_pending(), Ok(false));
}

struct Keeper(Arc<Witness>, AtomicUsize);

/// An adapter with MAIN_THREAD_MODEL and a servant activator.
fn kept(server: &Server) -> (Poa, Arc<Keeper>) {
    let with_manager = Policies {
        request_processing: RequestProcessing::UseServantManager,
        ..policies()
    };
    let poa = child(server, "main", &with_manager);
    let keeper = Arc::new(Keeper(Arc::default(), AtomicUsize::new(0)));
    poa.set_servant_manager(ServantManager::Activator(keeper.clone()))
        .unwrap();
    (poa, keeper)
}

impl ServantActivator for Keeper {
    fn incarnate(&self, _: &[u8], _: &Poa) -> Result<Arc<dyn Servant>, ServantManagerError> {
        self.0.note();
        Ok(self.0.clone())
    }

    fn etherealize(&self, _: &[u8], _: &Poa, _: Arc<dyn Servant>, _: bool, _: bool) {
        self.0.note();
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_servant_manager_too_is_called_on_the_main_thread_which_may_wait_for_the_adapters_end() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let (poa, keeper) = kept(&server);
    let object = at(&client, &poa, b"id");
    let caller = thread::spawn(move || call(&object, "ping"));
    wait_for(|| {
        server.orb.perform_work().unwrap();
        caller.is_finished()
    });
    assert_eq!(caller.join().unwrap(), Ok(()));
    poa.destroy(true, true).unwrap();
    assert_eq!(keeper.1.load(Ordering::SeqCst), 1);
    // `incarnate`, the request and `etherealize`, all on the main thread.
    assert_eq!(
        *keeper.0.threads.lock().unwrap(),
        [thread::current().id(); 3]
    );
}

#[test]
fn at_the_end_of_the_orb_servants_go_back_on_the_main_thread() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let (poa, keeper) = kept(&server);
    let main = run(&server.orb);
    assert_eq!(call(&at(&client, &poa, b"id"), "ping"), Ok(()));
    server.orb.shutdown(true).unwrap();
    assert_eq!(keeper.1.load(Ordering::SeqCst), 1);
    assert_eq!(*keeper.0.threads.lock().unwrap(), [main.thread().id(); 3]);
    main.join().unwrap();
}

#[test]
fn requests_that_no_main_thread_comes_for_end_with_the_orb_and_leave_a_thread_to_the_others() {
    let server = Server::shaped(|builder| builder.threads(2).dynamic_threads(0));
    let (client, bench) = client_of(&server);
    let poa = child(&server, "main", &policies());
    poa.activate_object_with_id(b"id", Arc::new(Witness::default()))
        .unwrap();
    let object = at(&client, &poa, b"id");
    let callers: Vec<_> = (0..3)
        .map(|_| {
            let object = object.clone();
            thread::spawn(move || call(&object, "ping").unwrap_err())
        })
        .collect();
    // One request waits; for the others there is no thread that could wait.
    while callers.iter().filter(|caller| caller.is_finished()).count() < 2 {
        assert_eq!(call(&bench, "ping"), Ok(()));
    }
    server.orb.shutdown(true).unwrap();
    for caller in callers {
        assert!(matches!(
            caller.join().unwrap().kind,
            Kind::Transient | Kind::CommFailure
        ));
    }
}

#[test]
fn where_no_thread_was_lent_servants_go_back_on_the_one_that_ends_the_orb() {
    let server = Server::start();
    let (poa, keeper) = kept(&server);
    poa.activate_object_with_id(b"id", keeper.0.clone())
        .unwrap();
    server.orb.shutdown(true).unwrap();
    assert_eq!(*keeper.0.threads.lock().unwrap(), [thread::current().id()]);
}
