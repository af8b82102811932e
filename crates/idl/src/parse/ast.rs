//! The syntax tree that the parser creates. Its names are not resolved.

use crate::model::{Flavour, ValueForm};
use crate::text::literal::Literal;
use crate::text::operator::{Binary, Unary};
use crate::text::source::Span;

/// A name, without the underscore that escapes it.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: String,
    /// Whether it is written with an underscore in front (clause 7.2.3.2).
    pub(crate) escaped: bool,
    pub(crate) span: Span,
}

/// `::A::B` or `A::B`.
#[derive(Clone, Debug)]
pub(crate) struct ScopedName {
    pub(crate) absolute: bool,
    pub(crate) parts: Vec<Name>,
    pub(crate) span: Span,
}

impl std::fmt::Display for ScopedName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, part) in self.parts.iter().enumerate() {
            let colons = if index > 0 || self.absolute { "::" } else { "" };
            write!(f, "{colons}{}", part.text)?;
        }
        Ok(())
    }
}

/// One definition with its whole location.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) kind: ItemKind,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum ItemKind {
    Module {
        name: Name,
        items: Vec<Item>,
    },
    Interface {
        name: Name,
        flavour: Flavour,
        bases: Vec<ScopedName>,
        items: Vec<Item>,
    },
    InterfaceForward {
        name: Name,
        flavour: Flavour,
    },
    Value {
        name: Name,
        form: ValueForm,
        bases: Vec<ScopedName>,
        supports: Vec<ScopedName>,
        items: Vec<Item>,
    },
    ValueForward {
        name: Name,
        form: ValueForm,
    },
    ValueBox {
        name: Name,
        ty: TypeSpec,
    },
    Struct {
        name: Name,
        members: Vec<Member>,
    },
    StructForward {
        name: Name,
    },
    Union {
        name: Name,
        discriminator: TypeSpec,
        cases: Vec<Case>,
    },
    UnionForward {
        name: Name,
    },
    Enum {
        name: Name,
        enumerators: Vec<Name>,
    },
    Typedef {
        ty: TypeSpec,
        declarators: Vec<Declarator>,
    },
    Const {
        ty: TypeSpec,
        name: Name,
        value: Expr,
    },
    Exception {
        name: Name,
        members: Vec<Member>,
    },
    Operation(Operation),
    Attribute(Attribute),
    /// A `public` or `private` state member of a valuetype.
    State {
        is_public: bool,
        member: Member,
    },
    /// A `factory` of a valuetype.
    Factory(Operation),
    Native {
        name: Name,
    },
    /// A `#pragma` line.
    Pragma,
    FileStart,
    FileEnd,
    TypeId {
        name: ScopedName,
        id: String,
    },
    Import {
        name: ScopedName,
    },
    TypePrefix {
        name: ScopedName,
        prefix: String,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) ty: TypeSpec,
    pub(crate) declarators: Vec<Declarator>,
}

/// A name with its array dimensions.
#[derive(Clone, Debug)]
pub(crate) struct Declarator {
    pub(crate) name: Name,
    pub(crate) dimensions: Vec<Expr>,
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The labels; `None` is `default`.
    pub(crate) labels: Vec<(Option<Expr>, Span)>,
    pub(crate) ty: TypeSpec,
    pub(crate) declarator: Declarator,
}

#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) name: Name,
    pub(crate) oneway: bool,
    /// The result type; `None` is `void`.
    pub(crate) result: Option<TypeSpec>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) raises: Vec<ScopedName>,
    pub(crate) contexts: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) mode: crate::model::Mode,
    pub(crate) ty: TypeSpec,
    pub(crate) name: Name,
}

#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub(crate) readonly: bool,
    pub(crate) ty: TypeSpec,
    pub(crate) names: Vec<Name>,
    pub(crate) get_raises: Vec<ScopedName>,
    pub(crate) set_raises: Vec<ScopedName>,
}

/// A type at the location where it is used.
#[derive(Clone, Debug)]
pub(crate) struct TypeSpec {
    pub(crate) kind: TypeKind,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum TypeKind {
    Basic(crate::model::Basic),
    String(Option<Box<Expr>>),
    WideString(Option<Box<Expr>>),
    /// Digits and scale; `None` in a constant's type.
    Fixed(Option<Box<(Expr, Expr)>>),
    Sequence(Box<TypeSpec>, Option<Box<Expr>>),
    Named(ScopedName),
    /// A struct, union or enum that is defined at the location where it is used.
    Defined(Box<Item>),
}

/// A constant expression.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Name(ScopedName),
    Literal(Literal),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
}
