//! Messages over a socket, each behind its length.

use super::encoding::{MessagePart, decode};
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The largest message: rows of a page, or what a script wants to write, with room to spare.
const MESSAGE_BYTES_MAX: usize = 256 << 20;
/// What one call of the system reads at least.
const READ_BYTES: usize = 16 << 10;
/// Buffers beyond this are given back after use.
const KEPT_BYTES_MAX: usize = 256 << 10;
const LENGTH_BYTES: usize = size_of::<u32>();

/// One end of the socket.
pub(super) struct Channel {
    stream: UnixStream,
    out: Vec<u8>,
    /// What was read, and how much of it belongs to messages that were handed out.
    input: Vec<u8>,
    taken: usize,
}

impl Channel {
    pub(super) fn new(stream: UnixStream) -> Channel {
        Channel { stream, out: Vec::new(), input: Vec::new(), taken: 0 }
    }

    /// How long to wait for the other end from here on.
    pub(super) fn wait_at_most(&self, time: Option<Duration>) -> io::Result<()> {
        self.stream.set_read_timeout(time)
    }

    /// Sends a message, and before it what was put off.
    pub(super) fn send(&mut self, message: &impl MessagePart) -> io::Result<()> {
        self.put_off(message)?;
        self.flush()
    }

    /// Sends what was put off.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        let result = self.stream.write_all(&self.out);
        self.out.clear();
        if self.out.capacity() > KEPT_BYTES_MAX {
            self.out = Vec::new();
        }
        result
    }

    /// Has a message sent with the next one.
    pub(super) fn put_off(&mut self, message: &impl MessagePart) -> io::Result<()> {
        let start = self.out.len();
        self.out.extend_from_slice(&[0; LENGTH_BYTES]);
        message.put(&mut self.out);
        let length = self.out.len() - start - LENGTH_BYTES;
        if length > MESSAGE_BYTES_MAX {
            self.out.truncate(start);
            return Err(io::Error::other("a message between the server and a script process is too large"));
        }
        self.out[start..start + LENGTH_BYTES].copy_from_slice(&(length as u32).to_le_bytes());
        Ok(())
    }

    /// Has a message sent with the next one if all that waits is no more than so many bytes. Returns whether it is.
    pub(super) fn put_off_within(
        &mut self,
        bytes_max: usize,
        message: &impl MessagePart,
    ) -> io::Result<bool> {
        let before = self.out.len();
        self.put_off(message)?;
        let fits = self.out.len() <= bytes_max;
        if !fits {
            self.out.truncate(before);
        }
        Ok(fits)
    }

    /// Waits for a message; nothing if the other end is gone.
    pub(super) fn receive<P: MessagePart>(&mut self) -> io::Result<Option<P>> {
        let mut wanted = LENGTH_BYTES;
        loop {
            let unread = &self.input[self.taken..];
            if let Some(length) = unread.first_chunk::<LENGTH_BYTES>() {
                let length = u32::from_le_bytes(*length) as usize;
                if length > MESSAGE_BYTES_MAX {
                    return Err(malformed());
                }
                wanted = LENGTH_BYTES + length;
                if unread.len() >= wanted {
                    let message = decode(&unread[LENGTH_BYTES..wanted]);
                    self.taken += wanted;
                    return message.map(Some).ok_or_else(malformed);
                }
            }
            if !self.fill(wanted)? {
                return Ok(None);
            }
        }
    }

    /// Reads some more; false at the end.
    fn fill(&mut self, wanted: usize) -> io::Result<bool> {
        if self.taken > 0 {
            self.input.drain(..self.taken);
            self.taken = 0;
            if self.input.capacity() > KEPT_BYTES_MAX && self.input.len() + wanted <= KEPT_BYTES_MAX {
                self.input.shrink_to(KEPT_BYTES_MAX);
            }
        }
        let filled = self.input.len();
        // As much again as there is at most: a length alone takes no memory.
        let more = wanted.saturating_sub(filled).min(filled).max(READ_BYTES);
        self.input.resize(filled + more, 0);
        let result = loop {
            match self.stream.read(&mut self.input[filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        self.input.truncate(filled + *result.as_ref().unwrap_or(&0));
        result.map(|count| count > 0)
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a message of a script process cannot be read")
}

#[cfg(test)]
mod tests {
    use super::super::encoding::List;
    use super::*;
    use astrarium_value::{Object, Value};
    use proptest::prelude::*;
    use std::sync::Arc;

    fn pair() -> (Channel, Channel) {
        let (left, right) = UnixStream::pair().expect("a pair");
        (Channel::new(left), Channel::new(right))
    }

    #[test]
    fn messages_of_all_sizes_arrive() {
        let (mut left, mut right) = pair();
        let sizes = [0, 1, READ_BYTES - 5, READ_BYTES, KEPT_BYTES_MAX + 1, 3_000_000, 7];
        let sender = std::thread::spawn(move || {
            for size in sizes {
                left.put_off(&7_u64).expect("put off");
                left.send(&vec![size as u8; size]).expect("sent");
            }
        });
        for size in sizes {
            assert_eq!(right.receive::<u64>().expect("received"), Some(7));
            assert_eq!(right.receive::<Vec<u8>>().expect("received"), Some(vec![size as u8; size]));
        }
        sender.join().expect("sent");
        assert_eq!(right.receive::<u64>().expect("the end"), None);
    }

    #[test]
    fn a_length_alone_takes_no_memory() {
        let (left, mut right) = pair();
        (&left.stream).write_all(&(u32::try_from(MESSAGE_BYTES_MAX).unwrap()).to_le_bytes()).expect("sent");
        (&left.stream).write_all(&[0; 100]).expect("sent");
        drop(left);
        assert!(right.receive::<Vec<u8>>().expect("the end").is_none());
        assert!(right.input.capacity() < 10 * READ_BYTES);
        let (left, mut right) = pair();
        (&left.stream).write_all(&u32::MAX.to_le_bytes()).expect("sent");
        assert!(right.receive::<Vec<u8>>().is_err());
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Undefined),
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<f64>().prop_filter("equal to itself", |number| !number.is_nan()).prop_map(Value::Number),
            "\\PC{0,8}".prop_map(|text| Value::String(text.into())),
        ];
        leaf.prop_recursive(4, 30, 5, |inner| {
            let member = ("\\PC{0,4}".prop_map(Arc::<str>::from), inner.clone());
            prop_oneof![
                proptest::collection::vec(inner, 0..5).prop_map(Value::Array),
                proptest::collection::vec(member, 0..5)
                    .prop_map(|members| Value::Object(Object::from_members(members))),
            ]
        })
    }

    proptest! {
        #[test]
        fn values_come_back_as_they_were(values in proptest::collection::vec(value(), 0..4)) {
            let mut bytes = Vec::new();
            List(values).put(&mut bytes);
            let read: List<Value> = decode(&bytes).expect("a list");
            let mut again = Vec::new();
            read.put(&mut again);
            prop_assert_eq!(bytes, again);
        }

        /// Whatever a process sends is read or refused.
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            drop(decode::<super::super::messages::ProcessReport>(&bytes));
            drop(decode::<super::super::messages::ProcessOrder>(&bytes));
            drop(decode::<super::super::messages::HostReply>(&bytes));
        }
    }
}
