//! Laws: a document that gives a row meets the need; one that meets a need that decides gives exactly one row.

use super::meets::meets;
use super::print::print;
use super::run::row_count;
use super::{planned, value};
use astrarium_sql_plan::needs::Requirements;
use proptest::prelude::*;
use proptest::sample::select;

const CONSTANTS: [&str; 24] = [
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "2",
    "-1",
    "1.5",
    "NaN",
    "Infinity",
    "''",
    "'a'",
    "'ab'",
    "'A'",
    "'\u{e000}'",
    "'😀'",
    "[]",
    "[1]",
    "['a', 1]",
    "{}",
    "{\"x\": 1}",
    "{\"x\": 1, \"y\": 'a'}",
    "undefined",
];

const STORED: [&str; 17] = [
    "null",
    "true",
    "false",
    "0",
    "1",
    "2",
    "-1",
    "1.5",
    "\"\"",
    "\"a\"",
    "\"ab\"",
    "\"A\"",
    "\"\u{e000}\"",
    "\"😀b\"",
    "[1]",
    "{\"x\":1}",
    "{\"x\":1,\"y\":\"a\"}",
];

fn constant() -> impl Strategy<Value = String> {
    select(&CONSTANTS[..]).prop_map(str::to_owned)
}

/// A path from one of some roots; all of them lead somewhere in some documents.
fn path(roots: &'static [&'static str]) -> impl Strategy<Value = String> {
    let tail = select(vec![
        "",
        ".x",
        ".a",
        ".a",
        ".a",
        ".b",
        ".b",
        ".o.x",
        ".tags",
        ".tags",
        ".objs",
        ".tags[0]",
        ".objs[1].x",
    ]);
    (select(roots), tail).prop_map(|(root, tail)| format!("{root}{tail}"))
}

/// A condition without AND, OR and NOT.
fn atom(roots: &'static [&'static str]) -> BoxedStrategy<String> {
    let comparison = || select(vec!["=", "!=", "<", "<=", ">", ">="]);
    let functions = vec![
        "STARTSWITH(p, k)",
        "STARTSWITH(p, k, false)",
        "STARTSWITH(p, k, true)",
        "STARTSWITH(k, p)",
        "STRINGEQUALS(p, k)",
        "STRINGEQUALS(k, p)",
        "STRINGEQUALS(p, k, true)",
        "CONTAINS(p, k)",
        "ENDSWITH(p, k)",
        "REGEXMATCH(p, '^a')",
        "REGEXMATCH(p, '^ab?')",
        "REGEXMATCH(p, '^a', 'i')",
        "REGEXMATCH(p, '^a|b')",
        "REGEXMATCH(p, 'b$')",
        "p LIKE 'a%'",
        "p LIKE 'a'",
        "p LIKE '%b'",
        "p LIKE 'a_'",
        "p LIKE '%'",
        "p NOT LIKE 'a%'",
        "ARRAY_CONTAINS(p, k)",
        "ARRAY_CONTAINS(p, k, true)",
        "ARRAY_CONTAINS_ANY(p, k, l)",
        "ARRAY_CONTAINS_ALL(p, k, l)",
        "ARRAY_CONTAINS([k, l], p)",
        "ARRAY_CONTAINS([k, l], p, true)",
        "ARRAY_CONTAINS(p, q)",
        "IS_DEFINED(p)",
        "IS_NULL(p)",
        "IS_BOOL(p)",
        "IS_NUMBER(p)",
        "IS_STRING(p)",
        "IS_ARRAY(p)",
        "IS_OBJECT(p)",
        "IS_PRIMITIVE(p)",
        "IS_INTEGER(p)",
        "p",
        "p IN (k, l)",
        "p IN (k, q)",
        "k IN (p, q)",
        "p NOT IN (k, l)",
        "p BETWEEN k AND l",
        "k BETWEEN p AND q",
        "p NOT BETWEEN k AND l",
        "(p ?? k)",
        "(p ?? q) = k",
        "(p ?? k) = l",
        "(p ? q : k)",
        "(p ? q : k) = l",
        "IIF(p, q, k)",
        "(p = k) = true",
        "IS_DEFINED(p) = false",
        "p + 1 = k",
        "LEFT(p, 1) = k",
        "SUBSTRING(p, 0, 1) = k",
        "SUBSTRING(p, 1, 1) = k",
        "LOWER(p) = k",
    ];
    let fill = |form: &str, parts: &[(char, &str)]| {
        // Placeholders are single letters that stand alone.
        let mut text = String::new();
        let letters: Vec<char> = form.chars().collect();
        for (index, letter) in letters.iter().enumerate() {
            let alone = |at: Option<&char>| at.is_none_or(|near| !near.is_alphanumeric() && *near != '\'');
            let before = index.checked_sub(1).and_then(|index| letters.get(index));
            let stands_alone = alone(before) && alone(letters.get(index + 1));
            match parts.iter().find(|(name, _)| name == letter && stands_alone) {
                Some((_, part)) => text.push_str(part),
                None => text.push(*letter),
            }
        }
        text
    };
    let number = select(vec!["ABS", "FLOOR", "CEILING", "ROUND", "TRUNC"]);
    prop_oneof![
        4 => (path(roots), comparison(), constant(), any::<bool>()).prop_map(|(path, operator, constant, mirrored)| {
            if mirrored { format!("{constant} {operator} {path}") } else { format!("{path} {operator} {constant}") }
        }),
        1 => (path(roots), comparison(), path(roots)).prop_map(|(a, operator, b)| format!("{a} {operator} {b}")),
        1 => (number, path(roots), comparison(), constant())
            .prop_map(|(name, path, operator, constant)| format!("{name}({path}) {operator} {constant}")),
        6 => (select(functions), path(roots), path(roots), constant(), constant())
            .prop_map(move |(form, p, q, k, l)| fill(form, &[('p', &p), ('q', &q), ('k', &k), ('l', &l)])),
    ]
    .boxed()
}

