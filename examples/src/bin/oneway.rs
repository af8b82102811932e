//! One-way: calls without a reply, in order, and what a caller can wait for.
//!
//! ```text
//! 1000 lines are written in order
//! written by SYNC_WITH_TARGET: the servant has finished
//! SYNC_WITH_TARGET to an object that is not there: OBJECT_NOT_EXIST
//! SYNC_WITH_TRANSPORT to an object that is not there: nobody tells
//! ```

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use deckwatch_examples::Outcome;
use deckwatch_orb::{
    ObjectRef, Orb, Policy, Servant, SetOverrideType, SyncScope, SystemException,
    SystemExceptionKind,
};
use log::example::{Log, LogRef, LogSkeleton};

mod log {
    include!(concat!(env!("OUT_DIR"), "/log.rs"));
}

#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl Log for Lines {
    fn write(&self, line: &str) -> Result<(), SystemException> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(line.to_owned());
        Ok(())
    }

    fn lines(&self) -> Result<u32, SystemException> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(lines.len() as u32)
    }

    fn in_order(&self) -> Result<bool, SystemException> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = |(number, line): (usize, &String)| *line == format!("line {number}");
        Ok(lines.iter().enumerate().all(due))
    }

    fn last(&self) -> Result<Cow<'_, str>, SystemException> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Cow::Owned(lines.last().cloned().unwrap_or_default()))
    }
}

fn serve(orb: &Orb) -> Outcome<ObjectRef> {
    let root = orb.root_poa()?;
    root.the_poa_manager().activate()?;
    let servant: Arc<dyn Servant> = Arc::new(LogSkeleton::new(Lines::default()));
    Ok(root.servant_to_reference(&servant)?)
}

/// The same object with a SyncScope policy.
fn scoped(object: &ObjectRef, scope: SyncScope) -> Outcome<LogRef> {
    let policies = [Policy::SyncScope(scope)];
    let object = object.set_policy_overrides(&policies, SetOverrideType::AddOverride)?;
    Ok(LogRef::unchecked_narrow(object))
}

fn call(orb: &Orb, object: &ObjectRef) -> Outcome {
    // Without a SyncScope policy a one-way returns when the transport has it.
    let log = LogRef::narrow(object)?.ok_or("it is no Example::Log")?;
    for number in 0..1_000 {
        log.write(&format!("line {number}"))?;
    }
    // One-ways of one client keep their order; a two-way behind them may overtake them.
    while log.lines()? < 1_000 {
        std::thread::yield_now();
    }
    if log.in_order()? {
        println!("{} lines are written in order", log.lines()?);
    }

    let to_the_servant = scoped(object, SyncScope::WithTarget)?;
    to_the_servant.write("the servant has finished")?;
    println!("written by SYNC_WITH_TARGET: {}", log.last()?);

    let nobody = deckwatch_examples::same_server(orb, object, "nobody")?;
    match scoped(&nobody, SyncScope::WithTarget)?.write("?") {
        Err(exception) if exception.kind == SystemExceptionKind::ObjectNotExist => {
            println!(
                "SYNC_WITH_TARGET to an object that is not there: {}",
                exception.kind.name()
            );
        }
        other => return Err(format!("not refused: {other:?}").into()),
    }
    scoped(&nobody, SyncScope::WithTransport)?.write("?")?;
    println!("SYNC_WITH_TRANSPORT to an object that is not there: nobody tells");
    Ok(())
}

fn main() -> Outcome {
    deckwatch_examples::run(serve, call)
}
