//! Values of value types in Anys, sent to foreign ORBs and back.

use std::process::Command;
use std::time::Duration;

use crate::common::{Running, free_port, omniorb_program};
use crate::valuetypes;
use crate::valuetypes::valuetype;
use deckwatch_cdr::typecode::ValueModifier;
use deckwatch_cdr::value::Value;
use deckwatch_cdr::{Any, ByteOrder, Parse, Reader, TypeCode, Write, Writer};
use deckwatch_dynamic::{CreateRequest, NamedValue, RequestError};
use deckwatch_orb::{ObjectRef, Orb};

fn id(name: &str) -> String {
    format!("IDL:Deckwatch/Berths/{name}:1.0")
}

fn point() -> TypeCode {
    valuetype(
        &id("Point"),
        ValueModifier::None,
        None,
        &[("x", &TypeCode::long())],
    )
}

fn place() -> TypeCode {
    let itself = TypeCode::recursive(&id("Place"));
    let members = [("name", &TypeCode::unbounded_string()), ("next", &itself)];
    valuetype(
        &id("Place"),
        ValueModifier::Truncatable,
        Some(&point()),
        &members,
    )
}

fn pair() -> TypeCode {
    let members = [("left", &point()), ("right", &point())];
    valuetype(&id("Pair"), ValueModifier::None, None, &members)
}

fn label() -> TypeCode {
    TypeCode::value_box(&id("Label"), "Label", &TypeCode::unbounded_string())
}

