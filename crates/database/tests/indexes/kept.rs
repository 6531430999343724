//! Results that are kept for the next page: what they save, and that nobody can tell otherwise.

use crate::world::World;
use astrarium_database::{FeedScope, IndexUse, KeptUse, Limits, Query, QueryPage, QueryScope, Resume};
use serde_json::{Value, json};

const DOCUMENTS: u64 = 40;
const PAGE: usize = 3;

/// Queries of which every page would look at all documents.
const QUERIES: [&str; 7] = [
    "SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g",
    "SELECT DISTINCT VALUE c.g FROM c",
    "SELECT DISTINCT VALUE c.g FROM c ORDER BY c.g DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.g DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.long OFFSET 2 LIMIT 30",
    "SELECT VALUE x FROM (SELECT DISTINCT VALUE c.g FROM c) x",
    "SELECT x.g, MAX(x.n) AS n FROM (SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g) x GROUP BY x.g",
];

fn document(number: u64) -> Value {
    let rank = number * 7 % 17;
    json!({"id": number.to_string(), "pk": "p", "g": rank, "long": format!("{}{rank}", "x".repeat(700))})
}

async fn furnished() -> World {
    let world = World::new(json!({})).await;
    for number in 0..DOCUMENTS {
        world.put(&document(number)).await;
    }
    world
}

async fn page(world: &World, text: &str, kept_use: KeptUse, resume: Option<Resume>) -> QueryPage {
    let query = Query::parse(text, Vec::new()).unwrap();
    // Without indexes, which would make pages cheap.
    let limits = Limits { row_count_max: PAGE, index_use: IndexUse::Never, kept_use, ..Limits::default() };
    let scope = QueryScope::Given(FeedScope::All);
    world.account.documents(&world.container().await).query(&query, &scope, resume, limits).await.unwrap()
}

/// All rows, with the documents that each page looked at. Between two pages something happens.
async fn drain(
    world: &mut World,
    text: &str,
    kept_use: KeptUse,
    between: impl AsyncFn(&mut World, usize),
) -> (Vec<Vec<u8>>, Vec<u64>) {
    let (mut rows, mut looked_at, mut resume) = (Vec::new(), Vec::new(), None);
    loop {
        let found = page(world, text, kept_use, resume.take()).await;
        rows.extend(found.rows);
        looked_at.push(found.documents);
        let Some(next) = found.resume else { return (rows, looked_at) };
        let decoded = Resume::decode(&next.encode());
        assert_eq!(decoded.as_ref(), Some(&next));
        resume = decoded;
        between(world, looked_at.len()).await;
    }
}

async fn nothing(_: &mut World, _: usize) {}

#[tokio::test]
async fn a_drained_query_is_one_pass() {
    let mut world = furnished().await;
    for text in QUERIES {
        let (computed, each) = drain(&mut world, text, KeptUse::Never, nothing).await;
        assert!(each.len() > 3 && each.iter().all(|count| *count == DOCUMENTS), "{text}: {each:?}");
        for kept_use in [KeptUse::Always, KeptUse::Unchanged, KeptUse::Since(1)] {
            let (kept, looked_at) = drain(&mut world, text, kept_use, nothing).await;
            assert_eq!(kept, computed, "{text}");
            assert_eq!(looked_at.iter().sum::<u64>(), DOCUMENTS, "{text}: {looked_at:?}");
        }
    }
}

/// A result that is gone is computed again from the position, after a restart too.
#[tokio::test]
async fn a_result_that_is_gone_is_computed_again() {
    let mut world = furnished().await;
    for text in QUERIES {
        let (whole, _) = drain(&mut world, text, KeptUse::Never, nothing).await;
        let forget = async |world: &mut World, number: usize| match number {
            1 => world.clock.advance_seconds(61),
            2 => world.restart().await,
            _ => {}
        };
        let (rows, looked_at) = drain(&mut world, text, KeptUse::Always, forget).await;
        assert_eq!(rows, whole, "{text}");
        assert_eq!(looked_at[..4], [DOCUMENTS, DOCUMENTS, DOCUMENTS, 0], "{text}");
    }
}

/// Pages of one result show one moment, whatever is written meanwhile; who must see more recent data is shown it.
#[tokio::test]
async fn writes_between_pages_change_nothing_that_is_kept() {
    for text in QUERIES {
        let mut world = furnished().await;
        let (whole, _) = drain(&mut world, text, KeptUse::Never, nothing).await;
        let write = async |world: &mut World, number: usize| {
            let number = number as u64;
            world.put(&json!({"id": format!("new {number}"), "pk": "p", "g": 100 - number})).await;
            world.delete(&document(number)).await.unwrap();
            world.put(&json!({"id": (30 + number).to_string(), "pk": "p", "g": number * 3})).await;
        };
        let (rows, _) = drain(&mut world, text, KeptUse::Always, write).await;
        assert_eq!(rows, whole, "{text}");
    }
    let world = furnished().await;
    let text = "SELECT DISTINCT VALUE c.g FROM c";
    let first = page(&world, text, KeptUse::Always, None).await;
    assert_ne!(first.resume.as_ref().unwrap().kept, 0);
    world.put(&document(0)).await;
    for (kept_use, documents) in [
        (KeptUse::Unchanged, DOCUMENTS),
        (KeptUse::Since(first.lsn + 1), DOCUMENTS),
        (KeptUse::Never, DOCUMENTS),
        (KeptUse::Since(first.lsn), 0),
        (KeptUse::Always, 0),
    ] {
        let second = page(&world, text, kept_use, first.resume.clone()).await;
        assert_eq!(second.documents, documents, "{kept_use:?}");
        assert_eq!(second.lsn, if documents == 0 { first.lsn } else { first.lsn + 1 }, "{kept_use:?}");
    }
}

/// A result is for its own query, and for whoever has its number.
#[tokio::test]
async fn a_result_is_only_for_its_own_query() {
    let world = furnished().await;
    let text = "SELECT DISTINCT VALUE c.g FROM c";
    let first = page(&world, text, KeptUse::Always, None).await.resume.unwrap();
    let guessed = Resume { kept: first.kept ^ 1, ..first.clone() };
    assert_eq!(page(&world, text, KeptUse::Always, Some(guessed)).await.documents, DOCUMENTS);
    let other = "SELECT DISTINCT VALUE c.g FROM c WHERE c.g > 3";
    let found = page(&world, other, KeptUse::Always, Some(first.clone())).await;
    let computed = page(&world, other, KeptUse::Never, Some(first.clone())).await;
    assert_eq!((found.rows, found.documents), (computed.rows, DOCUMENTS));
    // A page may be asked for again.
    for _ in 0..2 {
        assert_eq!(page(&world, text, KeptUse::Always, Some(first.clone())).await.documents, 0);
    }
    // A container that was changed is another one.
    world.replace(json!({"defaultTtl": -1})).await;
    assert_eq!(page(&world, text, KeptUse::Always, Some(first)).await.documents, DOCUMENTS);
}
