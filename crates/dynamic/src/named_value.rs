//! One argument of a dynamic request.

use deckwatch_cdr::{Any, EncodeError, TypeCode, Unwritten, Writer};

/// The direction of an argument: ARG_IN, ARG_OUT, ARG_INOUT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgMode {
    /// To the object.
    In,
    /// Back from it.
    Out,
    /// Both ways.
    InOut,
}

impl ArgMode {
    /// Whether the request contains it.
    #[must_use]
    pub const fn is_sent(self) -> bool {
        !matches!(self, Self::Out)
    }

    /// Whether the reply contains it.
    #[must_use]
    pub const fn is_returned(self) -> bool {
        !matches!(self, Self::In)
    }
}

/// An argument with its name, type and mode (NamedValue, CORBA 3.3 part 1, clause 11.1.1). The name does not travel.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedValue {
    /// As in the IDL; may be empty.
    pub name: String,
    /// The type that the operation declares.
    pub type_code: TypeCode,
    /// A value of that type, or an equivalent one. Before the reply the value of an `out` argument is ignored; it is an
    /// empty Any at first.
    pub value: Any,
    /// Its direction.
    pub mode: ArgMode,
}

impl NamedValue {
    /// An argument for an operation that does not change it.
    #[must_use]
    pub fn of_in(name: &str, value: Any) -> Self {
        Self::with(name, value, ArgMode::In)
    }

    /// An argument that the operation reads and changes.
    #[must_use]
    pub fn of_inout(name: &str, value: Any) -> Self {
        Self::with(name, value, ArgMode::InOut)
    }

    /// An argument that the operation returns.
    #[must_use]
    pub fn of_out(name: &str, type_code: TypeCode) -> Self {
        Self::parameter(name, type_code, ArgMode::Out)
    }

    /// A parameter as its operation declares it, without a value.
    #[must_use]
    pub fn parameter(name: &str, type_code: TypeCode, mode: ArgMode) -> Self {
        Self {
            name: name.to_owned(),
            type_code,
            value: Any::empty(),
            mode,
        }
    }

    fn with(name: &str, value: Any, mode: ArgMode) -> Self {
        Self {
            name: name.to_owned(),
            type_code: value.type_code().clone(),
            value,
            mode,
        }
    }

    /// Writes the value, the last of its message. Fails where it is not of the declared type.
    pub(crate) fn write_last(&self, w: &mut Writer<'_>) -> Result<Unwritten<'_>, EncodeError> {
        if !self.value.type_code().equivalent(&self.type_code) {
            return Err(EncodeError::TypeMismatch);
        }
        self.value.write_value_last(w)
    }

    /// As [`NamedValue::write_last`], with more behind it.
    pub(crate) fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let rest = self.write_last(w)?;
        w.write_octets(rest.octets())
    }
}
