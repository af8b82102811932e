//! Naming: an object is bound to a name, and resolved by it in three ways.
//!
//! The server of this example contains a naming service. `deckwatch names serve` is the same service as a program,
//! and `-ORBInitRef NameService=...` names another one.
//!
//! ```text
//! ahoy by resolve
//! ahoy by resolve_str
//! ahoy by corbaname
//! bound in ship.area: mirror.echo
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use deckwatch_examples::Outcome;
use deckwatch_naming::NamingService;
use deckwatch_naming::store::Store;
use deckwatch_naming::user::{Existing, bind_with_contexts};
use deckwatch_orb::cos_naming::{NameComponent, NamingContextExtRef, NamingContextRef};
use deckwatch_orb::{ObjectRef, Orb, Servant, SystemException};
use echo::example::{Echo, EchoRef, EchoSkeleton};

mod echo {
    include!(concat!(env!("OUT_DIR"), "/echo.rs"));
}

struct Mirror;

impl Echo for Mirror {
    fn echo_string<'a>(&'a self, message: &'a str) -> Result<Cow<'a, str>, SystemException> {
        Ok(Cow::Borrowed(message))
    }
}

fn serve(orb: &Orb) -> Outcome<ObjectRef> {
    let root = orb.root_poa()?;
    root.the_poa_manager().activate()?;
    // In memory here; `Store::open` keeps the bindings in a file.
    let names = NamingService::start(orb, Store::in_memory()?)?;
    let servant: Arc<dyn Servant> = Arc::new(EchoSkeleton::new(Mirror));
    let mirror = root.servant_to_reference(&servant)?;
    // `id.kind` for each component; missing contexts on the path are made.
    bind_with_contexts(
        &names.root().clone().into(),
        "ship.area/mirror.echo",
        &mirror,
        Existing::Replace,
    )?;
    Ok(names.root().object().clone())
}

fn call(orb: &Orb, object: &ObjectRef) -> Outcome {
    orb.register_initial_reference("NameService", object);
    let names = orb.resolve_initial_references("NameService")?;
    let names = NamingContextExtRef::narrow(&names)?.ok_or("it is no NamingContextExt")?;

    let step = |id: &str, kind: &str| NameComponent {
        id: id.into(),
        kind: kind.into(),
    };
    let found = names.resolve(&[step("ship", "area"), step("mirror", "echo")])?;
    say(found, "resolve")?;
    say(names.resolve_str("ship.area/mirror.echo")?, "resolve_str")?;
    say(
        orb.string_to_object("corbaname:rir:#ship.area/mirror.echo")?,
        "corbaname",
    )?;

    let ship = names.resolve_str("ship.area")?.ok_or("nil")?;
    let ship = NamingContextRef::narrow(&ship)?.ok_or("it is no NamingContext")?;
    let (bindings, _more) = ship.list(10)?;
    for binding in bindings {
        let name = names.to_string(&binding.binding_name)?;
        println!("bound in ship.area: {name}");
    }
    Ok(())
}

fn say(object: Option<ObjectRef>, how: &str) -> Outcome {
    let echo = EchoRef::narrow(&object.ok_or("nil")?)?.ok_or("it is no Example::Echo")?;
    println!("{} by {how}", echo.echo_string("ahoy")?);
    Ok(())
}

fn main() -> Outcome {
    deckwatch_examples::run(serve, call)
}
