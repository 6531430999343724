//! Authorization headers, keys and dates: nothing panics, nothing that was not signed is accepted, and what a key signs
//! is accepted.

use astrarium_wire::address::Address;
use astrarium_wire::authorization::{
    AccountKeys, Authorization, AuthorizationKind, DateWindow, MasterKey, signing_payload,
};
use astrarium_wire::key_text::{EMULATOR_KEY, decode_key};
use astrarium_wire::{date, percent};

const PATH: &str = "/dbs/one/colls/two/docs/three";

pub(crate) fn run(text: &str) {
    let _ = decode_key(text);
    if let Ok(seconds) = date::parse(text) {
        if (0..253_402_300_800).contains(&seconds) {
            assert_eq!(date::parse(&date::format_rfc1123(seconds)), Ok(seconds));
        }
        assert!(DateWindow::default().check(Some(text), None, seconds).is_ok());
    }
    let _ = DateWindow::default().check(Some(text), Some(text), 1_700_000_000);
    let key = MasterKey::from_base64(EMULATOR_KEY).expect("the well-known key");
    let keys = AccountKeys::single(key.clone());
    let address = Address::parse(PATH, None).expect("an item");
    if let Ok(authorization) = Authorization::parse(text)
        && authorization.kind == AuthorizationKind::Master
    {
        let verified = keys.verify(&authorization.signature, "GET", &address, Some("some day"), None);
        assert!(verified.is_err(), "a signature was guessed: {text}");
    }
    if text.is_empty() {
        return;
    }
    // The text as a date: it is signed as it stands, whatever it is.
    let payload = signing_payload("PATCH", &address, Some(text), None);
    let token = format!("type=master&ver=1.0&sig={}", key.sign_base64(payload.as_bytes()));
    for header in [percent::encode_component(&token).into_owned(), token] {
        let authorization = Authorization::parse(&header).expect("a good header");
        assert!(keys.verify(&authorization.signature, "PATCH", &address, Some(text), None).is_ok());
        assert!(keys.verify(&authorization.signature, "GET", &address, Some(text), None).is_err());
    }
}
