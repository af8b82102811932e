//! The distribution of latency: the share of messages that takes longer than a given time, on logarithmic axes, with
//! the deadline and the budget. Under it, a strip for each carrier or run shows where its messages are. A curve that
//! enters the shaded corner breaks the budget.

use deckwatch_meter::result::LateRate;

use super::{Frame, Placed, Quantity};
use crate::axis::Axis;
use crate::limits::Detail;
use crate::series::Series;
use crate::svg::{Anchor, Svg, text_width};
use crate::unit;

/// One destination of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    pub(crate) host: &'a str,
    pub(crate) series: &'a Series,
    pub(crate) rate: &'a LateRate,
}

/// All destinations of one carrier or one run, which have the same colour.
#[derive(Clone, Debug)]
pub(crate) struct Group<'a> {
    pub(crate) label: String,
    pub(crate) colour: usize,
    /// The destinations, the worst first.
    pub(crate) members: Vec<Member<'a>>,
}

/// The range of the axes, which is the same in all figures of one flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    low_ns: f64,
    high_ns: f64,
    least_share: f64,
}

impl Span {
    /// Returns a range that covers all of `groups`, the deadline and the budget.
    pub(crate) fn of(groups: &[Group<'_>], deadline_ns: u64, budget: f64) -> Self {
        let members = || groups.iter().flat_map(|group| &group.members);
        let deadline = (deadline_ns.max(1)) as f64;
        let least = members()
            .filter_map(|m| m.series.latencies_ns.iter().find(|ns| **ns > 0))
            .min();
        let greatest = members().filter_map(|m| m.series.latencies_ns.last()).max();
        let due = members().map(|m| m.series.due()).max().unwrap_or(1).max(1) as f64;
        let low_ns = least
            .map_or(deadline / 1000.0, |ns| *ns as f64)
            .min(deadline / 2.0);
        let high_ns = greatest
            .map_or(deadline, |ns| *ns as f64)
            .max(deadline * 1.6)
            * 1.25;
        let positive_budget = if budget > 0.0 { budget } else { 1.0 };
        Self {
            low_ns: low_ns * 0.85,
            high_ns,
            least_share: (1.0 / due).min(positive_budget).max(1e-9) / 5.0,
        }
    }
}

/// The figure of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Distribution<'a> {
    pub(crate) groups: &'a [Group<'a>],
    pub(crate) span: Span,
    pub(crate) deadline_ns: u64,
    pub(crate) budget: f64,
    pub(crate) width: f64,
    pub(crate) label: String,
    /// Label of the x axis.
    pub(crate) time: &'static str,
}

const TOP_PX: f64 = 30.0;
const PLOT_PX: f64 = 270.0;
const STRIP_PX: f64 = 15.0;

/// Draws the figure.
pub(crate) fn draw(figure: &Distribution<'_>, detail: &Detail) -> String {
    let least = unit::share(10_f64.powf(figure.span.least_share.log10().ceil()));
    let labels = figure.groups.iter().map(strip_label).chain([least]);
    let left = labels
        .map(|label| text_width(&label) + 10.0)
        .fold(50.0, f64::max);
    let foot = TOP_PX + PLOT_PX + 8.0 + figure.groups.len() as f64 * (STRIP_PX + 3.0);
    let frame = Frame {
        x: Axis::logarithmic(
            figure.span.low_ns,
            figure.span.high_ns,
            (left, figure.width - 14.0),
        ),
        y: Axis::logarithmic(figure.span.least_share, 1.0, (TOP_PX + PLOT_PX, TOP_PX)),
        x_is: Quantity::Time,
        y_is: Quantity::Share,
        foot_px: foot,
    };
    let mut svg = Svg::new(figure.width, foot + 38.0, "chart", &figure.label);
    let mut placed = Placed::default();
    corner(&mut svg, &frame, figure);
    frame.draw(&mut svg);
    svg.text(
        "title",
        Anchor::Start,
        (2.0, 12.0),
        "share of messages that take longer",
    );
    svg.text(
        "title",
        Anchor::Middle,
        ((left + figure.width) / 2.0, foot + 32.0),
        figure.time,
    );
    marks(&mut svg, &mut placed, &frame, figure);
    for group in figure.groups {
        for member in group.members.iter().skip(1).take(detail.thin_curves).rev() {
            let points = curve(member.series, detail.curve_points / 4 + 8);
            svg.trace(
                &format!("thin c{}", group.colour),
                "",
                &placed_points(&frame, member.series, &points),
            );
        }
    }
    for group in figure.groups {
        bold(&mut svg, &mut placed, &frame, group, detail);
    }
    for group in figure.groups {
        label(&mut svg, &mut placed, &frame, group);
    }
    for (index, group) in figure.groups.iter().enumerate() {
        let y = TOP_PX + PLOT_PX + 8.0 + index as f64 * (STRIP_PX + 3.0);
        strip(&mut svg, &frame, group, y);
    }
    frame.tell(&mut svg);
    svg.finish()
}

