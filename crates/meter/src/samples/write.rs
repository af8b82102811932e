//! Writes samples, one row group at a time.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Encoding;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::ColumnPath;

use super::SamplesError;
use super::columns::{COLUMNS, Column, Content, schema};
use crate::limits::ROW_GROUP_ROWS;
use crate::result::{FlowResult, SCHEMA_VERSION};
use crate::sample::{NO_STAMP, Sample};

/// Writes a sample file. Until [`finish`](Self::finish) renames it, the incomplete file is called `….partial`.
pub struct SampleWriter {
    path: PathBuf,
    partial: PathBuf,
    writer: SerializedFileWriter<BufWriter<File>>,
    names: Names,
    waiting: Vec<Sample>,
}

/// Names of carriers and hosts, by the indices in samples.
struct Names {
    carriers: HashMap<u16, ByteArray>,
    hosts: HashMap<(u16, u16), ByteArray>,
}

impl SampleWriter {
    /// Creates a file for samples of these flows, which contain the names of carriers and hosts.
    ///
    /// # Errors
    /// [`SamplesError::File`] if the file cannot be created; [`SamplesError::Format`] if it cannot be written.
    pub fn create(path: &Path, flows: &[FlowResult]) -> Result<Self, SamplesError> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let file = File::create(&partial).map_err(|source| SamplesError::File {
            path: partial.clone(),
            source,
        })?;
        let writer = schema()
            .and_then(|schema| {
                SerializedFileWriter::new(BufWriter::new(file), schema, Arc::new(properties()))
            })
            .map_err(|source| SamplesError::Format {
                path: path.to_owned(),
                source,
            })?;
        let names = Names::of(flows);
        Ok(Self {
            path: path.to_owned(),
            partial,
            writer,
            names,
            waiting: Vec::with_capacity(ROW_GROUP_ROWS),
        })
    }

    /// Adds samples in any order. The file is smallest if those of one flow and destination are together.
    ///
    /// # Errors
    /// [`SamplesError::Format`] if the file cannot be written.
    pub fn write(&mut self, samples: &[Sample]) -> Result<(), SamplesError> {
        for sample in samples {
            self.waiting.push(*sample);
            if self.waiting.len() >= ROW_GROUP_ROWS {
                self.write_group()?;
            }
        }
        Ok(())
    }

    /// Completes the file and renames it to its final name.
    ///
    /// # Errors
    /// [`SamplesError::Format`] if the file cannot be written; [`SamplesError::File`] if it cannot be renamed.
    pub fn finish(mut self) -> Result<(), SamplesError> {
        if !self.waiting.is_empty() {
            self.write_group()?;
        }
        let Self {
            path,
            partial,
            mut writer,
            ..
        } = self;
        writer.finish().map_err(|source| SamplesError::Format {
            path: path.clone(),
            source,
        })?;
        std::fs::rename(&partial, &path).map_err(|source| SamplesError::File { path, source })
    }

    fn write_group(&mut self) -> Result<(), SamplesError> {
        write_group(&mut self.writer, &self.waiting, &self.names).map_err(|source| {
            SamplesError::Format {
                path: self.path.clone(),
                source,
            }
        })?;
        self.waiting.clear();
        Ok(())
    }
}

impl Names {
    fn of(flows: &[FlowResult]) -> Self {
        let carriers = flows
            .iter()
            .map(|flow| (flow.index, ByteArray::from(flow.carrier.as_str())))
            .collect();
        let hosts = flows
            .iter()
            .flat_map(|flow| {
                flow.destinations.iter().map(|destination| {
                    (
                        (flow.index, destination.index),
                        ByteArray::from(destination.host.as_str()),
                    )
                })
            })
            .collect();
        Self { carriers, hosts }
    }
}

fn properties() -> WriterProperties {
    let numbers = COLUMNS.iter().filter(|column| {
        matches!(
            column.content,
            Content::Number { .. } | Content::Stamp { .. }
        )
    });
    let facts = [
        ("deckwatch.schema_version", SCHEMA_VERSION.to_string()),
        ("deckwatch.clock", "CLOCK_MONOTONIC, nanoseconds".to_owned()),
    ];
    let facts = facts
        .into_iter()
        .map(|(name, value)| KeyValue::new(name.to_owned(), value))
        .collect();
    numbers
        .fold(WriterProperties::builder(), |properties, column| {
            let path = ColumnPath::from(column.name);
            properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
        })
        .set_key_value_metadata(Some(facts))
        .set_created_by(concat!("deckwatch ", env!("CARGO_PKG_VERSION")).to_owned())
        .build()
}

fn write_group(
    writer: &mut SerializedFileWriter<BufWriter<File>>,
    samples: &[Sample],
    names: &Names,
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for column in &COLUMNS {
        let mut into = group.next_column()?.ok_or_else(|| {
            ParquetError::General(
                "The schema has fewer columns than the table of columns.".to_owned(),
            )
        })?;
        write_column(&mut into, column, samples, names)?;
        into.close()?;
    }
    group.close()?;
    Ok(())
}

fn write_column(
    into: &mut SerializedColumnWriter<'_>,
    column: &Column,
    samples: &[Sample],
    names: &Names,
) -> Result<(), ParquetError> {
    let unnamed = ByteArray::from("");
    match &column.content {
        Content::Index { take, .. } => {
            let values: Vec<i32> = samples.iter().map(take).collect();
            into.typed::<Int32Type>().write_batch(&values, None, None)?;
        }
        Content::Number { take, .. } => {
            let values: Vec<i64> = samples.iter().map(take).collect();
            into.typed::<Int64Type>().write_batch(&values, None, None)?;
        }
        Content::Stamp { take, .. } => {
            let present: Vec<i16> = samples
                .iter()
                .map(|sample| i16::from(take(sample) != NO_STAMP))
                .collect();
            let values: Vec<i64> = samples
                .iter()
                .map(take)
                .filter(|stamp_ns| *stamp_ns != NO_STAMP)
                .collect();
            into.typed::<Int64Type>()
                .write_batch(&values, Some(&present), None)?;
        }
        Content::Flag { take, .. } => {
            let values: Vec<bool> = samples.iter().map(take).collect();
            into.typed::<BoolType>().write_batch(&values, None, None)?;
        }
        Content::Carrier => {
            let values: Vec<ByteArray> = samples
                .iter()
                .map(|sample| names.carriers.get(&sample.flow).unwrap_or(&unnamed).clone())
                .collect();
            into.typed::<ByteArrayType>()
                .write_batch(&values, None, None)?;
        }
        Content::Destination => {
            let host = |sample: &Sample| {
                names
                    .hosts
                    .get(&(sample.flow, sample.destination))
                    .unwrap_or(&unnamed)
                    .clone()
            };
            let values: Vec<ByteArray> = samples.iter().map(host).collect();
            into.typed::<ByteArrayType>()
                .write_batch(&values, None, None)?;
        }
        Content::Blame => {
            let present: Vec<i16> = samples
                .iter()
                .map(|sample| i16::from(sample.blame.is_some()))
                .collect();
            let values: Vec<ByteArray> = samples
                .iter()
                .filter_map(|sample| sample.blame)
                .map(|layer| ByteArray::from(layer.name()))
                .collect();
            into.typed::<ByteArrayType>()
                .write_batch(&values, Some(&present), None)?;
        }
    }
    Ok(())
}
