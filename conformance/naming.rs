//! The Naming Service by clause (version 1.3), called with octets made by hand: every operation and every exception.

use std::cell::Cell;

use crate::common;
use crate::common::ior::{Ior, Profile, TAG_INTERNET_IOP, iiop_profile};
use crate::common::message::{NO_EXCEPTION, Reply, Request, SYSTEM_EXCEPTION, USER_EXCEPTION};
use crate::common::{Cursor, Octets, Order, Over, Wire, over_each};
use deckwatch_naming::NamingService;
use deckwatch_naming::store::Store;
use deckwatch_orb::Orb;

const ROOT: &[u8] = b"NameService";
const CONTEXT_EXT: &str = "IDL:omg.org/CosNaming/NamingContextExt:1.0";
const CONTEXT: &str = "IDL:omg.org/CosNaming/NamingContext:1.0";
const ITERATOR: &str = "IDL:omg.org/CosNaming/BindingIterator:1.0";
const NOT_FOUND: &str = "IDL:omg.org/CosNaming/NamingContext/NotFound:1.0";
const CANNOT_PROCEED: &str = "IDL:omg.org/CosNaming/NamingContext/CannotProceed:1.0";
const INVALID_NAME: &str = "IDL:omg.org/CosNaming/NamingContext/InvalidName:1.0";
const ALREADY_BOUND: &str = "IDL:omg.org/CosNaming/NamingContext/AlreadyBound:1.0";
const NOT_EMPTY: &str = "IDL:omg.org/CosNaming/NamingContext/NotEmpty:1.0";
const INVALID_ADDRESS: &str = "IDL:omg.org/CosNaming/NamingContextExt/InvalidAddress:1.0";

const MISSING_NODE: u32 = 0;
const NOT_CONTEXT: u32 = 1;
const NOT_OBJECT: u32 = 2;
const NOBJECT: u32 = 0;
const NCONTEXT: u32 = 1;

/// A name: id and kind of each component.
type Name = &'static [(&'static str, &'static str)];
type Read = Vec<(String, String)>;

struct Names {
    orb: Orb,
    _service: NamingService,
    next_id: Cell<u32>,
}

impl Names {
    fn new(over: Over) -> Self {
        let orb = common::listening(over, Orb::builder());
        let service =
            NamingService::start(&orb, Store::in_memory().expect("memory")).expect("a service");
        orb.root_poa()
            .expect("a root")
            .the_poa_manager()
            .activate()
            .expect("a fresh manager");
        Self {
            orb,
            _service: service,
            next_id: Cell::new(1),
        }
    }

    fn ask(&self, key: &[u8], operation: &str, arguments: impl FnOnce(&mut Octets)) -> Reply {
        let id = self.next_id.replace(self.next_id.get() + 1);
        let order = if id.is_multiple_of(2) {
            Order::Big
        } else {
            Order::Little
        };
        let request = Request::new((2, order), key, operation).id(id);
        Wire::to(&self.orb).ask(&request.with(arguments)).reply()
    }

    /// Calls an operation that must not raise.
    #[track_caller]
    fn done(&self, key: &[u8], operation: &str, arguments: impl FnOnce(&mut Octets)) -> Cursor {
        let reply = self.ask(key, operation, arguments);
        let status = reply.status;
        assert_eq!(
            status,
            NO_EXCEPTION,
            "{operation}: {:?}",
            String::from_utf8_lossy(reply.body.rest())
        );
        reply.body
    }

    /// The user exception that an operation raises; the cursor is at its members.
    #[track_caller]
    fn refused(
        &self,
        key: &[u8],
        operation: &str,
        id: &str,
        arguments: impl FnOnce(&mut Octets),
    ) -> Cursor {
        let mut reply = self.ask(key, operation, arguments);
        assert_eq!(reply.status, USER_EXCEPTION, "{operation}");
        assert_eq!(reply.body.string(), id, "{operation}");
        reply.body
    }

    #[track_caller]
    fn not_found(
        &self,
        operation: &str,
        why: u32,
        rest: Name,
        arguments: impl FnOnce(&mut Octets),
    ) {
        let mut members = self.refused(ROOT, operation, NOT_FOUND, arguments);
        assert_eq!(
            (members.u32(), read_name(&mut members)),
            (why, owned(rest)),
            "{operation}"
        );
    }

    fn bind(&self, name: Name, object: &Ior) {
        self.done(ROOT, "bind", |o| {
            write_name(o, name);
            object.write(o);
        });
    }

