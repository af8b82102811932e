//! The columns: name, type, and the functions that take a value from a sample and put it back.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};

use crate::sample::{Layer, NO_STAMP, Sample};

/// One column.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) content: Content,
}

type Take<T> = fn(&Sample) -> T;
type Put<T> = fn(&mut Sample, T);

/// The content of a column. A column without a `put` is derived from others and not read back.
pub(super) enum Content {
    Index {
        take: Take<i32>,
        put: Put<i32>,
    },
    Number {
        take: Take<i64>,
        put: Put<i64>,
    },
    /// Nanoseconds; [`NO_STAMP`] is stored as null.
    Stamp {
        take: Take<i64>,
        put: Option<Put<i64>>,
    },
    Flag {
        take: Take<bool>,
        put: Put<bool>,
    },
    Carrier,
    Destination,
    Blame,
}

/// All columns, in the file's order.
pub(super) const COLUMNS: [Column; 28] = [
    Column {
        name: "flow",
        content: Content::Index {
            take: |sample| i32::from(sample.flow),
            put: |sample, flow| sample.flow = narrow(flow),
        },
    },
    Column {
        name: "carrier",
        content: Content::Carrier,
    },
    Column {
        name: "destination",
        content: Content::Destination,
    },
    Column {
        name: "destination_index",
        content: Content::Index {
            take: |sample| i32::from(sample.destination),
            put: |sample, index| sample.destination = narrow(index),
        },
    },
    Column {
        name: "sequence",
        content: Content::Number {
            take: |sample| sample.sequence.cast_signed(),
            put: |sample, sequence| sample.sequence = sequence.cast_unsigned(),
        },
    },
    Column {
        name: "warm_up",
        content: Content::Flag {
            take: |sample| sample.flags.warm_up,
            put: |sample, flag| sample.flags.warm_up = flag,
        },
    },
    Column {
        name: "clock_step",
        content: Content::Flag {
            take: |sample| sample.flags.clock_step,
            put: |sample, flag| sample.flags.clock_step = flag,
        },
    },
    Column {
        name: "waited_for_room",
        content: Content::Flag {
            take: |sample| sample.flags.waited_for_room,
            put: |sample, flag| sample.flags.waited_for_room = flag,
        },
    },
    stamp(
        "due_ns",
        |sample| sample.due_ns,
        |sample, ns| sample.due_ns = ns,
    ),
    stamp(
        "sent_ns",
        |sample| sample.sent_ns,
        |sample, ns| sample.sent_ns = ns,
    ),
    stamp(
        "returned_ns",
        |sample| sample.returned_ns,
        |sample, ns| sample.returned_ns = ns,
    ),
    stamp(
        "reply_transmit_ns",
        |sample| sample.reply_transmit_ns,
        |sample, ns| sample.reply_transmit_ns = ns,
    ),
    stamp(
        "reply_receive_ns",
        |sample| sample.reply_receive_ns,
        |sample, ns| sample.reply_receive_ns = ns,
    ),
    stamp(
        "channel_reply_ns",
        |sample| sample.channel_reply_ns,
        |sample, ns| sample.channel_reply_ns = ns,
    ),
    stamp(
        "kernel_transmit_ns",
        |sample| sample.kernel_transmit_ns,
        |sample, ns| sample.kernel_transmit_ns = ns,
    ),
    stamp(
        "channel_receive_ns",
        |sample| sample.channel_receive_ns,
        |sample, ns| sample.channel_receive_ns = ns,
    ),
    stamp(
        "channel_transmit_ns",
        |sample| sample.channel_transmit_ns,
        |sample, ns| sample.channel_transmit_ns = ns,
    ),
    stamp(
        "kernel_receive_ns",
        |sample| sample.kernel_receive_ns,
        |sample, ns| sample.kernel_receive_ns = ns,
    ),
    stamp(
        "received_ns",
        |sample| sample.received_ns,
        |sample, ns| sample.received_ns = ns,
    ),
    stamp(
        "handled_ns",
        |sample| sample.handled_ns,
        |sample, ns| sample.handled_ns = ns,
    ),
    stamp(
        "execution_ns",
        |sample| sample.execution_ns,
        |sample, ns| sample.execution_ns = ns,
    ),
    Column {
        name: "latency_ns",
        content: Content::Stamp {
            take: latency_ns,
            put: None,
        },
    },
    Column {
        name: "late",
        content: Content::Flag {
            take: |sample| sample.flags.late,
            put: |sample, flag| sample.flags.late = flag,
        },
    },
    Column {
        name: "lost",
        content: Content::Flag {
            take: |sample| sample.flags.lost,
            put: |sample, flag| sample.flags.lost = flag,
        },
    },
    Column {
        name: "late_by_inter_arrival",
        content: Content::Flag {
            take: |sample| sample.flags.late_by_inter_arrival,
            put: |sample, flag| sample.flags.late_by_inter_arrival = flag,
        },
    },
    Column {
        name: "out_of_order",
        content: Content::Flag {
            take: |sample| sample.flags.out_of_order,
            put: |sample, flag| sample.flags.out_of_order = flag,
        },
    },
    Column {
        name: "duplicates",
        content: Content::Index {
            take: |sample| i32::from(sample.flags.duplicates),
            put: |sample, count| sample.flags.duplicates = u8::try_from(count).unwrap_or(u8::MAX),
        },
    },
    Column {
        name: "blame",
        content: Content::Blame,
    },
];

