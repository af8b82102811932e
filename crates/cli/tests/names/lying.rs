//! `deckwatch names list` at services that lie: it ends, and says which bound it met.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use deckwatch_orb::cos_naming::{
    Binding, BindingIterator, BindingIteratorRef, BindingIteratorSkeleton, BindingType,
    NameComponent, NamingContext, NamingContextBindContextError, NamingContextBindError,
    NamingContextBindNewContextError, NamingContextDestroyError, NamingContextRebindContextError,
    NamingContextRebindError, NamingContextRef, NamingContextResolveError, NamingContextSkeleton,
    NamingContextUnbindError,
};
use deckwatch_orb::{
    Completion, ObjectRef, Orb, Poa, SystemException, SystemExceptionKind as Kind,
};

use super::{run, said};

/// What a service lies about.
#[derive(Clone)]
enum Lie {
    /// Its iterators return names for ever.
    Endless,
    /// Its iterators return nothing for ever, and say that there is more.
    Empty,
    /// Each of its contexts holds two more.
    Deep,
    /// Its names are long.
    Long,
    /// Its names, and the types of its objects, hold control characters and line ends.
    Hostile,
    /// It does not answer until the test ends.
    Silent(Arc<(Mutex<bool>, Condvar)>),
}

/// A context, and an iterator.
#[derive(Clone)]
struct Liar {
    orb: Orb,
    poa: Poa,
    lie: Lie,
    count: Arc<AtomicU64>,
}

fn refusal() -> SystemException {
    SystemException::new(Kind::NoImplement, 0, Completion::No)
}

impl Liar {
    fn names(&self, count: u32) -> Vec<Binding> {
        let name = || {
            let number = self.count.fetch_add(1, Ordering::Relaxed);
            let id = match self.lie {
                Lie::Long => number.to_string().repeat(100_000),
                Lie::Hostile => format!("{}-{number}", crate::foreign_text::HOSTILE),
                _ => format!("name-{number}"),
            };
            vec![NameComponent {
                id,
                kind: String::new(),
            }]
        };
        let binding = |_| Binding {
            binding_name: name(),
            binding_type: match self.lie {
                Lie::Hostile => BindingType::Nobject,
                _ => BindingType::Ncontext,
            },
        };
        (0..count).map(binding).collect()
    }
}

impl BindingIterator for Liar {
    fn next_one(&self) -> Result<(bool, Binding), SystemException> {
        Err(refusal())
    }

    fn next_n(&self, how_many: u32) -> Result<(bool, Cow<'_, [Binding]>), SystemException> {
        let names = match self.lie {
            Lie::Empty => Vec::new(),
            Lie::Long => self.names(2),
            _ => self.names(how_many),
        };
        Ok((true, names.into()))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        Err(refusal())
    }
}

impl NamingContext for Liar {
    fn list(
        &self,
        how_many: u32,
    ) -> Result<(Cow<'_, [Binding]>, Option<BindingIteratorRef>), SystemException> {
        if let Lie::Silent(end) = &self.lie {
            let ended = end.0.lock().expect("no panic");
            drop(end.1.wait_while(ended, |ended| !*ended));
        }
        if matches!(self.lie, Lie::Deep | Lie::Hostile) {
            return Ok((self.names(2).into(), None));
        }
        let servant = Arc::new(BindingIteratorSkeleton::new(self.clone()));
        let id = self.poa.activate_object(servant).expect("an iterator");
        let iterator = self.poa.id_to_reference(&id).expect("its reference");
        let iterator = BindingIteratorRef::unchecked_narrow(iterator);
        Ok((self.names(how_many.min(2)).into(), Some(iterator)))
    }

