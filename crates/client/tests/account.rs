//! The client against the real server: every operation, several key ranges, encryption, throttling, and servers that are none.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

use astrarium_client::{
    BulkOperation, BulkVerb, ClientError, ClientOptions, ContainerClient, CosmosClient, FeedStart, ItemWrite,
    QueryRequest, ScriptKind,
};
use astrarium_testkit::{EngineKind, Options, Request, Server};
use bytes::Bytes;
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::sync::Arc;

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn options(server: &Server, scheme: &str) -> ClientOptions {
    let mut options = ClientOptions {
        endpoint: format!("{scheme}://127.0.0.1:{}", server.address().port()),
        ..ClientOptions::default()
    };
    options.clock = Arc::new(server.clock().clone());
    options
}

async fn furnished(client: &CosmosClient) -> ContainerClient {
    client.create_definition(&[], "dbs", &json!({"id": "d"}), Vec::new()).await.unwrap();
    let container = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    client.create_definition(&["dbs", "d"], "colls", &container, Vec::new()).await.unwrap();
    client.container("d", "c").await.unwrap()
}

fn texts(rows: &[Bytes]) -> Vec<String> {
    rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect()
}

async fn rows(container: &ContainerClient, text: &str) -> Vec<String> {
    let mut query = QueryRequest::new(text);
    query.page_size = Some(7);
    texts(&container.query(query).all().await.unwrap())
}

#[test]
fn single_items_keep_their_text() {
    let server = Server::in_memory();
    run(async {
        let client = CosmosClient::new(options(&server, "http")).unwrap();
        client.check().await.unwrap();
        let container = furnished(&client).await;
        let document = "{\"id\":\"é/?#\",\"pk\":\"ü\",\"n\":12345678901234567890,\"m\":1.10}";
        let (_, key) = container.key_of(document.as_bytes()).unwrap();
        let how = ItemWrite::default();
        let created = container.create(&key, document, &how).await.unwrap();
        assert_eq!(created.status, 201);
        let read = container.read("é/?#", &key).await.unwrap();
        assert!(read.text().unwrap().contains("12345678901234567890"), "{:?}", read.text());
        assert!(read.charge() > 0.0 && read.etag().is_some());
        let again = container.create(&key, document, &how).await.unwrap_err();
        assert_eq!(again.status(), 409);
        assert!(!again.refusal().unwrap().activity_id.is_empty());
        let stale = ItemWrite { if_match: Some("\"x\"".to_owned()), ..ItemWrite::default() };
        assert_eq!(container.replace("é/?#", &key, document, &stale).await.unwrap_err().status(), 412);
        let patch = "{\"operations\":[{\"op\":\"set\",\"path\":\"/n\",\"value\":7}]}";
        let patched = container.patch("é/?#", &key, patch, &how).await.unwrap();
        assert!(patched.text().unwrap().contains("\"n\":7"));
        assert_eq!(container.upsert(&key, document, &how).await.unwrap().status, 200);
        assert_eq!(container.delete("é/?#", &key, &how).await.unwrap().status, 204);
        assert_eq!(container.read("é/?#", &key).await.unwrap_err().status(), 404);
    });
}

