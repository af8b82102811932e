//! The real-time channel's dispatching in virtual time, under faults that a seed chooses: connections are reset, hosts
//! stall, windows are narrow, lanes are late, queues are short, timeouts fire, and consumers come, leave, suspend and
//! resume.
//!
//! A model of the lanes runs beside the channel. For each seed, the test checks:
//! - each event set is sent from the queue that it must be in, in the order of that queue, and a full queue drops what
//!   its policy says;
//! - a consumer gets what was sent to it, in that order, none twice, and nothing after the farewell;
//! - for each consumer, and for those that are gone: emitted = delivered + dropped + failed + lost, each by reason;
//! - the channel comes to its end.
//!
//! A failure names its seed: `DECKWATCH_SEED=N cargo test -p deckwatch-event --test event dispatching` replays it.

mod model;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deckwatch_event::dispatch::{Dispatching, QueueFull, QueueOptions, QueueOrder};
use deckwatch_event::filter::designator::{DISJUNCTION, INTERVAL_TIMEOUT};
use deckwatch_event::rt::{Loss, RtChannelOptions, RtEventChannel, Scheduling};
use deckwatch_event::rtec_event_channel_admin::{
    ConsumerQOS, Dependency, ProxyPushConsumerRef, ProxyPushSupplierRef, Publication, SupplierQOS,
};
use deckwatch_event::rtec_event_comm::{
    Event, EventHeader, PushConsumer, PushConsumerRef, PushConsumerSkeleton,
};
use deckwatch_event::{SchedulerOptions, SchedulingService, WhenFull};
use deckwatch_orb::transport::Transport as _;
use deckwatch_orb::{NativePriority, Orb, Servant, SystemException};
use deckwatch_sched::{Operations, RtInfo, Settings, Strategy};

use crate::sim::seeds::{Random, run_all};
use crate::simulated::world::World;
use model::{Model, Urgency};

/// Number of seeds, unless DECKWATCH_SEEDS is set.
const SEEDS: u64 = 250;
const STEPS: u32 = 120;
const CONSUMERS_MAX: usize = 5;
const MS: u64 = 1_000_000;
/// The interval of a consumer with a timeout.
const BEAT: Duration = Duration::from_millis(3);
/// The types of events, with the handles of the supplier's and of the consumers' operations, and their periods.
const TYPES: [(i32, i32, i32, u64); 2] = [(16, 1, 3, 10), (17, 2, 4, 100)];

/// What a consumer has been told: the numbers of events, and its end.
#[derive(Default)]
struct Taker(Mutex<Vec<Option<i32>>>);

impl PushConsumer for Taker {
    fn push(&self, data: &[Event]) -> Result<(), SystemException> {
        let numbers = data.iter().map(|event| Some(event.header.source));
        self.0.lock().unwrap().extend(numbers);
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.0.lock().unwrap().push(None);
        Ok(())
    }
}

/// A consumer, as the test knows it.
struct Client {
    proxy: ProxyPushSupplierRef,
    taker: Arc<Taker>,
    /// Which of [`TYPES`] it takes; else it takes timeouts alone.
    takes: [bool; TYPES.len()],
    /// It names the operations of its events.
    is_rated: bool,
    has_beat: bool,
    is_suspended: bool,
    /// The events that its outlet was offered, in order.
    offered: Vec<i32>,
    emitted: u64,
    lost: [u64; Loss::ALL.len()],
}

struct Sim {
    random: Random,
    world: World,
    far: [Orb; 2],
    served: RtEventChannel,
    supplier: ProxyPushConsumerRef,
    model: Model,
    /// By the number of their proxies; those that are gone, too.
    clients: BTreeMap<u64, Client>,
    /// The number of the last event.
    last: i32,
    has_schedule: bool,
    may_reset: bool,
    was_reset: bool,
}

fn header(event_type: i32, source: i32, time: u64) -> EventHeader {
    EventHeader {
        r#type: event_type,
        source,
        ttl: 1,
        creation_time: time,
        ..EventHeader::default()
    }
}

fn of(header: EventHeader) -> Event {
    Event {
        header,
        ..Event::default()
    }
}

