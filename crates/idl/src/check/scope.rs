//! Scopes and name lookup (CORBA 3.3 part 1, clause 7.20).

use std::collections::HashMap;

use crate::model::{DefId, Definition, DefinitionKind};
use crate::parse::ast::{Name, ScopedName};
use crate::text::diagnostic::Diagnostic;
use crate::text::source::Span;

/// The index of a scope.
pub(crate) type ScopeId = usize;

/// The meaning of a name in a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Definition(DefId),
    Enumerator(DefId, u32),
    /// An operation, attribute, member or parameter. Its name is taken, but lookup of a scoped name does not return it.
    Other(&'static str),
}

#[derive(Clone, Debug)]
struct Entry {
    name: String,
    /// Whether the name is declared with the escaping underscore. It then stands beside a used name that differs in
    /// case: `in Node _node`.
    escaped: bool,
    span: Span,
    target: Target,
}

#[derive(Debug, Default)]
struct Scope {
    parent: Option<ScopeId>,
    owner: Option<DefId>,
    /// The names in lower case: names that differ only in case clash.
    entries: HashMap<String, Entry>,
    /// `None` for most scopes: a scope with operations of basic types alone needs none of it.
    outside: Option<Box<Outside>>,
}

/// What a scope knows of others.
#[derive(Debug, Default)]
struct Outside {
    /// Names of outer scopes that were used in this scope, and cannot be redefined in it.
    used: HashMap<String, (String, Span)>,
    /// The scopes of all ancestors of an interface or valuetype.
    inherited: Vec<ScopeId>,
    /// What was found in them for names in lower case. Ancestors are complete, so that it does not change.
    found: HashMap<String, Option<Entry>>,
}

/// All scopes of a compilation. The first is the global scope.
#[derive(Debug)]
pub(crate) struct Scopes {
    scopes: Vec<Scope>,
    of: HashMap<DefId, ScopeId>,
}

impl Scopes {
    pub(crate) const ROOT: ScopeId = 0;

    pub(crate) fn new() -> Self {
        Self {
            scopes: vec![Scope::default()],
            of: HashMap::new(),
        }
    }

    /// Returns the scope of a definition; creates it if there is none yet.
    pub(crate) fn open(&mut self, parent: ScopeId, owner: DefId) -> ScopeId {
        if let Some(&scope) = self.of.get(&owner) {
            return scope;
        }
        let scope = self.push(parent, Some(owner));
        self.of.insert(owner, scope);
        scope
    }

    /// Creates a scope without a name, for an operation's parameters.
    pub(crate) fn push(&mut self, parent: ScopeId, owner: Option<DefId>) -> ScopeId {
        self.scopes.push(Scope {
            parent: Some(parent),
            owner,
            ..Scope::default()
        });
        self.scopes.len() - 1
    }

    /// Removes the last scope that [`Scopes::push`] created.
    pub(crate) fn pop(&mut self) {
        self.scopes.pop();
    }

    /// Returns the scope of a definition; the global one without a definition.
    pub(crate) fn scope_of(&self, owner: Option<DefId>) -> Option<ScopeId> {
        owner.map_or(Some(Self::ROOT), |owner| self.of.get(&owner).copied())
    }

    pub(crate) fn owner(&self, scope: ScopeId) -> Option<DefId> {
        self.scopes[scope].owner
    }

    pub(crate) fn inherit(&mut self, scope: ScopeId, ancestors: &[DefId]) {
        if ancestors.is_empty() {
            return;
        }
        let inherited = ancestors.iter().filter_map(|id| self.of.get(id).copied());
        let inherited = inherited.collect();
        self.scopes[scope].outside.get_or_insert_default().inherited = inherited;
    }

    /// Returns the meaning of the name in this scope itself, if the spelling is the same.
    pub(crate) fn own(&self, scope: ScopeId, name: &str) -> Option<Target> {
        let entry = self.scopes[scope].entries.get(&name.to_lowercase())?;
        (entry.name == name).then_some(entry.target)
    }

    /// Declares a name.
    pub(crate) fn declare(
        &mut self,
        scope: ScopeId,
        name: &Name,
        target: Target,
        definitions: &[Definition],
    ) -> Result<(), Diagnostic> {
        let key = name.text.to_lowercase();
        let owner = self.scopes[scope]
            .owner
            .map(|id| &definitions[id.0 as usize]);
        let here = &mut self.scopes[scope];
        if let Some(entry) = here.entries.get(&key) {
            return Err(clash(name, &entry.name)
                .note(entry.span, format!("`{}` is defined here", entry.name)));
        }
        let outside = here.outside.as_ref();
        if let Some((used, span)) = outside.and_then(|outside| outside.used.get(&key))
            && !(name.escaped && *used != name.text)
        {
            let text = format!(
                "`{}` has been used here with another meaning, which it keeps to the end of this scope",
                name.text
            );
            let error =
                Diagnostic::new(name.span, text).note(*span, format!("`{used}` is used here"));
            return Err(if *used == name.text {
                error
            } else {
                error.help(format!(
                    "write `_{}`: an escaped name may differ in capitals alone",
                    name.text
                ))
            });
        }
        if let Some(owner) = owner.filter(|owner| owner.name.to_lowercase() == key) {
            let text = format!("`{}` is the name of what is around it", name.text);
            return Err(Diagnostic::new(name.span, text).note(owner.span, "here"));
        }
        here.entries.insert(
            key,
            Entry {
                name: name.text.clone(),
                escaped: name.escaped,
                span: name.span,
                target,
            },
        );
        Ok(())
    }

