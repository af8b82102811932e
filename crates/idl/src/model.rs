//! The runtime type model: what an IDL file defines, names looked up, types checked. A type named in a file can be
//! marshalled from it without compiling, and the code generator reads nothing else.

pub(crate) mod fixed;
pub(crate) mod implied;
pub(crate) mod layout;
pub(crate) mod value;

use std::collections::HashMap;

use crate::model::value::Value;
use crate::text::source::{Sources, Span};

/// A definition of one [`Model`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefId(pub(crate) u32);

/// The types that are keywords.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is the type of its name
pub enum Basic {
    Boolean,
    Octet,
    Char,
    WideChar,
    Short,
    UShort,
    Long,
    ULong,
    LongLong,
    ULongLong,
    Float,
    Double,
    LongDouble,
    Any,
    TypeCode,
    Object,
    ValueBase,
}

/// A type where it is used.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A keyword's.
    Basic(Basic),
    /// `string`, with its bound in octets of UTF-8.
    String(Option<u32>),
    /// `wstring`, with its bound in UTF-16 units.
    WideString(Option<u32>),
    /// `fixed<digits, scale>`.
    Fixed {
        /// All digits, at most 31.
        digits: u16,
        /// Those after the point.
        scale: u16,
    },
    /// `sequence<element, bound>`.
    Sequence {
        /// The element's type.
        element: Box<Type>,
        /// The greatest length.
        bound: Option<u32>,
    },
    /// One dimension of an array; a second is the element's.
    Array {
        /// The element's type.
        element: Box<Type>,
        /// The length, at least 1.
        length: u32,
    },
    /// A definition: struct, union, enum, alias, interface, native or valuetype.
    Named(DefId),
}

/// Which way a parameter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the standard's words
pub enum Mode {
    In,
    Out,
    InOut,
}

/// What kind of interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the standard's words; plain is without either
pub enum Flavour {
    Plain,
    Abstract,
    Local,
}

/// One definition of a name.
#[derive(Clone, Debug)]
pub struct Definition {
    /// As written, without the escaping underscore.
    pub name: String,
    /// With the names around it: `Nav::NavData`.
    pub scoped_name: String,
    /// For instance `IDL:Nav/NavData:1.0`.
    pub repository_id: String,
    /// What it is defined in.
    pub parent: Option<DefId>,
    /// The name's place (the first one, where modules are reopened and interfaces declared before).
    pub span: Span,
    /// The whole definition's place.
    pub whole: Span,
    /// What it is.
    pub kind: DefinitionKind,
    /// Nesting of types in it; 0 for what is no type.
    pub(crate) depth: usize,
    /// Nodes of its TypeCode.
    pub(crate) nodes: usize,
}

/// What a definition is.
#[derive(Clone, Debug)]
pub enum DefinitionKind {
    /// `module`: the definitions in it, in order.
    Module(Vec<DefId>),
    /// `interface`.
    Interface(Interface),
    /// `struct`.
    Struct(Structure),
    /// `exception`.
    Exception(Structure),
    /// `union`.
    Union(Union),
    /// `enum`: the enumerators, with their places.
    Enum(Vec<(String, Span)>),
    /// `typedef`.
    Alias(Type),
    /// `const`.
    Constant(Type, Value),
    /// `native`.
    Native,
    /// `valuetype`: known by name only.
    Value,
}

/// An interface.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Plain, abstract or local.
    pub flavour: Flavour,
    /// Those it names as its bases.
    pub bases: Vec<DefId>,
    /// All it inherits from, each once, nearest first.
    pub ancestors: Vec<DefId>,
    /// Types, constants and exceptions defined in it.
    pub members: Vec<DefId>,
    /// Its own operations, and the operations its own attributes stand for, in order.
    pub operations: Vec<Operation>,
    /// False after a forward declaration alone.
    pub defined: bool,
}

/// An operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// As written.
    pub name: String,
    /// As it goes over the wire: the name, or `_get_` or `_set_` and the attribute's name.
    pub wire_name: String,
    /// Whether it stands for reading or writing an attribute.
    pub attribute: Option<Access>,
    /// Without reply.
    pub oneway: bool,
    /// `None` is `void`.
    pub result: Option<Type>,
    /// In order.
    pub parameters: Vec<Parameter>,
    /// The exceptions in the `raises` clause.
    pub raises: Vec<DefId>,
    /// The names in the `context` clause; nothing is sent for them.
    pub contexts: Vec<String>,
    /// The name's place.
    pub span: Span,
    /// The whole operation's place.
    pub whole: Span,
}

/// What an attribute's operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // get or set
pub enum Access {
    Get,
    Set,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The way.
    pub mode: Mode,
    /// As written.
    pub name: String,
    /// The type.
    pub ty: Type,
}

/// A struct or an exception.
#[derive(Clone, Debug)]
pub struct Structure {
    /// In order.
    pub members: Vec<Member>,
    /// Types defined inside it.
    pub nested: Vec<DefId>,
    /// False after a forward declaration alone.
    pub defined: bool,
}