    /// Binds a new context; returns its key.
    fn bind_new_context(&self, name: Name) -> Vec<u8> {
        let mut results = self.done(ROOT, "bind_new_context", |o| write_name(o, name));
        key_of(&Ior::read(&mut results))
    }

    fn resolve(&self, name: Name) -> Ior {
        Ior::read(&mut self.done(ROOT, "resolve", |o| write_name(o, name)))
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        let _ = self.orb.shutdown(true); // The test may have shut it down.
    }
}

fn write_name(o: &mut Octets, name: Name) {
    o.u32(u32::try_from(name.len()).expect("short"));
    for (id, kind) in name {
        o.string(id).string(kind);
    }
}

fn read_name(members: &mut Cursor) -> Read {
    (0..members.u32())
        .map(|_| (members.string(), members.string()))
        .collect()
}

fn owned(name: Name) -> Read {
    name.iter()
        .map(|(id, kind)| ((*id).to_owned(), (*kind).to_owned()))
        .collect()
}

fn object(name: &str) -> Ior {
    Ior {
        type_id: format!("IDL:{name}:1.0"),
        profiles: vec![(
            TAG_INTERNET_IOP,
            iiop_profile(Order::Little, 2, ("ship", 9), name.as_bytes(), &[]),
        )],
    }
}

fn nil() -> Ior {
    Ior {
        type_id: String::new(),
        profiles: Vec::new(),
    }
}

fn key_of(ior: &Ior) -> Vec<u8> {
    Profile::read(&ior.profiles[0].1).key
}

/// The bindings of a list, and the iterator.
fn read_list(results: &mut Cursor) -> (Vec<(Read, u32)>, Ior) {
    (read_bindings(results), Ior::read(results))
}

fn read_bindings(results: &mut Cursor) -> Vec<(Read, u32)> {
    (0..results.u32())
        .map(|_| (read_name(results), results.u32()))
        .collect()
}

