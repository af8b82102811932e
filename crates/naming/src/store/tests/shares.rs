//! The share of a maker, contexts that expire, and contexts that no name leads to.

use super::*;

/// The share of one maker: two contexts and three bindings, of eight and twelve. The root is one of the eight.
fn shared() -> Store {
    let room = Room {
        contexts_max: 8,
        bindings_max: 12,
        share: Room::OF_SERVICE.share,
    };
    let store = Store {
        room,
        ..Store::in_memory().unwrap()
    };
    store.with_share(25)
}

fn bind(store: &Store, id: &str, maker: &str) -> Result<(), StoreError> {
    let made = BindingRow {
        maker: maker.to_owned(),
        target: object("IOR:00"),
    };
    store.bind(ROOT, id, "", &made, false)
}

#[test]
fn a_maker_that_takes_its_share_leaves_others_served() {
    let store = shared();
    let (stranger, other) = ("10.0.0.1", "10.0.0.2");
    let is_refused = |made: Result<(), StoreError>| matches!(made, Err(StoreError::ShareFull));
    let make = |maker: &str| store.create_context(maker, &never).map(drop);
    make(stranger).unwrap();
    store.bind_new_context(ROOT, "a", "", stranger).unwrap();
    assert!(is_refused(make(stranger)));
    assert!(is_refused(
        store.bind_new_context(ROOT, "x", "", stranger).map(drop)
    ));
    bind(&store, "b", stranger).unwrap();
    bind(&store, "c", stranger).unwrap();
    assert!(is_refused(bind(&store, "d", stranger)));
    make(other).unwrap();
    bind(&store, "d", other).unwrap();
    (0..2).for_each(|_| make("").unwrap());
    assert!(store.unbind(ROOT, "b", "").unwrap());
    bind(&store, "e", stranger).unwrap();
    assert!(is_refused(bind(&store, "f", stranger)));
    // What is replaced is the share of the maker of the new one.
    let made = BindingRow {
        maker: stranger.to_owned(),
        target: object("IOR:01"),
    };
    assert!(is_refused(store.bind(ROOT, "d", "", &made, true)));
    store.bind(ROOT, "e", "", &made, true).unwrap();
    let read = store.database.look(check::check).unwrap();
    assert_eq!(
        read.holders,
        *store.holders.lock("test"),
        "as after a start"
    );
}

#[test]
fn name_in_a_certificate_is_one_maker_at_all_addresses_and_apart_from_others_at_its_own() {
    let store = shared();
    let make = |maker: &str| store.create_context(maker, &never);
    make("10.0.0.1 cert:nav").unwrap();
    make("10.0.0.2 cert:nav").unwrap();
    let refused = make("10.0.0.3 cert:nav");
    assert!(matches!(refused, Err(StoreError::ShareFull)));
    make("10.0.0.1 cert:bridge").unwrap();
    make("10.0.0.1").unwrap();
}

#[test]
fn all_addresses_of_an_ipv6_network_are_one_maker() {
    let store = shared();
    let make = |maker: &str| store.create_context(maker, &never);
    make("2001:db8::1").unwrap();
    make("2001:db8::2").unwrap();
    assert!(matches!(make("2001:db8::3"), Err(StoreError::ShareFull)));
    make("2001:db8:0:1::1").unwrap();
}

/// Makes all contexts older than their lifetime.
fn age(store: &Store) {
    set_made(store, 1);
}

fn set_made(store: &Store, made_s: u64) {
    store
        .change(|ledger, _| {
            for number in 0..ledger.whole.next_context {
                if let Some(mut context) = ledger.context(number)? {
                    context.made_s = made_s;
                    ledger.set_context(number, Some(&context))?;
                }
            }
            Ok::<_, StoreError>(())
        })
        .unwrap();
}

