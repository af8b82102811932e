//! Structs, exceptions and unions of DynAny.

use deckwatch_cdr::typecode::Kind;
use deckwatch_cdr::value::Value;
use deckwatch_cdr::{Any, TypeCode};

use super::{Content, DynAny, DynAnyError, label_of, number_of};

/// A struct or exception (clause 13.2.6). Its components are the members.
#[derive(Debug)]
pub struct DynStruct<'d>(&'d mut DynAny);

/// A union (clause 13.2.7). Its components are the discriminator and the active member, if there is one.
#[derive(Debug)]
pub struct DynUnion<'d>(&'d mut DynAny);

impl DynAny {
    /// Its members.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] where it is neither struct nor exception.
    pub fn as_struct(&mut self) -> Result<DynStruct<'_>, DynAnyError> {
        if self.is_struct() {
            Ok(DynStruct(self))
        } else {
            Err(DynAnyError::TypeMismatch)
        }
    }

    /// Its discriminator and member.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] where it is no union.
    pub fn as_union(&mut self) -> Result<DynUnion<'_>, DynAnyError> {
        match self.content {
            Content::Union(_) => Ok(DynUnion(self)),
            _ => Err(DynAnyError::TypeMismatch),
        }
    }

    /// Sets the discriminator of a union. A member that it does not select is replaced by the default of the member
    /// that it selects.
    pub(super) fn set_label(&mut self, label: Value) -> Result<(), DynAnyError> {
        let code = self.type_code.unaliased();
        let Content::Union(parts) = &mut self.content else {
            return Err(DynAnyError::TypeMismatch);
        };
        let selected = code.selected_member(number_of(&label));
        if selected != code.selected_member(number_of(&parts[0].to_value())) {
            let member = selected.and_then(|case| code.member_type(case));
            let member = member.map(|member| DynAny::from_type_code(&member));
            let member = member.transpose()?;
            parts.truncate(1);
            parts.extend(member);
        }
        parts[0].content = Content::Leaf(label);
        Ok(())
    }
}

/// Converts named values.
pub(super) fn dynamic_members<'m>(
    members: &[(&'m str, Any)],
) -> Result<Vec<(&'m str, DynAny)>, DynAnyError> {
    let dynamic = members.iter();
    let dynamic = dynamic.map(|(name, any)| Ok((*name, DynAny::from_any(any)?)));
    dynamic.collect()
}

/// Sets all members in order. A given name must be equal to the member's; it may be empty.
pub(super) fn assign_members<'n>(
    parts: &mut [DynAny],
    names: impl Iterator<Item = &'n str>,
    members: &[(&str, DynAny)],
) -> Result<(), DynAnyError> {
    if members.len() != parts.len() {
        return Err(DynAnyError::InvalidValue);
    }
    for (own, (part, (name, value))) in names.zip(parts.iter_mut().zip(members)) {
        if !name.is_empty() && !own.is_empty() && *name != own {
            return Err(DynAnyError::TypeMismatch);
        }
        part.assign(value)?;
    }
    Ok(())
}

impl DynStruct<'_> {
    /// The name of the current member.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] where there are no members, [`DynAnyError::InvalidValue`] where none is current.
    pub fn current_member_name(&self) -> Result<String, DynAnyError> {
        let code = self.0.type_code.unaliased();
        let index = self.current()?;
        let name = code.member_name(index);
        Ok(name.unwrap_or_default().to_owned())
    }

    /// The kind of the current member.
    ///
    /// # Errors
    /// As [`DynStruct::current_member_name`].
    pub fn current_member_kind(&self) -> Result<Kind, DynAnyError> {
        let member = &self.0.parts()[self.current()?];
        Ok(member.type_code.unaliased().kind())
    }

    fn current(&self) -> Result<usize, DynAnyError> {
        if self.0.component_count() == 0 {
            return Err(DynAnyError::TypeMismatch);
        }
        self.0.position.ok_or(DynAnyError::InvalidValue)
    }

    /// Names and values of the members.
    ///
    /// # Errors
    /// As [`DynAny::to_any`].
    pub fn members(&self) -> Result<Vec<(String, Any)>, DynAnyError> {
        let members = self.members_as_dyn_any().into_iter();
        members
            .map(|(name, value)| Ok((name, value.to_any()?)))
            .collect()
    }

    /// Names of the members, and copies of them.
    #[must_use]
    pub fn members_as_dyn_any(&self) -> Vec<(String, DynAny)> {
        let code = self.0.type_code.unaliased();
        let name = |index| code.member_name(index).unwrap_or_default().to_owned();
        let parts = self.0.parts().iter().enumerate();
        parts
            .map(|(index, part)| (name(index), part.copy()))
            .collect()
    }

    /// Sets all members in order. A name may be empty. The first member becomes current.
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] for another number of members, [`DynAnyError::TypeMismatch`] for other names or
    /// types; nothing is set then.
    pub fn set_members(&mut self, members: &[(&str, Any)]) -> Result<(), DynAnyError> {
        self.set_members_as_dyn_any(&dynamic_members(members)?)
    }

    /// As [`DynStruct::set_members`].
    ///
    /// # Errors
    /// As there.
    pub fn set_members_as_dyn_any(
        &mut self,
        members: &[(&str, DynAny)],
    ) -> Result<(), DynAnyError> {
        let code = self.0.type_code.unaliased();
        let mut parts = self.0.parts().to_vec();
        let names = (0..parts.len()).map(|index| code.member_name(index).unwrap_or_default());
        assign_members(&mut parts, names, members)?;
        self.0.content = Content::Parts(parts);
        self.0.rewind();
        Ok(())
    }
}

