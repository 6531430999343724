//! Ranges move between places: what clients hold stays right, another process goes on, one that comes late changes nothing.

use crate::interposed::PLACES;
use crate::resharding::{changes, documents, filled, finish, is_pending, item, move_on, place_of, split};
use crate::world::{World, key_of};
use astrarium_database::{
    ChangeFeedMode, ChangeFeedStart, Conditions, Error, FeedScope, IndexDirective, IndexUse, Limits, Link,
    PageLimit, PlaceId, Query, QueryScope, WriteMode, WriteOptions, push_document,
};
use astrarium_env::{Timeline, with_timeline};
use astrarium_kv::{self as kv, Engine};
use serde_json::json;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

async fn move_to(world: &World, id: u32, place: u32) -> Result<(), Error> {
    let catalog = world.account.catalog();
    catalog.move_range(Link::Name("d"), Link::Name("c"), id, PlaceId(place)).await.map(drop)
}

/// All documents as clients get them, etags, rids and times included, in no order.
async fn wire(world: &World) -> BTreeSet<String> {
    let (mut all, mut position) = (BTreeSet::new(), None);
    loop {
        let container = world.container().await;
        let limit = PageLimit { count_max: 10_000, bytes_max: usize::MAX };
        let documents = world.account.documents(&container);
        let page = documents.read_feed(&FeedScope::All, position, limit).await.unwrap();
        for body in &page.documents {
            let mut text = Vec::new();
            push_document(container.rid(), body, &mut text);
            all.insert(String::from_utf8(text).unwrap());
        }
        position = page.resume;
        if position.is_none() {
            return all;
        }
    }
}

/// How much is copied, in thousandths.
async fn copied(world: &World) -> u64 {
    let rid = world.container().await.rid();
    (world.account.catalog().resharding_status(rid).await.unwrap().progress * 1_000.0) as u64
}

/// Steps until some of the documents are copied.
async fn copy_some(world: &World) {
    while copied(world).await == 0 {
        assert!(world.account.maintenance().reshard().await.unwrap());
    }
    assert!(copied(world).await < 1_000);
}

fn definition() -> serde_json::Value {
    json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}, "defaultTtl": 100_000,
        "changeFeedPolicy": {"retentionDuration": 60}})
}

async fn filled_with_everything() -> World {
    let world = World::new(definition()).await;
    for id in 0..400 {
        world.put(&item(id, id, id)).await;
    }
    for id in (0..400).step_by(7) {
        world.delete(&item(id, 0, 0)).await.unwrap();
    }
    world
}

