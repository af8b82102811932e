//! The parts of an external carrier: each starts the carrier's program, relays its events and commands, and checks the
//! records that it wrote.

use std::collections::BTreeSet;
use std::io::Write;
use std::time::{Duration, Instant};

use deckwatch_meter::caution::Caution;
use deckwatch_meter::result::Warning;
use deckwatch_os::clock;
use deckwatch_os::namespace::GroupSignal;

use super::foreign_records::ForeignRecords;
use super::plan_text::{Files, PlanText};
use super::program::{
    Program, ProgramDone, ProgramEvent, ProgramFault, ProgramReady, ProgramSaid, plain,
};
use super::stage::{Stage, Told};
use super::{consumer, messages_of, supplier};
use crate::body::Body;
use crate::carrier::Carrier as _;
use crate::error::PartError;
use crate::external::External;
use crate::limits::{PROGRAM_STOP_MAX, PROGRAM_WARNINGS_MAX, PROGRESS_INTERVAL};
use crate::plan::{BrokerPlan, ConsumerPlan, SupplierPlan};
use crate::record::{RecordFile, consumer_capacity};
use crate::scheduling::{self, Scheduling};
use crate::stamp_clock::StampClock;
use crate::talk::{Done, PartCommand, PartEvent, Progress, Ready, Setting, Settings};

/// Runs the program as the supplier of a stream.
pub(super) fn play_supplier(
    carrier: &External,
    plan: &SupplierPlan,
    stage: &mut Stage<impl Write>,
) -> Result<(), PartError> {
    let (body, messages) = supplier::message_of(plan)?;
    let slots = supplier::slots(plan)?.len() as u64;
    let size_bytes = body.octets().len() as u64;
    let records = &plan.records;
    let file = RecordFile::supplier(records, plan.stream.flow, slots, messages, size_bytes)?;
    let stream = &plan.stream;
    let records = ForeignRecords::new(records, file, &stream.schedule, stream.deadline)?;
    let files = Files::of(&plan.records);
    let fault = |fault| program_fault(carrier, fault);
    files.write(&body, Some(stream)).map_err(fault)?;
    let mut text = PlanText::begin("supplier", stream, plan.address, plan.topic.as_ref());
    text.message(stream, &body, &files, &plan.records);
    text.line("slots", slots);
    text.line("capacity", messages);
    text.path("dues", &files.dues);
    for destination in &plan.destinations {
        let endpoint = match &*destination.endpoint {
            "" => "-",
            endpoint => endpoint,
        };
        let (index, host) = (destination.index, &destination.host);
        text.line("destination", format_args!("{index} {host} {endpoint}"));
    }
    let priority = plan.priority;
    text.settings(stream, plan.topic.as_ref(), priority, plan.network_priority);
    let part = Part {
        carrier,
        flow: &stream.name,
        scheduling: &plan.scheduling,
        text,
        records: Some(records),
        is_supplier: true,
    };
    part.play(Duration::ZERO, stage)
}

/// Runs the program as a consumer of a stream.
pub(super) fn play_consumer(
    carrier: &External,
    plan: &ConsumerPlan,
    stage: &mut Stage<impl Write>,
) -> Result<(), PartError> {
    consumer::check_handle_for(plan)?;
    let stream = &plan.stream;
    let body = Body::new(&stream.body)?;
    let messages = messages_of(&stream.schedule)?;
    let capacity = consumer_capacity(messages);
    let size_bytes = body.octets().len() as u64;
    let path = &plan.records;
    let file = RecordFile::consumer(path, stream.flow, plan.destination, capacity, size_bytes)?;
    let records = ForeignRecords::new(path, file, &stream.schedule, stream.deadline)?;
    let files = Files::of(path);
    let fault = |fault| program_fault(carrier, fault);
    files.write(&body, None).map_err(fault)?;
    let mut text = PlanText::begin("consumer", stream, plan.address, plan.topic.as_ref());
    text.message(stream, &body, &files, path);
    text.line("capacity", capacity);
    text.line("handle-for-ns", plan.handle_for.as_nanos());
    text.line("measure", u8::from(plan.is_measured));
    if let Some(octets) = plan.receive_buffer_bytes {
        text.setting(Setting::ReceiveBuffer, "receive-buffer-bytes", octets);
    }
    let priority = plan.priority;
    text.settings(stream, plan.topic.as_ref(), priority, plan.network_priority);
    let part = Part {
        carrier,
        flow: &stream.name,
        scheduling: &plan.scheduling,
        text,
        records: Some(records),
        is_supplier: false,
    };
    part.play(plan.handle_for, stage)
}

