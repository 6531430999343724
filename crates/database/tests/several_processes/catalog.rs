//! Definitions that another process changes: whoever has a container loaded finds out.

use crate::world::{CONTAINER, DATABASE, Processes, key};
use astrarium_database::definition::throughput::Throughput;
use astrarium_database::{ChildKind, Conditions, Error, FeedScope, Link, QueryScope, ScriptRequest};
use serde_json::json;

#[tokio::test]
async fn a_replaced_definition_counts_in_every_process() {
    let processes = Processes::new(json!({})).await;
    let (one, other) = (&processes.one, &processes.other);
    other.create("1", "a").await.unwrap();
    // Documents expire from now on, whoever reads them, and the index they are found by is another one.
    one.replace(&json!({"defaultTtl": 10, "indexingPolicy": {"includedPaths": [{"path": "/n/*"}], "excludedPaths": [{"path": "/*"}]}}))
        .await;
    assert_eq!(other.read("1", "a").await.unwrap()["id"], "1");
    other.put(&json!({"id": "2", "pk": "a", "n": 1})).await;
    processes.clock.advance_seconds(11);
    assert!(matches!(other.read("1", "a").await, Err(Error::NotFound)));
    assert_eq!(other.query("SELECT VALUE c.id FROM c WHERE c.n = 1").await.unwrap(), [] as [&str; 0]);
    assert_eq!(one.problems().await, [] as [&str; 0]);
}

/// What is refused because of a definition is refused because of the present one.
#[tokio::test]
async fn nobody_is_refused_because_of_what_a_container_was() {
    let bare = json!({"indexingPolicy": {"includedPaths": [], "excludedPaths": [{"path": "/*"}]}});
    let processes = Processes::new(bare).await;
    let (one, other) = (&processes.one, &processes.other);
    one.put(&json!({"id": "1", "pk": "a", "n": 2})).await;
    one.put(&json!({"id": "2", "pk": "a", "n": 1})).await;
    let text = "SELECT VALUE c.id FROM c ORDER BY c.n";
    let refusal = other.query(text).await;
    assert!(matches!(refusal, Err(Error::Invalid(_))), "{refusal:?}");
    one.replace(&json!({})).await;
    while one.account.maintenance().build_indexes().await.unwrap() {}
    assert_eq!(other.query(text).await.unwrap(), ["2", "1"]);
}

#[tokio::test]
async fn what_is_told_of_a_container_is_told_of_the_present_one() {
    let processes = Processes::new(json!({})).await;
    let (one, other) = (&processes.one, &processes.other);
    let known = other.container().await;
    let current = async || other.account.catalog().current_container(DATABASE, CONTAINER).await;
    assert!(std::sync::Arc::ptr_eq(&known, &current().await.unwrap()), "nothing has changed");
    one.replace(&json!({"defaultTtl": 10})).await;
    assert!(other.container().await.definition.default_ttl.is_none(), "it was not asked for");
    let replaced = current().await.unwrap();
    assert!(replaced.definition.default_ttl.is_some());
    assert_eq!(replaced.resource, one.container().await.resource);
    processes.split(0).await;
    let ids: Vec<u32> = current().await.unwrap().ranges.iter().map(|range| range.id).collect();
    assert_eq!(ids, [1, 2]);
    one.remove().await;
    assert!(matches!(current().await, Err(Error::NotFound)));
    assert!(matches!(current().await, Err(Error::NotFound)));
    one.make(&json!({}), None).await;
    assert_eq!(current().await.unwrap().rid(), one.container().await.rid());
}