/// Shades the corner in which a curve breaks the budget: later than the deadline, and more often than allowed.
fn corner(svg: &mut Svg, frame: &Frame, figure: &Distribution<'_>) {
    let (x, right) = (frame.x.place(figure.deadline_ns as f64), frame.x.px().1);
    let (y, top) = (frame.y.place(figure.budget), frame.y.px().1);
    svg.rect(
        "zone",
        (x, top),
        (right - x, y - top),
        "later than the deadline, more often than the budget allows",
    );
}

fn marks(svg: &mut Svg, placed: &mut Placed, frame: &Frame, figure: &Distribution<'_>) {
    let ((left, right), (_, top)) = (frame.x.px(), frame.y.px());
    let x = frame.x.place(figure.deadline_ns as f64);
    let y = frame.y.place(figure.budget);
    svg.line("deadline", (x, top - 4.0), (x, frame.foot_px));
    svg.line("budget", (left, y), (right, y));
    let deadline = format!("deadline {}", unit::duration(figure.deadline_ns as f64));
    let half = text_width(&deadline) / 2.0;
    let at = (x.clamp(left + half, right - half), top - 8.0);
    placed.take(Anchor::Middle, at, &deadline);
    svg.text("mark", Anchor::Middle, at, &deadline);
    let budget = format!("budget {}", unit::share(figure.budget));
    let at = (left + 6.0, y - 5.0);
    placed.take(Anchor::Start, at, &budget);
    svg.text("mark", Anchor::Start, at, &budget);
    placed.avoid(&[(left, y), (right, y)]);
    placed.avoid(&[(x, top), (x, frame.foot_px)]);
    intervals(svg, frame, figure, x);
}

/// Draws the late rate of each group's worst destination, with its bounds, beside the deadline.
fn intervals(svg: &mut Svg, frame: &Frame, figure: &Distribution<'_>, deadline_px: f64) {
    const APART_PX: f64 = 7.0;
    for (index, group) in figure.groups.iter().enumerate() {
        let Some(worst) = group
            .members
            .first()
            .filter(|member| member.rate.upper > 0.0)
        else {
            continue;
        };
        let x = deadline_px + APART_PX * (index as f64 + 1.0);
        if x > frame.x.px().1 {
            return;
        }
        let class = format!("interval c{}", group.colour);
        svg.line(
            &class,
            (x, frame.y.place(worst.rate.lower)),
            (x, frame.y.place(worst.rate.upper)),
        );
        let end = frame.y.place(worst.rate.upper);
        svg.line(&class, (x - 2.5, end), (x + 2.5, end));
        if worst.rate.estimate > 0.0 {
            let title = format!(
                "{}: late rate {}",
                group.label,
                unit::share(worst.rate.estimate)
            );
            svg.dot(
                &format!("end c{}", group.colour),
                (x, frame.y.place(worst.rate.estimate)),
                3.0,
                &title,
            );
        }
    }
}

fn bold(svg: &mut Svg, placed: &mut Placed, frame: &Frame, group: &Group<'_>, detail: &Detail) {
    let Some(worst) = group.members.first() else {
        return;
    };
    let points = placed_points(
        frame,
        worst.series,
        &curve(worst.series, detail.curve_points),
    );
    placed.avoid(&points);
    svg.trace(
        &format!("curve c{}", group.colour),
        &curve_label(group),
        &points,
    );
    if let (Some(greatest), 0) = (worst.series.latencies_ns.last(), worst.series.lost) {
        let title = format!(
            "{}: greatest latency {}",
            curve_label(group),
            unit::duration(*greatest as f64)
        );
        svg.dot(
            &format!("end c{}", group.colour),
            last(&points),
            3.0,
            &title,
        );
    }
}

fn label(svg: &mut Svg, placed: &mut Placed, frame: &Frame, group: &Group<'_>) {
    let Some(worst) = group.members.first() else {
        return;
    };
    let points = placed_points(frame, worst.series, &curve(worst.series, 8));
    if points.is_empty() {
        return;
    }
    let class = format!("label c{}", group.colour);
    let (end, text) = match worst.series.lost {
        0 => (last(&points), curve_label(group)),
        lost => {
            let text = format!("{}: {} lost", curve_label(group), unit::count(lost));
            let (x, y) = last(&points);
            ((x - text_width(&text) - 10.0, y + 11.0), text)
        }
    };
    if let Some((anchor, at)) = placed.beside(frame, end, &text) {
        svg.text(&class, anchor, at, &text);
    }
}

fn last(points: &[(f64, f64)]) -> (f64, f64) {
    points.last().copied().unwrap_or_default()
}

fn curve_label(group: &Group<'_>) -> String {
    match group.members.as_slice() {
        [] | [_] => unit::cut(&group.label, 30),
        [worst, ..] => format!(
            "{}, worst: {}",
            unit::cut(&group.label, 30),
            unit::cut(worst.host, 20)
        ),
    }
}

