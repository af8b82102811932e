//! Values whose type is known at run time only: a tree, written and read by a TypeCode.

mod path;
mod read;
mod write;

pub use crate::walk::{Opaque, copy_value, skip_value};
pub use path::{MemberPath, PathError};
pub(crate) use read::{read_kept, read_values};
pub use read::{read_value, read_value_into};
pub(crate) use write::write_kept;
pub use write::write_value;

use crate::limits::VALUE_PARTS_MAX;
use crate::typecode::{Arena, Kind, Node};
use crate::{Any, ByteOrder, Char, Codec, EncodeError, LongDouble, TypeCode, WString};

/// A value of any IDL type.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The value of `null` and `void`.
    Nothing,
    /// `boolean`.
    Boolean(bool),
    /// `char`.
    Char(Char),
    /// `wchar`.
    WChar(char),
    /// `octet`.
    Octet(u8),
    /// `short`.
    Short(i16),
    /// `unsigned short`.
    UShort(u16),
    /// `long`.
    Long(i32),
    /// `unsigned long`.
    ULong(u32),
    /// `long long`.
    LongLong(i64),
    /// `unsigned long long`.
    ULongLong(u64),
    /// `float`.
    Float(f32),
    /// `double`.
    Double(f64),
    /// `long double`.
    LongDouble(LongDouble),
    /// `string`.
    String(String),
    /// `wstring`.
    WString(WString),
    /// `fixed`: the number in units of its last digit.
    Fixed(i128),
    /// An enumerator's ordinal.
    Enum(u32),
    /// The members of a struct or exception in order.
    Struct(Vec<Self>),
    /// A union's discriminator, and the member it selects.
    Union(i64, Option<Box<Self>>),
    /// The elements of a sequence or array, except of `octet` and `char`.
    Elements(Vec<Self>),
    /// The elements of a sequence or array of `octet` or `char`.
    Octets(Vec<u8>),
    /// `any`.
    Any(Any),
    /// `TypeCode`.
    TypeCode(TypeCode),
    /// An object reference, also in place of an abstract interface.
    Reference(Reference),
    /// A value of a value type, a boxed value, or a value in place of an abstract interface; `None` is null. A shared
    /// value is copied to each of its places.
    Valuetype(Option<Box<Instance>>),
    /// The whole state of a custom value, or of a value of an unknown type in place of an abstract interface.
    Opaque(Box<Opaque>),
}

/// A value of a value type that is not null.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// Repository id of its type: the declared one, or a derived one that the same TypeCode describes. The type of a
    /// [`Value::Opaque`] need not be described.
    pub type_id: String,
    /// Its members, those of its bases first; the one value of a boxed value; one [`Value::Opaque`] of a custom value.
    pub state: Vec<Value>,
}

impl Instance {
    /// Whether no TypeCode describes its state.
    #[must_use]
    pub fn is_opaque(&self) -> bool {
        matches!(*self.state, [Value::Opaque(_)])
    }
}

/// An object reference as it travels; nil has no profiles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reference {
    /// Repository id; may be empty.
    pub type_id: String,
    /// Tag and octets of each profile.
    pub profiles: Vec<(u32, Vec<u8>)>,
}

impl Value {
    /// Returns the default of a type: numbers 0, texts and sequences empty, enumerators the first, unions at their
    /// first case, references nil, values of value types null.
    ///
    /// # Errors
    /// [`EncodeError::MessageTooLarge`] where it has more than [`VALUE_PARTS_MAX`] parts,
    /// [`EncodeError::TypeUnsupported`] for types without values: native ones and local interfaces.
    pub fn default_for(type_code: &TypeCode) -> Result<Self, EncodeError> {
        let mut parts = VALUE_PARTS_MAX;
        default_of(type_code.arena(), type_code.root(), &mut parts)
    }

    /// Sets a number, enumerator, boolean or character, and keeps its type; floating point takes the nearest value.
    ///
    /// # Errors
    /// [`EncodeError::BoundExceeded`] where the number does not fit, [`EncodeError::TypeMismatch`] for other kinds of
    /// value.
    pub fn set_number(&mut self, number: i64) -> Result<(), EncodeError> {
        const UNFIT: EncodeError = EncodeError::BoundExceeded;
        match self {
            Self::Boolean(value) => *value = number != 0,
            Self::Char(value) => value.0 = u8::try_from(number).map_err(|_| UNFIT)?,
            Self::Octet(value) => *value = u8::try_from(number).map_err(|_| UNFIT)?,
            Self::Short(value) => *value = i16::try_from(number).map_err(|_| UNFIT)?,
            Self::UShort(value) => *value = u16::try_from(number).map_err(|_| UNFIT)?,
            Self::Long(value) => *value = i32::try_from(number).map_err(|_| UNFIT)?,
            Self::ULong(value) | Self::Enum(value) => {
                *value = u32::try_from(number).map_err(|_| UNFIT)?
            }
            Self::LongLong(value) => *value = number,
            Self::ULongLong(value) => *value = u64::try_from(number).map_err(|_| UNFIT)?,
            Self::Float(value) => *value = number as f32,
            Self::Double(value) => *value = number as f64,
            _ => return Err(EncodeError::TypeMismatch),
        }
        Ok(())
    }

