//! Who the clients of a channel are: access tables are asked about them when they are connected again, and when another
//! table comes into force.

use std::collections::HashMap;
use std::iter::once;

use deckwatch_access::Action;
use deckwatch_cdr::{ByteOrder, Parse, Reader};
use deckwatch_orb::{Caller, Identity, LocalProcess, SystemException};
use deckwatch_sync::PiMutex;

use crate::channel_group::{ClientIdentity, IdentityKind, ProxyKind, ProxyRecord};
use crate::gate::Gate;

/// The connected clients, but those of this process: they are never asked about.
#[derive(Default)]
pub(crate) struct Clients(PiMutex<HashMap<u64, Known>>);

/// A connected client.
#[derive(Clone)]
pub(crate) struct Known {
    identity: Identity,
    pub(crate) kind: ProxyKind,
}

impl Known {
    pub(crate) fn new(identity: Identity, kind: ProxyKind) -> Self {
        Self { identity, kind }
    }

    /// Its action, and the operation that connects it.
    const fn what(&self) -> (Action, &'static [u8]) {
        match self.kind {
            ProxyKind::PushSupplier => (Action::Consume, b"connect_push_consumer"),
            ProxyKind::PullSupplier => (Action::Consume, b"connect_pull_consumer"),
            ProxyKind::PushConsumer => (Action::Supply, b"connect_push_supplier"),
            ProxyKind::PullConsumer => (Action::Supply, b"connect_pull_supplier"),
        }
    }

    /// Whether it may stay; its events are pairs of source and type, `None` in a channel without types.
    pub(crate) fn may_stay(&self, gate: &Gate, events: Option<Vec<(i32, i32)>>) -> bool {
        match events {
            None => gate.may_stay(&self.identity, self.what(), once((0, 0))),
            Some(events) => {
                let action = (self.what().0, &b""[..]);
                gate.may_stay(&self.identity, action, events.into_iter())
            }
        }
    }
}

impl Clients {
    /// The clients of a store.
    pub(crate) fn of(records: &[ProxyRecord]) -> Self {
        let known = |record: &ProxyRecord| {
            let identity = from_record(&record.identity)?;
            Some((record.number, Known::new(identity, record.kind)))
        };
        Self(PiMutex::new(records.iter().filter_map(known).collect()))
    }

    /// Notes who connects, or that nobody is left. Returns who was connected.
    pub(crate) fn set(&self, number: u64, known: Option<Known>) -> Option<Known> {
        let mut clients = self.0.lock("event.clients");
        match known {
            Some(known) => clients.insert(number, known),
            None => clients.remove(&number),
        }
    }

    pub(crate) fn all(&self) -> Vec<(u64, Known)> {
        let clients = self.0.lock("event.clients");
        let all = clients.iter();
        all.map(|(number, known)| (*number, known.clone()))
            .collect()
    }

    pub(crate) fn clear(&self) {
        self.0.lock("event.clients").clear();
    }

    /// Checks whether a client of a channel without types may connect.
    ///
    /// # Errors
    /// NO_PERMISSION.
    pub(crate) fn check(&self, gate: &Gate, number: u64) -> Result<(), SystemException> {
        self.check_as(gate, number, Known::what, once((0, 0)))
    }

    /// Checks whether a client may consume or supply these events: pairs of source and type.
    ///
    /// # Errors
    /// NO_PERMISSION.
    pub(crate) fn check_events(
        &self,
        gate: &Gate,
        number: u64,
        events: impl Iterator<Item = (i32, i32)>,
    ) -> Result<(), SystemException> {
        let what = |known: &Known| (known.what().0, &b""[..]);
        self.check_as(gate, number, what, events)
    }

