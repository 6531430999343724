//! Continuation tokens: positions that the server hands out and later believes, because it signed them.
//!
//! In: a payload that only the server understands. Out: base64url text of a version byte, a signature of 16 bytes, and
//! the payload. An unscoped query wraps it as `{"token":"…","range":{"min":"","max":"FF"}}`, which one client parses.
//! Invariants
//! - The text is ASCII, needs no escaping in a header, and begins with a letter, so that no client takes it for its own
//!   JSON; a payload of [`PAYLOAD_BYTES_TYPICAL_MAX`] bytes stays below 1 KiB.
//! - Payloads are opened only by a key with the same purpose. The range of the wrapper is not signed: what must be
//!   believed belongs into the payload.
//!
//! Not here: what payloads say (`gateway`, `sql-exec`).

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::authorization::MasterKey;

/// Payload up to which a token has less than 1 KiB: (700 + 17) × 4 / 3 = 956 characters.
pub const PAYLOAD_BYTES_TYPICAL_MAX: usize = 700;

/// Longest token or wrapper read, in bytes.
pub const TOKEN_BYTES_MAX: usize = 16 * 1024;

const FORMAT_VERSION: u8 = 1;
const SIGNATURE_BYTES: usize = 16;
const HEAD_BYTES: usize = 1 + SIGNATURE_BYTES;

/// A key that signs tokens of one purpose; printing it shows nothing.
#[derive(Debug, Clone)]
pub struct SigningKey {
    derived: MasterKey,
}

impl SigningKey {
    /// Derives a key for `purpose` from an account key, so that tokens outlive a restart but not a change of key.
    pub fn derive(key: &MasterKey, purpose: &str) -> Self {
        let mut context = b"astrarium signing key\0".to_vec();
        context.extend_from_slice(purpose.as_bytes());
        SigningKey { derived: MasterKey::from_bytes(&key.sign(&context)) }
    }

    fn signature(&self, payload: &[u8]) -> [u8; SIGNATURE_BYTES] {
        let mut signed = Vec::with_capacity(payload.len() + 1);
        signed.push(FORMAT_VERSION);
        signed.extend_from_slice(payload);
        let mut signature = [0; SIGNATURE_BYTES];
        for (short, full) in signature.iter_mut().zip(self.derived.sign(&signed)) {
            *short = full;
        }
        signature
    }
}

/// The text is no token of ours. The client's fault: 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Invalid Continuation Token")]
pub struct InvalidContinuation;

/// Signs a payload and writes it as token.
pub fn seal(payload: &[u8], key: &SigningKey) -> String {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + payload.len());
    bytes.push(FORMAT_VERSION);
    bytes.extend_from_slice(&key.signature(payload));
    bytes.extend_from_slice(payload);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The payload of a token that [`seal`] made with the same key.
pub fn open(text: &str, key: &SigningKey) -> Result<Vec<u8>, InvalidContinuation> {
    if text.len() > TOKEN_BYTES_MAX {
        return Err(InvalidContinuation);
    }
    let mut bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| InvalidContinuation)?;
    let head: &[u8; HEAD_BYTES] = bytes.first_chunk().ok_or(InvalidContinuation)?;
    let [version, signature @ ..] = *head;
    let payload = bytes.get(HEAD_BYTES..).unwrap_or_default();
    let expected = key.signature(payload);
    if version != FORMAT_VERSION || !bool::from(expected.as_slice().ct_eq(signature.as_slice())) {
        return Err(InvalidContinuation);
    }
    bytes.drain(..HEAD_BYTES);
    Ok(bytes)
}

/// What a token is bound to, in eight bytes: the first of the SHA-256 of all parts, each after its length in eight bytes.
/// Tokens outlive versions of this server, so the hash is one whose output is a standard.
pub fn fingerprint(parts: &[&[u8]]) -> u64 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let digest: [u8; 32] = hash.finalize().into();
    digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A continuation as it comes back from a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation<'a> {
    /// What [`open`] takes.
    pub token: Cow<'a, str>,
    /// Bounds of the range that the wrapper names, if there is a wrapper; not to be believed.
    pub range: Option<EffectiveBounds>,
}

/// Bounds of effective partition keys, as hexadecimal text: the smallest inclusive, the greatest exclusive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveBounds {
    /// Lower bound, `""` for the beginning.
    pub min: String,
    /// Upper bound, `FF` for the end.
    pub max: String,
}

impl<'a> Continuation<'a> {
    /// Reads the header's value: a wrapper when it begins with `{`, else a plain token.
    pub fn parse(text: &'a str) -> Result<Self, InvalidContinuation> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(InvalidContinuation);
        }
        let text = text.trim();
        if !text.starts_with('{') {
            return Ok(Continuation { token: Cow::Borrowed(text), range: None });
        }
        let wrapper: serde_json::Value = serde_json::from_str(text).map_err(|_| InvalidContinuation)?;
        let text_at =
            |pointer| wrapper.pointer(pointer).and_then(serde_json::Value::as_str).map(str::to_owned);
        let token = text_at("/token").ok_or(InvalidContinuation)?;
        let range = text_at("/range/min").zip(text_at("/range/max")).ok_or(InvalidContinuation)?;
        Ok(Continuation {
            token: Cow::Owned(token),
            range: Some(EffectiveBounds { min: range.0, max: range.1 }),
        })
    }
}

