//! A computed schedule as a document: what `deckwatch schedule --json` prints, with units in the names.

use deckwatch_sched::sensitivity::{changes, greatest_factor_millionths};
use deckwatch_sched::{
    Measured, Measurements, Operations, Picture, SchedError, Schedule, Settings, in_words,
};
use serde::Serialize;

use crate::schedule::ScheduleFile;

/// A computed schedule.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    /// Its name.
    pub name: String,
    /// The strategy.
    pub strategy: &'static str,
    /// Whether a queue by deadline or laxity lets the running operation end first.
    pub runs_to_completion: bool,
    /// Processor time of each dispatch.
    pub overhead_ns: u64,
    /// Where that number comes from.
    pub overhead_source: String,
    /// Whether every deadline is met.
    pub is_feasible: bool,
    /// Whether every deadline is met with the measured execution times too, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_feasible_as_measured: Option<bool>,
    /// Sum of cost over period.
    pub utilisation: f64,
    /// Timers, the tasks of the two bounds.
    pub tasks: usize,
    /// The bound of Liu and Layland.
    pub liu_layland_bound: f64,
    /// The product of Bini and others; at most 2 promises every deadline.
    pub hyperbolic_product: f64,
    /// Whether the assumptions of both bounds hold.
    pub bounds_apply: bool,
    /// Least common multiple of the periods.
    /// `None` above 584 years.
    pub hyperperiod_ns: Option<u64>,
    /// The operations, in the file's order.
    pub operations: Vec<OperationDocument>,
    /// What is wrong: severity and sentence.
    pub anomalies: Vec<(&'static str, String)>,
    /// What to change.
    pub advice: Advice,
}

/// One operation.
#[derive(Clone, Debug, Serialize)]
pub struct OperationDocument {
    /// Its name.
    pub name: String,
    /// Its worst-case execution time.
    pub worst_case_ns: u64,
    /// Its priority; 0 is the most urgent. `None` for an operation that takes no part.
    pub priority: Option<u32>,
    /// Its order within the priority.
    pub sub_priority: Option<u32>,
    /// The order of its queue.
    pub dispatch: Option<&'static str>,
    /// Shortest period of the timers that trigger it.
    pub period_ns: Option<u64>,
    /// Its deadline, from the timer's release.
    pub deadline_ns: Option<u64>,
    /// Its worst response time, from the timer's release; `None` if there is no bound.
    pub response_ns: Option<u64>,
    /// Whether a response can take that long; else the number is a safe bound.
    pub response_is_exact: Option<bool>,
    /// Whether it meets its deadline.
    pub meets_deadline: Option<bool>,
    /// Largest worst-case execution time with which every deadline is met, all else unchanged.
    pub worst_case_max_ns: Option<u64>,
    /// Smallest period with which every deadline is met, all else unchanged.
    pub period_min_ns: Option<u64>,
    /// What consumers have measured, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredDocument>,
}

/// Measured execution times of one operation.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MeasuredDocument {
    /// Measured executions.
    pub executions: u64,
    /// Executions that took more processor time than the worst case declared where they ran.
    pub exceeded: u64,
    /// Longest processor time of one execution.
    pub longest_ns: u64,
    /// Longest time from the start to the end of one execution, the time of other threads included.
    pub longest_elapsed_ns: u64,
}

impl From<&Measured> for MeasuredDocument {
    fn from(measured: &Measured) -> Self {
        Self {
            executions: measured.executions,
            exceeded: measured.exceeded,
            longest_ns: measured.longest_ns,
            longest_elapsed_ns: measured.longest_elapsed_ns,
        }
    }
}

/// What to change in an infeasible schedule, or how far a feasible one may grow.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Advice {
    /// The greatest factor for all execution times at once; `None` if none fits.
    pub factor: Option<f64>,
    /// Sentences: any one of them alone makes an infeasible schedule feasible.
    pub sentences: Vec<String>,
}

