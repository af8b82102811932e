//! The naming service from the view of its clients, over IIOP on loopback.

#[path = "../../orb/tests/support/around.rs"]
mod around;
#[path = "../../orb/tests/support/masked.rs"]
mod masked;
#[path = "service/outward.rs"]
mod outward;

use std::path::PathBuf;

use deckwatch_access::Table;
use deckwatch_naming::store::{ROOT, Store};
use deckwatch_naming::{NamingService, limits};
use deckwatch_orb::cos_naming::{
    BindingType, NameComponent, NamingContextBindContextError, NamingContextBindError,
    NamingContextDestroyError, NamingContextExtRef, NamingContextExtToNameError,
    NamingContextExtToUrlError, NamingContextRef, NamingContextResolveError,
    naming_context::NotFoundReason,
};
use deckwatch_orb::{Access, ObjectRef, Orb, SystemExceptionKind};

fn server(listen: &str, store: Store) -> (Orb, NamingService, u16) {
    let orb = Orb::builder()
        .listen(listen)
        .expect("an endpoint")
        .build()
        .expect("an ORB");
    let service = NamingService::start(&orb, store).expect("a naming service");
    orb.root_poa()
        .expect("a root adapter")
        .the_poa_manager()
        .activate()
        .expect("an active manager");
    let port = orb.endpoints()[0].port().expect("TCP");
    (orb, service, port)
}

fn client(port: u16) -> (Orb, NamingContextExtRef) {
    let orb = Orb::builder().build().expect("an ORB");
    let url = format!("corbaloc::127.0.0.1:{port}/NameService");
    let root = orb
        .string_to_object(&url)
        .expect("a corbaloc")
        .expect("not nil");
    let root = NamingContextExtRef::narrow(&root)
        .expect("the service answers")
        .expect("a context");
    (orb, root)
}

/// A client that has the root's reference from the service itself, whose server answers from now on.
fn client_of(server: &Orb, service: &NamingService) -> (Orb, NamingContextRef) {
    let manager = server.root_poa().unwrap();
    manager.the_poa_manager().activate().unwrap();
    let orb = Orb::builder().build().unwrap();
    let root = server.object_to_string(service.root().object());
    let root = orb.string_to_object(&root).unwrap().expect("not nil");
    (orb, NamingContextRef::unchecked_narrow(root))
}

fn path(text: &str) -> Vec<NameComponent> {
    let pairs = deckwatch_naming::name::parse(text).expect("a name");
    pairs
        .into_iter()
        .map(|(id, kind)| NameComponent { id, kind })
        .collect()
}

fn some_object(orb: &Orb) -> ObjectRef {
    orb.string_to_object("corbaloc::127.0.0.1:9/some%20object")
        .expect("a corbaloc")
        .expect("not nil")
}

#[test]
fn what_was_bound_is_resolved_through_contexts_strings_and_urls() {
    let (server_orb, _service, port) = server("127.0.0.1:0", Store::in_memory().unwrap());
    let (orb, root) = client(port);
    let object = some_object(&orb);
    let ships = root
        .bind_new_context(&path("ships"))
        .unwrap()
        .expect("a context");
    ships.bind(&path("nav.channel"), Some(&object)).unwrap();

    let found = root
        .resolve(&path("ships/nav.channel"))
        .unwrap()
        .expect("an object");
    assert!(found.is_equivalent(&object));
    let by_string = root
        .resolve_str("ships/nav.channel")
        .unwrap()
        .expect("an object");
    assert!(by_string.is_equivalent(&object));
    let url = root
        .to_url(&format!(":127.0.0.1:{port}"), "ships/nav.channel")
        .unwrap();
    let by_url = orb.string_to_object(&url).unwrap().expect("an object");
    assert!(by_url.is_equivalent(&object));

    assert!(matches!(
        root.bind(&path("ships/nav.channel"), Some(&object)),
        Err(NamingContextBindError::AlreadyBound(_))
    ));
    let other = orb
        .string_to_object("corbaloc::127.0.0.1:9/another")
        .unwrap()
        .expect("not nil");
    root.rebind(&path("ships/nav.channel"), Some(&other))
        .unwrap();
    let found = root.resolve(&path("ships/nav.channel")).unwrap();
    assert!(found.expect("an object").is_equivalent(&other));
    root.unbind(&path("ships/nav.channel")).unwrap();
    let Err(NamingContextResolveError::NotFound(gone)) = root.resolve(&path("ships/nav.channel"))
    else {
        panic!("the name is still bound");
    };
    assert_eq!(
        (gone.why, gone.rest_of_name),
        (NotFoundReason::MissingNode, path("nav.channel"))
    );
    server_orb.shutdown(true).expect("it ends");
}

