//! What is refused: code, place, and the words that follow.

use astrarium_sql_syntax::{SyntaxError, check as check_rules, parse};

fn errors(text: &str) -> Vec<SyntaxError> {
    match parse(text) {
        Ok(query) => check_rules(&query, text),
        Err(error) => vec![error],
    }
}

/// The first error has this code and covers this piece of the text, which ends at the end of text if it is empty.
fn check(text: &str, code: &str, piece: &str) {
    let errors = errors(text);
    let error = errors.first().unwrap_or_else(|| panic!("accepted: {text}"));
    assert_eq!((error.code, error.span.of(text)), (code, piece), "{text}\n{}", error.render(text));
    if piece.is_empty() {
        assert_eq!(error.span.range(), text.len()..text.len(), "{text}");
    }
}

#[test]
fn unexpected_tokens() {
    for (text, piece) in [
        ("selectttt * from c", "selectttt"),
        ("SELECTVALUE 1", "SELECTVALUE"),
        ("SELECT r.a, r.b, FROM Root r", "FROM"),
        ("SELECT c.value FROM c", "value"),
        ("SELECT c.order FROM c", "order"),
        ("SELECT c.left FROM c", "left"),
        ("SELECT c.null FROM c", "null"),
        ("SELECT c.12a FROM c", ".12"),
        ("SELECT c.ab:cd FROM c", ":"),
        ("SELECT c.* FROM c", "*"),
        ("SELECT *, 1 FROM c", ","),
        ("SELECT VALUE 1, 2", ","),
        ("SELECT 1 AS order", "order"),
        ("SELECT 1 FROM c AS from", "from"),
        ("SELECT VALUE 42 IN()", ")"),
        ("SELECT VALUE 1 IN (SELECT 1)", "SELECT"),
        ("SELECT VALUE c.array FROM c", "array"),
        ("SELECT VALUE c.a[] FROM c", "]"),
        ("SELECT VALUE [1,]", "]"),
        ("SELECT VALUE {a 1}", "1"),
        ("SELECT VALUE {1: 1}", "1"),
        ("SELECT VALUE (1 2)", "2"),
        ("SELECT VALUE a ? b", ""),
        ("SELECT VALUE a BETWEEN b OR c", "OR"),
        ("SELECT VALUE a BETWEEN (b", ""),
        ("SELECT VALUE a NOT = b", "="),
        ("SELECT VALUE a == b", "="),
        ("SELECT c.age ESCAPE '1' FROM c", "ESCAPE"),
        ("SELECT VALUE a LIKE b ESCAPE 'xy'", "'xy'"),
        ("SELECT VALUE a LIKE b ESCAPE c", "c"),
        ("SELECT * FROM c WHERE c.pk IS NULL", "IS"),
        ("SELECT c.k FROM c GROUP BY c.k HAVING true", "HAVING"),
        ("SELECT TOP 'asdf' * FROM c", "'asdf'"),
        ("SELECT TOP -1 c.name FROM c", "-"),
        ("SELECT c.name FROM c OFFSET -1 LIMIT 10", "-"),
        ("SELECT c.name FROM c OFFSET 10 LIMIT -1", "-"),
        ("SELECT * FROM c LIMIT 10", "LIMIT"),
        ("SELECT * FROM c WHERE true FROM c", "FROM"),
        ("SELECT * FROM c ORDER c.a", "c"),
        ("SELECT * FROM c[c.a]", "c.a"),
        ("SELECT * FROM f(1)", "("),
        ("SELECT UDF.f(1)", "("),
        ("SELECT udf.f", ""),
        ("SELECT VALUE ARRAY(1)", "1"),
        ("SELECT VALUE EXISTS 1", "1"),
        ("INSERT INTO c", "INSERT"),
    ] {
        check(text, if piece.is_empty() { "SC1002" } else { "SC1001" }, piece);
    }
}

#[test]
fn texts_that_stop_too_early() {
    for text in [
        "",
        "  -- nothing",
        "SELECT",
        "SELECT 1,",
        "SELECT VALUE",
        "SELECT VALUE ABS(-123",
        "SELECT VALUE 42 BETWEEN 15 AND",
        "SELECT * FROM",
        "SELECT * FROM c WHERE",
        "SELECT * FROM c OFFSET 10",
        "SELECT VALUE {a: 1",
        "SELECT VALUE (SELECT 1",
        "SELECT c.",
    ] {
        let found = errors(text);
        assert_eq!(found.first().map(|error| error.code), Some("SC1002"), "{text}");
        assert_eq!(found[0].message, "Syntax error, unexpected end-of-file.");
    }
}

