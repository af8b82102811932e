//! Walking a value by its TypeCode, without building it: to find where it ends, or to write it in another form.
//!
//! A walk takes at most as many steps as the value has octets, times the depth (see `typecode::measure`). A union
//! searches its case among at most `UNION_CASES_MAX`. A value of a value type searches its type among at most
//! `VALUE_IDS_MAX` ids, and for each the declared type among at most `VALUE_BASES_MAX` bases. An id that several values
//! share is resolved once.

pub(crate) mod chunks;
pub(crate) mod ids;
mod opaque;
mod plan;
mod scope;
mod sink;
pub(crate) mod tags;
pub(crate) mod values;

use crate::fixed::{packed_size, parse_packed};
use crate::limits::{PLAN_DEPTH_MAX, PLAN_VALUES_MIN};
use crate::text::{decode_text, wide_text_of_octets, wide_text_of_units};
use crate::typecode::parse::read_discriminator;
use crate::typecode::{Arena, Kind, Node, select};
use crate::{
    DecodeError, DecodeFact, EncodeError, Parse, Reader, TypeCode, Version, WString, Writer,
};
use chunks::Chunks;
pub use opaque::Opaque;
use plan::Plan;
use scope::Scope;
use sink::{Nowhere, Output, Sink};
use std::borrow::Cow;

/// Passes over a value.
///
/// # Errors
/// What is wrong with its octets: everything that reading it would find.
pub fn skip_value(type_code: &TypeCode, r: &mut Reader<'_>) -> Result<(), DecodeError> {
    survey_value(type_code, r).map(|_| ())
}

/// What a walk has found, also within an `any`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Survey {
    /// A value of a value type that is not null.
    pub(crate) values: bool,
    /// A value that was read as its base.
    pub(crate) cut: bool,
    /// A value whose state no TypeCode describes.
    pub(crate) opaque: bool,
}

/// Passes over a value, and returns what it found.
pub(crate) fn survey_value(
    type_code: &TypeCode,
    r: &mut Reader<'_>,
) -> Result<Survey, DecodeError> {
    let mut walk = Walk::new(Nowhere);
    match walk.whole(type_code, r) {
        Ok(()) => Ok(walk.survey),
        Err(Fault::Decode(error)) => Err(error),
        Err(Fault::Encode(_) | Fault::SameOctets) => {
            unreachable!("passing over a value writes nothing")
        }
    }
}

/// Copies a value from a reader to a writer, in the writer's byte order, code sets and alignment.
///
/// # Errors
/// Those of the writer; [`EncodeError::TypeMismatch`] where the octets are no such value.
pub fn copy_value(
    type_code: &TypeCode,
    r: &mut Reader<'_>,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    encoded(Walk::new(Output::new(w, true)).through(type_code, r))
}

/// As [`copy_value`], but for what follows where reader and writer are at places that are the same modulo `alignment`:
/// there it ends, and the reader stays. None where the writer is to have other octets than the reader.
pub(crate) fn copy_up_to(
    alignment: Option<usize>,
    type_code: &TypeCode,
    r: &mut Reader<'_>,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let output = Output::new(w, true).until_alike(alignment);
    match Walk::new(output).through(type_code, r) {
        Err(Fault::SameOctets) => Ok(()),
        outcome => encoded(outcome),
    }
}

/// As [`copy_value`], with no value in chunks but those within an `any`: the form in which values are kept, read as
/// trees and compared.
pub(crate) fn keep_value(
    type_code: &TypeCode,
    r: &mut Reader<'_>,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    encoded(Walk::new(Output::new(w, false)).through(type_code, r))
}

fn encoded(outcome: Result<(), Fault>) -> Result<(), EncodeError> {
    outcome.map_err(|fault| match fault {
        Fault::Decode(_) => EncodeError::TypeMismatch,
        Fault::Encode(error) => error,
        Fault::SameOctets => unreachable!("SameOctets is returned to copy_up_to alone"),
    })
}

/// Why a walk ended.
pub(crate) enum Fault {
    Decode(DecodeError),
    Encode(EncodeError),
    /// No fault: the rest has the same octets in reader and writer.
    SameOctets,
}

