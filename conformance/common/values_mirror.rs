//! `Deckwatch::Values::Mirror`: a servant that returns the values that it gets, and the users' parts of the valuetypes.

use std::borrow::Cow;
use std::sync::Arc;

use deckwatch_cdr::valuetype::{CustomMarshal, ValueBase};
use deckwatch_cdr::{Any, DecodeError, EncodeError, Parse, Reader, Write, Writer};
use deckwatch_orb::Result as Served;

mod idl {
    include!(concat!(env!("OUT_DIR"), "/values.rs"));
}
pub(crate) use idl::deckwatch::values::*;

pub(crate) struct Reflecting;

type Point_ = Option<Arc<dyn PointValue>>;

impl Mirror for Reflecting {
    fn echo_point(&self, value: Option<&Arc<dyn PointValue>>) -> Served<Point_> {
        Ok(value.cloned())
    }

    fn echo_list(&self, value: Option<&Arc<dyn NodeValue>>) -> Served<Option<Arc<dyn NodeValue>>> {
        Ok(value.cloned())
    }

    fn same(
        &self,
        one: Option<&Arc<dyn PointValue>>,
        other: Option<&Arc<dyn PointValue>>,
    ) -> Served<(bool, Point_, Point_)> {
        let is_same = one
            .zip(other)
            .is_some_and(|(one, other)| Arc::ptr_eq(one, other));
        Ok((is_same, one.cloned(), one.cloned()))
    }

    fn echo_pair(&self, value: &Pair) -> Served<Pair> {
        Ok(value.clone())
    }

    fn echo_points<'a>(&'a self, value: &'a [Point_]) -> Served<Cow<'a, [Point_]>> {
        Ok(value.into())
    }

    fn echo_choice(&self, value: &Choice) -> Served<Choice> {
        Ok(value.clone())
    }

    fn echo_base(&self, value: Option<&Arc<dyn ValueBase>>) -> Served<Option<Arc<dyn ValueBase>>> {
        Ok(value.cloned())
    }

    fn echo_shape(
        &self,
        value: Option<&Arc<dyn ShapeValue>>,
    ) -> Served<Option<Arc<dyn ShapeValue>>> {
        Ok(value.cloned())
    }

    fn echo_account(
        &self,
        value: Option<&Arc<dyn AccountValue>>,
    ) -> Served<Option<Arc<dyn AccountValue>>> {
        let Some(account) = value else {
            return Ok(None);
        };
        let balance = account.credit(1)?;
        Ok(Some(Arc::new(Account { balance })))
    }

    fn echo_names(&self, value: Option<&Arc<Names>>) -> Served<Option<Arc<Names>>> {
        Ok(value.cloned())
    }

    fn echo_label(&self, value: Option<&Arc<Label>>) -> Served<Option<Arc<Label>>> {
        Ok(value.cloned())
    }

    fn echo_stamp(
        &self,
        value: Option<&Arc<dyn StampValue>>,
    ) -> Served<Option<Arc<dyn StampValue>>> {
        Ok(value.cloned())
    }

    fn anything(&self, value: &Any) -> Served<Any> {
        Ok(value.clone())
    }

    fn lose(&self, last: Option<&Arc<dyn PointValue>>) -> Result<(), MirrorLoseError> {
        let (last, before) = (last.cloned(), last.cloned());
        Err(Lost { last, before }.into())
    }

    fn change(&self, value: Option<&Arc<dyn PlaceValue>>) -> Served<Option<Arc<dyn PlaceValue>>> {
        Ok(value.map(|place| -> Arc<dyn PlaceValue> {
            let mut changed = place.as_place().clone();
            changed.x += 1;
            changed.name.push('!');
            Arc::new(changed)
        }))
    }
}

impl ShapeOperations for Circle {
    fn area(&self) -> Served<f64> {
        Ok(self.radius * self.radius * std::f64::consts::PI)
    }
}

impl CircleInit for Circle {
    fn unit() -> Served<Self> {
        Ok(Self { radius: 1.0 })
    }
}

impl AccountOperations for Account {
    fn total(&self) -> Served<i32> {
        Ok(self.balance)
    }

    fn credit(&self, amount: i32) -> Served<i32> {
        Ok(self.balance + amount)
    }
}

impl AccountInit for Account {
    fn open(balance: i32) -> Served<Self> {
        Ok(Self { balance })
    }
}

/// The zone first, then hundredths of a second.
impl CustomMarshal for Stamp {
    fn marshal(&self, output: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.zone.write(output)?;
        ((self.seconds * 100.0) as i64).write(output)
    }

    fn unmarshal(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let zone = String::parse(input)?;
        let seconds = i64::parse(input)? as f64 / 100.0;
        Ok(Self { seconds, zone })
    }
}

pub(crate) fn point(x: i32, y: i32) -> Arc<dyn PointValue> {
    Arc::new(Point { x, y })
}

pub(crate) fn place(x: i32, name: &str, next: Option<Arc<dyn PlaceValue>>) -> Place {
    Place {
        base: Point { x, y: -x },
        name: name.to_owned(),
        next,
    }
}
