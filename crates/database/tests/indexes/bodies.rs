//! What readers load of documents: no more than their page takes, and nothing that there is no memory for.

use crate::world::World;
use astrarium_database::partition::{Component, PartitionKey};
use astrarium_database::{
    BatchAction, BatchOperation, ChangeFeedMode, ChangeFeedPage, ChangeFeedPosition, ChangeFeedStart,
    Conditions, Error, FeedScope, IndexDirective, IndexUse, Limits, Memory, PageLimit, Query, QueryScope,
    ReadChanges,
};
use serde_json::json;
use std::time::Duration;

const MB: usize = 1_000_000;
/// Documents of a megabyte each.
const COUNT: usize = 40;

/// A container of documents of a megabyte, whose text is not indexed.
async fn large_documents() -> World {
    let policy = json!({"indexingPolicy": {"excludedPaths": [{"path": "/filler/?"}], "compositeIndexes": [
        [{"path": "/k", "order": "ascending"}, {"path": "/n", "order": "ascending"}],
    ]}, "changeFeedPolicy": {"retentionDuration": 60}});
    let world = World::new(policy).await;
    let filler = "x".repeat(MB);
    for number in 0..COUNT {
        let (id, long) = (format!("{number:02}"), "y".repeat(300));
        world.put(&json!({"id": id, "pk": "p", "k": 1, "n": number, "long": long, "filler": filler})).await;
    }
    world.engine.read_bytes();
    world
}

fn partition() -> FeedScope {
    FeedScope::Partition(PartitionKey::new(vec![Component::String("p".into())]))
}

async fn changes(
    world: &World,
    mode: ChangeFeedMode,
    start: ChangeFeedStart,
    count_max: usize,
) -> Result<ChangeFeedPage, Error> {
    let limit = PageLimit { count_max, bytes_max: 4 << 20 };
    let read =
        ReadChanges { scope: FeedScope::All, range_id: None, mode, start, limit, wait: Duration::ZERO };
    world.account.documents(&world.container().await).read_changes(&read).await
}

/// The beginning of all changes, in a mode that has no beginning.
fn from_creation() -> ChangeFeedStart {
    let after = astrarium_database::ChangePosition::after(1);
    ChangeFeedStart::Position(ChangeFeedPosition { ranges: vec![(None, after)], since: None })
}

#[tokio::test]
async fn a_page_of_changes_reads_what_it_gives() {
    let world = large_documents().await;
    for (mode, start) in [
        (ChangeFeedMode::LatestVersion, ChangeFeedStart::Beginning),
        (ChangeFeedMode::AllVersionsAndDeletes, from_creation()),
    ] {
        for (count_max, given) in [(1, 1), (3, 3), (100, 4)] {
            let page = changes(&world, mode, start.clone(), count_max).await.unwrap();
            assert_eq!(page.changes.len(), given, "{mode:?} {count_max}");
            let read = world.engine.read_bytes();
            assert!(read < (given + 2) * MB, "{mode:?}, {count_max} at most: {read} bytes read");
        }
    }
}

#[tokio::test]
async fn a_page_of_documents_reads_what_it_gives() {
    let world = large_documents().await;
    let container = world.container().await;
    let documents = world.account.documents(&container);
    for (count_max, given) in [(1, 1), (3, 3), (100, 4)] {
        let limit = PageLimit { count_max, bytes_max: 4 << 20 };
        let page = documents.read_feed(&FeedScope::All, None, limit).await.unwrap();
        assert_eq!(page.documents.len(), given, "{count_max}");
        let read = world.engine.read_bytes();
        assert!(read < (given + 2) * MB, "{count_max} at most: {read} bytes read");
        // A partition is looked at first, as far as a page of it may be sorted.
        let page = documents.read_feed(&partition(), None, limit).await.unwrap();
        assert_eq!(page.documents.len(), given, "{count_max}");
        let read = world.engine.read_bytes();
        assert!(read < (given + 8) * MB, "{count_max} at most of a partition: {read} bytes read");
    }
}