#[test]
fn context_is_made_without_a_name_and_bound_and_bound_again() {
    let (server_orb, service, port) = server("127.0.0.1:0", Store::in_memory().unwrap());
    assert!(service.guard().is_none(), "it was started without a table");
    let (orb, root) = client(port);
    let make = || root.new_context().unwrap().expect("a context");
    let (first, second) = (make(), make());
    second.bind(&path("b"), Some(&some_object(&orb))).unwrap();
    root.bind_context(&path("a"), Some(&first)).unwrap();
    assert!(root.resolve(&path("a/b")).is_err());
    root.rebind_context(&path("a"), Some(&second)).unwrap();
    assert!(root.resolve(&path("a/b")).unwrap().is_some());
    server_orb.shutdown(true).expect("it ends");
}

#[test]
fn names_become_strings_and_urls() {
    let (server_orb, _service, port) = server("127.0.0.1:0", Store::in_memory().unwrap());
    let (_, root) = client(port);
    let text = r"ships/nav\.main.channel";
    assert_eq!(root.to_string(&path(text)).unwrap(), text);
    assert_eq!(root.to_name(text).unwrap(), path(text));
    let url = root.to_url(":host:9", "a b").unwrap();
    assert_eq!(url, "corbaname::host:9#a%20b");
    for address in ["", ":host:port", "nowhere"] {
        let Err(NamingContextExtToUrlError::InvalidAddress(_)) = root.to_url(address, "a") else {
            panic!("{address:?} is taken for an address");
        };
    }
    server_orb.shutdown(true).expect("it ends");
}

