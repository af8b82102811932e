//! The call path of a request under RealtimeSanitizer. After the seal, neither the serving thread nor the calling
//! thread may allocate memory, wait for a lock or call a function of the C library that waits. `sanitize/run realtime`
//! builds and runs the test.
//!
//! The sanitizer sees calls of the C library only. The system calls of the path itself (a read and a write of the
//! connection) go to the kernel directly; other tests count those.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Bench, call, call_octets, note};
use deckwatch_orb::{
    Orb, Poa, Policies, Priority, PriorityModel, PriorityModelPolicy, Scheduling, Servant,
    ServerRequest, SystemException, ThreadpoolLane,
};

unsafe extern "C" {
    fn __rtsan_realtime_enter();
    fn __rtsan_realtime_exit();
}

/// From here on, the sanitizer reports calls of this thread that may wait.
fn enter() {
    // SAFETY: it counts up a number of the calling thread.
    unsafe { __rtsan_realtime_enter() }
}

fn leave() {
    // SAFETY: it counts down what `enter` has counted up.
    unsafe { __rtsan_realtime_exit() }
}

thread_local! {
    static IS_WATCHED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// A servant that turns the sanitizer on for its thread, from its next request on.
struct Watched {
    bench: Bench,
    is_on: AtomicBool,
    /// Whether it allocates memory, which a servant must not do.
    takes_memory: bool,
}

impl Servant for Watched {
    fn repository_ids(&self) -> &'static [&'static str] {
        self.bench.repository_ids()
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        if self.is_on.load(Ordering::SeqCst) && !IS_WATCHED.replace(true) {
            enter();
        }
        if self.takes_memory && IS_WATCHED.get() {
            std::hint::black_box(Vec::<u8>::with_capacity(100));
        }
        self.bench.dispatch(request)
    }
}

/// The priority of the caller.
const PRIORITY: i16 = 90;

fn priority(number: i16) -> Priority {
    Priority::new(number).unwrap()
}

/// An adapter of two lanes, whose callers send their priority (CLIENT_PROPAGATED).
fn of_lanes(server: &Orb, root: &Poa) -> Poa {
    let lanes = [5, PRIORITY].map(|number| ThreadpoolLane {
        lane_priority: priority(number),
        static_threads: 2,
        dynamic_threads: 0,
    });
    let rt = server.rt_orb();
    let pool = rt.create_threadpool_with_lanes(0, &lanes, false, None);
    let policies = Policies {
        threadpool: Some(pool.unwrap()),
        priority_model: Some(PriorityModelPolicy {
            priority_model: PriorityModel::ClientPropagated,
            server_priority: priority(5),
        }),
        ..Policies::default()
    };
    let manager = root.the_poa_manager();
    root.create_poa("lanes", Some(manager), &policies).unwrap()
}

/// Makes calls of every kind with the sanitizer on for both threads. `by_lanes`: the lane of the caller's priority
/// serves them.
fn serve_watched(by_lanes: bool, takes_memory: bool) {
    let server = Orb::builder()
        .scheduling(Scheduling::Other)
        .listen("127.0.0.1:0")
        .unwrap()
        .dynamic_threads(0)
        .buffer_size(64 << 10)
        .build()
        .unwrap();
    let root = server.root_poa().unwrap();
    root.the_poa_manager().activate().unwrap();
    let poa = if by_lanes {
        of_lanes(&server, &root)
    } else {
        root
    };
    let watched = Arc::new(Watched {
        bench: Bench::default(),
        is_on: AtomicBool::new(false),
        takes_memory,
    });
    watched.bench.order.lock().unwrap().reserve(1_000);
    let servant: Arc<dyn Servant> = watched.clone();
    let id = poa.activate_object(servant).unwrap();
    let text = poa.id_to_reference(&id).unwrap().to_string();
    let client = Orb::builder()
        .scheduling(Scheduling::Other)
        .buffer_size(64 << 10)
        .build()
        .unwrap();
    if by_lanes {
        let current = client.rt_current();
        current.set_the_priority(priority(PRIORITY)).unwrap();
    }
    let bench = client.string_to_object(&text).unwrap().unwrap();
    server.seal();
    client.seal();
    // First, threads are started, connections opened and adopted.
    for number in 0..200 {
        call(&bench, "ping").unwrap();
        note(&bench, number).unwrap();
    }
    watched.is_on.store(true, Ordering::SeqCst);
    call(&bench, "ping").unwrap();
    enter();
    for number in 0..100 {
        call(&bench, "ping").unwrap();
        note(&bench, number).unwrap();
        assert!(call(&bench, "fail").is_err());
    }
    leave();
    // The caller allocates memory for results that it owns, so here the sanitizer is on for the server only.
    for size in [1, 8_000, 60_000] {
        assert_eq!(call_octets(&bench, &vec![1; size]).unwrap().len(), size);
    }
    // Threads and connections that end free memory. So they are kept until the process ends.
    std::mem::forget((server, poa, client, bench));
}

const AS_CHILD: &str = "DECKWATCH_REALTIME_CHILD";

#[test]
fn nothing_on_the_road_of_a_request_takes_memory_or_may_wait() {
    serve_watched(false, std::env::var_os(AS_CHILD).is_some());
}

#[test]
fn nothing_on_the_road_to_the_lane_of_the_callers_priority_takes_memory_or_may_wait() {
    serve_watched(true, false);
}

#[test]
fn a_servant_that_takes_memory_is_found() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "resources::realtime_sanitizer::nothing_on_the_road_of_a_request_takes_memory_or_may_wait",
        ])
        .env(AS_CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success());
    assert!(
        said.contains("RealtimeSanitizer") && said.contains("malloc"),
        "{said}"
    );
}
