//! A figure of an experiment: lines over a numeric axis, or groups of bars.

use deckwatch_meter::experiment::{AxisNote, Curve, Figure, FigureKind, Point};
use serde_json::json;

use super::{Frame, Placed, Quantity};
use crate::axis::Axis;
use crate::svg::{Anchor, Svg, text_width};
use crate::unit;

const WIDTH_PX: f64 = 620.0;
const LEFT_PX: f64 = 76.0;
const RIGHT_PX: f64 = 16.0;
const TOP_PX: f64 = 28.0;
const PLOT_PX: f64 = 270.0;
/// Height of the space below the plot, for the axis's numbers and its label.
const FOOT_PX: f64 = 44.0;
/// Ratio of the axis's end to the greatest value.
const HEADROOM: f64 = 1.08;

/// Draws a figure.
pub(crate) fn draw(figure: &Figure) -> String {
    let values = || {
        let points = figure.curves.iter().flat_map(|curve| &curve.points);
        points.filter(|point| point.x.is_finite() && point.y.is_finite())
    };
    let label = format!(
        "{}: {} over {}",
        figure.title, figure.y.label, figure.x.label
    );
    let mut svg = Svg::new(WIDTH_PX, TOP_PX + PLOT_PX + FOOT_PX, "chart plot", &label);
    svg.text(
        "title",
        Anchor::Start,
        (2.0, 13.0),
        &unit::cut(&axis_title(&figure.y), 90),
    );
    if values().next().is_none() {
        let middle = (WIDTH_PX / 2.0, TOP_PX + PLOT_PX / 2.0);
        svg.text("empty", Anchor::Middle, middle, "nothing was measured");
        return svg.finish();
    }
    let ends = |point: &Point| [Some(point.y), point.low, point.high];
    let heights = values().flat_map(ends).flatten();
    let y = vertical(figure, heights.filter(|value| value.is_finite()));
    match figure.kind {
        FigureKind::Lines => lines(&mut svg, figure, y, values().map(|point| point.x)),
        FigureKind::Bars => bars(&mut svg, figure, y),
    }
    svg.text(
        "title",
        Anchor::Middle,
        (
            f64::midpoint(LEFT_PX, WIDTH_PX - RIGHT_PX),
            TOP_PX + PLOT_PX + 36.0,
        ),
        &unit::cut(&axis_title(&figure.x), 90),
    );
    svg.finish()
}

fn axis_title(axis: &AxisNote) -> String {
    let scale = if axis.is_logarithmic {
        " (log scale)"
    } else {
        ""
    };
    format!("{}{scale}", axis.label)
}

fn quantity(axis: &AxisNote) -> Quantity {
    match axis.unit.as_str() {
        "ns" => Quantity::Time,
        "share" => Quantity::Share,
        "octets" => Quantity::Octets,
        "bit/s" => Quantity::BitRate,
        _ => Quantity::Number,
    }
}

fn vertical(figure: &Figure, values: impl Iterator<Item = f64>) -> Axis {
    let px = (TOP_PX + PLOT_PX, TOP_PX);
    let (mut least, mut lowest, mut greatest) = (f64::INFINITY, 0.0_f64, 0.0_f64);
    for value in values {
        lowest = lowest.min(value);
        greatest = greatest.max(value);
        if value > 0.0 {
            least = least.min(value);
        }
    }
    if figure.y.is_logarithmic && least.is_finite() {
        Axis::logarithmic(least / 1.15, greatest * 1.3, px)
    } else {
        Axis::linear(lowest * HEADROOM, greatest * HEADROOM, px)
    }
}

fn lines(svg: &mut Svg, figure: &Figure, y: Axis, values: impl Iterator<Item = f64>) {
    let (mut least, mut greatest) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values {
        least = least.min(value);
        greatest = greatest.max(value);
    }
    let px = (LEFT_PX, WIDTH_PX - RIGHT_PX);
    let x = if figure.x.is_logarithmic && least > 0.0 {
        Axis::logarithmic(least, greatest, px)
    } else {
        Axis::linear(least, greatest, px)
    };
    let frame = Frame {
        x,
        y,
        x_is: quantity(&figure.x),
        y_is: quantity(&figure.y),
        foot_px: TOP_PX + PLOT_PX,
    };
    frame.draw(svg);
    let mut placed = Placed::default();
    let traces: Vec<Vec<(f64, f64)>> = figure
        .curves
        .iter()
        .map(|curve| place(&frame, curve))
        .collect();
    for (index, (curve, points)) in figure.curves.iter().zip(&traces).enumerate() {
        placed.avoid(points);
        error_bars(svg, &frame, index, curve);
        svg.trace(&class(index), &unit::cut(&curve.label, 60), points);
        // A dot for each of a thousand sizes would hide the curve.
        let dotted = if points.len() > DOTS_MAX { 0 } else { DOTS_MAX };
        for (at, point) in points.iter().zip(&curve.points).take(dotted) {
            let title = format!(
                "{}: {} at {}",
                curve.label,
                frame.y_is.write(point.y),
                frame.x_is.write(point.x)
            );
            svg.dot(&format!("end c{}", index % 8), *at, 2.6, &title);
        }
    }
    for (index, (curve, points)) in figure.curves.iter().zip(&traces).enumerate() {
        let text = unit::cut(&curve.label, 34);
        let Some(end) = points.last() else { continue };
        if let Some((anchor, at)) = placed.beside(&frame, *end, &text) {
            svg.text(&format!("label c{}", index % 8), anchor, at, &text);
        }
    }
    tell(svg, &frame, figure);
}

