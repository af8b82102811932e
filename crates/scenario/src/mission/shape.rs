//! Validates a parsed TOML table against the mission's JSON Schema. One reading finds all departures, each with its
//! place.
//!
//! Supports the keywords that the generated schema uses: `$ref`, `type`, `properties`, `required`,
//! `additionalProperties`, `items`, `oneOf` of constants, the bounds of numbers, lengths, and the two formats of
//! [`super::text`]. A test refuses a schema with any other keyword.

use std::ops::Range;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::Faults;
use super::text::{BUDGET_FORMAT, BudgetText, DURATION_FORMAT, DurationText};

/// Reports every departure of `table` from `schema`. `what` names the file to the user, for example "the mission".
pub(crate) fn check(schema: &Value, table: &Spanned<DeTable<'_>>, what: &str, faults: &mut Faults) {
    let mut walk = Walk {
        root: schema,
        faults,
    };
    walk.table(schema, table.get_ref(), table.span(), what);
}

struct Walk<'s, 'f> {
    root: &'s Value,
    faults: &'f mut Faults,
}

impl<'s> Walk<'s, '_> {
    fn resolve(&self, schema: &'s Value) -> &'s Value {
        schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| self.root.pointer(reference.strip_prefix('#')?))
            .unwrap_or(schema)
    }

    /// Checks a table. `what` names it to the user, for example "a flow".
    fn table(&mut self, schema: &'s Value, table: &DeTable<'_>, place: Range<usize>, what: &str) {
        let properties = object_at(schema, "properties");
        let keys = || {
            properties
                .into_iter()
                .flat_map(Map::keys)
                .map(String::as_str)
        };
        // A misspelt key is reported once, as unknown, and not as missing too.
        let mut meant = Vec::new();
        for (key, value) in table {
            let name: &str = key.get_ref();
            if let Some(property) = properties.and_then(|properties| properties.get(name)) {
                self.value(property, value, &format!("`{name}`"));
            } else if let Some(each) = schema.get("additionalProperties").filter(|v| v.is_object())
            {
                self.value(each, value, &format!("`{name}`"));
            } else {
                let absent = keys().filter(|key| !table.contains_key(*key));
                let help = match nearest(name, absent) {
                    Some(near) => {
                        meant.push(near);
                        format!("write `{near}`")
                    }
                    None => format!("remove it; the keys of {what} are {}", list(keys())),
                };
                self.faults
                    .report(key.span(), format!("`{name}` is not a key of {what}"), help);
            }
        }
        let absent = |key: &&str| !table.contains_key(*key) && !meant.contains(key);
        for missing in words_at(schema, "required").filter(absent) {
            let Some(property) = properties.and_then(|properties| properties.get(missing)) else {
                continue;
            };
            let example = example(self.resolve(property), property)
                .map_or(String::new(), |value| {
                    format!(", for example: {missing} = {}", as_toml(value))
                });
            let meaning = property
                .get("description")
                .and_then(Value::as_str)
                .unwrap_or(missing);
            self.faults.report(
                place.clone(),
                format!("{what} needs `{missing}`: {}", lower_first(meaning)),
                format!("add `{missing}`{example}"),
            );
        }
    }

    /// Checks a value. `what` names it to the user, for example "`deadline`".
    fn value(&mut self, property: &'s Value, value: &Spanned<DeValue<'_>>, what: &str) {
        let schema = self.resolve(property);
        let fault = if let Some(words) = constants(schema) {
            word_fault(&words, value.get_ref())
        } else {
            match (type_of(schema), value.get_ref()) {
                ("object", DeValue::Table(table)) => {
                    let of = title(self.root, property, what);
                    return self.table(schema, table, value.span(), &of);
                }
                ("array", DeValue::Array(elements)) => {
                    if let Some(items) = schema.get("items") {
                        for element in elements.iter() {
                            self.value(items, element, &format!("an element of {what}"));
                        }
                    }
                    length_fault(schema, elements.len(), "element")
                }
                ("string", DeValue::String(text)) => text_fault(schema, text)
                    .or_else(|| length_fault(schema, text.chars().count(), "character")),
                ("integer", DeValue::Integer(number)) => {
                    let number = i128::from_str_radix(number.as_str(), number.radix()).ok();
                    range_fault(schema, number.map(|number| number as f64))
                }
                ("number", DeValue::Integer(number)) => {
                    let number = i128::from_str_radix(number.as_str(), number.radix()).ok();
                    range_fault(schema, number.map(|number| number as f64))
                }
                ("number", DeValue::Float(number)) => range_fault(
                    schema,
                    number.as_str().parse().ok().filter(|n: &f64| n.is_finite()),
                ),
                ("boolean", DeValue::Boolean(_)) => None,
                (expected, found) => Some(type_fault(schema, expected, found)),
            }
        };
        if let Some(Departure { fact, help }) = fault {
            let help = help.unwrap_or_else(|| match example(schema, property) {
                Some(value) => format!("write, for example, {}", as_toml(value)),
                None => "see what `deckwatch schema` prints".to_owned(),
            });
            self.faults
                .report(value.span(), format!("{what} {fact}"), help);
        }
    }
}

