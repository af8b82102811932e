//! IDL modules that two files open are one Rust module each.

/// The generated code.
#[rustfmt::skip]
mod idl {
    include!("opened.inc");
    include!("again.inc");
}

use std::sync::Arc;

use crate::{ObjectRef, SystemException};
use idl::opened::inner::{self, Spans, Stamps};
use idl::opened::{Clock, ClockRef, ClockSkeleton, LaterRef, Span, Stamp, Ticker, TickerRef};

struct Wall;

impl Ticker for Wall {
    fn tick(&self, others: &[Option<ClockRef>]) -> Result<Stamp, SystemException> {
        let ns = others.len() as u64;
        Ok(Stamp { ns })
    }
}

impl Clock for Wall {
    fn since(
        &self,
        start: &Stamp,
        other: Option<&TickerRef>,
        next: Option<&LaterRef>,
    ) -> Result<Span, SystemException> {
        assert!(next.is_none());
        let to = other.expect("a ticker is passed").tick(&[None, None])?;
        Ok(Span { from: *start, to })
    }
}

#[test]
fn modules_of_two_files_are_one_module_with_the_definitions_of_both() {
    let clock = ObjectRef::to(Arc::new(ClockSkeleton::new(Wall)));
    let clock = ClockRef::unchecked_narrow(clock);
    let ticker: TickerRef = clock.clone().into();
    let (from, to) = (Stamp { ns: 7 }, Stamp { ns: 2 });
    let span = clock.since(&from, Some(&ticker), None).unwrap();
    assert_eq!(span, Span { from, to });
    let stamps: Stamps = vec![from, to];
    let vec: idl::other::Vec = inner::Vec { all: stamps };
    let spans: Spans = vec![span];
    assert_eq!(vec.all, [spans[0].from, spans[0].to]);
}
