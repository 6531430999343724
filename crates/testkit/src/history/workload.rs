//! The clients of a history: writers, readers with session tokens, readers of change feeds, and somebody who changes the container.
//!
//! In: a way to connect to a server, for as long as it lives. Out: a [`History`]. Clients outlive servers: what they know, and
//! where readers of feeds stand, goes on with the next one.
//! Invariants
//! - A connection may break only when the server is being ended; everything else that is not an answer is a problem.
//! - A session token only grows, and no answer is older than the token it was asked with.

use super::check::check;
use super::{
    DocumentName, EventRecord, FeedKind, FollowedScope, FollowerRecord, History, PageRecord, ReadRecord,
    Stamp, WriteRecord,
};
use crate::http::Response;
use crate::{Client, Request};
use astrarium_env::Random;
use astrarium_wire::headers;
use astrarium_wire::session::SessionToken;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const CONTAINER: &str = "/dbs/history/colls/c";
const DOCUMENTS: &str = "/dbs/history/colls/c/docs";
/// The middle of effective partition keys.
const MIDDLE: &str = "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF";
/// Few enough that clients meet.
const PARTITIONS: u16 = 8;
const IDS: u16 = 5;
/// Positions that somebody may go back to.
const POSITIONS_MAX: usize = 40;
/// Key ranges that the container gets at most.
const RANGES_MAX: usize = 8;
/// Between two changes of the container.
const CHANGE_PAUSE: Duration = Duration::from_millis(300);

/// How to reach the server that runs now.
pub type Connect<'a> = &'a (dyn Fn() -> Client + Sync);

/// All clients, and what they have done so far.
pub struct Workload {
    shared: Arc<SharedState>,
    random: Random,
    writers: Vec<SessionClient>,
    readers: Vec<SessionClient>,
    followers: Vec<Follower>,
}

/// What clients share.
#[derive(Default)]
struct SharedState {
    stamps: AtomicU64,
    versions: AtomicU64,
    /// Session tokens that clients leave for others.
    tokens: Mutex<VecDeque<BTreeMap<String, i64>>>,
}

impl SharedState {
    fn stamp(&self) -> Stamp {
        self.stamps.fetch_add(1, SeqCst)
    }
}

/// How an operation of a client ended.
enum Ended {
    /// With an answer.
    Well,
    /// The server is gone.
    Lost,
}

impl Workload {
    /// Makes the container, and has everybody take a position at its beginning.
    pub fn new(client: &mut Client, seed: u64, throughput: u32) -> Workload {
        client.expect(201, &Request::new("POST", "/dbs").body("{\"id\":\"history\"}"));
        let create = Request::new("POST", "/dbs/history/colls").body(definition(0).to_string());
        client.expect(201, &create.header(headers::OFFER_THROUGHPUT, &throughput.to_string()));
        let (shared, random) = (Arc::default(), Random::from_seed(seed));
        let clients =
            |count: usize| (0..count).map(|_| SessionClient::new(&shared, random.next_u64())).collect();
        let (writers, readers) = (clients(4), clients(3));
        let scopes = [
            FollowedScope::All,
            FollowedScope::Partition(0),
            FollowedScope::Half(false),
            FollowedScope::Half(true),
        ];
        let kinds = [FeedKind::Latest, FeedKind::Versions].into_iter();
        let followed = kinds.flat_map(|kind| scopes.map(|scope| (kind, scope)));
        let followers = followed
            .map(|(kind, scope)| Follower::new(client, &shared, random.next_u64(), kind, scope))
            .collect();
        Workload { shared, random, writers, readers, followers }
    }

    /// Everybody works until told that the end has come, which may be the server's too.
    pub fn run(&mut self, connect: Connect<'_>, is_ending: &AtomicBool) {
        let operator = Random::from_seed(self.random.next_u64());
        std::thread::scope(|scope| {
            for writer in &mut self.writers {
                scope.spawn(|| writer.run(connect, is_ending, SessionClient::write));
            }
            for reader in &mut self.readers {
                scope.spawn(|| reader.run(connect, is_ending, SessionClient::read));
            }
            for follower in &mut self.followers {
                scope.spawn(|| follower.run(connect, is_ending));
            }
            scope.spawn(move || change_container(connect, is_ending, &operator));
        });
    }

