//! User-defined functions: values in and out, errors, and calls that do not end.

use crate::support::{SCRIPTS, env, script, scripts, short};
use astrarium_script::{Error, Script, UdfSession};
use astrarium_value::{Object, Value, json};
use proptest::prelude::*;
use std::time::{Duration, Instant};

fn session(functions: &[(&str, &str)]) -> UdfSession {
    let functions: Vec<Script> = functions.iter().map(|(name, source)| script(name, source)).collect();
    SCRIPTS.open_functions(functions, &env(), None)
}

fn value(text: &str) -> Value {
    json::Text::parse(text.as_bytes()).expect("JSON").root().to_value()
}

fn shown(value: &Value) -> String {
    if value.is_undefined() {
        return "undefined".to_owned();
    }
    let mut text = Vec::new();
    value.write_json(&mut text);
    String::from_utf8(text).expect("text")
}

#[test]
fn values_go_in_and_out() {
    for (source, arguments, expected) in [
        ("function f(a, b) { return a + b; }", vec![value("1"), value("2.5")], "3.5"),
        ("function f(a) { return a; }", vec![value("\"ü😀\"")], "\"ü😀\""),
        (
            "function f(a) { return a; }",
            vec![value(r#"{"a":[1,null,true,{"b":"c"}]}"#)],
            r#"{"a":[1,null,true,{"b":"c"}]}"#,
        ),
        ("function f(a) { return typeof a; }", vec![Value::Undefined], "\"undefined\""),
        ("function f() { return arguments.length; }", vec![], "0"),
        ("function f() { }", vec![], "undefined"),
        ("function f() { return () => 1; }", vec![], "undefined"),
        ("function f() { return Symbol(); }", vec![], "undefined"),
        (
            "function f() { return { a: undefined, b: new Date(0) }; }",
            vec![],
            r#"{"b":"1970-01-01T00:00:00.000Z"}"#,
        ),
        (
            "function f(a) { return Number.isNaN(a[0]) && a[1] === undefined; }",
            vec![Value::Array(vec![Value::Number(f64::NAN), Value::Undefined])],
            "true",
        ),
        (
            "function f(a) { return [Object.keys(a), Object.getPrototypeOf(a) === Object.prototype]; }",
            vec![value(r#"{"__proto__":{"x":1}}"#)],
            r#"[["__proto__"],true]"#,
        ),
        ("(x) => x * 2", vec![value("4")], "8"),
        ("function f(a) { a.push(1); return a.length; }", vec![value("[]")], "1"),
        (
            "function f(income) { if (income < 1000) return income * 0.1; return 100; }",
            vec![value("500")],
            "50",
        ),
        ("function f() { return 'a\\ud800b'; }", vec![], "\"a\u{fffd}b\""),
        ("function f() { return new Date().getTime(); }", vec![], "1700000000000"),
        (
            "function f() { return [typeof getContext, typeof __, typeof ErrorCodes, typeof console.log('x')]; }",
            vec![],
            r#"["undefined","undefined","object","undefined"]"#,
        ),
    ] {
        let result = session(&[("f", source)]).call("f", &arguments).expect(source);
        assert_eq!(shown(&result), expected, "{source}");
    }
}

#[test]
fn many_functions_are_called_many_times() {
    let session = session(&[
        (
            "double",
            "const factor = 2; function helper(x) { return x * factor; } function double(x) { return helper(x); }",
        ),
        (
            "triple",
            "const factor = 3; function helper(x) { return x * factor; } function triple(x) { return helper(x); }",
        ),
    ]);
    for number in 0..500 {
        let argument = [Value::Number(f64::from(number))];
        // Names inside one source are its own.
        for (name, factor) in [("double", 2), ("triple", 3)] {
            let result = session.call(name, &argument).expect(name);
            assert_eq!(shown(&result), (number * factor).to_string());
        }
    }
}

#[test]
fn several_threads_take_turns() {
    let session = session(&[("next", "let n = 0; function next(x) { n++; return x + 1; }")]);
    std::thread::scope(|scope| {
        for thread in 0..4_i32 {
            let session = &session;
            scope.spawn(move || {
                for number in 0..200 {
                    let number = thread * 1_000 + number;
                    let result = session.call("next", &[Value::Number(f64::from(number))]).expect("a value");
                    assert_eq!(shown(&result), (number + 1).to_string());
                }
            });
        }
    });
}

#[test]
fn errors_name_the_function_and_end_only_the_call() {
    for (source, expected) in [
        ("function f() { throw new Error('no'); }", "Exception = Error: no"),
        ("function f() { throw 5; }", "Exception = 5"),
        ("function f(a) { return a.b.c; }", "TypeError"),
        ("function f() { const a = {}; a.a = a; return a; }", "circular"),
        ("function f() { return 5n; }", "BigInt"),
        ("function f() { return 'x'.repeat(5e6); }", "its result has 5000000 bytes"),
        ("function f() { return ['\\ud800']; }", "its result cannot be used"),
        ("function f() { let a = []; for (let i = 0; i < 200; i++) a = [a]; return a; }", "nesting too deep"),
        ("function f() { return new Array(1e9).fill(0); }", "out of memory"),
        ("function f() { return f(); }", "call stack"),
    ] {
        let session = session(&[("taxOf", source), ("fine", "x => x")]);
        let text = session.call("taxOf", &[Value::Null]).expect_err(source).to_string();
        assert!(text.contains("'taxOf'") && text.contains(expected), "{source}: {text}");
        assert!(session.call("fine", &[Value::Null]).is_ok(), "{source}");
    }
}

#[test]
fn functions_that_cannot_be_called_are_refused() {
    let session = session(&[("bad", "function bad( {"), ("none", "const x = 1; // function")]);
    for name in ["bad", "none", "unknown"] {
        let error = session.call(name, &[]).expect_err(name);
        assert!(matches!(error, Error::Compile { .. }) && error.to_string().contains(name), "{error}");
    }
}

#[test]
fn deep_arguments_are_refused() {
    let mut deep = Value::Null;
    for _ in 0..1_000 {
        let mut object = Object::new();
        object.insert("a".into(), deep);
        deep = Value::Object(object);
    }
    let error = session(&[("f", "x => 1")]).call("f", &[deep]).expect_err("too deep");
    assert!(error.to_string().contains("nests too deep"), "{error}");
}

#[test]
fn a_call_that_loops_fails_its_own_session() {
    let scripts = scripts(short());
    for source in ["function f() { for (;;) {} }", "async function f() { for (;;) await null; }"] {
        let functions = vec![script("loop", source), script("fine", "x => x")];
        let session = scripts.open_functions(functions, &env(), None);
        let start = Instant::now();
        let error = session.call("loop", &[]).expect_err("a timeout");
        assert!(matches!(&error, Error::Timeout { name, .. } if &**name == "loop"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(5));
        // The session is over, others are not.
        assert!(matches!(session.call("fine", &[Value::Null]), Err(Error::Timeout { .. })));
        let other = scripts.open_functions(vec![script("fine", "x => x")], &env(), None);
        assert!(other.call("fine", &[Value::Null]).is_ok());
    }
}

#[test]
fn a_session_that_rests_too_long_is_over() {
    let scripts = scripts(short());
    let time = Some(Duration::from_millis(50));
    let session = scripts.open_functions(vec![script("fine", "x => x")], &env(), time);
    assert!(session.call("fine", &[Value::Null]).is_ok());
    let start = Instant::now();
    while session.call("fine", &[Value::Null]).is_ok() {
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    assert_eq!(scripts.statistics().runaways_ever, 0);
}

/// Any value that JSON can say.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::Number),
        any::<String>().prop_map(|text| Value::String(text.into())),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            proptest::collection::vec((any::<String>(), inner), 0..6).prop_map(|members| {
                let members = members.into_iter().map(|(name, value)| (name.into(), value));
                Value::Object(Object::from_members(members))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_value_that_goes_in_and_out_is_the_same(value in any_value()) {
        thread_local! {
            static SESSION: std::cell::RefCell<Option<UdfSession>> = const { std::cell::RefCell::new(None) };
        }
        // One session for as many cases as it lives.
        let result = SESSION.with_borrow_mut(|open| {
            let same = |session: &UdfSession| session.call("same", std::slice::from_ref(&value));
            match open.as_ref().map(same) {
                Some(Ok(result)) => result,
                _ => same(open.insert(session(&[("same", "x => x")]))).expect("a value"),
            }
        });
        prop_assert_eq!(result, value);
    }
}
