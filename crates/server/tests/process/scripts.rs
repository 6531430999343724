//! Scripts that never ask whether to stop, sent to the server by the hundred: others are served meanwhile, and afterwards
//! everything works and nothing runs.

use crate::program::{DOCS, Program, create, read};
use astrarium_testkit::{Client, Request};
use std::time::{Duration, Instant};

const CONTAINER: &str = "/dbs/d/colls/c";
const KEY: &str = "[\"a\"]";

/// Work of minutes to years inside native functions of the JavaScript engine.
const RUNAWAYS: &[&str] = &[
    "Array.prototype.reverse.call({ length: 2 ** 53 - 1 });",
    "Array.prototype.lastIndexOf.call({ length: 2 ** 53 - 1 }, 1);",
    "Array.prototype.includes.call(new Proxy({ length: 2 ** 53 - 1 }, {}), 1);",
    "Array.prototype.fill.call({ set 0(x) {}, length: 2 ** 53 - 1 }, undefined, 2 ** 52);",
    "Array.prototype.values.call({ length: 2 ** 53 - 1 }).drop(2 ** 52).next();",
    "Array.prototype.flat.call({ length: 2 ** 53 - 1 });",
    "var text = 'a'.repeat(1e6), part = 'a'.repeat(5e5) + 'b'; text.indexOf(part); text.lastIndexOf(part);",
    "var text = 'ab'.repeat(5e5), part = 'ab'.repeat(3e5) + 'b'; text.split(part); text.replaceAll(part, '');",
    "var a = new Float64Array(2e6), b = new Float64Array(2e6).fill(1); b.forEach(a.indexOf, a);",
    "var a = new Uint8Array(3e7); for (;;) a.fill(1).reverse().sort();",
    "var a = Array(2e4).fill('x'.repeat(2e4)).map((x, i) => x + i); a.sort(); a.sort((x, y) => x < y ? -1 : 1); a.sort();",
    "JSON.stringify(new Array(2 ** 32 - 1));",
    "/^(.*?,){20}$/.test('1,'.repeat(30)); /(x+x+)+y/.test('x'.repeat(1e5));",
    "String(7n ** (2n ** 22n));",
    "for (;;) {}",
];

/// Kinds of scripts.
#[derive(Clone, Copy)]
enum Kind {
    Procedure,
    Trigger,
    Function,
}

const KINDS: [Kind; 3] = [Kind::Procedure, Kind::Trigger, Kind::Function];

fn store(client: &mut Client, kind: Kind, id: &str, code: &str) {
    let body = serde_json::json!({
        "id": id, "body": format!("function f(x) {{ {code} }}"), "triggerType": "Pre", "triggerOperation": "All",
    });
    let feed = match kind {
        Kind::Procedure => "sprocs",
        Kind::Trigger => "triggers",
        Kind::Function => "udfs",
    };
    client.expect(201, &Request::new("POST", &format!("{CONTAINER}/{feed}")).body(body.to_string()));
}

fn request(kind: Kind, id: &str, document: &str) -> Request {
    match kind {
        Kind::Procedure => {
            Request::new("POST", &format!("{CONTAINER}/sprocs/{id}")).partition_key(KEY).body("[]")
        }
        Kind::Trigger => Request::new("POST", DOCS)
            .partition_key(KEY)
            .header("x-ms-documentdb-pre-trigger-include", id)
            .header("x-ms-documentdb-is-upsert", "true")
            .body(format!("{{\"id\":\"{document}\",\"pk\":\"a\"}}")),
        Kind::Function => Request::new("POST", DOCS)
            .partition_key(KEY)
            .header("x-ms-documentdb-isquery", "true")
            .header("content-type", "application/query+json")
            .body(format!("{{\"query\":\"SELECT VALUE udf.{id}(c.id) FROM c WHERE c.id = 'there'\"}}")),
    }
}

/// Runs a short script of each kind.
fn use_scripts(client: &mut Client) {
    for (kind, status) in KINDS.into_iter().zip([200, 200, 200]) {
        let answer = client.ask(&request(kind, "fine", "there"));
        assert_eq!(answer.status, status, "{}", answer.text());
    }
}

