//! Memory of a server: idle, and with connections on which one call has been answered.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use deckwatch_giop::ior::IiopProfile;
use deckwatch_giop::{Format, Ior, RequestHeader, Response, Target};
use deckwatch_os::process::raise_open_files;

use super::part::{About, Part};
use super::plan::MEMORY_TIME;
use crate::laboratory::condition::Places;
use crate::laboratory::process::End;
use crate::laboratory::program::{Place, Program, Shape};
use crate::laboratory::samples::Samples;
use crate::laboratory::session::{Session, TurnCase};
use crate::laboratory::{LaboratoryError, OURS, Role};

/// Measures every server with and without `connections` once in each round, and adds the results to `part`. Returns
/// false if the user wants to end.
pub(super) fn measure(
    session: &mut Session<'_>,
    places: &Places,
    connections: usize,
    programs: &[(&'static str, Program)],
    part: &mut Part,
) -> Result<bool, LaboratoryError> {
    let needed = connections as u64 + OTHER_FILES;
    if let Some(limit) = raise_open_files().filter(|limit| *limit < needed) {
        return Err(LaboratoryError::TooManyConnections { connections, limit });
    }
    let own = session.own();
    let all = std::iter::once((OURS, own)).chain(programs.iter().cloned());
    let all: Vec<(&'static str, Program)> = all.collect();
    let systems: Vec<&'static str> = all.iter().map(|(name, _)| *name).collect();
    let case = TurnCase {
        name: "memory: ".to_owned(),
        systems,
    };
    let mut samples: Vec<[Samples; 2]> = all.iter().map(|_| Default::default()).collect();
    let rounds = 1..=session.setup.rounds;
    let is_whole = session.take_turns(rounds, &[case], &mut |session, turn| {
        let (name, program) = &all[turn.system];
        session.show(turn.round, format!("memory: {name}"));
        let both = measure_one(name, program, places.server, connections)?;
        for (samples, (resident, anonymous)) in samples[turn.system].iter_mut().zip(both) {
            samples.add_value("resident_octets", resident as f64);
            samples.add_value("anonymous_octets", anonymous as f64);
        }
        session.spend(MEMORY_TIME);
        Ok(true)
    });
    for ((name, _), both) in all.iter().zip(&samples) {
        for (connections, samples) in [0, connections].into_iter().zip(both) {
            let factors = [("connections", connections as f64)];
            if let Some(found) = samples.measurement(name, "a server", &factors) {
                part.add(About::Memory(connections), found);
            }
        }
    }
    Ok(is_whole)
}

/// The resident and the anonymous octets of a server.
pub(super) type Memory = (u64, u64);

/// The memory of a server without connections, and with as many as asked for.
fn measure_one(
    name: &str,
    program: &Program,
    place: Place,
    connections: usize,
) -> Result<[Memory; 2], LaboratoryError> {
    let command = program.command(Role::OrbServer, place, None, &Shape::default());
    let mut server = End::start(format!("The server of {name}"), command)?;
    let (_, reference) = server.greeting()?;
    let process = server.process();
    let idle = resident(process)?;
    let failed = |reason: String| LaboratoryError::EndFailed {
        what: format!("A connection to the server of {name}"),
        reason,
    };
    let caller = Caller::of(&reference)?;
    let mut open = Vec::new();
    for _ in 0..connections {
        let connection = caller.connect();
        let connection = connection.map_err(|error| failed(error.to_string()));
        open.push(server.blame_exit(connection)?);
    }
    let full = resident(process)?;
    drop(open);
    Ok([idle, full])
}

/// Resident octets of a process, and the anonymous ones among them, which are mapped to no file.
pub(super) fn resident(process: u32) -> Result<(u64, u64), LaboratoryError> {
    let path = std::path::PathBuf::from(format!("/proc/{process}/status"));
    let status = std::fs::read_to_string(&path);
    let status = status.map_err(|source| LaboratoryError::File { path, source })?;
    let kibibytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number.and_then(|number| number.parse::<u64>().ok())
    };
    let octets = |name: &str| {
        // A process that has ended has no memory in its status.
        let kibibytes = kibibytes(name).ok_or_else(|| LaboratoryError::EndFailed {
            what: format!("The server, process {process}"),
            reason: format!("its status has no {name}"),
        })?;
        Ok::<_, LaboratoryError>(kibibytes * 1_024)
    };
    Ok((octets("VmRSS")?, octets("RssAnon")?))
}

/// Sends a request without arguments, as octets.
struct Caller {
    address: (String, u16),
    request: Vec<u8>,
}

impl Caller {
    fn of(reference: &str) -> Result<Self, LaboratoryError> {
        let unusable =
            |reason: &dyn std::fmt::Display| LaboratoryError::Reference(reason.to_string());
        let ior: Ior = reference.parse().map_err(|error| unusable(&error))?;
        let profile: Option<IiopProfile> = ior.iiop_profiles().flatten().next();
        let profile = profile.ok_or_else(|| unusable(&"it has no IIOP profile"))?;
        let mut request = Vec::new();
        let open = RequestHeader {
            id: 1,
            response: Response::Outcome,
            target: Target::Key(&profile.object_key),
            operation: "ping",
            contexts: &[],
        }
        .begin(&mut request, Format::default())
        .map_err(|error| unusable(&error))?;
        open.finish(&mut request)
            .map_err(|error| unusable(&error))?;
        Ok(Self {
            address: (profile.host, profile.port),
            request,
        })
    }

    /// Opens a connection and waits for the reply to one call.
    fn connect(&self) -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect((self.address.0.as_str(), self.address.1))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(&self.request)?;
        let mut header = [0; 12];
        stream.read_exact(&mut header)?;
        let size = [header[8], header[9], header[10], header[11]];
        let is_little = header[6] & 1 == 1;
        let size = if is_little {
            u32::from_le_bytes(size)
        } else {
            u32::from_be_bytes(size)
        };
        let mut body = vec![0; (size as usize).min(REPLY_SIZE_MAX)];
        stream.read_exact(&mut body)?;
        Ok(stream)
    }
}

/// Open files of a process in addition to its connections.
const OTHER_FILES: u64 = 20;

/// The longest wait for a reply.
const PATIENCE: Duration = Duration::from_secs(10);

/// The largest reply without a result.
const REPLY_SIZE_MAX: usize = 4_096;
