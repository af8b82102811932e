//! The figures. Each function takes numbers and returns a drawing.

pub(crate) mod distribution;
pub(crate) mod gantt;
pub(crate) mod gaps;
pub(crate) mod layers;
pub(crate) mod plot;
pub(crate) mod rate;

use serde_json::json;

use crate::axis::Axis;
use crate::svg::{Anchor, Svg};
use crate::unit;

/// The quantity of an axis, which decides how its numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// Nanoseconds.
    Time,
    /// A share of one.
    Share,
    /// Octets, in powers of ten.
    Octets,
    /// Bits a second.
    BitRate,
    /// A plain number.
    Number,
}

impl Quantity {
    fn write(self, value: f64) -> String {
        match self {
            Self::Time if value == 0.0 => "0".to_owned(),
            Self::Time => unit::duration(value),
            Self::Share => unit::share(value),
            Self::Octets => unit::scaled(value, "B"),
            Self::BitRate => unit::scaled(value, "bit/s"),
            Self::Number => unit::figures(value),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Share => "share",
            Self::Octets => "octets",
            Self::BitRate => "bit/s",
            Self::Number => "number",
        }
    }
}

/// A pair of axes and the space between them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) x_is: Quantity,
    pub(crate) y_is: Quantity,
    /// Position of the numbers of the x axis, below the plot and the strips under it.
    pub(crate) foot_px: f64,
}

impl Frame {
    const X_LABELS_APART_PX: f64 = 62.0;
    const Y_LABELS_APART_PX: f64 = 24.0;

    /// Draws grid, ticks and numbers.
    pub(crate) fn draw(&self, svg: &mut Svg) {
        let ((left, right), (bottom, top)) = (self.x.px(), self.y.px());
        for tick in self.x.ticks(Self::X_LABELS_APART_PX) {
            svg.line(
                if tick.labelled { "grid" } else { "grid minor" },
                (tick.px, top),
                (tick.px, self.foot_px),
            );
            let label = self.x_is.write(tick.value);
            let half = crate::svg::text_width(&label) / 2.0;
            let split = self.x_is == Quantity::Number && tick.value.fract() != 0.0;
            let overhang = (tick.px + half - right - 12.0).max(0.0);
            if tick.labelled && !split && overhang < half {
                svg.text(
                    "tick",
                    Anchor::Middle,
                    (tick.px - overhang, self.foot_px + 14.0),
                    &label,
                );
            }
        }
        for tick in self
            .y
            .ticks(Self::Y_LABELS_APART_PX)
            .into_iter()
            .filter(|tick| tick.labelled)
        {
            svg.line("grid", (left, tick.px), (right, tick.px));
            svg.text(
                "tick",
                Anchor::End,
                (left - 6.0, tick.px + 4.0),
                &self.y_is.write(tick.value),
            );
        }
        svg.line("axis", (left, bottom), (right, bottom));
    }

    /// Writes the axes for the page's script, which reads values off the drawing.
    pub(crate) fn tell(&self, svg: &mut Svg) {
        svg.data(&self.axes());
    }

    /// Returns both axes in the format of the page's script.
    pub(crate) fn axes(&self) -> serde_json::Value {
        let axis = |axis: &Axis, is: Quantity| json!({ "log": axis.is_logarithmic(), "value": [axis.low(), axis.high()], "px": [axis.px().0, axis.px().1], "is": is.name() });
        json!({ "x": axis(&self.x, self.x_is), "y": axis(&self.y, self.y_is) })
    }
}

/// The labels and lines already drawn, so that no label covers another one.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    boxes: Vec<Box4>,
    lines: Vec<(f64, f64)>,
}

/// Left, top, right, bottom.
type Box4 = (f64, f64, f64, f64);

impl Placed {
    const LINE_PX: f64 = 13.0;

    /// Reserves the place of a label, even if it is not free.
    pub(crate) fn take(&mut self, anchor: Anchor, at: (f64, f64), text: &str) {
        self.boxes.push(Self::place(anchor, at, text));
    }

