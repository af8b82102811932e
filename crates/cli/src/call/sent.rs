//! A hex dump of a request's parameters, with name, type and value beside the octets.

use anyhow::anyhow;
use deckwatch_cdr::typecode::Kind;
use deckwatch_cdr::value::{Value, write_value};
use deckwatch_cdr::{ByteOrder, TypeCode, Write as _, Writer};
use deckwatch_idl::notation::Notation;
use deckwatch_orb::ObjectRef;

use super::signature::{Signature, codec};
use crate::output::{out, outln};

/// Octets in one row of the dump.
const ROW: usize = 12;
/// Maximum number of rows shown for one value.
const ROWS_MAX: usize = 8;

/// Prints where a request would go and what its body would hold; sends nothing.
pub(super) fn show(
    notation: &Notation<'_>,
    target: &ObjectRef,
    signature: &Signature,
    values: &[Value],
) -> anyhow::Result<()> {
    out!("{}", target.ior().explain())?;
    let order = if ByteOrder::NATIVE == ByteOrder::Little {
        "little"
    } else {
        "big"
    };
    let reply = if signature.oneway {
        "no reply"
    } else {
        "a reply"
    };
    outln!(
        "\noperation {}, {reply} expected; body ({order}-endian, from a multiple of 8):",
        signature.wire_name
    )?;
    let mut octets = Vec::new();
    let mut rows = Rows {
        notation,
        w: Writer::new(&mut octets).with_codec(codec()),
        marks: Vec::new(),
    };
    for (parameter, value) in signature.sent().zip(values) {
        rows.part(&parameter.name, &parameter.code, value)?;
    }
    if signature.context {
        0_u32.write(&mut rows.w)?;
        rows.mark("context: no properties".to_owned());
    }
    let marks = rows.marks;
    let mut at = 0;
    for (end, label) in marks {
        row(&octets, at, end, &label)?;
        at = end;
    }
    outln!("{} octets", octets.len())?;
    Ok(())
}

struct Rows<'a, 'b> {
    notation: &'a Notation<'a>,
    w: Writer<'b>,
    /// End position and label of each value, in the order of the octets.
    marks: Vec<(usize, String)>,
}

impl Rows<'_, '_> {
    fn part(&mut self, name: &str, code: &TypeCode, value: &Value) -> anyhow::Result<()> {
        let plain = code.unaliased();
        match value {
            Value::Struct(parts) if plain.kind() == Kind::Struct => {
                for (index, part) in parts.iter().enumerate() {
                    let member = plain.member_type(index).unwrap_or_else(TypeCode::null);
                    let step = plain.member_name(index).unwrap_or("");
                    self.part(&format!("{name}.{step}"), &member, part)?;
                }
            }
            Value::Elements(parts) => {
                if plain.kind() == Kind::Sequence {
                    (parts.len() as u32).write(&mut self.w)?;
                    self.mark(format!("{name}: {} elements", parts.len()));
                }
                let element = plain.content_type().unwrap_or_else(TypeCode::null);
                for (index, part) in parts.iter().enumerate() {
                    self.part(&format!("{name}[{index}]"), &element, part)?;
                }
            }
            _ => {
                write_value(code, value, &mut self.w)?;
                let printed = self
                    .notation
                    .print(code, value)
                    .map_err(|why| anyhow!(why))?;
                let text: String = printed.text(usize::MAX).chars().take(60).collect();
                self.mark(format!("{name} ({}) {text}", self.notation.type_text(code)));
            }
        }
        Ok(())
    }

    fn mark(&mut self, label: String) {
        self.marks.push((self.w.position(), label));
    }
}

fn row(octets: &[u8], start: usize, end: usize, label: &str) -> anyhow::Result<()> {
    let rows = octets[start..end].chunks(ROW);
    let count = rows.len();
    for (index, row) in rows.take(ROWS_MAX).enumerate() {
        let hex: Vec<String> = row.iter().map(|octet| format!("{octet:02x}")).collect();
        let label = if index == 0 { label } else { "" };
        let line = format!(
            "{:6}  {:width$}  {label}",
            start + index * ROW,
            hex.join(" "),
            width = ROW * 3 - 1
        );
        outln!("{}", line.trim_end())?;
    }
    if count > ROWS_MAX {
        outln!("        ... {} octets more", end - start - ROWS_MAX * ROW)?;
    }
    Ok(())
}
