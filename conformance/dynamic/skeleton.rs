//! The dynamic skeleton interface by clause (CORBA 3.3 part 1, clause 12). The other side is octets made by hand, or
//! generated stubs.

use std::sync::{Arc, Mutex};

use crate::common;
use crate::common::message::{NO_EXCEPTION, SYNC_NONE, SYSTEM_EXCEPTION, USER_EXCEPTION};
use crate::common::{FORMS, OMG, Order, Over, Wire, listening, message, over_each};
use crate::mirror::{ComplexStruct, EchoRef, EchoRefuseError, Refused};
use crate::valuetypes;
use deckwatch_cdr::typecode::{Member, ValueModifier};
use deckwatch_cdr::value::Value;
use deckwatch_cdr::{Any, Char, TypeCode, Typed, Write};
use deckwatch_dynamic::{
    ArgMode, CreateRequest, DynamicImplementation, DynamicRequest, DynamicServant, NamedValue,
    RequestError,
};
use deckwatch_orb::{
    ObjectRef, Orb, Poa, Policies, Servant, SystemException, SystemExceptionKind as Kind,
};

const SHAPE_ID: &str = "IDL:conformance/Shape:1.0";

/// Serves every operation; each of its objects has an interface of its own.
#[derive(Default)]
struct Anything {
    /// The BAD_INV_ORDER and BAD_PARAM exceptions, with minor codes, that `out_of_order` got.
    met: Mutex<Vec<(Kind, u32)>>,
}

fn text() -> TypeCode {
    TypeCode::unbounded_string()
}

fn any<T: Typed + Write + ?Sized>(value: &T) -> Any {
    Any::from_value(value).expect("a value that can be written")
}

fn exception(id: &str, values: &[(&str, TypeCode, Value)]) -> Any {
    let members: Vec<_> = values
        .iter()
        .map(|(name, type_code, _)| Member { name, type_code })
        .collect();
    let code = TypeCode::exception(id, "Exception", &members);
    let values = values.iter().map(|(_, _, value)| value.clone()).collect();
    Any::from_dynamic(&code, &Value::Struct(values)).expect("values of their types")
}

/// `valuetype Point { public long x; };`
fn point() -> TypeCode {
    let x = [("x", &TypeCode::long())];
    valuetypes::valuetype("IDL:Point:1.0", ValueModifier::None, None, &x)
}

fn member_of(value: &Any) -> Value {
    match value.to_dynamic() {
        Ok(Value::Valuetype(Some(instance))) => instance.state[0].clone(),
        other => panic!("a point, and not {other:?}"),
    }
}

impl Anything {
    fn everything(request: &mut DynamicRequest<'_>) -> Result<(), SystemException> {
        let parameters = vec![
            NamedValue::parameter("a", TypeCode::octet(), ArgMode::In),
            NamedValue::of_out("b", TypeCode::ulong()),
            NamedValue::parameter("c", text(), ArgMode::InOut),
            NamedValue::parameter("d", TypeCode::ushort(), ArgMode::In),
        ];
        let parameters = request.arguments(parameters)?;
        let (a, d): (u8, u16) = (
            parameters[0].value.extract()?,
            parameters[3].value.extract()?,
        );
        parameters[1].value = any(&(u32::from(a) + u32::from(d)));
        let c: String = parameters[2].value.extract()?;
        parameters[2].value = any(&format!("{c}!"));
        request.set_result(any(&9_u16))
    }

    fn echo(request: &mut DynamicRequest<'_>, type_code: TypeCode) -> Result<(), SystemException> {
        let parameter = NamedValue::parameter("data", type_code, ArgMode::In);
        let value = request.arguments(vec![parameter])?[0].value.clone();
        request.set_result(value)
    }

    fn out_of_order(&self, request: &mut DynamicRequest<'_>) {
        let one = || any(&1_u8);
        let meet = |outcome: Result<(), SystemException>| {
            let met = outcome.expect_err("it is out of order");
            self.met.lock().unwrap().push((met.kind, met.minor));
        };
        meet(request.set_result(one()));
        request.arguments(Vec::new()).unwrap();
        meet(request.arguments(Vec::new()).map(drop));
        request.set_result(one()).unwrap();
        meet(request.set_result(one()));
        meet(request.set_exception(Any::from_value(&1_u32).unwrap()));
        request.set_exception(exception("IDL:X:1.0", &[])).unwrap();
        meet(request.set_result(one()));
        meet(request.arguments(Vec::new()).map(drop));
    }
}