impl Document {
    /// Makes the document of a file's schedule; `overhead_source` says where the overhead comes from.
    ///
    /// # Errors
    /// [`SchedError::TooLong`], if what to change cannot be found in time.
    pub fn of(
        file: &ScheduleFile,
        schedule: &Schedule,
        overhead_source: &str,
    ) -> Result<Self, SchedError> {
        let settings = schedule.settings;
        let found = changes(&file.operations, settings)?;
        let mut operations: Vec<OperationDocument> = file
            .operations
            .infos()
            .iter()
            .zip(&schedule.assigned)
            .map(|(info, assigned)| {
                let assigned = assigned.as_ref();
                OperationDocument {
                    name: info.entry_point.clone(),
                    worst_case_ns: info.worst_case_ns,
                    priority: assigned.map(|one| one.level),
                    sub_priority: assigned.map(|one| one.sub_priority),
                    dispatch: assigned.map(|one| one.dispatch.name()),
                    period_ns: assigned.map(|one| one.period_ns),
                    deadline_ns: assigned.map(|one| one.deadline_ns),
                    response_ns: assigned.and_then(|one| one.response.worst_ns),
                    response_is_exact: assigned.map(|one| one.response.is_exact),
                    meets_deadline: assigned.map(|one| one.response.meets(one.deadline_ns)),
                    worst_case_max_ns: None,
                    period_min_ns: None,
                    measured: None,
                }
            })
            .collect();
        for change in &found {
            let operation = &mut operations[change.of.index()];
            operation.worst_case_max_ns = change.worst_case_ns;
            operation.period_min_ns = change.period_ns;
        }
        let is_feasible = schedule.is_feasible();
        let advice = advice(&file.operations, settings, is_feasible, &operations)?;
        let bounds = schedule.bounds;
        let anomalies = schedule.anomalies.iter().map(|anomaly| {
            let severity = match anomaly.severity() {
                deckwatch_sched::Severity::Fatal => "fatal",
                deckwatch_sched::Severity::Error => "error",
                deckwatch_sched::Severity::Warning => "warning",
            };
            (severity, anomaly.describe(&file.operations))
        });
        Ok(Self {
            name: file.name.clone(),
            strategy: settings.strategy.name(),
            runs_to_completion: settings.runs_to_completion,
            overhead_ns: settings.overhead_ns,
            overhead_source: overhead_source.to_owned(),
            is_feasible,
            is_feasible_as_measured: None,
            utilisation: bounds.utilisation,
            tasks: bounds.tasks,
            liu_layland_bound: bounds.liu_layland,
            hyperbolic_product: bounds.hyperbolic,
            bounds_apply: bounds.apply,
            hyperperiod_ns: schedule.hyperperiod_ns,
            anomalies: anomalies.collect(),
            operations,
            advice,
        })
    }
}

impl Document {
    /// Adds measured execution times, which operations exceed their declarations, and which deadlines can be missed
    /// because of that.
    #[must_use]
    pub fn with_measured(
        mut self,
        file: &ScheduleFile,
        schedule: &Schedule,
        measurements: &Measurements,
    ) -> Self {
        for (of, measured) in measurements.all() {
            if let Some(operation) = self.operations.get_mut(of.index()) {
                operation.measured = Some(measured.into());
            }
        }
        let anomalies = measurements.anomalies(&file.operations, schedule);
        let is_fault = anomalies.iter().any(|one| one.fact.is_fault_as_measured());
        self.is_feasible_as_measured = Some(self.is_feasible && !is_fault);
        let words = anomalies.iter().map(|one| one.describe(&file.operations));
        self.anomalies.extend(words.map(|words| ("warning", words)));
        self
    }

    /// The hyperperiod in words.
    #[must_use]
    pub fn hyperperiod(&self) -> String {
        match self.hyperperiod_ns {
            Some(ns) => in_words(ns),
            None => "above 584 years".to_owned(),
        }
    }
}

/// Returns what to change: for an infeasible schedule, each operation whose change alone is enough.
fn advice(
    operations: &Operations,
    settings: Settings,
    is_feasible: bool,
    found: &[OperationDocument],
) -> Result<Advice, SchedError> {
    let factor = greatest_factor_millionths(operations, settings)?;
    let factor = factor.map(|millionths| millionths as f64 / 1e6);
    let mut sentences = Vec::new();
    if !is_feasible {
        for (one, info) in found.iter().zip(operations.infos()) {
            let name = &one.name;
            let cost = one
                .worst_case_max_ns
                .filter(|&most| most < one.worst_case_ns);
            if let Some(most) = cost {
                let (most, now) = (in_words(most), in_words(one.worst_case_ns));
                sentences.push(format!("reduce worst_case of {name} from {now} to {most}"));
            }
            let period = one.period_min_ns.filter(|&least| least > info.period_ns);
            if let Some(least) = period {
                let (least, now) = (in_words(least), in_words(info.period_ns));
                sentences.push(format!("lengthen period of {name} from {now} to {least}"));
            }
        }
        if let Some(factor) = factor {
            sentences.push(format!(
                "multiply every worst_case by {} or less",
                factor_in_words(factor)
            ));
        }
    }
    Ok(Advice { factor, sentences })
}

/// Returns a factor with three digits after the point, cut off: rounded up, it would be one that does not fit.
#[must_use]
pub fn factor_in_words(factor: f64) -> String {
    // A factor is a whole number of millionths.
    let thousandths = (factor * 1e6).round() as u64 / 1000;
    format!("{}.{:03}", thousandths / 1000, thousandths % 1000)
}

