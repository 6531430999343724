//! What readers of all versions are told when history was lost.

use crate::world::World;
use astrarium_database::{
    ChangeFeedMode, ChangeFeedPage, ChangeFeedStart, Error, FeedScope, PageLimit, ReadChanges,
};
use serde_json::json;
use std::time::Duration;

async fn read(world: &World, start: ChangeFeedStart) -> Result<ChangeFeedPage, Error> {
    let request = ReadChanges {
        scope: FeedScope::All,
        range_id: None,
        mode: ChangeFeedMode::AllVersionsAndDeletes,
        start,
        limit: PageLimit { count_max: 100, bytes_max: usize::MAX },
        wait: Duration::ZERO,
    };
    world.account.documents(&world.container().await).read_changes(&request).await
}

/// Repairing storage gives history up. Whoever was in the middle of it hears so; whoever starts anew misses nothing.
#[tokio::test]
async fn after_a_repair_nobody_goes_on_as_if_nothing_was_lost() {
    let world = World::new(json!({"changeFeedPolicy": {"retentionDuration": 5}})).await;
    let before = read(&world, ChangeFeedStart::Now).await.unwrap().position;
    world.put(&json!({"id": "1", "pk": "a"})).await;
    let seen = read(&world, ChangeFeedStart::Position(before.clone())).await.unwrap();
    assert_eq!(seen.changes.len(), 1);
    world.account.maintenance().restore(|_, _, _| {}).await.unwrap();
    let refused = read(&world, ChangeFeedStart::Position(before)).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    let now = read(&world, ChangeFeedStart::Now).await.unwrap().position;
    world.put(&json!({"id": "2", "pk": "a"})).await;
    assert_eq!(read(&world, ChangeFeedStart::Position(now)).await.unwrap().changes.len(), 1);
}