#[test]
fn definitions_and_scripts() {
    let server = Server::in_memory();
    run(async {
        let client = CosmosClient::new(options(&server, "http")).unwrap();
        let container = furnished(&client).await;
        let body = "function (x) { console.log('hi'); getContext().getResponse().setBody([x, 1]); }";
        let script = json!({"id": "p", "body": body});
        client.create_definition(&["dbs", "d", "colls", "c"], "sprocs", &script, Vec::new()).await.unwrap();
        assert_eq!(container.scripts(ScriptKind::Procedure).await.unwrap()[0]["body"], body);
        assert!(container.scripts(ScriptKind::Trigger).await.unwrap().is_empty());
        let ran = container.execute("p", "[\"a\"]", "[{\"n\":3}]", true).await.unwrap();
        assert_eq!(ran.text().unwrap(), "[{\"n\":3},1]");
        assert!(ran.header("x-ms-documentdb-script-log-results").unwrap().contains("hi"));
        client.create_definition(&["dbs", "d"], "users", &json!({"id": "ada"}), Vec::new()).await.unwrap();
        let permission = json!({"id": "q", "permissionMode": "Read", "resource": "dbs/d/colls/c"});
        client
            .create_definition(&["dbs", "d", "users", "ada"], "permissions", &permission, Vec::new())
            .await
            .unwrap();
        assert_eq!(client.users("d").await.unwrap().len(), 1);
        assert_eq!(client.permissions("d", "ada").await.unwrap()[0]["permissionMode"], "Read");
        assert_eq!(client.databases().await.unwrap().len(), 1);
        assert_eq!(client.containers("d").await.unwrap().len(), 1);
        let mut offer = client.offers().await.unwrap().remove(0);
        offer["content"]["offerThroughput"] = json!(800);
        let rid = offer["_rid"].as_str().unwrap().to_owned();
        assert_eq!(client.replace_offer(&rid, &offer).await.unwrap()["content"]["offerThroughput"], 800);
        let missing = client.container("d", "none").await.unwrap_err();
        assert_eq!(missing.status(), 404);
        let many: Vec<_> = (0..3)
            .map(|number| json!({"id": format!("c{number}"), "partitionKey": {"paths": ["/id"]}}))
            .collect();
        for body in &many {
            client.create_definition(&["dbs", "d"], "colls", body, Vec::new()).await.unwrap();
        }
        client.delete_definition(&["dbs", "d", "colls", "c0"]).await.unwrap();
        assert_eq!(client.containers("d").await.unwrap().len(), 3);
    });
}

/// Twenty documents in two ranges.
async fn filled(container: &ContainerClient) {
    let ranges = container.ranges().await.unwrap();
    for number in 0..20 {
        let document =
            format!("{{\"id\":\"{number}\",\"pk\":\"k{number}\",\"n\":{number},\"g\":{}}}", number % 3);
        let (key, text) = container.key_of(document.as_bytes()).unwrap();
        let effective = container.key_definition().effective(&key);
        let range = ranges.iter().find(|range| range.min <= effective && effective < range.max).unwrap();
        let operation = BulkOperation { verb: BulkVerb::Create, partition_key: text, body: document.into() };
        let outcomes = container.bulk(range, &[operation.clone(), operation]).await.unwrap();
        assert_eq!((outcomes[0].status, outcomes[1].status), (201, 409), "{outcomes:?}");
    }
}