fn operations() -> Operations {
    let mut operations = Operations::default();
    for (name, period) in [("fast", 10), ("slow", 100), ("on fast", 0), ("on slow", 0)] {
        let info = RtInfo {
            entry_point: name.to_owned(),
            worst_case_ns: MS,
            period_ns: period * MS,
            ..RtInfo::default()
        };
        operations.add(&info).expect("another name");
    }
    operations
}

/// The channel's options: the seed chooses the dispatching, and how full everything may be.
fn options(random: &mut Random, orb: &Orb) -> (RtChannelOptions, QueueOptions) {
    let mut queue = QueueOptions {
        len: 1 + random.next(6) as usize,
        order: QueueOrder::Arrival,
        when_full: [QueueFull::DropFirst, QueueFull::DropNew][random.next(2) as usize],
    };
    let strategy = match random.next(5) {
        0 => Some(Strategy::Edf),
        1 => Some(Strategy::Mlf),
        2 | 3 => Some(Strategy::Rms),
        _ => None,
    };
    let scheduling = strategy.map(|strategy| {
        let options = SchedulerOptions {
            settings: Settings {
                strategy,
                ..Settings::default()
            },
            ..SchedulerOptions::default()
        };
        let service = SchedulingService::start_with(orb, options, operations(), None);
        let range = (NativePriority(1), NativePriority(49));
        Scheduling::of_service(&service.expect("a service"), range)
    });
    let dispatching = match &scheduling {
        Some(scheduling) => {
            let lanes = scheduling.lanes(orb, queue).expect("lanes");
            queue.order = lanes[0].queue.order;
            Dispatching::Lanes(lanes)
        }
        None if random.next(2) == 0 => Dispatching::Reactive,
        None => Dispatching::Pool { threads: 2, queue },
    };
    let when_full = [
        WhenFull::DropOldest,
        WhenFull::DropNewest,
        WhenFull::Disconnect(Duration::from_millis(2)),
    ][random.next(3) as usize];
    let options = RtChannelOptions {
        queue_len: 1 + random.next(8) as usize,
        when_full,
        dispatching,
        scheduling,
        ..RtChannelOptions::default()
    };
    (options, queue)
}

