//! Shared memory between processes of one host, as a transport.

use std::path::Path;
use std::time::Duration;

use deckwatch_os::shared::{self, SharedListener, SharedStream};
use deckwatch_os::stream::is_readable_now;
use deckwatch_os::unix;

use super::socket::{as_its_own, fact, fact_of_path, local, taken};
use super::{Endpoint, Instant64, Listener, Source, Stream, TransportError};
use crate::Caller;
use crate::limits::LISTEN_BACKLOG;

pub(super) fn connect(
    path: &str,
    deadline: Option<Instant64>,
) -> Result<Box<dyn Stream>, TransportError> {
    let connected = shared::connect(Path::new(path), deadline.map(|at| at.0));
    let stream = connected.map_err(|error| fact(&error))?;
    Ok(Box::new(stream))
}

pub(super) fn listen(
    path: &str,
    permissions: Option<u32>,
) -> Result<Box<dyn Listener>, TransportError> {
    let listener = SharedListener::listen(Path::new(path), LISTEN_BACKLOG, permissions);
    let listener = listener.map_err(|error| fact_of_path(&error))?;
    Ok(Box::new(listener))
}

impl Stream for SharedStream {
    as_its_own!();

    fn read_within(
        &self,
        into: &mut [u8],
        wait: Duration,
    ) -> Result<Option<usize>, TransportError> {
        Self::read_within(self, into, wait).map_err(|error| fact(&error))
    }

    fn peer(&self) -> String {
        "shared memory".to_owned()
    }

    fn caller(&self) -> Caller {
        local(self, Caller::SharedMemory)
    }

    fn source(&self) -> Source<'_> {
        Source::SharedMemory(self)
    }
}

impl Listener for SharedListener {
    fn accept(&self) -> Result<Option<Box<dyn Stream>>, TransportError> {
        taken(Self::accept(self))
    }

    fn is_pending(&self) -> bool {
        is_readable_now(self)
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::SharedMemory {
            host: unix::host_name(),
            path: self.path().to_string_lossy().into_owned(),
        }
    }

    fn source(&self) -> Source<'_> {
        Source::Descriptor(std::os::fd::AsFd::as_fd(self))
    }
}
