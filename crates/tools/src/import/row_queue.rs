//! Rows on their way from the thread that reads to the task that writes.
//!
//! In: rows, one by one. Out: all that have gathered, as soon as they fill a chunk or after a short while, so that rows of a slow producer do not wait
//! for more. Bounded in rows and bytes: the reader waits. Either side may leave; the reader learns it with its next row, the writer at once.

use super::ReadRow;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Rows and bytes that are taken at once if they come fast.
const CHUNK_ROWS: usize = 200;
const CHUNK_BYTES: usize = 1 << 20;
/// How many chunks may wait.
const CHUNKS_MAX: usize = 4;
/// How long rows wait for more of them.
const WAIT: Duration = Duration::from_millis(200);

/// What has gathered.
#[derive(Debug, Default)]
pub(super) struct TakenRows {
    pub(super) rows: Vec<ReadRow>,
    /// Whether the producer takes its time.
    pub(super) is_slow: bool,
}

#[derive(Default)]
struct RowQueue {
    state: Mutex<WaitingRows>,
    has_room: Condvar,
    is_ready: Notify,
}

#[derive(Default)]
struct WaitingRows {
    rows: Vec<ReadRow>,
    bytes: usize,
    /// The reader has left.
    is_ended: bool,
    /// The writer has left.
    is_abandoned: bool,
}

/// The end of the reader; when it is dropped there is nothing more to come.
pub(super) struct RowSender(Arc<RowQueue>);

/// The end of the writer; when it is dropped nobody takes rows any more.
pub(super) struct RowReceiver(Arc<RowQueue>);

pub(super) fn row_queue() -> (RowSender, RowReceiver) {
    let queue = Arc::new(RowQueue::default());
    (RowSender(Arc::clone(&queue)), RowReceiver(queue))
}

impl RowSender {
    /// Adds a row; waits for room. False if nobody takes it.
    pub(super) fn send(&self, row: ReadRow) -> bool {
        let mut state = self.0.state.lock();
        while !state.is_abandoned
            && (state.rows.len() >= CHUNK_ROWS * CHUNKS_MAX || state.bytes >= CHUNK_BYTES * CHUNKS_MAX)
        {
            self.0.has_room.wait(&mut state);
        }
        let was_full = state.is_full();
        state.bytes += row.1.as_ref().map_or_else(|bad| bad.raw.len(), |document| document.body.len());
        state.rows.push(row);
        if state.is_full() && !was_full {
            self.0.is_ready.notify_one();
        }
        !state.is_abandoned
    }
}

impl RowReceiver {
    /// What has gathered, perhaps nothing yet; none at the end.
    pub(super) async fn take(&self) -> Option<TakenRows> {
        let is_slow = {
            let state = self.0.state.lock();
            !state.is_full() && !state.is_ended
        } && tokio::time::timeout(WAIT, self.0.is_ready.notified()).await.is_err();
        let mut state = self.0.state.lock();
        if state.rows.is_empty() && state.is_ended {
            return None;
        }
        state.bytes = 0;
        let rows = std::mem::take(&mut state.rows);
        self.0.has_room.notify_one();
        Some(TakenRows { rows, is_slow })
    }
}

impl WaitingRows {
    fn is_full(&self) -> bool {
        self.rows.len() >= CHUNK_ROWS || self.bytes >= CHUNK_BYTES
    }
}

impl Drop for RowSender {
    fn drop(&mut self) {
        self.0.state.lock().is_ended = true;
        self.0.is_ready.notify_one();
    }
}

impl Drop for RowReceiver {
    fn drop(&mut self) {
        self.0.state.lock().is_abandoned = true;
        self.0.has_room.notify_one();
    }
}
