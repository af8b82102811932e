//! The messages of client and server, on top of the crate `giop`.

use std::borrow::Cow;

use deckwatch_cdr::{ByteOrder, Divided, EncodeError, Reader};
use deckwatch_giop::ior::{
    IiopProfile, TaggedComponent, alternate_address, code_sets::CodeSetInfo, shared_memory_address,
    unix_address,
};
use deckwatch_giop::{
    Codec, Format, Frame, HEADER_SIZE, Header, Ior, LocateReply, LocateReplyHeader, LocateStatus,
    Message, MessageKind, OpenMessage, Parts, ProtocolError, Reply, ReplyHeader, ReplyStatus,
    Request, Response, ServiceContext, SystemException, Version, write_close_connection,
    write_message_error,
};

mod arguments;
mod profile;
mod tls_offer;

use crate::counters::Counter;
use crate::slab::Slab;
use crate::transport::Endpoint;
pub(crate) use arguments::{Arguments, By};
use deckwatch_cdr::{Parse, Write};
pub(crate) use profile::{
    Address, Profile, RequestHead, profiles, write_cancel, write_locate_request, write_request,
    write_request_before,
};
use tls_offer::TlsOffer;

/// The repository id for which `_is_a` is true for every object.
pub(crate) const OBJECT_REPOSITORY_ID: &str = "IDL:omg.org/CORBA/Object:1.0";

/// What a server does with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request with a reply to wait for.
    TwoWay,
    /// A one-way or LocateRequest: dispatched before the next message is parsed.
    InOrder,
    /// A fragment of a message.
    Fragmented,
    /// The caller no longer waits.
    Cancel,
    /// The client ends the connection.
    Close,
    /// The client could not read what we wrote.
    MessageError,
    /// Only servers send this.
    Misplaced,
}

/// The length of the first message in `octets`, if it is whole.
#[inline]
pub(crate) fn whole_len(octets: &[u8], size_max: usize) -> Result<Option<usize>, ProtocolError> {
    match Request::plain_len(octets) {
        Some(len) if len <= size_max => Ok((len <= octets.len()).then_some(len)),
        _ => whole_len_of_other(octets, size_max),
    }
}

#[inline(never)]
fn whole_len_of_other(octets: &[u8], size_max: usize) -> Result<Option<usize>, ProtocolError> {
    Ok(match Frame::parse(octets, size_max)? {
        Frame::Need(_) => None,
        Frame::Message(_, size) => Some(size),
    })
}

/// The length in the header of the first message in `octets`; 0 without a whole header.
pub(crate) fn stated_len(octets: &[u8]) -> usize {
    header(octets).map_or(0, |header| header.message_size())
}

/// The counter of a malformed message.
pub(crate) const fn counter_of(error: ProtocolError) -> Counter {
    match error {
        ProtocolError::VersionUnsupported { .. } => Counter::UnknownVersions,
        ProtocolError::MemoryExhausted => Counter::InboundExhausted,
        ProtocolError::MessageTooLarge => Counter::MessagesTooLarge,
        ProtocolError::FragmentUnexpected
        | ProtocolError::FragmentsTooMany
        | ProtocolError::FragmentsMixed => Counter::BadFragments,
        _ => Counter::ProtocolErrors,
    }
}

fn header(message: &[u8]) -> Option<Header> {
    Header::parse(message.first_chunk::<HEADER_SIZE>()?).ok()
}

/// The largest messages, and the size of fragments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Octets of the largest message that is read or sent.
    pub(crate) message_max: usize,
    /// Octets of the fragments in which larger messages are sent; a multiple of 8, as the alignment of GIOP 1.1 needs.
    pub(crate) fragment: Option<usize>,
}

impl Sizes {
    /// Whether a message is sent in fragments.
    #[inline]
    pub(crate) fn divides(self, message_len: usize) -> bool {
        self.fragment.is_some_and(|size| message_len > size)
    }

