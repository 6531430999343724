//! Queries: the shared cases in any page size and with either kind of plan, tokens, refusals, scopes, metrics, charges.
//!
//! The SDK plans queries itself where it can and sends each key range what it made of them, so these tests also see that
//! rewritten texts are understood. It merges no aggregates, groups or unordered DISTINCT of several ranges; those cases
//! run here in a partition only.

use azure_data_cosmos::Query;
use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::{ContinuationToken, FeedScope, QueryFeedPage};
use azure_data_cosmos::models::{ContainerProperties, IndexingPolicy, ThroughputProperties};
use azure_data_cosmos::options::{CreateContainerOptions, MaxItemCountHint, QueryOptions, QueryPlanMode};
use futures::TryStreamExt as _;
use sdk_tests::expect::{done, item_answered, refused};
use sdk_tests::fixture::{Fixture, KEY};
use serde_json::{Map, Value, json};
use std::num::NonZeroU32;

const MODES: [QueryPlanMode; 2] = [QueryPlanMode::LocalPreferred, QueryPlanMode::GatewayOnly];

fn cases() -> Value {
    serde_json::from_str(include_str!("../../../cases/queries.json")).expect("the shared cases")
}

/// A throughput for which a container has five key ranges, and one for which it has one.
const MANY: u64 = 30_000;
const ONE: u64 = 400;

/// A container with the documents of the cases.
async fn people(fixture: &Fixture, cases: &Value) -> ContainerClient {
    people_with(fixture, cases, ONE).await
}

