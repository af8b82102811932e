//! The JSON Schema of mission files, generated from the structs that mission files are read into.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

use super::file::MissionFile;

/// Returns the schema of a mission file (JSON Schema 2020-12), which is published in `docs/schema/mission-1.json`.
#[must_use]
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> =
        LazyLock::new(|| generate::<MissionFile>("mission-1.json", "Deckwatch mission"));
    &SCHEMA
}

/// Generates the schema of a file from the struct that it is read into.
pub(crate) fn generate<T: JsonSchema>(file: &str, title: &str) -> Value {
    let mut schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<T>();
    RecursiveTransform(without_null).transform(&mut schema);
    schema.insert(
        "$id".to_owned(),
        format!("https://deckwatch.invalid/schema/{file}").into(),
    );
    schema.insert("title".to_owned(), title.into());
    schema.to_value()
}

/// Removes `null` from the schema. TOML has no null: an optional key is simply not required.
fn without_null(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|word| word != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(alternatives)) = object.get_mut("anyOf") {
        alternatives.retain(|alternative| alternative.get("type") != Some(&"null".into()));
        if let [Value::Object(only)] = alternatives.as_slice() {
            let only = only.clone();
            object.remove("anyOf");
            merge(object, only);
        }
    }
}

/// Adds the keys of `more` that `object` does not have yet; its own description stays.
fn merge(object: &mut Map<String, Value>, more: Map<String, Value>) {
    for (key, value) in more {
        object.entry(key).or_insert(value);
    }
}

/// Compares a schema with its published form; with `DECKWATCH_BLESS` writes that anew.
#[cfg(test)]
#[track_caller]
pub(crate) fn assert_published(schema: &Value, file: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema");
    let path = format!("{folder}/{file}-1.json");
    let current = serde_json::to_string_pretty(schema).expect("plain data") + "\n";
    if std::env::var_os("DECKWATCH_BLESS").is_some() {
        std::fs::write(&path, &current).expect("writable");
    }
    let published = std::fs::read_to_string(&path).expect("the published schema");
    let mut lines = published.lines().zip(current.lines());
    let differing = lines.find(|(published, current)| published != current);
    assert!(
        published == current,
        "write it anew with: deckwatch schema {file} > docs/schema/{file}-1.json; {differing:?}"
    );
}

#[cfg(test)]
mod tests {
    use deckwatch_carrier::carriers::CARRIERS;
    use deckwatch_testbed::PRESETS;

    use super::*;

    #[test]
    fn published_schema_is_current() {
        assert_published(schema(), "mission");
    }

    #[test]
    fn schema_knows_neither_null_nor_unexplained_keys() {
        fn walk(value: &Value, path: &str) {
            match value {
                Value::Object(object) => {
                    if let Some(Value::Object(properties)) = object.get("properties") {
                        for (key, property) in properties {
                            assert!(property.get("description").is_some(), "{path}.{key}");
                        }
                    }
                    for (key, value) in object {
                        walk(value, &format!("{path}.{key}"));
                    }
                }
                Value::Array(values) => values.iter().for_each(|value| walk(value, path)),
                Value::Null => panic!("null at {path}"),
                Value::String(word) => assert_ne!(word, "null", "{path}"),
                Value::Bool(_) | Value::Number(_) => {}
            }
        }
        walk(schema(), "");
    }

    #[test]
    fn schema_names_every_carrier_and_network() {
        let schema = schema().to_string();
        let carriers = CARRIERS.iter().map(|carrier| carrier.name());
        for word in carriers.chain(PRESETS.iter().map(|preset| preset.name)) {
            assert!(schema.contains(&format!("\"const\":\"{word}\"")), "{word}");
        }
    }
}
