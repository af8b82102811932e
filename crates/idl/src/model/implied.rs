//! The IDL that asynchronous calls imply (CORBA 3.3 part 1, clause 17.8): a reply handler for each interface.

use std::collections::{HashMap, HashSet};

use crate::model::{
    Access, DefId, Definition, DefinitionKind, Flavour, Interface, Mode, Model, Operation,
    Parameter, Type, ValueForm, Valuetype,
};
use crate::text::source::Span;

/// The reply handlers of a model, by interface.
#[derive(Debug, Default)]
pub(crate) struct Handlers {
    by_interface: HashMap<DefId, DefId>,
    all: HashSet<DefId>,
}

/// The repository id of the value that reports an exception to a reply handler.
pub(crate) const EXCEPTION_HOLDER: &str = "IDL:omg.org/Messaging/ExceptionHolder:1.0";

/// The repository id of the base of all reply handlers.
pub(crate) const REPLY_HANDLER: &str = "IDL:omg.org/Messaging/ReplyHandler:1.0";

impl Handlers {
    /// Returns the reply handler of an interface. Returns `None` for local and abstract interfaces, and if asynchronous
    /// calls are not generated.
    pub(crate) fn of(&self, interface: DefId) -> Option<DefId> {
        self.by_interface.get(&interface).copied()
    }

    pub(crate) fn contain(&self, id: DefId) -> bool {
        self.all.contains(&id)
    }
}

/// Returns whether an operation can be called asynchronously.
pub(crate) fn has_reply(operation: &Operation) -> bool {
    !operation.oneway
}

/// Returns the operation's name in handlers and pollers: `get_a` and `set_a` for an attribute `a`.
pub(crate) fn reply_name(operation: &Operation) -> String {
    match operation.attribute {
        None => operation.name.clone(),
        Some(Access::Get) => format!("get_{}", operation.name),
        Some(Access::Set) => format!("set_{}", operation.name),
    }
}

/// Returns the model with a reply handler beside each plain interface.
pub(crate) fn with_handlers(model: &Model) -> (Model, Handlers) {
    let (mut model, mut handlers) = (model.clone(), Handlers::default());
    let holder = add(&mut model, exception_holder());
    let interfaces = model.definitions().filter_map(|(id, definition)| {
        let DefinitionKind::Interface(interface) = &definition.kind else {
            return None;
        };
        let has_handler = interface.flavour == Flavour::Plain && interface.defined;
        has_handler.then_some((interface.ancestors.len(), id))
    });
    // A forward declaration may put an interface before its bases. A base has fewer ancestors.
    let mut interfaces: Vec<(usize, DefId)> = interfaces.collect();
    interfaces.sort_unstable();
    for (_, id) in interfaces {
        let definition = model.definition(id).clone();
        let DefinitionKind::Interface(interface) = &definition.kind else {
            continue;
        };
        let made = handler(&model, &definition, interface, &handlers, holder);
        let handler = add(&mut model, made);
        handlers.by_interface.insert(id, handler);
        handlers.all.insert(handler);
    }
    stand_beside(&mut model, &handlers);
    (model, handlers)
}

fn add(model: &mut Model, definition: Definition) -> DefId {
    let id = DefId(u32::try_from(model.definitions.len()).unwrap_or(u32::MAX));
    model.names.insert(definition.scoped_name.clone(), id);
    model.definitions.push(definition);
    id
}

/// Puts each handler behind its interface, in one pass over each scope.
fn stand_beside(model: &mut Model, handlers: &Handlers) {
    let both = |members: &[DefId]| -> Vec<DefId> {
        let members = members.iter();
        let both = members.flat_map(|&id| [Some(id), handlers.of(id)]);
        both.flatten().collect()
    };
    model.roots = both(&model.roots);
    for definition in &mut model.definitions {
        if let DefinitionKind::Module(members) = &mut definition.kind {
            *members = both(members);
        }
    }
}

