//! What is called: octets of a size, or a sequence of the papers' ComplexStruct that takes as many.

use deckwatch_cdr::{BoundedString, Char, EncodeError, Write, Writer};
use deckwatch_giop::ior::IiopProfile;
use deckwatch_giop::{Format, Ior, ReplyHeader, ReplyStatus, RequestHeader, Response, Target};
use serde::{Deserialize, Serialize};

use super::error::BenchError;
use super::idl::deckwatch::ComplexStruct;

/// What travels both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CaseKind {
    /// `sequence<octet>`.
    Octets,
    /// `sequence<ComplexStruct>`, of figure 7 of the submarine paper; each takes 40 octets.
    Structs,
}

/// Octets of one [`STRUCT`] on the wire, in a sequence.
pub(crate) const STRUCT_SIZE: usize = 40;

/// The element that is sent, as often as the size asks for.
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

/// Seven characters and their null bring an element to a multiple of eight octets.
const NAME: &str = "contact";

/// One kind at one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// What travels.
    pub kind: CaseKind,
    /// Octets of the payload each way, length field apart; of structs, the nearest whole number of them below.
    pub size: usize,
}

impl Case {
    /// What is counted: octets or structs.
    #[must_use]
    pub fn count(self) -> usize {
        match self.kind {
            CaseKind::Octets => self.size,
            CaseKind::Structs => (self.size / STRUCT_SIZE).max(1),
        }
    }

    /// Its name in tables and commands.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self.kind {
            CaseKind::Octets => "octets",
            CaseKind::Structs => "structs",
        }
    }

    fn operation(self) -> &'static str {
        match self.kind {
            CaseKind::Octets => "echo_octets",
            CaseKind::Structs => "echo_complex_sequence",
        }
    }

    fn write(self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self.kind {
            CaseKind::Octets => vec![0_u8; self.count()].write(w),
            CaseKind::Structs => vec![element(); self.count()].write(w),
        }
    }

    /// Octets of our request and of our reply on the wire, GIOP headers included: what raw TCP carries beside them.
    ///
    /// # Errors
    /// [`BenchError::Reference`] where `reference` is none of our own.
    pub fn message_sizes(self, reference: &str) -> Result<(usize, usize), BenchError> {
        let write = |w: &mut Writer<'_>| self.write(w);
        message_sizes(reference, self.operation(), write, write)
    }
}

/// Octets on the wire of our request of `operation` with the arguments that `there` writes and of our reply with what `back` writes.
///
/// # Errors
/// [`BenchError::Reference`] where `reference` is none of our own.
pub(crate) fn message_sizes(
    reference: &str,
    operation: &str,
    there: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    back: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Result<(usize, usize), BenchError> {
    let unusable = |reason: &dyn std::fmt::Display| BenchError::Reference(reason.to_string());
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

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use deckwatch_orb::{Orb, OrbBuilder, Servant};

    use super::super::idl::deckwatch::{EchoRef, EchoSkeleton};
    use super::super::mirror::Mirror;
    use super::*;

    /// Carries one connection on to `address`, and counts what goes each way.
    fn relay(address: SocketAddr, counts: &Arc<[AtomicUsize; 2]>) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its number").port();
        let counts = Arc::clone(counts);
        std::thread::spawn(move || {
            let near = listener.accept().expect("a client").0;
            let far = TcpStream::connect(address).expect("the server");
            let clones = (near.try_clone(), far.try_clone());
            let (near_back, far_back) = (clones.0.expect("same"), clones.1.expect("same"));
            let back = Arc::clone(&counts);
            std::thread::spawn(move || carry(far_back, near_back, &back[1]));
            carry(near, far, &counts[0]);
        });
        port
    }

    fn carry(mut from: TcpStream, mut to: TcpStream, count: &AtomicUsize) {
        let mut octets = [0; 4_096];
        while let Ok(got @ 1..) = from.read(&mut octets) {
            // Counted before it is passed on: who has the reply finds all of it counted.
            count.fetch_add(got, Ordering::SeqCst);
            if to.write_all(&octets[..got]).is_err() {
                return;
            }
        }
    }

    #[test]
    fn raw_messages_have_the_sizes_that_ours_have_on_the_wire() {
        let server = Orb::builder()
            .listen("127.0.0.1:0")
            .and_then(OrbBuilder::build)
            .expect("a server");
        let delay = std::time::Duration::ZERO;
        let servant: Arc<dyn Servant> = Arc::new(EchoSkeleton::new(Mirror { delay }));
        let root = server.root_poa().expect("a root adapter");
        let reference = root.servant_to_reference(&servant).expect("a reference");
        root.the_poa_manager().activate().expect("active");
        let text = reference.to_string();
        let ior: Ior = text.parse().expect("our own");
        let mut profile: IiopProfile = ior.iiop_profiles().flatten().next().expect("IIOP");
        let counts = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        profile.port = relay(SocketAddr::from(([127, 0, 0, 1], profile.port)), &counts);
        profile.host = "127.0.0.1".to_owned();
        let through = Ior::with_iiop("", &profile).expect("fits").to_string();
        let client = Orb::builder().build().expect("a client");
        let object = client.string_to_object(&through).expect("sound");
        let echo = EchoRef::unchecked_narrow(object.expect("not nil"));
        // The first call says more than the others: code sets.
        echo.echo_octets(&[]).expect("echoed");
        let counted = || [0, 1].map(|way: usize| counts[way].load(Ordering::SeqCst));
        for size in [64, 65, 71, 1_024, 65_536] {
            for kind in [CaseKind::Octets, CaseKind::Structs] {
                let case = Case { kind, size };
                let before = counted();
                match kind {
                    CaseKind::Octets => drop(echo.echo_octets(&vec![1; case.count()])),
                    CaseKind::Structs => {
                        drop(echo.echo_complex_sequence(&vec![element(); case.count()]));
                    }
                }
                let after = counted();
                let sizes = case.message_sizes(&text).expect("our own");
                assert_eq!(
                    (after[0] - before[0], after[1] - before[1]),
                    sizes,
                    "{case:?}"
                );
            }
        }
        server.shutdown(true).expect("it ends");
    }

    #[test]
    fn structs_take_the_octets_that_are_said() {
        let size = |count: usize| {
            let mut buffer = Vec::new();
            vec![element(); count]
                .write(&mut Writer::new(&mut buffer))
                .expect("in bounds");
            buffer.len()
        };
        assert_eq!(size(11) - size(10), STRUCT_SIZE);
        let case = Case {
            kind: CaseKind::Structs,
            size: 65_536,
        };
        assert_eq!(case.count(), 1_638);
    }
}
