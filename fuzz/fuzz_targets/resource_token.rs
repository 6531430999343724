//! Resource tokens: no text panics or passes for a token; what is issued reads back the same, until it expires, and a
//! changed byte makes it worthless.

use astrarium_wire::authorization::{Authorization, MasterKey};
use astrarium_wire::key_text::EMULATOR_KEY;
use astrarium_wire::percent;
use astrarium_wire::resource_token::{ResourceToken, TokenMode};

pub(crate) fn run(text: &str) {
    let key = MasterKey::from_base64(EMULATOR_KEY).expect("the well-known key");
    assert!(ResourceToken::verify(text, &key, 0).is_err(), "a token was guessed: {text}");
    let middle = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (resource, rest) = text.split_at(middle);
    let token = ResourceToken {
        permission_rid: resource.chars().rev().take(20).collect(),
        permission_etag: text.len() as u64,
        mode: if text.len().is_multiple_of(2) { TokenMode::Read } else { TokenMode::All },
        resource: resource.to_owned(),
        partition_key: (!rest.is_empty()).then(|| rest.to_owned()),
        issued_at_seconds: 1_000,
        expires_at_seconds: 2_000,
    };
    let Ok(issued) = token.issue(&key) else {
        assert!(text.len() > 1_000, "a short permission fits");
        return;
    };
    assert_eq!(ResourceToken::verify(&issued, &key, 1_999).as_ref(), Ok(&token));
    assert!(ResourceToken::verify(&issued, &key, 2_000).is_err());
    for header in [issued.clone(), percent::encode_component(&issued).into_owned()] {
        let authorization = Authorization::parse(&header).expect("a header");
        assert_eq!(ResourceToken::verify(&authorization.signature, &key, 1_500).as_ref(), Ok(&token));
    }
    let at = issued.len() - 1 - (text.len() * 7) % (issued.len() / 2);
    let mut changed = issued.clone().into_bytes();
    changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
    let changed = String::from_utf8(changed).expect("plain text");
    if let Ok(read) = ResourceToken::verify(&changed, &key, 1_500) {
        assert_eq!(read, token, "a changed token says something else");
    }
}
