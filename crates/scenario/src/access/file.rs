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
    /// Its peers: addresses, networks, uid:NUMBER for a user of this host, anyone
    #[schemars(with = "Vec<String>", length(min = 1, max = 1024), extend("examples" = [["10.1.0.0/16"]]))]
    pub(super) who: Vec<Spanned<String>>,
    /// What they may do
    #[schemars(length(min = 1, max = 4))]
    pub(super) may: Vec<ActionWord>,
    /// Names of the objects, such as the name to which a channel is bound; all if not given
    #[serde(default)]
    #[schemars(length(min = 1, max = 1024), extend("examples" = [["NAV"]]))]
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
    /// Create and destroy channels
    Administer,
}

impl From<ActionWord> for deckwatch_access::Action {
    fn from(word: ActionWord) -> Self {
        match word {
            ActionWord::Supply => Self::Supply,
            ActionWord::Consume => Self::Consume,
            ActionWord::Observe => Self::Observe,
            ActionWord::Administer => Self::Administer,
        }
    }
}
