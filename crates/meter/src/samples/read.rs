//! Reads samples back, one row group at a time.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use deckwatch_os::regular;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader as _, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;

use super::SamplesError;
use super::columns::{COLUMNS, Column, Content, layer_of};
use crate::limits::ROW_GROUP_ROWS_MAX;
use crate::sample::Sample;

/// Reads a sample file. It is an iterator over row groups, so that a long run need not fit in memory.
pub struct SampleReader {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    /// The index in the file of each of [`COLUMNS`].
    positions: [Option<usize>; COLUMNS.len()],
    next_group: usize,
}

/// Reads all samples of a file.
///
/// # Errors
/// As [`SampleReader::open`] and its iterator.
pub fn read(path: &Path) -> Result<Vec<Sample>, SamplesError> {
    let mut all = Vec::new();
    for group in SampleReader::open(path)? {
        all.extend(group?);
    }
    Ok(all)
}

impl SampleReader {
    /// Opens a file and checks its columns. Unknown columns are ignored.
    ///
    /// # Errors
    /// [`SamplesError::File`] if the file cannot be opened; [`SamplesError::Format`] if it is not a Parquet file;
    /// [`SamplesError::Column`] if a column that all versions have is missing or has another type; [`SamplesError::RowGroupTooLarge`] if one
    /// of its groups claims more rows than [`ROW_GROUP_ROWS_MAX`].
    pub fn open(path: &Path) -> Result<Self, SamplesError> {
        let file = regular::open(path).map_err(|source| SamplesError::File {
            path: path.to_owned(),
            source,
        })?;
        let reader =
            guarded(|| SerializedFileReader::new(file)).map_err(|source| SamplesError::Format {
                path: path.to_owned(),
                source,
            })?;
        for group in reader.metadata().row_groups() {
            let rows = group.num_rows();
            if !usize::try_from(rows).is_ok_and(|rows| rows <= ROW_GROUP_ROWS_MAX) {
                return Err(SamplesError::RowGroupTooLarge {
                    path: path.to_owned(),
                    rows,
                });
            }
        }
        let schema = reader.metadata().file_metadata().schema_descr();
        let mut positions = [None; COLUMNS.len()];
        for (position, column) in positions.iter_mut().zip(&COLUMNS) {
            let found = (0..schema.num_columns()).find(|index| {
                let descriptor = schema.column(*index);
                descriptor.path().string() == column.name
                    && descriptor.physical_type() == column.physical()
                    && descriptor.max_rep_level() == 0
                    && descriptor.max_def_level() == i16::from(column.is_optional())
            });
            if found.is_none() && column.is_read_back() && !column.is_new() {
                return Err(SamplesError::Column {
                    path: path.to_owned(),
                    column: column.name,
                });
            }
            *position = found;
        }
        Ok(Self {
            path: path.to_owned(),
            reader,
            positions,
            next_group: 0,
        })
    }

    /// Returns the number of rows in the whole file.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.reader
            .metadata()
            .row_groups()
            .iter()
            .map(|group| group.num_rows().unsigned_abs())
            .sum()
    }

    fn read_group(&self, index: usize) -> Result<Vec<Sample>, ParquetError> {
        let group = self.reader.get_row_group(index)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let mut samples = vec![Sample::NONE; rows];
        for (column, position) in COLUMNS.iter().zip(self.positions) {
            if let Some(position) = position.filter(|_| column.is_read_back()) {
                read_column(group.as_ref(), position, column, &mut samples)?;
            }
        }
        Ok(samples)
    }
}

impl Iterator for SampleReader {
    type Item = Result<Vec<Sample>, SamplesError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next_group >= self.reader.metadata().num_row_groups() {
            return None;
        }
        let group =
            guarded(|| self.read_group(self.next_group)).map_err(|source| SamplesError::Format {
                path: self.path.clone(),
                source,
            });
        self.next_group = if group.is_ok() {
            self.next_group + 1
        } else {
            usize::MAX
        };
        Some(group)
    }
}

impl Column {
    const fn is_read_back(&self) -> bool {
        !matches!(
            self.content,
            Content::Stamp { put: None, .. } | Content::Carrier | Content::Destination
        )
    }
}

/// Runs one step of reading and converts a panic to an error: the Parquet library panics on some damaged pages.
fn guarded<T>(step: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    // The state of the step is dropped if it fails, so no partial state is visible afterwards.
    catch_unwind(AssertUnwindSafe(step))
        .unwrap_or_else(|_| Err(ParquetError::General("a page is damaged".to_owned())))
}

fn read_column(
    group: &dyn RowGroupReader,
    position: usize,
    column: &Column,
    samples: &mut [Sample],
) -> Result<(), ParquetError> {
    let reader = group.get_column_reader(position)?;
    match &column.content {
        Content::Index { put, .. } => {
            each::<Int32Type>(reader, samples, |sample, value| put(sample, *value))
        }
        Content::Number { put, .. } | Content::Stamp { put: Some(put), .. } => {
            each::<Int64Type>(reader, samples, |sample, value| put(sample, *value))
        }
        Content::Flag { put, .. } => {
            each::<BoolType>(reader, samples, |sample, value| put(sample, *value))
        }
        Content::Blame => each::<ByteArrayType>(reader, samples, |sample, word| {
            sample.blame = layer_of(word.data())
        }),
        Content::Stamp { put: None, .. } | Content::Carrier | Content::Destination => Ok(()),
    }
}

/// Calls `put` with each value that is not null and its sample.
fn each<T: DataType>(
    reader: ColumnReader,
    samples: &mut [Sample],
    put: impl Fn(&mut Sample, &T::T),
) -> Result<(), ParquetError> {
    let mut reader: ColumnReaderImpl<T> = get_typed_column_reader(reader);
    let (mut present, mut values) = (Vec::new(), Vec::new());
    let mut rows = 0;
    while rows < samples.len() {
        present.clear();
        values.clear();
        let (records, _, _) =
            reader.read_records(samples.len() - rows, Some(&mut present), None, &mut values)?;
        if records == 0 {
            return Err(ParquetError::EOF(format!(
                "A column ends after {rows} of {} rows.",
                samples.len()
            )));
        }
        let mut next = values.iter();
        for (offset, sample) in samples[rows..].iter_mut().take(records).enumerate() {
            // A column without nulls has no definition levels.
            let is_present = present.get(offset).is_none_or(|level| *level > 0);
            if let Some(value) = is_present.then(|| next.next()).flatten() {
                put(sample, value);
            }
        }
        rows += records;
    }
    Ok(())
}
