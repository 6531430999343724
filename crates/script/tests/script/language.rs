//! The language as scripts find it: notations of functions, new syntax, clock and randomness, and what is not there.

use crate::support::{MemoryHost, check, check_body, check_on};
use serde_json::json;

#[test]
fn a_script_is_a_function_in_any_notation() {
    for source in [
        "function f() { __.response.setBody(1); }",
        "function () { __.response.setBody(1); }",
        "function () { __.response.setBody(1); };",
        "(function () { __.response.setBody(1); })",
        "(function () { __.response.setBody(1); });",
        "() => { __.response.setBody(1); }",
        "async () => { await null; __.response.setBody(1); }",
        "async function f() { await null; __.response.setBody(1); }",
        "// a comment\n/* another */ function f() { __.response.setBody(1); } // the end",
        "'use strict'; function f() { __.response.setBody(1); }",
        "function f() { helper(); } function helper() { __.response.setBody(1); }",
        "const one = 1; function f() { __.response.setBody(one); }",
        "var f = function () { __.response.setBody(1); }; var g = 5;",
        "const f = () => { __.response.setBody(1); };",
        "class One { get() { return 1; } } function f() { __.response.setBody(new One().get()); }",
        "\u{feff}function f() { __.response.setBody(1); }",
        "// größe ✓\nfunction f() { __.response.setBody(1); }",
    ] {
        check(source, &json!(1));
    }
}

#[test]
fn sloppy_code_runs_and_strict_code_is_strict() {
    check("function f() { for (i = 0; i < 3; i++) {} __.response.setBody(i); }", &json!(3));
    check("function f() { __.response.setBody(typeof arguments.callee); }", &json!("function"));
    check(
        "function f() { 'use strict'; try { x = 1; } catch (e) { __.response.setBody(e.name); } }",
        &json!("ReferenceError"),
    );
    check(
        "'use strict'; function f() { try { x = 1; } catch (e) { __.response.setBody(e.name); } }",
        &json!("ReferenceError"),
    );
}

#[test]
fn new_syntax_is_there() {
    check_body(
        "class A { #x = 1; static s = 2; get x() { return this.#x; } static { A.t = 3; } }
         const o = { a: { b: null } };
         let n = null; n ??= 4;
         const [first, ...rest] = [1, 2, 3];
         function* numbers() { yield* [7, 8]; }
         answer([new A().x, A.s, A.t, o?.a?.b ?? 5, o.x?.y.z === undefined, n, rest, 2 ** 10, 1_000, [...numbers()],
            [1, [2, [3]]].flat(Infinity), Object.fromEntries([['k', 1]]), 'aXbX'.replaceAll('X', '-'), [1, 2].at(-1),
            /(?<year>\\d{4})/.exec('in 1984').groups.year, (10n ** 20n).toString(), `t${1 + 1}`,
            new Set([1, 1, 2]).size, new Map([[1, 2]]).get(1), Symbol('x').description, typeof globalThis]);",
        &json!([
            1,
            2,
            3,
            5,
            true,
            4,
            [2, 3],
            1024,
            1000,
            [7, 8],
            [1, 2, 3],
            {"k": 1},
            "a-b-",
            2,
            "1984",
            "100000000000000000000",
            "t2",
            2,
            2,
            "x",
            "object"
        ]),
    );
}

#[test]
fn promises_and_callbacks_go_together() {
    let source = "async function f() {
        const c = getContext().getCollection();
        const read = id => new Promise((resolve, reject) =>
            c.readDocument(c.getAltLink() + '/docs/' + id, (err, doc) => err ? reject(err) : resolve(doc)));
        const [a, b] = await Promise.all([read('1'), read('2')]);
        let missing = 0;
        try { await read('3'); } catch (err) { missing = err.number; }
        getContext().getResponse().setBody([a.n + b.n, missing]);
    }";
    let host = MemoryHost::with(&[json!({"id": "1", "n": 1}), json!({"id": "2", "n": 2})]);
    check_on(source, &json!([]), host, &json!([3, 404]));
}

