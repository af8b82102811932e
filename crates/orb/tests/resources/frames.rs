//! The call path of a request is short: at most ten functions of `lane`, `connection` and `server` between the poller
//! and the servant.

use std::backtrace::Backtrace;
use std::sync::{Arc, Mutex};

use crate::support::{Server, call, client_of, seen_by};
use deckwatch_orb::{Servant, ServerRequest, SystemException};

#[derive(Default)]
struct Witness(Mutex<Vec<String>>);

impl Servant for Witness {
    fn repository_ids(&self) -> &'static [&'static str] {
        &["IDL:deckwatch.test/Witness:1.0"]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let seen = Backtrace::force_capture().to_string();
        *self.0.lock().unwrap() = own_functions(&seen);
        request.reply()?;
        Ok(())
    }
}

/// Returns the functions of `lane`, `connection` and `server` in a backtrace, down to the turn of the lane.
fn own_functions(backtrace: &str) -> Vec<String> {
    let rooms = ["lane", "connection", "server"];
    let mut own = Vec::new();
    let mut lines = backtrace.lines().map(str::trim_start).peekable();
    while let Some(line) = lines.next() {
        let place = lines.next_if(|next| next.starts_with("at "));
        // The name is after the number of the frame.
        let Some((_, name)) = line.split_once(": ") else {
            continue;
        };
        if name.contains("::turn") {
            break;
        }
        // With debug information some names are without their path, but have the place of their source; without it,
        // all names have their path. The name of a method of a trait begins with its type, in angle brackets.
        let is_own = rooms.iter().any(|room| {
            let name = name.trim_start_matches('<');
            let source = place.and_then(|place| place.rsplit_once("src/"));
            name.starts_with(&format!("deckwatch_orb::{room}"))
                || source.is_some_and(|(_, file)| file.starts_with(room))
        });
        if is_own && !name.contains("{{closure}}") {
            own.push(name.to_owned());
        }
    }
    own
}

#[test]
fn at_most_ten_functions_lead_from_the_poller_to_the_servant() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let witness = Arc::new(Witness::default());
    let servant: Arc<dyn Servant> = witness.clone();
    let reference = server.root.servant_to_reference(&servant).unwrap();
    let reference = seen_by(&client, &reference);
    call(&reference, "look").unwrap();
    let own = witness.0.lock().unwrap().clone();
    assert!((5..=10).contains(&own.len()), "{own:#?}");
}
