//! Life-cycle operations of an ORB (CORBA 3.3 part 1, clause 8.2.4): `run`, `perform_work`, `shutdown`.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use crate::support::{Bench, Server, call, client_of, note, wait_for};
use deckwatch_orb::{
    Counter, ObjectRef, Orb, Poa, Policies, Policy, RequestProcessing, Servant, ServantActivator,
    ServantManager, ServantManagerError, ServerRequest, SetOverrideType, SyncScope,
    SystemException, SystemExceptionKind as Kind,
};

const OMG: u32 = 0x4f4d_0000;

fn facts(raised: Result<(), SystemException>) -> (Kind, u32) {
    let raised = raised.unwrap_err();
    (raised.kind, raised.minor - OMG)
}

#[test]
fn after_a_shutdown_every_operation_raises_bad_inv_order_4() {
    let server = Server::start();
    let (client, bench) = client_of(&server);
    let own = server.orb.string_to_object(&server.text).unwrap().unwrap();
    assert_eq!(call(&bench, "ping"), Ok(()));
    let orb = &server.orb;
    assert_eq!(orb.shutdown(true), Ok(()));
    let after = (Kind::BadInvOrder, 4);
    assert_eq!(facts(orb.shutdown(true)), after);
    assert_eq!(facts(orb.shutdown(false)), after);
    assert_eq!(facts(orb.run()), after);
    assert_eq!(facts(orb.work_pending().map(drop)), after);
    assert_eq!(facts(orb.perform_work()), after);
    assert_eq!(facts(orb.root_poa().map(drop)), after);
    assert_eq!(facts(orb.string_to_object(&server.text).map(drop)), after);
    assert_eq!(
        facts(orb.resolve_initial_references("RootPOA").map(drop)),
        after
    );
    assert_eq!(facts(call(&own, "ping")), after);
    // The client's own ORB still works, without a server.
    assert_eq!(call(&bench, "ping").unwrap_err().kind, Kind::Transient);
    assert_eq!(client.destroy(), Ok(()));
    let destroyed = client.destroy().unwrap_err().kind;
    assert_eq!(destroyed, Kind::ObjectNotExist);
    assert_eq!(call(&bench, "ping").unwrap_err().kind, Kind::ObjectNotExist);
}

/// A servant that shuts its own ORB down.
struct Ender {
    orb: Mutex<Option<Orb>>,
    raised: Mutex<Sender<[Result<(), SystemException>; 3]>>,
}

impl Servant for Ender {
    fn repository_ids(&self) -> &'static [&'static str] {
        &["IDL:deckwatch.test/Ender:1.0"]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let orb = self.orb.lock().unwrap().take().expect("asked once");
        let raised = [orb.shutdown(true), orb.destroy(), orb.shutdown(false)];
        self.raised.lock().unwrap().send(raised).unwrap();
        request.reply()?;
        Ok(())
    }
}

#[test]
fn a_servant_cannot_wait_for_the_end_of_its_orb_but_may_begin_it_and_still_replies() {
    let orb = Orb::builder()
        .listen("127.0.0.1:0")
        .unwrap()
        .build()
        .unwrap();
    let (raised, heard) = channel();
    let ender: Arc<dyn Servant> = Arc::new(Ender {
        orb: Mutex::new(Some(orb.clone())),
        raised: Mutex::new(raised),
    });
    let root = orb.root_poa().unwrap();
    root.the_poa_manager().activate().unwrap();
    let text = root.servant_to_reference(&ender).unwrap().to_string();
    let running = std::thread::spawn({
        let orb = orb.clone();
        move || orb.run()
    });
    let client = Orb::builder().build().unwrap();
    let reference = client.string_to_object(&text).unwrap().unwrap();
    assert_eq!(call(&reference, "end"), Ok(()));
    let [waiting, destroying, beginning] = heard.recv().unwrap();
    assert_eq!(facts(waiting), (Kind::BadInvOrder, 3));
    assert_eq!(facts(destroying), (Kind::BadInvOrder, 3));
    assert_eq!(beginning, Ok(()));
    // The thread may have come to `run` when the end had begun.
    let ended = running.join().unwrap();
    assert!(
        ended.is_ok() || facts(ended) == (Kind::BadInvOrder, 4),
        "{ended:?}"
    );
    assert_eq!(call(&reference, "end").unwrap_err().kind, Kind::Transient);
}

#[test]
fn an_orb_without_threads_works_when_it_is_told_to() {
    let server = Server::shaped(|builder| builder.turned_by_hand());
    assert_eq!(server.orb.work_pending(), Ok(false));
    assert_eq!(server.orb.perform_work(), Ok(()));
    let (_client, bench) = client_of(&server);
    note(&bench, 7).unwrap();
    wait_for(|| server.orb.work_pending().unwrap());
    assert_eq!(*server.bench.order.lock().unwrap(), []);
    wait_for(|| {
        server.orb.perform_work().unwrap();
        !server.bench.order.lock().unwrap().is_empty()
    });
    assert_eq!(*server.bench.order.lock().unwrap(), [7]);
    assert_eq!(server.orb.shutdown(true), Ok(()));
}

/// A servant activator that notifies another object from `etherealize`.
struct Teller(ObjectRef);

impl ServantActivator for Teller {
    fn incarnate(&self, _: &[u8], _: &Poa) -> Result<Arc<dyn Servant>, ServantManagerError> {
        Ok(Arc::new(Bench::default()))
    }

    fn etherealize(&self, _: &[u8], _: &Poa, _: Arc<dyn Servant>, _: bool, _: bool) {
        note(&self.0, 2).unwrap();
    }
}

#[test]
fn a_one_way_that_nobody_waits_for_is_sent_at_the_end_of_its_orb_too() {
    let server = Server::start();
    let orb = Server::start();
    let told = orb.orb.string_to_object(&server.text).unwrap().unwrap();
    let scope = [Policy::SyncScope(SyncScope::None)];
    let told = told
        .set_policy_overrides(&scope, SetOverrideType::AddOverride)
        .unwrap();
    let policies = Policies {
        request_processing: RequestProcessing::UseServantManager,
        ..Policies::persistent()
    };
    let poa = orb.root.create_poa("poa", None, &policies).unwrap();
    poa.set_servant_manager(ServantManager::Activator(Arc::new(Teller(told.clone()))))
        .unwrap();
    poa.activate_object_with_id(b"id", Arc::new(Bench::default()))
        .unwrap();
    note(&told, 1).unwrap();
    orb.orb.shutdown(true).unwrap();
    // The one-way is sent; it does not stay in a queue that no thread empties. Two threads of the server may serve both.
    wait_for(|| {
        let mut served = server.bench.order.lock().unwrap().clone();
        served.sort_unstable();
        served == [1, 2]
    });
}

#[test]
fn an_orb_ends_with_its_last_handle_whatever_references_it_knows_by_name() {
    let server = Server::start();
    let client = Orb::builder().initial_reference("Bench", &server.text);
    let client = client.build().unwrap();
    for _ in 0..2 {
        let found = client.resolve_initial_references("Bench").unwrap();
        assert_eq!(call(&found, "ping"), Ok(()));
    }
    drop(client);
    wait_for(|| server.orb.counters().read(Counter::ConnectionsClosed) == 1);

    let address = server.address();
    let own = server.orb.string_to_object(&server.text).unwrap().unwrap();
    server.orb.register_initial_reference("Own", &own);
    server.orb.register_plain_key(b"Own", &own).unwrap();
    assert_eq!(server.orb.resolve_initial_references("Own"), Ok(own));
    drop(server);
    wait_for(|| std::net::TcpStream::connect(address).is_err());
}
