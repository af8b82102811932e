//! A servant that continues distributable threads, and their service context made by hand.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use deckwatch_orb::{
    Completion, ObjectRef, Orb, OrbBuilder, Servant, ServerRequest, SystemException,
    SystemExceptionKind as Kind, UtcT, own_minor,
};
use deckwatch_os::schedule::processor_time;
use deckwatch_rtscheduling::{
    Current, IdType, RankedScheduler, SchedulerBuilder, SchedulerOrb, SchedulingParameter,
    SegmentError,
};

use crate::common::octets::{Octets, Order};
use crate::common::servant::{Gate, call};
use crate::common::{Over, listening};

pub(crate) const SCHEDULING_INFO: u32 = 30;

pub(crate) fn important(importance: i16) -> SchedulingParameter {
    SchedulingParameter {
        importance: Some(importance),
        ..SchedulingParameter::default()
    }
}

pub(crate) fn due(time: u64) -> SchedulingParameter {
    SchedulingParameter {
        deadline: Some(UtcT::new(time, 0, 0)),
        ..SchedulingParameter::default()
    }
}

pub(crate) fn by_importance() -> OrbBuilder {
    Orb::builder().scheduler(RankedScheduler::most_important_first())
}

pub(crate) fn client() -> (Orb, Current) {
    let orb = by_importance().build().expect("a client");
    let current = orb.rt_scheduler_current().expect("it has a scheduler");
    (orb, current)
}

pub(crate) fn raised(kind: Kind, minor: u32) -> SystemException {
    SystemException::new(kind, minor, Completion::No)
}

pub(crate) fn cancelled(completed: Completion) -> SystemException {
    SystemException::new(Kind::ThreadCancelled, 0, completed)
}

pub(crate) fn outside() -> SystemException {
    raised(Kind::BadInvOrder, own_minor::SEGMENT_MISSING)
}

/// The data of the service context, made by hand: mark, id and parameters.
pub(crate) fn info(order: Order, id: [u8; 16], parameter: &SchedulingParameter) -> Vec<u8> {
    let said = [
        parameter.priority.is_some(),
        parameter.importance.is_some(),
        parameter.deadline.is_some(),
        parameter.execution_time.is_some(),
    ];
    let flags = said
        .iter()
        .rev()
        .fold(0, |flags, said| flags << 1 | u8::from(*said));
    let number = |value: i16| value.cast_unsigned();
    let mut octets = Octets::encapsulation(order);
    octets.u8(flags).u32(0x4457_5254).sequence(&id);
    octets.u16(number(
        parameter.priority.map_or(0, |priority| priority.value()),
    ));
    octets.u16(number(parameter.importance.unwrap_or(0)));
    octets
        .u64(parameter.deadline.map_or(0, |deadline| deadline.time))
        .u32(0)
        .u16(0)
        .u16(0);
    let execution = parameter.execution_time.unwrap_or_default().as_nanos() / 100;
    octets.u64(u64::try_from(execution).expect("short"));
    octets.octets
}

/// A servant with one operation per action. It records the id, the parameters and the segment names that it runs under.
#[derive(Default)]
pub(crate) struct Deck {
    pub(crate) orb: OnceLock<Orb>,
    pub(crate) seen: Mutex<Vec<(IdType, SchedulingParameter, Vec<String>)>>,
    /// The object and the operation that `go_on` calls.
    pub(crate) next: OnceLock<(ObjectRef, &'static str)>,
    pub(crate) gate: Gate,
}

impl Deck {
    pub(crate) fn current(&self) -> Current {
        self.orb
            .get()
            .expect("set")
            .rt_scheduler_current()
            .expect("a scheduler")
    }

    pub(crate) fn seen(&self) -> Vec<(IdType, SchedulingParameter, Vec<String>)> {
        self.seen.lock().expect("no panic").clone()
    }
}

impl Servant for Deck {
    fn repository_ids(&self) -> &'static [&'static str] {
        &["IDL:deckwatch.test/Deck:1.0"]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let current = self.current();
        let see = || -> Result<(), SystemException> {
            let names = current.current_scheduling_segment_names();
            let seen = (current.id()?, current.scheduling_parameter()?, names);
            self.seen.lock().expect("no panic").push(seen);
            Ok(())
        };
        match request.operation() {
            b"see" => see()?,
            b"nest" => {
                current
                    .begin_scheduling_segment("inner", important(77), None)
                    .map_err(system)?;
                see()?;
                current.end_scheduling_segment("inner")?;
                see()?;
                // A segment that is still open ends with the request.
                current
                    .begin_scheduling_segment("left open", important(78), None)
                    .map_err(system)?;
                assert_eq!(current.end_scheduling_segment(""), Ok(()));
                assert_eq!(
                    current.end_scheduling_segment(""),
                    Err(outside()),
                    "the caller's own"
                );
                current
                    .begin_scheduling_segment("left open", important(78), None)
                    .map_err(system)?;
            }
            b"go_on" => {
                see()?;
                let (next, operation) = self.next.get().expect("set");
                call(next, operation)?;
            }
            b"cancel" => {
                see()?;
                let id = current.id()?;
                current.lookup(id).expect("it is here").cancel()?;
            }
            b"cancel_and_begin" => {
                current
                    .lookup(current.id()?)
                    .expect("it is here")
                    .cancel()?;
                current
                    .begin_scheduling_segment("never", important(1), None)
                    .map_err(system)?;
            }
            b"wait" => {
                see()?;
                self.gate.pass();
            }
            b"run_and_go_on" => {
                see()?;
                run_for(RUN);
                if let Some((next, operation)) = self.next.get() {
                    call(next, operation)?;
                }
            }
            b"note" | b"note_oneway" => see()?,
            _ => return Err(raised(Kind::BadOperation, 0)),
        }
        if request.response_expected() {
            request.reply()?;
        }
        Ok(())
    }
}

/// How long the operation `run_and_go_on` uses the processor.
pub(crate) const RUN: Duration = Duration::from_millis(5);

/// Uses the processor for at least this long.
pub(crate) fn run_for(time: Duration) {
    let begun = processor_time();
    while processor_time() < begun + time {
        std::hint::spin_loop();
    }
}

pub(crate) fn system(error: SegmentError) -> SystemException {
    match error {
        SegmentError::System(exception) => exception,
        unsupported => panic!("{unsupported}"),
    }
}

pub(crate) struct Host {
    pub(crate) orb: Orb,
    pub(crate) deck: Arc<Deck>,
    pub(crate) text: String,
}

impl Host {
    pub(crate) fn new(builder: OrbBuilder) -> Self {
        let orb = listening(Over::Tcp, builder);
        let root = orb.root_poa().expect("it listens");
        root.the_poa_manager().activate().expect("a fresh manager");
        let deck = Arc::new(Deck::default());
        deck.orb.set(orb.clone()).expect("once");
        let servant: Arc<dyn Servant> = deck.clone();
        let text = root
            .servant_to_reference(&servant)
            .expect("implicit activation")
            .to_string();
        Self { orb, deck, text }
    }

    pub(crate) fn seen_by(&self, client: &Orb) -> ObjectRef {
        client
            .string_to_object(&self.text)
            .expect("a reference")
            .expect("not nil")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.deck.gate.open();
        let _ = self.orb.shutdown(true); // The test may have shut it down.
    }
}
