//! Enumerations, sequences, arrays and fixed-point numbers of DynAny.

use deckwatch_cdr::limits::VALUE_PARTS_MAX;
use deckwatch_cdr::typecode::Kind;
use deckwatch_cdr::value::Value;
use deckwatch_cdr::{Any, fixed_text};

use super::{Content, DynAny, DynAnyError};

macro_rules! views {
    ($($(#[$doc:meta])* $name:ident $as:ident $kind:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<'d>(&'d mut DynAny);

        impl DynAny {
            #[doc = concat!("As [`", stringify!($name), "`].")]
            ///
            /// # Errors
            /// [`DynAnyError::TypeMismatch`] where it is of another kind.
            pub fn $as(&mut self) -> Result<$name<'_>, DynAnyError> {
                match self.type_code.unaliased().kind() {
                    Kind::$kind => Ok($name(self)),
                    _ => Err(DynAnyError::TypeMismatch),
                }
            }
        }
    )* };
}

views! {
    /// An enumeration (clause 13.2.5).
    DynEnum as_enum Enum;
    /// A fixed-point number (clause 13.2.4).
    DynFixed as_fixed Fixed;
    /// A sequence (clause 13.2.8). Its components are the elements.
    DynSequence as_sequence Sequence;
    /// An array (clause 13.2.9). Its components are the elements.
    DynArray as_array Array;
}

impl DynEnum<'_> {
    /// The enumerator's name.
    #[must_use]
    pub fn as_string(&self) -> String {
        let code = self.0.type_code.unaliased();
        let name = code.member_name(self.as_ulong() as usize);
        name.unwrap_or_default().to_owned()
    }

    /// Sets it by the enumerator's name.
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] where there is none of this name.
    pub fn set_as_string(&mut self, name: &str) -> Result<(), DynAnyError> {
        let code = self.0.type_code.unaliased();
        let mut numbers = (0..code.member_count()).zip(0..);
        let found = numbers.find(|(index, _)| code.member_name(*index) == Some(name));
        self.set_as_ulong(found.ok_or(DynAnyError::InvalidValue)?.1)
    }

    /// The enumerator's number.
    #[must_use]
    pub fn as_ulong(&self) -> u32 {
        match self.0.content {
            Content::Leaf(Value::Enum(number)) => number,
            _ => 0,
        }
    }

    /// Sets it by the enumerator's number.
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] where there is none of this number.
    pub fn set_as_ulong(&mut self, number: u32) -> Result<(), DynAnyError> {
        if number as usize >= self.0.type_code.unaliased().member_count() {
            return Err(DynAnyError::InvalidValue);
        }
        self.0.content = Content::Leaf(Value::Enum(number));
        Ok(())
    }
}

impl DynFixed<'_> {
    /// The number in decimal, with a point where digits stand behind it (get_value).
    #[must_use]
    pub fn value(&self) -> String {
        let (_, scale) = self.digits_scale();
        let units = match self.0.content {
            Content::Leaf(Value::Fixed(units)) => units,
            _ => 0,
        };
        fixed_text(units, scale)
    }

    /// Sets it to a decimal number; a `d` may follow, as in IDL. Returns false where digits behind the point were cut
    /// off.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] where the text is no such number, [`DynAnyError::InvalidValue`] where it has more
    /// digits before the point than the type.
    pub fn set_value(&mut self, text: &str) -> Result<bool, DynAnyError> {
        let (digits, scale) = self.digits_scale();
        let trimmed = text.trim();
        let bare = trimmed.strip_suffix(['d', 'D']).unwrap_or(trimmed);
        let unsigned = bare.strip_prefix(['-', '+']).unwrap_or(bare);
        let (whole, behind) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let all: Vec<u8> = whole.bytes().chain(behind.bytes()).collect();
        if all.is_empty() || !all.iter().all(u8::is_ascii_digit) {
            return Err(DynAnyError::TypeMismatch);
        }
        // Returns the digits that are kept: those before the point, and `scale` behind it.
        let len = i64::try_from(whole.len()).unwrap_or(i64::MAX) + i64::from(scale);
        let len = usize::try_from(len).unwrap_or(0);
        let kept = all.iter().copied().chain(std::iter::repeat(b'0')).take(len);
        let limit = 10_u128.saturating_pow(u32::from(digits));
        let number = kept.into_iter().try_fold(0_u128, |number, digit| {
            let next = number.checked_mul(10)?;
            let next = next.checked_add(u128::from(digit - b'0'))?;
            (next < limit).then_some(next)
        });
        let number = number.ok_or(DynAnyError::InvalidValue)?.cast_signed();
        let is_negative = bare.starts_with('-');
        self.0.content = Content::Leaf(Value::Fixed(if is_negative { -number } else { number }));
        Ok(all.iter().skip(len).all(|digit| *digit == b'0'))
    }

    fn digits_scale(&self) -> (u16, i16) {
        let code = self.0.type_code.unaliased();
        code.fixed_digits_scale().unwrap_or_default()
    }
}

