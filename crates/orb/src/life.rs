//! The ORB's life-cycle operations: run, work by hand, shutdown, destroy (CORBA 3.3 part 1, clause 8.2.4).

use std::sync::Arc;
use std::time::Duration;

use crate::lane::Lane;
use crate::life_state::Life;
use crate::limits::DRAIN_TIMEOUT;
use crate::orb::{Orb, OrbCore};
use crate::raise;
use crate::transport::Transport;
use crate::{Completion, SystemException, minor};

impl Orb {
    /// Serves until the ORB has been shut down. The ORB's threads serve the requests; the first thread to call this
    /// serves those of adapters with [`crate::ThreadPolicy::MainThreadModel`].
    ///
    /// # Errors
    /// BAD_INV_ORDER with minor code 4 if the ORB is already shut down.
    pub fn run(&self) -> Result<(), SystemException> {
        self.0.calls.require_life()?;
        let main = &self.0.adapter.main;
        main.claim();
        main.perform_while(|| matches!(self.0.calls.life.get(), Life::Lives | Life::Drains));
        Ok(())
    }

    /// Returns whether [`Orb::perform_work`] has work to do: a request of an adapter with
    /// [`crate::ThreadPolicy::MainThreadModel`], or any work if the ORB is [`crate::OrbBuilder::turned_by_hand`]. The
    /// ORB's threads do all other work.
    ///
    /// # Errors
    /// BAD_INV_ORDER with minor code 4 after a shutdown.
    pub fn work_pending(&self) -> Result<bool, SystemException> {
        self.0.calls.require_life()?;
        let main = &self.0.adapter.main;
        main.claim();
        let has_replies = || {
            let replies = self.0.calls.client.replies_made();
            replies.is_some_and(|replies| replies.is_pending(&self.0.calls.client))
        };
        let has_requests = || self.0.pools.find_lane(|lane| lane.is_pending()).is_some();
        Ok(main.is_pending() || has_replies() || has_requests())
    }

    /// Processes one pending event, if there is any.
    ///
    /// # Errors
    /// As [`Orb::work_pending`].
    pub fn perform_work(&self) -> Result<(), SystemException> {
        if self.work_pending()? && !self.0.adapter.main.perform() {
            self.turn(Some(Duration::ZERO));
        }
        Ok(())
    }

    /// Shuts the ORB down:
    /// - it accepts no new request;
    /// - requests in progress finish, within [`crate::limits::DRAIN_TIMEOUT`];
    /// - it sends CloseConnection on every connection and closes it;
    /// - it releases the servants;
    /// - [`Orb::run`] returns.
    ///
    /// With `wait_for_completion` this call returns when all this is done, otherwise at once.
    ///
    /// # Errors
    /// BAD_INV_ORDER with minor code 3 if a servant of this ORB would wait for its own end, with minor code 4 if the
    /// ORB is already shut down.
    pub fn shutdown(&self, wait_for_completion: bool) -> Result<(), SystemException> {
        self.0.calls.require_life()?;
        if wait_for_completion {
            self.0.check_not_serving()?;
            self.0.shutdown();
            return Ok(());
        }
        let core = Arc::clone(&self.0);
        let drain = std::thread::Builder::new().name("orb-shutdown".to_owned());
        drain
            .spawn(move || core.shutdown())
            .map(drop)
            .map_err(|_| raise::no_resources(0, Completion::No))
    }

    /// Shuts the ORB down, unless that has been done. The ORB cannot be used afterwards.
    ///
    /// # Errors
    /// BAD_INV_ORDER with minor code 3 if a servant of this ORB calls it, OBJECT_NOT_EXIST if the ORB is already
    /// destroyed.
    pub fn destroy(&self) -> Result<(), SystemException> {
        if self.0.calls.life.get() == Life::Destroyed {
            return self.0.calls.require_life();
        }
        self.0.check_not_serving()?;
        self.0.shutdown();
        self.0.advance(Life::Destroyed);
        Ok(())
    }
}

impl OrbCore {
    fn lanes(&self) -> Vec<Arc<Lane>> {
        let pools = self.pools.all_made();
        let lanes = pools.iter().flat_map(|pool| pool.lanes.iter());
        lanes.map(|at| Arc::clone(&at.lane)).collect()
    }

    /// Shuts every lane down.
    pub(crate) fn shut_lanes(&self) {
        shut(&self.lanes(), self.calls.client.transport.as_ref());
    }

    fn check_not_serving(&self) -> Result<(), SystemException> {
        if self.lane_served_here().is_some() {
            return Err(raise::bad_inv_order(minor::WOULD_DEADLOCK, Completion::No));
        }
        Ok(())
    }

    /// Drains the ORB, or waits until another thread has done so.
    fn shutdown(&self) {
        if self.calls.life.begin_drain() {
            self.release();
            self.advance(Life::Ended);
        }
    }

    fn advance(&self, to: Life) {
        self.calls.life.advance(to);
        self.adapter.main.tell();
    }
}

/// Closes every entrance before it drains any lane: no lane accepts a request while another drains.
fn shut(lanes: &[Arc<Lane>], transport: &dyn Transport) {
    let open: Vec<_> = lanes.iter().filter(|lane| lane.close_entrance()).collect();
    let deadline = transport.now().after(DRAIN_TIMEOUT);
    open.iter().for_each(|lane| lane.drain(deadline));
}

impl Drop for OrbCore {
    fn drop(&mut self) {
        if self.lane_served_here().is_none() {
            return self.shutdown();
        }
        // A servant dropped the last handle. The drain waits for this servant's request, so that it needs a thread of
        // its own.
        let drain = std::thread::Builder::new().name("orb-shutdown".to_owned());
        let lanes = self.lanes();
        let transport = Arc::clone(&self.calls.client.transport);
        let _ = drain.spawn(move || shut(&lanes, transport.as_ref())); // It runs on by itself.
    }
}
