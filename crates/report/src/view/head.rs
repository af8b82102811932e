//! The head of a run: its verdict in one sentence, the reasons, the warnings, and when, where and with what the run was
//! made.

use deckwatch_meter::result::{DestinationResult, ResultDocument, VerdictKind};
use serde::Serialize;

use super::{class, counted, name, provenance, sentences, sign, word};
use crate::limits::{Detail, SENTENCE_CHARS_MAX};
use crate::run::Run;
use crate::unit;

/// The head of one run.
#[derive(Debug, Serialize)]
pub(crate) struct Head {
    label: String,
    mission: String,
    word: &'static str,
    class: &'static str,
    sign: &'static str,
    sentence: String,
    reasons: Vec<String>,
    chips: Vec<Chip>,
    chips_left_out: usize,
    deaths: Vec<String>,
    warnings: Vec<Alert>,
    facts: Vec<(&'static str, String)>,
    command: String,
}

/// The verdict of one flow over one carrier.
#[derive(Debug, Serialize)]
struct Chip {
    word: &'static str,
    class: &'static str,
    sign: &'static str,
    text: String,
}

#[derive(Debug, Serialize)]
struct Alert {
    kind: String,
    text: String,
}

/// Builds the head.
pub(crate) fn of(run: &Run, label: &str, detail: &Detail) -> Head {
    const CHIPS_MAX: usize = 24;
    let document = &run.document;
    let kind = document.verdict.kind;
    let chips = document.flows.iter().take(CHIPS_MAX).map(|flow| Chip {
        word: word(flow.verdict.kind),
        class: class(flow.verdict.kind),
        sign: sign(flow.verdict.kind),
        text: format!("{} over {}", name(&flow.name), name(&flow.carrier)),
    });
    let sentence = sentence(document);
    // The first reason may be the same as the sentence.
    let mut reasons: Vec<String> = document
        .verdict
        .reasons
        .iter()
        .filter(|reason| **reason != sentence)
        .cloned()
        .collect();
    let remedies = document.verdict.remedies.iter();
    reasons.extend(remedies.map(|remedy| format!("What to do: {remedy}")));
    Head {
        label: label.to_owned(),
        mission: name(&document.mission),
        word: word(kind),
        class: class(kind),
        sign: sign(kind),
        sentence,
        reasons: sentences(reasons.iter(), detail.sentences.min(12)),
        chips: chips.collect(),
        chips_left_out: document.flows.len().saturating_sub(CHIPS_MAX),
        deaths: deaths(document, detail),
        warnings: warnings(run, detail),
        facts: facts(run),
        command: unit::cut(&words(&document.provenance.command), SENTENCE_CHARS_MAX),
    }
}

/// Returns the verdict in one sentence, which does not claim more than was proved.
fn sentence(document: &ResultDocument) -> String {
    let of = |kind| {
        document
            .flows
            .iter()
            .filter(|flow| flow.verdict.kind == kind)
            .count()
    };
    let several = document
        .flows
        .iter()
        .any(|flow| flow.carrier != document.flows[0].carrier);
    let counting = if several {
        " (each carrier counted)"
    } else {
        ""
    };
    let flows = counted(document.flows.len(), "flow", "flows") + counting;
    match document.verdict.kind {
        VerdictKind::Pass => {
            "Every flow is within its late budget at every destination, with 95\u{202f}% confidence.".to_owned()
        }
        VerdictKind::Fail => format!(
            "{} of {flows} {} late more often than the budget allows, with 95\u{202f}% confidence.",
            of(VerdictKind::Fail),
            if of(VerdictKind::Fail) == 1 { "is" } else { "are" }
        ),
        VerdictKind::Unproven => {
            let start = format!("{} of {flows} not proven: too few messages to say whether", of(VerdictKind::Unproven));
            match longest_wait(document) {
                Some(wait) => format!("{start} the late budget is kept. {wait}"),
                None => format!("{start} the late budget is kept."),
            }
        }
        VerdictKind::Invalid => "This run cannot be judged; its numbers must not be used.".to_owned(),
    }
}

/// Returns a sentence about the unproven flow that needs the longest time.
fn longest_wait(document: &ResultDocument) -> Option<String> {
    let needs = document.flows.iter().flat_map(|flow| {
        let own = flow
            .verdict
            .messages_needed
            .filter(|_| flow.verdict.kind == VerdictKind::Unproven);
        let destinations = flow.destinations.iter().filter_map(needed);
        own.into_iter()
            .chain(destinations)
            .map(move |messages| (messages, flow.rate_hz))
    });
    let (messages, rate_hz) =
        needs.max_by(|one, other| seconds(*one).total_cmp(&seconds(*other)))?;
    Some(format!(
        "It takes {}, if lates stay as rare as they are.",
        needed_words(messages, rate_hz)
    ))
}

/// Returns the time that a number of messages takes at a rate, in seconds.
pub(crate) fn seconds((messages, rate_hz): (u64, f64)) -> f64 {
    if rate_hz > 0.0 {
        messages as f64 / rate_hz
    } else {
        f64::INFINITY
    }
}

/// Returns the number of messages that an unproven destination still needs.
pub(crate) fn needed(destination: &DestinationResult) -> Option<u64> {
    destination
        .verdict
        .messages_needed
        .filter(|_| destination.verdict.kind == VerdictKind::Unproven)
}

/// Formats the number of messages still needed, and the time that they take.
fn needed_words(messages: u64, rate_hz: f64) -> String {
    let words = format!(
        "{} more {}",
        unit::count(messages),
        if messages == 1 { "message" } else { "messages" }
    );
    if rate_hz > 0.0 {
        format!(
            "{words}, {} at {}",
            unit::long_duration(messages as f64 / rate_hz),
            unit::rate(rate_hz)
        )
    } else {
        words
    }
}

fn deaths(document: &ResultDocument, detail: &Detail) -> Vec<String> {
    let all: Vec<String> = document
        .deaths
        .iter()
        .map(|death| {
            let at = unit::duration(death.at_ns as f64);
            format!(
                "{}: {}, {at} after the schedule's start.",
                death.process, death.how
            )
        })
        .collect();
    sentences(all.iter(), detail.sentences)
}

fn warnings(run: &Run, detail: &Detail) -> Vec<Alert> {
    let document = &run.document;
    let folded = document.folded_warnings();
    let mut all: Vec<Alert> = folded
        .iter()
        .take(detail.sentences)
        .map(|warning| Alert {
            kind: name(&warning.kind),
            text: unit::cut(&warning.text, SENTENCE_CHARS_MAX),
        })
        .collect();
    let mut add = |kind: &str, text: String| {
        all.push(Alert {
            kind: kind.to_owned(),
            text,
        })
    };
    if folded.len() > detail.sentences {
        let more = (folded.len() - detail.sentences) as u64;
        add(
            "more",
            format!("{} more warnings are in result.json.", unit::count(more)),
        );
    }
    if !document.provenance.clock.shared {
        add(
            "clocks",
            "The two ends do not share a clock: latencies here are not one-way measurements."
                .to_owned(),
        );
    }
    if run.strays > 0 {
        let strays = unit::count(run.strays);
        add(
            "stray-samples",
            format!(
                "{strays} samples belong to no flow of result.json and are left out of the figures."
            ),
        );
    }
    for (flow, series) in document.flows.iter().zip(&run.series) {
        let disagreeing = flow
            .destinations
            .iter()
            .zip(series)
            .filter(|(d, s)| d.counts.due != s.due())
            .count();
        if disagreeing > 0 {
            let text = format!(
                "{} over {}: result.json and samples.parquet count different numbers of messages at {}; the table is of the first, the figures are of the second.",
                name(&flow.name),
                name(&flow.carrier),
                counted(disagreeing, "destination", "destinations"),
            );
            add("samples-disagree", text);
        }
    }
    all
}

fn facts(run: &Run) -> Vec<(&'static str, String)> {
    let document = &run.document;
    let (origin, environment) = (&document.provenance, &document.environment);
    let machine = |key: &str| origin.machine.get(key).map(|value| name(value));
    let place = match (environment.kind.as_str(), &environment.fallback_reason) {
        ("loopback", Some(reason)) => {
            format!("loopback instead of emulated hosts: {}", name(reason))
        }
        (kind, _) => format!("{} ({})", name(&environment.network), name(kind)),
    };
    let mut facts = vec![
        ("started", name(&origin.started_at)),
        ("took", unit::long_duration(origin.duration_s)),
        ("network", place),
    ];
    if let Some(emulated) = provenance::emulated(run) {
        facts.extend(emulated.map(|(key, text)| (key, unit::cut(&text, SENTENCE_CHARS_MAX))));
    }
    if let Some(processor) = machine("cpu_model") {
        facts.push(("processor", processor));
    }
    if let Some(kernel) = machine("kernel") {
        facts.push(("kernel", kernel));
    }
    if !environment.loads.is_empty() {
        facts.push(("load", name(&environment.loads.join("; "))));
    }
    let debug = if origin.profile == "release" {
        ""
    } else {
        ", not a release build"
    };
    facts.push((
        "program",
        format!("deckwatch {}{debug}", name(&origin.version)),
    ));
    facts
}

/// Formats a command line so that a shell reads it back unchanged.
pub(crate) fn words(command: &[String]) -> String {
    let plain = |word: &str| {
        !word.is_empty()
            && word
                .chars()
                .all(|c| c.is_alphanumeric() || "-_./,:=+@%".contains(c))
    };
    let quoted = command.iter().map(|word| {
        if plain(word) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_typed_again() {
        let command = ["deckwatch", "run", "my mission.toml", "it's"].map(str::to_owned);
        assert_eq!(
            words(&command),
            r"deckwatch run 'my mission.toml' 'it'\''s'"
        );
    }

    #[test]
    fn what_is_needed_has_a_number_and_a_time() {
        let text = needed_words(9600, 20.0).replace('\u{202f}', " ");
        assert_eq!(text, "9600 more messages, 8 min at 20 Hz");
        assert_eq!(needed_words(1, 0.0), "1 more message");
    }
}
