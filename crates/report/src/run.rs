//! One run, read from its folder.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use deckwatch_meter::blame::{Road, Splitter, calls};
use deckwatch_meter::experiment::{EXPERIMENT_SCHEMA_VERSION, ExperimentDocument};
use deckwatch_meter::result::{ResultDocument, SCHEMA_VERSION};
use deckwatch_meter::sample::Sample;
use deckwatch_meter::samples::SampleReader;
use deckwatch_os::regular;
use deckwatch_text::escaped;

use crate::error::ReportError;
use crate::limits::{RESULT_BYTES_MAX, SAMPLES_MAX};
use crate::series::Series;

/// Name of the result document in a run's folder.
pub const RESULT_FILE: &str = "result.json";

/// Name of the samples in a run's folder.
pub const SAMPLES_FILE: &str = "samples.parquet";

/// A run: its result document, and its samples prepared for drawing.
#[derive(Clone, Debug)]
pub struct Run {
    pub(crate) folder: String,
    pub(crate) document: ResultDocument,
    /// The series of each flow of the document, by destination.
    pub(crate) series: Vec<Vec<Series>>,
    /// Number of samples that belong to no flow and destination of the document.
    pub(crate) strays: u64,
}

impl Run {
    /// Reads the folder that a run wrote.
    ///
    /// # Errors
    ///
    /// [`ReportError::Unreadable`], [`ReportError::TooLarge`], [`ReportError::DamagedDocument`],
    /// [`ReportError::UnknownVersion`], [`ReportError::DamagedSamples`] or [`ReportError::TooManySamples`], each with
    /// the name of the file.
    pub fn read(folder: &Path) -> Result<Self, ReportError> {
        let document = document(&folder.join(RESULT_FILE))?;
        let path = folder.join(SAMPLES_FILE);
        let mut intake = Intake::new(&document);
        samples(&path, |sample| intake.push(sample))?;
        Ok(intake.finish(name_of(folder), document))
    }

    /// Makes a run from a document and samples in memory. `folder` is the name of the run in a comparison.
    pub fn from_samples<'a>(
        folder: &str,
        document: ResultDocument,
        samples: impl IntoIterator<Item = &'a Sample>,
    ) -> Self {
        let mut intake = Intake::new(&document);
        for sample in samples {
            intake.push(sample);
        }
        intake.finish(folder.to_owned(), document)
    }
}

/// Collects samples by flow and destination.
struct Intake {
    samples: Vec<Vec<Vec<Sample>>>,
    places: HashMap<(u16, u16), (usize, usize)>,
    strays: u64,
}

impl Intake {
    fn new(document: &ResultDocument) -> Self {
        let mut places = HashMap::new();
        let mut samples = Vec::new();
        for (f, flow) in document.flows.iter().enumerate() {
            for (d, destination) in flow.destinations.iter().enumerate() {
                places
                    .entry((flow.index, destination.index))
                    .or_insert((f, d));
            }
            samples.push(vec![Vec::new(); flow.destinations.len()]);
        }
        Self {
            samples,
            places,
            strays: 0,
        }
    }

    fn push(&mut self, sample: &Sample) {
        match self.places.get(&(sample.flow, sample.destination)) {
            Some((flow, destination)) => self.samples[*flow][*destination].push(*sample),
            None => self.strays += 1,
        }
    }

    fn finish(self, folder: String, document: ResultDocument) -> Run {
        let flows = document.flows.iter().zip(self.samples);
        let series = flows
            .map(|(flow, samples)| series(flow.road(), samples))
            .collect();
        Run {
            folder,
            document,
            series,
            strays: self.strays,
        }
    }
}

/// Returns the series of one flow over one carrier. The samples of a destination are dropped as soon as its series is
/// made.
fn series(road: Road, samples: Vec<Vec<Sample>>) -> Vec<Series> {
    let supplier = calls(road, samples.iter().flatten());
    samples
        .into_iter()
        .map(|mut samples| {
            let splitter = Splitter::new(road, &samples, &supplier);
            let names = road.names(&samples);
            Series::of(&mut samples, &splitter, &names)
        })
        .collect()
}

