//! A fan-out over plain TCP: the baseline of event channels. A relay reads each message of a supplier and writes it to
//! all consumers, one write for each connection. Consumers at one endpoint share a connection, as in a channel: one
//! write has a message for each of them.
//!
//! A connection begins with five numbers of four octets each, in this machine's byte order:
//! 1. [`SUPPLIER`] or [`CONSUMER`];
//! 2. octets of a message;
//! 3. the SCHED_FIFO priority of the relaying thread, or 0 for the relay's;
//! 4. the SO_SNDBUF that the relay requests, or 0 for the kernel's choice;
//! 5. the consumers that share this connection.
//!
//! A supplier gets the consumers that have connected since the supplier before it.

use std::io::{BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use super::commands::{Command, Samples};
use super::fan::{CONSUMERS_MAX, Fan, Gate};
use super::raw::request_send_buffer;
use super::{EndPlan, answer_questions, greet, place, system, words};
use crate::laboratory::error::LaboratoryError;
use crate::limits::BENCH_OCTETS_MAX;

const SUPPLIER: u32 = 0;
const CONSUMER: u32 = 1;

/// Relays until the standard input ends.
pub(super) fn serve(plan: &EndPlan) -> Result<(), LaboratoryError> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(system("Cannot listen"))?;
    let address = listener.local_addr().map_err(system("Cannot listen"))?;
    let fifo = plan.fifo;
    let accept = move || {
        place(fifo);
        if greet(&address.to_string()).is_err() {
            return;
        }
        let mut consumers = Vec::new();
        for stream in listener.incoming().flatten() {
            // If a connection fails, its end finds it closed and reports that.
            let _ = take_connection(stream, fifo, &mut consumers);
        }
    };
    std::thread::Builder::new()
        .name("relay-accept".to_owned())
        .spawn(accept)
        .map_err(system("A thread cannot be started"))?;
    answer_questions(None)
}

/// The consumers of one connection.
struct Consumers {
    stream: TcpStream,
    count: usize,
}

fn take_connection(
    mut stream: TcpStream,
    fifo: Option<u8>,
    consumers: &mut Vec<Consumers>,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut header = [0; 20];
    stream.read_exact(&mut header)?;
    let (numbers, _) = header.as_chunks();
    let [role, size, priority, buffer, count] =
        [0, 1, 2, 3, 4].map(|at| u32::from_ne_bytes(numbers[at]));
    request_send_buffer(&stream, buffer)?;
    if role == CONSUMER {
        let count = count.clamp(1, CONSUMERS_MAX) as usize;
        consumers.push(Consumers { stream, count });
        return Ok(());
    }
    let consumers = std::mem::take(consumers);
    let size = (size as usize).min(BENCH_OCTETS_MAX);
    let relay = move || {
        place(match u8::try_from(priority) {
            Ok(priority @ 1..) => Some(priority),
            _ => fifo,
        });
        // An error of a connection means that the ends have ended; closing all tells the others.
        let _ = relay(stream, consumers, size);
    };
    let thread = std::thread::Builder::new().name("relay".to_owned());
    thread.spawn(relay).map(drop)
}

fn relay(
    mut supplier: TcpStream,
    mut consumers: Vec<Consumers>,
    size: usize,
) -> std::io::Result<()> {
    let most = consumers.iter().map(|one| one.count).max().unwrap_or(1);
    let mut messages = vec![0; size * most];
    loop {
        let (message, copies) = messages.split_at_mut(size);
        supplier.read_exact(message)?;
        for copy in copies.chunks_exact_mut(size.max(1)) {
            copy.copy_from_slice(message);
        }
        for Consumers { stream, count } in &mut consumers {
            stream.write_all(&messages[..size * *count])?;
        }
    }
}

