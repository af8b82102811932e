//! The runtime type model: the checked definitions of an IDL file, with all names resolved. Values of its types can be
//! marshalled without compiled code. The code generator has no other input.

pub(crate) mod fixed;
pub(crate) mod implied;
pub(crate) mod layout;
pub(crate) mod rings;
pub(crate) mod value;

use std::collections::HashMap;

use crate::model::value::Value;
use crate::text::source::{Sources, Span};

/// The id of a definition in one [`Model`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefId(pub(crate) u32);

/// The types that are written as keywords.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each variant has its type's name
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

/// A type at the location where it is used.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A basic type.
    Basic(Basic),
    /// `string`, with its bound in octets of UTF-8.
    String(Option<u32>),
    /// `wstring`, with its bound in UTF-16 units.
    WideString(Option<u32>),
    /// `fixed<digits, scale>`.
    Fixed {
        /// All digits, at most 31.
        digits: u16,
        /// The digits after the decimal point.
        scale: u16,
    },
    /// `sequence<element, bound>`.
    Sequence {
        /// The element's type.
        element: Box<Type>,
        /// The greatest length.
        bound: Option<u32>,
    },
    /// One dimension of an array. In an array of more dimensions, the element is an array too.
    Array {
        /// The element's type.
        element: Box<Type>,
        /// The length, at least 1.
        length: u32,
    },
    /// A definition: struct, union, enum, alias, interface, native type or valuetype.
    Named(DefId),
}

/// The direction of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the standard's words
pub enum Mode {
    In,
    Out,
    InOut,
}

/// The kind of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the standard's words; `Plain` is neither abstract nor local
pub enum Flavour {
    Plain,
    Abstract,
    Local,
}

/// One definition.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The name as written, without the escaping underscore.
    pub name: String,
    /// The name with the names of its scopes: `Nav::NavData`.
    pub scoped_name: String,
    /// The repository id, for instance `IDL:Nav/NavData:1.0`.
    pub repository_id: String,
    /// The enclosing definition.
    pub parent: Option<DefId>,
    /// The location of the name; the first one, if a module is reopened or an interface has a forward declaration.
    pub span: Span,
    /// The location of the whole definition.
    pub whole: Span,
    /// The kind and content of the definition.
    pub kind: DefinitionKind,
}

/// The kind and content of a definition.
#[derive(Clone, Debug)]
pub enum DefinitionKind {
    /// `module`: its definitions, in order.
    Module(Vec<DefId>),
    /// `interface`.
    Interface(Interface),
    /// `struct`.
    Struct(Structure),
    /// `exception`.
    Exception(Structure),
    /// `union`.
    Union(Union),
    /// `enum`: its enumerators with their locations.
    Enum(Vec<(String, Span)>),
    /// `typedef`.
    Alias(Type),
    /// `const`.
    Constant(Type, Value),
    /// `native`.
    Native,
    /// `valuetype`. It is the largest kind and a rare one: in a box it does not add to the room of all others.
    Value(Box<Valuetype>),
}

/// A valuetype.
#[derive(Clone, Debug)]
pub struct Valuetype {
    /// What kind of valuetype it is.
    pub form: ValueForm,
    /// Its base with state.
    pub base: Option<DefId>,
    /// Its abstract bases.
    pub abstract_bases: Vec<DefId>,
    /// The interfaces that it supports.
    pub supports: Vec<DefId>,
    /// Its own state, in order.
    pub state: Vec<StateMember>,
    /// Its operations, factories and attributes, and what is defined in it. Its ancestors are its bases and theirs.
    pub interface: Interface,
    /// Which of the operations are factories.
    pub factories: Vec<usize>,
}

impl Valuetype {
    /// A valuetype of which no more than this is known.
    pub(crate) const fn declared(form: ValueForm) -> Self {
        Self {
            form,
            base: None,
            abstract_bases: Vec::new(),
            supports: Vec::new(),
            state: Vec::new(),
            interface: Interface {
                flavour: Flavour::Local,
                bases: Vec::new(),
                ancestors: Vec::new(),
                members: Vec::new(),
                operations: Vec::new(),
                defined: false,
            },
            factories: Vec::new(),
        }
    }
}

/// The kind of a valuetype.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueForm {
    /// With state.
    Plain,
    /// With state; a reader may take it for its base (`: truncatable Base`).
    Truncatable,
    /// Its state is marshalled by the user's own code.
    Custom,
    /// Without state, and without values of its own.
    Abstract,
    /// A value box of this type.
    Box(Type),
}

/// A member of a valuetype's state.
#[derive(Clone, Debug)]
pub struct StateMember {
    /// Whether it is `public`.
    pub is_public: bool,
    /// The member.
    pub member: Member,
}

/// An interface.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Plain, abstract or local.
    pub flavour: Flavour,
    /// Its direct bases.
    pub bases: Vec<DefId>,
    /// All interfaces that it inherits from, each once, nearest first.
    pub ancestors: Vec<DefId>,
    /// The types, constants and exceptions defined in it.
    pub members: Vec<DefId>,
    /// Its own operations and the operations of its own attributes, in order.
    pub operations: Vec<Operation>,
    /// False if there is a forward declaration only.
    pub defined: bool,
}

