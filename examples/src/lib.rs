//! Shared by the thirteen examples: how a program starts its two ends.
//!
//! Every example is one program with both ends in it, so that they can be read side by side:
//!
//! * `NAME` starts its server in a process of its own and calls it;
//! * `NAME serve` prints the reference of its object and serves;
//! * `NAME call REFERENCE` calls an object anywhere.
//!
//! All of them accept `-ORB` arguments (`-ORBListenEndpoints`, `-ORBInitRef`, ...).

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use deckwatch_orb::{ObjectRef, Orb, OrbBuilder};

/// The result of a part of an example. An error is printed to the user unchanged.
pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Runs an example: `serve` makes the object, `call` uses it.
///
/// # Errors
/// The error of `serve` or `call`, or that the arguments are unknown.
pub fn run(
    serve: fn(&Orb) -> Outcome<ObjectRef>,
    call: fn(&Orb, &ObjectRef) -> Outcome,
) -> Outcome {
    run_with(|builder| builder, serve, call)
}

/// As [`run`], with an ORB whose builder `prepare` changes first.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    prepare: fn(OrbBuilder) -> OrbBuilder,
    serve: fn(&Orb) -> Outcome<ObjectRef>,
    call: fn(&Orb, &ObjectRef) -> Outcome,
) -> Outcome {
    let mut arguments: Vec<String> = std::env::args().collect();
    let orb = prepare(Orb::builder().arguments(&mut arguments)?).build()?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_] => {
            let server = Server::start()?;
            let object = orb
                .string_to_object(&server.reference)?
                .ok_or("a nil reference")?;
            call(&orb, &object)
        }
        [_, "serve"] => {
            println!("{}", orb.object_to_string(&serve(&orb)?));
            Ok(orb.run()?)
        }
        [_, "call", reference] => {
            let object = orb.string_to_object(reference)?.ok_or("a nil reference")?;
            call(&orb, &object)
        }
        _ => Err("write nothing, `serve`, or `call REFERENCE`".into()),
    }
}

/// Returns a reference to the object of another key at the server of `object`, without asking whether it exists.
///
/// # Errors
/// If `object` has no address.
pub fn same_server(orb: &Orb, object: &ObjectRef, key: &str) -> Outcome<ObjectRef> {
    let profile = object
        .ior()
        .iiop_profiles()
        .next()
        .ok_or("a reference without an address")??;
    let (host, port) = profile
        .addresses()
        .next()
        .ok_or("a profile without an address")?;
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host
    };
    let other = orb.string_to_object(&format!("corbaloc::{host}:{port}/{key}"))?;
    Ok(other.ok_or("a nil reference")?)
}

/// A second process of this program, as the server. It is killed on drop.
struct Server {
    process: Child,
    reference: String,
}

impl Server {
    fn start() -> Outcome<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("serve")
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = process.stdout.take().ok_or("no standard output")?;
        let mut server = Self {
            process,
            reference: String::new(),
        };
        BufReader::new(stdout).read_line(&mut server.reference)?;
        if server.reference.is_empty() {
            return Err("the server has ended without a reference".into());
        }
        server.reference.truncate(server.reference.trim_end().len());
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that the process has ended already.
        let _ended = self.process.kill();
        let _status = self.process.wait();
    }
}
