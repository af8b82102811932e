//! Plain TCP: the baseline of every comparison. Each connection has a thread of its own, of the priority that its
//! client asks for.
//!
//! A connection begins with five numbers of four octets each, in this machine's byte order:
//! 1. octets of a request;
//! 2. octets of a reply;
//! 3. the SCHED_FIFO priority of the serving thread, or 0 for the server's;
//! 4. the traffic: [`EXCHANGE`], [`STREAM`], [`SPINNING_EXCHANGE`] or [`COMPUTE`];
//! 5. the SO_SNDBUF that the server requests, or 0 for the kernel's choice.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};

use deckwatch_os::socket::set_send_buffer;

use super::commands::{Command, Samples};
use super::load::call_together;
use super::{EndPlan, Factoring, answer_questions, greet, place, system, words};
use crate::laboratory::error::LaboratoryError;
use crate::laboratory::inserted::busy;
use crate::limits::BENCH_OCTETS_MAX;

/// Serves each connection with a thread of its own.
pub(super) fn serve(plan: &EndPlan) -> Result<(), LaboratoryError> {
    let factoring = plan.factors.then(Factoring::begin).transpose()?;
    let listener = TcpListener::bind("127.0.0.1:0").map_err(system("Cannot listen"))?;
    let address = listener.local_addr().map_err(system("Cannot listen"))?;
    let fifo = plan.fifo;
    let accept = move || {
        place(fifo);
        if greet(&address.to_string()).is_err() {
            return;
        }
        for stream in listener.incoming().flatten() {
            let thread = std::thread::Builder::new().name("raw-connection".to_owned());
            // If the thread cannot be started, the client finds its connection closed and reports that. An error of the
            // connection means that the client has ended.
            let _ = thread.spawn(move || {
                let _ = serve_one(stream, fifo);
            });
        }
    };
    std::thread::Builder::new()
        .name("raw-server".to_owned())
        .spawn(accept)
        .map_err(system("A thread cannot be started"))?;
    answer_questions(factoring.as_ref())
}

/// Each request is answered.
const EXCHANGE: u32 = 0;
/// Requests without answers until the client shuts its side down; the number of their octets is the only answer.
const STREAM: u32 = 1;
/// Each request is answered, by a thread that spins.
const SPINNING_EXCHANGE: u32 = 2;
/// Each request is answered. Its first eight octets are the nanoseconds for which the server keeps busy before that.
const COMPUTE: u32 = 3;

/// Octets of the time in a [`COMPUTE`] request.
const TIME_SIZE: usize = 8;

/// The server keeps busy for at most this time.
const BUSY_MAX_NS: u64 = 1_000_000_000;

fn serve_one(mut stream: TcpStream, fifo: Option<u8>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut header = [0; 20];
    stream.read_exact(&mut header)?;
    let (numbers, _) = header.as_chunks();
    let [there, back, priority, traffic, buffer] =
        [0, 1, 2, 3, 4].map(|at| u32::from_ne_bytes(numbers[at]));
    request_send_buffer(&stream, buffer)?;
    place(match u8::try_from(priority) {
        Ok(priority @ 1..) => Some(priority),
        _ => fifo,
    });
    if traffic == STREAM {
        return take_all(stream);
    }
    let size = |octets: u32| (octets as usize).min(BENCH_OCTETS_MAX);
    let (mut request, reply) = (vec![0; size(there)], vec![7; size(back)]);
    stream.set_nonblocking(traffic == SPINNING_EXCHANGE)?;
    loop {
        read_whole(&mut stream, &mut request)?;
        if traffic == COMPUTE {
            let busy_ns = request.first_chunk().copied().unwrap_or_default();
            busy(u64::from_ne_bytes(busy_ns).min(BUSY_MAX_NS));
        }
        write_whole(&mut stream, &reply)?;
    }
}

/// Requests a send buffer of `octets`; 0 leaves the size to the kernel.
pub(super) fn request_send_buffer(stream: &TcpStream, octets: u32) -> std::io::Result<()> {
    if octets > 0 {
        set_send_buffer(stream, octets)?;
    }
    Ok(())
}

/// Fills `octets`. Spins if the stream does not block.
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

/// Writes all `octets`. Spins if the stream does not block.
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

/// Octets of one read from a stream: the initial size of a receive buffer.
const STREAM_READ_SIZE: usize = 128 << 10;

/// The SO_SNDBUF that client and server request; 0 leaves the size to the kernel.
type Buffers = [u32; 2];

fn connect(
    address: &str,
    plan: &EndPlan,
    numbers: [u32; 3],
    [near, far]: Buffers,
) -> Result<TcpStream, String> {
    let mut stream = TcpStream::connect(address).map_err(words)?;
    stream.set_nodelay(true).map_err(words)?;
    request_send_buffer(&stream, near).map_err(words)?;
    let [there, back, traffic] = numbers;
    let priority = plan.serving_fifo.or(plan.fifo).unwrap_or(0);
    let header = [there, back, u32::from(priority), traffic, far];
    let octets: Vec<u8> = header.iter().flat_map(|n| n.to_ne_bytes()).collect();
    stream.write_all(&octets).map_err(words)?;
    Ok(stream)
}

