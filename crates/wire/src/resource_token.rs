//! Resource tokens: what a permission allows, signed by the account's key and carried by the client.
//!
//! In and out: `type=resource&ver=1.0&sig=<content>;<signature>;`, where both parts are base64url without padding, so
//! that the token survives being percent-encoded or not. The content is binary: a version byte, mode, the permission's
//! etag, two times, and texts behind their lengths.
//! Invariants
//! - Nothing of the content is believed before its signature is checked, in constant time, over a text that no other
//!   use of the key can produce.
//! - A token that was issued can be verified: content that would make it longer than a header allows is not issued.
//!
//! Not here: whether a request lies within the permitted resource (`gateway`), lifetimes (`database`).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq as _;

use crate::authorization::{AuthorizationKind, MasterKey};

/// What stands before the content in a token.
const PREFIX: &str = "type=resource&ver=1.0&sig=";

/// Keeps these signatures apart from those of requests (whose first line is a verb) and of continuations.
const CONTEXT: &[u8] = b"astrarium resource token\0";

const FORMAT_VERSION: u8 = 2;

/// What a permission allows on its resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenMode {
    /// Reads and queries.
    Read,
    /// Everything.
    All,
}

/// The content of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceToken {
    /// Resource id of the permission, so that a deleted one can be refused.
    pub permission_rid: String,
    /// Which version of the permission this is of, so that a changed one can be refused.
    pub permission_etag: u64,
    /// What may be done.
    pub mode: TokenMode,
    /// The permitted resource, as path of resource ids or whatever form the issuer compares.
    pub resource: String,
    /// The only partition key allowed, as the JSON text of its array; `None` allows all.
    pub partition_key: Option<String>,
    /// When the token was made, seconds since 1970.
    pub issued_at_seconds: u64,
    /// First second in which the token is no longer good.
    pub expires_at_seconds: u64,
}

/// Why there is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResourceTokenError {
    /// Not a token, or changed since it was issued, or issued with another key. The client's fault: 401.
    #[error("The resource token is not valid.")]
    Invalid,
    /// The token was good once. The client's fault, to be mended by reading the permission again: 403.
    #[error("The resource token has expired.")]
    Expired {
        /// When that happened.
        expired_at_seconds: u64,
    },
    /// The permission's texts do not fit into a header. The fault of whoever made the permission: 400.
    #[error("The permission is too large for a resource token.")]
    TooLong,
}

impl ResourceTokenError {
    /// The status to answer with.
    pub const fn status(self) -> u16 {
        match self {
            ResourceTokenError::Invalid => 401,
            ResourceTokenError::Expired { .. } => 403,
            ResourceTokenError::TooLong => 400,
        }
    }
}

impl ResourceToken {
    /// The text of the token, for the `_token` property of a permission.
    pub fn issue(&self, key: &MasterKey) -> Result<String, ResourceTokenError> {
        let mut signed = CONTEXT.to_vec();
        self.write(&mut signed)?;
        let signature = key.sign(&signed);
        let content = signed.get(CONTEXT.len()..).unwrap_or_default();
        let mut text = String::from(PREFIX);
        URL_SAFE_NO_PAD.encode_string(content, &mut text);
        text.push(';');
        URL_SAFE_NO_PAD.encode_string(signature, &mut text);
        text.push(';');
        if text.len() > AuthorizationKind::Resource.bytes_max() {
            return Err(ResourceTokenError::TooLong);
        }
        Ok(text)
    }

    /// Reads a token, whole or only its `sig`; decoded, as [`crate::authorization::Authorization::parse`] leaves it.
    pub fn verify(text: &str, key: &MasterKey, now_seconds: u64) -> Result<Self, ResourceTokenError> {
        let token = read_signed(text, key).ok_or(ResourceTokenError::Invalid)?;
        if now_seconds >= token.expires_at_seconds {
            return Err(ResourceTokenError::Expired { expired_at_seconds: token.expires_at_seconds });
        }
        Ok(token)
    }

    fn write(&self, output: &mut Vec<u8>) -> Result<(), ResourceTokenError> {
        let mode = match self.mode {
            TokenMode::Read => 0,
            TokenMode::All => 1,
        };
        output.extend([FORMAT_VERSION, mode, u8::from(self.partition_key.is_some())]);
        output.extend(self.permission_etag.to_be_bytes());
        output.extend(self.issued_at_seconds.to_be_bytes());
        output.extend(self.expires_at_seconds.to_be_bytes());
        for text in [&self.permission_rid, &self.resource].into_iter().chain(&self.partition_key) {
            let length = u16::try_from(text.len()).map_err(|_| ResourceTokenError::TooLong)?;
            output.extend(length.to_be_bytes());
            output.extend(text.bytes());
        }
        Ok(())
    }

