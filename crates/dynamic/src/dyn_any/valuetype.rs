//! Values of value types, boxed values and abstract interfaces of DynAny.

use deckwatch_cdr::limits::VALUE_PARTS_MAX;
use deckwatch_cdr::typecode::{Kind, ValueModifier};
use deckwatch_cdr::value::{Instance, Value};
use deckwatch_cdr::{Any, TypeCode};

use super::constructed::{assign_members, dynamic_members};
use super::{Content, DynAny, DynAnyError};

/// A value of a value type (clause 13.2.10). Its components are the members, those of its bases first; null has none.
#[derive(Debug)]
pub struct DynValue<'d>(&'d mut DynAny);

/// A boxed value (clause 13.2.11). Its component is what is boxed; null has none.
#[derive(Debug)]
pub struct DynValueBox<'d>(&'d mut DynAny);

macro_rules! common {
    ($($name:ident)*) => { $(
        impl $name<'_> {
            /// Whether it is null.
            #[must_use]
            pub const fn is_null(&self) -> bool {
                matches!(self.0.content, Content::Valuetype(None))
            }

            /// Makes it null.
            pub fn set_to_null(&mut self) {
                self.0.content = Content::Valuetype(None);
                self.0.rewind();
            }

            /// Replaces null by the default of its type, whose components are as by [`DynAny::from_type_code`]. Other
            /// values stay.
            ///
            /// # Errors
            /// [`DynAnyError::InvalidValue`] where the type is abstract or custom and so has no values here, and as
            /// [`DynAny::from_type_code`].
            pub fn set_to_value(&mut self) -> Result<(), DynAnyError> {
                if self.is_null() {
                    let (code, parts) = self.0.first_instance()?;
                    self.0.content = Content::Valuetype(Some((code, parts)));
                    self.0.rewind();
                }
                Ok(())
            }
        }
    )* };
}

common! { DynValue DynValueBox }

impl DynAny {
    /// Returns a view of a value of a value type.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] where it is of another kind.
    pub fn as_value(&mut self) -> Result<DynValue<'_>, DynAnyError> {
        match self.type_code.unaliased().kind() {
            Kind::Value | Kind::Event => Ok(DynValue(self)),
            _ => Err(DynAnyError::TypeMismatch),
        }
    }

    /// Returns a view of a boxed value.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] where it is of another kind.
    pub fn as_value_box(&mut self) -> Result<DynValueBox<'_>, DynAnyError> {
        match self.type_code.unaliased().kind() {
            Kind::ValueBox => Ok(DynValueBox(self)),
            _ => Err(DynAnyError::TypeMismatch),
        }
    }

    /// Inserts a value of a value type, a boxed value, or null: into this DynAny where it is of such a type, else into
    /// the current component.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] where the type takes no such value; [`DynAnyError::InvalidValue`] where there is
    /// no current component.
    pub fn insert_val(&mut self, value: Option<Instance>) -> Result<(), DynAnyError> {
        let holder = self.holder_of(&[Kind::Value, Kind::Event, Kind::ValueBox])?;
        holder.take(Value::Valuetype(value.map(Box::new)))
    }

    /// Returns the value of a value type or boxed value, as [`DynAny::insert_val`] (get_val); `None` is null.
    ///
    /// # Errors
    /// As there.
    pub fn val(&mut self) -> Result<Option<Instance>, DynAnyError> {
        let holder = self.holder_of(&[Kind::Value, Kind::Event, Kind::ValueBox])?;
        match holder.to_value() {
            Value::Valuetype(instance) => Ok(instance.map(|instance| *instance)),
            _ => Err(DynAnyError::TypeMismatch),
        }
    }

    /// Inserts a value in place of an abstract interface: a [`Value::Reference`] or a [`Value::Valuetype`].
    ///
    /// # Errors
    /// As [`DynAny::insert_val`].
    pub fn insert_abstract(&mut self, value: Value) -> Result<(), DynAnyError> {
        self.holder_of(&[Kind::AbstractInterface])?.take(value)
    }

    /// Returns the value in place of an abstract interface (get_abstract).
    ///
    /// # Errors
    /// As [`DynAny::insert_val`].
    pub fn abstract_base(&mut self) -> Result<Value, DynAnyError> {
        let holder = self.holder_of(&[Kind::AbstractInterface])?;
        Ok(holder.to_value())
    }

    /// Returns this DynAny where it is of one of these kinds, else the current component.
    fn holder_of(&mut self, kinds: &[Kind]) -> Result<&mut Self, DynAnyError> {
        let is_one = |of: &Self| kinds.contains(&of.type_code.unaliased().kind());
        if is_one(self) {
            return Ok(self);
        }
        let holder = self.current_component()?;
        let holder = holder.ok_or(DynAnyError::InvalidValue)?;
        is_one(holder)
            .then_some(holder)
            .ok_or(DynAnyError::TypeMismatch)
    }

    /// Replaces its value by this value of its type.
    pub(super) fn take(&mut self, value: Value) -> Result<(), DynAnyError> {
        *self = Self::from_value(&self.type_code, value)?;
        Ok(())
    }

    pub(super) fn build_instance(
        code: &TypeCode,
        instance: Option<Box<Instance>>,
        left: &mut usize,
    ) -> Result<Option<(TypeCode, Vec<Self>)>, DynAnyError> {
        let Some(instance) = instance else {
            return Ok(None);
        };
        let code = code.find_value(&instance.type_id);
        let code = code.ok_or(DynAnyError::TypeMismatch)?;
        let parts = code.state().into_iter().zip(instance.state);
        let parts = parts.map(|((_, part), value)| Self::build(&part, value, left));
        let parts = parts.collect::<Result<_, _>>()?;
        Ok(Some((code, parts)))
    }

    /// The type of a value that replaces null, and its default members.
    fn first_instance(&self) -> Result<(TypeCode, Vec<Self>), DynAnyError> {
        let code = self.type_code.unaliased();
        if matches!(
            code.type_modifier(),
            Some(ValueModifier::Abstract | ValueModifier::Custom)
        ) {
            return Err(DynAnyError::InvalidValue);
        }
        let mut left = VALUE_PARTS_MAX;
        let parts = code.state().into_iter().map(|(_, part)| {
            let part = Self::from_type_code(&part)?;
            let rest = left.checked_sub(part.total());
            left = rest.ok_or(DynAnyError::TooManyParts)?;
            Ok(part)
        });
        let parts = parts.collect::<Result<_, DynAnyError>>()?;
        Ok((code, parts))
    }
}

