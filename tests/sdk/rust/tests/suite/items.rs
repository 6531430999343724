//! The life of an item: every write and read, conditions, refusals, odd ids, session tokens, time to live, lists.
//!
//! The SDK lists items by a query only. SELECT * FROM c is a list; what else SQL can do is not tested here.

use azure_data_cosmos::FeedScope;
use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::models::{ContainerProperties, TimeToLive};
use azure_data_cosmos::options::{ItemReadOptions, MaxItemCountHint, QueryOptions};
use futures::TryStreamExt as _;
use sdk_tests::expect::{
    STALE, document, done, etag, if_match, if_none_match, item_answered, number, refused, same, substatus,
    with_content,
};
use sdk_tests::fixture::Fixture;
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

const KEY: &str = "somewhere";

pub(crate) async fn life(fixture: Fixture) {
    let container = fixture.container("items").await;
    refused(404, container.read_item(KEY, "1", None).await);

    let first = document("1", "first");
    let created = item_answered(201, container.create_item(KEY, "1", &first, with_content()).await);
    let first_etag = etag(&created);
    let body: Value = done(created.into_model());
    assert_eq!(body["_etag"], first_etag.as_str());
    refused(409, container.create_item(KEY, "1", &first, None).await);
    let read = item_answered(200, container.read_item(KEY, "1", None).await);
    assert_eq!(etag(&read), first_etag);
    assert_eq!(done(read.into_model::<Value>()), body);

    let second = document("1", "second");
    let replaced = item_answered(200, container.replace_item(KEY, "1", &second, with_content()).await);
    assert_ne!(etag(&replaced), first_etag);
    same(&second, replaced);
    let third = document("1", "third");
    same(&third, item_answered(200, container.upsert_item(KEY, "1", &third, with_content()).await));

    item_answered(204, container.delete_item(KEY, "1", None).await);
    refused(404, container.read_item(KEY, "1", None).await);
    refused(404, container.delete_item(KEY, "1", None).await);
    refused(404, container.replace_item(KEY, "1", &third, None).await);
    same(&first, item_answered(201, container.upsert_item(KEY, "1", &first, with_content()).await));
}

/// The SDK's default is to ask for no content, so a write answers with headers only.
pub(crate) async fn without_content(fixture: Fixture) {
    let container = fixture.container("items").await;
    let item = document("1", 1);
    for response in [
        item_answered(201, container.create_item(KEY, "1", &item, None).await),
        item_answered(200, container.replace_item(KEY, "1", &item, None).await),
        item_answered(200, container.upsert_item(KEY, "1", &item, None).await),
    ] {
        assert!(!etag(&response).is_empty());
        assert!(response.into_body().is_empty());
    }
}

pub(crate) async fn conditions(fixture: Fixture) {
    let container = fixture.container("items").await;
    let item = document("1", 1);
    let first = etag(&item_answered(201, container.create_item(KEY, "1", &item, None).await));
    refused(412, container.replace_item(KEY, "1", &item, if_match(STALE)).await);
    refused(412, container.upsert_item(KEY, "1", &item, if_match(STALE)).await);
    refused(412, container.delete_item(KEY, "1", if_match(STALE)).await);

    // Whether the SDK calls 304 a success or an error, nothing else may come.
    let unchanged = container.read_item(KEY, "1", if_none_match(&first)).await;
    let status = unchanged.map_or_else(|error| number(error.status()), |response| number(response.status()));
    assert_eq!(status, 304);
    let second = etag(&item_answered(200, container.replace_item(KEY, "1", &item, if_match(&first)).await));
    refused(412, container.replace_item(KEY, "1", &item, if_match(&first)).await);
    same(&item, item_answered(200, container.read_item(KEY, "1", if_none_match(&first)).await));
    item_answered(204, container.delete_item(KEY, "1", if_match(&second)).await);
    // On an item that is not there, the condition of an upsert has nothing to compare with.
    item_answered(201, container.upsert_item(KEY, "1", &item, if_match(STALE)).await);
}