over_each! {
    fn the_root_is_a_naming_context_ext(over) {
        let names = Names::new(over);
        for (id, expected) in [(CONTEXT_EXT, 1), (CONTEXT, 1), (ITERATOR, 0)] {
            assert_eq!(names.done(ROOT, "_is_a", |o| { o.string(id); }).u8(), expected, "{id}");
        }
    }

    fn what_was_bound_is_resolved_octet_for_octet(over) {
        let names = Names::new(over);
        let mut bound = object("Ship");
        bound.profiles.push((0x4242_4242, b"of a protocol nobody knows".to_vec()));
        names.bind(&[("ship", "nav")], &bound);
        assert_eq!(names.resolve(&[("ship", "nav")]), bound);
    }

    fn id_and_kind_are_compared_both_and_exactly(over) {
        let names = Names::new(over);
        for (name, bound) in [(&[("a", "")][..], "A"), (&[("a", "b")], "B"), (&[("A", "")], "C"), (&[("", "a")], "D"), (&[("", "")], "E")] {
            names.bind(name, &object(bound));
        }
        assert_eq!(names.resolve(&[("a", "")]), object("A"));
        assert_eq!(names.resolve(&[("a", "b")]), object("B"));
        assert_eq!(names.resolve(&[("A", "")]), object("C"));
        assert_eq!(names.resolve(&[("", "a")]), object("D"));
        assert_eq!(names.resolve(&[("", "")]), object("E"));
        names.not_found("resolve", MISSING_NODE, &[("a", "B")], |o| write_name(o, &[("a", "B")]));
    }

    fn a_name_is_bound_once(over) {
        let names = Names::new(over);
        names.bind(&[("a", "")], &object("A"));
        names.refused(ROOT, "bind", ALREADY_BOUND, |o| { write_name(o, &[("a", "")]); object("B").write(o); });
        names.refused(ROOT, "bind_new_context", ALREADY_BOUND, |o| write_name(o, &[("a", "")]));
        assert_eq!(names.resolve(&[("a", "")]), object("A"));
    }

    fn rebind_replaces_an_object_and_makes_a_binding_where_there_is_none(over) {
        let names = Names::new(over);
        for bound in ["A", "B"] {
            names.done(ROOT, "rebind", |o| { write_name(o, &[("a", "")]); object(bound).write(o); });
            assert_eq!(names.resolve(&[("a", "")]), object(bound));
        }
    }

    fn rebind_does_not_replace_a_binding_of_the_other_kind(over) {
        let names = Names::new(over);
        names.bind_new_context(&[("context", "")]);
        names.bind(&[("object", "")], &object("A"));
        names.not_found("rebind", NOT_OBJECT, &[("context", "")], |o| { write_name(o, &[("context", "")]); object("B").write(o); });
        let root = Ior::read(&mut names.done(ROOT, "new_context", |_| ()));
        names.not_found("rebind_context", NOT_CONTEXT, &[("object", "")], |o| { write_name(o, &[("object", "")]); root.write(o); });
    }

    fn a_context_that_was_bound_as_a_context_is_part_of_compound_names(over) {
        let names = Names::new(over);
        let made = Ior::read(&mut names.done(ROOT, "new_context", |_| ()));
        names.done(ROOT, "bind_context", |o| { write_name(o, &[("c", "")]); made.write(o); });
        names.bind(&[("c", ""), ("d", "x")], &object("D"));
        assert_eq!(names.resolve(&[("c", ""), ("d", "x")]), object("D"));
        let mut inside = names.done(&key_of(&made), "resolve", |o| write_name(o, &[("d", "x")]));
        assert_eq!(Ior::read(&mut inside), object("D"));
        // `bind` of a context makes an object binding: `resolve` does not continue through it.
        names.bind(&[("o", "")], &made);
        names.not_found("resolve", NOT_CONTEXT, &[("o", ""), ("d", "x")], |o| write_name(o, &[("o", ""), ("d", "x")]));
    }

    fn rebind_context_replaces_a_context(over) {
        let names = Names::new(over);
        names.bind_new_context(&[("c", "")]);
        names.bind(&[("c", ""), ("old", "")], &object("Old"));
        let made = Ior::read(&mut names.done(ROOT, "new_context", |_| ()));
        names.done(ROOT, "rebind_context", |o| { write_name(o, &[("c", "")]); made.write(o); });
        names.not_found("resolve", MISSING_NODE, &[("old", "")], |o| write_name(o, &[("c", ""), ("old", "")]));
    }

    fn nil_is_not_bound(over) {
        let names = Names::new(over);
        for operation in ["bind", "rebind", "bind_context", "rebind_context"] {
            let reply = names.ask(ROOT, operation, |o| { write_name(o, &[("a", "")]); nil().write(o); });
            assert_eq!(reply.exception().0, "IDL:omg.org/CORBA/BAD_PARAM:1.0", "{operation}");
        }
    }

    fn what_is_not_there_is_not_found_with_the_rest_of_the_name(over) {
        let names = Names::new(over);
        names.bind_new_context(&[("c", "")]);
        names.bind(&[("c", ""), ("leaf", "")], &object("Leaf"));
        for operation in ["resolve", "unbind"] {
            names.not_found(operation, MISSING_NODE, &[("x", "")], |o| write_name(o, &[("x", "")]));
            names.not_found(operation, MISSING_NODE, &[("x", "y"), ("z", "")], |o| write_name(o, &[("c", ""), ("x", "y"), ("z", "")]));
            names.not_found(operation, NOT_CONTEXT, &[("leaf", ""), ("z", "")], |o| write_name(o, &[("c", ""), ("leaf", ""), ("z", "")]));
        }
        names.not_found("bind", MISSING_NODE, &[("x", ""), ("z", "")], |o| { write_name(o, &[("x", ""), ("z", "")]); object("A").write(o); });
        names.not_found("bind_new_context", MISSING_NODE, &[("x", ""), ("z", "")], |o| write_name(o, &[("x", ""), ("z", "")]));
    }

    fn an_empty_name_is_invalid_everywhere(over) {
        let names = Names::new(over);
        for operation in ["resolve", "unbind", "bind_new_context", "to_string"] {
            names.refused(ROOT, operation, INVALID_NAME, |o| write_name(o, &[]));
        }
        for operation in ["bind", "rebind"] {
            names.refused(ROOT, operation, INVALID_NAME, |o| { write_name(o, &[]); object("A").write(o); });
        }
        let made = Ior::read(&mut names.done(ROOT, "new_context", |_| ()));
        for operation in ["bind_context", "rebind_context"] {
            names.refused(ROOT, operation, INVALID_NAME, |o| { write_name(o, &[]); made.write(o); });
        }
    }

    fn unbind_takes_the_binding_away_and_leaves_the_context_bound_to_it(over) {
        let names = Names::new(over);
        names.bind(&[("a", "")], &object("A"));
        names.done(ROOT, "unbind", |o| write_name(o, &[("a", "")]));
        names.not_found("resolve", MISSING_NODE, &[("a", "")], |o| write_name(o, &[("a", "")]));
        let context = names.bind_new_context(&[("c", "")]);
        names.done(ROOT, "unbind", |o| write_name(o, &[("c", "")]));
        names.done(&context, "bind", |o| { write_name(o, &[("x", "")]); object("X").write(o); });
    }

    fn a_new_context_is_empty_and_bound_to_nothing(over) {
        let names = Names::new(over);
        let made = Ior::read(&mut names.done(ROOT, "new_context", |_| ()));
        let (inside, rest) = read_list(&mut names.done(&key_of(&made), "list", |o| { o.u32(100); }));
        assert_eq!((inside, rest), (vec![], nil()));
        let (outside, _) = read_list(&mut names.done(ROOT, "list", |o| { o.u32(100); }));
        assert_eq!(outside, []);
    }

    fn a_context_is_destroyed_when_it_is_empty_alone(over) {
        let names = Names::new(over);
        let context = names.bind_new_context(&[("c", "")]);
        names.done(&context, "bind", |o| { write_name(o, &[("x", "")]); object("X").write(o); });
        names.refused(&context, "destroy", NOT_EMPTY, |_| ());
        names.done(&context, "unbind", |o| write_name(o, &[("x", "")]));
        names.done(&context, "destroy", |_| ());
        let reply = names.ask(&context, "list", |o| { o.u32(1); });
        assert_eq!(reply.status, SYSTEM_EXCEPTION);
        assert_eq!(reply.exception().0, "IDL:omg.org/CORBA/OBJECT_NOT_EXIST:1.0");
    }

    fn list_gives_each_binding_with_its_kind_and_an_iterator_for_the_rest(over) {
        let names = Names::new(over);
        names.bind(&[("a", "1")], &object("A"));
        names.bind_new_context(&[("b", "")]);
        names.bind(&[("c", "")], &object("C"));
        let (all, rest) = read_list(&mut names.done(ROOT, "list", |o| { o.u32(3); }));
        let mut sorted = all.clone();
        sorted.sort();
        let expected = [(owned(&[("a", "1")]), NOBJECT), (owned(&[("b", "")]), NCONTEXT), (owned(&[("c", "")]), NOBJECT)];
        assert_eq!((&sorted[..], rest), (&expected[..], nil()));
        for how_many in 0..3 {
            let (first, rest) = read_list(&mut names.done(ROOT, "list", |o| { o.u32(how_many); }));
            assert_eq!(first, all[..how_many as usize]);
            assert_eq!(rest.type_id, ITERATOR);
            let mut more = names.done(&key_of(&rest), "next_n", |o| { o.u32(100); });
            assert_eq!((more.u8(), read_bindings(&mut more)), (1, all[how_many as usize..].to_vec()));
        }
    }

    fn an_iterator_gives_one_or_several_and_false_at_the_end(over) {
        let names = Names::new(over);
        for name in [&[("a", "")][..], &[("b", "")], &[("c", "")]] {
            names.bind(name, &object("X"));
        }
        let (_, rest) = read_list(&mut names.done(ROOT, "list", |o| { o.u32(0); }));
        let rest = key_of(&rest);
        let mut one = names.done(&rest, "next_one", |_| ());
        assert_eq!((one.u8(), read_name(&mut one), one.u32()), (1, owned(&[("a", "")]), NOBJECT));
        let mut two = names.done(&rest, "next_n", |o| { o.u32(2); });
        assert_eq!((two.u8(), read_bindings(&mut two).len()), (1, 2));
        assert_eq!(names.done(&rest, "next_one", |_| ()).u8(), 0);
        let mut none = names.done(&rest, "next_n", |o| { o.u32(2); });
        assert_eq!((none.u8(), read_bindings(&mut none)), (0, vec![]));
        assert_eq!(names.ask(&rest, "next_n", |o| { o.u32(0); }).exception().0, "IDL:omg.org/CORBA/BAD_PARAM:1.0");
    }

    fn a_destroyed_iterator_does_not_exist(over) {
        let names = Names::new(over);
        names.bind(&[("a", "")], &object("X"));
        let (_, rest) = read_list(&mut names.done(ROOT, "list", |o| { o.u32(0); }));
        let rest = key_of(&rest);
        names.done(&rest, "destroy", |_| ());
        assert_eq!(names.ask(&rest, "next_one", |_| ()).exception().0, "IDL:omg.org/CORBA/OBJECT_NOT_EXIST:1.0");
    }

    fn names_are_written_as_strings_and_read_again(over) {
        let names = Names::new(over);
        let cases: [(Name, &str); 7] = [
            (&[("a", "")], "a"),
            (&[("a", "b"), ("c", "d"), ("e", "")], "a.b/c.d/e"),
            (&[("", "b")], ".b"),
            (&[("", "")], "."),
            (&[("", ""), ("a", "")], "./a"),
            (&[("a.b", "c/d")], r"a\.b.c\/d"),
            (&[(r"a\b", "")], r"a\\b"),
        ];
        for (name, text) in cases {
            assert_eq!(names.done(ROOT, "to_string", |o| write_name(o, name)).string(), text);
            let mut read = names.done(ROOT, "to_name", |o| { o.string(text); });
            assert_eq!(read_name(&mut read), owned(name), "{text}");
        }
    }

    fn strings_that_are_no_name_are_invalid(over) {
        let names = Names::new(over);
        for text in ["", "/a", "a/", "a//b", "a.", "a.b.c", r"a\", r"a\b"] {
            names.refused(ROOT, "to_name", INVALID_NAME, |o| { o.string(text); });
            names.refused(ROOT, "resolve_str", INVALID_NAME, |o| { o.string(text); });
        }
    }

    fn resolve_str_is_resolve_of_to_name(over) {
        let names = Names::new(over);
        names.bind_new_context(&[("c", "k")]);
        names.bind(&[("c", "k"), ("x.y", "")], &object("X"));
        let mut found = names.done(ROOT, "resolve_str", |o| { o.string(r"c.k/x\.y"); });
        assert_eq!(Ior::read(&mut found), object("X"));
        names.not_found("resolve_str", MISSING_NODE, &[("z", "")], |o| { o.string("c.k/z"); });
    }

    fn to_url_joins_address_and_escaped_name(over) {
        let names = Names::new(over);
        for (address, text, url) in [
            (":ship:2809", "a.b/c", "corbaname::ship:2809#a.b/c"),
            ("iiop:1.2@ship/Key", "a b", "corbaname:iiop:1.2@ship/Key#a%20b"),
            ("rir:", r"x\.y", "corbaname:rir:#x%5c.y"),
            (":ship", "<a>", "corbaname::ship#%3ca%3e"),
        ] {
            let made = names.done(ROOT, "to_url", |o| { o.string(address).string(text); }).string();
            assert_eq!(made.to_lowercase(), url.to_lowercase(), "{address} {text}");
        }
        for address in ["", "smtp:ship", ":ship:port", "iiop:7@ship"] {
            names.refused(ROOT, "to_url", INVALID_ADDRESS, |o| { o.string(address).string("a"); });
        }
        names.refused(ROOT, "to_url", INVALID_NAME, |o| { o.string(":ship").string("a//b"); });
    }

    fn a_context_of_a_service_that_is_gone_cannot_be_proceeded_through(over) {
        let names = Names::new(over);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let gone = Ior {
            type_id: CONTEXT.to_owned(),
            profiles: vec![(TAG_INTERNET_IOP, iiop_profile(Order::Big, 2, ("127.0.0.1", port), b"gone", &[]))],
        };
        names.done(ROOT, "bind_context", |o| { write_name(o, &[("far", "")]); gone.write(o); });
        let mut members = names.refused(ROOT, "resolve", CANNOT_PROCEED, |o| write_name(o, &[("far", ""), ("x", "y")]));
        // The exception gives the client the context and the rest of the name, to continue by itself.
        let context = Ior::read(&mut members);
        assert_eq!((context.profiles, read_name(&mut members)), (gone.profiles, owned(&[("x", "y")])));
    }

    fn a_context_of_another_service_is_walked_through(over) {
        let here = Names::new(over);
        let there = Names::new(over);
        let deep = there.bind_new_context(&[("deep", "")]);
        there.done(&deep, "bind", |o| { write_name(o, &[("x", "")]); object("X").write(o); });
        let foreign = there.resolve(&[("deep", "")]);
        here.done(ROOT, "bind_context", |o| { write_name(o, &[("far", "")]); foreign.write(o); });
        assert_eq!(here.resolve(&[("far", ""), ("x", "")]), object("X"));
        here.bind(&[("far", ""), ("y", "")], &object("Y"));
        assert_eq!(there.resolve(&[("deep", ""), ("y", "")]), object("Y"));
        here.not_found("resolve", MISSING_NODE, &[("z", "")], |o| write_name(o, &[("far", ""), ("z", "")]));
    }
}