const fn stamp(name: &'static str, take: Take<i64>, put: Put<i64>) -> Column {
    Column {
        name,
        content: Content::Stamp {
            take,
            put: Some(put),
        },
    }
}

fn latency_ns(sample: &Sample) -> i64 {
    if sample.received_ns == NO_STAMP {
        NO_STAMP
    } else {
        sample.received_ns.saturating_sub(sample.due_ns)
    }
}

fn narrow(index: i32) -> u16 {
    u16::try_from(index).unwrap_or(u16::MAX)
}

/// Columns that files of earlier versions lack.
const NEW: [&str; 5] = [
    "clock_step",
    "waited_for_room",
    "reply_transmit_ns",
    "reply_receive_ns",
    "channel_reply_ns",
];

/// Returns the file's schema.
pub(super) fn schema() -> Result<TypePtr, ParquetError> {
    let fields = COLUMNS
        .iter()
        .map(|column| column.field().map(Arc::new))
        .collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder("sample")
        .with_fields(fields)
        .build()
        .map(Arc::new)
}

impl Column {
    /// Returns the physical type, which is also checked when a file is read.
    pub(super) const fn physical(&self) -> Physical {
        match self.content {
            Content::Index { .. } => Physical::INT32,
            Content::Number { .. } | Content::Stamp { .. } => Physical::INT64,
            Content::Flag { .. } => Physical::BOOLEAN,
            Content::Carrier | Content::Destination | Content::Blame => Physical::BYTE_ARRAY,
        }
    }

    /// Returns true if a value may be null.
    pub(super) const fn is_optional(&self) -> bool {
        matches!(self.content, Content::Stamp { .. } | Content::Blame)
    }

    /// Returns true if files of earlier versions lack the column.
    pub(super) fn is_new(&self) -> bool {
        NEW.contains(&self.name)
    }

    fn field(&self) -> Result<Type, ParquetError> {
        let repetition = if self.is_optional() {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        let text = matches!(self.physical(), Physical::BYTE_ARRAY).then_some(LogicalType::String);
        Type::primitive_type_builder(self.name, self.physical())
            .with_repetition(repetition)
            .with_logical_type(text)
            .build()
    }
}

/// Returns the layer that a word in the `blame` column names.
pub(super) fn layer_of(word: &[u8]) -> Option<Layer> {
    Layer::ALL
        .into_iter()
        .find(|layer| layer.name().as_bytes() == word)
}
