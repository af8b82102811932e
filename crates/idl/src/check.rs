//! Creates the model's definitions from the syntax tree: resolves every name, and checks the rules that need resolved
//! names.

mod budget;
mod constant;
mod interface;
pub(crate) mod repository_id;
pub(crate) mod scope;
mod size;
mod types;
mod value;

use std::collections::HashMap;

use crate::check::budget::{Budget, Taken};
use crate::check::repository_id::{Pragma, pragma, repository_id, with_version};
use crate::check::scope::{ScopeId, Scopes, Target};
use crate::limits::TYPE_DEPTH_MAX;
use crate::model::rings::innermost;
use crate::model::{
    Basic, DefId, Definition, DefinitionKind, Flavour, Interface, Member, Structure, Type,
};
use crate::parse::ast::{
    Declarator, Item, ItemKind, Member as AstMember, Name, ScopedName, TypeSpec,
};
use crate::text::diagnostic::{Diagnostic, Reporter};
use crate::text::source::{Sources, Span};

/// Checks the definitions of a compilation. Errors go to the reporter; the result is then partial.
pub(crate) fn check(
    sources: &Sources,
    items: Vec<Item>,
    reporter: &mut Reporter,
) -> (Vec<Definition>, Vec<DefId>) {
    let mut checker = Checker {
        sources,
        reporter,
        definitions: Vec::new(),
        roots: Vec::new(),
        scopes: Scopes::new(),
        scope: Scopes::ROOT,
        prefix: String::new(),
        file_prefixes: Vec::new(),
        inherited: HashMap::new(),
        alias_depths: HashMap::new(),
        taken: Taken::default(),
    };
    checker.items(items);
    checker.incomplete();
    let (definitions, roots, is_over) = (checker.definitions, checker.roots, checker.taken.is_over);
    if !is_over {
        size::check(&definitions, reporter);
    }
    (definitions, roots)
}

pub(crate) struct Checker<'a> {
    sources: &'a Sources,
    reporter: &'a mut Reporter,
    pub(crate) definitions: Vec<Definition>,
    roots: Vec<DefId>,
    pub(crate) scopes: Scopes,
    /// The current scope.
    pub(crate) scope: ScopeId,
    /// The current `#pragma prefix`.
    prefix: String,
    /// The prefixes of the files that include the current file.
    file_prefixes: Vec<String>,
    /// The operations and attributes that the current interface inherits, by their names in lower case.
    inherited: HashMap<String, Span>,
    /// How deep the type of each alias nests.
    alias_depths: HashMap<DefId, usize>,
    taken: Taken,
}