impl Sim {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let world = World::new(seed, (1_000, 900_000));
        let near = world.orb("near");
        let far = ["far", "other"].map(|host| {
            let orb = world.orb(host);
            let root = orb.root_poa().unwrap();
            root.the_poa_manager().activate().unwrap();
            orb
        });
        let root = near.root_poa().unwrap();
        root.the_poa_manager().activate().unwrap();
        let (options, queue) = options(&mut random, &near);
        let has_schedule = options.scheduling.is_some();
        let lanes = match &options.dispatching {
            Dispatching::Reactive => 0,
            Dispatching::Lanes(lanes) => lanes.len(),
            _ => 1,
        };
        let served = RtEventChannel::start(&near, options).expect("a channel");
        let admin = served.reference().for_suppliers().unwrap().unwrap();
        let supplier = admin.obtain_push_consumer().unwrap().unwrap();
        let publications = TYPES.map(|(event_type, handle, _, _)| {
            let mut publication = Publication {
                event: of(header(event_type, 0, 0)),
                ..Publication::default()
            };
            publication.dependency_info.rt_info = if has_schedule { handle } else { 0 };
            publication
        });
        let qos = SupplierQOS {
            publications: publications.to_vec(),
            is_gateway: false,
        };
        supplier.connect_push_supplier(None, &qos).unwrap();
        Self {
            random,
            world,
            far,
            served,
            supplier,
            model: Model::new(lanes, queue),
            clients: BTreeMap::new(),
            last: 0,
            has_schedule,
            may_reset: seed.is_multiple_of(2),
            was_reset: false,
        }
    }

    /// The clients that the channel still has.
    fn live(&self) -> Vec<u64> {
        let reports = self.served.consumers();
        reports.iter().map(|report| report.number).collect()
    }

    /// One of the clients that the channel still has.
    fn pick(&mut self) -> Option<u64> {
        let live = self.live();
        (!live.is_empty()).then(|| live[self.random.next(live.len() as u64) as usize])
    }

    fn connect(&mut self) {
        let live = self.live();
        if live.len() >= CONSUMERS_MAX {
            return;
        }
        let may_beat = live.iter().all(|number| !self.clients[number].has_beat);
        let takes = [self.random.next(3) != 0, self.random.next(3) != 0];
        let has_beat = takes == [false; 2] && may_beat;
        let is_rated = self.has_schedule && self.random.next(4) != 0 && !has_beat;
        let mut entries: Vec<_> = TYPES
            .iter()
            .zip(takes)
            .filter(|(_, takes)| *takes)
            .map(|((event_type, _, handle, _), _)| {
                (
                    header(*event_type, 0, 0),
                    if is_rated { *handle } else { 0 },
                )
            })
            .collect();
        if has_beat {
            let interval = BEAT.as_nanos() as u64 / 100;
            entries.push((header(INTERVAL_TIMEOUT, 0, interval), 0));
        }
        if entries.is_empty() {
            return;
        }
        entries.insert(0, (header(DISJUNCTION, entries.len() as i32, 0), 0));
        let dependency = |(header, rt_info)| Dependency {
            event: of(header),
            rt_info,
        };
        let qos = ConsumerQOS {
            dependencies: entries.into_iter().map(dependency).collect(),
            is_gateway: false,
        };
        let taker = Arc::<Taker>::default();
        let orb = &self.far[self.random.next(2) as usize];
        let servant: Arc<dyn Servant> = Arc::new(PushConsumerSkeleton::new(Arc::clone(&taker)));
        let root = orb.root_poa().unwrap();
        let reference = root.servant_to_reference(&servant).unwrap();
        let consumer = PushConsumerRef::unchecked_narrow(reference);
        let admin = self.served.reference().for_consumers().unwrap().unwrap();
        let proxy = admin.obtain_push_supplier().unwrap().unwrap();
        proxy.connect_push_consumer(Some(&consumer), &qos).unwrap();
        let number = *self.live().last().expect("it is connected");
        let client = Client {
            proxy,
            taker,
            takes,
            is_rated,
            has_beat,
            is_suspended: false,
            offered: Vec::new(),
            emitted: 0,
            lost: [0; Loss::ALL.len()],
        };
        assert!(self.clients.insert(number, client).is_none());
    }

    /// The filter of a client has emitted an event of a type, or a timeout.
    fn emit(&mut self, number: u64, event: i32, of_type: Option<usize>) {
        let client = self.clients.get_mut(&number).expect("a client");
        client.emitted += 1;
        if client.is_suspended {
            client.lost[Loss::Suspended as usize] += 1;
            return;
        }
        if self.model.is_reactive() {
            client.offered.push(event);
            return;
        }
        let period = of_type.map(|of_type| TYPES[of_type].3 * MS);
        let urgency = Urgency {
            // The lane of the faster operation is the more urgent one.
            lane: match of_type {
                Some(0) if self.has_schedule => self.model.highest(),
                _ => 0,
            },
            deadline_ns: period
                .filter(|_| client.is_rated)
                .map(|period| self.world.now().0 + period),
            worst_case_ns: MS,
        };
        if let Some(lost) = self.model.put(urgency, number, event) {
            let of = self.clients.get_mut(&lost).expect("a client");
            of.lost[Loss::QueueFull as usize] += 1;
        }
    }

    fn push(&mut self) {
        let count = 1 + self.random.next(3) as usize;
        let mut events = Vec::new();
        for _ in 0..count {
            self.last += 1;
            let of_type = self.random.next(2) as usize;
            events.push(of(header(TYPES[of_type].0, self.last, 0)));
            for number in self.live() {
                if self.clients[&number].takes[of_type] {
                    self.emit(number, self.last, Some(of_type));
                }
            }
        }
        self.supplier.push(&events).expect("served");
    }

    /// A thread of a lane has its turn.
    fn turn(&mut self, lane: usize) -> bool {
        // The channel fires what is due before it sends.
        let live = self.live();
        let fired = self.served.counts().timeouts;
        let is_sent = self.served.turn(lane);
        let fired = self.served.counts().timeouts - fired;
        let beating = live.iter().find(|number| self.clients[*number].has_beat);
        for _ in 0..fired {
            self.emit(*beating.expect("a timeout"), 0, None);
        }
        let expected = self.model.take(lane);
        assert_eq!(is_sent, expected.is_some(), "lane {lane}");
        let Some((number, event)) = expected else {
            return fired != 0;
        };
        let client = self.clients.get_mut(&number).expect("a client");
        if !live.contains(&number) {
            client.lost[Loss::Gone as usize] += 1;
        } else if client.is_suspended {
            client.lost[Loss::Suspended as usize] += 1;
        } else {
            client.offered.push(event);
        }
        true
    }

    fn step(&mut self) {
        match self.random.next(24) {
            0..=7 => self.push(),
            8..=13 => {
                for _ in 0..self.random.next(4) {
                    let lane = self.random.next(2) as usize;
                    self.turn(lane);
                }
            }
            14 | 15 => self.connect(),
            16 => {
                if let Some(number) = self.pick() {
                    self.clients[&number]
                        .proxy
                        .disconnect_push_supplier()
                        .unwrap();
                }
            }
            17 => {
                if let Some(number) = self.pick() {
                    let client = self.clients.get_mut(&number).expect("a client");
                    client.is_suspended = !client.is_suspended;
                    if client.is_suspended {
                        client.proxy.suspend_connection().unwrap();
                    } else {
                        client.proxy.resume_connection().unwrap();
                    }
                }
            }
            18 if self.may_reset => {
                self.was_reset = true;
                self.world.reset(self.random.next(64) as usize);
            }
            19 => {
                let host = ["near", "far", "other"][self.random.next(3) as usize];
                let time = Duration::from_micros(self.random.next(5_000));
                self.world.stall(host, time);
            }
            20 => {
                let window = [40, 200, 1_460, usize::MAX][self.random.next(4) as usize];
                self.world.narrow(window);
            }
            _ => {
                let time = Duration::from_micros(self.random.next(3_000));
                self.world.pass(time);
            }
        }
    }

    /// Lets everything be delivered, then compares all counts with the model's.
    fn audit(&mut self) {
        self.world.narrow(usize::MAX);
        self.world.pass(Duration::from_secs(1));
        // A timeout comes again and again: as many turns as there may be event sets.
        for lane in (0..2).rev() {
            while !self.model.is_empty(lane) {
                self.turn(lane);
            }
        }
        self.world.pass(Duration::from_secs(60));
        let mut emitted = 0;
        let mut offered = 0;
        let mut lost = [0; Loss::ALL.len()];
        for client in self.clients.values() {
            emitted += client.emitted;
            offered += client.offered.len() as u64;
            for (sum, of_one) in lost.iter_mut().zip(client.lost) {
                *sum += of_one;
            }
        }
        let counts = self.served.counts();
        assert_eq!(counts.lost, lost);
        let ended = counts.delivered + counts.dropped + counts.failed;
        assert_eq!(ended, offered, "{counts:?}");
        assert_eq!(emitted, offered + lost.iter().sum::<u64>());
        for report in self.served.consumers() {
            let client = &self.clients[&report.number];
            assert_eq!(report.lost, client.lost, "{report:?}");
            let ended = report.delivered + report.dropped + report.failed;
            assert_eq!(ended, client.offered.len() as u64, "{report:?}");
            let taken = client.taker.0.lock().unwrap().len() as u64;
            let is_right = if self.was_reset {
                taken <= report.delivered
            } else {
                taken == report.delivered
            };
            assert!(is_right, "{taken} arrived: {report:?}");
        }
    }

    fn end(&mut self) {
        let live = self.live();
        self.served.reference().destroy().expect("it is alive");
        self.world.pass(Duration::from_secs(60));
        assert!(self.served.has_ended());
        for (number, client) in &self.clients {
            let told = client.taker.0.lock().unwrap().clone();
            let ends = told.iter().filter(|one| one.is_none()).count();
            let is_told = live.contains(number) && !self.was_reset;
            assert!(ends <= 1 && (ends == 1 || !is_told), "{told:?}");
            assert!(ends == 0 || told.last() == Some(&None), "{told:?}");
            let mut offered = client.offered.iter();
            for number in told.iter().flatten() {
                let found = offered.any(|one| one == number);
                assert!(found, "{told:?} of {:?}", client.offered);
            }
        }
    }
}

fn run(seed: u64) {
    let mut sim = Sim::new(seed);
    sim.connect();
    for _ in 0..STEPS {
        sim.step();
    }
    sim.audit();
    sim.end();
    let Sim { world, served, .. } = sim;
    drop(served);
    world.end();
}

#[test]
fn every_event_has_its_place_and_its_count_whatever_happens() {
    run_all(SEEDS, "-p deckwatch-event --test event dispatching", run);
}
