//! What texts mean, seen through the normalised text: every construct, precedence, names, literals.

use astrarium_sql_syntax::ast::{Expression, ExpressionKind, SelectForm};
use astrarium_sql_syntax::{parse, parse_expression, print, print_expression};

fn check(text: &str, printed: &str) {
    let query = parse(text).unwrap_or_else(|error| panic!("{}", error.render(text)));
    assert_eq!(print(&query), printed, "{text}");
    assert_eq!(parse(printed).as_ref(), Ok(&query), "{text}");
}

fn check_expression(text: &str, printed: &str) {
    let expression = parse_expression(text).unwrap_or_else(|error| panic!("{}", error.render(text)));
    assert_eq!(print_expression(&expression), printed, "{text}");
    assert_eq!(parse_expression(printed).as_ref(), Ok(&expression), "{text}");
    assert_eq!(expression.span.of(text), text.trim(), "{text}");
}

#[test]
fn clauses() {
    check("select * from c", "SELECT *\nFROM c");
    check("SELECT 1", "SELECT 1");
    check("SELECT DISTINCT TOP 5 VALUE c.a FROM root c", "SELECT DISTINCT TOP 5 VALUE c.a\nFROM root AS c");
    check("SELECT TOP @n c.a x, 2 AS y FROM c", "SELECT TOP @n c.a AS x, 2 AS y\nFROM c");
    check("SELECT TOP 0x10 * FROM c", "SELECT TOP 16 *\nFROM c");
    check(
        "SELECT c.a FROM c WHERE c.a > 1 GROUP BY c.a, c.b ORDER BY c.a ASC, c.b DESC, c.d OFFSET 1 LIMIT @l",
        "SELECT c.a\nFROM c\nWHERE (c.a > 1)\nGROUP BY c.a, c.b\nORDER BY c.a ASC, c.b DESC, c.d\nOFFSET 1 LIMIT @l",
    );
    check(
        "SELECT TOP 10 * FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'a'), VectorDistance(c.v, [1, 2]), [2, -1])",
        "SELECT TOP 10 *\nFROM c\nORDER BY RANK RRF(FullTextScore(c.t, \"a\"), VectorDistance(c.v, [1, 2]), [2, -1])",
    );
    check("SELECT 1 WHERE true", "SELECT 1\nWHERE true");
    check("SELECT c.a -- comment\nFROM c -- more", "SELECT c.a\nFROM c");
}

#[test]
fn sources() {
    check("SELECT * FROM c.a.b", "SELECT *\nFROM c.a.b");
    check("SELECT * FROM c.a[0] x", "SELECT *\nFROM c.a[0] AS x");
    check("SELECT * FROM c['x y'] AS s", "SELECT *\nFROM c[\"x y\"] AS s");
    check("SELECT * FROM c[@p] s", "SELECT *\nFROM c[@p] AS s");
    check("SELECT * FROM x IN c.items", "SELECT *\nFROM x IN c.items");
    check(
        "SELECT 1 FROM c JOIN c.a JOIN x IN c.b JOIN c.d y",
        "SELECT 1\nFROM c\nJOIN c.a\nJOIN x IN c.b\nJOIN c.d AS y",
    );
    check(
        "SELECT s FROM (SELECT VALUE x FROM x IN c.a) s JOIN y IN (SELECT 1) JOIN (SELECT 2)",
        "SELECT s\nFROM (\n    SELECT VALUE x\n    FROM x IN c.a\n) AS s\nJOIN y IN (\n    SELECT 1\n)\nJOIN (\n    SELECT 2\n)",
    );
    check("SELECT first.last FROM first", "SELECT first.last\nFROM first");
}

