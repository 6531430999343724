//! Cases of regular expressions.

use super::*;
use crate::testing::{check, check_all, check_wrong_types};
use proptest::prelude::*;

#[track_caller]
fn check_match(text: &str, pattern: &str, modifiers: &str, expected: &str) {
    let result = matches(&[string(text), string(pattern), string(modifiers)]).unwrap_or_default();
    let beginning = |text: &str| text.chars().take(40).collect::<String>();
    let shown = (beginning(text), beginning(pattern), modifiers);
    assert_eq!(crate::testing::print(&result), expected, "{shown:?}");
}

#[test]
fn wrong_types() {
    let wrong = ["undefined", "null", "true", "1", "[]", "{}"];
    for name in ["REGEXMATCH", "REGEXEXTRACT", "REGEXEXTRACTALL"] {
        check_wrong_types(name, "[?, \"a\"]", &wrong);
        check_wrong_types(name, "[\"a\", ?]", &wrong);
        check_wrong_types(name, "[\"a\", \"a\", ?]", &wrong);
    }
}

#[test]
fn matching() {
    for (text, pattern, modifiers, expected) in [
        ("abcd", "ABC", "", "false"),
        ("abcd", "ABC", "i", "true"),
        ("abcd", "ab.", "", "true"),
        ("abcd", "ab c", "x", "true"),
        ("abcd", "aB c", "ix", "true"),
        ("03a", "[0-9]", "", "true"),
        ("salt3824908", "salt{1}", "", "true"),
        ("a\nb", "a.b", "", "false"),
        ("a\nb", "a.b", "s", "true"),
        ("a\nb", "^b$", "", "false"),
        ("a\nb", "^b$", "m", "true"),
        ("", "", "", "true"),
        ("a", "(", "", "undefined"),
        ("a", "a", "g", "undefined"),
        ("a", "a{2,1}", "", "undefined"),
        ("foobar", "foo(?=bar)", "", "true"),
        ("foobaz", "foo(?!bar)", "", "true"),
        ("abab", "(ab)\\1", "", "true"),
        ("abba", "(ab)\\1", "", "false"),
        ("xay", "(?<=x)a", "", "true"),
        ("FOOBAR", "foo(?=bar)", "i", "true"),
        ("٣", "\\d", "", "false"),
        ("é", "^\\w$", "", "false"),
        ("é", "^\\W$", "", "true"),
        ("a-1", "^[\\w-]+$", "", "true"),
        ("a b", "a[\\s]b", "", "true"),
        ("{x}", "^{x}$", "", "true"),
        ("a{,2}", "a{,2}", "", "true"),
        ("[", "[[]", "", "true"),
        ("&", "[&&a]", "", "true"),
        ("]", "[]a]", "", "true"),
        ("a b", "[ ]", "x", "true"),
        ("A", "[[:upper:]]", "", "true"),
        ("a<b", "a\\<b", "", "true"),
        ("a.b", "^\\Qa.b\\E$", "", "true"),
        ("axb", "^\\Qa.b\\E$", "", "false"),
        ("a\tb", "a\\hb", "", "true"),
        ("a/b", "a\\/b", "", "true"),
        ("\\", "\\\\", "", "true"),
        ("a", "\\", "", "undefined"),
    ] {
        check_match(text, pattern, modifiers, expected);
    }
}

#[test]
fn hostile_patterns_take_little_time() {
    let text = "a".repeat(20_000);
    check_match(&text, "(a+)+$b", "", "false");
    check_match(&text, "(?=x)(a+)+$b", "", "false");
    for pattern in ["^(a|a)*(?=b)c", "(a*)*\\1b", "^(a|aa)+\\1$b", "((a+)(?=a))*b"] {
        let found = matches(&[string(&text), string(pattern), string("")]);
        assert!(found.is_none_or(|found| found == false.into()), "{pattern}");
    }
    check_match(&text, "(a|aa)+\\1(?!a)b", "", "undefined");
    check_match(&text, "(((a{1000}){1000}){1000})", "", "undefined");
    check_match(&text, &"a".repeat(PATTERN_BYTES_MAX + 1), "", "undefined");
    check_match(&"a".repeat(BACKTRACK_TEXT_BYTES_MAX + 1), "a(?=a)", "", "undefined");
    check_match(&text, &"(".repeat(5000), "", "undefined");
}

