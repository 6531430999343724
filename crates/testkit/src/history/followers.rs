//! A reader of a change feed, who goes on from his last position, and now and then looks again from an earlier one.
//!
//! In: a connection. Out: the pages he got, each from the position of the one before.

use super::workload::{Connect, DOCUMENTS, Ended, SharedState, json_of, name_of};
use super::{EventRecord, FeedKind, FollowedScope, FollowerRecord, PageRecord};
use crate::http::Response;
use crate::{Client, Request};
use astrarium_env::Random;
use astrarium_wire::headers;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// The middle of effective partition keys.
const MIDDLE: &str = "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF";
/// Positions that somebody may go back to.
const POSITIONS_MAX: usize = 40;

/// A reader of a change feed.
pub(super) struct Follower {
    shared: Arc<SharedState>,
    random: Random,
    pub(super) record: FollowerRecord,
    /// Where to go on; nothing for the beginning.
    position: Option<String>,
    /// Earlier positions, with the number of events before each.
    positions: VecDeque<(String, usize)>,
    events: Vec<EventRecord>,
    pub(super) problems: Vec<String>,
}

impl Follower {
    pub(super) fn new(
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

    pub(super) fn run(&mut self, connect: Connect<'_>, is_ending: &AtomicBool) {
        let mut client = connect();
        while !is_ending.load(SeqCst) {
            let (count, wait) = (1 + self.random.next_u64() % 20, self.random.next_u64() % 300);
            let ended = if self.random.next_u64().is_multiple_of(20) {
                self.read_again(&mut client, count)
            } else {
                self.read(&mut client, count, wait)
            };
            if matches!(ended, Ended::Lost) {
                self.problems.extend(self.shared.note_break(is_ending));
                client = connect();
            } else if self.random.next_u64().is_multiple_of(30) {
                // To another server, if there are several.
                client = connect();
            }
        }
    }

    pub(super) fn read_to_the_end(&mut self, client: &mut Client) {
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
