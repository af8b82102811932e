//! Timeouts: a call that ends at its time limit, whatever the server does.
//!
//! ```text
//! a short call returns
//! a long call: TIMEOUT
//! the connection is none the worse: a short call returns
//! ```

use std::sync::Arc;
use std::time::Duration;

use deckwatch_examples::Outcome;
use deckwatch_orb::{ObjectRef, Orb, Servant, SystemException, SystemExceptionKind};
use pump::example::{Pump, PumpRef, PumpSkeleton};

mod pump {
    include!(concat!(env!("OUT_DIR"), "/pump.rs"));
}

struct BilgePump;

impl Pump for BilgePump {
    fn run_for(&self, milliseconds: u32) -> Result<(), SystemException> {
        std::thread::sleep(Duration::from_millis(milliseconds.into()));
        Ok(())
    }
}

fn serve(orb: &Orb) -> Outcome<ObjectRef> {
    let root = orb.root_poa()?;
    root.the_poa_manager().activate()?;
    let servant: Arc<dyn Servant> = Arc::new(PumpSkeleton::new(BilgePump));
    Ok(root.servant_to_reference(&servant)?)
}

fn call(_orb: &Orb, object: &ObjectRef) -> Outcome {
    // A reference with a limit of its own; `-ORBRoundTripTimeout` sets one for all references of an ORB.
    let limited = object.with_round_trip_timeout(Some(Duration::from_secs(1)));
    let pump = PumpRef::narrow(&limited)?.ok_or("it is no Example::Pump")?;
    pump.run_for(1)?;
    println!("a short call returns");
    match pump.run_for(60_000) {
        Err(exception) if exception.kind == SystemExceptionKind::Timeout => {
            println!("a long call: {}", exception.kind.name());
        }
        other => return Err(format!("not in time: {other:?}").into()),
    }
    pump.run_for(1)?;
    println!("the connection is none the worse: a short call returns");
    Ok(())
}

fn main() -> Outcome {
    deckwatch_examples::run(serve, call)
}
