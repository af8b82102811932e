//! IOR interceptors: components of an adapter's references, and notice of its states (CORBA 3.3 part 1, clause 16.5).

use deckwatch_giop::ior::{TaggedComponent, profile_tag};

use super::{Registered, facts};
use crate::adapter::ManagerState;
use crate::{Completion, Poa, PoaManager, Policies, SystemException, minor, raise};

/// Adds components to the references of adapters, and is notified when their state changes.
pub trait IorInterceptor: Send + Sync + 'static {
    /// Returns the name, which is unique among the interceptors of this kind. An empty name need not be unique.
    fn name(&self) -> &str {
        ""
    }

    /// Called while an adapter is made. Components can be added to all its references.
    ///
    /// # Errors
    /// Errors are ignored, as the standard says. Components added before the error stay.
    fn establish_components(&self, _info: &mut IorInfo<'_>) -> Result<(), SystemException> {
        Ok(())
    }

    /// Called when all interceptors have added their components (IORInterceptor_3_0).
    ///
    /// # Errors
    /// The adapter is not made. The caller of `create_poa` gets OBJ_ADAPTER with the standard's minor code 6.
    fn components_established(&self, _info: &IorInfo<'_>) -> Result<(), SystemException> {
        Ok(())
    }

    /// Called when a manager has changed its state (IORInterceptor_3_0).
    fn adapter_manager_state_changed(&self, _manager: &PoaManager, _state: AdapterState) {}

    /// Called when adapters are being destroyed (IORInterceptor_3_0).
    fn adapter_state_changed(&self, _adapters: &[Poa], _state: AdapterState) {}

    /// Called when the ORB has shut down.
    fn destroy(&self) {}
}

/// How an adapter treats requests (PortableInterceptor::AdapterState).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i16)]
pub enum AdapterState {
    /// Requests wait.
    Holding = 0,
    /// Requests are served.
    Active = 1,
    /// Requests get TRANSIENT.
    Discarding = 2,
    /// Requests get OBJ_ADAPTER.
    Inactive = 3,
    /// The adapter is destroyed.
    NonExistent = 4,
}

impl From<ManagerState> for AdapterState {
    fn from(state: ManagerState) -> Self {
        match state {
            ManagerState::Holding => Self::Holding,
            ManagerState::Active => Self::Active,
            ManagerState::Discarding => Self::Discarding,
            ManagerState::Inactive => Self::Inactive,
        }
    }
}

/// An adapter that is being made.
#[derive(Debug)]
pub struct IorInfo<'a> {
    policies: &'a Policies,
    manager: &'a PoaManager,
    adapter_name: Vec<String>,
    /// The components for IIOP profiles.
    components: Vec<TaggedComponent>,
    may_add: bool,
}

impl Registered {
    /// Returns the components that interceptors add to the references of an adapter that is being made.
    ///
    /// # Errors
    /// The exception of an interceptor that refuses the adapter.
    pub(crate) fn establish(
        &self,
        manager: &PoaManager,
        policies: &Policies,
        adapter_name: Vec<String>,
    ) -> Result<Vec<TaggedComponent>, SystemException> {
        let mut info = IorInfo {
            policies,
            manager,
            adapter_name,
            components: Vec::new(),
            may_add: true,
        };
        for interceptor in &self.ior {
            // The standard passes over what it raises.
            let _ = interceptor.establish_components(&mut info);
        }
        info.may_add = false;
        for interceptor in &self.ior {
            interceptor.components_established(&info)?;
        }
        Ok(info.components)
    }

    /// Notifies the interceptors that a manager has changed its state.
    pub(crate) fn tell_of_manager(&self, manager: &PoaManager, state: ManagerState) {
        for interceptor in &self.ior {
            interceptor.adapter_manager_state_changed(manager, state.into());
        }
    }

    /// Notifies the interceptors that an adapter is being destroyed.
    pub(crate) fn tell_of_destruction(&self, adapter: &Poa) {
        let adapters = std::slice::from_ref(adapter);
        for interceptor in &self.ior {
            interceptor.adapter_state_changed(adapters, AdapterState::NonExistent);
        }
    }
}

impl IorInfo<'_> {
    /// Returns the policies of the adapter: `get_effective_policy` for all types at once.
    #[must_use]
    pub const fn policies(&self) -> &Policies {
        self.policies
    }

    /// Returns the names from the root adapter to the one being made (`adapter_template`).
    #[must_use]
    pub fn adapter_name(&self) -> &[String] {
        &self.adapter_name
    }

    /// Returns the id of the adapter's manager.
    #[must_use]
    pub fn manager_id(&self) -> &str {
        self.manager.id()
    }

    /// Returns the state of the adapter's manager.
    #[must_use]
    pub fn state(&self) -> AdapterState {
        self.manager.state().into()
    }

    /// Adds a component to every profile of the adapter's references.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 14 in [`IorInterceptor::components_established`].
    pub fn add_ior_component(&mut self, component: TaggedComponent) -> Result<(), SystemException> {
        self.add_ior_component_to_profile(component, profile_tag::INTERNET_IOP)
    }

    /// Adds a component to every profile with this tag.
    ///
    /// # Errors
    /// As [`IorInfo::add_ior_component`]; BAD_PARAM with the standard's minor code 29 for a profile that this ORB's
    /// references do not have.
    pub fn add_ior_component_to_profile(
        &mut self,
        component: TaggedComponent,
        profile: u32,
    ) -> Result<(), SystemException> {
        facts::require(self.may_add)?;
        if profile != profile_tag::INTERNET_IOP {
            return Err(raise::bad_param(minor::PROFILE_ID_INVALID, Completion::No));
        }
        self.components.push(component);
        Ok(())
    }
}