    /// Calls `write` once with all fragments of a message.
    pub(crate) fn with_parts<T>(
        self,
        message: &[u8],
        slab: &Slab,
        write: impl FnOnce(&[u8]) -> T,
    ) -> T {
        let parts = Parts::of(message, self.fragment.unwrap_or(usize::MAX));
        let Ok(parts) = parts else {
            debug_assert!(false, "a message of ours can be divided");
            return write(message);
        };
        let mut buffer = slab.lend_empty();
        for part in parts {
            buffer.extend_from_slice(part.header());
            buffer.extend_from_slice(part.data);
        }
        let written = write(&buffer);
        slab.take_back_written(buffer);
        written
    }

    fn format(self, codec: Codec) -> Format {
        Format {
            codec,
            order: ByteOrder::NATIVE,
            size_max: self.message_max,
            fragment_size: self.fragment,
        }
    }
}

/// What to do with a message that was joined from fragments.
pub(crate) fn kind_of_joined(message: &Divided<'_>) -> Kind {
    match Message::parse_joined(message) {
        Ok(Message::Request(request)) if request.response == Response::Outcome => Kind::TwoWay,
        _ => Kind::InOrder,
    }
}

/// What to do with a whole message.
#[inline]
pub(crate) fn kind(message: &[u8]) -> Kind {
    match Request::plain_response(message) {
        Some(Response::Outcome) => Kind::TwoWay,
        Some(_) => Kind::InOrder,
        None => kind_of_other(message),
    }
}

#[inline(never)]
fn kind_of_other(message: &[u8]) -> Kind {
    let Some(header) = header(message) else {
        return Kind::Misplaced;
    };
    if header.more_fragments {
        return Kind::Fragmented;
    }
    match header.kind {
        MessageKind::Request if waits_for_outcome(&header, message) => Kind::TwoWay,
        MessageKind::Request | MessageKind::LocateRequest => Kind::InOrder,
        MessageKind::Fragment => Kind::Fragmented,
        MessageKind::CancelRequest => Kind::Cancel,
        MessageKind::CloseConnection => Kind::Close,
        MessageKind::MessageError => Kind::MessageError,
        MessageKind::Reply | MessageKind::LocateReply => Kind::Misplaced,
    }
}

/// Whether a message that was joined from fragments is a Reply or LocateReply.
pub(crate) fn is_answer(message: &Divided<'_>) -> bool {
    let joined = Message::parse_joined(message);
    matches!(joined, Ok(Message::Reply(_) | Message::LocateReply(_)))
}

/// Whether more messages belong to this one.
pub(crate) fn is_fragmented(message: &[u8]) -> bool {
    header(message)
        .is_some_and(|header| header.more_fragments || header.kind == MessageKind::Fragment)
}

/// The request that a CancelRequest is about.
pub(crate) fn cancelled(message: &[u8]) -> Option<u32> {
    match Message::parse(message) {
        Ok(Message::CancelRequest { id }) => Some(id),
        _ => None,
    }
}

/// In GIOP 1.2 the response flags follow header and request id; earlier versions have service contexts before them.
fn waits_for_outcome(header: &Header, message: &[u8]) -> bool {
    if header.version == Version::V1_2 {
        return message.get(HEADER_SIZE + 4) == Some(&(Response::Outcome as u8));
    }
    matches!(Message::parse(message), Ok(Message::Request(request)) if request.response == Response::Outcome)
}