/// An operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The name as written.
    pub name: String,
    /// The operation name in requests: the name, or for an attribute `_get_` or `_set_` and the attribute's name.
    pub wire_name: String,
    /// Whether the operation reads or writes an attribute.
    pub attribute: Option<Access>,
    /// Whether the operation has no reply.
    pub oneway: bool,
    /// The result type; `None` is `void`.
    pub result: Option<Type>,
    /// The parameters, in order.
    pub parameters: Vec<Parameter>,
    /// The exceptions in the `raises` clause.
    pub raises: Vec<DefId>,
    /// The names in the `context` clause. No context values are sent.
    pub contexts: Vec<String>,
    /// The location of the name.
    pub span: Span,
    /// The location of the whole operation.
    pub whole: Span,
}

/// The access to an attribute that an operation makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // get or set
pub enum Access {
    Get,
    Set,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The direction.
    pub mode: Mode,
    /// The name as written.
    pub name: String,
    /// The type.
    pub ty: Type,
}

/// A struct or an exception.
#[derive(Clone, Debug)]
pub struct Structure {
    /// The members, in order.
    pub members: Vec<Member>,
    /// The types defined inside it.
    pub nested: Vec<DefId>,
    /// False if there is a forward declaration only.
    pub defined: bool,
}

/// A member of a struct or an exception.
#[derive(Clone, Debug)]
pub struct Member {
    /// The name as written.
    pub name: String,
    /// The type.
    pub ty: Type,
    /// The location of the name.
    pub span: Span,
}

/// A union.
#[derive(Clone, Debug)]
pub struct Union {
    /// The discriminator's type: an integer, char, boolean or enum type.
    pub discriminator: Type,
    /// The cases, in order.
    pub cases: Vec<Case>,
    /// The types defined inside it.
    pub nested: Vec<DefId>,
    /// False if there is a forward declaration only.
    pub defined: bool,
}

/// A case of a union.
#[derive(Clone, Debug)]
pub struct Case {
    /// The labels; `None` is `default`.
    pub labels: Vec<Option<Value>>,
    /// The name as written.
    pub name: String,
    /// The type.
    pub ty: Type,
    /// The location of the name.
    pub span: Span,
}

/// All definitions of one IDL file and of the files it includes.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) definitions: Vec<Definition>,
    pub(crate) roots: Vec<DefId>,
    pub(crate) names: HashMap<String, DefId>,
    sources: Sources,
}

impl Model {
    /// Creates a model from checked definitions.
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

    /// Returns the source files, the main one first.
    #[must_use]
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Returns a definition.
    ///
    /// # Panics
    /// If the id is from another model.
    #[must_use]
    pub fn definition(&self, id: DefId) -> &Definition {
        &self.definitions[id.0 as usize]
    }

    /// Returns all definitions, in order.
    pub fn definitions(&self) -> impl Iterator<Item = (DefId, &Definition)> {
        (0..).map(DefId).zip(&self.definitions)
    }

    /// Returns the definitions outside of all modules, in order.
    #[must_use]
    pub fn roots(&self) -> &[DefId] {
        &self.roots
    }

    /// Returns the definition with a scoped name such as `Nav::NavData`. A leading `::` is ignored.
    #[must_use]
    pub fn lookup(&self, scoped_name: &str) -> Option<DefId> {
        self.names
            .get(scoped_name.strip_prefix("::").unwrap_or(scoped_name))
            .copied()
    }

    /// Returns the definition with a repository id such as `IDL:Nav/NavData:1.0`.
    #[must_use]
    pub fn lookup_id(&self, repository_id: &str) -> Option<DefId> {
        self.definitions()
            .find(|(_, definition)| definition.repository_id == repository_id)
            .map(|(id, _)| id)
    }

    /// Returns the interface with that name, if it is an interface and has a definition.
    #[must_use]
    pub fn interface(&self, scoped_name: &str) -> Option<&Interface> {
        match &self.definition(self.lookup(scoped_name)?).kind {
            DefinitionKind::Interface(interface) if interface.defined => Some(interface),
            _ => None,
        }
    }

    /// Returns the kind of an interface; `None` for any other definition.
    pub(crate) fn flavour(&self, id: DefId) -> Option<Flavour> {
        match &self.definition(id).kind {
            DefinitionKind::Interface(interface) => Some(interface.flavour),
            _ => None,
        }
    }

    /// Returns the operations of an interface, its own first and then the inherited ones. Attributes appear as `_get_`
    /// and `_set_` operations.
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

    /// Returns a constant's type and value.
    #[must_use]
    pub fn constant(&self, scoped_name: &str) -> Option<(&Type, &Value)> {
        match &self.definition(self.lookup(scoped_name)?).kind {
            DefinitionKind::Constant(ty, value) => Some((ty, value)),
            _ => None,
        }
    }

    /// Resolves aliases. The result is never a [`Type::Named`] of an alias.
    #[must_use]
    pub fn resolve<'a>(&'a self, ty: &'a Type) -> &'a Type {
        resolve(&self.definitions, ty)
    }
}

/// Resolves aliases. Aliases cannot form a cycle: each refers to an earlier definition.
pub(crate) fn resolve<'a>(definitions: &'a [Definition], mut ty: &'a Type) -> &'a Type {
    while let Type::Named(id) = ty
        && let DefinitionKind::Alias(target) = &definitions[id.0 as usize].kind
    {
        ty = target;
    }
    ty
}
