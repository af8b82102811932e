//! The servant of one naming context (Naming Service 1.3, clauses 2.3 and 2.5).

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use deckwatch_orb::cos_naming::naming_context::{CannotProceed, InvalidName, NotFoundReason};
use deckwatch_orb::cos_naming::naming_context_ext::InvalidAddress;
use deckwatch_orb::cos_naming::{
    Binding, BindingIteratorRef, BindingType, NameComponent, NamingContext,
    NamingContextBindContextError, NamingContextBindError, NamingContextBindNewContextError,
    NamingContextDestroyError, NamingContextExt, NamingContextExtResolveStrError,
    NamingContextExtToNameError, NamingContextExtToStringError, NamingContextExtToUrlError,
    NamingContextRebindContextError, NamingContextRebindError, NamingContextRef,
    NamingContextResolveError, NamingContextUnbindError,
};
use deckwatch_orb::outward::is_refusal;
use deckwatch_orb::{ObjectRef, Origin, SystemException, SystemExceptionKind as Kind};

use crate::limits;
use crate::name;
use crate::service::Shared;
use crate::store::rows::BindingRow;
use crate::store::{ROOT, Row, StoreError, Target};
use crate::walk::{Fault, Place, check, raise, walk};

/// One context of the service.
pub(crate) struct Context {
    shared: Arc<Shared>,
    number: u64,
    /// When it was last used.
    used: Arc<AtomicU64>,
}

impl Context {
    pub(crate) fn new(shared: Arc<Shared>, number: u64, used: Arc<AtomicU64>) -> Self {
        Self {
            shared,
            number,
            used,
        }
    }

    /// Notes that a request came.
    fn touch(&self) {
        self.used.store(self.shared.now_s(), Relaxed);
    }

