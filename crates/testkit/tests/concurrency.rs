//! Writers at the same moment: one winner for each etag and each name, on every engine.

use astrarium_testkit::json::Json;
use astrarium_testkit::{EngineKind, Options, Request, Server};
use std::thread;

const WRITERS: usize = 8;
const DOCS: &str = "/dbs/d/colls/c/docs";

fn furnished(engine: EngineKind) -> Server {
    let server = Server::start(Options::on(engine));
    let mut client = server.client();
    client.expect(201, &Request::new("POST", "/dbs").body("{\"id\":\"d\"}"));
    let container = "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}";
    client.expect(201, &Request::new("POST", "/dbs/d/colls").body(container));
    server
}

/// Runs the same work in several threads and gives what each came to.
fn together<T: Send>(server: &Server, work: impl Fn(usize, &Server) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let started: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn({
                    let work = &work;
                    move || work(writer, server)
                })
            })
            .collect();
        started
            .into_iter()
            .map(|thread| thread.join().expect("a writer that panics fails the test"))
            .collect()
    })
}

/// Everybody adds one to a counter with If-Match; each success counts exactly once.
#[test]
fn one_winner_for_each_etag() {
    for engine in EngineKind::all() {
        let server = furnished(engine);
        let item = format!("{DOCS}/counter");
        let body = |number: u64| format!("{{\"id\":\"counter\",\"pk\":\"a\",\"number\":{number}}}");
        let create = Request::new("POST", DOCS).partition_key("[\"a\"]").body(body(0));
        server.client().expect(201, &create);
        let read = Request::new("GET", &item).partition_key("[\"a\"]");
        let successes = together(&server, |_, server| {
            let mut client = server.client();
            let mut successes = 0;
            while successes < 10 {
                let present = client.expect(200, &read);
                let text = present.text();
                let number =
                    Json::parse(&text).unwrap().get("number").unwrap().to_string().parse::<u64>().unwrap();
                let replace = Request::new("PUT", &item).partition_key("[\"a\"]").body(body(number + 1));
                let replace = replace.header("if-match", present.header("etag").unwrap());
                match client.ask(&replace).status {
                    200 => successes += 1,
                    412 => {}
                    status => panic!("{status}"),
                }
            }
            successes
        });
        let total: u64 = successes.iter().sum();
        let text = server.client().expect(200, &read).text();
        assert!(text.contains(&format!("\"number\":{total},")), "{}: {total} in {text}", engine.name());
    }
}

/// Everybody makes the same item, database and container: one is made, the others are told so.
#[test]
fn one_winner_for_each_name() {
    for engine in EngineKind::all() {
        let server = furnished(engine);
        let container = "{\"id\":\"new\",\"partitionKey\":{\"paths\":[\"/pk\"]}}";
        for request in [
            Request::new("POST", DOCS).partition_key("[\"a\"]").body("{\"id\":\"new\",\"pk\":\"a\"}"),
            Request::new("POST", "/dbs").body("{\"id\":\"new\"}"),
            Request::new("POST", "/dbs/d/colls").body(container),
            Request::new("POST", "/dbs/d/users").body("{\"id\":\"new\"}"),
        ] {
            let mut statuses = together(&server, |_, server| server.client().ask(&request).status);
            statuses.sort_unstable();
            let mut expected = vec![409; WRITERS];
            expected[0] = 201;
            assert_eq!(statuses, expected, "{}: {}", engine.name(), request.target);
        }
        let removed = together(&server, |_, server| {
            let delete = Request::new("DELETE", &format!("{DOCS}/new")).partition_key("[\"a\"]");
            server.client().ask(&delete).status
        });
        assert_eq!(removed.iter().filter(|status| **status == 204).count(), 1, "{removed:?}");
    }
}

/// Items written while their container is removed are refused or gone, and the container made anew is empty.
#[test]
fn writers_lose_against_the_end_of_their_container() {
    for engine in EngineKind::all() {
        let server = furnished(engine);
        let statuses = together(&server, |writer, server| {
            let mut client = server.client();
            if writer == 0 {
                client.expect(204, &Request::new("DELETE", "/dbs/d/colls/c"));
                return 404;
            }
            for number in 0.. {
                let body = format!("{{\"id\":\"{writer}-{number}\",\"pk\":\"a\"}}");
                let answer = client.ask(&Request::new("POST", DOCS).partition_key("[\"a\"]").body(body));
                if answer.status != 201 {
                    return answer.status;
                }
            }
            0
        });
        assert_eq!(statuses, vec![404; WRITERS], "{}", engine.name());
        let container =
            "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}";
        let mut client = server.client();
        client.expect(201, &Request::new("POST", "/dbs/d/colls").body(container));
        let feed = client.expect(200, &Request::new("GET", DOCS)).text();
        assert!(feed.contains("\"Documents\":[],\"_count\":0"), "{feed}");
    }
}
