//! One request from its first header to its answer: address, signature, operation, authorization, route, common headers,
//! counters.

use crate::answer::{Answer, digit, fixed_header, fixed_name, text_value};
use crate::authenticate::{self, Sender, SenderAccess, SessionSender};
use crate::cluster::Cluster;
use crate::counted::ConnectionMemory;
use crate::database::{Account, Error, Memory};
use crate::emulator_ports::{self, PortRole, PortState};
use crate::error::ErrorAnswer;
use crate::error_log_limit::ErrorLogLimit;
use crate::explorer::{Explorer, ExplorerSettings};
use crate::host::Hosts;
use crate::metrics::Metrics;
use crate::offload::Offload;
use crate::operation::Operation;
use crate::request::{Headers, Request, header};
use crate::request_log::Note;
use crate::wire::address::{Address, ResourceKind};
use crate::wire::authorization::{AccountKeys, DateWindow};
use crate::wire::consistency::ConsistencyLevel;
use crate::wire::continuation::SigningKey;
use crate::wire::headers;
use crate::{
    account_document, authorize, cross_origin, explorer, outdated, readiness, request_log, routes, session,
};
use bytes::Bytes;
use http::header::Entry;
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt as _, Full};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of a body that is too large that are read and dropped before the refusal; beyond that the connection ends.
const BODY_BYTES_DROPPED_MAX: usize = 64 << 20;
/// Bytes of the body of a request refused before that was read, as those without a good signature are, that are dropped.
const REFUSED_BYTES_DROPPED_MAX: usize = 4 << 20;
/// Longest time for such a body to arrive; longer ones are not waited for, and end the connection.
const REFUSED_BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// Throughput buckets of a container.
const THROUGHPUT_BUCKET_MAX: u32 = 5;

/// How the gateway behaves; everything here is a setting of the server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The account's keys.
    pub keys: AccountKeys,
    /// How old a signature may be.
    pub date_window: DateWindow,
    /// The endpoint to tell clients, instead of the one they used.
    pub public_endpoint: Option<String>,
    /// Names to answer to while the well-known key is in use, besides private ones and the public endpoint's.
    pub allowed_hosts: Vec<String>,
    /// Host and port to tell clients that name none.
    pub fallback_authority: String,
    /// Whether `X-Forwarded-*` headers come from a proxy of ours.
    pub trust_forwarded: bool,
    /// Origins whose browsers may use the server.
    pub cors_origins: Vec<String>,
    /// The account's consistency level.
    pub consistency: ConsistencyLevel,
    /// Whether queries over several ranges are merged here, also for clients that could do it themselves.
    pub whole_queries: bool,
    /// Whether every container serves the change feed of all versions and deletes, which `GET /` says.
    pub continuous_backup: bool,
    /// Whether that feed has the version before each replace and delete.
    pub previous_images: bool,
    /// Largest request body.
    pub body_bytes_max: usize,
    /// Longest time for a request's body to arrive.
    pub body_timeout: Duration,
    /// Whether every request is logged.
    pub log_requests: bool,
    /// How long a request takes that is logged because of it.
    pub slow_request: Option<Duration>,
    /// Whether operators may move the clock forwards.
    pub test_clock: bool,
    /// The certificate authority that clients may trust, as PEM.
    pub authority_pem: Option<String>,
    /// How the explorer behaves, if there is one.
    pub explorer: Option<ExplorerSettings>,
    /// What this server is called, if somebody said so.
    pub server_name: Option<String>,
    /// The other servers of the account, if there may be any.
    pub cluster: Option<Arc<dyn Cluster>>,
}

/// Whether a connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// Plain.
    Http,
    /// TLS.
    Https,
}

impl Scheme {
    /// As in a URL.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

/// Where a request came from.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) scheme: Scheme,
    /// The connection: what clients share is shared evenly between connections.
    pub(crate) client: u64,
    /// The machine at its other end, be it a proxy.
    pub(crate) address: IpAddr,
    /// What the connection may leave unread.
    pub(crate) memory: ConnectionMemory,
}

/// The server's side of the protocol. Cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    pub(crate) shared: Arc<GatewayState>,
    role: PortRole,
}

pub(crate) struct GatewayState {
    pub(crate) account: Account,
    pub(crate) settings: Settings,
    pub(crate) continuation_key: SigningKey,
    pub(crate) metrics: Metrics,
    pub(crate) hosts: Hosts,
    pub(crate) explorer: Option<Explorer>,
    pub(crate) offload: Offload,
    error_log_limit: ErrorLogLimit,
    started: HeaderValue,
}

