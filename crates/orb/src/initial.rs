//! From text to references: `IOR:`, `corbaloc:`, `corbaname:`, and the names of initial references.

use std::sync::PoisonError;

use deckwatch_cdr::{DecodeError, Parse, Reader, Write};
use deckwatch_giop::ior::ReferenceError;
use deckwatch_giop::url::{Address, Corbaloc};
use deckwatch_giop::{ObjectUrl, SystemExceptionKind as Kind};

use crate::limits::INITIAL_REFERENCES_DEEP_MAX;
use crate::orb::{Initial, Orb};
use crate::raise::{self, own};
use crate::{Completion, ObjectRef, Origin, SystemException, minor};

/// The initial reference that `corbaloc:rir:` and `corbaname:` name without a key.
const NAME_SERVICE: &str = "NameService";

impl Orb {
    /// Parses a reference. Returns `None` for nil.
    ///
    /// # Errors
    /// BAD_PARAM with the standard minor codes 7 to 10 for text that is no reference; for `corbaname:`, the exception
    /// that the naming service raised; BAD_INV_ORDER with minor code 4 after a shutdown.
    pub fn string_to_object(&self, text: &str) -> Result<Option<ObjectRef>, SystemException> {
        self.string_to_object_of(text, self.0.calls.origin_here())
    }

    /// As [`Orb::string_to_object`], for a text that a peer gave earlier. Within a request, a text is otherwise one of
    /// the peer whose request the thread serves.
    ///
    /// # Errors
    /// As [`Orb::string_to_object`].
    pub fn string_to_object_of(
        &self,
        text: &str,
        origin: Origin,
    ) -> Result<Option<ObjectRef>, SystemException> {
        self.0.calls.require_life()?;
        self.read_reference(text, INITIAL_REFERENCES_DEEP_MAX, origin)
    }

    /// `deep`: how many more initial references may be followed from one to the next.
    fn read_reference(
        &self,
        text: &str,
        deep: usize,
        origin: Origin,
    ) -> Result<Option<ObjectRef>, SystemException> {
        let url: ObjectUrl = text.parse().map_err(|error: ReferenceError| {
            raise::bad_param(minor_of(text, error.offset), Completion::No)
        })?;
        match url {
            ObjectUrl::Ior(ior) => Ok(self.reference(ior, origin)),
            ObjectUrl::Corbaloc(url) => self.corbaloc(&url, deep, origin).map(Some),
            ObjectUrl::Corbaname(url) => {
                let context = self.corbaloc(&url.context, deep, origin)?;
                if url.name.is_empty() {
                    Ok(Some(context))
                } else {
                    let found = self.resolve_name(&context, &url.name)?;
                    Ok(found.map(|found| found.given_as(origin)))
                }
            }
        }
    }

    fn corbaloc(
        &self,
        url: &Corbaloc,
        deep: usize,
        origin: Origin,
    ) -> Result<ObjectRef, SystemException> {
        let nothing = raise::bad_param(minor::BAD_SCHEMA_SPECIFIC, Completion::No);
        if url.addresses.contains(&Address::InitialReference) {
            let name = std::str::from_utf8(&url.key).map_err(|_| nothing)?;
            let name = if name.is_empty() { NAME_SERVICE } else { name };
            return self.resolve_initial(name, deep);
        }
        let ior = url
            .to_ior(&self.0.calls.client.transport.host_name())?
            .ok_or(nothing)?;
        self.reference(ior, origin).ok_or(nothing)
    }

    /// Returns the reference that a naming context has for a stringified name.
    fn resolve_name(
        &self,
        context: &ObjectRef,
        name: &str,
    ) -> Result<Option<ObjectRef>, SystemException> {
        // The user exceptions NotFound, CannotProceed and InvalidName all mean the same here: the URL names no object.
        let found = context.invoke(
            "resolve_str",
            |w| name.write(w),
            parse_object,
            |_, _| Ok(None),
        );
        found.map_err(|exception: SystemException| {
            if exception.kind == Kind::Unknown {
                return raise::bad_param(minor::BAD_REFERENCE_STRING, Completion::No);
            }
            exception
        })
    }

    /// Returns the initial reference of this name. It was set by [`Orb::register_initial_reference`] or `-ORBInitRef`.
    /// If none was set, `-ORBDefaultInitRef` and the name form its URL.
    ///
    /// # Errors
    /// BAD_PARAM if there is none of this name; the exceptions of [`Orb::string_to_object`] for its text.
    pub fn resolve_initial_references(&self, name: &str) -> Result<ObjectRef, SystemException> {
        self.0.calls.require_life()?;
        self.resolve_initial(name, INITIAL_REFERENCES_DEEP_MAX)
    }

    fn resolve_initial(&self, name: &str, deep: usize) -> Result<ObjectRef, SystemException> {
        let unknown = raise::bad_param(own::INITIAL_REFERENCE_UNKNOWN, Completion::No);
        let found = self
            .0
            .initial
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .cloned();
        let default = || self.0.default_initial(name).map(Initial::Text);
        match found.or_else(default).ok_or(unknown)? {
            Initial::Reference(reference) => Ok(reference.given_by(&self.0.calls)),
            Initial::Text(text) => {
                let circle = raise::bad_param(minor::BAD_SCHEMA_SPECIFIC, Completion::No);
                let deep = deep.checked_sub(1).ok_or(circle)?;
                let reference = self
                    .read_reference(&text, deep, Origin::Own)?
                    .ok_or(unknown)?;
                self.register_initial_reference(name, &reference);
                Ok(reference)
            }
        }
    }

    /// Registers `reference`: [`Orb::resolve_initial_references`] of this ORB returns it for `name`.
    pub fn register_initial_reference(&self, name: &str, reference: &ObjectRef) {
        let mut initial = self
            .0
            .initial
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let kept = Initial::Reference(reference.kept_by(&self.0.calls));
        initial.insert(name.to_owned(), kept);
    }

    /// Returns the names of the initial references.
    #[must_use]
    pub fn list_initial_services(&self) -> Vec<String> {
        self.0
            .initial
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .keys()
            .cloned()
            .collect()
    }
}

/// Returns the standard's minor code for the malformed part of the text: the scheme, the address, the part after the
/// address, or anything else.
fn minor_of(text: &str, offset: usize) -> u32 {
    let lead = text.len() - text.trim_start().len();
    let scheme = text[lead..]
        .split_once(':')
        .map_or("", |(scheme, _)| scheme);
    let is = |known: &str| scheme.eq_ignore_ascii_case(known);
    if is("IOR") {
        minor::BAD_REFERENCE_STRING
    } else if !is("corbaloc") && !is("corbaname") {
        minor::BAD_SCHEME_NAME
    } else if text.find(['/', '#']).is_some_and(|at| offset > at) {
        minor::BAD_SCHEMA_SPECIFIC
    } else {
        minor::BAD_ADDRESS
    }
}

fn parse_object(r: &mut Reader<'_>) -> Result<Option<ObjectRef>, DecodeError> {
    Option::parse(r)
}
