//! Clients of the naming service: what it acknowledged is there at any time, and after each kill.

use std::sync::Mutex;
use std::thread::Scope;

use deckwatch_meter::statistics::simulated::Random;
use deckwatch_orb::cos_naming::{NameComponent, NamingContextRef, NamingContextResolveError};
use deckwatch_os::clock::monotonic_ns;

use super::Scene;
use super::objects::{Beat, Client, PERIOD, life, rest};
use super::plan::below;
use super::server::{Kind, Server, locked};

/// What was bound, and what was found.
#[derive(Default)]
pub(super) struct Bindings(Mutex<Known>);

/// What the service has acknowledged.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// The number under each name: the last acknowledged, and the last tried.
    names: Vec<(u64, u64)>,
    /// Lives of the service after whose beginning all names were read.
    pub(super) verified: u32,
    /// Names that were not there, or led elsewhere.
    pub(super) lost: u64,
    pub(super) first_lost: Option<String>,
    pub(super) bound: u64,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            names: vec![(0, 0); NAMES],
            verified: 0,
            lost: 0,
            first_lost: None,
            bound: 0,
        }
    }
}

impl Bindings {
    pub(super) fn known(&self) -> Known {
        locked(&self.0).clone()
    }
}

/// Starts the clients.
pub(super) fn start<'s>(scope: &'s Scope<'s, '_>, scene: &'s Scene) {
    scope.spawn(move || use_names(scene, scene.server(Kind::Names)));
}

fn use_names(scene: &Scene, server: &Server) {
    let mut random = Random::new(scene.seed ^ 0x6e61);
    let mut beat = Beat::new(PERIOD);
    let mut life_seen = 0;
    while !scene.is_over() {
        let Some(client) = server.call("connect", || Client::new(server)) else {
            rest();
            continue;
        };
        let root = NamingContextRef::unchecked_narrow(client.object.clone());
        let client = NamesClient {
            server,
            client: &client,
            root,
            bindings: &scene.bindings,
        };
        let until_ns = life(&mut random);
        while monotonic_ns() < until_ns && !scene.is_over() {
            beat.wait();
            let lives = server.lives();
            let done = if lives == life_seen {
                client.turn(&mut random)
            } else {
                life_seen = lives;
                let verified = client.verify();
                if verified.is_none() {
                    life_seen = 0;
                }
                verified
            };
            if done.is_none() {
                rest();
                break;
            }
        }
    }
}

struct NamesClient<'s> {
    server: &'s Server,
    client: &'s Client,
    root: NamingContextRef,
    bindings: &'s Bindings,
}

impl NamesClient<'_> {
    /// One call: mostly `resolve`, sometimes `rebind`, seldom a context that is made and destroyed, or a list.
    fn turn(&self, random: &mut Random) -> Option<()> {
        let index = below(random, NAMES);
        match below(random, 100) {
            0 => {
                let listed = self.server.call("list", || self.root.list(10))?;
                let Some(rest) = listed.1 else {
                    return Some(());
                };
                self.server.call("destroy of a list", || rest.destroy())
            }
            1 => {
                // A kill may leave a context: the next has another name.
                let path = name(&format!("context {}", random.below(1 << 40)));
                let made = self
                    .server
                    .call("bind_new_context", || self.root.bind_new_context(&path))?;
                self.server.call("unbind", || self.root.unbind(&path))?;
                let context = made?;
                self.server.call("destroy", || context.destroy())
            }
            2..12 => self.bind(index),
            _ => self.resolve(index),
        }
    }

    fn bind(&self, index: usize) -> Option<()> {
        let number = {
            let mut known = locked(&self.bindings.0);
            known.names[index].1 += 1;
            known.names[index].1
        };
        let object = self.client.object_of(&reference(number)).ok()?;
        let path = name(&index.to_string());
        let bind = || self.root.rebind(&path, object.as_ref());
        self.server.call("rebind", bind)?;
        let mut known = locked(&self.bindings.0);
        known.names[index].0 = number;
        known.bound += 1;
        Some(())
    }

    /// Compares what a name leads to with what was acknowledged. A bind without an answer may have been carried out.
    fn resolve(&self, index: usize) -> Option<()> {
        let (acknowledged, tried) = locked(&self.bindings.0).names[index];
        if acknowledged == 0 {
            return Some(());
        }
        let path = name(&index.to_string());
        let resolve = || match self.root.resolve(&path) {
            Ok(found) => Ok(Some(found)),
            Err(NamingContextResolveError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        };
        let Some(found) = self.server.call("resolve", resolve)? else {
            self.lose(format!(
                "{index} is not bound, and number {acknowledged} was acknowledged"
            ));
            return Some(());
        };
        let key = found.as_ref().and_then(|object| object.object_key());
        let number = key.and_then(|key| std::str::from_utf8(key).ok()?.parse::<u64>().ok());
        if !number.is_some_and(|number| (acknowledged..=tried).contains(&number)) {
            self.lose(format!(
                "{index} leads to {number:?}, and number {acknowledged} was acknowledged"
            ));
        }
        Some(())
    }

    /// Reads all names after the service was started.
    fn verify(&self) -> Option<()> {
        for index in 0..NAMES {
            self.resolve(index)?;
        }
        locked(&self.bindings.0).verified += 1;
        Some(())
    }

    fn lose(&self, words: String) {
        let mut known = locked(&self.bindings.0);
        known.lost += 1;
        known.first_lost.get_or_insert(words);
    }
}

fn name(id: &str) -> Vec<NameComponent> {
    vec![NameComponent {
        id: id.to_owned(),
        kind: "soak".to_owned(),
    }]
}

/// A reference whose object key is a number.
fn reference(number: u64) -> String {
    format!("corbaloc::127.0.0.1:1/{number}")
}

/// Names that are bound.
const NAMES: usize = 64;
