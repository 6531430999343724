//! What the log and the metrics tell: requests without their values, slow ones, background work, the process.

use crate::program::{DOCS, Program, create, read};
use astrarium_testkit::{Client, Request};
use std::time::{Duration, Instant};

/// Longest time for background work; freeing looks for something to do every five seconds.
const PATIENCE: Duration = Duration::from_mins(5);

fn query(text: &str) -> Request {
    let body =
        serde_json::json!({"query": text, "parameters": [{"name": "@hidden", "value": "secret-parameter"}]});
    Request::new("POST", DOCS)
        .partition_key("[\"a\"]")
        .header("content-type", "application/query+json")
        .header("x-ms-documentdb-isquery", "True")
        .header("user-agent", "logs-test/1")
        .body(body.to_string())
}

/// The line of the log with both of these.
#[track_caller]
fn line<'a>(log: &'a str, first: &str, second: &str) -> &'a str {
    let found = log.lines().find(|line| line.contains(first) && line.contains(second));
    found.unwrap_or_else(|| panic!("no line with {first} and {second} in {log}"))
}

#[track_caller]
fn check_line(line: &str, parts: &[&str]) {
    for part in parts {
        assert!(line.contains(part), "{part} in {line}");
    }
}

#[test]
fn requests_are_logged_without_their_values() {
    let program = Program::in_memory(&["--log-requests", "--log", "error", "--log-slow-ms", "0"]);
    program.furnish();
    let mut client = program.client();
    client.expect(201, &create("1", "secret-text"));
    client.expect(404, &read("2"));
    client.expect(
        200,
        &query("SELECT * FROM c WHERE c.x = 'secret-literal' AND c.n IN (17, 18) AND c.y = @hidden"),
    );
    client.expect(400, &query("SELECT * FROM c WHERE c.x == \"secret-literal\""));
    let key = Request::new("GET", &format!("{DOCS}/1")).partition_key("[\"secret-key\"");
    client.expect(400, &key);
    let log = program.stop().stderr;
    check_line(
        line(&log, "path=\"/dbs/d/colls/c/docs\"", "status=201"),
        &["request:", "substatus=0", "charge=", "milliseconds=", "/dbs/d/colls/c/docs"],
    );
    check_line(line(&log, "docs/2", "status=404"), &["substatus=0", "error=\"Entity with the specified id"]);
    let shape = "statement=\"SELECT * FROM c WHERE c.x = ? AND c.n IN (?, ...) AND c.y = @hidden\"";
    check_line(
        line(&log, "c.n IN", "status=200"),
        &[shape, "user_agent=\"logs-test/1\"", "version=HTTP/1.1", "activity_id="],
    );
    check_line(
        line(&log, "c.x ==", "status=400"),
        &["statement=\"SELECT * FROM c WHERE c.x == ?\"", "error=\"Syntax error"],
    );
    assert!(!log.contains("secret"), "{log}");
}

#[test]
fn slow_requests_are_logged() {
    let program = Program::in_memory(&["--log-slow-ms", "5"]);
    program.furnish();
    let mut client = program.client();
    let numbers: Vec<u32> = (0..60).collect();
    let body = serde_json::json!({"id": "1", "pk": "a", "a": numbers}).to_string();
    client.expect(201, &Request::new("POST", DOCS).partition_key("[\"a\"]").body(body));
    let slow = "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a JOIN z IN c.a WHERE x + y + z > 47110815.25";
    client.expect(200, &query(slow));
    let log = program.stop().stderr;
    check_line(
        line(&log, "slow_request", "JOIN z"),
        &["WARN", "WHERE x + y + z > ?\"", "status=200", "milliseconds="],
    );
    assert!(!log.contains("47110815.25"), "{log}");
}

fn metric(client: &mut Client, name: &str) -> f64 {
    let page = client.expect(200, &Request::new("GET", "/metrics")).text();
    let found = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let found = found.unwrap_or_else(|| panic!("{name} in {page}"));
    found.parse().unwrap()
}

