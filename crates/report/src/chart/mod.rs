//! The figures. Each function takes numbers and gives a drawing back.

pub(crate) mod distribution;
pub(crate) mod gaps;
pub(crate) mod layers;
pub(crate) mod rate;

use serde_json::json;

use crate::axis::Axis;
use crate::svg::{Anchor, Svg};
use crate::unit;

/// What an axis carries, which says how its numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// Nanoseconds.
    Time,
    /// A share of one.
    Share,
    /// A plain number.
    Number,
}

impl Quantity {
    fn write(self, value: f64) -> String {
        match self {
            Self::Time if value == 0.0 => "0".to_owned(),
            Self::Time => unit::duration(value),
            Self::Share => unit::share(value),
            Self::Number => unit::figures(value),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Share => "share",
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
    /// Where the numbers of the x axis stand, below the plot and what hangs under it.
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
            if tick.labelled && tick.px + half < right + 24.0 {
                svg.text(
                    "tick",
                    Anchor::Middle,
                    (tick.px, self.foot_px + 14.0),
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

    /// Tells the page's script how to read values off the drawing.
    pub(crate) fn tell(&self, svg: &mut Svg) {
        let axis = |axis: &Axis, is: Quantity| json!({ "log": axis.is_logarithmic(), "value": [axis.low(), axis.high()], "px": [axis.px().0, axis.px().1], "is": is.name() });
        svg.data(&json!({ "x": axis(&self.x, self.x_is), "y": axis(&self.y, self.y_is) }));
    }
}

/// Boxes of the labels already placed, so that none covers another.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    boxes: Vec<(f64, f64, f64, f64)>,
}

impl Placed {
    const LINE_PX: f64 = 13.0;

    /// Takes the place of a label if it is free.
    pub(crate) fn take(&mut self, anchor: Anchor, at: (f64, f64), text: &str) -> bool {
        let width = crate::svg::text_width(text);
        let left = match anchor {
            Anchor::Start => at.0,
            Anchor::Middle => at.0 - width / 2.0,
            Anchor::End => at.0 - width,
        };
        let place = (left, at.1 - 10.0, left + width, at.1 + 3.0);
        let free = self
            .boxes
            .iter()
            .all(|b| place.2 < b.0 || b.2 < place.0 || place.3 < b.1 || b.3 < place.1);
        if free {
            self.boxes.push(place);
        }
        free
    }

    /// Finds a free place near the end of a curve, within the frame: beside it, else below.
    pub(crate) fn beside(
        &mut self,
        frame: &Frame,
        end: (f64, f64),
        text: &str,
    ) -> Option<(Anchor, (f64, f64))> {
        let ((left, right), (bottom, _)) = (frame.x.px(), frame.y.px());
        let width = crate::svg::text_width(text);
        (0..6)
            .flat_map(|line| [(Anchor::Start, line), (Anchor::End, line)])
            .find_map(|(anchor, line)| {
                let y = end.1 + 4.0 + f64::from(line) * Self::LINE_PX;
                let x = if anchor == Anchor::Start {
                    end.0 + 7.0
                } else {
                    end.0 - 7.0
                };
                let inside = y < bottom - 2.0
                    && if anchor == Anchor::Start {
                        x + width < right
                    } else {
                        x - width > left
                    };
                (inside && (anchor == Anchor::Start || line > 0) && self.take(anchor, (x, y), text))
                    .then_some((anchor, (x, y)))
            })
    }
}