impl DynSequence<'_> {
    /// How many elements there are (get_length).
    #[must_use]
    pub fn length(&self) -> usize {
        self.0.component_count()
    }

    /// Cuts elements off at the end, or adds defaults of their type. Where no element was current, the first new one
    /// is; where the current one is cut off, none is.
    ///
    /// # Errors
    /// [`DynAnyError::InvalidValue`] above the bound, [`DynAnyError::TooManyParts`].
    pub fn set_length(&mut self, length: usize) -> Result<(), DynAnyError> {
        require_room(self.0, length)?;
        let code = self.0.type_code.unaliased();
        let element = code.content_type().ok_or(DynAnyError::TypeMismatch)?;
        let first = DynAny::from_type_code(&element)?;
        if first.total().saturating_mul(length) > VALUE_PARTS_MAX {
            return Err(DynAnyError::TooManyParts);
        }
        let Content::Parts(parts) = &mut self.0.content else {
            return Err(DynAnyError::TypeMismatch);
        };
        let before = parts.len();
        parts.resize(length, first);
        self.0.position = match self.0.position {
            None if length > before => Some(before),
            position => position.filter(|position| *position < length),
        };
        Ok(())
    }

    /// The values of the elements (get_elements).
    ///
    /// # Errors
    /// As [`DynAny::to_any`].
    pub fn elements(&self) -> Result<Vec<Any>, DynAnyError> {
        self.0.parts().iter().map(DynAny::to_any).collect()
    }

    /// Copies of the elements (get_elements_as_dyn_any).
    #[must_use]
    pub fn elements_as_dyn_any(&self) -> Vec<DynAny> {
        self.0.parts().iter().map(DynAny::copy).collect()
    }

    /// Sets all elements, whatever their number was. The first becomes current.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for elements of other types, [`DynAnyError::InvalidValue`] for more than the
    /// bound; nothing is set then.
    pub fn set_elements(&mut self, elements: &[Any]) -> Result<(), DynAnyError> {
        self.set_elements_as_dyn_any(&dynamic(elements)?)
    }

    /// As [`DynSequence::set_elements`].
    ///
    /// # Errors
    /// As there.
    pub fn set_elements_as_dyn_any(&mut self, elements: &[DynAny]) -> Result<(), DynAnyError> {
        require_room(self.0, elements.len())?;
        set_elements(self.0, elements)
    }
}

impl DynArray<'_> {
    /// The values of the elements (get_elements).
    ///
    /// # Errors
    /// As [`DynAny::to_any`].
    pub fn elements(&self) -> Result<Vec<Any>, DynAnyError> {
        self.0.parts().iter().map(DynAny::to_any).collect()
    }

    /// Copies of the elements (get_elements_as_dyn_any).
    #[must_use]
    pub fn elements_as_dyn_any(&self) -> Vec<DynAny> {
        self.0.parts().iter().map(DynAny::copy).collect()
    }

    /// Sets all elements. The first becomes current.
    ///
    /// # Errors
    /// [`DynAnyError::TypeMismatch`] for elements of other types, [`DynAnyError::InvalidValue`] for another number of
    /// them; nothing is set then.
    pub fn set_elements(&mut self, elements: &[Any]) -> Result<(), DynAnyError> {
        self.set_elements_as_dyn_any(&dynamic(elements)?)
    }

    /// As [`DynArray::set_elements`].
    ///
    /// # Errors
    /// As there.
    pub fn set_elements_as_dyn_any(&mut self, elements: &[DynAny]) -> Result<(), DynAnyError> {
        if elements.len() != self.0.component_count() {
            return Err(DynAnyError::InvalidValue);
        }
        set_elements(self.0, elements)
    }
}

fn dynamic(elements: &[Any]) -> Result<Vec<DynAny>, DynAnyError> {
    elements.iter().map(DynAny::from_any).collect()
}

fn require_room(sequence: &DynAny, length: usize) -> Result<(), DynAnyError> {
    match sequence.type_code.unaliased().length() {
        Some(bound) if bound != 0 && length > bound as usize => Err(DynAnyError::InvalidValue),
        _ => Ok(()),
    }
}

fn set_elements(whole: &mut DynAny, elements: &[DynAny]) -> Result<(), DynAnyError> {
    let code = whole.type_code.unaliased();
    let element = code.content_type().ok_or(DynAnyError::TypeMismatch)?;
    let parts = elements.iter().map(|given| {
        if !element.equivalent(&given.type_code) {
            return Err(DynAnyError::TypeMismatch);
        }
        DynAny::from_value(&element, given.to_value())
    });
    whole.content = Content::Parts(parts.collect::<Result<_, _>>()?);
    whole.rewind();
    Ok(())
}
