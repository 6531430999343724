//! A response being put together: status, headers, body.

use crate::wire::{headers, percent};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

/// Headers of a usual answer; more only costs one growth.
const HEADER_COUNT: usize = 40;

/// A response before it is given to the connection.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// An answer without a body.
    pub(crate) fn empty(status: StatusCode) -> Answer {
        Answer { status, headers: HeaderMap::with_capacity(HEADER_COUNT), body: Bytes::new() }
    }

    /// An answer with a JSON body.
    pub(crate) fn json(status: StatusCode, body: Vec<u8>) -> Answer {
        let mut answer = Answer::empty(status);
        answer.set_static(headers::CONTENT_TYPE, "application/json");
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

    pub(crate) fn set_static(&mut self, name: &'static str, value: &'static str) {
        self.headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }

    pub(crate) fn set_number(&mut self, name: &'static str, value: u64) {
        self.headers.insert(HeaderName::from_static(name), HeaderValue::from(value));
    }

    /// Sets a header; text that a header cannot hold is percent-encoded.
    pub(crate) fn set_text(&mut self, name: &'static str, text: impl Into<Bytes>) {
        let text: Bytes = text.into();
        let value = HeaderValue::from_maybe_shared(text.clone()).ok().filter(|value| value.to_str().is_ok());
        let value = value.unwrap_or_else(|| {
            let text = String::from_utf8_lossy(&text);
            let encoded = percent::encode_header_text(&text).into_owned();
            HeaderValue::from_maybe_shared(Bytes::from(encoded)).unwrap_or(HeaderValue::from_static(""))
        });
        self.headers.insert(HeaderName::from_static(name), value);
    }

    /// The request charge, as a decimal number.
    pub(crate) fn set_charge(&mut self, charge: f64) {
        let text = format!("{charge:.2}");
        let text = text.trim_end_matches('0').trim_end_matches('.').to_owned();
        self.set_text(headers::REQUEST_CHARGE, text);
    }

    /// The etag, quotes included.
    pub(crate) fn set_etag(&mut self, stamp: u64, timestamp: u64) {
        let mut text = Vec::with_capacity(38);
        crate::database::push_etag(stamp, timestamp, &mut text);
        self.set_text(headers::ETAG, text);
    }
}