impl From<DecodeError> for Fault {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

impl From<EncodeError> for Fault {
    fn from(error: EncodeError) -> Self {
        Self::Encode(error)
    }
}

/// A walk over one value, and the sink of its parts.
struct Walk<S> {
    sink: S,
    chunks: Chunks,
    survey: Survey,
}

impl<S: Sink> Walk<S> {
    fn new(sink: S) -> Self {
        Self {
            sink,
            chunks: Chunks::default(),
            survey: Survey::default(),
        }
    }
}

impl Walk<Output<'_, '_>> {
    /// As [`Walk::whole`], and leaves the writer as it found it: in an open chunk, or in none.
    fn through(mut self, type_code: &TypeCode, r: &mut Reader<'_>) -> Result<(), Fault> {
        let outcome = self.whole(type_code, r);
        self.sink.finish()?;
        outcome
    }
}

/// Runs `read` one level deeper.
fn deeper<'a>(
    r: &mut Reader<'a>,
    read: impl FnOnce(&mut Reader<'a>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut result = Ok(());
    r.nested(|r| {
        result = read(r);
        Ok(())
    })?;
    result
}

impl<S: Sink> Walk<S> {
    fn whole(&mut self, type_code: &TypeCode, r: &mut Reader<'_>) -> Result<(), Fault> {
        let scope = &mut Scope::new(type_code.arena());
        let within = r.values().filter(|values| values.are_in_chunks());
        let Some(values) = within else {
            return self.value(scope, type_code.root(), r);
        };
        // An `any` in a value in chunks.
        let mut wide = r.wide();
        self.chunks = values.chunks(r.bytes().len());
        let outcome = self.value(scope, type_code.root(), &mut wide);
        values.set_chunks(self.chunks);
        r.go_behind(wide, self.chunks);
        outcome
    }

    fn value(
        &mut self,
        scope: &mut Scope<'_>,
        index: u32,
        r: &mut Reader<'_>,
    ) -> Result<(), Fault> {
        if self.sink.is_alike(r) {
            return Err(Fault::SameOctets);
        }
        let node = scope.arena.node(index);
        match node {
            Node::Simple(kind) => self.simple(*kind, r),
            Node::String { bound } => {
                let text = self.text(r)?;
                check_bound(text.len(), *bound, r)?;
                Ok(self.sink.put(&*text)?)
            }
            Node::WString { bound } => {
                let text = self.wide_text(r)?;
                check_bound(text.units().len(), *bound, r)?;
                Ok(self.sink.put(&text)?)
            }
            Node::Enum { enumerators, .. } => {
                let number = self.ulong(r)?;
                if number as usize >= enumerators.len() {
                    return Err(
                        DecodeError::new(DecodeFact::EnumeratorUnknown, r.position() - 4).into(),
                    );
                }
                Ok(self.sink.put(&number)?)
            }
            Node::Fixed { digits, .. } => {
                self.chunks.enter(r)?;
                let start = r.position();
                parse_packed(*digits, r)?;
                self.chunks.leave(r)?;
                let octets = &r.bytes()[start..start + packed_size(*digits)];
                Ok(self.sink.numbers(1, octets, r)?)
            }
            Node::Named {
                kind: Kind::Objref | Kind::Component | Kind::Home,
                ..
            } => self.reference(r),
            _ => deeper(r, |r| self.constructed(scope, index, r)),
        }
    }

    fn constructed(
        &mut self,
        scope: &mut Scope<'_>,
        index: u32,
        r: &mut Reader<'_>,
    ) -> Result<(), Fault> {
        let arena = scope.arena;
        match arena.node(index) {
            Node::Alias {
                boxed: false,
                content,
                ..
            } => self.value(scope, *content, r),
            Node::Struct {
                exception, members, ..
            } => {
                if *exception {
                    let id = self.text(r)?;
                    self.sink.put(&*id)?;
                }
                members
                    .iter()
                    .try_for_each(|member| self.value(scope, member.node, r))
            }
            Node::Sequence { element, bound } => {
                let count = self.count(arena.size_min(*element), r)?;
                check_bound(count, *bound, r)?;
                self.sink.put(&(count as u32))?;
                self.elements(scope, *element, count, r)
            }
            Node::Array { element, len } => self.elements(scope, *element, *len as usize, r),
            Node::Union {
                discriminator,
                default,
                cases,
                ..
            } => {
                self.chunks.enter(r)?;
                let (kind, number) = read_selector(arena, *discriminator, r)?;
                self.chunks.leave(r)?;
                self.sink.discriminator(kind, number)?;
                match select(cases, *default, number) {
                    Some(case) => self.value(scope, cases[case].node, r),
                    None => Ok(()),
                }
            }
            Node::Value { .. } | Node::Alias { boxed: true, .. } => self.valuetype(scope, index, r),
            Node::Named {
                kind: Kind::AbstractInterface,
                ..
            } => {
                let is_reference = self.whole_leaf(r, bool::parse)?;
                self.sink.put(&is_reference)?;
                if is_reference {
                    self.reference(r)
                } else {
                    self.valuetype(scope, index, r)
                }
            }
            _ => Err(r.error(DecodeFact::TypeUnsupported).into()),
        }
    }

