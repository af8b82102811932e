//! Passing over small values in a row by a plan that is made once for their type: numbers by a table of their ends,
//! text by checking whole words.

use crate::Reader;
use crate::limits::{PLAN_DEPTH_MAX, PLAN_STEPS_MAX};
use crate::text::is_plain;
use crate::typecode::{Arena, Kind, Node};

/// How to pass over a value: runs of numbers, each followed by a part that needs a check.
pub(super) struct Plan {
    steps: [Step; PLAN_STEPS_MAX],
    len: usize,
}

#[derive(Clone, Copy)]
struct Step {
    /// Octets of the numbers and padding before the part, by the alignment modulo 8 of their start.
    before: [u16; 8],
    part: Part,
}

/// The part that is checked.
#[derive(Clone, Copy)]
enum Part {
    /// The value ends.
    End,
    Boolean,
    /// An enumerator below this number.
    Enumerator(u32),
    /// A string with this bound.
    Text(u32),
    /// A sequence of numbers of this size, with this bound.
    Numbers(u8, u32),
}

impl Plan {
    /// Returns `None` where values of the type have other parts, or too many.
    pub(super) fn of(arena: &Arena, node: u32) -> Option<Self> {
        let mut plan = Self {
            steps: [Step::new(); PLAN_STEPS_MAX],
            len: 0,
        };
        plan.add(arena, node, PLAN_DEPTH_MAX)?;
        plan.look_at(1, Part::End)?;
        Some(plan)
    }

    fn add(&mut self, arena: &Arena, node: u32, depth_left: u8) -> Option<()> {
        let depth_left = depth_left.checked_sub(1)?;
        let number = |node| match arena.node(arena.unaliased(node)) {
            Node::Simple(kind) => kind.number_size(),
            _ => None,
        };
        match arena.node(node) {
            Node::Simple(Kind::Boolean) => self.look_at(1, Part::Boolean),
            Node::Simple(kind) => self.step()?.add(kind.number_size()?, 1),
            Node::Enum { enumerators, .. } => {
                self.look_at(4, Part::Enumerator(enumerators.len() as u32))
            }
            Node::String { bound } => self.look_at(4, Part::Text(*bound)),
            Node::Sequence { element, bound } => {
                self.look_at(4, Part::Numbers(number(*element)? as u8, *bound))
            }
            Node::Array { element, len } => self.step()?.add(number(*element)?, *len as usize),
            Node::Alias {
                boxed: false,
                content,
                ..
            } => self.add(arena, *content, depth_left),
            Node::Struct {
                exception: false,
                members,
                ..
            } => {
                let mut members = members.iter();
                members.try_for_each(|member| self.add(arena, member.node, depth_left))
            }
            _ => None,
        }
    }

    /// The last step.
    fn step(&mut self) -> Option<&mut Step> {
        self.steps.get_mut(self.len)
    }

    fn look_at(&mut self, alignment: usize, part: Part) -> Option<()> {
        let step = self.step()?;
        step.align(alignment);
        step.part = part;
        self.len += 1;
        Some(())
    }

    /// Passes over at most `count` values, and stops before the first that the plan cannot check. Returns how many were
    /// passed.
    pub(super) fn pass(&self, count: usize, r: &mut Reader<'_>) -> usize {
        let row = Row {
            octets: r.bytes(),
            phase: r.phase().wrapping_sub(r.position()),
            is_native: r.order().is_native(),
        };
        let steps = &self.steps[..self.len];
        let (mut done, mut position) = (0, r.position());
        while done < count {
            let Some(end) = row.end(steps, position) else {
                break;
            };
            done += 1;
            let size = end - position;
            position = end;
            if self.len == 1 && size > 0 && size.is_multiple_of(8) {
                // The others have the same length: they begin at the same place modulo 8.
                let many = ((row.octets.len() - position) / size).min(count - done);
                position += many * size;
                done += many;
            }
        }
        *r = r.at_position(position);
        done
    }
}

impl Step {
    const fn new() -> Self {
        Self {
            before: [0; 8],
            part: Part::End,
        }
    }

    /// Adds `count` numbers of this size.
    fn add(&mut self, size: usize, count: usize) -> Option<()> {
        self.align(size.min(8));
        for before in &mut self.before {
            let end = size.checked_mul(count)?.checked_add(usize::from(*before))?;
            // Leaves room for padding behind it.
            *before = u16::try_from(end).ok().filter(|end| *end < u16::MAX - 8)?;
        }
        Some(())
    }

    fn align(&mut self, alignment: usize) {
        for (begin, before) in self.before.iter_mut().enumerate() {
            let place = begin + usize::from(*before);
            *before = (place.next_multiple_of(alignment) - begin) as u16;
        }
    }
}

/// The octets of values in a row.
struct Row<'a> {
    octets: &'a [u8],
    /// Added to a place before aligning.
    phase: usize,
    is_native: bool,
}

impl Row<'_> {
    /// Returns where the value at `position` ends; `None` where the plan cannot check it.
    #[inline]
    fn end(&self, steps: &[Step], mut position: usize) -> Option<usize> {
        for step in steps {
            position += usize::from(step.before[position.wrapping_add(self.phase) & 7]);
            match step.part {
                Part::End => {}
                Part::Boolean => {
                    let is_valid = *self.octets.get(position)? < 2;
                    position += is_valid.then_some(1)?;
                }
                Part::Enumerator(count) => {
                    let is_valid = self.long(position)?.0 < count;
                    position += is_valid.then_some(4)?;
                }
                Part::Text(bound) => {
                    let (size, rest) = self.long(position)?;
                    let is_within = bound == 0 || size <= bound.saturating_add(1);
                    let is_text = is_within && is_text(rest, size as usize);
                    position += is_text.then_some(4 + size as usize)?;
                }
                Part::Numbers(size, bound) => {
                    let (count, _) = self.long(position)?;
                    position += 4;
                    if count > 0 {
                        let size = usize::from(size);
                        let aligned = position.wrapping_add(self.phase).wrapping_neg();
                        position += aligned & (size.min(8) - 1);
                        position = position.checked_add(size.checked_mul(count as usize)?)?;
                    }
                    let is_within = bound == 0 || count <= bound;
                    (is_within && position <= self.octets.len()).then_some(())?;
                }
            }
        }
        (position <= self.octets.len()).then_some(position)
    }

    /// Reads an `unsigned long`; returns it with the place behind it.
    #[inline]
    fn long(&self, position: usize) -> Option<(u32, &[u8])> {
        let (octets, rest) = self.octets.get(position..)?.split_first_chunk()?;
        let long = u32::from_ne_bytes(*octets);
        let long = if self.is_native {
            long
        } else {
            long.swap_bytes()
        };
        Some((long, rest))
    }
}

/// Whether the first `size` octets are plain text: ASCII without nulls, then one null.
#[inline]
fn is_text(octets: &[u8], size: usize) -> bool {
    const ONES: u64 = u64::MAX / 255;
    let Some(len) = size.checked_sub(1) else {
        return false;
    };
    if octets.get(len) != Some(&0) {
        return false;
    }
    if let (1..=8, Some(word)) = (len, octets.first_chunk()) {
        // An octet that is null or not ASCII has its high bit set, or gets it when 1 is subtracted.
        let word = u64::from_le_bytes(*word);
        let odd = (word | word.wrapping_sub(ONES)) & (ONES << 7);
        return odd << (64 - 8 * len) == 0;
    }
    is_plain(&octets[..len])
}
