//! What the command line gives and the file need not: a carrier for each flow.

use std::sync::LazyLock;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::schema::schema;

/// Returns the schema of a mission file whose flows need no `carrier`.
pub(super) fn schema_without_carrier() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        let mut schema = schema().clone();
        if let Some(Value::Array(required)) = schema.pointer_mut("/$defs/Flow/required") {
            required.retain(|key| key != CARRIER);
        }
        schema
    });
    &SCHEMA
}

/// Gives each flow without a carrier this one, so that it is read as if the file had it.
pub(super) fn give_carrier<'t>(table: &mut Spanned<DeTable<'t>>, name: &'t str) {
    let flows = table.get_mut().get_mut("flows");
    let Some(DeValue::Array(flows)) = flows.map(Spanned::get_mut) else {
        return;
    };
    for flow in flows.iter_mut() {
        if let DeValue::Table(flow) = flow.get_mut()
            && !flow.contains_key(CARRIER)
        {
            flow.insert(
                Spanned::new(0..0, CARRIER.into()),
                Spanned::new(0..0, DeValue::String(name.into())),
            );
        }
    }
}

const CARRIER: &str = "carrier";