#[test]
fn precedence_from_tightest_to_loosest() {
    for (text, printed) in [
        ("-a.b[0] * 2", "((-a.b[0]) * 2)"),
        ("~a + +b", "((~a) + (+b))"),
        ("a - b - c", "((a - b) - c)"),
        ("a + b * c % d / e", "(a + (((b * c) % d) / e))"),
        ("a || b + c || d", "((a || (b + c)) || d)"),
        ("a << b || c >> d >>> e", "(((a << (b || c)) >> d) >>> e)"),
        ("a & b << c", "((a & b) << c)"),
        ("a = b << c", "((a = b) << c)"),
        ("a << b = c", "((a << b) = c)"),
        ("a ^ b & c | d", "(((a ^ b) & c) | d)"),
        ("a | b + c", "((a | b) + c)"),
        ("a + b | c * d", "((a + b) | (c * d))"),
        ("a = b | c", "(a = (b | c))"),
        ("c.g ^ 4 = 1", "((c.g ^ 4) = 1)"),
        ("a < b = c <> d", "(((a < b) = c) != d)"),
        ("a = b IN (c)", "((a = b) IN (c))"),
        ("a LIKE b || c", "(a LIKE (b || c))"),
        ("NOT a IN (b)", "((NOT a) IN (b))"),
        ("NOT a = b", "((NOT a) = b)"),
        ("NOT a LIKE b", "((NOT a) LIKE b)"),
        ("NOT a BETWEEN b AND c", "((NOT a) BETWEEN b AND c)"),
        ("NOT (a = b)", "(NOT (a = b))"),
        ("- NOT a + b", "((-(NOT a)) + b)"),
        ("NOT NOT a AND b", "((NOT (NOT a)) AND b)"),
        ("a OR b AND c OR d", "((a OR (b AND c)) OR d)"),
        ("(a OR b) OR c", "((a OR b) OR c)"),
        ("a OR (b OR c)", "(a OR (b OR c))"),
        ("a BETWEEN b + 1 AND c AND d", "((a BETWEEN (b + 1) AND c) AND d)"),
        ("a NOT BETWEEN NOT b AND c OR d", "((a NOT BETWEEN (NOT b) AND c) OR d)"),
        ("a BETWEEN (b OR c) AND d", "(a BETWEEN (b OR c) AND d)"),
        ("a BETWEEN b BETWEEN c AND d AND e", ""),
        ("a ?? b OR c ?? d", "(a ?? ((b OR c) ?? d))"),
        ("a = b ?? c AND d", "((a = b) ?? (c AND d))"),
        ("a ?? b ? c : d", "((a ?? b) ? c : d)"),
        ("a ? b : c ? d : e", "(a ? b : (c ? d : e))"),
        ("a ? b ? c : d : e", "(a ? (b ? c : d) : e)"),
        ("a = NOT b AND c", "((a = (NOT b)) AND c)"),
        ("true ? {\"x\": 1} : {\"x\": 2}.x", "(true ? {\"x\": 1} : {\"x\": 2}.x)"),
        ("a IN (1) = true", "((a IN (1)) = true)"),
    ] {
        if printed.is_empty() {
            assert!(parse_expression(text).is_err(), "{text}");
        } else {
            check_expression(text, printed);
        }
    }
}

#[test]
fn operators_with_words() {
    check_expression("a NOT IN (1, 'x', [2])", "(a NOT IN (1, \"x\", [2]))");
    check_expression("a LIKE '%!%' ESCAPE '!'", "(a LIKE \"%!%\" ESCAPE \"!\")");
    check_expression("a not like @p AND b", "((a NOT LIKE @p) AND b)");
    check_expression("a LIKE b ESCAPE '\\\\' LIKE c", "((a LIKE b ESCAPE \"\\\\\") LIKE c)");
}

