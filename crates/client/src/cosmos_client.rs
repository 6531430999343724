//! The client of an account: signs, sends, tries again, and tells refusals from answers.

use crate::endpoint::Endpoint;
use crate::error::{ClientError, read_refusal};
use crate::options::ClientOptions;
use crate::retry;
use crate::sessions::SessionTokens;
use crate::target::RequestTarget;
use crate::transport::{RawAnswer, SharedTransport, Transport};
use astrarium_env::Instant;
use astrarium_wire::authorization::MasterKey;
use astrarium_wire::date::format_rfc1123;
use astrarium_wire::headers;
use astrarium_wire::percent::encode_component;
use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::Full;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The version of the protocol that is spoken.
const VERSION: &str = "2020-07-15";

/// A client of one account. Clones share connections, sessions and counters.
#[derive(Clone)]
pub struct CosmosClient {
    shared: Arc<ClientState>,
}

struct ClientState {
    transport: SharedTransport,
    key: MasterKey,
    options: ClientOptions,
    sessions: SessionTokens,
    counters: TrafficCounters,
}

#[derive(Default)]
struct TrafficCounters {
    requests: AtomicU64,
    throttled: AtomicU64,
    charge_hundredths: AtomicU64,
}

/// What a client has done so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traffic {
    /// Requests sent, those sent again included.
    pub requests: u64,
    /// Answers that asked to wait (429).
    pub throttled: u64,
    /// Request units spent.
    pub charge: f64,
}

/// An answer that is no refusal; 304 is one too.
#[derive(Debug, Clone)]
pub struct WireAnswer {
    /// Status.
    pub status: u16,
    /// Headers.
    pub head: HeaderMap,
    /// The body as sent.
    pub body: Bytes,
}

/// A request before it is signed.
#[derive(Debug, Clone)]
pub(crate) struct WireRequest {
    pub(crate) verb: &'static str,
    pub(crate) target: RequestTarget,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
    /// The container whose session it belongs to.
    pub(crate) container: Option<Arc<str>>,
    /// Whether sending it twice does no harm.
    pub(crate) is_read: bool,
}

