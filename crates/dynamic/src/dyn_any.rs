//! DynAny: reading and making an any part by part, by a type known at run time only (CORBA 3.3 part 1, clause 13).

mod basic;
mod constructed;
mod elements;
mod valuetype;
mod views;

pub use constructed::{DynStruct, DynUnion};
pub use valuetype::{DynValue, DynValueBox};
pub use views::{DynArray, DynEnum, DynFixed, DynSequence};

use std::fmt;

use deckwatch_cdr::limits::VALUE_PARTS_MAX;
use deckwatch_cdr::typecode::Kind;
use deckwatch_cdr::value::{Instance, Value};
use deckwatch_cdr::{Any, Char, EncodeError, TypeCode};

/// A value of a type known at run time, with a current position among its components.
///
/// A component is part of its whole: [`DynAny::current_component`] changes it there. A shared value of a value type is
/// copied to each of its places. A cyclic one has no DynAny.
///
/// ```
/// # use deckwatch_cdr::{Any, TypeCode};
/// # use deckwatch_dynamic::dyn_any::{DynAny, DynAnyError};
/// # fn main() -> Result<(), DynAnyError> {
/// let speeds = TypeCode::sequence(&TypeCode::double(), 0);
/// let mut value = DynAny::from_type_code(&speeds)?;
/// value.as_sequence()?.set_length(2)?;
/// value.insert_double(11.5)?;
/// value.next();
/// value.insert_double(12.0)?;
/// assert_eq!(value.to_any()?.extract::<Vec<f64>>().ok(), Some(vec![11.5, 12.0]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DynAny {
    type_code: TypeCode,
    content: Content,
    /// `None` is the standard's -1.
    position: Option<usize>,
}

#[derive(Clone, Debug)]
enum Content {
    /// A value without components.
    Leaf(Value),
    /// Members or elements.
    Parts(Vec<DynAny>),
    /// Discriminator, and the active member if there is one.
    Union(Vec<DynAny>),
    /// The type of a value of a value type, and its members; `None` is null.
    Valuetype(Option<(TypeCode, Vec<DynAny>)>),
}

/// Why an operation of a DynAny failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DynAnyError {
    /// The operation is not one of this type, or its argument is of another type.
    TypeMismatch,
    /// There is no current component; or the argument is not a value of the type: above a bound, or an unknown name or
    /// number.
    InvalidValue,
    /// Values of the type do not travel: local interfaces and native types.
    InconsistentTypeCode,
    /// The value was of an unknown derived type, and was truncated to its base.
    MustTruncate,
    /// It would have more than [`VALUE_PARTS_MAX`] components in all.
    TooManyParts,
}

impl fmt::Display for DynAnyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TypeMismatch => "the value is of another type than the operation",
            Self::InvalidValue => "there is no current component, or no such value of the type",
            Self::InconsistentTypeCode => "the type has no values that travel",
            Self::MustTruncate => "the value was cut down to a base of its type",
            Self::TooManyParts => "the value would have too many parts",
        })
    }
}

impl std::error::Error for DynAnyError {}

impl From<EncodeError> for DynAnyError {
    fn from(error: EncodeError) -> Self {
        match error {
            EncodeError::TypeMismatch => Self::TypeMismatch,
            EncodeError::TypeUnsupported => Self::InconsistentTypeCode,
            EncodeError::MessageTooLarge => Self::TooManyParts,
            _ => Self::InvalidValue,
        }
    }
}

impl DynAny {
    /// The value of an any (create_dyn_any).
    ///
    /// # Errors
    /// [`DynAnyError::InconsistentTypeCode`]; [`DynAnyError::InvalidValue`] where its octets are no value of its type;
    /// [`DynAnyError::TooManyParts`].
    pub fn from_any(any: &Any) -> Result<Self, DynAnyError> {
        require_mapped(any.type_code())?;
        let value = any.to_dynamic().map_err(|_| DynAnyError::InvalidValue)?;
        Self::from_value(any.type_code(), value)
    }