impl Gateway {
    /// A gateway over an account.
    pub fn new(account: Account, settings: Settings) -> Gateway {
        let continuation_key = SigningKey::derive(&settings.keys.primary, "read feed");
        let now = i64::try_from(account.env().now_seconds()).unwrap_or_default();
        let started = crate::wire::date::format_rfc1123(now);
        let started = HeaderValue::from_str(&started).unwrap_or(HeaderValue::from_static(""));
        let metrics = Metrics::new(account.env().now_seconds());
        let is_well_known = settings.keys.has_well_known();
        let hosts = Hosts::new(is_well_known, settings.public_endpoint.as_deref(), &settings.allowed_hosts);
        let (offload, error_log_limit, explorer) =
            (Offload::new(), ErrorLogLimit::default(), Explorer::new(&settings));
        let shared = GatewayState {
            account,
            settings,
            continuation_key,
            metrics,
            hosts,
            explorer,
            offload,
            error_log_limit,
            started,
        };
        Gateway { shared: Arc::new(shared), role: PortRole::Account }
    }

    /// The same gateway for connections to a port of another role.
    #[must_use]
    pub fn at(&self, role: PortRole) -> Gateway {
        Gateway { shared: Arc::clone(&self.shared), role }
    }

    /// Memory for what clients can size.
    pub(crate) fn memory(&self) -> &Memory {
        self.shared.account.memory()
    }

    /// How many requests were answered so far.
    pub fn request_count(&self) -> u64 {
        self.shared.metrics.request_count()
    }

    /// Tells that background work stopped because of an error of the program.
    pub fn count_background_failure(&self) {
        self.shared.metrics.background_failures.inc();
    }

    /// A token to sign in to the explorer with once, for `/_explorer/#link=<token>`; nothing if there is no explorer.
    pub fn make_explorer_link(&self) -> Option<String> {
        self.shared.explorer.as_ref().map(|explorer| explorer.make_link(&self.shared.account))
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Answers a request. Never fails: what goes wrong is an answer too.
    pub(crate) async fn handle<B>(
        &self,
        request: http::Request<B>,
        peer: &Peer,
    ) -> http::Response<Full<Bytes>>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let began = Instant::now();
        let (parts, body) = request.into_parts();
        let activity_id = self.activity_id(&parts);
        let mut note = Note::new();
        let mut body = std::pin::pin!(body);
        let named = self.shared.hosts.check(&parts).map(|()| self.operator_page(&parts));
        let answered = match named {
            Ok(Some(answer)) => {
                note.is_probe = true;
                Ok(answer)
            }
            Ok(None) if explorer::is_ours(parts.uri.path()) => {
                // Apart, for every request's future would have room for it.
                Box::pin(explorer::serve(self, &parts, body.as_mut(), peer, &mut note)).await
            }
            Ok(None) => self.serve_for(&parts, body.as_mut(), peer, &mut note, None).await,
            Err(failure) => Err(failure),
        };
        let mut answer = answered.unwrap_or_else(|failure| {
            if failure.is_ours()
                && let Some(not_logged) = self.shared.error_log_limit.next(Instant::now())
            {
                tracing::error!(status = failure.status, activity_id, not_logged, "{}", failure.message);
            }
            note.failed(&self.shared.settings, &failure);
            failure.answer(&activity_id)
        });
        let late = answer.status == StatusCode::REQUEST_TIMEOUT;
        let closes = !body.is_end_stream() && (late || !drained(&parts, body).await);
        if let Some(body) = peer.memory.answer(std::mem::take(&mut answer.body)) {
            answer.body = body;
        } else {
            note.failed(&self.shared.settings, &no_memory());
            answer = no_memory().answer(&activity_id);
        }
        if closes {
            answer.headers.insert(http::header::CONNECTION, HeaderValue::from_static("close"));
        }
        let elapsed = began.elapsed();
        self.finish(&parts, &mut answer, &activity_id, elapsed);
        let charge = request_log::charge(&answer);
        self.shared.metrics.request(note.kind, answer.status, elapsed, answer.body.len(), charge);
        if let (Some(range), Some(action)) = (answer.served, note.action) {
            let is_throttled = answer.status == StatusCode::TOO_MANY_REQUESTS;
            self.shared.metrics.usage.count(range, action, charge, is_throttled);
        }
        if let Some(explorer) = &self.shared.explorer {
            explorer.note(self.shared.account.env(), &parts, &note, &answer, elapsed);
        }
        request_log::write(&self.shared.settings, &parts, peer.scheme, &note, &answer, elapsed);
        into_response(&parts.method, answer)
    }

