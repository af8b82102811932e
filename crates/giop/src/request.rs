//! Requests (CORBA 3.3 part 2, clause 9.4.2).

use crate::context::write_contexts;
use crate::{
    ByteOrder, Codec, Format, HEADER_SIZE, Header, MessageKind, OpenMessage, ProtocolError,
    ServiceContext, ServiceContexts, Target,
};
use deckwatch_cdr::{EncodeError, Parse, Reader, Version};

/// What the caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Response {
    /// Nothing: SYNC_NONE and SYNC_WITH_TRANSPORT.
    Nothing = 0,
    /// A reply before the servant is called: SYNC_WITH_SERVER. Since GIOP 1.2.
    Receipt = 1,
    /// The outcome: two-way calls and SYNC_WITH_TARGET.
    Outcome = 3,
}

impl Response {
    /// Whether any reply is sent.
    #[must_use]
    pub const fn is_expected(self) -> bool {
        !matches!(self, Self::Nothing)
    }

    fn parse(version: Version, r: &mut Reader<'_>) -> Result<Self, ProtocolError> {
        if version < Version::V1_2 {
            return Ok(if bool::parse(r)? {
                Self::Outcome
            } else {
                Self::Nothing
            });
        }
        let octet = r.read_u8()?;
        Self::of_octet(octet).ok_or(ProtocolError::ResponseFlagsUnknown(octet))
    }

    /// The response flags of GIOP 1.2.
    const fn of_octet(octet: u8) -> Option<Self> {
        match octet {
            0 => Some(Self::Nothing),
            1 => Some(Self::Receipt),
            3 => Some(Self::Outcome),
            _ => None,
        }
    }

    const fn octet(self, version: Version) -> u8 {
        match version {
            Version::V1_2 => self as u8,
            _ => self.is_expected() as u8,
        }
    }
}

/// A request as received.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// GIOP version.
    pub version: Version,
    /// The caller's number for it.
    pub id: u32,
    /// What the caller waits for.
    pub response: Response,
    /// The object.
    pub target: Target<'a>,
    /// The operation's name.
    pub operation: &'a [u8],
    /// Service contexts.
    pub contexts: ServiceContexts<'a>,
    /// The arguments. Its codec has the version; the code sets are the connection's to set.
    pub body: Reader<'a>,
}

/// The first octets of an unfragmented request of GIOP 1.2 in native order.
const PLAIN: [u8; 8] = [
    b'G',
    b'I',
    b'O',
    b'P',
    1,
    2,
    ByteOrder::NATIVE.flag(),
    MessageKind::Request as u8,
];

impl<'a> Request<'a> {
    /// Fast path: the expected response of an unfragmented GIOP 1.2 request in native order. `None`: parse it in full.
    #[must_use]
    #[inline]
    pub fn plain_response(octets: &[u8]) -> Option<Response> {
        let (header, rest) = octets.split_first_chunk::<8>()?;
        if *header == PLAIN {
            Response::of_octet(*rest.get(8)?)
        } else {
            None
        }
    }

    /// Fast path: the length of a request, header included, from its first octets. `None`: parse it in full.
    #[must_use]
    #[inline]
    pub fn plain_len(octets: &[u8]) -> Option<usize> {
        let (header, rest) = octets.split_first_chunk::<8>()?;
        let size = rest.first_chunk().copied().map(u32::from_ne_bytes)?;
        (*header == PLAIN).then(|| size as usize + HEADER_SIZE)
    }

    /// Fast path: a whole request that [`Request::plain_response`] accepts, whose object is named by a key, without
    /// service contexts. `None`: parse it in full.
    #[must_use]
    #[inline]
    pub fn plain(octets: &'a [u8]) -> Option<Self> {
        let response = Self::plain_response(octets)?;
        let word = |at: usize| {
            let octets = octets.get(at..)?.first_chunk().copied()?;
            Some(u32::from_ne_bytes(octets) as usize)
        };
        let key_len = word(KEY_AT - 4)?;
        let key = octets.get(KEY_AT..)?.get(..key_len)?;
        let name_count_at = aligned(KEY_AT + key_len);
        let name_at = name_count_at + 4;
        let name_len = word(name_count_at)?;
        let (end_of_name, operation) = octets.get(name_at..)?.get(..name_len)?.split_last()?;
        let contexts_at = aligned(name_at + name_len);
        let is_plain = word(SIZE_AT)? == octets.len() - HEADER_SIZE
            && octets[KEY_AT - 8..KEY_AT - 6] == [0; 2]
            && *end_of_name == 0
            && word(contexts_at)? == 0;
        if !is_plain {
            return None;
        }
        let codec = Codec::DEFAULT.with_version(Version::V1_2);
        let reader = Reader::new(octets, ByteOrder::NATIVE).with_codec(codec);
        let contexts_end = contexts_at + 4;
        Some(Self {
            version: Version::V1_2,
            id: word(HEADER_SIZE)? as u32,
            response,
            target: Target::Key(key),
            operation,
            contexts: ServiceContexts::none(reader.at_position(contexts_end)),
            body: reader.at_position(contexts_end.next_multiple_of(8)),
        })
    }