/// A departure of a value from the schema: `fact` completes a sentence that begins with the value's name. `help`, if
/// present, replaces the schema's example as advice.
struct Departure {
    fact: String,
    help: Option<String>,
}

fn type_fault(schema: &Value, expected: &str, found: &DeValue<'_>) -> Departure {
    let help = match (expected, found) {
        ("array", DeValue::String(text)) => Some(format!("write it in brackets: [\"{text}\"]")),
        ("array", DeValue::Integer(number)) => {
            Some(format!("write it in brackets: [{}]", number.as_str()))
        }
        ("integer" | "number", DeValue::String(text))
            if text.replace('_', "").parse::<f64>().is_ok() =>
        {
            Some(format!("write it without quotes: {text}"))
        }
        ("string", DeValue::Integer(number)) if format_of(schema) == Some(DURATION_FORMAT) => {
            Some(format!(
                "write it in quotes and with a unit, for example \"{}ms\"",
                number.as_str()
            ))
        }
        ("string", DeValue::Integer(number)) => {
            Some(format!("write it in quotes: \"{}\"", number.as_str()))
        }
        _ => None,
    };
    Departure {
        fact: format!(
            "must be {}, and is {}",
            expectation(schema, expected),
            kind(found)
        ),
        help,
    }
}

fn word_fault(words: &[&str], found: &DeValue<'_>) -> Option<Departure> {
    let DeValue::String(text) = found else {
        let fact = format!("must be one of {}, and is {}", list(words), kind(found));
        return Some(Departure {
            fact,
            help: Some(format!("write, for example, \"{}\"", words[0])),
        });
    };
    if words.contains(&text.as_ref()) {
        return None;
    }
    let help = nearest(text, words.iter().copied()).map(|near| format!("write \"{near}\""));
    Some(Departure {
        fact: format!("must be one of {}", list(words)),
        help: Some(help.unwrap_or_else(|| format!("write, for example, \"{}\"", words[0]))),
    })
}

fn text_fault(schema: &Value, text: &str) -> Option<Departure> {
    let error = match format_of(schema)? {
        DURATION_FORMAT => text.parse::<DurationText>().err()?,
        BUDGET_FORMAT => text.parse::<BudgetText>().err()?,
        _ => return None,
    };
    let help = match format_of(schema)? {
        DURATION_FORMAT if text.replace('_', "").parse::<f64>().is_ok() => {
            Some(format!("add a unit, for example \"{text}ms\""))
        }
        _ => None,
    };
    Some(Departure {
        fact: format!("must be {}", error.0),
        help,
    })
}

fn range_fault(schema: &Value, number: Option<f64>) -> Option<Departure> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let sound = number.is_some_and(|number| {
        bound("minimum").is_none_or(|minimum| number >= minimum)
            && bound("exclusiveMinimum").is_none_or(|minimum| number > minimum)
            && bound("maximum").is_none_or(|maximum| number <= maximum)
    });
    (!sound).then(|| Departure {
        fact: format!("must be {}", expectation(schema, type_of(schema))),
        help: None,
    })
}

fn length_fault(schema: &Value, count: usize, unit: &str) -> Option<Departure> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
    let (minimum, maximum) = (
        bound("minLength").or(bound("minItems")).unwrap_or(0),
        bound("maxLength").or(bound("maxItems")).unwrap_or(u64::MAX),
    );
    let count = count as u64;
    if count < minimum {
        return Some(Departure {
            fact: format!("must have at least {minimum} {unit}"),
            help: None,
        });
    }
    (count > maximum).then(|| Departure {
        fact: format!("has {count} {unit}s; at most {maximum} are allowed"),
        help: Some("make it shorter".to_owned()),
    })
}

