//! Checks interfaces.

use std::collections::{HashMap, HashSet};

use crate::check::scope::Target;
use crate::check::{Checker, Found};
use crate::limits::ANCESTORS_MAX;
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
        self.check_inherited(name, &ancestors);
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

    /// Reports operations of the same name that are inherited from different interfaces.
    fn check_inherited(&mut self, name: &Name, ancestors: &[DefId]) {
        let mut seen: HashMap<String, Span> = HashMap::new();
        let mut errors = Vec::new();
        for &ancestor in ancestors {
            let Some(interface) = self.interface_of(ancestor) else {
                continue;
            };
            for operation in interface
                .operations
                .iter()
                .filter(|o| o.attribute != Some(Access::Set))
            {
                if let Some(earlier) = seen.insert(operation.name.to_lowercase(), operation.span) {
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
    }

    pub(super) fn operation(&mut self, interface: DefId, operation: &AstOperation, whole: Span) {
        let result = operation.result.as_ref().map(|ty| self.complete_type(ty));
        self.declare_operation(interface, &operation.name, "an operation");
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
            self.declare_operation(interface, name, "an attribute");
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
    fn declare_operation(&mut self, interface: DefId, name: &Name, what: &'static str) {
        if let Err(error) =
            self.scopes
                .declare(self.scope, name, Target::Other(what), &self.definitions)
        {
            return self.error(error);
        }
        let ancestors = self
            .operations_of(interface)
            .map(|i| i.ancestors.clone())
            .unwrap_or_default();
        let key = name.text.to_lowercase();
        let earlier = ancestors
            .iter()
            .filter_map(|&id| self.operations_of(id))
            .flat_map(|i| &i.operations);
        let earlier = earlier
            .filter(|operation| operation.name.to_lowercase() == key)
            .map(|o| o.span)
            .next();
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
        match self.kind_mut(interface) {
            DefinitionKind::Interface(interface) => interface.operations.push(operation),
            DefinitionKind::Value(value) => value.interface.operations.push(operation),
            _ => {}
        }
    }
}