fn furnish(program: &Program) -> Client {
    program.furnish();
    let mut client = program.client();
    client.expect(201, &create("there", "x"));
    for kind in KINDS {
        store(&mut client, kind, "fine", "return 1;");
        for (number, code) in RUNAWAYS.iter().enumerate() {
            store(&mut client, kind, &format!("bad{number}"), code);
        }
    }
    client
}

/// The server and its script processes.
fn tree(program: &Program) -> Vec<u32> {
    let mut found = vec![program.process_id()];
    let threads = std::fs::read_dir(format!("/proc/{}/task", program.process_id())).unwrap();
    for thread in threads.flatten() {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        found.extend(children.split_whitespace().filter_map(|id| id.parse::<u32>().ok()));
    }
    found
}

/// Processor time of the server and its script processes, in ticks of ten milliseconds.
fn ticks(program: &Program) -> u64 {
    let of = |id: &u32| {
        let text = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
        fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum::<u64>()
    };
    tree(program).iter().map(of).sum()
}

#[test]
fn hundreds_of_runaway_scripts_leave_everything_working_and_the_machine_idle() {
    let program = Program::in_memory(&[]);
    assert_eq!(tree(&program).len(), 1, "without scripts there are no processes for them");
    let mut client = furnish(&program);
    use_scripts(&mut client);
    let mut meanwhile = 0;
    std::thread::scope(|scope| {
        let program = &program;
        let hostile: Vec<_> = (0..RUNAWAYS.len() * KINDS.len() * 7)
            .map(|number| {
                scope.spawn(move || {
                    let (kind, code) = (KINDS[number % 3], number / 3 % RUNAWAYS.len());
                    let request = request(kind, &format!("bad{code}"), &format!("never{number}"));
                    program.client().ask(&request)
                })
            })
            .collect();
        assert!(hostile.len() > 300);
        while !hostile.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            use_scripts(&mut client);
            meanwhile += 1;
            client.expect(200, &read("there"));
            std::thread::sleep(Duration::from_millis(50));
        }
        let mut counts = std::collections::BTreeMap::<u16, usize>::new();
        for (number, run) in hostile.into_iter().enumerate() {
            let (answer, code) = (run.join().unwrap(), RUNAWAYS[number / 3 % RUNAWAYS.len()]);
            *counts.entry(answer.status).or_default() += 1;
            assert!([400, 408, 429].contains(&answer.status), "{code} {} {}", answer.status, answer.text());
        }
        println!("answers by status: {counts:?}; {meanwhile} rounds of short scripts meanwhile");
        assert!(counts[&408] >= 10, "{counts:?}");
    });
    // Behind all those it would be none.
    assert!(meanwhile >= 3, "{meanwhile} rounds of short scripts");
    use_scripts(&mut client);
    let documents = client.expect(200, &Request::new("GET", DOCS).partition_key(KEY));
    assert!(!documents.text().contains("never"), "no runaway's document was written");
    // At rest: nearly none of two seconds of the processors.
    let before = ticks(&program);
    std::thread::sleep(Duration::from_secs(2));
    let used = ticks(&program).saturating_sub(before);
    assert!(used < 40, "{used} ticks of ten milliseconds");
    program.stop();
}

