//! What the page of a schedule shows. The numbers are those of the analysis; this crate only draws them.

/// A schedule in words and numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchedulePage {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Whether every deadline is met.
    pub is_feasible: bool,
    /// What is wrong, and what to change, in sentences.
    pub findings: Vec<String>,
    /// Facts, each with its name: strategy, utilisation, bounds, overhead and its provenance.
    pub facts: Vec<(String, String)>,
    /// Headings of the table of operations.
    pub columns: Vec<String>,
    /// The operations; the first cell is the name.
    pub rows: Vec<Vec<String>>,
    /// The critical instant; `None` without operations.
    pub gantt: Option<Gantt>,
}

/// What runs when.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gantt {
    /// Its title.
    pub title: String,
    /// Time of the critical instant.
    pub start_ns: u64,
    /// End of the picture.
    pub end_ns: u64,
    /// The rows, the most urgent first.
    pub rows: Vec<GanttRow>,
    /// What to know about the picture, in sentences.
    pub notes: Vec<String>,
}

/// One row of a picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GanttRow {
    /// Its name.
    pub label: String,
    /// Intervals of execution.
    pub runs_ns: Vec<(u64, u64)>,
    /// Due times of jobs.
    pub due_ns: Vec<u64>,
    /// Deadlines of jobs, and whether each is met.
    pub deadlines_ns: Vec<(u64, bool)>,
}
