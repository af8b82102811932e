//! Clients of the channels: each event that was pushed is received, or its loss is counted or excused by a fault.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::Scope;
use std::time::Duration;

use deckwatch_cdr::Any;
use deckwatch_event::client::{Connected, Proxy as _};
use deckwatch_event::cos_event_channel_admin::{
    ConsumerAdminRef, EventChannelRef, ProxyPullSupplierRef,
};
use deckwatch_meter::statistics::simulated::Random;
use deckwatch_os::clock::{monotonic_ns, sleep_until};

use super::objects::{Beat, Client, PERIOD, life, rest};
use super::server::{Kind, Server, locked};
use super::{Scene, TURN_NS, nanoseconds};
use crate::events::channel::open;
use crate::events::selection::Selection;
use crate::events::status::report;
use crate::events::subscription::{Next, Subscription};
use crate::events::{Event, EventsError, HEADER_DEFAULT, Sink};
use crate::limits::FAREWELL_TIMEOUT;

/// How a consumer gets its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Model {
    Push,
    Pull,
}

/// The events of one consumer of a channel.
pub(super) struct Accounts {
    kind: Kind,
    model: Model,
    /// Its supplier has ended.
    is_supplied: AtomicBool,
    account: Mutex<Account>,
}

/// What was pushed, and what became of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Account {
    /// Pushes that the channel took.
    pub(super) pushed: u64,
    /// The number and the time of the last of them.
    last_pushed: (u64, i64),
    pub(super) received: u64,
    /// Pushed before the first event that was received: the consumer was not connected yet.
    pub(super) before: u64,
    /// The number and the time of the last event received.
    last_received: Option<(u64, i64)>,
    /// Missing between two events that were received, without a fault meanwhile.
    pub(super) missing: u64,
    /// The same with a fault meanwhile.
    pub(super) excused: u64,
    /// Received twice, or after a later event.
    pub(super) repeated: u64,
    /// Losses that the channel counted in earlier lives, and in this one.
    dropped: (u64, u64),
    /// The consumers of the channel by its last report.
    pub(super) consumers: Option<u32>,
}

impl Account {
    /// The losses that the channel has counted.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.0 + self.dropped.1
    }

    /// Takes the number of an event that was pushed at `at_ns`. `is_excused` tells of two times whether a fault lies
    /// between them.
    fn receive(&mut self, number: u64, at_ns: i64, is_excused: impl Fn(i64, i64) -> bool) {
        self.received += 1;
        let Some((last, last_ns)) = self.last_received else {
            self.last_received = Some((number, at_ns));
            self.before = number.saturating_sub(1);
            return;
        };
        if number <= last {
            // A supplier that could not know whether a push arrived does not repeat it.
            self.repeated += 1;
            return;
        }
        self.miss(number - last - 1, is_excused(last_ns, at_ns));
        self.last_received = Some((number, at_ns));
    }

    fn miss(&mut self, count: u64, is_excused: bool) {
        if is_excused {
            self.excused += count;
        } else {
            self.missing += count;
        }
    }
}

impl Accounts {
    /// Those of all consumers of the soak.
    pub(super) fn all() -> [Self; 3] {
        [
            Self::new(Kind::Channel, Model::Push),
            Self::new(Kind::RealTimeChannel, Model::Push),
            Self::new(Kind::Channel, Model::Pull),
        ]
    }

    fn new(kind: Kind, model: Model) -> Self {
        Self {
            kind,
            model,
            is_supplied: AtomicBool::new(false),
            account: Mutex::default(),
        }
    }

    pub(super) fn is_of(&self, kind: Kind) -> bool {
        self.kind == kind
    }

    /// The channel's name.
    pub(super) fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// The consumer, in words.
    pub(super) fn consumer(&self) -> String {
        match self.model {
            Model::Push => self.name().to_owned(),
            Model::Pull => format!("{}, pulled,", self.name()),
        }
    }

    /// How many of the soak's own consumers its channel has.
    pub(super) fn own_consumers(&self) -> u32 {
        match self.kind {
            Kind::Channel => 2,
            _ => 1,
        }
    }

    pub(super) fn account(&self) -> Account {
        locked(&self.account).clone()
    }

    /// The channel starts anew: its counts begin at 0.
    pub(super) fn begin_life(&self) {
        let mut account = locked(&self.account);
        account.dropped = (account.dropped(), 0);
        account.consumers = None;
    }

    /// From now on only a new report tells of consumers.
    pub(super) fn forget_consumers(&self) {
        locked(&self.account).consumers = None;
    }

    /// The channel has the consumers of this soak, and none of those that died.
    pub(super) fn has_own_consumers(&self) -> bool {
        locked(&self.account).consumers == Some(self.own_consumers())
    }

