//! Callback: the client serves an object of its own and is called back by the server.
//!
//! ```text
//! steering 47
//! told: 47
//! steering 312.5
//! told: 312.5
//! ```

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use callback::example::{
    Heading, HeadingRef, HeadingSkeleton, Listener, ListenerRef, ListenerSkeleton,
};
use deckwatch_examples::Outcome;
use deckwatch_orb::{ObjectRef, Orb, Servant, SystemException};

mod callback {
    include!(concat!(env!("OUT_DIR"), "/callback.rs"));
}

#[derive(Default)]
struct Helm {
    listeners: Mutex<Vec<ListenerRef>>,
}

impl Heading for Helm {
    fn subscribe(&self, who: Option<&ListenerRef>) -> Result<(), SystemException> {
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        listeners.extend(who.cloned());
        Ok(())
    }

    fn steer(&self, degrees: f64) -> Result<(), SystemException> {
        let listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        // No lock is held here: a listener may call this object from within its own operation.
        for listener in listeners {
            listener.changed(degrees)?;
        }
        Ok(())
    }
}

/// The client's object.
struct Repeater {
    told: Mutex<Sender<f64>>,
}

impl Listener for Repeater {
    fn changed(&self, degrees: f64) -> Result<(), SystemException> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        // An error means that the client no longer waits for it.
        let _unheard = told.send(degrees);
        Ok(())
    }
}

fn serve(orb: &Orb) -> Outcome<ObjectRef> {
    let root = orb.root_poa()?;
    root.the_poa_manager().activate()?;
    let servant: Arc<dyn Servant> = Arc::new(HeadingSkeleton::new(Helm::default()));
    Ok(root.servant_to_reference(&servant)?)
}

fn call(orb: &Orb, object: &ObjectRef) -> Outcome {
    let heading = HeadingRef::narrow(object)?.ok_or("it is no Example::Heading")?;
    // A client that is called back is also a server: it activates its root adapter, and its ORB listens.
    let root = orb.root_poa()?;
    root.the_poa_manager().activate()?;
    let (told, tells) = channel();
    let repeater = Repeater {
        told: Mutex::new(told),
    };
    let servant: Arc<dyn Servant> = Arc::new(ListenerSkeleton::new(repeater));
    let own = ListenerRef::unchecked_narrow(root.servant_to_reference(&servant)?);
    heading.subscribe(Some(&own))?;
    for degrees in [47.0, 312.5] {
        println!("steering {degrees}");
        heading.steer(degrees)?;
        println!("told: {}", tells.recv_timeout(Duration::from_secs(10))?);
    }
    Ok(())
}

fn main() -> Outcome {
    deckwatch_examples::run(serve, call)
}
