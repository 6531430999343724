//! Documents that are hard to index: very wide, very long, very deep, with names of every character and numbers at the
//! edges. Each query has an answer that is known beforehand, and gives it by index and by scan, whole and in pages of one;
//! afterwards everything stored agrees.

use astrarium_database::{Container, IndexUse, QueryScope};
use astrarium_testkit::EngineKind;
use astrarium_testkit::json::{Json, escape};
use astrarium_testkit::sql::answer::shown;
use astrarium_testkit::sql::stage::{ONE_PAGE, Stage, Way, read_query};
use std::fmt::Write as _;
use std::sync::Arc;

/// What a container has unless a test says otherwise.
const PLAIN: &str = "{\"partitionKey\":\"/pk\"}";

struct World {
    stage: Stage,
    container: Arc<Container>,
}

impl World {
    fn new(engine: EngineKind, definition: &str, documents: &[String]) -> World {
        let mut stage = Stage::new(engine);
        let definition = Json::parse(definition).expect("JSON of ours");
        let container = stage.container(&definition, None, documents).expect("make a container");
        World { stage, container }
    }

    /// Asks for ids in every way.
    fn check(&self, text: &str, parameters: &[(&str, Json)], expected: &[&str]) {
        let parameters: Vec<(String, Json)> =
            parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let query = read_query(text, &parameters).expect("a query of ours");
        let expected: Vec<String> = expected.iter().map(|row| format!("    {row}\n")).collect();
        for index_use in [IndexUse::Never, IndexUse::Always, IndexUse::ByCost] {
            for page_size in [ONE_PAGE, 1] {
                let way = Way {
                    name: "",
                    container: Arc::clone(&self.container),
                    scope: QueryScope::Open { cross_partition: true, whole: true },
                    page_size,
                    spread_work: false,
                    index_use,
                };
                let rows = shown(&self.stage.ask(&query, &way));
                assert_eq!(rows, expected.concat(), "{text}, {index_use:?}, pages of {page_size}");
            }
        }
    }

    fn put(&self, document: &str) -> Result<(), String> {
        self.stage.put(&self.container, document)
    }

    /// Everything stored agrees.
    fn end(self) {
        assert_eq!(self.stage.problems(), Ok(Vec::new()));
    }
}

/// Whether two numbers compare as an operator says.
type Meets = fn(f64, f64) -> bool;

#[test]
fn documents_of_fifteen_hundred_properties() {
    let document = |id: usize, last: usize| {
        let mut text = format!("{{\"id\":\"{id}\",\"pk\":\"a\"");
        for number in 0..1_500 {
            let value = if number == 1_499 { last } else { number * id };
            let _ = write!(text, ",\"p{number}\":{value}");
        }
        text + "}"
    };
    for engine in EngineKind::all() {
        let world = World::new(engine, PLAIN, &[document(1, 7), document(2, 8), document(3, 9)]);
        world.check("SELECT VALUE c.id FROM c WHERE c.p1499 = 8", &[], &["\"2\""]);
        world.check("SELECT VALUE c.id FROM c WHERE c.p700 = 2100 AND c.p1498 = 4494", &[], &["\"3\""]);
        world.check("SELECT VALUE c.id FROM c WHERE c.p700 = 700 AND c.p1498 = 4494", &[], &[]);
        world.check(
            "SELECT VALUE c.id FROM c WHERE c.p1499 > 7 ORDER BY c.p1000 DESC",
            &[],
            &["\"3\"", "\"2\""],
        );
        world.check("SELECT VALUE COUNT(1) FROM c WHERE c.p0 = 0", &[], &["3"]);
        // One property of many changes, and with it one entry.
        world.put(&document(2, 1)).expect("replace a document");
        world.check("SELECT VALUE c.id FROM c WHERE c.p1499 = 8", &[], &[]);
        world.check("SELECT VALUE c.id FROM c ORDER BY c.p1499", &[], &["\"2\"", "\"1\"", "\"3\""]);
        world.end();
    }
}