    /// Looks at everything in peace, and tells what was wrong; clients can go on afterwards.
    pub fn check(&mut self, connect: Connect<'_>) -> Vec<String> {
        check(&self.history(connect))
    }

    /// All that happened, with everything read once more and every feed followed to its end.
    pub fn history(&mut self, connect: Connect<'_>) -> History {
        let mut client = connect();
        let mut last = SessionClient::new(&self.shared, self.random.next_u64());
        for partition in 0..PARTITIONS {
            for id in 0..IDS {
                last.read_document(&mut client, (partition, id));
            }
        }
        let mut history = History::default();
        for session in self.writers.iter().chain(&self.readers).chain([&last]) {
            history.writes.extend(session.writes.iter().cloned());
            history.reads.extend(session.reads.iter().cloned());
            history.problems.extend(session.problems.iter().cloned());
        }
        for follower in &mut self.followers {
            follower.read_to_the_end(&mut client);
            let FollowerRecord { kind, scope, .. } = follower.record;
            history
                .problems
                .extend(follower.problems.iter().map(|problem| format!("{kind:?} {scope:?}: {problem}")));
            history.followers.push(follower.record.clone());
        }
        history
    }

    /// Figures for whoever reads along.
    pub fn summary(&self) -> String {
        let sessions = || self.writers.iter().chain(&self.readers);
        let writes = sessions().flat_map(|session| &session.writes);
        let (known, unsure): (Vec<_>, Vec<_>) = writes.partition(|write| write.lsn.is_some());
        let reads: usize = sessions().map(|session| session.reads.len()).sum();
        let pages = || self.followers.iter().flat_map(|follower| &follower.record.pages);
        let events: usize = pages().map(|page| page.events.len()).sum();
        format!(
            "{} acknowledged writes, {} without an answer, {reads} reads, {events} events in {} pages of {} feeds",
            known.len(),
            unsure.len(),
            pages().count(),
            self.followers.len()
        )
    }
}