/// Returns what the schema expects, in words.
fn expectation(schema: &Value, expected: &str) -> String {
    let noun = match (expected, format_of(schema)) {
        ("string", Some(DURATION_FORMAT)) => return "a duration in quotes".to_owned(),
        ("string", Some(BUDGET_FORMAT)) => return "a late budget in quotes".to_owned(),
        ("string", _) => return "a string in quotes".to_owned(),
        ("array", _) => return "an array in brackets".to_owned(),
        ("object", _) => return "a table".to_owned(),
        ("boolean", _) => return "true or false".to_owned(),
        ("integer", _) => "an integer",
        _ => "a number",
    };
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    match (
        bound("minimum"),
        bound("exclusiveMinimum"),
        bound("maximum"),
    ) {
        (Some(low), _, Some(high)) => format!("{noun} from {low} to {high}"),
        (_, Some(low), Some(high)) => format!("{noun} above {low} and up to {high}"),
        (Some(low), _, None) => format!("{noun} of at least {low}"),
        _ => noun.to_owned(),
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

/// Returns the name of a table in "`x` is not a key of ...": that of its definition, if it has one.
fn title(root: &Value, property: &Value, what: &str) -> String {
    let name = property
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| reference.rsplit('/').next());
    match name {
        Some(name) if root.pointer(&format!("/$defs/{name}")).is_some() => {
            let article = if name.starts_with(['A', 'E', 'I', 'O', 'U']) {
                "an"
            } else {
                "a"
            };
            format!("{article} {}", name.to_lowercase())
        }
        _ => what.to_owned(),
    }
}

fn type_of(schema: &Value) -> &str {
    schema
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("object")
}

fn format_of(schema: &Value) -> Option<&str> {
    schema.get("format").and_then(Value::as_str)
}

fn object_at<'v>(schema: &'v Value, key: &str) -> Option<&'v Map<String, Value>> {
    schema.get(key).and_then(Value::as_object)
}

fn words_at<'v>(schema: &'v Value, key: &str) -> impl Iterator<Item = &'v str> {
    schema
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Returns the words of an enumeration, or `None` if the schema is no enumeration.
fn constants(schema: &Value) -> Option<Vec<&str>> {
    let alternatives = schema.get("oneOf")?.as_array()?;
    alternatives
        .iter()
        .map(|alternative| alternative.get("const")?.as_str())
        .collect()
}

fn example<'v>(schema: &'v Value, property: &'v Value) -> Option<&'v Value> {
    let first = |value: &'v Value| value.get("examples")?.as_array()?.first();
    first(property).or_else(|| first(schema))
}

fn as_toml(value: &Value) -> String {
    match value {
        Value::Array(elements) => format!(
            "[{}]",
            elements.iter().map(as_toml).collect::<Vec<_>>().join(", ")
        ),
        Value::Object(entries) => {
            let entries: Vec<_> = entries
                .iter()
                .map(|(key, value)| format!("{key} = {}", as_toml(value)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
        plain => plain.to_string(),
    }
}

pub(crate) fn list<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    words
        .into_iter()
        .map(|word| word.as_ref().to_owned())
        .collect::<Vec<_>>()
        .join(", ")
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| {
        first.to_lowercase().chain(characters).collect()
    })
}

/// Returns the known word that is most similar to a mistyped one.
pub(crate) fn nearest<'w>(word: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let likeness = |candidate: &str| {
        let (word, candidate) = (word.to_lowercase(), candidate.to_lowercase());
        if strsim::osa_distance(&word, &candidate) == 1 {
            return 1.0;
        }
        strsim::jaro_winkler(&word, &candidate)
    };
    words
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|&(likeness, _)| likeness > LIKENESS_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Least similarity of a suggested word.
const LIKENESS_MIN: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;

    /// Keywords of JSON Schema that `Walk` reads, and those that do not constrain a value.
    const UNDERSTOOD: [&str; 17] = [
        "$ref",
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "oneOf",
        "const",
        "format",
        "pattern",
        "minimum",
        "exclusiveMinimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
    ];
    const SILENT: [&str; 6] = [
        "description",
        "examples",
        "title",
        "$id",
        "$schema",
        "$defs",
    ];

    fn check_words(schema: &Value) {
        let object = schema.as_object().expect("a schema is an object");
        for (word, value) in object {
            let word = word.as_str();
            assert!(
                UNDERSTOOD.contains(&word) || SILENT.contains(&word),
                "{word}"
            );
            match (word, value) {
                ("properties" | "$defs", Value::Object(map)) => map.values().for_each(check_words),
                ("items", each) => check_words(each),
                ("additionalProperties", each) if each.is_object() => check_words(each),
                ("oneOf", Value::Array(each)) => each.iter().for_each(check_words),
                ("pattern", _) => {
                    let format = object.get("format").and_then(Value::as_str);
                    assert!(
                        matches!(format, Some(DURATION_FORMAT | BUDGET_FORMAT)),
                        "a pattern that is not checked"
                    );
                }
                _ => {}
            }
        }
    }

    #[test]
    fn the_schema_says_nothing_that_is_not_checked() {
        check_words(crate::mission::schema());
    }

    #[test]
    fn the_nearest_word_is_found_across_letters_swapped_left_out_and_added() {
        let words = ["RTS", "SONAR", "deadline", "gigabit-ethernet"];
        let near = |word| nearest(word, words.into_iter());
        assert_eq!(near("RST"), Some("RTS"));
        assert_eq!(near("SONR"), Some("SONAR"));
        assert_eq!(near("deadlines"), Some("deadline"));
        assert_eq!(near("gigabit"), Some("gigabit-ethernet"));
        assert_eq!(near("periscope"), None);
    }
}
