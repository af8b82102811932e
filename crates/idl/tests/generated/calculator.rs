//! The servant of the tests.

use std::borrow::Cow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use deckwatch_cdr::{Any, TypeCode};

use crate::idl::broad::holder::Inner;
use crate::idl::broad::*;
use crate::idl::shared::{Stamp, Ticker};
use crate::orb::{Completion, ObjectRef, SystemException, SystemExceptionKind};

/// Implements all interfaces of the test.
#[derive(Debug, Default)]
pub(crate) struct Abacus {
    hour: AtomicU32,
    ticks: AtomicU64,
    /// The arguments received in oneway calls.
    pub(crate) heard: Mutex<Vec<(String, usize)>>,
}

impl Root for Abacus {
    fn name(&self) -> Result<Cow<'_, str>, SystemException> {
        Ok("abacus".into())
    }

    fn touch(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl Ticker for Abacus {
    fn tick(&self) -> Result<Stamp, SystemException> {
        Ok(Stamp {
            ns: self.ticks.fetch_add(1, Ordering::Relaxed) + 1,
        })
    }
}

impl Clock for Abacus {
    fn hour(&self) -> Result<u32, SystemException> {
        Ok(self.hour.load(Ordering::Relaxed))
    }

    fn set_hour(&self, value: u32) -> Result<(), SystemException> {
        self.hour.store(value, Ordering::Relaxed);
        Ok(())
    }

    fn advance(&self, by: u32) -> Result<u32, ClockAdvanceError> {
        if by > 24 {
            return Err(clock::Stopped { at: by }.into());
        }
        Ok(self.hour.fetch_add(by, Ordering::Relaxed) + by)
    }
}

impl Calculator for Abacus {
    fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        Ok(a + b)
    }

    fn divide(&self, dividend: i32, divisor: i32) -> Result<(i32, i32), CalculatorDivideError> {
        match divisor {
            0 => Err(Empty.into()),
            77 => Err(
                SystemException::new(SystemExceptionKind::NoPermission, 0, Completion::No).into(),
            ),
            ..0 => Err(Refused {
                reason: "negative".into(),
                shade: Colour::Red,
            }
            .into()),
            _ => Ok((dividend / divisor, dividend % divisor)),
        }
    }

    fn concat<'a>(
        &'a self,
        a: &'a str,
        b: &'a str,
    ) -> Result<(Cow<'a, str>, Cow<'a, str>), SystemException> {
        Ok(((a.to_owned() + b).into(), (b.to_owned() + a).into()))
    }

    fn reverse<'a>(&'a self, points: &'a [Point]) -> Result<Cow<'a, [Point]>, SystemException> {
        Ok(points.iter().rev().copied().collect())
    }

    fn mirror<'a>(&'a self, data: &'a [u8]) -> Result<Cow<'a, [u8]>, SystemException> {
        Ok(data.iter().rev().copied().collect())
    }

    fn round(&self, value: &Everything) -> Result<Everything, SystemException> {
        Ok(value.clone())
    }

    fn choose(
        &self,
        value: &Choice,
        _other: &Sparse,
    ) -> Result<(Choice, Sparse, Maybe), SystemException> {
        Ok((value.clone(), Sparse::Rest(100, 1), Maybe::Other(false)))
    }

    fn self_(
        &self,
        other: Option<&CalculatorRef>,
        any_object: Option<&ObjectRef>,
    ) -> Result<Option<CalculatorRef>, SystemException> {
        assert_eq!(other.is_some(), any_object.is_some());
        Ok(other.cloned())
    }

    fn blend(
        &self,
        _first: Colour,
        second: Colour,
        _point: &Point,
    ) -> Result<Colour, SystemException> {
        Ok(second)
    }

    fn at_most_three<'a>(&'a self, values: &'a [i32]) -> Result<Cow<'a, [i32]>, SystemException> {
        Ok(if values.len() < 3 {
            Cow::Borrowed(values)
        } else {
            values.repeat(2).into()
        })
    }

    fn limited<'a>(&'a self, words: &'a str) -> Result<Cow<'a, str>, SystemException> {
        Ok(words.repeat(2).into())
    }

    fn letters(&self, value: &Lettered) -> Result<Lettered, SystemException> {
        Ok(value.clone())
    }

    fn unwrap(&self, value: &Holder) -> Result<Inner, SystemException> {
        Ok(value.content)
    }

    fn wrap(&self, value: &Any, _code: &TypeCode) -> Result<Any, SystemException> {
        Ok(value.clone())
    }

    fn notify(&self, text: &str, shades: &[Colour]) -> Result<(), SystemException> {
        self.heard
            .lock()
            .unwrap()
            .push((text.to_owned(), shades.len()));
        Ok(())
    }
}