fn definition(policy: u64) -> Value {
    let excluded = if policy.is_multiple_of(2) { "/x/?" } else { "/v/?" };
    json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
           "changeFeedPolicy": {"retentionDuration": 1_000},
           "indexingPolicy": {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": excluded}]}})
}

/// Changes the container again and again: its definition, and its key ranges.
fn change_container(connect: Connect<'_>, is_ending: &AtomicBool, random: &Random) {
    let mut client = connect();
    while !is_ending.load(SeqCst) {
        let choice = random.next_u64();
        let change = match choice % 2 {
            0 => Some(Request::new("PUT", CONTAINER).body(definition(choice / 2).to_string())),
            _ => split(&mut client, choice / 2),
        };
        match change.map(|change| client.send(&change)) {
            None => {}
            // Ranges are changed already.
            Some(Ok(answer)) if answer.status == 200 || answer.status == 423 => {}
            Some(Ok(answer)) => assert!(is_ending.load(SeqCst), "change the container: {}", answer.text()),
            Some(Err(error)) => assert!(is_ending.load(SeqCst), "change the container: {error}"),
        }
        for _ in 0..10 {
            if !is_ending.load(SeqCst) {
                std::thread::sleep(CHANGE_PAUSE / 10);
            }
        }
    }
}

/// Asks to split one of the ranges, unless there are many.
fn split(client: &mut Client, choice: u64) -> Option<Request> {
    let container = json!({"database": "history", "container": "c"});
    let shown = client.send(&Request::new("POST", "/_admin/ranges").body(container.to_string())).ok()?;
    let shown: Value = serde_json::from_str(&shown.text()).ok()?;
    let ranges = shown["ranges"].as_array().filter(|ranges| ranges.len() < RANGES_MAX)?;
    let id = &ranges[choice as usize % ranges.len()]["id"];
    let split = json!({"database": "history", "container": "c", "range": id});
    Some(Request::new("POST", "/_admin/split").body(split.to_string()))
}

/// A client with a session.
struct SessionClient {
    shared: Arc<SharedState>,
    random: Random,
    /// What the session has seen of each range.
    token: BTreeMap<String, i64>,
    writes: Vec<WriteRecord>,
    reads: Vec<ReadRecord>,
    problems: Vec<String>,
}

impl SessionClient {
    fn new(shared: &Arc<SharedState>, seed: u64) -> SessionClient {
        SessionClient {
            shared: Arc::clone(shared),
            random: Random::from_seed(seed),
            token: BTreeMap::new(),
            writes: Vec::new(),
            reads: Vec::new(),
            problems: Vec::new(),
        }
    }

    fn run(
        &mut self,
        connect: Connect<'_>,
        is_ending: &AtomicBool,
        work: fn(&mut Self, &mut Client) -> Ended,
    ) {
        let mut client = connect();
        while !is_ending.load(SeqCst) {
            self.pass_tokens_on();
            if matches!(work(self, &mut client), Ended::Lost) {
                if !is_ending.load(SeqCst) {
                    self.problems.push("a connection broke although nobody stopped the server".to_owned());
                }
                client = connect();
            }
        }
    }

    /// Now and then a token goes from one client to another, and a session begins anew.
    fn pass_tokens_on(&mut self) {
        let mut tokens = self.shared.tokens.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match self.random.next_u64() % 20 {
            0 => {
                tokens.push_back(self.token.clone());
                tokens.truncate(8);
            }
            1 => {
                for (range, lsn) in tokens.pop_front().into_iter().flatten() {
                    let own = self.token.entry(range).or_default();
                    *own = lsn.max(*own);
                }
            }
            2 => self.token.clear(),
            _ => {}
        }
    }

    fn name(&self) -> DocumentName {
        let partition = self.random.next_u64() % u64::from(PARTITIONS);
        (partition as u16, (self.random.next_u64() % u64::from(IDS)) as u16)
    }

    /// Sends a request with the session's token, and takes in that of the answer.
    fn send(&mut self, client: &mut Client, request: Request) -> Option<Response> {
        let entries: Vec<String> =
            self.token.iter().map(|(range, lsn)| format!("{range}:-1#{lsn}")).collect();
        let request = match entries.as_slice() {
            [] => request,
            entries => request.header(headers::SESSION_TOKEN, &entries.join(",")),
        };
        let answer = client.send(&request).ok()?;
        if answer.status < 400 {
            let before = self.token.clone();
            for (range, lsn) in entries_of(&answer) {
                if before.get(&range).is_some_and(|seen| lsn < *seen) {
                    self.problems.push(format!("range {range} is at {lsn}, and {before:?} was seen"));
                }
                self.token.insert(range, lsn);
            }
        }
        if answer.header(headers::SUBSTATUS) == Some("1002") && answer.status == 404 {
            self.problems.push(format!("a session is not available: {:?}", self.token));
        }
        Some(answer)
    }

    /// One random write.
    fn write(&mut self, client: &mut Client) -> Ended {
        let name = self.name();
        let path = format!("{DOCUMENTS}/i{}", name.1);
        let key = format!("[\"p{}\"]", name.0);
        let version = self.shared.versions.fetch_add(1, SeqCst) + 1;
        let body = document(name, version).to_string();
        let request = |verb: &str, path: &str| Request::new(verb, path).partition_key(&key);
        let (request, version) = match self.random.next_u64() % 100 {
            0..40 => {
                let upsert = request("POST", DOCUMENTS).header(headers::IS_UPSERT, "true");
                (upsert.body(body), Some(version))
            }
            40..60 => (request("POST", DOCUMENTS).body(body), Some(version)),
            60..75 => (request("PUT", &path).body(body), Some(version)),
            75..90 => (request("DELETE", &path), None),
            _ => return self.write_batch(client, name),
        };
        let began = self.shared.stamp();
        let answer = self.send(client, request);
        let ended = self.shared.stamp();
        let Some(answer) = answer else {
            self.writes.push(WriteRecord { name, version, began, ended, lsn: None });
            return Ended::Lost;
        };
        match answer.status {
            200 | 201 | 204 => {
                self.writes.push(WriteRecord { name, version, began, ended, lsn: lsn_of(&answer) });
            }
            404 => self.reads.push(ReadRecord { name, version: None, lsn: None, began, ended }),
            409 => {}
            // Nobody knows.
            408 | 410 | 429 | 449 | 503 => {
                self.writes.push(WriteRecord { name, version, began, ended, lsn: None });
            }
            _ => self.problems.push(format!("a write is answered {}: {}", answer.status, answer.text())),
        }
        Ended::Well
    }

    /// Several documents of a partition in one transaction.
    fn write_batch(&mut self, client: &mut Client, (partition, first): DocumentName) -> Ended {
        let names: Vec<DocumentName> = (0..3).map(|place| (partition, (first + place) % IDS)).collect();
        let versions: Vec<u64> =
            names.iter().map(|_| self.shared.versions.fetch_add(1, SeqCst) + 1).collect();
        let operation = |(name, version): (&DocumentName, &u64)| json!({"operationType": "Upsert", "resourceBody": document(*name, *version)});
        let operations: Vec<Value> = names.iter().zip(&versions).map(operation).collect();
        let request = Request::new("POST", DOCUMENTS)
            .partition_key(&format!("[\"p{partition}\"]"))
            .header(headers::IS_BATCH_REQUEST, "True")
            .header(headers::BATCH_ATOMIC, "True")
            .body(Value::from(operations).to_string());
        let began = self.shared.stamp();
        let answer = self.send(client, request);
        let ended = self.shared.stamp();
        let lsn = match &answer {
            Some(answer) if answer.status == 200 => lsn_of(answer),
            Some(answer) if ![408, 410, 429, 449, 503].contains(&answer.status) => {
                self.problems.push(format!("a batch is answered {}: {}", answer.status, answer.text()));
                None
            }
            _ => None,
        };
        let record = |(name, version): (DocumentName, u64)| WriteRecord {
            name,
            version: Some(version),
            began,
            ended,
            lsn,
        };
        self.writes.extend(names.into_iter().zip(versions).map(record));
        if answer.is_some() { Ended::Well } else { Ended::Lost }
    }

    /// One random read: of a document, or of a partition by a query.
    fn read(&mut self, client: &mut Client) -> Ended {
        let name = self.name();
        if self.random.next_u64() % 10 < 8 {
            self.read_document(client, name)
        } else {
            self.query(client, name.0)
        }
    }

    fn read_document(&mut self, client: &mut Client, name: DocumentName) -> Ended {
        let read = Request::new("GET", &format!("{DOCUMENTS}/i{}", name.1));
        let began = self.shared.stamp();
        let answer = self.send(client, read.partition_key(&format!("[\"p{}\"]", name.0)));
        let ended = self.shared.stamp();
        let Some(answer) = answer else { return Ended::Lost };
        match answer.status {
            200 => {
                let version = json_of(&answer)["v"].as_u64();
                let lsn = answer.header(headers::ITEM_LSN).and_then(|lsn| lsn.parse().ok());
                self.reads.push(ReadRecord { name, version, lsn, began, ended });
            }
            404 => self.reads.push(ReadRecord { name, version: None, lsn: None, began, ended }),
            408 | 410 | 429 | 449 | 503 => {}
            _ => self.problems.push(format!("a read is answered {}: {}", answer.status, answer.text())),
        }
        Ended::Well
    }

    fn query(&mut self, client: &mut Client, partition: u16) -> Ended {
        let request = Request::new("POST", DOCUMENTS)
            .partition_key(&format!("[\"p{partition}\"]"))
            .header(headers::IS_QUERY, "True")
            .header("content-type", "application/query+json")
            .body("{\"query\":\"SELECT c.id, c.v FROM c WHERE c.v > 0\"}");
        let began = self.shared.stamp();
        let answer = self.send(client, request);
        let ended = self.shared.stamp();
        let Some(answer) = answer else { return Ended::Lost };
        if [408, 410, 429, 449, 503].contains(&answer.status) {
            return Ended::Well;
        }
        let rows = json_of(&answer);
        let Some(rows) = rows["Documents"].as_array().filter(|_| answer.status == 200) else {
            self.problems.push(format!("a query is answered {}: {}", answer.status, answer.text()));
            return Ended::Well;
        };
        for id in 0..IDS {
            let own = format!("i{id}");
            let row = rows.iter().find(|row| row["id"].as_str() == Some(own.as_str()));
            let version = row.and_then(|row| row["v"].as_u64());
            self.reads.push(ReadRecord { name: (partition, id), version, lsn: None, began, ended });
        }
        Ended::Well
    }
}

fn document((partition, id): DocumentName, version: u64) -> Value {
    json!({"id": format!("i{id}"), "pk": format!("p{partition}"), "v": version})
}

fn name_of(document: &Value) -> Option<DocumentName> {
    let tail = |name: &str| document[name].as_str()?.get(1..)?.parse().ok();
    Some((tail("pk")?, tail("id")?))
}

fn json_of(answer: &Response) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_default()
}