async fn people_with(fixture: &Fixture, cases: &Value, throughput: u64) -> ContainerClient {
    let policy: IndexingPolicy = done(serde_json::from_value(cases["indexingPolicy"].clone()));
    let properties = ContainerProperties::new("people", "/pk".into()).with_indexing_policy(policy);
    let options = CreateContainerOptions::default().with_throughput(ThroughputProperties::manual(throughput));
    done(fixture.database.create_container(properties, Some(options)).await);
    let container = done(fixture.database.container_client("people", None).await);
    for item in list(&cases["documents"]) {
        let (key, id) = (text(&item["pk"]).to_owned(), text(&item["id"]));
        item_answered(201, container.create_item(key, id, item, None).await);
    }
    container
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("an array")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// The cases that this SDK can send, by the number of key ranges.
fn sendable(cases: &Value, throughput: u64) -> impl Iterator<Item = &Value> {
    let runners: &[&str] = if throughput == ONE { &["rust"] } else { &["rust", "rust-ranges"] };
    list(&cases["queries"]).iter().filter(|case| {
        let merged = match text(&case["kind"]) {
            "aggregate" | "group" => false,
            "distinct" => case["ordered"] == true,
            _ => true,
        };
        let refused = case["not_in"]
            .as_array()
            .is_some_and(|not_in| runners.iter().any(|runner| not_in.contains(&(*runner).into())));
        (merged || case["partition"].is_string()) && !refused
    })
}

fn query(case: &Value) -> Query {
    let query = Query::from(text(&case["query"]));
    let none = Map::new();
    let parameters = case["parameters"].as_object().unwrap_or(&none);
    parameters.iter().fold(query, |query, (name, value)| done(query.with_parameter(name, value)))
}

fn scope(case: &Value) -> FeedScope {
    case["partition"]
        .as_str()
        .map_or_else(FeedScope::full_container, |key| FeedScope::partition(key.to_owned()))
}

fn options(mode: QueryPlanMode, page_size: u32) -> QueryOptions {
    let hint = NonZeroU32::new(page_size).map_or(MaxItemCountHint::ServerDecides, MaxItemCountHint::Limit);
    QueryOptions::default().with_query_plan_mode(mode).with_max_item_count(hint)
}

async fn rows(
    container: &ContainerClient,
    query: impl Into<Query>,
    scope: FeedScope,
    options: QueryOptions,
) -> azure_data_cosmos::Result<Vec<Value>> {
    container.query_items(query, scope, Some(options)).await?.try_collect().await
}

/// The rows are those of the case, without the properties that the server adds.
#[track_caller]
fn check(cases: &Value, case: &Value, mut actual: Vec<Value>) {
    for members in actual.iter_mut().filter_map(Value::as_object_mut) {
        for name in ["_rid", "_self", "_etag", "_attachments", "_ts"] {
            members.remove(name);
        }
    }
    let documents = list(&cases["documents"]);
    let whole = |id: &Value| documents.iter().find(|item| item["id"] == *id).expect("a document").clone();
    let mut expected: Vec<Value> = match case["ids"].as_array() {
        Some(ids) => ids.iter().map(whole).collect(),
        None => list(&case["rows"]).to_vec(),
    };
    if case["ordered"] != true {
        actual.sort_by_key(Value::to_string);
        expected.sort_by_key(Value::to_string);
    }
    assert_eq!(actual, expected, "{}", case["name"]);
}

pub(crate) async fn answers(fixture: Fixture) {
    check_answers(fixture, ONE).await;
}

pub(crate) async fn answers_of_several_ranges(fixture: Fixture) {
    check_answers(fixture, MANY).await;
}

async fn check_answers(fixture: Fixture, throughput: u64) {
    let cases = cases();
    let container = people_with(&fixture, &cases, throughput).await;
    assert_eq!(done(container.read_feed_ranges(None).await).len(), if throughput == ONE { 1 } else { 5 });
    let sizes: &[u32] = if throughput == ONE { &[0, 3] } else { &[3] };
    for case in sendable(&cases, throughput) {
        for mode in MODES {
            for &size in sizes {
                let found = rows(&container, query(case), scope(case), options(mode, size)).await;
                let found = found.unwrap_or_else(|error| panic!("{}, {mode}: {error:?}", case["name"]));
                check(&cases, case, found);
            }
        }
    }
}

/// A query that was begun by one client goes on in another.
pub(crate) async fn tokens(fixture: Fixture) {
    check_tokens(fixture, ONE).await;
}

pub(crate) async fn tokens_of_several_ranges(fixture: Fixture) {
    check_tokens(fixture, MANY).await;
}

async fn check_tokens(fixture: Fixture, throughput: u64) {
    let cases = cases();
    let container = people_with(&fixture, &cases, throughput).await;
    let other = done(fixture.way.client_at(&fixture.server.endpoint(fixture.way.scheme), KEY).await);
    let again =
        done(other.database_client(fixture.database_id.clone()).container_client("people", None).await);
    let more_than_a_page =
        |case: &&Value| case["rows"].as_array().or(case["ids"].as_array()).is_some_and(|rows| rows.len() > 3);
    for case in sendable(&cases, throughput).filter(more_than_a_page) {
        for mode in MODES {
            let begun =
                done(container.query_items::<Value>(query(case), scope(case), Some(options(mode, 3))).await);
            let mut pages = begun.into_pages();
            let mut found = done(pages.try_next().await).expect("a page").into_items();
            // What is stored between two programs is the token's text.
            let token = done(pages.to_continuation_token()).as_str().to_owned();
            let rest = options(mode, 2).with_continuation_token(ContinuationToken::from_string(token));
            found.extend(done(rows(&again, query(case), scope(case), rest).await));
            check(&cases, case, found);
        }
    }
    let garbage =
        options(MODES[0], 2).with_continuation_token(ContinuationToken::from_string("garbage".to_owned()));
    let refusal = rows(&container, "SELECT * FROM c", FeedScope::partition("north"), garbage).await;
    assert!(refused(400, refusal).to_string().contains("Invalid Continuation Token"));
}

pub(crate) async fn refusals(fixture: Fixture) {
    let cases = cases();
    let container = people(&fixture, &cases).await;
    for case in list(&cases["refusals"]) {
        for scope in [FeedScope::full_container(), FeedScope::partition("north")] {
            for mode in MODES {
                let refusal = rows(&container, query(case), scope.clone(), options(mode, 0)).await;
                let message = format!("{:?}", refused(400, refusal)).replace("\\\"", "\"").replace('\\', "");
                let mut fragments = vec![text(&case["message"]).to_owned()];
                if let Some(code) = case["code"].as_str() {
                    fragments.push(format!("\"code\":{code}"));
                }
                if case["start"].is_number() {
                    let (start, end) = (&case["start"], &case["end"]);
                    fragments.push(format!("\"location\":{{\"start\":{start},\"end\":{end}}}"));
                }
                for fragment in fragments {
                    assert!(message.contains(&fragment), "{fragment} is not in {message}");
                }
            }
        }
    }
}

/// Feed ranges, the range of a key, and prefixes of hierarchical keys.
pub(crate) async fn scopes(fixture: Fixture) {
    let cases = cases();
    let container = people(&fixture, &cases).await;
    let ordered = "SELECT VALUE c.id FROM c ORDER BY c.id";
    for size in [1, 10] {
        let mut found = Vec::new();
        for range in done(container.read_feed_ranges(None).await) {
            found.extend(done(
                rows(&container, ordered, FeedScope::range(range), options(MODES[0], size)).await,
            ));
        }
        let all: Vec<_> = list(&cases["documents"]).iter().map(|item| item["id"].clone()).collect();
        assert_eq!(found, all);
    }

    let levels = fixture.container_by("levels", ("/tenant", "/user")).await;
    for (id, tenant, user) in [("0", "t1", "u1"), ("1", "t1", "u2"), ("2", "t2", "u1")] {
        let item = json!({ "id": id, "tenant": tenant, "user": user });
        item_answered(201, levels.create_item((tenant, user), id, &item, None).await);
    }
    for (scope, expected) in [
        (FeedScope::partition("t1"), json!(["0", "1"])),
        (FeedScope::partition("t2"), json!(["2"])),
        (FeedScope::partition("t3"), json!([])),
        (FeedScope::partition(("t1", "u2")), json!(["1"])),
        (FeedScope::full_container(), json!(["0", "1", "2"])),
    ] {
        for size in [1, 10] {
            for mode in MODES {
                let found = done(rows(&levels, ordered, scope.clone(), options(mode, size)).await);
                assert_eq!(Value::from(found), expected);
            }
        }
    }
}

pub(crate) async fn metrics(fixture: Fixture) {
    let cases = cases();
    let container = people(&fixture, &cases).await;
    let red = "SELECT * FROM c WHERE c.team = 'red'";
    let asked = options(MODES[0], 2).with_populate_query_metrics(true).with_populate_index_metrics(true);
    for (options, wanted) in [(asked, true), (options(MODES[0], 2), false)] {
        let items =
            done(container.query_items::<Value>(red, FeedScope::full_container(), Some(options)).await);
        let mut pages = items.into_pages();
        let mut output = 0;
        while let Some(page) = done(pages.try_next().await) {
            assert!(page.headers().request_charge().is_some_and(|charge| charge.value() > 0.0));
            assert!(page.headers().activity_id().is_some());
            assert_eq!(page.index_metrics().is_some(), wanted, "index metrics");
            assert_eq!(page.query_metrics().is_some(), wanted, "query metrics");
            let metrics = page.query_metrics().unwrap_or("outputDocumentCount=0");
            let count = metrics.split(';').find_map(|pair| pair.strip_prefix("outputDocumentCount="));
            output += count.expect("the number of rows").parse::<u32>().expect("a number");
        }
        assert_eq!(output, if wanted { 4 } else { 0 });
    }
}

pub(crate) async fn charges(fixture: Fixture) {
    let container = fixture.container("many").await;
    for number in 0..60 {
        let id = number.to_string();
        let item = json!({ "id": id, "pk": "somewhere", "number": number, "text": "x".repeat(500) });
        item_answered(201, container.create_item("somewhere", &id, &item, None).await);
    }
    for text in
        ["SELECT * FROM c", "SELECT * FROM c WHERE c.number >= 20", "SELECT * FROM c ORDER BY c.number"]
    {
        let mut charges = Vec::new();
        for size in [0, 10] {
            let options = Some(options(MODES[0], size));
            let items =
                done(container.query_items::<Value>(text, FeedScope::partition("somewhere"), options).await);
            let pages: Vec<_> = done(items.into_pages().try_collect().await);
            let charge =
                |page: &QueryFeedPage<Value>| page.headers().request_charge().expect("a charge").value();
            charges.push(pages.iter().map(charge).sum::<f64>());
        }
        assert!((charges[1] - charges[0]).abs() <= 0.1 * charges[0], "{text}: {charges:?}");
    }
}

pub(crate) async fn other_resources(fixture: Fixture) {
    let by_id =
        done(Query::from("SELECT * FROM d WHERE d.id = @id").with_parameter("@id", &fixture.database_id));
    let databases: Vec<_> = done(done(fixture.client.query_databases(by_id, None).await).try_collect().await);
    assert_eq!(databases.len(), 1);
    assert_eq!(databases[0].id.as_deref(), Some(fixture.database_id.as_str()));

    for id in ["b", "c", "a"] {
        fixture.container(id).await;
    }
    let ordered = "SELECT * FROM c WHERE c.id != 'b' ORDER BY c.id";
    let containers: Vec<ContainerProperties> =
        done(done(fixture.database.query_containers(ordered, None).await).try_collect().await);
    assert_eq!(containers.iter().map(|one| one.id.as_ref()).collect::<Vec<_>>(), ["a", "c"]);
    let broken = done(fixture.database.query_containers("SELECT * FROM c WHERE", None).await);
    refused(400, broken.try_collect::<Vec<_>>().await);
}