    fn is_settled(&self) -> bool {
        let account = locked(&self.account);
        let received = account.last_received.map_or(0, |last| last.0);
        self.is_supplied.load(Relaxed) && received >= account.last_pushed.0
    }
}

/// Starts a supplier of each channel, and its consumers.
pub(super) fn start<'s>(scope: &'s Scope<'s, '_>, scene: &'s Scene) {
    for accounts in &scene.accounts {
        let server = scene.server(accounts.kind);
        scope.spawn(move || match accounts.model {
            Model::Push => consume(scene, server, accounts),
            Model::Pull => pull(scene, server, accounts),
        });
    }
    for kind in [Kind::Channel, Kind::RealTimeChannel] {
        scope.spawn(move || {
            supply(scene, scene.server(kind));
            for accounts in of(scene, kind) {
                accounts.is_supplied.store(true, Relaxed);
            }
        });
    }
}

fn of(scene: &Scene, kind: Kind) -> impl Iterator<Item = &Accounts> {
    scene.accounts.iter().filter(move |one| one.is_of(kind))
}

/// Waits until the consumers have what was pushed, bounded. What they have not got then is missing.
pub(super) fn drain(scene: &Scene) {
    let until_ns = monotonic_ns() + nanoseconds(DRAIN);
    for accounts in &scene.accounts {
        while !accounts.is_settled() && monotonic_ns() < until_ns {
            sleep_until(monotonic_ns() + TURN_NS);
        }
        let server = scene.server(accounts.kind);
        let mut account = locked(&accounts.account);
        let (last, last_ns) = account.last_received.unwrap_or_default();
        let (pushed, pushed_ns) = account.last_pushed;
        let is_excused = server.is_excused(last_ns, pushed_ns);
        account.miss(pushed.saturating_sub(last), is_excused);
    }
}

/// Pushes numbered events. The supplier lives for some seconds, and another one goes on.
fn supply(scene: &Scene, server: &Server) {
    let mut random = Random::new(scene.seed ^ 0x7375 ^ server.kind as u64);
    let mut beat = Beat::new(PERIOD);
    let mut number = 0;
    while !scene.is_over() {
        let supplier = server.call("connect a supplier", || {
            let client = Client::new(server)?;
            let channel = open(&client.object).map_err(|error| words(&error))?;
            let sink = channel.supply(&[HEADER]).map_err(|error| words(&error))?;
            Ok::<_, String>((sink, client))
        });
        // The supplier disconnects before its ORB ends.
        let Some((mut sink, client)) = supplier else {
            rest();
            continue;
        };
        let until_ns = life(&mut random);
        while monotonic_ns() < until_ns && !scene.is_over() {
            beat.wait();
            number += 1;
            if push(scene, server, &mut *sink, number).is_none() {
                rest();
                break;
            }
        }
        let _ = server.call("flush", || sink.flush()); // A failure is noted.
        drop(sink);
        drop(client);
    }
}

/// Returns an error with its cause.
fn words(error: &EventsError) -> String {
    match error {
        EventsError::Unreachable(exception) => format!("{error}: {exception}"),
        _ => error.to_string(),
    }
}