fn entries_of(answer: &Response) -> Vec<(String, i64)> {
    let token = answer.header(headers::SESSION_TOKEN).map(SessionToken::parse);
    let entries = token.and_then(Result::ok).unwrap_or_default();
    entries.entries().iter().map(|entry| (entry.range_id.to_owned(), entry.lsn)).collect()
}

/// The commit of a write, which one range has taken.
fn lsn_of(answer: &Response) -> Option<u64> {
    let entries = entries_of(answer);
    let [(_, lsn)] = entries.as_slice() else { return None };
    u64::try_from(*lsn).ok()
}

/// A reader of a change feed.
struct Follower {
    shared: Arc<SharedState>,
    random: Random,
    record: FollowerRecord,
    /// Where to go on; nothing for the beginning.
    position: Option<String>,
    /// Earlier positions, with the number of events before each.
    positions: VecDeque<(String, usize)>,
    events: Vec<EventRecord>,
    problems: Vec<String>,
}

impl Follower {
    fn new(
        client: &mut Client,
        shared: &Arc<SharedState>,
        seed: u64,
        kind: FeedKind,
        scope: FollowedScope,
    ) -> Follower {
        let record = FollowerRecord { kind, scope, pages: Vec::new() };
        let mut follower = Follower {
            shared: Arc::clone(shared),
            random: Random::from_seed(seed),
            record,
            position: None,
            positions: VecDeque::new(),
            events: Vec::new(),
            problems: Vec::new(),
        };
        if kind == FeedKind::Versions {
            let start = client.expect(304, &follower.request(Some("*"), 1, 0));
            follower.position = start.header(headers::ETAG).map(str::to_owned);
        }
        follower
    }

