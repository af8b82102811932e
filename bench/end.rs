//! What the Rust ends of foreign systems share. Their scripts `build` copy it beside their `main.rs`.

/// Pins this thread to a processor and puts it into SCHED_FIFO, if they are numbers. Threads that it starts inherit both.
pub(crate) fn place(processor: &str, fifo: &str) {
    // SAFETY: plain calls on structures of the right size, which live as long as the calls.
    unsafe {
        if let Ok(processor) = processor.parse() {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(processor, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
        }
        if let Ok(priority) = fifo.parse() {
            let unblocked = libc::rlimit { rlim_cur: 2_000_000, rlim_max: 2_000_000 };
            libc::setrlimit(libc::RLIMIT_RTTIME, &unblocked);
            let parameters = libc::sched_param { sched_priority: priority };
            libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters);
        }
    }
}

/// Prints what the laboratory waits for: the class of this thread, and how this end is reached.
pub(crate) fn greet(reference: &str) {
    // SAFETY: asks for the calling thread's class alone.
    let is_fifo = unsafe { libc::sched_getscheduler(0) } == libc::SCHED_FIFO;
    println!("{} {reference}", if is_fifo { "fifo" } else { "other" });
}

/// CLOCK_MONOTONIC.
pub(crate) fn now_ns() -> i64 {
    // SAFETY: the clock is written into a structure that lives.
    unsafe {
        let mut now: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now);
        now.tv_sec * 1_000_000_000 + now.tv_nsec
    }
}
