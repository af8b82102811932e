//! The example programs of omniORB, as built from Debian's package omniorb-doc. Each of its clients calls a server of
//! ours, and we call each of its servers. `gaps.toml` lists, under `beyond`, the directories that have no counterpart
//! on our side, with reasons.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use crate::common::{Running, free_port, root, scratch};
use crate::gaps;
use deckwatch_cdr::Any;
use deckwatch_orb::cos_naming::{NameComponent, NamingContextRef};
use deckwatch_orb::{
    BidirectionalPolicyValue, Completion, Counter, ObjectRef, Orb, Poa, Policies, Policy, Servant,
    SetOverrideType, SystemException, SystemExceptionKind,
};

#[allow(
    clippy::redundant_closure,
    reason = "what it suggests is not general enough over lifetimes"
)]
mod idl {
    include!(concat!(env!("OUT_DIR"), "/omniorb_examples.rs"));
}
use idl::cb::{CallBack, CallBackRef, CallBackSkeleton, Server, ServerRef, ServerSkeleton};
use idl::*;

/// Where Debian installs them.
const EXAMPLES: &str = "/usr/lib/omniorb/examples";

/// The directories whose programs are tested here.
const TRIED: [&str; 9] = [
    "ami",
    "anyExample",
    "bidir",
    "boa",
    "call_back",
    "dii",
    "dsi",
    "echo",
    "poa",
];

/// An example program, or a counted skip.
fn example(name: &str) -> Option<PathBuf> {
    let program = Path::new(EXAMPLES).join(name);
    if !program.exists() {
        deckwatch_testkit::skip("omniorb-doc", "omniORB's examples are not installed");
        return None;
    }
    Some(program)
}

/// A servant that echoes its text.
struct Parrot;

impl Echo for Parrot {
    fn echo_string<'a>(&'a self, mesg: &'a str) -> Result<Cow<'a, str>, SystemException> {
        Ok(mesg.into())
    }
}

/// A servant that accepts only the four values that the example sends, and replies as the example's own server does.
struct Receiver;

impl AnyExample for Receiver {
    fn test_op(&self, mesg: &Any) -> Result<Any, SystemException> {
        let is_sent = mesg.extract::<i32>() == Ok(100)
            || mesg.extract::<f64>() == Ok(1.2345)
            || mesg.extract::<String>().as_deref() == Ok("Hello")
            || mesg.extract::<TestStruct>() == Ok(TestStruct { l: 456, s: 8 });
        if !is_sent {
            let kind = SystemExceptionKind::BadParam;
            return Err(SystemException::new(kind, 0, Completion::No));
        }
        Ok(Any::from_value(&314_u32)?)
    }
}

/// A servant that calls back on request: at once, or, for a registered callback, twice from another thread.
struct CallingServer(Sender<()>);

impl Server for CallingServer {
    fn one_time(&self, cb: Option<&CallBackRef>, mesg: &str) -> Result<(), SystemException> {
        cb.ok_or(NIL)?.call_back(mesg)
    }

    fn register(
        &self,
        cb: Option<&CallBackRef>,
        mesg: &str,
        _: u16,
    ) -> Result<(), SystemException> {
        let (cb, mesg) = (cb.ok_or(NIL)?.clone(), mesg.to_owned());
        std::thread::spawn(move || cb.call_back(&mesg).and_then(|()| cb.call_back(&mesg)));
        Ok(())
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        let _ = self.0.send(()); // The receiver may be gone.
        Ok(())
    }
}

const NIL: SystemException =
    SystemException::new(SystemExceptionKind::InvObjref, 0, Completion::No);

/// A callback object that sends its arguments to a channel.
struct Listening(Sender<String>);

impl CallBack for Listening {
    fn call_back(&self, mesg: &str) -> Result<(), SystemException> {
        let _ = self.0.send(mesg.to_owned()); // The receiver may be gone.
        Ok(())
    }
}

/// A listening ORB of ours, and its root POA.
fn our_orb() -> (Orb, Poa) {
    let builder = Orb::builder().round_trip_timeout(Duration::from_secs(30));
    let builder = builder.listen("127.0.0.1:0").expect("an endpoint");
    let orb = builder.build().expect("an ORB");
    let root = orb.root_poa().expect("a root POA");
    root.the_poa_manager().activate().expect("a fresh manager");
    (orb, root)
}