    fn elements(
        &mut self,
        scope: &mut Scope<'_>,
        element: u32,
        count: usize,
        r: &mut Reader<'_>,
    ) -> Result<(), Fault> {
        let element = scope.arena.unaliased(element);
        if let Node::Simple(kind) = scope.arena.node(element)
            && let Some(size) = kind.number_size()
            && count > 0
        {
            if self.chunks.are_there() {
                if size == 1 {
                    let octets = self.octets(count, r)?;
                    return Ok(self.sink.numbers(1, &octets, r)?);
                }
            } else if let Some(octets) = r.lend_run(size, count) {
                return Ok(self.sink.numbers(size, octets, r)?);
            } else if !r.is_divided() {
                return Err(r.error(DecodeFact::LengthExceedsMessage).into());
            }
        }
        // An array that needs more octets than there are fails at once, not after as many steps.
        if scope.arena.size_min(element).saturating_mul(count) > r.remaining() {
            return Err(r.error(DecodeFact::LengthExceedsMessage).into());
        }
        let mut left = count;
        if let Some(plan) = self.plan(scope, element, count, r) {
            // The plan stops before an unusual or wrong value; the walk takes that one.
            left -= plan.pass(left, r);
            while left > 0 {
                self.value(scope, element, r)?;
                left -= 1;
                left -= plan.pass(left, r);
            }
        }
        (0..left).try_for_each(|_| self.value(scope, element, r))
    }

    /// Returns a plan for passing over `count` values, where it is worth it and the values go nowhere.
    fn plan(&self, scope: &Scope<'_>, node: u32, count: usize, r: &Reader<'_>) -> Option<Plan> {
        let is_worth_it = S::IS_NOWHERE
            && count >= PLAN_VALUES_MIN
            && !self.chunks.are_there()
            && !r.is_divided()
            && r.depth_left() >= PLAN_DEPTH_MAX;
        is_worth_it.then(|| Plan::of(scope.arena, node)).flatten()
    }

    fn simple(&mut self, kind: Kind, r: &mut Reader<'_>) -> Result<(), Fault> {
        if let Some(size) = kind.number_size() {
            let octets = self.whole_leaf(r, |r| read_number(size, r))?;
            return Ok(self.sink.numbers(size, octets, r)?);
        }
        match kind {
            Kind::Null | Kind::Void => Ok(()),
            Kind::Boolean => {
                let value = self.whole_leaf(r, bool::parse)?;
                Ok(self.sink.put(&value)?)
            }
            Kind::WChar => {
                let value = self.whole_leaf(r, char::parse)?;
                Ok(self.sink.put(&value)?)
            }
            Kind::TypeCode => {
                let value = self.whole_leaf(r, TypeCode::parse)?;
                Ok(self.sink.put(&value)?)
            }
            Kind::Any => {
                let inner = self.whole_leaf(r, TypeCode::parse)?;
                self.sink.put(&inner)?;
                let before = self.sink.begin_any();
                let scope = &mut Scope::new(inner.arena());
                deeper(r, |r| self.value(scope, inner.root(), r))?;
                self.sink.end_any(before);
                Ok(())
            }
            Kind::Principal => self.octet_sequence(r),
            _ => Err(r.error(DecodeFact::TypeUnsupported).into()),
        }
    }

    /// An object reference: a type id, and profiles of a tag and octets each.
    fn reference(&mut self, r: &mut Reader<'_>) -> Result<(), Fault> {
        let id = self.text(r)?;
        self.sink.put(&*id)?;
        let profiles = self.count(8, r)?;
        self.sink.put(&(profiles as u32))?;
        for _ in 0..profiles {
            let tag = self.ulong(r)?;
            self.sink.put(&tag)?;
            self.octet_sequence(r)?;
        }
        Ok(())
    }
}

/// Values that are read in one piece: within chunks they stand in one chunk, except octets and text.
impl<S: Sink> Walk<S> {
    fn whole_leaf<'a, T>(
        &mut self,
        r: &mut Reader<'a>,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        self.chunks.enter(r)?;
        let value = read(r)?;
        self.chunks.leave(r)?;
        Ok(value)
    }

