//! One run of a client: what it sends, and the send buffers of raw TCP beside a system.

use deckwatch_meter::experiment::EndNote;

use super::case::Case;
use crate::laboratory::LaboratoryError;
use crate::laboratory::process::{RunLimits, RunResult};
use crate::laboratory::system::System;

/// One run of a client.
pub(super) struct Command {
    kind: String,
    sizes: (usize, usize),
    period_ns: u64,
    limits: RunLimits,
    /// The load of the system rests.
    is_alone: bool,
}

impl Command {
    /// Calls.
    pub(super) fn call(case: Case, limits: RunLimits) -> Self {
        Self {
            kind: case.command(),
            sizes: (case.count(), 0),
            period_ns: case.period_ns.unwrap_or(0),
            limits,
            is_alone: false,
        }
    }

    /// Events beside so many consumers of other events.
    pub(super) fn beside_others(self, others: usize) -> Self {
        Self {
            sizes: (self.sizes.0, others),
            ..self
        }
    }

    /// The same without the load of the system.
    pub(super) fn alone(self) -> Self {
        Self {
            is_alone: true,
            ..self
        }
    }

    /// A run of another kind, without messages.
    pub(super) fn of(kind: &str, limits: RunLimits) -> Self {
        Self {
            kind: kind.to_owned(),
            sizes: (0, 0),
            period_ns: 0,
            limits,
            is_alone: false,
        }
    }

    /// The same over raw TCP, with messages of `sizes` octets there and back.
    pub(super) fn raw(
        case: Case,
        sizes: (usize, usize),
        buffers: Buffers,
        limits: RunLimits,
    ) -> Self {
        let kind = match (case.is_push(), case.is_stream()) {
            (true, _) => case.command(),
            (false, true) => "raw-stream".to_owned(),
            (false, false) => "raw".to_owned(),
        };
        let Buffers { client, server } = buffers;
        Self {
            kind: format!("{kind}/{client}/{server}"),
            sizes,
            period_ns: case.period_ns.unwrap_or(0),
            limits,
            is_alone: false,
        }
    }

    /// Runs it. The ends are read back if `is_examined`. Returns `None` if the user wants to end.
    pub(super) fn run(
        &self,
        system: &mut System,
        is_examined: bool,
    ) -> Result<Option<(RunResult, Vec<EndNote>)>, LaboratoryError> {
        let (kind, sizes) = (self.kind.as_str(), self.sizes);
        if self.is_alone && !system.load.is_empty() {
            return system.without_load(|system| self.run(system, is_examined));
        }
        if is_examined {
            return system.run_examined(kind, sizes, self.period_ns, self.limits);
        }
        let ran = system.run(kind, sizes, self.period_ns, self.limits)?;
        Ok(ran.map(|ran| (ran, Vec::new())))
    }
}

/// The requested sizes of the send buffers of client and server; 0 leaves the size to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Buffers {
    client: u32,
    server: u32,
}

impl Buffers {
    /// The send buffers of the ends, as far as their sizes were requested. The kernel doubles a request.
    pub(super) fn of(ends: &[EndNote]) -> Self {
        let requested = |name: &str| {
            let end = ends.iter().find(|end| end.end == name);
            let fixed = end.filter(|end| end.is_send_buffer_fixed == Some(true));
            fixed.and_then(|end| end.send_buffer_octets).unwrap_or(0) / 2
        };
        Self {
            client: requested("client"),
            server: requested("server"),
        }
    }

    /// Notes the ends whose send buffer is not as it was requested.
    pub(super) fn check(self, ends: &mut [EndNote]) {
        for (name, requested) in [("client", self.client), ("server", self.server)] {
            let end = ends.iter_mut().find(|end| end.end == name);
            let Some(end) = end.filter(|_| requested > 0) else {
                continue;
            };
            if end.send_buffer_octets != Some(2 * requested) && end.differs.is_none() {
                let has = end.send_buffer_octets.unwrap_or(0);
                let wanted = 2 * requested;
                end.differs = Some(format!("SO_SNDBUF {has} where the system has {wanted}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bench::kind::LARGE_STREAM;

    fn end(name: &str, size: u32, is_fixed: bool) -> EndNote {
        EndNote {
            end: name.to_owned(),
            send_buffer_octets: Some(size),
            is_send_buffer_fixed: Some(is_fixed),
            ..EndNote::default()
        }
    }

    #[test]
    fn raw_tcp_gets_the_send_buffer_that_a_system_has_requested_and_no_other() {
        let ends = [end("client", 524_288, true), end("server", 87_040, false)];
        let buffers = Buffers::of(&ends);
        let expected = Buffers {
            client: 262_144,
            server: 0,
        };
        assert_eq!(buffers, expected);
        let kind = Command::raw(
            LARGE_STREAM,
            (1, 0),
            buffers,
            RunLimits {
                count: 1,
                budget: Duration::ZERO,
            },
        );
        assert_eq!(kind.kind, "raw-stream/262144/0");
        let mut alike = [
            end("client", 524_288, true),
            end("server", 2_626_560, false),
        ];
        buffers.check(&mut alike);
        assert!(alike.iter().all(|end| end.differs.is_none()), "{alike:?}");
        let mut untuned = [end("client", 2_626_560, false)];
        buffers.check(&mut untuned);
        let words = untuned[0].differs.as_deref();
        assert_eq!(words, Some("SO_SNDBUF 2626560 where the system has 524288"));
    }
}
