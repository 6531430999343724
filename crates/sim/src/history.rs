//! What happened in a run, and whether it may have happened.
//!
//! In: beginnings and ends of requests, and every commit in the order in which storage applied them. Out: problems.
//! Each commit of a request is done to the model at once, so there is one state of the documents after each of them.
//! - A write must be allowed by the state before its commit, tell the outcome of the model, and commit once.
//! - A read, and a refusal, must be right on one of the states between its beginning and its end. So must a page of the change
//!   feed: it shows, oldest first, what those who went on from its position had not seen; positions outlive the power.
//! - Versions of a shard have no gaps; etags never come twice; what a reader is told of a version stays so.

use crate::model::{
    Between, DocumentChange, DocumentFields, DocumentVersion, Documents, Rules, Slot, Verdict,
};
use crate::time::Time;
use astrarium_database::ChangeFeedPosition;
use astrarium_kv::contract::META_SHARD;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash as _, Hasher as _};

/// Events that are kept for who wants to know what went wrong.
const EVENTS_MAX: usize = 400;

/// What a client asks.
#[derive(Debug, Clone)]
pub(crate) enum ActorRequest {
    Change(DocumentChange),
    Read(Slot),
    /// All documents, of one partition or of the container.
    Feed(Option<u8>),
    /// Those with this `a`, of one partition or of the container.
    Equal(Option<u8>, i64),
    /// How many they are.
    Count(Option<u8>, i64),
    /// Those with at least this `n`, in its order.
    Ordered(Option<u8>, i64),
    /// The next changes of one partition or of the container, so many at most.
    Changes(Option<u8>, FeedCursor, usize),
    /// Another indexing policy.
    Policy(bool),
}

/// Where the readers of a change feed are.
#[derive(Debug, Clone, Default)]
pub(crate) struct FeedCursor {
    /// Nothing at the beginning.
    pub(crate) position: Option<ChangeFeedPosition>,
    /// The operation that wrote what was seen last of each document.
    seen: BTreeMap<Slot, u64>,
}

/// A document as somebody is shown it.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) slot: Slot,
    pub(crate) content: DocumentFields,
    pub(crate) lsn: u64,
    pub(crate) etag: String,
    pub(crate) timestamp: u64,
}

/// What a client is told.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    /// It is done; what was written.
    Changed(Vec<Shown>),
    Verdict(Verdict),
    Document(Option<Shown>),
    Documents(Vec<Shown>),
    /// A page of changes, and where it ends.
    Changes(Vec<Shown>, ChangeFeedPosition),
    /// Operations that wrote the documents found, in the order of the rows.
    Found(Vec<u64>),
    Counted(u64),
    /// Perhaps it is done, perhaps not.
    Unsure(String),
    /// What nobody should be told.
    Wrong(String),
}

struct OpenRequest {
    request: ActorRequest,
    /// The newest state when it began.
    began: usize,
    clock: Between,
    /// The state after its commit.
    committed: Option<usize>,
    is_over: bool,
}

pub(crate) struct CommitHistory {
    rules: Rules,
    /// The latest time that anybody saw.
    latest: u64,
    time: Time,
    /// After each commit of a request.
    states: Vec<Documents>,
    open: BTreeMap<u64, OpenRequest>,
    versions: BTreeMap<u64, u64>,
    etags: BTreeSet<(Slot, String)>,
    /// By what is followed.
    cursors: BTreeMap<Option<u8>, FeedCursor>,
    pub(crate) problems: Vec<String>,
    pub(crate) events: VecDeque<String>,
    fingerprint: DefaultHasher,
    operations: u64,
}

impl CommitHistory {
    pub(crate) fn new(rules: Rules, time: Time) -> CommitHistory {
        CommitHistory {
            rules,
            latest: 0,
            time,
            states: vec![Documents::new()],
            open: BTreeMap::new(),
            versions: BTreeMap::new(),
            etags: BTreeSet::new(),
            cursors: BTreeMap::new(),
            problems: Vec::new(),
            events: VecDeque::new(),
            fingerprint: DefaultHasher::new(),
            operations: 0,
        }
    }

