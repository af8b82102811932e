//! Two-way 64-octet calls beside raw TCP ping-pong of the same number of octets; median of the round trips in nanoseconds.
//!
//! `ping serve` and `ping raw-serve` print where they are; `ping call REFERENCE COUNT` and `ping raw-call ADDRESS COUNT`
//! measure. Whoever compares them pins both ends to one processor and alternates the two.

mod mirror;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use deckwatch_orb::{Orb, Servant};
use mirror::{EchoRef, EchoSkeleton, Mirror};

/// What a call of `echo_octets` with 64 octets, and its reply, take on the wire.
const REQUEST_SIZE: usize = 140;
const REPLY_SIZE: usize = 92;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn serve(orb: &Orb) -> Outcome {
    let root = orb.root_poa()?;
    root.the_poa_manager().activate()?;
    let servant: Arc<dyn Servant> = Arc::new(EchoSkeleton::new(Mirror::default()));
    println!("{}", root.servant_to_reference(&servant)?);
    orb.seal();
    orb.run();
    Ok(())
}

fn raw_serve() -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    loop {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut request = [0; REQUEST_SIZE];
        while stream.read_exact(&mut request).is_ok() {
            stream.write_all(&request[..REPLY_SIZE])?;
        }
    }
}

fn measure(count: usize, mut one: impl FnMut() -> Outcome) -> Outcome {
    for _ in 0..count / 10 {
        one()?;
    }
    let mut round_trips_ns = Vec::with_capacity(count);
    for _ in 0..count {
        let sent = Instant::now();
        one()?;
        round_trips_ns.push(sent.elapsed().as_nanos());
    }
    round_trips_ns.sort_unstable();
    println!(
        "{} {}",
        round_trips_ns[count / 2],
        round_trips_ns[count * 99 / 100]
    );
    Ok(())
}

fn call(orb: &Orb, reference: &str, count: &str) -> Outcome {
    let object = orb.string_to_object(reference)?.ok_or("a nil reference")?;
    let echo = EchoRef::unchecked_narrow(object);
    measure(count.parse()?, || {
        echo.echo_octets(&[7; 64])?;
        Ok(())
    })
}

fn raw_call(address: &str, count: &str) -> Outcome {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut reply = [0; REPLY_SIZE];
    measure(count.parse()?, || {
        stream.write_all(&[7; REQUEST_SIZE])?;
        Ok(stream.read_exact(&mut reply)?)
    })
}

fn main() -> Outcome {
    let mut arguments: Vec<String> = std::env::args().collect();
    let orb = Orb::init(&mut arguments)?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "serve"] => serve(&orb),
        [_, "raw-serve"] => raw_serve(),
        [_, "call", reference, count] => call(&orb, reference, count),
        [_, "raw-call", address, count] => raw_call(address, count),
        _ => Err("write `ping serve`, `ping raw-serve`, `ping call REFERENCE COUNT` or `ping raw-call ADDRESS COUNT`".into()),
    }
}
