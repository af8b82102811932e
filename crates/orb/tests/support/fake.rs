//! Servers that a test implements octet by octet.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use deckwatch_orb::{ObjectRef, Orb};

/// A hand-written server for one connection, called with GIOP 1.2.
pub fn fake_server(serve: impl FnOnce(TcpStream) + Send + 'static) -> (Orb, ObjectRef) {
    fake_listener("1.2", move |listener| serve(listener.accept().unwrap().0))
}

/// A hand-written server that accepts as many connections as it wants, called with this GIOP version.
pub fn fake_listener(
    version: &str,
    serve: impl FnOnce(TcpListener) + Send + 'static,
) -> (Orb, ObjectRef) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || serve(listener));
    let orb = Orb::builder().build().unwrap();
    let url = format!("corbaloc:iiop:{version}@{address}/Fake");
    let reference = orb.string_to_object(&url).unwrap().unwrap();
    (orb, reference)
}

/// Reads the next message, without its header. Returns `None` if the client has closed the connection.
pub fn try_read_message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    read_kind(stream).map(|(_, body)| body)
}

/// Reads the next message: its message type, and the octets after the header.
pub fn read_kind(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut header = [0; 12];
    stream.read_exact(&mut header).ok()?;
    let size = u32::from_le_bytes(header[8..].try_into().unwrap());
    let mut body = vec![0; size as usize];
    stream.read_exact(&mut body).ok()?;
    Some((header[7], body))
}

pub fn read_request(stream: &mut TcpStream) -> Vec<u8> {
    try_read_message(stream).unwrap()
}

/// Replies to a GIOP 1.2 request with this status and body.
pub fn reply(stream: &mut TcpStream, request: &[u8], status: u8, body: &[u8]) {
    let size = u32::try_from(12 + body.len()).unwrap();
    let message = [
        b"GIOP\x01\x02\x01\x01",
        &size.to_le_bytes()[..],
        &request[..4],
        &[status, 0, 0, 0, 0, 0, 0, 0],
        body,
    ];
    stream.write_all(&message.concat()).unwrap();
}

/// A reference as the body of a LOCATION_FORWARD reply, in little-endian order.
pub fn ior_octets(reference: &ObjectRef) -> Vec<u8> {
    let mut body = Vec::new();
    let mut writer =
        deckwatch_cdr::Writer::new(&mut body).with_order(deckwatch_cdr::ByteOrder::Little);
    deckwatch_cdr::Write::write(reference.ior(), &mut writer).unwrap();
    body
}
