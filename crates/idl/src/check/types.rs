//! Checks types at the locations where they are used.

use crate::check::budget::Budget;
use crate::check::scope::Target;
use crate::check::{Checker, Found};
use crate::limits::DIMENSIONS_MAX;
use crate::model::fixed::DIGITS_MAX;
use crate::model::{Basic, DefinitionKind, Type};
use crate::parse::ast::{Declarator, Expr, ScopedName, TypeKind, TypeSpec};
use crate::text::diagnostic::Diagnostic;
use crate::text::source::Span;

impl Checker<'_> {
    /// Adds the declarator's array dimensions to a type, the first as the outermost.
    pub(crate) fn dimensioned(&mut self, ty: Type, declarator: &Declarator) -> Option<Type> {
        if declarator.dimensions.len() > DIMENSIONS_MAX {
            let text = format!("an array has at most {DIMENSIONS_MAX} dimensions");
            self.error(Diagnostic::new(declarator.name.span, text));
            return None;
        }
        let mut ty = ty;
        if !declarator.dimensions.is_empty() && !self.is_complete(&ty) {
            self.error(Diagnostic::new(
                declarator.name.span,
                "the type of these elements is not complete yet",
            ));
            return None;
        }
        let levels = crate::model::rings::innermost(&ty).1 + declarator.dimensions.len();
        if !self.take(Budget::Parts, 1 + levels, declarator.name.span) {
            return None;
        }
        for dimension in declarator.dimensions.iter().rev() {
            let length = self.positive(dimension)?;
            ty = Type::Array {
                element: Box::new(ty),
                length,
            };
        }
        Some(ty)
    }

    /// Returns a type that must be complete; `None` after an error.
    pub(crate) fn complete_type(&mut self, spec: &TypeSpec) -> Option<Type> {
        let ty = self.type_of(spec)?;
        if !self.is_complete(&ty) {
            let help = "a type may contain itself through a sequence alone: `sequence<Type>`";
            self.error(Diagnostic::new(spec.span, "this type is not complete yet").help(help));
            return None;
        }
        Some(ty)
    }

    fn is_complete<'t>(&'t self, mut ty: &'t Type) -> bool {
        // A loop: arrays of aliases of arrays form chains of any length.
        loop {
            match crate::model::resolve(&self.definitions, ty) {
                Type::Named(id) => {
                    return match &self.definition(*id).kind {
                        DefinitionKind::Struct(structure) => structure.defined,
                        DefinitionKind::Union(union) => union.defined,
                        _ => true,
                    };
                }
                Type::Array { element, .. } => ty = element,
                _ => return true,
            }
        }
    }

    /// Returns the type of a type specifier; `None` after an error.
    pub(crate) fn type_of(&mut self, spec: &TypeSpec) -> Option<Type> {
        Some(match &spec.kind {
            TypeKind::Basic(basic) => Type::Basic(*basic),
            TypeKind::String(bound) => Type::String(self.bound(bound.as_deref())?),
            TypeKind::WideString(bound) => Type::WideString(self.bound(bound.as_deref())?),
            TypeKind::Fixed(size) => {
                let Some(size) = size else {
                    let error = Diagnostic::new(
                        spec.span,
                        "`fixed` without digits and scale is for constants alone",
                    );
                    self.error(error.help("write `fixed<digits, scale>`"));
                    return None;
                };
                self.fixed(spec.span, &size.0, &size.1)?
            }
            TypeKind::Sequence(element, bound) => {
                let element = self.type_of(element);
                let bound = self.bound(bound.as_deref())?;
                Type::Sequence {
                    element: Box::new(element?),
                    bound,
                }
            }
            TypeKind::Named(name) => self.named(name)?,
            TypeKind::Defined(item) => Type::Named(self.constructed(item)?),
        })
    }

    fn bound(&mut self, bound: Option<&Expr>) -> Option<Option<u32>> {
        match bound {
            None => Some(None),
            Some(bound) => self.positive(bound).map(Some),
        }
    }

    fn fixed(&mut self, span: Span, digits: &Expr, scale: &Expr) -> Option<Type> {
        let digits = self.unsigned(digits)?;
        let scale = self.unsigned(scale)?;
        if digits == 0 || digits > DIGITS_MAX || scale > digits {
            let text = format!(
                "a fixed-point type has 1 to {DIGITS_MAX} digits, and a scale no greater than that"
            );
            self.error(Diagnostic::new(span, text));
            return None;
        }
        Some(Type::Fixed {
            digits: digits as u16,
            scale: scale as u16,
        })
    }

    /// Resolves a name that must be a type's.
    fn named(&mut self, name: &ScopedName) -> Option<Type> {
        let id = match self.find(name)? {
            Found::Target(Target::Definition(id)) => id,
            Found::TypeCode => return Some(Type::Basic(Basic::TypeCode)),
            Found::RepositoryObject => return Some(Type::Basic(Basic::Object)),
            Found::Target(_) => {
                self.error(Diagnostic::new(
                    name.span,
                    format!("`{name}` is an enumerator, not a type"),
                ));
                return None;
            }
        };
        let what = match &self.definition(id).kind {
            DefinitionKind::Module(_) => "a module",
            DefinitionKind::Exception(_) => "an exception",
            DefinitionKind::Constant(..) => "a constant",
            _ => return Some(Type::Named(id)),
        };
        let error = Diagnostic::new(name.span, format!("`{name}` is {what}, not a type"));
        self.error(error.note(self.definition(id).span, "it is defined here"));
        None
    }
}
