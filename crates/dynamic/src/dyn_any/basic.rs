//! Inserting and extracting basic values, in a DynAny of that type or in the current component of a constructed one.

use deckwatch_cdr::typecode::Kind;
use deckwatch_cdr::value::{Reference, Value};
use deckwatch_cdr::{Any, Char, LongDouble, TypeCode, WString};

use super::{Content, DynAny, DynAnyError};

macro_rules! basics {
    ($($idl:literal $insert:ident $extract:ident $kind:ident($type:ty);)*) => { $(
        #[doc = concat!("Inserts a value of `", $idl, "`.")]
        ///
        /// # Errors
        /// [`DynAnyError::TypeMismatch`]; [`DynAnyError::InvalidValue`] where there is no current component.
        pub fn $insert(&mut self, value: $type) -> Result<(), DynAnyError> {
            self.insert(Kind::$kind, Value::$kind(value))
        }

        #[doc = concat!("The value of a `", $idl, "`.")]
        ///
        /// # Errors
        /// [`DynAnyError::TypeMismatch`]; [`DynAnyError::InvalidValue`] where there is no current component.
        pub fn $extract(&self) -> Result<$type, DynAnyError> {
            match self.leaf(Kind::$kind)? {
                Value::$kind(value) => Ok(value.clone()),
                _ => Err(DynAnyError::TypeMismatch),
            }
        }
    )* };
}

impl DynAny {
    basics! {
        "boolean" insert_boolean boolean Boolean(bool);
        "octet" insert_octet octet Octet(u8);
        "char" insert_char char Char(Char);
        "wchar" insert_wchar wchar WChar(char);
        "short" insert_short short Short(i16);
        "unsigned short" insert_ushort ushort UShort(u16);
        "long" insert_long long Long(i32);
        "unsigned long" insert_ulong ulong ULong(u32);
        "long long" insert_longlong longlong LongLong(i64);
        "unsigned long long" insert_ulonglong ulonglong ULongLong(u64);
        "float" insert_float float Float(f32);
        "double" insert_double double Double(f64);
        "long double" insert_longdouble longdouble LongDouble(LongDouble);
        "any" insert_any any Any(Any);
        "TypeCode" insert_typecode typecode TypeCode(TypeCode);
    }

    /// Inserts a `string`.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`]; [`DynAnyError::InvalidValue`] where it is longer than its bound or there is no
    /// current component.
    pub fn insert_string(&mut self, value: &str) -> Result<(), DynAnyError> {
        self.require_bound(Kind::String, value.len())?;
        self.insert(Kind::String, Value::String(value.to_owned()))
    }

    /// The value of a `string`.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`]; [`DynAnyError::InvalidValue`] where there is no current component.
    pub fn string(&self) -> Result<String, DynAnyError> {
        match self.leaf(Kind::String)? {
            Value::String(text) => Ok(text.clone()),
            _ => Err(DynAnyError::TypeMismatch),
        }
    }

    /// Inserts a `wstring`.
    ///
    /// # Errors
    /// As [`DynAny::insert_string`].
    pub fn insert_wstring(&mut self, value: &WString) -> Result<(), DynAnyError> {
        self.require_bound(Kind::WString, value.units().len())?;
        self.insert(Kind::WString, Value::WString(value.clone()))
    }

    /// The value of a `wstring`.
    ///
    /// # Errors
    /// As [`DynAny::string`].
    pub fn wstring(&self) -> Result<WString, DynAnyError> {
        match self.leaf(Kind::WString)? {
            Value::WString(text) => Ok(text.clone()),
            _ => Err(DynAnyError::TypeMismatch),
        }
    }

    /// Inserts an object reference.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`]; [`DynAnyError::InvalidValue`] where there is no current component.
    pub fn insert_reference(&mut self, value: Reference) -> Result<(), DynAnyError> {
        self.insert(Kind::Objref, Value::Reference(value))
    }

    /// The value of an object reference.
    ///
    /// # Errors
    /// As [`DynAny::string`].
    pub fn reference(&self) -> Result<Reference, DynAnyError> {
        match self.leaf(Kind::Objref)? {
            Value::Reference(reference) => Ok(reference.clone()),
            _ => Err(DynAnyError::TypeMismatch),
        }
    }

    /// Inserts the value of another DynAny into an `any`.
    ///
    /// # Errors
    /// As [`DynAny::insert_any`] and [`DynAny::to_any`].
    pub fn insert_dyn_any(&mut self, value: &Self) -> Result<(), DynAnyError> {
        self.insert_any(value.to_any()?)
    }

    /// The value within an `any`.
    ///
    /// # Errors
    /// As [`DynAny::string`] and [`DynAny::from_any`].
    pub fn dyn_any(&self) -> Result<Self, DynAnyError> {
        Self::from_any(&self.any()?)
    }

    fn insert(&mut self, kind: Kind, value: Value) -> Result<(), DynAnyError> {
        let holder = self.holder(kind)?;
        if let (Content::Union(_), Some(0), true) = (&self.content, self.position, self.has_parts())
        {
            // Changing the discriminator changes the active member too.
            return self.set_label(value);
        }
        match holder {
            None => self.content = Content::Leaf(value),
            Some(position) => self.parts_mut()[position].content = Content::Leaf(value),
        }
        Ok(())
    }

    fn leaf(&self, kind: Kind) -> Result<&Value, DynAnyError> {
        let holder = self
            .holder(kind)?
            .map_or(self, |position| &self.parts()[position]);
        match &holder.content {
            Content::Leaf(value) => Ok(value),
            _ => Err(DynAnyError::TypeMismatch),
        }
    }

    /// Whether its type is constructed, even without parts.
    pub(super) const fn has_parts(&self) -> bool {
        !matches!(self.content, Content::Leaf(_))
    }

    /// Returns the component that has a value of this kind; `None` for this DynAny itself.
    fn holder(&self, kind: Kind) -> Result<Option<usize>, DynAnyError> {
        let position = match (self.has_parts(), self.position) {
            (false, _) => None,
            (true, Some(position)) => Some(position),
            (true, None) if self.never_has_parts() => return Err(DynAnyError::TypeMismatch),
            (true, None) => return Err(DynAnyError::InvalidValue),
        };
        let holder = position.map_or(self, |position| &self.parts()[position]);
        if holder.type_code.unaliased().kind() == kind {
            Ok(position)
        } else {
            Err(DynAnyError::TypeMismatch)
        }
    }

    fn require_bound(&self, kind: Kind, len: usize) -> Result<(), DynAnyError> {
        let holder = self
            .holder(kind)?
            .map_or(self, |position| &self.parts()[position]);
        match holder.type_code.unaliased().length() {
            Some(bound) if bound != 0 && len > bound as usize => Err(DynAnyError::InvalidValue),
            _ => Ok(()),
        }
    }
}
