//! The time of each layer of a message, stacked in the order of the message's path.

use super::{Frame, Quantity};
use crate::axis::Axis;
use crate::layers::Segment;
use crate::palette;
use crate::series::LateMessage;
use crate::svg::{Anchor, Svg, text_width};
use crate::unit;

/// One bar.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) colour: usize,
    pub(crate) segments: Vec<Segment>,
}

impl Bar {
    fn total_ns(&self) -> u64 {
        self.segments.iter().map(|segment| segment.ns).sum()
    }
}

/// Draws horizontal bars below each other, on one scale.
pub(crate) fn bars(bars: &[Bar], width: f64, label: &str) -> String {
    const ROW_PX: f64 = 44.0;
    const BAR_PX: f64 = 18.0;
    const TOTAL_PX: f64 = 58.0;
    let foot = 4.0 + bars.len() as f64 * ROW_PX;
    let greatest = bars.iter().map(Bar::total_ns).max().unwrap_or(0).max(1) as f64;
    let frame = Frame {
        x: Axis::linear(0.0, greatest, (4.0, width - TOTAL_PX)),
        y: Axis::linear(0.0, 1.0, (foot, foot)),
        x_is: Quantity::Time,
        y_is: Quantity::Number,
        foot_px: foot,
    };
    let mut svg = Svg::new(width, foot + 22.0, "chart", label);
    for tick in frame.x.ticks(70.0) {
        svg.line("grid", (tick.px, 4.0), (tick.px, foot));
        let anchor = if tick.value == 0.0 {
            Anchor::Start
        } else {
            Anchor::Middle
        };
        svg.text(
            "tick",
            anchor,
            (tick.px, foot + 14.0),
            &Quantity::Time.write(tick.value),
        );
    }
    for (index, bar) in bars.iter().enumerate() {
        let y = 6.0 + index as f64 * ROW_PX;
        svg.text(
            &format!("head c{}", bar.colour),
            Anchor::Start,
            (4.0, y + 11.0),
            &unit::cut(&bar.label, (width / 7.0) as usize),
        );
        let mut before_ns = 0;
        for segment in &bar.segments {
            let (from, to) = (
                frame.x.place(before_ns as f64),
                frame.x.place((before_ns + segment.ns) as f64),
            );
            lying(&mut svg, segment, (from, y + 16.0), (to - from, BAR_PX));
            before_ns += segment.ns;
        }
        let end = frame.x.place(before_ns as f64) + 5.0;
        svg.text(
            "total",
            Anchor::Start,
            (end, y + 16.0 + 13.0),
            &unit::duration(before_ns as f64),
        );
    }
    svg.finish()
}

fn lying(svg: &mut Svg, segment: &Segment, at: (f64, f64), size: (f64, f64)) {
    let (fill, ink) = palette::of_layer(segment.layer);
    let title = format!("{}: {}", segment.name, unit::duration(segment.ns as f64));
    svg.rect(&format!("part {fill}"), at, size, &title);
    if segment.name.contains(" and ") {
        svg.rect("merged", at, size, &title);
    }
    for text in [title.replace(':', ""), segment.name.clone()] {
        if text_width(&text) + 8.0 < size.0 {
            svg.text(
                &format!("on {ink}"),
                Anchor::Start,
                (at.0 + 4.0, at.1 + size.1 - 5.0),
                &text,
            );
            break;
        }
    }
}

/// Late messages one by one, as vertical bars side by side, the worst first.
#[derive(Clone, Debug)]
pub(crate) struct LateMessages<'a> {
    /// The messages, each with its destination.
    pub(crate) messages: Vec<(&'a str, &'a LateMessage)>,
    pub(crate) deadline_ns: u64,
    pub(crate) title: String,
    pub(crate) colour: usize,
    pub(crate) width: f64,
    pub(crate) label: String,
}

