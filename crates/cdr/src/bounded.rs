//! `sequence<T, N>`.

use crate::{DecodeError, DecodeFact, EncodeError, Parse, Reader, Unwritten, Write, Writer};
use std::ops::Deref;

/// A `sequence<T, N>`: a vector of at most `N` elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BoundedVec<T, const N: usize>(Vec<T>);

impl<T, const N: usize> BoundedVec<T, N> {
    /// An empty sequence.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends an element.
    ///
    /// # Errors
    /// The element, when the sequence is full.
    pub fn push(&mut self, element: T) -> Result<(), T> {
        if self.0.len() >= N {
            return Err(element);
        }
        self.0.push(element);
        Ok(())
    }

    /// The elements, to change in place.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.0
    }

    /// Empties the sequence; the memory stays.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The vector inside.
    #[must_use]
    pub fn into_vec(self) -> Vec<T> {
        self.0
    }
}

impl<T, const N: usize> Default for BoundedVec<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Deref for BoundedVec<T, N> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T, const N: usize> TryFrom<Vec<T>> for BoundedVec<T, N> {
    type Error = EncodeError;

    /// Fails with [`EncodeError::BoundExceeded`].
    fn try_from(elements: Vec<T>) -> Result<Self, EncodeError> {
        if elements.len() > N {
            Err(EncodeError::BoundExceeded)
        } else {
            Ok(Self(elements))
        }
    }
}

impl<T, const N: usize> From<BoundedVec<T, N>> for Vec<T> {
    fn from(sequence: BoundedVec<T, N>) -> Self {
        sequence.0
    }
}

impl<'s, T, const N: usize> IntoIterator for &'s BoundedVec<T, N> {
    type Item = &'s T;
    type IntoIter = std::slice::Iter<'s, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<T: Write, const N: usize> Write for BoundedVec<T, N> {
    #[inline]
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.0.write(w)
    }

    #[inline]
    fn write_last(&self, w: &mut Writer<'_>) -> Result<Unwritten<'_>, EncodeError> {
        self.0.write_last(w)
    }
}

impl<'a, T: Parse<'a>, const N: usize> Parse<'a> for BoundedVec<T, N> {
    const SIZE_MIN: usize = 4;

    #[inline]
    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = r.read_count(T::SIZE_MIN)?;
        if count > N {
            return Err(DecodeError::new(
                DecodeFact::BoundExceeded,
                r.position() - 4,
            ));
        }
        T::parse_vec(r, count).map(Self)
    }
}