fn connect(
    address: &str,
    plan: &EndPlan,
    [role, size, count]: [u32; 3],
    [near, far]: [u32; 2],
) -> Result<TcpStream, String> {
    let mut stream = TcpStream::connect(address).map_err(words)?;
    stream.set_nodelay(true).map_err(words)?;
    request_send_buffer(&stream, near).map_err(words)?;
    let priority = u32::from(plan.fifo.unwrap_or(0));
    let octets: Vec<u8> = [role, size, priority, far, count]
        .iter()
        .flat_map(|number| number.to_ne_bytes())
        .collect();
    stream.write_all(&octets).map_err(words)?;
    Ok(stream)
}

/// Runs one command of [`Fan::of`] with the SO_SNDBUF of supplier and relay after it: a supplier and its consumers, all
/// in this process. Consumers that are not apart share a connection and a thread.
pub(super) fn run(
    address: &str,
    plan: &EndPlan,
    command: &Command,
    samples: &mut Samples,
) -> Result<(), String> {
    let (fan, traffic, rest) = Fan::of(command)?;
    let buffers: Option<Vec<u32>> = rest.iter().map(|text| text.parse().ok()).collect();
    let Some([near, far]) = buffers.as_deref() else {
        return Err(command.unknown());
    };
    let size = command.there as u32;
    let (connections, each) = if fan.are_apart {
        (fan.consumers, 1)
    } else {
        (1, fan.consumers)
    };
    let consumers = (0..connections)
        .map(|_| connect(address, plan, [CONSUMER, size, each], [0, *far]))
        .collect::<Result<Vec<_>, _>>()?;
    let mut supplier = connect(address, plan, [SUPPLIER, size, 0], [*near, 0])?;
    let gate = Gate::new(fan.consumers);
    let mut threads = Vec::new();
    for connection in consumers {
        let (gate, fifo, size) = (Arc::clone(&gate), plan.fifo, command.there);
        let consume = move || {
            place(fifo);
            consume(connection, (size, each), &gate);
        };
        let thread = std::thread::Builder::new().name("consumer".to_owned());
        threads.push(thread.spawn(consume).map_err(words)?);
    }
    let message = vec![3; command.there];
    let supplied = gate.supply(traffic, samples, || {
        supplier.write_all(&message).map_err(words)
    });
    // The relay then closes the connections of the consumers.
    drop(supplier);
    for thread in threads {
        thread
            .join()
            .map_err(|_| "a consumer's thread has panicked".to_owned())?;
    }
    supplied
}

/// Receives the messages of so many consumers until the connection is closed. As an ORB does, it reads what has arrived
/// at once, and not each message alone.
fn consume(connection: TcpStream, (size, consumers): (usize, u32), gate: &Gate) {
    let mut connection = BufReader::with_capacity(READ_AT_ONCE.max(size), connection);
    let mut message = vec![0; size];
    for number in 0.. {
        for _ in 0..consumers {
            if connection.read_exact(&mut message).is_err() {
                return;
            }
            gate.receive(number);
        }
    }
}

/// Octets of one read of a consumer.
const READ_AT_ONCE: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_writes_each_message_once_for_every_consumer_of_each_connection() {
        const SIZE: u32 = 8;
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its number");
        let mut consumers = Vec::new();
        let mut connect = |role: u32, count: u32| {
            let mut near = TcpStream::connect(address).expect("connected");
            let header = [role, SIZE, 0, 0, count].map(u32::to_ne_bytes);
            near.write_all(header.as_flattened()).expect("written");
            let (far, _) = listener.accept().expect("accepted");
            take_connection(far, None, &mut consumers).expect("taken");
            near
        };
        let counts: Vec<u32> = [1; 34].into_iter().chain([35]).collect();
        let ends: Vec<TcpStream> = counts.iter().map(|it| connect(CONSUMER, *it)).collect();
        let mut supplier = connect(SUPPLIER, 0);
        let messages = |count: u32| -> Vec<u8> {
            let copies = |number| vec![number; (SIZE * count) as usize];
            (0..3).flat_map(copies).collect()
        };
        supplier.write_all(&messages(1)).expect("written");
        drop(supplier);
        for (mut end, count) in ends.into_iter().zip(counts) {
            let mut received = Vec::new();
            end.read_to_end(&mut received).expect("read");
            assert_eq!(received, messages(count));
        }
    }
}
