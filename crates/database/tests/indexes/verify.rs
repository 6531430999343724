//! Every kind of disagreement is planted, and found.

use crate::world::{World, document, only};
use astrarium_database::{FeedScope, IndexUse, Limits, Query, QueryScope};
use astrarium_keys::index_entry::generation_prefix;
use astrarium_keys::index_state::watermark_key;
use astrarium_keys::{number, unique};
use astrarium_kv::{Engine as _, Space, Stamp, WriteBatch};
use serde_json::json;

/// What there is to spoil.
struct Stored {
    shard: u64,
    entries: Vec<Vec<u8>>,
    unique_key: bytes::Bytes,
}

/// A world whose new index is half built.
async fn half_built() -> (World, Stored) {
    let unique = json!({"uniqueKeys": [{"paths": ["/n"]}]});
    let world = World::new(json!({"uniqueKeyPolicy": unique})).await;
    for number in 0..10 {
        world.put(&document(number)).await;
    }
    world.replace(only(&["/text/?"])).await;
    world.build().await;
    for number in 10..20 {
        let mut document = document(number);
        document["n"] = json!(number);
        world.put(&document).await;
    }
    world.replace(json!({})).await;
    for _ in 0..2 {
        world.account.maintenance().build_indexes().await.unwrap();
    }
    let shard = world.container().await.ranges[0].shard.0;
    let range = astrarium_kv::KeyRange::prefix(&unique::unique_prefix(shard));
    let limit = crate::world::UNLIMITED;
    let forward = astrarium_kv::Direction::Forward;
    let view = world.view(astrarium_kv::ShardId(shard)).await;
    let unique_key = view.scan(Space::Log, &range, forward, limit).await.unwrap().entries[0].0.clone();
    let entries = world.entries().await.into_iter().collect();
    world.is_sound("before anything is planted").await;
    (world, Stored { shard, entries, unique_key })
}

async fn check(expected: &str, change: impl FnOnce(&mut WriteBatch, &Stored)) {
    let (world, stored) = half_built().await;
    world.plant(|batch| change(batch, &stored)).await;
    let problems = world.problems().await;
    assert!(problems.iter().any(|problem| problem.contains(expected)), "{expected}: {problems:?}");
    // Nothing is blamed that is in order.
    assert!(problems.len() <= 2, "{expected}: {problems:?}");
}

#[tokio::test]
async fn verify_finds_every_planted_disagreement() {
    let generation = |stored: &Stored, wanted: u8| {
        stored.entries.iter().find(|entry| entry[8] == wanted).expect("the generation is there").clone()
    };
    // Generation 1 waits to be swept, 2 is in use, 3 is built.
    for wanted in [2, 3] {
        check("index entry missing", |batch, stored| batch.set.removed.push(&generation(stored, wanted)))
            .await;
        check("index entry without a document that has it", |batch, stored| {
            let mut entry = generation(stored, wanted);
            let length = entry.len();
            entry[length - 1] = 200;
            batch.set.added.push(&entry);
        })
        .await;
        check("index entry without a document that has it", |batch, stored| {
            // The document is there, the value is another one.
            let mut entry = generation(stored, wanted);
            entry[16] ^= 1;
            batch.set.added.push(&entry);
        })
        .await;
    }
    check("index entry of an unknown generation", |batch, stored| {
        let mut entry = generation(stored, 2);
        entry[8] = 9;
        batch.set.added.push(&entry);
    })
    .await;
    check("index entry of an unknown generation or form", |batch, stored| {
        batch.set.added.push(&generation(stored, 2)[..20]);
    })
    .await;
    check("unique key missing", |batch, stored| batch.delete(Space::Log, stored.unique_key.clone())).await;
    check("unique key missing or another document's", |batch, stored| {
        batch.put(Space::Log, stored.unique_key.clone(), unique::unique_value(77), Stamp::NONE);
    })
    .await;
    check("list of unique keys has 21 entries for 20 documents", |batch, stored| {
        let key = unique::unique_key(stored.shard, 0, b"nowhere", &[]);
        batch.put(Space::Log, key, unique::unique_value(1), Stamp::NONE);
    })
    .await;
    // A construction that is said to be further than it is.
    let (world, stored) = half_built().await;
    let key = bytes::Bytes::copy_from_slice(&watermark_key(stored.shard));
    let view = world.view(astrarium_kv::ShardId(stored.shard)).await;
    let mark = view.get(Space::Meta, &key).await.unwrap().unwrap();
    let mut mark = astrarium_keys::index_state::Watermark::decode(&mark).unwrap();
    mark.built = if mark.built == 0 { 5 } else { 0 };
    world.plant(|batch| batch.put(Space::Meta, key, mark.encode(), Stamp::VALUE)).await;
    let problems = world.problems().await;
    assert!(problems.iter().any(|problem| problem.contains("index entry")), "{problems:?}");
}

