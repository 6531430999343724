//! What docs/guarantees.md promises about reads beside writes, on every engine, with one key range and with several: reads
//! see every write that was answered before they began, pages show transactions whole, sessions go from client to client,
//! and accounts serve their level and the weaker ones.

use astrarium_testkit::json::Json;
use astrarium_testkit::{Client, EngineKind, Options, Request, Server};
use astrarium_wire::consistency::ConsistencyLevel;
use astrarium_wire::session::{SessionToken, append_session_token};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

const DOCS: &str = "/dbs/d/colls/c/docs";
const WRITERS: usize = 4;
const READERS: usize = 4;
const WRITES: u64 = 60;
/// Throughput of a container with one range, and with five.
const THROUGHPUTS: [u32; 2] = [400, 30_000];

fn furnished(engine: EngineKind, consistency: ConsistencyLevel, throughput: u32, more: &str) -> Server {
    let server = Server::start(Options { consistency, ..Options::on(engine) });
    let mut client = server.client();
    client.expect(201, &Request::new("POST", "/dbs").body("{\"id\":\"d\"}"));
    let container = format!(
        "{{\"id\":\"c\",\"partitionKey\":{{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}{more}}}"
    );
    let create = Request::new("POST", "/dbs/d/colls").body(container);
    client.expect(201, &create.header("x-ms-offer-throughput", &throughput.to_string()));
    server
}

fn key(id: &str) -> String {
    format!("[\"{id}\"]")
}

fn upsert(client: &mut Client, id: &str, number: u64) -> String {
    let body = format!("{{\"id\":\"{id}\",\"pk\":\"{id}\",\"n\":{number}}}");
    let request = Request::new("POST", DOCS).partition_key(&key(id)).body(body);
    let answer = client.ask(&request.header("x-ms-documentdb-is-upsert", "True"));
    assert!(matches!(answer.status, 200 | 201), "{}: {}", answer.status, answer.text());
    answer.header("x-ms-session-token").expect("writes have a token").to_owned()
}

fn array(value: &Json) -> Vec<Json> {
    let Json::Array { items, .. } = value else { panic!("an array") };
    items.clone()
}

fn documents(text: &str) -> Vec<Json> {
    array(Json::parse(text).expect("a feed").get("Documents").expect("documents"))
}

fn number(value: &Json) -> u64 {
    value.to_string().parse().expect("a number")
}

/// The ways to read a document of its own partition.
const WAYS: [&str; 5] = ["read", "feed", "query", "aggregate", "change feed"];

/// Reads a document in a way under a level: its number, and the token of the answer.
fn look(client: &mut Client, way: &str, level: ConsistencyLevel, id: &str) -> (u64, String) {
    let request = match way {
        "read" => Request::new("GET", &format!("{DOCS}/{id}")),
        "feed" => Request::new("GET", DOCS),
        "change feed" => Request::new("GET", DOCS).header("a-im", "Incremental feed"),
        _ => {
            let text = if way == "query" { "SELECT * FROM c" } else { "SELECT VALUE {n: MAX(c.n)} FROM c" };
            Request::new("POST", DOCS)
                .header("x-ms-documentdb-isquery", "True")
                .header("content-type", "application/query+json")
                .body(format!("{{\"query\":\"{text}\"}}"))
        }
    };
    let request = request.partition_key(&key(id)).header("x-ms-consistency-level", level.name());
    let answer = client.expect(200, &request);
    let token = answer.header("x-ms-session-token").expect("reads have a token").to_owned();
    let text = answer.text();
    let found =
        if way == "read" { Json::parse(&text).expect("a document") } else { documents(&text)[0].clone() };
    (number(found.get("n").expect("a number")), token)
}

