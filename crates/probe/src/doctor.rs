//! The doctor: whether this machine is fit for real time, and what to change.
//!
//! It reads the kernel's files ([`Root`], which tests replace by a folder) and makes a few short trials ([`Trials`]).
//! Each finding is a function of the two. `Change` marks a fault that makes real-time verdicts untrustworthy, because
//! the machine would decide them, not the system under test. `Note` marks a fault that costs latency, or a layer of the
//! blame.

mod kernel;
mod memory;
mod network;
mod processor;
mod root;
mod trial;

use std::borrow::Cow;

pub use root::Root;
use serde::{Deserialize, Serialize};
pub use trial::{Trials, WakeUps};

/// All findings about a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// Verdicts on this machine can be trusted: nothing must be changed.
    pub fit: bool,
    /// In this order: kernel, processors, memory, network.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Examines this machine. Takes about 1.5 seconds.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self::of(&Root::machine(), &Trials::make())
    }

    /// The findings from files and trials.
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

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The examined property, in a few words. The words do not change between versions.
    pub name: Cow<'static, str>,
    /// Its value, with the unit.
    pub value: String,
    /// The judgement on the value.
    pub judgement: Judgement,
    /// Why it matters, in one sentence.
    pub why: Cow<'static, str>,
    /// What to do, as a command if there is one. `None` if nothing needs to be done.
    pub advice: Option<String>,
}

/// Judgement on a finding, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Judgement {
    /// Good.
    Ok,
    /// Costs latency or detail. Verdicts stay true.
    Note,
    /// Makes verdicts untrustworthy.
    Change,
}

impl Finding {
    fn new(name: &'static str, why: &'static str, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
            judgement: Judgement::Ok,
            why: why.into(),
            advice: None,
        }
    }

    /// Sets judgement and advice if `applies`, unless the finding has an equal or worse judgement already.
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
