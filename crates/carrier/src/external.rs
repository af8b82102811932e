//! Carriers in other languages: each is a program with a manifest, found in the folders of [`search`].
//!
//! A part of such a carrier starts the program, which moves the messages and writes their records
//! ([`crate::part`]). The protocol between them is described in docs/book/writing-a-carrier.md.

mod manifest;
mod search;

use std::path::{Path, PathBuf};
use std::time::Duration;

use deckwatch_meter::blame::Road;

pub use manifest::{Manifest, ManifestError, PROTOCOL};
pub use search::{Adapter, Adapters, FOLDERS_VARIABLE, Unusable, folders, search};

use crate::carrier::{Carrier, ConnectTo, Delivery, Framing, ListenAt, Needs};
use crate::error::PartError;
use crate::limits::PROGRAM_READY_MAX;
use crate::receiver::Receiver;
use crate::sender::Sender;

/// A carrier whose messages a program in another language sends and receives.
#[derive(Debug)]
pub struct External {
    name: &'static str,
    summary: &'static str,
    manifest: Manifest,
    program: PathBuf,
    ready_max: Duration,
}

impl External {
    /// Makes a carrier that lives as long as this process, of which there are at most
    /// [`ADAPTERS_MAX`](crate::limits::ADAPTERS_MAX).
    #[must_use]
    pub fn leak(manifest: Manifest, program: PathBuf) -> &'static Self {
        Self::leak_ready_within(manifest, program, PROGRAM_READY_MAX)
    }

    /// As [`External::leak`], with another bound of the time until the program is ready.
    pub(crate) fn leak_ready_within(
        manifest: Manifest,
        program: PathBuf,
        ready_max: Duration,
    ) -> &'static Self {
        Box::leak(Box::new(Self {
            name: Box::leak(manifest.name.clone().into_boxed_str()),
            summary: Box::leak(manifest.summary.clone().into_boxed_str()),
            manifest,
            program,
            ready_max,
        }))
    }

    /// Returns the manifest.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the time within which the program must be ready.
    pub(crate) const fn ready_max(&self) -> Duration {
        self.ready_max
    }

    /// Returns the path of the program.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }
}

impl Carrier for External {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn road(&self) -> Road {
        Road::MIDDLEWARE
    }

    fn framing(&self) -> Framing {
        Framing::Unseen
    }

    fn delivery(&self) -> Delivery {
        self.manifest.delivery.into()
    }

    fn needs(&self) -> Needs {
        Needs {
            broker: self.manifest.broker,
            one_slot: self.manifest.one_slot,
            size_bytes_max: self.manifest.size_bytes_max,
            ..Needs::default()
        }
    }

    fn external(&self) -> Option<&External> {
        Some(self)
    }

    fn connect(&self, _to: &ConnectTo<'_>) -> Result<Box<dyn Sender>, PartError> {
        Err(PartError::OtherProcess { carrier: self.name })
    }

    fn listen(&self, _at: &ListenAt<'_>) -> Result<Box<dyn Receiver>, PartError> {
        Err(PartError::OtherProcess { carrier: self.name })
    }
}
