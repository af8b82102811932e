//! Checks interfaces.

use std::collections::{HashMap, HashSet};

use crate::check::budget::Budget;
use crate::check::scope::Target;
use crate::check::{Checker, Found};
use crate::limits::{ANCESTORS_MAX, OPERATIONS_MAX, RAISES_MAX};
use crate::model::rings::innermost;
use crate::model::{
    Access, DefId, DefinitionKind, Flavour, Interface, Mode, Operation, Parameter, Type,
};
use crate::parse::ast::{Attribute, Item, ItemKind, Name, Operation as AstOperation, ScopedName};
use crate::text::diagnostic::Diagnostic;
use crate::text::source::Span;

impl Checker<'_> {
    pub(crate) fn interface(
        &mut self,
        name: &Name,
        whole: Span,
        flavour: Flavour,
        bases: &[ScopedName],
        items: &[Item],
    ) {
        let bases: Vec<(DefId, Span)> = bases
            .iter()
            .filter_map(|base| Some((self.base(base, flavour)?, base.span)))
            .collect();
        let id = self.declare_interface(name, whole, flavour);
        if self
            .interface_of(id)
            .is_some_and(|interface| interface.defined)
        {
            let error = Diagnostic::new(name.span, format!("`{}` is defined twice", name.text));
            let earlier = self.definition(id).span;
            return self.error(error.note(earlier, "here"));
        }
        let ancestors = self.ancestors(&bases);
        if ancestors.len() > ANCESTORS_MAX {
            let text = format!("an interface inherits from at most {ANCESTORS_MAX} others");
            return self.error(Diagnostic::new(name.span, text));
        }
        if let DefinitionKind::Interface(interface) = self.kind_mut(id) {
            interface.bases = bases.iter().map(|(base, _)| *base).collect();
            interface.ancestors.clone_from(&ancestors);
            interface.defined = true;
        }
        self.definitions[id.0 as usize].whole = whole;
        if !self.inherit_operations(name, &ancestors, true) {
            return;
        }
        self.within(id, |checker| {
            checker.scopes.inherit(checker.scope, &ancestors);
            for item in items {
                match &item.kind {
                    ItemKind::Operation(operation) => checker.operation(id, operation, item.span),
                    ItemKind::Attribute(attribute) => checker.attribute(id, attribute, item.span),
                    _ => checker.item(item),
                }
            }
        });
        if let DefinitionKind::Interface(interface) = self.kind_mut(id) {
            interface.operations.shrink_to_fit();
            interface.members.shrink_to_fit();
        }
    }

    pub(super) fn interface_of(&self, id: DefId) -> Option<&Interface> {
        match &self.definition(id).kind {
            DefinitionKind::Interface(interface) => Some(interface),
            _ => None,
        }
    }

    /// The operations of an interface or valuetype.
    fn operations_of(&self, id: DefId) -> Option<&Interface> {
        match &self.definition(id).kind {
            DefinitionKind::Value(value) => Some(&value.interface),
            _ => self.interface_of(id),
        }
    }

    fn base(&mut self, name: &ScopedName, flavour: Flavour) -> Option<DefId> {
        let found = self.find(name)?;
        let id = match found {
            // A base can be named by an alias.
            Found::Target(Target::Definition(id)) => {
                match crate::model::resolve(&self.definitions, &Type::Named(id)) {
                    Type::Named(id) => Some(*id),
                    _ => None,
                }
            }
            _ => None,
        };
        let Some((id, base)) = id.and_then(|id| Some((id, self.interface_of(id)?))) else {
            self.error(Diagnostic::new(
                name.span,
                format!("`{name}` is not an interface"),
            ));
            return None;
        };
        let wrong = match (flavour, base.flavour) {
            (Flavour::Abstract, Flavour::Plain | Flavour::Local) => {
                Some("an abstract interface inherits from abstract ones alone")
            }
            (Flavour::Plain, Flavour::Local) => {
                Some("an interface that is not local does not inherit from a local one")
            }
            _ => None,
        };
        if !base.defined {
            let error = Diagnostic::new(
                name.span,
                format!("`{name}` is declared, but not defined before this"),
            );
            self.error(error.note(self.definition(id).span, "it is declared here"));
            return None;
        }
        if let Some(wrong) = wrong {
            self.error(Diagnostic::new(name.span, wrong));
        }
        Some(id)
    }

    /// Returns all ancestors, nearest first: the bases in order, then their ancestors.
    fn ancestors(&mut self, bases: &[(DefId, Span)]) -> Vec<DefId> {
        let mut all: Vec<DefId> = Vec::new();
        for &(base, span) in bases {
            if all.contains(&base) {
                self.error(Diagnostic::new(span, "this interface is named twice"));
            } else {
                all.push(base);
            }
        }
        let mut next = 0;
        while next < all.len() && all.len() <= ANCESTORS_MAX {
            let further = self
                .interface_of(all[next])
                .map(|interface| interface.bases.clone())
                .unwrap_or_default();
            for base in further {
                if !all.contains(&base) {
                    all.push(base);
                }
            }
            next += 1;
        }
        all
    }

    /// Notes the operations that an interface or valuetype inherits. If `once`, reports those of the same name from
    /// different interfaces. Returns false if the compilation inherits too much in all.
    pub(super) fn inherit_operations(
        &mut self,
        name: &Name,
        ancestors: &[DefId],
        once: bool,
    ) -> bool {
        let mut seen: HashMap<String, Span> = HashMap::new();
        let mut errors = Vec::new();
        for &ancestor in ancestors {
            let count = self
                .operations_of(ancestor)
                .map_or(0, |i| i.operations.len());
            if !self.take(Budget::Inherited, 1 + count, name.span) {
                return false;
            }
            let Some(interface) = self.operations_of(ancestor) else {
                continue;
            };
            for operation in interface
                .operations
                .iter()
                .filter(|o| o.attribute != Some(Access::Set))
            {
                let earlier = *seen
                    .entry(operation.name.to_lowercase())
                    .or_insert(operation.span);
                if once && earlier != operation.span {
                    let text = format!(
                        "`{}` inherits two operations of the name `{}`",
                        name.text, operation.name
                    );
                    let error = Diagnostic::new(name.span, text)
                        .note(earlier, "one")
                        .note(operation.span, "the other");
                    errors.push(error);
                }
            }
        }
        for error in errors {
            self.error(error);
        }
        self.inherited = seen;
        true
    }

    pub(super) fn operation(&mut self, interface: DefId, operation: &AstOperation, whole: Span) {
        let result = operation.result.as_ref().map(|ty| self.complete_type(ty));
        self.declare_operation(&operation.name, "an operation");
        let inside = self.scopes.push(self.scope, self.scopes.owner(self.scope));
        let outside = std::mem::replace(&mut self.scope, inside);
        let mut parameters = Vec::new();
        for parameter in &operation.parameters {
            let ty = self.complete_type(&parameter.ty);
            if let Err(error) = self.declare_parameter(&parameter.name) {
                self.error(error);
            }
            if let Some(ty) = ty {
                parameters.push(Parameter {
                    mode: parameter.mode,
                    name: parameter.name.text.clone(),
                    ty,
                });
            }
        }
        self.scope = outside;
        self.scopes.pop();
        let raises = self.raises(&operation.raises);
        self.check_oneway(operation);
        let result = match result {
            None => None,
            Some(Some(ty)) => Some(ty),
            Some(None) => return,
        };
        let name = operation.name.text.clone();
        self.add_operation(
            interface,
            Operation {
                wire_name: name.clone(),
                name,
                attribute: None,
                oneway: operation.oneway,
                result,
                parameters,
                raises,
                contexts: operation.contexts.clone(),
                span: operation.name.span,
                whole,
            },
        );
    }

    fn declare_parameter(&mut self, name: &Name) -> Result<(), Diagnostic> {
        // The owner of the parameters' scope is the interface. A parameter may have the interface's name.
        let result = self.scopes.declare(
            self.scope,
            name,
            Target::Other("a parameter"),
            &self.definitions,
        );
        let owner = self
            .scopes
            .owner(self.scope)
            .map(|id| self.definition(id).name.to_lowercase());
        if owner.is_some_and(|owner| owner == name.text.to_lowercase()) {
            Ok(())
        } else {
            result
        }
    }

    fn check_oneway(&mut self, operation: &AstOperation) {
        if !operation.oneway {
            return;
        }
        let span = operation.name.span;
        if operation.result.is_some() {
            self.error(
                Diagnostic::new(span, "a oneway operation has no result")
                    .help("write `oneway void`"),
            );
        }
        if operation
            .parameters
            .iter()
            .any(|parameter| parameter.mode != Mode::In)
        {
            self.error(Diagnostic::new(
                span,
                "a oneway operation has `in` parameters alone",
            ));
        }
        if !operation.raises.is_empty() {
            self.error(Diagnostic::new(
                span,
                "a oneway operation raises no exceptions",
            ));
        }
    }

    fn raises(&mut self, names: &[ScopedName]) -> Vec<DefId> {
        let mut raises = Vec::new();
        for name in names {
            let Some(found) = self.find(name) else {
                continue;
            };
            match found {
                Found::Target(Target::Definition(id)) if self.can_be_raised(id) => raises.push(id),
                _ => self.error(Diagnostic::new(
                    name.span,
                    format!("`{name}` is not an exception"),
                )),
            }
        }
        let mut seen = HashSet::new();
        raises.retain(|id| seen.insert(*id));
        if let Some(name) = names.get(RAISES_MAX) {
            let text = format!("a list of exceptions has at most {RAISES_MAX} names");
            self.error(Diagnostic::new(name.span, text));
            raises.truncate(RAISES_MAX);
        }
        raises
    }

    fn can_be_raised(&self, id: DefId) -> bool {
        matches!(
            self.definition(id).kind,
            DefinitionKind::Exception(_) | DefinitionKind::Native
        )
    }

    pub(super) fn attribute(&mut self, interface: DefId, attribute: &Attribute, whole: Span) {
        let ty = self.complete_type(&attribute.ty);
        let get_raises = self.raises(&attribute.get_raises);
        let set_raises = self.raises(&attribute.set_raises);
        for name in &attribute.names {
            let levels = ty.as_ref().map_or(0, |ty| innermost(ty).1);
            if !self.take(Budget::Parts, 2 + 2 * levels, name.span) {
                return;
            }
            self.declare_operation(name, "an attribute");
            let Some(ty) = &ty else { continue };
            let get = Operation {
                name: name.text.clone(),
                wire_name: format!("_get_{}", name.text),
                attribute: Some(Access::Get),
                oneway: false,
                result: Some(ty.clone()),
                parameters: Vec::new(),
                raises: get_raises.clone(),
                contexts: Vec::new(),
                span: name.span,
                whole,
            };
            self.add_operation(interface, get.clone());
            if !attribute.readonly {
                let value = Parameter {
                    mode: Mode::In,
                    name: "value".into(),
                    ty: ty.clone(),
                };
                let set = Operation {
                    wire_name: format!("_set_{}", name.text),
                    attribute: Some(Access::Set),
                    result: None,
                    parameters: vec![value],
                    raises: set_raises.clone(),
                    ..get
                };
                self.add_operation(interface, set);
            }
        }
    }

    /// Declares an operation or attribute. Its name must differ from all own and inherited operations and attributes.
    fn declare_operation(&mut self, name: &Name, what: &'static str) {
        if let Err(error) =
            self.scopes
                .declare(self.scope, name, Target::Other(what), &self.definitions)
        {
            return self.error(error);
        }
        let earlier = self.inherited.get(&name.text.to_lowercase()).copied();
        if let Some(earlier) = earlier {
            let error = Diagnostic::new(name.span, format!("`{}` is inherited already", name.text));
            self.error(
                error
                    .note(earlier, "from here")
                    .help("an interface gives operations it inherits no new meaning"),
            );
        }
    }

    fn add_operation(&mut self, interface: DefId, operation: Operation) {
        let count = self
            .operations_of(interface)
            .map_or(0, |i| i.operations.len());
        if count >= OPERATIONS_MAX {
            let text = format!("an interface has at most {OPERATIONS_MAX} operations of its own");
            return self.error(Diagnostic::new(operation.span, text));
        }
        match self.kind_mut(interface) {
            DefinitionKind::Interface(interface) => interface.operations.push(operation),
            DefinitionKind::Value(value) => value.interface.operations.push(operation),
            _ => {}
        }
    }
}