    /// Resolves a scoped name, starting in the scope `from`.
    pub(crate) fn lookup(
        &mut self,
        from: ScopeId,
        name: &ScopedName,
        definitions: &[Definition],
    ) -> Result<Target, Diagnostic> {
        let first = &name.parts[0];
        let mut target = if name.absolute {
            self.inside(Self::ROOT, first, definitions)?
        } else {
            self.outward(from, first, definitions)?
        };
        let mut target_name = first;
        for part in &name.parts[1..] {
            let scope = match target {
                Some(Target::Definition(id)) => self.of.get(&id).copied(),
                _ => None,
            };
            let Some(scope) = scope else {
                return Err(if target.is_some() {
                    Diagnostic::new(
                        target_name.span,
                        format!("`{}` has no names in it", target_name.text),
                    )
                } else {
                    unknown(target_name)
                });
            };
            target = self.inside(scope, part, definitions)?;
            target_name = part;
        }
        match target {
            Some(Target::Other(what)) => Err(Diagnostic::new(
                name.span,
                format!("`{name}` is {what}, where a type, constant or exception is needed"),
            )),
            Some(target) => Ok(target),
            None => Err(unknown(target_name)),
        }
    }

    /// Searches a scope and then its enclosing scopes. Records the use of the name.
    fn outward(
        &mut self,
        from: ScopeId,
        name: &Name,
        definitions: &[Definition],
    ) -> Result<Option<Target>, Diagnostic> {
        let mut scope = from;
        loop {
            if let Some(target) = self.inside(scope, name, definitions)? {
                let here = &mut self.scopes[from];
                let key = name.text.to_lowercase();
                if !here.entries.contains_key(&key) {
                    let outside = here.outside.get_or_insert_default();
                    outside
                        .used
                        .entry(key)
                        .or_insert_with(|| (name.text.clone(), name.span));
                }
                return Ok(Some(target));
            }
            match self.scopes[scope].parent {
                Some(parent) => scope = parent,
                None => return Ok(None),
            }
        }
    }

    /// Searches a scope and the scopes it inherits from.
    fn inside(
        &mut self,
        scope: ScopeId,
        name: &Name,
        definitions: &[Definition],
    ) -> Result<Option<Target>, Diagnostic> {
        let key = name.text.to_lowercase();
        let here = &self.scopes[scope];
        let own = here.entries.get(&key);
        if let Some(entry) = own.filter(|entry| !entry.escaped || entry.name == name.text) {
            return spelt(name, entry).map(Some);
        }
        let known = match &here.outside {
            Some(outside) if !outside.inherited.is_empty() => outside.found.get(&key).cloned(),
            _ => return Ok(None),
        };
        let found = match known {
            Some(found) => found,
            None => {
                let found = self.inherited(scope, &key, name, definitions)?.cloned();
                let outside = self.scopes[scope].outside.get_or_insert_default();
                outside.found.insert(key, found.clone());
                found
            }
        };
        found.map(|entry| spelt(name, &entry)).transpose()
    }

    /// Searches the scopes that a scope inherits from.
    fn inherited(
        &self,
        scope: ScopeId,
        key: &str,
        name: &Name,
        definitions: &[Definition],
    ) -> Result<Option<&Entry>, Diagnostic> {
        let mut found: Option<(ScopeId, &Entry)> = None;
        let outside = self.scopes[scope].outside.iter();
        for &base in outside.flat_map(|outside| &outside.inherited) {
            let Some(entry) = self.scopes[base].entries.get(key) else {
                continue;
            };
            match found {
                // A definition in a nearer interface hides the one that this interface inherits.
                Some((nearer, earlier))
                    if earlier.target != entry.target
                        && !self.inherits(nearer, base, definitions) =>
                {
                    let text = format!("`{}` is inherited in two meanings", name.text);
                    return Err(Diagnostic::new(name.span, text)
                        .note(earlier.span, "one")
                        .note(entry.span, "the other")
                        .help("write the interface before it: `Interface::name`"));
                }
                Some(_) => {}
                None => found = Some((base, entry)),
            }
        }
        Ok(found.map(|(_, entry)| entry))
    }

    /// Returns whether the interface of a scope inherits from the interface of another.
    fn inherits(&self, nearer: ScopeId, other: ScopeId, definitions: &[Definition]) -> bool {
        let (Some(nearer), Some(other)) = (self.owner(nearer), self.owner(other)) else {
            return false;
        };
        match &definitions[nearer.0 as usize].kind {
            DefinitionKind::Interface(interface) => interface.ancestors.contains(&other),
            _ => false,
        }
    }
}

fn spelt(name: &Name, entry: &Entry) -> Result<Target, Diagnostic> {
    if entry.name == name.text {
        return Ok(entry.target);
    }
    let text = format!(
        "`{}` is spelt `{}` where it is defined",
        name.text, entry.name
    );
    Err(Diagnostic::new(name.span, text).note(entry.span, "here"))
}

fn unknown(name: &Name) -> Diagnostic {
    Diagnostic::new(name.span, format!("`{}` is not defined", name.text))
}

fn clash(name: &Name, earlier: &str) -> Diagnostic {
    let text = if name.text == earlier {
        format!("`{earlier}` is defined twice")
    } else {
        format!("`{}` and `{earlier}` differ in capitals alone", name.text)
    };
    Diagnostic::new(name.span, text)
}