/// Older versions of the program left entries of a replaced generation to be removed, with a mark.
#[tokio::test]
async fn marked_entries_of_an_older_version_are_no_problem_and_are_dropped() {
    let (world, stored) = half_built().await;
    world.sweep().await;
    let mark = astrarium_keys::index_state::sweep_key(stored.shard, 1);
    let entry = [&generation_prefix(stored.shard, 1)[..], &[7; 20]].concat();
    world.plant(|batch| batch.set.added.push(&entry)).await;
    let problems = world.problems().await;
    assert!(problems.iter().all(|problem| problem.contains("unknown generation")), "{problems:?}");
    assert!(!problems.is_empty(), "without a mark they are one");
    let mut batch = astrarium_catalog::records::batch();
    batch.put(Space::Meta, mark.clone(), bytes::Bytes::new(), Stamp::NONE);
    world.engine.commit(batch).await.unwrap();
    assert_eq!(world.problems().await, Vec::<String>::new());
    world.sweep().await;
    assert!(world.generation(1).await.is_empty());
    assert_eq!(
        world.view(astrarium_catalog::CATALOG_SHARD).await.get(Space::Meta, &mark).await.unwrap(),
        None
    );
    assert_eq!(world.problems().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_list_of_problems_has_an_end() {
    let world = World::new(json!({})).await;
    for number in 0..100 {
        world.put(&document(number)).await;
    }
    let entries = world.entries().await;
    world.plant(|batch| entries.iter().for_each(|entry| batch.set.removed.push(entry))).await;
    assert_eq!(world.problems().await.len(), 100);
    let shard = world.container().await.ranges[0].shard.0;
    world.plant(|batch| batch.delete(Space::Log, number::number_key(shard, 1))).await;
    assert_eq!(world.problems().await.len(), 100);
}

/// Entries of documents that are not there cost speed and no answer, and the index is built anew.
#[tokio::test]
async fn an_index_that_names_lost_documents_is_left_and_built_anew() {
    let queries = [
        "SELECT VALUE c.id FROM c WHERE c.n = 3",
        "SELECT VALUE c.id FROM c WHERE c.n > 1",
        "SELECT VALUE c.id FROM c WHERE c.text = 'word' AND c.n = 3",
        "SELECT VALUE c.id FROM c ORDER BY c.n",
        "SELECT c.n, COUNT(1) AS count FROM c WHERE c.text = 'word' GROUP BY c.n",
    ];
    for query in queries {
        let world = World::new(json!({})).await;
        for number in 0..20 {
            world.put(&document(number)).await;
        }
        let right = world.query(query).await;
        let lost = document(3);
        // Another document with the same values, and all its entries when it is gone.
        let with: std::collections::BTreeSet<_> = {
            let mut other = lost.clone();
            other["id"] = json!("lost");
            world.put(&other).await;
            let with = world.entries().await;
            world.delete(&other).await.unwrap();
            with
        };
        let left = world.entries().await;
        world.plant(|batch| with.difference(&left).for_each(|entry| batch.set.added.push(entry))).await;
        assert_eq!(world.query(query).await, right, "{query}");
        let losses = world.account.maintenance().monitoring().health().index_losses;
        assert_eq!(losses.len(), 1, "{query}: {losses:?}");
        assert!(losses[0].contains("which is not there"), "{losses:?}");
        assert_eq!(world.query(query).await, right, "{query}");
        let before = world.container().await.generations.active;
        world.build().await;
        world.sweep().await;
        assert!(world.account.maintenance().monitoring().health().index_losses.is_empty());
        let container = world.container().await;
        assert!(!container.generations.is_lost() && container.generations.active != before);
        assert_eq!(world.query(query).await, right, "{query}");
        world.is_sound(query).await;
    }
}

/// A wrong index that the threads of a scan meet ends their scan, and not the one without it that follows.
#[tokio::test]
async fn a_scan_over_a_wrong_index_is_begun_again_without_it() {
    let world = World::new(json!({})).await;
    for number in 0..300 {
        world.put(&json!({"id": number.to_string(), "pk": "p", "n": number})).await;
    }
    let query =
        "SELECT LENGTH(c.id) AS length, COUNT(1) AS count FROM c WHERE c.n >= 0 GROUP BY LENGTH(c.id)";
    let right = ask_spread(&world, query).await;
    let lost = json!({"id": "lost", "pk": "p", "n": 1});
    world.put(&lost).await;
    let with = world.entries().await;
    world.delete(&lost).await.unwrap();
    let left = world.entries().await;
    world.plant(|batch| with.difference(&left).for_each(|entry| batch.set.added.push(entry))).await;
    assert_eq!(ask_spread(&world, query).await, right);
    assert_eq!(world.account.maintenance().monitoring().health().index_losses.len(), 1);
}

/// The rows of a query whose documents are found by index, and read by all threads from the first one on.
async fn ask_spread(world: &World, text: &str) -> Vec<Vec<u8>> {
    let limits = Limits { alone_documents_max: 0, index_use: IndexUse::Always, ..Limits::default() };
    let (query, scope) = (Query::parse(text, Vec::new()).unwrap(), QueryScope::Given(FeedScope::All));
    let container = world.container().await;
    world.account.documents(&container).query(&query, &scope, None, limits).await.unwrap().rows
}
