//! Calls every operation of `Types` with every row of the tables.

use std::sync::Arc;
use std::time::{Duration, Instant};

use deckwatch_cdr::{Any, TypeCode, Typed};
use deckwatch_orb::{Completion, Orb, Servant, SystemExceptionKind};

use super::servant::Ear;
use super::*;

/// Features of a server beyond those that all servers have.
#[derive(Clone, Copy)]
pub(crate) struct Scope {
    /// `wchar` and `wstring`.
    pub(crate) wide: bool,
    /// Letters beyond ASCII in `char`.
    pub(crate) latin: bool,
    /// What JacORB lacks: union labels beyond 32 bits, a `fixed` with leading zeros, a bounded `wstring`.
    pub(crate) beyond_jacorb: bool,
    /// A `wchar` after one octet.
    pub(crate) wide_aligned: bool,
    /// Exceptions in an Any.
    pub(crate) raised: bool,
    /// `long double`.
    pub(crate) longdouble: bool,
}

impl Scope {
    pub(crate) const NARROW: Self = Self {
        wide: false,
        latin: false,
        beyond_jacorb: true,
        wide_aligned: true,
        raised: false,
        longdouble: false,
    };
}

/// The calls to one server, and the unexpected results.
pub(crate) struct Caller {
    types: TypesRef,
    scope: Scope,
    calls: usize,
    wrong: Vec<String>,
}

impl Caller {
    /// Calls every operation of the object in `reference`; returns the number of calls.
    ///
    /// `orb` must listen, because the server calls it back.
    pub(crate) fn call_all(orb: &Orb, reference: &str, scope: Scope) -> Result<usize, Vec<String>> {
        let mut caller = Self::new(orb, reference, scope);
        caller.pass_all(|_| true);
        caller.turn_all();
        caller.call_back(orb);
        caller.raise_all();
        caller.go_on();
        caller.send_much();
        caller.outcome()
    }

    /// Calls one `pass_...` operation only.
    pub(crate) fn pass_only(orb: &Orb, reference: &str, word: &str) -> Result<usize, Vec<String>> {
        let scope = Scope {
            wide: true,
            latin: true,
            beyond_jacorb: true,
            wide_aligned: true,
            raised: true,
            longdouble: true,
        };
        let mut caller = Self::new(orb, reference, scope);
        caller.pass_all(|operation| operation.strip_prefix("pass_") == Some(word));
        assert!(caller.calls > 0, "no operation is called pass_{word}");
        caller.outcome()
    }

    /// Calls the operation that echoes `len` octets.
    pub(crate) fn mirror_only(
        orb: &Orb,
        reference: &str,
        len: usize,
    ) -> Result<usize, Vec<String>> {
        let mut caller = Self::new(orb, reference, Scope::NARROW);
        caller.mirror(len);
        caller.outcome()
    }

    fn mirror(&mut self, len: usize) {
        let data: Vec<u8> = (0..len).map(|index| (index % 251) as u8).collect();
        let outcome = self.types.mirror_octets(&data);
        self.check("mirror_octets", len, outcome.map(|back| back == data));
    }

    fn new(orb: &Orb, reference: &str, scope: Scope) -> Self {
        let object = orb.string_to_object(reference).expect("a reference");
        let object = object.expect("no nil reference");
        let types = TypesRef::narrow(&object).expect("an answer");
        Self {
            types: types.expect("an object of its type"),
            scope,
            calls: 0,
            wrong: Vec::new(),
        }
    }

    fn outcome(self) -> Result<usize, Vec<String>> {
        if self.wrong.is_empty() {
            Ok(self.calls)
        } else {
            Err(self.wrong)
        }
    }

    fn check<E: std::fmt::Debug>(&mut self, what: &str, row: usize, outcome: Result<bool, E>) {
        self.calls += 1;
        match outcome {
            Ok(true) => {}
            Ok(false) => self.wrong.push(format!("{what} row {row}: different")),
            Err(error) => self.wrong.push(format!("{what} row {row}: {error:?}")),
        }
    }

    fn is_in_scope(&self, operation: &str) -> bool {
        let scope = &self.scope;
        match operation {
            "pass_far" | "pass_little" => scope.beyond_jacorb,
            "pass_wide" | "pass_wide_any" => scope.wide && scope.wide_aligned,
            "pass_wide_sign" => scope.wide && scope.beyond_jacorb,
            "pass_raised" => scope.raised,
            "pass_longdouble" => scope.longdouble,
            _ if operation.starts_with("pass_latin") => scope.latin,
            _ => scope.wide || !operation.starts_with("pass_w"),
        }
    }

    fn pass_all(&mut self, wanted: impl Fn(&str) -> bool) {
        macro_rules! pass {
            ($operation:ident, $same:ident, $lend:ident, $argument:ty, $reply:ty, $rows:ident) => {
                if self.is_in_scope(stringify!($operation)) && wanted(stringify!($operation)) {
                    let rows = values::$rows();
                    for row in 0..rows.len() as u16 {
                        let value = |further| at(&rows, row, further);
                        let answer = self.types.$operation(
                            row,
                            lend!($lend, value(0)),
                            lend!($lend, value(1)),
                        );
                        let outcome = answer.map(|(result, b, c)| {
                            $same(&result, value(2)) && $same(&b, value(0)) && $same(&c, value(1))
                        });
                        self.check(stringify!($operation), row.into(), outcome);
                    }
                }
            };
        }
        macro_rules! lend {
            (copied, $value:expr) => {
                *$value
            };
            (lent, $value:expr) => {
                $value
            };
        }
        every_type!(pass);
    }

