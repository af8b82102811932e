//! Inserting and extracting all elements of a sequence or array of a basic type at once.

use deckwatch_cdr::limits::VALUE_PARTS_MAX;
use deckwatch_cdr::typecode::Kind;
use deckwatch_cdr::value::Value;
use deckwatch_cdr::{Char, LongDouble};

use super::{Content, DynAny, DynAnyError};

macro_rules! basics {
    ($($idl:literal $insert:ident $extract:ident $kind:ident($type:ty);)*) => { impl DynAny { $(
        #[doc = concat!(
            "Sets all elements of a sequence or array of `", $idl,
            "`: this one where it is such, else the current component."
        )]
        ///
        /// # Errors
        /// [`DynAnyError::TypeMismatch`]; [`DynAnyError::InvalidValue`] above the bound, for another length than the
        /// array's, or where there is no current component; [`DynAnyError::TooManyParts`].
        pub fn $insert(&mut self, values: &[$type]) -> Result<(), DynAnyError> {
            let values = values.iter().map(|value| Value::$kind(*value));
            self.insert_all(Kind::$kind, values)
        }

        #[doc = concat!(
            "All elements of a sequence or array of `", $idl,
            "`: this one where it is such, else the current component."
        )]
        ///
        /// # Errors
        /// [`DynAnyError::TypeMismatch`]; [`DynAnyError::InvalidValue`] where there is no current component.
        pub fn $extract(&self) -> Result<Vec<$type>, DynAnyError> {
            let parts = self.holder_of_all(Kind::$kind)?.parts().iter();
            let value = |part: &Self| match part.content {
                Content::Leaf(Value::$kind(value)) => Ok(value),
                _ => Err(DynAnyError::TypeMismatch),
            };
            parts.map(value).collect()
        }
    )* } };
}

basics! {
    "boolean" insert_boolean_seq boolean_seq Boolean(bool);
    "octet" insert_octet_seq octet_seq Octet(u8);
    "char" insert_char_seq char_seq Char(Char);
    "wchar" insert_wchar_seq wchar_seq WChar(char);
    "short" insert_short_seq short_seq Short(i16);
    "unsigned short" insert_ushort_seq ushort_seq UShort(u16);
    "long" insert_long_seq long_seq Long(i32);
    "unsigned long" insert_ulong_seq ulong_seq ULong(u32);
    "long long" insert_longlong_seq longlong_seq LongLong(i64);
    "unsigned long long" insert_ulonglong_seq ulonglong_seq ULongLong(u64);
    "float" insert_float_seq float_seq Float(f32);
    "double" insert_double_seq double_seq Double(f64);
    "long double" insert_longdouble_seq longdouble_seq LongDouble(LongDouble);
}

impl DynAny {
    fn insert_all(
        &mut self,
        kind: Kind,
        values: impl ExactSizeIterator<Item = Value>,
    ) -> Result<(), DynAnyError> {
        let is_this = self.is_of_elements(kind);
        self.holder_of_all(kind)?;
        let holder = if is_this {
            self
        } else {
            let position = self.position.ok_or(DynAnyError::InvalidValue)?;
            &mut self.parts_mut()[position]
        };
        let code = holder.type_code.unaliased();
        let fits = match (code.kind(), code.length()) {
            (Kind::Array, length) => length == u32::try_from(values.len()).ok(),
            (_, Some(bound)) => bound == 0 || values.len() <= bound as usize,
            (_, None) => false,
        };
        if !fits {
            return Err(DynAnyError::InvalidValue);
        }
        if values.len() >= VALUE_PARTS_MAX {
            return Err(DynAnyError::TooManyParts);
        }
        let element = code.content_type().ok_or(DynAnyError::TypeMismatch)?;
        let part = |value| Self {
            type_code: element.clone(),
            content: Content::Leaf(value),
            position: None,
        };
        holder.content = Content::Parts(values.map(part).collect());
        holder.rewind();
        Ok(())
    }

    /// Returns this DynAny where it is a sequence or array of this kind, else the current component.
    fn holder_of_all(&self, kind: Kind) -> Result<&Self, DynAnyError> {
        if self.is_of_elements(kind) {
            return Ok(self);
        }
        let holder = match self.position {
            _ if !self.has_parts() || self.never_has_parts() => None,
            Some(position) => self.parts().get(position),
            None => return Err(DynAnyError::InvalidValue),
        };
        holder
            .filter(|holder| holder.is_of_elements(kind))
            .ok_or(DynAnyError::TypeMismatch)
    }

    fn is_of_elements(&self, kind: Kind) -> bool {
        let code = self.type_code.unaliased();
        let element = code.content_type().map(|code| code.unaliased().kind());
        matches!(code.kind(), Kind::Sequence | Kind::Array) && element == Some(kind)
    }
}
