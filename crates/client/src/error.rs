//! What can go wrong, and whose fault it is.

use astrarium_wire::headers;
use bytes::Bytes;
use http::HeaderMap;
use std::time::Duration;

/// Why a request has no good answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClientError {
    /// The endpoint, the key or another setting is wrong: the caller's to mend; nothing was sent.
    #[error("{0}")]
    Settings(String),
    /// Nobody answers at the endpoint: start the server, or mend the address.
    #[error("connect to {endpoint} (is the server running?): {what}")]
    Connect {
        /// Where.
        endpoint: String,
        /// Why.
        what: String,
    },
    /// The connection broke or no answer came in time.
    #[error("{endpoint} did not answer: {what}")]
    Lost {
        /// Where.
        endpoint: String,
        /// Why.
        what: String,
        /// Whether the server may have done what was asked.
        is_ambiguous: bool,
    },
    /// Something else listens there: mend the address.
    #[error("{endpoint} is not a server of Cosmos DB's protocol: {what}")]
    NotCosmos {
        /// Where.
        endpoint: String,
        /// What it answers.
        what: String,
    },
    /// The answer is longer than the client reads.
    #[error("the answer is longer than {bytes_max} bytes; ask for smaller pages")]
    TooLong {
        /// The bound.
        bytes_max: usize,
    },
    /// The server refused.
    #[error("{0}")]
    Refused(Box<ServerRefusal>),
    /// The answer is not what the protocol says: the server's fault.
    #[error("the server's answer is not understood: {0}")]
    Protocol(String),
    /// The query needs merging that this client does not do.
    #[error("{0}")]
    Unsupported(String),
}

/// A refusal as the server told it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerRefusal {
    /// Status.
    pub status: u16,
    /// What refines it; zero for nothing.
    pub substatus: u32,
    /// The name of the status.
    pub code: String,
    /// The reason in plain words, without the envelope that the service puts around it.
    pub message: String,
    /// The whole message as sent.
    pub raw_message: String,
    /// Where in the text of a query the fault is, in UTF-16 units as the server counts: start and end.
    pub location: Option<(usize, usize)>,
    /// The plan that comes with the refusal of a query over all partitions.
    pub additional_info: Option<String>,
    /// What to give when asking the server's operator.
    pub activity_id: String,
    /// Request units it cost.
    pub charge: f64,
    /// How long to wait before the next try, if the server says.
    pub retry_after: Option<Duration>,
}

impl std::fmt::Display for ServerRefusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ServerRefusal { status, substatus, code, message, activity_id, .. } = self;
        write!(formatter, "{status}")?;
        if *substatus != 0 {
            write!(formatter, "/{substatus}")?;
        }
        write!(formatter, " {code}: {message}")?;
        if !activity_id.is_empty() {
            write!(formatter, " (activity {activity_id})")?;
        }
        Ok(())
    }
}

