//! The subjects of the experiments: with generated skeletons, and with dynamic ones.

use std::sync::Arc;

use deckwatch_cdr::{Any, TypeCode, Typed as _};
use deckwatch_dynamic::{
    ArgMode, DynamicImplementation, DynamicRequest, DynamicServant, NamedValue,
};
use deckwatch_orb::{
    Completion, ObjectId, ObjectRef, Poa, Servant, SystemException, SystemExceptionKind,
};
use deckwatch_sync::PiMutex;

use super::servant::{LaboratoryServant, Shared};
use super::server::corba_priority;
use crate::laboratory::idl::deckwatch::ComplexStruct;
use crate::laboratory::idl::experiment::{SubjectRef, SubjectSkeleton, Subjects};

/// A subject with a dynamic skeleton. It knows the operations of `deckwatch invoke`.
struct Dynamic {
    shared: Arc<Shared>,
    octets: TypeCode,
    structs: TypeCode,
}

impl Dynamic {
    fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            octets: TypeCode::sequence(&TypeCode::octet(), 0),
            structs: TypeCode::sequence(&ComplexStruct::type_code(), 0),
        }
    }
}

impl DynamicServant for Dynamic {
    fn primary_interface(&self, _object_id: &[u8], _poa: &Poa) -> String {
        SubjectRef::REPOSITORY_ID.to_owned()
    }

    fn invoke(&self, request: &mut DynamicRequest<'_>) -> Result<(), SystemException> {
        let taken =
            |type_code: &TypeCode| vec![NamedValue::parameter("m", type_code.clone(), ArgMode::In)];
        let is_oneway = match request.operation() {
            "nothing" => false,
            "tell_nothing" => true,
            "take_octets" => request.arguments(taken(&self.octets)).map(|_| false)?,
            "stream_octets" => request.arguments(taken(&self.octets)).map(|_| true)?,
            "take_structs" => request.arguments(taken(&self.structs)).map(|_| false)?,
            "stream_structs" => request.arguments(taken(&self.structs)).map(|_| true)?,
            "told" => {
                request.arguments(Vec::new())?;
                let told = self.shared.oneways();
                return request.set_result(Any::from_value(&told)?);
            }
            _ => return Err(request.unknown_operation()),
        };
        if is_oneway {
            self.shared.take_oneway();
        } else {
            self.shared.work();
        }
        Ok(())
    }
}

/// The servant of `Subjects`: activates and deactivates subjects.
pub(super) struct ActiveSubjects {
    poa: Poa,
    shared: Arc<Shared>,
    /// The priorities of the first subject and of all others, if the adapter has lanes.
    lanes: Option<(u8, u8)>,
    /// Subjects with generated skeletons, and with dynamic ones.
    active: PiMutex<[Vec<(ObjectId, ObjectRef)>; 2]>,
}

impl ActiveSubjects {
    pub(super) fn new(poa: Poa, shared: Arc<Shared>, lanes: Option<(u8, u8)>) -> Self {
        Self {
            poa,
            shared,
            lanes,
            active: PiMutex::new([Vec::new(), Vec::new()]),
        }
    }

    fn servant(&self, is_dynamic: bool) -> Arc<dyn Servant> {
        let shared = Arc::clone(&self.shared);
        if is_dynamic {
            Arc::new(DynamicImplementation::new(Dynamic::new(shared)))
        } else {
            Arc::new(SubjectSkeleton::new(LaboratoryServant(shared)))
        }
    }
}

/// The largest number of active subjects of each kind: twenty times as many as in the FFI report.
const SUBJECTS_MAX: usize = 10_000;

const REFUSED: SystemException = SystemException::new(
    SystemExceptionKind::BadParam,
    deckwatch_giop::minor::NONE,
    Completion::No,
);

impl Subjects for ActiveSubjects {
    fn activate(&self, count: u32, are_dynamic: bool) -> Result<(), SystemException> {
        let count = count as usize;
        if count > SUBJECTS_MAX {
            return Err(REFUSED);
        }
        let mut active = self.active.lock("subjects");
        let own = &mut active[usize::from(are_dynamic)];
        while own.len() > count {
            let Some((id, _)) = own.pop() else { break };
            self.poa.deactivate_object(&id).map_err(|_| REFUSED)?;
        }
        while own.len() < count {
            let servant = self.servant(are_dynamic);
            let id = match self.lanes {
                None => self.poa.activate_object(servant),
                Some((high, low)) => {
                    let number = if own.is_empty() { high } else { low };
                    let priority = corba_priority(number);
                    self.poa.activate_object_with_priority(servant, priority)
                }
            };
            let id = id.map_err(|_| REFUSED)?;
            let reference = self.poa.id_to_reference(&id);
            own.push((id, reference.map_err(|_| REFUSED)?));
        }
        Ok(())
    }

    fn by_index(
        &self,
        index: u32,
        is_dynamic: bool,
    ) -> Result<Option<SubjectRef>, SystemException> {
        let active = self.active.lock("subjects");
        let found = active[usize::from(is_dynamic)].get(index as usize);
        let found = found.map(|(_, reference)| SubjectRef::unchecked_narrow(reference.clone()));
        found.map(Some).ok_or(REFUSED)
    }
}
