//! What a script's failure looks like: compile errors, throws of all kinds, aborts, and hosts that give up.

use crate::support::{
    MemoryHost, SCRIPTS, block_on, check_body, check_throws, fails, procedure, run, script, with_prologue,
};
use astrarium_script::{Error, Kind};
use serde_json::json;

fn exception(source: &str) -> astrarium_script::Exception {
    match fails(source) {
        Error::Exception(exception) => exception,
        other => panic!("{source}\n{other}"),
    }
}

#[test]
fn an_exception_is_told_in_the_shape_of_the_service() {
    let thrown =
        exception("function outer() {\n  inner();\n  function inner() {\n    throw new Error('no');\n  }\n}");
    assert_eq!(
        thrown.text,
        "Encountered exception while executing Javascript. Exception = Error: no\r\nStack trace: Error: no\
         \n   at inner (test.js:4:15)\n   at outer (test.js:2:3)"
    );
    assert_eq!((thrown.line, thrown.number, thrown.thrown.as_str()), (Some(4), None, "Error: no"));
    let thrown = exception(&with_prologue("\n__.createDocument(link, { id: '1' }, () => { null.x; });"));
    assert!(
        thrown.text.contains("Exception = TypeError: cannot read property 'x' of null"),
        "{}",
        thrown.text
    );
    assert!(!thrown.text.contains("<api>"), "{}", thrown.text);
}

#[test]
fn anything_can_be_thrown() {
    for (value, expected) in [
        ("'text'", "text"),
        ("5", "5"),
        ("null", "null"),
        ("undefined", "undefined"),
        ("{ code: 7 }", "{\"code\":7}"),
        ("Symbol('s')", "Symbol(s)"),
        ("() => 1", "() => 1"),
        ("10n", "10"),
        ("new TypeError('t')", "TypeError: t"),
        ("new (class Mine extends Error { get name() { return 'Mine'; } })('m')", "Mine: m"),
        ("Object.create(null)", "{}"),
        ("{ toJSON() { throw 1; }, toString() { throw 2; } }", "an object that cannot be printed"),
        ("'\\ud800'", "\u{fffd}"),
        ("new Proxy({}, { get() { throw new Error('trap'); } })", "an object that cannot be printed"),
    ] {
        let thrown = exception(&format!("function f() {{ throw {value}; }}"));
        assert_eq!(thrown.thrown, expected, "{value}");
    }
}

#[test]
fn numbers_of_errors_come_out() {
    for (error, number, thrown) in [
        ("new Error(404, 'gone')", Some(404), "Error: gone"),
        ("Error(404, 'gone')", Some(404), "Error: gone"),
        ("new Error(404)", None, "Error: 404"),
        ("new Error('x', { cause: 1 })", None, "Error: x"),
        ("Object.assign(new Error('x'), { number: 412 })", Some(412), "Error: x"),
        ("{ number: 'x' }", None, "{\"number\":\"x\"}"),
        ("{ number: -5 }", None, "{\"number\":-5}"),
    ] {
        let found = exception(&format!("function f() {{ throw {error}; }}"));
        assert_eq!((found.number, found.thrown.as_str()), (number, thrown), "{error}");
    }
    check_body(
        "const e = new Error(409, 'm');
         answer([e.number, e.message, e instanceof Error, e.constructor === Error, new TypeError('') instanceof Error,
            typeof e.stack, new Error('x', { cause: 1 }).cause]);",
        &json!([409, "m", true, true, true, "string", 1]),
    );
}

#[test]
fn a_throw_anywhere_fails_the_script() {
    for body in [
        "throw new Error('mine');",
        "collection.readDocuments(link, () => { throw new Error('mine'); });",
        "collection.readDocument(collection.getAltLink() + '/docs/none', err => { throw new Error('mine'); });",
        "Promise.reject(new Error('mine'));",
        "Promise.resolve().then(() => { throw new Error('mine'); });",
        "(async () => { await null; throw new Error('mine'); })();",
        "new Promise((resolve, reject) => collection.readDocuments(link, () => reject(new Error('mine'))));",
        "queueMicrotask(() => { throw new Error('mine'); });",
        "answer({ toJSON() { throw new Error('mine'); } });",
        "answer({ get x() { throw new Error('mine'); } });",
        "for (let i = 0; i < 200; i++) Promise.reject(new Error('mine'));",
    ] {
        check_throws(&with_prologue(body), "mine");
    }
    check_throws("async function f() { await null; throw new Error('mine'); }", "mine");
    check_throws("function f() { } throw new Error('mine');", "mine");
}

