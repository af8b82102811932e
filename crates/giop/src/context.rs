//! Service contexts: what travels with a request or reply beside its values (CORBA 3.3 part 2, clause 7.7).

use deckwatch_cdr::{DecodeError, EncodeError, Reader, Writer};

/// One service context. The data is an encapsulation whose meaning the id gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceContext<'a> {
    /// Which service it belongs to.
    pub id: u32,
    /// Its octets.
    pub data: &'a [u8],
}

/// Ids of service contexts.
pub mod context_id {
    /// Negotiated code sets.
    pub const CODE_SETS: u32 = 1;
    /// Bidirectional IIOP.
    pub const BI_DIR_IIOP: u32 = 5;
    /// Policies of the invocation: timeouts, sync scope.
    pub const INVOCATION_POLICIES: u32 = 7;
    /// RT-CORBA priority of the caller.
    pub const RT_CORBA_PRIORITY: u32 = 10;
    /// RT-CORBA range of priorities of the connection.
    pub const RT_CORBA_PRIORITY_RANGE: u32 = 11;
    /// The distributable thread that a request is of: TAO's number, which no standard has given it (fault tolerance has the same one).
    pub const SCHEDULING_INFO: u32 = 30;
}

/// The service contexts of a message, read when asked for.
#[derive(Clone, Copy, Debug)]
pub struct ServiceContexts<'a> {
    at_first: Reader<'a>,
    count: u32,
}

impl<'a> ServiceContexts<'a> {
    /// Walks over the list, so that what follows can be read, and keeps the way back.
    pub(crate) fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = r.read_count(8)? as u32;
        let contexts = Self {
            at_first: *r,
            count,
        };
        for _ in 0..count {
            parse_one(r)?;
        }
        Ok(contexts)
    }

    /// The contexts in the order they were sent.
    pub fn iter(&self) -> impl Iterator<Item = ServiceContext<'a>> + use<'a> {
        let mut r = self.at_first;
        (0..self.count).map_while(move |_| parse_one(&mut r).ok())
    }

    /// The data of the first context of this id.
    #[must_use]
    pub fn find(&self, id: u32) -> Option<&'a [u8]> {
        self.iter()
            .find(|context| context.id == id)
            .map(|context| context.data)
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

fn parse_one<'a>(r: &mut Reader<'a>) -> Result<ServiceContext<'a>, DecodeError> {
    Ok(ServiceContext {
        id: r.read_u32()?,
        data: r.read_octet_sequence()?,
    })
}

/// Writes a list of service contexts.
pub(crate) fn write_contexts(
    contexts: &[ServiceContext<'_>],
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    w.write_count(contexts.len())?;
    for context in contexts {
        w.write_u32(context.id)?;
        w.write_octet_sequence(context.data)?;
    }
    Ok(())
}
