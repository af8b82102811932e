//! A profile of a reference as a caller uses it: the addresses, the object's addressing, and the form of requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use deckwatch_cdr::{ByteOrder, EncodeError, Parse, Reader, Unwritten, WideSet, Write, Writer};
use deckwatch_giop::ior::code_sets::CodeSetInfo;
use deckwatch_giop::ior::{IiopProfile, IorRef, component_tag, profile_tag};
use deckwatch_giop::{
    Codec, Format, Ior, LocateRequestHeader, OpenMessage, RequestHeader, Response, ServiceContext,
    Target, Version, write_cancel_request,
};

use super::{Arguments, PADDING_CONTEXT, Sizes, addresses};
use crate::contexts::ContextList;
use crate::rt::{self, Priority};
use crate::transport::{Endpoint, TlsUse};

/// What requests need of one profile of a reference.
#[derive(Debug)]
pub(crate) struct Profile {
    object_key: Key,
    pub(super) codec: Codec,
    /// The addressing disposition that the server asks for (CORBA 3.3 part 2, clause 9.4.2.3).
    disposition: AtomicU16,
    addressing: Arc<Addressing>,
    /// The CodeSets service context with our choice, if the server offers code sets.
    pub(crate) code_sets: Option<[u8; 12]>,
}

/// An object key. One of ours is stored in the profile itself, near the other fields that a call reads.
#[derive(Clone, Debug)]
enum Key {
    Here(u8, [u8; KEY_HERE_MAX]),
    Apart(Box<[u8]>),
}

/// Our own keys have 36 octets.
const KEY_HERE_MAX: usize = 46;

impl Key {
    fn new(octets: &[u8]) -> Self {
        let mut here = [0; KEY_HERE_MAX];
        match here.get_mut(..octets.len()) {
            Some(place) => {
                place.copy_from_slice(octets);
                Self::Here(octets.len() as u8, here)
            }
            None => Self::Apart(octets.into()),
        }
    }

    #[inline]
    fn octets(&self) -> &[u8] {
        match self {
            Self::Here(len, octets) => octets.get(..usize::from(*len)).unwrap_or(octets),
            Self::Apart(octets) => octets,
        }
    }
}

/// Addressing by profile or reference instead of by key.
#[derive(Debug)]
struct Addressing {
    /// The whole reference, marshalled in native byte order.
    reference: Arc<[u8]>,
    /// Index of the profile.
    selected: u32,
}

const KEY_ADDRESS: u16 = 0;
const PROFILE_ADDRESS: u16 = 1;
const REFERENCE_ADDRESS: u16 = 2;

impl Addressing {
    #[cold]
    fn target(&self, disposition: u16) -> Option<Target<'_>> {
        let mut r = Reader::new(&self.reference, ByteOrder::NATIVE);
        let ior = IorRef::parse(&mut r).ok()?;
        let selected = self.selected;
        Some(match disposition {
            PROFILE_ADDRESS => Target::Profile(ior.profiles().nth(selected as usize)?),
            _ => Target::Reference { selected, ior },
        })
    }
}

impl Profile {
    fn new(profile: &IiopProfile, addressing: Addressing) -> Self {
        let addressing = Arc::new(addressing);
        let version = Version::from_minor(profile.minor).unwrap_or(Version::V1_2);
        let codec = Codec::DEFAULT.with_version(version);
        let object_key = Key::new(&profile.object_key);
        let disposition = AtomicU16::new(KEY_ADDRESS);
        let offered = profile
            .component(component_tag::CODE_SETS)
            .and_then(|data| CodeSetInfo::from_octets(data).ok());
        let codec = match &offered {
            Some(offered) if !offered.has_wide() => codec.with_wide(WideSet::None),
            _ => codec,
        };
        let chosen = offered.map(|offered| offered.negotiate(profile.orb_type()));
        match chosen.and_then(|chosen| Some((chosen, chosen.char_set()?))) {
            // GIOP 1.0 has no negotiation.
            Some((context, chars)) if version > Version::V1_0 => Self {
                object_key,
                disposition,
                addressing,
                codec: codec.with_chars(chars),
                code_sets: Some(context.to_octets()),
            },
            _ => Self {
                object_key,
                disposition,
                addressing,
                codec,
                code_sets: None,
            },
        }
    }

    /// The whole reference in native byte order, and the index of the profile in it.
    pub(crate) fn whole(&self) -> (&[u8], usize) {
        (
            &self.addressing.reference,
            self.addressing.selected as usize,
        )
    }

