//! The figures of one flow: over all its carriers and in all runs, on equal axes.

use deckwatch_meter::sample::Layer;
use serde::Serialize;

use super::{Line, Section, class, name, numbers, sentences, sign, table, word};
use crate::chart::distribution::{self, Distribution, Group, Member};
use crate::chart::gaps::{self, Gaps};
use crate::chart::layers::{self as layer_chart, Bar, LateMessages};
use crate::layers;
use crate::limits::Detail;
use crate::palette;
use crate::unit;

/// A drawing in two forms: for wide screens and paper, and for narrow screens.
#[derive(Debug, Serialize)]
struct Drawing {
    wide: String,
    narrow: String,
}

impl Drawing {
    fn at_both_widths(draw: impl Fn(f64) -> String) -> Self {
        const WIDE_PX: f64 = 760.0;
        const NARROW_PX: f64 = 350.0;
        Self {
            wide: draw(WIDE_PX),
            narrow: draw(NARROW_PX),
        }
    }
}

/// The figures of one flow.
#[derive(Debug, Serialize)]
pub(crate) struct FlowView {
    name: String,
    facts: Vec<String>,
    verdicts: Vec<FlowVerdict>,
    distributions: Vec<(String, Drawing)>,
    key: Vec<(usize, String)>,
    received_nothing: bool,
    gap_figures: Vec<GapFigure>,
    gap_columns: usize,
    more_gap_figures: Vec<GapFigure>,
    gap_figures_left_out: usize,
    late_gap: String,
    gap_keys: [&'static str; 7],
    gap_rows: Vec<numbers::GapRow>,
    blame: Vec<numbers::Blame>,
    all_layers: Option<Drawing>,
    late_layers: Option<Drawing>,
    late_messages: Vec<Drawing>,
    late_messages_notes: Vec<String>,
    layer_key: Vec<(usize, &'static str)>,
    merged: Vec<String>,
}

/// A figure of gaps, with what a paper printed of the same experiment. Empty if a run lacks the carrier.
#[derive(Clone, Debug, Default, Serialize)]
struct GapFigure {
    drawing: String,
    printed: Option<numbers::Printed>,
}

#[derive(Debug, Serialize)]
struct FlowVerdict {
    word: &'static str,
    class: &'static str,
    sign: &'static str,
    label: String,
    reasons: Vec<String>,
}

/// Draws all figures of one flow.
pub(crate) fn of(section: &Section<'_>, several: bool, detail: &Detail) -> FlowView {
    let carriers = section.carriers();
    let mut lines: Vec<Line<'_>> = section.lines.clone();
    // One row for each carrier, one column for each run.
    lines.sort_by_key(|line| {
        (
            carriers
                .iter()
                .position(|carrier| *carrier == line.flow.carrier),
            line.run,
        )
    });
    lines.truncate(detail.flows);
    let mut facts: Vec<String> = lines.iter().map(|line| table::facts(line.flow)).collect();
    facts.dedup();
    let (gap_figures, more_gap_figures, gap_figures_left_out) =
        gap_figures(section, &lines, several, detail);
    let (late_messages, late_messages_notes) = late_messages(&lines, several, detail);
    FlowView {
        name: name(section.name),
        facts,
        verdicts: lines.iter().map(|line| verdict(line, several)).collect(),
        distributions: distributions(section, &lines, several, detail),
        key: lines
            .iter()
            .map(|line| (colour(line, several), label(line, several)))
            .collect(),
        received_nothing: section
            .series()
            .all(|series| series.latencies_ns.is_empty()),
        gap_figures,
        gap_columns: if several {
            gap_columns(runs_of(&lines))
        } else {
            1
        },
        more_gap_figures,
        gap_figures_left_out,
        late_gap: late_gap(&lines),
        gap_keys: numbers::GAP_KEYS,
        gap_rows: numbers::gap_rows(&lines, several, detail),
        blame: lines
            .iter()
            .filter_map(|line| numbers::blame(line, several))
            .collect(),
        all_layers: bars(&lines, several, "median of each layer, all messages", |d| {
            layers::of_map(&d.layers_ns)
        }),
        late_layers: bars(&lines, several, "mean of each layer, late messages", |d| {
            layers::of_map(&d.late_layers_ns)
        }),
        late_messages,
        late_messages_notes,
        layer_key: Layer::ALL
            .into_iter()
            .map(|layer| (layer as usize, layer.name()))
            .collect(),
        merged: merged(&lines, several),
    }
}

/// Returns the label of a line in a figure.
pub(super) fn label(line: &Line<'_>, several: bool) -> String {
    let carrier = name(&line.flow.carrier);
    if several {
        format!("{carrier}, {}", line.run_label)
    } else {
        carrier
    }
}

/// Returns the colour of a line: that of its carrier if there is one run, else that of its run.
pub(super) fn colour(line: &Line<'_>, several: bool) -> usize {
    if several {
        line.run % palette::RUN_COLOURS
    } else {
        line.carrier_colour
    }
}

fn verdict(line: &Line<'_>, several: bool) -> FlowVerdict {
    let verdict = &line.flow.verdict;
    FlowVerdict {
        word: word(verdict.kind),
        class: class(verdict.kind),
        sign: sign(verdict.kind),
        label: label(line, several),
        reasons: sentences(verdict.reasons.iter(), 5),
    }
}

fn distributions(
    section: &Section<'_>,
    lines: &[Line<'_>],
    several: bool,
    detail: &Detail,
) -> Vec<(String, Drawing)> {
    let Some(first) = lines.first() else {
        return Vec::new();
    };
    let all: Vec<Group<'_>> = lines.iter().map(|line| group(line, several)).collect();
    let span = distribution::Span::of(&all, first.flow.deadline_ns, first.budget());
    let draw = |groups: &[Group<'_>], what: &str| {
        let label = format!(
            "Latency of {}{what}: share of messages that take longer than a time",
            name(section.name)
        );
        Drawing::at_both_widths(|width| {
            let (deadline_ns, budget, label) =
                (first.flow.deadline_ns, first.budget(), label.clone());
            distribution::draw(
                &Distribution {
                    groups,
                    span,
                    deadline_ns,
                    budget,
                    width,
                    label,
                    time: super::time_words(lines.iter().map(|line| line.clock)),
                },
                detail,
            )
        })
    };
    if !several {
        return vec![(String::new(), draw(&all, ""))];
    }
    section
        .carriers()
        .into_iter()
        .map(|carrier| {
            let groups: Vec<Group<'_>> = lines
                .iter()
                .filter(|line| line.flow.carrier == carrier)
                .map(|line| group(line, several))
                .collect();
            (name(carrier), draw(&groups, &format!(" over {carrier}")))
        })
        .collect()
}

fn group<'a>(line: &Line<'a>, several: bool) -> Group<'a> {
    let members = line
        .destinations()
        .into_iter()
        .map(|(destination, series)| Member {
            host: &destination.host,
            series,
            rate: &destination.late_rate,
        });
    Group {
        label: if several {
            line.run_label.to_owned()
        } else {
            name(&line.flow.carrier)
        },
        colour: colour(line, several),
        members: members.collect(),
    }
}

/// Returns the figures shown at once, the folded ones, and the number of those left out. Of several runs, the worst
/// destination of each is shown at once, with a gap where a run lacks a carrier.
fn gap_figures(
    section: &Section<'_>,
    lines: &[Line<'_>],
    several: bool,
    detail: &Detail,
) -> (Vec<GapFigure>, Vec<GapFigure>, usize) {
    const SHOWN_AT_ONCE: usize = 12;
    let line_ns = lines
        .iter()
        .filter_map(Line::late_gap_ns)
        .fold(0.0, f64::max);
    let span = gaps::Span::of(section.series(), line_ns);
    let each = if several {
        1
    } else {
        (SHOWN_AT_ONCE / lines.len().max(1)).clamp(1, detail.gap_figures)
    };
    let (mut shown, mut more, mut left_out) = (Vec::new(), Vec::new(), 0);
    for line in lines {
        if several {
            let runs = runs_of(lines);
            shown.resize(
                shown.len() + (line.run + runs - shown.len() % runs) % runs,
                GapFigure::default(),
            );
        }
        let destinations = line.destinations();
        left_out += destinations.len().saturating_sub(detail.gap_figures);
        for (index, (destination, series)) in destinations
            .into_iter()
            .take(detail.gap_figures)
            .enumerate()
        {
            let title = format!("{} → {}", label(line, several), name(&destination.host));
            let label = format!("Gap between arrivals of {}: {title}", name(section.name));
            let figure = Gaps {
                series,
                colour: colour(line, several),
                title,
                line_ns: line.late_gap_ns(),
                span,
                label,
            };
            let list = if index < each { &mut shown } else { &mut more };
            list.push(GapFigure {
                drawing: gaps::draw(&figure, detail),
                printed: line
                    .published
                    .map(|printed| numbers::printed(printed, destination, series)),
            });
        }
    }
    (shown, more, left_out)
}

/// Returns the columns of the figures of so many runs: two rows of many, so that each figure can be read.
fn gap_columns(runs: usize) -> usize {
    const ROW_MAX: usize = 4;
    if runs > ROW_MAX && runs.is_multiple_of(2) {
        runs / 2
    } else {
        runs
    }
}

/// Returns the number of runs side by side.
fn runs_of(lines: &[Line<'_>]) -> usize {
    lines.iter().map(|line| line.run + 1).max().unwrap_or(1)
}

fn late_gap(lines: &[Line<'_>]) -> String {
    let mut rules: Vec<String> = lines
        .iter()
        .filter_map(|line| {
            let ns = line.late_gap_ns()?;
            let period = unit::duration(1e9 / line.flow.rate_hz);
            let deadline = unit::duration(line.flow.deadline_ns as f64);
            Some(format!(
                "period {period} plus deadline {deadline} = {}",
                unit::duration(ns)
            ))
        })
        .collect();
    rules.dedup();
    rules.join("; ")
}

fn bars(
    lines: &[Line<'_>],
    several: bool,
    what: &str,
    segments: impl Fn(&deckwatch_meter::result::DestinationResult) -> Vec<layers::Segment>,
) -> Option<Drawing> {
    let bars: Vec<Bar> = lines
        .iter()
        .filter_map(|line| {
            let destinations = line.destinations();
            let (worst, _) = destinations.first()?;
            let segments = segments(worst);
            let at = if destinations.len() > 1 {
                format!(" → {} (worst)", name(&worst.host))
            } else {
                format!(" → {}", name(&worst.host))
            };
            let label = format!("{}{at}", label(line, several));
            (!segments.is_empty()).then_some(Bar {
                label,
                colour: colour(line, several),
                segments,
            })
        })
        .collect();
    (!bars.is_empty())
        .then(|| Drawing::at_both_widths(|width| layer_chart::bars(&bars, width, what)))
}

fn late_messages(
    lines: &[Line<'_>],
    several: bool,
    detail: &Detail,
) -> (Vec<Drawing>, Vec<String>) {
    let (mut drawings, mut notes) = (Vec::new(), Vec::new());
    for line in lines {
        let mut messages: Vec<_> = line
            .destinations()
            .into_iter()
            .flat_map(|(destination, series)| {
                series
                    .worst
                    .iter()
                    .map(|late| (destination.host.as_str(), late))
            })
            .collect();
        let arrived: u64 = line.series.iter().map(|series| series.late_arrived).sum();
        let lost: u64 = line.series.iter().map(|series| series.lost).sum();
        messages.sort_by_key(|(_, late)| (std::cmp::Reverse(late.latency_ns), late.sequence));
        messages.truncate(detail.late_messages);
        if let Some(note) =
            numbers::late_note(&label(line, several), arrived, lost, messages.len() as u64)
        {
            notes.push(note);
        }
        if messages.is_empty() {
            continue;
        }
        let (title, colour) = (label(line, several), colour(line, several));
        drawings.push(Drawing::at_both_widths(|width| {
            let most = if width < 500.0 {
                messages.len().min(60)
            } else {
                messages.len()
            };
            layer_chart::late_messages(&LateMessages {
                messages: messages[..most].to_vec(),
                deadline_ns: line.flow.deadline_ns,
                title: title.clone(),
                colour,
                width,
                label: format!("Layers of the worst late messages: {title}"),
            })
        }));
    }
    (drawings, notes)
}

fn merged(lines: &[Line<'_>], several: bool) -> Vec<String> {
    lines
        .iter()
        .filter(|line| !line.flow.merged_layers.is_empty())
        .map(|line| {
            format!(
                "{}: {}",
                label(line, several),
                name(&line.flow.merged_layers.join("; "))
            )
        })
        .collect()
}
