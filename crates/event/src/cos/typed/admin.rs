//! The administrations of a typed channel (clauses 2.7.2 and 2.7.3). What they inherit belongs to the untyped side.

use std::sync::Arc;

use deckwatch_orb::{ObjectRef, Servant, SystemException};

use super::channel::Typed;
use super::pull_consumer::typed_supplier;
use super::pull_supplier::{PullObject, TypedPullSupplierProxy};
use super::push_consumer::{PushObject, TypedPushConsumerProxy};
use super::push_supplier::TypedPushSupplierProxy;
use crate::admin::{Consumers, Suppliers};
use crate::cos::PullConsumerProxy;
use crate::cos_event_channel_admin::{
    ConsumerAdmin, ProxyPullConsumerRef, ProxyPullConsumerSkeleton, ProxyPullSupplierRef,
    ProxyPushConsumerRef, ProxyPushSupplierRef, ProxyPushSupplierSkeleton, SupplierAdmin,
};
use crate::cos_typed_event_channel_admin::{
    InterfaceNotSupported, NoSuchImplementation, TypedConsumerAdmin,
    TypedConsumerAdminObtainTypedPullSupplierError, TypedConsumerAdminObtainTypedPushSupplierError,
    TypedProxyPullSupplierRef, TypedProxyPullSupplierSkeleton, TypedProxyPushConsumerRef,
    TypedProxyPushConsumerSkeleton, TypedSupplierAdmin,
    TypedSupplierAdminObtainTypedPullConsumerError, TypedSupplierAdminObtainTypedPushConsumerError,
};

impl Typed {
    /// Activates a proxy and the object of its interface. Both are retired together.
    fn offer_pair(
        &self,
        number: u64,
        object: Arc<dyn Servant>,
        proxy: impl FnOnce(ObjectRef) -> Arc<dyn Servant>,
    ) -> Result<ObjectRef, SystemException> {
        self.shared.check_alive()?;
        let object = self.shared.objects.activate(number, object)?;
        let offered = self.shared.offer_proxy(number, proxy(object));
        offered.inspect_err(|_| self.shared.objects.retire(number))
    }
}

/// `TypedConsumerAdmin`: creates the proxies that consumers connect to.
pub(super) struct TypedConsumerSide {
    typed: Arc<Typed>,
    untyped: Consumers,
}

impl TypedConsumerSide {
    pub(super) fn new(typed: Arc<Typed>) -> Self {
        let untyped = Consumers(typed.shared.clone());
        Self { typed, untyped }
    }
}

impl ConsumerAdmin for TypedConsumerSide {
    fn obtain_push_supplier(&self) -> Result<Option<ProxyPushSupplierRef>, SystemException> {
        self.untyped.obtain_push_supplier()
    }

    fn obtain_pull_supplier(&self) -> Result<Option<ProxyPullSupplierRef>, SystemException> {
        self.untyped.obtain_pull_supplier()
    }
}

impl TypedConsumerAdmin for TypedConsumerSide {
    fn obtain_typed_pull_supplier(
        &self,
        supported_interface: &str,
    ) -> Result<Option<TypedProxyPullSupplierRef>, TypedConsumerAdminObtainTypedPullSupplierError>
    {
        let interface = self.typed.find(supported_interface);
        let interface = interface.ok_or(InterfaceNotSupported {})?;
        let number = self.typed.shared.objects.home.next_number();
        let object = PullObject::new(self.typed.clone(), interface);
        let state = object.state();
        let reference = self.typed.offer_pair(number, Arc::new(object), |object| {
            let typed = self.typed.clone();
            let proxy = TypedPullSupplierProxy::new(typed, number, interface, state, object);
            Arc::new(TypedProxyPullSupplierSkeleton::new(proxy))
        })?;
        Ok(Some(TypedProxyPullSupplierRef::unchecked_narrow(reference)))
    }

    fn obtain_typed_push_supplier(
        &self,
        uses_interface: &str,
    ) -> Result<Option<ProxyPushSupplierRef>, TypedConsumerAdminObtainTypedPushSupplierError> {
        let interface = self.typed.find(uses_interface);
        let interface = interface.ok_or(NoSuchImplementation {})?;
        let number = self.typed.shared.objects.home.next_number();
        let proxy = TypedPushSupplierProxy::new(self.typed.clone(), number, interface);
        let servant = Arc::new(ProxyPushSupplierSkeleton::new(proxy));
        let reference = self.typed.shared.offer_proxy(number, servant)?;
        Ok(Some(ProxyPushSupplierRef::unchecked_narrow(reference)))
    }
}

/// `TypedSupplierAdmin`: creates the proxies that suppliers connect to.
pub(super) struct TypedSupplierSide {
    typed: Arc<Typed>,
    untyped: Suppliers,
}

impl TypedSupplierSide {
    pub(super) fn new(typed: Arc<Typed>) -> Self {
        let untyped = Suppliers(typed.shared.clone());
        Self { typed, untyped }
    }
}

impl SupplierAdmin for TypedSupplierSide {
    fn obtain_push_consumer(&self) -> Result<Option<ProxyPushConsumerRef>, SystemException> {
        self.untyped.obtain_push_consumer()
    }

    fn obtain_pull_consumer(&self) -> Result<Option<ProxyPullConsumerRef>, SystemException> {
        self.untyped.obtain_pull_consumer()
    }
}

impl TypedSupplierAdmin for TypedSupplierSide {
    fn obtain_typed_push_consumer(
        &self,
        supported_interface: &str,
    ) -> Result<Option<TypedProxyPushConsumerRef>, TypedSupplierAdminObtainTypedPushConsumerError>
    {
        let interface = self.typed.find(supported_interface);
        let interface = interface.ok_or(InterfaceNotSupported {})?;
        let number = self.typed.shared.objects.home.next_number();
        let object = PushObject::new(self.typed.clone(), interface);
        let state = object.state();
        let reference = self.typed.offer_pair(number, Arc::new(object), |object| {
            let shared = self.typed.shared.clone();
            let proxy = TypedPushConsumerProxy::new(shared, number, state, object);
            Arc::new(TypedProxyPushConsumerSkeleton::new(proxy))
        })?;
        Ok(Some(TypedProxyPushConsumerRef::unchecked_narrow(reference)))
    }

    fn obtain_typed_pull_consumer(
        &self,
        uses_interface: &str,
    ) -> Result<Option<ProxyPullConsumerRef>, TypedSupplierAdminObtainTypedPullConsumerError> {
        let interface = self.typed.find(uses_interface);
        let interface = interface.ok_or(NoSuchImplementation {})?;
        let number = self.typed.shared.objects.home.next_number();
        let typed = Arc::downgrade(&self.typed);
        let ask = move |supplier: &_| typed_supplier(&typed, interface, supplier);
        let shared = self.typed.shared.clone();
        let proxy = PullConsumerProxy::asking(shared, number, Box::new(ask));
        let servant = Arc::new(ProxyPullConsumerSkeleton::new(proxy));
        let reference = self.typed.shared.offer_proxy(number, servant)?;
        Ok(Some(ProxyPullConsumerRef::unchecked_narrow(reference)))
    }
}
