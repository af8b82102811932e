//! A late rate with its bounds, compared with the budget; small enough for a table.

use deckwatch_meter::result::LateRate;

use crate::axis::Axis;
use crate::svg::Svg;
use crate::unit;

/// Draws the bounds as a bar and the estimate as a dot. The scale is logarithmic, from one in a million, or from the
/// budget if that is less, to all.
pub(crate) fn draw(rate: &LateRate, budget: f64, kind: &str) -> String {
    const WIDTH_PX: f64 = 110.0;
    const MIDDLE_PX: f64 = 8.0;
    let least = if budget > 0.0 {
        (budget / 10.0).min(1e-6)
    } else {
        1e-6
    };
    let axis = Axis::logarithmic(least, 1.0, (2.0, WIDTH_PX - 2.0));
    let label = format!(
        "late rate {} between {} and {}, budget {}",
        unit::share(rate.estimate),
        unit::share(rate.lower),
        unit::share(rate.upper),
        unit::share(budget)
    );
    let mut svg = Svg::new(WIDTH_PX, 16.0, "bounds", &label);
    let limit = axis.place(budget);
    svg.rect("zone", (limit, 1.0), (WIDTH_PX - limit, 14.0), "");
    svg.line("axis", (0.0, MIDDLE_PX), (WIDTH_PX, MIDDLE_PX));
    let (lower, upper) = (axis.place(rate.lower), axis.place(rate.upper));
    svg.rect(
        &format!("bound {kind}"),
        (lower, MIDDLE_PX - 3.0),
        ((upper - lower).max(1.5), 6.0),
        &label,
    );
    if rate.estimate > 0.0 {
        svg.dot(
            &format!("estimate {kind}"),
            (axis.place(rate.estimate), MIDDLE_PX),
            3.5,
            &label,
        );
    }
    svg.line("deadline", (limit, 0.0), (limit, 16.0));
    svg.finish()
}
