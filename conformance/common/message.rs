//! GIOP messages encoded and decoded by hand.

use super::octets::{Cursor, ORDERS, Octets, Order};

pub(crate) const REQUEST: u8 = 0;
pub(crate) const REPLY: u8 = 1;
pub(crate) const CANCEL_REQUEST: u8 = 2;
pub(crate) const LOCATE_REQUEST: u8 = 3;
pub(crate) const LOCATE_REPLY: u8 = 4;
pub(crate) const CLOSE_CONNECTION: u8 = 5;
pub(crate) const MESSAGE_ERROR: u8 = 6;
pub(crate) const FRAGMENT: u8 = 7;

pub(crate) const MORE_FRAGMENTS: u8 = 2;

pub(crate) const NO_EXCEPTION: u32 = 0;
pub(crate) const USER_EXCEPTION: u32 = 1;
pub(crate) const SYSTEM_EXCEPTION: u32 = 2;
pub(crate) const LOCATION_FORWARD: u32 = 3;
pub(crate) const LOCATION_FORWARD_PERM: u32 = 4;
pub(crate) const NEEDS_ADDRESSING_MODE: u32 = 5;

/// Response flags: no reply; a reply once the server has received the request; a reply after the operation.
pub(crate) const SYNC_NONE: u8 = 0;
pub(crate) const SYNC_WITH_SERVER: u8 = 1;
pub(crate) const SYNC_WITH_TARGET: u8 = 3;

/// Every GIOP minor version with every byte order.
pub(crate) const FORMS: [(u8, Order); 6] = [
    (0, Order::Big),
    (0, Order::Little),
    (1, Order::Big),
    (1, Order::Little),
    (2, Order::Big),
    (2, Order::Little),
];

/// A whole message: its header, and the body that `write` adds, aligned from the first octet of the header.
pub(crate) fn message(
    (minor, order): (u8, Order),
    kind: u8,
    write: impl FnOnce(&mut Octets),
) -> Vec<u8> {
    let mut octets = Octets::new(order);
    octets
        .raw(b"GIOP")
        .raw(&[1, minor, order.flag(), kind])
        .u32(0);
    write(&mut octets);
    let size = octets.octets.len() - 12;
    let mut stated = Octets::new(order);
    stated.u32(u32::try_from(size).expect("tests are short"));
    octets.octets[8..12].copy_from_slice(&stated.octets);
    octets.octets
}

/// A TargetAddress of GIOP 1.2.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    Key(Vec<u8>),
    /// Profile tag and profile data.
    Profile(u32, Vec<u8>),
    /// Index of the selected profile, and the IOR.
    Reference(u32, super::ior::Ior),
}

impl Address {
    pub(crate) fn write(&self, minor: u8, octets: &mut Octets) {
        match self {
            Self::Key(key) if minor < 2 => {
                octets.sequence(key);
            }
            Self::Key(key) => {
                octets.u16(0).sequence(key);
            }
            Self::Profile(tag, data) => {
                octets.u16(1).u32(*tag).sequence(data);
            }
            Self::Reference(index, ior) => {
                octets.u16(2).u32(*index);
                ior.write(octets);
            }
        }
    }
}

/// A request; the test may change its fields before it is encoded.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) form: (u8, Order),
    pub(crate) id: u32,
    pub(crate) response_flags: u8,
    pub(crate) reserved: [u8; 3],
    pub(crate) target: Address,
    pub(crate) operation: String,
    pub(crate) contexts: Vec<(u32, Vec<u8>)>,
    pub(crate) principal: Vec<u8>,
}

impl Request {
    pub(crate) fn new(form: (u8, Order), key: &[u8], operation: &str) -> Self {
        Self {
            form,
            id: 7,
            response_flags: SYNC_WITH_TARGET,
            reserved: [0; 3],
            target: Address::Key(key.to_vec()),
            operation: operation.to_owned(),
            contexts: Vec::new(),
            principal: Vec::new(),
        }
    }

    pub(crate) fn id(mut self, id: u32) -> Self {
        self.id = id;
        self
    }

    pub(crate) fn flags(mut self, response_flags: u8) -> Self {
        self.response_flags = response_flags;
        self
    }

    pub(crate) fn target(mut self, target: Address) -> Self {
        self.target = target;
        self
    }

    pub(crate) fn context(mut self, id: u32, data: &[u8]) -> Self {
        self.contexts.push((id, data.to_vec()));
        self
    }

    /// The encoded request, without arguments.
    pub(crate) fn bare(&self) -> Vec<u8> {
        message(self.form, REQUEST, |octets| self.head(octets))
    }

    /// The encoded request, with arguments.
    pub(crate) fn with(&self, arguments: impl FnOnce(&mut Octets)) -> Vec<u8> {
        message(self.form, REQUEST, |octets| {
            self.head(octets);
            if self.form.0 == 2 {
                octets.align(8);
            }
            arguments(octets);
        })
    }

    fn head(&self, octets: &mut Octets) {
        let minor = self.form.0;
        if minor == 2 {
            octets
                .u32(self.id)
                .u8(self.response_flags)
                .raw(&self.reserved);
            self.target.write(minor, octets);
            octets.string(&self.operation);
            return write_contexts(octets, &self.contexts);
        }
        write_contexts(octets, &self.contexts);
        octets.u32(self.id).u8(u8::from(self.response_flags != 0));
        if minor == 1 {
            octets.raw(&self.reserved);
        }
        self.target.write(minor, octets);
        octets.string(&self.operation).sequence(&self.principal);
    }
}

fn write_contexts(octets: &mut Octets, contexts: &[(u32, Vec<u8>)]) {
    octets.u32(u32::try_from(contexts.len()).expect("tests are short"));
    for (id, data) in contexts {
        octets.u32(*id).sequence(data);
    }
}

