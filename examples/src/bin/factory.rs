//! Factory: an object that makes other objects. Each of these can remove itself.
//!
//! ```text
//! north reads 21.5
//! south reads 22.5
//! 2 sensors
//! 1 sensor after one was removed
//! north is gone: OBJECT_NOT_EXIST
//! ```

use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use deckwatch_examples::Outcome;
use deckwatch_orb::{
    ObjectId, ObjectRef, Orb, Poa, PoaError, Servant, SystemException, SystemExceptionKind,
};
use factory::example::{
    Sensor, SensorFactory, SensorFactoryRef, SensorFactorySkeleton, SensorRef, SensorSkeleton,
};

mod factory {
    include!(concat!(env!("OUT_DIR"), "/factory.rs"));
}

/// The state that factory and sensors share.
struct Shop {
    poa: Poa,
    count: AtomicU32,
}

struct Thermometer {
    shop: Arc<Shop>,
    name: String,
    reading: f64,
    /// The id under which it was activated.
    id: OnceLock<ObjectId>,
}

impl Sensor for Thermometer {
    fn name(&self) -> Result<Cow<'_, str>, SystemException> {
        Ok(Cow::Borrowed(&self.name))
    }

    fn read(&self) -> Result<f64, SystemException> {
        Ok(self.reading)
    }

    fn remove(&self) -> Result<(), SystemException> {
        // Later calls do not find the object; this one still completes.
        if let Some(id) = self.id.get() {
            self.shop.poa.deactivate_object(id).map_err(internal)?;
            self.shop.count.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

struct ThermometerFactory {
    shop: Arc<Shop>,
}

impl SensorFactory for ThermometerFactory {
    fn create(&self, name: &str) -> Result<Option<SensorRef>, SystemException> {
        let number = self.shop.count.fetch_add(1, Ordering::Relaxed);
        let sensor = Arc::new(Thermometer {
            shop: Arc::clone(&self.shop),
            name: name.to_owned(),
            reading: 21.5 + f64::from(number),
            id: OnceLock::new(),
        });
        // The trait is implemented for `Arc` too, so that the factory can keep a handle on its servant.
        let servant: Arc<dyn Servant> = Arc::new(SensorSkeleton::new(Arc::clone(&sensor)));
        let id = self.shop.poa.activate_object(servant).map_err(internal)?;
        let reference = self.shop.poa.id_to_reference(&id).map_err(internal)?;
        let _first = sensor.id.set(id);
        Ok(Some(SensorRef::unchecked_narrow(reference)))
    }

    fn count(&self) -> Result<u32, SystemException> {
        Ok(self.shop.count.load(Ordering::Relaxed))
    }
}

/// Converts an error of the adapter into the exception for the servant's caller.
fn internal(_error: PoaError) -> SystemException {
    SystemException::new(
        SystemExceptionKind::Internal,
        0,
        deckwatch_orb::Completion::Maybe,
    )
}

fn serve(orb: &Orb) -> Outcome<ObjectRef> {
    let root = orb.root_poa()?;
    root.the_poa_manager().activate()?;
    let shop = Arc::new(Shop {
        poa: root.clone(),
        count: AtomicU32::new(0),
    });
    let servant: Arc<dyn Servant> =
        Arc::new(SensorFactorySkeleton::new(ThermometerFactory { shop }));
    Ok(root.servant_to_reference(&servant)?)
}

fn call(_orb: &Orb, object: &ObjectRef) -> Outcome {
    let factory = SensorFactoryRef::narrow(object)?.ok_or("it is no Example::SensorFactory")?;
    let north = factory.create("north")?.ok_or("nil")?;
    let south = factory.create("south")?.ok_or("nil")?;
    for sensor in [&north, &south] {
        println!("{} reads {}", sensor.name()?, sensor.read()?);
    }
    println!("{} sensors", factory.count()?);
    north.remove()?;
    println!("{} sensor after one was removed", factory.count()?);
    if let Err(exception) = north.read() {
        println!("north is gone: {}", exception.kind.name());
    }
    Ok(())
}

fn main() -> Outcome {
    deckwatch_examples::run(serve, call)
}
