//! Handlers that take longer than the mission declares.

use std::time::Duration;

use super::nanoseconds;
use crate::result::{DestinationResult, HandlerResult};
use crate::sample::{Layer, NO_STAMP, Sample};
use crate::words;

/// Returns what the handler of one destination took. The late messages have their blame already.
pub(super) fn measured(samples: &[Sample], worst_case: Duration) -> HandlerResult {
    let worst_case_ns = nanoseconds(worst_case);
    let exceeds = |sample: &Sample| sample.execution_ns > worst_case_ns;
    let judged = samples.iter().filter(|sample| !sample.flags.warm_up);
    let measured = || judged.clone().filter(|one| one.execution_ns != NO_STAMP);
    let longest_ns = measured().map(|one| one.execution_ns).max();
    HandlerResult {
        worst_case_ns: unsigned(worst_case_ns),
        executions: measured().count() as u64,
        exceeded: measured().filter(|one| exceeds(one)).count() as u64,
        longest_ns: unsigned(longest_ns.unwrap_or(0)),
        late_behind: late_behind(samples, exceeds),
    }
}

/// Returns the number of late messages, blamed on the application, that waited behind a message whose handling exceeds
/// the worst case. Messages wait behind each other as long as the consumer is never free between them: the next one has
/// arrived, or its supplier waits for the end of the call before.
fn late_behind(samples: &[Sample], exceeds: impl Fn(&Sample) -> bool) -> u64 {
    let received = samples
        .iter()
        .filter(|sample| sample.received_ns != NO_STAMP);
    let mut in_order: Vec<&Sample> = received.collect();
    in_order.sort_by_key(|sample| sample.received_ns);
    let (mut free_ns, mut call_end_ns) = (i64::MIN, i64::MIN);
    let (mut is_behind, mut late) = (false, 0);
    for sample in in_order {
        // A channel keeps a message until its consumer has replied to the one before.
        let stamps = [sample.channel_receive_ns, sample.kernel_receive_ns];
        let arrived_ns = stamps.into_iter().find(|&stamp_ns| stamp_ns != NO_STAMP);
        let arrived_ns = arrived_ns.unwrap_or(sample.received_ns);
        is_behind &= arrived_ns < free_ns || sample.due_ns < call_end_ns;
        let is_blamed = sample.flags.late && sample.blame == Some(Layer::Application);
        late += u64::from(is_behind && is_blamed && !sample.flags.warm_up);
        is_behind |= exceeds(sample);
        free_ns = free_ns.max(sample.handled_ns);
        if sample.returned_ns >= sample.handled_ns {
            call_end_ns = call_end_ns.max(sample.returned_ns);
        }
    }
    late
}

/// Returns a sentence about the handler that exceeded its declared worst case most often; `None` if none did.
pub(super) fn sentence(destinations: &[DestinationResult]) -> Option<String> {
    let exceeding = || {
        let all = destinations.iter();
        all.filter_map(|one| Some((one, one.handler.filter(|handler| handler.exceeded > 0)?)))
    };
    let (worst, handler) = exceeding().max_by_key(|(_, handler)| handler.exceeded)?;
    let others = match exceeding().count() - 1 {
        0 => String::new(),
        1 => " (and that of 1 other destination)".to_owned(),
        others => format!(" (and those of {others} other destinations)"),
    };
    let blamed = match handler.late_behind {
        0 => String::new(),
        late => {
            let charged = worst
                .blame
                .iter()
                .filter(|(layer, _)| layer.contains(APPLICATION));
            let charged: u64 = charged.map(|(_, count)| count).sum();
            format!(
                "; {} of {} late messages blamed on the application waited behind such a message",
                words::count(late),
                words::count(charged)
            )
        }
    };
    Some(format!(
        "The handler at {}{others} took longer than its declared worst case of {} for {} of {}: up to {} of processor \
         time{blamed}.",
        worst.host,
        time(handler.worst_case_ns),
        words::count(handler.exceeded),
        words::messages(handler.executions),
        time(handler.longest_ns),
    ))
}

const APPLICATION: &str = Layer::Application.name();

fn time(ns: u64) -> String {
    words::duration(Duration::from_nanos(ns))
}