impl DynamicServant for Anything {
    fn primary_interface(&self, object_id: &[u8], poa: &Poa) -> String {
        assert_eq!(poa.the_name(), "Shapes");
        match object_id {
            b"echo" => EchoRef::REPOSITORY_ID.to_owned(),
            id => format!("IDL:conformance/{}:1.0", String::from_utf8_lossy(id)),
        }
    }

    fn is_a(&self, object_id: &[u8], _poa: &Poa, interface: &str) -> bool {
        object_id != b"echo" && interface == SHAPE_ID
    }

    fn non_existent(&self, object_id: &[u8]) -> Result<bool, SystemException> {
        Ok(object_id == b"Ghost")
    }

    fn invoke(&self, request: &mut DynamicRequest<'_>) -> Result<(), SystemException> {
        match request.operation() {
            "ping" => Ok(()),
            "everything" => Self::everything(request),
            "echo_string" => Self::echo(request, text()),
            "echo_complex" => Self::echo(request, ComplexStruct::type_code()),
            "refuse" => {
                let parameters = vec![
                    NamedValue::parameter("reason", text(), ArgMode::In),
                    NamedValue::parameter("code", TypeCode::long(), ArgMode::In),
                ];
                let values = request.arguments(parameters)?;
                let (reason, code) = (values[0].value.extract()?, values[1].value.extract()?);
                request.set_exception(any(&Refused { reason, code }))
            }
            "fail" => request.set_exception(exception(
                "IDL:omg.org/CORBA/NO_PERMISSION:1.0",
                &[
                    ("minor", TypeCode::ulong(), Value::ULong(7)),
                    (
                        "completed",
                        TypeCode::enumeration("IDL:c:1.0", "c", &["YES", "NO", "MAYBE"]),
                        Value::Enum(0),
                    ),
                ],
            )),
            "points" => {
                let parameters = ["a", "b", "c"];
                let parameters =
                    parameters.map(|name| NamedValue::parameter(name, point(), ArgMode::In));
                let values = request.arguments(parameters.into())?.to_vec();
                let of = TypeCode::sequence(&TypeCode::long(), 0);
                let values = values.iter().map(|named| member_of(&named.value));
                request.set_result(Any::from_dynamic(&of, &Value::Elements(values.collect()))?)
            }
            "out_of_order" => {
                self.out_of_order(request);
                Ok(())
            }
            "arguments_amiss" => {
                let parameter = || vec![NamedValue::parameter("x", TypeCode::long(), ArgMode::In)];
                let parameters = [parameter(), Vec::new(), parameter()];
                let met = parameters.map(|list| request.arguments(list).map(drop));
                let met = met.map(|outcome| outcome.expect_err("there is no argument"));
                let met = met.into_iter().chain(request.set_result(any(&1_u8)).err());
                let mut all = self.met.lock().unwrap();
                all.extend(met.map(|met| (met.kind, met.minor)));
                Ok(())
            }
            _ => Err(request.unknown_operation()),
        }
    }
}

struct Shapes {
    orb: Orb,
    poa: Poa,
    servant: Arc<DynamicImplementation<Anything>>,
}

impl Shapes {
    /// An adapter with one dynamic servant for all its objects.
    fn new(over: Over) -> Self {
        let orb = listening(over, Orb::builder());
        let root = orb.root_poa().expect("it listens");
        let manager = root.the_poa_manager();
        manager.activate().expect("a fresh manager");
        let policies = Policies {
            request_processing: deckwatch_orb::RequestProcessing::UseDefaultServant,
            id_assignment: deckwatch_orb::IdAssignment::UserId,
            id_uniqueness: deckwatch_orb::IdUniqueness::MultipleId,
            ..Policies::default()
        };
        let poa = root
            .create_poa("Shapes", Some(manager), &policies)
            .expect("policies that go together");
        let servant = Arc::new(DynamicImplementation::new(Anything::default()));
        let made: Arc<dyn Servant> = servant.clone();
        poa.set_servant(made).expect("USE_DEFAULT_SERVANT");
        Self { orb, poa, servant }
    }

    fn object(&self, id: &str) -> ObjectRef {
        self.poa
            .create_reference_with_id(id.as_bytes(), "")
            .expect("a user's id")
    }

    fn key(&self, id: &str) -> Vec<u8> {
        self.object(id).object_key().expect("a profile").to_vec()
    }