impl WireRequest {
    pub(crate) fn new(verb: &'static str, target: RequestTarget) -> WireRequest {
        let is_read = matches!(verb, "GET" | "HEAD");
        WireRequest { verb, target, headers: Vec::new(), body: Bytes::new(), container: None, is_read }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> WireRequest {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn json(mut self, body: impl Into<Bytes>) -> WireRequest {
        self.body = body.into();
        if !self.headers.iter().any(|(name, _)| *name == headers::CONTENT_TYPE) {
            self.headers.push((headers::CONTENT_TYPE, "application/json".to_owned()));
        }
        self
    }
}

impl CosmosClient {
    /// A client; nothing is sent yet. See [`CosmosClient::check`].
    pub fn new(options: ClientOptions) -> Result<CosmosClient, ClientError> {
        let endpoint = Endpoint::parse(&options.endpoint)?;
        let key = MasterKey::from_base64(&options.key)
            .map_err(|error| ClientError::Settings(format!("the key of {endpoint} is wrong: {error}")))?;
        let transport = Arc::new(Transport::new(&options, endpoint)?);
        let shared = ClientState {
            transport,
            key,
            options,
            sessions: SessionTokens::default(),
            counters: TrafficCounters::default(),
        };
        Ok(CosmosClient { shared: Arc::new(shared) })
    }

    /// Where it sends to.
    pub fn endpoint(&self) -> &Endpoint {
        self.shared.transport.endpoint()
    }

    /// What was sent and spent so far.
    pub fn traffic(&self) -> Traffic {
        let counters = &self.shared.counters;
        Traffic {
            requests: counters.requests.load(Ordering::Relaxed),
            throttled: counters.throttled.load(Ordering::Relaxed),
            charge: counters.charge_hundredths.load(Ordering::Relaxed) as f64 / 100.0,
        }
    }

    /// Asks for the account: fails with a clear reason if nobody, or somebody else, listens there, or the key is wrong.
    pub async fn check(&self) -> Result<WireAnswer, ClientError> {
        let answer = self.send(WireRequest::new("GET", RequestTarget::account())).await?;
        let account: Option<serde_json::Value> = serde_json::from_slice(&answer.body).ok();
        if account.is_none_or(|account| account.get("writableLocations").is_none()) {
            return Err(self.not_cosmos("what it says about its account is something else"));
        }
        Ok(answer)
    }

    /// Sends any request of the protocol: for what has no method of its own. A `POST` counts as a write.
    pub async fn request(
        &self,
        verb: &'static str,
        target: RequestTarget,
        headers: Vec<(&'static str, String)>,
        body: impl Into<Bytes>,
    ) -> Result<WireAnswer, ClientError> {
        let mut request = WireRequest::new(verb, target);
        request.headers = headers;
        let body = body.into();
        self.send(if body.is_empty() { request } else { request.json(body) }).await
    }

    /// Sends a request, again if need be, until it is answered or patience ends.
    pub(crate) async fn send(&self, request: WireRequest) -> Result<WireAnswer, ClientError> {
        let began = Instant::now();
        let mut tries = 0;
        loop {
            let error = match self.send_once(&request).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let wait = retry::wait_before_next(&error, request.is_read, tries);
            let Some(wait) = wait.filter(|wait| began.elapsed() + *wait <= self.shared.options.patience)
            else {
                return Err(error);
            };
            tokio::time::sleep(wait).await;
            tries += 1;
        }
    }

    /// Sends a request one time. Refusals of its container's session make that be forgotten.
    pub(crate) async fn send_once(&self, request: &WireRequest) -> Result<WireAnswer, ClientError> {
        let signed = self.signed(request)?;
        let counters = &self.shared.counters;
        counters.requests.fetch_add(1, Ordering::Relaxed);
        let raw = self.shared.transport.exchange(signed).await?;
        let charge = header(&raw.head, headers::REQUEST_CHARGE).and_then(|text| text.parse::<f64>().ok());
        let hundredths = (charge.unwrap_or_default().clamp(0.0, 1e9) * 100.0).round() as u64;
        counters.charge_hundredths.fetch_add(hundredths, Ordering::Relaxed);
        if raw.status == 429 {
            counters.throttled.fetch_add(1, Ordering::Relaxed);
        }
        if let (Some(container), Some(token)) =
            (&request.container, header(&raw.head, headers::SESSION_TOKEN))
            && raw.status != 404
        {
            self.shared.sessions.record(container, token);
        }
        let result = self.judged(raw);
        if let (Err(ClientError::Refused(refusal)), Some(container)) = (&result, &request.container)
            && refusal.status == 404
            && matches!(refusal.substatus, 1002 | 1003)
        {
            self.shared.sessions.forget(container);
        }
        result
    }

    /// How long a request is tried again at most.
    pub(crate) fn patience(&self) -> Duration {
        self.shared.options.patience
    }

    /// The time by the clock of the client, in seconds since 1970.
    pub fn now_seconds(&self) -> u64 {
        self.shared.options.clock.now_micros() / 1_000_000
    }

    /// Counts an operation within a batch that was asked to wait.
    pub(crate) fn count_throttled(&self) {
        self.shared.counters.throttled.fetch_add(1, Ordering::Relaxed);
    }

    fn signed(&self, request: &WireRequest) -> Result<Request<Full<Bytes>>, ClientError> {
        let RequestTarget { path, resource_type, link } = &request.target;
        let date = format_rfc1123(self.now_seconds().cast_signed());
        let payload = format!(
            "{}\n{resource_type}\n{link}\n{}\n\n",
            request.verb.to_ascii_lowercase(),
            date.to_ascii_lowercase()
        );
        let signature = self.shared.key.sign_base64(payload.as_bytes());
        let authorization = format!("type=master&ver=1.0&sig={signature}");
        let mut builder = Request::builder()
            .method(request.verb)
            .uri(path)
            .header(headers::HOST, self.endpoint().authority())
            .header(headers::USER_AGENT, &self.shared.options.user_agent)
            .header(headers::VERSION, VERSION)
            .header(headers::X_MS_DATE, date)
            .header(headers::AUTHORIZATION, &*encode_component(&authorization));
        let range = request.headers.iter().find(|(name, _)| *name == headers::PARTITION_KEY_RANGE_ID);
        let session = request
            .container
            .as_ref()
            .and_then(|container| self.shared.sessions.header(container, range.map(|(_, id)| id.as_str())));
        if let Some(session) = session {
            builder = builder.header(headers::SESSION_TOKEN, session);
        }
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        let built = builder.body(Full::new(request.body.clone()));
        built.map_err(|error| ClientError::Settings(format!("the request cannot be sent: {error}")))
    }

    /// Tells answers from refusals, and both from what no server of the protocol says.
    fn judged(&self, raw: RawAnswer) -> Result<WireAnswer, ClientError> {
        let RawAnswer { status, head, body } = raw;
        let kind = header(&head, headers::CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
        let is_page = kind.contains("html") || body.trim_ascii_start().starts_with(b"<");
        match status {
            200..300 | 304 if is_page => Err(self.not_cosmos("it answers with a web page")),
            200..300 | 304 => Ok(WireAnswer { status, head, body }),
            300..400 => {
                let place = header(&head, "location").unwrap_or("another place").to_owned();
                Err(self.not_cosmos(&format!("it redirects to {place}")))
            }
            _ => match read_refusal(status, &head, &body) {
                Some(refusal) => Err(ClientError::Refused(Box::new(refusal))),
                None if is_page => {
                    Err(self.not_cosmos(&format!("it answers with status {status} and a web page")))
                }
                None => {
                    let start = String::from_utf8_lossy(&body).chars().take(120).collect::<String>();
                    Err(self.not_cosmos(&format!("it answers with status {status} and {start:?}")))
                }
            },
        }
    }

    fn not_cosmos(&self, what: &str) -> ClientError {
        ClientError::NotCosmos { endpoint: self.endpoint().to_string(), what: what.to_owned() }
    }
}

impl WireAnswer {
    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// The body as text.
    pub fn text(&self) -> Result<&str, ClientError> {
        std::str::from_utf8(&self.body).map_err(|_| ClientError::Protocol("it is not UTF-8".to_owned()))
    }

    /// The body as JSON, for definitions; documents are better left as text.
    pub fn json(&self) -> Result<serde_json::Value, ClientError> {
        serde_json::from_slice(&self.body).map_err(|error| ClientError::Protocol(error.to_string()))
    }

    /// Request units.
    pub fn charge(&self) -> f64 {
        self.header(headers::REQUEST_CHARGE).and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    /// The version of the resource, quotes included, or the position of a change feed.
    pub fn etag(&self) -> Option<&str> {
        self.header(headers::ETAG)
    }

    /// Where the next page begins.
    pub fn continuation(&self) -> Option<&str> {
        self.header(headers::CONTINUATION).filter(|text| !text.is_empty())
    }

    /// What to give when asking the server's operator.
    pub fn activity_id(&self) -> &str {
        self.header(headers::ACTIVITY_ID).unwrap_or_default()
    }
}

fn header<'a>(head: &'a HeaderMap, name: &str) -> Option<&'a str> {
    head.get(name).and_then(|value| value.to_str().ok())
}

impl std::fmt::Debug for CosmosClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "CosmosClient({})", self.endpoint())
    }
}
