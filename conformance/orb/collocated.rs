//! Collocated calls by clause (CORBA 3.3 part 1, clauses 15.2.8, 15.3.2, 15.3.8 and 17.2): served by the calling
//! thread, under the adapter's policies, with the results that a remote caller would see.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::common;
use crate::common::servant::{PROBE_ID, call, call_with, note};
use crate::common::{Lanes, PATIENCE, Probe, World, over_each};
use deckwatch_cdr::{Any, Parse, TypeCode, WString, Write, value::Value};
use deckwatch_dynamic::{CreateRequest, NamedValue};
use deckwatch_orb::{
    Completion, Cookie, Counter, ForwardRequest, ObjectRef, Orb, Poa, PoaManager, Policies, Policy,
    RequestProcessing, Servant, ServantActivator, ServantLocator, ServantManager,
    ServantManagerError, ServantRetention, ServerRequest, SetOverrideType, SyncScope,
    SystemException, SystemExceptionKind as Kind, ThreadPolicy, minor, own_minor,
};

/// A servant that runs a closure of the test.
struct Doing<F>(F);

impl<F> Servant for Doing<F>
where
    F: Fn(&mut ServerRequest<'_>) -> Result<(), SystemException> + Send + Sync + 'static,
{
    fn repository_ids(&self) -> &'static [&'static str] {
        &[PROBE_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        (self.0)(request)
    }
}

fn doing<F>(what: F) -> Arc<dyn Servant>
where
    F: Fn(&mut ServerRequest<'_>) -> Result<(), SystemException> + Send + Sync + 'static,
{
    Arc::new(Doing(what))
}

/// An object of the root adapter.
fn object(world: &World, servant: &Arc<dyn Servant>) -> ObjectRef {
    world.root.servant_to_reference(servant).unwrap()
}

/// An object of a new child adapter.
fn object_of(world: &World, policies: &Policies, servant: Arc<dyn Servant>) -> ObjectRef {
    let poa = child(world, Some(world.root.the_poa_manager()), policies);
    poa.activate_object_with_id(b"it", servant).unwrap();
    poa.id_to_reference(b"it").unwrap()
}

fn child(world: &World, manager: Option<&PoaManager>, policies: &Policies) -> Poa {
    world.root.create_poa("child", manager, policies).unwrap()
}

fn accepted(orb: &Orb) -> u64 {
    orb.counters().read(Counter::ConnectionsAccepted)
}

fn collocated(orb: &Orb) -> u64 {
    orb.counters().read(Counter::CollocatedCalls)
}

fn scoped(object: &ObjectRef, scope: SyncScope) -> ObjectRef {
    let how = SetOverrideType::AddOverride;
    object
        .set_policy_overrides(&[Policy::SyncScope(scope)], how)
        .unwrap()
}

fn system(kind: Kind, minor: u32, completed: Completion) -> Result<(), SystemException> {
    Err(SystemException::new(kind, minor, completed))
}

over_each! {
    fn the_calling_thread_serves_it_and_nothing_goes_over_the_network(over) {
        let world = World::new(over, Lanes::OneThread);
        let here = thread::current().id();
        let is_here = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_here);
        let servant = doing(move |_| {
            seen.store(thread::current().id() == here, Ordering::SeqCst);
            Ok(())
        });
        assert_eq!(call(&object(&world, &servant), "ping"), Ok(()));
        assert!(is_here.load(Ordering::SeqCst));
        assert_eq!((collocated(&world.orb), accepted(&world.orb)), (1, 0));
        // A reference read from text is collocated too.
        assert_eq!(call(&world.seen_by(&world.orb), "ping"), Ok(()));
        assert_eq!((collocated(&world.orb), accepted(&world.orb)), (2, 0));
        // Another ORB of the same process uses the network.
        assert_eq!(call(&world.seen_by(&common::client()), "ping"), Ok(()));
        assert_eq!((collocated(&world.orb), accepted(&world.orb)), (2, 1));
    }

    fn values_of_every_kind_go_and_come_as_over_the_network(over) {
        let world = World::new(over, Lanes::Many);
        let it = &world.object;
        let text = "Grüße, 世界".to_owned();
        assert_eq!(call_with(it, "text", &text).as_ref(), Ok(&text));
        let wide: WString = text.as_str().into();
        assert_eq!(call_with(it, "wide_text", &wide).as_ref(), Ok(&wide));
        let any = Any::from_dynamic(&TypeCode::double(), &Value::Double(0.5)).unwrap();
        assert_eq!(call_with(it, "any", &any).as_ref(), Ok(&any));
        let object = Some(world.object.clone());
        assert_eq!(call_with(it, "object", &object).as_ref(), Ok(&object));
        assert_eq!(it.is_a(common::servant::BASE_ID), Ok(true));
        assert_eq!(it.non_existent(), Ok(false));
        assert_eq!(accepted(&world.orb), 0);
    }

    fn exceptions_come_back_as_the_servant_raised_them(over) {
        let world = World::new(over, Lanes::Many);
        let refused: Result<(), (u32, Option<SystemException>)> = world
            .object
            .invoke("refuse", |w| 9_u32.write(w), |_| Ok(()), |id, r| {
                assert_eq!(id, common::servant::REFUSED_ID);
                Ok(Some(Refused(r.read_u32()?)))
            })
            .map_err(|Refused(code)| (code, None));
        assert_eq!(refused, Err((9, None)));
        assert_eq!(call(&world.object, "fail"), system(Kind::NoPermission, 7, Completion::Yes));
        assert_eq!(call(&world.object, "panic"), system(Kind::Unknown, 0, Completion::Maybe));
        let unknown = system(Kind::BadOperation, minor::OPERATION_UNKNOWN, Completion::No);
        assert_eq!(call(&world.object, "nothing"), unknown);
        let id = world.root.reference_to_id(&world.object).unwrap();
        world.root.deactivate_object(&id).unwrap();
        let gone = call(&world.object, "ping").unwrap_err();
        assert_eq!(gone.kind, Kind::ObjectNotExist);
        assert_eq!(accepted(&world.orb), 0);
    }

    fn a_manager_that_holds_keeps_the_caller_and_one_that_turns_away_is_heard(over) {
        let world = World::new(over, Lanes::OneThread);
        let manager = world.root.the_poa_manager();
        manager.hold_requests(false).unwrap();
        let (done, told) = channel();
        let object = world.object.clone();
        let caller = thread::spawn(move || done.send(call(&object, "ping")).unwrap());
        common::wait_for(|| collocated(&world.orb) == 1);
        assert_eq!(world.probe.calls(), 0);
        manager.activate().unwrap();
        assert_eq!(told.recv_timeout(PATIENCE), Ok(Ok(())));
        caller.join().unwrap();
        manager.discard_requests(false).unwrap();
        let discarded = system(Kind::Transient, minor::REQUEST_DISCARDED, Completion::No);
        assert_eq!(call(&world.object, "ping"), discarded);
        manager.deactivate(false, false).unwrap();
        let inactive = system(Kind::ObjAdapter, minor::ADAPTER_UNAVAILABLE, Completion::No);
        assert_eq!(call(&world.object, "ping"), inactive);
        assert_eq!(world.probe.calls(), 1);
        assert_eq!(accepted(&world.orb), 0);
    }

    fn a_deadline_ends_the_wait_for_a_manager_and_results_that_come_too_late_are_not_given(over) {
        let world = World::new(over, Lanes::OneThread);
        let limit = Duration::from_millis(20);
        let late = doing(move |_| {
            let begun = Instant::now();
            while begun.elapsed() <= limit {
                thread::park_timeout(limit);
            }
            Ok(())
        });
        let late = object(&world, &late).with_round_trip_timeout(Some(limit));
        let waiting = own_minor::TIMED_OUT_WAITING;
        assert_eq!(call(&late, "ping"), system(Kind::Timeout, waiting, Completion::Yes));
        world.root.the_poa_manager().hold_requests(false).unwrap();
        let held = world.object.with_round_trip_timeout(Some(limit));
        assert_eq!(call(&held, "ping"), system(Kind::Timeout, waiting, Completion::No));
        assert_eq!(world.probe.calls(), 0);
        let spent = world.object.with_round_trip_timeout(Some(Duration::ZERO));
        let sending = own_minor::TIMED_OUT_SENDING;
        assert_eq!(call(&spent, "ping"), system(Kind::Timeout, sending, Completion::No));
        world.root.the_poa_manager().activate().unwrap();
    }

    fn a_servant_may_call_its_own_adapter_whatever_its_thread_policy(over) {
        for thread_policy in [
            ThreadPolicy::OrbCtrlModel,
            ThreadPolicy::SingleThreadModel,
            ThreadPolicy::MainThreadModel,
        ] {
            let world = World::new(over, Lanes::OneThread);
            let own = Arc::new(OnceLock::<ObjectRef>::new());
            let calls = Arc::clone(&own);
            let servant = doing(move |request| {
                if request.operation() == b"outer" {
                    let own = calls.get().expect("the test has set it");
                    call(own, "inner")?;
                }
                Ok(())
            });
            let policies = Policies { thread: thread_policy, ..Policies::persistent() };
            let object = object_of(&world, &policies, servant);
            own.set(object.clone()).unwrap();
            let main = world.orb.clone();
            let main = thread::spawn(move || main.run());
            // Calls by the application, by another ORB, and by the servant.
            assert_eq!(call(&object, "outer"), Ok(()), "{thread_policy:?}");
            let client = common::client();
            let text = world.orb.object_to_string(&object);
            let seen = client.string_to_object(&text).unwrap().unwrap();
            assert_eq!(call(&seen, "outer"), Ok(()), "{thread_policy:?}");
            own.get().unwrap();
            world.orb.shutdown(true).unwrap();
            // If no request needs the main thread, the shutdown may come before it runs.
            let ran = main.join().unwrap();
            assert!(ran.is_ok() || thread_policy != ThreadPolicy::MainThreadModel, "{ran:?}");
        }
    }

    fn single_thread_adapters_serve_one_at_a_time_whoever_calls(over) {
        let world = World::new(over, Lanes::Many);
        let within = Arc::new(AtomicU64::new(0));
        let overlaps = Arc::new(AtomicU64::new(0));
        let (inside, seen) = (Arc::clone(&within), Arc::clone(&overlaps));
        let servant = doing(move |_| {
            seen.fetch_add(inside.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
            thread::yield_now();
            inside.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        });
        let policies = Policies { thread: ThreadPolicy::SingleThreadModel, ..Policies::persistent() };
        let object = object_of(&world, &policies, servant);
        let client = common::client();
        let text = world.orb.object_to_string(&object);
        let seen = client.string_to_object(&text).unwrap().unwrap();
        thread::scope(|scope| {
            for reference in [&object, &seen, &object] {
                scope.spawn(move || {
                    for _ in 0..200 {
                        assert_eq!(call(reference, "ping"), Ok(()));
                    }
                });
            }
        });
        assert_eq!(overlaps.load(Ordering::SeqCst), 0);
    }

    fn main_thread_adapters_are_called_on_the_main_thread_alone(over) {
        let world = World::new(over, Lanes::OneThread);
        let served = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&served);
        let servant = doing(move |_| {
            seen.lock().unwrap().push(thread::current().id());
            Ok(())
        });
        let policies = Policies { thread: ThreadPolicy::MainThreadModel, ..Policies::persistent() };
        let object = object_of(&world, &policies, servant);
        let short = object.with_round_trip_timeout(Some(Duration::from_millis(20)));
        let other = thread::spawn(move || call(&short, "ping"));
        let late = other.join().unwrap().unwrap_err();
        assert_eq!((late.kind, late.completed), (Kind::Timeout, Completion::Maybe));
        // The thread that calls `perform_work` is the main thread. It serves its own calls at once, and those of other
        // threads in `perform_work`.
        while world.orb.work_pending().unwrap() {
            world.orb.perform_work().unwrap();
        }
        served.lock().unwrap().clear();
        assert_eq!(call(&object, "ping"), Ok(()));
        let others = object.clone();
        let other = thread::spawn(move || call(&others, "ping"));
        while !other.is_finished() {
            world.orb.perform_work().unwrap();
        }
        assert_eq!(other.join().unwrap(), Ok(()));
        assert_eq!(*served.lock().unwrap(), [thread::current().id(); 2]);
        assert_eq!(accepted(&world.orb), 0);
    }

    fn servant_managers_are_asked_by_the_calling_thread_and_forwards_are_followed(over) {
        let world = World::new(over, Lanes::OneThread);
        let policies = Policies {
            request_processing: RequestProcessing::UseServantManager,
            ..Policies::persistent()
        };
        let poa = child(&world, Some(world.root.the_poa_manager()), &policies);
        let manager = Arc::new(Manager { probe: world.probe.clone(), ..Manager::default() });
        manager.elsewhere.set(world.object.clone()).unwrap();
        poa.set_servant_manager(ServantManager::Activator(manager.clone())).unwrap();
        let made = poa.create_reference_with_id(b"made", PROBE_ID).unwrap();
        assert_eq!(call_with(&made, "number", &7_u64), Ok(7));
        let forwarded = poa.create_reference_with_id(b"elsewhere", PROBE_ID).unwrap();
        assert_eq!(call_with(&forwarded, "number", &8_u64), Ok(8));
        poa.destroy(false, true).unwrap();
        let policies = Policies { servant_retention: ServantRetention::NonRetain, ..policies };
        let poa = child(&world, Some(world.root.the_poa_manager()), &policies);
        poa.set_servant_manager(ServantManager::Locator(manager.clone())).unwrap();
        let located = poa.create_reference_with_id(b"made", PROBE_ID).unwrap();
        assert_eq!(call_with(&located, "number", &9_u64), Ok(9));
        let here = thread::current().id();
        let threads = manager.threads.lock().unwrap().clone();
        assert_eq!(threads, [("incarnate", here), ("incarnate", here), ("preinvoke", here), ("postinvoke", here)]);
        assert_eq!(world.orb.counters().read(Counter::Forwards), 1);
        assert_eq!(accepted(&world.orb), 0);
    }

    fn a_default_servant_learns_the_object_of_each_nested_call(over) {
        let world = World::new(over, Lanes::OneThread);
        let policies = Policies {
            request_processing: RequestProcessing::UseDefaultServant,
            id_uniqueness: deckwatch_orb::IdUniqueness::MultipleId,
            ..Policies::persistent()
        };
        let poa = child(&world, Some(world.root.the_poa_manager()), &policies);
        let current = world.orb.poa_current();
        let within = poa.clone();
        let servant = doing(move |request| {
            let before = current.object_id().expect("within a request");
            if request.operation() == b"outer" {
                let inner = within.create_reference_with_id(b"second", PROBE_ID).unwrap();
                let seen: Vec<u8> = ask(&inner, "who")?;
                assert_eq!(seen, b"second");
            }
            // After the inner call, the current object is again that of the outer call.
            assert_eq!(current.object_id().expect("still within it"), before);
            let id: &[u8] = &before;
            request.reply()?.write_octet_sequence(id)?;
            Ok(())
        });
        poa.set_servant(servant).unwrap();
        let first = poa.create_reference_with_id(b"first", PROBE_ID).unwrap();
        assert_eq!(ask::<Vec<u8>>(&first, "outer").unwrap(), b"first");
        assert!(world.orb.poa_current().object_id().is_err());
    }

    fn oneways_tell_their_caller_what_their_scope_says(over) {
        let world = World::new(over, Lanes::Many);
        let id = world.root.reference_to_id(&world.object).unwrap();
        for scope in [SyncScope::None, SyncScope::WithTransport, SyncScope::WithServer, SyncScope::WithTarget] {
            let it = scoped(&world.object, scope);
            assert_eq!(note(&it, 1), Ok(()), "{scope:?}");
            let failed = it.invoke_oneway("fail", |_| Ok(()));
            match scope {
                SyncScope::WithTarget => assert_eq!(failed, system(Kind::NoPermission, 7, Completion::Yes)),
                _ => assert_eq!(failed, Ok(()), "{scope:?}"),
            }
        }
        assert_eq!(world.probe.notes(), [1; 4]);
        assert_eq!(accepted(&world.orb), 0);
        world.root.deactivate_object(&id).unwrap();
        for scope in [SyncScope::WithServer, SyncScope::WithTarget] {
            let refused = note(&scoped(&world.object, scope), 2).unwrap_err();
            assert_eq!(refused.kind, Kind::ObjectNotExist, "{scope:?}");
        }
        for scope in [SyncScope::None, SyncScope::WithTransport] {
            assert_eq!(note(&scoped(&world.object, scope), 2), Ok(()), "{scope:?}");
        }
        assert_eq!(world.probe.notes(), [1; 4]);
    }

    fn a_oneway_does_not_wait_for_a_manager_and_none_overtakes_it(over) {
        let world = World::new(over, Lanes::OneThread);
        let it = scoped(&world.object, SyncScope::WithTransport);
        assert_eq!(note(&it, 1), Ok(()));
        let manager = world.root.the_poa_manager();
        manager.hold_requests(false).unwrap();
        assert_eq!(note(&it, 2), Ok(()));
        assert_eq!(note(&scoped(&world.object, SyncScope::None), 3), Ok(()));
        assert_eq!(world.probe.notes(), [1]);
        manager.activate().unwrap();
        assert_eq!(note(&it, 4), Ok(()));
        assert_eq!(note(&scoped(&world.object, SyncScope::WithTarget), 5), Ok(()));
        assert_eq!(world.probe.notes(), [1, 2, 3, 4, 5]);
    }

    fn it_can_be_switched_off(over) {
        let mut arguments = ["-ORBCollocation", "no"].map(str::to_owned).to_vec();
        for builder in [
            Orb::builder().collocation(false),
            Orb::builder().arguments(&mut arguments).unwrap(),
        ] {
            let world = World::with(over, builder);
            assert_eq!(call(&world.object, "ping"), Ok(()));
            assert_eq!((collocated(&world.orb), accepted(&world.orb)), (0, 1));
        }
    }

    fn dynamic_requests_stay_here_unless_they_are_deferred(over) {
        let world = World::new(over, Lanes::OneThread);
        let ask = |deferred: bool| {
            let mut request = world.object.create_request("number");
            request.add_arg(NamedValue::of_in("number", Any::from_value(&5_u64).unwrap()));
            request.set_return_type(TypeCode::ulonglong());
            let done = if deferred {
                request.send_deferred().map_err(Into::into).and_then(|()| request.response())
            } else {
                request.invoke()
            };
            assert_eq!(done, Ok(()));
            assert_eq!(request.return_value(), Some(&Any::from_value(&5_u64).unwrap()));
        };
        ask(false);
        assert_eq!((collocated(&world.orb), accepted(&world.orb)), (1, 0));
        ask(true);
        assert_eq!((collocated(&world.orb), accepted(&world.orb)), (1, 1));
    }

    fn a_servant_called_here_cannot_wait_for_the_end_of_its_orb(over) {
        let world = World::new(over, Lanes::OneThread);
        let orb = world.orb.clone();
        let servant = doing(move |_| orb.shutdown(true));
        let deadlock = system(Kind::BadInvOrder, minor::WOULD_DEADLOCK, Completion::No);
        assert_eq!(call(&object(&world, &servant), "end"), deadlock);
        world.orb.shutdown(true).unwrap();
        let ended = system(Kind::BadInvOrder, minor::ORB_SHUT_DOWN, Completion::No);
        assert_eq!(call(&world.object, "ping"), ended);
    }

    fn references_in_results_belong_to_the_caller_though_the_servant_used_another_orb(over) {
        let world = World::new(over, Lanes::OneThread);
        let other = World::new(over, Lanes::OneThread);
        let client = common::client();
        let far = other.seen_by(&client);
        let near = world.object.clone();
        let servant = doing(move |request| {
            call(&far, "ping")?;
            Ok(Some(near.clone()).write(&mut request.reply()?)?)
        });
        let given: Option<ObjectRef> = ask(&object(&world, &servant), "object").unwrap();
        drop(client);
        assert_eq!(call(&given.unwrap(), "ping"), Ok(()));
        assert_eq!(accepted(&world.orb), 0);
    }

    fn the_trace_tells_of_it(over) {
        let page = Page::default();
        let world = World::with(over, Orb::builder().trace(page.clone()));
        assert_eq!(call(&world.object, "ping"), Ok(()));
        world.orb.shutdown(true).unwrap();
        let text = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("#0 -> this ORB GIOP 1.2 Request 1 \"ping\""), "{text}");
        assert!(text.contains("#0 <- this ORB GIOP 1.2 Reply 1 to \"ping\": results"), "{text}");
    }
}