#[test]
fn literals() {
    check_expression(
        "[null, true, false, undefined, NaN, Infinity]",
        "[null, true, false, undefined, NaN, Infinity]",
    );
    check_expression("[-1, - 2, +3, -(4), -0, -Infinity]", "[-1, -2, (+3), -4, -0, -Infinity]");
    check_expression("-9223372036854775808", "-9223372036854775808");
    check_expression("1 - -1", "(1 - -1)");
    check_expression("1-1", "(1 - 1)");
    check_expression("[.5, 1., 0x1F, 1e3, 2.50, 1.79769e+308]", "[0.5, 1, 31, 1000, 2.5, 1.79769e+308]");
    check_expression("(-1).a", "(-1).a");
    check_expression("(1)[0]", "(1)[0]");
    check_expression("-1[0]", "(-(1)[0])");
    check_expression("'it\\'s \"x\"'", "\"it's \\\"x\\\"\"");
    check_expression(
        "{a: 1, 'b c': 2, \"d\": 3, value: 4, order: {}}",
        "{\"a\": 1, \"b c\": 2, \"d\": 3, \"value\": 4, \"order\": {}}",
    );
    check_expression("@p.x[@q][0]['y']", "@p.x[@q][0][\"y\"]");
}

#[test]
fn names() {
    check_expression("c.first.ALL.Last.set.TRUE", "c.first.ALL.Last.set.TRUE");
    check_expression("c . a [ 'b' ]", "c.a[\"b\"]");
    check_expression("c[('value')]", "c[\"value\"]");
    check_expression("TRUE", "TRUE");
    check_expression("LEFT(c.a, 1) = right (c.a, 2)", "(LEFT(c.a, 1) = right(c.a, 2))");
    check_expression("first(1) + All", "(first(1) + All)");
    check_expression("udf.tax(c.a).rate", "udf.tax(c.a).rate");
    check_expression("abs ( -1 )", "abs(-1)");
}

#[test]
fn subqueries() {
    check_expression("(SELECT VALUE 1).x", "(\n    SELECT VALUE 1\n).x");
    check_expression("((SELECT VALUE 1))", "(\n    SELECT VALUE 1\n)");
    check_expression("EXISTS (SELECT 1 FROM x IN c.a)", "EXISTS(\n    SELECT 1\n    FROM x IN c.a\n)");
    check_expression(
        "ARRAY(SELECT VALUE ALL(SELECT VALUE 1))",
        "ARRAY(\n    SELECT VALUE ALL(\n        SELECT VALUE 1\n    )\n)",
    );
    check_expression(
        "FIRST(SELECT 1) ?? last(SELECT 2)",
        "(FIRST(\n    SELECT 1\n) ?? LAST(\n    SELECT 2\n))",
    );
}

#[test]
fn chains_are_one_node() {
    let Ok(Expression { kind: ExpressionKind::Logical { operands, .. }, .. }) =
        parse_expression("a AND b AND (c AND d) AND e")
    else {
        panic!("a chain was written")
    };
    assert_eq!(operands.len(), 4);
}

#[test]
fn spans_cover_what_was_written() {
    let text = "SELECT c.a AS x, (c.b + 1) * f(2) FROM c WHERE NOT c.d";
    let query = parse(text).expect("the query is correct");
    let SelectForm::List(items) = &query.select.projection else { panic!("a list was written") };
    assert_eq!(items[0].span.of(text), "c.a AS x");
    assert_eq!(items[0].alias.as_ref().map(|name| name.span.of(text)), Some("x"));
    assert_eq!(items[1].expression.span.of(text), "(c.b + 1) * f(2)");
    assert_eq!(query.filter.as_ref().map(|filter| filter.span.of(text)), Some("NOT c.d"));
    assert_eq!(query.from.as_ref().map(|from| from.span.of(text)), Some("FROM c"));
    assert_eq!(query.span.of(text), text);
}

#[test]
fn raw_text_is_copied() {
    let mut query = parse("SELECT * FROM c").expect("the query is correct");
    query.filter = Some(ExpressionKind::Raw("({filter})".to_owned()).into());
    assert_eq!(print(&query), "SELECT *\nFROM c\nWHERE ({filter})");
}
