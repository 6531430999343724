//! The last requests of all clients, for the inspector.
//!
//! In: each request that was answered. Out: those after a number, as JSON, some at a time.
//! Invariants
//! - Their number and their bytes are bounded, and a full ring uses its entries again: noting a request allocates nothing then, unless
//!   somebody looks at the oldest one.
//! - While a session is open every request waits for the ring's lock, so nothing is done under it that takes longer the more there is to
//!   show. Without a session nothing is kept, and a request reads one number.
//! - No key, signature or token is kept, no document, and of bodies those of queries only, if they are short, and the beginning of
//!   those of refusals. Only sessions of a key of the account may look at them, and those may query the data itself.
//! - The message of a refusal costs other requests nothing: only refused requests copy the first bytes of their answer, and parsing
//!   waits until the inspector reads them.

use crate::answer::Answer;
use crate::database::Env;
use crate::database::value::json::{Kind, Node, Text};
use crate::request::header;
use crate::request_log::{self, Note, cut};
use crate::wire::headers;
use http::request::Parts;
use serde_json::json;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Requests that are remembered.
const REQUESTS_MAX: usize = 500;
/// Longest body of a query that is.
const QUERY_BYTES_MAX: usize = 8 << 10;
/// About how many bytes one answer has; who looks asks for the rest.
const SHOWN_BYTES_MAX: usize = 1 << 20;
/// How much of the answer of a refused request is kept.
const REFUSAL_BYTES_MAX: usize = 2 << 10;
/// Longest message that is shown of one.
const MESSAGE_LENGTH_MAX: usize = 1_000;
const PATH_LENGTH_MAX: usize = 500;
const USER_AGENT_LENGTH_MAX: usize = 200;

/// The last requests, the oldest first.
#[derive(Default)]
pub(super) struct RequestRing {
    ring: Mutex<RingState>,
    /// Whether there may be any, so that forgetting them costs nothing where there are none.
    has_some: AtomicBool,
}