    pub(crate) fn parse(header: &Header, mut r: Reader<'a>) -> Result<Self, ProtocolError> {
        let version = header.version;
        if version < Version::V1_2 {
            let contexts = ServiceContexts::parse(&mut r)?;
            let id = r.read_u32()?;
            let response = Response::parse(version, &mut r)?;
            if version == Version::V1_1 {
                r.read_octets(3)?;
            }
            let target = Target::parse(version, &mut r)?;
            let operation = r.read_string_octets()?;
            // The principal; deprecated, and nothing reads it.
            r.read_octet_sequence()?;
            return Ok(Self {
                version,
                id,
                response,
                target,
                operation,
                contexts,
                body: r,
            });
        }
        let id = r.read_u32()?;
        let response = Response::parse(version, &mut r)?;
        r.read_octets(3)?;
        let target = Target::parse(version, &mut r)?;
        let operation = r.read_string_octets()?;
        let contexts = ServiceContexts::parse(&mut r)?;
        r.align(8);
        Ok(Self {
            version,
            id,
            response,
            target,
            operation,
            contexts,
            body: r,
        })
    }
}

/// A request to send.
#[derive(Clone, Copy, Debug)]
pub struct RequestHeader<'a> {
    /// The caller's number for it.
    pub id: u32,
    /// What the caller waits for.
    pub response: Response,
    /// The object.
    pub target: Target<'a>,
    /// The operation's name.
    pub operation: &'a str,
    /// Service contexts.
    pub contexts: &'a [ServiceContext<'a>],
}