/// Draws the error bar of each point that has one. The bars of several curves stand beside each other, so that none
/// hides another.
fn error_bars(svg: &mut Svg, frame: &Frame, index: usize, curve: &Curve) {
    let aside = (index as f64 % 8.0) * BAR_GAP_PX;
    let bars = curve.points.iter().filter_map(|point| {
        let x = frame.x.place(point.x) + aside;
        let (low, high) = (point.low?, point.high?);
        let is_drawn = x.is_finite() && low.is_finite() && high.is_finite();
        is_drawn.then(|| ((x, frame.y.place(low)), (x, frame.y.place(high))))
    });
    svg.strokes(&format!("bars c{}", index % 8), bars);
}

/// A curve with more points is drawn without dots.
const DOTS_MAX: usize = 120;

/// Distance of the error bars of two curves at one place.
const BAR_GAP_PX: f64 = 1.6;

fn place(frame: &Frame, curve: &Curve) -> Vec<(f64, f64)> {
    let points = curve.points.iter();
    points
        .map(|point| (frame.x.place(point.x), frame.y.place(point.y)))
        .collect()
}

/// Returns the class of a curve: one of eight colours, then the same colours dashed.
fn class(index: usize) -> String {
    let dashed = if index < 8 { "" } else { " dashed" };
    format!("curve{dashed} c{}", index % 8)
}

/// Writes the axes and their labels for the page's script, which reads values off the drawing.
fn tell(svg: &mut Svg, frame: &Frame, figure: &Figure) {
    let mut axes = frame.axes();
    axes["words"] = json!([figure.x.label, figure.y.label]);
    svg.data(&axes);
}

/// Draws a group of bars for each word of the x axis, with a bar for each curve.
fn bars(svg: &mut Svg, figure: &Figure, y: Axis) {
    let y_is = quantity(&figure.y);
    let (left, right) = (LEFT_PX, WIDTH_PX - RIGHT_PX);
    for tick in y.ticks(24.0).into_iter().filter(|tick| tick.labelled) {
        svg.line("grid", (left, tick.px), (right, tick.px));
        let at = (left - 6.0, tick.px + 4.0);
        svg.text("tick", Anchor::End, at, &y_is.write(tick.value));
    }
    let groups = figure.x.words.len().max(1) as f64;
    let group_px = (right - left) / groups;
    let gap_px = (group_px * 0.18).clamp(2.0, 24.0);
    let bar_px = (group_px - gap_px) / figure.curves.len().max(1) as f64;
    let bottom = y.px().0;
    for (index, curve) in figure.curves.iter().enumerate() {
        for point in &curve.points {
            let from = left + point.x * group_px + gap_px / 2.0 + index as f64 * bar_px;
            let top = y.place(point.y);
            let word = figure.x.words.get(point.x as usize);
            let title = format!(
                "{}, {}: {}",
                word.map_or("", String::as_str),
                curve.label,
                y_is.write(point.y)
            );
            let class = format!("column c{}", index % 8);
            svg.rect(
                &class,
                (from + 0.5, top),
                ((bar_px - 1.0).max(1.0), (bottom - top).max(1.0)),
                &title,
            );
            let value = y_is.write(point.y);
            if text_width(&value) < bar_px + 4.0 {
                let middle = (from + bar_px / 2.0, top - 4.0);
                svg.text("tick", Anchor::Middle, middle, &value);
            }
        }
    }
    svg.line("axis", (left, bottom), (right, bottom));
    let room = (group_px / 6.6).max(3.0) as usize;
    for (index, word) in figure.x.words.iter().enumerate() {
        let at = (left + (index as f64 + 0.5) * group_px, bottom + 14.0);
        svg.text("tick", Anchor::Middle, at, &unit::cut(word, room));
    }
}
