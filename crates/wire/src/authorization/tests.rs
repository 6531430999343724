//! Headers, signature vectors and windows as data.

use super::*;
use crate::address::Address;
use crate::key_text::EMULATOR_KEY;
use proptest::prelude::*;

const DATE: &str = "Thu, 27 Apr 2017 00:51:12 GMT";
const DATE_SECONDS: i64 = 1_493_254_272;
const DOCUMENTATION_KEY: &str =
    "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw==";

fn key(text: &str) -> MasterKey {
    MasterKey::from_base64(text).unwrap()
}

#[track_caller]
fn check(header: &str, expected: Option<(AuthorizationKind, &str)>) {
    let parsed = Authorization::parse(header);
    let found = parsed.as_ref().ok().map(|found| (found.kind, found.signature.as_ref()));
    assert_eq!(found, expected, "{header}");
}

#[test]
fn headers_that_clients_send() {
    use AuthorizationKind::{Aad, Master, Resource, Sas};
    let signature = "mM0rMK/7o1MZhQwDitGRoGisPRPx09os/86Jk0YwquY=";
    let upper = "type%3Dmaster%26ver%3D1.0%26sig%3DmM0rMK%2F7o1MZhQwDitGRoGisPRPx09os%2F86Jk0YwquY%3D";
    check(upper, Some((Master, signature)));
    check(&upper.replace("%3D", "%3d").replace("%2F", "%2f"), Some((Master, signature)));
    check(&format!("type=master&ver=1.0&sig={signature}"), Some((Master, signature)));
    check(&format!(" Type=MASTER&VER=1&Sig={signature} "), Some((Master, signature)));
    check(&format!("type=master&ver=1.0&sig={signature},type=other"), Some((Master, signature)));
    check("type%3Dmaster%26ver%3D1.0%26sig%3Da+b%20c%2Bd", Some((Master, "a+b+c+d")));
    check("type=master&ver=1.0&sig=a b", Some((Master, "a+b")));
    check("type=resource&ver=1.0&sig=a;b;", Some((Resource, "a;b;")));
    check("type=resource&ver=1&sig=a==&more;b;", Some((Resource, "a==&more;b;")));
    check("type%3Daad%26ver%3D1.0%26sig%3Dh.p.s", Some((Aad, "h.p.s")));
    check("type=sas&ver=1.0&sig=x", Some((Sas, "x")));
}

#[test]
fn headers_that_are_refused() {
    for header in [
        "Bearer x",
        "type=master",
        "type=master&ver=1.0",
        "type=master&ver=1.0&sig",
        "type=master&ver=1.0&sig=",
        "type=master&ver=1.0&sig=,x",
        "type=other&ver=1.0&sig=x",
        "type=master&ver=2.0&sig=x",
        "ver=1.0&type=master&sig=x",
        "type%253Dmaster%2526ver%253D1.0%2526sig%253Dx",
        "%FF",
    ] {
        let error = Authorization::parse(header).unwrap_err();
        assert!(matches!(error, AuthorizationError::Malformed { .. }), "{header}: {error}");
        assert_eq!(error.status(), 401);
    }
    assert_eq!(Authorization::parse("  ").unwrap_err(), AuthorizationError::MissingHeader);
}

#[test]
fn lengths_are_bounded_by_kind() {
    for (kind, limit) in [("master", 1024), ("resource", 8192), ("aad", 16_384), ("sas", 16_384)] {
        let start = format!("type={kind}&ver=1.0&sig=");
        let longest = format!("{start}{}", "x".repeat(limit - start.len()));
        assert!(Authorization::parse(&longest).is_ok());
        assert_eq!(Authorization::parse(&format!("{longest}x")).unwrap_err(), AuthorizationError::TooLong);
    }
    assert_eq!(
        Authorization::parse(&"x".repeat(HEADER_BYTES_MAX + 1)).unwrap_err(),
        AuthorizationError::TooLong
    );
}

#[track_caller]
fn check_vector(key_text: &str, verb: &str, path: &str, signature: &str) {
    let address = Address::parse(path, None).unwrap();
    let keys = AccountKeys::single(key(key_text));
    let signed = keys.verify(signature, verb, &address, Some(DATE), None).unwrap();
    let by_rid = path.starts_with("/offers/");
    assert_eq!(signed, Signed { access: KeyAccess::Full, by_rid }, "{verb} {path}");
    let other = if verb == "GET" { "PUT" } else { "GET" };
    assert!(keys.verify(signature, other, &address, Some(DATE), None).is_err());
    assert!(keys.verify(signature, verb, &address, None, Some(DATE)).is_err());
}