#[tokio::test]
async fn a_range_that_moved_is_what_it_was() {
    let world = filled_with_everything().await;
    let before = world.container().await;
    let old = before.ranges[0].shard;
    let lsn = world.account.documents(&before).range_lsn(&before.ranges[0]).await.unwrap();
    let all = wire(&world).await;
    let (_, position) = changes(&world, ChangeFeedMode::LatestVersion, ChangeFeedStart::Now).await;
    let history = ChangeFeedMode::AllVersionsAndDeletes;
    let (_, end) = changes(&world, history, ChangeFeedStart::Now).await;
    let from = place_of(&world, 0).await;
    let to = PlaceId((from.0 + 1) % PLACES as u32);
    let count = |places: &[kv::Place], place: PlaceId| places[place.0 as usize].shard_count;
    let counted = world.engine.places().await.unwrap();
    move_to(&world, 0, to.0).await.unwrap();
    finish(&world).await;
    let container = world.container().await;
    let [range] = &container.ranges[..] else { panic!("one range") };
    assert_eq!((range.id, &range.parents[..], range.is_merged), (1, &[0][..], false));
    assert_eq!(place_of(&world, 1).await, to);
    let now = world.engine.places().await.unwrap();
    assert_eq!(count(&now, from), count(&counted, from) - 1);
    assert_eq!(count(&now, to), count(&counted, to) + 1);
    assert!(matches!(world.engine.shard(old).await, Err(kv::Error::Dropped { .. })));
    assert_eq!(wire(&world).await, all, "etags, rids and times are what they were");
    let after = world.account.documents(&container).range_lsn(range).await.unwrap();
    assert!(after >= lsn, "sessions of before are served: {after} after {lsn}");
    assert_eq!(range.seen_by(|id| (id == 0).then_some(lsn)), Some(lsn));
    world.is_sound("after the move").await;
    // Feeds of before have nothing new, then what is new.
    let latest = ChangeFeedStart::Position(position);
    let (found, position) = changes(&world, ChangeFeedMode::LatestVersion, latest).await;
    assert_eq!(found, []);
    let taken = world.write(WriteMode::Create, &item(900, 5, 1)).await;
    assert!(taken.is_ok(), "another partition may have it: {taken:?}");
    let clash = world.write(WriteMode::Create, &item(5 + 17 * 90, 5, 1)).await;
    assert!(matches!(clash, Err(Error::UniqueKey)), "{clash:?}");
    world.put(&item(5, 5, 7_000)).await;
    let start = ChangeFeedStart::Position(position);
    let (found, _) = changes(&world, ChangeFeedMode::LatestVersion, start).await;
    assert_eq!(found, [("900".to_owned(), 1, false), ("5".to_owned(), 7_000, false)]);
    let (found, _) = changes(&world, history, ChangeFeedStart::Position(end)).await;
    assert_eq!(found.len(), 2, "{found:?}");
    let (found, _) = changes(&world, history, ChangeFeedStart::Beginning).await;
    assert!(found.iter().any(|(id, _, gone)| *gone && id == "7"), "the history went along");
    // The index went along.
    let limits = Limits { index_use: IndexUse::Always, ..Limits::default() };
    let query = Query::parse("SELECT VALUE c.id FROM c WHERE c.n = 7000", Vec::new()).unwrap();
    let scope = QueryScope::Given(FeedScope::All);
    let page = world.account.documents(&container).query(&query, &scope, None, limits).await.unwrap();
    assert_eq!(page.rows.len(), 1);
    // Expiry went along.
    world.clock.advance_seconds(200_000);
    while world.account.maintenance().erase_expired().await.unwrap() {}
    let state = world.engine.shard(range.shard).await.unwrap();
    assert_eq!(state.tallies, [0, 0], "everything has expired");
    world.is_sound("after everything has expired").await;
}

#[tokio::test]
async fn what_cannot_be_moved_is_refused_and_what_need_not_is_done() {
    let world = filled(50).await;
    let place = place_of(&world, 0).await;
    let (other, third) = ((place.0 + 1) % PLACES as u32, (place.0 + 2) % PLACES as u32);
    move_to(&world, 0, place.0).await.unwrap();
    assert!(!is_pending(&world).await, "it is there");
    let refused = move_to(&world, 0, 77).await;
    assert!(matches!(&refused, Err(Error::Invalid(text)) if text.contains("place-1")), "{refused:?}");
    assert!(matches!(move_to(&world, 5, other).await, Err(Error::Invalid(_))), "no such range");
    world.account.maintenance().drain_place(PlaceId(other)).await.unwrap();
    let refused = move_to(&world, 0, other).await;
    assert!(matches!(&refused, Err(Error::Invalid(text)) if text.contains("emptied")), "{refused:?}");
    assert!(matches!(world.account.maintenance().drain_place(PlaceId(77)).await, Err(Error::Invalid(_))));
    // It is drained after somebody wanted the range there: nothing is done.
    move_to(&world, 0, third).await.unwrap();
    assert!(matches!(split(&world, 0).await, Err(Error::Resharding)), "one after another");
    world.account.maintenance().drain_place(PlaceId(third)).await.unwrap();
    finish(&world).await;
    assert_eq!(place_of(&world, 0).await, place);
    let refused = world.account.maintenance().drain_place(place).await;
    assert!(matches!(&refused, Err(Error::Invalid(text)) if text.contains("no other")), "{refused:?}");
    world.account.maintenance().stop_draining(PlaceId(third)).await.unwrap();
    move_to(&world, 0, third).await.unwrap();
    finish(&world).await;
    assert_eq!(place_of(&world, 1).await.0, third);
    world.is_sound("at the end").await;
}