    /// A number for the next request.
    pub(crate) fn next_operation(&mut self) -> u64 {
        self.operations += 1;
        self.operations
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint.finish()
    }

    /// How many requests have changed something.
    pub(crate) fn change_count(&self) -> usize {
        self.states.len() - 1
    }

    /// So many documents are counted, as storage keeps the sum.
    pub(crate) fn check_count(&mut self, count: u64) {
        // Those that have expired may be erased or not.
        let clock = self.clock();
        let lives = self.documents().values().map(|one| one.life(self.rules, clock));
        let certain = lives.filter(|(_, expired)| !expired).count() as u64;
        let expected = certain..=self.documents().len() as u64;
        if !expected.contains(&count) {
            self.problem(format!("{count} documents are counted, and there are {expected:?}"));
        }
    }

    fn documents(&self) -> &Documents {
        self.states.last().expect("there is a first state")
    }

    pub(crate) fn note(&mut self, event: impl Into<String>) {
        let event = event.into();
        event.hash(&mut self.fingerprint);
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// A task has gone on, and the clock may have moved.
    pub(crate) fn note_step(&mut self, place: usize) {
        (place, self.time.wall_seconds()).hash(&mut self.fingerprint);
        self.look_at_clock();
    }

    fn look_at_clock(&mut self) {
        let clock = self.clock();
        for open in self.open.values_mut().filter(|open| !open.is_over) {
            open.clock = (open.clock.0.min(clock.0), open.clock.1.max(clock.1));
        }
    }

    /// The time; and the latest that it was, if documents expire: what had expired then may be erased, and stays gone when the
    /// clock is set back.
    fn clock(&mut self) -> Between {
        let now = self.time.wall_seconds();
        self.latest = self.latest.max(now);
        (now, if self.rules.ttl.is_some() { self.latest } else { now })
    }

    pub(crate) fn problem(&mut self, problem: String) {
        self.note(format!("PROBLEM: {problem}"));
        self.problems.push(problem);
    }

    pub(crate) fn begin(&mut self, operation: u64, request: &ActorRequest) {
        self.note(format!("{operation} begins: {request:?}"));
        let began = self.states.len() - 1;
        let (request, clock) = (request.clone(), self.clock());
        self.open.insert(operation, OpenRequest { request, began, clock, committed: None, is_over: false });
    }

    /// Nobody will hear how the requests under way end.
    pub(crate) fn abandon(&mut self) {
        self.open.values_mut().for_each(|open| open.is_over = true);
    }

    pub(crate) fn committed(&mut self, operation: u64, shard: u64, version: u64) {
        self.note(format!("{operation} commits version {version} of shard {shard}"));
        self.look_at_clock();
        // A range of a new container is founded with version 1, which stands for the container's creation.
        let founded = u64::from(shard != META_SHARD.0);
        let before = self.versions.insert(shard, version).unwrap_or(founded);
        if version != before + 1 {
            self.problem(format!("shard {shard} goes from version {before} to {version}"));
        }
        // A write may have to draw stamps, which is a commit of the catalog.
        if shard == META_SHARD.0 {
            return;
        }
        let Some(open) = self.open.get_mut(&operation) else { return };
        let ActorRequest::Change(action) = &open.request else { return };
        let (action, clock) = (action.clone(), open.clock);
        let is_second = open.committed.replace(self.states.len()).is_some();
        let mut documents = self.documents().clone();
        if is_second || !action.answers(&documents, self.rules, clock).contains(&Verdict::Done) {
            self.problem(format!(
                "operation {operation} commits what it must not: {action:?}, twice: {is_second}"
            ));
        }
        action.apply(&mut documents, self.rules, version, clock);
        self.states.push(documents);
    }

    pub(crate) fn end(&mut self, operation: u64, told: &Told) {
        self.note(format!("{operation} ends: {told:?}"));
        self.look_at_clock();
        let Some(open) = self.open.get_mut(&operation) else { return };
        open.is_over = true;
        let (request, committed) = (open.request.clone(), open.committed);
        let is_right = match told {
            Told::Unsure(why) => return self.note(why.clone()),
            Told::Wrong(why) => {
                self.problem(why.clone());
                false
            }
            Told::Changed(shown) => committed.is_some_and(|state| self.has_written(operation, state, shown)),
            Told::Verdict(answer) => {
                committed.is_none()
                    && self.is_right_once(operation, |documents, rules, clock| match &request {
                        ActorRequest::Change(action) => {
                            action.answers(documents, rules, clock).contains(answer)
                        }
                        _ => false,
                    })
            }
            Told::Document(_)
            | Told::Documents(_)
            | Told::Changes(..)
            | Told::Found(_)
            | Told::Counted(_) => self.is_right_once(operation, |documents, rules, clock| {
                is_right(&request, told, &Moment { documents, rules, clock })
            }),
        };
        if !is_right {
            let (began, last) = (self.open[&operation].began, self.states.len() - 1);
            let seen: Vec<String> = (began..=last).map(|state| print(&self.states[state])).collect();
            self.problem(format!(
                "operation {operation} is told what is not so: {request:?}, {told:?}; states {seen:#?}"
            ));
        }
        self.open.remove(&operation);
        if let (ActorRequest::Changes(partition, mut cursor, _), Told::Changes(shown, position)) =
            (request, told)
        {
            cursor.seen.extend(shown.iter().map(|one| (one.slot, one.content.operation)));
            cursor.position = Some(position.clone());
            self.cursors.insert(partition, cursor);
        }
    }

    /// Where to go on with the changes of a partition or of the container.
    pub(crate) fn cursor(&self, partition: Option<u8>) -> FeedCursor {
        self.cursors.get(&partition).cloned().unwrap_or_default()
    }

    fn is_right_once(&self, operation: u64, is_right: impl Fn(&Documents, Rules, Between) -> bool) -> bool {
        let open = &self.open[&operation];
        self.states[open.began..].iter().any(|documents| is_right(documents, self.rules, open.clock))
    }

    /// Whether what a writer is shown is what it has written.
    fn has_written(&mut self, operation: u64, state: usize, shown: &[Shown]) -> bool {
        for one in shown {
            // A later action of the same batch may have changed the document again.
            let Some(version) = self.states[state].get(&one.slot) else { continue };
            let is_last = version.content == one.content;
            if is_last && !is_version(version, one) {
                return false;
            }
            if !self.etags.insert((one.slot, one.etag.clone())) {
                self.problem(format!(
                    "operation {operation} is told an etag that was there before: {}",
                    one.etag
                ));
            }
        }
        shown.last().is_none_or(|last| {
            self.states[state].get(&last.slot).is_none_or(|version| version.content == last.content)
        })
    }
}

/// A state, looked at while the clock was somewhere.
struct Moment<'a> {
    documents: &'a Documents,
    rules: Rules,
    clock: Between,
}

