//! Starts the processes of a run in this order: loads, clock parts, naming services, event channels, consumers, packet taps,
//! suppliers. Each group must be ready before the next one starts.

use std::time::Duration;

use deckwatch_carrier::carriers::CarrierRef;
use deckwatch_carrier::plan::PartPlan;
use deckwatch_load::Pace;
use deckwatch_meter::caution::Caution;
use deckwatch_meter::result::Warning;

use super::child::{Child, Ended, Role, Task};
use super::observe::Phase;
use super::plans::Planner;
use super::{Run, RunError};
use crate::limits::{READY_PATIENCE, READY_PATIENCE_EACH};
use crate::mission::{Load, LoadWork, Mission};
use crate::part::ProcessPlan;
use crate::stream::length;

impl Run<'_> {
    /// Waits until all of these parts of streams are ready. If all that are not are those of external carriers, the error
    /// has each of these carriers.
    fn wait_ready(&mut self, wanted: &[usize]) -> Result<(), RunError> {
        let patience = patience(wanted.len());
        let waited = self.crew.wait_ready(wanted, patience, self.interrupt);
        let Err(RunError::NotReady { process, how }) = waited else {
            return waited;
        };
        let mut carriers: Vec<(CarrierRef, String)> = Vec::new();
        for &index in wanted {
            let child = &self.crew.children[index];
            let Some(how) = child.not_ready(patience) else {
                continue;
            };
            let stream = match child.role {
                Role::Channel { stream }
                | Role::Consumer { stream, .. }
                | Role::Supplier { stream } => stream,
                _ => return Err(RunError::NotReady { process, how }),
            };
            let carrier = self.streams[stream].plan.carrier;
            if carrier.external().is_none() {
                return Err(RunError::NotReady { process, how });
            }
            if !carriers.iter().any(|(known, _)| *known == carrier) {
                carriers.push((carrier, format!("the {} {how}", child.label)));
            }
        }
        Err(RunError::CarriersNotReady {
            process,
            how,
            carriers,
        })
    }

    /// Starts all processes, and returns when all are ready.
    pub(super) fn start_all(&mut self) -> Result<(), RunError> {
        let mut failed = match self.start_in_order() {
            Ok(()) => return Ok(()),
            Err(failed) => failed,
        };
        if let RunError::NotReady { process, how }
        | RunError::CarriersNotReady { process, how, .. } = &mut failed
        {
            let child = self.crew.children.iter().find(|it| it.label == *process);
            let hosts = child.map_or(Vec::new(), |child| self.hosts_met(child));
            if let Some(flood) = flood(self.mission, &hosts) {
                *how = format!("{}; {flood}", how.trim_end_matches('.'));
            }
        }
        Err(failed)
    }

    /// Returns the hosts with which a part exchanges messages while it starts, its own included.
    fn hosts_met(&self, child: &Child) -> Vec<usize> {
        let mut hosts = vec![child.host];
        if let Role::Channel { stream }
        | Role::Consumer { stream, .. }
        | Role::Supplier { stream } = child.role
        {
            let flow = self.planner.flow(&self.streams[stream]);
            hosts.push(flow.from);
            hosts.extend(&flow.to);
        }
        hosts
    }

    fn start_in_order(&mut self) -> Result<(), RunError> {
        self.start_loads()?;
        self.start_clocks()?;
        self.start_services()?;
        self.start_brokers()?;
        let consumers = self.start_consumers()?;
        self.start_taps()?;
        self.start_suppliers(&consumers)?;
        self.crew.relate_clocks(READY_PATIENCE, self.interrupt)?;
        self.await_network_clocks()?;
        self.check_loads()
    }

    /// A load that cannot be carried out ends at once. The run would measure another condition than the mission's.
    fn check_loads(&self) -> Result<(), RunError> {
        let died = |child: &Child| match (&child.role, &child.ended) {
            (Role::Load { .. }, Some(Ended::Died(how))) => Some(RunError::NotReady {
                process: child.label.clone(),
                how: how.clone(),
            }),
            _ => None,
        };
        self.crew.children.iter().find_map(died).map_or(Ok(()), Err)
    }

    /// Starts one process and notifies the observer.
    pub(super) fn start(
        &mut self,
        role: Role,
        label: String,
        host: usize,
        plan: ProcessPlan,
    ) -> Result<usize, RunError> {
        let task = Task {
            role,
            label,
            host,
            plan,
        };
        let index = self.crew.start(task, self.planner.host(host))?;
        let child = &self.crew.children[index];
        self.observer.started(&child.label, child.id());
        Ok(index)
    }

    fn start_loads(&mut self) -> Result<(), RunError> {
        if self.mission.loads.is_empty() {
            return Ok(());
        }
        self.observer.phase(Phase::Loads, "Starting loads");
        let run_s = self
            .streams
            .iter()
            .map(|stream| length(&stream.plan.schedule).as_secs())
            .max()
            .unwrap_or(0);
        for load in 0..self.mission.loads.len() {
            for (label, host, plan) in self.planner.load(load, run_s) {
                self.start(Role::Load { load }, label, host, ProcessPlan::Load(plan))?;
            }
        }
        Ok(())
    }

    /// Starts naming services and event channels, on the hosts of the suppliers that use them.
    fn start_services(&mut self) -> Result<(), RunError> {
        let with_channel: Vec<usize> = (0..self.streams.len())
            .filter(|&index| self.streams[index].plan.carrier.needs().channel.is_some())
            .collect();
        if with_channel.is_empty() {
            return Ok(());
        }
        self.observer.phase(
            Phase::Services,
            "Starting naming service and event channels",
        );
        let mut hosts: Vec<usize> = with_channel
            .iter()
            .map(|&index| self.planner.flow(&self.streams[index]).from)
            .collect();
        hosts.sort_unstable();
        hosts.dedup();
        for host in hosts {
            let plan = PartPlan::Names(self.planner.names(host));
            let label = format!("naming service on {}", self.planner.host(host).name);
            let index = self.start(Role::Names { host }, label, host, of_part(plan))?;
            self.crew
                .wait_ready(&[index], READY_PATIENCE, self.interrupt)?;
            self.planner.names[host] = self.crew.children[index]
                .ready
                .as_ref()
                .map(|ready| ready.endpoint.clone());
        }
        let mut channels = Vec::new();
        for &index in &with_channel {
            let stream = &self.streams[index];
            if let Some(plan) = self.planner.channel(stream) {
                let host = self.planner.flow(stream).from;
                let name = &self.planner.host(host).name;
                let label = format!("event channel of {} on {name}", stream.plan.name);
                let plan = of_part(PartPlan::Channel(plan));
                channels.push(self.start(Role::Channel { stream: index }, label, host, plan)?);
            }
        }
        self.crew
            .wait_ready(&channels, patience(channels.len()), self.interrupt)?;
        for (&stream, &child) in with_channel.iter().zip(&channels) {
            self.notice_channel(stream, child);
        }
        Ok(())
    }

    /// Shows the command that prints the events of a channel: its naming service has a free port.
    fn notice_channel(&mut self, stream: usize, child: usize) {
        let stream = &self.streams[stream];
        let Some(at) = self.planner.channel_at(stream) else {
            return;
        };
        let station = self.planner.host(self.planner.flow(stream).from);
        let program = station.program_words(self.crew.children[child].id());
        self.observer.notice(&format!(
            "Events of {}: {program} events echo {} --names {}",
            Planner::title(stream),
            at.name,
            at.names
        ));
    }

    /// Starts the brokers of external carriers, on the hosts of the suppliers.
    fn start_brokers(&mut self) -> Result<(), RunError> {
        let mut brokers = Vec::new();
        for (index, stream) in self.streams.iter().enumerate() {
            let Some(plan) = self.planner.broker(stream) else {
                continue;
            };
            if brokers.is_empty() {
                self.observer.phase(Phase::Services, "Starting brokers");
            }
            let host = self.planner.flow(stream).from;
            let name = &self.planner.host(host).name;
            let label = format!("broker of {} on {name}", Planner::title(stream));
            let plan = of_part(PartPlan::Broker(plan));
            let child = self.start(Role::Channel { stream: index }, label, host, plan)?;
            brokers.push((index, child));
        }
        let children: Vec<usize> = brokers.iter().map(|&(_, child)| child).collect();
        self.wait_ready(&children)?;
        for (stream, child) in brokers {
            let ready = self.crew.children[child].ready.as_ref();
            self.planner.brokers[stream] = ready.map(|ready| ready.endpoint.clone());
        }
        Ok(())
    }

    /// Starts a consumer for each stream and destination. Returns their indices, by stream.
    fn start_consumers(&mut self) -> Result<Vec<Vec<usize>>, RunError> {
        self.observer.phase(Phase::Consumers, "Starting consumers");
        let mut all = Vec::new();
        for (index, stream) in self.streams.iter().enumerate() {
            let mut of_stream = Vec::new();
            for (destination, &to) in self.planner.flow(stream).to.iter().enumerate() {
                let name = &self.planner.host(to).name;
                let label = format!("consumer of {} at {name}", Planner::title(stream));
                let plan = PartPlan::Consumer(self.planner.consumer(stream, destination));
                let role = Role::Consumer {
                    stream: index,
                    destination,
                };
                of_stream.push(self.start(role, label, to, of_part(plan))?);
            }
            all.push(of_stream);
        }
        let flat: Vec<usize> = all.iter().flatten().copied().collect();
        self.wait_ready(&flat)?;
        Ok(all)
    }

    /// Starts a packet tap on each host, or one in all if the hosts share the loopback interface. Taps may fail:
    /// without them, layers are merged.
    fn start_taps(&mut self) -> Result<(), RunError> {
        let listening = |child: &Child| {
            child
                .ready
                .as_ref()?
                .listening
                .map(|address| address.port())
        };
        let mut ports: Vec<u16> = self.crew.children.iter().filter_map(listening).collect();
        ports.sort_unstable();
        ports.dedup();
        self.observer.phase(Phase::Taps, "Starting packet taps");
        let mut taps = Vec::new();
        for host in self.tapped_hosts() {
            let plan = of_part(PartPlan::Tap(self.planner.tap(host, ports.clone())));
            let label = format!("packet tap on {}", self.planner.host(host).name);
            taps.push(self.start(Role::Tap { host }, label, host, plan)?);
        }
        self.crew
            .wait(&taps, patience(taps.len()), self.interrupt, |child| {
                child.ready.is_some()
            })?;
        for index in taps {
            let child = &mut self.crew.children[index];
            if child.ready.is_none() || !child.lives() {
                child.kill("it did not become ready, and was killed");
                let how = match &child.ended {
                    Some(Ended::Died(how)) => how.clone(),
                    _ => "it ended".to_owned(),
                };
                let process = child.label.clone();
                let warning = Warning::from(Caution::NoTap { process, how });
                self.observer.notice(&warning.text);
                self.warnings.push(warning);
            }
        }
        Ok(())
    }

    /// Returns the hosts that supply or consume, each once; of those that share interfaces the first only.
    fn tapped_hosts(&self) -> Vec<usize> {
        let flows = self.mission.flows.iter();
        let mut hosts: Vec<usize> = flows
            .flat_map(|flow| flow.to.iter().copied().chain([flow.from]))
            .collect();
        hosts.sort_unstable();
        hosts.dedup();
        let mut seen = Vec::new();
        hosts.retain(|&host| {
            let interfaces = self.planner.host(host).tapped_with(host);
            let is_new = !seen.contains(&interfaces);
            seen.push(interfaces);
            is_new
        });
        hosts
    }

    fn start_suppliers(&mut self, consumers: &[Vec<usize>]) -> Result<(), RunError> {
        self.observer.phase(Phase::Suppliers, "Starting suppliers");
        let mut suppliers = Vec::new();
        for (index, stream) in self.streams.iter().enumerate() {
            let endpoint = |&child: &usize| {
                let ready = self.crew.children[child].ready.as_ref();
                ready.map_or(String::new(), |ready| ready.endpoint.clone())
            };
            let endpoints: Vec<String> = consumers[index].iter().map(endpoint).collect();
            let host = self.planner.flow(stream).from;
            let plan = PartPlan::Supplier(self.planner.supplier(stream, &endpoints));
            let name = &self.planner.host(host).name;
            let label = format!("supplier of {} on {name}", Planner::title(stream));
            let role = Role::Supplier { stream: index };
            suppliers.push(self.start(role, label, host, of_part(plan))?);
        }
        self.wait_ready(&suppliers)
    }
}