    fn place<'n>(&self, name: &'n [NameComponent]) -> Result<Place<'n>, Fault> {
        self.touch();
        walk(&self.shared.store, &self.shared.orb, self.number, name)
    }

    /// Converts a reference to the form in the store: a context of this service by its number, all others as an IOR.
    fn target(&self, reference: &ObjectRef, as_context: bool) -> Result<Target, Fault> {
        if as_context && let Some(number) = self.shared.own_context(reference) {
            return Ok(Target::Context(number));
        }
        let ior = self.shared.orb.object_to_string(reference);
        if ior.len() > limits::REFERENCE_TEXT_MAX {
            return Err(raise(Kind::ImpLimit).into());
        }
        Ok(if as_context {
            Target::ForeignContext(ior)
        } else {
            Target::Object(ior)
        })
    }

    /// Binds the last component of a name: in this service's store, or through `elsewhere` in the context of another
    /// service.
    fn bind_at(
        &self,
        name: &[NameComponent],
        target: &Target,
        replace: bool,
        elsewhere: impl FnOnce(&NamingContextRef, &[NameComponent]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let (context, last) = match self.place(name)? {
            Place::Here { context, last } => (context, last),
            Place::Elsewhere { context, rest } => return self.proceed(context, rest, elsewhere),
        };
        let binding = BindingRow {
            maker: self.shared.maker(),
            target: target.clone(),
        };
        match self
            .shared
            .store
            .bind(context, &last.id, &last.kind, &binding, replace)
        {
            Err(StoreError::WrongKind) => {
                let why = if target.is_context() {
                    NotFoundReason::NotContext
                } else {
                    NotFoundReason::NotObject
                };
                Err(Fault::not_found(why, std::slice::from_ref(last)))
            }
            outcome => Ok(outcome?),
        }
    }

    /// Calls another service with the rest of the name. If that raises a system exception, the caller receives
    /// CannotProceed with the context and the rest, and can continue by itself; unless the call was refused here, or
    /// leads in a circle.
    fn proceed<T>(
        &self,
        context: NamingContextRef,
        rest: &[NameComponent],
        operation: impl FnOnce(&NamingContextRef, &[NameComponent]) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let call = self.shared.outward.begin()?;
        let called = call.to(context.object())?;
        let outcome = operation(&NamingContextRef::unchecked_narrow(called), rest);
        match outcome {
            Err(Fault::System(exception)) => {
                let _ = call.has_failed(context.object()); // All callers are told the same.
                if is_refusal(exception) {
                    return Err(exception.into());
                }
                Err(Fault::CannotProceed(CannotProceed {
                    cxt: Some(context),
                    rest_of_name: rest.to_vec(),
                }))
            }
            outcome => outcome,
        }
    }

    fn resolve_name(&self, name: &[NameComponent]) -> Result<Option<ObjectRef>, Fault> {
        let (context, last) = match self.place(name)? {
            Place::Here { context, last } => (context, last),
            Place::Elsewhere { context, rest } => {
                return self.proceed(context, rest, |context, rest| Ok(context.resolve(rest)?));
            }
        };
        match self.shared.store.lookup(context, &last.id, &last.kind)? {
            Some(Target::Context(number)) => Ok(Some(self.shared.reference(number)?.into())),
            Some(Target::Object(ior) | Target::ForeignContext(ior)) => {
                // It is only passed on.
                let origin = Origin::default();
                Ok(self.shared.orb.string_to_object_of(&ior, origin)?)
            }
            None => Err(Fault::not_found(
                NotFoundReason::MissingNode,
                std::slice::from_ref(last),
            )),
        }
    }

    fn unbind_name(&self, name: &[NameComponent]) -> Result<(), Fault> {
        let (context, last) = match self.place(name)? {
            Place::Here { context, last } => (context, last),
            Place::Elsewhere { context, rest } => {
                return self.proceed(context, rest, |context, rest| Ok(context.unbind(rest)?));
            }
        };
        if self.shared.store.unbind(context, &last.id, &last.kind)? {
            Ok(())
        } else {
            Err(Fault::not_found(
                NotFoundReason::MissingNode,
                std::slice::from_ref(last),
            ))
        }
    }

    fn bind_new(&self, name: &[NameComponent]) -> Result<NamingContextRef, Fault> {
        let (context, last) = match self.place(name)? {
            Place::Here { context, last } => (context, last),
            Place::Elsewhere { context, rest } => {
                let made = self.proceed(context, rest, |context, rest| {
                    Ok(context.bind_new_context(rest)?)
                })?;
                return made.ok_or_else(|| raise(Kind::Unknown).into());
            }
        };
        let maker = self.shared.maker();
        let number = self
            .shared
            .store
            .bind_new_context(context, &last.id, &last.kind, &maker)?;
        Ok(self.shared.activate(number)?)
    }
}

/// Raises BAD_PARAM for a nil reference, which cannot be bound.
fn required<T>(reference: Option<T>) -> Result<T, Fault> {
    reference.ok_or_else(|| raise(Kind::BadParam).into())
}

/// Converts a row of the store to the standard's `Binding`.
pub(crate) fn binding(row: Row) -> Binding {
    Binding {
        binding_name: vec![NameComponent {
            id: row.id,
            kind: row.kind,
        }],
        binding_type: if row.is_context {
            BindingType::Ncontext
        } else {
            BindingType::Nobject
        },
    }
}

fn components(text: &str) -> Result<Vec<NameComponent>, InvalidName> {
    let pairs = name::parse(text).map_err(|_| InvalidName {})?;
    Ok(pairs
        .into_iter()
        .map(|(id, kind)| NameComponent { id, kind })
        .collect())
}

