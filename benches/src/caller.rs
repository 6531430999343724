//! One blocking connection to our server: ready-made requests, whole answers, as little work as possible around each.

use crate::load;
use anyhow::Context as _;
use memchr::memmem;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const ANSWER_MAX: Duration = Duration::from_mins(10);
const READ_BYTES: usize = 1 << 16;

/// A connection.
pub(crate) struct Caller {
    socket: TcpStream,
    answer: Vec<u8>,
    chunk: Vec<u8>,
}

/// A whole answer.
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    pub(crate) head: &'a [u8],
    pub(crate) body: &'a [u8],
}

impl Caller {
    pub(crate) fn open(address: SocketAddr) -> anyhow::Result<Caller> {
        Caller::open_within(address, ANSWER_MAX)
    }

    /// A connection that gives up on an answer after a time.
    pub(crate) fn open_within(address: SocketAddr, time_max: Duration) -> anyhow::Result<Caller> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(time_max))?;
        Ok(Caller { socket, answer: Vec::new(), chunk: vec![0; READ_BYTES] })
    }

    /// Sends a request and receives its whole answer.
    pub(crate) fn ask(&mut self, request: &[u8]) -> anyhow::Result<Answer<'_>> {
        self.socket.write_all(request)?;
        self.answer.clear();
        let mut expected = None;
        loop {
            let count = self.socket.read(&mut self.chunk)?;
            anyhow::ensure!(count > 0, "the server closed a connection");
            self.answer.extend_from_slice(&self.chunk[..count]);
            if expected.is_none() {
                let head = memmem::find(&self.answer, b"\r\n\r\n").map(|end| end + 4);
                expected = head.map(|head| (head, head + load::content_length(&self.answer[..head])));
            }
            if let Some((head, _)) = expected.filter(|(_, whole)| self.answer.len() >= *whole) {
                let (head, body) = self.answer.split_at(head);
                return Ok(Answer { status: load::status_of(head), head, body });
            }
        }
    }

    /// The same, for an answer that must have one of these statuses.
    pub(crate) fn expect(&mut self, statuses: &[u16], request: &[u8]) -> anyhow::Result<Answer<'_>> {
        let answer = self.ask(request)?;
        anyhow::ensure!(
            statuses.contains(&answer.status),
            "status {}: {}",
            answer.status,
            String::from_utf8_lossy(answer.body)
        );
        Ok(answer)
    }
}

impl Answer<'_> {
    /// The text of a header that every such answer has.
    pub(crate) fn header(&self, name: &str) -> anyhow::Result<String> {
        let value = header(self.head, name).with_context(|| format!("an answer without {name}"))?;
        Ok(String::from_utf8_lossy(value).into_owned())
    }
}

/// The value of a header; servers built on hyper write names in lower case.
pub(crate) fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let name = [b"\r\n", name.as_bytes(), b": "].concat();
    let start = memmem::find(head, &name)? + name.len();
    let length = memmem::find(&head[start..], b"\r\n")?;
    Some(&head[start..start + length])
}