impl DynValue<'_> {
    /// The name of the current member.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] where the type has no members, [`DynAnyError::InvalidValue`] where none is
    /// current, as of null.
    pub fn current_member_name(&self) -> Result<String, DynAnyError> {
        let (code, _) = self.instance()?;
        let (name, _) = code.state()[self.current()?];
        Ok(name.to_owned())
    }

    /// The kind of the current member.
    ///
    /// # Errors
    /// As [`DynValue::current_member_name`].
    pub fn current_member_kind(&self) -> Result<Kind, DynAnyError> {
        let member = &self.0.parts()[self.current()?];
        Ok(member.type_code.unaliased().kind())
    }

    fn current(&self) -> Result<usize, DynAnyError> {
        if self.0.never_has_parts() {
            return Err(DynAnyError::TypeMismatch);
        }
        self.0.position.ok_or(DynAnyError::InvalidValue)
    }

    /// The value's own type and its members.
    fn instance(&self) -> Result<(&TypeCode, &[DynAny]), DynAnyError> {
        match &self.0.content {
            Content::Valuetype(Some((code, parts))) => Ok((code, parts)),
            _ => Err(DynAnyError::InvalidValue),
        }
    }

    /// Names and values of the members.
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] where it is null; as [`DynAny::to_any`].
    pub fn members(&self) -> Result<Vec<(String, Any)>, DynAnyError> {
        let members = self.members_as_dyn_any()?.into_iter();
        members
            .map(|(name, value)| Ok((name, value.to_any()?)))
            .collect()
    }

    /// Names of the members, and copies of them.
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] where it is null.
    pub fn members_as_dyn_any(&self) -> Result<Vec<(String, DynAny)>, DynAnyError> {
        let (code, parts) = self.instance()?;
        let names = code.state().into_iter().map(|(name, _)| name.to_owned());
        Ok(names.zip(parts.iter().map(DynAny::copy)).collect())
    }

    /// Sets all members in order; null becomes a value. A name may be empty. The first member becomes current.
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] for another number of members, [`DynAnyError::TypeMismatch`] for other names or
    /// types; nothing is set then.
    pub fn set_members(&mut self, members: &[(&str, Any)]) -> Result<(), DynAnyError> {
        self.set_members_as_dyn_any(&dynamic_members(members)?)
    }

    /// As [`DynValue::set_members`].
    ///
    /// # Errors
    /// As there.
    pub fn set_members_as_dyn_any(
        &mut self,
        members: &[(&str, DynAny)],
    ) -> Result<(), DynAnyError> {
        let (code, mut parts) = match &self.0.content {
            Content::Valuetype(Some(instance)) => instance.clone(),
            _ => self.0.first_instance()?,
        };
        let names = code.state().into_iter().map(|(name, _)| name);
        assign_members(&mut parts, names, members)?;
        self.0.content = Content::Valuetype(Some((code, parts)));
        self.0.rewind();
        Ok(())
    }
}

impl DynValueBox<'_> {
    /// The value within the box (get_boxed_value).
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] where it is null; as [`DynAny::to_any`].
    pub fn boxed_value(&self) -> Result<Any, DynAnyError> {
        let boxed = self.0.parts().first();
        boxed.ok_or(DynAnyError::InvalidValue)?.to_any()
    }

    /// The value within the box, a part of this value (get_boxed_value_as_dyn_any).
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] where it is null.
    pub fn boxed_value_as_dyn_any(&mut self) -> Result<&mut DynAny, DynAnyError> {
        let boxed = self.0.parts_mut().first_mut();
        boxed.ok_or(DynAnyError::InvalidValue)
    }

    /// Replaces the value within the box, or null.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for a value of another type; nothing is set then.
    pub fn set_boxed_value(&mut self, boxed: &Any) -> Result<(), DynAnyError> {
        self.set_boxed_value_as_dyn_any(&DynAny::from_any(boxed)?)
    }

    /// As [`DynValueBox::set_boxed_value`].
    ///
    /// # Errors
    /// As there.
    pub fn set_boxed_value_as_dyn_any(&mut self, boxed: &DynAny) -> Result<(), DynAnyError> {
        let (code, mut parts) = self.0.first_instance()?;
        let part = parts.first_mut().ok_or(DynAnyError::TypeMismatch)?;
        part.assign(boxed)?;
        self.0.content = Content::Valuetype(Some((code, parts)));
        self.0.rewind();
        Ok(())
    }
}
