//! A response being put together: status, headers, body.

use crate::metrics::UsedRange;
use crate::wire::{headers, percent};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

/// Headers of a usual answer; more only costs one growth.
const HEADER_COUNT: usize = 40;
/// Bytes of a script's log in its header. Clients limit all headers together, some of them to 16 KiB.
const SCRIPT_LOG_BYTES_MAX: usize = 8 << 10;

/// A header name that is checked by the compiler instead of with every answer.
macro_rules! fixed_name {
    ($name:expr) => {{
        const NAME: http::HeaderName = http::HeaderName::from_static($name);
        NAME
    }};
}

/// Sets a header of a fixed name and value, both checked by the compiler.
macro_rules! fixed_header {
    ($answer:expr, $name:expr, $value:expr) => {{
        const VALUE: http::HeaderValue = http::HeaderValue::from_static($value);
        $answer.headers.insert($crate::answer::fixed_name!($name), VALUE);
    }};
}

pub(crate) use {fixed_header, fixed_name};

/// A response before it is given to the connection.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The range that served it, for what is counted of it.
    pub(crate) served: Option<UsedRange>,
}

impl Answer {
    /// An answer without a body.
    pub(crate) fn empty(status: StatusCode) -> Answer {
        Answer { status, headers: HeaderMap::with_capacity(HEADER_COUNT), body: Bytes::new(), served: None }
    }

    /// An answer with a JSON body.
    pub(crate) fn json(status: StatusCode, body: Vec<u8>) -> Answer {
        let mut answer = Answer::empty(status);
        fixed_header!(answer, headers::CONTENT_TYPE, "application/json");
        answer.body = body.into();
        answer
    }

    /// An answer of some other kind.
    pub(crate) fn content(content_type: &'static str, body: impl Into<Bytes>) -> Answer {
        let mut answer = Answer::empty(StatusCode::OK);
        answer.set_static(headers::CONTENT_TYPE, content_type);
        answer.body = body.into();
        answer
    }

    /// Sets a header whose value never changes. For paths that are not hot; see [`fixed_header`] for those that are.
    pub(crate) fn set_static(&mut self, name: &'static str, value: &'static str) {
        self.headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }

    pub(crate) fn set_number(&mut self, name: &'static str, value: u64) {
        self.headers.insert(HeaderName::from_static(name), HeaderValue::from(value));
    }

    /// Adds what scripts logged, as much of it as clients take in a header.
    pub(crate) fn set_script_log(&mut self, log: &str) {
        if log.is_empty() {
            return;
        }
        let mut end = log.floor_char_boundary(SCRIPT_LOG_BYTES_MAX);
        let mut encoded = percent::encode_component(&log[..end]);
        while encoded.len() > SCRIPT_LOG_BYTES_MAX {
            end = log.floor_char_boundary(end / 2);
            encoded = percent::encode_component(&log[..end]);
        }
        let encoded = encoded.into_owned();
        self.set_text(headers::SCRIPT_LOG_RESULTS, encoded);
    }

    /// Sets a header; text that a header cannot hold is percent-encoded.
    pub(crate) fn set_text(&mut self, name: &'static str, text: impl AsRef<[u8]>) {
        self.headers.insert(HeaderName::from_static(name), text_value(text.as_ref()));
    }

    /// The request charge, as a decimal number with at most two places.
    pub(crate) fn set_charge(&mut self, charge: f64) {
        let hundredths = (charge * 100.0).round() as u64;
        let mut text = itoa::Buffer::new().format(hundredths / 100).to_owned();
        match hundredths % 100 {
            0 => {}
            tenths if tenths % 10 == 0 => text.extend(['.', digit(tenths / 10)]),
            places => text.extend(['.', digit(places / 10), digit(places % 10)]),
        }
        self.headers.insert(fixed_name!(headers::REQUEST_CHARGE), text_value(text.as_bytes()));
    }

    /// The etag, quotes included.
    pub(crate) fn set_etag(&mut self, stamp: u64, timestamp: u64) {
        let mut text = Vec::with_capacity(38);
        crate::database::push_etag(stamp, timestamp, &mut text);
        self.headers.insert(http::header::ETAG, text_value(&text));
    }
}

/// A header's value; text that a header cannot hold is percent-encoded.
pub(crate) fn text_value(text: &[u8]) -> HeaderValue {
    if text.is_ascii()
        && let Ok(value) = HeaderValue::from_bytes(text)
    {
        return value;
    }
    let text = String::from_utf8_lossy(text);
    let encoded = percent::encode_header_text(&text);
    HeaderValue::from_str(&encoded).unwrap_or(HeaderValue::from_static(""))
}

/// The digit of a number below ten.
pub(crate) fn digit(number: u64) -> char {
    char::from(b'0' + number as u8)
}
