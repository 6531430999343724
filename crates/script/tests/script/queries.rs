//! Queries written in JavaScript: filter, map and their like, alone and in chains.

use crate::support::{MemoryHost, check_on, check_throws, with_prologue};
use serde_json::{Value, json};

fn people() -> MemoryHost {
    MemoryHost::with(&[
        json!({"id": "1", "name": "Alex", "age": 40, "kids": [{"name": "Bob", "pets": ["x", "y"]}, {"name": "Bill", "pets": []}]}),
        json!({"id": "2", "name": "Alice", "age": 25, "kids": [{"name": "Beth", "pets": ["z"]}]}),
        json!({"id": "3", "name": "Carl", "age": 31}),
    ])
}

/// What the callback of a query gets.
fn check(query: &str, expected: &Value) {
    let body = format!("const done = (err, feed) => {{ if (err) throw err; answer(feed); }}; {query};");
    check_on(&with_prologue(&body), &json!([]), people(), expected);
}

#[test]
fn each_function_does_its_part() {
    check("__.filter(d => d.age > 30, (err, feed) => answer(feed.map(d => d.id)))", &json!(["1", "3"]));
    check("collection.filter(d => d.age > 30, (err, feed) => answer(feed.length))", &json!(2));
    check("__.filter(collection, d => d.age > 30, {}, (err, feed) => answer(feed.length))", &json!(2));
    check("__.map(d => ({ n: d.name }), done)", &json!([{"n": "Alex"}, {"n": "Alice"}, {"n": "Carl"}]));
    check("__.pluck('age', done)", &json!([40, 25, 31]));
    check("__.pluck('none', (err, feed) => answer(feed.length))", &json!(3));
    check("__.sortBy(d => d.age, (err, feed) => answer(feed.map(d => d.id)))", &json!(["2", "3", "1"]));
    check(
        "__.sortByDescending(d => d.age, (err, feed) => answer(feed.map(d => d.id)))",
        &json!(["1", "3", "2"]),
    );
    check(
        "__.unwind(d => d.kids, {}, (err, feed) => answer(feed.map(k => k.name)))",
        &json!(["Bob", "Bill", "Beth"]),
    );
    check(
        "__.unwind(d => d.kids, (d, k) => d.name + '/' + k.name, done)",
        &json!(["Alex/Bob", "Alex/Bill", "Alice/Beth"]),
    );
}

#[test]
fn chains_pass_results_on() {
    check(
        "__.chain().filter(d => d.age < 35).sortBy(d => d.name).pluck('name').value(done)",
        &json!(["Alice", "Carl"]),
    );
    check(
        "__.chain().unwind(c => c.kids, (c, k) => ({ c, k })).unwind(ck => ck.k.pets, (ck, p) => ck.c.name + ck.k.name + p)
            .value(done)",
        &json!(["AlexBobx", "AlexBoby", "AliceBethz"]),
    );
    check("__.chain().map(d => [[d.id]]).flatten().value(done)", &json!(["1", "2", "3"]));
    check("__.chain().map(d => [[d.id]]).flatten(true).value(done)", &json!([["1"], ["2"], ["3"]]));
}

#[test]
fn without_a_callback_the_result_is_the_response() {
    check("__.chain().pluck('age').value()", &json!("[40,25,31]"));
    check("__.filter(d => d.id === '3').isAccepted || answer('refused')", &json!(people_text("3")));
    check("__.pluck('id'); __.pluck('age')", &json!("[\"1\",\"2\",\"3\"][40,25,31]"));
}

fn people_text(id: &str) -> String {
    format!("[{}]", people().documents[id])
}

#[test]
fn pages_go_on_until_they_are_full_or_the_documents_end() {
    let pages = |query: &str| {
        format!(
            "const next = continuation => {query}.value({{ pageSize: 2, continuation }}, (err, feed, info) => {{
                if (err) throw err;
                note(feed.join());
                if (info.continuation) next(info.continuation);
            }}); next();"
        )
    };
    check(&pages("__.chain().pluck('id')"), &json!(["1,2", "3"]));
    check(&pages("__.chain().filter(d => d.id === '3').pluck('id')"), &json!(["3"]));
    check(&pages("__.chain().sortByDescending(d => d.age).pluck('id')"), &json!(["1,3", "2"]));
    check("__.filter(d => true, { pageSize: -1 }, (err, feed) => answer(feed.length))", &json!(3));
}

#[test]
fn sorting_knows_all_kinds_of_values() {
    let host = MemoryHost::with(&[
        json!({"id": "1", "v": "b"}),
        json!({"id": "2", "v": 5}),
        json!({"id": "3", "v": null}),
        json!({"id": "4"}),
        json!({"id": "5", "v": true}),
        json!({"id": "6", "v": "a"}),
        json!({"id": "7", "v": -1}),
    ]);
    let source = with_prologue("__.sortBy(d => d.v, (err, feed) => answer(feed.map(d => d.id).join('')));");
    check_on(&source, &json!([]), host, &json!("4357261"));
}

#[test]
fn what_is_refused() {
    for (query, expected) in [
        ("__.filter()", "function must be given"),
        ("__.filter(5)", "function must be given"),
        ("__.pluck('')", "property name"),
        ("__.unwind(5)", "selects the inner collection"),
        ("__.unwind(() => [])", "takes one argument"),
        ("__.chain().filter(d => true, () => {})", "\"value\" function only"),
        ("__.chain().map(d => d, { pageSize: 1 })", "\"value\" function only"),
        ("__.map(d => d.none.none)", "TypeError"),
        ("__.sortBy(d => 1, { continuation: 'x' })", "Invalid Continuation"),
    ] {
        let source = with_prologue(query);
        let failure = crate::support::run(&source, &json!([]), people()).expect_err(query);
        let text = failure.error.to_string();
        assert!(text.contains(expected), "{query}: {text}");
    }
    check_throws(&with_prologue("__.map(d => d, () => { throw new Error('mine'); });"), "mine");
}