/// Wraps a token of [`seal`] for an unscoped query; `min` and `max` are hexadecimal and need no escaping.
pub fn wrap(token: &str, min: &str, max: &str) -> String {
    let parts = [r#"{"token":""#, token, r#"","range":{"min":""#, min, r#"","max":""#, max, r#""}}"#];
    debug_assert!([token, min, max].iter().all(|part| part.bytes().all(is_plain)), "parts need escaping");
    parts.concat()
}

/// True for the bytes of base64url and hexadecimal text, which JSON takes as they are.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_text::EMULATOR_KEY;
    use proptest::prelude::*;

    fn key(purpose: &str) -> SigningKey {
        SigningKey::derive(&MasterKey::from_base64(EMULATOR_KEY).unwrap(), purpose)
    }

    #[track_caller]
    fn check(text: &str, expected: Option<(&str, Option<(&str, &str)>)>) {
        let parsed = Continuation::parse(text).ok();
        let found = parsed.as_ref().map(|found| {
            (found.token.as_ref(), found.range.as_ref().map(|range| (range.min.as_str(), range.max.as_str())))
        });
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn wrappers() {
        assert_eq!(wrap("AQ", "", "FF"), r#"{"token":"AQ","range":{"min":"","max":"FF"}}"#);
        check(&wrap("AQ", "", "FF"), Some(("AQ", Some(("", "FF")))));
        check(r#" { "range":{"max":"B","min":"A","x":1}, "token":"t" } "#, Some(("t", Some(("A", "B")))));
        check("AQ", Some(("AQ", None)));
        check("", Some(("", None)));
        check("{", None);
        check(r#"{"token":null,"range":{"min":"","max":"FF"}}"#, None);
        check(r#"{"token":"x"}"#, None);
        check(r#"{"token":"x","range":{"min":0,"max":"FF"}}"#, None);
        check(&r#"{"a":"#.repeat(2000), None);
        check(&"x".repeat(TOKEN_BYTES_MAX + 1), None);
    }

    /// The values come from `sha256sum`: another hash would refuse the tokens of servers before it.
    #[test]
    fn what_tokens_are_bound_to_never_changes() {
        assert_eq!(fingerprint(&[]), 0xe3b0_c442_98fc_1c14);
        assert_eq!(fingerprint(&[b"SELECT * FROM c"]), 0xd511_c639_96fd_50d9);
        assert_eq!(fingerprint(&[b"05C1", b"FF"]), 0x59b2_2f7e_b6a1_b085);
        assert_eq!(fingerprint(&[b"05C1FF", b""]), 0xf2e5_efca_b027_0d38);
    }

    #[test]
    fn shape_of_a_token() {
        let text = seal(&[0xFF; PAYLOAD_BYTES_TYPICAL_MAX], &key("query"));
        assert!(text.len() < 1024 && text.starts_with('A') && text.bytes().all(is_plain));
    }

    #[test]
    fn strangers_are_refused() {
        let text = seal(b"position", &key("query"));
        assert_eq!(open(&text, &key("query")).unwrap(), b"position");
        assert_eq!(open(&text, &key("feed")), Err(InvalidContinuation));
        for position in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[position] = if changed[position] == b'Q' { b'g' } else { b'Q' };
            assert_eq!(open(std::str::from_utf8(&changed).unwrap(), &key("query")), Err(InvalidContinuation));
        }
        for text in ["", "A", "AQ", "abc=", "-RID:~x#RT:1", &"A".repeat(TOKEN_BYTES_MAX + 4)] {
            assert_eq!(open(text, &key("query")), Err(InvalidContinuation), "{text}");
        }
        assert!(!format!("{:?}", key("query")).contains('['), "a key must not print bytes");
    }

    proptest! {
        #[test]
        fn reading_is_total(text in ".*", json in r#"\{("token"|"range"|"min"|:|,|\{|\}|"x"){0,12}\}"#) {
            prop_assert_eq!(open(&text, &key("query")), Err(InvalidContinuation));
            let _ = Continuation::parse(&text);
            let _ = Continuation::parse(&json);
        }

        #[test]
        fn payloads_round_trip(payload in proptest::collection::vec(any::<u8>(), 0..800)) {
            let text = seal(&payload, &key("query"));
            let wrapped = wrap(&text, "", "FF");
            let continuation = Continuation::parse(&wrapped).unwrap();
            prop_assert_eq!(open(&text, &key("query")), Ok(payload.clone()));
            prop_assert_eq!(open(&continuation.token, &key("query")), Ok(payload));
        }
    }
}
