//! Which types contain each other: directly, as elements of sequences, or through others.

use crate::model::{DefId, Definition, DefinitionKind, Type, ValueForm};

/// The rings of a model's definitions. A ring is a set of types each of which contains all the others; a type that does
/// not contain itself is a ring of its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rings {
    /// The number of each definition's ring.
    of: Vec<u32>,
    /// All rings, each after those that its types contain.
    all: Vec<Vec<DefId>>,
}

impl Rings {
    /// Finds the rings, by Tarjan's algorithm with a stack of its own: chains of types can be longer than the thread's
    /// stack is deep.
    pub(crate) fn new(definitions: &[Definition]) -> Self {
        let mut search = Search {
            definitions,
            order: vec![None; definitions.len()],
            low: vec![0; definitions.len()],
            is_open: vec![false; definitions.len()],
            open: Vec::new(),
            count: 0,
            rings: Self {
                of: vec![0; definitions.len()],
                all: Vec::new(),
            },
        };
        for index in 0..definitions.len() {
            if search.order[index].is_none() {
                search.run(index);
            }
        }
        search.rings
    }

    /// Whether two types are in one ring.
    pub(crate) fn is_same(&self, one: DefId, other: DefId) -> bool {
        self.of[one.0 as usize] == self.of[other.0 as usize]
    }

    /// Returns all rings, each after those that its types contain.
    pub(crate) fn all(&self) -> &[Vec<DefId>] {
        &self.all
    }
}

struct Search<'d> {
    definitions: &'d [Definition],
    order: Vec<Option<u32>>,
    low: Vec<u32>,
    is_open: Vec<bool>,
    open: Vec<DefId>,
    count: u32,
    rings: Rings,
}

impl Search<'_> {
    fn run(&mut self, first: usize) {
        let mut path = vec![(first, self.enter(first))];
        while let Some((at, parts)) = path.last_mut() {
            let at = *at;
            if let Some(part) = parts.pop() {
                let part = part.0 as usize;
                match self.order[part] {
                    None => {
                        let parts = self.enter(part);
                        path.push((part, parts));
                    }
                    Some(order) if self.is_open[part] => self.low[at] = self.low[at].min(order),
                    Some(_) => {}
                }
                continue;
            }
            path.pop();
            if let Some((outer, _)) = path.last() {
                self.low[*outer] = self.low[*outer].min(self.low[at]);
            }
            if self.order[at] == Some(self.low[at]) {
                self.close(at);
            }
        }
    }

    fn enter(&mut self, at: usize) -> Vec<DefId> {
        self.order[at] = Some(self.count);
        self.low[at] = self.count;
        self.count += 1;
        self.is_open[at] = true;
        self.open.push(DefId(at as u32));
        let mut parts = Vec::new();
        self.definitions[at].kind.each_part(|ty| {
            if let (Type::Named(id), _) = innermost(ty) {
                parts.push(*id);
            }
        });
        parts
    }

    fn close(&mut self, root: usize) {
        let mut ring = Vec::new();
        while let Some(id) = self.open.pop() {
            self.is_open[id.0 as usize] = false;
            self.rings.of[id.0 as usize] = self.rings.all.len() as u32;
            ring.push(id);
            if id.0 as usize == root {
                break;
            }
        }
        self.rings.all.push(ring);
    }
}

/// Returns the element of a sequence or an array, of all its levels, and their number.
pub(crate) fn innermost(mut ty: &Type) -> (&Type, usize) {
    let mut levels = 0;
    while let Type::Sequence { element, .. } | Type::Array { element, .. } = ty {
        ty = element;
        levels += 1;
    }
    (ty, levels)
}

impl DefinitionKind {
    /// Calls `visit` with each type that a value of this type consists of.
    pub(crate) fn each_part(&self, mut visit: impl FnMut(&Type)) {
        match self {
            Self::Struct(structure) | Self::Exception(structure) => {
                structure
                    .members
                    .iter()
                    .for_each(|member| visit(&member.ty));
            }
            Self::Union(union) => union.cases.iter().for_each(|case| visit(&case.ty)),
            Self::Alias(target) => visit(target),
            Self::Value(value) => {
                if let Some(base) = value.base {
                    visit(&Type::Named(base));
                }
                if let ValueForm::Box(boxed) = &value.form {
                    visit(boxed);
                }
                value.state.iter().for_each(|part| visit(&part.member.ty));
            }
            Self::Module(_)
            | Self::Interface(_)
            | Self::Enum(_)
            | Self::Constant(..)
            | Self::Native => {}
        }
    }

    /// Returns the definitions inside this one.
    pub(crate) fn inside(&self) -> &[DefId] {
        match self {
            Self::Module(members) => members,
            Self::Interface(interface) => &interface.members,
            Self::Value(value) => &value.interface.members,
            Self::Struct(structure) | Self::Exception(structure) => &structure.nested,
            Self::Union(union) => &union.nested,
            _ => &[],
        }
    }
}
