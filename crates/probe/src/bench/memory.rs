//! Memory of a server: idle, and with connections that each have had a call answered.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use deckwatch_giop::ior::IiopProfile;
use deckwatch_giop::{Format, Ior, RequestHeader, Response, Target};
use deckwatch_os::process::raise_open_files;

use super::condition::Places;
use super::document::{MemoryResult, Skip};
use super::end::Role;
use super::error::BenchError;
use super::peer::{End, Place, Program, Shape};
use super::run::{Progress, Settings};

/// Memory of every peer's server.
pub(super) fn measure(
    settings: &Settings,
    places: &Places,
    programs: &[(&'static str, Program)],
    skipped: &mut Vec<Skip>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Vec<MemoryResult>, BenchError> {
    let needed = settings.connections as u64 + FILES_BESIDE;
    if let Some(limit) = raise_open_files().filter(|limit| *limit < needed) {
        return Err(BenchError::TooManyConnections {
            connections: settings.connections,
            limit,
        });
    }
    let own = Program::Own {
        path: settings.program.clone(),
        inserted: settings.inserted,
    };
    let all: Vec<_> = std::iter::once(("deckwatch", own))
        .chain(programs.iter().cloned())
        .collect();
    let mut results = Vec::new();
    for (round, (name, program)) in all.iter().enumerate() {
        tell(&Progress {
            round: round + 1,
            rounds: all.len(),
            now: format!("memory: {name}"),
        });
        match measure_one(name, program, places.server, settings.connections) {
            Ok(both) => results.extend(both),
            Err(error) if *name == "deckwatch" => return Err(error),
            Err(error) => skipped.push(Skip {
                peer: (*name).to_owned(),
                reason: format!("memory: {error}"),
            }),
        }
    }
    Ok(results)
}

fn measure_one(
    name: &str,
    program: &Program,
    place: Place,
    connections: usize,
) -> Result<[MemoryResult; 2], BenchError> {
    let command = program.command(Role::OrbServer, place, None, &Shape::default());
    let mut server = End::start(format!("The server of {name}"), command)?;
    let (_, reference) = server.greeting()?;
    let process = server.process();
    let result = |connections: usize| -> Result<MemoryResult, BenchError> {
        let (resident_octets, anonymous_octets) = resident(process)?;
        Ok(MemoryResult {
            peer: name.to_owned(),
            connections,
            resident_octets,
            anonymous_octets,
        })
    };
    let idle = result(0)?;
    let failed = |reason: String| BenchError::EndFailed {
        what: format!("A connection to the server of {name}"),
        reason,
    };
    let called = Called::by(&reference)?;
    let mut open = Vec::new();
    for _ in 0..connections {
        let connection = called.connection();
        let connection = connection.map_err(|error| failed(error.to_string()));
        open.push(server.or_its_end(connection)?);
    }
    let full = result(connections)?;
    drop(open);
    Ok([idle, full])
}

/// Resident octets of a process, and those that no file stands behind.
fn resident(process: u32) -> Result<(u64, u64), BenchError> {
    let path = std::path::PathBuf::from(format!("/proc/{process}/status"));
    let status = std::fs::read_to_string(&path);
    let status = status.map_err(|source| BenchError::File { path, source })?;
    let kibibytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number.and_then(|number| number.parse::<u64>().ok())
    };
    let octets = |name: &str| {
        // A process that has ended has none of its own any more.
        let kibibytes = kibibytes(name).ok_or_else(|| BenchError::EndFailed {
            what: format!("The server, process {process}"),
            reason: format!("its status does not say {name}"),
        })?;
        Ok(kibibytes * 1_024)
    };
    Ok((octets("VmRSS")?, octets("RssAnon")?))
}

/// A request without arguments, as octets.
struct Called {
    address: (String, u16),
    request: Vec<u8>,
}

impl Called {
    fn by(reference: &str) -> Result<Self, BenchError> {
        let unusable = |reason: &dyn std::fmt::Display| BenchError::Reference(reason.to_string());
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

    /// A connection that has had one call answered.
    fn connection(&self) -> std::io::Result<TcpStream> {
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

/// Files that a process of the bench has open besides its connections.
const FILES_BESIDE: u64 = 20;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Octets of an answer that has nothing to say.
const REPLY_SIZE_MAX: usize = 4_096;
