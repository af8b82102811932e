//! Anys encoded by hand: a TCKind number (table 9.2) and a value, and checks of how a server that echoes an Any treats
//! them.

use super::message::{NO_EXCEPTION, SYSTEM_EXCEPTION};
use super::{ORDERS, Octets, World};

pub(crate) const NULL: u32 = 0;
pub(crate) const VOID: u32 = 1;
pub(crate) const SHORT: u32 = 2;
pub(crate) const LONG: u32 = 3;
pub(crate) const USHORT: u32 = 4;
pub(crate) const ULONG: u32 = 5;
pub(crate) const FLOAT: u32 = 6;
pub(crate) const DOUBLE: u32 = 7;
pub(crate) const BOOLEAN: u32 = 8;
pub(crate) const CHAR: u32 = 9;
pub(crate) const OCTET: u32 = 10;
pub(crate) const ANY: u32 = 11;
pub(crate) const TYPE_CODE: u32 = 12;
pub(crate) const PRINCIPAL: u32 = 13;
pub(crate) const OBJREF: u32 = 14;
pub(crate) const STRUCT: u32 = 15;
pub(crate) const UNION: u32 = 16;
pub(crate) const ENUM: u32 = 17;
pub(crate) const STRING: u32 = 18;
pub(crate) const SEQUENCE: u32 = 19;
pub(crate) const ARRAY: u32 = 20;
pub(crate) const ALIAS: u32 = 21;
pub(crate) const EXCEPT: u32 = 22;
pub(crate) const LONGLONG: u32 = 23;
pub(crate) const ULONGLONG: u32 = 24;
pub(crate) const LONGDOUBLE: u32 = 25;
pub(crate) const WCHAR: u32 = 26;
pub(crate) const WSTRING: u32 = 27;
pub(crate) const FIXED: u32 = 28;
pub(crate) const VALUE: u32 = 29;
pub(crate) const VALUE_BOX: u32 = 30;
pub(crate) const NATIVE: u32 = 31;
pub(crate) const ABSTRACT_INTERFACE: u32 = 32;
pub(crate) const LOCAL_INTERFACE: u32 = 33;

/// Encodes one Any: its TypeCode, then its value.
pub(crate) type Form = fn(&mut Octets);

/// Encodes a TypeCode of this kind whose parameters are in an encapsulation.
pub(crate) fn complex(o: &mut Octets, kind: u32, parameters: impl FnOnce(&mut Octets)) {
    let mut inside = Octets::encapsulation(o.order);
    parameters(&mut inside);
    o.u32(kind).sequence(&inside.octets);
}

/// Encodes the repository id and the name, the first two parameters of a complex TypeCode.
pub(crate) fn named<'o>(o: &'o mut Octets, name: &str) -> &'o mut Octets {
    o.string(&format!("IDL:{name}:1.0")).string(name)
}

/// Checks that an echo of `sent` returns exactly the octets of `expected`, in the byte order of the reply.
#[track_caller]
pub(crate) fn comes_back(world: &World, name: &str, sent: Form, expected: Form) {
    comes_back_in(world, &[0, 1, 2], name, sent, expected);
}

/// As [`comes_back`], for the given GIOP versions.
#[track_caller]
pub(crate) fn comes_back_in(world: &World, minors: &[u8], name: &str, sent: Form, expected: Form) {
    for minor in minors.iter().copied() {
        for order in ORDERS {
            let request = world.request((minor, order), "any").with(sent);
            let answer = world.dial().ask(&request);
            let reply = answer.reply();
            let status = reply.status;
            let body = reply.body.rest();
            assert_eq!(
                status, NO_EXCEPTION,
                "{name} in 1.{minor} {order:?}: {body:02x?}"
            );
            // Before GIOP 1.2 the reply body starts at octet 24 (12 of message header, 12 of reply header), so it is
            // 8-aligned too.
            let mut octets = Octets::new(answer.order());
            expected(&mut octets);
            assert_eq!(body, octets.octets, "{name} in 1.{minor} {order:?}");
        }
    }
}

/// Checks that the server refuses the value with one of these exceptions, does not run the servant, and still serves.
#[track_caller]
pub(crate) fn is_refused(world: &World, name: &str, sent: Form, kinds: &[&str]) {
    for order in ORDERS {
        let request = world.request((2, order), "any").with(sent);
        let reply = world.dial().ask(&request).reply();
        assert_eq!(reply.status, SYSTEM_EXCEPTION, "{name} {order:?}");
        let (id, _, completed) = reply.exception();
        let ids = kinds
            .iter()
            .map(|kind| format!("IDL:omg.org/CORBA/{kind}:1.0"));
        assert!(ids.into_iter().any(|one| one == id), "{name}: {id}");
        assert_eq!(completed, 1, "{name}");
    }
    world.expect_served();
}
