//! Header values of few words: booleans, page sizes, preferences.
//!
//! In: the value as sent; an empty one counts as absent, which the caller decides. Not here: values with a grammar of
//! their own (`condition`, `session`, `continuation`, `consistency`, `date`).

use std::num::NonZeroU32;

/// `true` in any case is true, anything else false.
pub fn parse_boolean(text: &str) -> bool {
    text.trim().eq_ignore_ascii_case("true")
}

/// How many documents a page may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxItemCount {
    /// `-1`, or `0` as one client sends it with `TOP 0`: as many as fit into a response.
    ServerDecides,
    /// At most this many.
    AtMost(NonZeroU32),
}

/// The page size is below -1, or no whole number. The client's fault: 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("The maximum item count of the request must be -1 or a number that is not negative.")]
pub struct InvalidMaxItemCount;

/// Reads `x-ms-max-item-count`; numbers too great for a page mean the greatest.
pub fn parse_max_item_count(text: &str) -> Result<MaxItemCount, InvalidMaxItemCount> {
    let text = text.trim();
    if text == "-1" {
        return Ok(MaxItemCount::ServerDecides);
    }
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(InvalidMaxItemCount);
    }
    // Only digits are left, so the one way to fail is a number beyond the type.
    let count = text.parse().unwrap_or(u32::MAX);
    Ok(NonZeroU32::new(count).map_or(MaxItemCount::ServerDecides, MaxItemCount::AtMost))
}

/// True when `Prefer` asks for no body after a write; of several preferences about it the first counts.
pub fn prefers_minimal(text: &str) -> bool {
    text.split([',', ';'])
        .filter_map(|preference| preference.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("return"))
        .is_some_and(|(_, value)| value.trim().trim_matches('"').eq_ignore_ascii_case("minimal"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn booleans() {
        for text in ["true", "True", "TRUE", " true "] {
            assert!(parse_boolean(text), "{text}");
        }
        for text in ["", "false", "False", "1", "yes", "truee"] {
            assert!(!parse_boolean(text), "{text}");
        }
    }

    #[track_caller]
    fn check(text: &str, expected: Option<i64>) {
        let found = parse_max_item_count(text).ok().map(|count| match count {
            MaxItemCount::ServerDecides => -1,
            MaxItemCount::AtMost(count) => i64::from(count.get()),
        });
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn max_item_counts() {
        check("-1", Some(-1));
        check("0", Some(-1));
        check("00", Some(-1));
        check("1", Some(1));
        check(" 100 ", Some(100));
        check("4294967296", Some(4_294_967_295));
        check(&"9".repeat(1000), Some(4_294_967_295));
        for text in ["-2", "-0", "+5", "1.5", "ten", "", "-", "٣"] {
            check(text, None);
        }
    }

    #[test]
    fn preferences() {
        for text in
            ["return=minimal", "Return=Minimal", "respond-async, return=minimal", "return = \"minimal\""]
        {
            assert!(prefers_minimal(text), "{text}");
        }
        for text in
            ["", "return=representation", "minimal", "return", "return=representation, return=minimal"]
        {
            assert!(!prefers_minimal(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn reading_is_total(text in ".*") {
            let _ = (parse_boolean(&text), parse_max_item_count(&text), prefers_minimal(&text));
        }

        #[test]
        fn counts_round_trip(count in 1..u32::MAX) {
            check(&count.to_string(), Some(i64::from(count)));
        }
    }
}
