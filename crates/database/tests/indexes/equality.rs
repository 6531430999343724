//! An index kept by every write is, byte for byte, the one that is built from the documents.

use crate::world::World;
use astrarium_database::IndexDirective;
use astrarium_database::WriteMode;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

#[derive(Debug, Clone)]
enum Step {
    Put(Value, IndexDirective),
    Delete(Value),
    Replace(Value),
    Build,
    Sweep,
    Restart,
    /// The second happens between what the first reads and its commit.
    During(Box<Step>, Box<Step>),
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5..5_i32).prop_map(Value::from),
        Just(json!(1e300)),
        "[a-c\u{0}é]{0,3}".prop_map(Value::from),
        Just(Value::from("long".repeat(60))),
    ]
}

fn content() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-d]", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

fn key() -> impl Strategy<Value = Value> {
    (0..9_u8, 0..2_u8).prop_map(|(id, pk)| json!({"id": format!("{id}"), "pk": pk}))
}

fn directive() -> impl Strategy<Value = IndexDirective> {
    prop_oneof![
        6 => Just(IndexDirective::Default),
        1 => Just(IndexDirective::Include),
        1 => Just(IndexDirective::Exclude),
    ]
}

fn put() -> impl Strategy<Value = Step> {
    (key(), content(), content(), directive()).prop_map(|(mut document, a, b, directive)| {
        (document["a"], document["b"]) = (a, b);
        Step::Put(document, directive)
    })
}

fn policy() -> impl Strategy<Value = Value> {
    let paths = prop_oneof![
        Just(json!({"includedPaths": [{"path": "/*"}]})),
        Just(json!({"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/a/*"}]})),
        Just(
            json!({"includedPaths": [{"path": "/a/[]/?"}, {"path": "/b/c/*"}], "excludedPaths": [{"path": "/*"}]})
        ),
        Just(json!({"includedPaths": [{"path": "/*"}], "automatic": false})),
        Just(
            json!({"includedPaths": [{"path": "/*"}, {"path": "/_etag/?"}, {"path": "/cp/*"}], "compositeIndexes":
            [[{"path": "/a", "order": "ascending"}, {"path": "/b/c", "order": "descending"}]]})
        ),
        Just(json!({"indexingMode": "none", "automatic": false})),
    ];
    let computed = prop_oneof![
        3 => Just(json!([])),
        1 => Just(json!([{"name": "cp", "query": "SELECT VALUE ARRAY_LENGTH(c.a) FROM c"}])),
    ];
    (paths, computed)
        .prop_map(|(policy, computed)| json!({"indexingPolicy": policy, "computedProperties": computed}))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => plain_step(),
        1 => (plain_step(), plain_step()).prop_map(|(outer, inner)| Step::During(outer.into(), inner.into())),
    ]
}

fn plain_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => put(),
        3 => key().prop_map(Step::Delete),
        2 => policy().prop_map(Step::Replace),
        4 => Just(Step::Build),
        1 => Just(Step::Sweep),
        1 => Just(Step::Restart),
    ]
}

async fn take(world: &mut World, step: Step) {
    match step {
        Step::During(outer, inner) => {
            let mut other = world.clone();
            world.engine.before_commit(async move { take_plain(&mut other, *inner).await });
            take_plain(world, *outer).await;
            world.engine.forget();
        }
        plain => take_plain(world, plain).await,
    }
}

async fn take_plain(world: &mut World, step: Step) {
    match step {
        Step::During(..) => unreachable!("only plain steps are nested"),
        Step::Put(document, directive) => {
            world.write_as(WriteMode::Upsert, &document, directive).await.unwrap();
        }
        Step::Delete(document) => drop(world.delete(&document).await),
        Step::Replace(definition) => drop(world.replace(definition).await),
        Step::Build => drop(world.account.maintenance().build_indexes().await.unwrap()),
        Step::Sweep => drop(world.account.maintenance().sweep().await.unwrap()),
        Step::Restart => world.restart().await,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn an_incremental_index_is_the_rebuilt_one(
        first in policy(),
        last in policy(),
        steps in vec(step(), 0..60),
        more in vec(put(), 0..10),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            // One or two documents to a step.
            let mut world = World::ticking(first, 1_500).await;
            for (count, one) in steps.into_iter().enumerate() {
                let shown = format!("step {count}: {one:?}");
                take(&mut world, one).await;
                world.is_sound(&shown).await;
            }
            world.replace(last.clone()).await;
            world.build().await;
            for one in more {
                take(&mut world, one).await;
            }
            // Kept by the writes up to here. Built twice more: as something else, then as it was.
            let incremental = world.active_entries().await;
            for _ in 0..2 {
                for definition in [json!({"indexingPolicy": {"excludedPaths": [{"path": "/*"}]}}), last.clone()] {
                    world.replace(definition).await;
                    world.build().await;
                }
                assert_eq!(world.active_entries().await, incremental);
            }
            world.sweep().await;
            let active = world.container().await.generations.active;
            assert_eq!(world.generation(active).await, world.entries().await, "nothing else is left");
            world.is_sound("at the end").await;
        });
    }
}
