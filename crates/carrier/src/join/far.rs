//! Converts the records of another machine to this one's clock, before anything else looks at them.

use deckwatch_meter::caution::Caution;
use deckwatch_meter::result::Warning;

use crate::host_clock::FarHost;
use crate::record::{ConsumerRecord, ReadRecords, SupplierRecord};

/// Converts a supplier's records. A stamp at which the run did not run is removed.
pub(super) fn supplier(
    read: &mut ReadRecords<SupplierRecord>,
    (name, host): (&str, &FarHost),
    warnings: &mut Vec<Warning>,
) {
    read.bound_counters();
    let mut impossible = 0;
    for record in &mut read.records {
        for stamp in [&mut record.sent_ns, &mut record.returned_ns] {
            impossible += u64::from(!convert(stamp, host));
        }
        if record.sent_ns == 0 {
            record.returned_ns = 0;
        }
    }
    warn(name, impossible, warnings);
}

/// Converts a consumer's records. An arrival at an impossible time is removed, so that its message counts as lost.
pub(super) fn consumer(
    read: &mut ReadRecords<ConsumerRecord>,
    (name, host): (&str, &FarHost),
    warnings: &mut Vec<Warning>,
) {
    read.bound_counters();
    let mut impossible = 0;
    let longest_ns = host.until_ns.saturating_sub(host.near_start_ns).max(0);
    for record in &mut read.records {
        for stamp in [&mut record.received_ns, &mut record.handled_ns] {
            impossible += u64::from(!convert(stamp, host));
        }
        record.execution_ns = record.execution_ns.clamp(0, longest_ns);
    }
    read.records.retain(|record| record.received_ns != 0);
    warn(name, impossible, warnings);
}

fn warn(host: &str, impossible: u64, warnings: &mut Vec<Warning>) {
    if impossible > 0 {
        let caution = Caution::ImpossibleStamps {
            host: host.to_owned(),
            stamps: impossible,
        };
        warnings.push(caution.into());
    }
}

/// Converts a stamp, or removes an impossible one and returns false.
fn convert(stamp: &mut i64, host: &FarHost) -> bool {
    if *stamp == 0 {
        return true;
    }
    let near_ns = host.to_near(*stamp).filter(|&ns| ns != 0);
    *stamp = near_ns.unwrap_or(0);
    near_ns.is_some()
}

#[cfg(test)]
mod tests;