    /// As [`DynAny::from_any`] (create_dyn_any_without_truncation).
    ///
    /// # Errors
    /// As there; [`DynAnyError::MustTruncate`] where the any came with a value of a derived type that its TypeCode does
    /// not describe.
    pub fn from_any_without_truncation(any: &Any) -> Result<Self, DynAnyError> {
        if any.is_truncated() {
            return Err(DynAnyError::MustTruncate);
        }
        Self::from_any(any)
    }

    /// Returns the default of a type: numbers 0, texts and sequences empty, enumerators the first, unions at their
    /// first case, values of value types null (create_dyn_any_from_type_code).
    ///
    /// # Errors
    /// [`DynAnyError::InconsistentTypeCode`], [`DynAnyError::TooManyParts`].
    pub fn from_type_code(type_code: &TypeCode) -> Result<Self, DynAnyError> {
        require_mapped(type_code)?;
        Self::from_value(type_code, Value::default_for(type_code)?)
    }

    /// A value of a type.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] where it is of another, [`DynAnyError::TooManyParts`].
    pub fn from_value(type_code: &TypeCode, value: Value) -> Result<Self, DynAnyError> {
        // Writing it checks the type, bounds included.
        Any::from_dynamic(type_code, &value)?;
        Self::build(type_code, value, &mut { VALUE_PARTS_MAX })
    }

    fn build(type_code: &TypeCode, value: Value, left: &mut usize) -> Result<Self, DynAnyError> {
        *left = left.checked_sub(1).ok_or(DynAnyError::TooManyParts)?;
        let code = type_code.unaliased();
        let content = match (code.kind(), value) {
            (Kind::Struct | Kind::Except, Value::Struct(values))
                if values.len() == code.member_count() =>
            {
                let parts = values.into_iter().enumerate();
                let parts =
                    parts.map(|(index, value)| Self::build(&member_of(&code, index)?, value, left));
                Content::Parts(parts.collect::<Result<_, _>>()?)
            }
            (Kind::Sequence | Kind::Array, value) => {
                let element = code.content_type().ok_or(DynAnyError::TypeMismatch)?;
                let parts = elements_of(&element, value)?;
                let parts = parts.map(|value| Self::build(&element, value, left));
                Content::Parts(parts.collect::<Result<_, _>>()?)
            }
            (Kind::Union, Value::Union(number, member)) => {
                Content::Union(Self::build_union(&code, number, member, left)?)
            }
            (Kind::Value | Kind::Event | Kind::ValueBox, Value::Valuetype(instance))
                if !instance.as_deref().is_some_and(Instance::is_opaque) =>
            {
                Content::Valuetype(Self::build_instance(&code, instance, left)?)
            }
            // A state that no TypeCode describes has no components.
            (Kind::Value | Kind::Event, value @ Value::Valuetype(_)) => Content::Leaf(value),
            (Kind::Struct | Kind::Except | Kind::Union | Kind::Value | Kind::Event, _) => {
                return Err(DynAnyError::TypeMismatch);
            }
            (_, value) => Content::Leaf(value),
        };
        let mut built = Self {
            type_code: type_code.clone(),
            content,
            position: None,
        };
        built.rewind();
        Ok(built)
    }

    /// The discriminator, and the member that it selects.
    fn build_union(
        code: &TypeCode,
        number: i64,
        member: Option<Box<Value>>,
        left: &mut usize,
    ) -> Result<Vec<Self>, DynAnyError> {
        let discriminator = code.discriminator_type();
        let discriminator = discriminator.ok_or(DynAnyError::TypeMismatch)?;
        let label = label_of(&discriminator, number)?;
        let mut parts = vec![Self::build(&discriminator, label, left)?];
        match (code.selected_member(number), member) {
            (Some(case), Some(member)) => {
                parts.push(Self::build(&member_of(code, case)?, *member, left)?);
            }
            (None, None) => {}
            _ => return Err(DynAnyError::TypeMismatch),
        }
        Ok(parts)
    }

    /// Its type, aliases included (type).
    #[must_use]
    pub const fn type_code(&self) -> &TypeCode {
        &self.type_code
    }

