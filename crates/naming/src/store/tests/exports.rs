//! Exports: what is written is read back whole, and what is wrong is located.

use super::*;

/// A reference that is one.
const IOR: &str = "IOR:000000000000000100000000000000000000000000000000";

pub(super) fn exported(store: &Store) -> String {
    let mut text = Vec::new();
    store.export(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn imported(text: &str, into: Into) -> Result<(Store, Imported), ImportError> {
    let store = Store::in_memory().unwrap();
    let imported = store.import(text.as_bytes(), into)?;
    Ok((store, imported))
}

/// A store with names that are hard to write: all controls, quotes, the longest, those of other scripts.
fn hostile() -> Store {
    let store = Store::in_memory().unwrap();
    let long = "\u{1}".repeat(limits::COMPONENT_SIZE_MAX);
    let controls: String = (0..=0x9f).filter_map(char::from_u32).collect();
    let names = [
        ("", ""),
        ("", "kind"),
        ("a.b/c\\", "d"),
        ("\"{}[],:", "'"),
        (controls.as_str(), "\u{202e}\u{feff}"),
        ("\u{10ffff}", "\u{0}"),
        (long.as_str(), long.as_str()),
    ];
    let reference = Target::Object(IOR.to_owned());
    for (id, kind) in names {
        let inner = store.bind_new_context(ROOT, id, kind, "10.0.0.1").unwrap();
        let foreign = Target::ForeignContext(IOR.to_owned());
        let bind = |context, id, target: &Target| {
            let made = BindingRow {
                maker: "uid 7".to_owned(),
                target: target.clone(),
            };
            store.bind(context, id, kind, &made, false).unwrap();
        };
        bind(inner, "object", &reference);
        bind(inner, "foreign", &foreign);
        bind(inner, "up", &Target::Context(ROOT));
    }
    // One that no name leads to, one that is gone but bound, and a number that is not given again.
    store.create_context("", &never).unwrap();
    let gone = store.bind_new_context(ROOT, "gone", "", "").unwrap();
    store.destroy_context(gone).unwrap();
    store
}

#[test]
fn a_store_of_hostile_names_is_read_back_octet_by_octet() {
    let store = hostile();
    let text = exported(&store);
    assert!(text.lines().all(|line| line.starts_with('{')));
    let (copy, counts) = imported(&text, Into::Empty).unwrap();
    assert_eq!(exported(&copy), text);
    assert_eq!((counts.contexts, counts.bindings), (8, 29));
    assert_eq!(copy.contexts().unwrap(), store.contexts().unwrap());
    assert_eq!(
        copy.create_context("", &never).unwrap(),
        store.create_context("", &never).unwrap(),
        "numbers are not given twice"
    );
}

#[test]
fn an_export_is_readable() {
    let store = Store::in_memory().unwrap();
    let fleet = store.bind_new_context(ROOT, "fleet", "", "").unwrap();
    store
        .bind(fleet, "alpha", "ship", &binding(&object(IOR)), false)
        .unwrap();
    let text = exported(&store);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        r#"{"deckwatch_names":1,"contexts":2,"bindings":2,"next_context":2}"#
    );
    assert!(lines[1].starts_with(r#"{"context":0,"path":"","made_s":"#));
    assert_eq!(lines[2], r#"{"in":0,"id":"fleet","kind":"","context":1}"#);
    assert!(lines[3].starts_with(r#"{"context":1,"path":"fleet","made_s":"#));
    assert!(lines[3].ends_with(r#","was_bound":true}"#));
    let object = format!(r#"{{"in":1,"id":"alpha","kind":"ship","object":"{IOR}"}}"#);
    assert_eq!(lines[4], object);
    assert_eq!(lines.len(), 5);
    let made = BindingRow {
        maker: "uid 7".to_owned(),
        target: Target::Context(ROOT),
    };
    store.bind(fleet, "up", "", &made, false).unwrap();
    let up = r#"{"in":1,"id":"up","kind":"","maker":"uid 7","context":0}"#;
    assert_eq!(exported(&store).lines().last(), Some(up));
}

#[test]
fn lines_that_are_wrong_are_located_and_nothing_is_imported() {
    let head = |contexts, bindings| {
        format!(
            r#"{{"deckwatch_names":1,"contexts":{contexts},"bindings":{bindings},"next_context":9}}"#
        )
    };
    let root = r#"{"context":0}"#;
    let bound = format!(r#"{{"in":0,"id":"a","object":"{IOR}"}}"#);
    let cases = [
        (
            String::new(),
            "line 1: it is empty; an export begins with its counts",
        ),
        ("IOR:00".to_owned(), "line 1: expected value at column 1"),
        (
            head(1, 0).replace("names\":1", "names\":7"),
            "line 1: format 7 of an export; this program reads 1",
        ),
        (
            head(1, 1) + "\n" + root,
            "line 3: the file ends with 1 contexts and 0 names; line 1 counts 1 and 1",
        ),
        (
            format!("{}\n{root}\n{root}", head(1, 0)),
            "line 3: context 0 is there twice",
        ),
        (
            format!("{}\n{root}\n{bound}\n{bound}", head(1, 2)),
            "line 4: `a` in context 0 is there twice",
        ),
        (
            format!("{}\n{bound}", head(1, 1)),
            "line 2: context 0 has no line before this one",
        ),
        (
            format!("{}\n{root}\n{{\"in\":0,\"id\":\"a\"}}", head(1, 1)),
            "line 3: a binding has one of `context`, `foreign_context` and `object`",
        ),
        (
            format!("{}\n{{\"context\":9}}", head(1, 1)),
            "line 2: context 9 is not below the `next_context` of line 1",
        ),
        (
            format!(
                "{}\n{root}\n{}",
                head(1, 1),
                bound.replace("IOR:", "IOR:zz")
            ),
            "line 3: its reference is no IOR: ",
        ),
        (
            format!(
                "{}\n{root}\n{}",
                head(1, 1),
                bound.replace("\"in\"", "\"colour\":1,\"in\"")
            ),
            "line 3: unknown field `colour`",
        ),
    ];
    for (text, message) in cases {
        let store = Store::in_memory().unwrap();
        let told = store.import(text.as_bytes(), Into::Empty).unwrap_err();
        let told = told.to_string();
        assert!(told.starts_with(message), "{told}\ninstead of\n{message}");
        assert_eq!(store.list(ROOT, None, 9).unwrap(), [], "{message}");
    }
    let endless = "x".repeat(100 << 10);
    let told = imported(&endless, Into::Empty).unwrap_err().to_string();
    assert_eq!(told, "line 1: it is longer than any line of an export");
}

#[test]
fn an_export_that_ends_within_a_character_is_located() {
    let text = exported(&hostile());
    let wide = text.char_indices().find(|(_, it)| it.len_utf8() > 1);
    let (at, _) = wide.expect("a letter of another script");
    let store = Store::in_memory().unwrap();
    let refused = store.import(&text.as_bytes()[..=at], Into::Empty);
    let Err(ImportError::Line { line, fault }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(line, text[..at].lines().count());
    assert_eq!(fault, "it is not UTF-8");
}

#[test]
fn an_import_needs_an_empty_store_or_merges() {
    let text = exported(&hostile());
    let store = Store::in_memory().unwrap();
    let fleet = store.bind_new_context(ROOT, "", "kind", "").unwrap();
    store
        .bind(fleet, "own", "", &binding(&object(IOR)), false)
        .unwrap();
    let refused = store.import(text.as_bytes(), Into::Empty).unwrap_err();
    assert!(matches!(refused, ImportError::HasNames));
    let first = store.import(text.as_bytes(), Into::Merge).unwrap();
    // The context of the same name is the same; the name of a context that is gone is left out.
    assert_eq!((first.contexts, first.bindings, first.kept), (7, 27, 1));
    assert_eq!(first.left_out, 1);
    assert_eq!(store.lookup(fleet, "own", "").unwrap(), Some(object(IOR)));
    assert_eq!(
        store.lookup(fleet, "object", "kind").unwrap(),
        Some(object(IOR))
    );
    let again = store.import(text.as_bytes(), Into::Merge).unwrap();
    assert_eq!((again.bindings, again.kept), (0, 28));
    let (_, report) = (store.contexts(), store.database.look(check::check).unwrap());
    assert_eq!(report.damaged, 0, "{report}");
}

#[test]
fn a_merge_that_would_change_a_name_changes_nothing() {
    let text = exported(&hostile());
    let store = Store::in_memory().unwrap();
    store
        .bind(ROOT, "", "kind", &binding(&object(IOR)), false)
        .unwrap();
    let told = store.import(text.as_bytes(), Into::Merge).unwrap_err();
    let told = told.to_string();
    assert!(
        told.ends_with("`.kind` is bound to something else in the store"),
        "{told}"
    );
    assert_eq!(store.list(ROOT, None, 9).unwrap().len(), 1);
}

/// An export of the root, of contexts without a name, and of names in the root.
fn export_of(contexts: u64, names: u64) -> String {
    let mut text = format!(
        r#"{{"deckwatch_names":1,"contexts":{contexts},"bindings":{names},"next_context":9}}"#
    );
    for context in 0..contexts {
        text += &format!("\n{{\"context\":{context}}}");
    }
    for name in 0..names {
        text += &format!("\n{{\"in\":0,\"id\":\"{name}\",\"object\":\"{IOR}\"}}");
    }
    text
}

#[test]
fn a_context_or_a_name_is_enough_to_refuse_an_export_as_a_whole() {
    let with_context = Store::in_memory().unwrap();
    with_context.create_context("", &never).unwrap();
    let with_name = Store::in_memory().unwrap();
    let bound = binding(&object(IOR));
    with_name.bind(ROOT, "own", "", &bound, false).unwrap();
    for store in [with_context, with_name] {
        let before = exported(&store);
        let refused = store.import(export_of(1, 1).as_bytes(), Into::Empty);
        assert!(matches!(refused, Err(ImportError::HasNames)));
        assert_eq!(exported(&store), before);
    }
}

#[test]
fn an_export_is_refused_if_the_store_has_no_room_for_it() {
    // There is room for two contexts and three names.
    for (contexts, names, fits) in [
        (2, 3, true),
        (3, 3, false),
        (2, 4, false),
        (4, 1, false),
        (1, 5, false),
    ] {
        let (store, text) = (small(), export_of(contexts, names));
        match store.import(text.as_bytes(), Into::Empty) {
            Ok(imported) => assert!(fits && imported.bindings == names),
            Err(ImportError::Store(StoreError::Full)) => assert!(!fits, "{contexts} {names}"),
            Err(other) => panic!("{other}"),
        }
    }
    let store = small();
    let bound = binding(&object(IOR));
    store.bind(ROOT, "own", "", &bound, false).unwrap();
    let merged = store.import(export_of(1, 3).as_bytes(), Into::Merge);
    assert!(matches!(merged, Err(ImportError::Store(StoreError::Full))));
    assert_eq!(store.list(ROOT, None, 9).unwrap().len(), 1);
    store
        .import(export_of(1, 2).as_bytes(), Into::Merge)
        .unwrap();
    assert_eq!(store.list(ROOT, None, 9).unwrap().len(), 3);
}

#[test]
fn a_merge_says_that_a_name_is_taken_even_if_the_store_is_full() {
    let store = small();
    let bound = binding(&object(IOR));
    store.bind(ROOT, "own", "", &bound, false).unwrap();
    store.create_context("", &never).unwrap();
    let text = export_of(2, 1).replace(&format!(r#""0","object":"{IOR}""#), r#""own","context":1"#);
    let told = store.import(text.as_bytes(), Into::Merge).unwrap_err();
    let words = "line 4: `own` is bound to something else in the store";
    assert_eq!(told.to_string(), words);
}

#[test]
fn a_context_that_was_bound_once_stays_so_and_the_root_always_was() {
    let text = export_of(3, 0).replace(r#""context":1"#, r#""context":1,"was_bound":true"#);
    let (store, _) = imported(&text, Into::Empty).unwrap();
    let text = exported(&store);
    let were_bound: Vec<bool> = text
        .lines()
        .skip(1)
        .map(|line| line.contains(r#""was_bound":true"#))
        .collect();
    assert_eq!(were_bound, [true, true, false], "{text}");
}

#[test]
fn a_context_keeps_its_age_and_one_whose_age_is_lost_is_made_now() {
    let text = export_of(2, 0).replace(r#""context":1"#, r#""context":1,"made_s":5"#);
    let text = exported(&imported(&text, Into::Empty).unwrap().0);
    let made_s: Vec<u64> = text
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["made_s"].as_u64())
        .map(|made_s| made_s.expect("a number"))
        .collect();
    assert!(made_s[0] > 1_700_000_000, "{made_s:?}");
    assert_eq!(made_s[1], 5);
}

#[test]
fn references_and_makers_are_as_long_as_they_may_be() {
    let with = |reference: usize, maker: usize| {
        let reference = format!("{IOR}{}", "0".repeat(reference - IOR.len()));
        let made = format!(r#"{reference}","maker":"{}"#, "m".repeat(maker));
        imported(&export_of(1, 1).replace(IOR, &made), Into::Empty).map(|_| ())
    };
    let (longest, most) = (limits::REFERENCE_TEXT_MAX, limits::MAKER_SIZE_MAX);
    with(longest, most).unwrap();
    let told = |result: Result<(), ImportError>| result.unwrap_err().to_string();
    let reference = "line 3: its reference is too long";
    assert_eq!(told(with(longest + 2, 0)), reference);
    assert_eq!(told(with(longest + 4, 0)), reference);
    assert_eq!(told(with(64, most + 1)), "line 3: its maker is too long");
    assert_eq!(told(with(64, most + 2)), "line 3: its maker is too long");
}

#[test]
fn contexts_in_a_circle_have_the_shortest_of_their_names() {
    let store = Store::in_memory().unwrap();
    let a = store.bind_new_context(ROOT, "a", "", "").unwrap();
    let b = store.bind_new_context(a, "b", "", "").unwrap();
    let up = binding(&Target::Context(a));
    store.bind(b, "up", "", &up, false).unwrap();
    let text = exported(&store);
    let path = |context: u64, path: &str| format!(r#"{{"context":{context},"path":"{path}","#);
    assert!(text.contains(&path(a, "a")), "{text}");
    assert!(text.contains(&path(b, "a/b")), "{text}");
}

#[test]
fn a_context_has_a_path_of_at_most_as_many_components_as_a_name() {
    let store = Store::in_memory().unwrap();
    let mut inner = ROOT;
    for _ in 0..=limits::COMPONENTS_MAX {
        inner = store.bind_new_context(inner, "x", "", "").unwrap();
    }
    let text = exported(&store);
    let has_path = |context: usize| {
        let line = format!(r#"{{"context":{context},"path":"#);
        text.lines().any(|one| one.starts_with(&line))
    };
    assert!(has_path(limits::COMPONENTS_MAX));
    assert!(!has_path(limits::COMPONENTS_MAX + 1));
}