    fn turn_all(&mut self) {
        let own = self.types.object().clone();
        let turned = self.types.turn_objects(Some(&own), None, Some(&own));
        let outcome = turned.map(|(result, b, c)| {
            let is_own =
                |object: Option<_>| object.is_some_and(|object| own.is_equivalent(&object));
            is_own(result) && is_own(b) && c.is_none()
        });
        self.check("turn_objects", 0, outcome);
        let types = [Parcel::type_code(), Node::type_code(), Choice::type_code()];
        let turned = self.types.turn_types(&types[0], &types[1], &types[2]);
        let outcome =
            turned.map(|(result, b, c)| result == types[0] && b == types[2] && c == types[1]);
        self.check("turn_types", 0, outcome);
        let last = if self.scope.beyond_jacorb {
            Far::type_code()
        } else {
            Letter::type_code()
        };
        let types = [Option::<TypesRef>::type_code(), TypeCode::null(), last];
        let turned = self.types.turn_types(&types[0], &types[1], &types[2]);
        let outcome =
            turned.map(|(result, b, c)| result == types[0] && b == types[2] && c == types[1]);
        self.check("turn_types", 1, outcome);
        for (row, contact) in values::contact().iter().enumerate() {
            let outcome = self
                .types
                .set_favourite(contact)
                .and_then(|()| self.types.favourite());
            self.check("favourite", row, outcome.map(|liked| liked == *contact));
        }
        let outcome = self.types.label();
        self.check("label", 0, outcome.map(|label| label == "tables"));
        let outcome = self.types.half(-8);
        self.check("half", 0, outcome.map(|half| half == -4));
        let outcome = own.non_existent();
        self.check("_non_existent", 0, outcome.map(|gone| !gone));
        let outcome = own.is_a("IDL:Deckwatch/Interop/Listener:1.0");
        self.check("_is_a", 0, outcome.map(|is| !is));
    }

    fn call_back(&mut self, orb: &Orb) {
        let root = orb.root_poa().expect("a root POA");
        root.the_poa_manager()
            .activate()
            .expect("a manager that is not gone");
        let servant: Arc<dyn Servant> = Arc::new(ListenerSkeleton::new(Ear));
        let object = root
            .servant_to_reference(&servant)
            .expect("implicit activation");
        let listener = ListenerRef::unchecked_narrow(object);
        let any = Any::from_value(&Some(listener.clone())).expect("a reference can be written");
        let back = self.types.mirror_any(&any);
        let outcome = back.map(|back| {
            let inside = back.extract::<Option<ListenerRef>>().ok().flatten();
            inside.is_some_and(|inside| inside.object().is_equivalent(listener.object()))
        });
        self.check("reference in an any", 0, outcome);
        let heard = self.types.call_back(Some(&listener), values::UMLAUTS);
        self.check("call_back", 0, heard.map(|heard| heard == values::UMLAUTS));
        let closed = self.types.call_back(Some(&listener), "close");
        let outcome = matches!(closed, Err(TypesCallBackError::Closed(_)));
        self.check("call_back", 1, Ok::<_, ()>(outcome));
    }

    fn raise_all(&mut self) {
        let refused = self.types.refuse();
        let outcome = matches!(&refused, Err(TypesRefuseError::Refused(refused)) if same(refused, &values::refused()));
        self.check("refuse", 0, Ok::<_, ()>(outcome));
        let refused = self.types.half(3);
        let outcome = matches!(&refused, Err(BaseHalfError::Refused(refused)) if same(refused, &values::refused()));
        self.check("half", 1, Ok::<_, ()>(outcome));
        let outcome = matches!(self.types.shut(), Err(TypesShutError::Closed(_)));
        self.check("shut", 0, Ok::<_, ()>(outcome));
        let failed = self.types.fail();
        let outcome = failed.is_err_and(|exception| {
            let told = (exception.kind, exception.minor, exception.completed);
            told == (SystemExceptionKind::NoPermission, 7, Completion::Yes)
        });
        self.check("fail", 0, Ok::<_, ()>(outcome));
    }

    /// Makes asynchronous calls.
    fn go_on(&mut self) {
        let outcome = asynchronous::polled(&self.types);
        self.check("sendp", 0, outcome);
        let outcome = asynchronous::handled(&self.types);
        self.check("sendc", 0, outcome);
    }

    /// Sends messages of about a megabyte, and one-ways of all lengths one after the other.
    fn send_much(&mut self) {
        for len in [0, 8_191, 8_192, 100_001, 1_000_000] {
            self.mirror(len);
        }
        let text = "y".repeat(1_000_000);
        let outcome = self.types.mirror_string(&text);
        self.check("mirror_string", 0, outcome.map(|back| back == text));
        let readings: Readings = values::reading().into_iter().cycle().take(18_000).collect();
        let outcome = self.types.mirror_readings(&readings);
        self.check("mirror_readings", 0, outcome.map(|back| back == readings));
        let contacts: Contacts = values::contact().into_iter().cycle().take(3_000).collect();
        let outcome = self.types.mirror_contacts(&contacts);
        self.check("mirror_contacts", 0, outcome.map(|back| back == contacts));
        let outcome = self.note_in_order();
        self.check("note", 0, outcome);
    }

    fn note_in_order(&self) -> Result<bool, deckwatch_orb::SystemException> {
        const COUNT: u32 = 300;
        let before = self.types.noted()?;
        for number in before..before + COUNT {
            let padding = if number % 100 == 99 {
                20_000
            } else {
                number % 60
            };
            self.types.note(number, &vec![0; padding as usize])?;
        }
        // JacORB may reply before its servant has served all one-ways.
        let begun = Instant::now();
        while self.types.noted()? < before + COUNT && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(self.types.noted()? == before + COUNT)
    }
}
