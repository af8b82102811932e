//! Service contexts, which travel with a request or reply beside its values (CORBA 3.3 part 2, clause 7.7).

use deckwatch_cdr::{DecodeError, EncodeError, Reader, Writer};

/// One service context. The data is an encapsulation; the id gives its meaning.
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
    /// Why a system exception was raised, in words.
    pub const EXCEPTION_DETAIL_MESSAGE: u32 = 14;
    /// The distributable thread of a request: TAO's number, which no standard assigns to it (fault tolerance uses the
    /// same number).
    pub const SCHEDULING_INFO: u32 = 30;
    /// How many services have passed the request on (ours: an encapsulation of one octet).
    pub const DECKWATCH_HOPS: u32 = 0x4457_0003;
    /// Which services have passed the request on (ours: an encapsulation of eight octets for each).
    pub const DECKWATCH_PASSED_BY: u32 = 0x4457_0004;
}

/// The service contexts of a message, read on demand.
#[derive(Clone, Copy, Debug)]
pub struct ServiceContexts<'a> {
    at_first: Reader<'a>,
    count: u32,
    /// A bit for each small id among them: most ids that are asked for are absent.
    ids: u32,
}

impl<'a> ServiceContexts<'a> {
    /// An empty list, which ends where the reader is.
    #[inline]
    pub(crate) const fn none(at: Reader<'a>) -> Self {
        Self {
            at_first: at,
            count: 0,
            ids: 0,
        }
    }

    /// Passes over the list and keeps its place.
    pub(crate) fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = r.read_count(8)? as u32;
        let mut contexts = Self {
            at_first: *r,
            count,
            ids: 0,
        };
        for _ in 0..count {
            contexts.ids |= bit(parse_one(r)?.id);
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
    #[inline]
    pub fn find(&self, id: u32) -> Option<&'a [u8]> {
        let is_absent = id < u32::BITS && self.ids & bit(id) == 0;
        if is_absent { None } else { self.look_for(id) }
    }

    fn look_for(&self, id: u32) -> Option<&'a [u8]> {
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

/// The bit of an id; 0 for a large one.
const fn bit(id: u32) -> u32 {
    if id < u32::BITS { 1 << id } else { 0 }
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

#[cfg(test)]
mod tests {
    use deckwatch_cdr::ByteOrder;

    use super::*;

    #[test]
    fn contexts_are_found_by_small_and_by_large_ids_and_others_are_not() {
        let said: [(u32, &[u8]); 5] = [
            (1, b"one"),
            (31, b"last with a bit"),
            (32, b"first without"),
            (0x4f41_5401, b"a vendor's"),
            (1, b"another"),
        ];
        let contexts = said.map(|(id, data)| ServiceContext { id, data });
        let mut octets = Vec::new();
        write_contexts(&contexts, &mut Writer::new(&mut octets)).expect("short");
        let parsed =
            ServiceContexts::parse(&mut Reader::new(&octets, ByteOrder::NATIVE)).expect("sound");
        assert_eq!(parsed.len(), said.len());
        for (id, data) in &said[..4] {
            assert_eq!(parsed.find(*id), Some(*data), "the first of {id}");
        }
        for absent in [0, 10, 33, u32::MAX] {
            assert_eq!(parsed.find(absent), None, "{absent}");
        }
    }
}