fn is_right(request: &ActorRequest, told: &Told, view: &Moment<'_>) -> bool {
    match (request, told) {
        (ActorRequest::Read(slot), Told::Document(shown)) => {
            let found = view.documents.get(slot);
            let (alive, expired) = found.map_or((false, true), |one| one.life(view.rules, view.clock));
            match (found, shown) {
                (Some(version), Some(shown)) => alive && shown.slot == *slot && is_version(version, shown),
                (_, None) => expired,
                (None, Some(_)) => false,
            }
        }
        (ActorRequest::Feed(partition), Told::Documents(shown)) => {
            let is_shown =
                |one: &Shown| view.documents.get(&one.slot).is_some_and(|version| is_version(version, one));
            let operations: Vec<Slot> = shown.iter().map(|one| one.slot).collect();
            shown.iter().all(is_shown) && view.are(&operations, |slot, _| belongs(*partition, slot))
        }
        (ActorRequest::Changes(partition, cursor, count), Told::Changes(shown, _)) => {
            view.are_next(*partition, cursor, *count, shown)
        }
        (ActorRequest::Equal(partition, a), Told::Found(operations)) => {
            view.slots(operations).is_some_and(|slots| {
                view.are(&slots, |slot, content| belongs(*partition, slot) && content.a == *a)
            })
        }
        (ActorRequest::Ordered(partition, n), Told::Found(operations)) => {
            let Some(slots) = view.slots(operations) else { return false };
            slots.is_sorted_by_key(|slot| view.documents[slot].content.n)
                && view.are(&slots, |slot, content| belongs(*partition, slot) && content.n >= *n)
        }
        (ActorRequest::Count(partition, a), Told::Counted(count)) => {
            let of = |(slot, version): &(&Slot, &std::sync::Arc<DocumentVersion>)| {
                belongs(*partition, **slot) && version.content.a == *a
            };
            let lives: Vec<(bool, bool)> =
                view.documents.iter().filter(of).map(|(_, one)| one.life(view.rules, view.clock)).collect();
            let certain = lives.iter().filter(|(_, expired)| !expired).count() as u64;
            let possible = lives.iter().filter(|(alive, _)| *alive).count() as u64;
            (certain..=possible).contains(count)
        }
        _ => false,
    }
}