/// System calls in one sample: one alone takes hardly longer than the reading of the clock.
pub(crate) const SYSTEM_CALLS: usize = 100;

/// A client without an ORB.
pub(super) struct Client<'p> {
    address: &'p str,
    plan: &'p EndPlan,
    /// The connection for [`COMPUTE`], with the sizes of its messages. It is kept from run to run.
    computing: Option<([usize; 2], TcpStream)>,
}

impl<'p> Client<'p> {
    pub(super) const fn new(address: &'p str, plan: &'p EndPlan) -> Self {
        Self {
            address,
            plan,
            computing: None,
        }
    }

    /// Runs one command: `raw` or `raw-stream`, both with the SO_SNDBUF of client and server or without,
    /// `compute/WHICH/BUSY_NS`, or `system-call`.
    pub(super) fn run(&mut self, command: &Command, samples: &mut Samples) -> Result<(), String> {
        let parts: Vec<&str> = command.kind.split('/').collect();
        let size = |text: &str| text.parse().map_err(|_| command.unknown());
        match parts[..] {
            ["raw"] => self.exchange(command, [0, 0], samples),
            ["raw", near, far] => self.exchange(command, [size(near)?, size(far)?], samples),
            ["raw-stream"] => self.stream(command, [0, 0], samples),
            ["raw-stream", near, far] => self.stream(command, [size(near)?, size(far)?], samples),
            ["system-call"] => samples.take(|| {
                for _ in 0..SYSTEM_CALLS {
                    std::hint::black_box(std::os::unix::process::parent_id());
                }
                Ok(())
            }),
            ["compute", _, busy_ns] => {
                let busy_ns = busy_ns.parse().map_err(|_| command.unknown())?;
                self.compute(busy_ns, command, samples)
            }
            _ => Err(command.unknown()),
        }
    }

    fn exchange(
        &self,
        command: &Command,
        buffers: Buffers,
        samples: &mut Samples,
    ) -> Result<(), String> {
        let [there, back] = [command.there, command.back].map(|size| size as u32);
        let spins = self.plan.variant.spins();
        let traffic = if spins { SPINNING_EXCHANGE } else { EXCHANGE };
        let mut stream = connect(self.address, self.plan, [there, back, traffic], buffers)?;
        stream.set_nonblocking(spins).map_err(words)?;
        let (request, mut reply) = (vec![3; command.there], vec![0; command.back]);
        samples.take(|| {
            write_whole(&mut stream, &request).map_err(words)?;
            read_whole(&mut stream, &mut reply).map_err(words)
        })
    }

    fn stream(
        &self,
        command: &Command,
        buffers: Buffers,
        samples: &mut Samples,
    ) -> Result<(), String> {
        let numbers = [command.there as u32, 0, STREAM];
        let connection = connect(self.address, self.plan, numbers, buffers)?;
        let request = vec![3; command.there];
        let send = || (&connection).write_all(&request).map_err(words);
        samples.stream(send, |count| {
            connection.shutdown(Shutdown::Write).map_err(words)?;
            let mut taken = [0; 8];
            (&connection).read_exact(&mut taken).map_err(words)?;
            if u64::from_ne_bytes(taken) == count * command.there as u64 {
                Ok(())
            } else {
                Err("not everything has arrived".to_owned())
            }
        })
    }

    fn compute(
        &mut self,
        busy_ns: u64,
        command: &Command,
        samples: &mut Samples,
    ) -> Result<(), String> {
        let sizes = [command.there.max(TIME_SIZE), command.back.max(1)];
        let (_, stream) = match self.computing.take().filter(|kept| kept.0 == sizes) {
            Some(kept) => self.computing.insert(kept),
            None => {
                let [there, back] = sizes.map(|size| size as u32);
                let stream = connect(self.address, self.plan, [there, back, COMPUTE], [0, 0])?;
                self.computing.insert((sizes, stream))
            }
        };
        let (mut request, mut reply) = (vec![0; sizes[0]], vec![0; sizes[1]]);
        request[..TIME_SIZE].copy_from_slice(&busy_ns.to_ne_bytes());
        samples.take_or_pace(|| {
            write_whole(stream, &request).map_err(words)?;
            read_whole(stream, &mut reply).map_err(words)
        })
    }
}

/// Runs one command with as many clients as the plan says, each with a connection of its own.
pub(super) fn load(
    address: &str,
    plan: &EndPlan,
    command: &Command,
    samples: &mut Samples,
) -> Result<(), String> {
    let sizes = [command.there, command.back].map(|size| size as u32);
    let connections: Result<Vec<TcpStream>, String> = (0..plan.clients)
        .map(|_| connect(address, plan, [sizes[0], sizes[1], EXCHANGE], [0, 0]))
        .collect();
    call_together(
        plan,
        (command.budget_ns, samples),
        &connections?,
        |mut stream| {
            let request = vec![3; command.there];
            let mut reply = vec![0; command.back];
            move || {
                stream.write_all(&request).map_err(words)?;
                stream.read_exact(&mut reply).map_err(words)
            }
        },
    )
}
