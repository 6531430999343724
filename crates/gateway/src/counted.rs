//! Bodies of requests, and answers that were made and not yet taken by their readers: they count as memory until the last
//! byte of them is gone.
//!
//! In: bytes, the connection they belong to. Out: the same bytes, which give their memory back when they are dropped, for an
//! answer when it has been handed to the system; or nothing when there is no memory for them.

use crate::database::{Memory, Reservation};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Bytes of answers that one connection may leave unread: several of the largest.
const CONNECTION_BYTES_MAX: usize = 32 << 20;
/// Answers up to this size are not counted one by one: a connection has few of them, and each costs about as much as its
/// headers.
const SMALL: usize = 8 << 10;

/// How long a client may take no answer of those that wait for it; a slow line needs a while for the largest.
const LEFT_LYING: Duration = Duration::from_mins(5);
/// The same while memory is short.
const LEFT_LYING_SHORT: Duration = Duration::from_secs(15);

/// What one connection may hold, and the server altogether.
#[derive(Clone)]
pub(crate) struct ConnectionMemory {
    connection: Memory,
    server: Memory,
    /// Answers of the connection that are wholly gone.
    gone: Arc<AtomicU64>,
    /// Says that there is a large answer.
    large: Arc<Notify>,
}

/// Bytes with their memory.
struct Counted {
    bytes: Bytes,
    _held: Vec<Reservation>,
    gone: Option<Arc<AtomicU64>>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(gone) = &self.gone {
            gone.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Memory for a body that is being read.
pub(crate) struct BodyMemory {
    held: Option<Reservation>,
}

impl BodyMemory {
    /// The body that came.
    pub(crate) fn body(self, bytes: Bytes) -> Bytes {
        let Some(mut held) = self.held.filter(|_| bytes.len() > SMALL) else { return bytes };
        // Less than was expected is always to be had.
        let _ = held.resize(bytes.len());
        Bytes::from_owner(Counted { bytes, _held: vec![held], gone: None })
    }
}

impl ConnectionMemory {
    /// For a new connection.
    pub(crate) fn new(server: &Memory) -> ConnectionMemory {
        let (gone, large) = (Arc::new(AtomicU64::new(0)), Arc::new(Notify::new()));
        let connection = Memory::new(CONNECTION_BYTES_MAX);
        ConnectionMemory { connection, server: server.clone(), gone, large }
    }

    /// Ends when the client has left answers lie for too long without taking a single one. With HTTP/2 that is not seen by
    /// writing: a client may take other things and leave its answers.
    pub(crate) async fn left_lying(&self) {
        loop {
            // Most connections never have a large answer, and none of them needs a timer.
            self.large.notified().await;
            let (mut since, mut gone) = (Instant::now(), 0);
            while self.connection.taken() > 0 {
                tokio::time::sleep(LEFT_LYING_SHORT).await;
                let now_gone = self.gone.load(Ordering::Relaxed);
                if now_gone != gone {
                    (since, gone) = (Instant::now(), now_gone);
                    continue;
                }
                let is_short = self.server.taken() > self.server.bytes_max() / 2;
                if since.elapsed() >= if is_short { LEFT_LYING_SHORT } else { LEFT_LYING } {
                    return;
                }
            }
        }
    }

    /// Counts an answer's body; nothing if there is no memory for it.
    pub(crate) fn answer(&self, bytes: Bytes) -> Option<Bytes> {
        if bytes.len() <= SMALL {
            return Some(bytes);
        }
        let held = vec![self.connection.reserve(bytes.len())?, self.server.reserve(bytes.len())?];
        self.large.notify_one();
        Some(Bytes::from_owner(Counted { bytes, _held: held, gone: Some(Arc::clone(&self.gone)) }))
    }

    /// Memory for a request's body that is to come, which has at most so many bytes; nothing if there is none.
    pub(crate) fn expect_body(&self, bytes_max: usize) -> Option<BodyMemory> {
        let held = if bytes_max <= SMALL { None } else { Some(self.server.reserve(bytes_max)?) };
        Some(BodyMemory { held })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_until_its_last_byte_is_gone() {
        let server = Memory::new(100 << 20);
        let memory = ConnectionMemory::new(&server);
        let body = memory.answer(Bytes::from(vec![1; 1 << 20])).expect("there is room");
        let part = body.slice(10..20);
        drop(body);
        assert_eq!(server.taken(), 1 << 20);
        drop(part);
        assert_eq!(server.taken(), 0);
    }

    #[test]
    fn one_connection_cannot_take_everything() {
        let server = Memory::new(100 << 20);
        let memory = ConnectionMemory::new(&server);
        let large = || Bytes::from(vec![1; 4 << 20]);
        let held: Vec<_> = std::iter::from_fn(|| memory.answer(large())).take(100).collect();
        assert_eq!(held.len(), 8);
        assert!(ConnectionMemory::new(&server).answer(large()).is_some(), "another connection goes on");
    }
}
