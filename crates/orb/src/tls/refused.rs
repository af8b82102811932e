//! What an access log is told of handshakes that fail: so many in a second, and how many more.

use std::sync::Arc;
use std::time::Duration;

use crate::access::{AccessEvent, AccessLog};
use crate::limits::HANDSHAKES_TOLD_MAX;
use crate::transport::Instant64;

/// The handshakes of one listener that have failed.
#[derive(Default)]
pub(super) struct Refused {
    /// When the second began in which `told` were told.
    begun: Option<Instant64>,
    told: u32,
    untold: u64,
}

type Log = Arc<dyn AccessLog>;

impl Refused {
    /// Tells the log of a peer, if it was not told of too many in this second.
    pub(super) fn tell(&mut self, log: Option<&Log>, now: Instant64, peer: &str, reason: &str) {
        let Some(log) = log else {
            return;
        };
        self.tell_rest(Some(log), now);
        if self.begun.is_none() {
            (self.begun, self.told) = (Some(now), 0);
        }
        if self.told < HANDSHAKES_TOLD_MAX {
            self.told += 1;
            log.note(&AccessEvent::ConnectionRefused { peer, reason });
        } else {
            self.untold += 1;
        }
    }

    /// At the end of a second, tells how many more there were. Returns when that will be.
    pub(super) fn tell_rest(&mut self, log: Option<&Log>, now: Instant64) -> Option<Instant64> {
        let end = self.begun?.after(SECOND);
        if now < end {
            return (self.untold > 0).then_some(end);
        }
        self.begun = None;
        let untold = std::mem::take(&mut self.untold);
        if let Some(log) = log
            && untold > 0
        {
            log.note(&AccessEvent::ConnectionRefused {
                peer: "several",
                reason: &format!("{untold} more handshakes failed in one second"),
            });
        }
        None
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Told(Mutex<Vec<(String, String)>>);

    impl AccessLog for Told {
        fn note(&self, event: &AccessEvent<'_>) {
            if let AccessEvent::ConnectionRefused { peer, reason } = event {
                let line = ((*peer).to_owned(), (*reason).to_owned());
                self.0.lock().unwrap().push(line);
            }
        }
    }

    #[test]
    fn so_many_handshakes_are_told_in_a_second_and_the_others_are_counted() {
        let told = Arc::new(Told::default());
        let log: Log = told.clone();
        let mut refused = Refused::default();
        let taken = || std::mem::take(&mut *told.0.lock().unwrap());
        let at = |ms: u64| Instant64(5).after(Duration::from_millis(ms));
        for _ in 0..HANDSHAKES_TOLD_MAX + 9 {
            refused.tell(Some(&log), at(0), "10.0.0.1:7", "no certificate");
        }
        assert_eq!(refused.tell_rest(Some(&log), at(999)), Some(at(1_000)));
        let lines = taken();
        assert_eq!(lines.len(), HANDSHAKES_TOLD_MAX as usize);
        assert_eq!(lines[0].0, "10.0.0.1:7");
        assert_eq!(refused.tell_rest(Some(&log), at(1_000)), None);
        let lines = taken();
        assert_eq!(lines.len(), 1);
        assert!(lines[0].1.starts_with("9 more"), "{lines:?}");
        refused.tell(Some(&log), at(1_001), "10.0.0.2:7", "revoked");
        assert_eq!(taken(), [("10.0.0.2:7".to_owned(), "revoked".to_owned())]);
        assert_eq!(refused.tell_rest(Some(&log), at(5_000)), None);
        assert!(taken().is_empty(), "none were left out");
    }
}