/// An encoded reply.
pub(crate) fn reply(
    form: (u8, Order),
    id: u32,
    status: u32,
    body: impl FnOnce(&mut Octets),
) -> Vec<u8> {
    message(form, REPLY, |octets| {
        if form.0 == 2 {
            octets.u32(id).u32(status).u32(0).align(8);
        } else {
            octets.u32(0).u32(id).u32(status);
        }
        body(octets);
    })
}

/// The reply to an operation without results.
pub(crate) fn done(asked: &Received) -> Vec<u8> {
    asked.answered(NO_EXCEPTION, |_| ())
}

/// The reply to an operation without results, if the request expects one.
pub(crate) fn done_if_wanted(asked: &Received) -> Vec<u8> {
    match asked.asked().response_flags {
        SYNC_NONE => Vec::new(),
        _ => done(asked),
    }
}

/// The reply that echoes the octets of the arguments.
pub(crate) fn mirror(asked: &Received) -> Vec<u8> {
    let arguments = asked.asked().body;
    asked.answered(NO_EXCEPTION, |octets| {
        octets.raw(arguments.rest());
    })
}

/// An encoded LocateRequest.
pub(crate) fn locate(form: (u8, Order), id: u32, target: &Address) -> Vec<u8> {
    message(form, LOCATE_REQUEST, |octets| {
        octets.u32(id);
        target.write(form.0, octets);
    })
}

/// A received message, header included.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) octets: Vec<u8>,
}

/// A decoded reply.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) id: u32,
    pub(crate) status: u32,
    pub(crate) contexts: Vec<(u32, Vec<u8>)>,
    /// Positioned at the body.
    pub(crate) body: Cursor,
}

/// A decoded request of our client.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) form: (u8, Order),
    pub(crate) id: u32,
    pub(crate) response_flags: u8,
    pub(crate) reserved: Vec<u8>,
    /// Addressing disposition; 0 before GIOP 1.2.
    pub(crate) addressing: u16,
    /// The object key, if the target address is a key.
    pub(crate) key: Vec<u8>,
    pub(crate) operation: String,
    pub(crate) contexts: Vec<(u32, Vec<u8>)>,
    pub(crate) body: Cursor,
}

impl Received {
    pub(crate) fn minor(&self) -> u8 {
        self.octets[5]
    }

    pub(crate) fn flags(&self) -> u8 {
        self.octets[6]
    }

    pub(crate) fn kind(&self) -> u8 {
        self.octets[7]
    }

    pub(crate) fn order(&self) -> Order {
        ORDERS[usize::from(self.flags() & 1)]
    }

    pub(crate) fn form(&self) -> (u8, Order) {
        (self.minor(), self.order())
    }

    /// A cursor that starts after the message header.
    pub(crate) fn body(&self) -> Cursor {
        Cursor::new(self.order(), &self.octets, 12)
    }

    #[track_caller]
    pub(crate) fn reply(&self) -> Reply {
        assert_eq!(self.kind(), REPLY, "a reply: {:02x?}", self.octets);
        let mut body = self.body();
        if self.minor() == 2 {
            let (id, status) = (body.u32(), body.u32());
            let contexts = read_contexts(&mut body);
            if !body.rest().is_empty() {
                body.align(8);
            }
            return Reply {
                id,
                status,
                contexts,
                body,
            };
        }
        let contexts = read_contexts(&mut body);
        let (id, status) = (body.u32(), body.u32());
        Reply {
            id,
            status,
            contexts,
            body,
        }
    }

    /// The reply to this request, in the GIOP version and byte order of the request.
    #[track_caller]
    pub(crate) fn answered(&self, status: u32, body: impl FnOnce(&mut Octets)) -> Vec<u8> {
        reply(self.form(), self.asked().id, status, body)
    }

    #[track_caller]
    pub(crate) fn asked(&self) -> Asked {
        assert_eq!(self.kind(), REQUEST, "a request: {:02x?}", self.octets);
        let mut body = self.body();
        let form = self.form();
        if form.0 == 2 {
            let (id, response_flags) = (body.u32(), body.u8());
            let reserved = body.raw(3);
            let addressing = body.u16();
            let key = match addressing {
                0 => body.sequence(),
                1 => {
                    body.u32();
                    body.sequence()
                }
                _ => {
                    body.u32();
                    super::ior::Ior::read(&mut body);
                    Vec::new()
                }
            };
            let operation = body.string();
            let contexts = read_contexts(&mut body);
            if !body.rest().is_empty() {
                body.align(8);
            }
            return Asked {
                form,
                id,
                response_flags,
                reserved,
                addressing,
                key,
                operation,
                contexts,
                body,
            };
        }
        let contexts = read_contexts(&mut body);
        let (id, response_flags) = (body.u32(), body.u8());
        let reserved = if form.0 == 1 { body.raw(3) } else { Vec::new() };
        let (key, operation) = (body.sequence(), body.string());
        let _ = body.sequence(); // The requesting principal.
        Asked {
            form,
            id,
            response_flags,
            reserved,
            addressing: 0,
            key,
            operation,
            contexts,
            body,
        }
    }
}

fn read_contexts(body: &mut Cursor) -> Vec<(u32, Vec<u8>)> {
    (0..body.u32())
        .map(|_| (body.u32(), body.sequence()))
        .collect()
}

impl Reply {
    /// Repository id, minor code and completion of a system exception.
    #[track_caller]
    pub(crate) fn exception(mut self) -> (String, u32, u32) {
        assert_eq!(self.status, SYSTEM_EXCEPTION, "a system exception");
        (self.body.string(), self.body.u32(), self.body.u32())
    }
}
