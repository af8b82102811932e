//! The same threads and sockets without an ORB: a connection has a thread of its own, of the priority that its client asks for.
//!
//! A connection begins with three numbers of four octets, in this machine's order: octets of a request, octets of a reply, the SCHED_FIFO
//! priority of the serving thread (0: time sharing). The first eight octets of a request say for how many nanoseconds the server keeps busy.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use super::calls::paced;
use super::subject::busy;
use crate::bench::BenchError;
use crate::bench::end::commands::{Command, Samples};
use crate::bench::end::{greet, place, system};
use crate::limits::BENCH_OCTETS_MAX;

/// Serves until the standard input ends.
pub(super) fn serve(
    fifo: Option<u8>,
    answer_questions: impl FnOnce() -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(system("Cannot listen"))?;
    let address = listener.local_addr().map_err(system("Cannot listen"))?;
    let accepting = move || {
        place(fifo);
        if greet(&address.to_string()).is_err() {
            return;
        }
        for stream in listener.incoming().flatten() {
            let thread = std::thread::Builder::new().name("raw-connection".to_owned());
            // Without a thread the client finds its connection closed, and says so.
            let _no_thread = thread.spawn(move || {
                let _client_gone = serve_one(stream);
            });
        }
    };
    std::thread::Builder::new()
        .name("raw-server".to_owned())
        .spawn(accepting)
        .map_err(system("A thread cannot be started"))?;
    answer_questions()
}

fn serve_one(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut header = [0; 12];
    stream.read_exact(&mut header)?;
    let numbers = header.as_chunks().0;
    let [there, back, priority] = [0, 1, 2].map(|at| u32::from_ne_bytes(numbers[at]));
    place(u8::try_from(priority).ok().filter(|priority| *priority > 0));
    let size = |octets: u32| (octets as usize).clamp(HEAD, BENCH_OCTETS_MAX);
    let (mut request, reply) = (vec![0; size(there)], vec![7; size(back)]);
    loop {
        stream.read_exact(&mut request)?;
        let busy_ns = request.first_chunk().copied().unwrap_or_default();
        busy(u64::from_ne_bytes(busy_ns).min(BUSY_MAX_NS));
        stream.write_all(&reply)?;
    }
}

/// The smallest message: what says how long to keep busy.
const HEAD: usize = 8;

/// A server does not keep busy for longer, whatever it is told.
const BUSY_MAX_NS: u64 = 1_000_000_000;

/// A connection to such a server.
pub(super) struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    reply: Vec<u8>,
}

impl Connection {
    /// Asks for a thread of `priority`, for messages of so many octets there and back.
    pub(super) fn new(
        address: &str,
        priority: Option<u8>,
        (there, back): (usize, usize),
    ) -> Result<Self, BenchError> {
        let failed = system("The server cannot be reached");
        let mut stream = TcpStream::connect(address).map_err(&failed)?;
        stream.set_nodelay(true).map_err(&failed)?;
        let priority = u32::from(priority.unwrap_or(0));
        for number in [there as u32, back as u32, priority] {
            stream.write_all(&number.to_ne_bytes()).map_err(&failed)?;
        }
        let size = |octets: usize| octets.clamp(HEAD, BENCH_OCTETS_MAX);
        Ok(Self {
            stream,
            request: vec![0; size(there)],
            reply: vec![0; size(back)],
        })
    }

    /// Obeys one `compute`.
    pub(super) fn run(&mut self, command: &Command, samples: &mut Samples) -> Result<(), String> {
        if !command.kind.starts_with("compute/") {
            return Err(format!(
                "'{}' is nothing that this end can do",
                command.kind
            ));
        }
        let busy_ns = (command.there as u64).to_ne_bytes();
        self.request[..HEAD].copy_from_slice(&busy_ns);
        let said = |error: std::io::Error| error.to_string();
        let mut one = || {
            self.stream.write_all(&self.request).map_err(said)?;
            self.stream.read_exact(&mut self.reply).map_err(said)
        };
        if command.period_ns == 0 {
            return samples.take(one);
        }
        paced(command, samples, &mut one)
    }
}