#[test]
fn arrays_of_ten_thousand_elements() {
    let document = |id: usize, elements: &mut dyn Iterator<Item = usize>| {
        let elements: Vec<String> = elements.map(|element| element.to_string()).collect();
        let objects: Vec<String> = elements.iter().map(|element| format!("{{\"k\":{element}}}")).collect();
        format!(
            "{{\"id\":\"{id}\",\"pk\":\"a\",\"l\":[{}],\"o\":[{}]}}",
            elements.join(","),
            objects.join(",")
        )
    };
    for engine in EngineKind::all() {
        let world = World::new(
            engine,
            PLAIN,
            // The second has every element three times.
            &[document(1, &mut (0..10_000)), document(2, &mut (0..9_999).map(|number| number / 3 + 5_000))],
        );
        world.check("SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.l, 9999)", &[], &["\"1\""]);
        world.check("SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.l, 5001)", &[], &["\"1\"", "\"2\""]);
        world.check("SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.l, 10000)", &[], &[]);
        world.check("SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS(c.l, 5001)", &[], &["2"]);
        world.check("SELECT VALUE COUNT(1) FROM c JOIN x IN c.l WHERE x = 5001", &[], &["4"]);
        world.check(
            "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.o, {\"k\": 4999}, true)",
            &[],
            &["\"1\""],
        );
        let exists = "SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE x FROM x IN c.o WHERE x.k > 8331)";
        world.check(exists, &[], &["\"1\"", "\"2\""]);
        let exists = "SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE x FROM x IN c.o WHERE x.k >= 8333)";
        world.check(exists, &[], &["\"1\""]);
        world.check("SELECT VALUE c.id FROM c WHERE NOT ARRAY_CONTAINS(c.l, 3)", &[], &["\"2\""]);
        world.put(&document(1, &mut (1..10_001))).expect("replace a document");
        world.check("SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.l, 10000)", &[], &["\"1\""]);
        world.check("SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.l, 0)", &[], &[]);
        world.end();
    }
}

/// A text of a megabyte; all are alike but for their ends.
fn long(end: &str) -> String {
    "x".repeat(1 << 20) + end
}

#[test]
fn texts_that_differ_only_at_their_ends() {
    let definition = "{\"partitionKey\":\"/pk\",\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/*\"}],\"compositeIndexes\":[\
        [{\"path\":\"/s\",\"order\":\"ascending\"},{\"path\":\"/n\",\"order\":\"ascending\"}],\
        [{\"path\":\"/n\",\"order\":\"ascending\"},{\"path\":\"/s\",\"order\":\"descending\"}]]}}";
    let document = |id: &str, end: &str, number: usize| {
        format!("{{\"id\":\"{id}\",\"pk\":\"a\",\"s\":\"{}\",\"n\":{number}}}", long(end))
    };
    let documents =
        [document("c", "c", 1), document("a", "a", 3), document("b", "b", 2), document("a2", "a", 1)];
    for engine in EngineKind::all() {
        let world = World::new(engine, definition, &documents);
        let text = |end: &str| [("@s", Json::Text(long(end)))];
        let (a, b, c, twice) = ("\"a\"", "\"b\"", "\"c\"", "\"a2\"");
        world.check("SELECT VALUE c.id FROM c WHERE c.s = @s", &text("b"), &[b]);
        world.check("SELECT VALUE c.id FROM c WHERE c.s = @s", &text("a"), &[a, twice]);
        world.check("SELECT VALUE c.id FROM c WHERE c.s = @s", &text(""), &[]);
        world.check("SELECT VALUE c.id FROM c WHERE c.s != @s", &text("a"), &[c, b]);
        world.check("SELECT VALUE c.id FROM c WHERE c.s IN (@s, \"x\")", &text("c"), &[c]);
        world.check("SELECT VALUE c.id FROM c WHERE c.s < @s", &text("b"), &[a, twice]);
        world.check("SELECT VALUE c.id FROM c WHERE c.s <= @s", &text("b"), &[a, b, twice]);
        world.check("SELECT VALUE c.id FROM c WHERE c.s > @s", &text("b"), &[c]);
        world.check("SELECT VALUE c.id FROM c WHERE c.s >= @s", &text("bb"), &[c]);
        world.check("SELECT VALUE c.id FROM c WHERE STARTSWITH(c.s, @s)", &text("c"), &[c]);
        world.check("SELECT VALUE COUNT(1) FROM c WHERE STARTSWITH(c.s, @s)", &text(""), &["4"]);
        world.check("SELECT VALUE COUNT(1) FROM c WHERE c.s = @s", &text("a"), &["2"]);
        world.check("SELECT VALUE c.id FROM c ORDER BY c.s", &[], &[a, twice, b, c]);
        world.check("SELECT VALUE c.id FROM c ORDER BY c.s DESC", &[], &[c, b, twice, a]);
        world.check("SELECT TOP 1 VALUE c.id FROM c WHERE c.s > @s ORDER BY c.s", &text("a"), &[b]);
        world.check("SELECT VALUE c.id FROM c ORDER BY c.s, c.n", &[], &[twice, a, b, c]);
        world.check("SELECT VALUE c.id FROM c ORDER BY c.s DESC, c.n DESC", &[], &[c, b, a, twice]);
        world.check("SELECT VALUE c.id FROM c ORDER BY c.n, c.s DESC", &[], &[c, twice, b, a]);
        world.check("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.s FROM c)", &[], &["3"]);
        world.check(
            "SELECT COUNT(1) AS n FROM c GROUP BY c.s",
            &[],
            &["{\"n\":1}", "{\"n\":2}", "{\"n\":1}"],
        );
        world.check("SELECT VALUE RIGHT(MAX(c.s), 2) FROM c", &[], &["\"xc\""]);
        world.check("SELECT VALUE RIGHT(MIN(c.s), 2) FROM c", &[], &["\"xa\""]);
        world.end();
    }
}

