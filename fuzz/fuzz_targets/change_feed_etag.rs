//! The position in a change feed: any text is one or none, and what is read prints as text that means the same.

use astrarium_wire::change_feed::{FeedEtag, FeedKind};

pub(crate) fn run(text: &str) {
    let _ = FeedKind::parse(text);
    if let Some(etag) = FeedEtag::parse(text) {
        assert_eq!(FeedEtag::parse(&etag.to_string()), Some(etag));
    }
}
