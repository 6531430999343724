//! Whether a history can be that of one container that keeps its promises.
//!
//! In: a [`History`]. Out: what is wrong with it. Writes of a logical partition are in the order of their LSNs, also across
//! splits; so each is to be seen in that order by everybody. Checked are
//! - feeds: every acknowledged write is there, once under one chain of positions, with the LSN that its writer was told; nothing
//!   else is there but writes without an answer, and these once; LSNs of a logical partition never go back; the version before
//!   is the one that came before, and the one that a conditional write or a script was made from; whoever hears that there is nothing new has seen all that had ended before he asked;
//! - reads: what was acknowledged, read or told by a feed before is there, or something later. That is more than a session promises, and holds
//!   for one server with and without a token;
//! - the whole: no two writes of a document share an LSN, except those of one batch.
//!
//! Not here: session tokens themselves (`workload` compares them at once).

use super::{
    DocumentName, EventRecord, FeedKind, FollowedScope, FollowerRecord, History, PageRecord, Stamp,
    WriteRecord,
};
use std::collections::{BTreeMap, BTreeSet};

/// Problems told at most.
const PROBLEMS_MAX: usize = 20;

/// What is wrong with a history.
pub fn check(history: &History) -> Vec<String> {
    let mut checker = HistoryChecker::new(history);
    checker.check_order();
    let (lower, upper) = halves(history);
    for follower in
        history.followers.iter().filter(|follower| !matches!(follower.scope, FollowedScope::Half(_)))
    {
        checker.check_follower(follower);
    }
    checker.check_halves(&lower, &upper);
    checker.check_reads();
    checker.problems.truncate(PROBLEMS_MAX);
    checker.problems
}

/// A write with its place in the order, where that is known.
#[derive(Debug, Clone)]
struct Placed<'a> {
    write: &'a WriteRecord,
    lsn: Option<u64>,
}

struct HistoryChecker<'a> {
    history: &'a History,
    /// Puts by their number.
    puts: BTreeMap<u64, Placed<'a>>,
    /// Acknowledged deletes by document and LSN.
    deletes: BTreeMap<(DocumentName, u64), &'a WriteRecord>,
    /// Deletes without an answer, by document.
    unsure_deletes: BTreeMap<DocumentName, Vec<&'a WriteRecord>>,
    problems: Vec<String>,
}