/// Ranges are split of the container that has the name now.
#[tokio::test]
async fn ranges_of_a_container_that_is_made_again_are_its_own() {
    let processes = Processes::new(json!({})).await;
    let (one, other) = (&processes.one, &processes.other);
    for _ in 0..3 {
        other.create("1", "a").await.unwrap();
        one.remove().await;
        one.make(&json!({}), None).await;
        one.create("2", "a").await.unwrap();
        let split = other.account.catalog().split_range(DATABASE, CONTAINER, 0).await.unwrap();
        assert_eq!(split.ranges.iter().map(|range| range.id).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(other.ids().await, ["2"]);
    }
    one.remove().await;
    let gone = other.account.catalog().split_range(DATABASE, CONTAINER, 0).await;
    assert!(matches!(gone, Err(Error::NotFound)), "{gone:?}");
}

#[tokio::test]
async fn a_container_that_is_made_again_is_another_one() {
    let processes = Processes::new(json!({})).await;
    let (one, other) = (&processes.one, &processes.other);
    let first = other.container().await;
    for round in 0..3 {
        other.create("1", "a").await.unwrap();
        one.remove().await;
        one.make(&json!({}), None).await;
        one.container().await;
        // The old one is gone for whoever means that, and the name is the new one's from then on.
        let gone = other.read("1", "a").await;
        assert!(matches!(gone, Err(Error::OwnerNotFound)), "{round}: {gone:?}");
        assert!(matches!(other.read("1", "a").await, Err(Error::NotFound)));
        assert_eq!(other.container().await.rid(), one.container().await.rid());
        let refused = other.account.documents(&first).read(Link::Name("1"), Some(&key("a"))).await;
        assert!(matches!(refused, Err(Error::OwnerNotFound)), "{refused:?}");
    }
    one.account.catalog().delete_database(DATABASE, &Conditions::default()).await.unwrap();
    assert!(matches!(other.read("1", "a").await, Err(Error::OwnerNotFound)));
    let gone = other.account.catalog().container(DATABASE, CONTAINER).await;
    assert!(matches!(gone, Err(Error::NotFound)));
}

/// The content of a large database is removed in several commits; when the removal is answered no process serves anything of it.
#[tokio::test]
async fn a_large_database_is_gone_in_every_process() {
    let processes = Processes::without_container(astrarium_database::Resources::default).await;
    let (one, other) = (&processes.one, &processes.other);
    for number in 0..40 {
        let mut definition = crate::world::definition(&json!({}));
        definition.id = format!("c{number}");
        let throughput = Some(Throughput::Manual(1_000_000));
        let new = astrarium_database::NewContainer { definition, throughput };
        one.account.catalog().create_container(DATABASE, &new).await.unwrap();
    }
    one.make(&json!({}), None).await;
    other.create("1", "a").await.unwrap();
    let known = other.container().await;
    one.account.catalog().delete_database(DATABASE, &Conditions::default()).await.unwrap();
    let read = other.account.documents(&known).read(Link::Name("1"), Some(&key("a"))).await;
    assert!(matches!(read, Err(Error::OwnerNotFound)), "{read:?}");
    let by_name = other.account.catalog().container(DATABASE, CONTAINER).await.map(drop);
    assert!(matches!(by_name, Err(Error::NotFound)), "{by_name:?}");
    for process in [one, other] {
        while process.account.maintenance().sweep().await.unwrap() {}
    }
    assert_eq!(processes.engine.unreclaimed().await.unwrap(), []);
}

#[tokio::test]
async fn nobody_remembers_what_was_not_there() {
    let processes = Processes::new(json!({})).await;
    let (one, other) = (&processes.one, &processes.other);
    one.remove().await;
    assert!(other.account.catalog().container(Link::Name("e"), CONTAINER).await.is_err());
    assert!(matches!(other.read("1", "a").await, Err(Error::OwnerNotFound)));
    let user = ChildKind::User(DATABASE);
    assert!(matches!(other.account.catalog().child(user, Link::Name("u")).await, Err(Error::NotFound)));
    one.make(&json!({}), None).await;
    one.account.catalog().create_child(user, "u", "{}").await.unwrap();
    other.create("1", "a").await.unwrap();
    other.account.catalog().child(user, Link::Name("u")).await.unwrap();
}

/// Ranges that another process has split or merged: by their old and new ids, by documents, by queries, by bulk.
#[tokio::test]
async fn ranges_change_in_every_process() {
    let processes = Processes::new(json!({})).await;
    let (one, other) = (&processes.one, &processes.other);
    let keys: Vec<String> = (0..20).map(|number| format!("key {number}")).collect();
    for key in &keys {
        one.create("1", key).await.unwrap();
    }
    let count = "SELECT VALUE COUNT(1) FROM c";
    let in_range = async |id| other.query_in(count, &QueryScope::Given(FeedScope::Range(id))).await;
    assert_eq!(in_range(0).await.unwrap(), [20]);
    processes.split(0).await;
    // It is asked for by an id that the process has never heard of.
    let (low, high) = (in_range(1).await.unwrap(), in_range(2).await.unwrap());
    assert_eq!(low[0].as_u64().unwrap() + high[0].as_u64().unwrap(), 20);
    let gone = in_range(0).await;
    assert!(matches!(gone, Err(Error::KeyRangeGone)), "{gone:?}");
    processes.split(1).await;
    for key in &keys {
        other.read("1", key).await.unwrap();
        other.create("2", key).await.unwrap();
    }
    processes.split(2).await;
    assert_eq!(other.ids().await.len(), 40);
    assert_eq!(other.query(count).await.unwrap(), [40]);
    let ids: Vec<u32> = other.container().await.ranges.iter().map(|range| range.id).collect();
    let [first, second, ..] = ids[..] else { panic!("{ids:?}") };
    one.account.catalog().merge_ranges(DATABASE, CONTAINER, (first, second)).await.unwrap();
    while one.account.maintenance().reshard().await.unwrap() {}
    for key in &keys {
        other.put(&json!({"id": "3", "pk": key})).await;
    }
    assert_eq!(one.query(count).await.unwrap(), [60]);
    assert_eq!(other.problems().await, [] as [&str; 0]);
}

/// A stored procedure is what the last process made of it.
#[tokio::test]
async fn scripts_are_run_as_they_are_now() {
    let processes = Processes::new(json!({})).await;
    let (one, other) = (&processes.one, &processes.other);
    let kind = ChildKind::StoredProcedure(DATABASE, CONTAINER);
    let source = |answer: u32| {
        let body = format!("function () {{ getContext().getResponse().setBody({answer}); }}");
        json!({"id": "p", "body": body}).to_string()
    };
    let run = async || {
        let (container, request) = (other.container().await, ScriptRequest::default());
        let scripts = other.account.scripts(&container);
        let outcome = scripts.execute_procedure(Link::Name("p"), Some(&key("a")), b"[]", &request).await;
        outcome.map(|outcome| outcome.body)
    };
    assert!(matches!(run().await, Err(Error::NotFound)));
    one.account.catalog().create_child(kind, "p", &source(1)).await.unwrap();
    for answer in 1..4 {
        let none = Conditions::default();
        let catalog = one.account.catalog();
        catalog.replace_child(kind, Link::Name("p"), "p", &source(answer), &none).await.unwrap();
        assert_eq!(run().await.unwrap(), Some(answer.to_string()));
    }
    one.account.catalog().delete_child(kind, Link::Name("p"), &Conditions::default()).await.unwrap();
    assert!(matches!(run().await, Err(Error::NotFound)));
}
