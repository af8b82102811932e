//! What a user of any naming service asks of it.

use anyhow::{Context as _, bail};
use deckwatch_naming::user::{Existing, bind_with_contexts, path};
use deckwatch_orb::cos_naming::{BindingType, NamingContextExtRef, NamingContextRef};
use deckwatch_orb::{ObjectRef, Orb};

use crate::serve::client_orb;

/// Bindings asked for at a time.
const LIST_STEP: u32 = 500;

/// The naming service to use.
#[derive(clap::Args)]
pub(super) struct At {
    /// Reference of the naming service
    #[arg(
        long,
        value_name = "REFERENCE",
        default_value = "corbaloc::127.0.0.1:2809/NameService"
    )]
    at: String,
}

impl At {
    pub(super) fn root(&self, orb: &Orb) -> anyhow::Result<NamingContextExtRef> {
        let nobody = || format!("no naming service answers at {}", self.at);
        let object = orb
            .string_to_object(&self.at)
            .with_context(nobody)?
            .with_context(nobody)?;
        let found = NamingContextExtRef::narrow(&object).with_context(nobody)?;
        found.with_context(|| format!("{} is not a NamingContextExt", self.at))
    }
}

pub(super) fn list(at: &At, name: Option<&str>, json: bool) -> anyhow::Result<()> {
    let orb = client_orb()?;
    let root = at.root(&orb)?;
    let context: NamingContextRef = match name {
        None => root.into(),
        Some(name) => {
            let object: ObjectRef = root
                .resolve(&path(name)?)?
                .with_context(|| format!("{name} is bound to nil"))?;
            NamingContextRef::narrow(&object)?
                .with_context(|| format!("{name} is not a context"))?
        }
    };
    let (mut bindings, rest) = context.list(LIST_STEP)?;
    if let Some(rest) = rest {
        loop {
            let (more, next) = rest.next_n(LIST_STEP)?;
            bindings.extend(next);
            if !more {
                break;
            }
        }
        rest.destroy()?;
    }
    let rows = bindings.iter().map(|binding| {
        let name = deckwatch_naming::name::to_text(
            binding
                .binding_name
                .iter()
                .map(|part| (part.id.as_str(), part.kind.as_str())),
        );
        (name, binding.binding_type == BindingType::Ncontext)
    });
    if json {
        let rows: Vec<_> = rows
            .map(|(name, is_context)| serde_json::json!({"name": name, "context": is_context}))
            .collect();
        anstream::println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        for (name, is_context) in rows {
            anstream::println!("{name}{}", if is_context { "/" } else { "" });
        }
    }
    Ok(())
}

pub(super) fn bind(
    at: &At,
    name: &str,
    reference: &str,
    replace: bool,
    contexts: bool,
) -> anyhow::Result<()> {
    let orb = client_orb()?;
    let not_one = || format!("`{reference}` is not a reference");
    let Some(object) = orb.string_to_object(reference).with_context(not_one)? else {
        bail!("a nil reference cannot be bound")
    };
    let root = at.root(&orb)?;
    let existing = if replace {
        Existing::Replace
    } else {
        Existing::Keep
    };
    let unbound = || format!("cannot bind {name}");
    if contexts {
        bind_with_contexts(&root, name, &object, existing).with_context(unbound)
    } else if replace {
        root.rebind(&path(name)?, Some(&object))
            .with_context(unbound)
    } else {
        root.bind(&path(name)?, Some(&object)).with_context(unbound)
    }
}
