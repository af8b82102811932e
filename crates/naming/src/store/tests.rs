//! The store on files and in memory.

use super::*;

mod damaged;
mod exports;
mod shares;

fn object(text: &str) -> Target {
    Target::Object(text.to_owned())
}

fn binding(target: &Target) -> BindingRow {
    BindingRow {
        maker: String::new(),
        target: target.clone(),
    }
}

/// No context is idle.
fn never(_: u64) -> bool {
    false
}

/// A folder that goes with the test.
fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("deckwatch-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn binding_is_found_after_the_store_is_opened_again() {
    let folder = folder("store");
    let path = folder.join("names.redb");
    let child = {
        let store = Store::open(&path).unwrap();
        let child = store.create_context("", &never).unwrap().number;
        store
            .bind(ROOT, "sub", "", &binding(&Target::Context(child)), false)
            .unwrap();
        store
            .bind(child, "nav", "channel", &binding(&object("IOR:00")), false)
            .unwrap();
        child
    };
    let store = Store::open(&path).unwrap();
    assert_eq!(
        store.lookup(ROOT, "sub", "").unwrap(),
        Some(Target::Context(child))
    );
    assert_eq!(
        store.lookup(child, "nav", "channel").unwrap(),
        Some(object("IOR:00"))
    );
    assert_eq!(store.contexts().unwrap(), [ROOT, child]);
    assert_eq!(
        store.create_context("", &never).unwrap().number,
        child + 1,
        "numbers are never given twice"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_rights_of_others_on_a_store_are_taken_and_said() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder("store-rights");
    let path = folder.join("names.redb");
    drop(Store::open(&path).unwrap());
    let mode = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(&path, mode(0o640)).unwrap();
    let taken = Store::open(&path).unwrap().rights_taken();
    let again = Store::open(&path).unwrap().rights_taken();
    std::fs::remove_dir_all(folder).unwrap();
    assert_eq!((taken, again), (Some(0o640), None));
}

#[test]
fn second_bind_of_a_name_is_refused_and_rebind_replaces() {
    let store = Store::in_memory().unwrap();
    store
        .bind(ROOT, "a", "", &binding(&object("one")), false)
        .unwrap();
    assert!(matches!(
        store.bind(ROOT, "a", "", &binding(&object("two")), false),
        Err(StoreError::AlreadyBound)
    ));
    store
        .bind(ROOT, "a", "", &binding(&object("two")), true)
        .unwrap();
    assert_eq!(store.lookup(ROOT, "a", "").unwrap(), Some(object("two")));
    assert!(matches!(
        store.bind(ROOT, "a", "", &binding(&Target::Context(ROOT)), true),
        Err(StoreError::WrongKind)
    ));
}

#[test]
fn names_that_differ_in_kind_alone_are_two() {
    let store = Store::in_memory().unwrap();
    store
        .bind(ROOT, "a", "", &binding(&object("plain")), false)
        .unwrap();
    store
        .bind(ROOT, "a", "k", &binding(&object("kind")), false)
        .unwrap();
    assert_eq!(store.lookup(ROOT, "a", "k").unwrap(), Some(object("kind")));
    assert!(store.unbind(ROOT, "a", "k").unwrap());
    assert!(!store.unbind(ROOT, "a", "k").unwrap());
    assert_eq!(store.lookup(ROOT, "a", "").unwrap(), Some(object("plain")));
}

#[test]
fn listing_goes_on_behind_the_last_row_and_stays_in_its_context() {
    let store = Store::in_memory().unwrap();
    let other = store.create_context("", &never).unwrap().number;
    for id in ["c", "a", "b"] {
        store
            .bind(ROOT, id, "", &binding(&object(id)), false)
            .unwrap();
    }
    store
        .bind(other, "z", "", &binding(&object("z")), false)
        .unwrap();
    let first = store.list(ROOT, None, 2).unwrap();
    assert_eq!(
        first.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(),
        ["a", "b"]
    );
    let rest = store.list(ROOT, Some(("b", "")), 10).unwrap();
    assert_eq!(
        rest.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(),
        ["c"]
    );
}

#[test]
fn context_with_bindings_is_not_destroyed() {
    let store = Store::in_memory().unwrap();
    let child = store.create_context("", &never).unwrap().number;
    store
        .bind(child, "a", "", &binding(&object("a")), false)
        .unwrap();
    assert!(matches!(
        store.destroy_context(child),
        Err(StoreError::NotEmpty)
    ));
    store.unbind(child, "a", "").unwrap();
    store.destroy_context(child).unwrap();
    assert!(matches!(
        store.bind(child, "a", "", &binding(&object("a")), false),
        Err(StoreError::NoSuchContext)
    ));
}

/// A store with room for the root and one more context, and for three bindings.
fn small() -> Store {
    let room = Room {
        contexts_max: 2,
        bindings_max: 3,
        share: Share {
            contexts: 2,
            bindings: 3,
        },
    };
    Store {
        room,
        ..Store::in_memory().unwrap()
    }
}

#[test]
fn bindings_are_refused_at_the_limit_until_one_is_removed() {
    let store = small();
    let bind = |id, replace| store.bind(ROOT, id, "", &binding(&object(id)), replace);
    for id in ["a", "b", "c"] {
        bind(id, false).unwrap();
    }
    assert!(matches!(bind("d", false), Err(StoreError::Full)));
    assert!(matches!(bind("d", true), Err(StoreError::Full)));
    assert!(matches!(
        store.bind_new_context(ROOT, "d", "", ""),
        Err(StoreError::Full)
    ));
    assert_eq!(store.lookup(ROOT, "d", "").unwrap(), None);
    assert_eq!(store.contexts().unwrap(), [ROOT], "nothing is left of it");
    bind("c", true).unwrap();
    assert!(store.unbind(ROOT, "a", "").unwrap());
    bind("d", false).unwrap();
    assert!(matches!(bind("a", false), Err(StoreError::Full)));
}

#[test]
fn contexts_are_refused_at_the_limit_until_one_is_destroyed() {
    let store = small();
    let child = store.create_context("", &never).unwrap().number;
    assert!(matches!(
        store.create_context("", &never),
        Err(StoreError::Full)
    ));
    assert!(matches!(
        store.bind_new_context(ROOT, "a", "", ""),
        Err(StoreError::Full)
    ));
    store.destroy_context(child).unwrap();
    store.bind_new_context(ROOT, "a", "", "").unwrap();
}

#[test]
fn a_store_has_the_room_that_the_limits_state() {
    let store = Store::in_memory().unwrap().with_share(25);
    let room = Room {
        contexts_max: limits::CONTEXTS_MAX,
        bindings_max: limits::BINDINGS_MAX,
        share: Share {
            contexts: limits::CONTEXTS_MAX / 4,
            bindings: limits::BINDINGS_MAX / 4,
        },
    };
    assert_eq!(store.room, room);
}