    fn check_as(
        &self,
        gate: &Gate,
        number: u64,
        what: impl FnOnce(&Known) -> (Action, &'static [u8]),
        events: impl Iterator<Item = (i32, i32)>,
    ) -> Result<(), SystemException> {
        let known = self.0.lock("event.clients").get(&number).cloned();
        known.map_or(Ok(()), |known| {
            gate.check_client(&known.identity, what(&known), events)
        })
    }
}

/// A client as its record has it; `None` is this process.
pub(crate) fn to_record(client: Option<&Identity>) -> ClientIdentity {
    let Some(identity) = client else {
        return of_kind(IdentityKind::Own);
    };
    let mut record = ClientIdentity {
        is_this_host: identity.is_this_host,
        certificate: identity.name.as_deref().unwrap_or_default().to_owned(),
        ..of_kind(IdentityKind::Unknown)
    };
    match identity.caller {
        Caller::Tcp(address) => {
            record.kind = IdentityKind::Address;
            record.address = address.to_string();
        }
        Caller::Unix(process) | Caller::SharedMemory(process) => {
            record.kind = IdentityKind::User;
            record.user = process.uid;
        }
        _ => {}
    }
    record
}

fn from_record(record: &ClientIdentity) -> Option<Identity> {
    let caller = match record.kind {
        IdentityKind::Own => return None,
        IdentityKind::Address => record.address.parse().map_or(Caller::Unknown, Caller::Tcp),
        IdentityKind::User => Caller::Unix(LocalProcess {
            uid: record.user,
            pid: 0,
        }),
        IdentityKind::Unknown => Caller::Unknown,
    };
    let name = Some(record.certificate.as_str()).filter(|name| !name.is_empty());
    Some(Identity {
        caller,
        name: name.map(Into::into),
        is_this_host: record.is_this_host,
    })
}

const fn of_kind(kind: IdentityKind) -> ClientIdentity {
    ClientIdentity {
        kind,
        address: String::new(),
        user: 0,
        is_this_host: false,
        certificate: String::new(),
    }
}

/// Reads an encapsulated record, also of an earlier version: its client is then the one to whose address it sends.
pub(crate) fn record(octets: &[u8]) -> Option<ProxyRecord> {
    crate::store::encapsulated(octets).or_else(|| earlier_record(octets))
}

fn earlier_record(octets: &[u8]) -> Option<ProxyRecord> {
    let outer = Reader::new(octets, ByteOrder::NATIVE);
    let mut r = outer.into_encapsulation().ok()?;
    let number = u64::parse(&mut r).ok()?;
    let kind = ProxyKind::parse(&mut r).ok()?;
    let client = String::parse(&mut r).ok()?;
    let qos = Vec::parse(&mut r).ok()?;
    let is_suspended = bool::parse(&mut r).ok()?;
    let identity = crate::restore::identity_of(&client);
    (r.remaining() == 0).then_some(ProxyRecord {
        number,
        kind,
        client,
        qos,
        is_suspended,
        identity,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use deckwatch_cdr::{Write as _, Writer};

    #[test]
    fn identity_of_a_record_is_that_of_the_client() {
        let at = Caller::Tcp("192.0.2.1:7".parse().expect("an address"));
        let process = LocalProcess { uid: 5, pid: 0 };
        for (caller, name) in [
            (at, Some("nav.ship")),
            (Caller::Unix(process), None),
            (Caller::Unknown, None),
        ] {
            let identity = Identity {
                caller,
                name: name.map(Into::into),
                is_this_host: name.is_some(),
            };
            let record = to_record(Some(&identity));
            assert_eq!(from_record(&record), Some(identity));
        }
        assert_eq!(from_record(&to_record(None)), None);
    }

    #[test]
    fn record_of_an_earlier_version_is_of_the_client_that_its_reference_leads_to() {
        let earlier = |client: &str| {
            let mut octets = Vec::new();
            let mut w = Writer::new(&mut octets);
            w.write_u8(ByteOrder::NATIVE.flag()).expect("room");
            7_u64.write(&mut w).expect("room");
            ProxyKind::PushSupplier.write(&mut w).expect("room");
            client.to_owned().write(&mut w).expect("room");
            vec![1_u8, 2].write(&mut w).expect("room");
            true.write(&mut w).expect("room");
            let record = record(&octets).expect("a record");
            assert_eq!((record.number, record.is_suspended), (7, true));
            let again = crate::store::encapsulate(&record).expect("room");
            assert_eq!(super::record(&again).as_ref(), Some(&record));
            from_record(&record.identity)
        };
        let orb = deckwatch_orb::Orb::builder().build().expect("an ORB");
        let ior = |host: &str| {
            let object = orb.string_to_object(&format!("corbaloc::{host}:9/x"));
            orb.object_to_string(&object.expect("sound").expect("not nil"))
        };
        let ip = |identity: Option<Identity>| match identity.expect("one to be asked about").caller
        {
            Caller::Tcp(address) => Some(address.ip().to_string()),
            _ => None,
        };
        let far = ior("192.0.2.1");
        assert_eq!(ip(earlier(&far)).as_deref(), Some("192.0.2.1"));
        let near = ior("127.0.0.1");
        let host = earlier(&format!("host {near}"));
        assert_eq!(ip(host).as_deref(), Some("127.0.0.1"));
        assert_eq!(ip(earlier(&near)), None, "a stranger that says so");
        assert_eq!(earlier(""), None, "it is sent nothing");
    }
}