#[test]
fn unique_keys_of_long_texts_and_odd_values() {
    let definition = "{\"partitionKey\":[\"/pk\",\"/sub\"],\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/s\",\"/o/k\"]}]}}";
    for engine in EngineKind::all() {
        let world = World::new(engine, definition, &[]);
        let put = |id: &str, key: &str, own: &str| {
            world.put(&format!("{{\"id\":\"{id}\",\"pk\":\"a\",\"sub\":{key}{own}}}"))
        };
        let member = |end: &str| format!(",\"s\":\"{}\"", long(end));
        let refused = |outcome: Result<(), String>| {
            assert!(
                outcome.as_ref().is_err_and(|error| error.contains("Unique index constraint violation")),
                "{outcome:?}"
            );
        };
        put("1", "1", &member("a")).expect("a first");
        put("2", "1", &member("b")).expect("another end");
        refused(put("3", "1", &member("a")));
        refused(put("2", "1", &member("a")));
        put("3", "2", &member("a")).expect("another partition below the same first key");
        put("1", "1", &member("a")).expect("the same document again");
        // What is not there is null.
        put("4", "1", ",\"s\":null").expect("null");
        refused(put("5", "1", ""));
        refused(put("5", "1", ",\"o\":{\"k\":null}"));
        put("5", "1", ",\"o\":{\"k\":0}").expect("another number");
        refused(put("6", "1", ",\"o\":{\"k\":-0.0}"));
        put("6", "1", ",\"o\":{\"k\":\"0\"}").expect("a text is no number");
        put("7", "1", ",\"o\":{\"k\":9007199254740992}").expect("a large number");
        refused(put("8", "1", ",\"o\":{\"k\":9007199254740993}"));
        put("8", "1", ",\"o\":{\"k\":[1]}").expect("an array");
        refused(put("9", "1", ",\"o\":{\"k\":[1.0]}"));
        put("9", "1", ",\"o\":{\"k\":[1,1]}").expect("another array");
        // What is given up is free.
        world.stage.remove(&world.container, "[\"a\",1]", "1").expect("remove a document");
        put("10", "1", &member("a")).expect("the key of a removed document");
        put("10", "1", &member("z")).expect("another key");
        put("11", "1", &member("a")).expect("the key of a changed document");
        world.end();
    }
}