/// Whatever the level: one server has one state, and a read is of that state.
#[test]
fn a_read_sees_every_write_answered_before_it() {
    for engine in EngineKind::all() {
        for throughput in THROUGHPUTS {
            let server = furnished(engine, ConsistencyLevel::Strong, throughput, "");
            let answered: Vec<AtomicU64> = (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
            for writer in 0..WRITERS {
                upsert(&mut server.client(), &format!("w{writer}"), 0);
            }
            let writing = AtomicUsize::new(WRITERS);
            thread::scope(|scope| {
                for (writer, answered) in answered.iter().enumerate() {
                    let (server, writing) = (&server, &writing);
                    scope.spawn(move || {
                        let mut client = server.client();
                        for number in 1..=WRITES {
                            upsert(&mut client, &format!("w{writer}"), number);
                            answered.store(number, Ordering::SeqCst);
                        }
                        writing.fetch_sub(1, Ordering::SeqCst);
                    });
                }
                for reader in 0..READERS {
                    let (server, writing, answered) = (&server, &writing, &answered);
                    scope.spawn(move || read_on(server, reader, writing, answered));
                }
            });
        }
    }
}

/// One reader: no read is behind what was answered before it, nor behind one of his own, and no token goes back.
fn read_on(server: &Server, reader: usize, writing: &AtomicUsize, answered: &[AtomicU64]) {
    let mut client = server.client();
    let mut seen = vec![0; answered.len()];
    let mut positions: BTreeMap<String, i64> = BTreeMap::new();
    let mut turn = reader;
    while writing.load(Ordering::SeqCst) > 0 || turn < 50 {
        let (writer, way) = (turn % answered.len(), WAYS[turn % WAYS.len()]);
        let level = ConsistencyLevel::ALL[turn % ConsistencyLevel::ALL.len()];
        let before = answered[writer].load(Ordering::SeqCst);
        let (number, token) = look(&mut client, way, level, &format!("w{writer}"));
        assert!(number >= before, "{way} under {level:?} gave {number} after {before} was answered");
        assert!(number >= seen[writer], "{way} under {level:?} went back from {} to {number}", seen[writer]);
        seen[writer] = number;
        for entry in SessionToken::parse(&token).expect("a token").entries() {
            let last = positions.entry(entry.range_id.to_owned()).or_default();
            assert!(entry.lsn >= *last, "{way}: the token of range {} went back", entry.range_id);
            *last = entry.lsn;
        }
        turn += 1;
    }
}

/// A page is of one view of its range: half of a batch is never seen.
#[test]
fn a_page_shows_batches_whole() {
    const SUM: u64 = 100;
    for engine in EngineKind::all() {
        let server = furnished(engine, ConsistencyLevel::Session, 400, "");
        let transfer = |client: &mut Client, left: u64| {
            let operation = |id: &str, amount: u64| {
                format!(
                    "{{\"operationType\":\"Upsert\",\"resourceBody\":{{\"id\":\"{id}\",\"pk\":\"a\",\"amount\":{amount}}}}}"
                )
            };
            let body = format!("[{},{}]", operation("left", left), operation("right", SUM - left));
            let batch = Request::new("POST", DOCS).partition_key("[\"a\"]").body(body);
            let batch = batch.header("x-ms-cosmos-is-batch-request", "True");
            client.expect(200, &batch.header("x-ms-cosmos-batch-atomic", "True"));
        };
        transfer(&mut server.client(), 50);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut client = server.client();
                (0..WRITES * 2).for_each(|turn| transfer(&mut client, turn * 37 % SUM));
                done.store(true, Ordering::SeqCst);
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut client = server.client();
                    while !done.load(Ordering::SeqCst) {
                        let feeds = [
                            Request::new("GET", DOCS).partition_key("[\"a\"]"),
                            Request::new("GET", DOCS).header("a-im", "Incremental feed"),
                            Request::new("POST", DOCS)
                                .header("x-ms-documentdb-isquery", "True")
                                .header("content-type", "application/query+json")
                                .header("x-ms-documentdb-query-enablecrosspartition", "True")
                                .body("{\"query\":\"SELECT * FROM c\"}"),
                        ];
                        for feed in &feeds {
                            let rows = documents(&client.expect(200, feed).text());
                            let sum: u64 =
                                rows.iter().map(|row| number(row.get("amount").expect("it"))).sum();
                            assert_eq!((rows.len(), sum), (2, SUM), "{}: half a batch", engine.name());
                        }
                    }
                });
            }
        });
    }
}