#[tokio::test]
async fn a_page_of_a_query_reads_what_it_gives() {
    let world = large_documents().await;
    let container = world.container().await;
    for (text, index_use) in [
        ("SELECT c.id FROM c", IndexUse::ByCost),
        ("SELECT c.id FROM c WHERE c.k = 1", IndexUse::Always),
        ("SELECT c.id FROM c WHERE c.k = 1 AND c.n >= 0", IndexUse::Always),
        ("SELECT c.id FROM c ORDER BY c.n DESC", IndexUse::Always),
        ("SELECT c.id FROM c ORDER BY c.k, c.n", IndexUse::Always),
        ("SELECT c.id FROM c WHERE c.none = null OR c.k = 1", IndexUse::Never),
    ] {
        let query = Query::parse(text, Vec::new()).unwrap();
        let mut resume = None;
        let mut rows = 0;
        loop {
            let limits = Limits { row_count_max: 2, index_use, ..Limits::default() };
            let scope = QueryScope::Given(FeedScope::All);
            let page = world.account.documents(&container).query(&query, &scope, resume.take(), limits);
            let page = page.await.unwrap();
            rows += page.rows.len();
            let read = world.engine.read_bytes();
            // A page reads a few documents ahead, and may begin twice.
            assert!(read < (page.rows.len() + 10) * MB, "{text}: {} rows, {read} bytes", page.rows.len());
            resume = page.resume;
            if resume.is_none() {
                break;
            }
        }
        assert_eq!(rows, COUNT, "{text}");
    }
}

/// However much a query has to read, it holds some of it at a time: in the order of an index, among documents whose terms are cut, or
/// those of a list of numbers.
#[tokio::test]
async fn a_query_that_reads_everything_holds_little() {
    let world = large_documents().await;
    let memory = Memory::new(6 * MB);
    let world = world.with_memory(&memory).await;
    let container = world.container().await;
    for (text, index_use) in [
        ("SELECT VALUE COUNT(1) FROM c WHERE c.k = 1 AND CONTAINS(c.filler, 'x')", IndexUse::Always),
        ("SELECT VALUE COUNT(1) FROM c WHERE CONTAINS(c.filler, 'x')", IndexUse::Never),
        ("SELECT VALUE c.id FROM c ORDER BY c.long", IndexUse::Always),
        ("SELECT VALUE c.id FROM c ORDER BY c.absent", IndexUse::Always),
    ] {
        let query = Query::parse(text, Vec::new()).unwrap();
        let limits = Limits { index_use, ..Limits::default() };
        let scope = QueryScope::Given(FeedScope::All);
        let page = world.account.documents(&container).query(&query, &scope, None, limits).await;
        assert!(!page.unwrap().rows.is_empty(), "{text}");
        assert_eq!(memory.taken(), 0, "{text}");
        assert!(world.engine.read_bytes() > COUNT * MB, "{text}");
    }
}

#[tokio::test]
async fn what_a_page_holds_is_taken_from_the_budget() {
    let world = large_documents().await;
    let memory = Memory::new(10 * MB);
    let world = world.with_memory(&memory).await;
    let container = world.container().await;
    let documents = world.account.documents(&container);
    let limit = PageLimit { count_max: 3, bytes_max: 4 << 20 };
    let held = |pages: usize| (3 * pages * MB..(3 * pages + 1) * MB).contains(&memory.taken());
    let latest = changes(&world, ChangeFeedMode::LatestVersion, ChangeFeedStart::Beginning, 3).await.unwrap();
    assert!(held(1), "{}", memory.taken());
    let versions = changes(&world, ChangeFeedMode::AllVersionsAndDeletes, from_creation(), 3).await.unwrap();
    assert!(held(2), "{}", memory.taken());
    drop(latest);
    let feed = documents.read_feed(&FeedScope::All, None, limit).await.unwrap();
    assert!(held(2), "{}", memory.taken());
    drop((versions, feed));
    assert_eq!(memory.taken(), 0);
    // Where there is no memory at all, the client is to come again.
    let rest = memory.reserve(10 * MB - 1_000).unwrap();
    for answer in [
        changes(&world, ChangeFeedMode::LatestVersion, ChangeFeedStart::Beginning, 1).await.map(drop),
        changes(&world, ChangeFeedMode::AllVersionsAndDeletes, from_creation(), 1).await.map(drop),
        documents.read_feed(&FeedScope::All, None, limit).await.map(drop),
        documents.read_feed(&partition(), None, limit).await.map(drop),
        documents.sampled_schema().await.map(drop),
        batch_of_reads(&world, 3).await,
    ] {
        assert!(matches!(&answer, Err(Error::Overloaded(why)) if why.contains("memory")), "{answer:?}");
    }
    drop(rest);
    assert_eq!(memory.taken(), 0);
}

