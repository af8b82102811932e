//! Buffers of frames, used again, so that the relay does not ask the system for memory while it carries frames.

/// A bounded stock of buffers of one length.
#[derive(Debug)]
pub(super) struct Pool {
    frame_bytes: usize,
    free: Vec<Vec<u8>>,
}

impl Pool {
    /// Makes the stock and touches all of it.
    pub(super) fn new(frame_bytes: usize) -> Self {
        Self {
            frame_bytes,
            free: (0..POOL_FRAMES).map(|_| touched(frame_bytes)).collect(),
        }
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        let mut frame = self.free.pop().unwrap_or_default();
        frame.resize(self.frame_bytes, 0);
        frame
    }

    pub(super) fn put(&mut self, frame: Vec<u8>) {
        if self.free.len() < POOL_FRAMES {
            self.free.push(frame);
        }
    }
}

fn touched(frame_bytes: usize) -> Vec<u8> {
    // Not zero: the system gives zeros without memory behind them.
    vec![1; frame_bytes]
}

/// More than the frames of a queue of Fast Ethernet; at an MTU of 9180 they take 5 MiB.
const POOL_FRAMES: usize = 512;
