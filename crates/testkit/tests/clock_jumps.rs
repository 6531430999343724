//! A clock that is set while the server runs: nothing that has a time limit ends because of it.

use astrarium_database::definition::container::ContainerDefinition;
use astrarium_database::definition::database::DatabaseDefinition;
use astrarium_database::partition::PartitionKey;
use astrarium_database::value::json;
use astrarium_database::{
    Account, BatchAction, BatchOperation, Conditions, Env, IndexDirective, Limits, Link, NewContainer, Query,
    QueryScope, WriteMode, WriteOptions,
};
use astrarium_env::{Clock, Random};
use astrarium_kv::memory::MemoryEngine;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Each look is an hour away from the last one, forwards and backwards in turn.
#[derive(Default)]
struct JumpingClock {
    looks: AtomicU64,
}

impl Clock for JumpingClock {
    fn now_micros(&self) -> u64 {
        let hours = match self.looks.fetch_add(1, Ordering::Relaxed) % 4 {
            0 => 0,
            1 => 3,
            2 => 1,
            _ => 7,
        };
        1_767_225_600_000_000 + hours * 3_600_000_000
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_ends_because_the_clock_is_set() {
    let env = Env::new(Box::new(JumpingClock::default()), Random::from_seed(1));
    let account = Account::open(Arc::new(MemoryEngine::default()), env).await.unwrap();
    let database = DatabaseDefinition::from_json(&serde_json::json!({"id": "d"})).unwrap();
    account.catalog().create_database(&database, None).await.unwrap();
    let mut body = serde_json::json!({
        "id": "c",
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "indexingPolicy": {"indexingMode": "none", "automatic": false},
    });
    let definition = ContainerDefinition::from_json(&body).unwrap();
    let new = NewContainer { definition, throughput: None };
    let container = account.catalog().create_container(Link::Name("d"), &new).await.unwrap();
    for number in 0..2_000 {
        let text = format!("{{\"id\":\"{number}\",\"pk\":\"p\",\"n\":{number}}}");
        let key =
            container.definition.partition_key.extract(json::Text::parse(text.as_bytes()).unwrap().root());
        let conditions = Conditions::default();
        let options = WriteOptions {
            partition_key: Some(&key),
            conditions: &conditions,
            index_directive: IndexDirective::Default,
        };
        account.documents(&container).write(WriteMode::Create, text.as_bytes(), options).await.unwrap();
    }
    let query = Query::parse("SELECT VALUE COUNT(1) FROM c WHERE c.n >= 0", Vec::new()).unwrap();
    let scope = QueryScope::Open { cross_partition: true, whole: true };
    for _ in 0..4 {
        let page =
            account.documents(&container).query(&query, &scope, None, Limits::default()).await.unwrap();
        assert_eq!((page.rows, page.resume), (vec![b"2000".to_vec()], None));
    }
    let ids: Vec<_> = (0..100).map(|number: u32| number.to_string()).collect();
    let operations: Vec<_> = ids
        .iter()
        .map(|id| BatchOperation {
            action: Ok(BatchAction::Read(id)),
            partition_key: None,
            conditions: Conditions::default(),
            index_directive: IndexDirective::Default,
            is_shown: true,
        })
        .collect();
    let key = PartitionKey::parse_header("[\"p\"]").unwrap();
    let outcome = account.documents(&container).run_batch(Some(&key), &operations, 1 << 20).await;
    assert!(outcome.is_ok(), "a batch is over before its time: {:?}", outcome.err());
    body["indexingPolicy"] = serde_json::json!({"indexingMode": "consistent", "automatic": true});
    let changed = ContainerDefinition::from_json(&body).unwrap();
    let conditions = Conditions::default();
    account
        .catalog()
        .replace_container(Link::Name("d"), Link::Name("c"), &changed, &conditions)
        .await
        .unwrap();
    while account.maintenance().build_indexes().await.unwrap() {}
    let mut problems = Vec::new();
    account.maintenance().verify(|_, report| problems.extend(report.problems.clone())).await.unwrap();
    assert_eq!(problems, Vec::<String>::new());
}
