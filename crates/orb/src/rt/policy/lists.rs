//! Lists that policies refer to by number.

use std::sync::{Mutex, OnceLock, PoisonError};

use crate::limits::POLICY_LISTS_MAX;
use crate::{Completion, SystemException, minor, raise};

/// Distinct lists: added rarely, read without a lock, never removed.
pub(super) struct Lists<T: 'static> {
    made: [OnceLock<Box<[T]>>; POLICY_LISTS_MAX],
    adding: Mutex<()>,
}

impl<T: Clone + PartialEq> Lists<T> {
    pub(super) const fn new() -> Self {
        Self {
            made: [const { OnceLock::new() }; POLICY_LISTS_MAX],
            adding: Mutex::new(()),
        }
    }

    /// Returns the number of this list; adds the list if it is new.
    pub(super) fn keep(&self, list: &[T]) -> Result<u16, SystemException> {
        let _one_at_a_time = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, made) in self.made.iter().enumerate() {
            if **made.get_or_init(|| list.into()) == *list {
                return Ok(u16::try_from(number).expect("fewer than a number counts"));
            }
        }
        Err(raise::no_resources(minor::NONE, Completion::No))
    }

    /// Returns the list of this number; an empty one if there is none.
    pub(super) fn get(&'static self, number: u16) -> &'static [T] {
        let made = self.made.get(usize::from(number)).and_then(OnceLock::get);
        made.map_or(&[], |list| list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_keeps_what_it_has_and_takes_nothing_more() {
        static NUMBERS: Lists<usize> = Lists::new();
        for number in 0..POLICY_LISTS_MAX {
            assert_eq!(NUMBERS.keep(&[number]).map(usize::from), Ok(number));
        }
        let full = raise::no_resources(minor::NONE, Completion::No);
        assert_eq!(NUMBERS.keep(&[POLICY_LISTS_MAX]), Err(full));
        assert_eq!(NUMBERS.keep(&[7]), Ok(7));
        assert_eq!(NUMBERS.get(7), [7]);
        assert_eq!(NUMBERS.get(u16::MAX), [0_usize; 0]);
    }
}
