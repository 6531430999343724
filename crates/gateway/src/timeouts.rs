//! Ends connections whose client stops reading its answers.
//!
//! In: a stream. Out: the same stream, which fails when nothing could be written for a while. An answer that is not read
//! keeps its memory, which a client that stops reading must not hold for ever.
//! Invariant: only writing is timed. A client that sends its requests slowly holds next to no memory.

use crate::database::Memory;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How long nothing may be written although there is something to write.
#[derive(Debug, Clone, Copy)]
struct WriteTimeouts {
    usual: Duration,
    /// While memory is short.
    short: Duration,
}

const WRITE_TIMEOUTS: WriteTimeouts =
    WriteTimeouts { usual: Duration::from_mins(1), short: Duration::from_secs(5) };

pub(crate) struct TimedStream<S> {
    stream: S,
    memory: Memory,
    timeouts: WriteTimeouts,
    /// When writing began to wait, and a timer; nothing while writing goes well.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<S> TimedStream<S> {
    pub(crate) fn new(stream: S, memory: Memory) -> TimedStream<S> {
        TimedStream { stream, memory, timeouts: WRITE_TIMEOUTS, waiting: None }
    }

    /// Notes whether writing got on; an error when it has not for too long.
    fn watch<T>(&mut self, polled: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waiting = None;
            return polled;
        }
        let WriteTimeouts { usual, short } = self.timeouts;
        let timer = || (Instant::now(), Box::pin(tokio::time::sleep(short)));
        let (since, sleep) = self.waiting.get_or_insert_with(timer);
        loop {
            ready!(sleep.as_mut().poll(context));
            let is_short = self.memory.taken() > self.memory.bytes_max() / 2;
            let timeout = if is_short { short } else { usual };
            if since.elapsed() >= timeout {
                let message = "the client does not take its answer";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)));
            }
            sleep.as_mut().reset(Instant::now() + short);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(polled, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(polled, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(polled, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    const TEST: WriteTimeouts =
        WriteTimeouts { usual: Duration::from_millis(900), short: Duration::from_millis(100) };

    async fn give_up_after(memory: Memory) -> Duration {
        let (ours, theirs) = tokio::io::duplex(16);
        let mut stream = TimedStream { timeouts: TEST, ..TimedStream::new(ours, memory) };
        let began = Instant::now();
        let error = stream.write_all(&[0; 64]).await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(theirs);
        began.elapsed()
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_given_up() {
        assert!(give_up_after(Memory::new(100)).await >= TEST.usual);
    }

    #[tokio::test]
    async fn sooner_when_memory_is_short() {
        let memory = Memory::new(100);
        let _taken = memory.reserve(90).expect("there is room");
        let time = give_up_after(memory).await;
        assert!(time >= TEST.short && time < TEST.usual, "{time:?}");
    }

    #[tokio::test]
    async fn a_slow_client_is_served() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut stream = TimedStream { timeouts: TEST, ..TimedStream::new(ours, Memory::new(100)) };
        let slow = async {
            let mut bytes = [0; 16];
            for _ in 0..8 {
                tokio::time::sleep(TEST.usual / 4).await;
                theirs.read_exact(&mut bytes).await.expect("it is sent");
            }
        };
        let (sent, ()) = tokio::join!(stream.write_all(&[0; 128]), slow);
        sent.expect("it is taken, if slowly");
    }
}
