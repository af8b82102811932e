//! Lanes: a call is served at the priority of its caller, by threads that no other priority can occupy.
//!
//! Client and server are two ORBs of one process, in the time-sharing class so that every user can run it. As root, or
//! with CAP_SYS_NICE, `lanes -ORBSchedPolicy SCHED_FIFO` gives the same threads native priorities too.
//!
//! ```text
//! called at 5: served at 5
//! called at 90: served at 90
//! the lane of 5 is kept busy; called at 90: served at 90
//! called at 42: INV_POLICY, the server has no lane for the priority of the caller
//! ```

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use deckwatch_examples::Outcome;
use deckwatch_orb::{
    ObjectRef, Orb, Policies, Priority, PriorityModel, Scheduling, Servant, SystemException,
    ThreadpoolLane,
};
use helm::example::{Helm, HelmRef, HelmSkeleton};

mod helm {
    include!(concat!(env!("OUT_DIR"), "/helm.rs"));
}

struct Wheel {
    orb: Orb,
    holding: Mutex<bool>,
    changed: Condvar,
}

impl Helm for Wheel {
    fn served_at(&self) -> Result<i16, SystemException> {
        Ok(self.orb.rt_current().the_priority()?.value())
    }

    fn hold(&self) -> Result<(), SystemException> {
        let mut holding = self.holding.lock().unwrap_or_else(PoisonError::into_inner);
        *holding = true;
        self.changed.notify_all();
        let released = self.changed.wait_while(holding, |holding| *holding);
        drop(released.unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    fn await_hold(&self) -> Result<(), SystemException> {
        let holding = self.holding.lock().unwrap_or_else(PoisonError::into_inner);
        let held = self.changed.wait_while(holding, |holding| !*holding);
        drop(held.unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    fn release(&self) -> Result<(), SystemException> {
        *self.holding.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.changed.notify_all();
        Ok(())
    }
}

fn orb() -> Outcome<Orb> {
    let mut arguments: Vec<String> = std::env::args().collect();
    // The command line overrides this: -ORBSchedPolicy, -ORBPriorityMapping.
    let builder = Orb::builder().scheduling(Scheduling::Other);
    Ok(builder.arguments(&mut arguments)?.build()?)
}

/// A lane with one thread for each of these priorities, and an object that is served at its caller's priority.
fn serve(orb: &Orb, low: Priority, high: Priority) -> Outcome<ObjectRef> {
    let rt_orb = orb.rt_orb();
    let lane = |lane_priority| ThreadpoolLane {
        lane_priority,
        static_threads: 1,
        dynamic_threads: 0,
    };
    let pool = rt_orb.create_threadpool_with_lanes(0, &[lane(low), lane(high)], false, None)?;
    let model = rt_orb.create_priority_model_policy(PriorityModel::ClientPropagated, low);
    let policies = Policies {
        threadpool: Some(pool),
        priority_model: Some(model),
        ..Policies::default()
    };
    let root = orb.root_poa()?;
    let manager = root.the_poa_manager();
    manager.activate()?;
    let poa = root.create_poa("helm", Some(manager), &policies)?;
    let wheel = Wheel {
        orb: orb.clone(),
        holding: Mutex::new(false),
        changed: Condvar::new(),
    };
    let servant: Arc<dyn Servant> = Arc::new(HelmSkeleton::new(wheel));
    let id = poa.activate_object(servant)?;
    Ok(poa.id_to_reference(&id)?)
}

fn call(orb: &Orb, helm: &HelmRef, low: Priority, high: Priority) -> Outcome {
    let current = orb.rt_current();
    // From here on the calls of this thread are of this priority, and go to the lane that has it.
    current.set_the_priority(low)?;
    println!("called at {low}: served at {}", helm.served_at()?);
    current.set_the_priority(high)?;
    println!("called at {high}: served at {}", helm.served_at()?);

    std::thread::scope(|scope| -> Outcome {
        let holder = scope.spawn(|| {
            orb.rt_current().set_the_priority(low)?;
            helm.hold()
        });
        helm.await_hold()?;
        let served = helm.served_at()?;
        println!("the lane of {low} is kept busy; called at {high}: served at {served}");
        helm.release()?;
        Ok(holder.join().unwrap_or(Ok(()))?)
    })?;

    let between = Priority::try_from(42)?;
    current.set_the_priority(between)?;
    if let Err(exception) = helm.served_at() {
        let (kind, fact) = (exception.kind.name(), exception.explain().fact);
        println!("called at {between}: {kind}, {fact}");
    }
    Ok(())
}

fn main() -> Outcome {
    let (low, high) = (Priority::try_from(5)?, Priority::try_from(90)?);
    let server = orb()?;
    let text = server.object_to_string(&serve(&server, low, high)?);
    let client = orb()?;
    let object = client.string_to_object(&text)?.ok_or("a nil reference")?;
    let helm = HelmRef::narrow(&object)?.ok_or("it is no Example::Helm")?;
    call(&client, &helm, low, high)?;
    Ok(server.shutdown(true)?)
}