fn strip_label(group: &Group<'_>) -> String {
    unit::cut(&group.label, 14)
}

/// Returns points of the curve, more of them in the tail. A point is a time in nanoseconds, and the share of the due
/// messages that took at least so long.
fn curve(series: &Series, points: usize) -> Vec<(f64, f64)> {
    const TAIL: usize = 24;
    let (received, due) = (series.latencies_ns.len(), series.due() as f64);
    let mut chosen: Vec<usize> = (0..=points)
        .map(|step| {
            let exceeding = due.powf(1.0 - step as f64 / points as f64).ceil();
            (due - exceeding) as usize
        })
        .filter(|index| *index < received)
        .chain(received.saturating_sub(TAIL.min(points / 4))..received)
        .collect();
    chosen.sort_unstable();
    chosen.dedup();
    let mut out = Vec::with_capacity(chosen.len() * 2);
    let mut before = None;
    for index in chosen {
        let (ns, share) = (
            series.latencies_ns[index] as f64,
            (due - index as f64) / due,
        );
        if index > 0 && before == Some(index - 1) {
            // Between two messages next to each other in latency, the share is constant.
            out.push((series.latencies_ns[index - 1] as f64, share));
        }
        out.push((ns, share));
        before = Some(index);
    }
    out
}

/// Converts points to pixels. If messages were lost, the curve continues to the right edge: a lost message takes longer
/// than any time.
fn placed_points(frame: &Frame, series: &Series, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut out: Vec<(f64, f64)> = points
        .iter()
        .map(|(ns, share)| (frame.x.place(*ns), frame.y.place(*share)))
        .collect();
    out.dedup_by(|b, a| (a.0 - b.0).abs() < 0.05 && (a.1 - b.1).abs() < 0.05);
    if series.lost > 0 {
        let y = frame.y.place(series.lost as f64 / series.due() as f64);
        let x = out.last().map_or(frame.x.px().0, |point| point.0);
        out.push((x, y));
        out.push((frame.x.px().1, y));
    }
    out
}

/// Draws the strip of a group: the more messages of its destinations have a latency, the darker is the strip there.
fn strip(svg: &mut Svg, frame: &Frame, group: &Group<'_>, y: f64) {
    const BINS: usize = 110;
    let (left, right) = frame.x.px();
    let mut bins = [0_u64; BINS];
    for ns in group
        .members
        .iter()
        .flat_map(|member| &member.series.latencies_ns)
    {
        let share = (frame.x.place(*ns as f64) - left) / (right - left);
        bins[((share * BINS as f64) as usize).min(BINS - 1)] += 1;
    }
    svg.rect("strip-back", (left, y), (right - left, STRIP_PX), "");
    svg.text(
        &format!("strip-label c{}", group.colour),
        Anchor::End,
        (left - 6.0, y + 11.5),
        &strip_label(group),
    );
    let most = bins.iter().copied().max().unwrap_or(0);
    let width = (right - left) / BINS as f64;
    for (index, n) in bins.iter().enumerate().filter(|(_, n)| **n > 0) {
        // Logarithmic, so that a single message can be seen beside a hundred thousand.
        let hundredths = 18.0 + 82.0 * ((*n as f64).ln_1p() / (most as f64).ln_1p());
        let class = format!("strip c{}", group.colour);
        svg.shade(
            &class,
            (left + index as f64 * width, y),
            (width + 0.3, STRIP_PX),
            hundredths as u32,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_starts_at_all_and_ends_at_one_message() {
        let series = Series {
            latencies_ns: (1..=1000).collect(),
            ..Series::default()
        };
        let points = curve(&series, 50);
        assert_eq!(points[0], (1.0, 1.0));
        assert_eq!(points.last(), Some(&(1000.0, 0.001)));
        assert!(
            points
                .windows(2)
                .all(|pair| pair[0].1 >= pair[1].1 && pair[0].0 <= pair[1].0)
        );
    }

    #[test]
    fn lost_messages_take_longer_than_any_time() {
        let series = Series {
            latencies_ns: (1..=90).collect(),
            lost: 10,
            ..Series::default()
        };
        let points = curve(&series, 50);
        assert_eq!(points.last(), Some(&(90.0, 0.11)));
        let frame = Frame {
            x: Axis::logarithmic(1.0, 1000.0, (0.0, 300.0)),
            y: Axis::logarithmic(0.001, 1.0, (300.0, 0.0)),
            x_is: Quantity::Time,
            y_is: Quantity::Share,
            foot_px: 300.0,
        };
        let end = *placed_points(&frame, &series, &points)
            .last()
            .expect("a curve");
        assert!(
            (end.0 - 300.0).abs() < 1e-6 && (end.1 - 100.0).abs() < 1e-6,
            "{end:?}"
        );
    }

    #[test]
    fn a_curve_of_nothing_has_no_points() {
        assert!(curve(&Series::default(), 50).is_empty());
    }
}
