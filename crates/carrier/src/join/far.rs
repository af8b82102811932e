//! Converts the records of another machine to this one's clock, before anything else looks at them.

use deckwatch_meter::caution::Caution;
use deckwatch_meter::result::Warning;

use crate::host_clock::FarHost;
use crate::plan::JoinPlan;
use crate::record::{ConsumerRecord, Header, ReadRecords, SupplierRecord};

/// Reads and converts a supplier's records. A stamp at which the run did not run is removed. Where the records did not
/// come back, no message has a record of its own: what was received still counts.
pub(super) fn supplier(
    plan: &JoinPlan,
    host: &FarHost,
    warnings: &mut Vec<Warning>,
) -> ReadRecords<SupplierRecord> {
    let mut read = match ReadRecords::supplier(&plan.supplier_records) {
        Ok(read) => read,
        Err(error) => {
            let caution = Caution::NoSupplierRecords {
                host: plan.from.clone(),
                reason: error.to_string().trim_end_matches('.').to_owned(),
            };
            warnings.push(caution.into());
            let messages = plan.stream.schedule.dues().count();
            return ReadRecords {
                header: Header {
                    slots: 1,
                    capacity: messages as u64,
                    ..Header::default()
                },
                records: vec![SupplierRecord::default(); messages],
            };
        }
    };
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
    warn(&plan.from, impossible, warnings);
    read
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
