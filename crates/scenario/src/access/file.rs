//! An access file as it is written: the shape that the JSON Schema publishes and serde reads.

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

/// Access rules: what no rule allows is refused.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// The permissions, in any order
    #[schemars(length(max = 1024))]
    pub(super) allow: Vec<Allow>,
}

/// A permission.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Allow {
    /// Its peers: addresses, networks, cert:NAME for the name in a certificate, uid:NUMBER for a user of this host, this-host, anyone
    #[schemars(with = "Vec<String>", length(min = 1, max = 1024), extend("examples" = [["10.1.0.0/16"]]))]
    pub(super) who: Vec<Spanned<String>>,
    /// What they may do
    #[serde(default)]
    #[schemars(length(min = 1, max = 6))]
    pub(super) may: Vec<ActionWord>,
    /// Operations that they may call, by name; * for all
    #[serde(default)]
    #[schemars(length(min = 1, max = 1024), extend("examples" = [["resolve", "list"]]))]
    pub(super) operations: Vec<String>,
    /// Names of the objects; all if not given: the name to which a channel is bound, `names` for the naming service, ADAPTER/ID for other objects, ADAPTER/ for all objects of an adapter
    #[serde(default)]
    #[schemars(length(min = 1, max = 1024), extend("examples" = [["NAV"], ["ship/nav/"]]))]
    pub(super) on: Option<Vec<String>>,
    /// Types of events; all if not given
    #[serde(default)]
    #[schemars(with = "Option<Vec<String>>", length(min = 1, max = 1024), extend("examples" = [["16", "20-29"]]))]
    pub(super) types: Option<Vec<Spanned<String>>>,
    /// Sources of events; all if not given
    #[serde(default)]
    #[schemars(with = "Option<Vec<String>>", length(min = 1, max = 1024), extend("examples" = [["1-9"]]))]
    pub(super) sources: Option<Vec<Spanned<String>>>,
}

/// What a rule allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ActionWord {
    /// Connect as a supplier, and push
    Supply,
    /// Connect as a consumer, and get events
    Consume,
    /// Look at counts, subscriptions and publications
    Observe,
    /// Create and destroy channels; destroy the root of names, sweep names
    Administer,
    /// Resolve and list names
    Resolve,
    /// Bind and unbind names, make and destroy contexts
    Bind,
}

impl From<ActionWord> for deckwatch_access::Action {
    fn from(word: ActionWord) -> Self {
        match word {
            ActionWord::Supply => Self::Supply,
            ActionWord::Consume => Self::Consume,
            ActionWord::Observe => Self::Observe,
            ActionWord::Administer => Self::Administer,
            ActionWord::Resolve => Self::Resolve,
            ActionWord::Bind => Self::Bind,
        }
    }
}
