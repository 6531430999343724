//! Scripts that try to take everything: memory, stack, logs, answers, and the language itself.

use crate::support::{
    MemoryHost, SCRIPTS, block_on, brief, check_body, check_on, check_throws, fails, fails_within, patient,
    procedure, run, script, scripts, with_prologue,
};
use astrarium_script::{Error, ScriptLimits};
use serde_json::json;
use std::time::Duration;

/// The time of scripts that may take everything there is of it.
const ENDLESS: Duration = Duration::from_secs(5);

#[test]
fn memory_is_limited() {
    for body in [
        "const a = []; for (;;) a.push('x'.repeat(1000) + a.length);",
        "let s = 'x'; for (;;) s += s;",
        "const a = []; for (;;) a.push(new Uint8Array(1e6));",
        "new ArrayBuffer(1e9);",
        "'x'.repeat(2 ** 29);",
        "'x'.padStart(2 ** 29);",
        "new Array(1e8) + '';",
        "Array.from({ length: 1e9 }, () => 0);",
        "JSON.stringify(Array(1e7).fill('x'.repeat(100)));",
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, { i });",
        "let f = () => 1; for (;;) { const g = f; f = () => g; }",
        "const o = {}; for (let i = 0; ; i++) o['k' + i] = i;",
        "1n << 1000000000n;",
        "for (;;) new Promise(() => {}).then(() => {}), Promise.resolve().then(() => {});",
        "const next = () => collection.readDocuments(link, () => {}); for (;;) next();",
    ] {
        match fails_within(ENDLESS, &with_prologue(body)) {
            Error::Exception(exception) => {
                let known = [
                    "out of memory",
                    "invalid string length",
                    "invalid array",
                    "too long",
                    "too large",
                    "maximum",
                    "size",
                ];
                assert!(known.iter().any(|text| exception.text.contains(text)), "{body}: {}", exception.text);
            }
            other => assert!(matches!(other, Error::Timeout { .. }), "{body}: {other}"),
        }
    }
    check_body("try { 'x'.repeat(2 ** 29); } catch { answer('still here'); }", &json!("still here"));
}

/// A script over its limit is ended, whatever it catches, because not all of the engine survives the want of memory.
#[test]
fn a_script_over_its_memory_cannot_go_on() {
    let source = with_prologue(
        "const a = []; try { for (;;) a.push({ a: [a.length] }); } catch { a.length = 0; answer('caught'); }
         for (;;) { try { for (;;) a.push({}); } catch { } }",
    );
    let error = fails(&source);
    assert!(
        matches!(&error, Error::Exception(exception) if exception.text.contains("out of memory")),
        "{error}"
    );
}

#[test]
fn the_stack_is_limited() {
    for body in [
        "const f = () => f(); f();",
        "const f = n => [n].map(() => f(n + 1)); f(0);",
        "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; JSON.stringify(a);",
        "JSON.parse('['.repeat(1e5) + ']'.repeat(1e5));",
        "new RegExp('('.repeat(1e5) + ')'.repeat(1e5));",
        "const o = { get x() { return this.x; } }; o.x;",
        "const p = new Proxy({}, { get: (t, k, r) => r[k] }); p.x;",
        "class A { constructor() { new A(); } } new A();",
        "const f = () => { try { f(); } finally { f(); } }; f();",
        "let s = 'x'; for (let i = 0; i < 1e5; i++) s = { toString: (s => () => '' + s)(s) }; '' + s;",
        "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; a.flat(Infinity);",
        "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; a + '';",
        "'x'.replace(/x/, function f() { return 'x'.replace(/x/, f); });",
    ] {
        let error = fails_within(ENDLESS, &with_prologue(body));
        assert!(matches!(error, Error::Exception(_) | Error::Timeout { .. }), "{body}: {error}");
    }
    check_throws(&with_prologue("const f = () => f(); f();"), "Maximum call stack size exceeded");
    check_body("const f = () => { try { return f(); } catch { return 'up'; } }; answer(f());", &json!("up"));
}

#[test]
fn long_texts_are_cut() {
    let answer = run(
        "function f() { for (let i = 0; i < 100; i++) console.log('ü'.repeat(10000)); }",
        &json!([]),
        MemoryHost::default(),
    );
    let log = answer.expect("an answer").log;
    assert!(log.len() <= 256 << 10 && log.len() > 250 << 10 && log.chars().all(|one| one == 'ü'));
    match fails("function f() { throw new Error('x'.repeat(1e7)); }") {
        Error::Exception(exception) => assert!(exception.text.len() < 100 << 10),
        other => panic!("{other}"),
    }
    let name = "n".repeat(5_000);
    check_throws(
        &format!("function f() {{ (function {name}() {{ throw new Error('x'); }})(); }}"),
        "Error: x",
    );
    let failure = fails(&with_prologue("const o = {}; answer(o); o.x = 'ü'.repeat(3e6);"));
    assert!(matches!(failure, Error::TooLarge { bytes_max, .. } if bytes_max == 4 << 20), "{failure}");
}