fn unsigned(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blame::tests::{MS, prompt};
    use crate::disturbance::Disturbance;
    use crate::judge::tests::terms;
    use crate::judge::{Destination, FlowJudgement, Terms, judge};
    use crate::result::VerdictKind;

    fn declared(worst_case_ms: u64) -> Terms {
        Terms {
            worst_case: Some(Duration::from_millis(worst_case_ms)),
            ..terms()
        }
    }

    fn judged(hosts: &mut [(&str, Vec<Sample>)], terms: &Terms) -> FlowJudgement {
        let mut destinations: Vec<Destination<'_>> = (0..)
            .zip(hosts)
            .map(|(index, (host, samples))| Destination {
                index,
                host: (*host).to_owned(),
                samples,
                send_errors: 0,
                receive_overflows: 0,
            })
            .collect();
        judge(&mut destinations, terms, &Disturbance::default())
    }

    /// 1,000 messages, each handled within 2 ms.
    fn handled() -> Vec<Sample> {
        let handled = |sequence| Sample {
            execution_ns: 2 * MS,
            ..prompt(sequence)
        };
        (0..1_000).map(handled).collect()
    }

    /// The handling of one message takes 120 ms: the next two wait until it ends.
    fn overrun(samples: &mut [Sample], index: usize) {
        let end_ns = samples[index].received_ns + 120 * MS;
        samples[index].execution_ns = 120 * MS;
        samples[index].handled_ns = end_ns;
        for waiting in &mut samples[index + 1..index + 3] {
            waiting.received_ns = end_ns;
            waiting.handled_ns = end_ns;
        }
    }

    #[test]
    fn overruns_are_counted_named_and_blamed_for_the_late_messages_behind_them() {
        let mut samples = handled();
        for index in (100..1_000).step_by(100) {
            overrun(&mut samples, index);
        }
        let mut hosts = [("SONAR", samples)];
        let flow = judged(&mut hosts, &declared(3));
        let expected = HandlerResult {
            worst_case_ns: 3_000_000,
            executions: 1_000,
            exceeded: 9,
            longest_ns: 120_000_000,
            late_behind: 9,
        };
        let result = &flow.destinations[0];
        assert_eq!(result.handler, Some(expected));
        assert_eq!(result.blame.get("application"), Some(&9));
        assert_eq!(flow.verdict.kind, VerdictKind::Fail);
        assert_eq!(
            flow.verdict.reasons.last().map(String::as_str),
            Some(
                "The handler at SONAR took longer than its declared worst case of 3 ms for 9 of 1,000 messages: up to \
                 120 ms of processor time; 9 of 9 late messages blamed on the application waited behind such a message."
            )
        );
    }

    #[test]
    fn late_message_behind_a_handler_within_its_declaration_is_not_charged_to_it() {
        let mut samples = handled();
        overrun(&mut samples, 100);
        let mut hosts = [("SONAR", samples)];
        let flow = judged(&mut hosts, &declared(120));
        let handler = flow.destinations[0].handler.expect("it is measured");
        assert_eq!((handler.exceeded, handler.late_behind), (0, 0));
        assert_eq!(flow.destinations[0].blame.get("application"), Some(&1));
        assert!(!flow.verdict.reasons.concat().contains("handler"));
    }

    #[test]
    fn consumer_that_was_free_meanwhile_ends_the_blame() {
        let mut samples = handled();
        overrun(&mut samples, 100);
        // Another cause, long after: a message that is handled within the worst case holds up the next two.
        overrun(&mut samples, 500);
        samples[500].execution_ns = 3 * MS;
        let mut hosts = [("SONAR", samples)];
        let flow = judged(&mut hosts, &declared(3));
        let handler = flow.destinations[0].handler.expect("it is measured");
        assert_eq!((handler.exceeded, handler.late_behind), (1, 1));
    }

    #[test]
    fn caller_that_waits_for_the_reply_waits_behind_the_handler() {
        let mut samples = handled();
        let end_ns = samples[100].received_ns + 120 * MS;
        samples[100].execution_ns = 120 * MS;
        samples[100].handled_ns = end_ns;
        samples[100].returned_ns = end_ns + MS;
        let waiting = &mut samples[101];
        waiting.sent_ns = end_ns + 2 * MS;
        waiting.kernel_receive_ns = end_ns + 3 * MS;
        waiting.received_ns = end_ns + 4 * MS;
        (waiting.flags.late, waiting.blame) = (true, Some(Layer::Application));
        let late = |samples: &[Sample]| measured(samples, Duration::from_millis(3)).late_behind;
        assert_eq!(late(&samples), 1);
        // A one-way: the supplier was free, and the message came when the consumer was.
        samples[100].returned_ns = samples[100].sent_ns;
        assert_eq!(late(&samples), 0);
        // A channel had it before.
        samples[101].channel_receive_ns = end_ns - MS;
        assert_eq!(late(&samples), 1);
    }

    #[test]
    fn message_that_comes_when_the_consumer_is_free_waits_behind_nothing() {
        let mut samples = handled();
        let end_ns = samples[100].received_ns + 120 * MS;
        samples[100].execution_ns = 120 * MS;
        samples[100].handled_ns = end_ns;
        samples[100].returned_ns = samples[100].sent_ns;
        let waiting = &mut samples[101];
        waiting.kernel_receive_ns = end_ns;
        waiting.received_ns = end_ns + 4 * MS;
        (waiting.flags.late, waiting.blame) = (true, Some(Layer::Application));
        let late = |samples: &[Sample]| measured(samples, Duration::from_millis(3)).late_behind;
        assert_eq!(late(&samples), 0);
        samples[101].kernel_receive_ns = end_ns - 1;
        assert_eq!(late(&samples), 1);
        // Another layer made it late.
        samples[101].blame = Some(Layer::Network);
        assert_eq!(late(&samples), 0);
        samples[101].blame = Some(Layer::Application);
        // A call whose supplier is free when the next message is due.
        samples[101].kernel_receive_ns = end_ns + 3 * MS;
        samples[100].returned_ns = end_ns + MS;
        samples[101].due_ns = end_ns + MS;
        assert_eq!(late(&samples), 0);
        samples[101].due_ns -= 1;
        assert_eq!(late(&samples), 1);
    }

    #[test]
    fn pass_names_the_worst_handler_of_all_destinations_and_the_warm_up_does_not_count() {
        let mut helm = handled();
        helm[7].execution_ns = 4 * MS;
        let mut sonar = handled();
        sonar[7].execution_ns = 9 * MS;
        sonar[8].execution_ns = 5 * MS;
        sonar[9].execution_ns = 50 * MS;
        sonar[9].flags.warm_up = true;
        let mut hosts = [("HELM", helm), ("SONAR", sonar), ("RADAR", handled())];
        let flow = judged(&mut hosts, &declared(3));
        assert_eq!(
            flow.verdict.reasons.last().map(String::as_str),
            Some(
                "The handler at SONAR (and that of 1 other destination) took longer than its declared worst case of 3 \
                 ms for 2 of 999 messages: up to 9 ms of processor time."
            )
        );
        let mut hosts = [("HELM", handled())];
        let flow = judged(&mut hosts, &terms());
        assert_eq!(flow.destinations[0].handler, None, "nothing is declared");
    }
}
