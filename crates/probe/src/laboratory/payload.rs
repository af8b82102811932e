//! The structs that are sent, and the sizes of GIOP messages.

use deckwatch_cdr::{BoundedString, Char, EncodeError, Writer};
use deckwatch_giop::ior::IiopProfile;
use deckwatch_giop::{Format, Ior, ReplyHeader, ReplyStatus, RequestHeader, Response, Target};

use super::error::LaboratoryError;
use super::idl::deckwatch::ComplexStruct;
use super::idl::deckwatch_bench::PlainStruct;

/// Octets of one struct of either kind on the wire, in a sequence.
pub(crate) const STRUCT_SIZE: usize = 40;

/// The ComplexStruct that is sent.
pub(crate) fn element() -> ComplexStruct {
    ComplexStruct {
        s: 12,
        l: 34_567,
        f: 0.5,
        d: 2.25,
        c: Char(b'x'),
        name: BoundedString::try_from(NAME).unwrap_or_default(),
    }
}

/// Seven characters and the terminating null make the size of an element a multiple of eight octets.
const NAME: &str = "contact";

/// The PlainStruct that is sent; its CDR is its layout in memory.
pub(crate) const fn plain() -> PlainStruct {
    PlainStruct {
        x: 0.25,
        y: 0.5,
        z: 0.75,
        at: 1_234_567_890_123,
        track: 42,
        quality: 0.875,
    }
}

/// Octets on the wire of our request of `operation` with the arguments that `there` writes, and of our reply with the
/// results that `back` writes.
///
/// # Errors
/// [`LaboratoryError::Reference`]: `reference` is not one of our own.
pub(crate) fn message_sizes(
    reference: &str,
    operation: &str,
    there: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    back: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Result<(usize, usize), LaboratoryError> {
    let unusable = |reason: &dyn std::fmt::Display| LaboratoryError::Reference(reason.to_string());
    let ior: Ior = reference.parse().map_err(|error| unusable(&error))?;
    let profile: Option<IiopProfile> = ior.iiop_profiles().flatten().next();
    let key = profile
        .ok_or_else(|| unusable(&"it has no IIOP profile"))?
        .object_key;
    let format = Format {
        size_max: usize::MAX,
        ..Format::default()
    };
    let request = || {
        let mut buffer = Vec::new();
        let open = RequestHeader {
            id: 1,
            response: Response::Outcome,
            target: Target::Key(&key),
            operation,
            contexts: &[],
        }
        .begin(&mut buffer, format)?;
        there(&mut open.writer(&mut buffer))?;
        open.finish(&mut buffer).map(|_| buffer.len())
    };
    let reply = || {
        let mut buffer = Vec::new();
        let open = ReplyHeader {
            id: 1,
            status: ReplyStatus::NoException,
            contexts: &[],
        }
        .begin(&mut buffer, format)?;
        back(&mut open.writer(&mut buffer))?;
        open.finish(&mut buffer).map(|_| buffer.len())
    };
    let of = |error: EncodeError| unusable(&error);
    Ok((request().map_err(of)?, reply().map_err(of)?))
}

/// Sizes of the messages of `compute`, there and back.
pub(crate) fn compute_sizes(reference: &str) -> Result<(usize, usize), LaboratoryError> {
    use deckwatch_cdr::Write as _;
    message_sizes(reference, "compute", |w| 0_u64.write(w), |_| Ok(()))
}

#[cfg(test)]
mod tests {
    use deckwatch_cdr::Write;

    use super::*;

    #[test]
    fn structs_take_the_octets_that_are_said() {
        fn size<T: Write + Clone>(one: &T, count: usize) -> usize {
            let mut buffer = Vec::new();
            let all = vec![one.clone(); count];
            all.write(&mut Writer::new(&mut buffer)).expect("in bounds");
            buffer.len()
        }
        assert_eq!(size(&element(), 11) - size(&element(), 10), STRUCT_SIZE);
        assert_eq!(size(&plain(), 11) - size(&plain(), 10), STRUCT_SIZE);
        assert_eq!(size_of::<PlainStruct>(), STRUCT_SIZE);
    }
}