/// The API is made of parts that were taken before the script could change them.
#[test]
fn tampering_with_the_language_breaks_nothing_of_ours() {
    for tampering in [
        "JSON.parse = JSON.stringify = () => { throw 1; };",
        "Array.prototype.map = Array.prototype.push = Array.prototype.sort = Array.prototype.concat = () => { throw 1; };",
        "String.prototype.startsWith = String.prototype.slice = String.prototype.endsWith = () => { throw 1; };",
        "Promise.prototype.then = () => { throw 1; }; Promise.resolve = () => { throw 1; };",
        "Reflect.apply = Reflect.construct = Reflect.defineProperty = () => { throw 1; };",
        "Function.prototype.call = Function.prototype.apply = () => { throw 1; };",
        "Object.create = Object.keys = Object.assign = Object.freeze = () => { throw 1; };",
        "Error = TypeError = undefined; Date = undefined; Math = undefined;",
        "Object.prototype.toString = () => { throw 1; }; Symbol.for = () => { throw 1; };",
        "delete globalThis.JSON; delete globalThis.Array; delete globalThis.Object; delete globalThis.Promise;",
    ] {
        let source = with_prologue(&format!(
            "const done = getContext().getResponse();
             {tampering}
             collection.createDocument(link, {{ id: '1', n: 1 }}, (err, doc) => {{
                if (err) throw err;
                collection.readDocument(doc._self, (err, doc) => {{
                    collection.readDocuments(link, {{ pageSize: 5 }}, (err, docs) => done.setBody([doc.n, docs.length]));
                }});
             }});
             collection.readDocument(collection.getAltLink() + '/docs/none', err => done.setBody(err.number));"
        ));
        let result = run(&source, &json!([]), MemoryHost::default());
        let body = result.unwrap_or_else(|failure| panic!("{tampering}: {}", failure.error)).body;
        assert_eq!(body.as_deref(), Some("[1,1]"), "{tampering}");
    }
}

/// What breaks is only the script that did it.
#[test]
fn tampering_that_does_break_a_script_breaks_only_that_script() {
    for tampering in [
        "Object.prototype.__defineSetter__('number', () => { throw 1; }); Object.prototype.__defineGetter__('next', () => 1);",
        "Object.defineProperty(Object.prototype, 'continuation', { get() { throw 1; }, set() {} });",
        "Array.prototype[Symbol.iterator] = function* () { for (;;) yield 1; };",
        "Object.defineProperty(Object.prototype, 'run', { value: () => { throw 2; } });",
        "Object.prototype.toJSON = function () { return this; }; Object.prototype.then = resolve => resolve(1);",
        "Object.setPrototypeOf(__, null); Object.setPrototypeOf(globalThis, new Proxy({}, { has: () => true }));",
        "Object.freeze(globalThis); Object.freeze(Object.prototype); Object.freeze(Array.prototype);",
        "Error.prototype.toString = () => { throw 1; }; Error.prepareStackTrace = () => { throw 1; };",
        "Error.prepareStackTrace = () => { for (;;) {} };",
        "Object.defineProperty(Error.prototype, 'stack', { get() { for (;;) {} } });",
        "getContext = __ = undefined; console = null; ErrorCodes = 5;",
    ] {
        let scripts = scripts(patient());
        let source = with_prologue(&format!(
            "{tampering} collection.createDocument(link, {{}}, () => note(1)); throw new Error('end');"
        ));
        let run = scripts.execute(script("tamper", &source), brief(), MemoryHost::default());
        let error = block_on(run).expect_err(tampering).error;
        assert!(matches!(error, Error::Exception(_) | Error::Timeout { .. }), "{tampering}: {error}");
        let fine = script("fine", "function f() { __.response.setBody([1].map(x => x + 1)); }");
        let answer = block_on(scripts.execute(fine, procedure(&json!([])), MemoryHost::default()));
        assert_eq!(answer.expect("an answer").body.as_deref(), Some("[2]"), "{tampering}");
    }
}

#[test]
fn calls_after_completion_are_refused() {
    // The response is printed when the script has completed; what its `toJSON` asks for is too late.
    let answer = check_on(
        &with_prologue(
            "let times = 0;
             answer({ toJSON() {
                // Once when the body is set, which is in time, and once when it is printed.
                if (times++ === 0) return 1;
                const accepted = collection.createDocument(link, { id: 'late' });
                return [accepted, __.filter(() => true).isAccepted];
             } });",
        ),
        &json!([]),
        MemoryHost::default(),
        &json!([false, false]),
    );
    assert!(answer.host.documents.is_empty());
}

/// The engine has to survive the want of memory at every point, not only in large pieces.
#[test]
fn every_limit_of_memory_gives_an_answer() {
    let source = with_prologue(
        "const a = []; const m = new Map();
         for (let i = 0; i < 300; i++) {
            a.push({ i, text: `row ${i}`, list: [i, [i]], f: () => i });
            m.set('k' + i, new Set([i]));
         }
         collection.createDocument(link, { id: 'x', rows: a.slice(0, 5) }, async (err, doc) => {
            await null;
            try { throw new Error(400, JSON.stringify(a)); } catch (e) { note(e.message.length > 10, /row (\\d+)/.exec(e.message)[1]); }
            class A { #p = a.map(x => x.text).join().split(','); get p() { return this.#p; } }
            note(new A().p.sort().reverse().length, [...m.keys()].length, String(BigInt(2) ** 100n), new Date(0).toISOString());
         });",
    );
    let expected = r#"[true,"0",300,300,"1267650600228229401496703205376","1970-01-01T00:00:00.000Z"]"#;
    let mut answered = 0;
    for step in 0..300_usize {
        let limits = ScriptLimits { memory_bytes_max: step * 2_500, ..patient() };
        let scripts = scripts(limits);
        let run = scripts.execute(script("oom", &source), procedure(&json!([])), MemoryHost::default());
        if let Ok(answer) = block_on(run) {
            assert_eq!(answer.body.as_deref(), Some(expected));
            answered += 1;
        }
    }
    assert!(answered > 0, "the largest limits are enough");
}

#[test]
fn the_shared_threads_have_survived() {
    check_body("answer('alive');", &json!("alive"));
    assert_eq!(SCRIPTS.statistics().runaways, 0);
}
