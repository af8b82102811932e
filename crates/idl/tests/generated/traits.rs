//! Interfaces for which only a trait is generated: abstract ones, as bases, and local ones, within one program.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::idl::broad::filter::Spent;
use crate::idl::broad::*;
use crate::orb::{ObjectRef, Servant, ServerRequest, SystemException};

struct Lamp;

/// A servant that replies with the number of octets of its arguments.
struct Scale;

impl Servant for Scale {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let size = request.arguments().remaining() as u32;
        request.reply_with(|w| w.write_u32(size))
    }
}

/// CORBA 3.3 part 2, clause 9.4.2.2: where the operation has a context clause, a sequence of strings follows the
/// arguments.
#[test]
fn a_context_is_sent_where_the_operation_has_one() {
    let beacon = BeaconRef::unchecked_narrow(ObjectRef::to(Arc::new(Scale)));
    assert_eq!(beacon.metres().unwrap(), 4);
}

impl Described for Lamp {
    fn describe<'a>(&'a self, language: &'a str) -> Result<Cow<'a, str>, DescribedDescribeError> {
        match language {
            "en" => Ok("a lamp".into()),
            _ => Err(Refused {
                reason: language.to_owned(),
                shade: Colour::Red,
            }
            .into()),
        }
    }
}

impl Beacon for Lamp {
    fn metres(&self) -> Result<i32, SystemException> {
        Ok(40)
    }

    fn greeting<'a>(&'a self, name: &'a str) -> Result<Cow<'a, str>, SystemException> {
        Ok(name.into())
    }
}

#[test]
fn an_interface_with_an_abstract_base_has_its_operations() {
    let beacon = BeaconRef::unchecked_narrow(ObjectRef::to(Arc::new(BeaconSkeleton::new(Lamp))));
    assert_eq!(beacon.metres().unwrap(), 40);
    assert_eq!(beacon.greeting("ship").unwrap(), "ship");
    assert_eq!(beacon.describe("en").unwrap(), "a lamp");
    assert!(matches!(
        beacon.describe("la"),
        Err(DescribedDescribeError::Refused(_))
    ));
}

/// A filter that passes the first calls, as many as its count.
struct First(AtomicI32);

impl Filter for First {
    fn passed(&self) -> Result<i32, SystemException> {
        Ok(self.0.load(Ordering::Relaxed))
    }

    fn set_passed(&self, value: i32) -> Result<(), SystemException> {
        self.0.store(value, Ordering::Relaxed);
        Ok(())
    }

    fn keep(&self, _name: &str) -> Result<bool, FilterKeepError> {
        if self.0.fetch_sub(1, Ordering::Relaxed) > 0 {
            Ok(true)
        } else {
            Err(Spent {}.into())
        }
    }

    fn both(
        &self,
        other: Option<&Arc<dyn Filter>>,
    ) -> Result<Option<Arc<dyn Filter>>, SystemException> {
        Ok(other.cloned())
    }
}

#[test]
fn a_local_interface_is_a_trait_whose_objects_are_passed_as_they_are() {
    let filter: Arc<dyn Filter> = Arc::new(First(AtomicI32::new(0)));
    let same = filter.both(Some(&filter)).unwrap().unwrap();
    same.set_passed(1).unwrap();
    assert_eq!(filter.keep("a"), Ok(true));
    assert!(matches!(same.keep("b"), Err(FilterKeepError::Spent(_))));
}
