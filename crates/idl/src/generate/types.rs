//! The Rust forms of an IDL type, and the traits that its values can implement.

use super::{Generator, Refused};
use crate::model::{Basic, DefId, Definition, DefinitionKind, Flavour, Type};
use crate::text::diagnostic::Diagnostic;
use crate::text::source::Span;

/// The largest bound of a string that is stored inline.
pub(super) const INLINE_STRING_MAX: u32 = 255;

/// How the caller passes an argument, and how the skeleton reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passing {
    /// A `Copy` value.
    Value,
    /// `&str`, read as `Cow<str>`.
    Text,
    /// `&[T]`, read as `Cow<[T]>`.
    Slice,
    /// `Option<&IRef>`.
    Reference,
    /// `&T`.
    Borrowed,
}

/// The traits that a type can implement besides `Clone`, `Debug` and `PartialEq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Abilities {
    pub(crate) copy: bool,
    pub(crate) default: bool,
    /// `Eq` and `Hash`.
    pub(crate) eq: bool,
}

impl Abilities {
    pub(super) const ALL: Self = Self {
        copy: true,
        default: true,
        eq: true,
    };

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            copy: self.copy && other.copy,
            default: self.default && other.default,
            eq: self.eq && other.eq,
        }
    }

    /// Returns the abilities of a type without parts.
    pub(super) fn of_leaf(ty: &Type) -> Self {
        match ty {
            Type::Basic(Basic::Float | Basic::Double) => Self {
                eq: false,
                ..Self::ALL
            },
            Type::Basic(Basic::TypeCode) => Self {
                copy: false,
                default: false,
                eq: false,
            },
            Type::Basic(Basic::Object | Basic::Any | Basic::ValueBase) => Self {
                copy: false,
                default: true,
                eq: false,
            },
            Type::String(Some(bound)) if *bound <= INLINE_STRING_MAX => Self::ALL,
            Type::String(_) | Type::WideString(_) => Self {
                copy: false,
                ..Self::ALL
            },
            _ => Self::ALL,
        }
    }
}

