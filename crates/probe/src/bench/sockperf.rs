//! A second instrument for the baseline: sockperf's TCP ping-pong of the same size. It prints half round trips unless asked for whole ones; it is.

use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::error::BenchError;
use super::peer::Place;

/// Where a program is on PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// A sockperf server, ended when dropped.
pub(super) struct Sockperf {
    server: Child,
    port: u16,
    client: Place,
}

/// What one run of it says, of round trips.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Said {
    pub(super) count: u64,
    pub(super) p50_ns: f64,
    pub(super) p99_ns: f64,
}

impl Sockperf {
    /// Starts its server.
    pub(super) fn start(places: (Place, Place)) -> Result<Self, BenchError> {
        let cannot = |source| BenchError::CannotStart {
            what: "sockperf's server".to_owned(),
            source,
        };
        // It takes no port 0: one that was free a moment ago is given to it.
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .map_err(cannot)?
            .port();
        let server = placed(places.0)
            .args(["sockperf", "server", "--tcp", "-i", "127.0.0.1", "-p"])
            .arg(port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(cannot)?;
        let mut started = Self {
            server,
            port,
            client: places.1,
        };
        started.await_listening()?;
        Ok(started)
    }

    fn await_listening(&mut self) -> Result<(), BenchError> {
        let until = Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if let Ok(Some(status)) = self.server.try_wait() {
                return Err(BenchError::EndFailed {
                    what: "sockperf's server".to_owned(),
                    reason: format!("it has ended ({status})"),
                });
            }
            if Instant::now() > until {
                return Err(BenchError::Silent {
                    what: "sockperf's server".to_owned(),
                    patience: PATIENCE,
                });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// One run with messages of `size` octets both ways; a second, which is its shortest.
    pub(super) fn run(&self, size: usize) -> Result<Said, BenchError> {
        let output = placed(self.client)
            .args(["sockperf", "ping-pong", "--tcp", "--full-rtt", "-t", "1"])
            .args(["-i", "127.0.0.1", "-p"])
            .arg(self.port.to_string())
            .arg("-m")
            .arg(size.to_string())
            .stdin(Stdio::null())
            .output()
            .map_err(|source| BenchError::CannotStart {
                what: "sockperf".to_owned(),
                source,
            })?;
        let said = String::from_utf8_lossy(&output.stdout);
        parse(&said).ok_or_else(|| BenchError::EndFailed {
            what: "sockperf".to_owned(),
            reason: format!(
                "it has ended ({}) without its percentiles: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            ),
        })
    }
}

/// How long its server may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);

impl Drop for Sockperf {
    fn drop(&mut self) {
        let _ended_already = self.server.kill();
        let _reaped = self.server.wait();
    }
}

/// A command whose first argument is the program, in its place: by the tools of util-linux, which replace themselves by it.
fn placed(place: Place) -> Command {
    let mut words: Vec<String> = Vec::new();
    if let Some(fifo) = place.fifo {
        words.extend(["chrt", "-f"].map(str::to_owned));
        words.push(fifo.to_string());
    }
    if let Some(processor) = place.processor {
        words.extend(["taskset", "-c"].map(str::to_owned));
        words.push(processor.to_string());
    }
    let mut command = match words.split_first() {
        Some((program, rest)) => {
            let mut command = Command::new(program);
            command.args(rest);
            command
        }
        None => Command::new("env"),
    };
    // A group of its own: Ctrl-C is for the bench.
    command.process_group(0);
    command
}

/// Takes the percentiles out of what it prints; nothing where they are not of whole round trips.
fn parse(said: &str) -> Option<Said> {
    if !said.contains("Round trip is") {
        return None;
    }
    let number_after = |mark: &str| {
        let rest = &said[said.rfind(mark)? + mark.len()..];
        rest.trim_start_matches([' ', '='])
            .split_whitespace()
            .next()?
            .parse::<f64>()
            .ok()
    };
    Some(Said {
        count: number_after("Total ")? as u64,
        p50_ns: number_after("percentile 50.000")? * 1e3,
        p99_ns: number_after("percentile 99.000")? * 1e3,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "sockperf: [Total Run] RunTime=1.001 sec; SentMessages=133092\n\
        sockperf: Summary: Round trip is 6.940 usec\n\
        sockperf: Total 78914 observations; each percentile contains 789.14 observations\n\
        sockperf: ---> percentile 99.000 =    9.972\n\
        sockperf: ---> percentile 50.000 =    6.305\n";

    #[test]
    fn whole_round_trips_are_read_and_halves_refused() {
        let said = parse(SAID).expect("whole round trips");
        assert_eq!(
            (said.count, said.p50_ns, said.p99_ns),
            (78_914, 6_305.0, 9_972.0)
        );
        assert_eq!(parse(&SAID.replace("Round trip is", "Latency is")), None);
    }
}
