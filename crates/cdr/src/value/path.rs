//! Paths to one member of a value: `header.sequence` or `tracks[2].id`.

use super::Value;
use crate::typecode::{Arena, Kind, Node};
use crate::walk::skip_value;
use crate::{DecodeError, DecodeFact, Reader, TypeCode};
use std::fmt;

/// The path to a member at a fixed place: through structs by name, through arrays by index.
#[derive(Clone, Debug)]
pub struct MemberPath {
    type_code: TypeCode,
    steps: Vec<u32>,
    target: TypeCode,
}

/// Why a text is not a path to a member.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathError {
    /// A struct has no member of this name.
    MemberUnknown {
        /// The name.
        name: String,
        /// The struct.
        within: String,
        /// The names of its members.
        known: Vec<String>,
    },
    /// An array has fewer elements.
    IndexTooLarge {
        /// The index.
        index: u32,
        /// The array's length.
        len: u32,
    },
    /// The step leads into a type without such parts (elements of a sequence have no fixed place).
    NoParts {
        /// The step.
        step: String,
        /// The type.
        within: String,
    },
    /// The text is not a path.
    Malformed,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MemberUnknown {
                name,
                within,
                known,
            } => {
                write!(
                    f,
                    "{within} has no member {name}; it has {}",
                    known.join(", ")
                )
            }
            Self::IndexTooLarge { index, len } => {
                write!(f, "the index {index} is not below the array's length {len}")
            }
            Self::NoParts { step, within } => {
                write!(f, "{within} has no part {step} of fixed place")
            }
            Self::Malformed => {
                f.write_str("a path is names with points between and indices in brackets")
            }
        }
    }
}

impl std::error::Error for PathError {}

impl MemberPath {
    /// Finds the member that `path` names in values of this type. The empty path names the whole value.
    ///
    /// # Errors
    /// [`PathError`].
    pub fn resolve(type_code: &TypeCode, path: &str) -> Result<Self, PathError> {
        let mut target = type_code.clone();
        let mut steps = Vec::new();
        for step in split(path)? {
            target = target.unaliased();
            let (index, next) = step_into(&target, step)?;
            steps.push(index);
            target = next;
        }
        Ok(Self {
            type_code: type_code.clone(),
            steps,
            target: target.unaliased(),
        })
    }

    /// The member's type, without leading aliases.
    #[must_use]
    pub const fn target(&self) -> &TypeCode {
        &self.target
    }

    /// Whether the member is an integer, so that it can carry a sequence number.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        use Kind::{Long, LongLong, Octet, Short, ULong, ULongLong, UShort};
        matches!(
            self.target.kind(),
            Octet | Short | UShort | Long | ULong | LongLong | ULongLong
        )
    }

    /// Returns the member in a value of the path's type; `None` for values of other types.
    #[must_use]
    pub fn slot<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        self.steps
            .iter()
            .try_fold(value, |value, step| match value {
                Value::Struct(parts) | Value::Elements(parts) => parts.get_mut(*step as usize),
                _ => None,
            })
    }

    /// Reads the member, an integer, from a value at the reader, and passes over the members before it. An `unsigned
    /// long long` keeps its bits. The reader stays behind the member.
    ///
    /// # Errors
    /// What is wrong with the octets; [`DecodeFact::TypeMismatch`] where the member is no integer.
    pub fn read_number(&self, r: &mut Reader<'_>) -> Result<i64, DecodeError> {
        let arena = self.type_code.arena();
        let mut index = self.type_code.root();
        for step in &self.steps {
            index = self.enter(arena, arena.unaliased(index), *step, r)?;
        }
        use super::read_value;
        let kind = self.target.kind();
        if kind.number_size().is_none() {
            return Err(r.error(DecodeFact::TypeMismatch));
        }
        match read_value(&self.target, r)? {
            Value::ULongLong(number) => Ok(number.cast_signed()),
            value => value
                .as_number()
                .ok_or_else(|| r.error(DecodeFact::TypeMismatch)),
        }
    }

    /// Passes over the parts before `step` of a struct or array.
    fn enter(
        &self,
        arena: &Arena,
        index: u32,
        step: u32,
        r: &mut Reader<'_>,
    ) -> Result<u32, DecodeError> {
        match arena.node(index) {
            Node::Struct {
                members, exception, ..
            } => {
                if *exception {
                    r.read_string_octets()?;
                }
                for member in &members[..step as usize] {
                    skip_value(&self.type_code.at(member.node), r)?;
                }
                Ok(members[step as usize].node)
            }
            Node::Array { element, .. } => {
                let element_type = self.type_code.at(*element);
                for _ in 0..step {
                    skip_value(&element_type, r)?;
                }
                Ok(*element)
            }
            _ => Err(r.error(DecodeFact::TypeMismatch)),
        }
    }
}

/// A name, or an index.
#[derive(Clone, Copy)]
enum Step<'p> {
    Name(&'p str),
    Index(u32),
}

fn split(path: &str) -> Result<Vec<Step<'_>>, PathError> {
    let mut steps = Vec::new();
    if path.is_empty() {
        return Ok(steps);
    }
    for (position, part) in path.split('.').enumerate() {
        let (name, mut indices) = part.split_at(part.find('[').unwrap_or(part.len()));
        if !name.is_empty() {
            steps.push(Step::Name(name));
        } else if position > 0 || indices.is_empty() {
            return Err(PathError::Malformed);
        }
        while let Some(inner) = indices.strip_prefix('[') {
            let end = inner.find(']').ok_or(PathError::Malformed)?;
            steps.push(Step::Index(
                inner[..end].parse().map_err(|_| PathError::Malformed)?,
            ));
            indices = &inner[end + 1..];
        }
        if !indices.is_empty() {
            return Err(PathError::Malformed);
        }
    }
    Ok(steps)
}

fn step_into(within: &TypeCode, step: Step<'_>) -> Result<(u32, TypeCode), PathError> {
    let no_parts = |step: String| PathError::NoParts {
        step,
        within: within.to_string(),
    };
    match step {
        Step::Index(index) => match (within.kind(), within.length(), within.content_type()) {
            (Kind::Array, Some(len), Some(element)) if index < len => Ok((index, element)),
            (Kind::Array, Some(len), _) => Err(PathError::IndexTooLarge { index, len }),
            _ => Err(no_parts(format!("[{index}]"))),
        },
        Step::Name(name) => {
            if !matches!(within.kind(), Kind::Struct | Kind::Except) {
                return Err(no_parts(name.to_owned()));
            }
            let mut names =
                (0..within.member_count()).filter_map(|index| within.member_name(index));
            let index = names.position(|known| known.eq_ignore_ascii_case(name));
            match index.and_then(|index| Some((index as u32, within.member_type(index)?))) {
                Some(found) => Ok(found),
                None => Err(PathError::MemberUnknown {
                    name: name.to_owned(),
                    within: within.to_string(),
                    known: (0..within.member_count())
                        .filter_map(|index| within.member_name(index))
                        .map(str::to_owned)
                        .collect(),
                }),
            }
        }
    }
}
