//! A reader of the change feed who waits is woken. That nothing is lost and nothing comes out of order: `history.rs`.

use astrarium_testkit::{EngineKind, Options, Request, Server};
use std::thread;
use std::time::Duration;

const DOCS: &str = "/dbs/d/colls/c/docs";

fn furnished(engine: EngineKind, throughput: u32) -> Server {
    let server = Server::start(Options::on(engine));
    let mut client = server.client();
    client.expect(201, &Request::new("POST", "/dbs").body("{\"id\":\"d\"}"));
    let container = "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2},\
                     \"changeFeedPolicy\":{\"retentionDuration\":10}}";
    let create = Request::new("POST", "/dbs/d/colls").body(container);
    client.expect(201, &create.header("x-ms-offer-throughput", &throughput.to_string()));
    server
}

/// A reader who is ready to wait gets a change when it happens, long before his time is over, and 304 when it is.
#[test]
fn a_reader_who_waits_is_woken_by_a_write() {
    for engine in EngineKind::all() {
        let server = furnished(engine, 20_000);
        let wait = |milliseconds: &str| {
            let read = Request::new("GET", DOCS).header("a-im", "Incremental feed");
            read.header("x-ms-cosmos-max-polling-interval", milliseconds)
        };
        assert_eq!(server.client().ask(&wait("50")).status, 304);
        thread::scope(|scope| {
            let reader = scope.spawn(|| server.client().ask(&wait("600000")).status);
            thread::sleep(Duration::from_millis(200));
            let create =
                Request::new("POST", DOCS).partition_key("[\"a\"]").body("{\"id\":\"1\",\"pk\":\"a\"}");
            server.client().expect(201, &create);
            assert_eq!(reader.join().expect("a reader"), 200);
        });
        assert_eq!(server.client().ask(&wait("soon")).status, 400);
    }
}

const ALL_VERSIONS: &str = "Full-Fidelity Feed";

/// The feed of all versions from a position on: its status, its etag and its body.
fn all_versions(server: &Server, from: &str) -> (u16, String, serde_json::Value) {
    let read = Request::new("GET", DOCS).header("a-im", ALL_VERSIONS).header("if-none-match", from);
    let answer = server.client().ask(&read);
    let etag = answer.header("etag").unwrap_or_default().to_owned();
    (answer.status, etag, serde_json::from_slice(&answer.body).unwrap_or_default())
}

/// Under continuous backup a container without a policy has the feed of all versions, and the account says so; the versions before
/// replaces and deletes are in it only where the account asks for them.
#[test]
fn continuous_backup_keeps_all_versions_of_every_container() {
    for previous_images in [false, true] {
        let options = Options { continuous_backup: true, previous_images, ..Options::on(EngineKind::Memory) };
        let server = Server::start(options);
        let mut client = server.client();
        let account = client.expect(200, &Request::new("GET", "/"));
        let account: serde_json::Value = serde_json::from_slice(&account.body).expect("JSON");
        assert_eq!(account["continuousBackupEnabled"], true);
        client.expect(201, &Request::new("POST", "/dbs").body("{\"id\":\"d\"}"));
        let container =
            "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}";
        client.expect(201, &Request::new("POST", "/dbs/d/colls").body(container));
        let (status, start, _) = all_versions(&server, "*");
        assert_eq!(status, 304);
        let item = |text: &str| Request::new("POST", DOCS).partition_key("[\"a\"]").body(text);
        client.expect(201, &item("{\"id\":\"1\",\"pk\":\"a\",\"n\":1}"));
        let upsert = item("{\"id\":\"1\",\"pk\":\"a\",\"n\":2}");
        client.expect(200, &upsert.header("x-ms-documentdb-is-upsert", "true"));
        let one = format!("{DOCS}/1");
        client.expect(204, &Request::new("DELETE", &one).partition_key("[\"a\"]"));
        let (status, _, page) = all_versions(&server, &start);
        assert_eq!(status, 200);
        let changes = page["Documents"].as_array().expect("changes");
        let shown: Vec<_> = changes
            .iter()
            .map(|change| {
                let metadata = &change["metadata"];
                (
                    metadata["operationType"].as_str(),
                    metadata["previousImageLSN"].as_u64(),
                    change["previous"]["n"].as_u64(),
                )
            })
            .collect();
        let previous = |n: u64| previous_images.then_some(n);
        let expected = [
            (Some("create"), None, None),
            (Some("replace"), Some(2), previous(1)),
            (Some("delete"), Some(3), previous(2)),
        ];
        assert_eq!(shown, expected);
    }
}
