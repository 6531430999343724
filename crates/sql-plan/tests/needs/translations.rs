//! The need of each construct, written out.

use super::planned;
use super::print::print;
use astrarium_sql_plan::needs::Requirements;

/// The need of a filter over documents.
#[track_caller]
fn check(filter: &str, expected: &str) {
    check_query(&format!("SELECT * FROM c WHERE {filter}"), expected);
}

#[track_caller]
fn check_query(query: &str, expected: &str) {
    assert_eq!(print(&Requirements::of(&planned(query), &[]).needed), expected, "{query}");
}

#[test]
fn comparisons() {
    check("c.a = 1", "/a = 1");
    check("1 = c.a", "/a = 1");
    check("c.a.b != 'x'", "/a/b != \"x\"");
    check("c.a < 1", "/a < 1");
    check("1 < c.a", "1 < /a");
    check("c.a >= 'x'", "\"x\" <= /a");
    check("c['first name'] <= 2", "/first name <= 2");
    check("c.a = -0", "/a = 0");
    // Both sides are there, and have a type in which there is order.
    check("c.a = c.b", "(~/a defined and ~/b defined) ..");
    check("c.a < c.b", "(~/a is null|bool|number|string and ~/b is null|bool|number|string) ..");
    check("c.a = c.b + 1", "~/a defined ..");
}

#[test]
fn types_of_constants() {
    check("c.a = undefined", "nothing");
    check("c.a != undefined", "nothing");
    check("c.a < undefined", "nothing");
    check("c.a = NaN", "nothing");
    check("c.a != NaN", "/a defined");
    check("c.a > NaN", "nothing");
    check("c.a < null", "nothing");
    check("c.a >= null", "/a = null");
    check("c.a < true", "/a = false");
    check("c.a <= true", "/a in [false,true]");
    check("c.a > true", "nothing");
    check("c.a < [1]", "nothing");
    check("c.a >= {}", "nothing");
    check("c.a = [1, 'x']", "(~/a/[] = 1 and ~/a/[] = \"x\")");
    check("c.a = []", "~/a is array");
    check("c.a = {}", "~/a is object");
    check("c.a = {x: 1, y: {z: 'a'}, e: []}", "(~/a/x = 1 and ~/a/y/z = \"a\" and ~/a/e is array)");
    check("c.a != [1]", "~/a defined");
}

#[test]
fn negation_asks_for_false() {
    check("NOT (c.a = 1)", "/a != 1");
    check("NOT (c.a != 1)", "/a = 1");
    check("NOT (c.a < 1)", "1 <= /a");
    check("NOT (c.a >= 'x')", "/a < \"x\"");
    check("NOT NOT (c.a = 1)", "/a = 1");
    check("NOT (c.a = undefined)", "nothing");
    check("NOT c.a", "/a = false");
    check("NOT (c.a = 1 AND c.b = 2)", "(/a != 1 or /b != 2)");
    check("NOT (c.a = 1 OR c.b = 2)", "(/a != 1 and /b != 2)");
    check("c.a NOT IN (1, 2)", "(/a != 1 and /a != 2)");
    check("c.a NOT IN (undefined)", "/a defined");
    check("c.a NOT IN (1, [2])", "~/a != 1");
    check("c.a NOT BETWEEN 1 AND 5", "(/a < 1 or 5 < /a)");
    check("NOT STARTSWITH(c.a, 'x')", "~/a is string");
    check("NOT STRINGEQUALS(c.a, 'x')", "(/a is string and /a != \"x\")");
    check("NOT ARRAY_CONTAINS(c.a, 1)", "~/a is array");
    check("NOT ARRAY_CONTAINS(@list, c.a)", "(/a != 1 and /a != \"a\")");
    // True also where there is nothing, which no index holds.
    check("NOT IS_DEFINED(c.a)", "anything ..");
    check("NOT IS_NULL(c.a)", "anything ..");
    check("NOT EXISTS(SELECT VALUE t FROM t IN c.tags)", "anything ..");
}

