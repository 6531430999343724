//! Cases and laws of patching. The cases follow the documented rules and messages; a slow implementation on values
//! serves as the oracle for the laws.

use super::*;
use crate::PropertyPath;
use crate::json::Text;
use proptest::prelude::*;
use serde_json::{Value, json};

fn operations(list: &str) -> Result<Vec<PatchOperation>, PatchError> {
    parse_operations(Text::parse(list.as_bytes()).unwrap_or_else(|error| panic!("{list}: {error}")).root())
}

fn patched(document: &str, list: &str) -> Result<String, String> {
    let result = operations(list).and_then(|operations| apply(document.as_bytes(), &operations));
    result.map(|text| String::from_utf8(text).unwrap()).map_err(|error| error.to_string())
}

#[track_caller]
fn check(document: &str, list: &str, expected: &str) {
    assert_eq!(patched(document, list).as_deref(), Ok(expected), "{list} on {document}");
}

/// The end of the message; the beginning names the operation.
#[track_caller]
fn refused(document: &str, list: &str, index: usize, message: &str) {
    let expected = format!("For Operation({index}): {message}");
    assert_eq!(patched(document, list), Err(expected), "{list} on {document}");
}

#[test]
fn the_example_of_the_documentation() {
    check(
        r#"{"id":"e379","name":"R-410 Road Bicycle","price":455.95,"inventory":{"quantity":15},"used":false,"categoryId":"road-bikes","tags":["r-series"]}"#,
        r#"[{"op":"add","path":"/color","value":"silver"},{"op":"remove","path":"/used"},
            {"op":"set","path":"/price","value":355.45},{"op":"incr","path":"/inventory/quantity","value":10},
            {"op":"add","path":"/tags/-","value":"featured-bikes"},
            {"op":"move","from":"/color","path":"/inventory/color"}]"#,
        r#"{"id":"e379","name":"R-410 Road Bicycle","price":355.45,"inventory":{"quantity":25,"color":"silver"},"categoryId":"road-bikes","tags":["r-series","featured-bikes"]}"#,
    );
}

