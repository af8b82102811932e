//! Fixed-point decimals of at most 31 digits (CORBA 3.3 part 1, clause 7.10.2).

use std::fmt;

use crate::text::diagnostic::quoted;
use crate::text::operator::Binary;

/// A decimal number: `digits` times ten to the power of minus `scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: i128,
    scale: u32,
}

/// The maximum number of digits of a fixed-point number.
pub(crate) const DIGITS_MAX: u32 = 31;

impl Decimal {
    /// Returns the number as an integer, without its decimal point.
    #[must_use]
    pub fn digits(&self) -> i128 {
        self.digits
    }

    /// Returns the number of digits after the decimal point.
    #[must_use]
    pub fn scale(&self) -> u32 {
        self.scale
    }

    /// Returns the number of digits, which is at least the scale.
    #[must_use]
    pub fn digit_count(&self) -> u32 {
        let count = self
            .digits
            .unsigned_abs()
            .checked_ilog10()
            .map_or(1, |log| log + 1);
        count.max(self.scale)
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        if whole.len() + fraction.len() > DIGITS_MAX as usize {
            return Err(format!(
                "{} has more than {DIGITS_MAX} digits",
                quoted(text)
            ));
        }
        let digits = format!("0{whole}{fraction}")
            .parse()
            .map_err(|_| format!("{} is no number", quoted(text)))?;
        Ok(Self {
            digits,
            scale: fraction.len() as u32,
        })
    }

    pub(crate) fn negated(self) -> Self {
        Self {
            digits: -self.digits,
            ..self
        }
    }

    pub(crate) fn apply(self, operator: Binary, other: Self) -> Result<Self, String> {
        let too_long = || format!("this has more than {DIGITS_MAX} digits");
        let scale = self.scale.max(other.scale);
        let value = match operator {
            Binary::Add | Binary::Subtract => {
                let left = self.widened(scale).ok_or_else(too_long)?;
                let right = other.widened(scale).ok_or_else(too_long)?;
                Self {
                    digits: if operator == Binary::Add {
                        left + right
                    } else {
                        left - right
                    },
                    scale,
                }
            }
            Binary::Multiply => {
                let digits = self.digits.checked_mul(other.digits).ok_or_else(too_long)?;
                Self {
                    digits,
                    scale: self.scale + other.scale,
                }
            }
            Binary::Divide => self.divided(other)?,
            _ => return Err("this operator does not apply to fixed-point numbers".into()),
        };
        let value = value.shortened();
        if value.digit_count() > DIGITS_MAX {
            Err(too_long())
        } else {
            Ok(value)
        }
    }

    /// Returns the digits converted to a greater scale.
    fn widened(self, scale: u32) -> Option<i128> {
        self.digits
            .checked_mul(10_i128.checked_pow(scale - self.scale)?)
            .filter(|digits| digits.unsigned_abs() < 1 << 126)
    }

    /// Divides with as many digits as fit, and truncates the rest as the standard requires.
    fn divided(self, other: Self) -> Result<Self, String> {
        if other.digits == 0 {
            return Err("this divides by zero".into());
        }
        let (mut dividend, mut scale) =
            (self.digits, i64::from(self.scale) - i64::from(other.scale));
        while dividend % other.digits != 0 || scale < 0 {
            let Some(wider) = dividend.checked_mul(10) else {
                break;
            };
            if (wider / other.digits).unsigned_abs() >= 10_u128.pow(DIGITS_MAX) {
                break;
            }
            dividend = wider;
            scale += 1;
        }
        let scale =
            u32::try_from(scale).map_err(|_| format!("this has more than {DIGITS_MAX} digits"))?;
        Ok(Self {
            digits: dividend / other.digits,
            scale,
        })
    }

    /// Removes zeros at the end of the fraction, and cuts fraction digits until at most 31 digits remain.
    fn shortened(mut self) -> Self {
        while self.scale > 0 && (self.digits % 10 == 0 || self.digit_count() > DIGITS_MAX) {
            self.digits /= 10;
            self.scale -= 1;
        }
        self
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.digits < 0 { "-" } else { "" };
        let scale = self.scale as usize;
        let text = format!("{:0>width$}", self.digits.unsigned_abs(), width = scale + 1);
        let (whole, fraction) = text.split_at(text.len() - scale);
        let point = if scale > 0 { "." } else { "" };
        write!(f, "{sign}{whole}{point}{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn decimals_are_exact() {
        let cases = [
            (Binary::Add, "1.5", "2.25", "3.75"),
            (Binary::Subtract, "1.5", "2.25", "-0.75"),
            (Binary::Multiply, "1.5", "0.02", "0.03"),
            (Binary::Divide, "1", "8", "0.125"),
            (Binary::Divide, "100", "0.5", "200"),
        ];
        for (operator, left, right, result) in cases {
            assert_eq!(
                decimal(left)
                    .apply(operator, decimal(right))
                    .unwrap()
                    .to_string(),
                result
            );
        }
    }

    #[test]
    fn division_without_end_is_cut_to_31_digits() {
        let third = decimal("1").apply(Binary::Divide, decimal("3")).unwrap();
        assert_eq!(third.to_string(), format!("0.{}", "3".repeat(31)));
        assert!(decimal("1").apply(Binary::Divide, decimal("0")).is_err());
    }

    #[test]
    fn more_than_31_digits_are_refused() {
        assert!(Decimal::parse(&"9".repeat(32)).is_err());
        let large = decimal(&"9".repeat(31));
        assert!(large.apply(Binary::Multiply, large).is_err());
        assert!(large.apply(Binary::Add, decimal("1")).is_err());
    }
}
