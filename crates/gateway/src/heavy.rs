//! Requests whose body alone makes them long: a large document to check and index, a large text to parse.
//!
//! In: work, and the size of the body it is about. Out: its result. Small ones are done as they are; for a large one the
//! runtime is told that this thread is taken, so that it serves the other requests with another one, and only a few are under way
//! at once.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;

/// Bodies from this size on take more than a millisecond.
const LARGE: usize = 128 << 10;
/// Large ones at once: more than that only share the processor.
const PLACES: usize = 16;

pub(crate) struct Heavy {
    places: Semaphore,
}

impl Heavy {
    pub(crate) fn new() -> Heavy {
        Heavy { places: Semaphore::new(PLACES) }
    }

    /// Does something that takes as long as a body is large.
    pub(crate) async fn run<T>(&self, body_bytes: usize, work: impl FnOnce() -> T) -> T {
        if !takes_long(body_bytes) {
            return work();
        }
        let _place = self.places.acquire().await;
        tokio::task::block_in_place(work)
    }

    /// The same for what waits on the way.
    pub(crate) async fn run_async<F: Future>(&self, body_bytes: usize, work: F) -> F::Output {
        if !takes_long(body_bytes) {
            return work.await;
        }
        self.run(body_bytes, || Handle::current().block_on(work)).await
    }
}

fn takes_long(body_bytes: usize) -> bool {
    // A runtime of one thread has no other to go on with.
    body_bytes >= LARGE && Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread
}
