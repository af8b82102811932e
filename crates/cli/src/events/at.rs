//! The channel that an argument names.

use anyhow::{Context as _, bail};
use deckwatch_naming::user::text;
use deckwatch_orb::cos_naming::{BindingType, NameComponent, NamingContextRef};
use deckwatch_orb::{ObjectRef, Orb, SystemException};
use deckwatch_probe::events::subscription::Subscription;
use deckwatch_text::escaped;

use super::types::TypeArgs;
use crate::names::at::At;
use crate::names::bounds::Bounds;
use crate::output::errln;
use crate::reference;
use crate::serve::client_orb;

/// The channel to look into.
#[derive(clap::Args)]
pub(super) struct ChannelArgs {
    /// The channel: its name in the naming service, or IOR:, corbaloc: or corbaname:
    channel: Option<String>,
    /// The channel's reference, or a file that holds it
    #[arg(long, value_name = "REFERENCE")]
    ior: Option<String>,
    #[command(flatten)]
    at: At,
}

/// A consumer of the channel.
#[derive(clap::Args)]
pub(super) struct ConsumerArgs {
    #[command(flatten)]
    channel: ChannelArgs,
    /// Address and port at which the channel reaches this consumer
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
}

/// A channel that was found.
pub(super) struct Found {
    /// Keeps the ORB alive: a reference does not own its ORB.
    _orb: Orb,
    pub(super) object: ObjectRef,
}

impl ChannelArgs {
    /// Finds the channel, which is named once.
    pub(super) fn find(&self) -> anyhow::Result<Found> {
        match self.split()? {
            (found, None) => Ok(found),
            (_, Some(_)) => bail!("give the channel once: by its name, or by `--ior`"),
        }
    }

    /// Finds the channel. With `--ior`, the first argument is something else and is returned.
    pub(super) fn split(&self) -> anyhow::Result<(Found, Option<&str>)> {
        let channel = self.channel.as_deref();
        let (text, rest) = match (&self.ior, channel) {
            (Some(ior), rest) => (reference::read(ior)?, rest),
            (None, Some(name)) if is_address(name) => (name.to_owned(), None),
            (None, Some(name)) => return Ok((self.resolve(name)?, None)),
            (None, None) => bail!("a channel is needed: its name, or `--ior REFERENCE`"),
        };
        let orb = client_orb(self.at.trace, &self.at.tls)?;
        let object = reference::target(&orb, &text)?;
        Ok((Found { _orb: orb, object }, rest))
    }

    /// Resolves a name. A name that is bound in one of the contexts under the root need not have the context in front, if
    /// it is bound in one alone: a mission binds its channels under `deckwatch`.
    fn resolve(&self, name: &str) -> anyhow::Result<Found> {
        let place = self.at.place(name)?;
        let object = place.resolve().or_else(|error| {
            let inner = inner_names(&place.root, &place.path).unwrap_or_default();
            match inner.as_slice() {
                [only] => {
                    errln!("{name} is not bound; {} is taken.", escaped(only));
                    self.at.place(only)?.resolve()
                }
                [] => Err(error),
                several => {
                    Err(error.context(format!("it is one of {}?", escaped(&several.join(", ")))))
                }
            }
        });
        let object = object.with_context(|| {
            format!(
                "no event channel is found under {name}; `deckwatch names list -r` lists the names"
            )
        })?;
        Ok(Found {
            _orb: place.orb,
            object,
        })
    }
}

/// Returns the names that end with `path` in the contexts directly under the root.
fn inner_names(
    root: &NamingContextRef,
    path: &[NameComponent],
) -> Result<Vec<String>, SystemException> {
    let mut found = Vec::new();
    for outer in Bounds::of_search().bindings(root)? {
        if outer.binding_type != BindingType::Ncontext {
            continue;
        }
        let whole = [&outer.binding_name[..], path].concat();
        if matches!(root.resolve(&whole), Ok(Some(_))) {
            found.push(text(&whole));
        }
    }
    Ok(found)
}

/// Whether a text is a reference that needs no naming service.
fn is_address(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.starts_with("ior:") || text.starts_with("corbaloc:")
}

impl ConsumerArgs {
    /// Returns the channel as the user named it.
    pub(super) fn name(&self) -> &str {
        let given = self
            .channel
            .channel
            .as_deref()
            .or(self.channel.ior.as_deref());
        given.unwrap_or("")
    }

    /// Connects a consumer for events of these types.
    pub(super) fn subscribe(
        &self,
        types: &TypeArgs,
        model: &deckwatch_idl::Model,
    ) -> anyhow::Result<Subscription> {
        let wanted = types.selection(model)?;
        let found = self.channel.find()?;
        Ok(Subscription::connect(
            &found.object,
            self.listen.as_deref(),
            wanted,
            self.channel.at.tls.load()?.as_ref(),
        )?)
    }
}