#[test]
fn parts() {
    check_all(&[
        ("REGEXEXTRACT", r#"["order 66 of 99", "[0-9]+"]"#, "\"66\""),
        ("REGEXEXTRACT", r#"["order", "[0-9]+"]"#, "undefined"),
        ("REGEXEXTRACTALL", r#"["order 66 of 99", "[0-9]+"]"#, r#"["66","99"]"#),
        ("REGEXEXTRACTALL", r#"["order", "[0-9]+"]"#, "[]"),
        ("REGEXEXTRACTALL", r#"["a1b2", "[a-z](?=[0-9])"]"#, r#"["a","b"]"#),
    ]);
    check("REGEXMATCH", r#"["abcd", "bc"]"#, "true");
    let many = string("a".repeat(BACKTRACK_MATCHES_MAX + 2));
    assert!(extract_all(&[many.clone(), string("a(?=a)")]).is_none());
    assert!(extract(&[many, string("a(?=a)")]).is_some());
}

#[test]
fn the_cache_keeps_the_most_recent() {
    for number in 0..2 * CACHE_PATTERNS_MAX {
        check_match("7", &format!("^{number}$"), "", &(number == 7).to_string());
        check_match("a", "^a$", "", "true");
    }
    CACHE.with_borrow(|cache| {
        assert_eq!(cache.len(), CACHE_PATTERNS_MAX);
        assert_eq!(&*cache[0].pattern, "^a$");
    });
}

#[test]
fn plain_text_in_disguise() {
    use TextTestKind::{Contains, EndsWith, Equals, StartsWith};
    let found =
        |pattern, modifiers| reduce(pattern, modifiers).map(|test| (test.kind, test.text, test.ignore_case));
    for (pattern, modifiers, kind, text) in [
        ("abc", "", Contains, "abc"),
        ("^abc", "", StartsWith, "abc"),
        ("abc$", "s", EndsWith, "abc"),
        ("^a\\.c$", "", Equals, "a.c"),
        ("abc\\$", "", Contains, "abc$"),
        ("abc\\\\$", "", EndsWith, "abc\\"),
        ("", "", Contains, ""),
    ] {
        assert_eq!(found(pattern, modifiers), Some((kind, text.to_owned(), false)), "{pattern}");
    }
    assert_eq!(found("^a", "i"), Some((StartsWith, "a".to_owned(), true)));
    for (pattern, modifiers) in
        [("a.c", ""), ("a|b", ""), ("\\d", ""), ("^a", "m"), ("a b", "x"), ("a^", ""), ("a", "q")]
    {
        assert_eq!(found(pattern, modifiers), None, "{pattern}");
    }
}

proptest! {
    #[test]
    fn any_pattern_is_matched_or_bad(pattern in "[a-c\\\\()\\[\\]{},:^$.|?*+&dwsQE0-9< =!-]{0,16}", text in "[abc0 ]{0,12}") {
        matches(&[string(&text), string(&pattern), string("")]);
    }

    #[test]
    fn a_reduced_pattern_says_the_same(pattern in "\\^?[abA\\\\.]{0,3}\\$?", text in "[abA.\\\\]{0,5}", ignore_case in any::<bool>()) {
        let modifiers = if ignore_case { "i" } else { "" };
        if let Some(test) = reduce(&pattern, modifiers) {
            let fold = |text: &str| if ignore_case { text.to_uppercase() } else { text.to_owned() };
            let (whole, part) = (fold(&text), fold(&test.text));
            let expected = match test.kind {
                TextTestKind::Equals => whole == part,
                TextTestKind::StartsWith => whole.starts_with(&part),
                TextTestKind::EndsWith => whole.ends_with(&part),
                TextTestKind::Contains => whole.contains(&part),
            };
            let result = matches(&[string(&text), string(&pattern), string(modifiers)]);
            prop_assert_eq!(result, Some(Value::Bool(expected)));
        }
    }
}
