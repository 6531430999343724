//! Readers of the change feed beside writers: nothing is lost, nothing comes out of order, and a reader who waits is woken.

use astrarium_testkit::json::Json;
use astrarium_testkit::{EngineKind, Options, Request, Server};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const DOCS: &str = "/dbs/d/colls/c/docs";
const WRITERS: usize = 4;
const WRITES: usize = 60;

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

/// One writer: creates, replaces and deletes its own documents. Gives the last state of each.
fn write(server: &Server, writer: usize) -> BTreeMap<String, Option<usize>> {
    let mut client = server.client();
    let mut states = BTreeMap::new();
    for step in 0..WRITES {
        let id = format!("{writer}-{}", step % 7);
        let key = format!("[\"{id}\"]");
        let is_there = states.get(&id).is_some_and(|state: &Option<usize>| state.is_some());
        if is_there && step % 5 == 0 {
            client.expect(204, &Request::new("DELETE", &format!("{DOCS}/{id}")).partition_key(&key));
            states.insert(id, None);
        } else {
            let body = format!("{{\"id\":\"{id}\",\"pk\":\"{id}\",\"step\":{step}}}");
            let upsert = Request::new("POST", DOCS).partition_key(&key).body(body);
            let status = if is_there { 200 } else { 201 };
            client.expect(status, &upsert.header("x-ms-documentdb-is-upsert", "True"));
            states.insert(id, Some(step));
        }
    }
    states
}

fn number(value: &Json) -> usize {
    value.to_string().parse().expect("a number")
}

/// Reads a page from a position; gives its documents and the position after it.
fn page(client: &mut astrarium_testkit::Client, kind: &str, etag: Option<&str>) -> (Vec<Json>, String) {
    let mut read = Request::new("GET", DOCS).header("a-im", kind).header("x-ms-max-item-count", "3");
    if let Some(etag) = etag {
        read = read.header("if-none-match", etag);
    }
    let answer = client.ask(&read);
    let after = answer.header("etag").expect("every page has an etag").to_owned();
    match answer.status {
        304 => (Vec::new(), after),
        200 => {
            let json = Json::parse(&answer.text()).expect("a feed");
            let documents = array(json.get("Documents").expect("documents"));
            assert!(!documents.is_empty(), "a page that is not 304 has documents");
            (documents, after)
        }
        status => panic!("{status}: {}", answer.text()),
    }
}

/// Reads while writers write, until they are done and nothing is left.
fn follow(server: &Server, kind: &str, mut etag: Option<String>, writing: &AtomicUsize) -> Vec<Json> {
    let mut client = server.client();
    let mut all = Vec::new();
    loop {
        let done = writing.load(Ordering::SeqCst) == 0;
        let (documents, after) = page(&mut client, kind, etag.as_deref());
        if documents.is_empty() && done {
            return all;
        }
        all.extend(documents);
        etag = Some(after);
    }
}

fn text(value: &Json, name: &str) -> String {
    value.get(name).and_then(Json::as_text).expect("text").to_owned()
}

#[test]
fn readers_beside_writers_miss_nothing() {
    for engine in EngineKind::ALL {
        for throughput in [400, 20_000] {
            let server = furnished(engine, throughput);
            let (_, start) = page(&mut server.client(), "Full-Fidelity Feed", Some("*"));
            let writing = AtomicUsize::new(WRITERS);
            let (states, latest, versions) = thread::scope(|scope| {
                let writers: Vec<_> = (0..WRITERS)
                    .map(|writer| {
                        let (server, writing) = (&server, &writing);
                        scope.spawn(move || {
                            let states = write(server, writer);
                            writing.fetch_sub(1, Ordering::SeqCst);
                            states
                        })
                    })
                    .collect();
                let latest = scope.spawn(|| follow(&server, "Incremental feed", None, &writing));
                let versions =
                    scope.spawn(|| follow(&server, "Full-Fidelity Feed", Some(start.clone()), &writing));
                let mut states = BTreeMap::new();
                for writer in writers {
                    states.extend(writer.join().expect("a writer"));
                }
                (states, latest.join().expect("a reader"), versions.join().expect("a reader"))
            });
            check_latest(&states, &latest);
            check_versions(&states, &versions);
        }
    }
}

/// The last thing seen of a living document is its last version, and versions of a document never go back.
fn check_latest(states: &BTreeMap<String, Option<usize>>, seen: &[Json]) {
    let mut last: BTreeMap<String, usize> = BTreeMap::new();
    for document in seen {
        let (id, step) = (text(document, "id"), number(document.get("step").expect("a step")));
        if let Some(before) = last.insert(id.clone(), step) {
            assert!(before < step, "{id} came with step {step} after {before}");
        }
    }
    for (id, state) in states {
        if let Some(step) = state {
            assert_eq!(last.get(id), Some(step), "{id}");
        }
    }
}

/// Every change came once, in order, with the version before it.
fn check_versions(states: &BTreeMap<String, Option<usize>>, seen: &[Json]) {
    let mut now: BTreeMap<String, Option<usize>> = BTreeMap::new();
    assert_eq!(seen.len(), WRITERS * WRITES);
    for change in seen {
        let metadata = change.get("metadata").expect("metadata");
        let operation = text(metadata, "operationType");
        let current = change.get("current").expect("current");
        let step = current.get("step").map(number);
        let id = if step.is_some() { text(current, "id") } else { text(metadata, "id") };
        let previous = change.get("previous").and_then(|previous| previous.get("step")).map(number);
        let before = now.insert(id.clone(), step).flatten();
        assert_eq!(before, previous, "{id}: what was before");
        let expected = match (before, step) {
            (None, Some(_)) => "create",
            (Some(_), Some(_)) => "replace",
            _ => "delete",
        };
        assert_eq!(operation, expected, "{id}");
    }
    assert_eq!(&now, states);
}

/// A reader who is ready to wait gets a change when it happens, long before his time is over, and 304 when it is.
#[test]
fn a_reader_who_waits_is_woken_by_a_write() {
    for engine in EngineKind::ALL {
        let server = furnished(engine, 20_000);
        let wait = |milliseconds: &str| {
            let read = Request::new("GET", DOCS).header("a-im", "Incremental feed");
            read.header("x-ms-cosmos-max-polling-interval", milliseconds)
        };
        assert_eq!(server.client().ask(&wait("50")).status, 304);
        let began = Instant::now();
        thread::scope(|scope| {
            let reader = scope.spawn(|| server.client().ask(&wait("30000")).status);
            thread::sleep(Duration::from_millis(200));
            let create =
                Request::new("POST", DOCS).partition_key("[\"a\"]").body("{\"id\":\"1\",\"pk\":\"a\"}");
            server.client().expect(201, &create);
            assert_eq!(reader.join().expect("a reader"), 200);
        });
        assert!(began.elapsed() < Duration::from_secs(15));
        assert_eq!(server.client().ask(&wait("soon")).status, 400);
    }
}

fn array(value: &Json) -> Vec<Json> {
    let Json::Array { items, .. } = value else { panic!("an array") };
    items.clone()
}
