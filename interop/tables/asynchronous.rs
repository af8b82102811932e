//! Asynchronous calls of the operations of `Types`, many at a time.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deckwatch_orb::{ExceptionHolder, SystemException};

use super::*;

/// Concurrent requests.
const MANY: i32 = 30;

/// Time limit for the last reply, long enough for a loaded machine.
const PATIENCE_MS: u32 = 60_000;

/// A handler that sends its outcomes to a channel.
struct Ear(Mutex<Sender<Result<i32, BaseHalfError>>>);

impl Ear {
    fn pass_on(&self, told: Result<i32, BaseHalfError>) -> Result<(), SystemException> {
        let _ = self.0.lock().expect("nobody panics with it").send(told); // The test may be over.
        Ok(())
    }
}

impl AMIBaseHandler for Ear {
    fn get_label(&self, _ami_return_val: &str) -> Result<(), SystemException> {
        Ok(())
    }

    fn get_label_excep(&self, _excep_holder: &ExceptionHolder) -> Result<(), SystemException> {
        Ok(())
    }

    fn half(&self, ami_return_val: i32) -> Result<(), SystemException> {
        self.pass_on(Ok(ami_return_val))
    }

    fn half_excep(&self, excep_holder: &ExceptionHolder) -> Result<(), SystemException> {
        self.pass_on(Err(excep_holder.raise_half()))
    }
}

/// Whether pollers, read in another order than the calls were made, return the results of synchronous calls.
pub(super) fn polled(types: &TypesRef) -> Result<bool, SystemException> {
    let mut pollers = Vec::new();
    for number in 0..MANY {
        pollers.push(types.sendp_half(2 * number)?);
    }
    let data = vec![7; 100_001];
    let mirror = types.sendp_mirror_octets(&data)?;
    let refused = types.sendp_half(3)?.half(PATIENCE_MS);
    let is_refused = matches!(&refused, Err(BaseHalfError::Refused(refused)) if same(refused, &values::refused()));
    let halves = (0..MANY).zip(&pollers).rev();
    let mut halves = halves.map(|(half, poller)| poller.half(PATIENCE_MS) == Ok(half));
    Ok(halves.all(|is_right| is_right) && mirror.mirror_octets(PATIENCE_MS)? == data && is_refused)
}

/// Whether handlers get the results of synchronous calls.
pub(super) fn handled(types: &TypesRef) -> Result<bool, SystemException> {
    let (told, heard) = channel();
    let ear: Arc<Ear> = Arc::new(Ear(Mutex::new(told)));
    for number in 0..MANY {
        types.sendc_half(Some(ear.clone()), number)?;
    }
    let mut halves = Vec::new();
    for _ in 0..MANY {
        match heard.recv_timeout(Duration::from_millis(PATIENCE_MS.into())) {
            Ok(Ok(half)) => halves.push(half),
            Ok(Err(BaseHalfError::Refused(refused))) if same(&refused, &values::refused()) => {}
            _ => return Ok(false),
        }
    }
    halves.sort_unstable();
    Ok(halves == (0..MANY / 2).collect::<Vec<_>>())
}