    /// The value as a tree.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match &self.content {
            Content::Leaf(value) => value.clone(),
            Content::Union(parts) => {
                let number = number_of(&parts[0].to_value());
                Value::Union(number, parts.get(1).map(|part| Box::new(part.to_value())))
            }
            Content::Valuetype(instance) => {
                Value::Valuetype(instance.as_ref().map(|(code, parts)| {
                    Box::new(Instance {
                        type_id: code.id().unwrap_or_default().to_owned(),
                        state: parts.iter().map(Self::to_value).collect(),
                    })
                }))
            }
            Content::Parts(parts) => {
                let values = parts.iter().map(Self::to_value);
                let code = self.type_code.unaliased();
                let element = code
                    .content_type()
                    .map(|element| element.unaliased().kind());
                match (code.kind(), element) {
                    (Kind::Struct | Kind::Except, _) => Value::Struct(values.collect()),
                    (_, Some(Kind::Octet | Kind::Char)) => {
                        let octet = |value: Value| match value {
                            Value::Octet(octet) | Value::Char(Char(octet)) => octet,
                            _ => 0,
                        };
                        Value::Octets(values.map(octet).collect())
                    }
                    _ => Value::Elements(values.collect()),
                }
            }
        }
    }

    /// The value as an any.
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] where it cannot be written, as text that is too long for its bound.
    pub fn to_any(&self) -> Result<Any, DynAnyError> {
        Ok(Any::from_dynamic(&self.type_code, &self.to_value())?)
    }

    /// Takes the value of an any of an equivalent type (from_any). The first component becomes current.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`]; as [`DynAny::from_any`].
    pub fn set_any(&mut self, any: &Any) -> Result<(), DynAnyError> {
        self.require_equivalent(any.type_code())?;
        let value = any.to_dynamic().map_err(|_| DynAnyError::InvalidValue)?;
        *self = Self::from_value(&self.type_code, value)?;
        Ok(())
    }

    /// Takes the value of another DynAny of an equivalent type. The first component becomes current.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`].
    pub fn assign(&mut self, other: &Self) -> Result<(), DynAnyError> {
        self.require_equivalent(&other.type_code)?;
        *self = Self::from_value(&self.type_code, other.to_value())?;
        Ok(())
    }

    /// Whether both have equivalent types and the same value. Positions do not count.
    #[must_use]
    pub fn equal(&self, other: &Self) -> bool {
        self.type_code.equivalent(&other.type_code) && self.to_value() == other.to_value()
    }

    /// Returns a copy; its first component is current.
    #[must_use]
    pub fn copy(&self) -> Self {
        let mut copy = self.clone();
        copy.rewind();
        copy
    }

    fn require_equivalent(&self, other: &TypeCode) -> Result<(), DynAnyError> {
        if self.type_code.equivalent(other) {
            Ok(())
        } else {
            Err(DynAnyError::TypeMismatch)
        }
    }

    fn parts(&self) -> &[Self] {
        match &self.content {
            Content::Leaf(_) | Content::Valuetype(None) => &[],
            Content::Parts(parts)
            | Content::Union(parts)
            | Content::Valuetype(Some((_, parts))) => parts,
        }
    }

    fn parts_mut(&mut self) -> &mut [Self] {
        match &mut self.content {
            Content::Leaf(_) | Content::Valuetype(None) => &mut [],
            Content::Parts(parts)
            | Content::Union(parts)
            | Content::Valuetype(Some((_, parts))) => parts,
        }
    }

    /// Number of components: members, elements, or a union's discriminator and member; 0 for other types.
    #[must_use]
    pub fn component_count(&self) -> usize {
        self.parts().len()
    }

    /// Makes a component current. Returns false, and makes none current, where there is none at this index.
    pub fn seek(&mut self, index: i32) -> bool {
        let index = usize::try_from(index).ok();
        self.position = index.filter(|index| *index < self.component_count());
        self.position.is_some()
    }

    /// Makes the first component current, as [`DynAny::seek`].
    pub fn rewind(&mut self) -> bool {
        self.seek(0)
    }

    /// Makes the next component current, or the first where none is. Returns false, and makes none current, behind the
    /// last.
    #[allow(
        clippy::should_implement_trait,
        reason = "the standard's operation: it gives no component"
    )]
    pub fn next(&mut self) -> bool {
        let next = self.position.map_or(0, |position| position + 1);
        self.position = Some(next).filter(|index| *index < self.component_count());
        self.position.is_some()
    }

    /// Returns the current component, a part of this value, if there is one. A union's discriminator is not returned,
    /// since it decides which member there is: see [`DynUnion::discriminator`], [`DynUnion::set_discriminator`] and
    /// `insert_*`.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for types that never have components, and at a union's discriminator.
    pub fn current_component(&mut self) -> Result<Option<&mut Self>, DynAnyError> {
        match &self.content {
            Content::Leaf(_) => return Err(DynAnyError::TypeMismatch),
            Content::Union(_) if self.position == Some(0) => {
                return Err(DynAnyError::TypeMismatch);
            }
            _ if self.never_has_parts() => return Err(DynAnyError::TypeMismatch),
            _ => {}
        }
        let position = self.position;
        Ok(position.and_then(|position| self.parts_mut().get_mut(position)))
    }

    /// Number of components at all depths, itself included.
    fn total(&self) -> usize {
        1 + self.parts().iter().map(Self::total).sum::<usize>()
    }

    /// Whether it is a struct, exception or value type without members.
    fn never_has_parts(&self) -> bool {
        let code = self.type_code.unaliased();
        match &self.content {
            Content::Parts(_) => self.is_struct() && code.member_count() == 0,
            Content::Valuetype(_) => code.state().is_empty(),
            Content::Leaf(_) | Content::Union(_) => false,
        }
    }

    fn is_struct(&self) -> bool {
        matches!(
            self.type_code.unaliased().kind(),
            Kind::Struct | Kind::Except
        )
    }
}

