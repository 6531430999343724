//! Cases of LIKE, and agreement with a matcher that tries everything.

use super::*;
use crate::testing::{print, value};
use proptest::prelude::*;

#[track_caller]
fn check(text: &str, pattern: &str, expected: bool) {
    let compiled = LikePattern::compile(pattern, None).unwrap();
    assert_eq!(compiled.matches(text), expected, "{text} LIKE {pattern}");
}

#[test]
fn patterns() {
    for (text, pattern, expected) in [
        ("screwdriver set", "%driver%", true),
        ("fruit bowl", "fruit%", true),
        ("Hitch Road", "%Road", true),
        ("Hitch Road", "%road", false),
        ("winter coat", "winter", false),
        ("20-30%", "20-30[%]", true),
        ("20-305", "20-30[%]", false),
        ("_n", "[_]n", true),
        ("xn", "[_]n", false),
        ("]", "]", true),
        ("[", "[[]", true),
        ("[abc", "[abc", true),
        ("SOtPS", "%SO[t-z]PS%", true),
        ("SOaPS", "%SO[t-z]PS%", false),
        ("SOaPS", "%SO[^abc]PS%", false),
        ("xxSOzPSyy", "%SO[^abc]PS%", true),
        ("SOPS", "%SO_PS%", false),
        ("SOPS", "%SO%PS%", true),
        ("", "", true),
        ("a", "", false),
        ("", "%", true),
        ("", "_", false),
        ("aa", "a%a", true),
        ("a", "a%a", false),
        ("aba", "ab%ba", false),
        ("😀", "_", true),
        ("a😀b", "a_b", true),
        ("é", "[à-ü]", true),
        ("-", "[a-]", true),
        ("-", "[-a]", true),
        ("b", "[c-a]", false),
        ("x", "[]", false),
        ("x", "[^]", true),
        ("a.c", "a.c", true),
        ("abc", "a.c", false),
        ("a\nb", "a%b", true),
        ("mississippi", "%iss%ip_i", true),
        ("mississippi", "m%issip_ip%", false),
    ] {
        check(text, pattern, expected);
    }
}

#[test]
fn escapes() {
    for (text, pattern, escape, expected) in [
        ("20% off", "%20^%%", "\"^\"", "true"),
        ("200 off", "%20^%%", "\"^\"", "false"),
        ("a", "!%a", "\"!\"", "false"),
        ("%a", "!%a", "\"!\"", "true"),
        ("!", "!!", "\"!\"", "true"),
        ("a!", "a!", "\"!\"", "true"),
        ("]", "[!]]", "\"!\"", "true"),
        ("[a]", "![a]", "\"!\"", "true"),
        ("a", "a", "\"!!\"", "undefined"),
        ("a", "a", "\"\"", "undefined"),
        ("a", "a", "1", "undefined"),
    ] {
        let result = like(&text.into(), &pattern.into(), Some(&value(escape)));
        assert_eq!(print(&result), expected, "{text} LIKE {pattern} ESCAPE {escape}");
    }
    for (text, pattern) in [("1", "\"1\""), ("\"1\"", "1"), ("undefined", "\"a\""), ("null", "\"%\"")] {
        assert!(like(&value(text), &value(pattern), None).is_undefined());
    }
}

#[test]
fn what_the_planner_asks() {
    for (pattern, prefix, literal, prefix_only) in [
        ("abc", "abc", Some("abc"), false),
        ("", "", Some(""), false),
        ("abc%", "abc", None, true),
        ("%", "", None, true),
        ("a_c%", "a", None, false),
        ("a[bc]", "a", None, false),
        ("a%c", "a", None, false),
        ("%c", "", None, false),
    ] {
        let compiled = LikePattern::compile(pattern, None).unwrap();
        let found = (compiled.literal_prefix(), compiled.literal(), compiled.is_prefix_only());
        assert_eq!(found, (prefix, literal, prefix_only), "{pattern}");
    }
    let escaped = LikePattern::compile("a!%", Some('!')).unwrap();
    assert_eq!(escaped.literal(), Some("a%"));
}

#[test]
fn hostile_patterns_take_little_time() {
    let text = "a".repeat(1 << 18);
    let long = format!("%_{}b%", "a".repeat(4000));
    assert!(!LikePattern::compile(&long, None).unwrap().matches(&text));
    let many = "%a_".repeat(1000);
    assert!(LikePattern::compile(&many, None).unwrap().matches(&text));
    for refused in ["%_a".repeat(100_000), "%a".repeat(200_000), "[a]".repeat(200_000)] {
        assert!(LikePattern::compile(&refused, None).is_none());
    }
    let brackets = "[".repeat(400_000);
    assert!(LikePattern::compile(&brackets, None).unwrap().matches(&brackets));
}

/// Tries every way to match; only for short texts.
fn naive(text: &[char], pattern: &[char]) -> bool {
    match (pattern, text) {
        ([], _) => text.is_empty(),
        (['%', rest @ ..], _) => (0..=text.len()).any(|skip| naive(&text[skip..], rest)),
        (['_', rest @ ..], [_, others @ ..]) => naive(others, rest),
        ([wanted, rest @ ..], [first, others @ ..]) => wanted == first && naive(others, rest),
        (_, []) => false,
    }
}

proptest! {
    #[test]
    fn agrees_with_the_naive_matcher(text in "[ab😀]{0,10}", pattern in "[ab😀%_]{0,8}") {
        let expected = naive(&text.chars().collect::<Vec<_>>(), &pattern.chars().collect::<Vec<_>>());
        let compiled = LikePattern::compile(&pattern, None).unwrap();
        prop_assert_eq!(compiled.matches(&text), expected);
        prop_assert!(!expected || text.starts_with(compiled.literal_prefix()));
    }

    #[test]
    fn any_pattern_compiles_and_matches_something(pattern in "[ab%_\\[\\]^!-]{0,12}", text in any::<String>()) {
        let compiled = LikePattern::compile(&pattern, Some('!')).unwrap();
        compiled.matches(&text);
    }
}