    /// The addressing disposition in use.
    pub(crate) fn disposition(&self) -> u16 {
        self.disposition.load(Ordering::Relaxed)
    }

    /// Uses the addressing that the server asks for from now on. Returns false if that is unknown, or `asked_in` again.
    pub(crate) fn address_by(&self, wanted: u16, asked_in: u16) -> bool {
        let is_another = wanted <= REFERENCE_ADDRESS && wanted != asked_in;
        if is_another {
            self.disposition.store(wanted, Ordering::Relaxed);
        }
        is_another
    }

    /// The object in the addressing that the server asks for; by default its key.
    #[inline]
    fn target(&self) -> Target<'_> {
        let named = match self.disposition() {
            KEY_ADDRESS => None,
            other => self.addressing.target(other),
        };
        named.unwrap_or(Target::Key(self.object_key()))
    }

    /// The object's key.
    pub(crate) fn object_key(&self) -> &[u8] {
        self.object_key.octets()
    }

    /// The codec of its requests.
    pub(crate) const fn codec(&self) -> Codec {
        self.codec
    }
}

impl Clone for Profile {
    fn clone(&self) -> Self {
        Self {
            object_key: self.object_key.clone(),
            codec: self.codec,
            disposition: AtomicU16::new(self.disposition.load(Ordering::Relaxed)),
            addressing: Arc::clone(&self.addressing),
            code_sets: self.code_sets,
        }
    }
}

/// What differs from request to request.
#[derive(Clone, Copy)]
pub(crate) struct RequestHead<'a> {
    pub(crate) id: u32,
    pub(crate) response: Response,
    pub(crate) operation: &'a str,
    pub(crate) contexts: &'a [ServiceContext<'a>],
}

impl<'a> RequestHead<'a> {
    #[inline(always)]
    const fn towards(&self, target: Target<'a>) -> RequestHeader<'a> {
        RequestHeader {
            id: self.id,
            response: self.response,
            target,
            operation: self.operation,
            contexts: self.contexts,
        }
    }
}

/// Writes a request, except octets at the end of its arguments that it returns.
#[inline]
pub(crate) fn write_request<'c>(
    buffer: &mut Vec<u8>,
    profile: &Profile,
    head: &RequestHead<'_>,
    sizes: Sizes,
    arguments: &'c dyn Arguments,
) -> Result<Unwritten<'c>, EncodeError> {
    let format = sizes.format(profile.codec);
    if profile.disposition() == KEY_ADDRESS {
        let header = head.towards(Target::Key(profile.object_key()));
        if let Some(open) = header.begin_plain(buffer, format) {
            return write_arguments(buffer, open, arguments);
        }
    }
    let open = begin_otherwise(buffer, profile, head, format)?;
    write_arguments(buffer, open, arguments)
}

/// Appends a request up to its body, which is marshalled already, in `order` and aligned as from a multiple of 8, and
/// which is sent behind it. Before GIOP 1.2 a service context without meaning pads the header to that alignment.
pub(crate) fn write_request_before(
    buffer: &mut Vec<u8>,
    profile: &Profile,
    head: &RequestHead<'_>,
    order: ByteOrder,
    body: &[u8],
    sizes: Sizes,
) -> Result<(), EncodeError> {
    let format = Format {
        order,
        fragment_size: None,
        ..sizes.format(profile.codec)
    };
    let start = buffer.len();
    let open = begin_otherwise(buffer, profile, head, format)?;
    let is_aligned = (open.body() - start).is_multiple_of(8);
    let open = if is_aligned || body.is_empty() {
        open
    } else {
        buffer.truncate(start);
        let padding = ServiceContext {
            id: PADDING_CONTEXT,
            data: &[0; 4],
        };
        let mut contexts = ContextList::new();
        for context in head.contexts {
            contexts.push(context.id, context.data);
        }
        contexts.push(padding.id, padding.data);
        let padded = RequestHead {
            contexts: contexts.as_slice(),
            ..*head
        };
        begin_otherwise(buffer, profile, &padded, format)?
    };
    if buffer.len() - start + body.len() > format.size_max {
        return Err(EncodeError::MessageTooLarge);
    }
    open.finish_before(buffer, body.into()).map(drop)
}

