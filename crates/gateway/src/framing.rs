//! Reads along with a connection of HTTP/1 and cuts it off where two readers could see different requests.
//!
//! In: the bytes of a connection. Out: the same bytes, until a head has a line that ends without a carriage return, a second
//! `Host`, a `Content-Length` beside a `Transfer-Encoding`, two of either, or one that says no plain number or not `chunked`.
//! There an end of the head takes the place of what comes, with a byte that no head may contain, so hyper answers 400 and
//! closes; nothing after it is read. hyper itself accepts all of these, and what a proxy before us makes of them may be something else.
//! Invariants
//! - Where a body ends is reckoned as hyper does it; what hyper would refuse is cut off here as well.
//! - The cost is one search for line ends in each head; bodies are skipped, and nothing is allocated.
//! - HTTP/2, which is framed, passes unread.
//!
//! Not here: limits of sizes and times (`listener`), what headers mean (`service`).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The first bytes of every connection of HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of a line that are kept when a read ends within it: enough for the headers that count here.
const KEPT_MAX: usize = 64;
/// Digits of a chunk's size; more would not fit a number.
const SIZE_DIGITS_MAX: usize = 16;

/// What takes the place of a request that is cut off. hyper does not look at a head before its end has come.
const CUT: &[u8] = b"\0\r\n\r\n";

/// A stream that is read along with.
pub(crate) struct Framed<S> {
    inner: S,
    scanner: Scanner,
    /// What is left to tell instead of more bytes.
    cut: Option<&'static [u8]>,
}

impl<S> Framed<S> {
    pub(crate) fn new(inner: S) -> Framed<S> {
        Framed { inner, scanner: Scanner::default(), cut: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Framed<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Some(cut) = &mut this.cut {
            tell(cut, buffer);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
        let new = buffer.filled().get(before..).unwrap_or_default();
        if let Err(good) = this.scanner.scan(new) {
            buffer.set_filled(before + good);
            tell(this.cut.insert(CUT), buffer);
        }
        Poll::Ready(Ok(()))
    }
}

/// Moves as much as there is room for.
fn tell(cut: &mut &'static [u8], buffer: &mut ReadBuf<'_>) {
    let (now, later) = cut.split_at(cut.len().min(buffer.remaining()));
    buffer.put_slice(now);
    *cut = later;
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Framed<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(context)
    }
}

/// What the next byte belongs to.
#[derive(Debug, Clone, Copy)]
enum Within {
    /// The start of the connection; so many bytes were those of HTTP/2.
    Preface(usize),
    /// Frames of HTTP/2: not looked at.
    Http2,
    Head,
    /// A body, or a piece of one, of so many more bytes.
    Body(u64),
    /// The line with the size of a chunk.
    ChunkSize,
    /// A chunk and the line end after it, so many more bytes.
    Chunk(u64),
    /// Lines after the last chunk.
    Trailers,
}

#[derive(Debug)]
struct Scanner {
    within: Within,
    head: Head,
    line: Line,
}

impl Default for Scanner {
    fn default() -> Scanner {
        Scanner { within: Within::Preface(0), head: Head::default(), line: Line::default() }
    }
}

/// What is known of the head so far.
#[derive(Debug, Default)]
struct Head {
    /// The request line has been seen.
    is_begun: bool,
    has_host: bool,
    length: Option<u64>,
    is_chunked: bool,
}

/// The start of a line of which not all was read yet.
#[derive(Debug)]
struct Line {
    start: [u8; KEPT_MAX],
    length: usize,
    last: u8,
}

impl Default for Line {
    fn default() -> Line {
        Line { start: [0; KEPT_MAX], length: 0, last: 0 }
    }
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        let room = self.start.get_mut(self.length.min(KEPT_MAX)..).unwrap_or_default();
        let kept = bytes.len().min(room.len());
        if let (Some(room), Some(bytes)) = (room.get_mut(..kept), bytes.get(..kept)) {
            room.copy_from_slice(bytes);
        }
        self.length += bytes.len();
        self.last = bytes.last().copied().unwrap_or(self.last);
    }

    /// Whether it ends as it should, and what was kept of it without that end.
    fn content(&self) -> Option<&[u8]> {
        let length = (self.length - usize::from(self.length > 0)).min(KEPT_MAX);
        (self.last == b'\r').then(|| self.start.get(..length).unwrap_or_default())
    }
}

/// A request that cannot be read in one way only.
struct Ambiguous;

impl Scanner {
    /// Reads along; where something is wrong, gives how many bytes before it are good.
    fn scan(&mut self, bytes: &[u8]) -> Result<(), usize> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            at += match self.within {
                Within::Http2 => return Ok(()),
                Within::Preface(matched) => self.preface(matched, rest),
                Within::Body(left) => {
                    let taken = left.min(rest.len() as u64);
                    self.within = if taken == left { Within::Head } else { Within::Body(left - taken) };
                    taken as usize
                }
                Within::Chunk(left) => {
                    let taken = left.min(rest.len() as u64);
                    self.within = if taken == left { Within::ChunkSize } else { Within::Chunk(left - taken) };
                    taken as usize
                }
                Within::Head | Within::ChunkSize | Within::Trailers => {
                    self.line(rest).map_err(|good| at + good)?
                }
            };
        }
        Ok(())
    }

    /// Compares with the start of HTTP/2; what is none of it is a head.
    fn preface(&mut self, matched: usize, bytes: &[u8]) -> usize {
        let expected = PREFACE.get(matched..).unwrap_or_default();
        let same = bytes.iter().zip(expected).take_while(|(byte, wanted)| byte == wanted).count();
        let matched = matched + same;
        if matched == PREFACE.len() {
            self.within = Within::Http2;
        } else if same == bytes.len() {
            self.within = Within::Preface(matched);
        } else {
            self.within = Within::Head;
            // Lines that HTTP/2 begins with are good ones, and the scan of them ends where it began.
            let _ = self.scan(PREFACE.get(..matched).unwrap_or_default());
        }
        same
    }

    /// Takes what there is of a line; gives how many bytes that was.
    fn line(&mut self, bytes: &[u8]) -> Result<usize, usize> {
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            self.line.push(bytes);
            return Ok(bytes.len());
        };
        let piece = bytes.get(..end).unwrap_or_default();
        let done = if self.line.length == 0 {
            match piece.split_last() {
                Some((b'\r', content)) => ended(&mut self.within, &mut self.head, content, false),
                _ => Err(Ambiguous),
            }
        } else {
            self.line.push(piece);
            let is_cut = self.line.length > KEPT_MAX;
            match self.line.content() {
                Some(content) => ended(&mut self.within, &mut self.head, content, is_cut),
                None => Err(Ambiguous),
            }
        };
        self.line.length = 0;
        done.map(|()| end + 1).map_err(|Ambiguous| end)
    }
}