/// Type and source of the events, which have no header of their own.
const HEADER: (i32, i32) = (HEADER_DEFAULT.r#type, HEADER_DEFAULT.source);

fn push(scene: &Scene, server: &Server, sink: &mut dyn Sink, number: u64) -> Option<()> {
    let now_ns = monotonic_ns();
    let content = vec![number, now_ns.unsigned_abs()];
    let event = Event::of(Any::from_value(&content).ok()?);
    server.call("push", || sink.push(&event))?;
    for accounts in of(scene, server.kind) {
        let mut account = locked(&accounts.account);
        account.pushed += 1;
        account.last_pushed = (number, now_ns);
    }
    Some(())
}

/// Receives the events, and asks the channel for its counts.
fn consume(scene: &Scene, server: &Server, accounts: &Accounts) {
    let is_drained = || scene.is_drained.load(Relaxed);
    while !is_drained() {
        let connected = server.call("connect a consumer", || {
            let client = Client::new(server)?;
            let connected = Subscription::connect(&client.object, None, Selection::default(), None);
            let subscription = connected.map_err(|error| words(&error))?;
            Ok::<_, String>((subscription, client))
        });
        let Some((mut subscription, client)) = connected else {
            rest();
            continue;
        };
        let mut reports = Reports::default();
        while !is_drained() {
            match subscription.next(LOOK) {
                Ok(Next::Event(received)) => {
                    let at_ns = received.at.monotonic_ns;
                    if let Some(pushed_ns) = take(server, accounts, &received.event.data) {
                        server.note_time(pushed_ns, at_ns);
                    }
                }
                Ok(Next::Nothing) => {}
                Ok(Next::Ended) => break,
                Err(error) => {
                    let now_ns = monotonic_ns();
                    let since_ns = now_ns - nanoseconds(CHECKED_WITHIN);
                    let words = format!("the consumer: {error}");
                    server.note_failed_call((since_ns, now_ns), &words);
                    break;
                }
            }
            reports.take(server, accounts, &client);
        }
        drop(subscription);
        drop(client);
    }
}

/// Asks the channel for the events one by one. Its place is kept while the channel is down: a channel with a store has
/// it again after a kill.
fn pull(scene: &Scene, server: &Server, accounts: &Accounts) {
    let is_drained = || scene.is_drained.load(Relaxed);
    let mut beat = Beat::new(PERIOD);
    while !is_drained() {
        let connected = server.call("connect a consumer that pulls", || {
            let client = Client::new(server)?;
            Ok::<_, String>((connect_pull(&client)?, client))
        });
        let Some((proxy, client)) = connected else {
            rest();
            continue;
        };
        let mut reports = Reports::default();
        while !is_drained() {
            match server.call("try_pull", || proxy.try_pull()) {
                Some((event, true)) => {
                    // Its time is that of the beat, and tells nothing of the channel.
                    let _ = take(server, accounts, &event);
                }
                Some((_, false)) => beat.wait(),
                None if proxy.reference().non_existent() == Ok(true) => break,
                None => rest(),
            }
            reports.take(server, accounts, &client);
        }
        drop(proxy);
        drop(client);
    }
}

fn connect_pull(client: &Client) -> Result<Connected<ProxyPullSupplierRef>, String> {
    let channel = EventChannelRef::unchecked_narrow(client.object.clone());
    let obtain = ConsumerAdminRef::obtain_pull_supplier;
    let proxy = Connected::obtain(channel.for_consumers(), obtain, FAREWELL_TIMEOUT);
    let proxy = proxy.map_err(|error| error.to_string())?;
    let connected = proxy.connect_pull_consumer(None);
    connected.map_err(|error| format!("{error:?}"))?;
    Ok(proxy)
}

/// When a consumer asks the channel for its counts.
#[derive(Default)]
struct Reports {
    due_ns: i64,
}

impl Reports {
    fn take(&mut self, server: &Server, accounts: &Accounts, client: &Client) {
        if monotonic_ns() < self.due_ns {
            return;
        }
        self.due_ns = monotonic_ns() + nanoseconds(REPORTS);
        let found = server.call("report", || report(&client.object));
        if let Some(Some(found)) = found {
            let mut account = locked(&accounts.account);
            account.dropped.1 = found.dropped + found.failed;
            account.consumers = Some(found.consumers + found.pulling_consumers);
        }
    }
}

/// Notes an event, and returns when it was pushed; `None` for one that was not.
fn take(server: &Server, accounts: &Accounts, event: &Any) -> Option<i64> {
    let content = event.extract::<Vec<u64>>();
    let Ok([number, pushed_ns]) = content.as_deref() else {
        server.note_failure("an event has another content than any that was pushed".to_owned());
        return None;
    };
    let pushed_ns = i64::try_from(*pushed_ns).unwrap_or(i64::MAX);
    let is_excused = |from_ns, until_ns| server.is_excused(from_ns, until_ns);
    locked(&accounts.account).receive(*number, pushed_ns, is_excused);
    Some(pushed_ns)
}

/// How long a consumer waits for an event before it looks at something else.
const LOOK: Duration = Duration::from_millis(100);

/// The time between two reports of a channel.
const REPORTS: Duration = Duration::from_millis(500);

/// A consumer that has heard nothing asks the channel after so long, and waits so long for the answer.
const CHECKED_WITHIN: Duration = Duration::from_secs(10);

/// The longest time for the last events to arrive.
const DRAIN: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_events_are_excused_by_a_fault_between_their_neighbours_alone() {
        let mut account = Account::default();
        let excused = |from, until| from <= 100 && 90 <= until;
        for (number, at) in [
            (5, 10),
            (6, 20),
            (9, 60),
            (12, 95),
            (13, 120),
            (13, 121),
            (12, 122),
        ] {
            account.receive(number, at, excused);
        }
        assert_eq!((account.missing, account.excused), (2, 2), "{account:?}");
        assert_eq!((account.received, account.repeated), (7, 2));
        assert_eq!(account.before, 4);
    }

    #[test]
    fn the_losses_of_all_lives_of_a_channel_are_added() {
        let accounts = Accounts::new(Kind::Channel, Model::Push);
        locked(&accounts.account).dropped.1 = 3;
        accounts.begin_life();
        locked(&accounts.account).dropped.1 = 4;
        assert_eq!(accounts.account().dropped(), 7);
        assert!(!accounts.has_own_consumers());
    }
}