impl<'a> HistoryChecker<'a> {
    fn new(history: &'a History) -> HistoryChecker<'a> {
        let (mut puts, mut deletes) = (BTreeMap::new(), BTreeMap::new());
        let mut unsure_deletes: BTreeMap<DocumentName, Vec<&WriteRecord>> = BTreeMap::new();
        for write in &history.writes {
            match (write.version, write.lsn) {
                (Some(version), lsn) => drop(puts.insert(version, Placed { write, lsn })),
                (None, Some(lsn)) => drop(deletes.insert((write.name, lsn), write)),
                (None, None) => unsure_deletes.entry(write.name).or_default().push(write),
            }
        }
        // Where a writer got no answer, others may have seen what became of it.
        let events =
            history.followers.iter().flat_map(|follower| follower.pages.iter().flat_map(|page| &page.events));
        let seen = events.filter_map(|event| Some((event.version?, event.lsn)));
        let read = history.reads.iter().filter_map(|read| Some((read.version?, read.lsn?)));
        for (version, lsn) in seen.chain(read) {
            if let Some(put) = puts.get_mut(&version) {
                put.lsn.get_or_insert(lsn);
            }
        }
        HistoryChecker { history, puts, deletes, unsure_deletes, problems: history.problems.clone() }
    }

    fn problem(&mut self, problem: String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    /// Writes of a document have different LSNs; those of one batch name each document once.
    fn check_order(&mut self) {
        let mut places = BTreeSet::new();
        for write in &self.history.writes {
            if let Some(lsn) = write.lsn
                && !places.insert((write.name, lsn))
            {
                self.problem(format!("two writes have one LSN: {write:?}"));
            }
        }
    }

    fn check_follower(&mut self, follower: &FollowerRecord) {
        let context = format!("{:?} feed of {:?}", follower.kind, follower.scope);
        self.check_events(&context, follower.kind, &follower.pages);
        let is_in_scope = |name: DocumentName| match follower.scope {
            FollowedScope::Partition(partition) => name.0 == partition,
            FollowedScope::All | FollowedScope::Half(_) => true,
        };
        if let Some(event) = events(&follower.pages).find(|event| !is_in_scope(event.name)) {
            self.problem(format!("{context} shows {event:?}"));
        }
        self.check_complete(&context, follower.kind, &follower.pages, is_in_scope);
    }

    /// The two halves have each logical partition once, and together all of it.
    fn check_halves(&mut self, lower: &[&FollowerRecord], upper: &[&FollowerRecord]) {
        for (lower, upper) in lower.iter().zip(upper) {
            let partitions = |half: &FollowerRecord| {
                events(&half.pages).map(|event| event.name.0).collect::<BTreeSet<u16>>()
            };
            let (below, above) = (partitions(lower), partitions(upper));
            for partition in below.intersection(&above) {
                self.problem(format!("partition {partition} is in both halves"));
            }
            for (half, others) in [(lower, &above), (upper, &below)] {
                let context = format!("{:?} feed of {:?}", half.kind, half.scope);
                self.check_events(&context, half.kind, &half.pages);
                self.check_complete(&context, half.kind, &half.pages, |name| !others.contains(&name.0));
            }
        }
    }

    /// What one chain of pages shows is right as far as it goes.
    fn check_events(&mut self, context: &str, kind: FeedKind, pages: &[PageRecord]) {
        let mut last_lsns: BTreeMap<u16, u64> = BTreeMap::new();
        let mut states: BTreeMap<DocumentName, (u64, Option<u64>)> = BTreeMap::new();
        let mut unsure: BTreeMap<DocumentName, usize> = BTreeMap::new();
        for event in events(pages) {
            let last = last_lsns.insert(event.name.0, event.lsn).unwrap_or_default();
            if event.lsn < last {
                self.problem(format!("{context}: {event:?} comes after LSN {last} of its partition"));
            }
            let before = states.insert(event.name, (event.lsn, event.version));
            if before.is_some_and(|(lsn, _)| event.lsn <= lsn) {
                self.problem(format!("{context}: {event:?} comes after {before:?} of its document"));
            }
            if kind == FeedKind::Versions && before.and_then(|(_, version)| version) != event.previous {
                self.problem(format!("{context}: {event:?} follows {before:?}"));
            }
            let made_from =
                event.version.and_then(|version| self.puts.get(&version)).and_then(|put| put.write.replaces);
            if kind == FeedKind::Versions && made_from.is_some() && made_from != event.previous {
                self.problem(format!("{context}: an update is lost: {event:?} was made from {made_from:?}"));
            }
            if let Some(wrong) = self.wrong_write(event, &mut unsure) {
                self.problem(format!("{context}: {event:?}: {wrong}"));
            }
        }
    }

    /// What is wrong with the write that an event tells of.
    fn wrong_write(&self, event: &EventRecord, unsure: &mut BTreeMap<DocumentName, usize>) -> Option<String> {
        if let Some(version) = event.version {
            let Some(put) = self.puts.get(&version) else { return Some("nobody wrote that".to_owned()) };
            let is_so = put.write.name == event.name && put.lsn == Some(event.lsn);
            return (!is_so).then(|| format!("it is {put:?}"));
        }
        if self.deletes.contains_key(&(event.name, event.lsn)) {
            return None;
        }
        let used = unsure.entry(event.name).or_default();
        *used += 1;
        let possible = self.unsure_deletes.get(&event.name).map_or(0, Vec::len);
        (*used > possible).then(|| "nobody deleted that".to_owned())
    }

    /// Whenever a reader hears that there is nothing new, it has seen all that had ended before it asked.
    fn check_complete(
        &mut self,
        context: &str,
        kind: FeedKind,
        pages: &[PageRecord],
        is_in_scope: impl Fn(DocumentName) -> bool,
    ) {
        let mut writes: Vec<&WriteRecord> = self
            .history
            .writes
            .iter()
            .filter(|write| write.lsn.is_some() && is_in_scope(write.name))
            .collect();
        writes.sort_by_key(|write| write.ended);
        let by_name = self.by_name();
        let mut ended = writes.into_iter().peekable();
        let mut missing: Vec<&WriteRecord> = Vec::new();
        let mut seen: BTreeMap<DocumentName, BTreeSet<u64>> = BTreeMap::new();
        for page in pages {
            for event in &page.events {
                seen.entry(event.name).or_default().insert(event.lsn);
            }
            if !page.events.is_empty() {
                continue;
            }
            while let Some(write) = ended.next_if(|write| write.ended < page.began) {
                missing.push(write);
            }
            let nothing = BTreeSet::new();
            for write in std::mem::take(&mut missing) {
                let lsns = seen.get(&write.name).unwrap_or(&nothing);
                let lsn = write.lsn.unwrap_or_default();
                let is_seen = match kind {
                    FeedKind::Versions => lsns.contains(&lsn),
                    // A newer version takes the place of this one, and a delete leaves nothing to see.
                    FeedKind::Latest => {
                        write.version.is_none()
                            || lsns.last().is_some_and(|last| *last >= lsn)
                            || is_replaced(&by_name, write, page.ended)
                    }
                };
                if !is_seen {
                    self.problem(format!(
                        "{context}: nothing new at {}..{}, but {write:?} was not seen",
                        page.began, page.ended
                    ));
                }
            }
        }
        if ended.peek().is_some() {
            self.problem(format!("{context}: it was not followed to the end"));
        }
    }

    fn by_name(&self) -> BTreeMap<DocumentName, Vec<Placed<'a>>> {
        let mut by_name: BTreeMap<DocumentName, Vec<Placed<'a>>> = BTreeMap::new();
        for write in &self.history.writes {
            let known = write.version.and_then(|version| self.puts.get(&version)?.lsn);
            by_name.entry(write.name).or_default().push(Placed { write, lsn: write.lsn.or(known) });
        }
        for writes in by_name.values_mut() {
            // Those of unknown place come first.
            writes.sort_by_key(|placed| placed.lsn);
        }
        by_name
    }

    /// Every read sees what was there when it began, or something later.
    fn check_reads(&mut self) {
        let by_name = self.by_name();
        // What is known from some time on: somebody wrote, read, or heard of this LSN.
        let mut known: Vec<(Stamp, DocumentName, u64)> = Vec::new();
        known.extend(
            self.history.writes.iter().filter_map(|write| Some((write.ended, write.name, write.lsn?))),
        );
        for read in &self.history.reads {
            let lsn = read.version.and_then(|version| self.puts.get(&version)?.lsn);
            known.extend(lsn.map(|lsn| (read.ended, read.name, lsn)));
        }
        let pages = self.history.followers.iter().flat_map(|follower| &follower.pages);
        known.extend(
            pages.flat_map(|page| page.events.iter().map(|event| (page.ended, event.name, event.lsn))),
        );
        known.sort_unstable();
        let mut known = known.into_iter().peekable();
        let mut floors: BTreeMap<DocumentName, u64> = BTreeMap::new();
        let mut reads: Vec<_> = self.history.reads.iter().collect();
        reads.sort_by_key(|read| read.began);
        for read in reads {
            while let Some((_, name, lsn)) = known.next_if(|(stamp, ..)| *stamp < read.began) {
                let floor = floors.entry(name).or_default();
                *floor = lsn.max(*floor);
            }
            let floor = floors.get(&read.name).copied().unwrap_or_default();
            let is_right = if let Some(version) = read.version {
                self.puts.get(&version).is_some_and(|put| {
                    put.write.name == read.name
                        && put.lsn.is_none_or(|lsn| lsn >= floor && read.lsn.is_none_or(|told| told == lsn))
                        && put.write.began < read.ended
                })
            } else {
                let writes = by_name.get(&read.name).map_or(&[][..], Vec::as_slice);
                floor == 0 || may_be_deleted(writes, floor, read.ended)
            };
            if !is_right {
                let put = read.version.and_then(|version| self.puts.get(&version).cloned());
                self.problem(format!("{read:?} although LSN {floor} was known before; its write: {put:?}"));
            }
        }
    }
}

fn halves(history: &History) -> (Vec<&FollowerRecord>, Vec<&FollowerRecord>) {
    let half = |is_upper: bool| {
        let own = move |follower: &&FollowerRecord| follower.scope == FollowedScope::Half(is_upper);
        history.followers.iter().filter(own).collect()
    };
    (half(false), half(true))
}

fn events(pages: &[PageRecord]) -> impl Iterator<Item = &EventRecord> {
    pages.iter().flat_map(|page| &page.events)
}

/// Whether one of these writes, in their order, may have left no document after an LSN and before some time.
fn may_be_deleted(writes: &[Placed<'_>], floor: u64, before: Stamp) -> bool {
    let unsure = writes.partition_point(|placed| placed.lsn.is_none());
    let later = writes.partition_point(|placed| placed.lsn.is_none_or(|lsn| lsn < floor));
    let mut possible = writes[..unsure].iter().chain(&writes[later..]);
    possible.any(|placed| placed.write.version.is_none() && placed.write.began < before)
}

/// Whether a later write to the same document may have happened before some time.
fn is_replaced(
    by_name: &BTreeMap<DocumentName, Vec<Placed<'_>>>,
    write: &WriteRecord,
    before: Stamp,
) -> bool {
    let others = by_name.get(&write.name).into_iter().flatten();
    others
        .filter(|other| other.write.began < before)
        .any(|other| other.lsn.is_none_or(|lsn| Some(lsn) > write.lsn))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::ReadRecord;

    const NAME: DocumentName = (1, 1);

    fn put(version: u64, lsn: Option<u64>, began: Stamp) -> WriteRecord {
        WriteRecord { name: NAME, version: Some(version), began, ended: began + 1, lsn, replaces: None }
    }

    fn event(version: Option<u64>, lsn: u64, previous: Option<u64>) -> EventRecord {
        EventRecord { name: NAME, version, lsn, previous }
    }

    fn follower(kind: FeedKind, events: Vec<EventRecord>) -> FollowerRecord {
        let page = PageRecord { began: 90, ended: 91, events };
        let end = PageRecord { began: 92, ended: 93, events: Vec::new() };
        FollowerRecord { kind, scope: FollowedScope::All, pages: vec![page, end] }
    }

    fn good() -> History {
        let delete =
            WriteRecord { name: NAME, version: None, began: 5, ended: 6, lsn: Some(3), replaces: None };
        let read = |version, lsn, began| ReadRecord { name: NAME, version, lsn, began, ended: began + 1 };
        let versions = vec![
            event(Some(1), 1, None),
            event(Some(2), 2, Some(1)),
            event(None, 3, Some(2)),
            event(Some(3), 4, None),
        ];
        History {
            writes: vec![put(1, Some(1), 1), put(2, Some(2), 3), delete, put(3, None, 10)],
            reads: vec![read(Some(2), Some(2), 4), read(None, None, 7), read(Some(3), Some(4), 20)],
            followers: vec![
                follower(FeedKind::Versions, versions),
                follower(FeedKind::Latest, vec![event(Some(2), 2, None), event(Some(3), 4, None)]),
            ],
            problems: Vec::new(),
        }
    }

    #[test]
    fn a_good_history_has_no_problems() {
        assert_eq!(check(&good()), Vec::<String>::new());
    }

    #[track_caller]
    fn is_found(change: impl FnOnce(&mut History)) {
        let mut history = good();
        change(&mut history);
        assert!(!check(&history).is_empty());
    }

    fn versions(history: &mut History) -> &mut Vec<EventRecord> {
        &mut history.followers[0].pages[0].events
    }

    #[test]
    fn what_feeds_do_wrong_is_found() {
        is_found(|history| drop(versions(history).drain(1..2)));
        is_found(|history| drop(versions(history).drain(2..3)));
        is_found(|history| {
            let twice = versions(history)[1].clone();
            versions(history).insert(2, twice);
        });
        is_found(|history| versions(history).swap(0, 1));
        is_found(|history| versions(history)[1].previous = None);
        is_found(|history| versions(history)[1].lsn = 7);
        is_found(|history| versions(history)[3].version = Some(9));
        is_found(|history| {
            // Without an answer and an event nobody knows of the write, so its writer is told.
            history.followers[1].pages[0].events.pop();
            history.writes[3].lsn = Some(4);
        });
    }

    #[test]
    fn lost_updates_are_found() {
        let mut history = good();
        history.writes[1].replaces = Some(1);
        assert_eq!(check(&history), Vec::<String>::new());
        is_found(|history| history.writes[1].replaces = Some(3));
        is_found(|history| history.writes[3].replaces = Some(2));
    }

    #[test]
    fn what_reads_do_wrong_is_found() {
        is_found(|history| history.reads[0].version = Some(1));
        is_found(|history| (history.reads[0].version, history.reads[0].began) = (None, 4));
        is_found(|history| history.reads[1] = ReadRecord { version: Some(2), ..history.reads[1].clone() });
        is_found(|history| {
            history.reads[2] = ReadRecord { version: None, ..history.reads[2].clone() }.after(100);
        });
    }

    impl ReadRecord {
        fn after(mut self, began: Stamp) -> ReadRecord {
            (self.began, self.ended) = (began, began + 1);
            self
        }
    }

    #[test]
    fn one_lsn_for_two_writes_is_found() {
        is_found(|history| history.writes[1].lsn = Some(1));
    }
}