impl Checker<'_> {
    pub(crate) fn error(&mut self, error: Diagnostic) {
        self.reporter.report(error);
    }

    pub(crate) fn definition(&self, id: DefId) -> &Definition {
        &self.definitions[id.0 as usize]
    }

    pub(crate) fn kind_mut(&mut self, id: DefId) -> &mut DefinitionKind {
        &mut self.definitions[id.0 as usize].kind
    }

    /// Checks definitions, and drops the syntax of each before the next: the model takes its room.
    fn items(&mut self, items: Vec<Item>) {
        for item in items {
            if self.reporter.is_full() || self.taken.is_over {
                return;
            }
            match item.kind {
                ItemKind::Module { name, items } => self.module(&name, item.span, items),
                _ => self.item(&item),
            }
        }
    }

    /// Checks one definition outside of interfaces, or a type inside of one.
    pub(crate) fn item(&mut self, item: &Item) {
        match &item.kind {
            ItemKind::Interface {
                name,
                flavour,
                bases,
                items,
            } => {
                self.interface(name, item.span, *flavour, bases, items);
            }
            ItemKind::InterfaceForward { name, flavour } => {
                self.declare_interface(name, item.span, *flavour);
            }
            ItemKind::Value {
                name,
                form,
                bases,
                supports,
                items,
            } => self.value((name, item.span), form, (bases, supports), items),
            ItemKind::ValueForward { name, form } => {
                self.declare_value(name, item.span, form);
            }
            ItemKind::ValueBox { name, ty } => self.value_box(name, item.span, ty),
            ItemKind::Struct { .. } | ItemKind::Union { .. } | ItemKind::Enum { .. } => {
                self.constructed(item);
            }
            ItemKind::StructForward { name } => {
                self.declare_structure(name, item.span, false);
            }
            ItemKind::UnionForward { name } => {
                self.declare_union(name, item.span);
            }
            ItemKind::Typedef { ty, declarators } => self.typedef(ty, declarators, item.span),
            ItemKind::Const { ty, name, value } => self.constant(ty, name, value, item.span),
            ItemKind::Exception { name, members } => self.exception(name, item.span, members),
            ItemKind::Native { name } => {
                self.define(name, item.span, DefinitionKind::Native);
            }
            ItemKind::Pragma => self.pragma(item.span),
            ItemKind::FileStart => self.file_prefixes.push(std::mem::take(&mut self.prefix)),
            ItemKind::FileEnd => self.prefix = self.file_prefixes.pop().unwrap_or_default(),
            ItemKind::TypeId { name, id } => self.set_id(name, id.clone()),
            ItemKind::TypePrefix { name, prefix } => self.type_prefix(name, prefix),
            ItemKind::Import { name } => self.import(name),
            // The grammar has modules only where `items` finds them.
            ItemKind::Module { .. }
            | ItemKind::Operation(_)
            | ItemKind::Factory(_)
            | ItemKind::Attribute(_)
            | ItemKind::State { .. } => {}
        }
    }

    /// Creates a definition in the current scope. If its name is refused, the definition is still created, but name
    /// lookup does not return it.
    pub(crate) fn define(&mut self, name: &Name, whole: Span, kind: DefinitionKind) -> DefId {
        let id = DefId(self.definitions.len() as u32);
        let parent = self.scopes.owner(self.scope);
        let scoped_name = match parent {
            Some(parent) => format!("{}::{}", self.definition(parent).scoped_name, name.text),
            None => name.text.clone(),
        };
        if let Err(error) =
            self.scopes
                .declare(self.scope, name, Target::Definition(id), &self.definitions)
        {
            self.error(error);
        }
        let repository_id = repository_id(&self.prefix, &scoped_name);
        self.take(Budget::Definitions, 1, name.span);
        self.take(
            Budget::Names,
            scoped_name.len() + repository_id.len(),
            name.span,
        );
        self.definitions.push(Definition {
            name: name.text.clone(),
            scoped_name,
            repository_id,
            parent,
            span: name.span,
            whole,
            kind,
        });
        self.enlist(parent, id);
        id
    }

    fn enlist(&mut self, parent: Option<DefId>, id: DefId) {
        let Some(parent) = parent else {
            return self.roots.push(id);
        };
        match self.kind_mut(parent) {
            DefinitionKind::Module(members) => members.push(id),
            DefinitionKind::Interface(interface) => interface.members.push(id),
            DefinitionKind::Value(value) => value.interface.members.push(id),
            DefinitionKind::Struct(structure) | DefinitionKind::Exception(structure) => {
                structure.nested.push(id)
            }
            DefinitionKind::Union(union) => union.nested.push(id),
            _ => {}
        }
    }

    /// Runs `inside` in the scope of a definition. A `#pragma prefix` inside ends with the scope.
    pub(crate) fn within<T>(&mut self, owner: DefId, inside: impl FnOnce(&mut Self) -> T) -> T {
        let (scope, prefix) = (self.scope, self.prefix.clone());
        self.scope = self.scopes.open(scope, owner);
        let result = inside(self);
        self.scope = scope;
        self.prefix = prefix;
        result
    }

    pub(crate) fn own(&self, name: &Name) -> Option<DefId> {
        match self.scopes.own(self.scope, &name.text) {
            Some(Target::Definition(id)) => Some(id),
            _ => None,
        }
    }

    fn module(&mut self, name: &Name, whole: Span, items: Vec<Item>) {
        let known = self
            .own(name)
            .filter(|&id| matches!(self.definition(id).kind, DefinitionKind::Module(_)));
        let id =
            known.unwrap_or_else(|| self.define(name, whole, DefinitionKind::Module(Vec::new())));
        self.within(id, |checker| checker.items(items));
    }

    /// Declares an interface's name, for a forward declaration or the start of a definition.
    pub(crate) fn declare_interface(
        &mut self,
        name: &Name,
        whole: Span,
        flavour: Flavour,
    ) -> DefId {
        if let Some(id) = self.own(name)
            && let DefinitionKind::Interface(earlier) = &self.definition(id).kind
        {
            if earlier.flavour != flavour {
                let text = format!(
                    "`{}` is declared with another kind of interface before",
                    name.text
                );
                let error = Diagnostic::new(name.span, text).note(self.definition(id).span, "here");
                self.error(error);
            }
            return id;
        }
        let interface = Interface {
            flavour,
            bases: Vec::new(),
            ancestors: Vec::new(),
            members: Vec::new(),
            operations: Vec::new(),
            defined: false,
        };
        self.define(name, whole, DefinitionKind::Interface(interface))
    }

    pub(crate) fn declare_structure(&mut self, name: &Name, whole: Span, exception: bool) -> DefId {
        let known = self
            .own(name)
            .filter(|&id| match &self.definition(id).kind {
                DefinitionKind::Struct(structure) => !exception && !structure.defined,
                _ => false,
            });
        let structure = Structure {
            members: Vec::new(),
            nested: Vec::new(),
            defined: false,
        };
        let kind = if exception {
            DefinitionKind::Exception(structure)
        } else {
            DefinitionKind::Struct(structure)
        };
        known.unwrap_or_else(|| self.define(name, whole, kind))
    }

    pub(crate) fn declare_union(&mut self, name: &Name, whole: Span) -> DefId {
        let known = self
            .own(name)
            .filter(|&id| match &self.definition(id).kind {
                DefinitionKind::Union(union) => !union.defined,
                _ => false,
            });
        let discriminator = Type::Basic(Basic::Long);
        let union = crate::model::Union {
            discriminator,
            cases: Vec::new(),
            nested: Vec::new(),
            defined: false,
        };
        known.unwrap_or_else(|| self.define(name, whole, DefinitionKind::Union(union)))
    }

    /// Checks a struct, union or enum.
    pub(crate) fn constructed(&mut self, item: &Item) -> Option<DefId> {
        match &item.kind {
            ItemKind::Struct { name, members } => {
                let id = self.declare_structure(name, item.span, false);
                self.structure(id, item.span, members);
                if members.is_empty() {
                    self.error(Diagnostic::new(
                        name.span,
                        "a struct has at least one member",
                    ));
                }
                Some(id)
            }
            ItemKind::Union {
                name,
                discriminator,
                cases,
            } => Some(self.union(name, item.span, discriminator, cases)),
            ItemKind::Enum { name, enumerators } => {
                Some(self.enumeration(name, item.span, enumerators))
            }
            ItemKind::StructForward { name } => {
                Some(self.declare_structure(name, item.span, false))
            }
            ItemKind::UnionForward { name } => Some(self.declare_union(name, item.span)),
            _ => None,
        }
    }

    fn exception(&mut self, name: &Name, whole: Span, members: &[AstMember]) {
        let id = self.declare_structure(name, whole, true);
        self.structure(id, whole, members);
    }

    fn structure(&mut self, id: DefId, whole: Span, members: &[AstMember]) {
        let mut checked = Vec::new();
        self.within(id, |checker| {
            for member in members {
                let ty = checker.complete_type(&member.ty);
                for declarator in &member.declarators {
                    if let Some(member) = checker.member(&ty, declarator) {
                        checked.push(member);
                    }
                }
            }
        });
        checked.shrink_to_fit();
        if let DefinitionKind::Struct(structure) | DefinitionKind::Exception(structure) =
            self.kind_mut(id)
        {
            structure.members = checked;
            structure.defined = true;
        }
        self.definitions[id.0 as usize].whole = whole;
    }

    /// Declares a member's name. The member's type is the type specifier with the declarator's dimensions.
    pub(crate) fn member(&mut self, ty: &Option<Type>, declarator: &Declarator) -> Option<Member> {
        let name = &declarator.name;
        if let Err(error) = self.scopes.declare(
            self.scope,
            name,
            Target::Other("a member"),
            &self.definitions,
        ) {
            self.error(error);
        }
        let ty = self.dimensioned(ty.clone()?, declarator)?;
        Some(Member {
            name: name.text.clone(),
            ty,
            span: name.span,
        })
    }

    fn enumeration(&mut self, name: &Name, whole: Span, enumerators: &[Name]) -> DefId {
        let names = enumerators
            .iter()
            .map(|name| (name.text.clone(), name.span))
            .collect();
        let id = self.define(name, whole, DefinitionKind::Enum(names));
        for (index, enumerator) in enumerators.iter().enumerate() {
            let target = Target::Enumerator(id, index as u32);
            if let Err(error) =
                self.scopes
                    .declare(self.scope, enumerator, target, &self.definitions)
            {
                self.error(error);
            }
        }
        id
    }

    fn typedef(&mut self, ty: &TypeSpec, declarators: &[Declarator], whole: Span) {
        let ty = self.type_of(ty);
        for declarator in declarators {
            if self.taken.is_over {
                return;
            }
            let target = ty.clone().and_then(|ty| self.dimensioned(ty, declarator));
            // The name is defined even if its type is wrong, so that its uses are not reported too.
            let mut target = target.unwrap_or(Type::Basic(Basic::Long));
            let mut depth = self.alias_depth(&target);
            if depth > TYPE_DEPTH_MAX {
                self.error(size::too_deep(whole));
                (target, depth) = (Type::Basic(Basic::Long), 1);
            }
            let id = self.define(&declarator.name, whole, DefinitionKind::Alias(target));
            self.alias_depths.insert(id, depth);
        }
    }

    /// Returns how deep an alias of this type nests. Aliases are bounded where they are defined: each use of one follows
    /// its whole chain.
    fn alias_depth(&self, target: &Type) -> usize {
        let (innermost, levels) = innermost(target);
        let inner = match innermost {
            Type::Named(id) => self.alias_depths.get(id).copied(),
            _ => None,
        };
        1 + levels + inner.unwrap_or(0)
    }

    /// Resolves a name. After an error, which is reported, returns `None`.
    pub(crate) fn find(&mut self, name: &ScopedName) -> Option<Found> {
        match self.scopes.lookup(self.scope, name, &self.definitions) {
            Ok(target) => Some(Found::Target(target)),
            Err(error) => {
                let known = self.known_without_definition(name);
                if known.is_none() {
                    self.error(error);
                }
                known
            }
        }
    }

    /// Returns the meaning of `CORBA::TypeCode` and of the interfaces of the Interface Repository, which no IDL file
    /// needs to define. Inside module CORBA, the last part of the name is enough.
    fn known_without_definition(&self, name: &ScopedName) -> Option<Found> {
        let parts: Vec<&str> = name.parts.iter().map(|part| part.text.as_str()).collect();
        let last = match parts[..] {
            ["CORBA", last] => last,
            [last] => {
                let owner = self
                    .scopes
                    .owner(self.scope)
                    .map(|id| self.definition(id).scoped_name.as_str());
                owner.filter(|owner| *owner == "CORBA" || owner.starts_with("CORBA::"))?;
                last
            }
            _ => return None,
        };
        match last {
            "TypeCode" => Some(Found::TypeCode),
            _ if REPOSITORY_INTERFACES.contains(&last) => Some(Found::RepositoryObject),
            _ => None,
        }
    }

    fn pragma(&mut self, span: Span) {
        match pragma(self.sources.text(span), span) {
            Ok(Pragma::Prefix(prefix)) => self.prefix = prefix,
            Ok(Pragma::Id(name, id)) => self.set_id(&name, id),
            Ok(Pragma::Version(name, version)) => {
                if let Some(Found::Target(Target::Definition(id))) = self.find(&name) {
                    let definition = &mut self.definitions[id.0 as usize];
                    definition.repository_id = with_version(&definition.repository_id, &version);
                }
            }
            Ok(Pragma::Other) => {}
            Err(message) => self.error(Diagnostic::new(span, message)),
        }
    }

    fn set_id(&mut self, name: &ScopedName, id: String) {
        match self.find(name) {
            Some(Found::Target(Target::Definition(def))) => {
                self.definitions[def.0 as usize].repository_id = id;
            }
            Some(_) => self.error(Diagnostic::new(
                name.span,
                "this has no repository id of its own",
            )),
            None => {}
        }
    }

    /// Checks an import. It reads no file; an `#include` must have defined the name.
    fn import(&mut self, name: &ScopedName) {
        if self
            .scopes
            .lookup(self.scope, name, &self.definitions)
            .is_err()
        {
            let error = Diagnostic::new(name.span, format!("`{name}` is not defined"));
            self.error(error.help("`import` looks for no file: bring it in by `#include`"));
        }
    }

    fn type_prefix(&mut self, name: &ScopedName, prefix: &str) {
        let Some(Found::Target(Target::Definition(scope))) = self.find(name) else {
            return;
        };
        let mut open = vec![scope];
        while let Some(id) = open.pop() {
            open.extend_from_slice(self.definition(id).kind.inside());
            let repository_id = repository_id(prefix, &self.definition(id).scoped_name);
            if !self.take(Budget::Names, repository_id.len(), name.span) {
                return;
            }
            self.definitions[id.0 as usize].repository_id = repository_id;
        }
        let mut here = self.scopes.owner(self.scope);
        while here.is_some_and(|id| id != scope) {
            here = here.and_then(|id| self.definition(id).parent);
        }
        if here.is_some() {
            self.prefix = prefix.to_owned();
        }
    }

    /// Reports structs and unions that have a declaration but no definition.
    fn incomplete(&mut self) {
        let open = |definition: &Definition| match &definition.kind {
            DefinitionKind::Struct(structure) => !structure.defined,
            DefinitionKind::Union(union) => !union.defined,
            _ => false,
        };
        let errors: Vec<Diagnostic> = (self
            .definitions
            .iter()
            .filter(|definition| open(definition)))
        .map(|definition| {
            Diagnostic::new(
                definition.span,
                format!("`{}` is declared, but never defined", definition.name),
            )
        })
        .collect();
        for error in errors {
            self.error(error);
        }
    }
}

/// The meaning of a name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found {
    Target(Target),
    TypeCode,
    /// An object of the Interface Repository: a plain reference, since its interface is not generated.
    RepositoryObject,
}

/// The interfaces of the Interface Repository (CORBA 3.3 part 1, clause 14).
const REPOSITORY_INTERFACES: &[&str] = &[
    "AbstractInterfaceDef",
    "AliasDef",
    "ArrayDef",
    "AttributeDef",
    "ConstantDef",
    "Contained",
    "Container",
    "EnumDef",
    "ExceptionDef",
    "ExtAttributeDef",
    "ExtInterfaceDef",
    "ExtValueDef",
    "FixedDef",
    "IDLType",
    "IRObject",
    "InterfaceDef",
    "LocalInterfaceDef",
    "ModuleDef",
    "NativeDef",
    "OperationDef",
    "PrimitiveDef",
    "Repository",
    "SequenceDef",
    "StringDef",
    "StructDef",
    "TypedefDef",
    "UnionDef",
    "ValueBoxDef",
    "ValueDef",
    "ValueMemberDef",
    "WstringDef",
];