#[test]
fn names_of_every_character() {
    let ranges = [
        0..0x300,
        0x2000..0x2070,
        0xD700..0xD800,
        0xE000..0xE010,
        0xFF00..0x1_0010,
        0x1_F600..0x1_F610,
        0x10_FFF0..0x11_0000,
    ];
    let names: Vec<char> = ranges.into_iter().flatten().filter_map(char::from_u32).collect();
    let document = |id: &str, offset: usize| {
        let mut text = format!("{{\"id\":\"{id}\",\"pk\":\"a\"");
        for (number, name) in names.iter().enumerate() {
            let _ = write!(text, ",\"{}\":{}", escape(&name.to_string()), number + offset);
        }
        text + "}"
    };
    // One of the names is left out of the index, one stands in a composite index.
    let definition = "{\"partitionKey\":\"/pk\",\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/*\"}],\
        \"excludedPaths\":[{\"path\":\"/\\\"/\\\"/?\"}],\"compositeIndexes\":[[{\"path\":\"/'\\\"'\"},{\"path\":\"/' '\"}]]}}";
    let world = World::new(EngineKind::Memory, definition, &[document("1", 0), document("2", 1)]);
    for (number, name) in names.iter().enumerate() {
        let name = escape(&name.to_string());
        let text = format!("SELECT VALUE c.id FROM c WHERE c[\"{name}\"] = {number}");
        world.check(&text, &[], &["\"1\""]);
    }
    world.check(
        "SELECT VALUE c.id FROM c ORDER BY c[\"\\\"\"] DESC, c[\" \"] DESC",
        &[],
        &["\"2\"", "\"1\""],
    );
    world.end();
}

#[test]
fn names_that_differ_late_or_not_at_all() {
    let long = "n".repeat(1_000);
    let documents = [
        format!("{{\"id\":\"1\",\"pk\":\"a\",\"{long}a\":1,\"{long}b\":2,\"\":3,\"e\":{{\"\":{{\"\":4}}}}}}"),
        format!("{{\"id\":\"2\",\"pk\":\"a\",\"{long}a\":2,\"{long}b\":1,\"\":4,\"e\":{{\"\":{{\"\":3}}}}}}"),
        // Names with what joins names elsewhere.
        "{\"id\":\"3\",\"pk\":\"a\",\"a\":{\"b\":1},\"a/b\":2,\"a.b\":3,\"[]\":4}".to_owned(),
        "{\"id\":\"4\",\"pk\":\"a\",\"a/b\":1,\"[]\":[4],\"a\":[{\"b\":1}]}".to_owned(),
    ];
    let world = World::new(EngineKind::Memory, PLAIN, &documents);
    for (filter, expected) in [
        (format!("c.{long}a = 1"), "\"1\""),
        (format!("c.{long}b = 1"), "\"2\""),
        ("c[\"\"] = 4".to_owned(), "\"2\""),
        ("c.e[\"\"][\"\"] = 4".to_owned(), "\"1\""),
        ("c.a.b = 1".to_owned(), "\"3\""),
        ("c[\"a/b\"] = 1".to_owned(), "\"4\""),
        ("c[\"[]\"] = 4".to_owned(), "\"3\""),
        ("ARRAY_CONTAINS(c[\"[]\"], 4)".to_owned(), "\"4\""),
        ("ARRAY_CONTAINS(c.a, {\"b\": 1})".to_owned(), "\"4\""),
    ] {
        world.check(&format!("SELECT VALUE c.id FROM c WHERE {filter}"), &[], &[expected]);
    }
    world.end();
}

/// A name given twice counts once, as it does where documents are read.
#[test]
fn names_given_twice() {
    let documents = [
        "{\"id\":\"1\",\"pk\":\"a\",\"n\":1,\"n\":2}".to_owned(),
        "{\"id\":\"2\",\"pk\":\"a\",\"n\":3}".to_owned(),
    ];
    let world = World::new(EngineKind::Memory, PLAIN, &documents);
    for number in 1..4 {
        let text = format!("SELECT VALUE c.id FROM c WHERE c.n = {number}");
        let expected: &[&str] = match number {
            1 => &[],
            2 => &["\"1\""],
            _ => &["\"2\""],
        };
        world.check(&text, &[], expected);
        let count = expected.len().to_string();
        world.check(&format!("SELECT VALUE COUNT(1) FROM c WHERE c.n = {number}"), &[], &[&count]);
    }
    world.check("SELECT VALUE c.id FROM c ORDER BY c.n", &[], &["\"1\"", "\"2\""]);
    world.check("SELECT VALUE MIN(c.n) FROM c", &[], &["2"]);
    world.check("SELECT DISTINCT VALUE c.n FROM c", &[], &["2", "3"]);
    world.end();
    let composite = "{\"partitionKey\":\"/pk\",\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/*\"}],\
        \"compositeIndexes\":[[{\"path\":\"/pk\"},{\"path\":\"/n\"}]]}}";
    let world = World::new(EngineKind::Memory, composite, &documents);
    world.check("SELECT VALUE c.id FROM c WHERE c.pk = \"a\" AND c.n = 1", &[], &[]);
    world.check("SELECT VALUE c.id FROM c WHERE c.pk = \"a\" AND c.n < 3", &[], &["\"1\""]);
    world.check("SELECT VALUE c.id FROM c WHERE c.pk = \"a\" ORDER BY c.n DESC", &[], &["\"2\"", "\"1\""]);
    world.end();
}

