//! Writers in several processes: nothing is lost, nothing is given twice.

use crate::world::{CONTAINER, DATABASE, Process, Processes, key};
use astrarium_database::{ChildKind, Error, Link, ScriptRequest, WriteMode};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Numbers and etags are drawn in blocks by each process, and no two have one in common.
#[tokio::test]
async fn numbers_and_etags_are_given_once() {
    let processes = Processes::new(json!({})).await;
    let (mut numbers, mut etags) = (BTreeSet::new(), BTreeSet::new());
    for round in 0..150 {
        for (place, process) in [&processes.one, &processes.other].into_iter().enumerate() {
            let header = process.create(&format!("{place} {round}"), "a").await.unwrap().body.header;
            assert!(numbers.insert(header.number), "{} is given twice", header.number);
            assert!(etags.insert(header.etag), "{:x} is given twice", header.etag);
        }
    }
    let third = processes.third().await;
    let header = third.create("last", "a").await.unwrap().body.header;
    assert!(!numbers.contains(&header.number) && !etags.contains(&header.etag));
    assert_eq!(third.problems().await, [] as [&str; 0]);
}

#[tokio::test]
async fn names_and_unique_keys_are_taken_once() {
    let processes = Processes::new(json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/name"]}]}})).await;
    let (one, other) = (&processes.one, &processes.other);
    let document = |id: &str, name: &str| json!({"id": id, "pk": "a", "name": name});
    one.write(WriteMode::Create, &document("1", "x")).await.unwrap();
    assert!(matches!(other.write(WriteMode::Create, &document("1", "y")).await, Err(Error::Exists)));
    assert!(matches!(other.write(WriteMode::Create, &document("2", "x")).await, Err(Error::UniqueKey)));
    other.put(&document("1", "z")).await;
    one.write(WriteMode::Create, &document("2", "x")).await.unwrap();
    let database = one.account.catalog().database(DATABASE).await.unwrap();
    let again = astrarium_database::definition::database::DatabaseDefinition { id: "d".to_owned() };
    assert!(matches!(other.account.catalog().create_database(&again, None).await, Err(Error::Exists)));
    assert_eq!(other.account.catalog().database(DATABASE).await.unwrap().rid, database.rid);
    assert_eq!(one.problems().await, [] as [&str; 0]);
}

const COUNTER: &str = "function (times) {
    var own = __.getSelfLink(), link = __.getAltLink() + '/docs/counter';
    function step(left) {
        if (left === 0) { return; }
        __.readDocument(link, function (error, counter) {
            if (error) { throw error; }
            counter.n += 1;
            __.replaceDocument(counter._self, counter, function (error) {
                if (error) { throw error; }
                step(left - 1);
            });
        });
    }
    step(times);
}";

/// Procedures on one document, in both processes at once: as if one ran after the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn procedures_of_two_processes_undo_nothing() {
    const RUNS: u64 = 15;
    let processes = Processes::new(json!({})).await;
    let kind = ChildKind::StoredProcedure(DATABASE, CONTAINER);
    let source = json!({"id": "count", "body": COUNTER}).to_string();
    processes.one.account.catalog().create_child(kind, "count", &source).await.unwrap();
    processes.one.put(&json!({"id": "counter", "pk": "a", "n": 0})).await;
    let Processes { one, other, .. } = processes;
    let (one, other) = (Arc::new(one), Arc::new(other));
    let counting: Vec<_> = [&one, &other]
        .map(|process| {
            let process = Arc::clone(process);
            #[expect(clippy::disallowed_methods, reason = "concurrent processes are the point")]
            tokio::spawn(async move { count(&process, RUNS).await })
        })
        .into();
    for counting in counting {
        counting.await.unwrap();
    }
    assert_eq!(other.read("counter", "a").await.unwrap()["n"], 2 * RUNS * 2);
    assert_eq!(one.problems().await, [] as [&str; 0]);
}

async fn count(process: &Process, runs: u64) {
    let container = process.container().await;
    let mut done = 0;
    while done < runs {
        let (scripts, request) = (process.account.scripts(&container), ScriptRequest::default());
        match scripts.execute_procedure(Link::Name("count"), Some(&key("a")), b"[2]", &request).await {
            Ok(_) => done += 1,
            // It kept losing against the other process, and has not happened.
            Err(Error::RetryWith) => {}
            Err(error) => panic!("{error}"),
        }
    }
}