    /// Pages for operators and tools, without signature.
    fn operator_page(&self, parts: &Parts) -> Option<Answer> {
        let shared = &self.shared;
        let state = || PortState { refusal: self.write_refusal() };
        if let Some(answer) = emulator_ports::answer(self.role, parts, shared.explorer.is_some(), state) {
            return Some(answer);
        }
        if parts.method == Method::OPTIONS {
            // No other origin may use the explorer.
            let is_explorer = explorer::is_ours(parts.uri.path());
            let origins = if is_explorer { &[][..] } else { &shared.settings.cors_origins };
            return Some(cross_origin::preflight(origins, &parts.headers));
        }
        if parts.method != Method::GET {
            return None;
        }
        match parts.uri.path() {
            "/alive" => Some(Answer::content("text/plain", "alive\n")),
            "/ready" | "/status" => Some(self.readiness()),
            "/metrics" => {
                let text =
                    shared.metrics.page(shared.account.monitoring(), shared.settings.cluster.as_deref());
                Some(Answer::content("application/openmetrics-text; version=1.0.0; charset=utf-8", text))
            }
            "/_explorer/emulator.pem" => {
                let pem = shared.settings.authority_pem.clone()?;
                Some(Answer::content("application/x-pem-file", pem))
            }
            _ => None,
        }
    }

    fn readiness(&self) -> Answer {
        match self.write_refusal() {
            None => {
                let monitoring = self.shared.account.monitoring();
                let health = monitoring.health();
                let cluster = self.shared.settings.cluster.as_ref();
                Answer::content(
                    "text/plain",
                    readiness::text(
                        &cluster.map(|cluster| cluster.remarks()).unwrap_or_default(),
                        &health.index_losses,
                        &monitoring.background_statistics(),
                        &health.damage,
                    ),
                )
            }
            Some(reason) => {
                let mut answer = Answer::content("text/plain", format!("not writing: {reason}\n"));
                answer.status = StatusCode::SERVICE_UNAVAILABLE;
                answer
            }
        }
    }

    /// Why no writes are taken, if none are.
    fn write_refusal(&self) -> Option<String> {
        let trouble = || self.shared.settings.cluster.as_ref().and_then(|cluster| cluster.trouble());
        self.shared.account.monitoring().health().write_refusal.clone().or_else(trouble)
    }