    fn run(&mut self, connect: Connect<'_>, is_ending: &AtomicBool) {
        let mut client = connect();
        while !is_ending.load(SeqCst) {
            let (count, wait) = (1 + self.random.next_u64() % 20, self.random.next_u64() % 300);
            let ended = if self.random.next_u64().is_multiple_of(20) {
                self.read_again(&mut client, count)
            } else {
                self.read(&mut client, count, wait)
            };
            if matches!(ended, Ended::Lost) {
                if !is_ending.load(SeqCst) {
                    self.problems.push("a connection broke although nobody stopped the server".to_owned());
                }
                client = connect();
            }
        }
    }

    fn read_to_the_end(&mut self, client: &mut Client) {
        // Far more pages than anybody is behind.
        for _ in 0..10_000 {
            let pages = self.record.pages.len();
            if matches!(self.read(client, 100, 0), Ended::Lost) {
                break;
            }
            if self.record.pages.get(pages).is_some_and(|page| page.events.is_empty()) {
                return;
            }
        }
        self.problems.push("it has no end".to_owned());
    }

    fn request(&self, position: Option<&str>, count: u64, wait: u64) -> Request {
        let kind = match self.record.kind {
            FeedKind::Latest => "Incremental feed",
            FeedKind::Versions => "Full-Fidelity Feed",
        };
        let request = Request::new("GET", DOCUMENTS)
            .header(headers::A_IM, kind)
            .header(headers::MAX_ITEM_COUNT, &count.to_string())
            .header(headers::MAX_POLLING_INTERVAL, &wait.to_string());
        let request = match self.record.scope {
            FollowedScope::All => request,
            FollowedScope::Partition(partition) => request.partition_key(&format!("[\"p{partition}\"]")),
            FollowedScope::Half(is_upper) => {
                let (start, end) = if is_upper { (MIDDLE, "FF") } else { ("", MIDDLE) };
                request
                    .header(headers::READ_KEY_TYPE, "EffectivePartitionKeyRange")
                    .header(headers::START_EPK, start)
                    .header(headers::END_EPK, end)
            }
        };
        match position {
            Some(position) => request.header(headers::IF_NONE_MATCH, position),
            None => request,
        }
    }

