//! A server that does nothing but HTTP: every request gets the same answer, made beforehand.

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use memchr::memmem;
use std::convert::Infallible;
use std::path::Path;
use tokio::net::TcpListener;

/// Serves the answer stored in a file until the process is killed. The headers are put together for each answer, as any
/// server must, from parts that are ready; the date is hyper's own work.
pub(crate) fn serve(answer: &Path, headers_max: usize) -> anyhow::Result<()> {
    let answer = std::fs::read(answer).context("read the answer")?;
    let end = memmem::find(&answer, b"\r\n\r\n").context("an answer has a head")?;
    let head = std::str::from_utf8(&answer[..end])?;
    let lines = head.split("\r\n").skip(1).filter_map(|line| line.split_once(": "));
    let lines = lines.filter(|(name, _)| *name != "date").take(headers_max.saturating_sub(1));
    let headers = lines.map(|(name, value)| Ok((HeaderName::try_from(name)?, HeaderValue::try_from(value)?)));
    let headers = headers.collect::<anyhow::Result<Vec<_>>>()?;
    let body = Bytes::copy_from_slice(&answer[end + 4..]);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(accept(headers, body))
}

async fn accept(headers: Vec<(HeaderName, HeaderValue)>, body: Bytes) -> anyhow::Result<()> {
    let headers: &'static [(HeaderName, HeaderValue)] = Vec::leak(headers);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening at http://{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let body = body.clone();
        let service = service_fn(move |_: Request<Incoming>| {
            let body = body.clone();
            async move {
                let mut response = Response::new(Full::new(body));
                let mut own = HeaderMap::with_capacity(headers.len());
                for (name, value) in headers {
                    own.insert(name.clone(), value.clone());
                }
                *response.headers_mut() = own;
                Ok::<_, Infallible>(response)
            }
        });
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        #[expect(clippy::disallowed_methods, reason = "a connection is a task")]
        tokio::spawn(connection);
    }
}