/// A member of a struct or an exception.
#[derive(Clone, Debug)]
pub struct Member {
    /// As written.
    pub name: String,
    /// The type.
    pub ty: Type,
    /// The name's place.
    pub span: Span,
}

/// A union.
#[derive(Clone, Debug)]
pub struct Union {
    /// An integer, char, boolean or enum type.
    pub discriminator: Type,
    /// In order.
    pub cases: Vec<Case>,
    /// Types defined inside it.
    pub nested: Vec<DefId>,
    /// False after a forward declaration alone.
    pub defined: bool,
}

/// A case of a union.
#[derive(Clone, Debug)]
pub struct Case {
    /// `None` is `default`.
    pub labels: Vec<Option<Value>>,
    /// As written.
    pub name: String,
    /// The type.
    pub ty: Type,
    /// The name's place.
    pub span: Span,
}

/// All that one IDL file and its includes define.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) definitions: Vec<Definition>,
    pub(crate) roots: Vec<DefId>,
    pub(crate) names: HashMap<String, DefId>,
    sources: Sources,
}

impl Model {
    /// A model of checked definitions.
    pub(crate) fn new(definitions: Vec<Definition>, roots: Vec<DefId>, sources: Sources) -> Self {
        let names = (0..)
            .map(DefId)
            .zip(&definitions)
            .map(|(id, definition)| (definition.scoped_name.clone(), id))
            .collect();
        Self {
            definitions,
            roots,
            names,
            sources,
        }
    }

    /// The files it was made from, the main one first.
    #[must_use]
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The definition.
    ///
    /// # Panics
    /// If the id is of another model.
    #[must_use]
    pub fn definition(&self, id: DefId) -> &Definition {
        &self.definitions[id.0 as usize]
    }

    /// All definitions, in order.
    pub fn definitions(&self) -> impl Iterator<Item = (DefId, &Definition)> {
        (0..).map(DefId).zip(&self.definitions)
    }

    /// Those outside of any module, in order.
    #[must_use]
    pub fn roots(&self) -> &[DefId] {
        &self.roots
    }

    /// The definition of a name such as `Nav::NavData`; a leading `::` means nothing.
    #[must_use]
    pub fn lookup(&self, scoped_name: &str) -> Option<DefId> {
        self.names
            .get(scoped_name.strip_prefix("::").unwrap_or(scoped_name))
            .copied()
    }

    /// The definition of a repository id such as `IDL:Nav/NavData:1.0`.
    #[must_use]
    pub fn lookup_id(&self, repository_id: &str) -> Option<DefId> {
        self.definitions()
            .find(|(_, definition)| definition.repository_id == repository_id)
            .map(|(id, _)| id)
    }

    /// The interface of that name, if it is one and is defined.
    #[must_use]
    pub fn interface(&self, scoped_name: &str) -> Option<&Interface> {
        match &self.definition(self.lookup(scoped_name)?).kind {
            DefinitionKind::Interface(interface) if interface.defined => Some(interface),
            _ => None,
        }
    }

    /// The kind of an interface; none where the definition is something else.
    pub(crate) fn flavour(&self, id: DefId) -> Option<Flavour> {
        match &self.definition(id).kind {
            DefinitionKind::Interface(interface) => Some(interface.flavour),
            _ => None,
        }
    }

    /// The operations of an interface with those it inherits, its own first, attributes as `_get_` and `_set_`.
    #[must_use]
    pub fn operations<'a>(&'a self, interface: &'a Interface) -> Vec<&'a Operation> {
        let inherited =
            interface
                .ancestors
                .iter()
                .filter_map(|&id| match &self.definition(id).kind {
                    DefinitionKind::Interface(ancestor) => Some(&ancestor.operations),
                    _ => None,
                });
        let own: Vec<&Operation> = interface.operations.iter().collect();
        own.into_iter().chain(inherited.flatten()).collect()
    }

    /// A constant's type and value.
    #[must_use]
    pub fn constant(&self, scoped_name: &str) -> Option<(&Type, &Value)> {
        match &self.definition(self.lookup(scoped_name)?).kind {
            DefinitionKind::Constant(ty, value) => Some((ty, value)),
            _ => None,
        }
    }

    /// The type behind aliases: never a [`Type::Named`] of an alias.
    #[must_use]
    pub fn resolve<'a>(&'a self, ty: &'a Type) -> &'a Type {
        resolve(&self.definitions, ty)
    }
}

/// The type behind aliases. Aliases cannot form a circle: each names what was defined before.
pub(crate) fn resolve<'a>(definitions: &'a [Definition], mut ty: &'a Type) -> &'a Type {
    while let Type::Named(id) = ty
        && let DefinitionKind::Alias(target) = &definitions[id.0 as usize].kind
    {
        ty = target;
    }
    ty
}