/// Paths that some documents lack, or all: they come first, in order of insertion, and last where the order descends.
#[test]
fn orders_by_paths_that_documents_lack() {
    let long = "x".repeat(120);
    let values =
        [("7", ""), ("1", ",\"n\":3"), ("5", ""), ("2", ",\"n\":\"a\""), ("9", ",\"n\":[1]"), ("3", "")];
    let member = |(id, value): &(&str, &str)| format!("{{\"id\":\"{id}\",\"pk\":\"a\"{value}}}");
    let mut documents: Vec<String> = values.iter().map(member).collect();
    documents.push(format!("{{\"id\":\"4\",\"pk\":\"b\",\"n\":\"{long}b\"}}"));
    documents.push(format!("{{\"id\":\"6\",\"pk\":\"b\",\"n\":\"{long}a\"}}"));
    documents.push("{\"id\":\"8\",\"pk\":\"b\"}".to_owned());
    let quoted = |ids: &str| ids.chars().map(|id| format!("\"{id}\"")).collect::<Vec<_>>();
    for engine in EngineKind::all() {
        let world = World::new(engine, PLAIN, &documents);
        let check = |clauses: &str, ids: &str| {
            let ids = quoted(ids);
            let expected: Vec<&str> = ids.iter().map(String::as_str).collect();
            world.check(&format!("SELECT VALUE c.id FROM c {clauses}"), &[], &expected);
        };
        check("ORDER BY c.n", "753812649");
        check("ORDER BY c.n DESC", "946218357");
        check("WHERE c.pk = \"b\" ORDER BY c.n", "864");
        check("WHERE c.pk = \"a\" ORDER BY c.n DESC", "921357");
        check("WHERE IS_DEFINED(c.n) ORDER BY c.n", "12649");
        check("WHERE NOT IS_DEFINED(c.n) ORDER BY c.n DESC", "8357");
        check("WHERE c.n >= \"a\" ORDER BY c.n", "264");
        check("WHERE c.n > 2 AND c.n != 3 ORDER BY c.n", "");
        check("ORDER BY c.n OFFSET 3 LIMIT 3", "812");
        check("ORDER BY c.n DESC OFFSET 4 LIMIT 3", "183");
        check("ORDER BY c.nowhere", "715293468");
        check("ORDER BY c.nowhere DESC", "864392517");
        world.end();
    }
}

/// Two of 200 documents lack a path: they are found without looking at the others.
#[test]
fn orders_by_paths_that_few_documents_lack() {
    let document = |id: usize| match id {
        77 | 150 => format!("{{\"id\":\"{id}\",\"pk\":\"a\"}}"),
        _ => format!("{{\"id\":\"{id}\",\"pk\":\"a\",\"n\":{}}}", id * 7 % 200),
    };
    let documents: Vec<String> = (0..200).map(document).collect();
    let defined = |id: &usize| *id != 77 && *id != 150;
    let mut sorted: Vec<usize> = (0..200).filter(defined).collect();
    sorted.sort_by_key(|id| id * 7 % 200);
    let ids: Vec<usize> = [77, 150].into_iter().chain(sorted).collect();
    let shown: Vec<String> = ids.iter().map(|id| format!("\"{id}\"")).collect();
    let forward: Vec<&str> = shown.iter().map(String::as_str).collect();
    let backward: Vec<&str> = forward.iter().rev().copied().collect();
    for engine in EngineKind::all() {
        let world = World::new(engine, PLAIN, &documents);
        world.check("SELECT VALUE c.id FROM c ORDER BY c.n", &[], &forward);
        world.check("SELECT VALUE c.id FROM c ORDER BY c.n DESC", &[], &backward);
        world.check("SELECT TOP 3 VALUE c.id FROM c ORDER BY c.n", &[], &forward[..3]);
        world.check("SELECT VALUE c.id FROM c WHERE c.id = \"150\" ORDER BY c.n DESC", &[], &["\"150\""]);
        world.end();
    }
}

