//! Hostile and merely large texts: every one is parsed or refused, in bounded time and on an ordinary thread's stack.

use std::time::{Duration, Instant};

use astrarium_sql_syntax::ast::{ExpressionKind, SelectForm};
use astrarium_sql_syntax::{HEIGHT_MAX, TEXT_LENGTH_MAX, parse, print};

/// Hundreds of times what the slowest text takes in a debug build, less than anything quadratic in half a megabyte would.
const TIME_MAX: Duration = Duration::from_mins(5);

/// Parses, clones, prints, parses again and drops; the code of the refusal, or `ok`.
fn outcome(text: &str) -> String {
    let started = Instant::now();
    let outcome = match parse(text) {
        Ok(query) => {
            let printed = print(&query.clone());
            if printed.len() <= TEXT_LENGTH_MAX {
                assert_eq!(parse(&printed).as_ref(), Ok(&query));
            }
            "ok".to_owned()
        }
        Err(error) => {
            error.render(text);
            error.code.to_owned()
        }
    };
    assert!(started.elapsed() < TIME_MAX, "{:?} for {:.40}", started.elapsed(), text);
    outcome
}

fn check(text: &str, expected: &str) {
    assert_eq!(outcome(text), expected, "{text:.60}");
}

/// As many repetitions of `unit` as fit behind `SELECT VALUE `.
fn filled(unit: &str) -> String {
    format!("SELECT VALUE {}", unit.repeat((TEXT_LENGTH_MAX - 13) / unit.len()))
}

#[test]
fn half_a_megabyte_of_anything_ends() {
    for (unit, expected) in [
        ("(", "SC1001"),
        ("[", "SC1001"),
        ("{a:", "SC1001"),
        ("{", "SC1001"),
        ("f(", "SC1001"),
        ("x[", "SC1001"),
        ("NOT ", "SC1001"),
        ("-", "SC1002"),
        ("- ", "SC1001"),
        ("~", "SC1001"),
        ("'", "SC1001"),
        ("\"\\", "SC1012"),
        ("--\n", "SC1002"),
        ("--", "SC1002"),
        ("(SELECT VALUE ", "SC1001"),
        ("EXISTS(SELECT VALUE ", "SC1001"),
        ("a.", "SC1001"),
        ("a+", "SC1001"),
        ("a ? ", "SC1001"),
        ("a ?? ", "SC1001"),
        ("a ? b : ", "SC1001"),
        ("a BETWEEN ", "SC1001"),
        ("a LIKE ", "SC1001"),
        ("a OR ", "SC1002"),
        ("a, ", "SC1001"),
        ("1", "SC1010"),
        ("é", "SC1010"),
        ("\u{0}", "SC1010"),
        ("@", "SC1010"),
        ("a IN (", "SC1001"),
    ] {
        check(&filled(unit), expected);
    }
}

#[test]
fn a_text_beyond_the_limit_is_refused_unread() {
    check(&format!("SELECT VALUE 1{}", " ".repeat(TEXT_LENGTH_MAX - 14)), "ok");
    check(&format!("SELECT VALUE 1{}", " ".repeat(TEXT_LENGTH_MAX - 13)), "SC3020");
    // The limit counts characters, not bytes.
    check(&format!("SELECT VALUE '{}'", "é".repeat(TEXT_LENGTH_MAX - 15)), "ok");
}

#[test]
fn long_lists_and_chains_are_fine() {
    let many = |count: usize, join: &str| {
        (0..count).map(|number| format!("c.a={number}")).collect::<Vec<_>>().join(join)
    };
    check(&format!("SELECT * FROM c WHERE {}", many(10_000, " OR ")), "ok");
    check(&format!("SELECT * FROM c WHERE {}", many(10_000, " AND ")), "ok");
    check(&format!("SELECT * FROM c WHERE {}", many(5_000, " AND c.b OR ")), "ok");
    check(&format!("SELECT * FROM c WHERE c.a IN ({}1)", "1234567890, ".repeat(16_000)), "ok");
    check(&format!("SELECT {} FROM c", many(10_000, ", ")), "ok");
    check(&format!("SELECT VALUE {}1", "1 + ".repeat(HEIGHT_MAX as usize - 1)), "ok");
    check(&format!("SELECT VALUE {}1", "1 + ".repeat(HEIGHT_MAX as usize)), "SC1001");
    check(&format!("SELECT VALUE c{}", ".a".repeat(HEIGHT_MAX as usize)), "SC1001");
}

#[test]
fn the_parentheses_of_a_printed_chain_are_accepted() {
    let count = 20_000;
    let text = format!("SELECT VALUE {}a{}", "(".repeat(count), " OR a)".repeat(count));
    let query = parse(&text).expect("a chain is one level high");
    let SelectForm::Value(value) = &query.select.projection else { panic!("VALUE was written") };
    let ExpressionKind::Logical { operands, .. } = &value.kind else { panic!("a chain was written") };
    assert_eq!(operands.len(), count + 1);
    check(&text, "ok");
}

#[test]
fn the_deepest_accepted_text_needs_no_special_stack() {
    for (open, close) in [
        ("f(", ")"),
        ("[", "]"),
        ("{a: ", "}"),
        ("x[", "]"),
        ("(SELECT VALUE ", ")"),
        ("1 IN (", ")"),
        ("-(1 + [", "])"),
        ("EXISTS(SELECT VALUE 1 FROM x IN (SELECT VALUE ", "))"),
    ] {
        let nest = |depth: usize| format!("SELECT VALUE {}1{}", open.repeat(depth), close.repeat(depth));
        let deepest = (0..400).rev().find(|&depth| parse(&nest(depth)).is_ok()).expect("depth 0 is accepted");
        assert!(deepest >= 50, "{open} {deepest}");
        check(&nest(deepest), "ok");
        check(&nest(deepest + 1), "SC1001");
    }
}
