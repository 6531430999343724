//! Bodies of requests, and answers that were made and not yet taken by their readers: they count as memory until the last
//! byte of them is gone.
//!
//! In: bytes, the connection they belong to. Out: the same bytes, which give their memory back when they are dropped, for an
//! answer when it has been handed to the system; or nothing when there is no memory for them.

use crate::database::{Memory, Reservation};
use bytes::Bytes;

/// Bytes of answers that one connection may leave unread: several of the largest.
const CONNECTION_BYTES_MAX: usize = 32 << 20;
/// Answers up to this size are not counted one by one: a connection has few of them, and each costs about as much as its
/// headers.
const SMALL: usize = 8 << 10;

/// What one connection may hold, and the server altogether.
#[derive(Clone)]
pub(crate) struct ConnectionMemory {
    connection: Memory,
    server: Memory,
}

/// Bytes with their memory.
struct Counted {
    bytes: Bytes,
    _held: Vec<Reservation>,
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
        Bytes::from_owner(Counted { bytes, _held: vec![held] })
    }
}

impl ConnectionMemory {
    /// For a new connection.
    pub(crate) fn new(server: &Memory) -> ConnectionMemory {
        ConnectionMemory { connection: Memory::new(CONNECTION_BYTES_MAX), server: server.clone() }
    }

    /// Counts an answer's body; nothing if there is no memory for it.
    pub(crate) fn answer(&self, bytes: Bytes) -> Option<Bytes> {
        if bytes.len() <= SMALL {
            return Some(bytes);
        }
        let held = vec![self.connection.reserve(bytes.len())?, self.server.reserve(bytes.len())?];
        Some(Bytes::from_owner(Counted { bytes, _held: held }))
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
