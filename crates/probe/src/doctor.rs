//! The doctor: is this machine fit for real time, and what should be changed.
//!
//! It reads what the kernel tells of itself ([`Root`], which tests replace by a folder) and makes a few short trials ([`Trials`]); then each
//! finding is a function of the two. `Change` is kept for what makes a verdict on real-time behaviour untrustworthy: the machine, not the
//! system under test, would decide it. What merely costs latency, or takes a layer from the blame, is a `Note`.

mod kernel;
mod memory;
mod network;
mod processor;
mod root;
mod trial;

pub use root::Root;
use serde::Serialize;
pub use trial::{Trials, WakeUps};

/// All findings about a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// Whether verdicts on this machine can be trusted: nothing must be changed.
    pub fit: bool,
    /// In order of rooms: kernel, processors, memory, network.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Examines this machine; takes about a second and a half.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self::of(&Root::machine(), &Trials::make())
    }

    /// What follows from files and trials.
    #[must_use]
    pub fn of(root: &Root, trials: &Trials) -> Self {
        let rooms = [
            kernel::findings(root, trials),
            processor::findings(root, trials),
            memory::findings(root),
            network::findings(root, trials),
        ];
        let findings: Vec<Finding> = rooms.into_iter().flatten().collect();
        Self {
            fit: findings
                .iter()
                .all(|finding| finding.judgement != Judgement::Change),
            findings,
        }
    }
}

/// One thing found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at, in a few words; stable.
    pub name: &'static str,
    /// What was found, with its unit.
    pub value: String,
    /// What that means.
    pub judgement: Judgement,
    /// Why it matters, in a sentence.
    pub why: &'static str,
    /// What to do, as a command where there is one; None where nothing need be done.
    pub advice: Option<String>,
}

/// What a finding means, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Judgement {
    /// As it should be.
    Ok,
    /// Costs latency or detail; verdicts stay true.
    Note,
    /// Makes verdicts untrustworthy.
    Change,
}

impl Finding {
    fn new(name: &'static str, why: &'static str, value: impl Into<String>) -> Self {
        Self {
            name,
            value: value.into(),
            judgement: Judgement::Ok,
            why,
            advice: None,
        }
    }

    /// The finding with this judgement and advice where `applies`, and unless it is already judged as bad or worse.
    fn or(self, judgement: Judgement, applies: bool, advice: impl Into<String>) -> Self {
        if !applies || self.judgement >= judgement {
            return self;
        }
        Self {
            judgement,
            advice: Some(advice.into()),
            ..self
        }
    }

    fn note_if(self, applies: bool, advice: impl Into<String>) -> Self {
        self.or(Judgement::Note, applies, advice)
    }

    fn change_if(self, applies: bool, advice: impl Into<String>) -> Self {
        self.or(Judgement::Change, applies, advice)
    }
}

#[cfg(test)]
mod tests;
