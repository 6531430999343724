//! Hostile scripts: each is ended within its limits, others are served meanwhile, and nothing of them stays.
//!
//! Those that cost their whole time run at once, so that the whole takes little longer than the longest of them.

use crate::support::{about, creation, execution, furnished, new_script, new_trigger, question, rows};
use astrarium_testkit::{Client, EngineKind, Request, Server};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How many requests have to be answered while scripts run that go on for seconds each: behind them it would be none.
const MEANWHILE_MIN: usize = 3;

/// Scripts that run until they are stopped, and the statuses that they may end with.
const ENDLESS: [(&str, &str, &[u16]); 8] = [
    ("loop", "function () { while (true) { } }", &[408]),
    (
        "caught",
        "function () { while (true) { try { while (true) { } } catch (error) { } finally { continue; } } }",
        &[408],
    ),
    (
        "promises",
        "function () { function again() { return Promise.resolve().then(again); } return again(); }",
        &[400, 408],
    ),
    ("async", "async function () { while (true) await null; }", &[408]),
    ("microtasks", "function () { function again() { queueMicrotask(again); } again(); }", &[408]),
    ("generator", "function () { function* all() { while (true) yield 1; } for (var x of all()); }", &[408]),
    ("getter", "function () { __.response.setBody({ get x() { while (true); } }); }", &[408]),
    // A pattern that tries more ways than there are atoms, before the engine is asked again.
    ("pattern", "function () { return /^(a+)+$/.test('a'.repeat(60) + 'b'); }", &[400, 408]),
];

/// Scripts that end early, or are ended. On a busy machine time may be over first for any of them.
const BRIEF: [(&str, &str, &[u16]); 19] = [
    ("recursion", "function f() { return f(); }", &[400]),
    ("mutual", "function a() { return b(); } function b() { return [a()].concat(1); }", &[400]),
    (
        "json",
        "function () { var a = []; for (var i = 0; i < 200000; i++) a = [a]; JSON.stringify(a); }",
        &[400],
    ),
    (
        "proxies",
        "function () { var p = {}; for (var i = 0; i < 100000; i++) p = new Proxy(p, {}); return p.x; }",
        &[200, 400],
    ),
    ("strings", "function () { var s = 'x'; while (true) s += s; }", &[400, 403, 413]),
    (
        "arrays",
        "function () { var a = []; while (true) a.push(new Array(1000).fill(a.length)); }",
        &[400, 403, 413],
    ),
    (
        "buffers",
        "function () { var a = []; while (true) a.push(new Uint8Array(1 << 20)); }",
        &[400, 403, 413],
    ),
    ("one", "function () { return new ArrayBuffer(2147483647); }", &[400, 403, 413]),
    ("fill", "function () { return new Array(4294967295).fill(0); }", &[400, 403, 408, 413]),
    ("join", "function () { return new Array(4294967295).join('x').length; }", &[400, 403, 408, 413]),
    (
        "caughtMemory",
        "function () { var a = []; while (true) { try { a.push('x'.repeat(1 << 20) + a.length); } catch (error) { a.length = 0; throw error; } } }",
        &[400, 403, 413],
    ),
    (
        "maps",
        "function () { var m = new Map(); for (var i = 0; ; i++) m.set(i, { i }); }",
        &[400, 403, 408, 413],
    ),
    (
        "sort",
        "function () { var a = []; for (var i = 0; i < 1500000; i++) a.push((i * 7919) % 1000003); a.sort(function (x, y) { return x - y; }); }",
        &[200, 400, 403, 408, 413],
    ),
    (
        "result",
        "function () { var l = []; __.response.setBody(l); for (var i = 0; i < 50; i++) l.push('x'.repeat(1000000)); }",
        &[400, 403, 413],
    ),
    ("circle", "function () { var a = {}; a.a = a; __.response.setBody(a); }", &[400]),
    ("thrown", "function () { throw new Error('x'.repeat(20000000)); }", &[400]),
    (
        "unprintable",
        "function () { throw { toString: function () { throw 1; }, toJSON: function () { throw 2; }, get number() { throw 3; } }; }",
        &[400],
    ),
    (
        "queue",
        "function () { for (var i = 0; i < 1000000; i++) if (!__.readDocument(__.getAltLink() + '/docs/none', function () { })) break; }",
        &[200, 400, 403, 408, 413],
    ),
    (
        "frozen",
        "function () { Object.freeze(Object.prototype); Object.freeze(Array.prototype); Object.freeze(globalThis); __.response.setBody(1); }",
        &[200],
    ),
];

