//! One argument of a dynamic request.

use deckwatch_cdr::value::Value;
use deckwatch_cdr::{Any, DecodeError, EncodeError, TypeCode};

/// Which way an argument goes: ARG_IN, ARG_OUT, ARG_INOUT.
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
    /// Whether it goes to the object.
    #[must_use]
    pub const fn is_sent(self) -> bool {
        !matches!(self, Self::Out)
    }

    /// Whether it comes back.
    #[must_use]
    pub const fn is_returned(self) -> bool {
        !matches!(self, Self::In)
    }
}

/// An argument with its name, which nobody reads but people, its type and its mode (NamedValue, CORBA 3.3 part 1, clause 11.1.1).
#[derive(Clone, Debug, PartialEq)]
pub struct NamedValue {
    /// As in the IDL; may be empty.
    pub name: String,
    /// What the operation declares.
    pub type_code: TypeCode,
    /// Of that type; before an `out` argument has come back, whatever it was made with.
    pub value: Value,
    /// Which way it goes.
    pub mode: ArgMode,
}

impl NamedValue {
    /// An argument for an operation that does not change it.
    #[must_use]
    pub fn of_in(name: &str, type_code: TypeCode, value: Value) -> Self {
        Self::with(name, type_code, value, ArgMode::In)
    }

    /// An argument that the operation reads and changes.
    #[must_use]
    pub fn of_inout(name: &str, type_code: TypeCode, value: Value) -> Self {
        Self::with(name, type_code, value, ArgMode::InOut)
    }

    /// An argument that the operation gives.
    #[must_use]
    pub fn of_out(name: &str, type_code: TypeCode) -> Self {
        Self::with(name, type_code, Value::Nothing, ArgMode::Out)
    }

    /// An argument with the type and value of an Any.
    ///
    /// # Errors
    /// What is wrong with the Any's octets.
    pub fn of_any(name: &str, any: &Any, mode: ArgMode) -> Result<Self, DecodeError> {
        let value = any.to_dynamic()?;
        Ok(Self::with(name, any.type_code().clone(), value, mode))
    }

    fn with(name: &str, type_code: TypeCode, value: Value, mode: ArgMode) -> Self {
        Self {
            name: name.to_owned(),
            type_code,
            value,
            mode,
        }
    }

    /// Type and value as an Any.
    ///
    /// # Errors
    /// [`EncodeError::TypeMismatch`] where the value is not of the type, as that of an `out` argument before the call.
    pub fn to_any(&self) -> Result<Any, EncodeError> {
        Any::from_dynamic(&self.type_code, &self.value)
    }
}