/// Where there is memory for some documents the page ends with these, and the next ones have the others.
#[tokio::test]
async fn pages_end_early_where_memory_is_short() {
    let world = large_documents().await;
    let memory = Memory::new(10 * MB);
    let world = world.with_memory(&memory).await;
    let container = world.container().await;
    let _others = memory.reserve(7 * MB).unwrap();
    let number =
        |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).unwrap()["n"].as_u64().unwrap();
    let all: Vec<u64> = (0..COUNT as u64).collect();
    for mode in [ChangeFeedMode::LatestVersion, ChangeFeedMode::AllVersionsAndDeletes] {
        let (mut seen, mut start) = (Vec::new(), from_creation());
        loop {
            let page = changes(&world, mode, start, 100).await.unwrap();
            if page.changes.is_empty() {
                break;
            }
            assert!(page.changes.len() < 3, "{mode:?}");
            seen.extend(page.changes.iter().map(|change| number(change.current.as_ref().unwrap().text())));
            start = ChangeFeedStart::Position(page.position);
        }
        assert_eq!(seen, all, "{mode:?}");
    }
    for scope in [FeedScope::All, partition()] {
        let (mut seen, mut position) = (Vec::new(), None);
        loop {
            let limit = PageLimit { count_max: 100, bytes_max: 4 << 20 };
            let page = world.account.documents(&container).read_feed(&scope, position, limit).await.unwrap();
            assert!(page.documents.len() < 3, "{scope:?}");
            seen.extend(page.documents.iter().map(|body| number(body.text())));
            position = page.resume;
            if position.is_none() {
                break;
            }
        }
        assert_eq!(seen, all, "{scope:?}");
    }
}

async fn batch_of_reads(world: &World, count: usize) -> Result<(), Error> {
    let ids: Vec<String> = (0..count).map(|number| format!("{number:02}")).collect();
    let operations: Vec<BatchOperation<'_>> = ids
        .iter()
        .map(|id| BatchOperation {
            action: Ok(BatchAction::Read(id)),
            partition_key: None,
            conditions: Conditions::default(),
            index_directive: IndexDirective::Default,
            is_shown: true,
        })
        .collect();
    let key = PartitionKey::new(vec![Component::String("p".into())]);
    let container = world.container().await;
    let outcome = world.account.documents(&container).run_batch(Some(&key), &operations, 4 << 20).await?;
    outcome.result.map(drop).map_err(|(_, error)| error)
}

/// An answer has a limit, so a batch does not read much more than that.
#[tokio::test]
async fn a_batch_of_reads_ends_where_its_answer_is_too_large() {
    let world = large_documents().await;
    batch_of_reads(&world, 3).await.unwrap();
    assert!(world.engine.read_bytes() < 4 * MB);
    let answer = batch_of_reads(&world, COUNT).await;
    assert!(matches!(answer, Err(Error::ResponseTooLarge)), "{answer:?}");
    let read = world.engine.read_bytes();
    assert!(read < 7 * MB, "{read} bytes read");
}