#[derive(Default)]
struct RingState {
    /// The number of the last one.
    last: u64,
    requests: VecDeque<Arc<NotedRequest>>,
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
    /// The beginning of the answer's body, if it says why the request was refused.
    refusal: Vec<u8>,
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
        self.has_some.store(true, Relaxed);
        ring.last += 1;
        let oldest = if ring.requests.len() < REQUESTS_MAX { None } else { ring.requests.pop_front() };
        // One that is being shown stays as it is.
        let mut shared = oldest.filter(|oldest| Arc::strong_count(oldest) == 1).unwrap_or_default();
        let Some(request) = Arc::get_mut(&mut shared) else { return };
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
        request.refusal.clear();
        if answer.status.is_client_error() || answer.status.is_server_error() {
            request.refusal.extend_from_slice(&answer.body[..answer.body.len().min(REFUSAL_BYTES_MAX)]);
        }
        request.is_sql = is_sql;
        request.is_of_explorer = is_of_explorer;
        ring.requests.push_back(shared);
    }

    /// Forgets all of them. Numbers go on, so that pages which ask for those after a number miss none.
    pub(super) fn forget(&self) {
        if self.has_some.load(Relaxed) && self.has_some.swap(false, Relaxed) {
            let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
            ring.requests = VecDeque::new();
        }
    }

    /// Those after a number, as a JSON array, the oldest first; and whether there are more of them.
    pub(super) fn after(&self, number: u64) -> (String, bool) {
        let later = self.later_than(number);
        let mut shown = String::from("[");
        for (index, request) in later.iter().enumerate() {
            if shown.len() >= SHOWN_BYTES_MAX {
                return (shown + "]", true);
            }
            shown.push_str(if index == 0 { "" } else { "," });
            shown.push_str(&request.to_json());
        }
        (shown + "]", false)
    }

    /// All of them, and the lock is free again.
    fn later_than(&self, number: u64) -> Vec<Arc<NotedRequest>> {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let first = ring.requests.partition_point(|request| request.number <= number);
        ring.requests.range(first..).cloned().collect()
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
            "message": self.message(),
        });
        // Numbers stay as they were sent.
        let parameters = parameters.unwrap_or_else(|| "null".to_owned());
        let shown = shown.to_string();
        format!("{},\"parameters\":{parameters}}}", shown.strip_suffix('}').unwrap_or(&shown))
    }

    /// Why the request was refused, if it was, in the words of the answer. A body that is longer than what was kept is no whole
    /// JSON, and is shown as it is.
    fn message(&self) -> Option<String> {
        if self.refusal.is_empty() {
            return None;
        }
        let parsed = Text::parse(&self.refusal).ok();
        let message = parsed.as_ref().and_then(|body| body.root().get("message")).and_then(Node::as_str);
        let message = message.unwrap_or_else(|| String::from_utf8_lossy(&self.refusal));
        Some(cut(&message, MESSAGE_LENGTH_MAX).to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn ring(count: u64, query: &str) -> RequestRing {
        let query = format!("{{\"query\":\"{query}\"}}").into_bytes();
        let request =
            |number| Arc::new(NotedRequest { number, query: query.clone(), ..NotedRequest::default() });
        let state = RingState { last: count, requests: (1..=count).map(request).collect() };
        RequestRing { ring: Mutex::new(state), has_some: AtomicBool::new(true) }
    }

    fn numbers(text: &str) -> Vec<u64> {
        let shown: Vec<Value> = serde_json::from_str(text).unwrap();
        shown.iter().map(|request| request["number"].as_u64().unwrap()).collect()
    }

    #[test]
    fn answers_are_bounded_and_go_on() {
        let (text, more) = ring(20, "SELECT 1").after(15);
        assert_eq!((numbers(&text), more), (vec![16, 17, 18, 19, 20], false));
        let ring = ring(500, &"\\u0001".repeat(1_300));
        let (mut seen, mut answers) = (Vec::new(), 0);
        loop {
            let (text, more) = ring.after(seen.last().copied().unwrap_or(0));
            assert!(text.len() < SHOWN_BYTES_MAX + (64 << 10), "{}", text.len());
            seen.extend(numbers(&text));
            answers += 1;
            if !more {
                break;
            }
        }
        assert!(answers > 2, "{answers}");
        assert_eq!(seen, (1..=500).collect::<Vec<u64>>());
    }

    /// What is shown is read without the lock that every request takes.
    #[test]
    fn nobody_waits_for_who_looks() {
        let ring = ring(500, "SELECT 1");
        let shown = ring.later_than(0);
        assert!(ring.ring.try_lock().is_ok());
        // A ring that goes round meanwhile changes nothing of it.
        note(&ring, "/dbs/new");
        assert_eq!((shown[0].number, shown[0].path.as_str()), (1, ""));
        drop(shown);
        let second = Arc::as_ptr(&ring.ring.lock().unwrap().requests[0]);
        note(&ring, "/dbs/newer");
        let state = ring.ring.lock().unwrap();
        assert_eq!((state.requests.len(), state.last), (500, 502));
        let newest = state.requests.back().unwrap();
        assert_eq!((Arc::as_ptr(newest), newest.path.as_str()), (second, "/dbs/newer"), "it is used again");
    }

    #[test]
    fn what_is_forgotten_is_gone_and_numbers_go_on() {
        let ring = ring(7, "SELECT 1");
        ring.forget();
        assert_eq!(ring.after(0), ("[]".to_owned(), false));
        note(&ring, "/dbs/next");
        assert_eq!(numbers(&ring.after(0).0), [8]);
    }

    /// The message of a refusal is shown, is bounded, and leaves with its request.
    #[test]
    fn refusals_say_why() {
        let messages = |ring: &RequestRing| -> Vec<Value> {
            let shown: Vec<Value> = serde_json::from_str(&ring.after(0).0).unwrap();
            shown.iter().map(|request| request["message"].clone()).collect()
        };
        let refused = |body: &str| Answer::json(http::StatusCode::BAD_REQUEST, body.as_bytes().to_vec());
        let ring = RequestRing::default();
        note_answer(&ring, "/", &refused(r#"{"code":"BadRequest","message":"No \"such\" thing."}"#));
        note_answer(&ring, "/", &refused(""));
        note_answer(&ring, "/", &Answer::json(http::StatusCode::OK, br#"{"message":"a document"}"#.to_vec()));
        assert_eq!(messages(&ring), [Value::from("No \"such\" thing."), Value::Null, Value::Null]);
        for body in [format!(r#"{{"message":"{}"}}"#, "é".repeat(900)), "é".repeat(REFUSAL_BYTES_MAX)] {
            note_answer(&ring, "/", &refused(&body));
            let kept = ring.ring.lock().unwrap().requests.back().unwrap().refusal.len();
            assert!(kept <= REFUSAL_BYTES_MAX, "{kept}");
            let message = messages(&ring).pop().unwrap();
            assert!(message.as_str().unwrap().len() <= MESSAGE_LENGTH_MAX, "{message}");
        }
        // An entry that is used again has nothing of the request before.
        for _ in 0..REQUESTS_MAX {
            note(&ring, "/");
        }
        assert!(messages(&ring).iter().all(Value::is_null));
    }

    fn note(ring: &RequestRing, path: &str) {
        note_answer(ring, path, &Answer::empty(http::StatusCode::OK));
    }

    fn note_answer(ring: &RequestRing, path: &str, answer: &Answer) {
        let parts = http::Request::builder().body(()).unwrap().into_parts().0;
        ring.add(&Env::system(), &parts, (path, false), &Note::new(), answer, Duration::ZERO);
    }
}