    /// Reads the next page.
    fn read(&mut self, client: &mut Client, count: u64, wait: u64) -> Ended {
        let request = self.request(self.position.as_deref(), count, wait);
        let began = self.shared.stamp();
        let answer = client.send(&request).ok();
        let ended = self.shared.stamp();
        let Some(answer) = answer else { return Ended::Lost };
        let Some(events) = self.events_of(&answer) else { return Ended::Well };
        let position = answer.header(headers::ETAG).map(str::to_owned);
        self.positions.extend(position.clone().map(|position| (position, self.events.len() + events.len())));
        if self.positions.len() > POSITIONS_MAX {
            self.positions.pop_front();
        }
        self.position = position;
        self.events.extend(events.iter().cloned());
        self.record.pages.push(PageRecord { began, ended, events });
        Ended::Well
    }

    /// Reads from an earlier position: every change is told again as it was.
    fn read_again(&mut self, client: &mut Client, count: u64) -> Ended {
        if self.positions.is_empty() || self.record.kind == FeedKind::Latest {
            return Ended::Well;
        }
        let place = self.random.next_u64() as usize % self.positions.len();
        let (position, before) = self.positions[place].clone();
        let Ok(answer) = client.send(&self.request(Some(&position), count, 0)) else { return Ended::Lost };
        let Some(events) = self.events_of(&answer) else { return Ended::Well };
        let known = &self.events[before..];
        let both = known.len().min(events.len());
        // Ranges are visited in turn, so a page of several may go on in another one; each partition has its order.
        let of = |events: &[EventRecord]| {
            let mut partitions: BTreeMap<u16, Vec<EventRecord>> = BTreeMap::new();
            for event in events {
                partitions.entry(event.name.0).or_default().push(event.clone());
            }
            partitions
        };
        let (known_by, again) = (of(known), of(&events));
        let is_same = again.iter().all(|(partition, events)| {
            let known = known_by.get(partition).map_or(&[][..], Vec::as_slice);
            let both = known.len().min(events.len());
            known[..both] == events[..both]
        });
        if !is_same {
            self.problems.push(format!("from {position} came {:?}, then {events:?}", &known[..both]));
        }
        Ended::Well
    }

    /// What a page shows; nothing if it is none.
    fn events_of(&mut self, answer: &Response) -> Option<Vec<EventRecord>> {
        match answer.status {
            304 => return Some(Vec::new()),
            200 => {}
            408 | 429 | 449 | 503 => return None,
            _ => {
                self.problems.push(format!("a feed is answered {}: {}", answer.status, answer.text()));
                return None;
            }
        }
        let page = json_of(answer);
        let kind = self.record.kind;
        let events = page["Documents"].as_array()?.iter().map(|entry| event_of(kind, entry));
        let events: Option<Vec<EventRecord>> = events.collect();
        if events.as_ref().is_none_or(Vec::is_empty) {
            self.problems.push(format!("a page that is none: {}", answer.text()));
            return None;
        }
        events
    }
}

fn event_of(kind: FeedKind, entry: &Value) -> Option<EventRecord> {
    if kind == FeedKind::Latest {
        let (name, version, lsn) = (name_of(entry)?, entry["v"].as_u64(), entry["_lsn"].as_u64()?);
        return Some(EventRecord { name, version, lsn, previous: None });
    }
    let (current, metadata) = (&entry["current"], &entry["metadata"]);
    let version = current["v"].as_u64();
    let name = match version {
        Some(_) => name_of(current)?,
        None => name_of(&json!({"id": metadata["id"], "pk": metadata["partitionKey"]["pk"]}))?,
    };
    let previous = entry["previous"]["v"].as_u64();
    let expected = match (previous, version) {
        (None, Some(_)) => "create",
        (Some(_), Some(_)) => "replace",
        _ => "delete",
    };
    let is_so = metadata["operationType"].as_str() == Some(expected);
    is_so.then_some(EventRecord { name, version, lsn: metadata["lsn"].as_u64()?, previous })
}
