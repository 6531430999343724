//! Stored procedures and triggers under kills: each is there as a whole, or not at all.
//!
//! Every execution writes several documents of one partition that must agree: a mark and its twin, a counter of all
//! marks, and two accounts whose sum never changes. Some executions throw after all their writes. After each kill what
//! was acknowledged is there, what failed is not, and whatever was under way is whole in either case.

use crate::client::{Answer, Client, is_lost_connection};
use crate::process::{self, Server};
use crate::{TERMINATION_MAX, number_from_environment};
use astrarium_env::Random;
use astrarium_wire::headers;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const CONTAINER: &str = "dbs/scripts/colls/c";
const KEY: &str = "[\"p\"]";
const WORKER_COUNT: u64 = 6;
const ROUNDS_DEFAULT: u64 = 6;
/// What the accounts hold together.
const SUM: i64 = 1_000;

/// One mark with its twin, the counter, and a transfer.
const PROCEDURE: &str = "function (mark, amount, fails) {
    var alt = __.getAltLink() + '/docs/', link = __.getSelfLink();
    function check(error) { if (error) throw error; }
    function change(id, name, by, then) {
        __.readDocument(alt + id, function (error, document) {
            check(error);
            document[name] += by;
            __.replaceDocument(document._self, document, function (error) { check(error); then(); });
        });
    }
    __.createDocument(link, { id: mark, pk: 'p', kind: 'mark' }, check);
    change('counter', 'n', 1, function () {
        change('left', 'balance', -amount, function () {
            change('right', 'balance', amount, function () {
                __.createDocument(link, { id: mark + '-twin', pk: 'p', kind: 'twin' }, function (error) {
                    check(error);
                    if (fails) throw new Error('after all');
                });
            });
        });
    });
}";

/// The twin and the counter for a mark that a client makes.
const TRIGGER: &str = "function () {
    var mark = __.response.getBody();
    __.createDocument(__.getSelfLink(), { id: mark.id + '-twin', pk: 'p', kind: 'twin' }, function (error) {
        if (error) throw error;
        __.readDocument(__.getAltLink() + '/docs/counter', function (error, counter) {
            if (error) throw error;
            counter.n += 1;
            __.replaceDocument(counter._self, counter, function (error) {
                if (error) throw error;
                if (mark.fails) throw new Error('after all');
            });
        });
    });
}";

#[test]
fn scripts_are_whole_after_kills() {
    let seed = number_from_environment("ASTRARIUM_CRASH_SEED")
        .unwrap_or_else(|| astrarium_env::Env::system().random_u64());
    println!("ASTRARIUM_CRASH_SEED={seed}");
    let random = Random::from_seed(seed);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(folder.path());
    furnish(&mut Client::new(server.address()));
    server.kill();
    let mut workers: Vec<Worker> = (0..WORKER_COUNT).map(|number| Worker::new(number, &random)).collect();
    let rounds = number_from_environment("ASTRARIUM_CRASH_ROUNDS").unwrap_or(ROUNDS_DEFAULT);
    for round in 0..rounds {
        let server = Server::start(folder.path());
        check(&mut Client::new(server.address()), &mut workers, &format!("seed {seed}, round {round}"));
        run(server, &mut workers, Duration::from_millis(50 + random.next_u64() % 500));
        if round % 2 == 0 {
            process::verify(folder.path());
        }
    }
    let server = Server::start(folder.path());
    check(&mut Client::new(server.address()), &mut workers, &format!("seed {seed}, end"));
    assert_eq!(server.terminate(TERMINATION_MAX).code(), Some(0), "a quiet server ends with success");
    process::verify(folder.path());
    let kept: usize = workers.iter().map(|worker| worker.kept.len()).sum();
    println!("{kept} executions kept");
    assert!(kept > 0, "the workers did something");
}

/// Lets the workers work for a while and kills the server in the middle of it.
fn run(server: Server, workers: &mut [Worker], pause: Duration) {
    let (address, ending) = (server.address(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let running: Vec<_> =
            workers.iter_mut().map(|worker| scope.spawn(|| worker.run(address, &ending))).collect();
        std::thread::sleep(pause);
        ending.store(true, Ordering::SeqCst);
        server.kill();
        for worker in running {
            worker.join().expect("a worker saw something wrong");
        }
    });
}

