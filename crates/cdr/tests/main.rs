//! CDR through its public interface: types, values, opaque states, and their costs.

#[path = "support/states.rs"]
mod states;
mod support;

mod bounds;
mod divided;
mod dynamic;
mod forms;
mod opaque;
mod opaque_costs;
mod plain;
mod round_trip;
mod rows;
mod values;
