//! One HTTP/1.1 connection over a plain socket, for well-formed and for hostile bytes alike.
//!
//! In: bytes to send as they are. Out: [`Response`]s, read by the length that the server announces.
//! Invariants
//! - Every wait ends: reads and writes give up after [`PATIENCE`] unless a test sets another time.
//! - A body without a `Content-Length` is an error: SDKs cannot read such answers, so no test may.
//!
//! Not here: what a request looks like (`request`), TLS.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a client waits for anything before it gives up.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// Largest head of a response.
const HEAD_BYTES_MAX: usize = 1 << 20;

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The headers in their order; names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; empty if there is none.
    pub body: Vec<u8>,
}

impl Response {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The body as text; bytes that are not UTF-8 show as replacement characters.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A connection over some stream.
pub struct Connection<S = TcpStream> {
    stream: S,
    /// Bytes that came after the last response.
    ahead: Vec<u8>,
}

impl Connection {
    /// Connects.
    pub fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Connection::over(stream))
    }

    /// Waits no longer than this for bytes of the server.
    pub fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(Some(patience))
    }

    /// Tells the server that nothing more will be sent.
    pub fn finish_sending(&self) -> io::Result<()> {
        self.stream.shutdown(std::net::Shutdown::Write)
    }

    /// Reads until the server closes the connection and gives what it sent; a reset counts as a close.
    pub fn read_to_close(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = std::mem::take(&mut self.ahead);
        let mut piece = [0; 16 << 10];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Ok(bytes),
                Ok(count) => bytes.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(bytes),
                Err(error) => return Err(error),
            }
        }
    }
}

impl<S: Read + Write> Connection<S> {
    /// A connection over a stream that is open already.
    pub fn over(stream: S) -> Connection<S> {
        Connection { stream, ahead: Vec::new() }
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Reads one response; `verb` is what was asked, since an answer to HEAD has a length but no body.
    pub fn receive(&mut self, verb: &str) -> io::Result<Response> {
        let head_end = self.read_head()?;
        let rest = self.ahead.split_off(head_end);
        let head = std::mem::replace(&mut self.ahead, rest);
        let (status, headers) = parse_head(&head)?;
        let mut response = Response { status, headers, body: Vec::new() };
        if verb != "HEAD" && !matches!(status, 204 | 304) {
            let length = response.header("content-length").and_then(|text| text.parse().ok());
            let length =
                length.ok_or_else(|| malformed("a response with a body but without Content-Length"))?;
            while self.ahead.len() < length {
                self.read_more()?;
            }
            let rest = self.ahead.split_off(length);
            response.body = std::mem::replace(&mut self.ahead, rest);
        }
        Ok(response)
    }

    /// Sends a request and reads its response.
    pub fn exchange(&mut self, verb: &str, request: &[u8]) -> io::Result<Response> {
        self.send(request)?;
        self.receive(verb)
    }

    /// Reads until the head of a response is there and gives its length.
    fn read_head(&mut self) -> io::Result<usize> {
        loop {
            if let Some(start) = self.ahead.windows(4).position(|four| four == b"\r\n\r\n") {
                return Ok(start + 4);
            }
            if self.ahead.len() > HEAD_BYTES_MAX {
                return Err(malformed("a response head without end"));
            }
            self.read_more()?;
        }
    }

    fn read_more(&mut self) -> io::Result<()> {
        let mut piece = [0; 16 << 10];
        match self.stream.read(&mut piece)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                self.ahead.extend_from_slice(&piece[..count]);
                Ok(())
            }
        }
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn parse_head(head: &[u8]) -> io::Result<(u16, Vec<(String, String)>)> {
    let head = String::from_utf8_lossy(head);
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok());
    let status = status.ok_or_else(|| malformed("no status line of HTTP/1.1"))?;
    let mut headers = Vec::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or_else(|| malformed("a header line without colon"))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok((status, headers))
}
