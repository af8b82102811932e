//! The errors of making a report.

use std::path::PathBuf;

/// The reason why no report was made. Every message names the file and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// No folder was named.
    #[error(
        "no result folder was named; name at least one, for example `deckwatch report results/nav`"
    )]
    NoFolder,
    /// More folders than there are colours.
    #[error(
        "{count} result folders were named, but at most {max} can be laid side by side; name fewer"
    )]
    TooManyFolders {
        /// How many were named.
        count: usize,
        /// [`crate::limits::RUNS_MAX`].
        max: usize,
    },
    /// The folder does not exist, or has no result document.
    #[error(
        "{path}: cannot be read ({reason}); name the folder that a run wrote, the one that holds result.json"
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: std::io::Error,
    },
    /// The result document is larger than any run writes.
    #[error(
        "{path}: {bytes} octets are more than a result document has (at most {max}); name another folder"
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// [`crate::limits::RESULT_BYTES_MAX`].
        max: u64,
    },
    /// The file is not a valid result document.
    #[error(
        "{path}: is damaged or not a result document ({reason}); restore it from a copy or run the mission again"
    )]
    DamagedDocument {
        /// The file.
        path: PathBuf,
        /// Line, column and what the parser expected.
        reason: String,
    },
    /// The document is of an experiment or a bench, and another one is of a run.
    #[error(
        "{path}: is of an experiment or a bench, which cannot be compared with runs; name its folder alone"
    )]
    NoRun {
        /// The file.
        path: PathBuf,
    },
    /// The experiments are of several kinds, or of a kind whose figures cannot be merged.
    #[error(
        "{folder}: is of `{found}`, and the first folder of `{first}`; several sweeps, several overheads or several grids can be compared, \
         others are shown alone"
    )]
    OtherExperiment {
        /// The folder.
        folder: String,
        /// Its experiment.
        found: String,
        /// The first folder's experiment.
        first: String,
    },
    /// The document is of a bench before version 2 of the experiments' schema.
    #[error(
        "{path}: is of a bench in the old schema bench-{version}, which this deckwatch no longer reads; use the deckwatch that wrote it, or \
         measure again"
    )]
    OldBench {
        /// The file.
        path: PathBuf,
        /// The version of the old schema.
        version: u64,
    },
    /// The document was written by a later version of this program.
    #[error(
        "{path}: has schema version {found}, this deckwatch reads versions 1 to {newest}; use the deckwatch that wrote it, or a later one"
    )]
    UnknownVersion {
        /// The file.
        path: PathBuf,
        /// The version it names.
        found: u64,
        /// The newest version known here.
        newest: u32,
    },
    /// The samples cannot be read.
    #[error("{reason}; restore the file from a copy or run the mission again")]
    DamagedSamples {
        /// The file and its fault.
        reason: deckwatch_meter::samples::SamplesError,
    },
    /// More samples than fit in memory.
    #[error(
        "{path}: {rows} samples are more than a report can draw on (at most {max}); open the file with DuckDB, Polars or pandas instead"
    )]
    TooManySamples {
        /// The file.
        path: PathBuf,
        /// How many it has.
        rows: u64,
        /// [`crate::limits::SAMPLES_MAX`].
        max: u64,
    },
    /// The report cannot be written.
    #[error(
        "{path}: cannot be written ({reason}); check the folder's permissions and free space, or name another output file"
    )]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: std::io::Error,
    },
    /// The page's template failed, which is a defect of this program.
    #[error(
        "the report's template failed ({reason}); this is a defect of deckwatch, please report it"
    )]
    Template {
        /// The template engine's words.
        reason: String,
    },
    /// Even the coarsest page is too large.
    #[error(
        "the report would be {bytes} octets with the least detail, more than {max}; name fewer folders"
    )]
    DoesNotFit {
        /// Octets of the coarsest page.
        bytes: usize,
        /// [`crate::limits::REPORT_BYTES_MAX`].
        max: usize,
    },
}

impl From<minijinja::Error> for ReportError {
    fn from(error: minijinja::Error) -> Self {
        Self::Template {
            reason: format!("{error:#}"),
        }
    }
}