    /// Returns the byte order and codec that an opaque state in it needs: those of the first, if there are several.
    pub(crate) fn form(&self) -> Option<(ByteOrder, Codec)> {
        match self {
            Self::Struct(parts) | Self::Elements(parts) => parts.iter().find_map(Self::form),
            Self::Union(_, Some(part)) => part.form(),
            Self::Valuetype(Some(instance)) => instance.state.iter().find_map(Self::form),
            Self::Opaque(state) => Some(state.form()),
            Self::Any(any) => crate::Write::sole_form(any),
            _ => None,
        }
    }

    /// Returns the number of an integer, enumerator, boolean or character; `None` for an `unsigned long long` above the
    /// largest `i64`.
    #[must_use]
    pub fn as_number(&self) -> Option<i64> {
        Some(match self {
            Self::Boolean(value) => i64::from(*value),
            Self::Char(value) => value.0.into(),
            Self::WChar(value) => u32::from(*value).into(),
            Self::Octet(value) => (*value).into(),
            Self::Short(value) => (*value).into(),
            Self::UShort(value) => (*value).into(),
            Self::Long(value) => (*value).into(),
            Self::ULong(value) | Self::Enum(value) => (*value).into(),
            Self::LongLong(value) => *value,
            Self::ULongLong(value) => i64::try_from(*value).ok()?,
            _ => return None,
        })
    }
}

fn default_of(arena: &Arena, index: u32, parts: &mut usize) -> Result<Value, EncodeError> {
    *parts = parts.checked_sub(1).ok_or(EncodeError::MessageTooLarge)?;
    Ok(match arena.node(index) {
        Node::Simple(kind) => default_simple(*kind)?,
        Node::String { .. } => Value::String(String::new()),
        Node::WString { .. } => Value::WString(WString::default()),
        Node::Fixed { .. } => Value::Fixed(0),
        Node::Enum { .. } => Value::Enum(0),
        Node::Sequence { element, .. } if is_octets(arena, *element) => Value::Octets(Vec::new()),
        Node::Sequence { .. } => Value::Elements(Vec::new()),
        Node::Array { element, len } if is_octets(arena, *element) => {
            *parts = parts
                .checked_sub(*len as usize)
                .ok_or(EncodeError::MessageTooLarge)?;
            Value::Octets(vec![0; *len as usize])
        }
        Node::Array { element, len } => {
            let elements = (0..*len).map(|_| default_of(arena, *element, parts));
            Value::Elements(elements.collect::<Result<_, _>>()?)
        }
        Node::Alias {
            boxed: false,
            content,
            ..
        } => default_of(arena, *content, parts)?,
        Node::Struct { members, .. } => {
            let members = members
                .iter()
                .map(|member| default_of(arena, member.node, parts));
            Value::Struct(members.collect::<Result<_, _>>()?)
        }
        Node::Union { cases, default, .. } => match cases.first() {
            Some(case) if *default != Some(0) => Value::Union(
                case.label,
                Some(Box::new(default_of(arena, case.node, parts)?)),
            ),
            Some(case) => {
                // The first case is the default case: use a number that no other case has.
                let taken = |number: &i64| cases[1..].iter().any(|case| case.label == *number);
                let free = (0..=cases.len() as i64)
                    .find(|number| !taken(number))
                    .unwrap_or(0);
                Value::Union(free, Some(Box::new(default_of(arena, case.node, parts)?)))
            }
            None => Value::Union(0, None),
        },
        Node::Named {
            kind: Kind::Objref | Kind::Component | Kind::Home | Kind::AbstractInterface,
            ..
        } => Value::Reference(Reference::default()),
        Node::Value { .. } | Node::Alias { boxed: true, .. } => Value::Valuetype(None),
        _ => return Err(EncodeError::TypeUnsupported),
    })
}

fn default_simple(kind: Kind) -> Result<Value, EncodeError> {
    Ok(match kind {
        Kind::Null | Kind::Void => Value::Nothing,
        Kind::Boolean => Value::Boolean(false),
        Kind::Char => Value::Char(Char(0)),
        Kind::WChar => Value::WChar('\0'),
        Kind::Octet => Value::Octet(0),
        Kind::Short => Value::Short(0),
        Kind::UShort => Value::UShort(0),
        Kind::Long => Value::Long(0),
        Kind::ULong => Value::ULong(0),
        Kind::LongLong => Value::LongLong(0),
        Kind::ULongLong => Value::ULongLong(0),
        Kind::Float => Value::Float(0.0),
        Kind::Double => Value::Double(0.0),
        Kind::LongDouble => Value::LongDouble(LongDouble(0)),
        Kind::Any => Value::Any(Any::empty()),
        Kind::TypeCode => Value::TypeCode(TypeCode::null()),
        Kind::Principal => Value::Octets(Vec::new()),
        _ => return Err(EncodeError::TypeUnsupported),
    })
}

/// Whether elements of this type are kept as octets.
fn is_octets(arena: &Arena, element: u32) -> bool {
    matches!(
        arena.node(arena.unaliased(element)),
        Node::Simple(Kind::Octet | Kind::Char)
    )
}
