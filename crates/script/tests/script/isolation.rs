//! Nothing of an execution is left for the next one, on the same thread or another, of the same script or another.

use crate::support::{MemoryHost, SCRIPTS, block_on, check_body, procedure, run, script, settings};
use astrarium_script::{ScriptSettings, Scripts};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Prints everything that a script could have changed for others.
const LOOK: &str = "function look() {
    const seen = new Set();
    const out = [];
    const visit = (value, path) => {
        if ((typeof value !== 'object' && typeof value !== 'function') || value === null) {
            out.push(path + '=' + String(value).slice(0, 50));
            return;
        }
        if (seen.has(value) || path.split('/').length > 4) return;
        seen.add(value);
        for (const key of Reflect.ownKeys(value)) {
            const found = Object.getOwnPropertyDescriptor(value, key);
            out.push(path + '/' + String(key) + Number(found.writable) + Number(found.enumerable));
            if ('value' in found) visit(found.value, path + '/' + String(key));
        }
        visit(Object.getPrototypeOf(value), path + '/^');
    };
    visit(globalThis, '');
    getContext().getResponse().setBody(out.length + ':' + out.join('|'));
}";

fn world() -> String {
    run(LOOK, &json!([]), MemoryHost::default()).expect("an answer").body.expect("a body")
}

#[test]
fn globals_and_builtins_are_fresh_each_time() {
    let before = world();
    for tampering in [
        "leaked = 1;",
        "globalThis.leaked = 1; Object.prototype.leaked = 2; Array.prototype.push = () => 0;",
        "delete globalThis.Map; JSON.parse = () => ({}); Promise.prototype.then = null;",
        "Math.random = () => 4; Date.now = () => 0; Error.prototype.message = 'x';",
        "Object.freeze(Object.prototype); Object.defineProperty(Array.prototype, '0', { get() { return 'mine'; } });",
        "getContext().leaked = 1; __.leaked = 1; getContext().getCollection().getSelfLink = () => 'x'; console.leaked = 1;",
        "String.prototype.leaked = Symbol.for('leaked'); Function.prototype.call = null;",
        "var leaked = 1; let other = 2; const more = 3; function leakedToo() {}",
        "throw new Error('after ' + (Object.prototype.leaked = 1));",
    ] {
        // Some of it breaks the script itself, which is its own affair.
        drop(run(&format!("function f() {{ {tampering} }}"), &json!([]), MemoryHost::default()));
        let after = world();
        assert!(before == after, "left by {tampering}");
    }
}

#[test]
fn a_function_called_again_remembers_nothing() {
    let source =
        "let count = 0; function f() { f.calls = (f.calls || 0) + 1; count++; global = typeof global;
        __.response.setBody([count, f.calls, global]); }";
    let script = script("counter", source);
    for _ in 0..20 {
        let answer = block_on(SCRIPTS.execute(script.clone(), procedure(&json!([])), MemoryHost::default()));
        assert_eq!(answer.expect("an answer").body.as_deref(), Some("[1,1,\"undefined\"]"));
    }
}

#[test]
fn a_new_version_is_a_new_script() {
    let mut one = script("versions", "function f() { __.response.setBody(1); }");
    let answer = |script| block_on(SCRIPTS.execute(script, procedure(&json!([])), MemoryHost::default()));
    assert_eq!(answer(one.clone()).expect("an answer").body.as_deref(), Some("1"));
    one.source = "function f() { __.response.setBody(2); }".into();
    one.key.version = "2".into();
    assert_eq!(answer(one).expect("an answer").body.as_deref(), Some("2"));
}

#[test]
fn a_failed_script_leaves_the_documents_of_its_caller_alone() {
    let host = MemoryHost::with(&[json!({"id": "1", "n": 1})]);
    let before = host.documents.clone();
    let source = "function f() { const c = getContext().getCollection();
        c.upsertDocument(c.getSelfLink(), { id: '1', n: 2 }, () => { throw new Error('no'); }); }";
    let failure = run(source, &json!([]), host.clone()).expect_err("a throw");
    assert_eq!(failure.host.expect("a host").documents["1"]["n"], 2);
    assert_eq!(host.documents, before);
}