#[test]
fn logic() {
    check("c.active", "/active = true");
    check("c.a = 1 AND c.b > 2", "(/a = 1 and 2 < /b)");
    check("c.a = 1 OR c.b > 2", "(/a = 1 or 2 < /b)");
    check("c.a = 1 AND (c.b = 2 OR c.d = 3)", "(/a = 1 and (/b = 2 or /d = 3))");
    check("c.a = 1 AND LOWER(c.b) = 'x'", "/a = 1 ..");
    check("c.a = 1 OR LOWER(c.b) = 'x'", "anything ..");
    check("c.a = 1 OR (c.b = 2 AND udf.f(c) = 1)", "(/a = 1 or /b = 2) ..");
    check("true", "anything");
    check("1", "nothing");
    check("c.a = 1 AND false", "nothing");
    check("c.a = 1 OR false", "/a = 1");
    check("c.a = 1 OR true", "anything");
    check("(c.a = 1) = true", "/a = 1");
    check("IS_DEFINED(c.a) = false", "anything ..");
}

#[test]
fn conditions_on_one_value_become_one() {
    check("c.a > 1 AND c.a <= 5", "1 < /a <= 5");
    check("c.a > 1 AND c.a > 3 AND c.a >= 3", "3 < /a");
    check("c.a BETWEEN 1 AND 5", "1 <= /a <= 5");
    check("c.a BETWEEN 5 AND 5", "/a = 5");
    check("c.a BETWEEN 5 AND 1", "nothing");
    check("c.a BETWEEN 1 AND 'x'", "nothing");
    check("c.a BETWEEN undefined AND 1", "nothing");
    check("c.a > 1 AND c.a > 'x'", "nothing");
    check("c.a = 1 AND c.a = 2", "nothing");
    check("c.a IN (1, 2, 3) AND c.a > 1 AND c.a != 3", "/a = 2");
    check("c.a = 1 OR c.a = 2 OR c.a IN (2, 3)", "/a in [1,2,3]");
    check("IS_DEFINED(c.a) AND c.a > 1", "1 < /a");
    check("IS_STRING(c.a) AND c.a > 1", "nothing");
    check("STARTSWITH(c.a, 'ab') AND STARTSWITH(c.a, 'abc')", "/a begins abc");
    check("CONTAINS(c.a, 'x') AND c.a = 'axb'", "~/a = \"axb\"");
    check("c.tags[0] > 1 AND c.tags[0] < 5", "~1 < /tags/[] < 5");
    check("c.tags[0] > 1 AND c.tags[1] < 5", "(~1 < /tags/[] and ~/tags/[] < 5)");
    check("IS_DEFINED(c.a) AND c.a.b = 1", "/a/b = 1");
}

#[test]
fn lists() {
    check("c.a IN (2, 1, 2, 'x')", "/a in [1,2,\"x\"]");
    check("c.a IN (1, undefined, NaN)", "/a = 1");
    check("c.a IN (undefined)", "nothing");
    check("c.a IN (1, [2])", "(/a = 1 or ~/a/[] = 2)");
    check("1 IN (c.a, c.b)", "(/a = 1 or /b = 1)");
    check("c.a IN (1, c.b)", "(/a = 1 or (~/a defined and ~/b defined)) ..");
    check("3 BETWEEN c.low AND c.high", "(/low <= 3 and 3 <= /high)");
    check("ARRAY_CONTAINS(@list, c.a)", "/a in [1,\"a\"]");
    check("ARRAY_CONTAINS([{x: 1}], c.a, true)", "(~/a/x = 1 or ~/a is object)");
}

