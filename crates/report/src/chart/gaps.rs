//! The gaps between arrivals, by message, as in the paper's figures 11 to 18. A line shows above which value a gap is
//! late.

use super::{Frame, Quantity};
use crate::axis::Axis;
use crate::limits::Detail;
use crate::series::{Gap, Series};
use crate::svg::{Anchor, Svg};
use crate::unit;

/// The range of the axes, which is the same in all figures of one flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    first: u64,
    last: u64,
    high_ns: f64,
    low_ns: f64,
    logarithmic: bool,
}

impl Span {
    /// Returns a range that covers all of `series`. The gap axis is linear, unless one gap is so great that the others
    /// would look flat.
    pub(crate) fn of<'a>(series: impl Iterator<Item = &'a Series> + Clone, line_ns: f64) -> Self {
        const FLAT: f64 = 6.0;
        let gaps = series.flat_map(|series| &series.gaps);
        let greatest = gaps.clone().map(|gap| gap.ns).max().unwrap_or(0) as f64;
        let least = gaps
            .clone()
            .map(|gap| gap.ns)
            .filter(|ns| *ns > 0)
            .min()
            .unwrap_or(1) as f64;
        let line = if line_ns > 0.0 {
            line_ns
        } else {
            greatest.max(1.0)
        };
        let logarithmic = greatest > FLAT * line;
        Self {
            first: gaps.clone().map(|gap| gap.sequence).min().unwrap_or(0),
            last: gaps.map(|gap| gap.sequence).max().unwrap_or(1),
            high_ns: greatest.max(line) * if logarithmic { 1.5 } else { 1.12 },
            low_ns: if logarithmic {
                least.max(line / 10_000.0).min(line / 10.0)
            } else {
                0.0
            },
            logarithmic,
        }
    }
}

/// One figure.
#[derive(Clone, Debug)]
pub(crate) struct Gaps<'a> {
    pub(crate) series: &'a Series,
    pub(crate) colour: usize,
    pub(crate) title: String,
    /// Sum of period and deadline; `None` if arrivals are not periodic.
    pub(crate) line_ns: Option<f64>,
    pub(crate) span: Span,
    pub(crate) label: String,
}

const WIDTH_PX: f64 = 340.0;
const LEFT_PX: f64 = 56.0;
const TOP_PX: f64 = 42.0;
const PLOT_PX: f64 = 120.0;
/// Maximum number of late gaps marked with a dot; the greatest are marked.
const MARKS_MAX: usize = 60;

/// Draws the figure.
pub(crate) fn draw(figure: &Gaps<'_>, detail: &Detail) -> String {
    let (span, gaps, frame) = (figure.span, &figure.series.gaps, frame(figure.span));
    let mut svg = Svg::new(WIDTH_PX, frame.foot_px + 36.0, "chart small", &figure.label);
    svg.text(
        &format!("head c{}", figure.colour),
        Anchor::Start,
        (2.0, 13.0),
        &unit::cut(&figure.title, 38),
    );
    svg.text(
        "title",
        Anchor::Start,
        (2.0, 31.0),
        if span.logarithmic {
            "gap (log scale)"
        } else {
            "gap"
        },
    );
    frame.draw(&mut svg);
    if let Some(line_ns) = figure.line_ns {
        line(&mut svg, &frame, line_ns, gaps);
    }
    if gaps.is_empty() {
        let middle = (LEFT_PX + WIDTH_PX) / 2.0;
        svg.text(
            "empty",
            Anchor::Middle,
            (middle, TOP_PX + PLOT_PX / 2.0 + 4.0),
            "fewer than two arrivals",
        );
    }
    let points: Vec<(f64, f64)> = decimated(gaps, detail.columns, span.first, span.last)
        .iter()
        .map(|gap| {
            (
                frame.x.place(gap.sequence as f64),
                frame.y.place(gap.ns as f64),
            )
        })
        .collect();
    svg.trace(&format!("gaps c{}", figure.colour), &figure.title, &points);
    marks(&mut svg, &frame, gaps);
    svg.text(
        "title",
        Anchor::Middle,
        ((LEFT_PX + WIDTH_PX) / 2.0, frame.foot_px + 31.0),
        "message number",
    );
    frame.tell(&mut svg);
    svg.finish()
}

