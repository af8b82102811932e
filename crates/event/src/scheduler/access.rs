//! What the operations of a scheduling service need, by the words of access tables.

use std::sync::Arc;

use deckwatch_access::Action;
use deckwatch_orb::{Access, Guard, Need, Orb, Vocabulary};

use super::SchedulingService;

/// A guard for the adapter of a scheduling service.
pub(super) fn guard(orb: &Orb, access: Access) -> Arc<Guard> {
    let name = SchedulingService::ACCESS_NAME.to_owned();
    Guard::new(orb, access.named(Some(name)), Words)
}

struct Words;

impl Vocabulary for Words {
    fn need(&self, _kind: &[&str], operation: &[u8], _object_id: &[u8]) -> Need {
        Need::All(match operation {
            b"lookup"
            | b"get"
            | b"priority"
            | b"entry_point_priority"
            | b"get_rt_info_set"
            | b"get_dependency_set"
            | b"get_config_info_set"
            | b"get_config_infos"
            | b"dispatch_configuration"
            | b"last_scheduled_priority"
            | b"execution_times" => Action::Observe,
            b"report_execution_times" => Action::Supply,
            // They change the priorities of others. An operation that is added later is closed until it has a word here.
            _ => Action::Administer,
        })
    }

    fn needs_differ_by_id(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedule_is_read_reported_to_and_changed_by_three_words() {
        let of = |operation: &[u8]| Words.need(&[], operation, b"");
        assert_eq!(of(b"get_rt_info_set"), Need::All(Action::Observe));
        assert_eq!(of(b"report_execution_times"), Need::All(Action::Supply));
        for operation in [&b"create"[..], b"set", b"compute_scheduling", b"new_one"] {
            assert_eq!(of(operation), Need::All(Action::Administer));
        }
    }
}
