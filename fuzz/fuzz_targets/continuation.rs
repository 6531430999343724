//! Continuation tokens: no text panics or opens; what is sealed opens to the same bytes with the same key only, plain
//! or wrapped.

use astrarium_wire::authorization::MasterKey;
use astrarium_wire::continuation::{Continuation, SigningKey, open, seal, wrap};
use astrarium_wire::key_text::EMULATOR_KEY;

pub(crate) fn run(bytes: &[u8]) {
    let key = MasterKey::from_base64(EMULATOR_KEY).expect("the well-known key");
    let (feed, query) = (SigningKey::derive(&key, "feed"), SigningKey::derive(&key, "query"));
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert!(open(text, &feed).is_err(), "a token was guessed: {text}");
        if let Ok(continuation) = Continuation::parse(text) {
            assert!(open(&continuation.token, &feed).is_err());
        }
    }
    let token = seal(bytes, &feed);
    let opened = open(&token, &feed);
    if bytes.len() > 8_000 {
        return;
    }
    assert_eq!(opened.as_deref(), Ok(bytes));
    assert!(open(&token, &query).is_err(), "a token for one purpose serves another");
    let wrapped = wrap(&token, "05C1", "FF");
    let continuation = Continuation::parse(&wrapped).expect("our own wrapper");
    assert_eq!(open(&continuation.token, &feed).as_deref(), Ok(bytes));
}
