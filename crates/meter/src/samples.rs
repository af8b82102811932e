//! `samples.parquet`: one row for each message at each destination, for pandas, Polars, DuckDB and our own reports.
//!
//! Stamps are nanoseconds of CLOCK_MONOTONIC, and null if none was taken. `latency_ns` is from due to received, null
//! for a lost message. `blame` is the layer's [name](crate::sample::Layer::name). Times are stored as differences
//! (DELTA_BINARY_PACKED), names in a dictionary: about 30 octets for each message.
//!
//! ```sql
//! -- DuckDB
//! SELECT carrier, destination, count(*), sum(late::int), quantile_cont(latency_ns, 0.99)
//! FROM 'samples.parquet' WHERE NOT warm_up GROUP BY ALL;
//! ```

mod columns;
mod read;
mod write;

use std::path::PathBuf;

pub use read::{SampleReader, read};
pub use write::SampleWriter;

/// Why samples cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SamplesError {
    /// The file cannot be opened, created or renamed.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The Parquet library failed to read or write.
    #[error("{path}: is not a sound sample file ({source})")]
    Format {
        /// The file.
        path: PathBuf,
        /// The library's error.
        source: parquet::errors::ParquetError,
    },
    /// A column that every sample file has is missing, or has another type.
    #[error(
        "{path}: column `{column}` is missing or of another type; it was not written by this program"
    )]
    Column {
        /// The file.
        path: PathBuf,
        /// The column's name.
        column: &'static str,
    },
    /// A row group claims more rows than the maximum.
    #[error("{path}: a row group claims {rows} rows, more than the {max} that any has", max = crate::limits::ROW_GROUP_ROWS_MAX)]
    RowGroupTooLarge {
        /// The file.
        path: PathBuf,
        /// The number of rows claimed.
        rows: i64,
    },
}

#[cfg(test)]
pub(crate) mod tests;