#[test]
fn time_comes_from_the_server_and_is_utc() {
    check_body(
        "const d = new Date(); const e = new Date(2020, 0, 31, 13, 5, 9);
         answer([Date.now(), d.getTime(), d.toISOString(), Date().slice(0, 24), d.getTimezoneOffset(), e.toISOString(),
            e.toString(), e.getHours(), e.getDay(), e.toLocaleString(), e.toDateString(), e.toTimeString(),
            Date.parse('2020-01-31T13:05:09'), Date.parse('2020-01-31T13:05:09+01:00'), Date.parse('2020-01-31'),
            new Date('Jan 31 2020 13:05').toISOString(), new Date(e).getTime() === e.getTime(), new Date(0).toJSON(),
            new Date(NaN).toString(), Number.isNaN(new Date('x').getTime()), d instanceof Date, d.constructor === Date,
            new Date(2020, 5).getMonth(), new Date(1e12).setHours(5) % 86400000 / 3600000 | 0,
            Object.prototype.toString.call(d), typeof (d - e), new (class D extends Date {})(5).getTime()]);",
        &json!([
            1_700_000_000_000_u64,
            1_700_000_000_000_u64,
            "2023-11-14T22:13:20.000Z",
            "Tue Nov 14 2023 22:13:20",
            0,
            "2020-01-31T13:05:09.000Z",
            "Fri Jan 31 2020 13:05:09 GMT+0000 (Coordinated Universal Time)",
            13,
            5,
            "1/31/2020, 1:05:09 PM",
            "Fri Jan 31 2020",
            "13:05:09 GMT+0000 (Coordinated Universal Time)",
            1_580_475_909_000_u64,
            1_580_472_309_000_u64,
            1_580_428_800_000_u64,
            "2020-01-31T13:05:00.000Z",
            true,
            "1970-01-01T00:00:00.000Z",
            "Invalid Date",
            true,
            true,
            true,
            5,
            5,
            "[object Date]",
            "number",
            5
        ]),
    );
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let source = "function f() { __.response.setBody([Math.random(), Math.random()]); }";
    let numbers = || {
        let body = crate::support::run(source, &json!([]), MemoryHost::default()).expect("an answer").body;
        serde_json::from_str::<Vec<f64>>(&body.expect("a body")).expect("numbers")
    };
    let (first, second) = (numbers(), numbers());
    assert_eq!(first, second);
    assert!((first[0] - first[1]).abs() > 0.0 && first.iter().all(|number| (0.0..1.0).contains(number)));
}

#[test]
fn nothing_leads_out() {
    check_body(
        "answer(['require', 'process', 'fetch', 'XMLHttpRequest', 'setTimeout', 'setInterval', 'WebAssembly', 'Deno', 'std',
            'os', 'performance', 'SharedArrayBuffer', 'Atomics', 'Worker', 'print', 'load', 'gc', 'WeakRef', 'navigator',
            'native', 'base', 'execution'].filter(name => name in globalThis));",
        &json!([]),
    );
    // No code is made from text, but libraries find the global object as they are used to.
    check_body(
        "const made = [];
         for (const make of [() => eval('1'), () => (0, eval)('1'), () => new Function('return 1')(), () => Function('a', 'return a'),
            () => (async () => {}).constructor('return 1'), () => (function* () {}).constructor('yield 1'),
            () => (() => 1).constructor('return 2'), () => Reflect.construct(Function, ['return 1'])]) {
            try { made.push(make()); } catch (e) { made.push(e instanceof Error); }
         }
         answer([made.every(one => one === true), Function('return this')() === globalThis,
            new Function(' return this; ')() === globalThis, test instanceof Function, test.constructor === Function]);",
        &json!([true, true, true, true, true]),
    );
    check_body("import('fs').catch(e => answer('refused'));", &json!("refused"));
    check_body(
        "import('data:text/javascript,1').then(() => answer('in'), () => answer('refused'));",
        &json!("refused"),
    );
}
