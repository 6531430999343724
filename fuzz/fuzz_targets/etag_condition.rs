//! `If-Match` and `If-None-Match`: any text is a condition or none, and each etag of a list matches the list.

use astrarium_wire::condition::HeaderCondition;

pub(crate) fn run(text: &str) {
    match HeaderCondition::parse(text) {
        None => assert!(text.trim().is_empty()),
        Some(HeaderCondition::Any) => assert!(HeaderCondition::Any.matches(text)),
        Some(HeaderCondition::Etags(list)) => {
            let condition = HeaderCondition::Etags(list);
            let _ = condition.matches("\"00000000-0000-0700-0000-000000000000\"");
            assert!(list.iter().count() <= text.len());
            for etag in list.iter().filter(|etag| !etag.contains('"')) {
                assert!(condition.matches(&format!("\"{etag}\"")), "{etag:?} of {text:?}");
            }
        }
    }
}