/// Returns the last component of the folder's path, which distinguishes runs; the whole path if it has none, as in `.`.
fn name_of(folder: &Path) -> String {
    let whole = folder
        .canonicalize()
        .unwrap_or_else(|_| folder.to_path_buf());
    whole.file_name().map_or_else(
        || whole.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// Returns the names of folders in a comparison. Folders with the same name have their whole paths, numbered if these
/// are the same too.
pub(crate) fn distinct_names(folders: &[PathBuf]) -> Vec<String> {
    let short: Vec<String> = folders.iter().map(|folder| name_of(folder)).collect();
    let is_only = |name: &String| short.iter().filter(|other| *other == name).count() == 1;
    let paths = folders.iter().zip(&short).enumerate();
    let name = |(place, (folder, short)): (usize, (&PathBuf, &String))| {
        let before = folders[..place]
            .iter()
            .filter(|other| *other == folder)
            .count();
        match before {
            _ if is_only(short) => short.clone(),
            0 => folder.display().to_string(),
            before => format!("{} ({})", folder.display(), before + 1),
        }
    };
    paths.map(name).collect()
}

/// Reads the experiment in `folder`. Returns `None` if its document is of something else.
pub(crate) fn experiment(folder: &Path) -> Result<Option<ExperimentDocument>, ReportError> {
    let path = folder.join(RESULT_FILE);
    let text = read(&path)?;
    if !is_experiment(&text) {
        return Ok(None);
    }
    parse(&path, &text, EXPERIMENT_SCHEMA_VERSION).map(Some)
}

fn document(path: &Path) -> Result<ResultDocument, ReportError> {
    let text = read(path)?;
    if is_experiment(&text) {
        return Err(ReportError::NoRun {
            path: path.to_path_buf(),
        });
    }
    if let Some(version) = old_bench(&text) {
        return Err(ReportError::OldBench {
            path: path.to_path_buf(),
            version,
        });
    }
    parse(path, &text, SCHEMA_VERSION)
}

/// Reads the text of a result document.
fn read(path: &Path) -> Result<Vec<u8>, ReportError> {
    let unreadable = |reason| ReportError::Unreadable {
        path: path.to_path_buf(),
        reason,
    };
    let file = regular::open(path).map_err(unreadable)?;
    let bytes = file.metadata().map_err(unreadable)?.len();
    if bytes > RESULT_BYTES_MAX {
        return Err(ReportError::TooLarge {
            path: path.to_path_buf(),
            bytes,
            max: RESULT_BYTES_MAX,
        });
    }
    let mut text = Vec::new();
    file.take(RESULT_BYTES_MAX)
        .read_to_end(&mut text)
        .map_err(unreadable)?;
    Ok(text)
}

/// Parses a document whose version is at most `newest`.
fn parse<T: serde::de::DeserializeOwned>(
    path: &Path,
    text: &[u8],
    newest: u32,
) -> Result<T, ReportError> {
    let damaged = |error: serde_json::Error| ReportError::DamagedDocument {
        path: path.to_path_buf(),
        reason: escaped(&error.to_string()).to_string(),
    };
    // The version is checked first: a document of another version may have another schema, and is not damaged.
    let version: Version = serde_json::from_slice(text).map_err(damaged)?;
    if version.schema_version == 0 || version.schema_version > u64::from(newest) {
        return Err(ReportError::UnknownVersion {
            path: path.to_path_buf(),
            found: version.schema_version,
            newest,
        });
    }
    serde_json::from_slice(text).map_err(damaged)
}

/// Whether the document is that of an experiment.
fn is_experiment(text: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Named {
        #[serde(rename = "experiment")]
        _name: String,
    }
    serde_json::from_slice::<Named>(text).is_ok()
}

/// Returns the version of the old schema of benches, before they shared that of experiments. Returns `None` for other
/// documents.
fn old_bench(text: &[u8]) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct OldBench {
        #[serde(rename = "bench")]
        _kind: String,
        schema_version: u64,
    }
    let bench: Option<OldBench> = serde_json::from_slice(text).ok();
    bench.map(|bench| bench.schema_version)
}

#[derive(serde::Deserialize)]
struct Version {
    schema_version: u64,
}

fn samples(path: &Path, mut each: impl FnMut(&Sample)) -> Result<(), ReportError> {
    let reader =
        SampleReader::open(path).map_err(|reason| ReportError::DamagedSamples { reason })?;
    if reader.rows() > SAMPLES_MAX {
        return Err(ReportError::TooManySamples {
            path: path.to_path_buf(),
            rows: reader.rows(),
            max: SAMPLES_MAX,
        });
    }
    for group in reader {
        group
            .map_err(|reason| ReportError::DamagedSamples { reason })?
            .iter()
            .for_each(&mut each);
    }
    Ok(())
}
