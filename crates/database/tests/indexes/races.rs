//! A write and a step of building that meet, at every stage of building and for every document.

use crate::world::{World, document, only};
use astrarium_database::partition::{Component, PartitionKey};
use serde_json::json;

const DOCUMENT_COUNT: usize = 4;
/// More steps than the construction has.
const STAGE_COUNT: usize = 9;

#[derive(Debug, Clone, Copy)]
enum Action {
    Create,
    Replace,
    Delete,
    Build,
    ChangePolicy,
}

async fn act(world: &World, action: Action, number: usize) {
    match action {
        Action::Create => world.put(&document(100 + number)).await,
        Action::Replace => {
            let mut document = document(number);
            document["n"] = json!("another");
            world.put(&document).await;
        }
        Action::Delete => drop(world.delete(&document(number)).await),
        Action::Build => drop(world.account.maintenance().build_indexes().await.unwrap()),
        Action::ChangePolicy => drop(world.replace(only(&["/list/*"])).await),
    }
}

/// Lets the inner action happen between what the outer one reads and its commit.
async fn check(stage: usize, number: usize, outer: Action, inner: Action) {
    let context = format!("{inner:?} during {outer:?} of document {number} after {stage} steps");
    let world = World::ticking(json!({}), 3_000).await;
    for number in 0..DOCUMENT_COUNT {
        world.put(&document(number)).await;
    }
    world.replace(only(&["/n/?"])).await;
    for _ in 0..stage {
        world.account.maintenance().build_indexes().await.unwrap();
    }
    let other = world.clone();
    world.engine.before_commit(async move { act(&other, inner, number).await });
    act(&world, outer, number).await;
    world.engine.forget();
    world.is_sound(&context).await;
    world.build().await;
    world.sweep().await;
    world.is_sound(&context).await;
    let active = world.container().await.generations.active;
    assert_eq!(world.generation(active).await, world.entries().await, "{context}");
}

#[tokio::test]
async fn writes_and_steps_that_meet_leave_a_right_index() {
    for stage in 0..STAGE_COUNT {
        for number in 0..DOCUMENT_COUNT {
            for write in [Action::Create, Action::Replace, Action::Delete] {
                check(stage, number, write, Action::Build).await;
                check(stage, number, Action::Build, write).await;
                check(stage, number, write, Action::ChangePolicy).await;
            }
        }
        check(stage, 0, Action::Build, Action::ChangePolicy).await;
        check(stage, 0, Action::ChangePolicy, Action::Build).await;
        check(stage, 0, Action::Build, Action::Build).await;
    }
}

/// What is written while a partition is deleted is there afterwards, or not, wholly; what is written after the delete was answered stays.
#[tokio::test]
async fn a_delete_of_a_partition_ends_and_leaves_what_came_later() {
    let world = World::new(json!({})).await;
    for number in 0..1_100 {
        world.put(&json!({"id": format!("{number:04}"), "pk": "a"})).await;
    }
    let other = world.clone();
    world.engine.before_commit(async move { other.put(&json!({"id": "0700", "pk": "a", "n": 1})).await });
    let key = PartitionKey::new(vec![Component::String("a".into())]);
    world.account.documents(&world.container().await).delete_partition(&key).await.unwrap();
    world.put(&json!({"id": "!", "pk": "a"})).await;
    // A step meets a writer of one of its documents, and tries again.
    let other = world.clone();
    world.engine.before_commit(async move { other.put(&json!({"id": "0501", "pk": "a"})).await });
    while world.account.maintenance().erase_deleted().await.unwrap() {}
    assert_eq!(world.query("SELECT VALUE c.id FROM c").await, ["\"!\"", "\"0501\""]);
    world.is_sound("at the end").await;
}