/// Equal as by [`DynAny::equal`].
impl PartialEq for DynAny {
    fn eq(&self, other: &Self) -> bool {
        self.equal(other)
    }
}

/// Refuses types whose values do not travel. Those within are found when the value is made.
fn require_mapped(type_code: &TypeCode) -> Result<(), DynAnyError> {
    match type_code.unaliased().kind() {
        Kind::Native | Kind::LocalInterface | Kind::Alias => Err(DynAnyError::InconsistentTypeCode),
        _ => Ok(()),
    }
}

/// The type of an existing member.
fn member_of(code: &TypeCode, index: usize) -> Result<TypeCode, DynAnyError> {
    code.member_type(index).ok_or(DynAnyError::TypeMismatch)
}

/// The elements of a sequence or array, octets and characters one by one.
fn elements_of(
    element: &TypeCode,
    value: Value,
) -> Result<Box<dyn Iterator<Item = Value>>, DynAnyError> {
    match (value, element.unaliased().kind()) {
        (Value::Octets(octets), Kind::Char) => Ok(Box::new(
            octets.into_iter().map(|octet| Value::Char(Char(octet))),
        )),
        (Value::Octets(octets), _) => Ok(Box::new(octets.into_iter().map(Value::Octet))),
        (Value::Elements(values), _) => Ok(Box::new(values.into_iter())),
        _ => Err(DynAnyError::TypeMismatch),
    }
}

/// The label of a union as a value of its discriminator's type.
fn label_of(discriminator: &TypeCode, number: i64) -> Result<Value, DynAnyError> {
    let mut label = Value::default_for(discriminator)?;
    match &mut label {
        Value::WChar(character) => {
            let scalar = u32::try_from(number).ok().and_then(char::from_u32);
            *character = scalar.ok_or(DynAnyError::InvalidValue)?;
        }
        Value::ULongLong(value) => *value = number.cast_unsigned(),
        label => label.set_number(number)?,
    }
    Ok(label)
}

/// The number of a discriminator, as [`Value::Union`] has it.
fn number_of(label: &Value) -> i64 {
    match label {
        Value::ULongLong(value) => value.cast_signed(),
        label => label.as_number().unwrap_or_default(),
    }
}