fn serve(root: &Poa, servant: impl Servant) -> ObjectRef {
    let servant: Arc<dyn Servant> = Arc::new(servant);
    root.servant_to_reference(&servant)
        .expect("implicit activation")
}

/// Checks that a server calls an object in this adapter back, once at once and then repeatedly.
#[track_caller]
fn expect_called_back(server: &ServerRef, poa: &Poa) {
    let (heard, hearing) = channel();
    let listening = serve(poa, CallBackSkeleton::new(Listening(heard)));
    let listening = CallBackRef::unchecked_narrow(listening);
    server.one_time(Some(&listening), "once").expect("called");
    assert_eq!(hearing.recv().as_deref(), Ok("once"));
    server
        .register(Some(&listening), "often", 1)
        .expect("called");
    for _ in 0..2 {
        assert_eq!(hearing.recv().as_deref(), Ok("often"));
    }
}

/// Runs a client of omniORB; returns all its output.
fn their_client(name: &str, arguments: &[&str]) -> Option<String> {
    let program = example(name)?;
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{name}: {error}"));
    let both = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&both).into_owned();
    assert!(output.status.success(), "{name} ended with {said}");
    Some(said)
}

/// Starts a server of omniORB, and finds its object: by the reference it prints, or by the name it binds.
fn their_server(name: &str, arguments: &[&str]) -> Option<(Running, String)> {
    let mut process = Running::start(
        Command::new(example(name)?)
            .args(["-ORBendPoint", "giop:tcp:127.0.0.1:"])
            .args(arguments),
    );
    let ior = process.line_with("IOR:");
    Some((process, ior))
}

fn object(orb: &Orb, reference: &str) -> ObjectRef {
    let object = orb.string_to_object(reference).expect("a reference");
    object.expect("no nil reference")
}

/// Starts omniNames; returns its address too, as an argument of `-ORBInitRef`.
fn omninames(folder: &Path) -> Option<(Running, String)> {
    let program = deckwatch_testkit::program("omniNames")?;
    let port = free_port();
    let mut process = Running::start(
        Command::new(program)
            .args(["-start", &port.to_string(), "-logdir"])
            .arg(folder)
            .args(["-errlog", "/dev/stderr"]),
    );
    process.line_with("IOR:");
    Some((process, format!("corbaloc::127.0.0.1:{port}/NameService")))
}

fn component(id: &str, kind: &str) -> NameComponent {
    NameComponent {
        id: id.into(),
        kind: kind.into(),
    }
}

#[test]
fn their_echo_clients_static_dynamic_and_asynchronous_call_our_server() {
    let (orb, root) = our_orb();
    let reference = serve(&root, EchoSkeleton::new(Parrot)).to_string();
    for (client, expected) in [
        ("echo/eg2_clt", &["replied, \"Hello!\""][..]),
        (
            "dii/echo_diiclt",
            &["replied, \"Hello!\"", "replied, \"Hello deferred!\""],
        ),
        ("ami/echo_callback", &["return: Hello async!"]),
        (
            "ami/echo_poller",
            &["returned: Hello async!", "returned: Hello again async!"],
        ),
        (
            "ami/echo_pollable_set",
            &["returned: Hello async 1!", "returned: Hello async 2!"],
        ),
        // If both replies are ready at the same time, the program confuses them.
        ("ami/echo_dii_pollable_set", &["returned: Hello"]),
    ] {
        let Some(heard) = their_client(client, &[&reference]) else {
            return;
        };
        for said in expected {
            assert!(heard.contains(said), "{client}: {heard}");
        }
    }
    orb.shutdown(true).expect("it ends");
}

#[test]
fn their_echo_servers_static_dynamic_and_with_servant_managers_are_called_by_us() {
    let (orb, _) = our_orb();
    for server in [
        "echo/eg2_impl",
        "dsi/echo_dsiimpl",
        "boa/eg2_impl",
        "poa/servant_manager/servant_activator",
        "poa/servant_manager/servant_locator",
        "poa/threading/mainthread",
    ] {
        let Some((_process, ior)) = their_server(server, &[]) else {
            return;
        };
        let echo = EchoRef::narrow(&object(&orb, &ior)).expect("an answer");
        let echo = echo.unwrap_or_else(|| panic!("{server} is an Echo"));
        for text in ["ahoy", "", "again"] {
            assert_eq!(echo.echo_string(text).as_deref(), Ok(text), "{server}");
        }
    }
    orb.shutdown(true).expect("it ends");
}

