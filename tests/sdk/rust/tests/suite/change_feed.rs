//! The change feed: from the beginning, from now, from a continuation, by key and by feed range, in both modes.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::{ContinuationToken, FeedScope};
use azure_data_cosmos::models::{
    ChangeFeedItem, ChangeFeedOperationType, ChangeFeedPolicy, ContainerProperties, ThroughputProperties,
};
use azure_data_cosmos::options::{
    ChangeFeedMode, ChangeFeedOptions, ChangeFeedStartFrom, CreateContainerOptions, MaxItemCountHint,
};
use futures::StreamExt as _;
use sdk_tests::expect::{answered, done, item_answered, refused};
use sdk_tests::fixture::Fixture;
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::time::Duration;

const COUNT: u64 = 24;
const KEYS: u64 = 6;

/// A container of one range or of four.
async fn container(fixture: &Fixture, properties: ContainerProperties, ranges: usize) -> ContainerClient {
    let throughput = ThroughputProperties::manual(if ranges == 1 { 400 } else { 20_000 });
    let options = CreateContainerOptions::default().with_throughput(throughput);
    let id = properties.id.to_string();
    answered(201, fixture.database.create_container(properties, Some(options)).await);
    let container = done(fixture.database.container_client(id, None).await);
    assert_eq!(done(container.read_feed_ranges(None).await).len(), ranges);
    container
}

async fn filled(fixture: &Fixture, ranges: usize) -> ContainerClient {
    let id = format!("ranges-{ranges}");
    let container = container(fixture, ContainerProperties::new(id, "/pk".into()), ranges).await;
    write(&container, 0..COUNT).await;
    container
}

fn key(number: u64) -> String {
    format!("key-{}", number % KEYS)
}

async fn write(container: &ContainerClient, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let id = format!("item-{number}");
        let item = json!({ "id": id, "pk": key(number), "number": number });
        done(container.upsert_item(key(number), &id, &item, None).await);
    }
}

fn options(size: u32) -> ChangeFeedOptions {
    let size = NonZeroU32::new(size).expect("a size");
    ChangeFeedOptions::default().with_max_item_count(MaxItemCountHint::Limit(size))
}

/// The changes until there is nothing new, and where to go on.
async fn read(
    container: &ContainerClient,
    scope: FeedScope,
    start: ChangeFeedStartFrom,
    options: ChangeFeedOptions,
) -> (Vec<ChangeFeedItem<Value>>, ContinuationToken) {
    // An empty page says that one of the ranges has nothing new; they are read in turn.
    let ranges = done(container.read_feed_ranges(None).await).len();
    let mut pages = done(container.query_change_feed::<Value>(scope, start, Some(options)).await);
    let (mut changes, mut empty) = (Vec::new(), 0);
    while empty < ranges {
        let page = done(pages.next().await.expect("a change feed has no end"));
        empty = if page.items().is_empty() { empty + 1 } else { 0 };
        changes.extend(page.into_items());
    }
    (changes, done(pages.to_continuation_token()))
}

fn numbers(changes: &[ChangeFeedItem<Value>]) -> Vec<u64> {
    let of = |change: &ChangeFeedItem<Value>| change.current().and_then(|item| item["number"].as_u64());
    changes.iter().map(|change| of(change).expect("a number")).collect()
}

fn sorted(changes: &[ChangeFeedItem<Value>]) -> Vec<u64> {
    let mut numbers = numbers(changes);
    numbers.sort_unstable();
    numbers
}

