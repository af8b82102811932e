//! The road of a request under RealtimeSanitizer: from the seal on, neither the thread that serves nor the one that calls comes to
//! anything that may take memory, wait for a lock or ask the C library to wait. `sanitize/run realtime` builds and runs it.
//!
//! The sanitizer sees the calls of the C library. The system calls of the road itself (a read and a write of the connection) go to
//! the kernel directly; `strace` counts those elsewhere.
#![cfg(rtsan)]

mod support;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use deckwatch_orb::{Orb, Servant, ServerRequest, SystemException};
use support::{Bench, call, call_octets, note};

unsafe extern "C" {
    fn __rtsan_realtime_enter();
    fn __rtsan_realtime_exit();
}

/// From here on the calling thread may not wait.
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

/// A servant that puts the thread that serves it under watch: from its next request on.
struct Watched {
    bench: Bench,
    is_on: AtomicBool,
    /// It takes memory, as a servant must not.
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

/// Calls of every kind, with both ends under watch.
fn serve_watched(takes_memory: bool) {
    let server = Orb::builder()
        .listen("127.0.0.1:0")
        .unwrap()
        .dynamic_threads(0)
        .buffer_size(64 << 10)
        .build()
        .unwrap();
    let root = server.root_poa().unwrap();
    root.the_poa_manager().activate().unwrap();
    let watched = Arc::new(Watched {
        bench: Bench::default(),
        is_on: AtomicBool::new(false),
        takes_memory,
    });
    watched.bench.order.lock().unwrap().reserve(1_000);
    let servant: Arc<dyn Servant> = watched.clone();
    let text = root.servant_to_reference(&servant).unwrap().to_string();
    let client = Orb::builder().buffer_size(64 << 10).build().unwrap();
    let bench = client.string_to_object(&text).unwrap().unwrap();
    server.seal();
    client.seal();
    // Threads, connections, adoption.
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
    // Results that the caller owns are his own memory: only the server is under watch here.
    for size in [1, 8_000, 60_000] {
        assert_eq!(call_octets(&bench, &vec![1; size]).unwrap().len(), size);
    }
    // Threads and connections that end give memory back: under watch they stay until the process ends.
    std::mem::forget((server, root, client, bench));
}

const AS_CHILD: &str = "DECKWATCH_REALTIME_CHILD";

#[test]
fn nothing_on_the_road_of_a_request_takes_memory_or_may_wait() {
    serve_watched(std::env::var_os(AS_CHILD).is_some());
}

#[test]
fn a_servant_that_takes_memory_is_found() {
    if std::env::var_os(AS_CHILD).is_some() {
        return;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "nothing_on_the_road_of_a_request_takes_memory_or_may_wait",
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
