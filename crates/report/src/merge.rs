//! Several experiments of one kind as one document: their figures by title, with all curves.

use std::collections::{BTreeMap, BTreeSet};

use deckwatch_meter::experiment::{Curve, ExperimentDocument, Figure};
use deckwatch_meter::result::Provenance;

use crate::error::ReportError;
use crate::view::head;

/// The experiments whose figures have the same axes in every run.
const KINDS: [&str; 3] = ["sweep", "overhead", "grid"];

/// Merges the documents of several folders, each with the name of its folder, which must differ.
///
/// # Errors
/// [`ReportError::OtherExperiment`]: the experiments are not all of the first one's kind.
pub(crate) fn merge(
    experiments: Vec<(String, ExperimentDocument)>,
) -> Result<ExperimentDocument, ReportError> {
    let labels = labels(&experiments);
    let first = experiments[0].1.experiment.clone();
    let other = |(_, of): &&(String, ExperimentDocument)| {
        of.experiment != first || !KINDS.contains(&of.experiment.as_str())
    };
    if let Some((folder, found)) = experiments.iter().find(other) {
        return Err(ReportError::OtherExperiment {
            folder: folder.clone(),
            found: found.experiment.clone(),
            first,
        });
    }
    let mut documents = experiments.into_iter().map(|(_, document)| document);
    let all: Vec<_> = labels.into_iter().zip(&mut documents).collect();
    let each = |of: &dyn Fn(&ExperimentDocument) -> String| {
        joined(all.iter().map(|(label, document)| (label, of(document))))
    };
    let mut whole = all[0].1.clone();
    whole.title = format!("{}, {} results", whole.title, all.len());
    whole.source = each(&|of| of.source.clone());
    whole.condition = each(&|of| of.condition.clone());
    whole.provenance = provenance(&all);
    whole.parameters = facts(&all, &|of| &of.parameters);
    for (label, document) in &all {
        let command = head::words(&document.provenance.command);
        whole
            .parameters
            .insert(format!("command \u{b7} {label}"), command);
    }
    (whole.standings, whole.machine_states) = (Vec::new(), Vec::new());
    (whole.measurements, whole.figures) = (Vec::new(), Vec::new());
    (whole.skipped, whole.notes, whole.warnings) = (Vec::new(), Vec::new(), Vec::new());
    for (label, document) in all {
        add(&mut whole, &label, document);
    }
    Ok(whole)
}

/// The label of each experiment: its network, or its folder if another one has the same network.
fn labels(experiments: &[(String, ExperimentDocument)]) -> Vec<String> {
    let network = |of: &ExperimentDocument| -> String {
        let words = of.parameters.get("network").map_or("", String::as_str);
        let end = [": ", "; "]
            .iter()
            .filter_map(|mark| words.find(mark))
            .min();
        words[..end.unwrap_or(words.len())].to_owned()
    };
    let networks: Vec<String> = experiments.iter().map(|(_, of)| network(of)).collect();
    let is_only = |name: &String| networks.iter().filter(|other| *other == name).count() == 1;
    let label = |((folder, _), network): (&(String, _), &String)| {
        if !network.is_empty() && is_only(network) {
            network.clone()
        } else {
            folder.clone()
        }
    };
    experiments.iter().zip(&networks).map(label).collect()
}

/// Adds one experiment's figures, measurements and remarks, each with its label.
fn add(whole: &mut ExperimentDocument, label: &str, document: ExperimentDocument) {
    let of = |name: &str| format!("{name}, {label}");
    let said = |text: &str| format!("{label}: {text}");
    for figure in document.figures {
        let curves = figure.curves.iter().map(|curve| Curve {
            label: of(&curve.label),
            points: curve.points.clone(),
        });
        let curves: Vec<Curve> = curves.collect();
        let same = whole.figures.iter_mut().find(|there| {
            there.title == figure.title && there.kind == figure.kind && there.x == figure.x
        });
        match same {
            Some(there) => there.curves.extend(curves),
            None => whole.figures.push(Figure { curves, ..figure }),
        }
    }
    for mut measurement in document.measurements {
        measurement.system = of(&measurement.system);
        whole.measurements.push(measurement);
    }
    for mut standing in document.standings {
        standing.condition = of(&standing.condition);
        whole.standings.push(standing);
    }
    for mut state in document.machine_states {
        state.condition = of(&state.condition);
        whole.machine_states.push(state);
    }
    for mut skip in document.skipped {
        skip.what = of(&skip.what);
        whole.skipped.push(skip);
    }
    for mut warning in document.warnings {
        warning.text = said(&warning.text);
        whole.warnings.push(warning);
    }
    whole
        .notes
        .extend(document.notes.iter().map(|note| said(note)));
}

fn provenance(all: &[(String, ExperimentDocument)]) -> Provenance {
    let each = |of: &dyn Fn(&Provenance) -> String| {
        joined(
            all.iter()
                .map(|(label, document)| (label, of(&document.provenance))),
        )
    };
    let mut whole = all[0].1.provenance.clone();
    whole.command = Vec::new();
    whole.version = each(&|of| of.version.clone());
    whole.profile = each(&|of| of.profile.clone());
    whole.started_at = each(&|of| of.started_at.clone());
    whole.duration_s = all.iter().map(|(_, of)| of.provenance.duration_s).sum();
    whole.machine = facts(all, &|of| &of.provenance.machine);
    whole.clock.note = each(&|of| of.clock.note.clone());
    whole.disturbance = BTreeMap::new();
    for (label, document) in all {
        for (key, value) in &document.provenance.disturbance {
            let key = format!("{key} \u{b7} {label}");
            whole.disturbance.insert(key, *value);
        }
    }
    whole
}

/// Facts by name. A fact that all have alike has its name alone, the others have one entry for each label.
fn facts(
    all: &[(String, ExperimentDocument)],
    of: &dyn Fn(&ExperimentDocument) -> &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (label, document) in all {
        for (key, value) in of(document) {
            if all
                .iter()
                .all(|(_, other)| of(other).get(key) == Some(value))
            {
                found.insert(key.clone(), value.clone());
            } else {
                found.insert(format!("{key} \u{b7} {label}"), value.clone());
            }
        }
    }
    found
}

/// The words that all have alike, or those of each with its label.
fn joined<'a>(words: impl Iterator<Item = (&'a String, String)>) -> String {
    let words: Vec<(&String, String)> = words.collect();
    let kinds: BTreeSet<&String> = words.iter().map(|(_, text)| text).collect();
    if kinds.len() == 1 {
        return words[0].1.clone();
    }
    let each = words
        .iter()
        .map(|(label, text)| format!("{text} ({label})"));
    each.collect::<Vec<_>>().join("; ")
}