fn furnish(client: &mut Client) {
    let mut make = |path: &str, body: &Value, more: &[(&str, &str)]| {
        let answer = client.must_send("POST", path, more, &body.to_string());
        assert_eq!(answer.status, 201, "{path}: {}", answer.text());
    };
    make("dbs", &json!({"id": "scripts"}), &[]);
    let key = json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
    make("dbs/scripts/colls", &json!({"id": "c", "partitionKey": key}), &[]);
    make(&format!("{CONTAINER}/sprocs"), &json!({"id": "work", "body": PROCEDURE}), &[]);
    let trigger =
        json!({"id": "after", "body": TRIGGER, "triggerType": "Post", "triggerOperation": "Create"});
    make(&format!("{CONTAINER}/triggers"), &trigger, &[]);
    let documents = [
        json!({"id": "counter", "pk": "p", "n": 0}),
        json!({"id": "left", "pk": "p", "balance": SUM}),
        json!({"id": "right", "pk": "p", "balance": 0}),
    ];
    for document in documents {
        make(&format!("{CONTAINER}/docs"), &document, &[(headers::PARTITION_KEY, KEY)]);
    }
}

/// Everything agrees with itself and with what was acknowledged.
fn check(client: &mut Client, workers: &mut [Worker], context: &str) {
    let (documents, _) = client.feed(&format!("{CONTAINER}/docs"), "Documents", 100);
    let of_kind = |kind: &str| -> BTreeSet<String> {
        let own = documents.iter().filter(|document| document["kind"] == kind);
        own.map(|document| document["id"].as_str().expect("an id").to_owned()).collect()
    };
    let marks = of_kind("mark");
    let twins: BTreeSet<String> = marks.iter().map(|mark| format!("{mark}-twin")).collect();
    assert_eq!(of_kind("twin"), twins, "{context}: each mark has its twin");
    let number = |id: &str, name: &str| {
        let document = documents.iter().find(|document| document["id"] == id);
        document.and_then(|document| document[name].as_i64()).expect("a number")
    };
    let count = i64::try_from(marks.len()).expect("not that many");
    assert_eq!(number("counter", "n"), count, "{context}: the counter counts the marks");
    assert_eq!(number("left", "balance") + number("right", "balance"), SUM, "{context}: the sum is kept");
    let queried = client.query(CONTAINER, "SELECT VALUE c.id FROM c WHERE c.kind = 'mark'");
    let queried: BTreeSet<String> = queried.iter().map(|id| id.as_str().expect("an id").to_owned()).collect();
    assert_eq!(queried, marks, "{context}: the index has the marks");
    for worker in workers.iter_mut() {
        worker.kept.extend(worker.under_way.take().filter(|mark| marks.contains(mark)));
    }
    let kept: BTreeSet<String> = workers.iter().flat_map(|worker| worker.kept.iter().cloned()).collect();
    assert_eq!(marks, kept, "{context}: what was acknowledged is there, what failed is not");
}

/// One client that runs scripts.
struct Worker {
    number: u64,
    random: Random,
    serial: u64,
    /// Marks that are there.
    kept: BTreeSet<String>,
    /// The mark whose answer never came, if it may be there.
    under_way: Option<String>,
}

impl Worker {
    fn new(number: u64, random: &Random) -> Worker {
        let random = Random::from_seed(random.next_u64());
        Worker { number, random, serial: 0, kept: BTreeSet::new(), under_way: None }
    }

    /// Works until the server is gone.
    fn run(&mut self, address: SocketAddr, ending: &AtomicBool) {
        let mut client = Client::new(address);
        loop {
            self.serial += 1;
            let mark = format!("mark-{}-{}", self.number, self.serial);
            let fails = self.random.next_u64().is_multiple_of(4);
            self.under_way = (!fails).then(|| mark.clone());
            match self.attempt(&mut client, &mark, fails) {
                Ok(answer) => {
                    self.under_way = None;
                    match (answer.status, fails) {
                        (200 | 201, false) => {
                            self.kept.insert(mark);
                        }
                        (400, true) | (449, _) => {}
                        _ => panic!("{mark}, fails {fails}: {}", answer.text()),
                    }
                }
                Err(error) => {
                    let dies = ending.load(Ordering::SeqCst) && is_lost_connection(&error);
                    assert!(dies, "a connection broke although nobody stopped the server: {error}");
                    return;
                }
            }
        }
    }

    fn attempt(&self, client: &mut Client, mark: &str, fails: bool) -> std::io::Result<Answer> {
        if self.number.is_multiple_of(3) {
            let more = [(headers::PARTITION_KEY, KEY), (headers::POST_TRIGGER_INCLUDE, "after")];
            let body = json!({"id": mark, "pk": "p", "kind": "mark", "fails": fails}).to_string();
            return client.send("POST", &format!("{CONTAINER}/docs"), &more, &body);
        }
        let amount = self.random.next_u64() % 20;
        let body = json!([mark, amount, fails]).to_string();
        client.send("POST", &format!("{CONTAINER}/sprocs/work"), &[(headers::PARTITION_KEY, KEY)], &body)
    }
}