/// Returns words on the first load of the mission that fills a link of one of these hosts; `None` if none does.
fn flood(mission: &Mission, hosts: &[usize]) -> Option<String> {
    let floods = |load: &Load| match &load.work {
        LoadWork::Net { to, messages } if messages.pace == Pace::Flood => {
            let ends = [load.host, *to];
            ends.iter().any(|end| hosts.contains(end)).then_some(ends)
        }
        _ => None,
    };
    let [from, to] = mission.loads.iter().find_map(floods)?;
    let [from, to] = [from, to].map(|host| &mission.hosts[host].name);
    Some(format!(
        "the load from {from} to {to} floods the link and is the likely cause: give it `rate_mbit_s`, or a \
         `link_share` below 1"
    ))
}

pub(super) fn of_part(plan: PartPlan) -> ProcessPlan {
    ProcessPlan::Part(Box::new(plan))
}

/// Returns the maximum time until `count` processes are ready, when they start at the same time.
pub(super) fn patience(count: usize) -> Duration {
    READY_PATIENCE + READY_PATIENCE_EACH * count as u32
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_load_that_floods_a_link_of_the_hosts_is_named() {
        let named = |load: &str, hosts: &[usize]| {
            let text = format!(
                "name = \"m\"\nnetwork = {{ preset = \"fast-ethernet\" }}\nloads = [{load}]\n\
                 hosts = [{{ name = \"A\" }}, {{ name = \"B\" }}, {{ name = \"C\" }}]\n\
                 [[flows]]\nname = \"F\"\nfrom = \"A\"\nto = [\"B\"]\noctets = 64\nrate_hz = 20\n\
                 deadline = \"50ms\"\nlate = \"1 in 20\"\ncount = 100\ncarrier = \"udp\"\n"
            );
            let mission = Mission::parse(Path::new("m.toml"), &text, None).expect("sound");
            flood(&mission, hosts)
        };
        let flooding = "{ hosts = [\"A\"], to = \"B\" }";
        for hosts in [[0], [1]] {
            let words = named(flooding, &hosts).expect("it floods");
            assert!(
                words.contains("the load from A to B floods the link"),
                "{words}"
            );
        }
        assert_eq!(named(flooding, &[2]), None, "another link");
        let share = "{ hosts = [\"A\"], to = \"B\", link_share = 0.5 }";
        assert_eq!(named(share, &[0, 1]), None);
        assert_eq!(named("{ hosts = [\"A\"], share = 0.5 }", &[0, 1]), None);
    }
}
