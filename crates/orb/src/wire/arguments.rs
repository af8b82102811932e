//! How the arguments of a request are written.

use std::marker::PhantomData;

use deckwatch_cdr::{EncodeError, Unwritten, Writer};

/// Writes the arguments of a request, as often as it is sent.
pub(crate) trait Arguments {
    /// Writes the arguments, except octets at their end that it returns: those are sent from where they are.
    fn write<'s>(&'s self, w: &mut Writer<'_>) -> Result<Unwritten<'s>, EncodeError>;

    /// Writes all arguments.
    fn write_whole(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let rest = self.write(w)?;
        w.write_octets(rest.octets())
    }
}

/// An operation without arguments.
impl Arguments for () {
    fn write<'s>(&'s self, _: &mut Writer<'_>) -> Result<Unwritten<'s>, EncodeError> {
        Ok(().into())
    }
}

/// Arguments that a stub's closure writes.
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