pub(crate) async fn from_the_beginning(fixture: Fixture) {
    let all: Vec<u64> = (0..COUNT).collect();
    for ranges in [1, 4] {
        let container = filled(&fixture, ranges).await;
        for size in [1, 5, 100] {
            let scope = FeedScope::full_container();
            let (found, _) = read(&container, scope, ChangeFeedStartFrom::Beginning, options(size)).await;
            assert_eq!(sorted(&found), all);
            let metadata = found[0].metadata().expect("metadata beside the document");
            assert!(metadata.lsn().is_some_and(|lsn| lsn.value() > 0) && metadata.operation_type().is_none());
        }
        for number in 0..KEYS {
            let scope = FeedScope::partition(key(number));
            let (found, _) = read(&container, scope, ChangeFeedStartFrom::Beginning, options(3)).await;
            assert_eq!(numbers(&found), (number..COUNT).step_by(6).collect::<Vec<u64>>());
        }
        let mut parts = Vec::new();
        for range in done(container.read_feed_ranges(None).await) {
            let scope = FeedScope::range(range);
            parts.extend(read(&container, scope, ChangeFeedStartFrom::Beginning, options(2)).await.0);
        }
        assert_eq!(sorted(&parts), all);
    }
}

pub(crate) async fn from_now_and_on(fixture: Fixture) {
    for ranges in [1, 4] {
        let container = filled(&fixture, ranges).await;
        let whole = FeedScope::full_container;
        let (found, now) = read(&container, whole(), ChangeFeedStartFrom::Now, options(10)).await;
        assert!(found.is_empty());
        write(&container, 100..110).await;
        done(container.delete_item(key(100), "item-100", None).await);
        let resumed = options(3).with_continuation_token(now);
        let (found, later) = read(&container, whole(), ChangeFeedStartFrom::Beginning, resumed).await;
        assert_eq!(sorted(&found), (101..110).collect::<Vec<u64>>());
        let resumed = options(3).with_continuation_token(later);
        assert!(read(&container, whole(), ChangeFeedStartFrom::Beginning, resumed).await.0.is_empty());
    }
}

pub(crate) async fn all_versions_and_deletes(fixture: Fixture) {
    let policy = ChangeFeedPolicy::default().with_retention_duration(Duration::from_secs(600));
    for ranges in [1, 4] {
        let id = format!("ranges-{ranges}");
        let properties = ContainerProperties::new(id, "/pk".into()).with_change_feed_policy(policy.clone());
        let container = container(&fixture, properties, ranges).await;
        let versions = || options(2).with_mode(ChangeFeedMode::AllVersionsAndDeletes);
        let whole = FeedScope::full_container;
        let (_, now) = read(&container, whole(), ChangeFeedStartFrom::Now, versions()).await;
        write(&container, 1..2).await;
        write(&container, 1..2).await;
        item_answered(204, container.delete_item(key(1), "item-1", None).await);
        let resumed = versions().with_continuation_token(now);
        let (found, _) = read(&container, whole(), ChangeFeedStartFrom::Now, resumed).await;
        let operations: Vec<_> = found.iter().filter_map(ChangeFeedItem::operation_type).collect();
        let [create, replace, delete] = [
            ChangeFeedOperationType::Create,
            ChangeFeedOperationType::Replace,
            ChangeFeedOperationType::Delete,
        ];
        assert_eq!(operations, [create, replace, delete]);
        let metadata: Vec<_> = found.iter().filter_map(ChangeFeedItem::metadata).collect();
        assert_eq!(metadata[1].previous_image_lsn(), metadata[0].lsn());
        assert_eq!(metadata[2].id(), Some("item-1"));
        assert_eq!(metadata[2].partition_key(), Some(&json!({ "pk": "key-1" })));
        assert!(found[2].current().is_none());
        assert!(found[2].previous().is_none(), "for accounts that ask for it");
    }
    let plain = fixture.container("plain").await;
    let versions = ChangeFeedOptions::default().with_mode(ChangeFeedMode::AllVersionsAndDeletes);
    let pages = plain.query_change_feed::<Value>(
        FeedScope::full_container(),
        ChangeFeedStartFrom::Now,
        Some(versions),
    );
    let first = match pages.await {
        Ok(mut pages) => pages.next().await.expect("an answer").map(|_| ()),
        Err(error) => Err(error),
    };
    refused(400, first);
}
