//! Asynchronous calls: the client sends requests and continues. Handlers are called with the replies, or pollers return
//! them.
//!
//! ```text
//! four requests are under way
//! column 0: 17.5 m
//! column 1: 12.25 m
//! column 2: 8 m
//! column 7 is off the chart
//! the poller says 12.25 m
//! ready: depth
//! ```

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use asynchronous::example::{
    AMIChartExceptionHolder, AMIChartHandler, Chart, ChartDepthError, ChartRef, ChartSkeleton,
    OffTheChart,
};
use deckwatch_examples::Outcome;
use deckwatch_orb::{ExceptionHolder, ObjectRef, Orb, Servant, SystemException};

mod asynchronous {
    include!(concat!(env!("OUT_DIR"), "/asynchronous.rs"));
}

const DEPTHS: [f64; 3] = [17.5, 12.25, 8.0];

struct Soundings;

impl Chart for Soundings {
    fn depth(&self, column: i32) -> Result<f64, ChartDepthError> {
        let known = usize::try_from(column).ok().and_then(|at| DEPTHS.get(at));
        Ok(*known.ok_or(OffTheChart { column })?)
    }
}

/// The handler of one request.
struct Sounding {
    column: i32,
    line: Mutex<Sender<String>>,
}

impl Sounding {
    fn say(&self, line: String) -> Result<(), SystemException> {
        let lines = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        // An error means that the client no longer waits for it.
        let _unheard = lines.send(line);
        Ok(())
    }
}

impl AMIChartHandler for Sounding {
    fn depth(&self, ami_return_val: f64) -> Result<(), SystemException> {
        self.say(format!("column {}: {ami_return_val} m", self.column))
    }

    fn depth_excep(&self, excep_holder: &ExceptionHolder) -> Result<(), SystemException> {
        self.say(match excep_holder.raise_depth() {
            ChartDepthError::OffTheChart(OffTheChart { column }) => {
                format!("column {column} is off the chart")
            }
            ChartDepthError::System(exception) => format!("column {}: {exception}", self.column),
        })
    }
}

fn serve(orb: &Orb) -> Outcome<ObjectRef> {
    let root = orb.root_poa()?;
    root.the_poa_manager().activate()?;
    let servant: Arc<dyn Servant> = Arc::new(ChartSkeleton::new(Soundings));
    Ok(root.servant_to_reference(&servant)?)
}

fn call(_orb: &Orb, object: &ObjectRef) -> Outcome {
    let chart = ChartRef::narrow(object)?.ok_or("it is no Example::Chart")?;
    let (line, lines) = channel();
    for column in [0, 1, 2, 7] {
        let line = Mutex::new(line.clone());
        // A thread of the ORB calls the handler; replies come in any order.
        chart.sendc_depth(Some(Arc::new(Sounding { column, line })), column)?;
    }
    println!("four requests are under way");
    let patience = Duration::from_secs(10);
    let mut told = Vec::new();
    while told.len() < 4 {
        told.push(lines.recv_timeout(patience)?);
    }
    told.sort();
    println!("{}", told.join("\n"));
    let poller = chart.sendp_depth(1)?;
    // Other work goes here; then at most ten seconds for the reply.
    println!("the poller says {} m", poller.depth(10_000)?);
    let set = chart.sendp_depth(2)?.create_pollable_set();
    let ready = set.ready_pollable(10_000)?;
    println!("ready: {}", ready.operation_name());
    Ok(())
}

fn main() -> Outcome {
    deckwatch_examples::run(serve, call)
}
