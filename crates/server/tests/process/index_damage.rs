//! Damage of the index, seen from outside: the server starts, answers as before, takes writes, tells, and builds the index anew.

use crate::damage::{content, copy};
use crate::program::{Program, run};
use astrarium_testkit::{Client, Request};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const COUNT: usize = 120;
const DOCS: &str = "/dbs/d/colls/c/docs";
const PATIENCE: Duration = Duration::from_mins(5);

/// Queries that walk everything the index has of the properties, and do not see what is written after the damage.
const QUERIES: [&str; 5] = [
    "SELECT VALUE c.id FROM c WHERE c.n = 17",
    "SELECT VALUE c.id FROM c WHERE c.n >= 0 AND c.n < 1000 AND STARTSWITH(c.word, 'word-1')",
    "SELECT VALUE c.n FROM c WHERE c.n < 1000 ORDER BY c.n DESC",
    "SELECT VALUE c.word FROM c WHERE c.n < 1000 ORDER BY c.word",
    "SELECT VALUE COUNT(1) FROM c WHERE c.n >= 0 AND c.n < 1000",
];

fn create(number: usize) -> Request {
    let body =
        format!("{{\"id\":\"{number}\",\"pk\":\"a\",\"n\":{number},\"word\":\"word-{number:04}-and-more\"}}");
    Request::new("POST", DOCS).partition_key("[\"a\"]").body(body)
}

fn query(text: &str) -> Request {
    Request::new("POST", DOCS)
        .header("content-type", "application/query+json")
        .header("x-ms-documentdb-isquery", "true")
        .header("x-ms-documentdb-populatequerymetrics", "true")
        .partition_key("[\"a\"]")
        .body(serde_json::json!({ "query": text }).to_string())
}

fn rows(client: &mut Client, text: &str) -> serde_json::Value {
    let page: serde_json::Value = serde_json::from_str(&client.expect(200, &query(text)).text()).unwrap();
    page["Documents"].clone()
}

fn answers(client: &mut Client) -> Vec<serde_json::Value> {
    QUERIES.iter().map(|text| rows(client, text)).collect()
}

/// Documents read for a query that finds one.
fn documents_read(client: &mut Client) -> u64 {
    let answer = client.expect(200, &query(QUERIES[0]));
    let metrics = answer.header("x-ms-documentdb-query-metrics").unwrap().to_owned();
    let count = metrics.split(';').find_map(|metric| metric.strip_prefix("retrievedDocumentCount="));
    count.unwrap_or_else(|| panic!("{metrics}")).parse().unwrap()
}

fn metric(client: &mut Client, name: &str) -> f64 {
    let page = client.expect(200, &Request::new("GET", "/metrics")).text();
    let found = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("{name} in {page}")).parse().unwrap()
}

/// A closed folder with a run of several blocks, and what is right.
fn victim() -> (TempDir, Vec<serde_json::Value>) {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::on(folder.path(), &[]);
    let mut client = program.client();
    client.expect(201, &Request::new("POST", "/dbs").body("{\"id\":\"d\"}"));
    let paths = serde_json::json!([{"path": "/n/?"}, {"path": "/word/?"}]);
    let container = serde_json::json!({
        "id": "c",
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "indexingPolicy": {"includedPaths": paths, "excludedPaths": [{"path": "/*"}]},
    });
    client.expect(201, &Request::new("POST", "/dbs/d/colls").body(container.to_string()));
    for number in 0..COUNT {
        client.expect(201, &create(number));
    }
    let right = answers(&mut client);
    assert_eq!(documents_read(&mut client), 1);
    program.stop();
    (folder, right)
}

fn only_run(folder: &Path) -> PathBuf {
    let is_run = |name: &PathBuf| name.extension().is_some_and(|extension| extension == "run");
    let runs: Vec<_> = content(folder).into_keys().filter(is_run).collect();
    assert_eq!(runs.len(), 1);
    folder.join(&runs[0])
}

fn check(what: &str, victim: &Path, right: &[serde_json::Value], harm: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    copy(victim, folder.path());
    harm(folder.path());
    let path = folder.path().to_str().unwrap();
    let verified = run(&["verify", "--data", path]);
    assert!(!verified.success && verified.stdout.contains("index"), "{what}: {verified:?}");
    let program = Program::on(folder.path(), &[]);
    let mut client = program.client();
    assert_eq!(answers(&mut client), right, "{what}");
    client.expect(201, &create(1000));
    let began = Instant::now();
    while metric(&mut client, "astrarium_index_builds_total") < 1.0 {
        assert_eq!(answers(&mut client), right, "{what}, while it is built");
        assert!(began.elapsed() < PATIENCE, "{what}: the index is not built anew");
    }
    assert!(metric(&mut client, "astrarium_storage_index_lost") < 1.0, "{what}");
    assert_eq!(client.expect(200, &Request::new("GET", "/status")).text(), "ready\n", "{what}");
    assert_eq!(answers(&mut client), right, "{what}, when it is built");
    assert_eq!(documents_read(&mut client), 1, "{what}: the new index is used");
    assert_eq!(rows(&mut client, "SELECT VALUE c.id FROM c WHERE c.n = 1000"), serde_json::json!(["1000"]));
    let log = program.stop().stderr;
    for told in ["it is set aside", "its index is damaged and is built anew", "index build finished"] {
        assert!(log.contains(told), "{what}: {told:?} in {log}");
    }
    let verified = run(&["verify", "--data", path]);
    assert!(verified.success, "{what}: {verified:?}");
}

#[test]
fn damage_of_the_index_costs_no_answer() {
    let (victim, right) = victim();
    let victim = victim.path();
    let whole = std::fs::read(only_run(victim)).unwrap();
    // The trailer: number, bytes of the footer, checksum, magic (docs/on-disk-format.md).
    let trailer = whole.len() - 28;
    let footer_bytes = u64::from_le_bytes(whole[trailer + 8..trailer + 16].try_into().unwrap());
    let footer = trailer - usize::try_from(footer_bytes).unwrap();
    let places = [
        ("the magic", 3),
        ("the first block", 20),
        ("a block in the middle", footer / 2),
        ("the last block", footer - 10),
        ("the footer", footer + 2),
        ("the filter", trailer - 5),
        ("the trailer", trailer + 17),
    ];
    for (what, place) in places {
        check(what, victim, &right, |folder| {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x10;
            std::fs::write(only_run(folder), bytes).unwrap();
        });
    }
    check("a run cut short", victim, &right, |folder| {
        std::fs::write(only_run(folder), &whole[..whole.len() / 2]).unwrap();
    });
    check("an empty run", victim, &right, |folder| std::fs::write(only_run(folder), "").unwrap());
    check("a missing run", victim, &right, |folder| std::fs::remove_file(only_run(folder)).unwrap());
}

#[test]
fn damage_of_the_list_of_runs_costs_no_answer() {
    let (victim, right) = victim();
    let list = |folder: &Path| {
        let is_list = |name: &PathBuf| name.ends_with("set/RUNS");
        folder.join(content(folder).into_keys().find(is_list).unwrap())
    };
    let whole = std::fs::read(list(victim.path())).unwrap();
    check("an altered list", victim.path(), &right, |folder| {
        let mut bytes = whole.clone();
        bytes[whole.len() / 2] ^= 1;
        std::fs::write(list(folder), bytes).unwrap();
    });
    check("a list cut short", victim.path(), &right, |folder| {
        std::fs::write(list(folder), &whole[..whole.len() - 3]).unwrap();
    });
    check("a missing list", victim.path(), &right, |folder| std::fs::remove_file(list(folder)).unwrap());
}
