//! Computed properties in an index.

use crate::world::World;
use astrarium_index::{Access, Condition, IndexSet, Need, Path, PathStep, Predicate};
use astrarium_kv::{Direction, KeyRange};
use serde_json::{Value, json};

fn definition(query: &str) -> Value {
    json!({"computedProperties": [{"name": "cp", "query": query}],
        "indexingPolicy": {"includedPaths": [{"path": "/*"}, {"path": "/cp/?"}]}})
}

/// How many documents have an entry for a value of the computed property in the generation in use.
async fn entry_count(world: &World, value: Value) -> usize {
    let container = world.container().await;
    let set = IndexSet::new(container.generations.active, container.indexed_by());
    let value = match value {
        Value::String(text) => astrarium_database::value::Value::from(text.as_str()),
        other => astrarium_database::value::Value::Number(other.as_f64().unwrap()),
    };
    let path = Path(vec![PathStep::Name("cp".into())]);
    let condition = Condition { path, predicate: Predicate::OneOf(vec![value]) };
    let Access::Entries(served) = set.access(&Need::One { condition, exact: true }) else {
        panic!("no index")
    };
    let mut count = 0;
    for range in served.ranges {
        let prefix = served.family.prefix(container.ranges[0].shard.0);
        let key = |terms: &[u8]| [&prefix[..], terms].concat().into();
        let keys = KeyRange { start: key(&range.start), end: key(&range.end) };
        let view = world.view(container.ranges[0].shard).await;
        let found = view.scan_keys(&keys, Direction::Forward, crate::world::UNLIMITED).await.unwrap();
        count += found.keys.len();
    }
    count
}

#[tokio::test]
async fn computed_properties_are_indexed_by_their_values() {
    let world = World::new(definition("SELECT VALUE LOWER(c.name) FROM c")).await;
    for (id, name) in [("1", json!("Anna")), ("2", json!("ANNA")), ("3", json!("Bob")), ("4", json!(5))] {
        world.put(&json!({"id": id, "pk": "a", "name": name})).await;
    }
    assert_eq!(entry_count(&world, json!("anna")).await, 2);
    assert_eq!(world.query("SELECT VALUE c.id FROM c WHERE c.cp = 'anna'").await, ["\"1\"", "\"2\""]);
    // Another expression is another index: both are right while one follows the other.
    world.replace(definition("SELECT VALUE UPPER(c.name) FROM c")).await;
    assert_eq!(world.query("SELECT VALUE c.id FROM c WHERE c.cp = 'ANNA'").await, ["\"1\"", "\"2\""]);
    assert_eq!(entry_count(&world, json!("anna")).await, 2);
    world.build().await;
    world.sweep().await;
    assert_eq!(entry_count(&world, json!("anna")).await, 0);
    assert_eq!(entry_count(&world, json!("ANNA")).await, 2);
    assert_eq!(world.query("SELECT VALUE c.id FROM c WHERE c.cp = 'ANNA'").await, ["\"1\"", "\"2\""]);
    world.put(&json!({"id": "1", "pk": "a", "name": "Carl"})).await;
    assert_eq!(entry_count(&world, json!("ANNA")).await, 1);
    world.is_sound("at the end").await;
}

#[tokio::test]
async fn computed_properties_see_what_queries_see() {
    for (query, value) in [
        ("SELECT VALUE c._ts + 1 FROM c", json!(1_000_001)),
        ("SELECT VALUE ARRAY_LENGTH(c.list) FROM c", json!(3)),
        ("SELECT VALUE r.a.b[1] || '!' FROM root r", json!("y!")),
        ("SELECT VALUE LEFT(c._rid, 0) || 'x' FROM c", json!("x")),
        ("SELECT VALUE c._attachments FROM c", json!("attachments/")),
        ("SELECT VALUE ObjectToArray(c)[0].k FROM c", json!("id")),
    ] {
        let world = World::new(definition(query)).await;
        let document = json!({"id": "1", "pk": "a", "list": [1, 2, 3], "a": {"b": ["x", "y"]}});
        world.put(&document).await;
        assert_eq!(entry_count(&world, value).await, 1, "{query}");
        world.is_sound(query).await;
    }
}

#[tokio::test]
async fn a_property_of_the_same_name_is_another_one() {
    let world = World::new(definition("SELECT VALUE LOWER(c.name) FROM c")).await;
    world.put(&json!({"id": "1", "pk": "a", "name": "A", "cp": ["b"]})).await;
    world.put(&json!({"id": "2", "pk": "a", "name": "B", "cp": "a"})).await;
    let by_value = "SELECT VALUE c.id FROM c WHERE c.cp = 'a'";
    let by_element = "SELECT VALUE c.id FROM c JOIN x IN c.cp WHERE x = 'b'";
    assert_eq!(world.query(by_value).await, ["\"1\""]);
    assert_eq!(world.query(by_element).await, ["\"1\""]);
    // Without the computed property the name means what documents have, at once.
    world.replace(json!({})).await;
    assert_eq!(world.query(by_value).await, ["\"2\""]);
    world.build().await;
    assert_eq!(world.query(by_value).await, ["\"2\""]);
    assert_eq!(world.query(by_element).await, ["\"1\""]);
    world.is_sound("at the end").await;
}