#[test]
fn what_is_caught_does_not_fail_the_script() {
    check_body("try { throw 1; } catch { answer('fine'); }", &json!("fine"));
    check_body("Promise.reject(1).catch(() => answer('fine'));", &json!("fine"));
    check_body(
        "const p = Promise.reject(1); queueMicrotask(() => p.catch(() => answer('fine')));",
        &json!("fine"),
    );
    check_body(
        "const all = []; for (let i = 0; i < 200; i++) all.push(Promise.reject(i));
         for (const p of all) p.catch(() => {}); answer('fine');",
        &json!("fine"),
    );
    check_body(
        "(async () => { try { await Promise.reject(1); } catch { answer('fine'); } })();",
        &json!("fine"),
    );
}

#[test]
fn abort_ends_the_script_whatever_it_catches() {
    for body in [
        "getContext().abort(new Error(412, 'over'));",
        "try { getContext().abort(new Error(412, 'over')); } catch {} answer('not this');",
        "Promise.resolve().then(() => getContext().abort(new Error(412, 'over'))).catch(() => {});",
        "collection.readDocuments(link, () => { try { getContext().abort(new Error(412, 'over')); } catch {} });",
        "try { getContext().abort(new Error(412, 'over')); } catch {} for (;;) {}",
        "answer({ toJSON() { getContext().abort(new Error(412, 'over')); } });",
    ] {
        let thrown = exception(&with_prologue(body));
        assert_eq!((thrown.number, thrown.thrown.as_str()), (Some(412), "Error: over"), "{body}");
    }
    let source = with_prologue(
        "try { getContext().abort('x'); } catch {} note(collection.createDocument(link, { id: '1' }));",
    );
    let host = MemoryHost::default();
    let calls = std::sync::Arc::clone(&host.calls);
    assert!(run(&source, &json!([]), host).is_err());
    assert_eq!(calls.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[test]
fn a_host_that_gives_up_ends_the_script() {
    let source = with_prologue(
        "collection.readDocument(collection.getAltLink() + '/docs/broken-storage', err => note(err.number));
         collection.createDocument(link, { id: '1' });",
    );
    let failure = run(&source, &json!([]), MemoryHost::default()).expect_err("a failure");
    assert_eq!(failure.error.kind(), Kind::Host);
    assert_eq!(failure.error.to_string(), "The storage is gone.");
    assert!(failure.host.expect("the host").documents.is_empty());
}

#[test]
fn a_host_that_panics_is_a_bug_of_one_execution() {
    let source =
        with_prologue("try { collection.readDocument(collection.getAltLink() + '/docs/panic'); } catch {}");
    let failure = run(&source, &json!([]), MemoryHost::default()).expect_err("a failure");
    assert_eq!(failure.error.kind(), Kind::Bug);
    check_body("answer('alive');", &json!("alive"));
}

#[test]
fn sources_that_are_no_scripts_are_refused() {
    for (source, expected) in [
        ("", "holds no function"),
        ("42", "holds no function"),
        ("function f() { let x = ; }", "line 1, column 24"),
        ("function f() {\n  return 1 +;\n}", "line 2"),
        ("function f() {", "ends too early"),
        ("function () { let x = ; }", "unexpected token"),
        ("function f(x: string): void { }", "looks like TypeScript"),
        ("interface A { b: string }\nfunction f(a) { }", "looks like TypeScript"),
        ("import x from 'y'; function f() { }", "cannot import or export"),
        ("export function f() { }", "cannot import or export"),
        ("function f() { \0 }", "nul byte"),
    ] {
        let script = script("bad", source);
        let failure = block_on(SCRIPTS.execute(script.clone(), procedure(&json!([])), MemoryHost::default()));
        let checked = block_on(SCRIPTS.check(script));
        // What holds no function at all can be stored.
        assert_eq!(checked.is_ok(), expected == "holds no function", "{source}: {checked:?}");
        for error in [Some(failure.expect_err(source).error), checked.err()].into_iter().flatten() {
            assert!(matches!(error, Error::Compile { .. }), "{source}: {error:?}");
            let text = error.to_string();
            assert!(text.contains(expected) && text.contains("'bad'"), "{source}: {text}");
        }
    }
    let large = format!("function f() {{ }} // {}", "x".repeat(3 << 20));
    assert!(
        block_on(SCRIPTS.check(script("bad", &large)))
            .is_err_and(|error| error.to_string().contains("larger"))
    );
    let crowded = format!("function f() {{ {} }}", "() => 0;".repeat(150_000));
    assert!(
        block_on(SCRIPTS.check(script("bad", &crowded)))
            .is_err_and(|error| error.to_string().contains("blocks"))
    );
    assert!(matches!(fails("const f = 5; // function"), Error::Compile { .. }));
    assert!(matches!(fails("const f = 5, g = () => 1;"), Error::Compile { .. }));
}

#[test]
fn parameters_that_are_not_json_fail_the_call() {
    let mut call = procedure(&json!([]));
    call.work = astrarium_script::ScriptWork::Procedure { parameters: b"[1,".to_vec() };
    let failure = block_on(SCRIPTS.execute(script("f", "function f() {}"), call, MemoryHost::default()));
    assert_eq!(failure.expect_err("bad parameters").error.kind(), Kind::Request);
}