fn instance(name: &str, state: Vec<Value>) -> Value {
    valuetypes::instance(&id(name), state)
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

const NULL: Value = Value::Valuetype(None);

/// Name, type, the value sent, and the value that comes back.
fn rows() -> Vec<(&'static str, TypeCode, Value, Value)> {
    let place_of = |x, name, next| instance("Place", vec![Value::Long(x), text(name), next]);
    let point_of = |x| instance("Point", vec![Value::Long(x)]);
    vec![
        ("null", place(), NULL, NULL),
        (
            "one place",
            place(),
            place_of(7, "harbour", NULL),
            place_of(8, "harbour!", NULL),
        ),
        (
            "places within places",
            place(),
            place_of(1, "a", place_of(2, "bb", place_of(3, "ccc", NULL))),
            place_of(2, "a!", place_of(3, "bb!", place_of(4, "ccc!", NULL))),
        ),
        (
            "a long name",
            place(),
            place_of(1, &"x".repeat(20_000), NULL),
            place_of(2, &format!("{}!", "x".repeat(20_000)), NULL),
        ),
        (
            "two points",
            pair(),
            instance("Pair", vec![point_of(1), point_of(5)]),
            instance("Pair", vec![point_of(2), point_of(6)]),
        ),
        (
            "a box",
            label(),
            instance("Label", vec![text("ahoy")]),
            instance("Label", vec![text("ahoy!")]),
        ),
        ("an empty box", label(), NULL, NULL),
    ]
}

/// A pair with the same point twice, in octets made by hand: a [`Value`] tree cannot share a point.
fn shared_pair() -> Any {
    let mut octets = Vec::new();
    let mut w = Writer::new(&mut octets);
    let mut write = || {
        pair().write(&mut w)?;
        w.write_u32(0x7fff_ff02)?;
        id("Pair").write(&mut w)?;
        w.write_u32(0x7fff_ff02)?;
        let start = w.position() - 4;
        id("Point").write(&mut w)?;
        w.write_u32(7)?;
        w.write_u32(u32::MAX)?;
        let back = w.position() - start;
        w.write_u32(0_u32.wrapping_sub(back as u32))
    };
    write().expect("a few octets");
    Any::parse(&mut Reader::new(&octets, ByteOrder::NATIVE)).expect("a pair")
}

fn asked(object: &ObjectRef, operation: &str, data: Option<Any>) -> Result<Any, RequestError> {
    let mut request = object.create_request(operation);
    if let Some(data) = data {
        request.add_arg(NamedValue::of_in(
            "data",
            Any::from_value(&data).expect("an any"),
        ));
    }
    request.set_return_type(TypeCode::any());
    request.invoke()?;
    let back = request.return_value().map(Any::extract);
    Ok(back.expect("a result").expect("an any"))
}

/// Weight and mark of a chest, an unknown type here, read from its state as the type's own code does.
fn chest_in(any: &Any) -> Option<(i32, String)> {
    let value = any.to_dynamic().ok().filter(|_| any.is_opaque())?;
    let Value::Valuetype(Some(chest)) = value else {
        return None;
    };
    let [Value::Opaque(state)] = &*chest.state else {
        return None;
    };
    let mut r = state.chunks();
    let size = r.read_u32().ok()?;
    let start = r.position();
    let kilos = i32::parse(&mut r).ok()?;
    let mark = String::parse(&mut r).ok()?;
    let is_whole = r.position() - start == size as usize && r.remaining() == 0;
    (is_whole && chest.type_id == id("Chest")).then_some((kilos, mark))
}

/// A chest declared as its abstract interface comes in chunks, and is sent back unchanged.
fn ask_for_a_chest(object: &ObjectRef) -> Vec<String> {
    let sealed = asked(object, "sealed", None);
    let first = sealed.as_ref().ok().and_then(chest_in);
    let again = sealed.and_then(|any| asked(object, "changed", Some(any)));
    let second = again.as_ref().ok().and_then(chest_in);
    if first == Some((41, "berth".to_owned())) && second == Some((42, "berth!".to_owned())) {
        return Vec::new();
    }
    vec![format!("a chest: {first:?}, then {second:?} of {again:?}")]
}

/// Makes all calls to one peer in one version of GIOP.
fn ask_all(object: &ObjectRef) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, code, sent, expected) in rows() {
        let any = Any::from_dynamic(&code, &sent).expect("a value of its type");
        match asked(object, "changed", Some(any)) {
            Ok(back) if back.type_code().equivalent(&code) && back.to_dynamic() == Ok(expected) => {
            }
            other => wrong.push(format!("{name}: {other:?}")),
        }
    }
    // A point that is shared is changed once, and comes back shared: the reply has as many octets as the request.
    let sent = shared_pair();
    let size = sent.reader().remaining();
    match asked(object, "changed", Some(sent)) {
        Ok(back) => {
            let point = || instance("Point", vec![Value::Long(8)]);
            let both = instance("Pair", vec![point(), point()]);
            if back.to_dynamic() != Ok(both) || back.reader().remaining() != size {
                wrong.push(format!(
                    "a shared point: {back:?}, {} octets",
                    back.reader().remaining()
                ));
            }
        }
        Err(error) => wrong.push(format!("a shared point: {error:?}")),
    }
    match asked(object, "cut", None) {
        Ok(back) => {
            let whole = instance("Point", vec![Value::Long(41)]);
            let is_point = back.type_code().equivalent(&point());
            if !(is_point && back.is_truncated() && back.to_dynamic() == Ok(whole)) {
                wrong.push(format!("a place as a point: {back:?}"));
            }
        }
        Err(error) => wrong.push(format!("a place as a point: {error:?}")),
    }
    wrong
}

#[test]
fn omniorb_takes_values_in_anys_and_gives_them_back() {
    let Some(program) = omniorb_program("berths/berths", &["deckwatch/berths.idl"]) else {
        return;
    };
    for ask in [ask_for_a_chest as Ask, ask_all] {
        for version in ["1.0", "1.1", "1.2"] {
            let endpoint = format!("giop:tcp:127.0.0.1:{}", free_port());
            let mut server = Running::start(
                Command::new(&program)
                    .args(["-ORBmaxGIOPVersion", version])
                    .args(["-ORBendPoint", &endpoint]),
            );
            answers_all(&server.line_with("IOR:"), version, ask);
        }
    }
}

type Ask = fn(&ObjectRef) -> Vec<String>;

/// Makes all calls to the server of a reference.
fn answers_all(reference: &str, version: &str, ask: Ask) {
    let orb = Orb::builder().round_trip_timeout(Duration::from_secs(30));
    let orb = orb.build().expect("an ORB");
    let object = orb.string_to_object(reference).expect("a reference");
    let wrong = ask(&object.expect("one that is not nil"));
    assert!(wrong.is_empty(), "GIOP {version}: {wrong:#?}");
}