pub(crate) async fn refusals(fixture: Fixture) {
    let container = fixture.container("items").await;
    let deep = (0..130).fold(json!(1), |inner, _| json!([inner]));
    for bad in [
        json!({ "pk": KEY }),
        json!({ "id": "", "pk": KEY }),
        json!({ "id": 1, "pk": KEY }),
        json!({ "id": "x".repeat(1024), "pk": KEY }),
        json!({ "id": "1", "pk": KEY, "ttl": 0 }),
        json!({ "id": "1", "pk": KEY, "deep": deep }),
        json!([]),
        json!("text"),
    ] {
        refused(400, container.create_item(KEY, "1", &bad, None).await);
    }
    refused(413, container.create_item(KEY, "1", &document("1", "x".repeat(2 << 20)), None).await);

    let elsewhere = json!({ "id": "1", "pk": "elsewhere" });
    assert_eq!(substatus(&refused(400, container.create_item(KEY, "1", &elsewhere, None).await)), 1001);
    item_answered(201, container.create_item(KEY, "1", &document("1", 1), None).await);
    assert_eq!(substatus(&refused(400, container.replace_item(KEY, "1", &elsewhere, None).await)), 1001);
    refused(404, container.read_item("elsewhere", "1", None).await);
}

/// Every id that the SDK can send. It drops tabs and line ends from paths, so they are not among them.
pub(crate) async fn ids(fixture: Fixture) {
    let long = ["x".repeat(255), "é".repeat(511)];
    let ids = [
        "plain",
        "with space",
        " leading",
        "trailing ",
        "trailing  ",
        "%",
        "%20",
        "%2F",
        "%E9%B1%80",
        "a+b",
        "a&b=c",
        "a;b,c",
        "question?mark",
        "?",
        "hash#mark",
        "=.:~+-@()^${}[]!_",
        "'single' \"double\"",
        "Ωμέγα",
        "鱀",
        "ไทย",
        "हिन्दी",
        "عربى",
        "👩🏽‍🚀",
        "a\u{301}",
        "á",
        "docs",
        "dbs",
        &long[0],
        &long[1],
    ];
    let container = fixture.container("items").await;
    // Slashes in ids are not among them: this SDK does not escape them in paths.
    // All of them are there at once, so that two ids which are mixed up cannot pass.
    for id in ids {
        item_answered(201, container.create_item(KEY, id, &document(id, id), None).await);
    }
    for id in ids {
        same(&document(id, id), item_answered(200, container.read_item(KEY, id, None).await));
        let changed = document(id, format!("changed {id}"));
        item_answered(200, container.replace_item(KEY, id, &changed, None).await);
        same(&changed, item_answered(200, container.read_item(KEY, id, None).await));
    }
    for id in ids {
        item_answered(204, container.delete_item(KEY, id, None).await);
        refused(404, container.read_item(KEY, id, None).await);
    }
}

/// Every kind of value, at the lengths where the binary form changes its marker.
pub(crate) async fn values(fixture: Fixture) {
    let container = fixture.container("items").await;
    let texts: Vec<_> =
        [0, 1, 62, 63, 64, 255, 256, 65_535, 65_536].iter().map(|length| "x".repeat(*length)).collect();
    let numbers = json!([
        0,
        1,
        31,
        32,
        -1,
        127,
        128,
        255,
        256,
        65_535,
        65_536,
        2_147_483_648_u64,
        9_007_199_254_740_991_u64
    ]);
    let sent = document(
        "1",
        json!({
            "scalars": [null, true, false], "numbers": numbers, "negative": -9_007_199_254_740_991_i64,
            "doubles": [0.5, -1.5e-300, f64::MAX, 1e21], "texts": texts,
            "odd": "\u{0} \" \\ / \u{2028} 👩🏽‍🚀", "": "no name", "a/b": { "$": {} }, "empty": [[], {}, ""],
            "many": (0..300).collect::<Vec<_>>(), "nested": (0..60).fold(json!("core"), |inner, _| json!([{ "in": inner }])),
        }),
    );
    same(&sent, item_answered(201, container.create_item(KEY, "1", &sent, with_content()).await));
    same(&sent, item_answered(200, container.read_item(KEY, "1", None).await));
    let large = document("large", "x".repeat((2 << 20) - 1000));
    item_answered(201, container.create_item(KEY, "large", &large, None).await);
    same(&large, item_answered(200, container.read_item(KEY, "large", None).await));
}

