//! `deckwatch call` and `deckwatch names` with omniORB's servers, omniORB's naming client with ours, and names that
//! continue from one service into the other.

use std::process::Command;
use std::sync::Arc;

use crate::common::{Capture, Running, free_port, omniorb_program, run, scratch, try_run};
use crate::names::{Names, OmniNames, deckwatch};
use deckwatch_orb::{
    Completion, Orb, Servant, ServerRequest, SystemException, SystemExceptionKind,
};
use deckwatch_testkit::program;

/// The result in the output of a call, or its error.
fn call(reference: &str, idl: &str, arguments: &[&str]) -> Result<String, String> {
    let mut command = deckwatch();
    command
        .args(["call", "--idl", idl, reference])
        .args(arguments);
    try_run(&mut command).map(|said| said.trim_end().to_owned())
}

const ECHO: &str = "idl/deckwatch/echo.idl";
const NAMING: &str = "idl/omg/CosNaming.idl";

/// Operations of the echo interface, their arguments, and the result.
const CALLS: &[(&str, &[&str], &str)] = &[
    ("echo_string", &["hello, ship"], "return: \"hello, ship\""),
    ("echo_octets", &["x'00ff10'"], "return: x'00ff10'"),
    (
        "echo_complex",
        &["{s: -1, l: 2, f: 0.5, d: 1e300, c: x, name: nav}"],
        "return: {s: -1, l: 2, f: 0.5, d: 1e300, c: 'x', name: \"nav\"}",
    ),
    (
        "echo_complex_sequence",
        &["[{s: 0, l: 0, f: 0, d: 0, c: \"'\", name: \"\"}]"],
        "return: [{s: 0, l: 0, f: 0.0, d: 0.0, c: '\\'', name: \"\"}]",
    ),
    ("echo_object", &["nil"], "return: nil"),
    ("calls", &[], "return: 0"),
];

/// Values in an `any`, of types that the server does not know.
const ANYS: &[&str] = &[
    "{type: \"string\", value: \"text\"}",
    "{type: \"wstring\", value: \"Привет\"}",
    "{type: \"sequence<long, 4>\", value: [1, -2]}",
    "{type: \"double[2][3]\", value: [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]}",
    "{type: \"fixed<9, 2>\", value: -12.50}",
    "{type: \"unsigned long long\", value: 18446744073709551615}",
    "{type: \"TypeCode\", value: \"sequence<string>\"}",
    "{type: \"any\", value: {type: \"octet\", value: 7}}",
    "{type: \"Deckwatch::ComplexStruct\", value: {s: 1, l: 2, f: 0.5, d: 1.0, c: 'x', name: \"n\"}}",
    "{type: \"Deckwatch::Echo\", value: nil}",
    "{\n  type: \"union \\\"IDL:Some/U:1.0\\\" U switch (enum \\\"IDL:Some/E:1.0\\\" E { a, b }) { case 0: long x; case 1: string y; }\",\n  \
     value: {case: b, value: \"chosen\"}\n}",
    "{\n  type: \"struct \\\"IDL:Some/Node:1.0\\\" Node { string label; sequence<recursive \\\"IDL:Some/Node:1.0\\\"> children; }\",\n  \
     value: {label: \"a\", children: [{label: \"b\", children: []}]}\n}",
    "null",
];

