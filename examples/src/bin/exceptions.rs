//! Exceptions: a user exception with members, and the system exception for a server that does not run.
//!
//! ```text
//! 100 litres in the tank
//! drew 70, 30 are left
//! refused: 50 wanted, 30 left
//! a server that is not there: TRANSIENT, completed: No
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use deckwatch_examples::Outcome;
use deckwatch_orb::{ObjectRef, Orb, Servant, SystemException};
use exceptions::example::{Tank, TankDrawError, TankEmpty, TankRef, TankSkeleton};

mod exceptions {
    include!(concat!(env!("OUT_DIR"), "/exceptions.rs"));
}

struct DayTank {
    level: AtomicI32,
}

impl Tank for DayTank {
    fn level(&self) -> Result<i32, SystemException> {
        Ok(self.level.load(Ordering::Relaxed))
    }

    fn draw(&self, litres: i32) -> Result<(), TankDrawError> {
        let drawn = |left: i32| (litres <= left).then(|| left - litres);
        match self
            .level
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, drawn)
        {
            Ok(_) => Ok(()),
            // `?` and `into` convert the exception into the operation's error.
            Err(left) => Err(TankEmpty {
                wanted: litres,
                left,
            }
            .into()),
        }
    }
}

fn serve(orb: &Orb) -> Outcome<ObjectRef> {
    let root = orb.root_poa()?;
    root.the_poa_manager().activate()?;
    let tank = DayTank {
        level: AtomicI32::new(100),
    };
    let servant: Arc<dyn Servant> = Arc::new(TankSkeleton::new(tank));
    Ok(root.servant_to_reference(&servant)?)
}

fn call(orb: &Orb, object: &ObjectRef) -> Outcome {
    let tank = TankRef::narrow(object)?.ok_or("it is no Example::Tank")?;
    println!("{} litres in the tank", tank.level()?);
    tank.draw(70)?;
    println!("drew 70, {} are left", tank.level()?);
    match tank.draw(50) {
        Ok(()) => return Err("more was drawn than there was".into()),
        // The exception that the operation declares, with its members.
        Err(TankDrawError::TankEmpty(empty)) => {
            println!("refused: {} wanted, {} left", empty.wanted, empty.left);
        }
        // A system exception, which any call can raise: by the network, the server or the ORB.
        Err(TankDrawError::System(exception)) => return Err(exception.into()),
    }
    // A system exception: no server listens at that port, and the request has certainly not been served.
    let nobody = orb.string_to_object("corbaloc::127.0.0.1:1/Tank")?;
    let nobody = TankRef::unchecked_narrow(nobody.ok_or("a nil reference")?);
    if let Err(exception) = nobody.level() {
        println!(
            "a server that is not there: {}, completed: {:?}",
            exception.kind.name(),
            exception.completed
        );
    }
    Ok(())
}

fn main() -> Outcome {
    deckwatch_examples::run(serve, call)
}
