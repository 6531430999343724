//! Splits, merges and moves beside writers, step by step, by two processes: nothing is lost, nothing comes twice, and everything agrees at every moment.

use crate::interposed::PLACES;
use crate::world::{World, key_of};
use astrarium_database::{
    ChangeFeedMode, ChangeFeedPosition, ChangeFeedStart, ChangeOperation, Container, Error, FeedPosition,
    FeedScope, Limits, Link, PageLimit, PlaceId, Query, QueryScope, ReadChanges, Resume, WriteMode,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(crate) fn item(id: usize, unique: usize, n: usize) -> Value {
    json!({"id": format!("{id}"), "pk": format!("p{}", id % 17), "u": unique, "n": n, "list": [n, "x"]})
}

fn definition() -> Value {
    json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}, "changeFeedPolicy": {"retentionDuration": 60}})
}

/// All documents by id, through the read feed.
pub(crate) async fn documents(world: &World) -> BTreeMap<String, Value> {
    let (mut all, mut position) = (BTreeMap::new(), None);
    loop {
        // As each request does.
        let container = world.container().await;
        let limit = PageLimit { count_max: 37, bytes_max: 1 << 20 };
        let page =
            world.account.documents(&container).read_feed(&FeedScope::All, position, limit).await.unwrap();
        for body in page.documents {
            let value: Value = serde_json::from_slice(body.text()).unwrap();
            let id = value["id"].as_str().unwrap().to_owned();
            assert!(all.insert(id.clone(), value).is_none(), "{id} comes twice");
        }
        position = page.resume;
        if position.is_none() {
            return all;
        }
    }
}

pub(crate) async fn changes(
    world: &World,
    mode: ChangeFeedMode,
    start: ChangeFeedStart,
) -> (Vec<Change>, ChangeFeedPosition) {
    let mut request = ReadChanges {
        scope: FeedScope::All,
        range_id: None,
        mode,
        start,
        limit: PageLimit { count_max: 50, bytes_max: usize::MAX },
        wait: Duration::ZERO,
    };
    let mut all = Vec::new();
    loop {
        let container = world.container().await;
        let page = world.account.documents(&container).read_changes(&request).await.unwrap();
        if page.changes.is_empty() {
            return (all, page.position);
        }
        for change in page.changes {
            let body = change.current.as_ref().or(change.previous.as_ref()).unwrap();
            let value: Value = serde_json::from_slice(body.text()).unwrap();
            let gone = matches!(change.operation, ChangeOperation::Delete);
            all.push((value["id"].as_str().unwrap().to_owned(), value["n"].as_u64().unwrap(), gone));
        }
        request.start = ChangeFeedStart::Position(page.position);
    }
}

pub(crate) type Change = (String, u64, bool);

