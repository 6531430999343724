//! Account keys as text: the well-known one, and validation of any other.
//!
//! A key is base64 of 64 random bytes when the service makes it; other lengths are accepted within bounds, since a key
//! is a setting of ours. Not here: signing (`authorization`), where keys come from (`server`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_PAD_INDIFFERENT;

/// The key that every emulator of the service has and every tutorial shows; it protects nothing.
pub const EMULATOR_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// Fewest bytes of a key: 128 bits, below which guessing becomes thinkable.
pub const KEY_BYTES_MIN: usize = 16;

/// Most bytes of a key; beyond a block of the hash more bytes add nothing.
pub const KEY_BYTES_MAX: usize = 256;

/// Why a text is not a key. The operator's to mend; the text itself is never repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not standard base64.
    #[error("an account key must be base64 text, such as `openssl rand -base64 64` prints")]
    NotBase64,
    /// Fewer than [`KEY_BYTES_MIN`] bytes.
    #[error(
        "an account key must be base64 of at least {KEY_BYTES_MIN} bytes, such as `openssl rand -base64 64` prints"
    )]
    TooShort,
    /// More than [`KEY_BYTES_MAX`] bytes.
    #[error("an account key must have at most {KEY_BYTES_MAX} bytes")]
    TooLong,
}

/// Decodes a key; white space around and within it is ignored, as key files end with a line break and tools such as
/// `openssl rand -base64 64` break the text into lines.
pub fn decode_key(text: &str) -> Result<Vec<u8>, KeyError> {
    // Four characters carry three bytes; longer text need not be decoded to be refused.
    let characters_max = KEY_BYTES_MAX.div_ceil(3) * 4;
    let solid = text.bytes().filter(|byte| !byte.is_ascii_whitespace());
    let text: Vec<u8> = solid.take(characters_max + 1).collect();
    if text.len() > characters_max {
        return Err(KeyError::TooLong);
    }
    let bytes = STANDARD_PAD_INDIFFERENT.decode(text).map_err(|_| KeyError::NotBase64)?;
    match bytes.len() {
        ..KEY_BYTES_MIN => Err(KeyError::TooShort),
        KEY_BYTES_MIN..=KEY_BYTES_MAX => Ok(bytes),
        _ => Err(KeyError::TooLong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: Result<usize, KeyError>) {
        assert_eq!(decode_key(text).map(|bytes| bytes.len()), expected);
    }

    #[test]
    fn keys() {
        check(EMULATOR_KEY, Ok(64));
        check(&format!(" {EMULATOR_KEY}\n"), Ok(64));
        check(EMULATOR_KEY.trim_end_matches('='), Ok(64));
        let (first, second) = EMULATOR_KEY.split_at(64);
        for broken in [format!("{first}\n{second}\n"), format!("\t{first}\r\n {second} \r\n")] {
            assert_eq!(decode_key(&broken), decode_key(EMULATOR_KEY));
        }
        check("", Err(KeyError::TooShort));
        check("AAAA", Err(KeyError::TooShort));
        check("not base64!", Err(KeyError::NotBase64));
        check(&"A".repeat(344), Err(KeyError::TooLong));
        check(&"A".repeat(1_000_000), Err(KeyError::TooLong));
    }

    proptest! {
        #[test]
        fn decoding_is_total(text in ".*") {
            let _ = decode_key(&text);
        }
    }
}
