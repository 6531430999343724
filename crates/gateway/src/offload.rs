//! Moves work on large bodies off the runtime's threads: checking and indexing a large document, parsing a large text.
//!
//! In: work, and the size of the body it is about. Out: its result. Work on small bodies is done in place. Before work on a large one the runtime
//! is asked to serve other requests on another thread, and only a few are done at the same time.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;

/// Bodies from this size on take more than a millisecond.
const LARGE: usize = 128 << 10;
/// Large ones at once: more than that only share the processor.
const PLACES: usize = 16;

pub(crate) struct Offload {
    places: Semaphore,
}

impl Offload {
    pub(crate) fn new() -> Offload {
        Offload { places: Semaphore::new(PLACES) }
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
