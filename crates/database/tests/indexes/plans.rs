//! One request makes one plan, whatever is asked about it.

use crate::world::World;
use astrarium_database::{FeedScope, Limits, QueryScope, Resume};
use serde_json::json;
use std::time::{Duration, Instant};

/// Texts with a parameter, whose plans are not kept with the text.
const QUERIES: [&str; 5] = [
    "SELECT * FROM c WHERE c.n > @least",
    "SELECT VALUE c.id FROM c WHERE c.n > @least ORDER BY c.n",
    "SELECT VALUE COUNT(1) FROM c WHERE c.n > @least",
    "SELECT c.g, COUNT(1) AS n FROM c WHERE c.n > @least GROUP BY c.g",
    "SELECT VALUE x FROM (SELECT DISTINCT VALUE c.g FROM c WHERE c.n > @least) x",
];

#[tokio::test]
async fn a_request_plans_once() {
    let world = World::new(json!({})).await;
    for number in 0..20 {
        world.put(&json!({"id": number.to_string(), "pk": "p", "n": number, "g": number % 6})).await;
    }
    let container = world.container().await;
    let documents = world.account.documents(&container);
    let scope = QueryScope::Given(FeedScope::All);
    for text in QUERIES {
        let mut resume: Option<Resume> = None;
        let mut pages = 0;
        loop {
            let parameters = vec![("@least".to_owned(), 2.0.into())];
            let query = world.account.parse_query(text, parameters).unwrap();
            let before = world.account.monitoring().plan_count();
            documents.check_no_scan(&query).unwrap();
            let limits = Limits { row_count_max: 2, ..Limits::default() };
            let page = documents.query(&query, &scope, resume.take(), limits).await.unwrap();
            let utilization = documents.index_utilization(&query, &scope).unwrap();
            assert_eq!(utilization.utilized_single.first().map(String::as_str), Some("/n/?"), "{text}");
            assert_eq!(world.account.monitoring().plan_count() - before, 1, "{text}");
            pages += 1;
            match page.resume {
                Some(next) => resume = Some(next),
                None => break,
            }
        }
        assert!(pages > 1 || text.contains("COUNT(1) FROM"), "{text}");
    }
}

/// A run of a query that is to be explained ends when its time is over, in the middle of a page too, and what was found until then
/// is shown.
#[tokio::test]
async fn a_run_that_is_explained_ends_in_time() {
    let world = World::new(json!({"indexingPolicy": {"indexingMode": "none", "automatic": false}})).await;
    let many: Vec<u32> = (0..2_000).collect();
    world.put(&json!({"id": "a", "pk": "p", "l": &many[..1_100], "m": [1], "sum": 3})).await;
    world.put(&json!({"id": "b", "pk": "p", "l": [1], "m": many, "sum": -1})).await;
    let (container, scope) = (world.container().await, QueryScope::Given(FeedScope::All));
    let documents = world.account.documents(&container);
    let limits = Limits { query_micros_max: 500_000, ..Limits::default() };
    for (text, pages) in [
        ("SELECT VALUE COUNT(1) FROM c JOIN b IN c.m JOIN d IN c.m JOIN e IN c.m", 0),
        (
            "SELECT VALUE a FROM c JOIN a IN c.l JOIN b IN c.m JOIN d IN c.m JOIN e IN c.m WHERE b + d + e = c.sum",
            1,
        ),
    ] {
        let query = world.account.parse_query(text, Vec::new()).unwrap();
        let began = Instant::now();
        let explained = documents.explanation(&query, &scope, limits, true).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(20), "{text}: {:?}", began.elapsed());
        let run = explained.run.unwrap();
        assert_eq!((run.pages, run.rows, run.is_complete), (pages, pages * 1_000, false), "{text}");
        assert!(run.charge > 0.0, "{text}");
        assert!(explained.operators.len() > 1, "{text}");
        assert!(explained.operators.iter().all(|operator| operator.work.is_some() == (pages > 0)), "{text}");
    }
    let query = world.account.parse_query("SELECT VALUE COUNT(1) FROM c JOIN b IN c.m", Vec::new()).unwrap();
    let run = documents.explanation(&query, &scope, limits, true).await.unwrap().run.unwrap();
    assert_eq!((run.pages, run.rows, run.is_complete), (1, 1, true));
}
