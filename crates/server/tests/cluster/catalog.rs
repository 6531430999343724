//! Containers are made, changed, split, removed and made again through every server, while documents are written through the others.
//!
//! One operator for each name knows exactly when there is which container of that name. Whatever a client is told must fit:
//! - while there is one for the whole time of a request, it is served, and by that one;
//! - while there is none, it is refused, and so is what comes for one that is gone;
//! - in the end a container has exactly what was acknowledged as written to it.

use crate::site::{Plan, Site, scaled, seconds, seed};
use crate::story::Story;
use astrarium_env::Random;
use astrarium_testkit::{Client, Request};
use astrarium_wire::headers;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

const NAMES: u64 = 3;
const CLIENTS: u64 = 5;

#[test]
fn containers_come_and_go_on_several_servers() {
    let Some(site) = Site::start(Plan::default()) else { return };
    let seed = seed();
    let mut story = Story::begin(&site, seed);
    let ground = Ground::new(&site);
    story.live_in_peace(&site, |_| ground.run(&site, seed));
    story.pulse.check_undisturbed();
    ground.check(&site);
    story.end(site);
}

/// A time on the common counter.
type Moment = u64;

/// A container from the answer that made it to the request that removed it.
#[derive(Debug, Clone)]
struct Life {
    rid: String,
    /// When its making was asked for, and when it was answered.
    made: (Moment, Moment),
    /// When its removal was asked for, and when it was answered.
    removed: Option<(Moment, Moment)>,
}

/// One request of a client.
#[derive(Debug, Clone)]
struct Visit {
    name: u64,
    began: Moment,
    ended: Moment,
    status: u16,
    /// The container that answered.
    rid: Option<String>,
    /// The document that was written, or that was read.
    id: String,
    is_write: bool,
    told: String,
}

struct Ground {
    clock: AtomicU64,
    lives: Vec<Mutex<Vec<Life>>>,
    visits: Mutex<Vec<Visit>>,
}

impl Ground {
    fn new(site: &Site) -> Ground {
        site.client().expect(201, &Request::new("POST", "/dbs").body("{\"id\":\"ground\"}"));
        let lives = (0..NAMES).map(|_| Mutex::default()).collect();
        Ground { clock: AtomicU64::new(1), lives, visits: Mutex::default() }
    }

    fn now(&self) -> Moment {
        self.clock.fetch_add(1, SeqCst)
    }

    fn run(&self, site: &Site, seed: u64) {
        let is_ending = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let is_ending = &is_ending;
            let operators: Vec<_> = (0..NAMES)
                .map(|name| scope.spawn(move || self.operate(site, name, &Random::from_seed(seed ^ name))))
                .collect();
            for number in 0..CLIENTS {
                let random = Random::from_seed(seed.wrapping_add(100 + number));
                scope.spawn(move || self.visit(site, number, &random, is_ending));
            }
            let ends: Vec<_> = operators.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            is_ending.store(true, SeqCst);
            assert!(ends.iter().all(Result::is_ok), "an operator saw something wrong");
        });
    }

    /// Makes and removes the containers of one name; the last one stays.
    fn operate(&self, site: &Site, name: u64, random: &Random) {
        let path = format!("/dbs/ground/colls/g{name}");
        let lives = scaled(3);
        for life in 0..lives {
            let create = Request::new("POST", "/dbs/ground/colls").body(definition(name, 0).to_string());
            let began = self.now();
            let made = site.client().expect(201, &create);
            let made_at = (began, self.now());
            let rid = parsed(&made.body)["_rid"].as_str().expect("a rid").to_owned();
            self.lives_of(name).push(Life { rid, made: made_at, removed: None });
            for _ in 0..2 + random.next_u64() % 3 {
                std::thread::sleep(Duration::from_millis(50 + random.next_u64() % 300));
                change(&mut site.client(), name, &path, random);
            }
            std::thread::sleep(Duration::from_millis(random.next_u64() % 300));
            if life + 1 == lives {
                std::thread::sleep(seconds(1));
                return;
            }
            let began = self.now();
            if let Some(life) = self.lives_of(name).last_mut() {
                life.removed = Some((began, Moment::MAX));
            }
            site.client().expect(204, &Request::new("DELETE", &path));
            if let Some(life) = self.lives_of(name).last_mut() {
                life.removed = Some((began, self.now()));
            }
            std::thread::sleep(Duration::from_millis(random.next_u64() % 200));
        }
    }

    fn lives_of(&self, name: u64) -> std::sync::MutexGuard<'_, Vec<Life>> {
        self.lives[name as usize].lock().expect("no operator failed")
    }

    /// Writes and reads documents of all names, through one server after the other.
    fn visit(&self, site: &Site, number: u64, random: &Random, is_ending: &AtomicBool) {
        let mut client = site.client();
        let mut last: Vec<String> = vec![String::new(); NAMES as usize];
        let mut count = 0;
        while !is_ending.load(SeqCst) {
            let name = random.next_u64() % NAMES;
            let is_write = last[name as usize].is_empty() || !random.next_u64().is_multiple_of(3);
            count += 1;
            let id = if is_write { format!("d{number}-{count}") } else { last[name as usize].clone() };
            let documents = format!("/dbs/ground/colls/g{name}/docs");
            let request = if is_write {
                let body = json!({"id": id, "n": count % 7, "text": format!("text {}", count % 5)});
                Request::new("POST", &documents).body(body.to_string())
            } else {
                Request::new("GET", &format!("{documents}/{id}"))
            };
            let began = self.now();
            let answer = client.ask(&request.partition_key(&format!("[\"{id}\"]")));
            let ended = self.now();
            if is_write && answer.status == 201 {
                last[name as usize].clone_from(&id);
            }
            let header = |name: &str| answer.header(name).map(str::to_owned);
            let visit = Visit {
                name,
                began,
                ended,
                status: answer.status,
                rid: header(headers::CONTENT_PATH),
                id,
                is_write,
                told: if answer.status < 300 { String::new() } else { answer.text() },
            };
            self.visits.lock().expect("no client failed").push(visit);
            if random.next_u64().is_multiple_of(20) {
                client = site.client();
            }
        }
    }

    /// Everything that anybody was told fits.
    fn check(&self, site: &Site) {
        let visits = self.visits.lock().expect("no client failed").clone();
        let mut problems = Vec::new();
        // Where each document was acknowledged to be written.
        let written: BTreeMap<&str, &str> = visits
            .iter()
            .filter(|visit| visit.is_write && visit.status == 201)
            .filter_map(|visit| Some((visit.id.as_str(), visit.rid.as_deref()?)))
            .collect();
        for visit in &visits {
            let lives = self.lives_of(visit.name).clone();
            problems.extend(
                problem(visit, &lives, &written)
                    .map(|what| format!("{what}: {visit:?} {}; {lives:?}", visit.told)),
            );
        }
        let count = |status: u16| visits.iter().filter(|visit| visit.status == status).count();
        println!(
            "{} visits: {} written, {} read, {} not found, {} containers",
            visits.len(),
            count(201),
            count(200),
            count(404),
            self.lives.iter().map(|lives| lives.lock().expect("no operator failed").len()).sum::<usize>()
        );
        problems.truncate(10);
        assert!(problems.is_empty(), "{problems:#?}");
        self.check_content(site, &written);
        assert!(count(201) > 0 && count(404) > 0, "clients saw containers and none");
    }

    /// The last container of each name has what was written to it, and nothing else.
    fn check_content(&self, site: &Site, written: &BTreeMap<&str, &str>) {
        for name in 0..NAMES {
            let rid = self.lives_of(name).last().expect("a container").rid.clone();
            let expected: BTreeSet<&str> =
                written.iter().filter(|(_, own)| **own == rid).map(|(id, _)| *id).collect();
            let found = read_all(&mut site.client(), &format!("/dbs/ground/colls/g{name}/docs"));
            let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
            assert_eq!(found, expected, "the documents of g{name}");
        }
    }
}

