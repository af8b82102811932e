//! A whole store as lines of JSON, for people and for backups.
//!
//! The first line has the counts, so that a file that was cut short is seen. Then comes each context, with its bindings
//! behind it:
//!
//! ```json
//! {"deckwatch_names":1,"contexts":2,"bindings":2,"next_context":2}
//! {"context":0,"path":""}
//! {"in":0,"id":"fleet","kind":"","context":1}
//! {"context":1,"path":"fleet"}
//! {"in":1,"id":"alpha","kind":"ship","object":"IOR:..."}
//! ```

use std::io::{self, Write};

use deckwatch_store::redb::{ReadTransaction, ReadableTable as _};
use serde::{Deserialize, Serialize};

use super::rows::{BINDINGS, BindingRow, CONTEXTS, ContextRow, Target, WHOLE};
use super::tree::Tree;
use super::{FORMAT, Store, StoreError, Whole};

/// The form of the lines.
pub(super) const LINES_FORMAT: u32 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub(super) deckwatch_names: u32,
    pub(super) contexts: u64,
    pub(super) bindings: u64,
    pub(super) next_context: u64,
}

/// A context.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContextLine {
    pub(super) context: u64,
    /// For people: an import does not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) path: Option<String>,
    #[serde(default)]
    pub(super) made_s: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) maker: String,
    #[serde(default)]
    pub(super) was_bound: bool,
}

/// A binding: one of `context`, `foreign_context` and `object`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BindingLine {
    #[serde(rename = "in")]
    pub(super) within: u64,
    pub(super) id: String,
    #[serde(default)]
    pub(super) kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) maker: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) context: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) foreign_context: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) object: Option<String>,
}

/// How much was exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Contexts, root included.
    pub contexts: u64,
    /// Bindings.
    pub bindings: u64,
}

/// Why a store was not exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The lines cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

impl From<deckwatch_store::redb::Error> for ExportError {
    fn from(error: deckwatch_store::redb::Error) -> Self {
        Self::Store(error.into())
    }
}

impl Store {
    /// Writes all contexts and bindings that are whole, as they are at one moment.
    ///
    /// # Errors
    /// When the store cannot be read or the lines cannot be written.
    pub fn export(&self, out: &mut dyn Write) -> Result<Exported, ExportError> {
        self.database.look(|read| export(read, out))
    }
}

fn export(read: &ReadTransaction, out: &mut dyn Write) -> Result<Exported, ExportError> {
    let contexts = contexts(read)?;
    let tree = Tree::read(read)?;
    let mut exported = Exported {
        contexts: contexts.len() as u64,
        bindings: 0,
    };
    each_binding(read, contexts.iter().map(|line| line.context), |_| {
        exported.bindings += 1;
        Ok(())
    })?;
    let last = contexts.last().map_or(0, |line| line.context + 1);
    let table = read.open_table(WHOLE).map_err(StoreError::from)?;
    let whole = table.get(FORMAT).map_err(StoreError::from)?;
    let whole = whole.and_then(|row| Whole::parse(row.value()));
    let head = Head {
        deckwatch_names: LINES_FORMAT,
        contexts: exported.contexts,
        bindings: exported.bindings,
        next_context: whole.map_or(last, |whole| whole.next_context.max(last)),
    };
    write_line(out, &head)?;
    for mut line in contexts {
        let number = line.context;
        line.path = tree.path(number);
        write_line(out, &line)?;
        each_binding(read, [number], |binding| write_line(out, &binding))?;
    }
    out.flush()?;
    Ok(exported)
}

fn write_line(out: &mut dyn Write, line: &impl Serialize) -> Result<(), ExportError> {
    serde_json::to_writer(&mut *out, line).map_err(io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

/// Returns all contexts. Of a damaged one the number is left.
fn contexts(read: &ReadTransaction) -> Result<Vec<ContextLine>, StoreError> {
    let mut lines = Vec::new();
    for row in read.open_table(CONTEXTS)?.iter()? {
        let (number, row) = row?;
        let number = number.value();
        let context = ContextRow::parse(number, row.value()).map(|(context, _)| context);
        let context = context.unwrap_or_default();
        lines.push(ContextLine {
            context: number,
            path: None,
            made_s: context.made_s,
            maker: context.maker,
            was_bound: context.was_bound,
        });
    }
    Ok(lines)
}

/// Calls `each` with each binding of some contexts that is whole.
fn each_binding(
    read: &ReadTransaction,
    contexts: impl IntoIterator<Item = u64>,
    mut each: impl FnMut(BindingLine) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let table = read.open_table(BINDINGS).map_err(StoreError::from)?;
    for context in contexts {
        let rows = table.range((context, "", "")..).map_err(StoreError::from)?;
        for row in rows {
            let (key, value) = row.map_err(StoreError::from)?;
            let key = key.value();
            // The key of a damaged row may be of any context: rows behind it are still of this one.
            let Some((binding, _)) = BindingRow::parse(key, value.value()) else {
                continue;
            };
            if key.0 > context {
                break;
            }
            if key.0 == context {
                each(line(key, binding))?;
            }
        }
    }
    Ok(())
}

fn line((within, id, kind): (u64, &str, &str), binding: BindingRow) -> BindingLine {
    let mut line = BindingLine {
        within,
        id: id.to_owned(),
        kind: kind.to_owned(),
        maker: binding.maker,
        ..BindingLine::default()
    };
    match binding.target {
        Target::Context(number) => line.context = Some(number),
        Target::ForeignContext(ior) => line.foreign_context = Some(ior),
        Target::Object(ior) => line.object = Some(ior),
    }
    line
}
