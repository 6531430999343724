//! `If-Match` and `If-None-Match`.
//!
//! In: the header's value. Out: a [`HeaderCondition`] that an etag matches or not. Etags compare as opaque text once the marks
//! around them are off: clients send them with quotes as they got them, without, or with the weak prefix `W/`.
//! Invariant: nothing is copied or collected; a list is walked when it is compared.
//! Not here: which status a failed condition gives (`gateway`), positions of a change feed (`change_feed`).

/// What a conditional header asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderCondition<'a> {
    /// `*`: any version of an existing resource.
    Any,
    /// One of these versions.
    Etags(EtagList<'a>),
}

/// One or more etags, as sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EtagList<'a>(&'a str);

impl<'a> HeaderCondition<'a> {
    /// Reads a header's value; `None` when it is blank, which counts as absent.
    pub fn parse(text: &'a str) -> Option<Self> {
        match text.trim() {
            "" => None,
            "*" => Some(HeaderCondition::Any),
            list => Some(HeaderCondition::Etags(EtagList(list))),
        }
    }

    /// True when an existing resource with this etag, quoted or not, satisfies `If-Match`.
    pub fn matches(&self, etag: &str) -> bool {
        match self {
            HeaderCondition::Any => true,
            HeaderCondition::Etags(list) => list.iter().any(|one| one == bare(etag)),
        }
    }
}

impl<'a> EtagList<'a> {
    /// The etags without quotes and weak prefix; a `*` among others is an etag like any.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            while !rest.is_empty() {
                let (etag, after) = split_first(rest);
                rest = after;
                if !etag.trim().is_empty() {
                    return Some(bare(etag));
                }
            }
            None
        })
    }
}

/// Cuts at the first comma outside quotes; a quote that is never closed reaches to the end.
fn split_first(list: &str) -> (&str, &str) {
    let mut quoted = false;
    let comma = list.bytes().position(|byte| {
        quoted ^= byte == b'"';
        byte == b',' && !quoted
    });
    // A comma is one byte, so both cuts fall between characters.
    comma
        .and_then(|at| list.split_at_checked(at))
        .map_or((list, ""), |(etag, rest)| (etag, rest.strip_prefix(',').unwrap_or(rest)))
}

/// The etag without weak prefix and without the quotes around it.
fn bare(etag: &str) -> &str {
    let etag = etag.trim();
    let etag = etag.strip_prefix("W/").unwrap_or(etag);
    etag.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(etag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ETAG: &str = "\"0000d826-0000-0700-0000-651d3b4e0000\"";

    #[track_caller]
    fn check(header: &str, expected: Option<bool>) {
        assert_eq!(
            HeaderCondition::parse(header).map(|condition| condition.matches(ETAG)),
            expected,
            "{header}"
        );
    }

    #[test]
    fn conditions() {
        check("", None);
        check("  ", None);
        check("*", Some(true));
        check(" * ", Some(true));
        check(ETAG, Some(true));
        check(ETAG.trim_matches('"'), Some(true));
        check(&format!("W/{ETAG}"), Some(true));
        check(&format!("\"a,b\", {ETAG}"), Some(true));
        check(&format!("\"a\",, W/{ETAG} ,\"b\""), Some(true));
        check("\"0000d826\"", Some(false));
        check(&ETAG.to_uppercase(), Some(false));
        check(&format!("\"x{ETAG}"), Some(false));
        check(",", Some(false));
        check("\"", Some(false));
    }

    #[test]
    fn lists() {
        let Some(HeaderCondition::Etags(list)) = HeaderCondition::parse("\"a,b\" , W/\"c\", d, \"e,") else {
            panic!("a list");
        };
        assert_eq!(list.iter().collect::<Vec<_>>(), ["a,b", "c", "d", "\"e,"]);
    }

    proptest! {
        #[test]
        fn parse_is_total(header in ".*", near in "[\",W/*a ]{0,20}", etag in ".*") {
            for header in [&header, &near] {
                if let Some(condition) = HeaderCondition::parse(header) {
                    let _ = condition.matches(&etag);
                }
            }
        }

        #[test]
        fn an_etag_matches_itself_in_any_list(etag in "[a-z0-9,-]{1,20}", other in "[a-z0-9,-]{1,20}") {
            let header = format!("\"{other}\", W/\"{etag}\"");
            let quoted = format!("\"{etag}\"");
            prop_assert!(HeaderCondition::parse(&header).unwrap().matches(&quoted));
            let alone = format!("\"{other}\"");
            prop_assert_eq!(HeaderCondition::parse(&alone).unwrap().matches(&etag), etag == other);
        }
    }
}