fn handler(
    model: &Model,
    definition: &Definition,
    interface: &Interface,
    handlers: &Handlers,
    holder: DefId,
) -> Definition {
    let scope = definition
        .scoped_name
        .strip_suffix(&definition.name)
        .unwrap_or("");
    let mut name = format!("AMI_{}Handler", definition.name);
    while model.lookup(&format!("{scope}{name}")).is_some() {
        name.insert_str(0, "AMI_");
    }
    let whole = nowhere(model, definition.whole);
    let known = |ids: &[DefId]| -> Vec<DefId> {
        let handlers = ids.iter().filter_map(|&id| handlers.of(id));
        handlers.collect()
    };
    let (bases, ancestors) = (known(&interface.bases), known(&interface.ancestors));
    let mut taken = HashSet::new();
    for &ancestor in &ancestors {
        if let DefinitionKind::Interface(ancestor) = &model.definition(ancestor).kind {
            let names = ancestor.operations.iter();
            taken.extend(names.map(|operation| operation.name.to_ascii_lowercase()));
        }
    }
    let operations = interface
        .operations
        .iter()
        .filter(|operation| has_reply(operation));
    Definition {
        scoped_name: format!("{scope}{name}"),
        repository_id: repository_id(definition, &name),
        name,
        parent: definition.parent,
        span: definition.span,
        whole,
        kind: DefinitionKind::Interface(Interface {
            flavour: Flavour::Plain,
            bases,
            ancestors,
            members: Vec::new(),
            operations: operations
                .flat_map(|operation| replies(operation, &mut taken, holder, whole))
                .collect(),
            defined: true,
        }),
    }
}

/// Returns a span of the same file that has no comment beside it: the whole file.
fn nowhere(model: &Model, whole: Span) -> Span {
    let len = model.sources().file(whole.file).text.len();
    Span {
        file: whole.file,
        start: 0,
        end: u32::try_from(len).unwrap_or(u32::MAX),
    }
}

/// Returns the two operations of a reply handler for one operation: one for results, one for an exception. Names that
/// are in `taken` get the prefix `ami_`, as the standard prescribes for `sendc_`. Two cases cause this: an attribute
/// `a` beside an operation `get_a`, and an exception's name beside an operation `op_excep`.
fn replies(
    operation: &Operation,
    taken: &mut HashSet<String>,
    holder: DefId,
    whole: Span,
) -> [Operation; 2] {
    let given = |name: &str, ty: &Type| Parameter {
        mode: Mode::In,
        name: name.to_owned(),
        ty: ty.clone(),
    };
    let mut return_value = "ami_return_val".to_owned();
    while operation
        .parameters
        .iter()
        .any(|parameter| parameter.name.eq_ignore_ascii_case(&return_value))
    {
        return_value.insert_str(0, "ami_");
    }
    let result = operation.result.iter().map(|ty| given(&return_value, ty));
    let parameters = operation.parameters.iter();
    let returned = parameters
        .filter(|parameter| parameter.mode != Mode::In)
        .map(|parameter| given(&parameter.name, &parameter.ty));
    let mut name = reply_name(operation);
    loop {
        let both = [name.clone(), format!("{name}_excep")].map(|name| name.to_ascii_lowercase());
        if both.iter().all(|name| !taken.contains(name)) {
            taken.extend(both);
            break;
        }
        name.insert_str(0, "ami_");
    }
    let raised = vec![given("excep_holder", &Type::Named(holder))];
    [
        told(name.clone(), result.chain(returned).collect(), whole),
        told(format!("{name}_excep"), raised, whole),
    ]
}

fn told(name: String, parameters: Vec<Parameter>, whole: Span) -> Operation {
    Operation {
        wire_name: name.clone(),
        name,
        attribute: None,
        oneway: false,
        result: None,
        parameters,
        raises: Vec::new(),
        contexts: Vec::new(),
        span: whole,
        whole,
    }
}

/// Returns the interface's repository id with the handler's name in place of the interface's.
fn repository_id(definition: &Definition, name: &str) -> String {
    let version = definition.repository_id.rsplit_once(':');
    match version.and_then(|(path, version)| Some((path.strip_suffix(&definition.name)?, version)))
    {
        Some((path, version)) => format!("{path}{name}:{version}"),
        None => format!("IDL:{name}:1.0"),
    }
}

fn exception_holder() -> Definition {
    let nothing = Span {
        file: crate::text::source::FileId::MAIN,
        start: 0,
        end: 0,
    };
    Definition {
        name: "ExceptionHolder".to_owned(),
        scoped_name: "Messaging::ExceptionHolder".to_owned(),
        repository_id: EXCEPTION_HOLDER.to_owned(),
        parent: None,
        span: nothing,
        whole: nothing,
        kind: DefinitionKind::Value(Box::new(Valuetype::declared(ValueForm::Plain))),
    }
}