#[test]
fn others_are_served_while_hostile_scripts_run() {
    let server = furnished(EngineKind::Fjall);
    let mut client = server.client();
    for (id, source, _) in ENDLESS.iter().chain(&BRIEF) {
        client.expect(201, &new_script("sprocs", id, source));
    }
    client.expect(201, &new_script("sprocs", "hello", "function () { __.response.setBody('hello'); }"));
    client.expect(201, &new_script("udfs", "loop", "function () { while (true) { } }"));
    client.expect(201, &new_script("udfs", "twice", "function (n) { return 2 * n; }"));
    client.expect(201, &new_trigger("loop", "Pre", "Create", "function () { while (true) { } }"));
    client.expect(201, &creation("other", "{\"id\":\"1\",\"pk\":\"other\",\"n\":21}"));
    client.expect(201, &creation("a", "{\"id\":\"1\",\"pk\":\"a\",\"n\":21}"));
    let running = AtomicBool::new(true);
    thread::scope(|scope| {
        let (server, running) = (&server, &running);
        let mut hostile = Vec::new();
        for (id, _, statuses) in ENDLESS {
            hostile.push(scope.spawn(move || end(server, id, &execution(id, "a", "[]"), statuses)));
        }
        hostile.push(scope.spawn(|| {
            for (id, _, statuses) in BRIEF {
                end(server, id, &execution(id, "a", "[]"), statuses);
            }
        }));
        hostile.push(scope.spawn(|| {
            end(server, "udf", &question("a", "SELECT VALUE udf.loop() FROM c"), &[400, 408]);
        }));
        hostile.push(scope.spawn(|| {
            let create = creation("a", "{\"id\":\"looped\",\"pk\":\"a\"}");
            let create = create.header("x-ms-documentdb-pre-trigger-include", "loop");
            end(server, "trigger", &create, &[408]);
        }));
        let others = scope.spawn(move || serve_others(&mut server.client(), running));
        let ended: Vec<_> = hostile.into_iter().map(thread::ScopedJoinHandle::join).collect();
        running.store(false, Ordering::SeqCst);
        assert!(ended.iter().all(Result::is_ok), "a hostile script was not ended");
        others.join().expect("others were not served");
    });
    client.expect(404, &about("GET", "looped", "a"));
    after(&mut client);
}

/// More endless scripts than there are threads for: each is answered, documents are served, and then scripts again.
#[test]
fn a_flood_of_endless_scripts_is_bounded() {
    let server = furnished(EngineKind::Memory);
    let mut client = server.client();
    client.expect(201, &new_script("sprocs", "loop", "function () { while (true) { } }"));
    client.expect(201, &new_script("sprocs", "hello", "function () { __.response.setBody('hello'); }"));
    client.expect(201, &creation("other", "{\"id\":\"1\",\"pk\":\"other\"}"));
    thread::scope(|scope| {
        let server = &server;
        let flood: Vec<_> = (0..40)
            .map(|number| {
                scope.spawn(move || {
                    let request = execution("loop", &format!("p{}", number % 4), "[]");
                    end(server, "flood", &request, &[408, 429]);
                })
            })
            .collect();
        let mut meanwhile = 0;
        while flood.iter().any(|thread| !thread.is_finished()) {
            client.expect(200, &about("GET", "1", "other"));
            meanwhile += 1;
            thread::sleep(Duration::from_millis(20));
        }
        assert!(meanwhile >= MEANWHILE_MIN, "{meanwhile} reads were answered beside the flood");
    });
    client.expect(200, &execution("hello", "other", "[]"));
}

/// Runs what must end by itself or be ended.
fn end(server: &Server, id: &str, request: &Request, statuses: &[u16]) {
    let began = Instant::now();
    let answer = server.client().ask(request);
    let took = began.elapsed();
    let start: String = answer.text().chars().take(300).collect();
    let is_late = answer.status == 408 && took > Duration::from_secs(4);
    assert!(is_late || statuses.contains(&answer.status), "{id}: {} after {took:?}: {start}", answer.status);
    assert!(answer.body.len() < 100_000, "{id}: an answer of {} bytes", answer.body.len());
}