impl ClientError {
    /// The server's refusal, if it is one.
    pub fn refusal(&self) -> Option<&ServerRefusal> {
        match self {
            ClientError::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// The status of a refusal; zero if it is none.
    pub fn status(&self) -> u16 {
        self.refusal().map_or(0, |refusal| refusal.status)
    }

    /// Whether the server may have done what was asked although it does not say so: there is no answer, or one that tells of a failure on its side.
    pub fn is_ambiguous(&self) -> bool {
        matches!(self, ClientError::Lost { is_ambiguous: true, .. } | ClientError::TooLong { .. })
            || is_ambiguous_status(self.status())
    }
}

/// Whether a write that was refused with a status may have been done.
pub(crate) fn is_ambiguous_status(status: u16) -> bool {
    matches!(status, 408 | 500 | 503)
}

/// Reads an error body; none if it is not one of the protocol.
pub(crate) fn read_refusal(status: u16, head: &HeaderMap, body: &Bytes) -> Option<ServerRefusal> {
    let text = |name: &str| head.get(name).and_then(|value| value.to_str().ok());
    let number = |name: &str| text(name).and_then(|text| text.parse().ok());
    let parsed: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let is_plain_status = body.is_empty() && text(headers::REQUEST_CHARGE).is_some();
    let parsed = match parsed {
        Some(value) if value.is_object() => value,
        _ if is_plain_status => serde_json::Value::Null,
        _ => return None,
    };
    let member = |name: &str| parsed.get(name).and_then(serde_json::Value::as_str).map(str::to_owned);
    let raw_message = member("message");
    if raw_message.is_none() && member("code").is_none() && !is_plain_status {
        return None;
    }
    let raw_message = raw_message.unwrap_or_else(|| "no reason is given".to_owned());
    Some(ServerRefusal {
        status,
        substatus: number(headers::SUBSTATUS).unwrap_or(0.0) as u32,
        code: member("code").unwrap_or_default(),
        message: plain_message(&raw_message),
        location: location(&raw_message),
        additional_info: member("additionalErrorInfo"),
        raw_message,
        activity_id: text(headers::ACTIVITY_ID).unwrap_or_default().to_owned(),
        charge: number(headers::REQUEST_CHARGE).unwrap_or(0.0),
        retry_after: number(headers::RETRY_AFTER_MS)
            .filter(|wait| (0.0..=600_000.0).contains(wait))
            .map(|wait| Duration::from_millis(wait as u64)),
    })
}

/// The JSON inside a message: after `Message: `, or the whole of it.
fn inner(message: &str) -> Option<serde_json::Value> {
    let start = message.find('{')?;
    let mut values =
        serde_json::Deserializer::from_str(message.get(start..)?).into_iter::<serde_json::Value>();
    values.next()?.ok()
}

/// The first reason, without envelope and without the lines about the request.
fn plain_message(message: &str) -> String {
    if let Some(value) = inner(message) {
        let listed =
            value.get("Errors").or_else(|| value.get("errors")).and_then(serde_json::Value::as_array);
        let told = listed.into_iter().flatten().find_map(|one| match one {
            serde_json::Value::String(text) => Some(plain_message(text)),
            other => other.get("message").and_then(serde_json::Value::as_str).map(str::to_owned),
        });
        if let Some(told) = told {
            return told;
        }
    }
    let first = message.split("\r\nActivityId:").next().unwrap_or(message);
    first.trim().trim_start_matches("Message: ").to_owned()
}

fn location(message: &str) -> Option<(usize, usize)> {
    let value = inner(message)?;
    let errors = value.get("errors").or_else(|| value.get("Errors"))?.as_array()?;
    errors.iter().find_map(|error| match error {
        serde_json::Value::String(text) if text.contains("\"location\"") => location(text),
        other => {
            let place = other.get("location")?;
            let at = |name: &str| place.get(name).and_then(serde_json::Value::as_u64).map(|at| at as usize);
            Some((at("start")?, at("end")?))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_taken_out_of_their_envelopes() {
        let wrapped = "Message: {\"Errors\":[\"There is no such thing.\"]}\r\nActivityId: 7, Request URI: /x";
        assert_eq!(plain_message(wrapped), "There is no such thing.");
        assert_eq!(plain_message("plain\r\nActivityId: 7"), "plain");
        let syntax = "{\"errors\":[{\"severity\":\"Error\",\"location\":{\"start\":7,\"end\":12},\"code\":\"SC1001\",\
                      \"message\":\"Syntax error, incorrect syntax near 'FROMM'.\"}]}";
        assert_eq!(plain_message(syntax), "Syntax error, incorrect syntax near 'FROMM'.");
        assert_eq!(location(syntax), Some((7, 12)));
        assert_eq!(location(&format!("Message: {syntax}\r\nActivityId: 7")), Some((7, 12)));
        let nested = format!("Message: {{\"Errors\":[{}]}}", serde_json::Value::from(syntax));
        assert_eq!(location(&nested), Some((7, 12)));
        assert_eq!(plain_message(&nested), "Syntax error, incorrect syntax near 'FROMM'.");
    }

    #[test]
    fn bodies_that_are_no_refusals() {
        let head = HeaderMap::new();
        for body in ["", "<html></html>", "[]", "7", "{}", "{\"error\":\"x\"}"] {
            assert!(read_refusal(404, &head, &Bytes::from(body)).is_none(), "{body}");
        }
        let refusal =
            read_refusal(404, &head, &Bytes::from("{\"code\":\"NotFound\",\"message\":\"gone\"}")).unwrap();
        assert_eq!(refusal.to_string(), "404 NotFound: gone");
    }
}
