//! `deckwatch call` as a user sees it. An ORB in this process serves objects whose operations return their arguments.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use deckwatch_cdr::value::{Value, read_value, write_value};
use deckwatch_cdr::{EncodeError, TypeCode, Writer};
use deckwatch_idl::Model;
use deckwatch_idl::model::{Mode, Operation, Type};
use deckwatch_orb::{Orb, Servant, ServerRequest, SystemException, SystemExceptionKind};

/// Runs the command in the project's folder.
fn deckwatch(arguments: &[&str]) -> Output {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(arguments)
        .current_dir(root)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

/// Returns the exit status and the printed text.
fn said(output: &Output) -> (Option<i32>, String) {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    (
        output.status.code(),
        String::from_utf8(both)
            .expect("UTF-8")
            .trim_end()
            .to_owned(),
    )
}

const IDL: &str = "crates/cli/tests/broad.idl";

/// An object of the interface `Broad::Everything`. Its results are the parameters of the same type, in turn.
struct Giver {
    model: Model,
}

impl Giver {
    fn operation(&self, wire_name: &str) -> Option<&Operation> {
        let interface = self.model.interface("Broad::Everything")?;
        self.model
            .operations(interface)
            .into_iter()
            .find(|one| one.wire_name == wire_name)
    }

    fn code(&self, ty: &Type) -> TypeCode {
        self.model.type_code_of(ty).expect("every type is mapped")
    }
}

impl Servant for Giver {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[
            "IDL:Broad/Everything:1.0",
            "IDL:Broad/Base:1.0",
            "IDL:omg.org/CORBA/Object:1.0",
        ]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let name = String::from_utf8_lossy(request.operation()).into_owned();
        let unknown = SystemException::new(
            SystemExceptionKind::BadOperation,
            0,
            deckwatch_orb::Completion::No,
        );
        let operation = self.operation(&name).ok_or(unknown)?;
        let mut arguments = request.arguments();
        let mut given: Vec<(TypeCode, Value)> = Vec::new();
        for parameter in operation
            .parameters
            .iter()
            .filter(|one| one.mode != Mode::Out)
        {
            let code = self.code(&parameter.ty);
            let value = read_value(&code, &mut arguments)?;
            given.push((code, value));
        }
        if name == "refuse" {
            return request.raise(&Refused(given.remove(0).1));
        }
        let results = operation.result.iter();
        let outs = operation
            .parameters
            .iter()
            .filter(|one| one.mode != Mode::In);
        let wanted: Vec<TypeCode> = results
            .chain(outs.map(|one| &one.ty))
            .map(|ty| self.code(ty))
            .collect();
        request.reply_with(|w| {
            wanted.iter().try_for_each(|code| {
                let place = given.iter().position(|(known, _)| known == code);
                let value = match place {
                    Some(place) if given.len() > 1 => given.remove(place).1,
                    Some(place) => given[place].1.clone(),
                    None => Value::default_for(code)?,
                };
                write_value(code, &value, w)
            })
        })
    }
}

/// The exception `Broad::Refused`, whose first member is the given text.
#[derive(Debug)]
struct Refused(Value);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("refused")
    }
}

impl std::error::Error for Refused {}

impl deckwatch_cdr::Write for Refused {
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        write_value(&TypeCode::unbounded_string(), &self.0, w)?;
        w.write_u32(1)
    }
}

impl deckwatch_cdr::UserException for Refused {
    const REPOSITORY_ID: &'static str = "IDL:Broad/Refused:1.0";
}

/// A server of one object, with the object's reference and the `corbaloc` address of its name `Broad`.
struct Server {
    orb: Orb,
    reference: String,
    url: String,
}