#[test]
fn executions_at_the_same_time_do_not_meet() {
    let source = "function f(me) { globalThis.mine = me; for (let i = 0; i < 20000; i++) {
        if (globalThis.mine !== me) throw new Error('met ' + globalThis.mine); } __.response.setBody(globalThis.mine); }";
    let script = script("together", source);
    std::thread::scope(|scope| {
        for me in 0..16 {
            let script = script.clone();
            scope.spawn(move || {
                let answer =
                    block_on(SCRIPTS.execute(script, procedure(&json!([me])), MemoryHost::default()));
                assert_eq!(answer.expect("an answer").body, Some(me.to_string()));
            });
        }
    });
}

/// On one thread every execution gets the world of the one before, put back: also what that one let go of, what it left
/// running and what it grew to.
#[test]
fn one_thread_gives_the_same_world_again_and_again() {
    let scripts = Scripts::new(ScriptSettings { procedure_threads_max: 1, ..settings() });
    let execute = |source: &str, version: &str| {
        let mut script = script("thread", source);
        script.key.version = version.into();
        block_on(scripts.execute(script, procedure(&json!([3])), MemoryHost::default()))
    };
    let look = || execute(LOOK, "look").expect("an answer").body.expect("a body");
    let before = look();
    for (version, harm) in [
        "for (const name of Reflect.ownKeys(globalThis)) { try { delete globalThis[name]; } catch {} }",
        "for (const name of Reflect.ownKeys(Math)) delete Math[name]; delete globalThis.Math; delete globalThis.getContext;",
        "Object.setPrototypeOf(Object.prototype.constructor, null); globalThis.Error = null; throw 1;",
        "const kept = []; for (let i = 0; i < 3e5; i++) kept.push({ i, text: 'x' + i }); globalThis.kept = kept;",
        "let rings = null; for (let i = 0; i < 3e5; i++) { const a = {}, b = { a }; a.b = b; rings = a; }",
        "Promise.reject(new Error('left')); Promise.reject(2); new Promise(() => {}); (async () => { await null; throw 3; })();",
        "getContext().abort(new Error('left'));",
        "const all = []; for (;;) all.push(new Array(1e5).fill(7));",
        "(function deep() { deep(); })();",
        "globalThis.big = 'x'.repeat(3e7); new Date(); Math.random(); console.log('left');",
    ]
    .into_iter()
    .enumerate()
    {
        drop(execute(&format!("function f() {{ {harm} }}"), &version.to_string()));
        assert!(look() == before, "left by {harm}");
    }
    for _ in 0..1_200 {
        let answer =
            execute("function f(n) { __.response.setBody(new Array(n).fill(Date.now() > 0)); }", "last");
        assert_eq!(answer.expect("an answer").body.as_deref(), Some("[true,true,true]"));
    }
    assert!(look() == before);
    assert_eq!(scripts.statistics().runaways_ever, 0);
}

/// Any name, any value.
fn assignments() -> impl Strategy<Value = Vec<(String, i32)>> {
    proptest::collection::vec(("[a-zA-Z_$][a-zA-Z0-9_$]{0,8}", any::<i32>()), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_assignment_is_seen_by_the_next_execution(assignments in assignments()) {
        let names: Vec<Value> = assignments.iter().map(|(name, _)| json!(name)).collect();
        let source = "function f(names, values) {
            const found = names.map(name => [typeof globalThis[name], typeof ({})[name], typeof [][name]]);
            try { names.forEach((name, i) => { globalThis[name] = values[i]; Object.prototype[name] = values[i]; }); } catch {}
            return getContext().getResponse().setBody(found);
        }";
        let values: Vec<i32> = assignments.iter().map(|(_, value)| *value).collect();
        let parameters = json!([names, values]);
        let script = script("property", source);
        let look = || {
            let run = SCRIPTS.execute(script.clone(), procedure(&parameters), MemoryHost::default());
            block_on(run).map(|answer| answer.body).map_err(|failure| failure.error.to_string())
        };
        let first = look();
        for _ in 0..3 {
            prop_assert_eq!(&look(), &first);
        }
    }
}

#[test]
fn the_next_execution_still_works_after_all_that() {
    check_body("answer([1, 2].map(n => n + 1));", &json!([2, 3]));
}
