//! Converts IDL names to Rust names (`spec/mapping.md`). One table holds the names of a whole model, so that every
//! generated file uses the same name for a definition.

use std::collections::HashMap;
use std::rc::Rc;

use proc_macro2::{Ident, Span};

use super::data::field_names;
use super::enumeration::enumerator_names;
use crate::model::implied::reply_name;
use crate::model::{Access, DefId, DefinitionKind, Interface, Member, Model, ValueForm, Valuetype};

/// The Rust module path and name of each definition, and the names generated beside it.
#[derive(Debug, Default)]
pub(crate) struct Names {
    definitions: HashMap<DefId, Place>,
    interfaces: HashMap<DefId, InterfaceNames>,
    /// `None` if asynchronous calls are not generated.
    asynchronous: Option<HashMap<DefId, AsynchronousNames>>,
    values: HashMap<DefId, ValueNames>,
    enumerators: HashMap<DefId, Vec<String>>,
}

/// A definition's own name, and its enclosing modules.
#[derive(Debug, Default)]
struct Place {
    modules: Rc<[String]>,
    name: String,
    /// The module for the definitions inside; `None` if it equals the name, as that of a module does.
    inner: Option<String>,
}

/// The names generated for an interface.
#[derive(Debug, Default)]
pub(crate) struct InterfaceNames {
    /// `IRef`.
    pub(crate) reference: String,
    /// `ISkeleton`.
    pub(crate) skeleton: String,
    /// The methods, in the order of the interface's operations.
    pub(crate) methods: Vec<String>,
    /// The error enums, in the same order; `None` for an operation without a `raises` clause.
    pub(crate) errors: Vec<Option<String>>,
}

/// The names generated for the asynchronous calls of an interface.
#[derive(Debug)]
pub(crate) struct AsynchronousNames {
    /// The poller.
    pub(crate) poller: String,
    /// The trait that raises exceptions from exception holders.
    pub(crate) holder: String,
    /// The functions that deliver replies to reply handlers, in the order of the interface's operations.
    pub(crate) deliveries: Vec<String>,
    /// The poller's methods, in the same order.
    pub(crate) replies: Vec<String>,
}

/// The names generated for a valuetype.
#[derive(Debug)]
pub(crate) struct ValueNames {
    /// What its values are held as: `PointValue`, or the struct of a value box.
    pub(crate) held: String,
    /// The trait of its operations.
    pub(crate) operations: String,
    /// The trait of its factories.
    pub(crate) init: String,
    /// The field of its base's state, then those of its own.
    pub(crate) fields: Vec<String>,
}

impl Names {
    /// Names the definitions of a model, and if `ami` its asynchronous calls.
    pub(crate) fn new(model: &Model, ami: bool) -> Self {
        let mut names = Self {
            asynchronous: ami.then(HashMap::new),
            ..Self::default()
        };
        names.scope(model, model.roots(), &Rc::from([]));
        names
    }

    pub(crate) fn name(&self, id: DefId) -> &str {
        &self.definitions[&id].name
    }

    /// Returns the enclosing modules of a definition, from the outermost.
    pub(crate) fn modules(&self, id: DefId) -> &[String] {
        &self.definitions[&id].modules
    }

    /// Returns the module for the definitions inside a definition.
    pub(crate) fn inner(&self, id: DefId) -> &str {
        let place = &self.definitions[&id];
        place.inner.as_ref().unwrap_or(&place.name)
    }

    /// Returns the enumerators of an enum.
    pub(crate) fn enumerators(&self, id: DefId) -> &[String] {
        &self.enumerators[&id]
    }

    pub(crate) fn interface(&self, id: DefId) -> &InterfaceNames {
        &self.interfaces[&id]
    }

    /// Returns the names of an interface's asynchronous calls.
    ///
    /// # Panics
    /// If asynchronous calls are not generated.
    pub(crate) fn asynchronous(&self, id: DefId) -> &AsynchronousNames {
        let all = self.asynchronous.as_ref();
        all.and_then(|all| all.get(&id))
            .unwrap_or_else(|| unreachable!("asynchronous calls are not generated"))
    }

    fn scope(&mut self, model: &Model, members: &[DefId], modules: &Rc<[String]>) {
        let mut taken = Taken::new();
        // Names of an included file come first, so that they do not depend on the files that include it.
        let file = |id: &DefId| model.definition(*id).span.file;
        for members in members.chunk_by(|one, next| file(one) == file(next)) {
            self.file(model, members, modules, &mut taken);
        }
    }

