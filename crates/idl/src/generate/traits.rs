//! What the types of a model can do, found once for all of them.

use super::types::Abilities;
use crate::model::implied::EXCEPTION_HOLDER;
use crate::model::rings::Rings;
use crate::model::{Basic, DefId, DefinitionKind, Model, Structure, Type};

/// A table of all definitions of a model.
#[derive(Debug)]
pub(crate) struct Traits {
    rings: Rings,
    rows: Vec<Row>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Row {
    abilities: Option<Abilities>,
    /// Alignment and size, if the memory layout equals CDR; `None` in the inner option otherwise.
    layout: Option<Option<(u64, u64)>>,
    /// Whether values may contain values that can be shared.
    shares: bool,
}

impl Traits {
    pub(crate) fn new(model: &Model) -> Self {
        let mut table = Self {
            rings: Rings::new(&model.definitions),
            rows: vec![Row::default(); model.definitions.len()],
        };
        let rings = std::mem::take(&mut table.rings);
        for ring in rings.all() {
            // `Eq` and sharing go through sequences, so all types of a ring have the same.
            let (mut eq, mut shares) = (true, false);
            for &id in ring {
                let (own_eq, own_shares) = table.through(model, id);
                eq &= own_eq;
                shares |= own_shares;
            }
            for &id in ring {
                table.rows[id.0 as usize].shares = shares;
            }
            for &id in ring {
                let direct = table.direct(model, id);
                table.rows[id.0 as usize].abilities = Some(direct);
            }
            for &id in ring {
                if let Some(abilities) = &mut table.rows[id.0 as usize].abilities {
                    abilities.eq = eq;
                }
            }
            for &id in ring {
                table.layout(model, id);
            }
        }
        table.rings = rings;
        table
    }

    /// Whether two types contain each other.
    pub(crate) fn contain_each_other(&self, one: DefId, other: DefId) -> bool {
        self.rings.is_same(one, other)
    }

    /// Returns the abilities of a type.
    pub(crate) fn abilities(&self, model: &Model, ty: &Type) -> Abilities {
        match model.resolve(ty) {
            Type::Named(id) => self.rows[id.0 as usize].abilities.unwrap_or(Abilities::ALL),
            Type::Array { element, .. } => self.abilities(model, element),
            Type::Sequence { element, .. } => Abilities {
                copy: false,
                default: true,
                eq: self.abilities(model, element).eq,
            },
            other => Abilities::of_leaf(other),
        }
    }

    /// Whether values of a type may contain values that can be shared.
    pub(crate) fn shares(&self, model: &Model, ty: &Type) -> bool {
        match model.resolve(ty) {
            Type::Basic(basic) => *basic == Basic::ValueBase,
            Type::Sequence { element, .. } | Type::Array { element, .. } => {
                self.shares(model, element)
            }
            Type::Named(id) => self.rows[id.0 as usize].shares,
            _ => false,
        }
    }

    /// Returns `Eq` and sharing of a definition; parts in its own ring count as if they had nothing to add.
    fn through(&self, model: &Model, id: DefId) -> (bool, bool) {
        let definition = model.definition(id);
        match &definition.kind {
            DefinitionKind::Value(_) => {
                return (false, definition.repository_id != EXCEPTION_HOLDER);
            }
            DefinitionKind::Interface(_) => return (false, false),
            _ => {}
        }
        let (mut eq, mut shares) = (true, false);
        definition.kind.each_part(|ty| {
            eq &= self.abilities(model, ty).eq;
            shares |= self.shares(model, ty);
        });
        (eq, shares)
    }

    /// Returns `Copy` and `Default` of a definition. Sequences have them whatever their elements are, and no type
    /// contains itself without one.
    fn direct(&mut self, model: &Model, id: DefId) -> Abilities {
        if let Some(known) = self.rows[id.0 as usize].abilities {
            return known;
        }
        let kind = &model.definition(id).kind;
        let mut parts = Vec::new();
        match kind {
            DefinitionKind::Enum(_) => return Abilities::ALL,
            DefinitionKind::Struct(_)
            | DefinitionKind::Exception(_)
            | DefinitionKind::Union(_)
            | DefinitionKind::Alias(_) => kind.each_part(|ty| parts.push(ty.clone())),
            _ => {
                return Abilities {
                    copy: false,
                    default: true,
                    eq: false,
                };
            }
        }
        let mut all = Abilities::ALL;
        for ty in parts {
            let mut ty = &ty;
            while let Type::Array { element, .. } = ty {
                ty = element;
            }
            all = all.and(match ty {
                Type::Named(id) => self.direct(model, *id),
                Type::Sequence { .. } => Abilities {
                    copy: false,
                    ..Abilities::ALL
                },
                other => Abilities::of_leaf(other),
            });
        }
        if matches!(kind, DefinitionKind::Union(_)) {
            all.default = false;
        }
        self.rows[id.0 as usize].abilities = Some(all);
        all
    }

    /// Finds the alignment and size of a struct without padding, in memory as in CDR.
    fn layout(&mut self, model: &Model, id: DefId) -> Option<(u64, u64)> {
        if let Some(known) = self.rows[id.0 as usize].layout {
            return known;
        }
        let found = match &model.definition(id).kind {
            DefinitionKind::Struct(structure) => self.find_layout(model, structure),
            DefinitionKind::Alias(target) => self.find_layout_of(model, target),
            _ => None,
        };
        self.rows[id.0 as usize].layout = Some(found);
        found
    }

    fn find_layout(&mut self, model: &Model, structure: &Structure) -> Option<(u64, u64)> {
        let mut whole = (1, 0);
        for member in &structure.members {
            let (alignment, size) = self.find_layout_of(model, &member.ty)?;
            let has_gap = whole.1 % alignment != 0;
            if has_gap {
                return None;
            }
            whole = (alignment.max(whole.0), size.checked_add(whole.1)?);
        }
        (whole.1 != 0 && whole.1 % whole.0 == 0).then_some(whole)
    }

    fn find_layout_of(&mut self, model: &Model, ty: &Type) -> Option<(u64, u64)> {
        match ty {
            Type::Named(id) => self.layout(model, *id),
            Type::Array { element, length } => {
                let (alignment, size) = self.find_layout_of(model, element)?;
                Some((alignment, size.checked_mul(u64::from(*length))?))
            }
            Type::Basic(basic) => basic_layout(*basic),
            _ => None,
        }
    }

    /// Returns the alignment and size of a type without padding, in memory as in CDR; `None` for any other type.
    pub(crate) fn layout_of(&self, model: &Model, ty: &Type) -> Option<(u64, u64)> {
        match model.resolve(ty) {
            Type::Named(id) => self.rows[id.0 as usize].layout.flatten(),
            Type::Array { element, length } => {
                let (alignment, size) = self.layout_of(model, element)?;
                Some((alignment, size.checked_mul(u64::from(*length))?))
            }
            Type::Basic(basic) => basic_layout(*basic),
            _ => None,
        }
    }
}

fn basic_layout(basic: Basic) -> Option<(u64, u64)> {
    let size = match basic {
        Basic::Octet | Basic::Char => 1,
        Basic::Short | Basic::UShort => 2,
        Basic::Long | Basic::ULong | Basic::Float => 4,
        Basic::LongLong | Basic::ULongLong | Basic::Double => 8,
        _ => return None,
    };
    Some((size, size))
}