/// Asks the ordinary things of another partition and of the same one, all the while.
fn serve_others(client: &mut Client, running: &AtomicBool) {
    let (mut number, mut meanwhile) = (0, 0);
    while running.load(Ordering::SeqCst) || number < 20 {
        number += 1;
        let new = |key: &str| creation(key, &format!("{{\"id\":\"new-{number}\",\"pk\":\"{key}\"}}"));
        let requests = [
            (201, new("other")),
            (201, new("a")),
            (200, about("GET", "1", "other")),
            (200, question("other", "SELECT VALUE c.n FROM c WHERE c.n = 21")),
            (200, question("other", "SELECT VALUE udf.twice(c.n) FROM c WHERE c.n = 21")),
            (200, execution("hello", "other", "[]")),
        ];
        for (status, request) in requests {
            client.expect(status, &request);
        }
        meanwhile += usize::from(running.load(Ordering::SeqCst));
        thread::sleep(Duration::from_millis(10));
    }
    println!("{meanwhile} rounds of requests beside hostile scripts");
    assert!(meanwhile >= MEANWHILE_MIN, "{meanwhile} rounds were answered beside hostile scripts");
}

/// Later scripts work, in the same partition as well.
fn after(client: &mut Client) {
    for key in ["a", "other"] {
        let answer = client.expect(200, &execution("hello", key, "[]"));
        assert_eq!(answer.text(), "\"hello\"");
        let twice = rows(client, key, "SELECT VALUE udf.twice(c.n) FROM c WHERE c.n = 21");
        assert_eq!(twice.len(), 1, "{key}");
    }
}

/// A script that goes on calling the collection is told in time to wrap up, and what it did by then is kept.
#[test]
fn a_script_is_told_before_its_time_is_over() {
    let server = furnished(EngineKind::Memory);
    let mut client = server.client();
    let source = "function () {
        var made = 0;
        next();
        function next() {
            var accepted = __.createDocument(__.getSelfLink(), { id: 'n' + made, pk: 'a' }, function (error) {
                if (error) throw error;
                made++;
                for (var i = 0; i < 300000; i++);
                next();
            });
            if (!accepted) __.response.setBody(made);
        }
    }";
    client.expect(201, &new_script("sprocs", "fill", source));
    let made = client.expect(200, &execution("fill", "a", "[]")).text();
    assert!(made.parse::<u64>().is_ok_and(|made| made > 0), "{made}");
    let counted = rows(&mut client, "a", "SELECT VALUE COUNT(1) FROM c");
    assert_eq!(counted[0].to_string(), made, "what was made is what it said");
}

/// Logs are bounded, whatever a script writes, and an execution that fails has one as well.
#[test]
fn logs_are_bounded() {
    let server = furnished(EngineKind::Memory);
    let mut client = server.client();
    let sources = [
        ("long", "function () { console.log('x'.repeat(3000000)); }", 200),
        ("many", "function () { for (var i = 0; i < 100000; i++) console.log('line ' + i); }", 200),
        (
            "odd",
            "function () { for (var i = 0; i < 3000; i++) console.log('\\u0000\\r\\n\\ud800é€😀'); }",
            200,
        ),
        ("circle", "function () { var a = {}; a.a = a; console.log(a); }", 400),
        ("fails", "function () { console.log('x'.repeat(100000)); throw new Error('after'); }", 400),
    ];
    for (id, source, status) in sources {
        client.expect(201, &new_script("sprocs", id, source));
        let request = execution(id, "a", "[]").header("x-ms-documentdb-script-enable-logging", "true");
        let answer = client.expect(status, &request);
        let length = answer.header("x-ms-documentdb-script-log-results").map_or(0, str::len);
        assert!(length <= 64 << 10, "{id}: a log of {length} bytes");
        assert!(id == "circle" || length > 0, "{id}: no log");
    }
}