    /// Names the definitions of a scope that are from one file.
    fn file(
        &mut self,
        model: &Model,
        members: &[DefId],
        modules: &Rc<[String]>,
        taken: &mut Taken,
    ) {
        for &id in members {
            let definition = model.definition(id);
            let name = match &definition.kind {
                DefinitionKind::Module(_) => unique(snake_case(&definition.name), taken),
                DefinitionKind::Constant(..) => unique(upper_case(&definition.name), taken),
                _ => unique(camel_case(&definition.name), taken),
            };
            let place = Place {
                modules: Rc::clone(modules),
                inner: None,
                name,
            };
            self.definitions.insert(id, place);
        }
        for &id in members {
            self.companions(model, id, taken);
            let inside = inside(model, id);
            if !inside.is_empty() {
                let mut modules = modules.to_vec();
                modules.push(self.inner(id).to_owned());
                self.scope(model, inside, &modules.into());
            }
        }
    }

    /// Adds the names that are generated beside a definition.
    fn companions(&mut self, model: &Model, id: DefId, taken: &mut Taken) {
        let kind = &model.definition(id).kind;
        if !matches!(kind, DefinitionKind::Module(_)) && !inside(model, id).is_empty() {
            let inner = unique(snake_case(&model.definition(id).name), taken);
            if let Some(place) = self.definitions.get_mut(&id) {
                place.inner = Some(inner);
            }
        }
        if let DefinitionKind::Enum(enumerators) = kind {
            self.enumerators.insert(id, enumerator_names(enumerators));
        }
        if let DefinitionKind::Value(value) = kind {
            self.value_companions(id, value, taken);
        }
        if let DefinitionKind::Interface(interface) = kind {
            let name = self.name(id).to_owned();
            let methods = self.methods(interface);
            let errors = errors(&name, interface, &methods, taken);
            let reference = unique(format!("{name}Ref"), taken);
            let skeleton = unique(format!("{name}Skeleton"), taken);
            self.asynchronous_companions(id, interface, &methods, taken);
            let names = InterfaceNames {
                reference,
                skeleton,
                methods,
                errors,
            };
            self.interfaces.insert(id, names);
        }
    }

    /// Adds the names that are generated for an interface's asynchronous calls. Those beside the interface are taken
    /// even if none are generated: the names of other definitions are the same then.
    fn asynchronous_companions(
        &mut self,
        id: DefId,
        interface: &Interface,
        methods: &[String],
        taken: &mut Taken,
    ) {
        let name = self.name(id);
        let poller = unique(format!("AMI{name}Poller"), taken);
        let holder = unique(format!("AMI{name}ExceptionHolder"), taken);
        if self.asynchronous.is_none() {
            return;
        }
        let names = AsynchronousNames {
            poller,
            holder,
            deliveries: self.deliveries(interface, methods),
            replies: self.replies(interface),
        };
        self.asynchronous.get_or_insert_default().insert(id, names);
    }

    /// Adds the names that are generated beside a valuetype.
    fn value_companions(&mut self, id: DefId, value: &Valuetype, taken: &mut Taken) {
        let name = self.name(id).to_owned();
        let methods = self.methods(&value.interface);
        let errors = errors(&name, &value.interface, &methods, taken);
        let held = match value.form {
            ValueForm::Box(_) => name.clone(),
            _ => unique(format!("{name}Value"), taken),
        };
        let fields: Vec<Member> = value.state.iter().map(|part| part.member.clone()).collect();
        let mut fields = field_names(&fields);
        let mut base = "base".to_owned();
        while fields.contains(&base) {
            base.push('_');
        }
        fields.insert(0, base);
        let names = ValueNames {
            held,
            operations: unique(format!("{name}Operations"), taken),
            init: unique(format!("{name}Init"), taken),
            fields,
        };
        self.values.insert(id, names);
        let names = InterfaceNames {
            methods,
            errors,
            ..InterfaceNames::default()
        };
        self.interfaces.insert(id, names);
    }

    pub(crate) fn value(&self, id: DefId) -> &ValueNames {
        &self.values[&id]
    }