impl RequestHeader<'_> {
    /// Appends the request up to its body.
    ///
    /// # Errors
    /// [`EncodeError::MessageTooLarge`]; [`EncodeError::TypeUnsupported`] where a target other than a key meets a
    /// version before 1.2.
    #[inline]
    pub fn begin(&self, buffer: &mut Vec<u8>, format: Format) -> Result<OpenMessage, EncodeError> {
        match self.target {
            Target::Key(key) if format.codec.version == Version::V1_2 => {
                self.begin_by_key(key, buffer, format)
            }
            _ => self.begin_otherwise(buffer, format),
        }
    }

    /// As [`RequestHeader::begin`], where the request is as most are: GIOP 1.2 in this machine's order, by an object
    /// key that is not long, as the operation's name is not, and without service contexts. None: it is not so, or
    /// cannot be written, and nothing has been.
    #[must_use]
    #[inline(always)]
    pub fn begin_plain(&self, buffer: &mut Vec<u8>, format: Format) -> Option<OpenMessage> {
        let Target::Key(key) = self.target else {
            return None;
        };
        let name = self.operation.as_bytes();
        let key_end = KEY_AT + key.len();
        let pad = aligned(key_end) - key_end;
        // Within the tail, which begins behind the key.
        let contexts_at = pad + aligned(4 + name.len() + 1);
        let is_plain = self.contexts.is_empty()
            && format.codec.version == Version::V1_2
            && format.order.is_native()
            && name.len() <= PLAIN_NAME_MAX
            && key.len() <= PLAIN_KEY_MAX
            && format.size_max >= KEY_AT + PLAIN_KEY_MAX + PLAIN_TAIL;
        if !is_plain || has_null(name) {
            return None;
        }
        let start = buffer.len();
        let mut head = [0; KEY_AT];
        head[..8].copy_from_slice(&PLAIN);
        head[HEADER_SIZE..HEADER_SIZE + 4].copy_from_slice(&self.id.to_ne_bytes());
        head[HEADER_SIZE + 4] = self.response as u8;
        head[KEY_AT - 4..].copy_from_slice(&(key.len() as u32).to_ne_bytes());
        buffer.extend_from_slice(&head);
        buffer.extend_from_slice(key);
        let mut tail = [0; PLAIN_TAIL];
        tail[pad..pad + 4].copy_from_slice(&(name.len() as u32 + 1).to_ne_bytes());
        tail[pad + 4..pad + 4 + name.len()].copy_from_slice(name);
        let end = key_end + contexts_at + 4;
        let body = end.next_multiple_of(8);
        buffer.extend_from_slice(&tail[..body - key_end]);
        Some(OpenMessage::begun(start, end, start + body, format))
    }

    /// GIOP 1.2 with an object key: all places are known before anything is written, so room is requested once.
    #[inline(never)]
    fn begin_by_key(
        &self,
        key: &[u8],
        buffer: &mut Vec<u8>,
        format: Format,
    ) -> Result<OpenMessage, EncodeError> {
        let name = self.operation.as_bytes();
        if has_null(name) {
            return Err(EncodeError::StringHoldsNull);
        }
        let name_count_at = aligned(KEY_AT + key.len());
        let name_at = name_count_at + 4;
        let contexts_at = aligned(name_at + name.len() + 1);
        let after = |end, context: &ServiceContext<'_>| aligned(end) + 8 + context.data.len();
        let end = self.contexts.iter().fold(contexts_at + 4, after);
        // A count above 32 bits is above any such limit.
        if end > format.size_max.min(u32::MAX as usize) {
            return Err(EncodeError::MessageTooLarge);
        }
        let start = buffer.len();
        buffer.resize(start + end.next_multiple_of(8), 0);
        let message = &mut buffer[start..];
        let mut put = |at: usize, value: usize| {
            let octets = match format.order {
                ByteOrder::Big => (value as u32).to_be_bytes(),
                ByteOrder::Little => (value as u32).to_le_bytes(),
            };
            message[at..at + 4].copy_from_slice(&octets);
        };
        put(HEADER_SIZE, self.id as usize);
        // The addressing disposition of a key is 0.
        put(KEY_AT - 4, key.len());
        put(name_count_at, name.len() + 1);
        put(contexts_at, self.contexts.len());
        let mut at = contexts_at + 4;
        for context in self.contexts {
            put(aligned(at), context.id as usize);
            put(aligned(at) + 4, context.data.len());
            at = after(at, context);
        }
        let header = Header {
            version: Version::V1_2,
            order: format.order,
            more_fragments: false,
            kind: MessageKind::Request,
            size: 0,
        };
        message[..HEADER_SIZE].copy_from_slice(&header.to_octets());
        message[HEADER_SIZE + 4] = self.response as u8;
        message[KEY_AT..KEY_AT + key.len()].copy_from_slice(key);
        message[name_at..name_at + name.len()].copy_from_slice(name);
        let mut at = contexts_at + 4;
        for context in self.contexts {
            let data_at = aligned(at) + 8;
            at = after(at, context);
            message[data_at..at].copy_from_slice(context.data);
        }
        Ok(OpenMessage::begun(start, end, buffer.len(), format))
    }

    #[inline(never)]
    fn begin_otherwise(
        &self,
        buffer: &mut Vec<u8>,
        format: Format,
    ) -> Result<OpenMessage, EncodeError> {
        let version = format.codec.version;
        let alignment = if version == Version::V1_2 { 8 } else { 1 };
        OpenMessage::begin(buffer, format, MessageKind::Request, alignment, |w| {
            if version < Version::V1_2 {
                write_contexts(self.contexts, w)?;
            }
            w.write_u32(self.id)?;
            w.write_u8(self.response.octet(version))?;
            if version > Version::V1_0 {
                w.write_octets(&[0; 3])?;
            }
            self.target.write(version, w)?;
            w.write_string_octets(self.operation.as_bytes())?;
            if version < Version::V1_2 {
                return w.write_octet_sequence(&[]);
            }
            write_contexts(self.contexts, w)
        })
    }
}

/// Where the octets of a key stand: behind message header, request id, response flags, addressing disposition and
/// count.
const KEY_AT: usize = HEADER_SIZE + 16;

/// Most octets of a name and of a key on this path, and octets between key and body.
const PLAIN_NAME_MAX: usize = 44;
const PLAIN_KEY_MAX: usize = 128;
const PLAIN_TAIL: usize = 64;

const _: () = assert!(3 + aligned(4 + PLAIN_NAME_MAX + 1) + 4 + 4 <= PLAIN_TAIL);