impl Server {
    fn start() -> Self {
        let orb = Orb::builder()
            .listen("127.0.0.1:0")
            .expect("an endpoint")
            .build()
            .expect("an ORB");
        let root = orb.root_poa().expect("the root adapter");
        root.the_poa_manager().activate().expect("active");
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/broad.idl");
        let model = Model::load(path, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let servant: Arc<dyn Servant> = Arc::new(Giver { model });
        let reference = root.servant_to_reference(&servant).expect("a reference");
        orb.register_plain_key(b"Broad", &reference).expect("a key");
        let url = format!("corbaloc::{}/Broad", orb.endpoints()[0]);
        Self {
            reference: reference.to_string(),
            orb,
            url,
        }
    }

    /// Calls the object by its address, which does not contain the object's type.
    fn call(&self, arguments: &[&str]) -> (Option<i32>, String) {
        call(&self.url, arguments)
    }
}

fn call(reference: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let mut all = vec!["call", "--idl", IDL, reference];
    all.extend(arguments);
    said(&deckwatch(&all))
}

impl Drop for Server {
    fn drop(&mut self) {
        let _by_the_test = self.orb.shutdown(true);
    }
}

/// Operations, their arguments, and the expected output.
const CALLS: &[(&str, &[&str], &str)] = &[
    ("longs", &["-5", "0x10"], "return: -5\nsum: 16"),
    ("text", &["hello, {there}"], "return: \"hello, {there}\""),
    ("text", &["\"caf\\u00e9 €\""], "return: \"café €\""),
    ("wide", &["'Привет'"], "return: \"Привет\""),
    ("shaded", &["light_blue"], "return: light_blue"),
    ("price", &["-12.5"], "return: -12.50"),
    (
        "precise",
        &["0x1.0000000000000000000000000001p0"],
        "return: 0x1.0000000000000000000000000001p0",
    ),
    ("data", &["x'00ff'"], "return: x'00ff'"),
    ("data", &["@LICENSE-MIT"], ""),
    (
        "path",
        &["[{x: 1, y: -2.5}]"],
        "return: [{x: 1.0, y: -2.5}]",
    ),
    (
        "numbers",
        &["[[1, 2, 3], [4, 5, 6]]"],
        "return: [[1, 2, 3], [4, 5, 6]]",
    ),
    (
        "choose",
        &["{case: -2, value: {x: 1, y: 2}}"],
        "return: {case: -2, value: {x: 1.0, y: 2.0}}",
    ),
    ("choose", &["{rest: 7}"], "return: {case: 0, value: 7}"),
    (
        "grow",
        &["{label: a, children: [{label: b, children: []}]}"],
        "return: {label: \"a\", children: [{label: \"b\", children: []}]}",
    ),
    (
        "anything",
        &["{type: \"sequence<Broad::Point, 2>\", value: [{x: 0, y: 1}]}"],
        "return: {type: \"sequence<Broad::Point, 2>\", value: [{x: 0.0, y: 1.0}]}",
    ),
    ("anything", &["null"], "return: null"),
    ("kind", &["Broad::Choice"], "return: \"Broad::Choice\""),
    ("refer", &["nil"], "return: nil"),
    ("note", &["seen"], "sent; a one-way operation has no reply"),
    ("touch", &[], "returned; there are no results"),
    ("name", &[], "return: \"\""),
    ("_get_name", &[], "return: \"\""),
    ("name", &["Broad"], "returned; there are no results"),
];

#[test]
fn values_of_every_type_come_back_as_they_were_given() {
    let server = Server::start();
    for (operation, arguments, expected) in CALLS {
        let mut all = vec![*operation];
        all.extend(*arguments);
        let (status, text) = call(&server.reference, &all);
        assert_eq!(status, Some(0), "{operation}: {text}");
        if expected.is_empty() {
            assert!(text.starts_with("return: x'"), "{operation}: {text}");
            continue;
        }
        assert_eq!(text, *expected, "{operation}");
        // Each printed value can be used as an argument.
        if let (Some(value), [_]) = (text.strip_prefix("return: "), arguments) {
            assert_eq!(call(&server.reference, &[operation, "--", value]).1, text);
        }
    }
}

#[test]
fn a_user_exception_is_printed_with_its_members_and_ends_with_1() {
    let server = Server::start();
    assert_eq!(
        server.call(&["refuse", "no way"]),
        (
            Some(1),
            "raised Broad::Refused: {reason: \"no way\", shade: GREEN}".to_owned()
        )
    );
    let (status, text) = server.call(&["refuse", "no", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(status, Some(1));
    assert_eq!(json["exception"], "IDL:Broad/Refused:1.0");
    assert_eq!(json["members"]["shade"], "GREEN");
}

#[test]
fn the_interface_comes_from_the_reference_or_is_named_or_asked_for() {
    let server = Server::start();
    let by_reference = said(&deckwatch(&[
        "call",
        &server.reference,
        "longs",
        "1",
        "2",
        "--idl",
        IDL,
    ]));
    assert_eq!(by_reference, (Some(0), "return: 1\nsum: 2".to_owned()));
    // Two interfaces have `pick`. `_is_a` selects that of the object.
    assert_eq!(
        server.call(&["pick", "1"]),
        (Some(0), "return: 1".to_owned())
    );
    assert_eq!(
        server.call(&["Everything::pick", "1"]),
        (Some(0), "return: 1".to_owned())
    );
    assert_eq!(
        server
            .call(&["pick", "1", "--interface", "Broad::Everything"])
            .0,
        Some(0)
    );
    let (status, text) = server.call(&["pick", "1", "--dry-run"]);
    assert!(
        status == Some(2) && text.contains("Broad::Everything, Broad::Stranger"),
        "{text}"
    );
    let (status, text) = server.call(&["alone", "1"]);
    assert!(
        status == Some(2) && text.contains("BAD_OPERATION"),
        "{text}"
    );
}

#[test]
fn a_reference_is_read_from_a_file_and_from_standard_input() {
    let server = Server::start();
    let file = std::env::temp_dir().join(format!("deckwatch-call-{}.ior", std::process::id()));
    std::fs::write(&file, format!("{}\n", server.reference)).expect("a file");
    let path = file.to_str().expect("UTF-8");
    let by_file = said(&deckwatch(&["call", path, "text", "a", "--idl", IDL]));
    assert_eq!(by_file, (Some(0), "return: \"a\"".to_owned()));
    let output = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(["call", "-", "_is_a", "IDL:Broad/Base:1.0"])
        .stdin(std::fs::File::open(&file).expect("the file"))
        .output()
        .expect("the program starts");
    assert_eq!(said(&output), (Some(0), "return: true".to_owned()));
    std::fs::write(&file, "").expect("a file");
    let (status, told) = said(&deckwatch(&["call", path, "text", "a", "--idl", IDL]));
    let expected =
        format!("error: {path} holds no reference (IOR:, corbaloc: or corbaname:): it is empty");
    assert_eq!((status, told), (Some(2), expected));
    std::fs::remove_file(file).expect("the file goes");
}

#[test]
fn a_readonly_attribute_is_listed_as_such_and_takes_no_value() {
    let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/../../idl/deckwatch/echo.idl");
    let listed = said(&deckwatch(&["call", "--list", "--idl", idl]));
    assert!(
        listed
            .1
            .contains("  readonly attribute unsigned long long calls\n"),
        "{}",
        listed.1
    );
    let nobody = "corbaloc::127.0.0.1:9/Echo";
    let (status, told) = said(&deckwatch(&[
        "call",
        "--idl",
        idl,
        nobody,
        "Echo::calls",
        "5",
    ]));
    let expected = "error: the attribute `calls` of Deckwatch::Echo is readonly: it takes no value";
    assert_eq!((status, told.as_str()), (Some(2), expected));
}

#[test]
fn json_says_the_same() {
    let server = Server::start();
    let (status, text) = server.call(&["longs", "1", "2", "--json"]);
    assert_eq!(
        (status, text.as_str()),
        (Some(0), "{\"return\": 1, \"sum\": 2}")
    );
    let (_, text) = server.call(&["grow", "{label: \"a\\n\", children: []}", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["return"]["label"], "a\n");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let server = Server::start();
    insta::assert_snapshot!(server.call(&["path", "[{x: 1, y: 2}, {x: east, y: 1}]"]).1);
    insta::assert_snapshot!(server.call(&["longs", "1"]).1);
    insta::assert_snapshot!(server.call(&["missing"]).1);
    insta::assert_snapshot!(server.call(&["Everything::missing"]).1);
    insta::assert_snapshot!(said(&deckwatch(&["call", &server.url, "text", "a"])).1);
    insta::assert_snapshot!(
        said(&deckwatch(&[
            "call",
            "nowhere.ior",
            "text",
            "a",
            "--idl",
            IDL
        ]))
        .1
    );
}

#[test]
fn what_is_not_mapped_is_said_to_be_so() {
    let (status, text) = call("corbaloc::127.0.0.1:9/Ship", &["load", "1"]);
    assert_eq!(status, Some(2));
    assert!(
        text.contains("`load` cannot be called: its parameter `freight` is a valuetype"),
        "{text}"
    );
}

#[test]
fn operations_are_listed_with_their_idl() {
    insta::assert_snapshot!(said(&deckwatch(&["call", "--list", "--idl", IDL])).1);
}

#[test]
fn a_dry_run_shows_each_octet_and_sends_none() {
    let nobody = "corbaloc::127.0.0.1:9/Broad";
    let arguments = [
        "call",
        nobody,
        "mixed",
        "7",
        "{x: 1, y: 2}",
        "[a, bc]",
        "--idl",
        IDL,
        "--dry-run",
    ];
    insta::assert_snapshot!(said(&deckwatch(&arguments)).1);
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("corbaloc::{}/x", silent.local_addr().expect("its number"));
    let (status, text) = said(&deckwatch(&[
        "call",
        &url,
        "_non_existent",
        "--timeout",
        "200ms",
    ]));
    assert!(status == Some(2) && text.contains("TIMEOUT"), "{text}");
    // No server ever listens at this port.
    let url = "corbaloc::127.0.0.1:1/x";
    let (_, text) = said(&deckwatch(&[
        "call",
        "corbaloc:rir:/X",
        "_non_existent",
        "--trace",
        "--init-ref",
        &format!("X={url}"),
    ]));
    assert!(
        text.contains("Nobody listens there") && text.contains("What to do"),
        "{text}"
    );
    let (status, text) = said(&deckwatch(&["call", url, "_non_existent"]));
    assert!(status == Some(2) && text.contains("TRANSIENT"), "{text}");
}
