//! A replace that gives a document another id: one document before and after, in every index.

use crate::world::{World, document, only};
use astrarium_database::{Error, Link, WriteMode};
use serde_json::{Value, json};

fn numbered(number: usize, id: &str, n: usize) -> Value {
    let mut document = document(number);
    document["id"] = json!(id);
    document["n"] = json!(n);
    document
}

fn id(number: usize) -> String {
    document(number)["id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn a_renamed_document_is_the_same_one_in_every_index() {
    let unique = json!({"uniqueKeys": [{"paths": ["/n"]}]});
    let world = World::new(json!({"uniqueKeyPolicy": unique, "defaultTtl": -1})).await;
    for number in 0..8 {
        world.put(&numbered(number, &id(number), number)).await;
    }
    let rename = async |from: &str, to: &Value| world.write(WriteMode::Replace(Link::Name(from)), to).await;
    // While an index is built: some documents are in it already, some are not.
    world.replace(only(&["/text/?"])).await;
    world.account.maintenance().build_indexes().await.expect("a step");
    for number in [0, 7] {
        let before = world.write(WriteMode::Upsert, &numbered(number, &id(number), number)).await;
        let before = before.expect("it is there").body.header.number;
        let after = rename(&id(number), &numbered(number, &format!("new/{number}"), number)).await;
        assert_eq!(after.expect("a rename").body.header.number, before);
        world.is_sound("after a rename").await;
    }
    // Neither onto another document nor onto another's unique key: 3 is in the partition of 0, 4 in that of 7.
    let taken = rename(&id(3), &numbered(3, "new/0", 3)).await;
    assert!(matches!(taken, Err(Error::Exists)), "{taken:?}");
    let doubled = rename(&id(4), &numbered(4, "doubled", 7)).await;
    assert!(matches!(doubled, Err(Error::UniqueKey)), "{doubled:?}");
    // Back to a name that is free again.
    rename("new/0", &numbered(0, &id(0), 0)).await.expect("a rename back");
    world.build().await;
    world.sweep().await;
    world.is_sound("at the end").await;
}
