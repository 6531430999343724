//! What pages of queries cost: documents looked at, counted.

use crate::world::World;
use astrarium_database::partition::{Component, PartitionKey};
use astrarium_database::{FeedScope, IndexUse, Limits, Query, QueryPage, QueryScope, Resume};
use serde_json::{Value, json};

fn not_indexed() -> Value {
    json!({"indexingPolicy": {"indexingMode": "none", "automatic": false}})
}

async fn page(world: &World, text: &str, row_count_max: usize, resume: Option<Resume>) -> QueryPage {
    page_of(world, text, &QueryScope::Given(FeedScope::All), row_count_max, resume).await
}

async fn page_of(
    world: &World,
    text: &str,
    scope: &QueryScope,
    row_count_max: usize,
    resume: Option<Resume>,
) -> QueryPage {
    let query = Query::parse(text, Vec::new()).unwrap();
    let limits = Limits { row_count_max, ..Limits::default() };
    world.account.documents(&world.container().await).query(&query, scope, resume, limits).await.unwrap()
}

/// A subquery in FROM that has to see everything sees it once, however many rows it gives.
#[tokio::test]
async fn a_subquery_that_needs_everything_is_one_pass() {
    const DOCUMENTS: usize = 4;
    const TAGS: usize = 3_000;
    let world = World::new(not_indexed()).await;
    for number in 0..DOCUMENTS {
        let tags: Vec<usize> = (number * TAGS..(number + 1) * TAGS).collect();
        world.put(&json!({"id": number.to_string(), "pk": "p", "tags": tags})).await;
    }
    for inner in [
        "SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags",
        "SELECT VALUE t FROM c JOIN t IN c.tags GROUP BY t",
    ] {
        let text = format!("SELECT VALUE COUNT(1) FROM (SELECT VALUE x FROM ({inner}) x) y");
        let found = page(&world, &text, 100, None).await;
        assert_eq!(found.rows, [b"12000"], "{text}");
        assert_eq!(found.documents, DOCUMENTS as u64, "{text}");
    }
}

/// In a partition that is too large to be sorted, documents come in the order of their keys: a page that ended within one
/// knows which it was, so that the next one gives all of its rows where it is gone.
#[tokio::test]
async fn a_document_of_a_large_partition_that_was_given_in_part_may_go() {
    let world = World::new(not_indexed()).await;
    let filler = "x".repeat(1_600_000);
    let document = |id: &str| json!({"id": id, "pk": "p", "tags": [1, 2, 3, 4], "filler": filler});
    for id in ["b", "c", "d"] {
        world.put(&document(id)).await;
    }
    let text = "SELECT VALUE CONCAT(c.id, ToString(t)) FROM c JOIN t IN c.tags";
    let scope =
        QueryScope::Given(FeedScope::Partition(PartitionKey::new(vec![Component::String("p".into())])));
    let first = page_of(&world, text, &scope, 2, None).await;
    assert_eq!(texts(&first), ["b1", "b2"]);
    world.delete(&document("b")).await.unwrap();
    let second = page_of(&world, text, &scope, 100, first.resume.clone()).await;
    assert_eq!(texts(&second), ["c1", "c2", "c3", "c4", "d1", "d2", "d3", "d4"]);
    // Whatever is put before it does not come between its rows.
    world.put(&document("b")).await;
    world.put(&document("a")).await;
    let second = page_of(&world, text, &scope, 2, first.resume).await;
    assert_ne!(texts(&second), ["b3", "b4"], "another document of the same name begins anew");
    let first = page_of(&world, text, &scope, 6, None).await;
    assert_eq!(texts(&first), ["a1", "a2", "a3", "a4", "b1", "b2"]);
    world.put(&document("aa")).await;
    let second = page_of(&world, text, &scope, 2, first.resume).await;
    assert_eq!(texts(&second), ["b3", "b4"]);
}

fn texts(page: &QueryPage) -> Vec<String> {
    page.rows.iter().map(|row| serde_json::from_slice(row).unwrap()).collect()
}

