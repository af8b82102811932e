//! Servant locator: objects that have a servant only during a call.
//!
//! A logbook has a page for each day of the year. A reference to a page costs no servant. The locator makes the servant
//! from the object id when the page is read, as a real one would from a row of a database.
//!
//! ```text
//! day 1: moored
//! day 200: at sea
//! day 366: OBJECT_NOT_EXIST
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use deckwatch_examples::Outcome;
use deckwatch_orb::{
    Completion, Cookie, IdAssignment, ObjectRef, Orb, Poa, PoaError, Policies, RequestProcessing,
    Servant, ServantLocator, ServantManager, ServantManagerError, ServantRetention,
    SystemException, SystemExceptionKind,
};
use logbook::example::{Logbook, LogbookRef, LogbookSkeleton, Page, PageRef, PageSkeleton};

mod logbook {
    include!(concat!(env!("OUT_DIR"), "/logbook.rs"));
}

/// The servant of one page, for one request.
struct Day(u16);

impl Page for Day {
    fn text(&self) -> Result<Cow<'_, str>, SystemException> {
        Ok(Cow::Borrowed(if (100..300).contains(&self.0) {
            "at sea"
        } else {
            "moored"
        }))
    }
}

struct Pages;

impl ServantLocator for Pages {
    fn preinvoke(
        &self,
        object_id: &[u8],
        _adapter: &Poa,
        _operation: &str,
        _cookie: &mut Cookie,
    ) -> Result<Arc<dyn Servant>, ServantManagerError> {
        let day = object_id.try_into().map(u16::from_be_bytes).unwrap_or(0);
        if !(1..=365).contains(&day) {
            let gone = SystemExceptionKind::ObjectNotExist;
            return Err(SystemException::new(gone, 0, Completion::No).into());
        }
        Ok(Arc::new(PageSkeleton::new(Day(day))))
    }

    fn postinvoke(
        &self,
        _object_id: &[u8],
        _adapter: &Poa,
        _operation: &str,
        _cookie: Cookie,
        _servant: Arc<dyn Servant>,
    ) -> Result<(), SystemException> {
        // A locator with a database writes changes back here. This is the last handle of the servant.
        Ok(())
    }
}

struct Year {
    pages: Poa,
}

impl Logbook for Year {
    fn page_of(&self, day: u16) -> Result<Option<PageRef>, SystemException> {
        let page = self
            .pages
            .create_reference_with_id(&day.to_be_bytes(), PageRef::REPOSITORY_ID)
            .map_err(internal)?;
        Ok(Some(PageRef::unchecked_narrow(page)))
    }
}

/// Converts an error of the adapter into the exception for the servant's caller.
fn internal(_error: PoaError) -> SystemException {
    SystemException::new(SystemExceptionKind::Internal, 0, Completion::No)
}

fn serve(orb: &Orb) -> Outcome<ObjectRef> {
    let root = orb.root_poa()?;
    let manager = root.the_poa_manager();
    manager.activate()?;
    let on_demand = Policies {
        id_assignment: IdAssignment::UserId,
        servant_retention: ServantRetention::NonRetain,
        request_processing: RequestProcessing::UseServantManager,
        ..Policies::default()
    };
    let pages = root.create_poa("pages", Some(manager), &on_demand)?;
    pages.set_servant_manager(ServantManager::Locator(Arc::new(Pages)))?;
    let servant: Arc<dyn Servant> = Arc::new(LogbookSkeleton::new(Year { pages }));
    Ok(root.servant_to_reference(&servant)?)
}

fn call(_orb: &Orb, object: &ObjectRef) -> Outcome {
    let logbook = LogbookRef::narrow(object)?.ok_or("it is no Example::Logbook")?;
    for day in [1, 200, 366] {
        let page = logbook.page_of(day)?.ok_or("nil")?;
        match page.text() {
            Ok(text) => println!("day {day}: {text}"),
            Err(exception) => println!("day {day}: {}", exception.kind.name()),
        }
    }
    Ok(())
}

fn main() -> Outcome {
    deckwatch_examples::run(serve, call)
}
