//! The page of a schedule: whether it is feasible, its critical instant, and the numbers of each operation.

use serde::Serialize;

use super::{name, render};
use crate::chart::gantt;
use crate::error::ReportError;
use crate::limits::{GANTT_ROWS_MAX, SCHEDULE_ROWS_MAX, SENTENCE_CHARS_MAX};
use crate::palette;
use crate::schedule::SchedulePage;
use crate::unit;

/// Renders the whole page.
pub(crate) fn page(schedule: &SchedulePage) -> Result<String, ReportError> {
    let long = |text: &String| unit::cut(text, SENTENCE_CHARS_MAX);
    let rows_left_out = schedule.rows.len().saturating_sub(SCHEDULE_ROWS_MAX);
    let gantt = schedule.gantt.as_ref();
    let left_out = gantt.map_or(0, |gantt| gantt.rows.len().saturating_sub(GANTT_ROWS_MAX));
    let more = |count: usize, what: &str| (count > 0).then(|| format!("{count} more {what}."));
    let page = Page {
        style: palette::style() + include_str!("../../templates/style.css"),
        script: include_str!("../../templates/script.js"),
        title: format!("{} · Deckwatch", name(&schedule.name)),
        heading: name(&schedule.name),
        description: long(&schedule.description),
        is_feasible: schedule.is_feasible,
        findings: schedule.findings.iter().map(long).collect(),
        facts: schedule
            .facts
            .iter()
            .map(|(key, value)| (name(key), long(value)))
            .collect(),
        columns: schedule.columns.iter().map(|column| name(column)).collect(),
        rows: schedule
            .rows
            .iter()
            .take(SCHEDULE_ROWS_MAX)
            .map(|row| row.iter().map(|cell| name(cell)).collect())
            .collect(),
        rows_left_out: more(rows_left_out, "operations"),
        figure: gantt.map(|gantt| Figure {
            title: name(&gantt.title),
            drawing: gantt::draw(gantt, GANTT_ROWS_MAX, 1040.0),
            notes: gantt
                .notes
                .iter()
                .map(long)
                .chain(more(left_out, "tasks are not drawn"))
                .collect(),
        }),
    };
    let body = include_str!("../../templates/schedule.html");
    render("schedule.html", body, page)
}

/// The values for the template.
#[derive(Serialize)]
struct Page {
    style: String,
    script: &'static str,
    title: String,
    heading: String,
    description: String,
    is_feasible: bool,
    findings: Vec<String>,
    facts: Vec<(String, String)>,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
    rows_left_out: Option<String>,
    figure: Option<Figure>,
}

#[derive(Serialize)]
struct Figure {
    title: String,
    drawing: String,
    notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_whether_it_is_feasible_and_escapes_what_a_file_says() {
        let mut schedule = SchedulePage {
            name: "<script>x".to_owned(),
            is_feasible: false,
            findings: vec!["track: its response can take 9 ms".to_owned()],
            columns: vec!["operation".to_owned()],
            rows: vec![vec!["<i>track".to_owned()]; SCHEDULE_ROWS_MAX + 2],
            ..SchedulePage::default()
        };
        let html = page(&schedule).unwrap();
        assert!(html.contains("Infeasible") && !html.contains("<script>x"));
        assert!(html.contains("its response can take 9 ms"));
        assert!(html.contains("2 more operations.") && !html.contains("<i>"));
        schedule.is_feasible = true;
        assert!(page(&schedule).unwrap().contains("Feasible"));
    }
}