fn wait_for(client: &mut Client, name: &str, least: f64) {
    let began = Instant::now();
    while metric(client, name) < least {
        assert!(began.elapsed() < PATIENCE, "{name} is not {least}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn builds_and_drops_are_logged_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::on(folder.path(), &[]);
    program.furnish();
    let mut client = program.client();
    for number in 0..20 {
        client.expect(201, &create(&number.to_string(), "x"));
    }
    let policy = "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2},\
                  \"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/x/?\"}],\"excludedPaths\":[{\"path\":\"/*\"}]}}";
    client.expect(200, &Request::new("PUT", "/dbs/d/colls/c").body(policy));
    wait_for(&mut client, "astrarium_index_builds_total", 1.0);
    assert!(metric(&mut client, "astrarium_index_build_steps_total") >= 1.0);
    assert!(metric(&mut client, "astrarium_index_builds_running") < 1.0);
    assert!(metric(&mut client, "astrarium_index_build_progress_ratio") > 0.99);
    client.expect(204, &Request::new("DELETE", "/dbs/d/colls/c"));
    wait_for(&mut client, "astrarium_sweeps_total", 1.0);
    client.expect(204, &Request::new("DELETE", "/dbs/d"));
    let log = program.stop().stderr;
    for event in ["index build started", "index build finished"] {
        check_line(line(&log, event, "dbs/d/colls/c"), &["INFO"]);
    }
    check_line(line(&log, "container dropped", "container=\"c\""), &["INFO", "database=\"d\""]);
    check_line(line(&log, "database dropped", "database=\"d\""), &["INFO"]);
    line(&log, "space of", "is free");
}

/// Series without their values, in the order of the page.
fn series(page: &str) -> Vec<String> {
    page.lines().map(|line| line.rsplit_once(' ').map_or(line, |(series, _)| series).to_owned()).collect()
}

#[test]
fn metrics_have_an_order_and_tell_what_the_process_is() {
    let programs = [Program::in_memory(&[]), Program::in_memory(&[])];
    let pages = programs.each_ref().map(|program| {
        program.furnish();
        program.client().expect(200, &Request::new("GET", "/metrics")).text()
    });
    let [first, second] = pages.each_ref().map(|page| series(page));
    assert_eq!(first, second);
    assert_eq!(pages[0].matches("# EOF").count(), 1);
    assert!(pages[0].ends_with("# EOF\n"), "{}", pages[0]);
    let version = format!("astrarium_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
    assert!(pages[0].contains(&version), "{}", pages[0]);
    let mut client = programs[0].client();
    if cfg!(target_os = "linux") {
        assert!(metric(&mut client, "process_resident_memory_bytes") > 1e6);
        assert!(metric(&mut client, "process_open_fds") > 3.0);
    }
    let before = metric(&mut client, "astrarium_request_units_total{resource=\"docs\"}");
    let charge: f64 =
        client.expect(201, &create("1", "x")).header("x-ms-request-charge").unwrap().parse().unwrap();
    let after = metric(&mut client, "astrarium_request_units_total{resource=\"docs\"}");
    assert!((after - before - charge).abs() < 0.01, "{before} {after} {charge}");
    assert!(!pages[0].contains("\"c\""), "names of resources are nobody's business here");
}

/// A stored procedure that costs seconds of throughput delays whoever comes next, and the log says by what.
#[test]
fn a_debt_of_throughput_is_logged_once() {
    let program = Program::in_memory(&["--throttle"]);
    program.furnish();
    let mut client = program.client();
    let key = "[\"a\"]";
    let body = "function f(first) { for (let i = 0; i < 200; i++) { __.createDocument(__.getSelfLink(), {id: first + i, pk: 'a'}); } }";
    let procedure = serde_json::json!({"id": "many", "body": body}).to_string();
    client.expect(201, &Request::new("POST", "/dbs/d/colls/c/sprocs").body(procedure));
    let run = |first: &str| {
        Request::new("POST", "/dbs/d/colls/c/sprocs/many").partition_key(key).body(format!("[\"{first}\"]"))
    };
    let charge = client.expect(200, &run("x")).header("x-ms-request-charge").unwrap().parse::<f64>().unwrap();
    assert!(charge > 800.0, "{charge}");
    client.expect(429, &read("x0"));
    // The next one is let in when the debt is gone, and makes another.
    let began = Instant::now();
    while client.ask(&run("y")).status == 429 {
        assert!(began.elapsed() < PATIENCE, "nobody is let in again");
        std::thread::sleep(Duration::from_millis(20));
    }
    let log = program.stop().stderr;
    check_line(
        line(&log, "WARN", "cost more than a second"),
        &["of=\"d/c\"", "charge=", "request_units_per_second=400"],
    );
    assert_eq!(log.matches("cost more than a second").count(), 1, "once a minute: {log}");
}