pub(crate) async fn session_tokens(fixture: Fixture) {
    let container = fixture.container("items").await;
    let first = item_answered(201, container.create_item(KEY, "1", &document("1", 1), None).await);
    let second = item_answered(200, container.upsert_item(KEY, "1", &document("1", 2), None).await);
    let tokens = [first, second].map(|response| response.headers().session_token().expect("a token").clone());
    assert_ne!(tokens[0], tokens[1]);
    for token in &tokens {
        let options = ItemReadOptions::default().with_session_token(token.clone());
        let read = item_answered(200, container.read_item(KEY, "1", Some(options)).await);
        assert_eq!(read.headers().session_token(), Some(&tokens[1]));
    }
}

pub(crate) async fn time_to_live(fixture: Fixture) {
    let properties = ContainerProperties::new("items", "/pk".into()).with_default_ttl(TimeToLive::NoDefault);
    let container = fixture.container_of(properties).await;
    let lasting = document("lasting", 1);
    item_answered(201, container.create_item(KEY, "lasting", &lasting, None).await);
    let brief = json!({ "id": "brief", "pk": KEY, "ttl": 1 });
    item_answered(201, container.create_item(KEY, "brief", &brief, None).await);
    let deadline = Instant::now() + Duration::from_mins(5);
    while is_there(&container, "brief").await {
        assert!(Instant::now() < deadline, "an item outlived its time");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    item_answered(201, container.create_item(KEY, "brief", &document("brief", 2), None).await);
    same(&lasting, item_answered(200, container.read_item(KEY, "lasting", None).await));
}

async fn is_there(container: &ContainerClient, id: &'static str) -> bool {
    match container.read_item(KEY, id, None).await {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(number(error.status()), 404);
            false
        }
    }
}

/// Lists of one partition and of the whole container, in pages of several sizes.
pub(crate) async fn list(fixture: Fixture) {
    let container = fixture.container("items").await;
    let (mut here, mut everywhere) = (Vec::new(), Vec::new());
    for number in 0..7 {
        let id = format!("item {number}");
        item_answered(201, container.create_item(KEY, &id, &document(&id, number), None).await);
        let elsewhere = json!({ "id": id, "pk": id });
        item_answered(201, container.create_item(id.clone(), &id, &elsewhere, None).await);
        everywhere.extend([id.clone(), id.clone()]);
        here.push(id);
    }
    for size in [1, 3, 7, 1000] {
        assert_eq!(listed(&container, FeedScope::partition(KEY), size).await, here);
        assert_eq!(listed(&container, FeedScope::full_container(), size).await, everywhere);
    }
    assert!(listed(&container, FeedScope::partition("empty"), 10).await.is_empty());
}

/// The ids of a list, as it comes; the service gives items in the order of their creation.
async fn listed(container: &ContainerClient, scope: FeedScope, page_size: u32) -> Vec<String> {
    let size = NonZeroU32::new(page_size).expect("a page of something");
    let options = QueryOptions::default().with_max_item_count(MaxItemCountHint::Limit(size));
    let items = done(container.query_items::<Value>("SELECT * FROM c", scope, Some(options)).await);
    let items: Vec<Value> = done(items.try_collect().await);
    items.into_iter().map(|item| item["id"].as_str().expect("an id").to_owned()).collect()
}
