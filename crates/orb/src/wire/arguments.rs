//! What writes the arguments of a request.

use std::marker::PhantomData;

use deckwatch_cdr::{EncodeError, Unwritten, Writer};

/// Writes the arguments of a request, as often as it is sent.
pub(crate) trait Arguments {
    /// Writes all that it does not leave where it stands.
    fn write<'s>(&'s self, w: &mut Writer<'_>) -> Result<Unwritten<'s>, EncodeError>;

    /// Writes all.
    fn write_whole(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let rest = self.write(w)?;
        w.write_octets(rest.octets())
    }
}

/// There are none.
impl Arguments for () {
    fn write<'s>(&'s self, _: &mut Writer<'_>) -> Result<Unwritten<'s>, EncodeError> {
        Ok(().into())
    }
}

/// A stub's way to write them.
pub(crate) struct By<'c, F, R>(F, PhantomData<fn() -> (R, &'c ())>);

impl<'c, F, R> By<'c, F, R>
where
    F: Fn(&mut Writer<'_>) -> Result<R, EncodeError>,
    R: Into<Unwritten<'c>>,
{
    pub(crate) const fn new(write: F) -> Self {
        Self(write, PhantomData)
    }
}

impl<'c, F, R> Arguments for By<'c, F, R>
where
    F: Fn(&mut Writer<'_>) -> Result<R, EncodeError>,
    R: Into<Unwritten<'c>>,
{
    #[inline]
    fn write<'s>(&'s self, w: &mut Writer<'_>) -> Result<Unwritten<'s>, EncodeError> {
        let rest: Unwritten<'c> = (self.0)(w)?.into();
        Ok(rest)
    }
}
