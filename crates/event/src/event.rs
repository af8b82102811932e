//! One event on its way to the consumers: marshalled at most once for each codec, and decoded only if one needs it.

use std::cell::OnceCell;

use deckwatch_cdr::{Any, Parse as _, Reader, Write as _};
use deckwatch_orb::delivery::{Deliveries, Form, MarshalError, Marshalled, Outlet};
use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};

use crate::raise::raise;

/// An event that a supplier has pushed.
pub(crate) struct Event<'a> {
    deliveries: &'a Deliveries,
    /// The arguments of the push, at the event.
    arguments: Option<Reader<'a>>,
    any: OnceCell<Any>,
    /// The octets as they came.
    came: Option<Marshalled>,
    /// The bodies for other codecs; `None` for a codec in which the event cannot be encoded.
    converted: Vec<(Form, Option<Marshalled>)>,
}

impl<'a> Event<'a> {
    /// The event in the arguments of a push, undecoded if its octets can be sent as they are.
    ///
    /// # Errors
    /// NO_RESOURCES if the octets of all events would exceed their bound; MARSHAL for octets that must be decoded and
    /// are no `any`.
    pub(crate) fn pushed(
        deliveries: &'a Deliveries,
        arguments: Reader<'a>,
    ) -> Result<Self, SystemException> {
        let came = deliveries.take_arguments(&arguments).map_err(refused)?;
        let event = Self {
            deliveries,
            arguments: Some(arguments),
            any: OnceCell::new(),
            came,
            converted: Vec::new(),
        };
        if event.came.is_none() {
            event.any()?;
        }
        Ok(event)
    }

    /// An event that is decoded already.
    pub(crate) fn decoded(deliveries: &'a Deliveries, any: Any) -> Self {
        Self {
            deliveries,
            arguments: None,
            any: OnceCell::from(any),
            came: None,
            converted: Vec::new(),
        }
    }

    /// The event, decoded.
    ///
    /// # Errors
    /// MARSHAL for octets that are no `any`.
    pub(crate) fn any(&self) -> Result<&Any, SystemException> {
        if let Some(any) = self.any.get() {
            return Ok(any);
        }
        let mut arguments = self.arguments.ok_or_else(|| raise(Kind::Internal))?;
        let any = Any::parse(&mut arguments)?;
        Ok(self.any.get_or_init(|| any))
    }

    /// The octets for an outlet. Returns `None` if they cannot be marshalled for it.
    pub(crate) fn octets_for(&mut self, outlet: &Outlet) -> Option<&Marshalled> {
        // A borrow of `self.came` in the result would last beyond the return that is not taken.
        if self
            .came
            .as_ref()
            .is_some_and(|came| outlet.takes(came.form()))
        {
            return self.came.as_ref();
        }
        let form = outlet.form();
        let place = match self.converted.iter().position(|(other, _)| *other == form) {
            Some(place) => place,
            None => {
                let converted = self.any().ok().and_then(|any| {
                    let marshalled = self.deliveries.marshal(form, |w| any.write(w));
                    marshalled.ok()
                });
                self.converted.push((form, converted));
                self.converted.len() - 1
            }
        };
        self.converted[place].1.as_ref()
    }
}

fn refused(error: MarshalError) -> SystemException {
    match error {
        MarshalError::Encode(error) => error.into(),
        _ => raise(Kind::NoResources),
    }
}

#[cfg(test)]
mod tests {
    use deckwatch_cdr::EncodeError;

    use super::*;

    #[test]
    fn what_cannot_be_marshalled_is_the_caller_s_fault_and_what_has_no_room_is_not() {
        let wrong = EncodeError::TypeMismatch;
        let its_own = SystemException::from(EncodeError::TypeMismatch);
        assert_eq!(refused(MarshalError::Encode(wrong)), its_own);
        assert_ne!(its_own.kind, Kind::NoResources);
        assert_eq!(refused(MarshalError::NoRoom), raise(Kind::NoResources));
    }
}
