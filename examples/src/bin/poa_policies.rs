//! POA policies: what each policy of an object adapter changes. Client and server are two ORBs of one process.
//!
//! ```text
//! LifespanPolicy TRANSIENT: the reference ends with its server: OBJECT_NOT_EXIST
//! LifespanPolicy PERSISTENT: the next server on that port answers: 1
//! IdAssignmentPolicy USER_ID: the id is the application's: port
//! IdUniquenessPolicy MULTIPLE_ID: one servant is two objects: port 1, starboard 2
//! IdUniquenessPolicy UNIQUE_ID: a second activation of a servant: ServantAlreadyActive
//! ImplicitActivationPolicy NO_IMPLICIT_ACTIVATION: a reference to an idle servant: ServantNotActive
//! RequestProcessingPolicy USE_DEFAULT_SERVANT: one servant for any id: bilge, galley
//! ServantRetentionPolicy NON_RETAIN: nothing can be activated: WrongPolicy
//! ThreadPolicy SINGLE_THREAD_MODEL: of 4 callers, in the servant at a time: 1
//! ```

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use counter::example::{Counter, CounterRef, CounterSkeleton};
use deckwatch_examples::Outcome;
use deckwatch_orb::{
    Completion, IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, ObjectRef, Orb, Poa,
    Policies, RequestProcessing, Servant, ServantRetention, SystemException, SystemExceptionKind,
    ThreadPolicy,
};

mod counter {
    include!(concat!(env!("OUT_DIR"), "/counter.rs"));
}

struct Clicker {
    orb: Orb,
    count: AtomicU32,
    inside: AtomicU32,
    inside_max: AtomicU32,
}

impl Counter for Clicker {
    fn next(&self) -> Result<u32, SystemException> {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.inside_max.fetch_max(inside, Ordering::SeqCst);
        std::thread::yield_now();
        self.inside.fetch_sub(1, Ordering::SeqCst);
        Ok(self.count.fetch_add(1, Ordering::SeqCst) + 1)
    }

    fn id(&self) -> Result<Cow<'_, str>, SystemException> {
        // POACurrent has the object id of the request that a servant serves.
        let unknown = SystemException::new(SystemExceptionKind::Internal, 0, Completion::Yes);
        let id = self.orb.poa_current().object_id().map_err(|_| unknown)?;
        Ok(Cow::Owned(String::from_utf8_lossy(&id).into_owned()))
    }
}

/// A server at this port (0: any) with one adapter of these policies below its root.
fn server(port: u16, policies: &Policies) -> Outcome<(Orb, Poa)> {
    let orb = Orb::builder()
        .listen(&format!("127.0.0.1:{port}"))?
        .build()?;
    let root = orb.root_poa()?;
    let manager = root.the_poa_manager();
    manager.activate()?;
    let poa = root.create_poa("counters", Some(manager), policies)?;
    Ok((orb, poa))
}

fn clicker(orb: &Orb) -> (Arc<Clicker>, Arc<dyn Servant>) {
    let clicker = Arc::new(Clicker {
        orb: orb.clone(),
        count: AtomicU32::new(0),
        inside: AtomicU32::new(0),
        inside_max: AtomicU32::new(0),
    });
    let servant = Arc::new(CounterSkeleton::new(Arc::clone(&clicker)));
    (clicker, servant)
}

/// The object as a client in another process has it: read from its text.
fn reached(client: &Orb, server: &Orb, object: &ObjectRef) -> Outcome<CounterRef> {
    let object = client.string_to_object(&server.object_to_string(object))?;
    Ok(CounterRef::unchecked_narrow(object.ok_or("nil")?))
}

/// Calls a reference of one server after the next server has replaced it.
fn lifespan(client: &Orb, lifespan: Lifespan) -> Outcome<Result<u32, SystemException>> {
    let policies = Policies {
        lifespan,
        id_assignment: IdAssignment::UserId,
        ..Policies::default()
    };
    let (first, poa) = server(0, &policies)?;
    poa.activate_object_with_id(b"port", clicker(&first).1)?;
    let counter = reached(client, &first, &poa.id_to_reference(b"port")?)?;
    let port = first.endpoints()[0].port().ok_or("no port")?;
    first.shutdown(true)?;

    let (second, poa) = server(port, &policies)?;
    poa.activate_object_with_id(b"port", clicker(&second).1)?;
    let answer = counter.next();
    second.shutdown(true)?;
    Ok(answer)
}