fn frame(span: Span) -> Frame {
    let foot_px = TOP_PX + PLOT_PX;
    let y_px = (foot_px, TOP_PX);
    Frame {
        x: Axis::linear(
            span.first as f64,
            span.last as f64,
            (LEFT_PX, WIDTH_PX - 12.0),
        ),
        y: if span.logarithmic {
            Axis::logarithmic(span.low_ns, span.high_ns, y_px)
        } else {
            Axis::linear(0.0, span.high_ns, y_px)
        },
        x_is: Quantity::Number,
        y_is: Quantity::Time,
        foot_px,
    }
}

/// Draws the line above which a gap is late, with the number of late gaps.
fn line(svg: &mut Svg, frame: &Frame, line_ns: f64, gaps: &[Gap]) {
    let y = frame.y.place(line_ns);
    let late = gaps.iter().filter(|gap| gap.late).count() as u64;
    svg.line("deadline", (frame.x.px().0, y), (frame.x.px().1, y));
    let many = match late {
        0 => "no gap".to_owned(),
        1 => "1 gap".to_owned(),
        late => format!("{} gaps", unit::count(late)),
    };
    let text = format!("{many} over {}", unit::duration(line_ns));
    svg.text(
        if late > 0 { "mark" } else { "title" },
        Anchor::End,
        (frame.x.px().1, 31.0),
        &text,
    );
}

fn marks(svg: &mut Svg, frame: &Frame, gaps: &[Gap]) {
    let mut late: Vec<&Gap> = gaps.iter().filter(|gap| gap.late).collect();
    late.sort_unstable_by_key(|gap| std::cmp::Reverse(gap.ns));
    for gap in late.into_iter().take(MARKS_MAX) {
        let title = format!(
            "message {}: gap of {}",
            unit::count(gap.sequence),
            unit::duration(gap.ns as f64)
        );
        svg.dot(
            "late",
            (
                frame.x.place(gap.sequence as f64),
                frame.y.place(gap.ns as f64),
            ),
            2.4,
            &title,
        );
    }
}

/// Returns all gaps by message number. If there are more than two for each column, returns the least and the greatest
/// of each column.
fn decimated(gaps: &[Gap], columns: usize, first: u64, last: u64) -> Vec<Gap> {
    if gaps.len() <= 2 * columns {
        let mut all = gaps.to_vec();
        all.sort_unstable_by_key(|gap| gap.sequence);
        return all;
    }
    let span = u128::from(last.saturating_sub(first)) + 1;
    let mut extremes: Vec<Option<(Gap, Gap)>> = vec![None; columns];
    for gap in gaps {
        let offset = u128::from(gap.sequence.saturating_sub(first)) * columns as u128 / span;
        let column = &mut extremes[usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(columns - 1)];
        *column = Some(match *column {
            None => (*gap, *gap),
            Some((least, most)) => (
                if gap.ns < least.ns { *gap } else { least },
                if gap.ns > most.ns { *gap } else { most },
            ),
        });
    }
    extremes
        .into_iter()
        .flatten()
        .flat_map(|(least, most)| {
            if least.sequence <= most.sequence {
                [least, most]
            } else {
                [most, least]
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimation_keeps_the_least_and_the_greatest_gap() {
        let mut gaps: Vec<Gap> = (0..100_000)
            .map(|n| Gap {
                sequence: n,
                ns: 50_000 + n % 100,
                late: false,
            })
            .collect();
        gaps[54_321].ns = 900_000;
        gaps[12_345].ns = 1;
        let thin = decimated(&gaps, 100, 0, 99_999);
        assert!(thin.len() <= 200);
        assert_eq!(thin.iter().map(|gap| gap.ns).max(), Some(900_000));
        assert_eq!(thin.iter().map(|gap| gap.ns).min(), Some(1));
        assert!(
            thin.windows(2)
                .all(|pair| pair[0].sequence <= pair[1].sequence)
        );
    }

    #[test]
    fn few_gaps_are_all_kept() {
        let gaps = [
            Gap {
                sequence: 2,
                ns: 5,
                late: false,
            },
            Gap {
                sequence: 1,
                ns: 6,
                late: true,
            },
        ];
        assert_eq!(decimated(&gaps, 100, 1, 2), [gaps[1], gaps[0]]);
    }

    #[test]
    fn the_axis_is_linear_unless_one_gap_would_press_the_others_flat() {
        let with = |ns| Series {
            gaps: vec![Gap {
                sequence: 1,
                ns,
                late: false,
            }],
            ..Series::default()
        };
        assert!(!Span::of([with(120)].iter(), 100.0).logarithmic);
        assert!(Span::of([with(5000)].iter(), 100.0).logarithmic);
        let nothing = Span::of([Series::default()].iter(), 100.0);
        assert!(nothing.high_ns > 100.0 && !nothing.logarithmic);
    }
}