#[test]
fn text() {
    check("STARTSWITH(c.a, 'ab')", "/a begins ab");
    check("STARTSWITH(c.a, '')", "/a is string");
    check("STARTSWITH(c.a, 'ab', false)", "/a begins ab");
    check("STARTSWITH(c.a, 'ab', true)", "~/a is string");
    check("STARTSWITH(c.a, 'ab', c.b)", "~/a is string");
    check("STARTSWITH(c.a, 'ab', 1)", "nothing");
    check("STARTSWITH(c.a, 5)", "nothing");
    check("STARTSWITH('abc', c.a)", "~/a is string");
    check("STRINGEQUALS(c.a, 'ab')", "/a = \"ab\"");
    check("STRINGEQUALS('ab', c.a)", "/a = \"ab\"");
    check("STRINGEQUALS(c.a, 'ab', true)", "~/a is string");
    check("CONTAINS(c.a, 'b')", "~/a is string");
    check("ENDSWITH(c.a, 'b')", "~/a is string");
    check("c.a LIKE 'ab%'", "/a begins ab");
    check("c.a LIKE 'ab'", "/a = \"ab\"");
    check("c.a LIKE 'a_%'", "~/a begins a");
    check("c.a LIKE '%b'", "~/a is string");
    check("c.a LIKE '%'", "/a is string");
    check("c.a LIKE c.b", "anything ..");
    check("REGEXMATCH(c.a, '^abc')", "/a begins abc");
    check("REGEXMATCH(c.a, '^abc.*d$')", "~/a begins abc");
    check("REGEXMATCH(c.a, '^abc?')", "~/a begins ab");
    check("REGEXMATCH(c.a, '^abc$')", "~/a begins abc");
    check("REGEXMATCH(c.a, '^abc', 'i')", "~/a is string");
    check("REGEXMATCH(c.a, '^abc|d')", "~/a is string");
    check("REGEXMATCH(c.a, 'abc')", "~/a is string");
    check("LEFT(c.a, 2) = 'ab'", "~/a begins ab");
    check("SUBSTRING(c.a, 0, 2) = 'ab'", "~/a begins ab");
    check("SUBSTRING(c.a, 1, 2) = 'ab'", "~/a is string");
    check("LEFT(c.a, 2) = 5", "nothing");
}

#[test]
fn numbers() {
    check("ABS(c.a) = 2", "/a in [-2,2]");
    check("ABS(c.a) < 2", "-2 < /a < 2");
    check("ABS(c.a) > 2", "(/a < -2 or 2 < /a)");
    check("ABS(c.a) < 0", "nothing");
    check("FLOOR(c.a) = 2", "~1 <= /a <= 3");
    check("2 < CEILING(c.a)", "~1 <= /a");
    check("ROUND(c.a, 2) > 2", "~/a is number");
    check("FLOOR(c.a) = 'x'", "nothing");
    check("c.a + 1 > 2", "anything ..");
}

#[test]
fn types() {
    check("IS_DEFINED(c.a)", "/a defined");
    check("IS_NULL(c.a)", "/a = null");
    check("IS_BOOL(c.a)", "/a is bool");
    check("IS_NUMBER(c.a)", "/a is number");
    check("IS_STRING(c.a)", "/a is string");
    check("IS_ARRAY(c.a)", "/a is array");
    check("IS_OBJECT(c.a)", "/a is object");
    check("IS_PRIMITIVE(c.a)", "/a is null|bool|number|string");
    check("IS_INTEGER(c.a)", "~/a is number");
    check("IS_FINITE_NUMBER(c.a)", "~/a is number");
    // The whole document is an object.
    check("IS_DEFINED(c)", "anything");
    check("IS_OBJECT(c)", "anything");
    check("IS_STRING(c)", "nothing");
    check("c = 1", "nothing");
}