    /// Keeps later labels off a line through `points`.
    pub(crate) fn avoid(&mut self, points: &[(f64, f64)]) {
        const STEP_PX: f64 = 4.0;
        for pair in points.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let steps = ((to.0 - from.0).hypot(to.1 - from.1) / STEP_PX)
                .ceil()
                .max(1.0);
            let along = |step: i32| f64::from(step) / steps;
            self.lines.extend((0..=steps as i32).map(|step| {
                (
                    from.0 + (to.0 - from.0) * along(step),
                    from.1 + (to.1 - from.1) * along(step),
                )
            }));
        }
    }

    /// Finds and reserves a place for a label near the end of a curve, within the frame: beside it, below or above. The
    /// place covers neither labels nor lines, or if there is none such, no labels.
    pub(crate) fn beside(
        &mut self,
        frame: &Frame,
        end: (f64, f64),
        text: &str,
    ) -> Option<(Anchor, (f64, f64))> {
        let ((left, right), (bottom, top)) = (frame.x.px(), frame.y.px());
        let candidates = [0, 1, -1, 2, 3, -2, 4, 5].into_iter().flat_map(|line| {
            let y = end.1 + 4.0 + f64::from(line) * Self::LINE_PX;
            [
                (Anchor::Start, (end.0 + 7.0, y)),
                (Anchor::End, (end.0 - 7.0, y)),
            ]
        });
        let inside =
            |place: &Box4| place.0 > left && place.2 < right && place.1 > top && place.3 < bottom;
        let found = [true, false].into_iter().find_map(|strict| {
            candidates.clone().find(|(anchor, at)| {
                let place = Self::place(*anchor, *at, text);
                inside(&place) && self.is_free(&place, strict)
            })
        });
        if let Some((anchor, at)) = found {
            self.take(anchor, at, text);
        }
        found
    }

    fn is_free(&self, place: &Box4, of_lines_too: bool) -> bool {
        let apart = |b: &Box4| place.2 < b.0 || b.2 < place.0 || place.3 < b.1 || b.3 < place.1;
        let within =
            |p: &(f64, f64)| place.0 < p.0 && p.0 < place.2 && place.1 < p.1 && p.1 < place.3;
        self.boxes.iter().all(apart) && !(of_lines_too && self.lines.iter().any(within))
    }

    fn place(anchor: Anchor, at: (f64, f64), text: &str) -> Box4 {
        let width = crate::svg::text_width(text);
        let left = match anchor {
            Anchor::Start => at.0,
            Anchor::Middle => at.0 - width / 2.0,
            Anchor::End => at.0 - width,
        };
        (left, at.1 - 10.0, left + width, at.1 + 3.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame {
        Frame {
            x: Axis::linear(0.0, 1.0, (0.0, 400.0)),
            y: Axis::linear(0.0, 1.0, (300.0, 0.0)),
            x_is: Quantity::Number,
            y_is: Quantity::Number,
            foot_px: 300.0,
        }
    }

    #[test]
    fn labels_at_one_point_do_not_cover_each_other() {
        let mut placed = Placed::default();
        let places: Vec<Box4> = ["udp", "tcp", "corba", "event"]
            .iter()
            .filter_map(|text| {
                let (anchor, at) = placed.beside(&frame(), (200.0, 150.0), text)?;
                Some(Placed::place(anchor, at, text))
            })
            .collect();
        assert_eq!(places.len(), 4);
        for (index, one) in places.iter().enumerate() {
            for other in &places[..index] {
                assert!(
                    one.2 < other.0 || other.2 < one.0 || one.3 < other.1 || other.3 < one.1,
                    "{places:?}"
                );
            }
        }
    }

    #[test]
    fn a_label_covers_no_line_where_it_need_not() {
        let mut placed = Placed::default();
        placed.avoid(&[(200.0, 150.0), (400.0, 150.0)]);
        let (_, at) = placed
            .beside(&frame(), (200.0, 150.0), "udp")
            .expect("a place");
        assert!((at.1 - 154.0).abs() > 1.0 || at.0 < 200.0, "{at:?}");
    }

    #[test]
    fn a_label_stays_within_the_frame() {
        let mut placed = Placed::default();
        let (anchor, at) = placed
            .beside(&frame(), (398.0, 2.0), "event")
            .expect("a place");
        let place = Placed::place(anchor, at, "event");
        assert!(place.2 < 400.0 && place.1 > 0.0, "{place:?}");
    }
}