#[test]
fn a_persistent_reference_of_theirs_outlives_its_server() {
    let port = free_port();
    let endpoint = format!("giop:tcp:127.0.0.1:{port}");
    let server = "poa/persistent_objref/eg2_impl";
    let mut kept = None;
    for _ in 0..2 {
        let Some(program) = example(server) else {
            return;
        };
        let mut process = Running::start(Command::new(program).args(["-ORBendPoint", &endpoint]));
        let ior = process.line_with("IOR:");
        // A new client for each attempt, because an old one might notice a broken connection only in its call.
        let (orb, _) = our_orb();
        let echo = EchoRef::unchecked_narrow(object(&orb, kept.get_or_insert(ior)));
        assert_eq!(echo.echo_string("ahoy").as_deref(), Ok("ahoy"));
        orb.shutdown(true).expect("it ends");
    }
}

#[test]
fn both_find_each_others_echo_by_the_name_that_the_example_gives_it() {
    let folder = scratch("examples-names");
    let Some((_names, at)) = omninames(&folder) else {
        return;
    };
    let initial = format!("NameService={at}");
    let (orb, root) = our_orb();
    let names = NamingContextRef::narrow(&object(&orb, &at)).expect("an answer");
    let names = names.expect("a naming context");
    let context = [component("test", "my_context")];
    let name = [component("test", "my_context"), component("Echo", "Object")];
    names.bind_new_context(&context).expect("a new context");
    let ours = serve(&root, EchoSkeleton::new(Parrot));
    names.bind(&name, Some(&ours)).expect("bound");
    let Some(heard) = their_client("echo/eg3_clt", &["-ORBInitRef", &initial]) else {
        return;
    };
    assert_eq!(heard.matches("replied, \"Hello!\"").count(), 10, "{heard}");
    for server in ["echo/eg3_impl", "echo/eg3_tieimpl"] {
        names.unbind(&name).expect("it was bound");
        let program = example(server).expect("the package is installed");
        let _process = Running::start(
            Command::new(program)
                .args(["-ORBInitRef", &initial])
                .args(["-ORBendPoint", "giop:tcp:127.0.0.1:"]),
        );
        let echo = resolved(&names, &name);
        assert_eq!(echo.echo_string("ahoy").as_deref(), Ok("ahoy"), "{server}");
    }
    orb.shutdown(true).expect("it ends");
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

/// The object bound to a name, once it is bound. These servers print nothing when they are ready.
fn resolved(names: &NamingContextRef, name: &[NameComponent]) -> EchoRef {
    let begun = std::time::Instant::now();
    loop {
        match names.resolve(name) {
            Ok(object) => return EchoRef::unchecked_narrow(object.expect("no nil reference")),
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(30), "{error:?}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn their_any_example_goes_both_ways() {
    let (orb, root) = our_orb();
    let reference = serve(&root, AnyExampleSkeleton::new(Receiver)).to_string();
    let Some(heard) = their_client("anyExample/anyExample_clt", &[&reference]) else {
        return;
    };
    assert_eq!(heard.matches("ULong: 314").count(), 4, "{heard}");
    let Some((mut process, ior)) = their_server("anyExample/anyExample_impl", &[]) else {
        return;
    };
    let example = AnyExampleRef::narrow(&object(&orb, &ior)).expect("an answer");
    let example = example.expect("an object of its type");
    let whole = TestStruct { l: 456, s: 8 };
    for (any, told) in [
        (Any::from_value(&100_i32), "Long: 100"),
        (Any::from_value(&1.2345_f64), "Double: 1.2345"),
        (Any::from_value("Hello"), "String: Hello"),
        (Any::from_value(&whole), "testStruct: l: 456"),
    ] {
        let answer = example.test_op(&any.expect("a value that can be written"));
        assert_eq!(answer.expect("an answer").extract::<u32>(), Ok(314));
        process.line_with(told);
    }
    orb.shutdown(true).expect("it ends");
}

#[test]
fn their_call_backs_come_and_go() {
    let (orb, root) = our_orb();
    let (down, is_down) = channel();
    let reference = serve(&root, ServerSkeleton::new(CallingServer(down))).to_string();
    let Some(once) = their_client("call_back/cb_client", &[&reference]) else {
        return;
    };
    assert_eq!(once.matches("call_back(\"Hello!\")").count(), 1, "{once}");
    let twice = their_client("call_back/cb_client", &[&reference, "1", "2"]);
    let twice = twice.expect("the package is installed");
    assert_eq!(twice.matches("call_back(\"Hello!\")").count(), 2, "{twice}");
    their_client("call_back/cb_shutdown", &[&reference]);
    is_down.recv().expect("it was told to shut down");

    let Some((_process, ior)) = their_server("call_back/cb_server", &[]) else {
        return;
    };
    let server = ServerRef::narrow(&object(&orb, &ior)).expect("an answer");
    let server = server.expect("an object of its type");
    expect_called_back(&server, &root);
    server.shutdown().expect("it ends");
    orb.shutdown(true).expect("it ends");
}

/// Options that make omniORB use bidirectional GIOP, at the client and at the server.
const OFFERS: [&str; 4] = [
    "-ORBofferBiDirectionalGIOP",
    "1",
    "-ORBclientTransportRule",
    "* tcp,bidir",
];
const ACCEPTS: [&str; 4] = [
    "-ORBacceptBiDirectionalGIOP",
    "1",
    "-ORBserverTransportRule",
    "* tcp,bidir",
];

#[test]
fn their_call_backs_come_over_the_connection_that_was_opened_for_the_call() {
    let (orb, root) = our_orb();
    let manager = root.the_poa_manager();
    let both = Policies {
        bidirectional: BidirectionalPolicyValue::Both,
        ..Policies::root()
    };
    let poa = root.create_poa("bidir", Some(manager), &both);
    let poa = poa.expect("a new name");
    let (down, is_down) = channel();
    let reference = serve(&poa, ServerSkeleton::new(CallingServer(down))).to_string();
    let with = |arguments: &[&'static str]| [&OFFERS, arguments].concat();
    let reference: &'static str = reference.leak();
    let Some(once) = their_client("bidir/bd_client", &with(&[reference])) else {
        return;
    };
    assert_eq!(once.matches("call_back(\"Hello!\")").count(), 1, "{once}");
    let twice = their_client("bidir/bd_client", &with(&[reference, "1", "2"]));
    let twice = twice.expect("the package is installed");
    assert_eq!(twice.matches("call_back(\"Hello!\")").count(), 2, "{twice}");
    their_client("bidir/bd_shutdown", &[reference]);
    is_down.recv().expect("it was told to shut down");
    let counted = |counter| orb.counters().read(counter);
    assert_eq!(counted(Counter::ConnectionsMade), 0);
    assert_eq!(counted(Counter::ConnectionsBidirectional), 2);

    let Some((_process, ior)) = their_server("bidir/bd_server", &ACCEPTS) else {
        return;
    };
    let server = object(&orb, &ior);
    let offers = Policy::Bidirectional(BidirectionalPolicyValue::Both);
    let server = server.set_policy_overrides(&[offers], SetOverrideType::AddOverride);
    let server = ServerRef::unchecked_narrow(server.expect("one policy"));
    let accepted = counted(Counter::ConnectionsAccepted);
    expect_called_back(&server, &poa);
    server.shutdown().expect("it ends");
    assert_eq!(counted(Counter::ConnectionsAccepted), accepted);
    orb.shutdown(true).expect("it ends");
}

#[test]
fn every_folder_of_examples_is_tried_or_listed_with_a_reason() {
    let Ok(entries) = std::fs::read_dir(EXAMPLES) else {
        deckwatch_testkit::skip("omniorb-doc", "omniORB's examples are not installed");
        return;
    };
    let beyond = gaps::beyond();
    let prefix = "omniorb-example-";
    for entry in entries {
        let entry = entry.expect("the folder can be read");
        let name = entry.file_name().into_string().expect("a name in UTF-8");
        if entry.path().is_dir() && !TRIED.contains(&name.as_str()) {
            assert!(
                beyond.contains(&format!("{prefix}{name}")),
                "{name} is neither tried nor listed in {}",
                root().join("interop/gaps.toml").display()
            );
        }
    }
}
