//! The set of declared operations: what a schedule is computed from.

use std::collections::HashMap;

use crate::error::SchedError;
use crate::info::{Dependency, Enabled, Handle, RtInfo};
use crate::limits::{DEPENDENCIES_MAX, ENTRY_POINT_BYTES_MAX, OPERATIONS_MAX};

/// Declared operations. A handle stays valid: operations are disabled, not removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    infos: Vec<RtInfo>,
    by_entry_point: HashMap<String, Handle>,
    dependency_count: usize,
}

impl Operations {
    /// Declares an operation that costs nothing and has no period.
    ///
    /// # Errors
    /// [`SchedError::DuplicateEntryPoint`], [`SchedError::EntryPointTooLong`], [`SchedError::TooManyOperations`].
    pub fn create(&mut self, entry_point: &str) -> Result<Handle, SchedError> {
        if let Some(&there) = self.by_entry_point.get(entry_point) {
            return Err(SchedError::DuplicateEntryPoint(there));
        }
        if entry_point.len() > ENTRY_POINT_BYTES_MAX {
            return Err(SchedError::EntryPointTooLong);
        }
        if self.infos.len() >= OPERATIONS_MAX {
            return Err(SchedError::TooManyOperations);
        }
        let handle = Handle::at(self.infos.len());
        self.infos.push(RtInfo {
            entry_point: entry_point.to_owned(),
            ..RtInfo::default()
        });
        self.by_entry_point.insert(entry_point.to_owned(), handle);
        Ok(handle)
    }

    /// Declares an operation with all its attributes. Its dependencies are added one by one.
    ///
    /// # Errors
    /// As [`Self::create`] and [`Self::add_dependency`]; the operation is not declared then.
    pub fn add(&mut self, info: &RtInfo) -> Result<Handle, SchedError> {
        for dependency in &info.dependencies {
            self.get(dependency.on)?;
        }
        if self.dependency_count + info.dependencies.len() > DEPENDENCIES_MAX {
            return Err(SchedError::TooManyDependencies);
        }
        let handle = self.create(&info.entry_point)?;
        self.dependency_count += info.dependencies.len();
        self.infos[handle.index()] = info.clone();
        Ok(handle)
    }

    /// Returns the operation with this entry point.
    #[must_use]
    pub fn lookup(&self, entry_point: &str) -> Option<Handle> {
        self.by_entry_point.get(entry_point).copied()
    }

    /// Returns the declaration of an operation.
    ///
    /// # Errors
    /// [`SchedError::UnknownOperation`].
    pub fn get(&self, handle: Handle) -> Result<&RtInfo, SchedError> {
        self.infos
            .get(handle.index())
            .ok_or(SchedError::UnknownOperation(handle))
    }

    /// Changes the declaration of an operation; its entry point and its dependencies stay.
    ///
    /// # Errors
    /// [`SchedError::UnknownOperation`].
    pub fn change(
        &mut self,
        handle: Handle,
        change: impl FnOnce(&mut RtInfo),
    ) -> Result<(), SchedError> {
        let info = self
            .infos
            .get_mut(handle.index())
            .ok_or(SchedError::UnknownOperation(handle))?;
        let (entry_point, dependencies) = (
            std::mem::take(&mut info.entry_point),
            std::mem::take(&mut info.dependencies),
        );
        change(info);
        (info.entry_point, info.dependencies) = (entry_point, dependencies);
        Ok(())
    }

    /// Adds a dependency of `handle`.
    ///
    /// # Errors
    /// [`SchedError::UnknownOperation`], [`SchedError::TooManyDependencies`].
    pub fn add_dependency(
        &mut self,
        handle: Handle,
        dependency: Dependency,
    ) -> Result<(), SchedError> {
        self.get(dependency.on)?;
        self.get(handle)?;
        if self.dependency_count >= DEPENDENCIES_MAX {
            return Err(SchedError::TooManyDependencies);
        }
        self.dependency_count += 1;
        self.infos[handle.index()].dependencies.push(dependency);
        Ok(())
    }

    /// Removes a dependency of `handle` that is equal to `dependency`. Without an equal one, removes the one that differs
    /// only in being enabled or disabled.
    ///
    /// # Errors
    /// [`SchedError::UnknownOperation`], [`SchedError::UnknownDependency`].
    pub fn remove_dependency(
        &mut self,
        handle: Handle,
        dependency: Dependency,
    ) -> Result<(), SchedError> {
        let alike = self.position(handle, dependency)?;
        let there = &mut self.infos[handle.index()].dependencies;
        let same = there.iter().position(|one| *one == dependency);
        there.remove(same.unwrap_or(alike));
        self.dependency_count -= 1;
        Ok(())
    }