    fn ulong(&mut self, r: &mut Reader<'_>) -> Result<u32, DecodeError> {
        self.whole_leaf(r, Reader::read_u32)
    }

    fn count(&mut self, size_min: usize, r: &mut Reader<'_>) -> Result<usize, DecodeError> {
        self.whole_leaf(r, |r| r.read_count(size_min))
    }

    fn octets<'a>(
        &mut self,
        count: usize,
        r: &mut Reader<'a>,
    ) -> Result<Cow<'a, [u8]>, DecodeError> {
        if !self.chunks.are_there() {
            return r.read_octets(count).map(Cow::Borrowed);
        }
        if count > r.remaining() {
            return Err(r.error(DecodeFact::LengthExceedsMessage));
        }
        let mut all = Vec::new();
        while all.len() < count {
            self.chunks.enter(r)?;
            let here = self.chunks.left(r).min(count - all.len());
            let octets = r.read_octets(here)?;
            if here == count {
                return Ok(Cow::Borrowed(octets));
            }
            all.extend_from_slice(octets);
        }
        Ok(Cow::Owned(all))
    }

    fn octet_sequence(&mut self, r: &mut Reader<'_>) -> Result<(), Fault> {
        let count = self.count(1, r)?;
        let octets = self.octets(count, r)?;
        self.sink.put(&(count as u32))?;
        Ok(self.sink.numbers(1, &octets, r)?)
    }

    fn text<'a>(&mut self, r: &mut Reader<'a>) -> Result<Cow<'a, str>, DecodeError> {
        if !self.chunks.are_there() {
            let octets = r.read_string_octets()?;
            return decode_text(r, octets);
        }
        let count = self.count(1, r)?;
        match self.octets(count, r)? {
            Cow::Borrowed([text @ .., 0]) => decode_text(r, text),
            Cow::Owned(octets) if octets.ends_with(&[0]) => {
                let text = decode_text(r, &octets[..count - 1])?;
                Ok(Cow::Owned(text.into_owned()))
            }
            _ if count == 0 => Err(r.error(DecodeFact::StringLengthZero)),
            _ => Err(r.error(DecodeFact::StringNotTerminated)),
        }
    }

    /// Within chunks: a count, then the octets of GIOP 1.2 or the units of 1.1, divided between chunks anywhere.
    fn wide_text(&mut self, r: &mut Reader<'_>) -> Result<WString, DecodeError> {
        if !self.chunks.are_there() {
            return WString::parse(r);
        }
        match r.codec().version {
            Version::V1_0 => WString::parse(r),
            Version::V1_1 => {
                let count = self.count(2, r)?;
                let start = r.position();
                let units = (0..count).map(|_| self.whole_leaf(r, u16::parse));
                wide_text_of_units(&units.collect::<Result<Vec<_>, _>>()?, start)
            }
            Version::V1_2 => {
                let count = self.count(1, r)?;
                let start = r.position();
                wide_text_of_octets(&self.octets(count, r)?, start)
            }
        }
    }
}

/// Reads a discriminator. That of an enumeration must be an enumerator.
pub(crate) fn read_selector(
    arena: &Arena,
    discriminator: u32,
    r: &mut Reader<'_>,
) -> Result<(Kind, i64), DecodeError> {
    let node = arena.node(arena.unaliased(discriminator));
    let number = read_discriminator(node.kind(), r)?;
    if is_enumerator(node, number) {
        Ok((node.kind(), number))
    } else {
        Err(DecodeError::new(
            DecodeFact::EnumeratorUnknown,
            r.position() - 4,
        ))
    }
}

/// Whether the number is an enumerator, if the type is an enumeration.
pub(crate) fn is_enumerator(node: &Node, number: i64) -> bool {
    match node {
        Node::Enum { enumerators, .. } => {
            usize::try_from(number).is_ok_and(|number| number < enumerators.len())
        }
        _ => true,
    }
}

/// Reads the octets of a number. A number of more than eight octets may be divided between fragments.
fn read_number<'a>(size: usize, r: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    if size <= 8 && r.is_divided() {
        *r = r.beyond(size, size)?;
    }
    r.align(size.min(8));
    r.read_octets(size).map_err(|error| DecodeError {
        fact: DecodeFact::Truncated,
        ..error
    })
}

/// Fails where the length is above the bound; bound 0 is none.
pub(crate) fn check_bound(len: usize, bound: u32, r: &Reader<'_>) -> Result<(), DecodeError> {
    if bound != 0 && len > bound as usize {
        Err(r.error(DecodeFact::BoundExceeded))
    } else {
        Ok(())
    }
}
