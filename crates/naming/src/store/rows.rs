//! The rows of the store: their form, and their checksums.
//!
//! Numbers are little-endian. A text has one octet for its length before it. Each row ends with its checksum.

use deckwatch_store::redb::TableDefinition;
use deckwatch_store::sum::{self, Tally};

use crate::limits;

/// (context, id, kind).
pub(super) type Key<'k> = (u64, &'k str, &'k str);

/// Number of a context -> [`ContextRow`].
pub(super) const CONTEXTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("contexts");
/// (context, id, kind) -> [`BindingRow`].
pub(super) const BINDINGS: TableDefinition<'_, Key<'static>, &[u8]> =
    TableDefinition::new("bindings");
/// [`FORMAT`] -> [`Whole`]. A store of another format has another key, or no such table.
pub(super) const WHOLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("whole");

/// The maker of what was made before makers were kept, or over a connection that does not tell.
pub const UNKNOWN: &str = "unknown";

/// The format of the store that this program writes.
pub(super) const FORMAT: u64 = 2;

/// The target of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// One of this service's contexts.
    Context(u64),
    /// A naming context of another service, as a stringified IOR.
    ForeignContext(String),
    /// Any object, as a stringified IOR.
    Object(String),
}

impl Target {
    const CONTEXT: u8 = 0;
    const FOREIGN_CONTEXT: u8 = 1;
    const OBJECT: u8 = 2;

    /// Returns true for the targets that `bind_context` binds.
    #[must_use]
    pub const fn is_context(&self) -> bool {
        !matches!(self, Self::Object(_))
    }

    /// The context of this service that is bound.
    pub(super) const fn context(&self) -> Option<u64> {
        match self {
            Self::Context(number) => Some(*number),
            Self::ForeignContext(_) | Self::Object(_) => None,
        }
    }

    /// Reads the form of an octet for the kind and the octets of the target.
    pub(super) fn parse(kind: u8, octets: &[u8]) -> Option<Self> {
        let text = || std::str::from_utf8(octets).ok().map(str::to_owned);
        match kind {
            Self::CONTEXT => octets
                .try_into()
                .ok()
                .map(u64::from_be_bytes)
                .map(Self::Context),
            Self::FOREIGN_CONTEXT => text().map(Self::ForeignContext),
            Self::OBJECT => text().map(Self::Object),
            _ => None,
        }
    }

    fn write(&self, row: &mut Vec<u8>) {
        match self {
            Self::Context(number) => row.extend(number.to_be_bytes()),
            Self::ForeignContext(ior) | Self::Object(ior) => row.extend(ior.as_bytes()),
        }
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::Context(_) => Self::CONTEXT,
            Self::ForeignContext(_) => Self::FOREIGN_CONTEXT,
            Self::Object(_) => Self::OBJECT,
        }
    }
}

/// A binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingRow {
    /// Who made it, in words: empty for the process of the service, [`UNKNOWN`] if that is not known.
    pub maker: String,
    /// What is bound.
    pub target: Target,
}

impl BindingRow {
    /// Returns the row with its checksum.
    #[must_use]
    pub fn write(&self, key: (u64, &str, &str)) -> (Vec<u8>, u64) {
        let mut row = vec![self.target.kind()];
        write_text(&self.maker, &mut row);
        self.target.write(&mut row);
        let sum = sum::append("bindings", &parts(&key.0.to_be_bytes(), key), &mut row);
        (row, sum)
    }

    /// Reads a row and its checksum, or returns `None` if it is damaged or the row of another key.
    #[must_use]
    pub fn parse(key: (u64, &str, &str), row: &[u8]) -> Option<(Self, u64)> {
        let (value, sum) = sum::split("bindings", &parts(&key.0.to_be_bytes(), key), row)?;
        let mut fields = Fields(value);
        let kind = fields.octet()?;
        let maker = fields.text()?.to_owned();
        let target = Target::parse(kind, fields.0)?;
        Some((Self { maker, target }, sum))
    }
}

