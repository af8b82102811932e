//! The values of constants, and arithmetic on them (CORBA 3.3 part 1, clause 7.10.2).

use std::fmt;

use crate::model::fixed::Decimal;
use crate::model::{Basic, DefId};
use crate::text::literal::Literal;
use crate::text::operator::{Binary, Unary};

/// The value of a constant or a label.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `TRUE` or `FALSE`.
    Boolean(bool),
    /// A value of any integer type, or of `octet`.
    Integer(i128),
    /// `float`, `double` or `long double`.
    Float(f64),
    /// `fixed`.
    Fixed(Decimal),
    /// `char`: at most U+00FF.
    Char(char),
    /// `wchar`.
    WideChar(char),
    /// `string`.
    String(String),
    /// `wstring`.
    WideString(String),
    /// An enumerator: its enum and its index in the enum.
    Enumerator(DefId, u32),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => f.write_str(if *value { "TRUE" } else { "FALSE" }),
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Fixed(value) => write!(f, "{value}d"),
            Self::Char(value) | Self::WideChar(value) => write!(f, "{value:?}"),
            Self::String(value) | Self::WideString(value) => write!(f, "{value:?}"),
            Self::Enumerator(_, index) => write!(f, "enumerator {index}"),
        }
    }
}

impl Value {
    /// Returns the kind of the value, for error messages.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Boolean(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a floating-point number",
            Self::Fixed(_) => "a fixed-point number",
            Self::Char(_) => "a character",
            Self::WideChar(_) => "a wide character",
            Self::String(_) => "a string",
            Self::WideString(_) => "a wide string",
            Self::Enumerator(..) => "an enumerator",
        }
    }

    pub(crate) fn of(literal: &Literal) -> Result<Self, String> {
        Ok(match literal {
            Literal::Boolean(value) => Self::Boolean(*value),
            Literal::Integer(value) => Self::Integer(i128::from(*value)),
            Literal::Float(value) => Self::Float(*value),
            Literal::Fixed(text) => Self::Fixed(Decimal::parse(text)?),
            Literal::Char(value) => Self::Char(*value),
            Literal::WideChar(value) => Self::WideChar(*value),
            Literal::String(value) => Self::String(value.clone()),
            Literal::WideString(value) => Self::WideString(value.clone()),
        })
    }
}

/// Returns the least and the greatest value of an integer type.
pub(crate) fn range(basic: Basic) -> Option<(i128, i128)> {
    Some(match basic {
        Basic::Octet => (0, u8::MAX.into()),
        Basic::Short => (i16::MIN.into(), i16::MAX.into()),
        Basic::UShort => (0, u16::MAX.into()),
        Basic::Long => (i32::MIN.into(), i32::MAX.into()),
        Basic::ULong => (0, u32::MAX.into()),
        Basic::LongLong => (i64::MIN.into(), i64::MAX.into()),
        Basic::ULongLong => (0, u64::MAX.into()),
        _ => return None,
    })
}

/// Applies a unary operator. `target` is the type of the whole expression; the result of `~` depends on it.
pub(crate) fn unary(
    operator: Unary,
    operand: Value,
    target: Option<Basic>,
) -> Result<Value, String> {
    match (operator, operand) {
        (Unary::Plus, value @ (Value::Integer(_) | Value::Float(_) | Value::Fixed(_))) => Ok(value),
        (Unary::Minus, Value::Integer(value)) => Ok(Value::Integer(-value)),
        (Unary::Minus, Value::Float(value)) => Ok(Value::Float(-value)),
        (Unary::Minus, Value::Fixed(value)) => Ok(Value::Fixed(value.negated())),
        (Unary::Complement, Value::Integer(value)) => {
            Ok(Value::Integer(match target.and_then(range) {
                Some((0, max)) => max - value,
                _ => !value,
            }))
        }
        (_, value) => Err(format!(
            "this operator does not apply to {}",
            value.kind_name()
        )),
    }
}

/// Applies a binary operator.
pub(crate) fn binary(operator: Binary, left: Value, right: Value) -> Result<Value, String> {
    match (left, right) {
        (Value::Integer(left), Value::Integer(right)) => {
            let value = integer(operator, left, right)?;
            // Operands have at most 64 bits. An intermediate result of more than 64 bits is refused too.
            if value.unsigned_abs() > u128::from(u64::MAX) {
                return Err("this does not fit into 64 bits".into());
            }
            Ok(Value::Integer(value))
        }
        (Value::Float(left), Value::Float(right)) => float(operator, left, right),
        #[allow(clippy::cast_precision_loss)]
        (Value::Float(left), Value::Integer(right)) => float(operator, left, right as f64),
        #[allow(clippy::cast_precision_loss)]
        (Value::Integer(left), Value::Float(right)) => float(operator, left as f64, right),
        (Value::Fixed(left), Value::Fixed(right)) => left.apply(operator, right).map(Value::Fixed),
        (left, right) => Err(format!(
            "this operator does not join {} and {}",
            left.kind_name(),
            right.kind_name()
        )),
    }
}

fn integer(operator: Binary, left: i128, right: i128) -> Result<i128, String> {
    let overflow = || "this does not fit into 64 bits".to_owned();
    Ok(match operator {
        Binary::Or => left | right,
        Binary::Xor => left ^ right,
        Binary::And => left & right,
        Binary::ShiftLeft | Binary::ShiftRight => {
            let by = u32::try_from(right)
                .ok()
                .filter(|by| *by < 64)
                .ok_or("a shift is by 0 to 63 bits")?;
            if operator == Binary::ShiftLeft {
                left.checked_shl(by).ok_or_else(overflow)?
            } else {
                left >> by
            }
        }
        Binary::Add => left.checked_add(right).ok_or_else(overflow)?,
        Binary::Subtract => left.checked_sub(right).ok_or_else(overflow)?,
        Binary::Multiply => left.checked_mul(right).ok_or_else(overflow)?,
        Binary::Divide => left.checked_div(right).ok_or("this divides by zero")?,
        Binary::Remainder => left.checked_rem(right).ok_or("this divides by zero")?,
    })
}

fn float(operator: Binary, left: f64, right: f64) -> Result<Value, String> {
    let value = match operator {
        Binary::Add => left + right,
        Binary::Subtract => left - right,
        Binary::Multiply => left * right,
        Binary::Divide => left / right,
        _ => return Err("this operator does not apply to floating-point numbers".into()),
    };
    if value.is_finite() {
        Ok(Value::Float(value))
    } else {
        Err("this is not a finite number".into())
    }
}
