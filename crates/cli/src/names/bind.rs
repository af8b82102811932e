//! Binds names, makes contexts and destroys them.

use std::time::Duration;

use anyhow::{Context as _, bail};
use deckwatch_naming::user::{Existing, Refusal, bind_with_contexts, make_contexts, text};
use deckwatch_orb::ObjectRef;
use deckwatch_orb::cos_naming::{BindingType, NamingContextRef};
use deckwatch_text::escaped;

use super::bounds::Bounds;
use super::{At, Place, list};
use crate::reference;

/// What is bound, and where.
#[derive(clap::Args)]
pub(super) struct BindArgs {
    #[command(flatten)]
    at: At,
    /// The name
    name: String,
    /// IOR:, corbaloc: or corbaname:, a file that holds one, or `-` for standard input
    reference: String,
    /// Replace what is bound
    #[arg(long)]
    replace: bool,
    /// Make the contexts on the way that do not exist
    #[arg(long)]
    contexts: bool,
}

pub(super) fn run(args: &BindArgs, as_context: bool) -> anyhow::Result<()> {
    let place = args.at.place(&args.name)?;
    let object = reference::target(&place.orb, &args.reference)?;
    let unbound = || format!("cannot bind {}", place.name);
    let existing = if args.replace {
        Existing::Replace
    } else {
        Existing::Keep
    };
    if as_context {
        if args.contexts {
            make_contexts(&place.root, &place.path[..place.path.len() - 1])
                .with_context(unbound)?;
        }
        bind_context(&place, &object, existing).with_context(unbound)
    } else if args.contexts {
        bind_with_contexts(&place.root, &place.name, &object, existing).with_context(unbound)
    } else {
        bind_object(&place, &object, existing).with_context(unbound)
    }
}

fn bind_object(place: &Place, object: &ObjectRef, existing: Existing) -> Result<(), Refusal> {
    let refused = |error: deckwatch_naming::user::Fault| Refusal::of(&place.path, error);
    match existing {
        Existing::Keep => place
            .root
            .bind(&place.path, Some(object))
            .map_err(|e| refused(e.into())),
        Existing::Replace => place
            .root
            .rebind(&place.path, Some(object))
            .map_err(|e| refused(e.into())),
    }
}

fn bind_context(place: &Place, object: &ObjectRef, existing: Existing) -> anyhow::Result<()> {
    let context = NamingContextRef::narrow(object)
        .context("the context to be bound does not answer")?
        .context("the reference is of an object, but not of a naming context")?;
    let refused = |error: deckwatch_naming::user::Fault| Refusal::of(&place.path, error);
    match existing {
        Existing::Keep => place
            .root
            .bind_context(&place.path, Some(&context))
            .map_err(|e| refused(e.into()))?,
        Existing::Replace => place
            .root
            .rebind_context(&place.path, Some(&context))
            .map_err(|e| refused(e.into()))?,
    }
    Ok(())
}

pub(super) fn new_context(place: &Place, contexts: bool) -> anyhow::Result<()> {
    let made = if contexts {
        make_contexts(&place.root, &place.path)
    } else {
        let made = place.root.bind_new_context(&place.path);
        made.map(|_| ())
            .map_err(|error| Refusal::of(&place.path, error))
    };
    made.with_context(|| format!("cannot make {}", place.name))
}

/// Destroys a context and removes its name. With `recursive`, its bindings are removed first; of the contexts in it,
/// only those of the same service are destroyed.
pub(super) fn destroy(place: &Place, recursive: bool) -> anyhow::Result<()> {
    let context = place.context()?;
    if recursive {
        empty(
            &context,
            CONTEXTS_DEEP_MAX,
            &mut Bounds::new(DESTROYED_MAX, DESTROY_TIME_MAX),
        )?;
    }
    context
        .destroy()
        .map_err(|error| Refusal::of(&place.path, error))
        .with_context(|| format!("cannot destroy {}", place.name))?;
    place.unbind()
}

fn empty(context: &NamingContextRef, deep: usize, bounds: &mut Bounds) -> anyhow::Result<()> {
    let deep = deep
        .checked_sub(1)
        .context("contexts nest too deep, or in a circle")?;
    for binding in bounds.bindings(context)? {
        let name = &binding.binding_name;
        let words = || format!("cannot remove {}", escaped(&text(name)));
        if binding.binding_type == BindingType::Ncontext {
            let found = context
                .resolve(name)
                .map_err(|error| Refusal::of(name, error))
                .with_context(words)?;
            if let Some(inner) = found.map(NamingContextRef::unchecked_narrow)
                && list::same_service(context, &inner)
            {
                empty(&inner, deep, bounds)?;
                inner
                    .destroy()
                    .map_err(|error| Refusal::of(name, error))
                    .with_context(words)?;
            }
        }
        context
            .unbind(name)
            .map_err(|error| Refusal::of(name, error))
            .with_context(words)?;
    }
    if let Some(cut) = bounds.cut() {
        bail!("it holds too much for one command: {cut}; run it again for the rest");
    }
    Ok(())
}

/// Names that one command destroys: all that a service of this program holds.
const DESTROYED_MAX: usize = 1_000_000;

/// The longest time for which one command destroys names.
const DESTROY_TIME_MAX: Duration = Duration::from_secs(3_600);

/// Maximum depth of nested contexts: a context may contain itself.
pub(super) const CONTEXTS_DEEP_MAX: usize = 64;
