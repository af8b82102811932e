//! Plain TCP: what everything else is compared with.
//!
//! A connection begins with four numbers of four octets, in this machine's order: octets of a message there, octets back, the SCHED_FIFO
//! priority that the serving thread shall have (0: the server's), and what comes: messages that are each answered (by threads that sleep, or look again and again), or messages behind each
//! other until the client ends its side, which are answered with their octets' count.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, PoisonError, RwLock};

use deckwatch_os::clock::monotonic_ns;

use super::commands::{Command, Samples};
use super::{EndPlan, await_end, greet, place, system};
use crate::bench::error::BenchError;
use crate::limits::BENCH_OCTETS_MAX;

/// Serves each connection with a thread of its own.
pub(super) fn serve(plan: &EndPlan) -> Result<(), BenchError> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(system("Cannot listen"))?;
    let address = listener.local_addr().map_err(system("Cannot listen"))?;
    let fifo = plan.fifo;
    let accepting = move || {
        place(fifo);
        if greet(&address.to_string()).is_err() {
            return;
        }
        for stream in listener.incoming().flatten() {
            let serving = move || {
                let _client_gone = serve_one(stream, fifo);
            };
            let thread = std::thread::Builder::new().name("raw-connection".to_owned());
            // Without one the client finds its connection closed, and says so.
            let _no_thread = thread.spawn(serving);
        }
    };
    std::thread::Builder::new()
        .name("raw-server".to_owned())
        .spawn(accepting)
        .map_err(system("A thread cannot be started"))?;
    await_end()
}

const EXCHANGE: u32 = 0;
const STREAM: u32 = 1;
const SPINNING_EXCHANGE: u32 = 2;

fn serve_one(mut stream: TcpStream, fifo: Option<u8>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut header = [0; 16];
    stream.read_exact(&mut header)?;
    let (numbers, _) = header.as_chunks();
    let [there, back, priority, what] = [0, 1, 2, 3].map(|at| u32::from_ne_bytes(numbers[at]));
    place(match u8::try_from(priority) {
        Ok(priority @ 1..) => Some(priority),
        _ => fifo,
    });
    let size = |octets: u32| (octets as usize).min(BENCH_OCTETS_MAX);
    if what == STREAM {
        return take_all(stream);
    }
    // Answers every request of the announced size with as many octets as announced.
    let (mut request, reply) = (vec![0; size(there)], vec![7; size(back)]);
    stream.set_nonblocking(what == SPINNING_EXCHANGE)?;
    loop {
        read_whole(&mut stream, &mut request)?;
        write_whole(&mut stream, &reply)?;
    }
}