#[test]
fn arrays() {
    check("ARRAY_CONTAINS(c.tags, 'x')", "/tags/[] = \"x\"");
    check("ARRAY_CONTAINS(c.tags, undefined)", "nothing");
    check("ARRAY_CONTAINS(c.tags, NaN)", "nothing");
    check("ARRAY_CONTAINS(c.tags, {x: 1})", "~/tags/[]/x = 1");
    check("ARRAY_CONTAINS(c.tags, {x: 1, y: 'a'}, true)", "(~/tags/[]/x = 1 and ~/tags/[]/y = \"a\")");
    check("ARRAY_CONTAINS(c.tags, {}, true)", "~/tags/[] is object");
    check("ARRAY_CONTAINS(c.tags, c.x)", "~/tags/[] defined");
    check("ARRAY_CONTAINS(c.a[0].tags, 1)", "~/a/[]/tags/[] = 1");
    check("ARRAY_CONTAINS_ANY(c.tags, 1, undefined, 2)", "/tags/[] in [1,2]");
    check("ARRAY_CONTAINS_ALL(c.tags, 1, 2)", "(/tags/[] = 1 and /tags/[] = 2)");
    check("ARRAY_CONTAINS_ALL(c.tags, 1, undefined)", "nothing");
    check("ARRAY_CONTAINS(c.tags, 1) AND ARRAY_CONTAINS(c.tags, 2)", "(/tags/[] = 1 and /tags/[] = 2)");
    check("ARRAY_LENGTH(c.tags) > 1", "anything ..");
    check("c.tags[0] = 'x'", "~/tags/[] = \"x\"");
}

#[test]
fn choices() {
    check("(c.a ?? false)", "/a = true");
    check("(c.a ?? true)", "anything ..");
    check("(c.a ?? 0) = 5", "/a = 5");
    check("(c.a ?? 5) = 5", "anything ..");
    check("(c.a ?? c.b) > 5", "(5 < /a or 5 < /b) ..");
    check("(c.a ? c.b : false)", "(/a = true and /b = true)");
    check("(c.a ? c.b : c.d) = 1", "((/a = true and /b = 1) or /d = 1) ..");
    check("IIF(c.a, c.b, false)", "(/a = true and /b = true)");
}

#[test]
fn what_no_index_serves() {
    check("ST_DISTANCE(c.place, {type: 'Point', coordinates: [1, 2]}) < 5", "anything ..");
    check("udf.f(c.a)", "anything ..");
    check("udf.f(c.a) = 1 AND c.b = 2", "/b = 2 ..");
    check("c._rid = 'x'", "anything ..");
    check("c._self = 'x' AND c._attachments = 'y' AND c._ts > 5", "5 < /_ts ..");
    check("c._etag = 'x'", "/_etag = \"x\"");
    check("c.id = 'x'", "/id = \"x\"");
    check("c.a._rid = 'x'", "/a/_rid = \"x\"");
    check("c._ridge = 'x'", "/_ridge = \"x\"");
    check("(SELECT VALUE c.a) = 1", "anything ..");
}

#[test]
fn existence() {
    check("EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 'x')", "/tags/[] = \"x\"");
    check("EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t.a = 1)", "/tags/[]/a = 1");
    check("EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t > 1 AND t < 5)", "1 < /tags/[] < 5");
    check("EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 1 OR t > 5)", "(/tags/[] = 1 or 5 < /tags/[])");
    check("EXISTS(SELECT VALUE t FROM t IN c.tags)", "/tags/[] defined");
    // One element must meet both, which two conditions do not say.
    check(
        "EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t.a = 1 AND t.b = 2)",
        "(~/tags/[]/a = 1 and ~/tags/[]/b = 2)",
    );
    check(
        "EXISTS(SELECT VALUE t.b FROM t IN c.tags WHERE t.a = 1)",
        "(~/tags/[]/a = 1 and ~/tags/[]/b defined)",
    );
    check("EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 1 AND c.b = 2)", "(/tags/[] = 1 and /b = 2)");
    check("EXISTS(SELECT VALUE u FROM t IN c.tags JOIN u IN t.items WHERE u = 1)", "/tags/[]/items/[] = 1");
    check(
        "EXISTS(SELECT VALUE 1 FROM t IN c.tags JOIN u IN c.others WHERE u = 1)",
        "(~/tags/[] defined and ~/others/[] = 1)",
    );
    check("EXISTS(SELECT VALUE COUNT(1) FROM t IN c.tags WHERE t = 1)", "anything ..");
    check("EXISTS(SELECT VALUE undefined FROM t IN c.tags)", "nothing");
    check("EXISTS(SELECT VALUE s FROM c.sub s WHERE s.x = 1)", "/sub/x = 1");
    check("EXISTS(SELECT VALUE t FROM t IN c.tags WHERE LOWER(t) = 'x')", "/tags/[] defined ..");
}

