//! Checks valuetypes (CORBA 3.3 part 1, clause 7.8).

use crate::check::scope::Target;
use crate::check::{Checker, Found};
use crate::limits::ANCESTORS_MAX;
use crate::model::{DefId, DefinitionKind, StateMember, Type, ValueForm, Valuetype};
use crate::parse::ast::{Item, ItemKind, Member as AstMember, Name, ScopedName, TypeSpec};
use crate::text::diagnostic::Diagnostic;
use crate::text::source::Span;

impl Checker<'_> {
    /// Declares a valuetype's name, for a forward declaration or the start of a definition.
    pub(super) fn declare_value(&mut self, name: &Name, whole: Span, form: &ValueForm) -> DefId {
        if let Some(id) = self.own(name)
            && let Some(earlier) = self.value_of(id)
        {
            let is_abstract = |form: &ValueForm| *form == ValueForm::Abstract;
            let text = if earlier.interface.defined {
                "is defined twice"
            } else if is_abstract(&earlier.form) != is_abstract(form) {
                "is declared with another kind of valuetype before"
            } else {
                return id;
            };
            let error = Diagnostic::new(name.span, format!("`{}` {text}", name.text));
            self.error(error.note(self.definition(id).span, "here"));
            return id;
        }
        let value = Valuetype::declared(form.clone());
        self.define(name, whole, DefinitionKind::Value(Box::new(value)))
    }

    fn value_of(&self, id: DefId) -> Option<&Valuetype> {
        match &self.definition(id).kind {
            DefinitionKind::Value(value) => Some(value),
            _ => None,
        }
    }

    fn value_mut(&mut self, id: DefId) -> Option<&mut Valuetype> {
        match self.kind_mut(id) {
            DefinitionKind::Value(value) => Some(value),
            _ => None,
        }
    }

    pub(super) fn value_box(&mut self, name: &Name, whole: Span, ty: &TypeSpec) {
        let boxed = self.complete_type(ty);
        let form = ValueForm::Box(
            boxed
                .clone()
                .unwrap_or(Type::Basic(crate::model::Basic::Long)),
        );
        let id = self.declare_value(name, whole, &form);
        if let Some(Type::Named(inner)) = boxed
            .as_ref()
            .map(|ty| crate::model::resolve(&self.definitions, ty))
            && self.value_of(*inner).is_some()
        {
            let error = Diagnostic::new(ty.span, "a value box holds no other valuetype");
            self.error(error.help("use that valuetype itself"));
        }
        if let Some(value) = self.value_mut(id) {
            value.form = form;
            value.interface.defined = true;
        }
        self.definitions[id.0 as usize].whole = whole;
    }

    pub(super) fn value(
        &mut self,
        (name, whole): (&Name, Span),
        form: &ValueForm,
        (bases, supports): (&[ScopedName], &[ScopedName]),
        items: &[Item],
    ) {
        let (base, abstract_bases) = self.value_bases(form, bases);
        let supports = self.supported(supports);
        let id = self.declare_value(name, whole, form);
        let parents = base.iter().chain(&abstract_bases).chain(&supports);
        let ancestors = self.value_ancestors(parents.copied().collect());
        if ancestors.len() > ANCESTORS_MAX {
            let text = format!("a valuetype inherits from at most {ANCESTORS_MAX} others");
            return self.error(Diagnostic::new(name.span, text));
        }
        if let Some(value) = self.value_mut(id) {
            value.form = form.clone();
            value.base = base;
            value.abstract_bases = abstract_bases;
            value.supports = supports;
            value.interface.ancestors.clone_from(&ancestors);
            value.interface.defined = true;
        }
        self.definitions[id.0 as usize].whole = whole;
        if !self.inherit_operations(name, &ancestors, false) {
            return;
        }
        self.within(id, |checker| {
            checker.scopes.inherit(checker.scope, &ancestors);
            for item in items {
                match &item.kind {
                    ItemKind::Operation(operation) => checker.operation(id, operation, item.span),
                    ItemKind::Factory(factory) => {
                        let count = checker.value_of(id).map(|v| v.interface.operations.len());
                        checker.operation(id, factory, item.span);
                        if let (Some(value), Some(count)) = (checker.value_mut(id), count) {
                            value
                                .factories
                                .extend(count..value.interface.operations.len());
                        }
                    }
                    ItemKind::Attribute(attribute) => checker.attribute(id, attribute, item.span),
                    ItemKind::State { is_public, member } => checker.state(id, *is_public, member),
                    _ => checker.item(item),
                }
            }
        });
        if let Some(value) = self.value_mut(id) {
            value.state.shrink_to_fit();
            value.interface.operations.shrink_to_fit();
        }
    }

    fn state(&mut self, id: DefId, is_public: bool, member: &AstMember) {
        if self
            .value_of(id)
            .is_some_and(|v| v.form == ValueForm::Abstract)
        {
            let error = Diagnostic::new(member.ty.span, "an abstract valuetype has no state");
            self.error(error.help("leave out `abstract`, or the member"));
        }
        let ty = self.complete_type(&member.ty);
        for declarator in &member.declarators {
            let member = self.member(&ty, declarator);
            if let (Some(member), Some(value)) = (member, self.value_mut(id)) {
                value.state.push(StateMember { is_public, member });
            }
        }
    }

    /// Returns the base with state, and the abstract bases.
    fn value_bases(
        &mut self,
        form: &ValueForm,
        names: &[ScopedName],
    ) -> (Option<DefId>, Vec<DefId>) {
        let (mut base, mut abstract_bases) = (None, Vec::new());
        for (index, name) in names.iter().enumerate() {
            let Some(id) = self.named_definition(name) else {
                continue;
            };
            let Some(value) = self.value_of(id) else {
                self.error(Diagnostic::new(
                    name.span,
                    format!("`{name}` is not a valuetype"),
                ));
                continue;
            };
            let wrong = match &value.form {
                _ if !value.interface.defined => Some("is declared, but not defined before this"),
                ValueForm::Box(_) => Some("is a value box, from which nothing is derived"),
                ValueForm::Abstract => None,
                _ if *form == ValueForm::Abstract => {
                    Some("has state: an abstract valuetype inherits from abstract ones alone")
                }
                _ if index > 0 => Some("has state: only the first base may have it"),
                ValueForm::Custom if *form != ValueForm::Custom => {
                    Some("is custom: what is derived from it is `custom` too")
                }
                _ => None,
            };
            if let Some(wrong) = wrong {
                let error = Diagnostic::new(name.span, format!("`{name}` {wrong}"));
                self.error(error.note(self.definition(id).span, "it is defined here"));
                continue;
            }
            match value.form {
                ValueForm::Abstract => abstract_bases.push(id),
                _ => base = Some(id),
            }
        }
        if *form == ValueForm::Truncatable
            && base.is_none()
            && let Some(first) = names.first()
        {
            let text = "an abstract base has no state to which a value could be truncated";
            self.error(Diagnostic::new(first.span, text).help("leave out `truncatable`"));
        }
        (base, abstract_bases)
    }

    fn supported(&mut self, names: &[ScopedName]) -> Vec<DefId> {
        let mut supported = Vec::new();
        for name in names {
            let Some(id) = self.named_definition(name) else {
                continue;
            };
            if self
                .interface_of(id)
                .is_some_and(|interface| interface.defined)
            {
                supported.push(id);
            } else {
                let text = format!("`{name}` is not an interface that is defined before this");
                self.error(Diagnostic::new(name.span, text));
            }
        }
        supported
    }

    /// The definition of a name, or of the type that it is an alias of.
    fn named_definition(&mut self, name: &ScopedName) -> Option<DefId> {
        match self.find(name)? {
            Found::Target(Target::Definition(id)) => {
                match crate::model::resolve(&self.definitions, &Type::Named(id)) {
                    Type::Named(id) => Some(*id),
                    _ => Some(id),
                }
            }
            _ => {
                let text = format!("`{name}` is not a valuetype or interface");
                self.error(Diagnostic::new(name.span, text));
                None
            }
        }
    }

    /// All valuetypes and interfaces that are inherited from, each once, nearest first.
    fn value_ancestors(&self, mut all: Vec<DefId>) -> Vec<DefId> {
        let mut next = 0;
        while next < all.len() && all.len() <= ANCESTORS_MAX {
            let further = match &self.definition(all[next]).kind {
                DefinitionKind::Value(value) => &value.interface.ancestors,
                DefinitionKind::Interface(interface) => &interface.ancestors,
                _ => &Vec::new(),
            };
            for &id in further.clone().iter() {
                if !all.contains(&id) {
                    all.push(id);
                }
            }
            next += 1;
        }
        all
    }
}
