//! HTTP/1.1 connections to one endpoint: opened as needed, kept, bounded.
//!
//! In: a whole request. Out: status, headers and the whole body, or why there is none.
//! Invariants
//! - At most so many requests run at once; the others wait for their turn.
//! - A connection is used again only after its answer was read to the end.
//! - A request that fails says whether the server may have seen it.

use crate::endpoint::Endpoint;
use crate::error::ClientError;
use crate::options::ClientOptions;
use crate::tls;
use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

/// Longest time to connect, the handshake included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

type Sender = SendRequest<Full<Bytes>>;

/// What came back.
pub(crate) struct RawAnswer {
    pub(crate) status: u16,
    pub(crate) head: HeaderMap,
    pub(crate) body: Bytes,
}

/// The connections to an endpoint.
pub(crate) struct Transport {
    endpoint: Endpoint,
    tls: Option<TlsConnector>,
    idle: Mutex<Vec<Sender>>,
    /// What moves bytes on the connections; ends with this.
    drivers: Mutex<JoinSet<()>>,
    turns: Semaphore,
    answer_timeout: Duration,
    answer_bytes_max: usize,
}

impl Transport {
    pub(crate) fn new(options: &ClientOptions, endpoint: Endpoint) -> Result<Transport, ClientError> {
        let tls =
            if endpoint.is_tls { Some(TlsConnector::from(tls::config(options, &endpoint)?)) } else { None };
        Ok(Transport {
            endpoint,
            tls,
            idle: Mutex::default(),
            drivers: Mutex::default(),
            turns: Semaphore::new(options.connections_max.max(1)),
            answer_timeout: options.answer_timeout,
            answer_bytes_max: options.answer_bytes_max,
        })
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends a request once and reads its answer.
    pub(crate) async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<RawAnswer, ClientError> {
        let _turn = self.turns.acquire().await.map_err(|_| self.lost("the client is closed", false))?;
        let mut sender = self.sender().await?;
        let (answer, is_reusable) =
            tokio::time::timeout(self.answer_timeout, self.ask(&mut sender, request)).await.map_err(
                |_| self.lost(&format!("no answer in {} seconds", self.answer_timeout.as_secs()), true),
            )??;
        if is_reusable {
            self.idle.lock().push(sender);
        }
        Ok(answer)
    }

    async fn ask(
        &self,
        sender: &mut Sender,
        request: Request<Full<Bytes>>,
    ) -> Result<(RawAnswer, bool), ClientError> {
        let answer = sender.send_request(request).await.map_err(|error| {
            // Cancelled is what was never written, because the connection had closed before.
            self.lost(&described(&error), !error.is_canceled())
        })?;
        let (parts, body) = answer.into_parts();
        let closes = parts
            .headers
            .get(http::header::CONNECTION)
            .is_some_and(|value| value.to_str().is_ok_and(|value| value.eq_ignore_ascii_case("close")));
        let body = Limited::new(body, self.answer_bytes_max).collect().await.map_err(|error| {
            if error.is::<http_body_util::LengthLimitError>() {
                ClientError::TooLong { bytes_max: self.answer_bytes_max }
            } else {
                self.lost(&error.to_string(), true)
            }
        })?;
        let answer = RawAnswer { status: parts.status.as_u16(), head: parts.headers, body: body.to_bytes() };
        Ok((answer, !closes))
    }

    /// A kept connection that still stands, or a new one.
    async fn sender(&self) -> Result<Sender, ClientError> {
        loop {
            let kept = self.idle.lock().pop();
            match kept {
                None => break,
                Some(mut sender) => {
                    if sender.ready().await.is_ok() {
                        return Ok(sender);
                    }
                }
            }
        }
        tokio::time::timeout(CONNECT_TIMEOUT, self.connect()).await.map_err(|_| {
            self.unreachable(&format!("no connection in {} seconds", CONNECT_TIMEOUT.as_secs()))
        })?
    }

    async fn connect(&self) -> Result<Sender, ClientError> {
        let address = (self.endpoint.host.as_str(), self.endpoint.port);
        let stream =
            TcpStream::connect(address).await.map_err(|error| self.unreachable(&error.to_string()))?;
        stream.set_nodelay(true).map_err(|error| self.unreachable(&error.to_string()))?;
        let Some(tls) = &self.tls else { return self.speak(TokioIo::new(stream)).await };
        let name = ServerName::try_from(self.endpoint.host.clone())
            .map_err(|error| self.unreachable(&error.to_string()))?;
        let stream = tls.connect(name, stream).await.map_err(|error| {
            self.unreachable(&format!(
                "{error}. A certificate that nobody vouches for is accepted with --insecure, or with its authority in --ca"
            ))
        })?;
        self.speak(TokioIo::new(stream)).await
    }

    async fn speak<S>(&self, stream: TokioIo<S>) -> Result<Sender, ClientError>
    where
        TokioIo<S>: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    {
        let (sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(256 << 10)
            .handshake(stream)
            .await
            .map_err(|error| self.unreachable(&error.to_string()))?;
        let mut drivers = self.drivers.lock();
        while drivers.try_join_next().is_some() {}
        drivers.spawn(async move {
            // Whoever waits for an answer is told why there is none.
            let _ = connection.await;
        });
        Ok(sender)
    }

    fn unreachable(&self, what: &str) -> ClientError {
        ClientError::Connect { endpoint: self.endpoint.to_string(), what: what.to_owned() }
    }

    fn lost(&self, what: &str, is_ambiguous: bool) -> ClientError {
        ClientError::Lost { endpoint: self.endpoint.to_string(), what: what.to_owned(), is_ambiguous }
    }
}

/// An error with its cause, which hyper keeps apart.
fn described(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Transport({})", self.endpoint)
    }
}

/// Kept as an `Arc` by every clone of a client.
pub(crate) type SharedTransport = Arc<Transport>;