#[test]
fn names_survive_a_restart_and_so_do_references_to_contexts() {
    let folder = std::env::temp_dir().join(format!("deckwatch-naming-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file: PathBuf = folder.join("names.redb");
    let (first, service, port) = server("127.0.0.1:0", Store::open(&file).unwrap());
    let (orb, root) = client(port);
    let context = root
        .bind_new_context(&path("a"))
        .unwrap()
        .expect("a context");
    context.bind(&path("b"), Some(&some_object(&orb))).unwrap();
    let context_url = orb.object_to_string(context.object());
    first.shutdown(true).expect("it ends");
    drop((first, service));

    let (second, _service, _) = server(&format!("127.0.0.1:{port}"), Store::open(&file).unwrap());
    let again = orb
        .string_to_object(&context_url)
        .unwrap()
        .expect("not nil");
    let again = NamingContextRef::unchecked_narrow(again);
    assert!(
        again.resolve(&path("b")).unwrap().is_some(),
        "the old reference leads to the context"
    );
    assert!(root.resolve(&path("a/b")).unwrap().is_some());
    second.shutdown(true).expect("it ends");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_name_that_is_bound_over_a_local_socket_is_its_user_s() {
    let name = format!("deckwatch-naming-local-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let file: PathBuf = folder.join("names.redb");
    let socket = format!("unix:{}", folder.join("socket").display());
    let server = Orb::builder().listen(&socket).unwrap().build().unwrap();
    let service = NamingService::start(&server, Store::open(&file).unwrap()).unwrap();
    let (orb, root) = client_of(&server, &service);
    root.bind(&path("a"), Some(&some_object(&orb))).unwrap();
    server.shutdown(true).expect("it ends");
    drop((server, service));

    let store = Store::open(&file).unwrap();
    let bound = store.binding(ROOT, "a", "").unwrap().expect("it is bound");
    drop(store);
    std::fs::remove_dir_all(folder).unwrap();
    let user = deckwatch_os::process::effective_user();
    assert_eq!(bound.maker, format!("uid {user}"));
}

#[test]
fn a_table_that_permits_nothing_refuses_and_the_guard_counts() {
    let server = Orb::builder().listen("127.0.0.1:0").unwrap();
    let server = server.build().unwrap();
    let access = Some(Access::new(Table::default()));
    let store = Store::in_memory().unwrap();
    let service = NamingService::start_with(&server, store, access).unwrap();
    let (_orb, root) = client_of(&server, &service);
    let Err(NamingContextResolveError::System(refused)) = root.resolve(&path("a")) else {
        panic!("it is not refused");
    };
    assert_eq!(refused.kind, SystemExceptionKind::NoPermission);
    let guard = service.guard().expect("it was started with a table");
    assert_eq!(guard.refused(), 1);
    server.shutdown(true).expect("it ends");
}

#[test]
fn long_listings_come_in_parts() {
    let (server_orb, _service, port) = server("127.0.0.1:0", Store::in_memory().unwrap());
    let (orb, root) = client(port);
    for index in 0..25 {
        root.bind(
            &path(&format!("object{index:02}")),
            Some(&some_object(&orb)),
        )
        .unwrap();
    }
    root.bind_new_context(&path("zone")).unwrap();
    let (first, rest) = root.list(10).unwrap();
    let rest = rest.expect("an iterator for the rest");
    assert_eq!(first.len(), 10);
    let (more, one) = rest.next_one().unwrap();
    assert!(more);
    assert_eq!(one.binding_name, path("object10"));
    let (more, others) = rest.next_n(100).unwrap();
    assert!(more);
    assert_eq!(others.len(), 15);
    assert_eq!(
        others.last().map(|binding| binding.binding_type),
        Some(BindingType::Ncontext)
    );
    assert_eq!(rest.next_n(100).unwrap(), (false, vec![]));
    rest.destroy().unwrap();
    assert_eq!(
        rest.next_n(1).unwrap_err().kind,
        SystemExceptionKind::ObjectNotExist
    );
    let (all, none) = root.list(100).unwrap();
    assert_eq!((all.len(), none.is_none()), (26, true));
    server_orb.shutdown(true).expect("it ends");
}

#[test]
fn a_listing_of_nothing_at_once_comes_by_its_iterator() {
    let (server_orb, _service, port) = server("127.0.0.1:0", Store::in_memory().unwrap());
    let (orb, root) = client(port);
    assert_eq!(root.list(0).unwrap().0, vec![]);
    assert!(root.list(0).unwrap().1.is_none(), "nothing is left");
    root.bind(&path("only"), Some(&some_object(&orb))).unwrap();
    let (none, rest) = root.list(0).unwrap();
    let rest = rest.expect("an iterator for all");
    assert_eq!(none, vec![]);
    assert_eq!(
        rest.next_n(0).unwrap_err().kind,
        SystemExceptionKind::BadParam
    );
    assert_eq!(rest.next_one().unwrap().1.binding_name, path("only"));
    let (more, nothing) = rest.next_one().unwrap();
    assert!(!more && nothing.binding_name.is_empty());
    server_orb.shutdown(true).expect("it ends");
}

#[test]
fn of_too_many_listings_of_one_peer_its_oldest_gives_way() {
    let (server_orb, _service, port) = server("127.0.0.1:0", Store::in_memory().unwrap());
    let (orb, root) = client(port);
    for name in ["a", "b"] {
        root.bind(&path(name), Some(&some_object(&orb))).unwrap();
    }
    let open = || root.list(1).unwrap().1.expect("an iterator for the rest");
    let (oldest, second) = (open(), open());
    for _ in 2..limits::ITERATORS_MAX / 4 {
        open();
    }
    assert!(oldest.next_one().unwrap().0, "all are still open");
    open();
    assert_eq!(
        oldest.next_one().unwrap_err().kind,
        SystemExceptionKind::ObjectNotExist
    );
    assert!(second.next_one().unwrap().0, "the others go on");
    server_orb.shutdown(true).expect("it ends");
}

#[test]
fn bad_names_and_bad_targets_are_refused_as_the_standard_says() {
    let (server_orb, _service, port) = server("127.0.0.1:0", Store::in_memory().unwrap());
    let (orb, root) = client(port);
    let object = some_object(&orb);
    root.bind(&path("leaf"), Some(&object)).unwrap();
    assert!(matches!(
        root.resolve(&[]),
        Err(NamingContextResolveError::InvalidName(_))
    ));
    let Err(NamingContextResolveError::NotFound(fault)) = root.resolve(&path("leaf/below")) else {
        panic!("resolved")
    };
    assert_eq!(
        (fault.why, fault.rest_of_name),
        (NotFoundReason::NotContext, path("leaf/below"))
    );
    let Err(NamingContextBindError::System(nil)) = root.bind(&path("nil"), None) else {
        panic!("bound nil")
    };
    assert_eq!(nil.kind, SystemExceptionKind::BadParam);
    assert!(matches!(
        root.to_name("a//b"),
        Err(NamingContextExtToNameError::InvalidName(_))
    ));
    let context = root
        .bind_new_context(&path("full"))
        .unwrap()
        .expect("a context");
    context.bind(&path("x"), Some(&object)).unwrap();
    assert!(matches!(
        context.destroy(),
        Err(NamingContextDestroyError::NotEmpty(_))
    ));
    let Err(NamingContextBindContextError::AlreadyBound(_)) =
        root.bind_context(&path("full"), Some(&context))
    else {
        panic!("bound twice");
    };
    context.unbind(&path("x")).unwrap();
    context.destroy().unwrap();
    let Err(NamingContextResolveError::System(gone)) = context.resolve(&path("x")) else {
        panic!("still there")
    };
    assert_eq!(gone.kind, SystemExceptionKind::ObjectNotExist);
    server_orb.shutdown(true).expect("it ends");
}

#[test]
fn a_context_of_another_service_is_walked_through() {
    let (near_orb, _near, near_port) = server("127.0.0.1:0", Store::in_memory().unwrap());
    let (far_orb, _far, far_port) = server("127.0.0.1:0", Store::in_memory().unwrap());
    let (orb, near) = client(near_port);
    let (_, far) = client(far_port);
    far.bind(&path("radar"), Some(&some_object(&orb))).unwrap();
    let far_root: NamingContextRef = far.clone().into();
    near.bind_context(&path("far"), Some(&far_root)).unwrap();
    assert!(near.resolve(&path("far/radar")).unwrap().is_some());
    far_orb.shutdown(true).expect("it ends");
    drop((far_orb, _far));
    let Err(NamingContextResolveError::CannotProceed(stuck)) = near.resolve(&path("far/radar"))
    else {
        panic!("went through a dead service");
    };
    assert_eq!(stuck.rest_of_name, path("radar"));
    near_orb.shutdown(true).expect("it ends");
}

#[test]
fn a_context_of_another_service_is_not_taken_for_one_of_the_same_number_here() {
    let (here_orb, _here, here_port) = server("127.0.0.1:0", Store::in_memory().unwrap());
    let (there_orb, _there, there_port) = server("127.0.0.1:0", Store::in_memory().unwrap());
    let (orb, here) = client(here_port);
    let (other, there) = client(there_port);
    let there_root = there
        .bind_new_context(&path("sub"))
        .unwrap()
        .expect("a context");
    there_root
        .bind(&path("nav"), Some(&some_object(&orb)))
        .unwrap();
    // Number 1 is the first context that each of the services creates.
    here.bind_new_context(&path("own")).unwrap();
    let text = other.object_to_string(there_root.object());
    let foreign = orb.string_to_object(&text).unwrap().expect("not nil");
    here.bind_context(
        &path("there"),
        Some(&NamingContextRef::unchecked_narrow(foreign)),
    )
    .unwrap();
    let found = here.resolve(&path("there/nav")).unwrap();
    assert!(found.expect("an object").is_equivalent(&some_object(&orb)));
    here_orb.shutdown(true).expect("it ends");
    there_orb.shutdown(true).expect("it ends");
}

#[test]
fn a_circle_through_the_service_itself_costs_no_thread() {
    let server_orb = Orb::builder()
        .listen("127.0.0.1:0")
        .unwrap()
        .threads(1)
        .dynamic_threads(0)
        .build()
        .unwrap();
    let _service = NamingService::start(&server_orb, Store::in_memory().unwrap()).unwrap();
    let root_poa = server_orb.root_poa().unwrap();
    root_poa.the_poa_manager().activate().unwrap();
    let (orb, root) = client(server_orb.endpoints()[0].port().expect("TCP"));
    root.bind(&path("nav"), Some(&some_object(&orb))).unwrap();
    // The reference has the plain key `NameService`, not the persistent key of the root.
    let itself = NamingContextRef::unchecked_narrow(root.object().clone());
    root.bind_context(&path("x"), Some(&itself)).unwrap();
    let found = root.resolve(&path("x/x/x/x/nav")).unwrap();
    assert!(found.expect("an object").is_equivalent(&some_object(&orb)));
    server_orb.shutdown(true).expect("it ends");
}

#[test]
fn a_foreign_service_that_does_not_answer_is_told_to_the_caller_and_holds_no_thread_for_ever() {
    let (server_orb, _service, port) = server("127.0.0.1:0", Store::in_memory().unwrap());
    let (orb, root) = client(port);
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("corbaloc::{}/silent", silent.local_addr().unwrap());
    let foreign = orb.string_to_object(&url).unwrap().expect("not nil");
    let foreign = NamingContextRef::unchecked_narrow(foreign);
    root.bind_context(&path("there"), Some(&foreign)).unwrap();
    let Err(NamingContextResolveError::CannotProceed(stuck)) = root.resolve(&path("there/nav"))
    else {
        panic!("somebody answered");
    };
    assert_eq!(stuck.rest_of_name, path("nav"));
    server_orb.shutdown(true).expect("it ends");
}

#[test]
fn names_and_references_beyond_the_limits_are_refused() {
    let (server_orb, _service, port) = server("127.0.0.1:0", Store::in_memory().unwrap());
    let (orb, root) = client(port);
    let long = |len| {
        vec![NameComponent {
            id: "x".repeat(len),
            kind: String::new(),
        }]
    };
    let object = some_object(&orb);
    root.bind(&long(limits::COMPONENT_SIZE_MAX), Some(&object))
        .unwrap();
    assert!(matches!(
        root.bind(&long(limits::COMPONENT_SIZE_MAX + 1), Some(&object)),
        Err(NamingContextBindError::InvalidName(_))
    ));
    let deep = |count| vec![long(1).remove(0); count];
    let found = root.resolve(&deep(limits::COMPONENTS_MAX));
    assert!(matches!(found, Err(NamingContextResolveError::NotFound(_))));
    let refused = root.resolve(&deep(limits::COMPONENTS_MAX + 1));
    assert!(matches!(
        refused,
        Err(NamingContextResolveError::InvalidName(_))
    ));
    // The octets of a profile of IIOP 1.0 end with its key.
    let with_key = |len: usize| {
        let url = format!("corbaloc:iiop:1.0@127.0.0.1:9/{}", "k".repeat(len));
        orb.string_to_object(&url).unwrap().expect("not nil")
    };
    let shortest = orb.object_to_string(&with_key(1)).len();
    let len = 1 + (limits::REFERENCE_TEXT_MAX - shortest) / 2;
    let longest = with_key(len);
    let text = orb.object_to_string(&longest);
    assert_eq!(text.len(), limits::REFERENCE_TEXT_MAX);
    root.bind(&path("longest"), Some(&longest)).unwrap();
    let larger = with_key(len + 1);
    let Err(NamingContextBindError::System(refused)) = root.bind(&path("larger"), Some(&larger))
    else {
        panic!("bound a reference beyond the limit");
    };
    assert_eq!(refused.kind, SystemExceptionKind::ImpLimit);
    server_orb.shutdown(true).expect("it ends");
}
