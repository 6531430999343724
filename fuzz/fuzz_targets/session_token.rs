//! Session tokens: any text is one or is refused; what is read prints as text that reads back the same.

use astrarium_wire::session::{SessionToken, append_session_token};

pub(crate) fn run(text: &str) {
    let Ok(token) = SessionToken::parse(text) else { return };
    let printed = token.to_string();
    let again = SessionToken::parse(&printed).expect("our own text");
    assert_eq!(again.entries(), token.entries());
    for entry in token.entries() {
        assert!(token.lsn(entry.range_id).is_some_and(|lsn| lsn >= entry.lsn));
    }
    let mut longer = printed.clone();
    append_session_token(&mut longer, "added", u64::from(u32::MAX));
    if let Ok(longer) = SessionToken::parse(&longer) {
        assert_eq!(longer.lsn("added"), Some(i64::from(u32::MAX)).max(token.lsn("added")));
    }
}