#[test]
fn any_operation_of_omniorbs_server_is_called_from_the_shell() {
    let Some(server) = omniorb_program("echo/server", &["deckwatch/echo.idl"]) else {
        return;
    };
    let folder = scratch("shell-calls");
    let port = free_port();
    let capturing = Capture::start(&folder, &[port]);
    let endpoint = format!("giop:tcp:127.0.0.1:{port}");
    let mut process = Running::start(Command::new(server).args(["-ORBendPoint", &endpoint]));
    let ior = process.line_with("IOR:");
    for (operation, arguments, expected) in CALLS {
        let mut all = vec![*operation];
        all.extend(*arguments);
        assert_eq!(
            call(&ior, ECHO, &all).as_deref(),
            Ok(*expected),
            "{operation}"
        );
    }
    for any in ANYS {
        let expected = format!("return: {any}");
        assert_eq!(
            call(&ior, ECHO, &["echo_any", any]).as_deref(),
            Ok(expected.as_str())
        );
    }
    let object = call(&ior, ECHO, &["echo_object", &ior]).expect("an object comes back");
    assert!(object.starts_with("return: IOR:"), "{object}");
    let refused = call(&ior, ECHO, &["refuse", "no", "-7"]).expect_err("it always raises");
    assert!(
        refused.contains("raised Deckwatch::Refused: {reason: \"no\", code: -7}"),
        "{refused}"
    );
    call(&ior, ECHO, &["send_octets", "x'00'"]).expect("sent");
    assert_eq!(
        call(&ior, ECHO, &["_is_a", "IDL:Deckwatch/Echo:1.0"]).as_deref(),
        Ok("return: true")
    );
    let unknown = call(&ior, ECHO, &["_component"]).expect_err("it is no component");
    assert!(unknown.contains("BAD_OPERATION"), "{unknown}");
    if let Some(capturing) = capturing {
        let (messages, malformed) = capturing.finish();
        assert!(
            messages[2] > 2 * ANYS.len(),
            "only {messages:?} frames of GIOP captured"
        );
        assert_eq!(malformed, Vec::<String>::new());
    }
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

fn names(at: &str, arguments: &[&str]) -> String {
    run(deckwatch()
        .arg("names")
        .args(arguments)
        .args(["--names", at]))
    .trim_end()
    .to_owned()
}

const THING: &str = "corbaloc::127.0.0.1:9/thing";

#[test]
fn omninames_is_used_by_every_command_of_ours_and_by_calls_of_its_operations() {
    let Some(theirs) = OmniNames::start("names-theirs") else {
        return;
    };
    let at = theirs.url.as_str();
    names(at, &["bind", "fleet/alpha.ship", THING, "--contexts"]);
    names(at, &["new-context", "fleet/harbour"]);
    names(at, &["bind", "fleet/alpha.ship", THING, "--replace"]);
    names(at, &["bind-context", "again", at]);
    assert_eq!(names(at, &["list", "fleet"]), "alpha.ship\nharbour/");
    let tree = names(at, &["list", "-r"]);
    assert!(
        tree.contains("again/  (listed already)") && tree.contains("fleet/harbour/"),
        "{tree}"
    );
    assert!(names(at, &["list", "fleet", "--long"]).contains("127.0.0.1:9"));
    assert!(names(at, &["resolve", "fleet/alpha.ship"]).starts_with("IOR:"));
    let refused = try_run(deckwatch().args(["names", "resolve", "fleet/beta", "--names", at]));
    assert!(
        refused
            .expect_err("it is not there")
            .contains("`fleet` has no `beta`")
    );
    // The same with TypeCodes made from its IDL at run time.
    let resolved = call(
        at,
        NAMING,
        &[
            "resolve",
            "[{id: fleet, kind: \"\"}, {id: alpha, kind: ship}]",
        ],
    );
    assert!(resolved.expect("it is bound").starts_with("return: IOR:"));
    let raised =
        call(at, NAMING, &["resolve", "[{id: \"x\", kind: \"\"}]"]).expect_err("it is not bound");
    let expected = "raised CosNaming::NamingContext::NotFound: {why: missing_node, rest_of_name: [{id: \"x\", kind: \"\"}]}";
    assert!(raised.contains(expected), "{raised}");
    assert_eq!(
        call(at, NAMING, &["to_name", "a.b"]).as_deref(),
        Ok("return: [{id: \"a\", kind: \"b\"}]")
    );
    let listed = call(at, NAMING, &["list", "10"]).expect("a listing");
    assert!(
        listed.contains("binding_type: ncontext") && listed.ends_with("bi: nil"),
        "{listed}"
    );
    names(at, &["unbind", "again"]);
    names(at, &["destroy", "fleet", "-r"]);
    assert_eq!(names(at, &["list"]), "");
}

/// Operations of a naming context on valid and invalid names. `{ROOT}` is the service's own root, `{THING}` an object
/// that is not a context. One case is left out: rebinding to the other kind of object. omniNames does it, and the
/// standard refuses it (NotFound).
const ASKED: &[(&str, &[&str])] = &[
    ("bind", &["[{id: leaf, kind: k}]", "{THING}"]),
    ("bind", &["[{id: leaf, kind: k}]", "{THING}"]),
    ("bind", &["[{id: leaf, kind: other}]", "{THING}"]),
    ("bind", &["[]", "{THING}"]),
    (
        "bind",
        &["[{id: none, kind: \"\"}, {id: a, kind: \"\"}]", "{THING}"],
    ),
    (
        "bind",
        &[
            "[{id: leaf, kind: k}, {id: a, kind: \"\"}, {id: b, kind: \"\"}]",
            "{THING}",
        ],
    ),
    ("rebind", &["[{id: leaf, kind: k}]", "{THING}"]),
    ("rebind", &["[{id: fresh, kind: \"\"}]", "{THING}"]),
    ("bind_new_context", &["[{id: inner, kind: \"\"}]"]),
    ("bind_new_context", &["[{id: inner, kind: \"\"}]"]),
    ("bind_new_context", &["[{id: leaf, kind: k}]"]),
    ("bind_new_context", &["[]"]),
    (
        "bind_context",
        &["[{id: inner, kind: \"\"}, {id: up, kind: \"\"}]", "{ROOT}"],
    ),
    (
        "bind_context",
        &["[{id: inner, kind: \"\"}, {id: up, kind: \"\"}]", "{ROOT}"],
    ),
    (
        "rebind_context",
        &["[{id: inner, kind: \"\"}, {id: up, kind: \"\"}]", "{ROOT}"],
    ),
    (
        "resolve",
        &["[{id: inner, kind: \"\"}, {id: up, kind: \"\"}, {id: leaf, kind: k}]"],
    ),
    (
        "resolve",
        &["[{id: inner, kind: \"\"}, {id: up, kind: \"\"}, {id: leaf, kind: none}]"],
    ),
    (
        "resolve",
        &["[{id: leaf, kind: k}, {id: below, kind: \"\"}]"],
    ),
    (
        "resolve",
        &["[{id: inner, kind: \"\"}, {id: none, kind: \"\"}, {id: more, kind: \"\"}]"],
    ),
    ("resolve", &["[]"]),
    ("resolve_str", &["inner/up/leaf.k"]),
    ("resolve_str", &["inner//up"]),
    (
        "to_string",
        &["[{id: \"a.b\", kind: \"c/d\"}, {id: \"\", kind: \"\"}, {id: \"\", kind: k}]"],
    ),
    ("to_string", &["[]"]),
    ("to_name", &["a\\\\.b.c/./x"]),
    ("to_name", &["a."]),
    ("to_url", &[":host:2809", "a b/c"]),
    ("to_url", &[":host:2809", "a//c"]),
    ("unbind", &["[{id: none, kind: \"\"}]"]),
    (
        "unbind",
        &["[{id: inner, kind: \"\"}, {id: none, kind: \"\"}]"],
    ),
    ("unbind", &["[]"]),
    (
        "unbind",
        &["[{id: inner, kind: \"\"}, {id: up, kind: \"\"}]"],
    ),
    ("unbind", &["[{id: inner, kind: \"\"}]"]),
];

#[test]
fn our_service_and_omninames_answer_alike() {
    let Some(theirs) = OmniNames::start("names-alike") else {
        return;
    };
    let ours = Names::start();
    let (orb, thing) = object();
    let ask = |root: &str, operation: &str, arguments: &[&str]| {
        let arguments: Vec<String> = (arguments.iter())
            .map(|argument| argument.replace("{ROOT}", root).replace("{THING}", &thing))
            .collect();
        let mut all = vec![operation];
        all.extend(arguments.iter().map(String::as_str));
        let said = match call(root, NAMING, &all) {
            Ok(said) => said,
            Err(said) => said.lines().last().unwrap_or("").to_owned(),
        };
        // The references themselves differ between the services.
        let (head, _) = said.split_once("IOR:").unwrap_or((&said, ""));
        head.to_owned()
    };
    let mut differing = Vec::new();
    for (operation, arguments) in ASKED {
        let here = ask(&ours.url, operation, arguments);
        let there = ask(&theirs.url, operation, arguments);
        if here != there {
            differing.push(format!(
                "{operation} {arguments:?}\n  ours: {here}\n  theirs: {there}"
            ));
        }
    }
    orb.shutdown(true).expect("it ends");
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// An object of this process that has only the operations of every object. omniNames asks a bound object whether it is
/// a context.
fn object() -> (Orb, String) {
    struct Thing;
    impl Servant for Thing {
        fn repository_ids(&self) -> &'static [&'static str] {
            &["IDL:Thing:1.0"]
        }
        fn dispatch(&self, _: &mut ServerRequest<'_>) -> Result<(), SystemException> {
            Err(SystemException::new(
                SystemExceptionKind::BadOperation,
                0,
                Completion::No,
            ))
        }
    }
    let builder = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
    let orb = builder.build().expect("an ORB");
    let root = orb.root_poa().expect("the root adapter");
    root.the_poa_manager().activate().expect("active");
    let servant: Arc<dyn Servant> = Arc::new(Thing);
    let reference = root.servant_to_reference(&servant).expect("a reference");
    (orb, reference.to_string())
}

#[test]
fn every_command_of_nameclt_works_on_our_service() {
    if program("nameclt").is_none() {
        return;
    }
    let ours = Names::start();
    let done = |arguments: &[&str]| {
        ours.nameclt(arguments)
            .unwrap_or_else(|said| panic!("{arguments:?}: {said}"))
    };
    assert!(done(&["bind_new_context", "ships"]).contains("IOR:"));
    done(&["bind", "ships/nav.channel", &ours.ior]);
    assert!(
        ours.nameclt(&["bind", "ships/nav.channel", &ours.ior])
            .is_err(),
        "it is bound"
    );
    done(&["rebind", "ships/nav.channel", &ours.ior]);
    let made = done(&["new_context"]);
    let loose = made
        .split_whitespace()
        .find(|word| word.starts_with("IOR:"))
        .expect("a reference");
    done(&["bind_context", "ships/loose", loose]);
    done(&["rebind_context", "ships/loose", loose]);
    assert!(
        ours.nameclt(&["rebind", "ships/loose", &ours.ior]).is_err(),
        "a context stays one"
    );
    assert_eq!(done(&["list", "ships"]), "loose/\nnav.channel");
    done(&["unbind", "ships/loose"]);
    run(Command::new("nameclt").args(["-advanced", "-ior", loose, "destroy"]));
    assert!(done(&["resolve", "ships/nav.channel"]).contains("IOR:"));
    assert!(ours.nameclt(&["resolve", "ships/none"]).is_err());
    assert!(
        ours.nameclt(&["remove_context", "ships"]).is_err(),
        "it is not empty"
    );
    done(&["unbind", "ships/nav.channel"]);
    done(&["remove_context", "ships"]);
    assert_eq!(done(&["list"]), "");
}

#[test]
fn a_name_goes_on_from_our_service_into_omninames_and_back() {
    let Some(theirs) = OmniNames::start("names-federated") else {
        return;
    };
    let ours = Names::start();
    names(&theirs.url, &["bind", "far/radar", THING, "--contexts"]);
    names(&ours.url, &["bind-context", "there", &theirs.url]);
    names(&theirs.url, &["bind-context", "here", &ours.url]);
    names(&ours.url, &["bind", "near", THING]);
    // Through the foreign service, through ours, and through both.
    for (at, name) in [
        (&ours.url, "there/far/radar"),
        (&theirs.url, "here/near"),
        (&ours.url, "there/here/near"),
    ] {
        assert!(names(at, &["resolve", name]).starts_with("IOR:"), "{name}");
    }
    names(&ours.url, &["bind", "there/far/sonar", THING]);
    names(&ours.url, &["new-context", "there/far/deep"]);
    assert_eq!(names(&theirs.url, &["list", "far"]), "deep/\nradar\nsonar");
    let tree = names(&ours.url, &["list", "-r"]);
    assert!(tree.contains("there/far/sonar"), "{tree}");
    let missing =
        try_run(deckwatch().args(["names", "resolve", "there/far/none", "--names", &ours.url]));
    assert!(
        missing
            .expect_err("it is not there")
            .contains("`there/far` has no `none`")
    );
    names(&ours.url, &["unbind", "there/far/sonar"]);
    let ours_url = ours.url.clone();
    drop(theirs);
    let stopped =
        try_run(deckwatch().args(["names", "resolve", "there/far/radar", "--names", &ours_url]));
    let stopped = stopped.expect_err("their service has gone");
    assert!(
        stopped.contains("the service of the context `there` cannot be reached"),
        "{stopped}"
    );
}
