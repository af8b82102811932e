//! What goes into the references of an adapter, and what becomes of it (CORBA 3.3 part 1, clause 16.6).

use deckwatch_giop::ior::{TaggedComponent, profile_tag};

use super::{Registered, facts};
use crate::adapter::ManagerState;
use crate::{Completion, Poa, PoaManager, Policies, SystemException, minor, raise};

/// Adds components to the references of adapters, and hears of what becomes of these.
pub trait IorInterceptor: Send + Sync + 'static {
    /// Tells it from the others of its ORB; empty: it needs no name.
    fn name(&self) -> &str {
        ""
    }

    /// An adapter is being made: components can be added to all its references.
    ///
    /// # Errors
    /// What it raises is passed over, as the standard says; what it has added before stays.
    fn establish_components(&self, _info: &mut IorInfo<'_>) -> Result<(), SystemException> {
        Ok(())
    }

    /// All interceptors have added theirs (IORInterceptor_3_0).
    ///
    /// # Errors
    /// The adapter is not made: whoever makes it gets OBJ_ADAPTER with the standard's minor code 6.
    fn components_established(&self, _info: &IorInfo<'_>) -> Result<(), SystemException> {
        Ok(())
    }

    /// A manager has changed its state (IORInterceptor_3_0).
    fn adapter_manager_state_changed(&self, _manager: &PoaManager, _state: AdapterState) {}

    /// Adapters are being destroyed (IORInterceptor_3_0).
    fn adapter_state_changed(&self, _adapters: &[Poa], _state: AdapterState) {}

    /// The ORB has shut down.
    fn destroy(&self) {}
}

/// What becomes of the requests to an adapter (PortableInterceptor::AdapterState).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i16)]
pub enum AdapterState {
    /// They wait.
    Holding = 0,
    /// They are served.
    Active = 1,
    /// They are turned away for the time being.
    Discarding = 2,
    /// They are turned away for good.
    Inactive = 3,
    /// There is no such adapter any more.
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
    /// What has been added to IIOP profiles.
    components: Vec<TaggedComponent>,
    may_add: bool,
}

impl Registered {
    /// What interceptors add to the references of an adapter that is being made.
    ///
    /// # Errors
    /// What keeps it from being made.
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
            let _passed_over = interceptor.establish_components(&mut info);
        }
        info.may_add = false;
        for interceptor in &self.ior {
            interceptor.components_established(&info)?;
        }
        Ok(info.components)
    }

    /// A manager has changed its state.
    pub(crate) fn tell_of_manager(&self, manager: &PoaManager, state: ManagerState) {
        for interceptor in &self.ior {
            interceptor.adapter_manager_state_changed(manager, state.into());
        }
    }

    /// An adapter is being destroyed.
    pub(crate) fn tell_of_destruction(&self, adapter: &Poa) {
        let adapters = std::slice::from_ref(adapter);
        for interceptor in &self.ior {
            interceptor.adapter_state_changed(adapters, AdapterState::NonExistent);
        }
    }
}

impl IorInfo<'_> {
    /// The policies of the adapter: `get_effective_policy` of all kinds at once.
    #[must_use]
    pub const fn policies(&self) -> &Policies {
        self.policies
    }

    /// The names of the adapters from the root's to the one being made (`adapter_template`).
    #[must_use]
    pub fn adapter_name(&self) -> &[String] {
        &self.adapter_name
    }

    /// The id of its manager.
    #[must_use]
    pub fn manager_id(&self) -> &str {
        self.manager.id()
    }

    /// The state of its manager.
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

    /// Adds a component to every profile of this tag.
    ///
    /// # Errors
    /// As [`IorInfo::add_ior_component`]; BAD_PARAM with the standard's minor code 29 for a profile that the references of this ORB do not have.
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
