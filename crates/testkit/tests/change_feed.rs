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
