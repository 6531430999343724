//! User-defined functions: values in and out, errors, and calls that do not end.

use crate::support::{BRIEF, SCRIPTS, block_on, env, patient, script, scripts};
use astrarium_script::{Error, PageFunctions, Script, ScriptLimits, Scripts};
use astrarium_value::{Object, Value, json};
use proptest::prelude::*;
use std::future::Future as _;
use std::time::{Duration, Instant};

/// What a page that has these functions gives.
fn page<T: Send + 'static>(
    scripts: &Scripts,
    functions: &[(&str, &str)],
    work: impl FnOnce(PageFunctions) -> T + Send + 'static,
) -> Result<T, Error> {
    let functions: Vec<Script> = functions.iter().map(|(name, source)| script(name, source)).collect();
    block_on(scripts.run_page(functions, &env(), None, work))
}

/// What one call gives.
fn called(functions: &[(&str, &str)], name: &'static str, arguments: Vec<Value>) -> Result<Value, Error> {
    page(&SCRIPTS, functions, move |page| page.call(name, &arguments))?
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
        let result = called(&[("f", source)], "f", arguments).expect(source);
        assert_eq!(shown(&result), expected, "{source}");
    }
}

#[test]
fn many_functions_are_called_many_times() {
    let functions = [
        (
            "double",
            "const factor = 2; function helper(x) { return x * factor; } function double(x) { return helper(x); }",
        ),
        (
            "triple",
            "const factor = 3; function helper(x) { return x * factor; } function triple(x) { return helper(x); }",
        ),
    ];
    let work = |page: PageFunctions| {
        for number in 0..500 {
            let argument = [Value::Number(f64::from(number))];
            // Names inside one source are its own.
            for (name, factor) in [("double", 2), ("triple", 3)] {
                let result = page.call(name, &argument).expect(name);
                assert_eq!(shown(&result), (number * factor).to_string());
            }
        }
    };
    page(&SCRIPTS, &functions, work).expect("a page");
}

#[test]
fn pages_have_nothing_in_common() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let work = |page: PageFunctions| {
                    for number in 1..=200 {
                        assert_eq!(shown(&page.call("next", &[]).expect("a value")), number.to_string());
                    }
                };
                page(&SCRIPTS, &[("next", "let n = 0; function next() { return ++n; }")], work)
                    .expect("a page");
            });
        }
    });
}

#[test]
fn functions_are_called_on_the_thread_of_their_page() {
    let kept = page(&SCRIPTS, &[("f", "x => x")], |page| {
        let elsewhere = std::thread::spawn(move || page.call("f", &[Value::Null])).join().expect("no panic");
        assert!(matches!(elsewhere, Err(Error::Bug { .. })), "{elsewhere:?}");
        assert!(page.call("f", &[Value::Null]).is_ok());
        page
    });
    assert!(matches!(kept.expect("a page").call("f", &[]), Err(Error::Bug { .. })));
}

#[test]
fn a_page_that_panics_is_a_bug_and_leaves_nothing_behind() {
    let result = page(&SCRIPTS, &[("f", "x => x")], |page| {
        page.call("f", &[Value::Null]).expect("a value");
        panic!("as was asked");
    });
    assert!(matches!(result, Err::<(), _>(Error::Bug { .. })));
    assert!(called(&[("f", "x => x")], "f", vec![Value::Null]).is_ok());
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
        let work = |page: PageFunctions| {
            let text = page.call("taxOf", &[Value::Null]).map_err(|error| error.to_string());
            (text, page.call("fine", &[Value::Null]))
        };
        let (failed, fine) = page(&SCRIPTS, &[("taxOf", source), ("fine", "x => x")], work).expect("a page");
        let text = failed.expect_err(source);
        assert!(text.contains("'taxOf'") && text.contains(expected), "{source}: {text}");
        assert!(fine.is_ok(), "{source}");
    }
}

#[test]
fn functions_that_cannot_be_called_are_refused() {
    let functions = [("bad", "function bad( {"), ("none", "const x = 1; // function")];
    for name in ["bad", "none", "unknown"] {
        let error = called(&functions, name, vec![]).expect_err(name);
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
    let error = called(&[("f", "x => 1")], "f", vec![deep]).expect_err("too deep");
    assert!(error.to_string().contains("nests too deep"), "{error}");
}

#[test]
fn a_call_that_loops_fails_its_own_page() {
    let scripts = scripts(patient());
    for source in ["function f() { for (;;) {} }", "async function f() { for (;;) await null; }"] {
        let work = |page: PageFunctions| (page.call("loop", &[]), page.call("fine", &[Value::Null]));
        let functions = vec![script("loop", source), script("fine", "x => x")];
        let (looped, next) =
            block_on(scripts.run_page(functions, &env(), Some(BRIEF), work)).expect("a page");
        let error = looped.expect_err("a timeout");
        assert!(matches!(&error, Error::Timeout { name, .. } if &**name == "loop"), "{error}");
        // The page is over, others are not.
        assert!(matches!(next, Err(Error::Timeout { .. })));
        let other = page(&scripts, &[("fine", "x => x")], |page| page.call("fine", &[Value::Null]));
        assert!(other.expect("a page").is_ok());
    }
}

#[test]
fn a_page_that_takes_too_long_is_over() {
    let scripts = scripts(patient());
    let time = Some(Duration::from_millis(300));
    let start = Instant::now();
    let work = |page: PageFunctions| {
        while page.call("fine", &[Value::Null]).is_ok() {}
    };
    block_on(scripts.run_page(vec![script("fine", "x => x")], &env(), time, work)).expect("a page");
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert_eq!(scripts.statistics().runaways_ever, 0);
}

#[test]
fn dropping_the_future_ends_the_calls() {
    let scripts = scripts(ScriptLimits { time: Duration::from_hours(1), ..patient() });
    let (sender, receiver) = std::sync::mpsc::channel();
    let (started, has_started) = std::sync::mpsc::channel();
    let work = move |page: PageFunctions| {
        let _ = started.send(());
        drop(sender.send(page.call("loop", &[])));
    };
    let functions = vec![script("loop", "function f() { for (;;) {} }")];
    block_on(async {
        let env = env();
        let mut run = Box::pin(scripts.run_page(functions, &env, None, work));
        std::future::poll_fn(|context| {
            assert!(run.as_mut().poll(context).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        has_started.recv().expect("a page that runs");
    });
    let result = receiver.recv_timeout(Duration::from_mins(5)).expect("it ends before its time is over");
    assert!(matches!(result, Err(Error::Timeout { .. })), "{result:?}");
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
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn a_value_that_goes_in_and_out_is_the_same(values in proptest::collection::vec(any_value(), 10)) {
        let given = values.clone();
        let work = move |page: PageFunctions| {
            given.into_iter().map(|value| page.call("same", &[value])).collect::<Result<Vec<_>, _>>()
        };
        let results = page(&SCRIPTS, &[("same", "x => x")], work).expect("a page");
        prop_assert_eq!(results.expect("values"), values);
    }
}
