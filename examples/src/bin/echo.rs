//! Echo: an interface, a servant, and a call of it.
//!
//! ```text
//! ahoy
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use deckwatch_examples::Outcome;
use deckwatch_orb::{ObjectRef, Orb, Servant, SystemException};
use echo::example::{Echo, EchoRef, EchoSkeleton};

/// The Rust that `build.rs` generates from `idl/echo.idl`.
mod echo {
    include!(concat!(env!("OUT_DIR"), "/echo.rs"));
}

/// The servant, which answers the calls.
struct Mirror;

impl Echo for Mirror {
    fn echo_string<'a>(&'a self, message: &'a str) -> Result<Cow<'a, str>, SystemException> {
        Ok(Cow::Borrowed(message))
    }
}

fn serve(orb: &Orb) -> Outcome<ObjectRef> {
    // Every ORB has a root object adapter. Its manager lets requests through once it is active.
    let root = orb.root_poa()?;
    root.the_poa_manager().activate()?;
    // The skeleton stands between the ORB and the servant; activating it makes an object of it.
    let servant: Arc<dyn Servant> = Arc::new(EchoSkeleton::new(Mirror));
    Ok(root.servant_to_reference(&servant)?)
}

fn call(_orb: &Orb, object: &ObjectRef) -> Outcome {
    let echo = EchoRef::narrow(object)?.ok_or("it is no Example::Echo")?;
    println!("{}", echo.echo_string("ahoy")?);
    Ok(())
}

fn main() -> Outcome {
    deckwatch_examples::run(serve, call)
}
