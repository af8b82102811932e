//! What one compilation may take in all. Short texts can repeat long names, values and lists: the product is bounded.

use crate::check::Checker;
use crate::limits::{
    CONSTANTS_SIZE_MAX, DEFINITIONS_MAX, INHERITED_MAX, NAMES_SIZE_MAX, TYPE_PARTS_MAX,
};
use crate::text::diagnostic::Diagnostic;
use crate::text::source::Span;

/// What is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Budget {
    /// Definitions.
    Definitions,
    /// Octets of the scoped names and repository ids of definitions.
    Names,
    /// Octets of the strings that are the values of constants.
    Constants,
    /// Interfaces, operations and attributes that interfaces inherit.
    Inherited,
    /// Levels of the types of declarators.
    Parts,
}

/// How much is taken, by [`Budget`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    amounts: [usize; 5],
    /// Set once something is exceeded; the check ends then.
    pub(super) is_over: bool,
}

impl Checker<'_> {
    /// Takes an amount. If there is not enough left, reports an error at `span` and returns false.
    pub(super) fn take(&mut self, budget: Budget, amount: usize, span: Span) -> bool {
        let (limit, what) = match budget {
            Budget::Definitions => (DEFINITIONS_MAX, "definitions"),
            Budget::Names => (
                NAMES_SIZE_MAX,
                "octets of names with their scopes and prefixes",
            ),
            Budget::Constants => (CONSTANTS_SIZE_MAX, "octets of strings in constants"),
            Budget::Inherited => (INHERITED_MAX, "inherited interfaces and operations"),
            Budget::Parts => (TYPE_PARTS_MAX, "parts of types"),
        };
        let taken = &mut self.taken.amounts[budget as usize];
        *taken = taken.saturating_add(amount);
        if *taken > limit && !self.taken.is_over {
            self.taken.is_over = true;
            self.error(Diagnostic::new(
                span,
                format!("there are more than {limit} {what}"),
            ));
        }
        !self.taken.is_over
    }
}