    fn seen_by(&self, client: &Orb, id: &str) -> ObjectRef {
        let text = self.orb.object_to_string(&self.object(id));
        client
            .string_to_object(&text)
            .expect("a reference")
            .expect("not nil")
    }
}

impl Drop for Shapes {
    fn drop(&mut self) {
        let _ = self.orb.shutdown(true); // The test may have shut it down.
    }
}

over_each! {
    fn a_dynamic_servant_gets_its_arguments_and_gives_result_inout_and_out(over) {
        let shapes = Shapes::new(over);
        let key = shapes.key("Circle");
        let mut wire = Wire::to(&shapes.orb);
        for form in FORMS {
            let request = common::Request::new(form, &key, "everything");
            let mut reply = wire.ask(&request.with(|octets| {
                octets.u8(1).string("three").u16(4);
            })).reply();
            assert_eq!(reply.status, NO_EXCEPTION);
            let back = (reply.body.u16(), reply.body.u32(), reply.body.string());
            assert_eq!(back, (9, 5, "three!".to_owned()));
            assert!(reply.body.rest().is_empty());
            let empty = wire.ask(&common::Request::new(form, &key, "ping").bare()).reply();
            assert_eq!((empty.status, empty.body.rest().len()), (NO_EXCEPTION, 0));
        }
    }

    fn arguments_may_share_a_value(over) {
        let shapes = Shapes::new(over);
        let key = shapes.key("Circle");
        let mut wire = Wire::to(&shapes.orb);
        for form in FORMS {
            let ask = |wire: &mut Wire, astray: u32| {
                let request = common::Request::new(form, &key, "points");
                wire.ask(&request.with(|octets| {
                    octets.u32(0x7fff_ff02);
                    let first = octets.octets.len() as u32 - 4;
                    octets.string("IDL:Point:1.0").u32(7);
                    for _ in 0..2 {
                        octets.u32(u32::MAX);
                        let back = first + astray;
                        octets.u32(back.wrapping_sub(octets.octets.len() as u32));
                    }
                })).reply()
            };
            let mut reply = ask(&mut wire, 0);
            assert_eq!(reply.status, NO_EXCEPTION);
            let back: Vec<_> = (0..4).map(|_| reply.body.u32()).collect();
            assert_eq!(back, [3, 7, 7, 7]);
            let refused = ask(&mut wire, 4);
            assert_eq!(refused.exception().0, "IDL:omg.org/CORBA/MARSHAL:1.0");
        }
    }

    fn arguments_of_other_types_raise_marshal(over) {
        let shapes = Shapes::new(over);
        let mut wire = Wire::to(&shapes.orb);
        let request = common::Request::new((2, Order::Little), &shapes.key("Circle"), "everything");
        let reply = wire.ask(&request.with(|octets| {
            octets.u8(1).u32(4_000_000);
        })).reply();
        assert_eq!(reply.exception().0, "IDL:omg.org/CORBA/MARSHAL:1.0");
    }

    fn a_dynamic_servant_raises_exceptions_of_the_user_and_of_the_system(over) {
        let shapes = Shapes::new(over);
        let key = shapes.key("Circle");
        let mut wire = Wire::to(&shapes.orb);
        for form in FORMS {
            let refuse = common::Request::new(form, &key, "refuse");
            let mut reply = wire.ask(&refuse.with(|octets| {
                octets.string("no").u32(8);
            })).reply();
            assert_eq!(reply.status, USER_EXCEPTION);
            let back = (reply.body.string(), reply.body.string(), reply.body.u32());
            assert_eq!(back, ("IDL:Deckwatch/Refused:1.0".to_owned(), "no".to_owned(), 8));
            let fail = wire.ask(&common::Request::new(form, &key, "fail").bare()).reply();
            assert_eq!(fail.status, SYSTEM_EXCEPTION);
            assert_eq!(fail.exception(), ("IDL:omg.org/CORBA/NO_PERMISSION:1.0".to_owned(), 7, 0));
            let unknown = wire.ask(&common::Request::new(form, &key, "nonsense").bare()).reply();
            assert_eq!(unknown.exception(), ("IDL:omg.org/CORBA/BAD_OPERATION:1.0".to_owned(), OMG | 2, 1));
        }
    }

    fn the_order_of_a_dynamic_servants_calls_is_kept(over) {
        let shapes = Shapes::new(over);
        let mut wire = Wire::to(&shapes.orb);
        let request = common::Request::new((2, Order::Big), &shapes.key("Circle"), "out_of_order");
        let mut reply = wire.ask(&request.bare()).reply();
        assert_eq!((reply.status, reply.body.string()), (USER_EXCEPTION, "IDL:X:1.0".to_owned()));
        let met = shapes.servant.servant().met.lock().unwrap().clone();
        let order = |minor| (Kind::BadInvOrder, OMG | minor);
        let not_one = (Kind::BadParam, OMG | 21);
        assert_eq!(met, [order(9), order(7), order(9), not_one, order(9), order(7)]);
    }

    fn arguments_that_were_amiss_are_not_asked_for_again(over) {
        let shapes = Shapes::new(over);
        let mut wire = Wire::to(&shapes.orb);
        let request = common::Request::new((2, Order::Big), &shapes.key("Circle"), "arguments_amiss");
        wire.ask(&request.bare()).reply();
        let met = shapes.servant.servant().met.lock().unwrap().clone();
        let order = |minor| (Kind::BadInvOrder, OMG | minor);
        assert_eq!(met[0].0, Kind::Marshal);
        assert_eq!(met[1..], [order(7), order(7), order(9)]);
    }

    fn a_dynamic_servant_says_of_each_object_what_it_is(over) {
        let shapes = Shapes::new(over);
        let client = common::client();
        for (id, interface) in [("Circle", "IDL:conformance/Circle:1.0"), ("echo", EchoRef::REPOSITORY_ID)] {
            let object = shapes.seen_by(&client, id);
            assert_eq!(object.is_a(interface), Ok(true));
            assert_eq!(object.is_a("IDL:omg.org/CORBA/Object:1.0"), Ok(true));
            assert_eq!(object.is_a("IDL:conformance/Square:1.0"), Ok(false));
            assert_eq!(object.is_a(SHAPE_ID), Ok(id == "Circle"));
            let mut question = object.create_request("_repository_id");
            question.set_return_type(text());
            assert_eq!(question.invoke(), Ok(()));
            assert_eq!(question.return_value(), Some(&any(interface)));
        }
        let servant: Arc<dyn Servant> = shapes.servant.clone();
        shapes.poa.activate_object_with_id(b"Square", servant).expect("an id of its own");
        let square = shapes.poa.id_to_reference(b"Square").expect("it is active");
        assert_eq!(square.type_id(), "IDL:conformance/Square:1.0");
        assert_eq!(shapes.seen_by(&client, "Ghost").non_existent(), Ok(true));
        assert_eq!(shapes.seen_by(&client, "Circle").non_existent(), Ok(false));
    }

    fn a_one_way_of_a_dynamic_servant_is_not_answered(over) {
        let shapes = Shapes::new(over);
        let key = shapes.key("Circle");
        let mut wire = Wire::to(&shapes.orb);
        let form = (2, Order::Little);
        wire.say(&common::Request::new(form, &key, "fail").id(1).flags(SYNC_NONE).bare());
        let reply = wire.ask(&common::Request::new(form, &key, "ping").id(2).bare()).reply();
        assert_eq!((reply.id, reply.status), (2, message::NO_EXCEPTION));
    }

    fn generated_stubs_and_dynamic_requests_call_a_dynamic_servant(over) {
        let shapes = Shapes::new(over);
        let client = common::client();
        let object = shapes.seen_by(&client, "echo");
        let echo = EchoRef::narrow(&object).expect("it answers").expect("it is an Echo");
        assert_eq!(echo.ping(), Ok(()));
        assert_eq!(echo.echo_string("gr\u{fc}n").as_deref(), Ok("gr\u{fc}n"));
        let complex = ComplexStruct {
            s: 1,
            l: -2,
            f: 0.5,
            d: 4.0,
            c: Char(b'x'),
            name: "ship".try_into().expect("a short name"),
        };
        assert_eq!(echo.echo_complex(&complex), Ok(complex));
        match echo.refuse("no", 8) {
            Err(EchoRefuseError::Refused(refused)) => assert_eq!(refused.code, 8),
            other => panic!("refused, not {other:?}"),
        }
        let mut refuse = object.create_request("refuse");
        refuse.add_arg(NamedValue::of_in("reason", any("no")));
        refuse.add_arg(NamedValue::of_in("code", any(&8_i32)));
        refuse.add_exception(Refused::type_code());
        let Err(RequestError::User(raised)) = refuse.invoke() else {
            panic!("a user exception");
        };
        assert_eq!(raised.exception.extract::<Refused>().map(|refused| refused.code), Ok(8));
    }
}