/// As deep as documents may be: objects in objects, arrays in arrays, and both in turns.
#[test]
fn the_deepest_documents() {
    let depth = 126;
    let nested = |open: &str, close: &str, count: usize, value: usize| {
        format!("{}{value}{}", open.repeat(count), close.repeat(count))
    };
    let document = |id: usize| {
        let objects = nested("{\"a\":", "}", depth, id);
        let arrays = nested("[", "]", depth, id);
        let both = nested("{\"a\":[", "]}", depth / 2, id);
        format!("{{\"id\":\"{id}\",\"pk\":\"a\",\"o\":{objects},\"l\":{arrays},\"b\":{both}}}")
    };
    for engine in EngineKind::all() {
        let world = World::new(engine, PLAIN, &[document(1), document(2)]);
        let place = format!("c.o{}", ".a".repeat(depth));
        world.check(&format!("SELECT VALUE c.id FROM c WHERE {place} = 2"), &[], &["\"2\""]);
        world.check(&format!("SELECT VALUE c.id FROM c ORDER BY {place} DESC"), &[], &["\"2\"", "\"1\""]);
        let place = format!("c.b{}", ".a[0]".repeat(depth / 2));
        world.check(&format!("SELECT VALUE c.id FROM c WHERE {place} = 1"), &[], &["\"1\""]);
        let place = format!("c.l{}", "[0]".repeat(depth - 1));
        world.check(&format!("SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS({place}, 2)"), &[], &["\"2\""]);
        world.end();
    }
}

/// Every comparison of every number with every other one.
#[test]
fn numbers_at_the_edges() {
    let numbers = [
        "-1.7976931348623157e308",
        "-1e308",
        "-18446744073709551616",
        "-9223372036854775809",
        "-9223372036854775808",
        "-9223372036854775807",
        "-9007199254740993",
        "-9007199254740992",
        "-9007199254740991",
        "-1.5",
        "-1",
        "-2.2250738585072014e-308",
        "-5e-324",
        "-0",
        "0",
        "0.0",
        "5e-324",
        "2.225073858507201e-308",
        "2.2250738585072014e-308",
        "0.1",
        "1",
        "1.0",
        "1.5",
        "9007199254740991",
        "9007199254740992",
        "9007199254740993",
        "9007199254740994",
        "9223372036854775806",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "1e22",
        "1e308",
        "1.7976931348623157e308",
    ];
    let document = |(id, number): (usize, &&str)| format!("{{\"id\":\"{id}\",\"pk\":\"a\",\"n\":{number}}}");
    let documents: Vec<String> = numbers.iter().enumerate().map(document).collect();
    let world = World::new(EngineKind::Memory, PLAIN, &documents);
    let values: Vec<f64> = numbers.iter().map(|number| number.parse().expect("a number")).collect();
    let meets: [(&str, Meets); 5] = [
        ("=", |own, other| own.total_cmp(&other).is_eq() || (own == 0.0 && other == 0.0)),
        ("<", |own, other| own < other),
        ("<=", |own, other| own <= other),
        (">", |own, other| own > other),
        (">=", |own, other| own >= other),
    ];
    for (number, value) in numbers.iter().zip(&values) {
        for (operator, meets) in &meets {
            let ids: Vec<String> = (0..numbers.len())
                .filter(|id| meets(values[*id], *value))
                .map(|id| format!("\"{id}\""))
                .collect();
            let expected: Vec<&str> = ids.iter().map(String::as_str).collect();
            world.check(&format!("SELECT VALUE c.id FROM c WHERE c.n {operator} {number}"), &[], &expected);
            let count = ids.len().to_string();
            world.check(
                &format!("SELECT VALUE COUNT(1) FROM c WHERE c.n {operator} @n"),
                &[("@n", Json::Word((*number).to_owned()))],
                &[&count],
            );
        }
    }
    // The list is in order, and equal numbers stay in order of insertion.
    let ids: Vec<String> = (0..numbers.len()).map(|id| format!("\"{id}\"")).collect();
    let mut expected: Vec<&str> = ids.iter().map(String::as_str).collect();
    world.check("SELECT VALUE c.id FROM c ORDER BY c.n", &[], &expected);
    expected.reverse();
    world.check("SELECT VALUE c.id FROM c ORDER BY c.n DESC", &[], &expected);
    world.end();
}