/// The parts of a binding's key that its checksum covers.
fn parts<'k>(context: &'k [u8; 8], (_, id, kind): Key<'k>) -> [&'k [u8]; 3] {
    [context, id.as_bytes(), kind.as_bytes()]
}

/// A context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextRow {
    /// Who made it, in words: empty for the process of the service, [`UNKNOWN`] if that is not known.
    pub maker: String,
    /// When it was made, in seconds since 1970.
    pub made_s: u64,
    /// Whether it has been bound to a name of this service.
    pub was_bound: bool,
    /// The bindings in it.
    pub bindings: Tally,
}

impl ContextRow {
    /// Returns the row with its checksum.
    #[must_use]
    pub fn write(&self, number: u64) -> (Vec<u8>, u64) {
        let mut row = vec![u8::from(self.was_bound)];
        write_text(&self.maker, &mut row);
        for number in [self.made_s, self.bindings.count, self.bindings.sum] {
            row.extend(number.to_le_bytes());
        }
        let sum = sum::append("contexts", &[&number.to_be_bytes()], &mut row);
        (row, sum)
    }

    /// Reads a row and its checksum, or returns `None` if it is damaged or the row of another context.
    #[must_use]
    pub fn parse(number: u64, row: &[u8]) -> Option<(Self, u64)> {
        let (value, sum) = sum::split("contexts", &[&number.to_be_bytes()], row)?;
        let mut fields = Fields(value);
        let was_bound = match fields.octet()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let maker = fields.text()?.to_owned();
        let made_s = fields.number()?;
        let bindings = fields.tally()?;
        let context = Self {
            maker,
            made_s,
            was_bound,
            bindings,
        };
        fields.0.is_empty().then_some((context, sum))
    }
}

/// What there is in the whole store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The number of the next context: numbers are never given twice.
    pub next_context: u64,
    /// The contexts. Their checksums cover the tallies of their bindings.
    pub contexts: Tally,
    /// How many bindings there are.
    pub bindings: u64,
}

impl Whole {
    /// Returns the row with its checksum.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut row = Vec::new();
        for number in [
            self.next_context,
            self.contexts.count,
            self.contexts.sum,
            self.bindings,
        ] {
            row.extend(number.to_le_bytes());
        }
        sum::append("whole", &[&FORMAT.to_be_bytes()], &mut row);
        row
    }

    /// Reads a row, or returns `None` if it is damaged.
    #[must_use]
    pub fn parse(row: &[u8]) -> Option<Self> {
        let (value, _) = sum::split("whole", &[&FORMAT.to_be_bytes()], row)?;
        let mut fields = Fields(value);
        let next_context = fields.number()?;
        let contexts = fields.tally()?;
        let bindings = fields.number()?;
        fields.0.is_empty().then_some(Self {
            next_context,
            contexts,
            bindings,
        })
    }
}

/// Writes a text, cut at [`limits::MAKER_SIZE_MAX`].
fn write_text(text: &str, row: &mut Vec<u8>) {
    let text = &text[..text.floor_char_boundary(limits::MAKER_SIZE_MAX)];
    row.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
    row.extend(text.as_bytes());
}

/// The fields that are left of a row.
struct Fields<'r>(&'r [u8]);

impl<'r> Fields<'r> {
    fn octets(&mut self, count: usize) -> Option<&'r [u8]> {
        let (octets, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(octets)
    }

    fn octet(&mut self) -> Option<u8> {
        self.octets(1)?.first().copied()
    }

    fn number(&mut self) -> Option<u64> {
        self.octets(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<&'r str> {
        let len = usize::from(self.octet()?);
        std::str::from_utf8(self.octets(len)?).ok()
    }

    fn tally(&mut self) -> Option<Tally> {
        let count = self.number()?;
        let sum = self.number()?;
        Some(Tally { count, sum })
    }
}