#[derive(Debug, Clone)]
enum Step {
    Put(usize, usize),
    Delete(usize),
    Rename(usize, usize),
    Swap(usize, usize),
    Copy,
    /// The lease of whoever copies runs out, and the other process goes on.
    TakeOver,
    Restart,
    Policy,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let id = 0..60_usize;
    let step = prop_oneof![
        6 => (id.clone(), 0..400_usize).prop_map(|(id, unique)| Step::Put(id, unique)),
        3 => id.clone().prop_map(Step::Delete),
        2 => (id.clone(), id.clone()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => (id.clone(), id).prop_map(|(one, other)| Step::Swap(one, other)),
        8 => Just(Step::Copy),
        2 => Just(Step::TakeOver),
        1 => Just(Step::Restart),
        1 => Just(Step::Policy),
    ];
    prop::collection::vec(step, 1..90)
}

/// A change of the world, and of what it should be.
async fn apply(world: &mut World, model: &mut BTreeMap<String, Value>, n: usize, step: &Step) {
    match *step {
        Step::Put(id, unique) => {
            let document = item(id, unique, n);
            match world.write(WriteMode::Upsert, &document).await {
                Ok(_) => drop(model.insert(format!("{id}"), document)),
                Err(Error::UniqueKey) => {}
                Err(error) => panic!("{error}"),
            }
        }
        Step::Delete(id) => match world.delete(&item(id, 0, 0)).await {
            Ok(_) => drop(model.remove(&format!("{id}")).unwrap()),
            Err(Error::NotFound) => assert!(!model.contains_key(&format!("{id}"))),
            Err(error) => panic!("{error}"),
        },
        // To another id of the same partition.
        Step::Rename(from, to) => {
            let mut document = item(from, 1_000 + n, n);
            let new = format!("{}", to * 17 + from % 17 + 1_000 * 17);
            document["id"] = json!(new);
            match world.write(WriteMode::Replace(Link::Name(&format!("{from}"))), &document).await {
                Ok(_) => {
                    model.remove(&format!("{from}")).unwrap();
                    model.insert(new, document);
                }
                Err(Error::NotFound | Error::Exists | Error::UniqueKey) => {}
                Err(error) => panic!("{error}"),
            }
        }
        // One gives up its unique key, another of its partition takes it.
        Step::Swap(one, other) => {
            let (one, other) = (one % 17, other % 3 * 17 + one % 17 + 17);
            for (id, unique) in [(one, 2_000 + n), (other, 5_000 + one)] {
                let document = item(id, unique, n);
                if world.write(WriteMode::Upsert, &document).await.is_ok() {
                    model.insert(format!("{id}"), document);
                }
            }
        }
        Step::Copy => drop(world.account.maintenance().reshard().await.unwrap()),
        Step::TakeOver => {
            world.clock.advance_seconds(60);
            let _ = world.account.maintenance().reshard().await.unwrap();
        }
        Step::Restart => {
            world.restart().await;
            // There is another one beside it.
            world.engine.exclusive.store(false, Ordering::Relaxed);
        }
        Step::Policy => {
            let mut changed = definition();
            let path = if n.is_multiple_of(2) { "/n/?" } else { "/*" };
            let excluded = if n.is_multiple_of(2) { "/*" } else { "/list/*" };
            changed["indexingPolicy"] =
                json!({"includedPaths": [{"path": path}], "excludedPaths": [{"path": excluded}]});
            match world.try_replace(changed).await {
                Ok(_) | Err(Error::RetryWith) => {}
                Err(error) => panic!("{error}"),
            }
            world.build().await;
            world.sweep().await;
        }
    }
}

pub(crate) async fn split(world: &World, id: u32) -> Result<Arc<Container>, Error> {
    world.account.catalog().split_range(Link::Name("d"), Link::Name("c"), id).await
}

/// Moves a range to the place after its own.
pub(crate) async fn move_on(world: &World, id: u32) -> Result<Arc<Container>, Error> {
    let place = PlaceId((place_of(world, id).await.0 + 1) % PLACES as u32);
    world.account.catalog().move_range(Link::Name("d"), Link::Name("c"), id, place).await
}

/// Where a range lives.
pub(crate) async fn place_of(world: &World, id: u32) -> PlaceId {
    let placement = world.account.maintenance().placement().await.unwrap();
    let found = placement.ranges.iter().find(|range| range.container == "c" && range.range_id == id);
    found.expect("the range is somewhere").place
}

/// The ids of the ranges in order, whatever this process knew of them.
async fn range_ids(world: &World) -> Vec<u32> {
    let placement = world.account.maintenance().placement().await.unwrap();
    placement.ranges.iter().filter(|range| range.container == "c").map(|range| range.range_id).collect()
}

/// Whether ranges are to be changed, whatever this process knew of them.
pub(crate) async fn is_pending(world: &World) -> bool {
    match world.account.catalog().container(Link::Name("d"), Link::Name("c")).await {
        Ok(container) => world.account.catalog().resharding_status(container.rid()).await.unwrap().is_pending,
        // Removed.
        Err(_) => false,
    }
}

pub(crate) async fn finish(world: &World) {
    for _ in 0..10_000 {
        if !world.account.maintenance().reshard().await.unwrap() {
            if !is_pending(world).await {
                return;
            }
            // Another process has the lease, and is gone.
            world.clock.advance_seconds(60);
        }
    }
    panic!("resharding has no end");
}

async fn random_life(steps: Vec<Step>) {
    let mut world = World::new(definition()).await;
    let mut model = BTreeMap::new();
    for id in 0..230 {
        let document = item(id + 60, id, 0);
        world.put(&document).await;
        model.insert(format!("{}", id + 60), document);
    }
    let (_, mut position) =
        changes(&world, ChangeFeedMode::AllVersionsAndDeletes, ChangeFeedStart::Now).await;
    let mut seen: BTreeMap<String, Option<u64>> = BTreeMap::new();
    let mut wanted = 0;
    let mut other = world.beside().await;
    for (n, step) in (1..).zip(&steps) {
        // The two take turns; each goes by what it knew of the container before the other changed it.
        if n % 4 == 0 || matches!(step, Step::TakeOver) {
            std::mem::swap(&mut world, &mut other);
        }
        if matches!(step, Step::Copy) && !is_pending(&world).await {
            let ids = range_ids(&world).await;
            wanted += 1;
            let (database, container) = (Link::Name("d"), Link::Name("c"));
            match wanted % 5 {
                3 if ids.len() > 1 => {
                    world.account.catalog().merge_ranges(database, container, (ids[0], ids[1])).await.unwrap()
                }
                2 | 4 => move_on(&world, ids[wanted % ids.len()]).await.unwrap(),
                _ => split(&world, ids[wanted % ids.len()]).await.unwrap(),
            };
        }
        apply(&mut world, &mut model, n, step).await;
        if n % 15 == 0 {
            assert_eq!(documents(&world).await, model, "after {n} steps");
            assert_eq!(documents(&other).await, model, "after {n} steps, by the other process");
            world.is_sound(&format!("after {n} steps")).await;
            let start = ChangeFeedStart::Position(position);
            let (found, next) = changes(&world, ChangeFeedMode::AllVersionsAndDeletes, start).await;
            seen.extend(found.into_iter().map(|(id, n, gone)| (id, (!gone).then_some(n))));
            position = next;
        }
    }
    finish(&world).await;
    assert_eq!(documents(&world).await, model, "at the end");
    assert_eq!(documents(&other).await, model, "at the end, by the other process");
    world.is_sound("at the end").await;
    let start = ChangeFeedStart::Position(position);
    let (found, _) = changes(&world, ChangeFeedMode::AllVersionsAndDeletes, start).await;
    seen.extend(found.into_iter().map(|(id, n, gone)| (id, (!gone).then_some(n))));
    for (id, last) in &seen {
        let current = model.get(id).map(|document| document["n"].as_u64().unwrap());
        assert_eq!(*last, current, "the last change of {id} that the feed gave");
    }
    let (latest, _) = changes(&world, ChangeFeedMode::LatestVersion, ChangeFeedStart::Beginning).await;
    let latest: BTreeMap<String, u64> = latest.into_iter().map(|(id, n, _)| (id, n)).collect();
    let expected: BTreeMap<String, u64> =
        model.iter().map(|(id, document)| (id.clone(), document["n"].as_u64().unwrap())).collect();
    assert_eq!(latest, expected, "the feed from the beginning");
    world.sweep().await;
    let rows = world.query("SELECT VALUE c.id FROM c WHERE c.n >= 0 ORDER BY c.n").await;
    assert_eq!(rows.len(), model.len(), "by index");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn lives_with_splits_are_as_without(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(random_life(steps));
    }
}

pub(crate) async fn filled(count: usize) -> World {
    let world = World::new(json!({})).await;
    for id in 0..count {
        world.put(&item(id, id, id)).await;
    }
    world
}

#[tokio::test]
async fn children_take_the_next_ids_and_lsns_go_on() {
    let world = filled(400).await;
    let before = world.container().await;
    let lsn = world.account.documents(&before).range_lsn(&before.ranges[0]).await.unwrap();
    split(&world, 0).await.unwrap();
    assert!(matches!(split(&world, 0).await, Err(Error::Resharding)), "one after another");
    finish(&world).await;
    let container = world.container().await;
    let ids: Vec<(u32, Vec<u32>)> =
        container.ranges.iter().map(|range| (range.id, range.parents.clone())).collect();
    assert_eq!(ids, [(1, vec![0]), (2, vec![0])]);
    assert_eq!(container.ranges[0].keys.max.to_string(), "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
    assert_eq!(container.ranges[0].keys.max, container.ranges[1].keys.min);
    for range in &container.ranges {
        let now = world.account.documents(&container).range_lsn(range).await.unwrap();
        assert!(now >= lsn, "{now} after {lsn}");
    }
    // Whoever goes by the old ranges is served from the new ones.
    let written =
        world.account.documents(&before).read(Link::Name("7"), Some(&key_of(&before, &item(7, 0, 0)))).await;
    assert!(written.unwrap().lsn >= lsn);
    let gone = world
        .account
        .documents(&before)
        .read_feed(&FeedScope::Range(0), None, PageLimit { count_max: 1, bytes_max: 100 })
        .await;
    assert!(matches!(gone, Err(Error::KeyRangeGone)), "{gone:?}");
    split(&world, 2).await.unwrap();
    finish(&world).await;
    let ids: Vec<(u32, Vec<u32>)> =
        world.container().await.ranges.iter().map(|range| (range.id, range.parents.clone())).collect();
    assert_eq!(ids, [(1, vec![0]), (3, vec![0, 2]), (4, vec![0, 2])]);
    assert!(matches!(split(&world, 2).await, Err(Error::Invalid(_))), "no such range any more");
    world.sweep().await;
    world.is_sound("after two splits").await;
}

/// A container that goes while it is split takes everything along.
#[tokio::test]
async fn a_container_can_be_removed_in_the_middle() {
    let world = World::new(json!({})).await;
    world.sweep().await;
    world.add_container("other", json!({})).await;
    let keys = world.engine.key_count();
    for id in 0..500 {
        world.put(&item(id, id, id)).await;
    }
    split(&world, 0).await.unwrap();
    for _ in 0..3 {
        assert!(world.account.maintenance().reshard().await.unwrap());
    }
    let none = astrarium_database::Conditions::default();
    world.account.catalog().delete_container(Link::Name("d"), Link::Name("c"), &none).await.unwrap();
    finish(&world).await;
    world.sweep().await;
    for _ in 0..2_000 {
        // The in-memory engine frees with each commit.
        world.add_database_and_remove_it().await;
    }
    assert!(world.engine.key_count() < keys + 20, "{} after {keys}", world.engine.key_count());
}

/// Positions of feeds and queries that were given before a split, and before a move after it, go on after them.
#[tokio::test]
async fn positions_of_before_go_on() {
    for scope in [
        FeedScope::All,
        FeedScope::Slice(astrarium_database::partition::EffectiveRange {
            min: astrarium_database::partition::EffectiveKey::parse("04").unwrap(),
            max: astrarium_database::partition::EffectiveKey::parse("3A").unwrap(),
        }),
    ] {
        for text in [
            "SELECT VALUE c.id FROM c",
            "SELECT VALUE c.id FROM c WHERE c.n >= 0",
            "SELECT VALUE c.id FROM c ORDER BY c.n",
        ] {
            for rounds in 1..4 {
                let world = filled(300).await;
                let query = Query::parse(text, Vec::new()).unwrap();
                let limits = Limits { row_count_max: 30, ..Limits::default() };
                let (mut rows, mut resume): (Vec<String>, Option<Resume>) = (Vec::new(), None);
                let mut pages = 0;
                let expected = {
                    let whole = Limits { row_count_max: 10_000, ..Limits::default() };
                    let container = world.container().await;
                    let given = QueryScope::Given(scope.clone());
                    let page =
                        world.account.documents(&container).query(&query, &given, None, whole).await.unwrap();
                    page.rows.len()
                };
                loop {
                    let container = world.container().await;
                    let given = QueryScope::Given(scope.clone());
                    let resumed = resume.take().map(|resume| Resume::decode(&resume.encode()).unwrap());
                    let page = world
                        .account
                        .documents(&container)
                        .query(&query, &given, resumed, limits)
                        .await
                        .unwrap();
                    rows.extend(page.rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()));
                    resume = page.resume;
                    if resume.is_none() {
                        break;
                    }
                    pages += 1;
                    if pages <= rounds {
                        let ids: Vec<u32> = container.ranges.iter().map(|range| range.id).collect();
                        let id = ids[pages % ids.len()];
                        match pages % 2 {
                            0 => move_on(&world, id).await.unwrap(),
                            _ => split(&world, id).await.unwrap(),
                        };
                        finish(&world).await;
                    }
                }
                let count = rows.len();
                rows.sort();
                rows.dedup();
                assert_eq!((rows.len(), count), (expected, expected), "{text}, {scope:?}, {rounds} changes");
            }
        }
    }
}

/// The same for the read feed, with every kind of position.
#[tokio::test]
async fn read_feeds_of_before_go_on() {
    let world = filled(300).await;
    let limit = PageLimit { count_max: 11, bytes_max: 1 << 20 };
    let (mut ids, mut position): (Vec<String>, Option<FeedPosition>) = (Vec::new(), None);
    for page in 0.. {
        let container = world.container().await;
        let found =
            world.account.documents(&container).read_feed(&FeedScope::All, position, limit).await.unwrap();
        for body in &found.documents {
            let value: Value = serde_json::from_slice(body.text()).unwrap();
            ids.push(value["id"].as_str().unwrap().to_owned());
        }
        position = found.resume;
        if position.is_none() {
            break;
        }
        if page < 6 {
            let all: Vec<u32> = container.ranges.iter().map(|range| range.id).collect();
            match page % 2 {
                0 => split(&world, all[0]).await.unwrap(),
                _ => move_on(&world, all[page / 2 % all.len()]).await.unwrap(),
            };
            finish(&world).await;
        }
    }
    ids.sort();
    let count = ids.len();
    ids.dedup();
    assert_eq!((ids.len(), count), (300, 300));
}

#[tokio::test]
async fn ranges_that_hold_too_much_are_split() {
    let world = World::with_ranges(json!({}), 8_000).await;
    for id in 0..600 {
        world.put(&item(id, id, id)).await;
        if id % 50 == 0 {
            finish(&world).await;
        }
    }
    finish(&world).await;
    let count = world.container().await.ranges.len();
    assert!((4..=12).contains(&count), "{count} ranges");
    world.is_sound("after splits by size").await;
    // What is all of one key cannot be divided.
    let one = World::with_ranges(json!({}), 5_000).await;
    for id in 0..200 {
        one.put(&json!({"id": format!("{id}"), "pk": "same", "text": "x".repeat(100)})).await;
        finish(&one).await;
    }
    assert_eq!(one.container().await.ranges.len(), 1);
}

/// A step of a copy reads a few megabytes, however large documents are and however many of them change meanwhile.
#[tokio::test]
async fn large_documents_are_copied_a_few_at_a_time() {
    const LARGE: usize = 700_000;
    let world = World::new(json!({"indexingPolicy": {"excludedPaths": [{"path": "/filler/?"}]}})).await;
    let mut model = BTreeMap::new();
    let filler = "x".repeat(LARGE);
    let large = |id: usize, n: usize| {
        let mut document = item(id, id, n);
        document["filler"] = json!(filler);
        document
    };
    for id in 0..24 {
        world.put(&large(id, 0)).await;
    }
    split(&world, 0).await.unwrap();
    world.engine.read_bytes();
    let (mut n, mut most) = (0, 0);
    while world.account.maintenance().reshard().await.unwrap() {
        most = most.max(world.engine.read_bytes());
        n += 1;
        assert!(n < 1_000, "the copy has an end");
        // All of them change while the first pass goes on, and a few afterwards.
        for id in (0..24).filter(|id| n < 4 || n < 40 && id % 12 == n % 12) {
            world.put(&large(id, n)).await;
            model.insert(format!("{id}"), n as u64);
        }
        world.engine.read_bytes();
    }
    assert!(most < 20 * LARGE, "a step read {most} bytes");
    let copied: BTreeMap<String, u64> = documents(&world)
        .await
        .into_iter()
        .map(|(id, document)| (id, document["n"].as_u64().unwrap()))
        .collect();
    assert_eq!(copied, model);
    world.is_sound("after the split").await;
}
