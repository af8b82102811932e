//! The document that a bench or an experiment leaves, and its warnings.

use std::collections::BTreeMap;

use deckwatch_meter::experiment::{
    EXPERIMENT_SCHEMA_VERSION, ExperimentDocument, Figure, MachineState, Measurement, Standing,
};
use deckwatch_meter::provenance::{self, Readings};
use deckwatch_meter::result::{ClockNote, Fidelity, Warning};
use deckwatch_os::signal;

use super::Session;
use crate::laboratory::caution::Caution;
use crate::laboratory::{Inserted, LaboratoryError};

/// What a bench or an experiment has found.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) experiment: String,
    pub(crate) title: &'static str,
    pub(crate) source: &'static str,
    pub(crate) condition: String,
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) standings: Vec<Standing>,
    pub(crate) machine_states: Vec<MachineState>,
    pub(crate) measurements: Vec<Measurement>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) notes: Vec<String>,
    pub(crate) warnings: Vec<Caution>,
    pub(crate) fidelity: Option<Fidelity>,
}

impl Session<'_> {
    /// The document of what was found until now, with the parameters of rounds.
    pub(crate) fn document(&self, mut found: Found) -> ExperimentDocument {
        let rounds = self.setup.rounds.to_string();
        found.parameters.insert("rounds".to_owned(), rounds);
        let run_time = format!("{:?}", self.setup.run_budget);
        found.parameters.insert("run time".to_owned(), run_time);
        self.document_of("round trips by CLOCK_MONOTONIC of the calling end", found)
    }

    /// The document of what was found until now. `clock` says which clock took the stamps.
    pub(crate) fn document_of(&self, clock: &str, found: Found) -> ExperimentDocument {
        let disturbance = self.before.until(&Readings::take());
        let mut warnings = disturbance.warnings();
        let cautions = found.warnings.into_iter().chain(self.warnings());
        warnings.extend(cautions.map(Warning::from));
        let run = provenance::Run {
            version: self.setup.version.clone(),
            mission_path: String::new(),
            mission_text: String::new(),
            clock: ClockNote {
                shared: true,
                note: clock.to_owned(),
                conversion_error_ns: 0,
                latency_error_ns: None,
                latency_assumed_ns: None,
                sync: Default::default(),
            },
        };
        ExperimentDocument {
            schema_version: EXPERIMENT_SCHEMA_VERSION,
            experiment: found.experiment,
            title: found.title.to_owned(),
            source: found.source.to_owned(),
            provenance: provenance::provenance(run, self.started_at, &disturbance),
            condition: found.condition,
            parameters: found.parameters,
            standings: found.standings,
            machine_states: found.machine_states,
            measurements: found.measurements,
            figures: found.figures,
            skipped: self.skipped.clone(),
            notes: found.notes,
            warnings,
            fidelity: found.fidelity,
            soak: None,
        }
    }

    /// As [`Self::document`], at the end.
    ///
    /// # Errors
    /// The reason why nothing was measured: what broke it off, or [`LaboratoryError::Interrupted`].
    pub(crate) fn finish(self, found: Found) -> Result<ExperimentDocument, LaboratoryError> {
        if found.measurements.is_empty() {
            return Err(self.nothing());
        }
        Ok(self.document(found))
    }

    /// Why nothing was measured.
    pub(crate) fn nothing(self) -> LaboratoryError {
        let ended = signal::ending().map(LaboratoryError::Interrupted);
        let reasons = self.skipped.iter();
        let reasons: Vec<String> = reasons
            .map(|skip| format!("{}: {}", skip.what, skip.reason))
            .collect();
        let nothing = ended.unwrap_or(if reasons.is_empty() {
            LaboratoryError::Nothing
        } else {
            LaboratoryError::AllLeftOut {
                reasons: reasons.join("; "),
            }
        });
        self.broken_off.unwrap_or(nothing)
    }

    fn warnings(&self) -> Vec<Caution> {
        let broken_off = self.broken_off.as_ref().map(|error| Caution::BrokenOff {
            reason: error.to_string(),
        });
        let inserted = self.setup.inserted;
        let all = [
            (!self.is_placed).then_some(Caution::NotRealTime),
            cfg!(debug_assertions).then_some(Caution::DebugBuild),
            broken_off,
            (!self.is_whole).then_some(Caution::EndedEarly),
            (inserted != Inserted::Nothing).then_some(Caution::ServantWork(inserted)),
        ];
        all.into_iter().flatten().collect()
    }
}
