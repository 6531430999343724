//! Resource ids: text and bytes read back the same, and every question has an answer for every id.

use astrarium_keys::Rid;

pub(crate) fn run(bytes: &[u8]) {
    if let Some(rid) = std::str::from_utf8(bytes).ok().and_then(Rid::parse) {
        assert_eq!(rid.to_string().as_bytes(), bytes, "one rid has one text");
        check(rid);
    }
    if let Some(rid) = Rid::from_bytes(bytes) {
        assert_eq!(rid.as_bytes(), bytes);
        assert_eq!(Rid::parse(&rid.to_string()), Some(rid));
        check(rid);
    }
}

fn check(rid: Rid) {
    let _ = (rid.number(), rid.child_type(), rid.is_container());
    let mut text = Vec::new();
    rid.push_text(&mut text);
    assert_eq!(text, rid.to_string().into_bytes());
    for part in [rid.database_part(), rid.container_part()].into_iter().flatten() {
        assert!(rid.as_bytes().starts_with(part.as_bytes()));
    }
}
