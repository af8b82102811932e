//! Adapter activators: adapters created when a request or `find_poa` first needs them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::{Bench, Gate, Server, TEST_ID, call, client_of, forged};
use deckwatch_orb::limits::ADAPTER_PATH_SIZE_MAX;
use deckwatch_orb::{
    AdapterActivator, Completion, ObjectKey, ObjectRef, Orb, Poa, PoaError, Policies,
    SystemException, SystemExceptionKind as Kind, minor,
};

fn raised(kind: Kind, minor: u32) -> SystemException {
    SystemException::new(kind, minor, Completion::No)
}

/// An adapter activator: each adapter gets one active object; the adapter's name selects an error.
#[derive(Default)]
struct Maker {
    asked: Mutex<Vec<String>>,
    /// The test opens the gate; a slow child waits for it.
    gate: Gate,
    overlaps: AtomicUsize,
    /// Whether children get an activator of the same kind.
    deep: bool,
}

struct Handle(Arc<Maker>);

impl AdapterActivator for Handle {
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> Result<bool, SystemException> {
        if self.0.overlaps.fetch_add(1, Ordering::SeqCst) != 0 {
            return Err(raised(Kind::Internal, 1));
        }
        let path = format!("{}/{name}", parent.the_name());
        self.0.asked.lock().unwrap().push(path);
        let made = match name {
            "refused" | "claimed" => Ok(name == "claimed"),
            "raises" => Err(raised(Kind::NoPermission, 1)),
            "panics" => panic!("an activator panics, as the test asked it to"),
            _ => {
                let manager = Some(parent.the_poa_manager());
                let made = parent.create_poa(name, manager, &Policies::persistent());
                let made = made.expect("nobody else makes it");
                made.activate_object_with_id(b"bench", Arc::new(Bench::default()))
                    .expect("a new adapter");
                if self.0.deep {
                    made.set_the_activator(Some(Arc::new(Self(Arc::clone(&self.0)))))
                        .expect("a new adapter");
                }
                if name == "slow" {
                    self.0.gate.pass();
                }
                Ok(true)
            }
        };
        self.0.overlaps.fetch_sub(1, Ordering::SeqCst);
        made
    }
}

/// References to `bench` below these adapter paths, from an earlier server at the same endpoint.
fn references(paths: &[&[&str]]) -> (String, Vec<String>) {
    let server = Server::start();
    let endpoint = server.orb.endpoints()[0].to_string();
    let mut references = Vec::new();
    for path in paths {
        let mut poa = server.root.clone();
        for name in *path {
            poa = poa
                .find_poa(name, false)
                .unwrap_or_else(|_| poa.create_poa(name, None, &Policies::persistent()).unwrap());
        }
        let reference = poa.create_reference_with_id(b"bench", TEST_ID).unwrap();
        references.push(reference.to_string());
    }
    server.orb.shutdown(true).expect("it ends");
    (endpoint, references)
}

fn restart(endpoint: &str, maker: &Arc<Maker>) -> (Server, Orb) {
    let server = Server::at(endpoint);
    server
        .root
        .set_the_activator(Some(Arc::new(Handle(Arc::clone(maker)))))
        .unwrap();
    let (client, _) = client_of(&server);
    (server, client)
}

fn read(client: &Orb, text: &str) -> ObjectRef {
    client.string_to_object(text).unwrap().unwrap()
}

#[test]
fn a_request_makes_its_adapter_and_those_above_it_once() {
    let (endpoint, texts) = references(&[&["a", "b", "c"], &["a"]]);
    let maker = Arc::new(Maker {
        deep: true,
        ..Maker::default()
    });
    let (server, client) = restart(&endpoint, &maker);
    for text in &texts {
        assert_eq!(call(&read(&client, text), "ping"), Ok(()));
        assert_eq!(call(&read(&client, text), "ping"), Ok(()));
    }
    assert_eq!(*maker.asked.lock().unwrap(), ["RootPOA/a", "a/b", "b/c"]);
    let a = server.root.find_poa("a", false).unwrap();
    assert_eq!(a.the_children().unwrap().len(), 1);
}

#[test]
fn an_adapter_that_is_not_made_does_not_exist_and_an_activator_that_raises_is_obj_adapter() {
    let names = ["refused", "claimed", "raises", "panics"];
    let paths: Vec<&[&str]> = names.iter().map(std::slice::from_ref).collect();
    let (endpoint, texts) = references(&paths);
    let maker = Arc::new(Maker::default());
    let (_server, client) = restart(&endpoint, &maker);
    let unknown = raised(Kind::ObjectNotExist, minor::ADAPTER_UNKNOWN);
    assert_eq!(call(&read(&client, &texts[0]), "ping"), Err(unknown));
    // The activator returns true but has not created the adapter.
    assert_eq!(call(&read(&client, &texts[1]), "ping"), Err(unknown));
    let failed = raised(Kind::ObjAdapter, minor::ADAPTER_UNAVAILABLE);
    assert_eq!(call(&read(&client, &texts[2]), "ping"), Err(failed));
    maker.overlaps.store(0, Ordering::SeqCst);
    assert_eq!(call(&read(&client, &texts[3]), "ping"), Err(failed));
    assert_eq!(maker.asked.lock().unwrap().len(), 4);
}