    /// Enables or disables a dependency of `handle` that is equal to `dependency` but for that.
    ///
    /// # Errors
    /// As [`Self::remove_dependency`].
    pub fn enable_dependency(
        &mut self,
        handle: Handle,
        dependency: Dependency,
    ) -> Result<(), SchedError> {
        let position = self.position(handle, dependency)?;
        self.infos[handle.index()].dependencies[position].enabled = dependency.enabled;
        Ok(())
    }

    fn position(&self, handle: Handle, wanted: Dependency) -> Result<usize, SchedError> {
        let there = &self.get(handle)?.dependencies;
        let alike = |one: &Dependency| {
            (one.on, one.kind, one.calls) == (wanted.on, wanted.kind, wanted.calls)
        };
        there
            .iter()
            .position(alike)
            .ok_or(SchedError::UnknownDependency(wanted.on))
    }

    /// Returns all declarations, in the order of their handles.
    #[must_use]
    pub fn infos(&self) -> &[RtInfo] {
        &self.infos
    }

    /// Returns all handles, in their order.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + use<> {
        (0..self.infos.len()).map(Handle::at)
    }

    pub(crate) fn is_on(&self, handle: Handle) -> bool {
        self.infos[handle.index()].enabled != Enabled::Disabled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::CallKind;

    fn one_way(on: Handle) -> Dependency {
        Dependency {
            on,
            kind: CallKind::OneWay,
            calls: 1,
            enabled: Enabled::Enabled,
        }
    }

    #[test]
    fn an_entry_point_is_declared_once() {
        let mut operations = Operations::default();
        let first = operations.create("a").unwrap();
        assert_eq!(
            operations.create("a"),
            Err(SchedError::DuplicateEntryPoint(first))
        );
        assert_eq!(operations.lookup("a"), Some(first));
        assert_eq!(operations.lookup("b"), None);
        let long = "x".repeat(ENTRY_POINT_BYTES_MAX + 1);
        assert_eq!(operations.create(&long), Err(SchedError::EntryPointTooLong));
    }

    #[test]
    fn a_dependency_needs_both_operations_and_can_be_removed_once() {
        let mut operations = Operations::default();
        let (a, b) = (
            operations.create("a").unwrap(),
            operations.create("b").unwrap(),
        );
        let stranger = Handle(9);
        let unknown = Err(SchedError::UnknownOperation(stranger));
        assert_eq!(operations.add_dependency(a, one_way(stranger)), unknown);
        assert_eq!(operations.add_dependency(stranger, one_way(a)), unknown);
        operations.add_dependency(a, one_way(b)).unwrap();
        let off = Dependency {
            enabled: Enabled::Disabled,
            ..one_way(b)
        };
        operations.enable_dependency(a, off).unwrap();
        assert!(!operations.infos()[0].dependencies[0].enabled.is_on());
        operations.remove_dependency(a, one_way(b)).unwrap();
        assert_eq!(
            operations.remove_dependency(a, one_way(b)),
            Err(SchedError::UnknownDependency(b))
        );
    }

    #[test]
    fn of_two_alike_dependencies_the_one_with_the_same_state_is_removed() {
        let mut operations = Operations::default();
        let (a, b) = (
            operations.create("a").unwrap(),
            operations.create("b").unwrap(),
        );
        let off = Dependency {
            enabled: Enabled::Disabled,
            ..one_way(b)
        };
        for added in [off, one_way(b)] {
            operations.add_dependency(a, added).unwrap();
        }
        operations.remove_dependency(a, one_way(b)).unwrap();
        assert_eq!(operations.infos()[0].dependencies, [off]);
        operations.remove_dependency(a, one_way(b)).unwrap();
        assert_eq!(operations.infos()[0].dependencies, []);
    }

    #[test]
    fn a_change_keeps_the_entry_point_and_the_dependencies() {
        let mut operations = Operations::default();
        let (a, b) = (
            operations.create("a").unwrap(),
            operations.create("b").unwrap(),
        );
        operations.add_dependency(a, one_way(b)).unwrap();
        operations
            .change(a, |info| {
                *info = RtInfo {
                    period_ns: 5,
                    ..RtInfo::default()
                };
            })
            .unwrap();
        let info = operations.get(a).unwrap();
        assert_eq!((info.entry_point.as_str(), info.period_ns), ("a", 5));
        assert_eq!(info.dependencies.len(), 1);
    }

    #[test]
    fn the_number_of_operations_is_bounded() {
        let mut operations = Operations::default();
        for number in 0..OPERATIONS_MAX {
            operations.create(&number.to_string()).unwrap();
        }
        assert_eq!(
            operations.create("one more"),
            Err(SchedError::TooManyOperations)
        );
    }
}