/// What is wrong with one answer.
fn problem(visit: &Visit, lives: &[Life], written: &BTreeMap<&str, &str>) -> Option<&'static str> {
    let may_be = |life: &&Life| {
        life.made.0 < visit.ended && life.removed.is_none_or(|(_, removed)| removed > visit.began)
    };
    let is_whole_time =
        |life: &&Life| life.made.1 < visit.began && life.removed.is_none_or(|(asked, _)| asked > visit.ended);
    let whole = lives.iter().find(is_whole_time);
    match visit.status {
        200 | 201 => {
            let Some(rid) = visit.rid.as_deref() else {
                return Some("it is not told which container answered");
            };
            if !lives.iter().filter(may_be).any(|life| life.rid == rid) {
                return Some("a container answers that is not there");
            }
            let is_other = visit.status == 200 && written.get(visit.id.as_str()) != Some(&rid);
            is_other.then_some("a document is read in another container than it was written to")
        }
        404 if visit.is_write => whole.map(|_| "a container is not found although it is there"),
        404 => {
            // The document's own container was there all the time.
            let own = whole.filter(|life| written.get(visit.id.as_str()) == Some(&life.rid.as_str()));
            own.map(|_| "a document is not found although it is there")
        }
        // It went while the request was on its way.
        410 => whole.map(|_| "a container is gone although it is there"),
        _ => Some("nothing that should be told"),
    }
}

/// Changes a container through some server: its indexing policy, its time to live, its key ranges.
fn change(client: &mut Client, name: u64, path: &str, random: &Random) {
    let choice = random.next_u64();
    if choice.is_multiple_of(3) {
        let split = json!({"database": "ground", "container": format!("g{name}"), "range": "0"});
        let answer = client.ask(&Request::new("POST", "/_admin/split").body(split.to_string()));
        // It was split before, or is just being split.
        assert!([200, 400, 404, 410, 423].contains(&answer.status), "{} {}", answer.status, answer.text());
    } else {
        client.expect(200, &Request::new("PUT", path).body(definition(name, choice / 3).to_string()));
    }
}

fn definition(name: u64, policy: u64) -> Value {
    let excluded = ["/x/?", "/n/?", "/text/?"][(policy % 3) as usize];
    json!({"id": format!("g{name}"), "partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2},
           "indexingPolicy": {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": excluded}]}})
}

fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

/// The ids of all documents, by a feed.
pub(crate) fn read_all(client: &mut Client, path: &str) -> Vec<String> {
    let (mut found, mut continuation) = (Vec::new(), None::<String>);
    loop {
        let request = Request::new("GET", path).header("x-ms-max-item-count", "1000");
        let request = match &continuation {
            Some(continuation) => request.header("x-ms-continuation", continuation),
            None => request,
        };
        let answer = client.expect(200, &request);
        let page = parsed(&answer.body);
        let documents = page["Documents"].as_array().expect("documents");
        found.extend(documents.iter().map(|document| document["id"].as_str().expect("an id").to_owned()));
        continuation = answer.header("x-ms-continuation").map(str::to_owned);
        if continuation.is_none() {
            return found;
        }
    }
}
