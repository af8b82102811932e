//! [`Stop`]: how a load learns that it is to end.

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use deckwatch_os::signal;

/// A wish to end, shared by the threads of a load. An ending signal of this process sets it too, where
/// [`signal::catch_ending`] was called.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Returns a wish that is set when `orders` contains the line `stop` or ends.
    ///
    /// A process's standard input is a good source of orders: it closes when the process that started the load ends.
    #[must_use]
    pub fn when_ended(orders: impl Read + Send + 'static) -> Self {
        let stop = Self::default();
        let stopper = stop.clone();
        // The thread is not joined: it ends with its source, which may outlive the load.
        std::thread::spawn(move || {
            wait_for_stop(BufReader::new(orders));
            stopper.set();
        });
        stop
    }

    /// Ends the load.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true if the load is to end.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) || signal::ending().is_some()
    }
}

fn wait_for_stop(orders: impl BufRead) {
    for line in orders.lines() {
        if line.is_err() || line.is_ok_and(|line| line.trim() == "stop") {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_orders_than_stop_are_passed_over() {
        let mut orders = &b"faster\n stop \nlater\n"[..];
        wait_for_stop(&mut orders);
        assert_eq!(orders, b"later\n");
    }
}