/// Makes the page of a schedule, with the picture of its critical instant.
///
/// # Errors
/// As [`Picture::of`].
pub fn page(
    file: &ScheduleFile,
    schedule: &Schedule,
    document: &Document,
) -> Result<deckwatch_report::schedule::SchedulePage, SchedError> {
    let cell = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), in_words);
    let has_measured = document.is_feasible_as_measured.is_some();
    let rows = document.operations.iter().map(|one| {
        let number = |number: Option<u32>| number.map_or("–".to_owned(), |one| one.to_string());
        let mut row = vec![
            one.name.clone(),
            number(one.priority),
            number(one.sub_priority),
            one.dispatch.unwrap_or("–").to_owned(),
            in_words(one.worst_case_ns),
            cell(one.period_ns),
            cell(one.deadline_ns),
            response(one),
            cell(one.worst_case_max_ns),
            cell(one.period_min_ns),
        ];
        row.extend(has_measured.then(|| longest_measured(one)));
        row
    });
    let mut columns = vec![
        "operation",
        "priority",
        "sub-priority",
        "queue",
        "worst case",
        "period",
        "deadline",
        "worst response",
        "worst case that fits",
        "period that fits",
    ];
    columns.extend(has_measured.then_some("measured"));
    let anomalies = document.anomalies.iter().map(|(_, words)| words.clone());
    Ok(deckwatch_report::schedule::SchedulePage {
        name: document.name.clone(),
        description: file.description.clone().unwrap_or_default(),
        is_feasible: document.is_feasible && document.is_feasible_as_measured != Some(false),
        findings: anomalies.chain(document.advice.sentences.clone()).collect(),
        facts: facts(document),
        columns: columns.into_iter().map(str::to_owned).collect(),
        rows: rows.collect(),
        gantt: Picture::of(schedule)?.map(|picture| gantt(file, schedule, &picture)),
    })
}

/// Returns a worst response in words; a bound that no response need reach is marked.
#[must_use]
pub fn response(operation: &OperationDocument) -> String {
    match (operation.priority, operation.response_ns) {
        (None, _) => "–".to_owned(),
        (Some(_), None) => "no bound".to_owned(),
        (Some(_), Some(ns)) if operation.response_is_exact == Some(true) => in_words(ns),
        (Some(_), Some(ns)) => format!("at most {}", in_words(ns)),
    }
}

/// Returns the longest measured execution time in words; one above the worst case is marked.
#[must_use]
pub fn longest_measured(operation: &OperationDocument) -> String {
    match operation.measured {
        None => "–".to_owned(),
        Some(measured) if measured.longest_ns > operation.worst_case_ns => {
            format!("{} ABOVE", in_words(measured.longest_ns))
        }
        Some(measured) => in_words(measured.longest_ns),
    }
}

fn facts(document: &Document) -> Vec<(String, String)> {
    let promise = if document.bounds_apply {
        "they apply"
    } else {
        "they do not apply: deadlines, jitter, blocking or strategy are others"
    };
    let facts = [
        ("strategy", document.strategy.to_owned()),
        ("utilisation", format!("{:.4}", document.utilisation)),
        (
            "bounds",
            format!(
                "Liu and Layland {:.4} for {} timers; hyperbolic product {:.4} (at most 2); {promise}",
                document.liu_layland_bound, document.tasks, document.hyperbolic_product
            ),
        ),
        (
            "overhead of a dispatch",
            format!(
                "{}, {}",
                in_words(document.overhead_ns),
                document.overhead_source
            ),
        ),
        ("hyperperiod", document.hyperperiod()),
    ];
    facts.map(|(key, value)| (key.to_owned(), value)).to_vec()
}

fn gantt(
    file: &ScheduleFile,
    schedule: &Schedule,
    picture: &Picture,
) -> deckwatch_report::schedule::Gantt {
    use deckwatch_report::schedule::{Gantt, GanttRow};
    let infos = file.operations.infos();
    let name = |segment: usize| {
        let members = &schedule.segments[segment].members;
        let first = &infos[members[0]].entry_point;
        match members.len() - 1 {
            0 => first.clone(),
            others => format!("{first} and {others} more"),
        }
    };
    let mut order: Vec<usize> = (0..schedule.segments.len()).collect();
    order.sort_by_key(|&segment| schedule.segments[segment].task.level);
    let row = |&segment: &usize| {
        let jobs = || {
            picture
                .jobs
                .iter()
                .filter(move |job| job.segment == segment)
        };
        let intervals = picture.intervals.iter().filter(|one| one.task == segment);
        let in_picture = |&(at, _): &(u64, bool)| at <= picture.end_ns;
        let met = |job: &deckwatch_sched::PictureJob| {
            job.end_ns.is_some_and(|end_ns| end_ns <= job.deadline_ns)
        };
        GanttRow {
            label: name(segment),
            runs_ns: intervals
                .map(|one| (one.start_ns, one.end_ns.min(picture.end_ns)))
                .collect(),
            due_ns: jobs().map(|job| job.due_ns).collect(),
            deadlines_ns: jobs()
                .map(|job| (job.deadline_ns, met(job)))
                .filter(in_picture)
                .collect(),
        }
    };
    let tightest = name(picture.segment);
    let mut notes = vec![
        "Bars are execution; a mark above a bar is a release, one below it a deadline, wide if missed."
            .to_owned(),
        format!("{tightest} is nearest to its deadline, or furthest beyond it."),
    ];
    if picture.blocking_ns > 0 {
        let blocking = in_words(picture.blocking_ns);
        notes.push(format!(
            "An operation of lower priority blocks it for {blocking} first."
        ));
    }
    Gantt {
        title: format!("From the critical instant of {tightest} on"),
        start_ns: picture.start_ns,
        end_ns: picture.end_ns,
        rows: order.iter().map(row).collect(),
        notes,
    }
}