    fn read(content: &[u8]) -> Option<Self> {
        let (&[FORMAT_VERSION, mode, has_partition_key], rest) = content.split_first_chunk()? else {
            return None;
        };
        let mode = match mode {
            0 => TokenMode::Read,
            1 => TokenMode::All,
            _ => return None,
        };
        let (permission_etag, rest) = rest.split_first_chunk()?;
        let (issued, rest) = rest.split_first_chunk()?;
        let (expires, rest) = rest.split_first_chunk()?;
        let (permission_rid, rest) = read_text(rest)?;
        let (resource, rest) = read_text(rest)?;
        let (partition_key, rest) = match has_partition_key {
            0 => (None, rest),
            _ => read_text(rest).map(|(text, rest)| (Some(text), rest))?,
        };
        rest.is_empty().then_some(ResourceToken {
            permission_rid,
            permission_etag: u64::from_be_bytes(*permission_etag),
            mode,
            resource,
            partition_key,
            issued_at_seconds: u64::from_be_bytes(*issued),
            expires_at_seconds: u64::from_be_bytes(*expires),
        })
    }
}

fn read_signed(text: &str, key: &MasterKey) -> Option<ResourceToken> {
    if text.len() > AuthorizationKind::Resource.bytes_max() {
        return None;
    }
    let text = text.strip_prefix(PREFIX).unwrap_or(text);
    let text = text.strip_suffix(';').unwrap_or(text);
    let (content, signature) = text.split_once(';')?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    let mut signed = CONTEXT.to_vec();
    URL_SAFE_NO_PAD.decode_vec(content, &mut signed).ok()?;
    if !bool::from(key.sign(&signed).as_slice().ct_eq(&signature)) {
        return None;
    }
    ResourceToken::read(signed.get(CONTEXT.len()..)?)
}

fn read_text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (text, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    Some((String::from_utf8(text.to_vec()).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authorization::Authorization;
    use crate::key_text::EMULATOR_KEY;
    use crate::percent;
    use proptest::prelude::*;

    fn key() -> MasterKey {
        MasterKey::from_base64(EMULATOR_KEY).unwrap()
    }

    fn sample() -> ResourceToken {
        ResourceToken {
            permission_rid: "ehszADxRRgACAAAAAAAAAA==".to_owned(),
            permission_etag: u64::MAX - 1,
            mode: TokenMode::Read,
            resource: "dbs/ehszAA==/colls/ehszALxRRgA=/".to_owned(),
            partition_key: Some(r#"["a"]"#.to_owned()),
            issued_at_seconds: 1000,
            expires_at_seconds: 4600,
        }
    }

    #[test]
    fn a_token_is_good_until_it_expires() {
        let token = sample();
        let text = token.issue(&key()).unwrap();
        assert!(text.starts_with(PREFIX) && text.ends_with(';') && text.is_ascii(), "{text}");
        assert_eq!(ResourceToken::verify(&text, &key(), 4599), Ok(token));
        let expired = ResourceToken::verify(&text, &key(), 4600).unwrap_err();
        assert_eq!(expired, ResourceTokenError::Expired { expired_at_seconds: 4600 });
        assert_eq!(expired.status(), 403);
    }

    #[test]
    fn any_changed_character_is_noticed() {
        let text = sample().issue(&key()).unwrap();
        for position in PREFIX.len()..text.len() - 1 {
            let mut changed = text.clone().into_bytes();
            changed[position] = if changed[position] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(
                ResourceToken::verify(&changed, &key(), 0),
                Err(ResourceTokenError::Invalid),
                "{position}"
            );
        }
        let other = MasterKey::from_base64(&"A".repeat(64)).unwrap();
        assert_eq!(ResourceToken::verify(&text, &other, 0), Err(ResourceTokenError::Invalid));
    }

    #[test]
    fn what_does_not_fit_is_not_issued() {
        for length in [9_000, 100_000] {
            let token = ResourceToken { partition_key: Some("x".repeat(length)), ..sample() };
            assert_eq!(token.issue(&key()), Err(ResourceTokenError::TooLong));
        }
    }

    proptest! {
        #[test]
        fn verify_is_total(text in ".*", parts in "[A-Za-z0-9_;-]*") {
            prop_assert_eq!(ResourceToken::verify(&text, &key(), 0), Err(ResourceTokenError::Invalid));
            prop_assert_eq!(ResourceToken::verify(&parts, &key(), 0), Err(ResourceTokenError::Invalid));
        }

        #[test]
        fn content_is_read_totally(content in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = ResourceToken::read(&content);
        }

        #[test]
        fn tokens_round_trip_through_the_header(
            texts in proptest::array::uniform2(".{0,40}"),
            partition_key in proptest::option::of(".{0,40}"),
            all in any::<bool>(),
            times in any::<[u32; 2]>(),
            permission_etag in any::<u64>(),
        ) {
            let [permission_rid, resource] = texts;
            let token = ResourceToken {
                permission_rid,
                permission_etag,
                mode: if all { TokenMode::All } else { TokenMode::Read },
                resource,
                partition_key,
                issued_at_seconds: u64::from(times[0]),
                expires_at_seconds: u64::from(times[1]) + 1,
            };
            let text = token.issue(&key()).unwrap();
            for header in [text.clone(), percent::encode_component(&text).into_owned()] {
                let parsed = Authorization::parse(&header).unwrap();
                prop_assert_eq!(parsed.kind, AuthorizationKind::Resource);
                let found = ResourceToken::verify(&parsed.signature, &key(), u64::from(times[1]));
                prop_assert_eq!(found.as_ref(), Ok(&token));
            }
        }
    }
}