fn identity(client: &Orb) -> Outcome {
    let policies = Policies {
        id_assignment: IdAssignment::UserId,
        id_uniqueness: IdUniqueness::MultipleId,
        ..Policies::default()
    };
    let (orb, poa) = server(0, &policies)?;
    let (_, servant) = clicker(&orb);
    poa.activate_object_with_id(b"port", Arc::clone(&servant))?;
    poa.activate_object_with_id(b"starboard", servant)?;
    let port = reached(client, &orb, &poa.id_to_reference(b"port")?)?;
    let starboard = reached(client, &orb, &poa.id_to_reference(b"starboard")?)?;
    println!(
        "IdAssignmentPolicy USER_ID: the id is the application's: {}",
        port.id()?
    );
    println!(
        "IdUniquenessPolicy MULTIPLE_ID: one servant is two objects: port {}, starboard {}",
        port.next()?,
        starboard.next()?
    );

    let (orb, poa) = server(0, &Policies::default())?;
    let (_, servant) = clicker(&orb);
    poa.activate_object(Arc::clone(&servant))?;
    if let Err(error) = poa.activate_object(servant) {
        println!("IdUniquenessPolicy UNIQUE_ID: a second activation of a servant: {error:?}");
    }
    Ok(())
}

fn activation(client: &Orb) -> Outcome {
    let policies = Policies {
        implicit_activation: ImplicitActivation::NoImplicitActivation,
        ..Policies::default()
    };
    let (orb, poa) = server(0, &policies)?;
    if let Err(error) = poa.servant_to_reference(&clicker(&orb).1) {
        println!(
            "ImplicitActivationPolicy NO_IMPLICIT_ACTIVATION: a reference to an idle servant: {error:?}"
        );
    }

    let policies = Policies {
        id_assignment: IdAssignment::UserId,
        id_uniqueness: IdUniqueness::MultipleId,
        servant_retention: ServantRetention::NonRetain,
        request_processing: RequestProcessing::UseDefaultServant,
        ..Policies::default()
    };
    let (orb, poa) = server(0, &policies)?;
    poa.set_servant(clicker(&orb).1)?;
    let of = |id: &str| -> Outcome<String> {
        let object = poa.create_reference_with_id(id.as_bytes(), CounterRef::REPOSITORY_ID)?;
        Ok(reached(client, &orb, &object)?.id()?)
    };
    println!(
        "RequestProcessingPolicy USE_DEFAULT_SERVANT: one servant for any id: {}, {}",
        of("bilge")?,
        of("galley")?
    );
    if let Err(error) = poa.activate_object_with_id(b"bilge", clicker(&orb).1) {
        println!("ServantRetentionPolicy NON_RETAIN: nothing can be activated: {error:?}");
    }
    Ok(())
}

fn threads(client: &Orb) -> Outcome {
    let policies = Policies {
        thread: ThreadPolicy::SingleThreadModel,
        ..Policies::default()
    };
    let (orb, poa) = server(0, &policies)?;
    let (clicker, servant) = clicker(&orb);
    let id = poa.activate_object(servant)?;
    let counter = reached(client, &orb, &poa.id_to_reference(&id)?)?;
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..50).try_for_each(|_| counter.next().map(drop))))
            .collect();
        callers
            .into_iter()
            .try_for_each(|caller| caller.join().unwrap_or(Ok(())))
    })?;
    println!(
        "ThreadPolicy SINGLE_THREAD_MODEL: of 4 callers, in the servant at a time: {}",
        clicker.inside_max.load(Ordering::SeqCst)
    );
    Ok(())
}

fn main() -> Outcome {
    let client = Orb::builder().build()?;
    if let Err(exception) = lifespan(&client, Lifespan::Transient)? {
        let kind = exception.kind.name();
        println!("LifespanPolicy TRANSIENT: the reference ends with its server: {kind}");
    }
    let answer = lifespan(&client, Lifespan::Persistent)??;
    println!("LifespanPolicy PERSISTENT: the next server on that port answers: {answer}");
    identity(&client)?;
    activation(&client)?;
    threads(&client)
}
