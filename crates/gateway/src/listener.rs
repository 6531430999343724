//! Connections: accepting them, telling TLS from plain HTTP by the first byte, and ending them in good order.
//!
//! Invariants
//! - The number of connections is bounded; one too many is closed at once and counted.
//! - A connection that is slow in its first byte, its handshake or its headers is closed, and costs nobody else.
//! - On shutdown nothing new is accepted, what runs is finished, and idle connections are closed.

use crate::counted::ConnectionMemory;
use crate::framing::Framed;
use crate::service::{Gateway, Peer, Scheme};
use crate::timeouts::TimedStream;
use crate::wakeups::with_fewer_wakeups;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

/// The first byte of a TLS handshake record.
const TLS_HANDSHAKE: u8 = 0x16;
/// Most bytes of a request's headers: session tokens grow with the number of ranges. Anybody can make a connection hold them.
const HEADER_BYTES_MAX: usize = 64 << 10;
/// Requests of one HTTP/2 connection at once.
const STREAMS_MAX: u32 = 128;
/// What one HTTP/2 connection may send ahead of what was read of its bodies.
const WINDOW_BYTES: u32 = 1 << 20;
/// What is buffered of an answer beside the answer itself.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// Bounds of connections.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// Open connections at most.
    pub connections_max: usize,
    /// Longest time until the first byte and, for TLS, until the end of the handshake.
    pub handshake_timeout: Duration,
    /// Longest time between requests and for the headers of one.
    pub idle_timeout: Duration,
    /// Longest time that running requests may take after shutdown began.
    pub shutdown_timeout: Duration,
}

/// Serves connections until `shutdown` completes, then until the last running request is answered.
pub async fn serve(
    gateway: Gateway,
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    limits: ConnectionLimits,
    shutdown: impl Future<Output = ()>,
) {
    let acceptor = tls.map(TlsAcceptor::from);
    let places = Arc::new(Semaphore::new(limits.connections_max));
    let (stop, stopped) = watch::channel(false);
    tokio::pin!(shutdown);
    let mut number = 0;
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, most likely: wait for some to come back rather than spin.
                tracing::warn!(%error, "accept connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            gateway.metrics().connections_refused.inc();
            continue;
        };
        number += 1;
        let connection = Connection {
            number,
            gateway: gateway.clone(),
            acceptor: acceptor.clone(),
            limits,
            stopped: stopped.clone(),
        };
        #[expect(clippy::disallowed_methods, reason = "a connection is a task")]
        tokio::spawn(async move {
            connection.gateway.metrics().connections.inc();
            connection.run(stream).await;
            connection.gateway.metrics().connections.dec();
            drop(place);
        });
    }
    drop(listener);
    // Receivers may all be gone already.
    let _ = stop.send(true);
    drop(stopped);
    if tokio::time::timeout(limits.shutdown_timeout, stop.closed()).await.is_err() {
        tracing::warn!("requests still ran when the time for shutting down was over");
    }
}

struct Connection {
    /// Counted from 1, and never used again.
    number: u64,
    gateway: Gateway,
    acceptor: Option<TlsAcceptor>,
    limits: ConnectionLimits,
    stopped: watch::Receiver<bool>,
}

impl Connection {
    async fn run(&self, stream: TcpStream) {
        // Answers are single small writes: waiting to fill packets only delays them.
        let _ = stream.set_nodelay(true);
        let mut first = [0];
        let mut stopped = self.stopped.clone();
        let peeked = tokio::select! {
            peeked = tokio::time::timeout(self.limits.idle_timeout, stream.peek(&mut first)) => peeked,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        // A connection that is gone already has no address, and sends nothing either.
        let address = stream.peer_addr().map_or(Ipv4Addr::UNSPECIFIED.into(), |address| address.ip());
        let stream = TimedStream::new(stream, self.gateway.memory().clone());
        match (peeked, &self.acceptor) {
            (Ok(Ok(1)), Some(acceptor)) if first[0] == TLS_HANDSHAKE => {
                let handshake =
                    tokio::time::timeout(self.limits.handshake_timeout, acceptor.accept(stream)).await;
                if let Ok(Ok(stream)) = handshake {
                    self.serve(stream, Scheme::Https, address).await;
                }
            }
            (Ok(Ok(1)), _) => self.serve(stream, Scheme::Http, address).await,
            _ => {}
        }
    }

    async fn serve(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        scheme: Scheme,
        address: IpAddr,
    ) {
        let gateway = self.gateway.clone();
        let memory = ConnectionMemory::new(gateway.memory());
        let left_lying = memory.clone();
        let peer = Peer { scheme, address, client: self.number, memory };
        let arrived = Arc::new(AtomicBool::new(false));
        let silence = silence(arrived.clone(), self.limits.idle_timeout);
        let service = hyper::service::service_fn(move |request| {
            arrived.store(true, Ordering::Relaxed);
            let (gateway, peer) = (gateway.clone(), peer.clone());
            async move { Ok::<_, Infallible>(gateway.handle(request, &peer).await) }
        });
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.idle_timeout)
            .max_buf_size(HEADER_BYTES_MAX);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(self.limits.idle_timeout)
            .keep_alive_timeout(self.limits.handshake_timeout)
            .max_header_list_size(HEADER_BYTES_MAX as u32)
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_send_buf_size(SEND_BUFFER_BYTES)
            .max_concurrent_streams(STREAMS_MAX);
        let connection = builder.serve_connection(TokioIo::new(Framed::new(stream)), service);
        tokio::pin!(connection);
        let mut stopped = self.stopped.clone();
        // Errors here are the client's (reset, garbage instead of HTTP): nothing to tell anybody.
        let done = tokio::select! {
            _ = with_fewer_wakeups(connection.as_mut()) => true,
            () = silence => true,
            () = left_lying.left_lying() => true,
            _ = stopped.wait_for(|stopped| *stopped) => false,
        };
        if !done {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// Ends when no first request has arrived in time: until then hyper, which cannot know the version yet, sets no limit.
async fn silence(arrived: Arc<AtomicBool>, limit: Duration) {
    tokio::time::sleep(limit).await;
    if arrived.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}
