//! Replies with any one octet wrong, whole and in fragments: each call ends with results or an exception, and the ORB
//! can still call.

use std::io::{Read, Write as _};
use std::net::{TcpListener, TcpStream};

use crate::support::fake::fake_listener;
use crate::support::{Server, call, client_of};
use deckwatch_cdr::{DecodeError, Parse, Reader, Write};
use deckwatch_giop::{
    ByteOrder, Codec, Format, Frame, Message, Parts, ReplyHeader, ReplyStatus, SystemException,
    Version,
};
use deckwatch_orb::{Completion, Counter, ObjectRef, SystemExceptionKind as Kind};

const FRAGMENT_SIZE: usize = 32;
const TEXTS: [&str; 3] = ["fair", "", "winds"];

/// A reply of the server.
#[derive(Clone, Copy)]
struct Answer {
    status: ReplyStatus,
    is_divided: bool,
    order: ByteOrder,
    /// Position and value of the wrong octet.
    wrong: Option<(usize, u8)>,
}

impl Answer {
    fn octets(self, id: u32, version: Version) -> Vec<u8> {
        let format = Format {
            codec: Codec::DEFAULT.with_version(version),
            order: self.order,
            fragment_size: self.is_divided.then_some(FRAGMENT_SIZE),
            ..Format::default()
        };
        let (status, contexts) = (self.status, &[][..]);
        let header = ReplyHeader {
            id,
            status,
            contexts,
        };
        let mut message = Vec::new();
        let open = header.begin(&mut message, format).unwrap();
        let mut w = open.writer(&mut message);
        match status {
            ReplyStatus::SystemException => {
                SystemException::new(Kind::NoPermission, 7, Completion::No)
                    .write(&mut w)
                    .unwrap();
            }
            _ => {
                TEXTS.map(str::to_owned).to_vec().write(&mut w).unwrap();
                0.5_f64.write(&mut w).unwrap();
            }
        }
        open.finish(&mut message).unwrap();
        let size = if self.is_divided {
            FRAGMENT_SIZE
        } else {
            usize::MAX
        };
        let parts = Parts::of(&message, size).unwrap();
        let mut octets: Vec<u8> = parts
            .flat_map(|part| [part.header(), part.data].concat())
            .collect();
        if let Some((at, flip)) = self.wrong
            && let Some(octet) = octets.get_mut(at)
        {
            *octet ^= flip;
        }
        octets
    }
}

/// The id and GIOP version of the next request. Returns `None` if the client has closed the connection.
fn next_request(stream: &mut TcpStream) -> Option<(u32, Version)> {
    let mut octets = vec![0; 12];
    stream.read_exact(&mut octets).ok()?;
    if let Ok(Frame::Need(missing)) = Frame::parse(&octets, usize::MAX) {
        octets.resize(12 + missing, 0);
        stream.read_exact(&mut octets[12..]).ok()?;
    }
    match Message::parse(&octets) {
        Ok(Message::Request(request)) => Some((request.id, request.version)),
        _ => None,
    }
}

/// Replies to requests. Closes the connection after a wrong reply, so that a client that expects more data does not
/// wait.
fn answer_all(listener: &TcpListener, mut answers: impl Iterator<Item = Answer>) {
    loop {
        let (mut stream, _) = listener.accept().unwrap();
        while let Some((id, version)) = next_request(&mut stream) {
            let Some(answer) = answers.next() else {
                return;
            };
            let _ = stream.write_all(&answer.octets(id, version)); // The client may have closed.
            if answer.wrong.is_some() {
                break;
            }
        }
    }
}

fn results(r: &mut Reader<'_>) -> Result<(Vec<String>, f64), DecodeError> {
    Ok((Parse::parse(r)?, Parse::parse(r)?))
}

fn ask(reference: &ObjectRef) -> Result<(Vec<String>, f64), SystemException> {
    reference.invoke(
        "ask",
        |_| Ok(()),
        results,
        |_, _| Ok(None::<SystemException>),
    )
}

fn forms() -> impl Iterator<Item = Answer> {
    [ReplyStatus::NoException, ReplyStatus::SystemException]
        .into_iter()
        .flat_map(|status| {
            [ByteOrder::Big, ByteOrder::Little]
                .into_iter()
                .flat_map(move |order| {
                    [false, true].map(|is_divided| Answer {
                        status,
                        is_divided,
                        order,
                        wrong: None,
                    })
                })
        })
}

#[test]
fn replies_whole_and_in_fragments_of_either_order_mean_the_same() {
    for version in ["1.1", "1.2"] {
        let (orb, reference) = fake_listener(version, |listener| answer_all(&listener, forms()));
        for answer in forms() {
            let outcome = ask(&reference);
            match answer.status {
                ReplyStatus::NoException => {
                    let texts = TEXTS.map(str::to_owned).to_vec();
                    assert_eq!(outcome, Ok((texts, 0.5)), "{version}");
                }
                _ => assert_eq!(outcome.unwrap_err().minor, 7, "{version}"),
            }
        }
        orb.shutdown(true).unwrap();
    }
}

#[test]
fn every_single_octet_of_a_reply_may_be_wrong() {
    const OCTETS: usize = 180;
    let server = Server::start();
    let (good, bench) = client_of(&server);
    for version in ["1.1", "1.2"] {
        for form in forms() {
            let wrong = (0..OCTETS).flat_map(|at| [1, 0x80, 0xFF].map(|flip| (at, flip)));
            let answers = wrong.map(move |wrong| Answer {
                wrong: Some(wrong),
                ..form
            });
            let calls = answers.clone().count();
            // If the wrong octet makes the status a forward or the message a CloseConnection, the client tries again.
            // So there are more replies than calls.
            let answers = answers.cycle();
            let (orb, reference) =
                fake_listener(version, move |listener| answer_all(&listener, answers));
            let failed = (0..calls).filter(|_| ask(&reference).is_err()).count();
            assert_ne!(failed, 0);
            assert_ne!(orb.counters().read(Counter::MalformedReplies), 0);
            orb.shutdown(true).unwrap();
        }
    }
    assert_eq!(call(&bench, "ping"), Ok(()));
    good.shutdown(true).unwrap();
}

#[test]
fn fragments_of_a_reply_that_lie_end_the_call_and_its_connection() {
    let lie = |version: Version, octets: &[u8]| -> Vec<u8> {
        let minor = version.minor();
        let mut lie = vec![b'G', b'I', b'O', b'P', 1, minor, 1, 7];
        lie.extend((octets.len() as u32).to_le_bytes());
        lie.extend(octets);
        lie
    };
    for version in [Version::V1_1, Version::V1_2] {
        // In place of a reply: a fragment without data, and fragments for other requests.
        for octets in [&[][..], &[0xFF; 4], &[0xFF; 400]] {
            let lie = lie(version, octets);
            let text = version.to_string();
            let (orb, reference) = fake_listener(&text, move |listener| {
                let (mut stream, _) = listener.accept().unwrap();
                next_request(&mut stream).unwrap();
                stream.write_all(&lie).unwrap();
                let _ = stream.read(&mut [0; 64]); // Until the client closes.
            });
            let raised = ask(&reference).unwrap_err();
            assert_eq!(
                (raised.kind, raised.completed),
                (Kind::CommFailure, Completion::Maybe),
                "{version}"
            );
            orb.shutdown(true).unwrap();
        }
    }
}
