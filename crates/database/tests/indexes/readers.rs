//! Readers who found their container a while ago: they get what a reader gets who looks for it now, and the LSN of what they saw.

use crate::world::{World, key_of};
use astrarium_database::{
    Container, Error, FeedScope, Limits, Link, PageLimit, Query, QueryScope, WriteMode,
};
use serde_json::{Value, json};
use std::sync::Arc;

const LIMIT: PageLimit = PageLimit { count_max: 100, bytes_max: 1 << 20 };

/// What a point read, a feed and a query tell of the number in the one document, each with the LSN it says it has seen.
async fn seen(world: &World, container: &Arc<Container>) -> [(Option<u64>, u64); 3] {
    let number = |text: &[u8]| serde_json::from_slice::<Value>(text).unwrap()["n"].as_u64();
    let key = key_of(container, &document(0));
    let read = match world.account.documents(container).read(Link::Name("1"), Some(&key)).await {
        Ok(outcome) => (number(outcome.body.text()), outcome.lsn),
        Err(Error::NotFound) => (None, 0),
        Err(error) => panic!("{error}"),
    };
    let feed = world.account.documents(container).read_feed(&FeedScope::All, None, LIMIT).await.unwrap();
    let feed = (feed.documents.first().and_then(|body| number(body.text())), feed.lsn);
    let query = Query::parse("SELECT * FROM c WHERE c.id = '1'", Vec::new()).unwrap();
    let scope = QueryScope::Given(FeedScope::All);
    let page =
        world.account.documents(container).query(&query, &scope, None, Limits::default()).await.unwrap();
    [read, feed, (page.rows.first().and_then(|row| number(row)), page.lsn)]
}

fn document(n: u64) -> Value {
    json!({"id": "1", "pk": "a", "n": n})
}

#[tokio::test]
async fn a_reader_with_an_old_container_is_refused_and_loads_it_again() {
    let world = World::new(json!({})).await;
    world.put(&document(1)).await;
    let old = world.container().await;
    assert_eq!(seen(&world, &old).await, [(Some(1), 2); 3]);
    // Documents live for a second from now on: only who knows the new definition can tell that this one is gone.
    world.replace(json!({"defaultTtl": 1})).await;
    world.clock.advance_seconds(10);
    assert_eq!(seen(&world, &old).await.map(|(number, _)| number), [None; 3]);
}

#[tokio::test]
async fn an_lsn_is_never_newer_than_what_was_read() {
    let world = World::new(json!({})).await;
    world.put(&document(1)).await;
    let container = world.container().await;
    let shard = container.ranges[0].shard;
    for which in 0..3u64 {
        let before = seen(&world, &container).await;
        assert_eq!(before, [(Some(which + 1), which + 2); 3], "the creation and each write are one version");
        let writer = world.clone();
        // Somebody writes once a view has been taken, and before it is read.
        world.engine.after_view(shard, async move {
            writer.write(WriteMode::Upsert, &document(which + 2)).await.unwrap();
        });
        let [read, feed, page] = seen(&world, &container).await;
        assert_eq!(read, (Some(which + 1), which + 2), "what the view shows, and its LSN");
        assert_eq!([feed, page], [(Some(which + 2), which + 3); 2]);
    }
}

#[tokio::test]
async fn feeds_and_queries_tell_the_lsn_of_what_they_read() {
    let world = World::new(json!({})).await;
    world.put(&document(1)).await;
    let container = world.container().await;
    let shard = container.ranges[0].shard;
    let interpose = |n: u64| {
        let writer = world.clone();
        world.engine.after_view(shard, async move {
            writer.write(WriteMode::Upsert, &document(n)).await.unwrap();
        });
    };
    interpose(2);
    let feed = world.account.documents(&container).read_feed(&FeedScope::All, None, LIMIT).await.unwrap();
    assert_eq!((feed.documents[0].header.lsn, feed.lsn), (2, 2));
    interpose(3);
    let query = Query::parse("SELECT VALUE c.n FROM c", Vec::new()).unwrap();
    let scope = QueryScope::Given(FeedScope::All);
    let page =
        world.account.documents(&container).query(&query, &scope, None, Limits::default()).await.unwrap();
    assert_eq!((page.rows, page.lsn), (vec![b"2".to_vec()], 3));
}