/// Somebody who hangs up, again and again, leaves nothing running.
#[test]
fn hanging_up_ends_the_script() {
    use std::io::Write as _;
    let program = Program::in_memory(&[]);
    let mut client = furnish(&program);
    for number in 0..40 {
        let bytes = client.bytes(&request(KINDS[number % 3], "bad0", "never"));
        let mut connection = std::net::TcpStream::connect(program.address).unwrap();
        connection.write_all(&bytes).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    let begun = Instant::now();
    let metrics = Request::new("GET", "/metrics");
    while !client.ask(&metrics).text().lines().any(|line| line == "astrarium_scripts_running 0") {
        assert!(begun.elapsed() < Duration::from_mins(5), "{}", client.ask(&metrics).text());
        std::thread::sleep(Duration::from_millis(20));
    }
    use_scripts(&mut client);
}

/// The server's end is the end of its scripts, whatever they do.
#[test]
fn script_processes_end_with_the_server() {
    for is_killed in [false, true] {
        let program = Program::in_memory(&[]);
        let client = furnish(&program);
        let runs: Vec<_> = (0..2)
            .map(|number| {
                let mut client = program.client();
                let request = request(Kind::Procedure, &format!("bad{}", number * 14), "never");
                std::thread::spawn(move || client.send(&request).map(|answer| answer.status))
            })
            .collect();
        let begun = Instant::now();
        while tree(&program).len() < 3 {
            assert!(begun.elapsed() < Duration::from_mins(5));
            std::thread::sleep(Duration::from_millis(10));
        }
        let tree = tree(&program);
        drop(client);
        if is_killed {
            drop(program);
        } else {
            program.stop();
        }
        for run in runs {
            let _ = run.join().unwrap();
        }
        let begun = Instant::now();
        let lives = |id: &u32| {
            // What has ended and was not yet waited for by whoever inherited it does not count.
            std::fs::read_to_string(format!("/proc/{id}/stat"))
                .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().starts_with(" Z"))
        };
        while tree.iter().any(lives) {
            assert!(begun.elapsed() < Duration::from_mins(5), "{tree:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The secrets of the server are not in the reach of scripts' processes.
#[test]
fn script_processes_know_no_secrets() {
    let program = Program::in_memory(&[]);
    let mut client = furnish(&program);
    use_scripts(&mut client);
    let workers = &tree(&program)[1..];
    assert!(!workers.is_empty());
    for id in workers {
        assert_eq!(std::fs::read_to_string(format!("/proc/{id}/environ")).unwrap(), "");
        let line = std::fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap();
        assert_eq!(line, "astrarium\0script-worker\0");
        let files = std::fs::read_dir(format!("/proc/{id}/fd")).unwrap().flatten();
        let files: Vec<_> = files.filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect();
        let harmless = ["socket:", "pipe:", "anon_inode:", "/dev/null"];
        for file in files {
            let name = file.to_string_lossy().into_owned();
            assert!(harmless.iter().any(|known| name.starts_with(known)), "{name}");
        }
    }
}

/// The same answers on threads and without the memory image.
#[test]
fn other_ways_to_run_scripts_are_a_setting() {
    for arguments in [&["--script-isolation", "thread"][..], &["--script-fresh-worlds"]] {
        let program = Program::in_memory(arguments);
        let mut client = furnish(&program);
        for _ in 0..3 {
            use_scripts(&mut client);
        }
        assert_eq!(tree(&program).len() == 1, arguments.len() == 2);
        program.stop();
    }
}

/// Functions are called for many documents at once where they run in processes; what queries answer is the same.
#[test]
fn queries_with_functions_answer_the_same_in_processes_and_on_threads() {
    let queries = [
        "SELECT VALUE udf.double(c.n) FROM c",
        "SELECT c.id, udf.double(c.n) AS a, udf.double(c.missing) AS b, udf.size(c) AS s FROM c",
        "SELECT VALUE c.n FROM c WHERE udf.even(c.n)",
        "SELECT VALUE c.n FROM c WHERE c.n % 3 = 0 AND udf.even(c.n) AND udf.picky(c.n) < 900",
        "SELECT VALUE c.n FROM c WHERE udf.even(c.n) AND udf.picky(c.n) < 900",
        "SELECT VALUE (c.n = 7 ? 0 : udf.picky(c.n)) FROM c",
        "SELECT VALUE udf.picky(c.n) FROM c",
        "SELECT TOP 5 VALUE udf.double(c.n) FROM c",
        "SELECT VALUE t FROM c JOIN t IN c.tags WHERE udf.even(t)",
        "SELECT VALUE c.n FROM c WHERE udf.double(udf.double(c.n)) < 100",
        "SELECT VALUE COUNT(1) FROM c WHERE udf.even(c.n)",
        "SELECT udf.even(c.n) AS e, COUNT(1) AS k FROM c GROUP BY udf.even(c.n)",
        "SELECT DISTINCT VALUE udf.even(c.n) FROM c",
        "SELECT VALUE c.n FROM c WHERE udf.even(c.n) ORDER BY c.n DESC OFFSET 3 LIMIT 10",
    ];
    let mut answers = Vec::new();
    for isolation in ["process", "thread"] {
        let program = Program::in_memory(&["--script-isolation", isolation]);
        program.furnish();
        let mut client = program.client();
        for n in 0..400 {
            let body = format!("{{\"id\":\"{n}\",\"pk\":\"a\",\"n\":{n},\"tags\":[{n},1,2]}}");
            client.expect(201, &Request::new("POST", DOCS).partition_key(KEY).body(body));
        }
        store(&mut client, Kind::Function, "double", "return 2 * x;");
        store(&mut client, Kind::Function, "even", "return x % 2 === 0;");
        store(&mut client, Kind::Function, "size", "return x.id.length + x.tags.length;");
        store(&mut client, Kind::Function, "picky", "if (x === 7) throw new Error('seven'); return x;");
        let mut answer = |query: &str, page: &str| {
            let request = Request::new("POST", DOCS)
                .partition_key(KEY)
                .header("x-ms-documentdb-isquery", "true")
                .header("content-type", "application/query+json")
                .header("x-ms-max-item-count", page)
                .body(serde_json::json!({ "query": query }).to_string());
            let answer = client.ask(&request);
            let json: serde_json::Value = serde_json::from_str(&answer.text()).unwrap();
            (
                answer.status,
                json["Documents"].clone(),
                answer.status == 400 && answer.text().contains("seven"),
            )
        };
        let all = queries.iter().flat_map(|query| ["1000", "7"].map(|page| (*query, page)));
        answers.push(all.map(|(query, page)| (query, page, answer(query, page))).collect::<Vec<_>>());
    }
    let [process, thread] = &answers[..] else { panic!("two programs") };
    for (process, thread) in process.iter().zip(thread) {
        assert_eq!(process, thread);
    }
    let failed: Vec<&str> =
        thread.iter().filter(|(_, _, answer)| answer.0 != 200).map(|(query, ..)| *query).collect();
    assert!(failed.iter().all(|query| query.contains("VALUE udf.picky")), "{failed:?}");
    assert!(
        thread.iter().all(|(_, _, answer)| answer.0 == 200 || answer.2),
        "the error is the function's own"
    );
}

/// A script that looks at errors only goes on before its write is done; one whose write is refused sees the error all the
/// same, and leaves nothing of the run in which it did not.
#[test]
fn a_script_ahead_of_a_write_that_is_refused_sees_its_error() {
    let program = Program::in_memory(&[]);
    program.furnish();
    let mut client = program.client();
    let writes = "var c = getContext().getCollection(), link = c.getSelfLink(); getContext().getResponse().setBody('made');
        c.createDocument(link, { id: x + '-before', pk: 'a' }, function (e) { if (e) throw e; });
        c.createDocument(link, { id: x, pk: 'a' }, function (e) {
            if (e) getContext().getResponse().setBody(e.number);
            else c.createDocument(link, { id: x + '-after', pk: 'a' });
        });";
    store(&mut client, Kind::Procedure, "handles", writes);
    store(
        &mut client,
        Kind::Procedure,
        "throws",
        &writes.replace("if (e) getContext().getResponse().setBody(e.number);", "if (e) throw e;"),
    );
    client.expect(201, &create("there", "x"));
    let mut run = |id: &str, document: &str, status: u16| {
        let request = Request::new("POST", &format!("{CONTAINER}/sprocs/{id}")).partition_key(KEY);
        client.expect(status, &request.body(format!("[\"{document}\"]"))).text()
    };
    assert_eq!(run("handles", "new", 200), "\"made\"");
    // The first run goes ahead, the second one does not any more.
    assert_eq!(run("handles", "there", 200), "409");
    assert!(run("handles", "there", 400).contains("already exists"), "its first document is there by now");
    assert!(run("throws", "other", 200).contains("made"));
    assert!(run("throws", "other-after", 400).contains("already exists"));
    for (id, status) in
        [("new-before", 200), ("new", 200), ("new-after", 200), ("there-before", 200), ("there-after", 404)]
    {
        client.expect(status, &read(id));
    }
    client.expect(404, &read("other-after-before"));
}