/// A condition; `depth` levels of EXISTS inside at most.
fn filter(roots: &'static [&'static str], depth: usize) -> BoxedStrategy<String> {
    let mut leaf = atom(roots);
    if depth > 0 {
        let inner = if roots.contains(&"c") { &["e", "e", "e", "c"][..] } else { &["e"] };
        let inner = filter(inner, depth - 1);
        let form = select(vec!["VALUE e", "VALUE 1", "e.x", "VALUE e.x", "*"]);
        let exists = (form, select(roots), select(vec![".tags", ".objs", ".objs[0].tags"]), inner).prop_map(
            |(form, root, tail, inner)| format!("EXISTS(SELECT {form} FROM e IN {root}{tail} WHERE {inner})"),
        );
        leaf = prop_oneof![5 => leaf, 1 => exists].boxed();
    }
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 2..4).prop_map(|all| format!("({})", all.join(" AND "))),
            proptest::collection::vec(inner.clone(), 2..4).prop_map(|all| format!("({})", all.join(" OR "))),
            inner.prop_map(|one| format!("NOT ({one})")),
        ]
    })
    .boxed()
}

fn query() -> BoxedStrategy<String> {
    let over = |from: &'static str, roots| {
        filter(roots, 1).prop_map(move |filter| format!("SELECT VALUE 1 FROM {from} WHERE {filter}"))
    };
    let rows = (filter(&["t"], 0), filter(&["s", "c"], 0));
    prop_oneof![
        6 => over("c", &["c"]),
        1 => over("c.o", &["o"]),
        1 => over("c JOIN t IN c.tags", &["c", "t"]),
        1 => over("c JOIN o IN c.objs JOIN t IN o.tags", &["c", "o", "t"]),
        1 => over("c JOIN c.o s", &["c", "s"]),
        1 => over("c JOIN (SELECT c.o.x AS x, c.b AS a) s", &["c", "s"]),
        1 => over("t IN c.objs", &["t"]),
        1 => rows.prop_map(|(inner, outer)| {
            format!("SELECT * FROM c JOIN (SELECT VALUE t FROM t IN c.objs WHERE {inner}) s WHERE {outer}")
                .replace("SELECT *", "SELECT VALUE 1")
        }),
    ]
    .boxed()
}

/// A document with the properties that paths name, some of them absent.
fn document() -> impl Strategy<Value = String> {
    let stored = || select(&STORED[..]).prop_map(str::to_owned);
    let list = |of: BoxedStrategy<String>| {
        proptest::collection::vec(of, 0..3).prop_map(|all| format!("[{}]", all.join(",")))
    };
    let object = |names: [&'static str; 3]| {
        (proptest::option::of(stored()), proptest::option::of(stored()), list(stored().boxed())).prop_map(
            move |(first, second, third)| {
                let members = [(names[0], first), (names[1], second), (names[2], Some(third))];
                let members: Vec<String> = members
                    .into_iter()
                    .filter_map(|(name, value)| Some(format!("\"{name}\":{}", value?)))
                    .collect();
                format!("{{{}}}", members.join(","))
            },
        )
    };
    let inner = move || object(["x", "a", "tags"]);
    (object(["a", "b", "tags"]), proptest::option::of(inner()), list(inner().boxed())).prop_map(
        |(own, o, objs)| {
            let o = o.map(|o| format!("\"o\":{o},")).unwrap_or_default();
            format!("{{{o}\"objs\":{objs},{}", &own[1..])
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn needs_are_what_filters_imply(query in query(), documents in proptest::collection::vec(document(), 24)) {
        let plan = planned(&query);
        let needed = Requirements::of(&plan, &[]).needed;
        let decides = needed.decides();
        for document in &documents {
            let stored = value(document);
            let (rows, met) = (row_count(&plan, &stored), meets(&needed.need, &stored));
            let told = format!("{query}\n{}\n{document}", print(&needed));
            prop_assert!(rows == 0 || met, "passes and does not meet the need: {told}");
            prop_assert!(!decides || rows == usize::from(met), "meets the need, {rows} rows: {told}");
        }
    }
}