/// Fills `octets`; looks again and again where the stream does not block.
fn read_whole(stream: &mut TcpStream, octets: &mut [u8]) -> std::io::Result<()> {
    let mut filled = 0;
    while filled < octets.len() {
        match stream.read(&mut octets[filled..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all `octets`; tries again and again where the stream does not block.
fn write_whole(stream: &mut TcpStream, octets: &[u8]) -> std::io::Result<()> {
    let mut written = 0;
    while written < octets.len() {
        match stream.write(&octets[written..]) {
            Ok(count) => written += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn take_all(mut stream: TcpStream) -> std::io::Result<()> {
    let mut octets = vec![0; STREAM_READ_SIZE];
    let mut taken: u64 = 0;
    loop {
        match stream.read(&mut octets)? {
            0 => return stream.write_all(&taken.to_ne_bytes()),
            count => taken += count as u64,
        }
    }
}

/// Octets asked for at once of a stream: what a receive buffer holds at first.
const STREAM_READ_SIZE: usize = 128 << 10;

fn connect(address: &str, plan: &EndPlan, numbers: [u32; 3]) -> Result<TcpStream, String> {
    let said = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(address).map_err(said)?;
    stream.set_nodelay(true).map_err(said)?;
    let [there, back, what] = numbers;
    let header = [there, back, u32::from(plan.fifo.unwrap_or(0)), what];
    let octets: Vec<u8> = header.iter().flat_map(|n| n.to_ne_bytes()).collect();
    stream.write_all(&octets).map_err(said)?;
    Ok(stream)
}

/// Obeys one command.
pub(super) fn run(
    address: &str,
    plan: &EndPlan,
    command: &Command,
    samples: &mut Samples,
) -> Result<(), String> {
    let said = |error: std::io::Error| error.to_string();
    let sizes = [command.there, command.back].map(|size| size as u32);
    let request = vec![3; command.there];
    if command.kind == "raw-stream" {
        let connection = connect(address, plan, [sizes[0], 0, STREAM])?;
        let send = || (&connection).write_all(&request).map_err(said);
        return samples.stream(send, |count| {
            connection.shutdown(Shutdown::Write).map_err(said)?;
            let mut taken = [0; 8];
            (&connection).read_exact(&mut taken).map_err(said)?;
            if u64::from_ne_bytes(taken) == count * command.there as u64 {
                Ok(())
            } else {
                Err("not everything has arrived".to_owned())
            }
        });
    }
    let spins = plan.variant.spins();
    let what = if spins { SPINNING_EXCHANGE } else { EXCHANGE };
    let mut stream = connect(address, plan, [sizes[0], sizes[1], what])?;
    stream.set_nonblocking(spins).map_err(said)?;
    let mut reply = vec![0; command.back];
    samples.take(|| {
        write_whole(&mut stream, &request).map_err(said)?;
        read_whole(&mut stream, &mut reply).map_err(said)
    })
}

/// Clients that never pause, as many as the plan says, each with a connection of its own.
pub(super) fn load(
    address: &str,
    plan: &EndPlan,
    command: &Command,
    samples: &mut Samples,
) -> Result<(), String> {
    let said = |error: std::io::Error| error.to_string();
    let sizes = [command.there, command.back].map(|size| size as u32);
    let connections: Result<Vec<TcpStream>, String> = (0..plan.clients)
        .map(|_| connect(address, plan, [sizes[0], sizes[1], EXCHANGE]))
        .collect();
    together(
        plan,
        (command.budget_ns, samples),
        &connections?,
        |mut stream| {
            let request = vec![3; command.there];
            let mut reply = vec![0; command.back];
            move || {
                stream.write_all(&request).map_err(said)?;
                stream.read_exact(&mut reply).map_err(said)
            }
        },
    )
}

/// Calls with a thread for each of `clients`, all beginning at once, until the time is reached.
pub(super) fn together<'c, C: Sync, F: FnMut() -> Result<(), String>>(
    plan: &EndPlan,
    (budget_ns, samples): (i64, &mut Samples),
    clients: &'c [C],
    prepare: impl Fn(&'c C) -> F + Sync,
) -> Result<(), String> {
    let begun = Barrier::new(clients.len());
    let calls = AtomicU64::new(0);
    let begin_ns = monotonic_ns();
    let is_called_off = RwLock::new(false);
    let one = |client: &'c C| -> Result<(), String> {
        place(plan.fifo);
        let mut call = prepare(client);
        if *is_called_off
            .read()
            .map_err(|_| "nobody said whether to begin")?
        {
            return Ok(());
        }
        begun.wait();
        let until_ns = monotonic_ns() + budget_ns;
        let mut made = 0;
        while monotonic_ns() < until_ns {
            call()?;
            made += 1;
        }
        calls.fetch_add(made, Ordering::Relaxed);
        Ok(())
    };
    let one = &one;
    std::thread::scope(|scope| {
        // All wait until the last is there, or cannot be.
        let mut called_off = is_called_off
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let start = |client| std::thread::Builder::new().spawn_scoped(scope, move || one(client));
        let threads: Result<Vec<_>, _> = clients.iter().map(start).collect();
        *called_off = threads.is_err();
        drop(called_off);
        let cannot = |error| format!("a thread of the load cannot be started: {error}");
        let threads = threads.map_err(cannot)?;
        threads.into_iter().try_for_each(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|_| Err("a thread of the load has panicked".to_owned()))
        })
    })?;
    let elapsed_ns = (monotonic_ns() - begin_ns).unsigned_abs();
    samples.told(calls.load(Ordering::Relaxed), elapsed_ns);
    Ok(())
}
