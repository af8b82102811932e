//! Schedule files: operations with their periods and execution times, and the schedule computed from them.

mod checks;
mod document;
mod file;

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use deckwatch_sched::{AnomalyFact, Operations, SchedError, Schedule, Settings};
use serde::Deserialize as _;
use serde_json::Value;

use crate::mission::fault::Faults;
use crate::mission::schema::generate;
use crate::mission::{DurationText, LoadError, read, shaped_table};

pub use document::{
    Advice, Document, MeasuredDocument, OperationDocument, factor_in_words, longest_measured, page,
    response,
};

/// The declared operations of a schedule file.
#[derive(Clone, Debug)]
pub struct ScheduleFile {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// The operations.
    pub operations: Operations,
    /// How the file asks for it to be computed.
    pub settings: Settings,
    /// Whether the file gives the overhead of a dispatch.
    pub has_overhead: bool,
    path: PathBuf,
    text: Arc<str>,
    /// Where the file declares each operation, and the period of each.
    places: Vec<checks::Places>,
}

impl ScheduleFile {
    /// Reads a schedule file.
    ///
    /// # Errors
    /// [`LoadError`], with all faults of the file that one reading finds.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        Self::from_text(path, read(path)?)
    }

    /// Reads the text of a schedule file.
    ///
    /// # Errors
    /// [`LoadError`], with all faults of the text that one reading finds.
    pub fn parse(path: &Path, text: &str) -> Result<Self, LoadError> {
        Self::from_text(path, text.into())
    }

    fn from_text(path: &Path, text: Arc<str>) -> Result<Self, LoadError> {
        let malformed = |faults| LoadError::Malformed(Box::new(faults));
        let mut faults = Faults::new(path, text.clone());
        let table =
            shaped_table(&text, schema(), "the schedule", &mut faults).map_err(malformed)?;
        let file = match file::File::deserialize(toml::de::Deserializer::from(table)) {
            Ok(file) => file,
            Err(error) => {
                let place = error.span().unwrap_or(0..0);
                faults.report(place, error.message(), SCHEMA_HELP);
                return Err(malformed(faults));
            }
        };
        let checked = checks::operations(&file, &mut faults);
        faults.finish().map_err(malformed)?;
        let (operations, places) = checked;
        Ok(Self {
            settings: Settings {
                strategy: file.strategy.strategy(),
                overhead_ns: file.overhead.map_or(0, nanoseconds),
                runs_to_completion: file.queue == file::Queue::RunToCompletion,
            },
            has_overhead: file.overhead.is_some(),
            name: file.name,
            description: file.description,
            operations,
            path: path.to_owned(),
            text,
            places,
        })
    }

    /// Computes the schedule.
    ///
    /// # Errors
    /// [`LoadError::Malformed`], with the place of what cannot be computed: operations on a cycle or without a rate,
    /// times that do not fit 64 bits of nanoseconds, an analysis that takes too long.
    pub fn schedule(&self, settings: Settings) -> Result<Schedule, LoadError> {
        self.judge(settings, |_| true)
    }

    /// As [`Self::schedule`], for a service: operations without a rate may get one from clients that connect later.
    ///
    /// # Errors
    /// As [`Self::schedule`].
    pub fn check(&self, settings: Settings) -> Result<(), LoadError> {
        let has_rate = |fact| fact != AnomalyFact::Unresolved;
        self.judge(settings, has_rate).map(drop)
    }

    fn judge(
        &self,
        settings: Settings,
        is_judged: impl Fn(AnomalyFact) -> bool,
    ) -> Result<Schedule, LoadError> {
        let mut faults = Faults::new(&self.path, self.text.clone());
        let found = Schedule::compute(&self.operations, settings);
        match &found {
            Ok(schedule) => {
                let judged = schedule.anomalies.iter();
                for anomaly in judged.filter(|one| is_judged(one.fact)) {
                    let place = anomaly.of.map(|of| self.places[of.index()].name.clone());
                    if let Some((fact, help)) = checks::fault_of(anomaly.fact) {
                        faults.report(place.unwrap_or(0..0), fact, help);
                    }
                }
            }
            Err(error) => {
                let (place, help) = self.place_of(*error);
                faults.report(place, error.to_string().trim_end_matches('.'), help);
            }
        }
        let malformed = |faults| LoadError::Malformed(Box::new(faults));
        faults.finish().map_err(malformed)?;
        Ok(found.expect("an error is a fault"))
    }

    fn place_of(&self, error: SchedError) -> (std::ops::Range<usize>, &'static str) {
        match error {
            SchedError::HyperperiodOverflow => (
                0..0,
                "reduce the utilisation below 1, or write periods with a common multiple, for \
                 example 50ms and 62.5ms for 20 and 16 Hz",
            ),
            SchedError::TooLong => (
                0..0,
                "write periods that are nearer to each other, or reduce the utilisation",
            ),
            _ => (0..0, "write shorter times or fewer calls"),
        }
    }
}

/// Returns the schema of a schedule file (JSON Schema 2020-12), which is published in `docs/schema/schedule-1.json`.
#[must_use]
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> =
        LazyLock::new(|| generate::<file::File>("schedule-1.json", "Deckwatch schedule"));
    &SCHEMA
}

const SCHEMA_HELP: &str = "see what `deckwatch schema schedule` prints";