    fn resolve<'a>(
        &'a self,
        _n: &'a [NameComponent],
    ) -> Result<Option<ObjectRef>, NamingContextResolveError> {
        if matches!(self.lie, Lie::Hostile) {
            let text = crate::foreign_text::reference();
            let object = self.orb.string_to_object(&text);
            return Ok(object.expect("a reference"));
        }
        Ok(Some(self.reference()))
    }

    fn bind<'a>(
        &'a self,
        _n: &'a [NameComponent],
        _obj: Option<&'a ObjectRef>,
    ) -> Result<(), NamingContextBindError> {
        Err(refusal().into())
    }

    fn rebind<'a>(
        &'a self,
        _n: &'a [NameComponent],
        _obj: Option<&'a ObjectRef>,
    ) -> Result<(), NamingContextRebindError> {
        Err(refusal().into())
    }

    fn bind_context<'a>(
        &'a self,
        _n: &'a [NameComponent],
        _nc: Option<&'a NamingContextRef>,
    ) -> Result<(), NamingContextBindContextError> {
        Err(refusal().into())
    }

    fn rebind_context<'a>(
        &'a self,
        _n: &'a [NameComponent],
        _nc: Option<&'a NamingContextRef>,
    ) -> Result<(), NamingContextRebindContextError> {
        Err(refusal().into())
    }

    fn unbind<'a>(&'a self, _n: &'a [NameComponent]) -> Result<(), NamingContextUnbindError> {
        Err(refusal().into())
    }

    fn new_context(&self) -> Result<Option<NamingContextRef>, SystemException> {
        Err(refusal())
    }

    fn bind_new_context<'a>(
        &'a self,
        _n: &'a [NameComponent],
    ) -> Result<Option<NamingContextRef>, NamingContextBindNewContextError> {
        Err(refusal().into())
    }

    fn destroy(&self) -> Result<(), NamingContextDestroyError> {
        Err(refusal().into())
    }
}

impl Liar {
    /// Returns the reference of a context that no reference led to before.
    fn reference(&self) -> ObjectRef {
        let servant = Arc::new(NamingContextSkeleton::new(self.clone()));
        let id = self.poa.activate_object(servant).expect("a context");
        self.poa.id_to_reference(&id).expect("its reference")
    }
}

/// Starts a service that lies.
fn liar(lie: Lie) -> Liar {
    let orb = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
    let orb = orb.build().expect("an ORB");
    let poa = orb.root_poa().expect("the root adapter");
    poa.the_poa_manager().activate().expect("it is active");
    Liar {
        orb,
        poa,
        lie,
        count: Arc::default(),
    }
}

/// Lists a service that lies. Returns the number of lines printed, and what is said about them.
fn listed(lie: Lie, options: &[&str]) -> (usize, String) {
    let liar = liar(lie);
    let orb = liar.orb.clone();
    let names = orb.object_to_string(&liar.reference());
    let mut arguments = vec!["list", "--names", &names];
    arguments.extend(options);
    let output = run(&arguments);
    if let Lie::Silent(end) = &liar.lie {
        *end.0.lock().expect("no panic") = true;
        end.1.notify_all();
    }
    orb.shutdown(true).expect("it ends");
    let printed = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    let lines = printed.lines().count();
    let (status, text) = said(&output);
    assert_eq!(status, Some(2), "{text}");
    let told = text[printed.len()..].trim().to_owned();
    (lines, told)
}

const AT_MAX: &str =
    "The list is incomplete: the list is cut at 2000 names; --max raises the bound.";

#[test]
fn a_list_without_an_end_is_cut_at_a_count() {
    let (lines, told) = listed(Lie::Endless, &["--max", "2000"]);
    assert_eq!((lines, told.as_str()), (2_000, AT_MAX));
    let (lines, told) = listed(Lie::Empty, &["--max", "2000"]);
    assert_eq!((lines, told.as_str()), (2, AT_MAX));
}

#[test]
fn contexts_without_an_end_are_cut_at_a_count() {
    let (lines, told) = listed(Lie::Deep, &["-r", "--max", "2000"]);
    assert_eq!((lines, told.as_str()), (2_000, AT_MAX));
}

#[test]
fn long_names_are_cut_at_their_octets() {
    let (lines, told) = listed(Lie::Long, &[]);
    assert!(lines < 200, "{lines}");
    assert!(
        told.contains("the names are longer than 64 MiB together"),
        "{told}"
    );
}

#[test]
fn a_service_that_does_not_answer_is_listed_for_a_time() {
    let silent = Lie::Silent(Arc::default());
    let (lines, told) = listed(silent, &["--within", "500ms"]);
    assert_eq!(lines, 0);
    let expected =
        "The list is incomplete: the service is not listed after 500ms; --within raises the bound.";
    assert_eq!(told, expected);
}

#[test]
fn names_types_and_hosts_of_a_service_are_printed_without_what_changes_a_terminal() {
    let liar = liar(Lie::Hostile);
    let names = liar.orb.object_to_string(&liar.reference());
    for line in [
        "names list",
        "names list --long",
        "names list --json",
        "events list",
    ] {
        let mut words: Vec<&str> = line.split(' ').collect();
        words.extend(["--names", &names]);
        let output = crate::foreign_text::deckwatch(&words);
        crate::foreign_text::check(line, &output);
    }
    liar.orb.shutdown(true).expect("it ends");
}