/// An order among documents that are equal in the first paths of a composite index is read from it, whatever direction it has:
/// a page reads its own documents and the first of the next one.
#[tokio::test]
async fn equal_in_the_first_paths_and_ordered_by_the_last() {
    let composite = |paths: &[(&str, bool)]| {
        let path = |(path, down): &(&str, bool)| json!({"path": path, "order": if *down { "descending" } else { "ascending" }});
        Value::Array(paths.iter().map(path).collect())
    };
    let policy = json!({"indexingPolicy": {"compositeIndexes": [
        composite(&[("/a", false), ("/b", true)]),
        composite(&[("/a", true), ("/d", false)]),
        composite(&[("/a", false), ("/b", false), ("/e", true)]),
    ]}});
    let world = World::new(policy).await;
    for number in 0..200 {
        // Ranks have ties.
        let (a, rank) = (number % 10, number * 7 % 50 / 2);
        world
            .put(&json!({"id": number.to_string(), "pk": "p", "a": a, "b": rank, "d": rank, "e": rank}))
            .await;
    }
    for (text, key, is_backward) in [
        ("c.a = 3 ORDER BY c.b DESC", "b", false),
        ("c.a = 3 ORDER BY c.b", "b", true),
        ("c.a = 3 ORDER BY c.d DESC", "d", true),
        ("c.a = 3 ORDER BY c.d", "d", false),
        ("c.a = 3 AND c.b < 20 ORDER BY c.b DESC", "b", false),
        ("c.a = 3 AND c.b > 2 AND c.b < 20 ORDER BY c.b", "b", true),
        ("c.a = 3 AND c.b = 10 ORDER BY c.e DESC", "e", false),
        ("c.b = 10 AND c.a = 3 ORDER BY c.e", "e", true),
    ] {
        let text = format!("SELECT * FROM c WHERE {text}");
        let descends = text.ends_with("DESC");
        let first = page(&world, &text, 2, None).await;
        assert!(first.in_index_order && first.reverse_ties == is_backward, "{text}");
        assert!(first.documents <= 3, "{text}: {} documents", first.documents);
        let whole = page(&world, &text, 1_000, None).await;
        let ranks: Vec<(i64, i64)> = whole
            .rows
            .iter()
            .map(|row| {
                let row: Value = serde_json::from_slice(row).unwrap();
                let number: i64 = row["id"].as_str().unwrap().parse().unwrap();
                (row[key].as_i64().unwrap(), number)
            })
            .collect();
        let mut sorted = ranks.clone();
        sorted.sort_by_key(|(rank, number)| {
            (if descends { -rank } else { *rank }, if is_backward { -number } else { *number })
        });
        assert!(ranks.len() > 2 || text.contains("= 10"), "{text}: {} rows", ranks.len());
        assert_eq!(ranks, sorted, "{text}");
        // However the next page finds its rows, it goes on where the first one ended.
        let rest = page(&world, &text, 1_000, first.resume).await;
        assert_eq!([first.rows, rest.rows].concat(), whole.rows, "{text}");
    }
}

/// Documents that can expire do not keep answers from being read from the index alone, and are left out of them from the
/// second on at which they expire.
#[tokio::test]
async fn answers_from_the_index_alone_leave_out_what_has_expired() {
    let queries = [
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT VALUE COUNT(1) FROM c WHERE c.n >= 2",
        "SELECT VALUE COUNT(1) FROM c WHERE c.n IN (1, 3) AND c.m = 1",
        "SELECT VALUE MIN(c.n) FROM c",
        "SELECT VALUE MAX(c.n) FROM c",
        "SELECT DISTINCT VALUE c.n FROM c WHERE c.n > 0",
        "SELECT c.m, COUNT(1) AS k FROM c GROUP BY c.m",
    ];
    for default in [json!(null), json!(-1), json!(10)] {
        let mut definition = json!({});
        if !default.is_null() {
            definition["defaultTtl"] = default.clone();
        }
        let world = World::new(definition).await;
        for number in 0..24 {
            let mut document = json!({"id": number.to_string(), "pk": "p", "n": number / 4, "m": number % 3});
            match number % 4 {
                0 => document["ttl"] = json!(5),
                1 => document["ttl"] = json!(-1),
                2 => document["ttl"] = json!(20 + number),
                _ => {}
            }
            world.put(&document).await;
            world.clock.advance_seconds(number % 2);
        }
        for _ in 0..50 {
            for text in queries {
                let indexed = page(&world, text, 1_000, None).await;
                let query = Query::parse(text, Vec::new()).unwrap();
                let limits = Limits { index_use: IndexUse::Never, ..Limits::default() };
                let scope = QueryScope::Given(FeedScope::All);
                let container = world.container().await;
                let read =
                    world.account.documents(&container).query(&query, &scope, None, limits).await.unwrap();
                let sorted = |page: &QueryPage| {
                    let mut rows = page.rows.clone();
                    rows.sort();
                    rows
                };
                assert_eq!(sorted(&indexed), sorted(&read), "{text}, {default}");
                assert_eq!(indexed.documents, 0, "{text}, {default}");
            }
            world.clock.advance_seconds(1);
        }
    }
}