fn belongs(partition: Option<u8>, slot: Slot) -> bool {
    partition.is_none_or(|partition| partition == slot.0)
}

fn is_version(version: &DocumentVersion, shown: &Shown) -> bool {
    version.content == shown.content
        && version.lsn == shown.lsn
        && version.learn(&shown.etag, shown.timestamp)
}

impl Moment<'_> {
    /// Where the documents stand that these operations wrote; nothing if one of them is not there.
    fn slots(&self, operations: &[u64]) -> Option<Vec<Slot>> {
        let slot = |operation: &u64| {
            let mut all = self.documents.iter();
            all.find(|(_, version)| version.content.operation == *operation).map(|(slot, _)| *slot)
        };
        operations.iter().map(slot).collect()
    }

    /// Whether these are the oldest changes that were not seen, in their order, and as many as there are or fit.
    fn are_next(&self, partition: Option<u8>, cursor: &FeedCursor, count: usize, shown: &[Shown]) -> bool {
        let is_new = |slot: Slot, content: &DocumentFields| {
            belongs(partition, slot) && cursor.seen.get(&slot) != Some(&content.operation)
        };
        let is_shown =
            |one: &Shown| self.documents.get(&one.slot).is_some_and(|version| is_version(version, one));
        let slots: Vec<Slot> = shown.iter().map(|one| one.slot).collect();
        // A commit comes whole, also where it is more than was asked for.
        let last = shown.last().filter(|_| shown.len() >= count).map_or(u64::MAX, |last| last.lsn);
        shown.is_sorted_by_key(|one| one.lsn)
            && shown.iter().all(is_shown)
            && self.are(&slots, |slot, content| is_new(slot, content) && self.documents[&slot].lsn <= last)
    }

    /// Whether these are the documents that a condition chooses, each once.
    fn are(&self, slots: &[Slot], is_chosen: impl Fn(Slot, &DocumentFields) -> bool) -> bool {
        let unique: BTreeSet<Slot> = slots.iter().copied().collect();
        unique.len() == slots.len()
            && self.documents.iter().all(|(slot, version)| {
                let (alive, expired) = version.life(self.rules, self.clock);
                let chosen = is_chosen(*slot, &version.content);
                if unique.contains(slot) { chosen && alive } else { !chosen || expired }
            })
            && unique.iter().all(|slot| self.documents.contains_key(slot))
    }
}

fn print(documents: &Documents) -> String {
    let one = |(slot, version): (&Slot, &std::sync::Arc<DocumentVersion>)| {
        format!("{slot:?} {:?} lsn {} etag {:?}", version.content, version.lsn, version.etag.get())
    };
    documents.iter().map(one).collect::<Vec<_>>().join("; ")
}
