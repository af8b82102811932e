//! What runs when: a row for each task, from a critical instant on.

use super::{Frame, Quantity};
use crate::axis::Axis;
use crate::palette;
use crate::schedule::{Gantt, GanttRow};
use crate::svg::{Anchor, Svg};
use crate::unit;

const ROW_PX: f64 = 34.0;
const BAR_PX: f64 = 16.0;

/// Draws a picture. An upward mark is a due time, a downward one a deadline; a missed deadline is in the colour of late
/// messages.
pub(crate) fn draw(gantt: &Gantt, rows_max: usize, width: f64) -> String {
    let rows = &gantt.rows[..gantt.rows.len().min(rows_max)];
    let foot = 8.0 + rows.len() as f64 * ROW_PX;
    let shown_ns = gantt.end_ns.saturating_sub(gantt.start_ns);
    let frame = Frame {
        x: Axis::linear(0.0, shown_ns as f64, (6.0, width - 8.0)),
        y: Axis::linear(0.0, 1.0, (foot, foot)),
        x_is: Quantity::Time,
        y_is: Quantity::Number,
        foot_px: foot,
    };
    let mut svg = Svg::new(width, foot + 22.0, "chart", &gantt.title);
    for tick in frame.x.ticks(70.0) {
        svg.line("grid", (tick.px, 4.0), (tick.px, foot));
        let anchor = if tick.value == 0.0 {
            Anchor::Start
        } else {
            Anchor::Middle
        };
        let words = Quantity::Time.write(tick.value);
        svg.text("tick", anchor, (tick.px, foot + 14.0), &words);
    }
    for (index, row) in rows.iter().enumerate() {
        draw_row(&mut svg, &frame.x, gantt.start_ns, row, index);
    }
    svg.finish()
}

fn draw_row(svg: &mut Svg, axis: &Axis, start_ns: u64, row: &GanttRow, index: usize) {
    let y = 6.0 + index as f64 * ROW_PX;
    let colour = index % palette::RUN_COLOURS;
    let place = |time_ns: u64| axis.place(time_ns.saturating_sub(start_ns) as f64);
    let label = unit::cut(&row.label, 60);
    svg.text(
        &format!("head c{colour}"),
        Anchor::Start,
        (6.0, y + 10.0),
        &label,
    );
    let (top, bottom) = (y + 13.0, y + 13.0 + BAR_PX);
    for &(from_ns, to_ns) in &row.runs_ns {
        let (from, to) = (place(from_ns), place(to_ns));
        let took = unit::duration(to_ns.saturating_sub(from_ns) as f64);
        let title = format!("{label}: {took}");
        let class = format!("fill c{colour}");
        svg.rect(&class, (from, top), ((to - from).max(0.5), BAR_PX), &title);
    }
    for &due_ns in row.due_ns.iter().filter(|&&due_ns| due_ns >= start_ns) {
        svg.line("due", (place(due_ns), top - 3.0), (place(due_ns), bottom));
    }
    for &(deadline_ns, is_met) in &row.deadlines_ns {
        let class = if is_met { "goal" } else { "goal missed" };
        let at = place(deadline_ns);
        svg.line(class, (at, top), (at, bottom + 3.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_bars_due_times_and_deadlines_and_hostile_names_are_escaped() {
        let gantt = Gantt {
            title: "<b>".to_owned(),
            start_ns: 1000,
            end_ns: 2000,
            rows: vec![
                GanttRow {
                    label: "</svg><script>".to_owned(),
                    runs_ns: vec![(1000, 1100), (1300, 1400)],
                    due_ns: vec![900, 1500],
                    deadlines_ns: vec![(1350, false), (1900, true)],
                };
                3
            ],
            notes: Vec::new(),
        };
        let drawing = draw(&gantt, 2, 700.0);
        assert_eq!(drawing.matches("<rect").count(), 4);
        assert_eq!(drawing.matches(r#"class="due""#).count(), 2);
        assert_eq!(drawing.matches(r#"class="goal missed""#).count(), 2);
        assert_eq!(drawing.matches(r#"class="goal""#).count(), 2);
        assert!(!drawing.contains("<script") && !drawing.contains("<b>"));
    }
}
