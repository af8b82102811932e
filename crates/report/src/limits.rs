//! Every bound of this crate, with its reason.

/// Maximum size of a report in octets. A report is mailed, and opened on a phone; a larger one is drawn again with less
/// detail.
pub const REPORT_BYTES_MAX: usize = 5_000_000;

/// Maximum number of late messages kept for each destination, the worst ones: a figure 700 pixels wide cannot show more
/// bars.
pub const LATE_MESSAGES_MAX: usize = 200;

/// Maximum number of runs side by side: more than eight colours cannot be distinguished.
pub const RUNS_MAX: usize = 8;

/// Maximum size of `result.json` in octets. A document of 1000 destinations has about 2 MB, so that a larger file is
/// something else.
pub const RESULT_BYTES_MAX: u64 = 256 << 20;

/// Maximum number of samples in one run's report. All are in memory together, at about 120 octets each: 2.4 GB, for 35
/// destinations at 16 Hz ten hours.
pub const SAMPLES_MAX: u64 = 20_000_000;

/// Maximum number of figures drawn of an experiment. All basic types over two quantities give thirty or forty; a page
/// with many more cannot be read.
pub const EXPERIMENT_FIGURES_MAX: usize = 100;

/// Maximum number of measurements listed of an experiment, at about 600 octets each: three megabytes.
pub const EXPERIMENT_ROWS_MAX: usize = 5000;

/// Maximum number of tasks drawn of a schedule, the most urgent first: more rows than a screen and a half has.
pub const GANTT_ROWS_MAX: usize = 40;

/// Maximum number of operations listed of a schedule: all that a schedule can have.
pub const SCHEDULE_ROWS_MAX: usize = 4096;

/// Maximum number of characters shown of a name, so that one name cannot fill the page.
pub const NAME_CHARS_MAX: usize = 120;

/// Maximum number of characters shown of a sentence (a reason or a warning).
pub const SENTENCE_CHARS_MAX: usize = 1000;

/// The detail of a page. The first step of [`Self::LADDER`] that fits [`REPORT_BYTES_MAX`] is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Detail {
    /// Columns of an inter-arrival figure. Each shows the least and the greatest gap in it.
    pub(crate) columns: usize,
    /// Points of a distribution curve.
    pub(crate) curve_points: usize,
    /// Inter-arrival figures for one flow over one carrier, the worst destinations first.
    pub(crate) gap_figures: usize,
    /// Thin curves, which show the destinations that are not the worst.
    pub(crate) thin_curves: usize,
    /// Late messages drawn one by one for each flow over one carrier.
    pub(crate) late_messages: usize,
    /// Rows of destinations listed for each flow over one carrier.
    pub(crate) rows: usize,
    /// Flows (over one carrier) shown on the page.
    pub(crate) flows: usize,
    /// Warnings, deaths and reasons listed.
    pub(crate) sentences: usize,
    /// Characters of the mission file that are shown.
    pub(crate) mission_chars: usize,
}

impl Detail {
    /// The steps of detail, from the finest to the coarsest.
    pub(crate) const LADDER: [Self; 4] = [
        Self {
            columns: 300,
            curve_points: 200,
            gap_figures: 40,
            thin_curves: 40,
            late_messages: LATE_MESSAGES_MAX,
            rows: 2000,
            flows: 100,
            sentences: 200,
            mission_chars: 200_000,
        },
        Self {
            columns: 200,
            curve_points: 120,
            gap_figures: 8,
            thin_curves: 20,
            late_messages: 100,
            rows: 300,
            flows: 60,
            sentences: 100,
            mission_chars: 100_000,
        },
        Self {
            columns: 120,
            curve_points: 60,
            gap_figures: 2,
            thin_curves: 4,
            late_messages: 40,
            rows: 60,
            flows: 40,
            sentences: 40,
            mission_chars: 20_000,
        },
        Self {
            columns: 60,
            curve_points: 30,
            gap_figures: 1,
            thin_curves: 0,
            late_messages: 10,
            rows: 8,
            flows: 12,
            sentences: 10,
            mission_chars: 2_000,
        },
    ];
}