/// Durations in a file have at most 64 bits of nanoseconds.
fn nanoseconds(text: DurationText) -> u64 {
    u64::try_from(text.0.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mission::schema::assert_published;

    fn faults_of(text: &str) -> String {
        let file = ScheduleFile::parse(Path::new("s.toml"), text);
        let found = file.and_then(|file| file.schedule(file.settings).map(drop));
        found.expect_err("a fault").to_string()
    }

    const HEAD: &str = "name = \"s\"\n";

    #[test]
    fn published_schema_is_current() {
        assert_published(schema(), "schedule");
    }

    #[test]
    fn the_example_is_read() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../scenarios/schedule-nav.toml"
        );
        let file = ScheduleFile::load(Path::new(path)).expect("the example");
        let schedule = file.schedule(file.settings).expect("a schedule");
        assert!(schedule.is_feasible(), "{:?}", schedule.anomalies);
    }

    #[test]
    fn an_operation_needs_a_name_of_its_own_and_known_dependencies() {
        let text = format!(
            "{HEAD}[[operations]]\nname = \"a\"\nworst_case = \"1ms\"\nperiod = \"10ms\"\n\
             [[operations]]\nname = \"a\"\nworst_case = \"1ms\"\nperiod = \"10ms\"\n\
             depends = [{{ on = \"aa\" }}]\n"
        );
        let found = faults_of(&text);
        assert!(
            found.contains("s.toml:7:8: error: there are two operations `a`"),
            "{found}"
        );
        assert!(
            found.contains("s.toml:10:19: error: there is no operation `aa`"),
            "{found}"
        );
        assert!(found.contains("help: write \"a\""), "{found}");
    }

    #[test]
    fn a_misspelt_key_and_a_bare_number_are_shown_with_their_place() {
        let text = format!("{HEAD}[[operations]]\nname = \"a\"\nworst_cse = \"1ms\"\nperiod = 5\n");
        let found = faults_of(&text);
        assert!(found.contains("s.toml:4:1: error: `worst_cse` is not a key of an operation"));
        assert!(found.contains("^^^^^^^^^"), "{found}");
        assert!(
            found.contains("s.toml:5:10: error: `period` must be a duration"),
            "{found}"
        );
    }

    #[test]
    fn a_timer_that_triggers_an_operation_on_a_cycle_shows_the_cycle() {
        for kind in ["", ", kind = \"two-way\""] {
            let text = format!(
                "name = \"s\"\n[[operations]]\nname = \"a\"\nworst_case = \"0ms\"\nperiod = \"10ms\"\n\
                 [[operations]]\nname = \"b\"\nworst_case = \"2ms\"\nperiod = \"10ms\"\n\
                 depends = [{{ on = \"a\"{kind} }}, {{ on = \"b\", calls = 2{kind} }}]\n"
            );
            let found = faults_of(&text);
            assert!(found.contains("through a cycle"), "{found}");
        }
    }

    #[test]
    fn cycles_operations_without_a_rate_and_long_hyperperiods_are_shown_with_their_place() {
        let cycle = format!(
            "{HEAD}[[operations]]\nname = \"a\"\nworst_case = \"1ms\"\nperiod = \"10ms\"\n\
             depends = [{{ on = \"b\", kind = \"two-way\" }}]\n\
             [[operations]]\nname = \"b\"\nworst_case = \"1ms\"\n\
             depends = [{{ on = \"a\", kind = \"two-way\" }}]\n"
        );
        let found = faults_of(&cycle);
        assert!(
            found.contains("s.toml:3:8: error: it depends on itself"),
            "{found}"
        );
        let idle = format!("{HEAD}[[operations]]\nname = \"a\"\nworst_case = \"1ms\"\n");
        let found = faults_of(&idle);
        assert!(
            found.contains("s.toml:3:8: error: it has no period"),
            "{found}"
        );
        let remote = format!("{idle}kind = \"remote-dependant\"\n");
        let found = faults_of(&remote);
        assert!(
            found.contains("s.toml:3:8: error: it has no period"),
            "{found}"
        );
        // A full processor: one half, a quarter and a quarter.
        let mut long = format!("{HEAD}strategy = \"edf\"\n");
        for (number, (cost, times)) in [
            (4_294_967_291_u64, 2),
            (4_294_967_279, 4),
            (4_294_967_231, 4),
        ]
        .into_iter()
        .enumerate()
        {
            let period = cost * times;
            long += &format!(
                "[[operations]]\nname = \"{number}\"\nworst_case = \"{cost}ns\"\nperiod = \"{period}ns\"\n"
            );
        }
        let found = faults_of(&long);
        assert!(
            found.contains("error: The processor is full, and the hyperperiod is longer"),
            "{found}"
        );
        assert!(found.contains("common multiple"), "{found}");
    }

    #[test]
    fn times_that_do_not_fit_are_an_error() {
        let text = format!(
            "{HEAD}[[operations]]\nname = \"a\"\nworst_case = \"18446744073709551615ns\"\n\
             period = \"10ms\"\n[[operations]]\nname = \"b\"\nworst_case = \"1s\"\n\
             depends = [{{ on = \"a\" }}]\n"
        );
        assert!(faults_of(&text).contains("64 bits of nanoseconds"));
    }
}
