//! The message trace lists the messages sent and received, and why a call failed.

use std::io::{self, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::fake::read_request;
use crate::support::{Server, call, note};
use deckwatch_orb::{ObjectRef, Orb};

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Page {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The lines, with placeholders for what differs from run to run: times, ports and keys.
    fn lines(&self) -> Vec<String> {
        self.text().lines().map(without_chance).collect()
    }
}

fn without_chance(line: &str) -> String {
    let line = match line.split_once(' ') {
        Some((time, rest)) if time.parse::<f64>().is_ok() => format!("T {rest}"),
        _ => line.to_owned(),
    };
    let words = line.split(' ').map(|word| {
        if word.contains("127.0.0.1:") {
            let end = word.find(|c: char| "),:".contains(c) && word.ends_with(c));
            let tail = end.map_or("", |_| &word[word.len() - 1..]);
            return format!("PEER{tail}");
        }
        word.to_owned()
    });
    let words: Vec<_> = words.collect();
    let mut out: Vec<String> = Vec::new();
    for word in words {
        let unit = matches!(word.trim_end_matches([',', '.']), "ns" | "us" | "ms" | "s");
        match out.last_mut() {
            Some(last) if unit && last.parse::<f64>().is_ok() => *last = "SPAN".to_owned(),
            _ => out.push(word),
        }
    }
    out.join(" ")
}

fn traced() -> (Orb, Page) {
    let page = Page::default();
    let orb = Orb::builder().trace(page.clone()).build().unwrap();
    (orb, page)
}

fn at(orb: &Orb, address: std::net::SocketAddr) -> ObjectRef {
    let url = format!("corbaloc:iiop:1.2@{address}/Bench");
    orb.string_to_object(&url).unwrap().unwrap()
}

/// The client's trace of a call to a server that replies with these octets and closes the connection.
fn told_of_reply(octets: &'static [u8]) -> Page {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        read_request(&mut stream);
        stream.write_all(octets).unwrap();
    });
    let (orb, page) = traced();
    call(&at(&orb, address), "ping").unwrap_err();
    serving.join().unwrap();
    orb.shutdown(true).expect("it ends");
    page
}

fn paragraph(page: &Page) -> Vec<String> {
    let lines = page.lines();
    let begin = lines
        .iter()
        .position(|line| line.contains("raised by this ORB"));
    let begin = begin.unwrap_or_else(|| panic!("no paragraph in {lines:#?}"));
    let more = lines[begin + 1..]
        .iter()
        .take_while(|line| line.starts_with("    "));
    std::iter::once(&lines[begin])
        .chain(more)
        .cloned()
        .collect()
}

#[test]
fn both_ends_tell_each_message_in_a_line() {
    let theirs = Page::default();
    let server = Server::shaped(|builder| builder.trace(theirs.clone()));
    let own = server.orb.string_to_object(&server.text).unwrap().unwrap();
    server.orb.register_plain_key(b"Bench", &own).unwrap();
    let (orb, ours) = traced();
    let bench = at(&orb, server.address());
    call(&bench, "ping").unwrap();
    call(&bench, "nonsense").unwrap_err();
    note(&bench, 1).unwrap();
    server.orb.shutdown(true).expect("it ends");
    orb.shutdown(true).expect("it ends");
    let refused = "BAD_OPERATION, not completed: the object has no such operation; check that both sides were built from \
                   the same IDL";
    assert_eq!(
        ours.lines()[..7],
        [
            "T #1 connected to PEER in SPAN",
            "T #1 -> PEER GIOP 1.2 Request 1 \"ping\" of \"Bench\", wants a reply, 52 octets",
            "T #1 <- PEER GIOP 1.2 Reply 1 to \"ping\": results, after SPAN 24 octets",
            "T #1 -> PEER GIOP 1.2 Request 2 \"nonsense\" of \"Bench\", wants a reply, 56 octets",
            &format!(
                "T #1 <- PEER GIOP 1.2 Reply 2 to \"nonsense\": {refused}, after SPAN 72 octets"
            ),
            "T #2 connected to PEER in SPAN",
            "T #2 -> PEER GIOP 1.2 Request 1 \"note\" of \"Bench\", wants no reply, 60 octets",
        ],
        "{}",
        ours.text()
    );
    let theirs = theirs.lines();
    assert_eq!(theirs[0], "T #1 accepted from PEER");
    assert_eq!(
        theirs[1],
        "T #1 <- PEER GIOP 1.2 Request 1 \"ping\" of \"Bench\", wants a reply, 52 octets"
    );
    assert!(
        theirs
            .iter()
            .any(|line| line.contains("-> PEER GIOP 1.0 CloseConnection"))
    );
}