#[test]
fn published_vectors() {
    check_vector(EMULATOR_KEY, "GET", "/", "gFB1bRB/PLJTG3bCgMuoVgNzOyFvZAamzEtLuSITjRc=");
    check_vector(EMULATOR_KEY, "GET", "/dbs/ToDoList", "mM0rMK/7o1MZhQwDitGRoGisPRPx09os/86Jk0YwquY=");
    check_vector(
        EMULATOR_KEY,
        "POST",
        "/dbs/MyDb/colls/MyColl/docs",
        "s0xP8VO0ZOVHL99FhcwggjhrnponOpQXEk+T5PrPBUg=",
    );
    check_vector(EMULATOR_KEY, "GET", "/offers/uT2L", "fp5A2Rw3pUULnudpkaCDttdPHDg8q4UMVYumkDJZWv8=");
    check_vector(DOCUMENTATION_KEY, "GET", "/dbs/ToDoList/", "c09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu+c+c=");
}

/// Signs `payload` as a client would and checks what the server makes of it.
#[track_caller]
fn check_payload(
    payload: &str,
    verb: &str,
    target: &str,
    dates: (Option<&str>, Option<&str>),
    accepted: bool,
) {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let address = Address::parse(path, query).unwrap();
    let key = key(EMULATOR_KEY);
    let signature = key.sign_base64(payload.as_bytes());
    let found = AccountKeys::single(key).verify(&signature, verb, &address, dates.0, dates.1);
    assert_eq!(found.is_ok(), accepted, "{payload:?} {found:?}");
}

#[test]
fn every_way_to_sign() {
    let x_ms_date = (Some("Mon, 01 Jan"), None);
    let both = (Some("Mon, 01 Jan"), Some("Tue, 02 Jan"));
    let only_date = (None, Some("Tue, 02 Jan"));
    let empty_first = (Some(""), Some("Tue, 02 Jan"));
    check_payload("get\ndbs\ndbs/A\nmon, 01 jan\n\n", "GET", "/dbs/A", x_ms_date, true);
    check_payload("get\ndbs\ndbs/A\nmon, 01 jan\n\n", "GET", "/dbs/A", both, true);
    check_payload("get\ndbs\ndbs/A\nmon, 01 jan\ntue, 02 jan\n", "GET", "/dbs/A", both, true);
    check_payload("get\ndbs\ndbs/A\n\ntue, 02 jan\n", "GET", "/dbs/A", only_date, true);
    check_payload("get\ndbs\ndbs/A\n\ntue, 02 jan\n", "GET", "/dbs/A", empty_first, true);
    check_payload("get\ndbs\ndbs/A\n\ntue, 02 jan\n", "GET", "/dbs/A", both, false);
    check_payload("get\ndbs\ndbs/a\nmon, 01 jan\n\n", "GET", "/dbs/A", x_ms_date, false);
    check_payload("get\ndbs\ndbs/é \nmon, 01 jan\n\n", "GET", "/dbs/%C3%A9%20", x_ms_date, true);
    check_payload("get\ndbs\ndbs/%C3%A9%20\nmon, 01 jan\n\n", "GET", "/dbs/%C3%A9%20", x_ms_date, true);
}

#[test]
fn links_other_than_names() {
    let x_ms_date = (Some("Mon, 01 Jan"), None);
    let ranges = "/dbs/ehszAA==/colls/ehszALxRRgA=/pkranges/";
    check_payload("get\npkranges\nehszalxrrga=\nmon, 01 jan\n\n", "GET", ranges, x_ms_date, true);
    let delete = "/dbs/A/colls/B/operations/partitionkeydelete";
    check_payload("post\npartitionkey\ndbs/A/colls/B\nmon, 01 jan\n\n", "POST", delete, x_ms_date, true);
    check_payload("post\ncolls\ndbs/A/colls/B\nmon, 01 jan\n\n", "POST", delete, x_ms_date, true);
    let question = "/dbs/A/colls/B/docs/x?y";
    check_payload("get\ndocs\ndbs/A/colls/B/docs/x?y\nmon, 01 jan\n\n", "GET", question, x_ms_date, true);
}

#[test]
fn each_key_gives_its_access() {
    let texts: Vec<String> = ["a", "b", "c", "d"].iter().map(|letter| letter.repeat(64)).collect();
    let made: Vec<MasterKey> = texts.iter().map(|text| key(text)).collect();
    let keys = AccountKeys {
        primary: made[0].clone(),
        secondary: Some(made[1].clone()),
        primary_readonly: Some(made[2].clone()),
        secondary_readonly: Some(made[3].clone()),
    };
    let address = Address::parse("/dbs/a", None).unwrap();
    let payload = signing_payload("GET", &address, Some(DATE), None);
    let access = [KeyAccess::Full, KeyAccess::Full, KeyAccess::ReadOnly, KeyAccess::ReadOnly];
    for (key, access) in made.iter().zip(access) {
        let signature = key.sign_base64(payload.as_bytes());
        let signed = keys.verify(&signature, "GET", &address, Some(DATE), None);
        assert_eq!(signed.map(|signed| signed.access), Ok(access));
    }
    let shown = format!("{keys:?}");
    assert!(
        texts.iter().all(|text| !shown.contains(text.as_str())) && shown.contains("MasterKey(..)"),
        "{shown}"
    );
}

