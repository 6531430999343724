//! The last requests of all clients, for the inspector.
//!
//! In: each request that was answered. Out: those after a number, as JSON.
//! Invariants
//! - Their number and their bytes are bounded, and a full ring uses its entries again: noting a request allocates nothing then.
//! - No key, signature or token is kept, no document, and of bodies those of queries only, if they are short. Who may look at them may
//!   query the data itself.

use crate::answer::Answer;
use crate::database::Env;
use crate::database::value::json::{Kind, Node, Text};
use crate::request::header;
use crate::request_log::{self, Note, cut};
use crate::wire::headers;
use http::request::Parts;
use serde_json::json;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Requests that are remembered.
const REQUESTS_MAX: usize = 500;
/// Longest body of a query that is.
const QUERY_BYTES_MAX: usize = 8 << 10;
const PATH_LENGTH_MAX: usize = 500;
const USER_AGENT_LENGTH_MAX: usize = 200;

/// The last requests, the oldest first.
#[derive(Default)]
pub(super) struct RequestRing {
    ring: Mutex<RingState>,
}

#[derive(Default)]
struct RingState {
    /// The number of the last one.
    last: u64,
    requests: VecDeque<NotedRequest>,
}

/// A request that was answered.
#[derive(Default)]
struct NotedRequest {
    number: u64,
    at_micros: u64,
    method: http::Method,
    path: String,
    status: u16,
    substatus: u32,
    charge: f64,
    elapsed: Duration,
    activity_id: String,
    user_agent: String,
    /// The body of a query; empty if it was none, or too long.
    query: Vec<u8>,
    is_long_query: bool,
    /// Whether the body is the bare text.
    is_sql: bool,
    is_of_explorer: bool,
}

impl RequestRing {
    /// Remembers a request, and forgets the oldest one.
    pub(super) fn add(
        &self,
        env: &Env,
        parts: &Parts,
        (path, is_of_explorer): (&str, bool),
        note: &Note,
        answer: &Answer,
        elapsed: Duration,
    ) {
        let activity_id = answer.headers.get(headers::ACTIVITY_ID).and_then(|id| id.to_str().ok());
        let user_agent = header(&parts.headers, "user-agent").unwrap_or_default();
        let query = note.query.as_deref().unwrap_or_default();
        let is_sql = !query.is_empty()
            && header(&parts.headers, headers::CONTENT_TYPE)
                .is_some_and(|content_type| content_type.starts_with("application/sql"));
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.last += 1;
        let mut request = if ring.requests.len() < REQUESTS_MAX {
            NotedRequest::default()
        } else {
            ring.requests.pop_front().unwrap_or_default()
        };
        request.number = ring.last;
        request.at_micros = env.now_micros();
        request.method.clone_from(&parts.method);
        fill(&mut request.path, cut(path, PATH_LENGTH_MAX));
        request.status = answer.status.as_u16();
        request.substatus = request_log::substatus(answer);
        request.charge = request_log::charge(answer);
        request.elapsed = elapsed;
        fill(&mut request.activity_id, activity_id.unwrap_or_default());
        fill(&mut request.user_agent, cut(user_agent, USER_AGENT_LENGTH_MAX));
        request.is_long_query = query.len() > QUERY_BYTES_MAX;
        request.query.clear();
        if !request.is_long_query {
            request.query.extend_from_slice(query);
        }
        request.is_sql = is_sql;
        request.is_of_explorer = is_of_explorer;
        ring.requests.push_back(request);
    }

    /// Those after a number, as a JSON array.
    pub(super) fn after(&self, number: u64) -> String {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let later = ring.requests.iter().filter(|request| request.number > number);
        let shown: Vec<String> = later.map(NotedRequest::to_json).collect();
        format!("[{}]", shown.join(","))
    }
}

fn fill(place: &mut String, text: &str) {
    place.clear();
    place.push_str(text);
}

impl NotedRequest {
    fn to_json(&self) -> String {
        let (sql, parameters) = self.statement();
        let shown = json!({
            "number": self.number,
            "time": self.at_micros as f64 / 1e6,
            "method": cut(self.method.as_str(), 20),
            "path": self.path,
            "status": self.status,
            "substatus": self.substatus,
            "charge": self.charge,
            "milliseconds": self.elapsed.as_micros() as f64 / 1e3,
            "activityId": self.activity_id,
            "userAgent": self.user_agent,
            "explorer": self.is_of_explorer,
            "longQuery": self.is_long_query,
            "sql": sql,
        });
        // Numbers stay as they were sent.
        let parameters = parameters.unwrap_or_else(|| "null".to_owned());
        let shown = shown.to_string();
        format!("{},\"parameters\":{parameters}}}", shown.strip_suffix('}').unwrap_or(&shown))
    }

    /// The query's text, and its parameters as they were sent.
    fn statement(&self) -> (Option<String>, Option<String>) {
        if self.query.is_empty() {
            return (None, None);
        }
        if self.is_sql {
            return (Some(String::from_utf8_lossy(&self.query).into_owned()), None);
        }
        let Ok(body) = Text::parse(&self.query) else { return (None, None) };
        let text = body.root().get("query").and_then(Node::as_str).map(std::borrow::Cow::into_owned);
        let list = body.root().get("parameters").filter(|list| list.kind() == Kind::Array);
        (text, list.map(|list| list.raw().to_owned()))
    }
}
