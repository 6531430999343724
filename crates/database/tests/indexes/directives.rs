//! What writers say about indexing their documents, against what the policy says.

use crate::world::World;
use astrarium_database::{IndexDirective, WriteMode};
use serde_json::{Value, json};

fn policy(automatic: bool) -> Value {
    json!({"indexingPolicy": {"indexingMode": "consistent", "automatic": automatic}})
}

/// Entries of each document: one in the list of partitions, one in the list of those left out, more if it is indexed.
async fn check(world: &World, indexed: [bool; 3], context: &str) {
    let entries = world.active_entries().await;
    for (number, is_indexed) in (1_u64..).zip(indexed) {
        let own = entries.iter().filter(|entry| entry.ends_with(&number.to_be_bytes())).count();
        assert_eq!(own > 2, is_indexed, "{context}: document {number} has {own} entries");
    }
    world.is_sound(context).await;
    let found = world.query("SELECT VALUE c.id FROM c WHERE c.n = 1").await;
    let shown: Vec<String> = (1..)
        .zip(indexed)
        .filter(|(_, is_indexed)| *is_indexed)
        .map(|(number, _)| format!("\"{number}\""))
        .collect();
    assert_eq!(found, shown, "{context}: an index that serves the filter does not find the others");
    let all = world.query("SELECT VALUE c.id FROM c").await;
    assert_eq!(all, ["\"1\"", "\"2\"", "\"3\""], "{context}: no index serves this one");
}

#[tokio::test]
async fn directives_and_policies_agree_on_what_is_indexed() {
    let world = World::new(policy(true)).await;
    let directives = [IndexDirective::Default, IndexDirective::Include, IndexDirective::Exclude];
    for (number, directive) in (1..).zip(directives) {
        let document = json!({"id": format!("{number}"), "pk": "a", "n": 1, "m": 2, "o": 3});
        world.write_as(WriteMode::Create, &document, directive).await.unwrap();
    }
    check(&world, [true, true, false], "automatic").await;
    for (automatic, indexed) in [(false, [false, true, false]), (true, [true, true, false])] {
        world.replace(policy(automatic)).await;
        world.build().await;
        world.sweep().await;
        check(&world, indexed, &format!("changed to automatic {automatic}")).await;
    }
    // A new version brings its own directive.
    let document = json!({"id": "3", "pk": "a", "n": 1, "m": 2, "o": 3});
    world.put(&document).await;
    check(&world, [true, true, true], "written again").await;
}