/// A name may look like a resource id; what was signed tells which of them is meant.
#[test]
fn names_are_told_from_resource_ids() {
    let address = Address::parse("/dbs/ehszAA==/colls/ehszALxRRgA=", None).unwrap();
    let date = DATE.to_lowercase();
    let key = key(EMULATOR_KEY);
    let keys = AccountKeys::single(key.clone());
    for (link, by_rid) in [("ehszalxrrga=", true), ("dbs/ehszAA==/colls/ehszALxRRgA=", false)] {
        let signature = key.sign_base64(format!("get\ncolls\n{link}\n{date}\n\n").as_bytes());
        let signed = keys.verify(&signature, "GET", &address, Some(DATE), None);
        assert_eq!(signed, Ok(Signed { access: KeyAccess::Full, by_rid }), "{link}");
    }
}

#[test]
fn a_mismatch_shows_the_payload() {
    let address = Address::parse("/dbs/ToDoList", None).unwrap();
    let keys = AccountKeys::single(key(EMULATOR_KEY));
    for signature in
        ["", "x", "mM0rMK/7o1MZhQwDitGRoGisPRPx09os/86Jk0YwquZ=", &"A".repeat(43), &"A".repeat(1000)]
    {
        let error = keys.verify(signature, "GET", &address, Some(DATE), None).unwrap_err();
        let message = error.to_string();
        assert!(
            message.ends_with(r"'get\ndbs\ndbs/ToDoList\nthu, 27 apr 2017 00:51:12 gmt\n\n'"),
            "{message}"
        );
        assert_eq!(error.status(), 401);
    }
    let error = keys.verify("x", "GET", &address, None, Some("")).unwrap_err();
    assert_eq!(error, AuthorizationError::MissingDate);
}

#[test]
fn the_window_of_a_date() {
    let window = DateWindow::default();
    let status =
        |offset: i64| window.check(Some(DATE), None, DATE_SECONDS + offset).map_err(|error| error.status());
    assert_eq!(status(0), Ok(()));
    assert_eq!(status(-900), Ok(()));
    assert_eq!(status(-901), Err(403));
    assert_eq!(status(1800), Ok(()));
    assert_eq!(status(1801), Err(403));
    let message = window.check(None, Some(DATE), 0).unwrap_err().to_string();
    for part in
        ["Thu, 27 Apr 2017 00:36:12 GMT", "Thu, 27 Apr 2017 01:21:12 GMT", "Thu, 01 Jan 1970 00:00:00 GMT"]
    {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(window.check(None, None, 0), Err(AuthorizationError::MissingDate));
    assert_eq!(window.check(Some("yesterday"), Some(DATE), DATE_SECONDS), Err(AuthorizationError::BadDate));
}

proptest! {
    #[test]
    fn parse_is_total(header in ".*", start in "type(=|%3D)(master|aad)&ver=1.0&sig=[%A-Fa-f0-9, +&]*") {
        let _ = Authorization::parse(&header);
        let _ = Authorization::parse(&start);
    }

    #[test]
    fn verify_is_total(signature in ".*", verb in ".*", path in ".*", first in ".*", second in ".*") {
        let keys = AccountKeys::single(key(EMULATOR_KEY));
        if let Ok(address) = Address::parse(&path, None) {
            prop_assert!(keys.verify(&signature, &verb, &address, Some(&first), Some(&second)).is_err());
            let _ = DateWindow::default().check(Some(&first), Some(&second), 0);
        }
    }

    #[test]
    fn what_a_client_signs_is_accepted(id in ".{1,20}", date in "[ -~]{1,40}") {
        let target = format!("/dbs/d/colls/c/docs/{}", crate::percent::encode_component(&id));
        let address = Address::parse(&target, None).unwrap();
        let payload = format!("get\ndocs\ndbs/d/colls/c/docs/{id}\n{}\n\n", date.to_ascii_lowercase());
        let key = key(EMULATOR_KEY);
        let header = format!("type=master&ver=1.0&sig={}", key.sign_base64(payload.as_bytes()));
        let header = crate::percent::encode_component(&header);
        let parsed = Authorization::parse(&header).unwrap();
        let found = AccountKeys::single(key).verify(&parsed.signature, "GET", &address, Some(&date), None);
        prop_assert_eq!(found.map(|signed| signed.access), Ok(KeyAccess::Full));
    }
}