/// What a script does to the language it does to itself: the API goes on working, and the next script finds all as new.
#[test]
fn tampering_harms_nobody() {
    let server = furnished(EngineKind::Memory);
    let mut client = server.client();
    let tamper = "function () {
        var never = function () { throw 'tampered'; };
        var names = ['push', 'map', 'forEach', 'concat', 'slice', 'join', 'sort', 'flat', 'filter', 'shift', 'pop'];
        names.forEach(function (name) { Array.prototype[name] = never; });
        for (var type of [String, RegExp, Promise, Function]) {
            for (var name of Object.getOwnPropertyNames(type.prototype)) {
                try { if (typeof type.prototype[name] === 'function') type.prototype[name] = never; } catch (error) { }
            }
        }
        Object.defineProperty(Object.prototype, 'options', { get: never, set: never, configurable: true });
        Object.defineProperty(Object.prototype, 'callback', { get: never, set: never, configurable: true });
        Object.defineProperty(Object.prototype, 'next', { get: function () { return never; }, configurable: true });
        Object.prototype.toJSON = undefined;
        JSON.parse = JSON.stringify = Reflect.apply = Object.create = Array.isArray = never;
        globalThis.Error = globalThis.Array = globalThis.Object = never;
        getContext().getCollection().readDocument(__.getAltLink() + '/docs/1', function (error, document) {
            if (error) throw error;
            __.createDocument(__.getSelfLink(), { id: 'made', pk: 'a', n: document.n }, function (error, made) {
                if (error) throw error;
                __.queryDocuments(__.getSelfLink(), 'SELECT VALUE c.id FROM c WHERE c.n = 7', function (error, rows) {
                    if (error) throw error;
                    __.response.setBody({ made: made.id, rows: rows });
                });
            });
        });
    }";
    client.expect(201, &new_script("sprocs", "tamper", tamper));
    let sound = "function () {
        var found = [[3, 1, 2].sort().map(String).join(), JSON.stringify({ a: [1] }), 'abc'.replace(/b/, 'x')];
        __.queryDocuments(__.getSelfLink(), 'SELECT VALUE COUNT(1) FROM c', function (error, rows) {
            __.response.setBody(found.concat(rows));
        });
    }";
    client.expect(201, &new_script("sprocs", "sound", sound));
    // What arrays of the engine itself are made with is out of our hands; this one may fail.
    let deeper = "function () {
        Object.defineProperty(Array.prototype, '0', { set: function () { throw 'tampered'; }, configurable: true });
        Object.defineProperty(Object.prototype, 'length', { get: function () { throw 'tampered'; }, configurable: true });
        Object.prototype.__proto__ = null;
        __.queryDocuments(__.getSelfLink(), 'SELECT * FROM c', function (error, rows) { __.response.setBody(rows); });
    }";
    client.expect(201, &new_script("sprocs", "deeper", deeper));
    let status = client.ask(&execution("deeper", "a", "[]")).status;
    assert!(matches!(status, 200 | 400), "{status}");
    client.expect(201, &creation("a", "{\"id\":\"1\",\"pk\":\"a\",\"n\":7}"));
    let answer = client.expect(200, &execution("tamper", "a", "[]"));
    assert_eq!(answer.text(), "{\"made\":\"made\",\"rows\":[\"1\",\"made\"]}");
    for _ in 0..20 {
        let answer = client.expect(200, &execution("sound", "a", "[]"));
        assert_eq!(answer.text(), "[\"1,2,3\",\"{\\\"a\\\":[1]}\",\"axc\",2]");
    }
}

/// Whatever a script keeps is gone with it: callbacks, promises and objects of one execution mean nothing to the next.
#[test]
fn nothing_is_called_after_the_end() {
    let server = furnished(EngineKind::Memory);
    let mut client = server.client();
    let leaves = "function (id) {
        var collection = getContext().getCollection();
        globalThis.kept = function () { collection.createDocument(collection.getSelfLink(), { id: 'late', pk: 'a' }); };
        new Promise(function () { }).then(globalThis.kept);
        __.createDocument(__.getSelfLink(), { id: id, pk: 'a' }, function () { __.response.setBody('in time'); });
    }";
    let calls = "function () {
        if (typeof globalThis.kept === 'function') globalThis.kept();
        __.response.setBody(typeof globalThis.kept);
    }";
    client.expect(201, &new_script("sprocs", "leaves", leaves));
    client.expect(201, &new_script("sprocs", "calls", calls));
    for number in 0..20 {
        let answer = client.expect(200, &execution("leaves", "a", &format!("[\"n{number}\"]")));
        assert_eq!(answer.text(), "\"in time\"");
        let answer = client.expect(200, &execution("calls", "a", "[]"));
        assert_eq!(answer.text(), "\"undefined\"");
    }
    client.expect(404, &about("GET", "late", "a"));
    // Aborted, and then more calls: nothing of it happens.
    let aborts = "function () {
        try { getContext().abort(new Error('stop')); } catch (error) { }
        __.createDocument(__.getSelfLink(), { id: 'after-abort', pk: 'a' });
        __.response.setBody('went on');
    }";
    client.expect(201, &new_script("sprocs", "aborts", aborts));
    client.expect(400, &execution("aborts", "a", "[]"));
    client.expect(404, &about("GET", "after-abort", "a"));
}
