//! Queries that would run for ever, and answers that nobody reads: others are served as if they were alone, memory stays
//! within its budget, and all of it comes back.

use crate::program::{DOCS, Program, create, read};
use astrarium_testkit::Request;
use astrarium_testkit::http::Connection;
use std::time::{Duration, Instant};

/// The end of a test that hangs.
const PATIENCE: Duration = Duration::from_mins(5);

/// Queries that take minutes and cannot stop in between, each another way: joins of a document's array and of a parameter,
/// subqueries, functions.
const HOSTILE: [&str; 8] = [
    "SELECT VALUE COUNT(1) FROM c JOIN x IN c.list JOIN y IN c.list JOIN z IN c.list",
    "SELECT VALUE MAX(x) FROM c JOIN x IN c.list JOIN y IN c.list JOIN z IN c.list WHERE x + y + z < 0",
    "SELECT VALUE COUNT(1) FROM c JOIN x IN (SELECT VALUE @list) JOIN y IN (SELECT VALUE @list) JOIN z IN (SELECT VALUE @list)",
    "SELECT x FROM c JOIN x IN (SELECT VALUE @list) JOIN y IN (SELECT VALUE @list) JOIN z IN (SELECT VALUE @list) ORDER BY c.id",
    "SELECT * FROM c WHERE (SELECT VALUE COUNT(1) FROM x IN c.list JOIN y IN c.list JOIN z IN c.list) < 0",
    "SELECT DISTINCT VALUE x % 7 FROM c JOIN x IN c.list JOIN y IN c.list JOIN z IN c.list",
    "SELECT VALUE COUNT(1) FROM c JOIN x IN c.list JOIN y IN c.list WHERE ARRAY_CONTAINS(@list, CONCAT(ToString(x), ToString(y)))",
    "SELECT * FROM c WHERE EXISTS(SELECT VALUE x FROM x IN c.list JOIN y IN c.list WHERE SetIntersect(c.list, @list)[0] = x - y - 1)",
];

fn numbers(count: usize) -> String {
    (0..count).map(|number| number.to_string()).collect::<Vec<_>>().join(",")
}

fn query(text: &str, list: &str) -> Request {
    let body = format!("{{\"query\":\"{text}\",\"parameters\":[{{\"name\":\"@list\",\"value\":[{list}]}}]}}");
    Request::new("POST", DOCS)
        .partition_key("[\"a\"]")
        .header("x-ms-documentdb-isquery", "True")
        .header("content-type", "application/query+json")
        .body(body)
}

/// A number of `/metrics`.
fn metric(program: &Program, name: &str) -> u64 {
    let mut request = Request::new("GET", "/metrics");
    request = request.header("connection", "close");
    let text = program.client().expect(200, &request).text();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
}

#[track_caller]
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn hostile_queries_hold_up_nobody() {
    let program = Program::in_memory(&[]);
    program.furnish();
    let mut client = program.client();
    client.expect(201, &create("1", ""));
    let list = numbers(2_000);
    let large = format!("{{\"id\":\"large\",\"pk\":\"a\",\"list\":[{list}]}}");
    client.expect(201, &Request::new("POST", DOCS).partition_key("[\"a\"]").body(large));
    let mut hostile = Vec::new();
    for text in HOSTILE {
        let mut connection = Connection::open(program.address).unwrap();
        connection.send(&client.bytes(&query(text, &list))).unwrap();
        hostile.push(connection);
    }
    wait_for("they run", || metric(&program, "astrarium_queries_running") == 8);
    for _ in 0..200 {
        client.expect(200, &read("1"));
    }
    for _ in 0..20 {
        // A new connection each time.
        program.client().expect(200, &read("1"));
        program.client().expect(200, &Request::new("GET", "/alive"));
        client.expect(200, &query("SELECT VALUE c.id FROM c WHERE c.id = '1'", "1"));
    }
    // All of them came before the first of the hostile ones was done; those take minutes.
    assert_eq!(metric(&program, "astrarium_queries_running"), 8, "the hostile ones are still there");
    // A query that is not short, but ends, gets its share of the processor.
    let honest = "SELECT VALUE COUNT(1) FROM c JOIN x IN c.list JOIN y IN c.list WHERE x < 100";
    client.expect(200, &query(honest, "1"));
    assert_eq!(metric(&program, "astrarium_queries_running"), 8, "the hostile ones are still there");
    drop(hostile);
    wait_for("they end", || metric(&program, "astrarium_queries_running") == 0);
}

#[test]
fn groups_stay_within_the_memory_budget() {
    let program = Program::in_memory(&["--memory-budget", "128"]);
    program.furnish();
    let mut client = program.client();
    let list = numbers(2_000);
    let large = format!("{{\"id\":\"large\",\"pk\":\"a\",\"list\":[{list}]}}");
    client.expect(201, &Request::new("POST", DOCS).partition_key("[\"a\"]").body(large));
    let before = program.kilobytes("VmRSS");
    // Four million groups of each.
    let text = "SELECT x, y, COUNT(1) AS n FROM c JOIN x IN c.list JOIN y IN c.list GROUP BY x, y";
    let outcomes: Vec<u16> = std::thread::scope(|scope| {
        let ask = || {
            let mut client = program.client();
            client.ask(&query(text, "1")).status
        };
        let asking: Vec<_> = (0..12).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(outcomes.contains(&429), "{outcomes:?}");
    assert!(outcomes.iter().all(|status| [200, 408, 429].contains(status)), "{outcomes:?}");
    if let (Some(before), Some(peak)) = (before, program.kilobytes("VmHWM")) {
        assert!(peak - before < 400 << 10, "{peak} KB at the most, {before} KB before");
    }
    assert_eq!(metric(&program, "astrarium_memory_taken_bytes"), 0);
    client.expect(200, &read("large"));
}

#[test]
fn answers_that_nobody_reads_stay_within_the_memory_budget() {
    let program = Program::in_memory(&["--memory-budget", "128"]);
    program.furnish();
    let mut client = program.client();
    let filler = "x".repeat(1 << 20);
    for id in ["1", "2", "3"] {
        client.expect(201, &create(id, &filler));
    }
    let before = program.kilobytes("VmRSS");
    let asked = client.bytes(&Request::new("GET", DOCS).partition_key("[\"a\"]"));
    let mut unread = Vec::new();
    for _ in 0..100 {
        let mut connection = Connection::open(program.address).unwrap();
        // The system takes the first answers into its own buffers.
        connection.send(&asked.repeat(5)).unwrap();
        unread.push(connection);
    }
    // Who asks for a little is served all the while.
    for _ in 0..50 {
        client.expect(404, &read("none"));
    }
    wait_for("some are refused", || metric(&program, "astrarium_memory_refused_total") > 0);
    if let (Some(before), Some(peak)) = (before, program.kilobytes("VmHWM")) {
        assert!(peak - before < 400 << 10, "{peak} KB at the most, {before} KB before");
    }
    drop(unread);
    let is_free = || metric(&program, "astrarium_memory_taken_bytes") == 0;
    wait_for("memory comes back", is_free);
    client.expect(200, &Request::new("GET", DOCS).partition_key("[\"a\"]"));
}