impl NamingContext for Context {
    fn bind<'a>(
        &'a self,
        n: &'a [NameComponent],
        obj: Option<&'a ObjectRef>,
    ) -> Result<(), NamingContextBindError> {
        let object = required(obj)?;
        let target = self.target(object, false)?;
        Ok(self.bind_at(n, &target, false, |context, rest| {
            Ok(context.bind(rest, Some(object))?)
        })?)
    }

    fn rebind<'a>(
        &'a self,
        n: &'a [NameComponent],
        obj: Option<&'a ObjectRef>,
    ) -> Result<(), NamingContextRebindError> {
        let object = required(obj)?;
        let target = self.target(object, false)?;
        Ok(self.bind_at(n, &target, true, |context, rest| {
            Ok(context.rebind(rest, Some(object))?)
        })?)
    }

    fn bind_context<'a>(
        &'a self,
        n: &'a [NameComponent],
        nc: Option<&'a NamingContextRef>,
    ) -> Result<(), NamingContextBindContextError> {
        let bound = required(nc)?;
        let target = self.target(bound.object(), true)?;
        Ok(self.bind_at(n, &target, false, |context, rest| {
            Ok(context.bind_context(rest, Some(bound))?)
        })?)
    }

    fn rebind_context<'a>(
        &'a self,
        n: &'a [NameComponent],
        nc: Option<&'a NamingContextRef>,
    ) -> Result<(), NamingContextRebindContextError> {
        let bound = required(nc)?;
        let target = self.target(bound.object(), true)?;
        Ok(self.bind_at(n, &target, true, |context, rest| {
            Ok(context.rebind_context(rest, Some(bound))?)
        })?)
    }

    fn resolve<'a>(
        &'a self,
        n: &'a [NameComponent],
    ) -> Result<Option<ObjectRef>, NamingContextResolveError> {
        Ok(self.resolve_name(n)?)
    }

    fn unbind<'a>(&'a self, n: &'a [NameComponent]) -> Result<(), NamingContextUnbindError> {
        Ok(self.unbind_name(n)?)
    }

    fn new_context(&self) -> Result<Option<NamingContextRef>, SystemException> {
        self.touch();
        let made = self.shared.new_context();
        made.map(Some).map_err(Fault::into_system)
    }

    fn bind_new_context<'a>(
        &'a self,
        n: &'a [NameComponent],
    ) -> Result<Option<NamingContextRef>, NamingContextBindNewContextError> {
        Ok(Some(self.bind_new(n)?))
    }

    fn destroy(&self) -> Result<(), NamingContextDestroyError> {
        if self.number == ROOT {
            return Err(raise(Kind::NoPermission).into());
        }
        self.shared
            .store
            .destroy_context(self.number)
            .map_err(Fault::from)?;
        Ok(self.shared.deactivate(self.number)?)
    }

    fn list(
        &self,
        how_many: u32,
    ) -> Result<(Cow<'_, [Binding]>, Option<BindingIteratorRef>), SystemException> {
        self.touch();
        let wanted =
            usize::try_from(how_many).map_or(limits::LIST_MAX, |count| count.min(limits::LIST_MAX));
        let rows = self
            .shared
            .store
            .list(self.number, None, wanted + 1)
            .map_err(|error| Fault::from(error).into_system())?;
        let more = rows.len() > wanted;
        let mut rows = rows;
        rows.truncate(wanted);
        let after = rows.last().map(|row| (row.id.clone(), row.kind.clone()));
        let iterator = if more {
            Some(self.shared.open_iterator(self.number, after)?)
        } else {
            None
        };
        Ok((rows.into_iter().map(binding).collect(), iterator))
    }
}

impl NamingContextExt for Context {
    fn to_string<'a>(
        &'a self,
        n: &'a [NameComponent],
    ) -> Result<Cow<'a, str>, NamingContextExtToStringError> {
        check(n).map_err(|_| InvalidName {})?;
        Ok(name::to_text(
            n.iter()
                .map(|component| (component.id.as_str(), component.kind.as_str())),
        )
        .into())
    }

    fn to_name<'a>(
        &'a self,
        sn: &'a str,
    ) -> Result<Cow<'a, [NameComponent]>, NamingContextExtToNameError> {
        Ok(components(sn)?.into())
    }

    fn to_url<'a>(
        &'a self,
        addr: &'a str,
        sn: &'a str,
    ) -> Result<Cow<'a, str>, NamingContextExtToUrlError> {
        components(sn)?;
        let url = name::to_url(addr, sn);
        if addr.is_empty() || url.parse::<deckwatch_giop::ObjectUrl>().is_err() {
            return Err(InvalidAddress {}.into());
        }
        Ok(url.into())
    }

    fn resolve_str<'a>(
        &'a self,
        sn: &'a str,
    ) -> Result<Option<ObjectRef>, NamingContextExtResolveStrError> {
        Ok(self.resolve_name(&components(sn)?)?)
    }
}