    /// Answers a request of the protocol, from whoever is known to have sent it already, or from whom its credentials say.
    pub(crate) async fn serve_for<B>(
        &self,
        parts: &Parts,
        body: Pin<&mut B>,
        peer: &Peer,
        note: &mut Note,
        known: Option<SessionSender>,
    ) -> Result<Answer, ErrorAnswer>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let shared = &self.shared;
        let address = Address::parse(parts.uri.path(), parts.uri.query());
        let address = address.map_err(|error| refuse_address(parts, known.is_some(), error))?;
        note.kind = address.kind;
        let headers = Headers::of(&parts.headers);
        let session_ends_at_seconds = known.as_ref().map(|session| session.ends_at_seconds);
        let sender = match known {
            // Nothing was signed that could tell that rids are meant; offers have nothing else.
            Some(SessionSender { access, .. }) => {
                Sender { access, by_rid: address.kind == ResourceKind::Offer }
            }
            None => authenticate::check(shared, parts, headers, &address)?,
        };
        if let SenderAccess::Token(token) = &sender.access {
            authorize::check_alive(shared, token).await?;
        }
        let operation = Operation::of(&parts.method, &address, headers)?;
        note.action = Some(operation.action);
        if operation.kind != ResourceKind::Account {
            self.check_headers(headers)?;
        }
        if sender.by_rid {
            authorize::check_rids(&address)?;
            authorize::refuse_ambiguous(shared, operation, &address).await?;
        }
        let request = Request {
            operation,
            address,
            by_rid: sender.by_rid,
            headers,
            body: self.read_body(parts, body, &peer.memory, shared.settings.body_bytes_max).await?,
            client: peer.client,
            session_ends_at_seconds,
            sees_tokens: matches!(sender.access, SenderAccess::Full),
        };
        let is_watched =
            || shared.explorer.as_ref().is_some_and(|explorer| explorer.is_watched(shared.account.env()));
        if operation.is_query() && (request_log::is_on(&shared.settings) || is_watched()) {
            note.query = Some(request.body.clone());
        }
        if operation.kind == ResourceKind::Account {
            authorize::check(shared, &sender.access, parts, &request).await?;
            let authority = parts.uri.authority().map(http::uri::Authority::as_str);
            return Ok(account_document::answer(&shared.settings, &parts.headers, authority, peer.scheme));
        }
        let assumed = outdated::assumed_container(shared, &request);
        let mut answer = match self.answer(&sender.access, parts, &request).await {
            Err(failure) if outdated::explains(shared, &request, assumed, &failure).await => {
                Box::pin(self.answer(&sender.access, parts, &request)).await?
            }
            answered => answered?,
        };
        answer.set_text(headers::CONTENT_LOCATION, self.location(parts, peer.scheme));
        Ok(answer)
    }

    /// Answers a request that was read, if its sender may make it.
    async fn answer(
        &self,
        access: &SenderAccess,
        parts: &Parts,
        request: &Request<'_>,
    ) -> Result<Answer, ErrorAnswer> {
        let shared = &self.shared;
        authorize::check(shared, access, parts, request).await?;
        let dispatched = routes::dispatch(shared, request);
        if request.operation.takes_as_long_as_its_body() {
            shared.offload.run_async(request.body.len(), dispatched).await
        } else {
            dispatched.await
        }
    }

    /// The address of a request as its client knows it.
    fn location(&self, parts: &Parts, scheme: Scheme) -> String {
        let authority = parts.uri.authority().map(http::uri::Authority::as_str);
        let mut location =
            account_document::endpoint(&self.shared.settings, &parts.headers, authority, scheme);
        let target = parts.uri.path_and_query().map_or("", http::uri::PathAndQuery::as_str);
        location.push_str(target.strip_prefix('/').unwrap_or(target));
        location
    }

    /// Headers whose value can be wrong whatever the route.
    fn check_headers(&self, headers: Headers<'_>) -> Result<(), ErrorAnswer> {
        session::level(self.shared.settings.consistency, headers)?;
        if let Some(text) = headers.get(headers::SESSION_TOKEN) {
            crate::wire::session::SessionToken::parse(text)
                .map_err(|_| ErrorAnswer::bad_request("The session token of the request is invalid."))?;
        }
        if let Some(text) = headers.get(headers::PRIORITY_LEVEL)
            && !text.eq_ignore_ascii_case("high")
            && !text.eq_ignore_ascii_case("low")
        {
            return Err(ErrorAnswer::bad_request("x-ms-cosmos-priority-level must be High or Low."));
        }
        if let Some(text) = headers.get(headers::THROUGHPUT_BUCKET)
            && !text.trim().parse::<u32>().is_ok_and(|bucket| (1..=THROUGHPUT_BUCKET_MAX).contains(&bucket))
        {
            return Err(ErrorAnswer::bad_request(format!(
                "x-ms-cosmos-throughput-bucket must be a number from 1 to {THROUGHPUT_BUCKET_MAX}."
            )));
        }
        Ok(())
    }

    pub(crate) async fn read_body<B>(
        &self,
        parts: &Parts,
        body: Pin<&mut B>,
        memory: &ConnectionMemory,
        bytes_max: usize,
    ) -> Result<Bytes, ErrorAnswer>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let settings = &self.shared.settings;
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        let length =
            header(&parts.headers, headers::CONTENT_LENGTH).and_then(|text| text.parse::<usize>().ok());
        if length.is_some_and(|length| length > BODY_BYTES_DROPPED_MAX) {
            return Err(Error::TooLarge.into());
        }
        let memory = memory.expect_body(length.unwrap_or(bytes_max).min(bytes_max)).ok_or_else(no_memory)?;
        match tokio::time::timeout(settings.body_timeout, collect(body, length, bytes_max)).await {
            Ok(collected) => collected.map(|body| memory.body(body)),
            Err(_) => Err(ErrorAnswer::new(408, "The request's body did not arrive in time.")),
        }
    }

    fn activity_id(&self, parts: &Parts) -> String {
        let given = header(&parts.headers, headers::ACTIVITY_ID);
        if let Some(given) = given.filter(|given| given.len() <= 64 && given.is_ascii()) {
            return given.to_owned();
        }
        uuid::Uuid::from_bytes(self.shared.account.env().random_uuid()).to_string()
    }

    /// The headers that every answer has.
    fn finish(&self, parts: &Parts, answer: &mut Answer, activity_id: &str, elapsed: Duration) {
        answer.headers.insert(fixed_name!(headers::ACTIVITY_ID), text_value(activity_id.as_bytes()));
        let charge = fixed_name!(headers::REQUEST_CHARGE);
        answer.headers.entry(charge).or_insert(HeaderValue::from_static("1"));
        if let Entry::Vacant(place) = answer.headers.entry(fixed_name!(headers::CACHE_CONTROL)) {
            place.insert(HeaderValue::from_static("no-store, no-cache"));
            fixed_header!(answer, headers::PRAGMA, "no-cache");
        }
        fixed_header!(answer, headers::SERVER, "Astrarium");
        fixed_header!(answer, headers::GATEWAY_VERSION, "version=2.14.0");
        fixed_header!(answer, headers::SERVICE_VERSION, "version=2.14.0.0");
        let micros = elapsed.as_micros() as u64;
        let mut duration = itoa::Buffer::new().format(micros / 1000).to_owned();
        let places = micros % 1000;
        duration.extend(['.', digit(places / 100), digit(places / 10 % 10), digit(places % 10)]);
        answer.headers.insert(fixed_name!(headers::REQUEST_DURATION_MS), text_value(duration.as_bytes()));
        answer.headers.insert(fixed_name!(headers::LAST_STATE_CHANGE_UTC), self.shared.started.clone());
        if explorer::is_ours(parts.uri.path()) {
            explorer::protect(answer);
        } else if !self.shared.settings.cors_origins.is_empty() {
            cross_origin::allow(&self.shared.settings.cors_origins, &parts.headers, &mut answer.headers);
        }
    }
}