#[test]
fn a_server_that_is_not_there_is_told_with_what_was_tried_and_what_to_do() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let (orb, page) = traced();
    let url = format!("corbaloc:iiop:1.2@{address},iiop:1.2@no.such.host.invalid:9/Gone");
    let gone = orb.string_to_object(&url).unwrap().unwrap();
    call(&gone, "ping").unwrap_err();
    orb.shutdown(true).expect("it ends");
    let told = paragraph(&page);
    assert!(
        told[0].starts_with(
            "T TRANSIENT raised by this ORB for \"ping\" of \"Gone\", not completed: "
        ),
        "{told:#?}"
    );
    assert_eq!(told[1], "    tried PEER for SPAN Nobody listens there.");
    assert!(
        told[2].starts_with("    tried no.such.host.invalid:9 for SPAN"),
        "{told:#?}"
    );
    assert!(told[3].starts_with("    What to do: check "), "{told:#?}");
}

#[test]
fn a_connection_that_breaks_within_a_reply_is_told_so() {
    let page = told_of_reply(b"GIOP\x01\x02\x01\x01\x0c\0\0\0ab");
    assert_eq!(
        paragraph(&page),
        [
            "T COMM_FAILURE raised by this ORB for \"ping\" of \"Bench\", maybe completed: the connection broke before the \
             whole reply had come.",
            "    asked PEER over #1: the connection broke before the whole reply had come (its reply had begun to arrive).",
            "    What to do: look whether the server has died; whether it served the request is not known.",
        ],
        "{}",
        page.text()
    );
}

#[test]
fn what_cannot_be_read_is_told_on_either_side() {
    let theirs = Page::default();
    let server = Server::shaped(|builder| builder.trace(theirs.clone()));
    let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut answer).unwrap();
    server.orb.shutdown(true).unwrap();
    let expected = "T #1 what came from PEER cannot be read: the message does not begin with GIOP";
    assert_eq!(theirs.lines()[1], expected, "{}", theirs.text());

    let page = told_of_reply(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert!(
        page.lines().contains(&expected.to_owned()),
        "{}",
        page.text()
    );
    let told = paragraph(&page);
    assert_eq!(
        told.last().unwrap(),
        "    What to do: check that the port belongs to a CORBA server."
    );
}

#[test]
fn what_a_server_raises_and_what_ends_well_is_no_paragraph() {
    let server = Server::start();
    let (orb, page) = traced();
    let bench = orb.string_to_object(&server.text).unwrap().unwrap();
    call(&bench, "ping").unwrap();
    call(&bench, "fail").unwrap_err();
    orb.shutdown(true).expect("it ends");
    assert!(
        !page.text().contains("raised by this ORB"),
        "{}",
        page.text()
    );
}

#[test]
fn a_timeout_is_told_with_the_server_that_did_not_answer() {
    let server = Server::start();
    let (orb, page) = traced();
    let bench = orb.string_to_object(&server.text).unwrap().unwrap();
    let hurried = bench.with_round_trip_timeout(Some(Duration::from_millis(20)));
    call(&hurried, "meet").unwrap_err();
    server.bench.gate.open();
    orb.shutdown(true).expect("it ends");
    let told = paragraph(&page);
    assert!(
        told[0].contains("TIMEOUT raised by this ORB for \"meet\""),
        "{told:#?}"
    );
    assert!(
        told[1].contains("asked PEER over #1: the time allowed had passed"),
        "{told:#?}"
    );
}

#[test]
fn a_place_that_cannot_be_written_is_refused_with_what_to_write_instead() {
    let mut arguments = ["-ORBTrace", "/no/such/folder/trace"]
        .map(str::to_owned)
        .to_vec();
    let refused = Orb::init(&mut arguments).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "-ORBTrace cannot be '/no/such/folder/trace': write stderr, or a file that can be written."
    );
}