    /// Returns the names of methods that an interface inherits from its ancestors, and the names in `all`.
    fn inherited<const N: usize>(&self, interface: &Interface, all: [&'static str; N]) -> Taken {
        let ancestors = interface.ancestors.iter();
        let names = ancestors.filter_map(|ancestor| self.interfaces.get(ancestor));
        taken_by(names.flat_map(|names| &names.methods), all)
    }

    /// Returns the names of the functions that deliver replies to reply handlers.
    fn deliveries(&self, interface: &Interface, methods: &[String]) -> Vec<String> {
        let mut taken = self.inherited(interface, []);
        taken.extend(methods.iter().map(|name| (name.clone(), 0)));
        let names = methods.iter().map(|method| format!("deliver_{method}"));
        names.map(|name| unique(name, &mut taken)).collect()
    }

    /// Returns the method names of an interface's poller, distinct from those of every poller and of the ancestors.
    fn replies(&self, interface: &Interface) -> Vec<String> {
        let every = ["new", "associated_handler", "set_associated_handler"];
        let ancestors = interface.ancestors.iter();
        let names = ancestors.filter_map(|ancestor| self.asynchronous.as_ref()?.get(ancestor));
        let mut taken = taken_by(names.flat_map(|names| &names.replies), every);
        let names = interface.operations.iter().map(reply_name);
        names
            .map(|name| unique(snake_case(&name), &mut taken))
            .collect()
    }

    /// Returns the method names of an interface's own operations, distinct from inherited ones and those of all
    /// references.
    fn methods(&self, interface: &Interface) -> Vec<String> {
        let every = ["object", "narrow", "unchecked_narrow"];
        let mut taken = self.inherited(interface, every);
        (interface.operations.iter())
            .map(|operation| {
                let name = snake_case(&operation.name);
                let set = operation.attribute == Some(Access::Set);
                unique(if set { format!("set_{name}") } else { name }, &mut taken)
            })
            .collect()
    }
}

fn taken_by<'n>(
    names: impl Iterator<Item = &'n String>,
    all: impl IntoIterator<Item = &'static str>,
) -> Taken {
    let all = all.into_iter().map(str::to_owned);
    names.cloned().chain(all).map(|name| (name, 0)).collect()
}

/// Returns the error enums of operations with a `raises` clause.
fn errors(
    name: &str,
    interface: &Interface,
    methods: &[String],
    taken: &mut Taken,
) -> Vec<Option<String>> {
    let operations = interface.operations.iter().zip(methods);
    operations
        .map(|(operation, method)| {
            let method = camel_case(method.strip_prefix("r#").unwrap_or(method));
            (!operation.raises.is_empty()).then(|| unique(format!("{name}{method}Error"), taken))
        })
        .collect()
}

/// Returns the definitions inside a definition.
pub(crate) fn inside(model: &Model, id: DefId) -> &[DefId] {
    model.definition(id).kind.inside()
}

/// Names that are taken, and how often each was asked for.
pub(crate) type Taken = HashMap<String, u32>;

/// Returns the name, with an underscore appended if it is taken, and with a number too from the third name on. Each
/// number is tried once, so that many names of one form take no more time than others.
pub(crate) fn unique(name: String, taken: &mut Taken) -> String {
    let Some(count) = taken.get_mut(&name) else {
        taken.insert(name.clone(), 0);
        return name;
    };
    let mut count = std::mem::take(count);
    let unique = loop {
        count += 1;
        let unique = match count {
            1 => format!("{name}_"),
            count => format!("{name}_{count}"),
        };
        if !taken.contains_key(&unique) {
            break unique;
        }
    };
    taken.insert(name, count);
    taken.insert(unique.clone(), 0);
    unique
}

/// Returns a Rust identifier with this name, raw if it is a keyword.
pub(crate) fn ident(name: &str) -> Ident {
    if is_keyword(name) {
        Ident::new_raw(name, Span::call_site())
    } else {
        Ident::new(name, Span::call_site())
    }
}

/// Whether a name is a keyword of Rust, or a reserved one.
pub(crate) fn is_keyword(name: &str) -> bool {
    // Each comparison has a constant length: faster than the search of a list.
    matches!(
        name,
        "abstract"
            | "as"
            | "async"
            | "await"
            | "become"
            | "box"
            | "break"
            | "const"
            | "continue"
            | "crate"
            | "do"
            | "dyn"
            | "else"
            | "enum"
            | "extern"
            | "false"
            | "final"
            | "fn"
            | "for"
            | "gen"
            | "if"
            | "impl"
            | "in"
            | "let"
            | "loop"
            | "macro"
            | "match"
            | "mod"
            | "move"
            | "mut"
            | "override"
            | "priv"
            | "pub"
            | "ref"
            | "return"
            | "Self"
            | "self"
            | "static"
            | "struct"
            | "super"
            | "trait"
            | "true"
            | "try"
            | "type"
            | "typeof"
            | "unsafe"
            | "unsized"
            | "use"
            | "virtual"
            | "where"
            | "while"
            | "yield"
    )
}