/// A line is complete, of which perhaps only the start is known.
fn ended(within: &mut Within, head: &mut Head, line: &[u8], is_cut: bool) -> Result<(), Ambiguous> {
    match within {
        Within::Head => {
            if !line.is_empty() {
                return head.line(line, is_cut);
            }
            // Empty lines before a request are allowed.
            if head.is_begun {
                *within = head.body();
                *head = Head::default();
            }
        }
        Within::ChunkSize => {
            let size = chunk_size(line)?;
            // With the line end that follows the chunk; after the last one there is none.
            *within = if size == 0 { Within::Trailers } else { Within::Chunk(size.saturating_add(2)) };
        }
        Within::Trailers if line.is_empty() => *within = Within::Head,
        _ => {}
    }
    Ok(())
}

impl Head {
    fn line(&mut self, line: &[u8], is_cut: bool) -> Result<(), Ambiguous> {
        if !self.is_begun {
            self.is_begun = true;
            return Ok(());
        }
        // Few headers begin so; the others are not looked at further.
        if !matches!(line.first(), Some(b'h' | b'H' | b'c' | b'C' | b't' | b'T')) {
            return Ok(());
        }
        let Some(colon) = memchr::memchr(b':', line) else { return Ok(()) };
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"host") {
            if std::mem::replace(&mut self.has_host, true) {
                return Err(Ambiguous);
            }
        } else if name.eq_ignore_ascii_case(b"content-length") {
            if is_cut || self.length.is_some() || self.is_chunked {
                return Err(Ambiguous);
            }
            self.length = Some(number(value, 10).ok_or(Ambiguous)?);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            let is_plain = !is_cut && value.eq_ignore_ascii_case(b"chunked");
            if !is_plain || self.length.is_some() || self.is_chunked {
                return Err(Ambiguous);
            }
            self.is_chunked = true;
        }
        Ok(())
    }

    /// What follows the head.
    fn body(&self) -> Within {
        match self.length {
            _ if self.is_chunked => Within::ChunkSize,
            Some(length) if length > 0 => Within::Body(length),
            _ => Within::Head,
        }
    }
}

/// The size in the first line of a chunk, which may have extensions after a semicolon.
fn chunk_size(line: &[u8]) -> Result<u64, Ambiguous> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if digits.len() > SIZE_DIGITS_MAX {
        return Err(Ambiguous);
    }
    number(digits, 16).ok_or(Ambiguous)
}

/// Digits and nothing else.
fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
    u64::from_str_radix(text, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether bytes pass, however they are cut into reads.
    #[track_caller]
    fn check(bytes: &str, passes: bool) {
        for piece in [1, 2, 3, 7, 60, 4096] {
            let mut scanner = Scanner::default();
            let found = bytes.as_bytes().chunks(piece).try_for_each(|piece| scanner.scan(piece));
            assert_eq!(found.is_ok(), passes, "{bytes:?} in pieces of {piece}");
        }
    }

    #[test]
    fn requests_pass() {
        let get = "GET /dbs HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";
        check(get, true);
        check(&format!("\r\n\r\n{get}{get}\r\n{get}"), true);
        check(&format!("GET / HTTP/1.1\r\nx-long: {}\r\n\r\n{get}", "y".repeat(500)), true);
        // What is in a body is not a head, and what follows it is one.
        let post = "POST /dbs HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n{\nHost: a\nHost: b\n\n}";
        check(&format!("{post}{get}{post}{get}"), true);
        let chunked = "POST / HTTP/1.1\r\nTRANSFER-ENCODING: Chunked\r\n\r\n\
                       5\r\na\nb\nc\r\n00A;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
        check(&format!("{chunked}{chunked}{get}"), true);
        check("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n", true);
    }

    #[test]
    fn http2_passes_unread() {
        check("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\n\n\nHost: a\nHost: b\n\n", true);
        check("PRI * HTTP/2.0\r\nHost: a\r\nHost: b\r\n\r\n", false);
        check("PRI * HTTP/2.0\n", false);
        check("PRI * HTTP/1.1\r\nHost: a\r\n\r\n", true);
    }

    #[test]
    fn ambiguous_requests_are_cut_off() {
        for head in [
            "\nGET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\nhOST: b\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length:\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: identity\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\nabcde\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        ] {
            check(head, false);
            check(&format!("GET / HTTP/1.1\r\nHost: a\r\n\r\n{head}"), false);
            check(&format!("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n\n\n{head}"), false);
        }
        let long = "9".repeat(100);
        check(&format!("POST / HTTP/1.1\r\nContent-Length: {long}\r\n\r\n"), false);
    }
}
