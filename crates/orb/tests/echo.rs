//! The echo interface: generated stubs and skeletons on the ORB.

use std::sync::Arc;

use crate::mirror::{ComplexStruct, EchoRef, EchoRefuseError, EchoSkeleton, Mirror};
use deckwatch_cdr::{Any, Char};
use deckwatch_orb::{Completion, Orb, Servant, SystemException, SystemExceptionKind};

fn serve() -> (Orb, Orb, EchoRef) {
    let server = Orb::builder()
        .listen("127.0.0.1:0")
        .unwrap()
        .build()
        .unwrap();
    let root = server.root_poa().unwrap();
    root.the_poa_manager().activate().unwrap();
    let servant: Arc<dyn Servant> = Arc::new(EchoSkeleton::new(Mirror::default()));
    let text = server.object_to_string(&root.servant_to_reference(&servant).unwrap());
    let client = Orb::builder().build().unwrap();
    let object = client.string_to_object(&text).unwrap().unwrap();
    let echo = EchoRef::narrow(&object).unwrap().unwrap();
    (server, client, echo)
}

fn complex(number: i32) -> ComplexStruct {
    ComplexStruct {
        s: number as i16,
        l: number,
        f: 0.5,
        d: f64::from(number),
        c: Char(b'x'),
        name: "ship".try_into().unwrap(),
    }
}

#[test]
fn every_kind_of_value_comes_back_as_it_went() {
    let (_server, client, echo) = serve();
    echo.ping().unwrap();
    assert_eq!(echo.echo_string("gr\u{fc}n").unwrap(), "gr\u{fc}n");
    assert_eq!(echo.echo_octets(&[1, 2, 3]).unwrap(), [1, 2, 3]);
    assert_eq!(echo.echo_complex(&complex(7)).unwrap(), complex(7));
    let many: Vec<_> = (0..1_000).map(complex).collect();
    assert_eq!(echo.echo_complex_sequence(&many).unwrap(), many);
    let any = Any::from_value(&complex(9)).unwrap();
    assert_eq!(echo.echo_any(&any).unwrap(), any);
    assert_eq!(echo.echo_object(None).unwrap(), None);
    let back = echo.echo_object(Some(echo.object())).unwrap().unwrap();
    // A reference from a reply works like the original.
    assert_eq!(
        EchoRef::narrow(&back)
            .unwrap()
            .unwrap()
            .echo_octets(b"again")
            .unwrap(),
        b"again"
    );
    drop(client);
}

#[test]
fn a_user_exception_carries_its_members() {
    let (_server, _client, echo) = serve();
    let Err(EchoRefuseError::Refused(refused)) = echo.refuse("not today", 42) else {
        panic!("it must refuse")
    };
    assert_eq!((refused.reason.as_str(), refused.code), ("not today", 42));
}

#[test]
fn oneways_arrive_and_narrowing_to_another_interface_fails() {
    let (_server, _client, echo) = serve();
    echo.send_octets(&[0; 64]).unwrap();
    echo.send_complex_sequence(&[complex(1), complex(2)])
        .unwrap();
    while echo.calls().unwrap() < 3 {
        std::thread::yield_now();
    }
    let context = deckwatch_orb::cos_naming::NamingContextRef::narrow(echo.object()).unwrap();
    assert_eq!(context, None);
}

#[test]
fn an_operation_that_the_interface_does_not_have_is_bad_operation() {
    let (_server, _client, echo) = serve();
    let raised: Result<(), SystemException> =
        echo.object()
            .invoke("nonsense", |_| Ok(()), |_| Ok(()), |_, _| Ok(None));
    let raised = raised.unwrap_err();
    assert_eq!(
        (raised.kind, raised.completed),
        (SystemExceptionKind::BadOperation, Completion::No)
    );
}