#[test]
fn sources() {
    check_query("SELECT * FROM c", "anything");
    check_query("SELECT VALUE 1", "anything ..");
    check_query("SELECT * FROM c.a.b", "/a/b defined");
    check_query("SELECT * FROM c.a s WHERE s.x = 1", "/a/x = 1");
    check_query("SELECT * FROM t IN c.tags", "~/tags/[] defined ..");
    check_query("SELECT * FROM t IN c.tags WHERE t.x = 1", "~/tags/[]/x = 1 ..");
    check_query("SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.a = 1", "(~/tags/[] defined and /a = 1) ..");
    check_query(
        "SELECT VALUE t FROM c JOIN t IN c.tags WHERE t = 1 AND c.a = 2",
        "(/a = 2 and ~/tags/[] = 1) ..",
    );
    check_query(
        "SELECT VALUE u FROM c JOIN t IN c.tags JOIN u IN t.items WHERE u.x > 1 AND u.x < 5",
        "~1 < /tags/[]/items/[]/x < 5 ..",
    );
    check_query(
        "SELECT VALUE t FROM c JOIN t IN c.tags WHERE EXISTS(SELECT VALUE u FROM u IN t.items WHERE u = 1)",
        "~/tags/[]/items/[] = 1 ..",
    );
    check_query(
        "SELECT VALUE s FROM c JOIN (SELECT VALUE t FROM t IN c.tags WHERE t.x = 1) s WHERE s.y = 2",
        "(~/tags/[]/x = 1 and ~/tags/[]/y = 2) ..",
    );
    check_query(
        "SELECT VALUE s FROM c JOIN (SELECT t.x AS z FROM t IN c.tags WHERE t.x > 1) s WHERE s.z < 5",
        "~1 < /tags/[]/x < 5 ..",
    );
    check_query("SELECT VALUE s FROM c JOIN s IN (SELECT VALUE c.tags) WHERE s = 1", "~/tags/[] = 1 ..");
    check_query("SELECT VALUE s.y FROM c JOIN (SELECT c.a AS y) s WHERE s.y = 1", "/a = 1");
    check_query(
        "SELECT VALUE n FROM c JOIN (SELECT VALUE COUNT(1) FROM t IN c.tags WHERE t = 1) n",
        "anything ..",
    );
    check_query("SELECT * FROM (SELECT VALUE c FROM c WHERE c.a = 1) s WHERE s.b = 2", "(/a = 1 and /b = 2)");
    check_query("SELECT * FROM (SELECT DISTINCT c.a FROM c WHERE c.b = 1) s WHERE s.a = 2", "/b = 1");
    check_query("SELECT COUNT(1) FROM c WHERE c.a = 1 GROUP BY c.b", "/a = 1");
}

#[test]
fn sizes_are_bounded() {
    let many = |count: usize, one: &dyn Fn(usize) -> String, word: &str| {
        (0..count).map(one).collect::<Vec<_>>().join(word)
    };
    check(&many(300, &|index| format!("c.p{index} = 1"), " OR "), "anything ..");
    let plan =
        planned(&format!("SELECT * FROM c WHERE {}", many(300, &|index| format!("c.p{index} = 1"), " AND ")));
    let needed = Requirements::of(&plan, &[]).needed;
    assert!(!needed.complete);
    assert!(matches!(needed.need, astrarium_index::Need::All(needs) if needs.len() == 64));
    // Each level looks at the one inside it twice.
    let nested = (0..30).fold("c.a".to_owned(), |inner, _| format!("({inner} ? 1 : 2) BETWEEN 0 AND 1"));
    check(&format!("c.b = 1 AND {nested}"), "/b = 1 ..");
    let values = many(5_000, &|index| format!("{}", 5_000 - index), ", ");
    assert!(
        print(&Requirements::of(&planned(&format!("SELECT * FROM c WHERE c.a IN ({values})")), &[]).needed)
            .starts_with("/a in [1,2,")
    );
}