/// Runs the program as the broker of a stream.
pub(super) fn play_broker(
    plan: &BrokerPlan,
    stage: &mut Stage<impl Write>,
) -> Result<(), PartError> {
    let stream = &plan.stream;
    let Some(carrier) = stream.carrier.external() else {
        return Err(PartError::NoBroker {
            carrier: stream.carrier.name(),
        });
    };
    let body = Body::new(&stream.body)?;
    let files = Files::of(&plan.body);
    let fault = |fault| program_fault(carrier, fault);
    files.write(&body, None).map_err(fault)?;
    let mut text = PlanText::begin("broker", stream, plan.address, Some(&plan.topic));
    text.body(&body, &files);
    text.settings(stream, Some(&plan.topic), None, plan.network_priority);
    let part = Part {
        carrier,
        flow: &stream.name,
        scheduling: &plan.scheduling,
        text,
        records: None,
        is_supplier: false,
    };
    part.play(Duration::ZERO, stage)
}

fn program_fault(carrier: &External, fault: ProgramFault) -> PartError {
    PartError::Program {
        carrier: carrier.name(),
        fault,
    }
}

/// A part before its program is started.
struct Part<'p> {
    carrier: &'p External,
    flow: &'p str,
    scheduling: &'p Scheduling,
    text: PlanText,
    /// A broker has none.
    records: Option<ForeignRecords>,
    is_supplier: bool,
}

/// What a part of a running program has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The program has to become ready.
    Starting { until: Instant },
    /// It is ready, or sends and receives.
    Ready,
    /// It was told to stop, or has finished.
    Stopping { until: Instant },
    /// It has had SIGTERM.
    Terminated { until: Instant },
}

impl Part<'_> {
    fn play(
        mut self,
        handle_for: Duration,
        stage: &mut Stage<impl Write>,
    ) -> Result<(), PartError> {
        let carrier = self.carrier;
        let fault = |fault| program_fault(carrier, fault);
        let mut ready = Ready {
            size_bytes: self.records.as_ref().map(ForeignRecords::message_bytes),
            warnings: scheduling::prepare_process(
                &Scheduling {
                    // A program does not inherit locked memory.
                    lock_memory: false,
                    ..self.scheduling.clone()
                },
                handle_for,
            ),
            ..Ready::default()
        };
        if self.scheduling.lock_memory {
            let text = &mut self.text;
            text.setting(Setting::LockedMemory, "lock-memory", 1);
        }
        let asked = std::mem::take(&mut self.text.asked);
        let text = self.text.finish();
        let (program, refused) =
            Program::start(carrier, self.scheduling, text, &stage.teller()).map_err(fault)?;
        ready.warnings.extend(refused);
        ready.scheduling = scheduling::in_words(self.scheduling, &ready.warnings);
        ready.program = Some(program.id());
        let mut playing = Playing {
            flow: self.flow,
            carrier,
            program,
            records: self.records,
            is_supplier: self.is_supplier,
            asked,
            ready: Some(ready),
            state: State::Starting {
                until: Instant::now() + carrier.ready_max(),
            },
            done: None,
            warnings: Vec::new(),
        };
        let mut clock = StampClock::new();
        let attended = playing.attend(stage, &mut clock);
        let ended = playing.end(&mut clock, attended);
        let progress = ended.map_err(fault)?;
        stage.say(&PartEvent::Done(Done {
            progress,
            warnings: playing.warnings,
        }));
        Ok(())
    }
}