fn ask<T: for<'a> Parse<'a>>(object: &ObjectRef, operation: &str) -> Result<T, SystemException> {
    object.invoke(operation, |_| Ok(()), |r| T::parse(r), |_, _| Ok(None))
}

/// A user exception. A system exception in its place panics.
#[derive(Debug)]
struct Refused(u32);

impl From<SystemException> for Refused {
    fn from(exception: SystemException) -> Self {
        panic!("a user exception, not {exception}")
    }
}

/// A servant manager that creates or finds servants, or forwards, and records the thread of each call.
#[derive(Default)]
struct Manager {
    probe: Arc<Probe>,
    elsewhere: OnceLock<ObjectRef>,
    threads: Mutex<Vec<(&'static str, thread::ThreadId)>>,
}

impl Manager {
    fn note(&self, what: &'static str) {
        self.threads
            .lock()
            .unwrap()
            .push((what, thread::current().id()));
    }
}

impl ServantActivator for Manager {
    fn incarnate(
        &self,
        object_id: &[u8],
        _adapter: &Poa,
    ) -> Result<Arc<dyn Servant>, ServantManagerError> {
        self.note("incarnate");
        if object_id == b"elsewhere" {
            let forward_reference = self.elsewhere.get().unwrap().clone();
            return Err(ForwardRequest { forward_reference }.into());
        }
        Ok(self.probe.clone())
    }

    fn etherealize(&self, _: &[u8], _: &Poa, _: Arc<dyn Servant>, _: bool, _: bool) {}
}

impl ServantLocator for Manager {
    fn preinvoke(
        &self,
        _object_id: &[u8],
        _adapter: &Poa,
        _operation: &str,
        _cookie: &mut Cookie,
    ) -> Result<Arc<dyn Servant>, ServantManagerError> {
        self.note("preinvoke");
        Ok(self.probe.clone())
    }

    fn postinvoke(
        &self,
        _object_id: &[u8],
        _adapter: &Poa,
        _operation: &str,
        _cookie: Cookie,
        _servant: Arc<dyn Servant>,
    ) -> Result<(), SystemException> {
        self.note("postinvoke");
        Ok(())
    }
}

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl io::Write for Page {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