impl DynUnion<'_> {
    /// A copy of the discriminator.
    #[must_use]
    pub fn discriminator(&self) -> DynAny {
        self.0.parts()[0].copy()
    }

    /// The kind of the discriminator.
    #[must_use]
    pub fn discriminator_kind(&self) -> Kind {
        self.0.parts()[0].type_code.unaliased().kind()
    }

    /// Sets the discriminator. A member that it does not select is replaced by the default of the member that it
    /// selects. The member becomes current, or the discriminator where there is no member.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for a value of another type than the discriminator's.
    pub fn set_discriminator(&mut self, value: &DynAny) -> Result<(), DynAnyError> {
        self.0.parts()[0].require_equivalent(&value.type_code)?;
        self.set_label(value.to_value())
    }

    /// Makes the member of `default:` active.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] where the union has no such case.
    pub fn set_to_default_member(&mut self) -> Result<(), DynAnyError> {
        let code = self.0.type_code.unaliased();
        let default = code.default_index().ok_or(DynAnyError::TypeMismatch)?;
        if self.selected() == Some(default) {
            let label = self.0.parts()[0].to_value();
            return self.set_label(label);
        }
        let label = self.free_label(&code)?;
        self.set_label(label)
    }

    /// Sets the discriminator to a value that selects no member.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] where the union has a `default:` or a case for each value of its discriminator.
    pub fn set_to_no_active_member(&mut self) -> Result<(), DynAnyError> {
        let code = self.0.type_code.unaliased();
        if code.default_index().is_some() {
            return Err(DynAnyError::TypeMismatch);
        }
        let label = self.free_label(&code)?;
        self.set_label(label)?;
        self.0.rewind();
        Ok(())
    }

    /// Whether no member is active.
    #[must_use]
    pub fn has_no_active_member(&self) -> bool {
        self.0.component_count() == 1
    }

    /// The active member, a part of this value.
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] where there is none.
    pub fn member(&mut self) -> Result<&mut DynAny, DynAnyError> {
        let member = self.0.parts_mut().get_mut(1);
        member.ok_or(DynAnyError::InvalidValue)
    }

    /// The name of the active member.
    ///
    /// # Errors
    /// As [`DynUnion::member`].
    pub fn member_name(&self) -> Result<String, DynAnyError> {
        let selected = self.selected().ok_or(DynAnyError::InvalidValue)?;
        let code = self.0.type_code.unaliased();
        Ok(code.member_name(selected).unwrap_or_default().to_owned())
    }

    /// The kind of the active member.
    ///
    /// # Errors
    /// As [`DynUnion::member`].
    pub fn member_kind(&self) -> Result<Kind, DynAnyError> {
        let member = self.0.parts().get(1);
        let member = member.ok_or(DynAnyError::InvalidValue)?;
        Ok(member.type_code.unaliased().kind())
    }

    fn set_label(&mut self, label: Value) -> Result<(), DynAnyError> {
        self.0.set_label(label)?;
        self.0.seek(i32::from(self.0.component_count() > 1));
        Ok(())
    }

    fn selected(&self) -> Option<usize> {
        let number = number_of(&self.0.parts()[0].to_value());
        self.0.type_code.unaliased().selected_member(number)
    }

    /// Returns a value of the discriminator that is no case's label.
    fn free_label(&self, code: &TypeCode) -> Result<Value, DynAnyError> {
        let discriminator = &self.0.parts()[0].type_code;
        let taken: Vec<i64> = (0..code.member_count())
            .filter_map(|index| code.member_label(index))
            .collect();
        let end = match discriminator.unaliased().kind() {
            Kind::Boolean => 2,
            Kind::Enum => discriminator.unaliased().member_count() as i64,
            Kind::Char | Kind::Octet => 256,
            _ => i64::MAX,
        };
        // With one candidate more than there are labels, one is free if any is.
        let mut candidates = 0..end.min(taken.len() as i64 + 1);
        let free = candidates.find(|number| !taken.contains(number));
        label_of(discriminator, free.ok_or(DynAnyError::TypeMismatch)?)
    }
}
