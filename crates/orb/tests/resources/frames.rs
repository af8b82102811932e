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
        let functions = seen
            .lines()
            .filter(|line| !line.trim_start().starts_with("at "));
        let below_turn = functions.take_while(|line| !line.contains("::turn"));
        // The name is after the number of the frame. Frames of the standard library may have our types as parameters.
        let names = below_turn.filter_map(|line| line.split_once(": ").map(|(_, name)| name));
        let rooms = ["lane", "connection", "server"].map(|room| format!("deckwatch_orb::{room}"));
        // The name of a method starts with its type, in angle brackets for a method of a trait.
        let is_own = |name: &str| {
            let name = name.trim_start_matches('<');
            rooms.iter().any(|room| name.starts_with(room)) && !name.contains("{{closure}}")
        };
        let own = names.filter(|name| is_own(name));
        *self.0.lock().unwrap() = own.map(str::to_owned).collect();
        request.reply()?;
        Ok(())
    }
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
