//! The `Authorization` header, account keys, and the check of a master-key signature.
//!
//! In: header texts and an [`crate::address::Address`]. Out: [`Signed`], or an [`AuthorizationError`] that knows its
//! status. The common case costs one HMAC.
//! Invariants
//! - Signatures are compared in constant time; which key or which candidate matched is not a secret.
//! - No error and no `Debug` output shows a key or a signature; the signed payload, which holds neither, is shown.
//! - Failure tries every candidate, date form and key, at most 6 × 2 × 4 hashes of a bounded text.
//!
//! Not here: resource tokens (`resource_token`), what a read-only key may do (`gateway` knows a query from a write).

mod account_keys;
mod master_key;

use std::borrow::Cow;

use crate::{date, percent};

pub use account_keys::{AccountKeys, DateWindow, KeyAccess, Signed, signing_payload};
pub use master_key::MasterKey;

/// Longest header read, before decoding: the longest token with every byte escaped.
const HEADER_BYTES_MAX: usize = 3 * 16 * 1024;

/// How a request proves who sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuthorizationKind {
    /// Signature with an account key.
    Master,
    /// Token issued with a permission; see [`crate::resource_token`].
    Resource,
    /// Token of the identity platform.
    Aad,
    /// Shared access signature, a preview of the service.
    Sas,
}

impl AuthorizationKind {
    /// Longest decoded header of this kind, in bytes.
    pub const fn bytes_max(self) -> usize {
        match self {
            AuthorizationKind::Master => 1024,
            AuthorizationKind::Resource => 8 * 1024,
            AuthorizationKind::Aad | AuthorizationKind::Sas => 16 * 1024,
        }
    }
}

/// The parts of an `Authorization` header.
#[derive(Clone, PartialEq, Eq)]
pub struct Authorization<'a> {
    /// What the signature is.
    pub kind: AuthorizationKind,
    /// The value of `sig`, decoded, up to the first comma.
    pub signature: Cow<'a, str>,
}

impl std::fmt::Debug for Authorization<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A token or signature in a log is a credential in a log.
        formatter.debug_struct("Authorization").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Why a request is not let in. Always the client's fault; `Display` is the message of the error body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthorizationError {
    /// There is no `Authorization` header.
    #[error("The authorization header is required for this request.")]
    MissingHeader,
    /// The header is not `type=…&ver=1.0&sig=…`.
    #[error("The authorization header is not in the expected form: {what}.")]
    Malformed {
        /// The part that is wrong.
        what: &'static str,
    },
    /// The header is longer than its kind allows.
    #[error("The authorization header is too long.")]
    TooLong,
    /// Neither `x-ms-date` nor `Date` was sent.
    #[error("The request needs an x-ms-date or Date header, which is part of what is signed.")]
    MissingDate,
    /// The date is not one of RFC 1123.
    #[error("The date header is not in RFC 1123 form, such as 'Thu, 27 Apr 2017 00:51:12 GMT'.")]
    BadDate,
    /// No key gives this signature for any payload that the request can mean.
    #[error(
        "The authorization token cannot serve this request. Either another key was used or the expected payload was not \
         built as the protocol says. The server signed the following payload: '{}'",
        payload.replace('\n', "\\n")
    )]
    SignatureMismatch {
        /// The text that the server signed.
        payload: String,
    },
    /// The signature is good, but not now.
    #[error(
        "The authorization token is not valid at the current time. Token start time: {}, token expiry time: {}, \
         current server time: {}. Check that the clock of the client is right.",
        date::format_rfc1123(*starts_at_seconds),
        date::format_rfc1123(*expires_at_seconds),
        date::format_rfc1123(*now_seconds)
    )]
    OutsideWindow {
        /// First second of validity.
        starts_at_seconds: i64,
        /// Last second of validity.
        expires_at_seconds: i64,
        /// The server's time.
        now_seconds: i64,
    },
}

impl AuthorizationError {
    /// The status to answer with: 403 for a good signature at the wrong time, else 401.
    pub const fn status(&self) -> u16 {
        match self {
            AuthorizationError::OutsideWindow { .. } => 403,
            _ => 401,
        }
    }
}

impl<'a> Authorization<'a> {
    /// Reads the header's value, percent-encoded (digits in either case) or not encoded at all.
    pub fn parse(header: &'a str) -> Result<Self, AuthorizationError> {
        let header = header.trim();
        if header.is_empty() {
            return Err(AuthorizationError::MissingHeader);
        }
        if header.len() > HEADER_BYTES_MAX {
            return Err(AuthorizationError::TooLong);
        }
        match percent::decode_once(header) {
            Some(Cow::Borrowed(text)) => {
                let (kind, signature) = split(text)?;
                Ok(Authorization { kind, signature: plus_for_space(signature) })
            }
            Some(Cow::Owned(text)) => {
                let (kind, signature) = split(&text)?;
                Ok(Authorization { kind, signature: Cow::Owned(plus_for_space(signature).into_owned()) })
            }
            None => Err(AuthorizationError::Malformed { what: "it is not UTF-8" }),
        }
    }
}

/// Kind and signature of a decoded header.
fn split(text: &str) -> Result<(AuthorizationKind, &str), AuthorizationError> {
    let malformed = |what| AuthorizationError::Malformed { what };
    let mut parts = text.splitn(3, '&');
    let kind = match value_of(parts.next(), "type").ok_or(malformed("type is missing"))? {
        value if value.eq_ignore_ascii_case("master") => AuthorizationKind::Master,
        value if value.eq_ignore_ascii_case("resource") => AuthorizationKind::Resource,
        value if value.eq_ignore_ascii_case("aad") => AuthorizationKind::Aad,
        value if value.eq_ignore_ascii_case("sas") => AuthorizationKind::Sas,
        _ => return Err(malformed("type is not one of master, resource, aad and sas")),
    };
    if text.len() > kind.bytes_max() {
        return Err(AuthorizationError::TooLong);
    }
    let version = value_of(parts.next(), "ver").ok_or(malformed("ver is missing"))?;
    if version != "1.0" && version != "1" {
        return Err(malformed("ver is not 1.0"));
    }
    let signature = value_of(parts.next(), "sig").ok_or(malformed("sig is missing"))?;
    let signature = signature.split_once(',').map_or(signature, |(before, _)| before);
    if signature.is_empty() {
        return Err(malformed("sig is empty"));
    }
    Ok((kind, signature))
}

/// A space can only be a plus sign that some layer took for form encoding: no signature contains spaces.
fn plus_for_space(signature: &str) -> Cow<'_, str> {
    if signature.contains(' ') { Cow::Owned(signature.replace(' ', "+")) } else { Cow::Borrowed(signature) }
}

/// The value of a `name=value` part; names compare without case.
fn value_of<'t>(part: Option<&'t str>, name: &str) -> Option<&'t str> {
    let (found, value) = part?.split_once('=')?;
    found.eq_ignore_ascii_case(name).then_some(value)
}

#[cfg(test)]
mod tests;