#[test]
fn a_context_that_was_never_bound_gives_way_when_it_is_old_idle_and_empty() {
    let store = shared();
    let (stranger, other) = ("10.0.0.1", "10.0.0.2");
    let make = |maker: &str, is_idle: &dyn Fn(u64) -> bool| store.create_context(maker, is_idle);
    let of_other = make(other, &never).unwrap().number;
    let first = make(stranger, &never).unwrap().number;
    let second = make(stranger, &never).unwrap().number;
    let always = |_: u64| true;
    assert!(
        matches!(make(stranger, &always), Err(StoreError::ShareFull)),
        "none is old"
    );
    age(&store);
    assert!(
        matches!(make(stranger, &never), Err(StoreError::ShareFull)),
        "all are used"
    );
    let made = make(stranger, &always).unwrap();
    assert_eq!(made.expired, Some(first), "its own oldest");
    age(&store);
    store
        .bind(second, "name", "", &binding(&object("IOR:00")), false)
        .unwrap();
    let bound = binding(&Target::Context(made.number));
    store.bind(ROOT, "a", "", &bound, false).unwrap();
    store.unbind(ROOT, "a", "").unwrap();
    assert!(
        matches!(make(stranger, &always), Err(StoreError::ShareFull)),
        "one holds a name, the other had one"
    );
    assert!(store.contexts().unwrap().contains(&of_other));
    // With no room in all, the oldest of anybody gives way.
    while store.contexts().unwrap().len() < 8 {
        make("", &never).unwrap();
    }
    age(&store);
    assert_eq!(make("10.0.0.3", &always).unwrap().expired, Some(of_other));
}

#[test]
fn a_context_from_before_the_clock_was_set_back_gives_way_once_it_is_idle() {
    let store = shared();
    let make = |is_idle: &dyn Fn(u64) -> bool| store.create_context("10.0.0.1", is_idle);
    let first = make(&never).unwrap().number;
    make(&never).unwrap();
    set_made(&store, super::super::now_s() + 86_400);
    assert!(matches!(make(&never), Err(StoreError::ShareFull)));
    assert_eq!(make(&|_| true).unwrap().expired, Some(first));
}

#[test]
fn contexts_that_no_name_leads_to_are_found_and_swept_with_what_they_hold() {
    let store = Store::in_memory().unwrap();
    let bind = |context, id: &str, target: &Target| {
        store
            .bind(context, id, "", &binding(target), false)
            .unwrap();
    };
    let kept = store.bind_new_context(ROOT, "kept", "", "").unwrap();
    let inner = store.bind_new_context(kept, "inner", "", "").unwrap();
    bind(inner, "root", &Target::Context(ROOT));
    // Two that lead to each other and to one that is kept.
    let one = store.create_context("uid 7", &never).unwrap().number;
    let other = store.bind_new_context(one, "other", "", "").unwrap();
    bind(other, "one", &Target::Context(one));
    bind(other, "kept", &Target::Context(kept));
    (0..2_000).for_each(|number| bind(other, &number.to_string(), &object("IOR:00")));
    let orphans = store.orphans().unwrap();
    let numbers: Vec<u64> = orphans.iter().map(|orphan| orphan.number).collect();
    assert_eq!(numbers, [one, other]);
    assert_eq!(orphans[0].context.maker, "uid 7");
    assert_eq!(orphans[1].context.bindings.count, 2_002);
    store.sweep(&numbers).unwrap();
    assert_eq!(store.contexts().unwrap(), [ROOT, kept, inner]);
    assert_eq!(store.orphans().unwrap(), []);
    assert_eq!(
        store.lookup(inner, "root", "").unwrap(),
        Some(Target::Context(ROOT))
    );
    let report = store.database.look(check::check).unwrap();
    assert_eq!((report.damaged, report.bindings), (0, 3));
    let again = store.sweep(&numbers);
    assert!(matches!(again, Err(StoreError::NoSuchContext)));
}

#[test]
fn contexts_that_are_bound_or_gone_do_not_wait_for_expiry() {
    let store = shared();
    let waiting = || store.holders.lock("test").unbound(None);
    let made = store.create_context("10.0.0.1", &never).unwrap().number;
    assert_eq!(waiting(), [made]);
    store.destroy_context(made).unwrap();
    assert!(waiting().is_empty(), "it is gone");
    let made = store.create_context("10.0.0.1", &never).unwrap().number;
    let bound = binding(&Target::Context(made));
    store.bind(ROOT, "a", "", &bound, false).unwrap();
    assert!(waiting().is_empty(), "it is bound");
    store.unbind(ROOT, "a", "").unwrap();
    assert!(waiting().is_empty(), "it was bound");
}