/// What one client wrote another reads with its token, whatever else the token speaks of; a token that is ahead of its own
/// range is told so, and one that is ahead of another range is not.
#[test]
fn a_session_goes_from_client_to_client() {
    for engine in EngineKind::all() {
        let server = furnished(engine, ConsistencyLevel::Session, 30_000, "");
        let mut positions: BTreeMap<String, (String, u64)> = BTreeMap::new();
        let mut writer = server.client();
        for document in 0..40 {
            let id = format!("k{document}");
            let token = upsert(&mut writer, &id, document);
            let token = SessionToken::parse(&token).expect("a token");
            let [entry] = token.entries() else { panic!("a write is of one range") };
            let lsn = u64::try_from(entry.lsn).expect("a position");
            positions.insert(entry.range_id.to_owned(), (id, lsn));
        }
        assert_eq!(positions.len(), 5, "the keys fall into all five ranges");
        let mut joined = String::new();
        for (range, (_, lsn)) in &positions {
            append_session_token(&mut joined, range, *lsn);
        }
        for (range, (id, _)) in &positions {
            let mut ahead = String::new();
            for (other, (_, lsn)) in &positions {
                append_session_token(&mut ahead, other, if other == range { lsn + 1 } else { *lsn });
            }
            for (reads, _) in positions.values() {
                let read = Request::new("GET", &format!("{DOCS}/{reads}")).partition_key(&key(reads));
                let mut other = server.client();
                other.expect(200, &read.clone().header("x-ms-session-token", &joined));
                let status = if reads == id { 404 } else { 200 };
                let answer = other.expect(status, &read.header("x-ms-session-token", &ahead));
                let substatus = (status == 404).then_some("1002");
                assert_eq!(answer.header("x-ms-substatus"), substatus, "{reads} with {ahead}");
            }
        }
    }
}

#[test]
fn every_account_serves_its_level_and_weaker_ones() {
    for account in ConsistencyLevel::ALL {
        let server = furnished(EngineKind::Memory, account, 400, "");
        let mut client = server.client();
        upsert(&mut client, "a", 1);
        let told = client.expect(200, &Request::new("GET", "/")).text();
        assert!(told.contains(&format!("\"defaultConsistencyLevel\":\"{}\"", account.name())), "{told}");
        let read = Request::new("GET", &format!("{DOCS}/a")).partition_key("[\"a\"]");
        for level in ConsistencyLevel::ALL {
            let status = if level <= account { 200 } else { 400 };
            client.expect(status, &read.clone().header("x-ms-consistency-level", level.name()));
        }
        // A strategy may be named on every account, but for the one that is an account's of its own.
        let header = "x-ms-cosmos-read-consistency-strategy";
        for strategy in ["Default", "Eventual", "Session", "LatestCommitted"] {
            client.expect(200, &read.clone().header(header, strategy));
        }
        let status = if account == ConsistencyLevel::Strong { 200 } else { 400 };
        client.expect(status, &read.clone().header(header, "GlobalStrong"));
        // Only where sessions are asked for do tokens matter.
        let status = if account == ConsistencyLevel::Session { 404 } else { 200 };
        client.expect(status, &read.header("x-ms-session-token", "0:-1#999"));
    }
}

#[test]
fn one_winner_for_each_unique_key() {
    for engine in EngineKind::all() {
        let policy = ",\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/email\"]}]}";
        let server = furnished(engine, ConsistencyLevel::Session, 400, policy);
        let made = AtomicUsize::new(0);
        for round in 0..10 {
            thread::scope(|scope| {
                for writer in 0..WRITERS {
                    let (server, made) = (&server, &made);
                    scope.spawn(move || {
                        let body =
                            format!("{{\"id\":\"{round}-{writer}\",\"pk\":\"a\",\"email\":\"{round}\"}}");
                        let create = Request::new("POST", DOCS).partition_key("[\"a\"]").body(body);
                        match server.client().ask(&create).status {
                            201 => made.fetch_add(1, Ordering::SeqCst),
                            409 => 0,
                            status => panic!("{status}"),
                        }
                    });
                }
            });
            assert_eq!(made.load(Ordering::SeqCst), round + 1, "{}", engine.name());
        }
    }
}