/// The header of a request with another addressing or with service contexts.
#[inline(never)]
fn begin_otherwise(
    buffer: &mut Vec<u8>,
    profile: &Profile,
    head: &RequestHead<'_>,
    format: Format,
) -> Result<OpenMessage, EncodeError> {
    head.towards(profile.target()).begin(buffer, format)
}

#[inline(always)]
fn write_arguments<'c>(
    buffer: &mut Vec<u8>,
    open: OpenMessage,
    arguments: &'c dyn Arguments,
) -> Result<Unwritten<'c>, EncodeError> {
    let rest = arguments.write(&mut open.writer(buffer))?;
    open.finish_before(buffer, rest).map(|_| rest)
}

/// Writes a LocateRequest.
pub(crate) fn write_locate_request(
    buffer: &mut Vec<u8>,
    profile: &Profile,
    id: u32,
    sizes: Sizes,
) -> Result<(), EncodeError> {
    let target = profile.target();
    let header = LocateRequestHeader { id, target };
    header.write(buffer, sizes.format(profile.codec)).map(drop)
}

/// Writes a CancelRequest.
pub(crate) fn write_cancel(
    buffer: &mut Vec<u8>,
    profile: &Profile,
    id: u32,
    sizes: Sizes,
) -> Result<(), EncodeError> {
    write_cancel_request(buffer, sizes.format(profile.codec), id)
}

/// One address of a reference, with its profile.
pub(crate) struct Address {
    pub(crate) endpoint: Endpoint,
    pub(crate) profile: Profile,
    /// The priority of the lane that listens there, if the reference has it.
    pub(crate) lane: Option<Priority>,
}

/// All addresses of all readable IIOP profiles, most preferred first. In each profile, shared memory and unix sockets
/// of the host named `here` come first; those of other hosts are left out. Host names come behind plain addresses, which
/// need no resolver. `tls` says whether plain ones are used where there are others, and at all.
pub(crate) fn profiles(ior: &Ior, here: &str, tls: TlsUse) -> Vec<Address> {
    let mut reference = Vec::new();
    let written = ior.write(&mut Writer::new(&mut reference));
    debug_assert!(written.is_ok(), "a reference that came can be written");
    let reference: Arc<[u8]> = reference.into();
    let iiop = ior.profiles.iter().enumerate();
    let iiop = iiop.filter(|(_, profile)| profile.tag == profile_tag::INTERNET_IOP);
    let read = iiop.filter_map(move |(index, profile)| {
        let addressing = Addressing {
            reference: Arc::clone(&reference),
            selected: index as u32,
        };
        let profile = IiopProfile::from_octets(&profile.data).ok()?;
        Some((Profile::new(&profile, addressing), profile))
    });
    let found = read.flat_map(move |(ours, profile)| {
        let mut found = with_lanes(&profile);
        found.retain(|(endpoint, _)| endpoint.host_of_local().is_none_or(|host| host == here));
        found.retain(|(endpoint, _)| tls != TlsUse::Required || !is_plain(endpoint));
        // Without authorities TLS cannot be had: its address is kept for the error alone.
        if tls == TlsUse::Never && found.iter().any(|(endpoint, _)| is_plain(endpoint)) {
            found.retain(|(endpoint, _)| !matches!(endpoint, Endpoint::Tls { .. }));
        }
        found.sort_by_key(|(endpoint, _)| endpoint.rank());
        found.into_iter().map(move |(endpoint, lane)| Address {
            endpoint,
            profile: ours.clone(),
            lane,
        })
    });
    let mut found: Vec<_> = found.collect();
    // Those over TLS keep their place: a plain address in front of them would be called in place of them.
    found.sort_by_key(|at| is_plain(&at.endpoint) && at.endpoint.needs_resolver());
    found
}

fn is_plain(endpoint: &Endpoint) -> bool {
    matches!(endpoint, Endpoint::Tcp { .. })
}

/// The addresses of a profile and of the lanes in it, each with its lane's priority. The profile's own addresses are
/// those of the first lane.
fn with_lanes(profile: &IiopProfile) -> Vec<(Endpoint, Option<Priority>)> {
    let lanes = rt::lanes(profile);
    let first = lanes.first().and_then(|(_, priority)| *priority);
    let is_at = |endpoint: &Endpoint| lanes.iter().any(|(at, _)| at == endpoint);
    let others = addresses(profile).filter(|endpoint| !is_at(endpoint));
    let others: Vec<_> = others.map(|endpoint| (endpoint, first)).collect();
    others.into_iter().chain(lanes).collect()
}
