//! What a request is about: its path, and what is signed for it.

use astrarium_wire::percent::encode_component;

/// The path of a resource or of a feed, and the two lines of the signature that name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTarget {
    pub(crate) path: String,
    pub(crate) resource_type: String,
    pub(crate) link: String,
}

impl RequestTarget {
    /// The account itself.
    pub fn account() -> RequestTarget {
        RequestTarget { path: "/".to_owned(), resource_type: String::new(), link: String::new() }
    }

    /// A resource by keywords and ids, `["dbs", "d", "colls", "c"]`; ids are plain text.
    pub fn resource(segments: &[&str]) -> RequestTarget {
        let resource_type = segments.iter().rev().nth(1).copied().unwrap_or_default().to_owned();
        RequestTarget { path: encoded(segments), resource_type, link: segments.join("/") }
    }

    /// The feed of all resources of a kind below an owner: `(["dbs", "d"], "colls")`.
    pub fn feed(owner: &[&str], kind: &str) -> RequestTarget {
        let mut path = if owner.is_empty() { String::new() } else { encoded(owner) };
        path.push('/');
        path.push_str(kind);
        RequestTarget { path, resource_type: kind.to_owned(), link: owner.join("/") }
    }

    /// An offer, which is known by its resource id only.
    pub fn offer(rid: &str) -> RequestTarget {
        RequestTarget {
            path: encoded(&["offers", rid]),
            resource_type: "offers".to_owned(),
            link: rid.to_ascii_lowercase(),
        }
    }

    /// The path as it is sent.
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// Keywords need no escapes, so everything may be treated as an id.
fn encoded(segments: &[&str]) -> String {
    let mut path = String::new();
    for segment in segments {
        path.push('/');
        path.push_str(&encode_component(segment));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed() {
        let check = |target: RequestTarget, path: &str, resource_type: &str, link: &str| {
            assert_eq!(
                (target.path.as_str(), target.resource_type.as_str(), target.link.as_str()),
                (path, resource_type, link)
            );
        };
        check(RequestTarget::account(), "/", "", "");
        check(RequestTarget::feed(&[], "dbs"), "/dbs", "dbs", "");
        check(RequestTarget::resource(&["dbs", "a b"]), "/dbs/a%20b", "dbs", "dbs/a b");
        check(
            RequestTarget::feed(&["dbs", "d", "colls", "c"], "docs"),
            "/dbs/d/colls/c/docs",
            "docs",
            "dbs/d/colls/c",
        );
        check(
            RequestTarget::resource(&["dbs", "d", "colls", "c", "docs", "é/?"]),
            "/dbs/d/colls/c/docs/%C3%A9%2F%3F",
            "docs",
            "dbs/d/colls/c/docs/é/?",
        );
        check(RequestTarget::offer("uT2L"), "/offers/uT2L", "offers", "ut2l");
    }
}