/// Begins the reply to `request` in `buffer`, which is cleared. The reply has the request's version and code sets.
pub(crate) fn begin_reply(
    buffer: &mut Vec<u8>,
    request: &Request<'_>,
    status: ReplyStatus,
    contexts: &[ServiceContext<'_>],
    sizes: Sizes,
) -> Result<OpenMessage, EncodeError> {
    buffer.clear();
    ReplyHeader {
        id: request.id,
        status,
        contexts,
    }
    .begin(buffer, sizes.format(request.body.codec()))
}

/// Writes a reply with a system exception.
pub(crate) fn exception_reply(
    buffer: &mut Vec<u8>,
    request: &Request<'_>,
    exception: SystemException,
    contexts: &[ServiceContext<'_>],
    sizes: Sizes,
) {
    let status = ReplyStatus::SystemException;
    let whole = begin_reply(buffer, request, status, contexts, sizes).and_then(|open| {
        exception.write(&mut open.writer(buffer))?;
        open.finish(buffer)
    });
    debug_assert!(whole.is_ok(), "an exception of ours can always be written");
}

/// Writes a reply with a location forward.
pub(crate) fn forward_reply(
    buffer: &mut Vec<u8>,
    request: &Request<'_>,
    to: &Ior,
    contexts: &[ServiceContext<'_>],
    sizes: Sizes,
) -> Result<(), EncodeError> {
    let status = ReplyStatus::LocationForward;
    let open = begin_reply(buffer, request, status, contexts, sizes)?;
    to.write(&mut open.writer(buffer))?;
    open.finish(buffer).map(drop)
}

/// Replaces the service contexts of a written reply. Before GIOP 1.2 the alignment of the body depends on their length:
/// a context without meaning pads them.
pub(crate) fn say_with_reply(
    buffer: &mut Vec<u8>,
    contexts: &[ServiceContext<'_>],
    sizes: Sizes,
) -> Result<(), EncodeError> {
    let Ok(Message::Reply(reply)) = Message::parse(buffer) else {
        return Ok(());
    };
    if reply.version == Version::V1_1 && sizes.fragment.is_some() {
        // Its values are aligned for fragments with other boundaries.
        return Err(EncodeError::TypeUnsupported);
    }
    let at = reply.body.position();
    let body = &buffer[at.min(buffer.len())..];
    let mut all = contexts.to_vec();
    loop {
        let mut whole = Vec::with_capacity(buffer.len());
        let header = ReplyHeader {
            id: reply.id,
            status: reply.status,
            contexts: &all,
        };
        let open = header.begin(&mut whole, sizes.format(reply.body.codec()))?;
        if body.is_empty() || open.body() % 8 == at % 8 {
            open.writer(&mut whole).write_octets(body)?;
            open.finish(&mut whole)?;
            *buffer = whole;
            return Ok(());
        }
        let (id, data) = (PADDING_CONTEXT, &[0; 4]);
        all.push(ServiceContext { id, data });
    }
}

/// The id of a service context without meaning: receivers ignore unknown ids.
const PADDING_CONTEXT: u32 = 0x4457_0000;

/// Writes a LocateReply. `elsewhere`: the reference of a forward.
pub(crate) fn locate_reply(
    buffer: &mut Vec<u8>,
    version: Version,
    id: u32,
    status: LocateStatus,
    elsewhere: Option<&Ior>,
) {
    buffer.clear();
    let format = Format {
        codec: Codec::DEFAULT.with_version(version),
        ..Format::default()
    };
    let begun = LocateReplyHeader { id, status }.begin(buffer, format);
    let written = begun.and_then(|open| {
        if let Some(elsewhere) = elsewhere {
            elsewhere.write(&mut open.writer(buffer))?;
        }
        open.finish(buffer)
    });
    debug_assert!(
        written.is_ok(),
        "a locate reply of ours can always be written"
    );
}

/// Writes CloseConnection.
pub(crate) fn close_connection(buffer: &mut Vec<u8>) {
    buffer.clear();
    write_close_connection(buffer, Version::V1_0);
}

/// Writes MessageError, the answer to octets that are no message.
pub(crate) fn message_error(buffer: &mut Vec<u8>, version: Version) {
    buffer.clear();
    write_message_error(buffer, version);
}

/// The version of a MessageError: our highest for a peer with a higher one (clause 9.4.1), else the one that every peer
/// can read.
pub(crate) const fn version_of_complaint(fault: ProtocolError) -> Version {
    match fault {
        ProtocolError::VersionUnsupported { .. } => Version::V1_2,
        _ => Version::V1_0,
    }
}

/// What a client does with a message.
pub(crate) enum FromServer {
    /// A Reply or LocateReply.
    Reply(ReplyHead),
    /// CloseConnection: what the server has not answered it has not served.
    Close,
    /// The server could not read our message.
    MessageError,
}

/// A reply's header, without a borrow of its octets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyHead {
    pub(crate) id: u32,
    pub(crate) status: ReplyStatus,
    /// A LocateReply with UNKNOWN_OBJECT.
    pub(crate) is_unknown: bool,
    body: usize,
    order: ByteOrder,
    codec: Codec,
}

impl ReplyHead {
    fn new(reply: &Reply<'_>, codec: Codec) -> Self {
        let body = reply.body;
        Self {
            id: reply.id,
            status: reply.status,
            is_unknown: false,
            body: body.position(),
            order: body.order(),
            codec,
        }
    }

    /// A LocateReply as the Reply with the same consequences.
    fn located(reply: &LocateReply<'_>, codec: Codec) -> Self {
        let body = reply.body;
        Self {
            id: reply.id,
            status: match reply.status {
                LocateStatus::ObjectHere => ReplyStatus::NoException,
                LocateStatus::ObjectForward => ReplyStatus::LocationForward,
                LocateStatus::ObjectForwardPerm => ReplyStatus::LocationForwardPerm,
                LocateStatus::NeedsAddressingMode => ReplyStatus::NeedsAddressingMode,
                LocateStatus::UnknownObject | LocateStatus::SystemException => {
                    ReplyStatus::SystemException
                }
            },
            is_unknown: reply.status == LocateStatus::UnknownObject,
            body: body.position(),
            order: body.order(),
            codec,
        }
    }

    /// The body, in the octets of this header's message.
    pub(crate) fn body<'m>(&self, message: &'m Divided<'m>) -> Reader<'m> {
        let reader = if message.ends().is_empty() {
            Reader::new(message.octets(), self.order).at_position(self.body)
        } else {
            Reader::of_divided(message, self.order, self.body)
        };
        reader.with_codec(self.codec)
    }
}

/// Parses a whole message from the server of `profile`.
pub(crate) fn parse_reply(
    message: &Divided<'_>,
    profile: &Profile,
) -> Result<FromServer, ProtocolError> {
    match Message::parse_joined(message)? {
        Message::Reply(reply) => {
            let codec = profile.codec.with_version(reply.version);
            Ok(FromServer::Reply(ReplyHead::new(&reply, codec)))
        }
        Message::LocateReply(reply) => {
            let codec = profile.codec.with_version(reply.version);
            Ok(FromServer::Reply(ReplyHead::located(&reply, codec)))
        }
        Message::CloseConnection => Ok(FromServer::Close),
        Message::MessageError => Ok(FromServer::MessageError),
        _ => Err(ProtocolError::KindUnknown(
            message.octets().get(7).copied().unwrap_or(0),
        )),
    }
}

/// Fast path: the header of a whole reply to the request `id`, without exception or service contexts. `None`: use
/// [`parse_reply`].
#[inline]
pub(crate) fn plain_reply(octets: &[u8], id: u32, profile: &Profile) -> Option<ReplyHead> {
    (Reply::plain_id(octets)? == id).then(|| ReplyHead {
        id,
        status: ReplyStatus::NoException,
        is_unknown: false,
        body: Reply::PLAIN_BODY,
        order: ByteOrder::NATIVE,
        codec: profile.codec.with_version(Version::V1_2),
    })
}

/// The request id of an unfragmented reply.
pub(crate) fn whole_reply(message: &[u8]) -> Option<u32> {
    match Message::parse(message) {
        Ok(Message::Reply(reply)) => Some(reply.id),
        Ok(Message::LocateReply(reply)) => Some(reply.id),
        _ => None,
    }
}

/// The addressing disposition that a server asks for.
pub(crate) fn read_disposition(mut body: Reader<'_>) -> Option<u16> {
    u16::parse(&mut body).ok()
}

/// The exception in the body of a reply.
pub(crate) fn read_exception(mut body: Reader<'_>) -> SystemException {
    SystemException::parse(&mut body).unwrap_or_else(SystemException::from)
}

/// The addresses and components of a new reference.
pub(crate) struct Reach<'r> {
    /// The addresses, most preferred first.
    pub(crate) endpoints: Cow<'r, [Endpoint]>,
    /// Further components of the profile.
    pub(crate) components: Cow<'static, [TaggedComponent]>,
}

impl Reach<'_> {
    /// Adds components to the profile.
    pub(crate) fn add(&mut self, components: &[TaggedComponent]) {
        if !components.is_empty() {
            self.components.to_mut().extend_from_slice(components);
        }
    }
}

/// A reference to an object key: one profile, whose components hold the further endpoints.
pub(crate) fn make_ior(type_id: &str, reach: &Reach<'_>, key: &[u8]) -> Result<Ior, EncodeError> {
    let mut profile: Option<IiopProfile> = None;
    let mut components = vec![CodeSetInfo::ours().to_component()?];
    let (mut ssl, mut tls) = (None, Vec::new());
    for endpoint in &*reach.endpoints {
        match (endpoint, &mut profile) {
            (Endpoint::Tcp { host, port }, Some(first)) if first.port != 0 => {
                components.push(alternate_address(host, *port)?);
            }
            (Endpoint::Tcp { host, port }, _) => {
                profile = Some(IiopProfile::new(host, *port, key));
            }
            (Endpoint::Tls { host, port }, _) => {
                // Port 0: no request goes there without TLS.
                let first = profile.get_or_insert_with(|| IiopProfile::new(host, 0, key));
                if ssl.is_none() && first.host == *host {
                    ssl = Some(*port);
                }
                tls.push((host.clone(), *port));
            }
            (Endpoint::Unix { host, path }, _) => {
                components.push(unix_address(host, path)?);
                // Port 0: the server can be reached from its own host only.
                profile.get_or_insert_with(|| IiopProfile::new(host, 0, key));
            }
            (Endpoint::SharedMemory { host, path }, _) => {
                components.push(shared_memory_address(host, path)?);
                profile.get_or_insert_with(|| IiopProfile::new(host, 0, key));
            }
        }
    }
    let Some(mut profile) = profile else {
        return Ok(Ior::nil());
    };
    if !tls.is_empty() {
        let options = TlsOffer::new(profile.port != 0);
        components.extend(options.components(ssl, tls)?);
    }
    components.extend_from_slice(&reach.components);
    profile.components = components;
    Ior::with_iiop(type_id, &profile)
}

/// The addresses of a profile in their order. Port 0 is no address, and a plain one is none where TLS is required.
fn addresses(profile: &IiopProfile) -> impl Iterator<Item = Endpoint> {
    let requires_tls = profile.requires_tls();
    let tcp = profile.addresses();
    let tcp = tcp.filter(move |(_, port)| *port != 0 && !requires_tls);
    let tls = profile.tls_addresses().into_iter();
    let unix = profile.unix_addresses();
    let shared = profile.shared_memory_addresses();
    tcp.map(|(host, port)| Endpoint::Tcp { host, port })
        .chain(tls.map(|(host, port)| Endpoint::Tls { host, port }))
        .chain(unix.map(|(host, path)| Endpoint::Unix { host, path }))
        .chain(shared.map(|(host, path)| Endpoint::SharedMemory { host, path }))
}

/// The first address and the key of the first IIOP profile.
pub(crate) fn place(ior: &Ior) -> Option<(Endpoint, Vec<u8>)> {
    let profile = ior.iiop_profiles().flatten().next()?;
    let first = addresses(&profile).next();
    let endpoint = first.unwrap_or_else(|| Endpoint::tcp(&profile.host, profile.port));
    Some((endpoint, profile.object_key))
}