#[test]
fn add() {
    check("{}", r#"[{"op":"add","path":"/a","value":[1, {"b" : 2}]}]"#, r#"{"a":[1,{"b":2}]}"#);
    check(r#"{"a":1,"b":2}"#, r#"[{"op":"add","path":"/a","value":null}]"#, r#"{"a":null,"b":2}"#);
    check(r#"{"a":{}}"#, r#"[{"op":"add","path":"/a/b","value":"x"}]"#, r#"{"a":{"b":"x"}}"#);
    check(r#"{"a":[1,2]}"#, r#"[{"op":"add","path":"/a/0","value":0}]"#, r#"{"a":[0,1,2]}"#);
    check(r#"{"a":[1,2]}"#, r#"[{"op":"add","path":"/a/1","value":0}]"#, r#"{"a":[1,0,2]}"#);
    check(r#"{"a":[1,2]}"#, r#"[{"op":"add","path":"/a/2","value":0}]"#, r#"{"a":[1,2,0]}"#);
    check(r#"{"a":[]}"#, r#"[{"op":"add","path":"/a/-","value":0}]"#, r#"{"a":[0]}"#);
    check(r#"{"a":[]}"#, r#"[{"op":"add","path":"/a/0","value":0}]"#, r#"{"a":[0]}"#);
    check(r#"{"a":[[],{}]}"#, r#"[{"op":"add","path":"/a/1/b","value":0}]"#, r#"{"a":[[],{"b":0}]}"#);
    let beyond = |name: &str| {
        format!(
            "Add PatchOperation can only create a child object of an existing node(array or object) and cannot create path \
             recursively, no path found beyond: '{name}'."
        )
    };
    refused(r#"{"a":1}"#, r#"[{"op":"add","path":"/no/child","value":"bar"}]"#, 1, &beyond("no"));
    refused(r#"{"a":{}}"#, r#"[{"op":"add","path":"/a/b/c/d","value":"bar"}]"#, 1, &beyond("b"));
    refused(r#"{"a":1}"#, r#"[{"op":"add","path":"/a/b","value":"bar"}]"#, 1, &beyond("a"));
    refused(r#"{"a":"x"}"#, r#"[{"op":"add","path":"/a/b/c","value":"bar"}]"#, 1, &beyond("a"));
    let bounds = |index: &str| format!("Index({index}) to operate on is out of array bounds.");
    refused(r#"{"a":[1,2]}"#, r#"[{"op":"add","path":"/a/3","value":0}]"#, 1, &bounds("3"));
    refused(r#"{"a":[1,2]}"#, r#"[{"op":"add","path":"/a/2/b","value":0}]"#, 1, &bounds("2"));
    refused(r#"{"a":[1,2]}"#, r#"[{"op":"add","path":"/a/-/b","value":0}]"#, 1, &bounds("-"));
    for index in ["x", "01", "-1", "", "1e0", "18446744073709551616", "18446744073709551615"] {
        let list = format!(r#"[{{"op":"add","path":"/a/{index}","value":0}}]"#);
        refused(r#"{"a":[1,2]}"#, &list, 1, &bounds(index));
    }
}

#[test]
fn set_and_replace() {
    check("{}", r#"[{"op":"set","path":"/a","value":1}]"#, r#"{"a":1}"#);
    check(r#"{"a":[1,2]}"#, r#"[{"op":"set","path":"/a/0","value":0}]"#, r#"{"a":[0,2]}"#);
    check(r#"{"a":[1,2]}"#, r#"[{"op":"set","path":"/a/2","value":0}]"#, r#"{"a":[1,2,0]}"#);
    check(r#"{"a":[1,2]}"#, r#"[{"op":"set","path":"/a/-","value":0}]"#, r#"{"a":[1,2,0]}"#);
    check(
        r#"{"a":[1,2],"b":{}}"#,
        r#"[{"op":"replace","path":"/a/1","value":{}}]"#,
        r#"{"a":[1,{}],"b":{}}"#,
    );
    check(r#"{"a":{"b":[]}}"#, r#"[{"op":"replace","path":"/a","value":"x"}]"#, r#"{"a":"x"}"#);
    let given = "Given PatchOperation can only create a child object of an existing node(array or object) and cannot create \
                 path recursively, no path found beyond: 'b'.";
    refused(r#"{"a":{}}"#, r#"[{"op":"set","path":"/a/b/c","value":1}]"#, 1, given);
    refused(r#"{"a":{}}"#, r#"[{"op":"replace","path":"/a/b/c","value":1}]"#, 1, given);
    refused(
        r#"{"a":1}"#,
        r#"[{"op":"replace","path":"/b~1c","value":1}]"#,
        1,
        "Node(/b~1c) to be replaced is absent.",
    );
    refused(
        r#"{"a":1}"#,
        r#"[{"op":"remove","path":"/a"},{"op":"replace","path":"/a","value":1}]"#,
        2,
        "Node(/a) to be replaced has been removed earlier in the transaction.",
    );
    for op in ["set", "replace"] {
        let list = format!(r#"[{{"op":"{op}","path":"/a/3","value":0}}]"#);
        refused(r#"{"a":[1,2]}"#, &list, 1, "Index(3) to operate on is out of array bounds.");
    }
    for index in ["2", "-"] {
        let list = format!(r#"[{{"op":"replace","path":"/a/{index}","value":0}}]"#);
        let message = format!("Index({index}) to operate on is out of array bounds.");
        refused(r#"{"a":[1,2]}"#, &list, 1, &message);
    }
}

#[test]
fn remove() {
    let document = r#"{"a":1,"b":[1,[],"x"],"c":{"d":"},"}}"#;
    check(document, r#"[{"op":"remove","path":"/a","value":null}]"#, r#"{"b":[1,[],"x"],"c":{"d":"},"}}"#);
    check(document, r#"[{"op":"remove","path":"/b"}]"#, r#"{"a":1,"c":{"d":"},"}}"#);
    check(document, r#"[{"op":"remove","path":"/c"}]"#, r#"{"a":1,"b":[1,[],"x"]}"#);
    check(document, r#"[{"op":"remove","path":"/c/d"}]"#, r#"{"a":1,"b":[1,[],"x"],"c":{}}"#);
    check(document, r#"[{"op":"remove","path":"/b/0"}]"#, r#"{"a":1,"b":[[],"x"],"c":{"d":"},"}}"#);
    check(document, r#"[{"op":"remove","path":"/b/2"}]"#, r#"{"a":1,"b":[1,[]],"c":{"d":"},"}}"#);
    check(r#"{"a":[1]}"#, r#"[{"op":"remove","path":"/a/0"}]"#, r#"{"a":[]}"#);
    let absent =
        "Node(/x) to be removed is absent. Note: it may also have been removed earlier in the transaction.";
    refused(document, r#"[{"op":"remove","path":"/a"},{"op":"remove","path":"/x"}]"#, 2, absent);
    refused(
        document,
        r#"[{"op":"remove","path":"/b/3"}]"#,
        1,
        "Index(3) to operate on is out of array bounds.",
    );
}

#[test]
fn increment() {
    let sum = |target: &str, by: &str, expected: &str| {
        let list = format!(r#"[{{"op":"incr","path":"/a","value":{by}}}]"#);
        check(&format!(r#"{{"a":{target}}}"#), &list, &format!(r#"{{"a":{expected}}}"#));
    };
    sum("5", "7", "12");
    sum("5", "-7", "-2");
    sum("-0", "0", "0");
    sum("1.5", "1", "2.5");
    sum("1", "0.5", "1.5");
    sum("1.0", "1", "2");
    sum("9007199254740993", "1", "9007199254740994");
    sum("9223372036854775807", "1", "9223372036854776000");
    sum("1e2", "1", "101");
    check("{}", r#"[{"op":"incr","path":"/a","value":1.50}]"#, r#"{"a":1.50}"#);
    check(r#"{"a":[1]}"#, r#"[{"op":"increment","path":"/a/0","value":1}]"#, r#"{"a":[2]}"#);
    check(r#"{"a":[1]}"#, r#"[{"op":"incr","path":"/a/1","value":5}]"#, r#"{"a":[1,5]}"#);
    for value in ["\"5\"", "null", "true", "[1]", "{}"] {
        let document = format!(r#"{{"a":{value}}}"#);
        refused(&document, r#"[{"op":"incr","path":"/a","value":1}]"#, 1, "Node(/a) is not a number.");
    }
    refused(
        r#"{"a":1.7e308}"#,
        r#"[{"op":"incr","path":"/a","value":1e308}]"#,
        1,
        "Node(/a) incremented is out of the range of double precision.",
    );
}

#[test]
fn moves() {
    let document = r#"{"a":{"b":[1,2,3]},"c":"x"}"#;
    check(document, r#"[{"op":"move","from":"/c","path":"/d"}]"#, r#"{"a":{"b":[1,2,3]},"d":"x"}"#);
    check(document, r#"[{"op":"move","from":"/a/b","path":"/c"}]"#, r#"{"a":{},"c":[1,2,3]}"#);
    check(document, r#"[{"op":"move","from":"/c","path":"/a/b/1"}]"#, r#"{"a":{"b":[1,"x",2,3]}}"#);
    check(document, r#"[{"op":"move","from":"/a/b/0","path":"/a/b/2"}]"#, r#"{"a":{"b":[2,3,1]},"c":"x"}"#);
    check(document, r#"[{"op":"move","from":"/a/b/2","path":"/a/b/0"}]"#, r#"{"a":{"b":[3,1,2]},"c":"x"}"#);
    check(document, r#"[{"op":"move","from":"/a","path":"/a"}]"#, document);
    let inside = "Node(/a) cannot be moved to a path inside of itself.";
    refused(document, r#"[{"op":"move","from":"/a","path":"/a/b/c"}]"#, 1, inside);
    let absent =
        "Node(/x) to be removed is absent. Note: it may also have been removed earlier in the transaction.";
    refused(document, r#"[{"op":"move","from":"/x","path":"/y"}]"#, 1, absent);
    refused(document, r#"[{"op":"move","from":"/x","path":"/x"}]"#, 1, absent);
    refused(
        document,
        r#"[{"op":"move","from":"/c","path":"/x/y"}]"#,
        1,
        "Given PatchOperation can only create a child object of an existing node(array or object) and cannot create path \
         recursively, no path found beyond: 'x'.",
    );
}

#[test]
fn names_and_spellings() {
    let document = r#"{"a/b":{"~":1.50},"\u0061":[1E+2, "\u00e9"],"":0}"#.replace(", ", ",");
    check(
        &document,
        r#"[{"op":"set","path":"/a~1b/~0","value":2},{"op":"add","path":"/a/0","value":"x"},
            {"op":"remove","path":"/"},{"op":"add","path":"/\"q\n","value":0.10}]"#,
        r#"{"a/b":{"~":2},"\u0061":["x",1E+2,"\u00e9"],"\"q\n":0.10}"#,
    );
    check(
        r#"{"a":1}"#,
        r#"[{"op":"set","path":"/a","value":{"b":1,"c":2,"b":3}}]"#,
        r#"{"a":{"c":2,"b":3}}"#,
    );
}

#[test]
fn specifications() {
    let check = |list: &str, message: &str| {
        let found = operations(list).map_err(|error| error.to_string());
        assert_eq!(found, Err(message.to_owned()), "{list}");
    };
    let syntax = |list: &str, detail: &str| {
        check(list, &format!("Invalid patch request: check syntax of patch specification. {detail}"));
    };
    syntax("{}", "'operations' must be an array.");
    syntax("[]", "There are no operations.");
    syntax("[1]", "Operation(1) is not an object.");
    syntax(r#"[{"path":"/a"}]"#, "Operation(1) has no 'op'.");
    syntax(r#"[{"op":1,"path":"/a"}]"#, "Operation(1) has a 'op' that is not a string.");
    syntax(r#"[{"op":"remove"}]"#, "Operation(1) has no 'path'.");
    syntax(
        r#"[{"op":"remove","path":"a"}]"#,
        "Operation(1) has an invalid 'path': a path must start with '/'.",
    );
    syntax(r#"[{"op":"remove","path":null}]"#, "Operation(1) has a 'path' that is not a string.");
    syntax(
        r#"[{"op":"remove","path":"/a"},{"op":"test","path":"/a","value":1}]"#,
        "Operation(2) has an unknown 'op': 'test'.",
    );
    syntax(r#"[{"op":"set","path":"/a"}]"#, "Operation(1) has no 'value'.");
    syntax(r#"[{"op":"incr","path":"/a","value":"1"}]"#, "Operation(1) has a 'value' that is not a number.");
    syntax(r#"[{"op":"move","path":"/a"}]"#, "Operation(1) has no 'from'.");
    let many = |count: usize| format!("[{}]", vec![r#"{"op":"remove","path":"/a"}"#; count].join(","));
    check(&many(11), "The number of patch operations cannot exceed 10.");
    assert_eq!(operations(&many(10)).map(|list| list.len()), Ok(10));
}

#[test]
fn what_may_not_be_patched() {
    let keys = [PropertyPath::parse("/pk").unwrap(), PropertyPath::parse("/address/'zip code'").unwrap()];
    let check = |list: &str, expected: Result<(), &str>| {
        let result = check_targets(&operations(list).unwrap(), &["_rid", "_ts"], &keys);
        let message = result.map_err(|error| error.to_string());
        assert_eq!(message, expected.map_err(|text| format!("Invalid patch request: Cannot patch {text}.")));
    };
    check(r#"[{"op":"set","path":"/ttl","value":5},{"op":"set","path":"/a/_rid","value":5}]"#, Ok(()));
    check(
        r#"[{"op":"set","path":"/address","value":5},{"op":"set","path":"/address/zip","value":5}]"#,
        Ok(()),
    );
    check(
        r#"[{"op":"remove","path":"/a"},{"op":"set","path":"/id","value":"x"}]"#,
        Err("system property id"),
    );
    check(r#"[{"op":"incr","path":"/_ts","value":1}]"#, Err("system property _ts"));
    check(r#"[{"op":"move","from":"/_rid","path":"/a"}]"#, Err("system property _rid"));
    check(r#"[{"op":"move","from":"/a","path":"/pk"}]"#, Err("partition key path /pk"));
    check(r#"[{"op":"set","path":"/pk/x","value":1}]"#, Err("partition key path /pk"));
    check(
        r#"[{"op":"set","path":"/address/zip code","value":1}]"#,
        Err("partition key path /address/'zip code'"),
    );
}

#[test]
fn long_and_damaged_input() {
    let document = format!(r#"{{"a":[{}1]}}"#, "1,".repeat(500_000));
    let list = format!("[{}]", [r#"{"op":"add","path":"/a/-","value":2}"#; 10].join(","));
    let text = patched(&document, &list).unwrap();
    assert!(text.ends_with(",1,2,2,2,2,2,2,2,2,2,2]}") && text.len() == document.len() + 20);
    let long = format!(r#"[{{"op":"remove","path":"/{}"}}]"#, "x".repeat(1_000_000));
    assert!(patched("{}", &long).unwrap_err().len() < 300);
    for damaged in
        ["", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "[", "[1", "{\"a\":[}", "{\"b\":1]", "{,}", "{\"\\"]
    {
        for path in ["/a", "/a/0", "/a/b/c"] {
            let list = operations(&format!(r#"[{{"op":"set","path":"{path}","value":1}}]"#)).unwrap();
            let _ = apply(damaged.as_bytes(), &list);
        }
    }
}

/// The same rules on values, written without regard to cost or spelling.
fn oracle(document: &mut Value, operation: &Value) -> Option<()> {
    let pointer = |name: &str| operation[name].as_str().map(str::to_owned);
    let (path, value) = (pointer("path")?, operation.get("value").cloned());
    match operation["op"].as_str()? {
        "add" => put(document, &path, value?, true),
        "set" => put(document, &path, value?, false),
        "replace" => {
            document.pointer(&path).is_some().then(|| put(document, &path, value.unwrap(), false))?
        }
        "remove" => cut(document, &path).map(drop),
        "incr" => match document.pointer(&path) {
            Some(Value::Number(number)) => {
                let sum = number.as_i64()? + value?.as_i64()?;
                put(document, &path, json!(sum), false)
            }
            Some(_) => None,
            None => put(document, &path, value?, false),
        },
        _ => {
            let from = pointer("from")?;
            if path == from {
                return document.pointer(&path).map(drop);
            }
            (!path.starts_with(&format!("{from}/"))).then_some(())?;
            let value = cut(document, &from)?;
            put(document, &path, value, true)
        }
    }
}

fn put(document: &mut Value, path: &str, value: Value, inserts: bool) -> Option<()> {
    let (parent, last) = path.rsplit_once('/')?;
    match document.pointer_mut(parent)? {
        Value::Object(members) => drop(members.insert(last.to_owned(), value)),
        Value::Array(elements) => {
            let index = if last == "-" { elements.len() } else { last.parse().ok()? };
            match index {
                _ if index > elements.len() => return None,
                _ if inserts || index == elements.len() => elements.insert(index, value),
                _ => elements[index] = value,
            }
        }
        _ => return None,
    }
    Some(())
}

fn cut(document: &mut Value, path: &str) -> Option<Value> {
    let (parent, last) = path.rsplit_once('/')?;
    match document.pointer_mut(parent)? {
        Value::Object(members) => members.shift_remove(last),
        Value::Array(elements) => {
            let index = last.parse().ok().filter(|index| *index < elements.len())?;
            Some(elements.remove(index))
        }
        _ => None,
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-50..50_i64).prop_map(|number| json!(number)),
        "[a\"\\\\,}\\]é]{0,3}".prop_map(Value::String),
    ];
    scalar.prop_recursive(4, 30, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec(("[abc]", inner), 0..4).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

fn any_path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "0", "1", "2", "-"]), 1..4)
        .prop_map(|parts| format!("/{}", parts.join("/")))
}

fn any_operation() -> impl Strategy<Value = Value> {
    prop_oneof![
        (prop::sample::select(vec!["add", "set", "replace"]), any_path(), any_value())
            .prop_map(|(op, path, value)| json!({"op": op, "path": path, "value": value})),
        any_path().prop_map(|path| json!({"op": "remove", "path": path})),
        (any_path(), -5..5_i64).prop_map(|(path, by)| json!({"op": "incr", "path": path, "value": by})),
        (any_path(), any_path()).prop_map(|(from, path)| json!({"op": "move", "from": from, "path": path})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn patches_like_the_oracle(
        members in prop::collection::vec(("[abc]", any_value()), 0..4),
        list in prop::collection::vec(any_operation(), 1..5),
    ) {
        let mut document: Value = members.into_iter().collect();
        let before = document.to_string();
        let result = patched(&before, &Value::Array(list.clone()).to_string());
        let done = list.iter().try_for_each(|operation| oracle(&mut document, operation));
        // Same text, not only the same value: order and spelling are part of the promise.
        prop_assert_eq!(result.ok(), done.map(|()| document.to_string()));
    }

    #[test]
    fn what_is_set_back_leaves_no_trace(
        members in prop::collection::vec(("[abc]", any_value()), 1..4),
        path in any_path(),
        value in any_value(),
    ) {
        let document: Value = members.into_iter().collect();
        if let Some(old) = document.pointer(&path) {
            let list = json!([
                {"op": "set", "path": path, "value": value},
                {"op": "replace", "path": path, "value": old},
            ]);
            prop_assert_eq!(patched(&document.to_string(), &list.to_string()), Ok(document.to_string()));
        }
    }
}
