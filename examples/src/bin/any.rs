//! Any: values of types that the server was not compiled for. Each has its TypeCode with it.
//!
//! ```text
//! depth: 42 (long)
//! name: "Deckwatch" (string)
//! position: 54.3 north, 10.1 east (Example::Position)
//! as a number it is refused
//! nothing is written there: Unknown
//! ```

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use any::example::{
    Blackboard, BlackboardReadError, BlackboardRef, BlackboardSkeleton, Position, Unknown,
};
use deckwatch_cdr::Any;
use deckwatch_examples::Outcome;
use deckwatch_orb::{ObjectRef, Orb, Servant, SystemException};

mod any {
    include!(concat!(env!("OUT_DIR"), "/any.rs"));
}

#[derive(Default)]
struct Board {
    values: RwLock<HashMap<String, Any>>,
}

impl Blackboard for Board {
    fn write(&self, name: &str, value: &Any) -> Result<(), SystemException> {
        let mut values = self.values.write().unwrap_or_else(PoisonError::into_inner);
        values.insert(name.to_owned(), value.clone());
        Ok(())
    }

    fn read(&self, name: &str) -> Result<Any, BlackboardReadError> {
        let values = self.values.read().unwrap_or_else(PoisonError::into_inner);
        Ok(values.get(name).cloned().ok_or(Unknown {})?)
    }
}

fn serve(orb: &Orb) -> Outcome<ObjectRef> {
    let root = orb.root_poa()?;
    root.the_poa_manager().activate()?;
    let servant: Arc<dyn Servant> = Arc::new(BlackboardSkeleton::new(Board::default()));
    Ok(root.servant_to_reference(&servant)?)
}

fn call(_orb: &Orb, object: &ObjectRef) -> Outcome {
    let board = BlackboardRef::narrow(object)?.ok_or("it is no Example::Blackboard")?;
    let position = Position {
        latitude: 54.3,
        longitude: 10.1,
    };
    board.write("depth", &Any::from_value(&42_i32)?)?;
    board.write("name", &Any::from_value("Deckwatch")?)?;
    board.write("position", &Any::from_value(&position)?)?;

    let depth: i32 = board.read("depth")?.extract()?;
    println!("depth: {depth} (long)");
    let name: String = board.read("name")?.extract()?;
    println!("name: {name:?} (string)");
    let value = board.read("position")?;
    let Position {
        latitude,
        longitude,
    } = value.extract()?;
    println!("position: {latitude} north, {longitude} east (Example::Position)");
    // `extract` checks the type of the value against the type that is asked for.
    if value.extract::<i32>().is_err() {
        println!("as a number it is refused");
    }
    if let Err(BlackboardReadError::Unknown(_)) = board.read("speed") {
        println!("nothing is written there: Unknown");
    }
    Ok(())
}

fn main() -> Outcome {
    deckwatch_examples::run(serve, call)
}