/// Draws the late messages.
pub(crate) fn late_messages(figure: &LateMessages<'_>) -> String {
    const TOP_PX: f64 = 42.0;
    const PLOT_PX: f64 = 150.0;
    const WIDEST_PX: f64 = 26.0;
    let foot = TOP_PX + PLOT_PX;
    let greatest = figure
        .messages
        .iter()
        .map(|(_, message)| message.latency_ns)
        .max()
        .unwrap_or(0);
    let frame = Frame {
        x: Axis::linear(0.0, 1.0, (56.0, figure.width - 12.0)),
        y: Axis::linear(
            0.0,
            greatest.max(figure.deadline_ns).max(1) as f64 * 1.08,
            (foot, TOP_PX),
        ),
        x_is: Quantity::Number,
        y_is: Quantity::Time,
        foot_px: foot,
    };
    let mut svg = Svg::new(figure.width, foot + 22.0, "chart", &figure.label);
    let (left, right) = frame.x.px();
    svg.text(
        &format!("head c{}", figure.colour),
        Anchor::Start,
        (2.0, 13.0),
        &unit::cut(&figure.title, (figure.width / 7.0) as usize),
    );
    svg.text("title", Anchor::Start, (2.0, 31.0), "latency");
    for tick in frame.y.ticks(26.0) {
        svg.line("grid", (left, tick.px), (right, tick.px));
        svg.text(
            "tick",
            Anchor::End,
            (left - 6.0, tick.px + 4.0),
            &Quantity::Time.write(tick.value),
        );
    }
    let each = ((right - left) / figure.messages.len().max(1) as f64).min(WIDEST_PX);
    for (index, (host, message)) in figure.messages.iter().enumerate() {
        let x = left + index as f64 * each;
        standing(
            &mut svg,
            &frame,
            host,
            message,
            (x, each * if each > 4.0 { 0.86 } else { 1.0 }),
        );
    }
    let y = frame.y.place(figure.deadline_ns as f64);
    svg.line("deadline", (left, y), (right, y));
    svg.text(
        "mark",
        Anchor::End,
        (right, 31.0),
        &format!("deadline {}", unit::duration(figure.deadline_ns as f64)),
    );
    svg.line("axis", (left, foot), (right, foot));
    svg.text(
        "title",
        Anchor::Middle,
        ((left + right) / 2.0, foot + 16.0),
        "late messages, the worst first",
    );
    svg.finish()
}

fn standing(
    svg: &mut Svg,
    frame: &Frame,
    host: &str,
    message: &LateMessage,
    (x, width): (f64, f64),
) {
    let blame = message
        .blame
        .map_or(String::new(), |layer| format!(", blamed on {layer}"));
    let title = format!(
        "message {} at {}: {}{blame}",
        unit::count(message.sequence),
        unit::cut(host, 40),
        unit::duration(message.latency_ns as f64)
    );
    let mut before_ns = 0;
    for segment in &message.segments {
        let (low, high) = (
            frame.y.place(before_ns as f64),
            frame.y.place((before_ns + segment.ns) as f64),
        );
        before_ns += segment.ns;
        if low - high < 0.3 {
            continue;
        }
        let (fill, _) = palette::of_layer(segment.layer);
        let title = format!(
            "{title}\n{}: {}",
            segment.name,
            unit::duration(segment.ns as f64)
        );
        svg.rect(
            &format!("part {fill}"),
            (x, high),
            (width, low - high),
            &title,
        );
        if segment.name.contains(" and ") {
            svg.rect("merged", (x, high), (width, low - high), "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_names_its_parts_where_there_is_room_and_its_total() {
        let bar = Bar {
            label: "udp".to_owned(),
            colour: 0,
            segments: vec![
                Segment::named("network", 900_000),
                Segment::named("wake-up", 100),
            ],
        };
        let out = bars(&[bar], 700.0, "layers");
        assert!(out.contains(">network 900\u{202f}µs</text>"), "{out}");
        assert!(!out.contains(">wake-up</text>"), "no room: {out}");
        assert!(
            out.contains("<title>wake-up: 100\u{202f}ns</title>"),
            "{out}"
        );
    }

    #[test]
    fn parts_measured_together_are_hatched() {
        let bar = |name: &str| Bar {
            label: String::new(),
            colour: 0,
            segments: vec![Segment::named(name, 5)],
        };
        assert!(bars(&[bar("middleware and stack")], 700.0, "").contains("class=\"merged\""));
        assert!(!bars(&[bar("stack")], 700.0, "").contains("class=\"merged\""));
    }
}
