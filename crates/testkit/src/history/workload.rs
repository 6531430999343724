//! The clients of a history: writers, readers with session tokens, readers of change feeds, and somebody who changes the container.
//!
//! In: a way to connect to a server, for as long as it lives; it may be another one of an account every time. Out: a [`History`].
//! Clients outlive servers: what they know, and where readers of feeds stand, goes on with the next one.
//! Invariant: a connection may break only when the server is being ended, unless it was said that servers come and go;
//! everything else that is not an answer is a problem.
//!
//! Not here: what single clients do (`sessions`, `followers`).

use super::check::check;
use super::followers::Follower;
use super::sessions::SessionClient;
use super::{DocumentName, FeedKind, FollowedScope, FollowerRecord, History, Stamp};
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
pub(super) const DOCUMENTS: &str = "/dbs/history/colls/c/docs";
/// Few enough that clients meet.
const PARTITIONS: u16 = 8;
pub(super) const IDS: u16 = 5;
/// Key ranges that the container gets at most.
const RANGES_MAX: usize = 8;
/// Between two changes of the container.
const CHANGE_PAUSE: Duration = Duration::from_millis(300);
/// After a connection broke, or a server could do nothing.
pub(super) const BREAK_PAUSE: Duration = Duration::from_millis(20);

/// Gives documents new versions, all or none, and tells those of before.
const PROCEDURE: &str = "function (ids, versions, key) {
    var before = [];
    function next(place) {
        if (place == ids.length) { __.response.setBody(before); return; }
        __.readDocument(__.getAltLink() + '/docs/' + ids[place], function (error, document) {
            if (error && error.number != 404) throw error;
            before.push(error ? null : document.v);
            __.upsertDocument(__.getSelfLink(), { id: ids[place], pk: key, v: versions[place] }, function (error) {
                if (error) throw error;
                next(place + 1);
            });
        });
    }
    next(0);
}";

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
pub(super) struct SharedState {
    stamps: AtomicU64,
    versions: AtomicU64,
    /// Session tokens that clients leave for others.
    pub(super) tokens: Mutex<VecDeque<BTreeMap<String, i64>>>,
    /// Whether servers come and go while clients work.
    is_in_trouble: AtomicBool,
}

impl SharedState {
    pub(super) fn stamp(&self) -> Stamp {
        self.stamps.fetch_add(1, SeqCst)
    }

    /// A number for a new version.
    pub(super) fn version(&self) -> u64 {
        self.versions.fetch_add(1, SeqCst) + 1
    }

    /// What is wrong with a broken connection, if something is.
    pub(super) fn note_break(&self, is_ending: &AtomicBool) -> Option<String> {
        if is_ending.load(SeqCst) {
            return None;
        }
        if self.is_in_trouble.load(SeqCst) {
            std::thread::sleep(BREAK_PAUSE);
            return None;
        }
        Some("a connection broke although nobody stopped the server".to_owned())
    }
}

/// How an operation of a client ended.
pub(super) enum Ended {
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
        let procedure = json!({"id": "renew", "body": PROCEDURE}).to_string();
        client.expect(201, &Request::new("POST", &format!("{CONTAINER}/sprocs")).body(procedure));
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

    /// Servers come and go from now on: connections may break at any time, and the container's changes may fail.
    pub fn expect_trouble(&self) {
        self.shared.is_in_trouble.store(true, SeqCst);
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
            let shared = &self.shared;
            scope.spawn(move || change_container(shared, connect, is_ending, &operator));
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
fn change_container(shared: &SharedState, connect: Connect<'_>, is_ending: &AtomicBool, random: &Random) {
    let may_fail = || is_ending.load(SeqCst) || shared.is_in_trouble.load(SeqCst);
    let mut is_first = true;
    while !is_ending.load(SeqCst) {
        let (mut client, choice) = (connect(), random.next_u64());
        let change = match choice % 4 {
            // At least one move.
            _ if std::mem::take(&mut is_first) => move_range(&mut client, choice / 4),
            0 => Some(Request::new("PUT", CONTAINER).body(definition(choice / 4).to_string())),
            1 => split(&mut client, choice / 4),
            _ => move_range(&mut client, choice / 4),
        };
        match change.map(|change| client.send(&change)) {
            None => {}
            // Ranges are changed already, or were a moment ago.
            Some(Ok(answer)) if answer.status == 200 || answer.status == 423 => {}
            Some(Ok(answer)) if answer.status == 400 && answer.text().contains("cannot be moved") => {}
            Some(Ok(answer)) => assert!(may_fail(), "change the container: {}", answer.text()),
            Some(Err(error)) => assert!(may_fail(), "change the container: {error}"),
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

/// Asks to move one of the ranges, where there are several places; to split one otherwise.
fn move_range(client: &mut Client, choice: u64) -> Option<Request> {
    let shown = client.send(&Request::new("GET", "/_admin/placement")).ok()?;
    let shown: Value = serde_json::from_str(&shown.text()).ok()?;
    let (places, ranges) = (shown["places"].as_array()?, shown["ranges"].as_array()?);
    let own: Vec<&Value> = ranges.iter().filter(|range| range["database"] == "history").collect();
    if places.len() < 2 || own.is_empty() {
        return split(client, choice);
    }
    let range = own[choice as usize % own.len()];
    let elsewhere: Vec<&Value> =
        places.iter().map(|place| &place["name"]).filter(|name| **name != range["place"]).collect();
    let place = elsewhere[choice as usize / 64 % elsewhere.len()];
    let moved = json!({"database": "history", "container": "c", "range": range["range"], "place": place});
    Some(Request::new("POST", "/_admin/move").body(moved.to_string()))
}

/// A version of a document.
pub(super) fn document((partition, id): DocumentName, version: u64) -> Value {
    json!({"id": format!("i{id}"), "pk": format!("p{partition}"), "v": version})
}

/// A document's name by its content.
pub(super) fn name_of(document: &Value) -> Option<DocumentName> {
    let tail = |name: &str| document[name].as_str()?.get(1..)?.parse().ok();
    Some((tail("pk")?, tail("id")?))
}

pub(super) fn json_of(answer: &Response) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_default()
}

/// What a session token says of each range.
pub(super) fn entries_of(answer: &Response) -> Vec<(String, i64)> {
    let token = answer.header(headers::SESSION_TOKEN).map(SessionToken::parse);
    let entries = token.and_then(Result::ok).unwrap_or_default();
    entries.entries().iter().map(|entry| (entry.range_id.to_owned(), entry.lsn)).collect()
}

/// The commit of a write, which one range has taken.
pub(super) fn lsn_of(answer: &Response) -> Option<u64> {
    let entries = entries_of(answer);
    let [(_, lsn)] = entries.as_slice() else { return None };
    u64::try_from(*lsn).ok()
}

/// A document to begin with.
pub(super) fn any_name(random: &Random) -> DocumentName {
    let partition = random.next_u64() % u64::from(PARTITIONS);
    (partition as u16, (random.next_u64() % u64::from(IDS)) as u16)
}
