//! Pages and feeds that go on in another process, and readers who wait for what another one writes.

use crate::world::{EVERYTHING, Process, Processes};
use astrarium_database::{
    ChangeFeedMode, ChangeFeedPage, ChangeFeedStart, Error, FeedScope, IndexUse, KeptUse, Limits, Query,
    QueryScope, ReadChanges, Resume,
};
use serde_json::{Value, json};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Queries whose results are kept by the process that computed them, and some that go on by a place.
const QUERIES: [&str; 6] = [
    "SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g",
    "SELECT DISTINCT VALUE c.g FROM c",
    "SELECT VALUE c.id FROM c ORDER BY c.g DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.long OFFSET 2 LIMIT 30",
    "SELECT VALUE x FROM (SELECT DISTINCT VALUE c.g FROM c) x",
    "SELECT VALUE c.id FROM c WHERE c.g > 3",
];

/// All rows of a query, each page from the next of some processes.
async fn rows(processes: &[&Process], text: &str, kept_use: KeptUse, index_use: IndexUse) -> Vec<Value> {
    let query = Query::parse(text, Vec::new()).unwrap();
    let limits = Limits { row_count_max: 3, index_use, kept_use, ..Limits::default() };
    let scope = QueryScope::Given(FeedScope::All);
    let (mut rows, mut resume) = (Vec::new(), None);
    for process in processes.iter().cycle() {
        let container = process.container().await;
        let documents = process.account.documents(&container);
        let page = documents.query(&query, &scope, resume.take(), limits).await.unwrap();
        rows.extend(page.rows.iter().map(|row| serde_json::from_slice::<Value>(row).unwrap()));
        let Some(next) = page.resume else { break };
        resume = Resume::decode(&next.encode());
        assert!(resume.is_some());
    }
    rows
}

#[tokio::test]
async fn pages_go_on_in_any_process() {
    let processes = Processes::new(json!({})).await;
    let (one, other) = (&processes.one, &processes.other);
    for number in 0..40 {
        let rank = number * 7 % 17;
        let long = format!("{}{rank}", "x".repeat(700));
        one.put(&json!({"id": number.to_string(), "pk": "p", "g": rank, "long": long})).await;
    }
    for text in QUERIES {
        for index_use in [IndexUse::Never, IndexUse::ByCost] {
            for kept_use in [KeptUse::Never, KeptUse::Always] {
                let alone = rows(&[one], text, kept_use, index_use).await;
                let alternating = rows(&[one, other], text, kept_use, index_use).await;
                assert_eq!(alone, alternating, "{text} {kept_use:?} {index_use:?}");
            }
        }
    }
}

/// Kept rows show a moment, and a client who has seen what was written since, in whichever process, is not shown them.
#[tokio::test]
async fn kept_rows_are_not_older_than_what_a_client_has_seen() {
    let processes = Processes::new(json!({})).await;
    let (one, other) = (&processes.one, &processes.other);
    for number in 0..10 {
        one.put(&json!({"id": number.to_string(), "pk": "p", "g": number})).await;
    }
    let query = Query::parse("SELECT DISTINCT VALUE c.g FROM c", Vec::new()).unwrap();
    let page = async |kept_use, resume| {
        let limits = Limits { row_count_max: 3, index_use: IndexUse::Never, kept_use, ..Limits::default() };
        let (container, scope) = (one.container().await, QueryScope::Given(FeedScope::All));
        one.account.documents(&container).query(&query, &scope, resume, limits).await.unwrap()
    };
    let first = page(KeptUse::Always, None).await;
    let lsn = other.put(&json!({"id": "9", "pk": "p", "g": "new"})).await.lsn;
    let shown = async |kept_use| {
        let mut rows = Vec::new();
        let mut resume = first.resume.clone();
        while let Some(next) = resume {
            let page = page(kept_use, Some(next)).await;
            rows.extend(page.rows);
            resume = page.resume;
        }
        rows.contains(&b"\"new\"".to_vec())
    };
    assert!(!shown(KeptUse::Always).await, "rows of the moment of the first page");
    assert!(shown(KeptUse::Since(lsn)).await);
    assert!(shown(KeptUse::Unchanged).await);
    // What another process has split is another range, whatever was kept of the old one.
    let first = page(KeptUse::Always, None).await;
    processes.split(0).await;
    other.put(&json!({"id": "8", "pk": "p", "g": "newer"})).await;
    let next = page(KeptUse::Always, first.resume).await;
    assert!(next.resume.is_some() && next.rows.len() == 3);
}

async fn changes(process: &Process, start: ChangeFeedStart, wait: Duration) -> Result<ChangeFeedPage, Error> {
    let container = process.container().await;
    let request = ReadChanges {
        scope: FeedScope::All,
        range_id: None,
        mode: ChangeFeedMode::LatestVersion,
        start,
        limit: EVERYTHING,
        wait,
    };
    process.account.documents(&container).read_changes(&request).await
}

fn ids(page: &ChangeFeedPage) -> Vec<String> {
    let id = |change: &astrarium_database::FeedChange| {
        let document: Value = serde_json::from_slice(change.current.as_ref().unwrap().text()).unwrap();
        document["id"].as_str().unwrap().to_owned()
    };
    page.changes.iter().map(id).collect()
}

#[tokio::test]
async fn feeds_go_on_in_any_process() {
    let processes = Processes::new(json!({})).await;
    let (one, other) = (&processes.one, &processes.other);
    let mut start = ChangeFeedStart::Beginning;
    let (mut written, mut seen) = (Vec::new(), Vec::new());
    for round in 0..12 {
        let (writer, reader) = if round % 2 == 0 { (one, other) } else { (other, one) };
        if round == 6 {
            processes.split(0).await;
        }
        for number in 0..3 {
            let id = format!("{round} {number}");
            writer.create(&id, &format!("key {number}")).await.unwrap();
            written.push(id);
        }
        let page = changes(reader, start, Duration::ZERO).await.unwrap();
        seen.extend(ids(&page));
        start = ChangeFeedStart::Position(page.position);
    }
    seen.sort();
    written.sort();
    assert_eq!(seen, written, "each change once");
}

/// A reader who waits is woken by what another process commits: by writes, by splits, by the end of the container.
#[tokio::test]
async fn readers_wait_for_what_other_processes_write() {
    let processes = Processes::new(json!({})).await;
    let (one, other) = (&processes.one, &processes.other);
    let mut start = ChangeFeedStart::Now;
    for round in 0..4 {
        let id = round.to_string();
        let write = async {
            if round == 2 {
                processes.split(0).await;
            }
            one.create(&id, "a").await.unwrap();
        };
        let page = while_waiting(changes(other, start, LONG), write).await.unwrap();
        assert_eq!(ids(&page), [id.as_str()]);
        start = ChangeFeedStart::Position(page.position);
    }
    let gone = while_waiting(changes(other, start, LONG), one.remove()).await;
    assert!(matches!(gone, Err(Error::OwnerNotFound)), "{gone:?}");
}

const LONG: Duration = Duration::from_mins(10);

/// What a reader is told who waits while something happens, well before the time is over.
async fn while_waiting<T>(reader: impl Future<Output = T>, happening: impl Future<Output = ()>) -> T {
    let mut reader = pin!(reader);
    let is_waiting = poll_fn(|context| Poll::Ready(reader.as_mut().poll(context).is_pending())).await;
    assert!(is_waiting, "nothing has happened yet");
    let both = async { tokio::join!(reader, happening).0 };
    tokio::time::timeout(LONG / 2, both).await.expect("the reader is woken")
}