/// A process is killed in the middle of a copy: another one goes on where it was.
#[tokio::test]
async fn another_process_goes_on_with_a_copy() {
    for moves in [true, false] {
        let world = filled_with_everything().await;
        let all = wire(&world).await;
        let other = world.beside().await;
        assert_eq!(wire(&other).await.len(), all.len(), "it knows the container");
        if moves {
            move_on(&world, 0).await.unwrap();
        } else {
            split(&world, 0).await.unwrap();
        }
        copy_some(&world).await;
        let work = world.container().await.resharding.clone().unwrap().work.unwrap();
        let share = copied(&world).await;
        assert_eq!(copied(&other).await, share, "everybody is told");
        assert!(!other.account.maintenance().reshard().await.unwrap(), "the first process has the lease");
        other.put(&item(2, 2, 9_000)).await;
        // The first one is killed.
        world.clock.advance_seconds(60);
        assert!(other.account.maintenance().reshard().await.unwrap());
        assert!(copied(&other).await >= share, "nothing begins again");
        finish(&other).await;
        let container = other.container().await;
        let shards: Vec<u64> = container.ranges.iter().map(|range| range.shard.0).collect();
        let targets: Vec<u64> = work.targets.iter().map(|row| row.shard).collect();
        assert_eq!(shards, targets, "the same shards");
        other.is_sound("at the end").await;
        // The first one was only asleep: it knows nothing of it, and finds out.
        assert_eq!(wire(&world).await, wire(&other).await);
        finish(&world).await;
        world.put(&item(2, 2, 9_001)).await;
        world.is_sound("by the first process").await;
    }
}

/// A process falls asleep in the middle of a step, while another one does all the work: its step changes nothing.
#[tokio::test]
async fn steps_that_come_late_change_nothing() {
    for late in 0..12 {
        let world = filled_with_everything().await;
        let other = world.beside().await;
        move_on(&world, 0).await.unwrap();
        for _ in 0..late {
            assert!(world.account.maintenance().reshard().await.unwrap());
        }
        if !is_pending(&world).await {
            assert!(late > 4, "all steps were tried");
            break;
        }
        let (clock, awake) = (world.clock.clone(), other.clone());
        world.engine.before_commit(async move {
            clock.advance_seconds(60);
            awake.put(&item(3, 3, 5_000)).await;
            while awake.account.maintenance().reshard().await.unwrap() {}
        });
        world.account.maintenance().reshard().await.unwrap();
        finish(&world).await;
        assert_eq!(documents(&world).await, documents(&other).await, "late step {late}");
        assert_eq!(documents(&world).await["3"]["n"], 5_000);
        let ids: Vec<u32> = world.container().await.ranges.iter().map(|range| range.id).collect();
        assert_eq!(ids, [1], "moved once, late step {late}");
        world.is_sound("after a late step").await;
    }
}

/// The same when the other one only takes the copy up, and both would go on, again and again: one of them gets further.
#[tokio::test]
async fn of_two_who_copy_one_gets_further() {
    let mut world = filled(2_500).await;
    let mut other = world.beside().await;
    move_on(&world, 0).await.unwrap();
    copy_some(&world).await;
    for round in 0..5 {
        let (clock, awake) = (world.clock.clone(), other.clone());
        let (tell, told) = std::sync::mpsc::channel();
        world.engine.before_commit(async move {
            clock.advance_seconds(60);
            // It looks at the container anew, and takes the copy up.
            for _ in 0..2 {
                assert!(awake.account.maintenance().reshard().await.unwrap());
            }
            tell.send(copied(&awake).await).unwrap();
        });
        assert!(world.account.maintenance().reshard().await.unwrap(), "it looks again");
        let before = told.try_recv().unwrap();
        assert_eq!(copied(&world).await, before, "the late step did nothing in round {round}");
        assert!(!world.account.maintenance().reshard().await.unwrap(), "the other one has the lease");
        std::mem::swap(&mut world, &mut other);
        assert!(world.account.maintenance().reshard().await.unwrap());
        assert!(copied(&world).await > before, "whoever took it up gets further in round {round}");
    }
    finish(&other).await;
    other.is_sound("at the end").await;
    assert_eq!(documents(&world).await, documents(&other).await);
    assert_eq!(other.container().await.ranges[0].id, 1, "what was copied is what was there");
}