#[test]
fn several_ranges_are_merged() {
    let server = Server::in_memory();
    let split = |range: &str| {
        let body = format!("{{\"database\":\"d\",\"container\":\"c\",\"range\":\"{range}\"}}");
        server.client().expect(200, &Request::new("POST", "/_admin/split").body(body));
        server.settle();
    };
    let client = CosmosClient::new(options(&server, "http")).unwrap();
    run(async { furnished(&client).await });
    split("0");
    // Connections belong to the runtime that opened them, so every run has a client of its own.
    let client = CosmosClient::new(options(&server, "http")).unwrap();
    run(async {
        let container = client.container("d", "c").await.unwrap();
        assert_eq!(container.ranges().await.unwrap().len(), 2);
        filled(&container).await;
        assert_eq!(rows(&container, "SELECT VALUE c.id FROM c").await.len(), 20);
        let ordered = rows(&container, "SELECT VALUE c.n FROM c ORDER BY c.n DESC").await;
        assert_eq!(ordered, (0..20).rev().map(|number| number.to_string()).collect::<Vec<_>>());
        assert_eq!(
            rows(&container, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 3").await,
            ["5", "6", "7"]
        );
        assert_eq!(rows(&container, "SELECT TOP 2 VALUE c.n FROM c ORDER BY c.n").await, ["0", "1"]);
        assert_eq!(rows(&container, "SELECT VALUE COUNT(1) FROM c").await, ["20"]);
        assert_eq!(rows(&container, "SELECT VALUE AVG(c.n) FROM c").await, ["9.5"]);
        assert_eq!(rows(&container, "SELECT VALUE MIN(c.n) FROM c WHERE c.n > 3").await, ["4"]);
        assert_eq!(rows(&container, "SELECT VALUE SUM(c.n) FROM c").await, ["190"]);
        assert_eq!(
            rows(&container, "SELECT COUNT(1) AS n, MAX(c.n) AS m FROM c").await,
            ["{\"n\":20,\"m\":19}"]
        );
        let mut distinct = rows(&container, "SELECT DISTINCT VALUE c.g FROM c").await;
        distinct.sort();
        assert_eq!(distinct, ["0", "1", "2"]);
        let groups = rows(&container, "SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g").await;
        assert_eq!(groups, ["{\"g\":0,\"n\":7}", "{\"g\":1,\"n\":7}", "{\"g\":2,\"n\":6}"]);
        let mut query = QueryRequest::new("SELECT VALUE c.id FROM c WHERE c.n = @n");
        query.parameters = vec![("@n".to_owned(), "7".to_owned())];
        query.partition_key = Some("[\"k7\"]".to_owned());
        assert_eq!(texts(&container.query(query).all().await.unwrap()), ["\"7\""]);
        let wrong = container.query(QueryRequest::new("SELECT * FROMM c")).all().await.unwrap_err();
        assert_eq!(wrong.status(), 400);
        assert!(wrong.refusal().unwrap().location.is_some(), "{wrong:?}");
        let mut seen = 0;
        for range in container.ranges().await.unwrap() {
            let mut start = FeedStart::Beginning;
            loop {
                let page = container.changes(&range, &start, 3).await.unwrap();
                seen += page.items.len();
                if page.is_end {
                    break;
                }
                start = FeedStart::Position(page.position);
            }
            assert!(!container.items(&range, None).await.unwrap().into_items().unwrap().is_empty());
        }
        assert_eq!(seen, 20);
        assert_eq!(container.document_count().await, Some(20));
    });
    split("2");
    let client = CosmosClient::new(options(&server, "http")).unwrap();
    run(async {
        let container = client.container("d", "c").await.unwrap();
        assert_eq!(rows(&container, "SELECT VALUE COUNT(1) FROM c").await, ["20"]);
    });
}

#[test]
fn encryption() {
    let server = Server::start(Options { tls: true, ..Options::on(EngineKind::Memory) });
    let folder = std::env::temp_dir().join(format!("astrarium-client-{}.pem", std::process::id()));
    std::fs::write(&folder, server.authority_pem().unwrap()).unwrap();
    run(async {
        // On this machine any certificate will do; with an authority only its own.
        CosmosClient::new(options(&server, "https")).unwrap().check().await.unwrap();
        let mut trusting = options(&server, "https");
        trusting.authority = Some(folder.clone());
        CosmosClient::new(trusting.clone()).unwrap().check().await.unwrap();
        std::fs::write(&folder, "nothing").unwrap();
        assert!(CosmosClient::new(trusting).unwrap_err().to_string().contains("no certificate"));
    });
    std::fs::remove_file(&folder).unwrap();
}

#[test]
fn throttled_writes_are_sent_again() {
    let server = Server::start(Options { throttling: true, ..Options::on(EngineKind::Memory) });
    let clock = server.clock().clone();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let client = CosmosClient::new(options(&server, "http")).unwrap();
    // The server's clock stands still, and goes on by a second after each refusal: so there is one, however slow this machine is.
    let mover = std::thread::spawn({
        let (stop, client) = (Arc::clone(&stop), client.clone());
        move || {
            let mut seen = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let throttled = client.traffic().throttled;
                if throttled > seen {
                    seen = throttled;
                    clock.advance_seconds(1);
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    });
    run(async {
        let container = furnished(&client).await;
        let range = container.ranges().await.unwrap().remove(0);
        for block in 0..5 {
            let operations: Vec<_> = (0..60)
                .map(|number| BulkOperation {
                    verb: BulkVerb::Create,
                    partition_key: "[\"a\"]".to_owned(),
                    body: format!("{{\"id\":\"{block}-{number}\",\"pk\":\"a\"}}").into(),
                })
                .collect();
            let outcomes = container.bulk(&range, &operations).await.unwrap();
            assert!(outcomes.iter().all(astrarium_client::BulkResult::is_done), "{outcomes:?}");
        }
        assert!(client.traffic().throttled > 0, "{:?}", client.traffic());
        assert_eq!(rows(&container, "SELECT VALUE COUNT(1) FROM c").await, ["300"]);
    });
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    mover.join().unwrap();
}

/// Answers everything with the same bytes.
fn impostor(answer: &'static str) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(8) {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    format!("http://{address}")
}

#[test]
fn servers_that_are_none() {
    let check = |answer: &'static str, fragment: &str| {
        let options = ClientOptions { endpoint: impostor(answer), ..ClientOptions::default() };
        let error = run(async { CosmosClient::new(options).unwrap().check().await }).unwrap_err();
        assert!(matches!(error, ClientError::NotCosmos { .. }), "{error:?}");
        assert!(error.to_string().contains(fragment), "{error}");
    };
    check(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 15\r\n\r\n<html>hi</html>",
        "web page",
    );
    check("HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nnope", "404");
    check(
        "HTTP/1.1 301 Moved\r\nlocation: https://x/\r\ncontent-length: 0\r\n\r\n",
        "redirects to https://x/",
    );
    check("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", "something else");
    let nobody = ClientOptions { endpoint: "http://127.0.0.1:1".to_owned(), ..ClientOptions::default() };
    let error = run(async { CosmosClient::new(nobody).unwrap().check().await }).unwrap_err();
    assert!(error.to_string().contains("is the server running?"), "{error}");
    let bad_key = ClientOptions { key: "AAAA".to_owned(), ..ClientOptions::default() };
    assert!(matches!(CosmosClient::new(bad_key), Err(ClientError::Settings(_))));
    let server = Server::in_memory();
    let mut stranger = options(&server, "http");
    stranger.key = astrarium_testkit::Key::Unknown.text();
    let error = run(async { CosmosClient::new(stranger).unwrap().check().await }).unwrap_err();
    assert_eq!(error.status(), 401, "{error}");
}

/// Counts requests, and refuses all of them with 503.
fn unavailable() -> (String, Arc<std::sync::atomic::AtomicUsize>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let body = "{\"code\":\"ServiceUnavailable\",\"message\":\"later\"}";
            let length = body.len();
            let head = format!("HTTP/1.1 503 Later\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    (format!("http://{address}"), count)
}

/// A server that answers 503 may have done a write, so it is told of and not sent again; reads are.
#[test]
fn writes_are_not_repeated_after_503() {
    let (endpoint, count) = unavailable();
    let sent = || count.swap(0, std::sync::atomic::Ordering::Relaxed);
    run(async {
        let options = ClientOptions {
            endpoint,
            patience: std::time::Duration::from_millis(300),
            ..ClientOptions::default()
        };
        let client = CosmosClient::new(options).unwrap();
        let definition = json!({"id": "c", "partitionKey": {"paths": ["/pk"]}});
        let container = ContainerClient::planned(&client, "d", "c", definition).unwrap();
        let how = ItemWrite::default();
        let failed = container.create("[\"a\"]", "{\"id\":\"1\"}", &how).await.unwrap_err();
        assert!(failed.status() == 503 && failed.is_ambiguous(), "{failed:?}");
        assert_eq!(sent(), 1);
        let range = astrarium_client::RangeOfKeys {
            id: "0".to_owned(),
            min: astrarium_partition::EffectiveKey::MIN,
            max: astrarium_partition::EffectiveKey::max(),
        };
        let operation = BulkOperation {
            verb: BulkVerb::Create,
            partition_key: "[\"a\"]".to_owned(),
            body: Bytes::from_static(b"{\"id\":\"1\"}"),
        };
        assert_eq!(container.bulk(&range, &[operation]).await.unwrap_err().status(), 503);
        assert_eq!(sent(), 1);
        assert_eq!(container.read("1", "[\"a\"]").await.unwrap_err().status(), 503);
        assert!(sent() > 1, "a read is tried again");
    });
}

#[test]
fn answers_have_a_bound() {
    let server = Server::in_memory();
    run(async {
        let mut small = options(&server, "http");
        small.answer_bytes_max = 100;
        let error = CosmosClient::new(small).unwrap().check().await.unwrap_err();
        assert!(matches!(error, ClientError::TooLong { bytes_max: 100 }), "{error:?}");
    });
}