/// Converts to `NotFoundReason`. A name in that form is unchanged; words in capitals stay in capitals.
pub(crate) fn camel_case(name: &str) -> String {
    let name = plain(name);
    let mut out = String::with_capacity(name.len());
    for word in name.split('_').filter(|word| !word.is_empty()) {
        // Without the underscore, the digits on both sides would form one number.
        if out.ends_with(|c: char| c.is_ascii_digit())
            && word.starts_with(|c: char| c.is_ascii_digit())
        {
            out.push('_');
        }
        let mut rest = word.chars();
        out.extend(rest.next().map(|first| first.to_ascii_uppercase()));
        out.push_str(rest.as_str());
    }
    legal(out)
}

/// As [`camel_case`], but converts a name without lower-case letters too, since enumerators are often in capitals.
pub(crate) fn enumerator_case(name: &str) -> String {
    if name.chars().any(|c| c.is_ascii_lowercase()) {
        camel_case(name)
    } else {
        camel_case(&name.to_ascii_lowercase())
    }
}

/// Converts to `not_found_reason`, `url_string`.
pub(crate) fn snake_case(name: &str) -> String {
    let characters: Vec<char> = plain(name).chars().collect();
    let mut out = String::with_capacity(characters.len() + 4);
    for (index, &c) in characters.iter().enumerate() {
        let previous = index.checked_sub(1).map(|before| characters[before]);
        let next = characters.get(index + 1);
        let starts_word = c.is_ascii_uppercase()
            && previous.is_some_and(|p| {
                p.is_ascii_lowercase()
                    || p.is_ascii_digit()
                    || (p != '_' && next.is_some_and(char::is_ascii_lowercase))
            });
        if starts_word {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    legal(out)
}

/// Converts to `MAX_SIZE`.
pub(crate) fn upper_case(name: &str) -> String {
    snake_case(name).trim_end_matches('_').to_ascii_uppercase()
}

/// Replaces each character of an IDL name, except ASCII letters, digits and `_`, with `u` and its hexadecimal code.
fn plain(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii_alphanumeric() || c == '_' {
            out.push(c);
        } else {
            out.push_str(&format!("u{:x}", u32::from(c)));
        }
    }
    out
}

/// Appends an underscore to a name that is not an identifier, not even a raw one.
fn legal(name: String) -> String {
    match name.as_str() {
        "self" | "super" | "crate" | "Self" | "" => name + "_",
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_at_capitals_and_underscores() {
        let cases = [
            ("NamingContextExt", "naming_context_ext"),
            ("URLString", "url_string"),
            ("CosNaming", "cos_naming"),
            ("try_pull", "try_pull"),
            ("getURL", "get_url"),
            ("Level2Cache", "level2_cache"),
            ("self", "self_"),
        ];
        for (name, snake) in cases {
            assert_eq!(snake_case(name), snake);
        }
        assert_eq!(upper_case("MaxSize"), "MAX_SIZE");
        assert_eq!(upper_case("PRIVATE_MEMBER"), "PRIVATE_MEMBER");
    }

    #[test]
    fn types_keep_their_capitals_and_enumerators_do_not() {
        assert_eq!(camel_case("NVPair"), "NVPair");
        assert_eq!(camel_case("missing_node"), "MissingNode");
        assert_eq!(camel_case("v1_2"), "V1_2");
        assert_eq!(enumerator_case("RED_LIGHT"), "RedLight");
        assert_eq!(enumerator_case("dk_Attribute"), "DkAttribute");
    }

    #[test]
    fn equal_names_are_told_apart_in_few_octets() {
        let mut taken = Taken::new();
        let names: Vec<String> = (0..5).map(|_| unique("a".into(), &mut taken)).collect();
        assert_eq!(names, ["a", "a_", "a_2", "a_3", "a_4"]);
        assert_eq!(unique("a_5".into(), &mut taken), "a_5");
        assert_eq!(unique("a".into(), &mut taken), "a_6");
    }

    #[test]
    fn keywords_become_raw_identifiers() {
        assert_eq!(ident("type").to_string(), "r#type");
        assert_eq!(ident("kind").to_string(), "kind");
    }
}
