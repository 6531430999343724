//! `If-Match` and `If-None-Match`: any text is a condition or none, and each etag of a list matches the list.

use astrarium_wire::condition::Condition;

pub(crate) fn run(text: &str) {
    match Condition::parse(text) {
        None => assert!(text.trim().is_empty()),
        Some(Condition::Any) => assert!(Condition::Any.matches(text)),
        Some(Condition::Etags(list)) => {
            let condition = Condition::Etags(list);
            let _ = condition.matches("\"00000000-0000-0700-0000-000000000000\"");
            assert!(list.iter().count() <= text.len());
            for etag in list.iter().filter(|etag| !etag.contains('"')) {
                assert!(condition.matches(&format!("\"{etag}\"")), "{etag:?} of {text:?}");
            }
        }
    }
}