#[test]
fn without_an_activator_an_unknown_adapter_does_not_exist() {
    let (endpoint, texts) = references(&[&["a"]]);
    let server = Server::at(&endpoint);
    let (client, _) = client_of(&server);
    let unknown = raised(Kind::ObjectNotExist, minor::ADAPTER_UNKNOWN);
    let object = read(&client, &texts[0]);
    assert_eq!(call(&object, "ping"), Err(unknown));
    assert_eq!(object.non_existent(), Ok(true));
}

#[test]
fn find_poa_asks_the_activator_only_where_it_is_told_to() {
    let server = Server::start();
    let maker = Arc::new(Maker::default());
    assert!(server.root.the_activator().is_none());
    assert_eq!(
        server.root.find_poa("a", true),
        Err(PoaError::AdapterNonExistent)
    );
    let activator: Arc<dyn AdapterActivator> = Arc::new(Handle(Arc::clone(&maker)));
    server.root.set_the_activator(Some(activator)).unwrap();
    assert!(server.root.the_activator().is_some());
    assert_eq!(
        server.root.find_poa("a", false),
        Err(PoaError::AdapterNonExistent)
    );
    assert!(maker.asked.lock().unwrap().is_empty());
    let made = server.root.find_poa("a", true).unwrap();
    assert_eq!(server.root.find_poa("a", true), Ok(made));
    assert_eq!(*maker.asked.lock().unwrap(), ["RootPOA/a"]);
    assert_eq!(
        server.root.find_poa("refused", true),
        Err(PoaError::AdapterNonExistent)
    );
    let failed = raised(Kind::ObjAdapter, minor::ADAPTER_UNAVAILABLE);
    assert_eq!(
        server.root.find_poa("raises", true),
        Err(PoaError::System(failed))
    );
}

#[test]
fn requests_wait_until_the_activator_is_done_with_the_adapter() {
    let (endpoint, texts) = references(&[&["slow"]]);
    let maker = Arc::new(Maker::default());
    let (server, client) = restart(&endpoint, &maker);
    let callers: Vec<_> = (0..3)
        .map(|_| {
            let object = read(&client, &texts[0]);
            std::thread::spawn(move || call(&object, "ping"))
        })
        .collect();
    maker.gate.wait_for_arrivals(1);
    // The adapter exists and its object is active, but requests are not served yet.
    let slow = server.root.find_poa("slow", false).unwrap();
    let servant = slow.id_to_servant(b"bench").unwrap();
    let fourth = read(&client, &texts[0]);
    let fourth = std::thread::spawn(move || call(&fourth, "ping"));
    assert_eq!(call(&read(&client, &server.text), "ping"), Ok(()));
    assert!(callers.iter().all(|caller| !caller.is_finished()) && !fourth.is_finished());
    maker.gate.open();
    for caller in callers.into_iter().chain([fourth]) {
        assert_eq!(caller.join().unwrap(), Ok(()));
    }
    assert_eq!(*maker.asked.lock().unwrap(), ["RootPOA/slow"]);
    drop(servant);
}

#[test]
fn a_destroyed_adapter_is_made_again_for_the_next_request() {
    let (endpoint, texts) = references(&[&["a"]]);
    let maker = Arc::new(Maker::default());
    let (server, client) = restart(&endpoint, &maker);
    let object = read(&client, &texts[0]);
    assert_eq!(call(&object, "ping"), Ok(()));
    let first = server.root.find_poa("a", false).unwrap();
    first.destroy(true, true).unwrap();
    assert_eq!(call(&object, "ping"), Ok(()));
    assert_eq!(maker.asked.lock().unwrap().len(), 2);
    assert_ne!(server.root.find_poa("a", false).unwrap(), first);
}

#[test]
fn names_longer_than_an_adapter_may_have_do_not_reach_the_activator() {
    let server = Server::start();
    let maker = Arc::new(Maker::default());
    let activator: Arc<dyn AdapterActivator> = Arc::new(Handle(Arc::clone(&maker)));
    server.root.set_the_activator(Some(activator)).unwrap();
    let (client, _) = client_of(&server);
    let unknown = raised(Kind::ObjectNotExist, minor::ADAPTER_UNKNOWN);
    let ask = |path: &[u8]| {
        let key = ObjectKey::Persistent { path, id: b"bench" }.to_octets();
        call(&forged(&client, &server, &key), "ping")
    };
    assert_eq!(ask(&vec![b'x'; ADAPTER_PATH_SIZE_MAX + 1]), Err(unknown));
    // A name must not be empty, and must be text.
    for path in [&b"\xff"[..], b"\0x", b""] {
        assert_eq!(ask(path), Err(unknown));
    }
    assert!(maker.asked.lock().unwrap().is_empty());
    assert_eq!(ask(&[b'x'; ADAPTER_PATH_SIZE_MAX]), Ok(()));
    assert_eq!(maker.asked.lock().unwrap().len(), 1);
}