/// Reads a body within its limit. What is beyond is read too, and dropped: most clients look for an answer only after
/// they have sent everything.
async fn collect<B>(
    mut body: Pin<&mut B>,
    length: Option<usize>,
    bytes_max: usize,
) -> Result<Bytes, ErrorAnswer>
where
    B: http_body::Body<Data = Bytes> + Send,
{
    let mut kept = Vec::new();
    let mut seen = 0;
    while let Some(frame) = body.frame().await {
        let cut = |_| ErrorAnswer::bad_request("The request's body ended before it was complete.");
        let Ok(data) = frame.map_err(cut)?.into_data() else { continue };
        seen += data.len();
        if seen > BODY_BYTES_DROPPED_MAX {
            return Err(Error::TooLarge.into());
        }
        // The usual case: the whole body came in one piece.
        if kept.is_empty() && length == Some(data.len()) && seen <= bytes_max {
            return Ok(data);
        }
        if seen <= bytes_max {
            kept.extend_from_slice(&data);
        } else {
            kept = Vec::new();
        }
    }
    if seen > bytes_max { Err(Error::TooLarge.into()) } else { Ok(kept.into()) }
}

/// Reads and drops what is left of a body that the answer did not need; gives whether that was all of it. Otherwise the next
/// request of the connection could not be told from it, and the connection has to end.
async fn drained<B>(parts: &Parts, mut body: Pin<&mut B>) -> bool
where
    B: http_body::Body<Data = Bytes> + Send,
{
    // Streams of HTTP/2 end alone. A client that waits for a sign to send its body will not send it now.
    if parts.version == http::Version::HTTP_2 {
        return true;
    }
    if parts.headers.contains_key(http::header::EXPECT)
        || body.size_hint().lower() > REFUSED_BYTES_DROPPED_MAX as u64
    {
        return false;
    }
    let all = async {
        let mut seen = 0;
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            seen += frame.data_ref().map_or(0, Bytes::len);
            if seen > REFUSED_BYTES_DROPPED_MAX {
                return false;
            }
        }
        true
    };
    tokio::time::timeout(REFUSED_BODY_TIMEOUT, all).await.unwrap_or(false)
}

/// An unknown path is told only to those who send credentials; nothing can be signed for it.
fn refuse_address(parts: &Parts, is_known: bool, error: crate::wire::address::AddressError) -> ErrorAnswer {
    match header(&parts.headers, headers::AUTHORIZATION) {
        None if !is_known => crate::wire::authorization::AuthorizationError::MissingHeader.into(),
        _ => ErrorAnswer::new(error.status(), error.to_string()),
    }
}

/// Bodies and answers that are under way take all the memory there is for them.
pub(crate) fn no_memory() -> ErrorAnswer {
    Error::Overloaded(
        "The server has no memory left for this request at the moment. Read the answers that wait for you, and retry after \
         a moment; or start the server with a larger --memory-budget."
            .to_owned(),
    )
    .into()
}

fn into_response(method: &Method, answer: Answer) -> http::Response<Full<Bytes>> {
    let length = answer.body.len();
    let head = method == Method::HEAD;
    let mut response = http::Response::new(Full::new(if head { Bytes::new() } else { answer.body }));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    // Clients read errors only with a known length; for HEAD it is the length a GET would have.
    if !matches!(answer.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        response.headers_mut().insert(http::header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}