#[test]
fn texts_that_are_no_tokens() {
    check("SELECT 1;", "SC1010", ";");
    check("SELECT #", "SC1010", "#");
    check("SELECT c.é", "SC1010", "é");
    check("SELECT @1", "SC1010", "@");
    check("SELECT 0x", "SC1010", "0x");
    check("SELECT 1e9999", "SC1010", "1e9999");
    check("SELECT VALUE \"hello", "SC1012", "\"hello");
    check("SELECT VALUE 'a\\x'", "SC1012", "'a");
    check("SELECT VALUE '\\ud800'", "SC1012", "'\\ud800'");
    check("SELECT VALUE 'a\tb'", "SC1012", "'a");
    // The first error wins, also before something that is no token.
    check("SELECT FROM c WHERE ;", "SC1001", "FROM");
}

#[test]
fn counts() {
    check("SELECT TOP 4294967296 c.name FROM c", "SC2060", "4294967296");
    check("SELECT TOP 1.5 * FROM c", "SC2060", "1.5");
    check("SELECT * FROM c OFFSET 1 LIMIT 4294967296", "SC2061", "4294967296");
    check("SELECT * FROM c OFFSET 4294967296 LIMIT 1", "SC2062", "4294967296");
    check("SELECT TOP 99999999999999999999999999 * FROM c", "SC2060", "99999999999999999999999999");
    assert_eq!(errors("SELECT TOP 1.5 * FROM c")[0].message, "TOP count must be an integer.");
    assert_eq!(errors("SELECT TOP 1e99 * FROM c")[0].message, "TOP count exceeds the maximum allowed value.");
    assert!(errors("SELECT * FROM c OFFSET 0 LIMIT 4294967295").is_empty());
}

#[test]
fn rules_of_clauses() {
    check("SELECT * FROM c GROUP BY c.age", "SC2041", "SELECT *");
    check("SELECT *", "SC2040", "SELECT *");
    check("SELECT * FROM c JOIN d IN c.children", "SC2040", "SELECT *");
    check("SELECT TOP 1 c.a FROM c OFFSET 1 LIMIT 2", "SC2063", "OFFSET 1 LIMIT 2");
    check("SELECT VALUE (SELECT VALUE x FROM x IN c.a ORDER BY x) FROM c", "SC2202", "ORDER BY x");
    check("SELECT VALUE ARRAY(SELECT TOP 1 VALUE x FROM x IN c.a) FROM c", "SC2203", "1");
    check("SELECT 1 FROM c JOIN (SELECT 1 OFFSET 0 LIMIT 1)", "SC2204", "OFFSET 0 LIMIT 1");
    check("SELECT 1 FROM x IN (SELECT 1 ORDER BY RANK RRF(1))", "SC2228", "ORDER BY RANK RRF(1)");
    check("SELECT 1 WHERE [{a: f(-(SELECT TOP 2 1))}]", "SC2203", "2");
    let joins = |count: usize| format!("SELECT 1 FROM c{}", " JOIN c.a".repeat(count));
    assert!(errors(&joins(10)).is_empty());
    assert_eq!(errors(&joins(11))[0].code, "SC3004");
    let calls = |count: usize| format!("SELECT {}1", "udf.f(1), ".repeat(count));
    assert!(errors(&calls(10)).is_empty());
    assert_eq!(errors(&calls(11))[0].code, "SC3005");
    let text = "SELECT (SELECT TOP 1 1 ORDER BY 1), *";
    assert_eq!(errors(text)[0].code, "SC1001");
    let text = "SELECT (SELECT TOP 1 1 ORDER BY 1), (SELECT 1 OFFSET 1 LIMIT 1)";
    let codes: Vec<_> = errors(text).iter().map(|error| error.code).collect();
    assert_eq!(codes, ["SC2203", "SC2202", "SC2204"]);
}

#[test]
fn messages_are_the_services_and_details_are_ours() {
    let text = "SELECT *\n  FORM c";
    let error = &errors(text)[0];
    assert_eq!(error.message, "Syntax error, incorrect syntax near 'FORM'.");
    assert_eq!(error.detail, "line 2, column 3: met 'FORM', expected another clause or the end of the query");
    assert_eq!(error.span.utf16_range(text), 11..15);
    let error = &errors("SELECT VALUE c.order")[0];
    assert_eq!(
        error.detail,
        "line 1, column 16: met the reserved word 'order', expected the name of a property"
    );
    assert_eq!(errors("SELECT ;")[0].message, "Syntax error, invalid token ';'.");
    assert_eq!(errors("SELECT 'a")[0].message, "Syntax error, invalid string literal token ''a'.");
}