impl Generator<'_> {
    /// Returns the owned form, as seen from the modules `at`.
    pub(crate) fn owned(
        &mut self,
        ty: &Type,
        at: &[String],
        span: Span,
    ) -> Result<String, Refused> {
        let cdr = self.paths.cdr.clone();
        Ok(match ty {
            Type::Basic(basic) => self.basic(*basic),
            Type::String(Some(bound)) if *bound <= INLINE_STRING_MAX => {
                format!("{cdr}::BoundedString<{bound}>")
            }
            Type::String(_) => self.prelude("String"),
            Type::WideString(_) => format!("{cdr}::WString"),
            Type::Fixed { digits, scale } => format!("{cdr}::Fixed<{digits}, {scale}>"),
            Type::Sequence { element, bound } => {
                let element = self.owned(element, at, span)?;
                match bound {
                    Some(bound) => format!("{cdr}::BoundedVec<{element}, {bound}>"),
                    None => format!("{}<{element}>", self.prelude("Vec")),
                }
            }
            Type::Array { element, length } => {
                format!("[{}; {length}]", self.owned(element, at, span)?)
            }
            Type::Named(id) => self.named(*id, at, span)?,
        })
    }

    fn named(&mut self, id: DefId, at: &[String], span: Span) -> Result<String, Refused> {
        match &self.model.definition(id).kind {
            DefinitionKind::Interface(_) => {
                let reference = self.reference(id, at, span)?;
                Ok(format!("{}<{reference}>", self.prelude("Option")))
            }
            DefinitionKind::Value(_) if self.is_exception_holder(id) => {
                Ok(format!("{}::ExceptionHolder", self.paths.orb))
            }
            DefinitionKind::Value(_) => {
                let held = self.held(id, at, span)?;
                Ok(format!("{}<{held}>", self.prelude("Option")))
            }
            DefinitionKind::Alias(target) if !self.is_reachable(id) => {
                let target = target.clone();
                self.owned(&target, at, span)
            }
            _ => self.path(id, self.names.name(id).to_owned(), at, span),
        }
    }

    /// Returns the path of `IRef`. For a local interface, returns its shared servant, where local interfaces can be
    /// passed.
    pub(crate) fn reference(
        &mut self,
        id: DefId,
        at: &[String],
        span: Span,
    ) -> Result<String, Refused> {
        match self.model.flavour(id) {
            Some(Flavour::Local) if self.is_in_local && !self.is_defined(id) => {
                return Err(
                    self.refuse(span, "this local interface is declared, but never defined")
                );
            }
            Some(Flavour::Local) if self.is_in_local => {
                let path = self.path(id, self.names.name(id).to_owned(), at, span)?;
                return Ok(format!("{}<dyn {path}>", self.paths.arc));
            }
            Some(Flavour::Local) => {
                return Err(self.refuse(
                    span,
                    "local interfaces as parts of other types are not mapped to Rust yet",
                ));
            }
            Some(Flavour::Abstract) => {
                return Err(self.refuse(
                    span,
                    "values of abstract interfaces are not mapped to Rust yet",
                ));
            }
            _ => {}
        }
        self.path(id, self.names.interface(id).reference.clone(), at, span)
    }

    fn is_defined(&self, id: DefId) -> bool {
        matches!(&self.model.definition(id).kind, DefinitionKind::Interface(interface) if interface.defined)
    }

    fn basic(&self, basic: Basic) -> String {
        let (cdr, orb) = (&self.paths.cdr, &self.paths.orb);
        match basic {
            Basic::Boolean => "bool".into(),
            Basic::Octet => "u8".into(),
            Basic::Char => format!("{cdr}::Char"),
            Basic::WideChar => "char".into(),
            Basic::Short => "i16".into(),
            Basic::UShort => "u16".into(),
            Basic::Long => "i32".into(),
            Basic::ULong => "u32".into(),
            Basic::LongLong => "i64".into(),
            Basic::ULongLong => "u64".into(),
            Basic::Float => "f32".into(),
            Basic::Double => "f64".into(),
            Basic::LongDouble => format!("{cdr}::LongDouble"),
            Basic::Any => format!("{cdr}::Any"),
            Basic::TypeCode => format!("{cdr}::TypeCode"),
            Basic::Object => format!("{}<{orb}::ObjectRef>", self.prelude("Option")),
            Basic::ValueBase => format!("{}<{}>", self.prelude("Option"), self.held_base()),
        }
    }

    /// Returns how an argument of the type is passed.
    pub(crate) fn passing(&self, ty: &Type) -> Passing {
        match self.model.resolve(ty) {
            Type::Basic(Basic::Any | Basic::TypeCode) => Passing::Borrowed,
            Type::Basic(Basic::Object | Basic::ValueBase) => Passing::Reference,
            Type::Basic(_) => Passing::Value,
            Type::String(Some(bound)) if *bound <= INLINE_STRING_MAX => Passing::Borrowed,
            Type::String(_) => Passing::Text,
            Type::Sequence { .. } => Passing::Slice,
            Type::Named(id) => match self.model.definition(*id).kind {
                DefinitionKind::Interface(_) => Passing::Reference,
                DefinitionKind::Value(_) if !self.is_exception_holder(*id) => Passing::Reference,
                DefinitionKind::Enum(_) => Passing::Value,
                _ => Passing::Borrowed,
            },
            _ => Passing::Borrowed,
        }
    }

    /// Returns the argument form; `lifetime` is `""` or `'a`.
    pub(crate) fn argument(
        &mut self,
        ty: &Type,
        at: &[String],
        span: Span,
        lifetime: &str,
    ) -> Result<String, Refused> {
        let space = if lifetime.is_empty() { "" } else { " " };
        Ok(match self.passing(ty) {
            Passing::Value => self.owned(ty, at, span)?,
            Passing::Text => format!("&{lifetime}{space}str"),
            Passing::Slice => format!("&{lifetime}{space}[{}]", self.element(ty, at, span)?),
            Passing::Reference => {
                let reference = self.reference_of(ty, at, span)?;
                format!("{}<&{lifetime}{space}{reference}>", self.prelude("Option"))
            }
            Passing::Borrowed => format!("&{lifetime}{space}{}", self.owned(ty, at, span)?),
        })
    }

    /// Returns the reply form.
    pub(crate) fn reply(
        &mut self,
        ty: &Type,
        at: &[String],
        span: Span,
    ) -> Result<String, Refused> {
        Ok(match self.passing(ty) {
            Passing::Text => format!("{}<'a, str>", self.paths.cow),
            Passing::Slice => {
                let element = self.element(ty, at, span)?;
                format!("{}<'a, [{element}]>", self.paths.cow)
            }
            _ => self.owned(ty, at, span)?,
        })
    }

    /// Returns the element type of a sequence, in its owned form.
    pub(crate) fn element(
        &mut self,
        ty: &Type,
        at: &[String],
        span: Span,
    ) -> Result<String, Refused> {
        match self.model.resolve(ty) {
            Type::Sequence { element, .. } => self.owned(&element.clone(), at, span),
            other => self.owned(&other.clone(), at, span),
        }
    }

    /// Returns `IRef` or `ObjectRef` for a type that is passed as a reference.
    fn reference_of(&mut self, ty: &Type, at: &[String], span: Span) -> Result<String, Refused> {
        match self.model.resolve(ty) {
            Type::Named(id)
                if matches!(self.model.definition(*id).kind, DefinitionKind::Value(_)) =>
            {
                self.held(*id, at, span)
            }
            Type::Named(id) => self.reference(*id, at, span),
            Type::Basic(Basic::ValueBase) => Ok(self.held_base()),
            _ => Ok(format!("{}::ObjectRef", self.paths.orb)),
        }
    }

    pub(crate) fn abilities(&self, ty: &Type) -> Abilities {
        self.traits.abilities(self.model, ty)
    }

    /// Whether `Default` cannot be derived: arrays implement it only up to 32 elements.
    pub(crate) fn is_long_array(&self, ty: &Type) -> bool {
        match self.model.resolve(ty) {
            Type::Array { element, length } => *length > 32 || self.is_long_array(element),
            _ => false,
        }
    }

    /// Returns an expression of the type's TypeCode. `inside` are the structs and unions whose TypeCodes are being
    /// built; these are referred to as recursive types.
    pub(crate) fn type_code(
        &mut self,
        ty: &Type,
        at: &[String],
        span: Span,
        inside: &mut Vec<DefId>,
    ) -> Result<String, Refused> {
        let codes = format!("{}::TypeCode", self.paths.cdr);
        Ok(match ty {
            Type::Basic(_) | Type::Fixed { .. } => self.type_code_call(ty, at, span)?,
            Type::String(bound) => format!("{codes}::string({})", bound.unwrap_or(0)),
            Type::WideString(bound) => format!("{codes}::wstring({})", bound.unwrap_or(0)),
            Type::Sequence { element, bound } => {
                let element = self.type_code(element, at, span, inside)?;
                format!("{codes}::sequence(&{element}, {})", bound.unwrap_or(0))
            }
            Type::Array { element, length } => {
                format!(
                    "{codes}::array(&{}, {length})",
                    self.type_code(element, at, span, inside)?
                )
            }
            Type::Named(id) => {
                let definition = self.model.definition(*id);
                let (repository_id, name) =
                    (definition.repository_id.clone(), definition.name.clone());
                if inside.contains(id) {
                    return Ok(format!("{codes}::recursive({repository_id:?})"));
                }
                match &definition.kind {
                    DefinitionKind::Alias(target) => {
                        let target = self.type_code(&target.clone(), at, span, inside)?;
                        format!("{codes}::alias({repository_id:?}, {name:?}, &{target})")
                    }
                    DefinitionKind::Struct(_)
                    | DefinitionKind::Union(_)
                    | DefinitionKind::Value(_)
                        if inside
                            .last()
                            .is_some_and(|around| self.traits.contain_each_other(*id, *around)) =>
                    {
                        self.described(*id, at, inside)?.whole()
                    }
                    _ => self.type_code_call(ty, at, span)?,
                }
            }
        })
    }

    fn type_code_call(&mut self, ty: &Type, at: &[String], span: Span) -> Result<String, Refused> {
        let owned = self.owned(ty, at, span)?;
        Ok(format!(
            "<{owned} as {}::Typed>::type_code()",
            self.paths.cdr
        ))
    }

    /// Reports a definition that has no mapping, at its location.
    pub(crate) fn check_mapped(&mut self, definition: &Definition) -> Result<(), Refused> {
        let what = match &definition.kind {
            DefinitionKind::Native => "native types are",
            _ => return Ok(()),
        };
        Err(self.refuse(definition.span, &format!("{what} not mapped to Rust yet")))
    }

    pub(crate) fn refuse(&mut self, span: Span, message: &str) -> Refused {
        self.reporter.report(Diagnostic::new(span, message));
        Refused
    }
}