/// A part whose program runs.
struct Playing<'p> {
    flow: &'p str,
    carrier: &'p External,
    program: Program,
    records: Option<ForeignRecords>,
    is_supplier: bool,
    asked: BTreeSet<Setting>,
    /// Until it is written.
    ready: Option<Ready>,
    state: State,
    done: Option<ProgramDone>,
    warnings: Vec<Warning>,
}

impl Playing<'_> {
    /// Relays events and commands until the program has ended, or failed.
    fn attend(
        &mut self,
        stage: &mut Stage<impl Write>,
        clock: &mut StampClock,
    ) -> Result<(), ProgramFault> {
        let mut started = false;
        loop {
            match stage.hear(self.patience()) {
                Told::Command(command @ PartCommand::Go { start_ns }) => {
                    started = true;
                    self.records
                        .iter_mut()
                        .for_each(|records| records.start(start_ns));
                    self.program.write(format!("{command}\n").into_bytes());
                }
                Told::Command(PartCommand::Stop) => self.stop(),
                Told::Program(ProgramSaid::Event(event)) => self.handle(event, stage)?,
                Told::Program(ProgramSaid::Fault(fault)) => return Err(fault),
                Told::Program(ProgramSaid::End) => return self.output_ended(),
                Told::Command(PartCommand::Count) | Told::Prepared(_) | Told::Finished => {}
                Told::Nothing => {
                    clock.renew();
                    if started {
                        let progress = self.progress()?;
                        stage.say(&PartEvent::Progress(progress));
                    }
                }
            }
            if self.is_overdue()? {
                return Ok(());
            }
        }
    }

    fn patience(&self) -> Duration {
        let until = match self.state {
            State::Ready => return PROGRESS_INTERVAL,
            State::Starting { until } | State::Stopping { until } | State::Terminated { until } => {
                until
            }
        };
        until
            .saturating_duration_since(Instant::now())
            .min(PROGRESS_INTERVAL)
    }

    /// Handles an event of the program.
    fn handle(
        &mut self,
        event: ProgramEvent,
        stage: &mut Stage<impl Write>,
    ) -> Result<(), ProgramFault> {
        match event {
            ProgramEvent::Ready(announced) => {
                // A second one changes nothing.
                if let Some(ready) = self.ready.take() {
                    let ready = self.announce(ready, announced)?;
                    stage.say(&PartEvent::Ready(ready));
                    if matches!(self.state, State::Starting { .. }) {
                        self.state = State::Ready;
                    }
                }
                Ok(())
            }
            ProgramEvent::Done(done) => {
                if self.state == State::Ready && !self.is_supplier || self.ready.is_some() {
                    let how = "it wrote `done`".to_owned();
                    return Err(self.ended(how));
                }
                self.done = Some(done);
                self.stop();
                Ok(())
            }
            ProgramEvent::Error { text } => Err(ProgramFault::Failed { text: plain(&text) }),
            ProgramEvent::Warning { text } => {
                let text = format!("reported: {}", plain(&text).trim_end_matches('.'));
                let carrier = self.carrier.name();
                let warning: Warning = Caution::OfProgram(carrier, text).into();
                let of_ready = self.ready.as_mut().map(|ready| &mut ready.warnings);
                let kept = of_ready.unwrap_or(&mut self.warnings);
                if kept.len() < PROGRAM_WARNINGS_MAX && !kept.contains(&warning) {
                    kept.push(warning);
                }
                Ok(())
            }
            ProgramEvent::Other => Ok(()),
        }
    }

    /// Completes `ready` by what the program announced.
    fn announce(&self, mut ready: Ready, announced: ProgramReady) -> Result<Ready, ProgramFault> {
        let endpoint = announced.endpoint;
        if endpoint.contains(char::is_control) {
            let text = "its endpoint has a control character".to_owned();
            return Err(ProgramFault::Failed { text });
        }
        let named = |words: &[String]| -> BTreeSet<Setting> {
            let is_named = |setting: &Setting| words.iter().any(|word| word == setting.word());
            self.asked.iter().copied().filter(is_named).collect()
        };
        let honoured = named(&announced.honoured);
        // A setting that the program does not name has no effect as far as anybody knows.
        let ignored: BTreeSet<Setting> = self.asked.difference(&honoured).copied().collect();
        let network = [Setting::Dscp, Setting::SocketPriority];
        if network.iter().any(|setting| ignored.contains(setting)) {
            let caution = Caution::PriorityUnapplied {
                flow: self.flow.to_owned(),
                carrier: self.carrier.name(),
            };
            ready.warnings.push(caution.into());
        }
        ready.endpoint = endpoint;
        ready.listening = announced.listening.parse().ok();
        ready.settings = Settings { honoured, ignored };
        Ok(ready)
    }

    /// Tells the program to stop, once.
    fn stop(&mut self) {
        if matches!(self.state, State::Starting { .. } | State::Ready) {
            self.program.write(b"stop\n".to_vec());
            self.program.close_input();
            self.state = State::Stopping {
                until: Instant::now() + PROGRAM_STOP_MAX,
            };
        }
    }

    /// Handles the end of the program's output.
    fn output_ended(&mut self) -> Result<(), ProgramFault> {
        let was_stopped = matches!(
            self.state,
            State::Stopping { .. } | State::Terminated { .. }
        );
        let status = self.program.wait(PROGRAM_STOP_MAX);
        match status {
            None => {
                let how = "it closed its output and went on".to_owned();
                return Err(self.ended(how));
            }
            Some(_) if was_stopped && self.done.is_some() => {}
            Some(status) if was_stopped && !status.success() => {
                return Err(self.ended(status.to_string()));
            }
            Some(_) if was_stopped => self.warn("ended without its counts"),
            Some(status) => return Err(self.ended(status.to_string())),
        }
        Ok(())
    }

    fn ended(&mut self, how: String) -> ProgramFault {
        ProgramFault::Ended {
            how,
            words: self.program.words(),
        }
    }

    /// Takes the next step against a program that is late. Returns true if nothing is left to wait for.
    fn is_overdue(&mut self) -> Result<bool, ProgramFault> {
        let now = Instant::now();
        match self.state {
            State::Starting { until } if now >= until => Err(ProgramFault::NotReady {
                within: self.carrier.ready_max(),
                words: self.program.words(),
            }),
            State::Stopping { until } if now >= until => {
                self.program.signal(GroupSignal::Terminate);
                self.state = State::Terminated {
                    until: now + PROGRAM_STOP_MAX,
                };
                Ok(false)
            }
            State::Terminated { until } if now >= until => {
                self.warn("did not end when it was told to, and was killed");
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn warn(&mut self, how: &str) {
        let caution = Caution::OfProgram(self.carrier.name(), how.to_owned());
        self.warnings.push(caution.into());
    }

    fn progress(&mut self) -> Result<Progress, ProgramFault> {
        let overflows = self.done.map_or(0, |done| done.overflows);
        let Some(records) = &mut self.records else {
            return Ok(Progress::default());
        };
        let progress = records.progress().map_err(|error| ProgramFault::Records {
            fact: error.to_string(),
        })?;
        Ok(Progress {
            overflows,
            ..progress
        })
    }

    /// Ends the program if it still runs. Then checks its records, and writes their header. The records of a program that
    /// failed are checked too: those that are true are kept.
    fn end(
        &mut self,
        clock: &mut StampClock,
        attended: Result<(), ProgramFault>,
    ) -> Result<Progress, ProgramFault> {
        self.program.signal(GroupSignal::Kill);
        self.program.wait(PROGRAM_STOP_MAX);
        clock.renew();
        let done = self.done.unwrap_or_default();
        let Some(records) = &mut self.records else {
            return attended.map(|()| Progress::default());
        };
        let lie = match records.verify(clock::monotonic_ns()) {
            Ok(lie) => lie,
            Err(error) => Some(format!("they cannot be read ({error})")),
        };
        let is_true = lie.is_none();
        records.note(clock, done, is_true && attended.is_ok());
        if let Some(fact) = lie {
            records.clear();
            return Err(ProgramFault::Records { fact });
        }
        if attended.is_ok() {
            records.seal();
        }
        attended?;
        self.progress()
    }
}

#[cfg(test)]
mod tests;