/// A change of the definition, or of the index, makes a copy begin again; what was copied is dropped.
#[tokio::test]
async fn a_copy_of_what_the_container_was_begins_again() {
    let world = filled_with_everything().await;
    let mut changed = definition();
    changed["indexingPolicy"] =
        json!({"includedPaths": [{"path": "/n/?"}], "excludedPaths": [{"path": "/*"}]});
    move_on(&world, 0).await.unwrap();
    copy_some(&world).await;
    let old = world.container().await.resharding.clone().unwrap().work.unwrap().targets[0].shard;
    world.replace(changed).await;
    let other = world.beside().await;
    world.clock.advance_seconds(60);
    assert!(other.account.maintenance().reshard().await.unwrap());
    assert!(matches!(world.engine.shard(kv::ShardId(old)).await, Err(kv::Error::Dropped { .. })));
    other.build().await;
    finish(&other).await;
    other.sweep().await;
    assert_eq!(other.container().await.ranges[0].id, 1);
    other.is_sound("at the end").await;
}

/// Time that passes when somebody waits, and only then.
struct Waited(AtomicU64);

impl Timeline for Waited {
    fn now(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }

    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.fetch_add(u64::try_from(time.as_micros()).unwrap(), Ordering::Relaxed);
        Box::pin(std::future::ready(()))
    }
}

