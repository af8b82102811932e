//! The schema of names that are listed in other crates: carriers and networks.

use std::borrow::Cow;

use deckwatch_carrier::carriers::{CARRIERS, found};
use deckwatch_testbed::PRESETS;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// The name of a carrier.
pub(super) struct CarrierWord;

impl JsonSchema for CarrierWord {
    fn schema_name() -> Cow<'static, str> {
        "Carrier".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words = CARRIERS
            .iter()
            .map(|carrier| (carrier.name(), carrier.summary()));
        // Those that are not built too: reading the carrier then says how to build it.
        let adapters = found().adapters.adapters.iter();
        let adapters =
            adapters.map(|adapter| (&*adapter.manifest.name, &*adapter.manifest.summary));
        one_of("What messages go over.", words.chain(adapters))
    }
}

/// The name of a network.
pub(crate) struct NetworkWord;

impl JsonSchema for NetworkWord {
    fn schema_name() -> Cow<'static, str> {
        "NetworkPreset".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words = PRESETS.iter();
        one_of(
            "A network by name.",
            words.map(|preset| (preset.name, preset.summary)),
        )
    }
}

fn one_of(description: &str, words: impl Iterator<Item = (&'static str, &'static str)>) -> Schema {
    let words: Vec<Value> = words
        .map(|(word, summary)| json!({"const": word, "description": summary, "type": "string"}))
        .collect();
    json_schema!({"description": description, "oneOf": words})
}