/// Whether one of the octets is 0.
#[inline]
fn has_null(octets: &[u8]) -> bool {
    let (words, rest) = octets.as_chunks();
    let in_words = words.iter().any(|word| {
        let word = u64::from_ne_bytes(*word);
        word.wrapping_sub(u64::MAX / 255) & !word & (u64::MAX / 255) << 7 != 0
    });
    in_words || rest.contains(&0)
}

/// Where the size stands in a message header.
const SIZE_AT: usize = 8;

const fn aligned(at: usize) -> usize {
    at.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;

    fn request(key: &[u8], operation: &str, contexts: &[ServiceContext<'_>]) -> Vec<u8> {
        let mut octets = Vec::new();
        let header = RequestHeader {
            id: 77,
            response: Response::Outcome,
            target: Target::Key(key),
            operation,
            contexts,
        };
        let open = header.begin(&mut octets, Format::default()).unwrap();
        open.writer(&mut octets).write_octets(b"arguments").unwrap();
        open.finish(&mut octets).unwrap();
        octets
    }

    /// The fast path agrees with the full parser.
    fn is_plain(octets: &[u8]) -> bool {
        let plain = Request::plain(octets);
        let read = Message::parse(octets);
        if let Some(plain) = plain {
            let Ok(Message::Request(request)) = read else {
                panic!("no request: {octets:?}");
            };
            assert_eq!(format!("{plain:?}"), format!("{request:?}"));
        }
        plain.is_some()
    }

    #[test]
    fn a_plain_request_is_read_at_once_as_it_is_by_steps() {
        let (key, name) = ([7; PLAIN_KEY_MAX + 1], "n".repeat(PLAIN_NAME_MAX + 1));
        let keys = [0, 1, 2, 3, 4, 12, PLAIN_KEY_MAX, PLAIN_KEY_MAX + 1];
        for (key, len) in keys.iter().flat_map(|&len| {
            [0, 1, 7, 8, 9, PLAIN_NAME_MAX, name.len()].map(|name| (&key[..len], name))
        }) {
            assert!(is_plain(&request(key, &name[..len], &[])));
        }
        let context = ServiceContext { id: 1, data: b"1" };
        assert!(!is_plain(&request(b"key", "operation", &[context])));
    }

    #[test]
    fn a_request_is_written_at_once_as_it_is_by_places() {
        let (key, name) = ([7; PLAIN_KEY_MAX], "n".repeat(PLAIN_NAME_MAX));
        for len in 0..=PLAIN_KEY_MAX {
            let (key, format) = (&key[..len], Format::default());
            let header = RequestHeader {
                id: 77,
                response: Response::Outcome,
                target: Target::Key(key),
                operation: &name[..len % (PLAIN_NAME_MAX + 1)],
                contexts: &[],
            };
            let (mut at_once, mut by_places) = (vec![1; len], vec![1; len]);
            let open = header.begin_plain(&mut at_once, format).unwrap();
            let other = header.begin_by_key(key, &mut by_places, format).unwrap();
            assert_eq!(at_once, by_places);
            assert_eq!(format!("{open:?}"), format!("{other:?}"));
        }
    }

    #[test]
    fn a_name_that_holds_a_null_is_refused_wherever_it_stands() {
        let letters = "a name of as many letters as are written at once";
        for len in 1..=PLAIN_NAME_MAX {
            for at in 0..=len {
                let mut name = letters.as_bytes()[..len].to_vec();
                let is_plain = at == len;
                name.iter_mut()
                    .skip(at)
                    .take(1)
                    .for_each(|octet| *octet = 0);
                let header = RequestHeader {
                    id: 77,
                    response: Response::Outcome,
                    target: Target::Key(b"key"),
                    operation: std::str::from_utf8(&name).unwrap(),
                    contexts: &[],
                };
                let (mut buffer, format) = (Vec::new(), Format::default());
                let begun = header.begin_plain(&mut buffer, format);
                assert_eq!(begun.is_some(), is_plain, "{at} of {len}");
                assert_eq!(buffer.is_empty(), !is_plain);
                let refused = header.begin(&mut Vec::new(), format).err();
                let null = EncodeError::StringHoldsNull;
                assert_eq!(refused, (!is_plain).then_some(null), "{at} of {len}");
            }
        }
    }

    #[test]
    fn no_octet_makes_a_plain_request_of_what_is_none() {
        let octets = request(b"key", "operation", &[]);
        for at in 0..octets.len() {
            assert!(!is_plain(&octets[..at]));
            for octet in [0, 1, 2, 3, 0x7f, 0xff] {
                let mut changed = octets.clone();
                changed[at] = octet;
                is_plain(&changed);
            }
        }
    }
}