/// Whoever closed a range is killed before it could swap it: writers wait for seconds, not for the end of a lease.
#[test]
fn ranges_that_were_closed_by_a_process_that_is_gone_are_opened_again() {
    let timeline = Arc::new(Waited(AtomicU64::new(0)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let waited = Arc::clone(&timeline);
    with_timeline(timeline, || {
        runtime.block_on(async {
            let world = filled_with_everything().await;
            let other = world.beside().await;
            move_on(&world, 0).await.unwrap();
            while copied(&world).await < 1_000 {
                assert!(world.account.maintenance().reshard().await.unwrap());
            }
            other.put(&item(4_000, 4_000, 1)).await;
            world.engine.founds_nothing.store(true, Ordering::Relaxed);
            while world.account.maintenance().reshard().await.is_ok() {}
            let fresh = world.beside().await.container().await;
            let work = fresh.resharding.clone().unwrap().work.unwrap();
            assert!(work.is_closed, "killed before the swap");
            let began = waited.now();
            other.put(&item(3, 3, 5_000)).await;
            let time = waited.now().saturating_sub(began);
            assert!((2..6).contains(&time.as_secs()), "a write waited for {time:?}");
            let began = waited.now();
            other.put(&item(4, 4, 5_000)).await;
            assert_eq!(waited.now(), began, "and the next one does not");
            // The one that was taken for gone comes back, copies what is new, and fails once more; then the other one takes it up.
            other.put(&item(5_000, 5_000, 1)).await;
            while world.account.maintenance().reshard().await.is_ok() {}
            world.engine.founds_nothing.store(false, Ordering::Relaxed);
            finish(&other).await;
            assert_eq!(documents(&world).await["3"]["n"], 5_000);
            assert_eq!(documents(&world).await["5000"]["n"], 1);
            assert_eq!(world.container().await.ranges[0].id, 1);
            world.is_sound("at the end").await;
        });
    });
}

/// A range is opened again between what whoever closed it has read and its commit: the swap is refused, and nothing is lost.
#[test]
fn a_swap_of_a_range_that_was_opened_again_is_refused() {
    let timeline = Arc::new(Waited(AtomicU64::new(0)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    with_timeline(timeline, || {
        runtime.block_on(async {
            let world = filled(300).await;
            let other = world.beside().await;
            move_on(&world, 0).await.unwrap();
            let awake = other.clone();
            world.engine.before_founding(async move { awake.put(&item(3, 3, 5_000)).await });
            finish(&world).await;
            assert_eq!(documents(&world).await["3"]["n"], 5_000);
            assert_eq!(world.container().await.ranges[0].id, 1);
            world.is_sound("at the end").await;
        });
    });
}

async fn settle(world: &World) {
    for _ in 0..10_000 {
        let maintenance = world.account.maintenance();
        if !maintenance.reshard().await.unwrap() && !maintenance.drain().await.unwrap() {
            let mut is_pending = false;
            for (id, _) in ranges(world).await {
                let container = world.account.catalog().container(Link::Name("d"), Link::Name(&id)).await;
                let rid = container.unwrap().rid();
                is_pending |= world.account.catalog().resharding_status(rid).await.unwrap().is_pending;
            }
            if !is_pending {
                return;
            }
            world.clock.advance_seconds(60);
        }
    }
    panic!("draining has no end");
}

async fn ranges(world: &World) -> Vec<(String, PlaceId)> {
    let placement = world.account.maintenance().placement().await.unwrap();
    placement.ranges.into_iter().map(|range| (range.container, range.place)).collect()
}

#[tokio::test]
async fn a_place_is_emptied_by_whoever_is_there() {
    let world = filled(120).await;
    for name in ["e", "f", "g", "h"] {
        world.add_container(name, json!({})).await;
        let container = world.account.catalog().container(Link::Name("d"), Link::Name(name)).await.unwrap();
        let (conditions, key) = (Conditions::default(), key_of(&container, &item(1, 0, 0)));
        let index_directive = IndexDirective::Default;
        let options = WriteOptions { partition_key: Some(&key), conditions: &conditions, index_directive };
        let text = item(1, 0, 0).to_string();
        world.account.documents(&container).write(WriteMode::Create, text.as_bytes(), options).await.unwrap();
    }
    split(&world, 0).await.unwrap();
    finish(&world).await;
    let all = ranges(&world).await;
    let held = |place: &PlaceId| all.iter().filter(|(_, held)| held == place).count();
    let emptied = (0..PLACES as u32).map(PlaceId).max_by_key(held).unwrap();
    assert!(held(&emptied) > 1, "{all:?}");
    let other = world.beside().await;
    world.account.maintenance().drain_place(emptied).await.unwrap();
    world.account.maintenance().drain_place(emptied).await.unwrap();
    assert!(world.account.maintenance().drain().await.unwrap());
    for _ in 0..5 {
        assert!(world.account.maintenance().reshard().await.unwrap());
    }
    world.add_container("new", json!({})).await;
    // The process is killed; another one goes on.
    world.clock.advance_seconds(60);
    settle(&other).await;
    let left: Vec<_> = ranges(&other).await.into_iter().filter(|(_, place)| *place == emptied).collect();
    assert_eq!(left, [], "nothing is left there");
    assert_eq!(documents(&world).await.len(), 120);
    let container = world.container().await;
    let id = key_of(&container, &item(7, 0, 0));
    world.account.documents(&container).read(Link::Name("7"), Some(&id)).await.unwrap();
    world.sweep().await;
    world.is_sound("after the drain").await;
    // Stopped: what is wanted and not begun is not done.
    other.account.maintenance().stop_draining(emptied).await.unwrap();
    let full = place_of(&world, range_of(&world).await).await;
    other.account.maintenance().drain_place(full).await.unwrap();
    assert!(other.account.maintenance().drain().await.unwrap());
    let before = ranges(&world).await;
    other.account.maintenance().stop_draining(full).await.unwrap();
    settle(&other).await;
    assert_eq!(ranges(&world).await, before);
    other.is_sound("at the end").await;
}

/// The id of the first range of `c`.
async fn range_of(world: &World) -> u32 {
    let placement = world.account.maintenance().placement().await.unwrap();
    placement.ranges.iter().find(|range| range.container == "c").unwrap().range_id
}

/// A container that goes while a range of it moves takes everything along, and so does a restart of the storage in between.
#[tokio::test]
async fn a_container_can_be_removed_while_it_moves() {
    let world = filled(300).await;
    move_on(&world, 0).await.unwrap();
    copy_some(&world).await;
    let target = world.container().await.resharding.clone().unwrap().work.unwrap().targets[0].shard;
    let none = Conditions::default();
    world.account.catalog().delete_container(Link::Name("d"), Link::Name("c"), &none).await.unwrap();
    while world.account.maintenance().reshard().await.unwrap() {}
    assert!(matches!(world.engine.shard(kv::ShardId(target)).await, Err(kv::Error::Dropped { .. })));
}
