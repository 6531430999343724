//! A line of the log for a request: every one, if that is wanted, and those that took long.
//!
//! In: the request's head, what was noted while it was served, and the answer. Out: an event of the target `request`, or of
//! `slow_request` for those over the threshold.
//! Invariants
//! - No key, signature, token or partition key is logged, and of a query its shape only; of messages what is in double
//!   quotes is left out, since that is what clients sent.
//! - A line is bounded, whatever the client sends.

use crate::answer::Answer;
use crate::database::statement_shape;
use crate::database::value::json;
use crate::error::{ErrorAnswer, Form};
use crate::operation::Action;
use crate::request::header;
use crate::service::{Scheme, Settings};
use crate::wire::address::ResourceKind;
use crate::wire::headers;
use bytes::Bytes;
use http::request::Parts;
use std::time::Duration;

const METHOD_LENGTH_MAX: usize = 20;
const PATH_LENGTH_MAX: usize = 2_000;
const STATEMENT_LENGTH_MAX: usize = 2_000;
const MESSAGE_LENGTH_MAX: usize = 500;
const USER_AGENT_LENGTH_MAX: usize = 200;

/// What is noted of a request while it is served.
pub(crate) struct Note {
    pub(crate) kind: ResourceKind,
    /// What was asked for, once that is known.
    pub(crate) action: Option<Action>,
    /// The body of a query.
    pub(crate) query: Option<Bytes>,
    /// Why it failed.
    pub(crate) failure: Option<String>,
    /// Whether it was a page for operators and tools, which probes ask for every few seconds.
    pub(crate) is_probe: bool,
}

impl Note {
    pub(crate) fn new() -> Note {
        Note { kind: ResourceKind::Account, action: None, query: None, failure: None, is_probe: false }
    }

    /// Keeps why a request failed, if anybody will want to know.
    pub(crate) fn failed(&mut self, settings: &Settings, failure: &ErrorAnswer) {
        if is_on(settings) {
            self.failure = Some(message_of(failure));
        }
    }
}

/// Whether any request may be logged.
pub(crate) fn is_on(settings: &Settings) -> bool {
    settings.log_requests || settings.slow_request.is_some()
}

/// Logs an answered request, if it is to be.
pub(crate) fn write(
    settings: &Settings,
    parts: &Parts,
    scheme: Scheme,
    note: &Note,
    answer: &Answer,
    elapsed: Duration,
) {
    let slow = settings.slow_request.is_some_and(|threshold| elapsed >= threshold);
    if !slow && !settings.log_requests {
        return;
    }
    let method = cut(parts.method.as_str(), METHOD_LENGTH_MAX);
    let (path, version) = (cut(parts.uri.path(), PATH_LENGTH_MAX), parts.version);
    let (status, milliseconds) = (answer.status.as_u16(), elapsed.as_micros() as f64 / 1000.0);
    let (substatus, charge) = (number(answer, headers::SUBSTATUS) as u64, charge(answer));
    let activity_id = answer.headers.get(headers::ACTIVITY_ID).and_then(|id| id.to_str().ok());
    let statement = note.query.as_ref().map(|body| statement(parts, body));
    // A field called `message` would be printed without quotes.
    let (statement, error) = (statement.as_deref(), note.failure.as_deref());
    let user_agent = header(&parts.headers, "user-agent").map(|text| cut(text, USER_AGENT_LENGTH_MAX));
    let scheme = scheme.name();
    // The macro fixes level and target of a line where it stands.
    macro_rules! log {
        ($level:ident, $target:literal) => {
            tracing::$level!(
                target: $target,
                %method, path, status, substatus, charge, milliseconds, error, statement, user_agent, ?version, scheme,
                activity_id
            )
        };
    }
    if slow {
        log!(warn, "slow_request");
    } else {
        log!(info, "request");
    }
}

/// The charge of an answer.
pub(crate) fn charge(answer: &Answer) -> f64 {
    number(answer, headers::REQUEST_CHARGE)
}

/// The substatus of an answer, 0 if it has none.
pub(crate) fn substatus(answer: &Answer) -> u32 {
    number(answer, headers::SUBSTATUS) as u32
}

fn number(answer: &Answer, name: &str) -> f64 {
    answer.headers.get(name).and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(0.0)
}

/// The shape of the query in a body.
fn statement(parts: &Parts, body: &Bytes) -> String {
    let content_type = header(&parts.headers, headers::CONTENT_TYPE).unwrap_or_default();
    if content_type.starts_with("application/sql") {
        return statement_shape(&String::from_utf8_lossy(body), STATEMENT_LENGTH_MAX);
    }
    let parsed = json::Text::parse(body).ok();
    let text = parsed.as_ref().and_then(|body| body.root().get("query")).and_then(json::Node::as_str);
    text.map_or_else(String::new, |text| statement_shape(&text, STATEMENT_LENGTH_MAX))
}

/// Why a request failed, on one line and without what stands in quotes.
fn message_of(failure: &ErrorAnswer) -> String {
    match failure.form {
        Form::Sentence | Form::Opening => masked(&failure.message, &['"']),
        // The text near a mistake may be a value.
        Form::QueryFaults | Form::PlanFaults => {
            let faults: serde_json::Value = serde_json::from_str(&failure.message).unwrap_or_default();
            let faults = faults["errors"].as_array().map_or(&[][..], Vec::as_slice);
            let sentences: Vec<String> = faults
                .iter()
                .filter_map(|fault| Some(masked(fault["message"].as_str()?, &['"', '\''])))
                .collect();
            cut(&sentences.join(" "), MESSAGE_LENGTH_MAX).to_owned()
        }
    }
}

/// A text on one line, with nothing between pairs of these quotes; after one without a partner it ends.
fn masked(text: &str, quotes: &[char]) -> String {
    let mut masked = String::new();
    let mut rest = cut(text, MESSAGE_LENGTH_MAX);
    while let Some((before, after)) = rest.split_once(quotes) {
        let quote = rest[before.len()..].chars().next().unwrap_or('"');
        masked.push_str(before);
        masked.extend([quote, '.', '.', '.', quote]);
        rest = after.split_once(quote).map_or("", |(_, rest)| rest);
    }
    masked.push_str(rest);
    masked.replace(['\r', '\n'], " ")
}

pub(crate) fn cut(text: &str, length_max: usize) -> &str {
    &text[..text.floor_char_boundary(length_max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_hold_no_values() {
        let sentence = |text: &str| message_of(&ErrorAnswer::bad_request(text));
        assert_eq!(sentence("plain"), "plain");
        assert_eq!(
            sentence("Partition key [\"secret\"] is\r\ninvalid"),
            "Partition key [\"...\"] is  invalid"
        );
        assert_eq!(sentence("an end is \"secret"), "an end is \"...\"");
        assert!(sentence(&"é".repeat(10_000)).len() <= MESSAGE_LENGTH_MAX);
        let faults =
            r#"{"errors":[{"message":"Syntax error, incorrect syntax near 'secret'."},{"message":"two"}]}"#;
        let failure = ErrorAnswer { form: Form::QueryFaults, ..ErrorAnswer::bad_request(faults) };
        assert_eq!(message_of(&failure), "Syntax error, incorrect syntax near '...'. two");
    }
}
