//! Makes one self-contained HTML file from result files.
//!
//! [`build`] reads the folders that runs wrote and returns one page: verdicts, distributions, gaps between arrivals,
//! layers, provenance. The page opens offline, without any other file, in light and dark, on paper, and with scripts
//! switched off. A script only adds reading values off the figures, enlarging them and choosing the theme. Several runs
//! are shown side by side on equal axes.
//!
//! This crate neither measures nor judges. Verdicts, bounds and percentiles are those of the result document; the
//! samples are only drawn.

#![forbid(unsafe_code)]

mod axis;
mod chart;
mod error;
mod layers;
pub mod limits;
mod merge;
mod palette;
mod run;
pub mod schedule;
mod series;
mod svg;
mod unit;
mod view;

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use deckwatch_meter::experiment::ExperimentDocument;

pub use error::ReportError;
pub use run::{RESULT_FILE, Run, SAMPLES_FILE};

/// Name of the report that [`write()`] writes into a run's folder.
pub const REPORT_FILE: &str = "report.html";

/// Makes the report of one run, of several runs side by side, of one experiment, or of several experiments of one kind
/// with their curves in the same figures.
///
/// # Errors
///
/// As [`Run::read`] and [`page`], and [`ReportError::OtherExperiment`].
pub fn build(folders: &[PathBuf]) -> Result<String, ReportError> {
    // The count is checked before a file is read: samples are large.
    accept_count(folders.len())?;
    let experiments = folders.iter().map(|folder| run::experiment(folder));
    let experiments = experiments.collect::<Result<Option<Vec<_>>, _>>()?;
    if let Some(mut documents) = experiments {
        if documents.len() == 1 {
            return experiment_page(&documents.remove(0));
        }
        let named = run::distinct_names(folders).into_iter().zip(documents);
        return experiment_page(&merge::merge(named.collect())?);
    }
    let runs = folders
        .iter()
        .map(|folder| Run::read(folder))
        .collect::<Result<Vec<_>, _>>()?;
    page(&runs)
}

/// Makes the report of runs that are in memory.
///
/// # Errors
///
/// - [`ReportError::NoFolder`] and [`ReportError::TooManyFolders`]: wrong number of runs.
/// - [`ReportError::DoesNotFit`]: even the least detail does not fit [`limits::REPORT_BYTES_MAX`].
/// - [`ReportError::Template`]: a defect of this crate.
pub fn page(runs: &[Run]) -> Result<String, ReportError> {
    accept_count(runs.len())?;
    let mut bytes = 0;
    for detail in limits::Detail::LADDER {
        let html = view::page(runs, &detail)?;
        bytes = html.len();
        if bytes <= limits::REPORT_BYTES_MAX {
            return Ok(html);
        }
    }
    Err(ReportError::DoesNotFit {
        bytes,
        max: limits::REPORT_BYTES_MAX,
    })
}

/// Makes the report of an experiment that is in memory: the paper's figures from its numbers.
///
/// # Errors
/// [`ReportError::Template`], which is a defect of this crate.
pub fn experiment_page(document: &ExperimentDocument) -> Result<String, ReportError> {
    view::experiment::page(document)
}

/// Makes the page of a schedule.
///
/// # Errors
/// [`ReportError::Template`], which is a defect of this crate.
pub fn schedule_page(page: &schedule::SchedulePage) -> Result<String, ReportError> {
    view::schedule::page(page)
}

/// Makes the report of the run in `folder` and writes it there as [`REPORT_FILE`]. Returns its path.
///
/// # Errors
///
/// As [`build`] and [`write_page`].
pub fn write(folder: &Path) -> Result<PathBuf, ReportError> {
    let path = folder.join(REPORT_FILE);
    write_page(&path, &build(&[folder.to_path_buf()])?)?;
    Ok(path)
}

/// Writes a page to `path`, all of it or nothing: an old report is kept until the new one is complete.
///
/// # Errors
///
/// [`ReportError::Unwritable`].
pub fn write_page(path: &Path, html: &str) -> Result<(), ReportError> {
    write_whole(path, html).map_err(|reason| ReportError::Unwritable {
        path: path.to_path_buf(),
        reason,
    })
}

/// Writes a new file and renames it to `file`. No reader sees a partial file, and a failed write keeps the old content.
/// A device, a pipe or a link is written to and not replaced.
///
/// # Errors
///
/// The error of the operating system.
pub fn write_whole(file: &Path, text: &str) -> io::Result<()> {
    let mode = match std::fs::symlink_metadata(file) {
        Ok(there) if !there.is_file() => return std::fs::write(file, text),
        there => there.map(|there| there.permissions()),
    };
    replace(file, text, &mut OpenOptions::new(), mode.ok())
}

/// As [`write_whole`]; only the user of the process may read a file.
///
/// # Errors
/// As [`write_whole`].
pub fn write_private(file: &Path, text: &str) -> io::Result<()> {
    match std::fs::symlink_metadata(file) {
        Ok(there) if !there.is_file() => std::fs::write(file, text),
        _ => replace(file, text, OpenOptions::new().mode(0o600), None),
    }
}

fn replace(
    file: &Path,
    text: &str,
    options: &mut OpenOptions,
    mode: Option<Permissions>,
) -> io::Result<()> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(format!(".new-{}", std::process::id()));
    // An earlier process with the same id may have left one.
    let _ = std::fs::remove_file(&beside); // There may be none.
    let replaced = options
        .write(true)
        .create_new(true)
        .open(&beside)
        .and_then(|mut beside| beside.write_all(text.as_bytes()))
        .and_then(|()| mode.map_or(Ok(()), |mode| std::fs::set_permissions(&beside, mode)))
        .and_then(|()| std::fs::rename(&beside, file));
    replaced.inspect_err(|_| {
        let _ = std::fs::remove_file(&beside);
    })
}

fn accept_count(count: usize) -> Result<(), ReportError> {
    match count {
        0 => Err(ReportError::NoFolder),
        count if count > limits::RUNS_MAX => Err(ReportError::TooManyFolders {
            count,
            max: limits::RUNS_MAX,
        }),
        _ => Ok(()),
    }
}
