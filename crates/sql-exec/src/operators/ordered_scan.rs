//! The ordered scan: the documents of one range in the order of an index, so that a page reads as many as it gives.
//!
//! In: entries in order, from the position of the page before. Out: rows in that order, document by document.
//! Terms of long text and of arrays and objects stand for several values (`keys::index_entry`): the documents of such a
//! term are sorted among themselves. An index of one path has no entries for documents without it: they are equal in the
//! order, before all others, and read in the order of their numbers.
//! Invariant: the rows and their order are those that sorting everything would give.

use super::project::output;
use super::sort::{RowOrder, SortedRow};
use super::top_k::{TopK, sort_keys};
use crate::access::lacking;
use crate::budget::{charge_documents, charge_row};
use crate::error::ExecuteError;
use crate::execution::Execution;
use crate::frame::Datum;
use crate::long_key::{AfterRow, LastRow};
use crate::pipeline::Flow;
use crate::resume::keys_fit;
use crate::rows::{AccessWork, PricedWork};
use astrarium_catalog::container::Range;
use astrarium_env::Instant;
use astrarium_index::entry::read_entry;
use astrarium_index::finder::{Error as IndexError, charge_entries};
use astrarium_index::{Finder, Ordered};
use astrarium_keys::body::Body;
use astrarium_kv::{Direction, KeyRange, ScanLimit, just_after};
use astrarium_sql_plan::evaluate::EvaluateError;
use astrarium_sql_plan::physical::{IndexPlan, Lacking};
use astrarium_store::{DocumentMemory, FeedReader, FeedScope, UnreadDocuments};
use astrarium_value::Value;
use bytes::Bytes;
use std::collections::VecDeque;

/// Entries read first, and at most, at once.
const STEP: (usize, usize) = (16, 512);

/// The index of a row that comes after all rows of its document.
pub(crate) const WHOLE_DOCUMENT: u32 = u32::MAX;

/// What all ranges of an ordered scan share.
#[derive(Clone, Copy)]
pub(crate) struct Scanned<'a> {
    pub(crate) reader: &'a FeedReader,
    pub(crate) scope: &'a FeedScope,
    pub(crate) plan: &'a IndexPlan,
    pub(crate) ordered: &'a Ordered,
    /// Rows that the page needs at most.
    pub(crate) wanted: u64,
}

/// Reads the documents of one range in order.
pub(crate) struct OrderedScan<'a> {
    scanned: Scanned<'a>,
    range: &'a Range,
    finder: Finder,
    after: Option<AfterRow>,
    /// What is still to be read, the next one first.
    sections: VecDeque<Section>,
    step: usize,
    /// Documents that were read, with the section they are in, and those that come after them.
    bodies: VecDeque<Body>,
    unread: UnreadDocuments,
    is_lacking: bool,
    /// The memory of the documents that were read last.
    memory: DocumentMemory,
    /// Entries of one shortened term, whose documents come after those that were read.
    group: Option<KeyRange>,
    /// Rows that were made, in order.
    pub(crate) rows: VecDeque<SortedRow>,
    /// The last document that was looked at: all before it in the order were.
    examined: Option<LastRow>,
    /// What documents cost that gave no row, since the last row.
    unpaid: PricedWork,
    /// Whether the page's time is over, and all rows up to the last document looked at were made.
    pub(crate) is_paused: bool,
}

/// Documents that come one after another.
enum Section {
    /// Those that have an entry among these.
    Entries(KeyRange),
    /// Those without the path, from a number on: among others that have been given or will be, or as they are listed.
    Lacking(Option<u64>, Lacking, Option<Vec<u64>>),
}

impl<'a> OrderedScan<'a> {
    pub(crate) fn new(
        scanned: Scanned<'a>,
        (range, finder): (&'a Range, Finder),
        lacking: Option<Lacking>,
        after: Option<AfterRow>,
    ) -> OrderedScan<'a> {
        let mut scan = OrderedScan {
            scanned,
            range,
            finder,
            after,
            sections: VecDeque::new(),
            step: STEP.0,
            bodies: VecDeque::new(),
            unread: UnreadDocuments::default(),
            is_lacking: false,
            memory: scanned.reader.document_memory(),
            group: None,
            rows: VecDeque::new(),
            examined: None,
            unpaid: PricedWork::default(),
            is_paused: false,
        };
        let backward = scanned.ordered.backward;
        // Where a page goes on in the second section, the first is behind it.
        let within = is_lacking(scan.after.as_ref());
        let entries = Section::Entries(scan.entries(lacking.is_none() || within != Some(true)));
        scan.sections = match (lacking, backward, within) {
            (None, ..) | (_, false, Some(false)) => VecDeque::from([entries]),
            (Some(way), true, Some(true)) => VecDeque::from([scan.lacking(way)]),
            (Some(way), false, _) => VecDeque::from([scan.lacking(way), entries]),
            (Some(way), true, _) => VecDeque::from([entries, scan.lacking(way)]),
        };
        scan
    }

    fn direction(&self) -> Direction {
        if self.scanned.ordered.backward { Direction::Backward } else { Direction::Forward }
    }

    /// The row, or the place before it, that the page comes after.
    fn after_row(&self) -> Option<&LastRow> {
        self.after.as_ref().map(|after| &after.row)
    }

    /// The entries to read, from a position on if it is among them. Where the position's term is shortened, all of its
    /// documents.
    fn entries(&self, from_position: bool) -> KeyRange {
        let ordered = self.scanned.ordered;
        let prefix = ordered.family.prefix(self.finder.shard);
        let mut entries = self.finder.keys(ordered.family, &ordered.within);
        let Some((keys, (number, index))) = self.after_row().filter(|_| from_position) else {
            return entries;
        };
        // A document that was looked at to its end does not come again, so every page gets further.
        let is_over = *index == WHOLE_DOCUMENT;
        let terms = [&prefix[..], &ordered.terms(keys)].concat();
        let shortened = ordered.shortened_length(&terms[prefix.len()..]);
        let at = [&terms[..], &number.to_be_bytes()].concat();
        let bound: Bytes = match (ordered.backward, shortened.map(|length| &terms[..prefix.len() + length])) {
            (false, None) if is_over => just_after(&at),
            (false, None) => at.into(),
            (false, Some(group)) => group.to_vec().into(),
            (true, None) if is_over => at.into(),
            (true, None) => just_after(&at),
            (true, Some(group)) => KeyRange::prefix(group).end,
        };
        if ordered.backward {
            entries.end = entries.end.min(bound);
        } else {
            entries.start = entries.start.max(bound);
        }
        entries
    }

    /// The documents without the path, from a position on if it is among them.
    fn lacking(&self, way: Lacking) -> Section {
        let within = self.after_row().filter(|_| is_lacking(self.after.as_ref()) == Some(true));
        let first = match (within, self.direction()) {
            (Some((_, (number, WHOLE_DOCUMENT))), direction) => beyond(*number, direction),
            (Some((_, (number, _))), _) => Some(*number),
            (None, Direction::Forward) => Some(0),
            (None, Direction::Backward) => Some(u64::MAX),
        };
        Section::Lacking(first, way, None)
    }

    /// Where a next page goes on if this one ends after the last document looked at; none before there is one, or where its
    /// keys do not fit into a token.
    pub(crate) fn frontier(&self) -> Option<&LastRow> {
        self.examined.as_ref().filter(|(keys, _)| keys_fit(keys))
    }

    /// Reads on until there is a row, or the end, or the page's time is over.
    pub(crate) async fn fill(&mut self, execution: &mut Execution<'_>) -> Result<(), ExecuteError> {
        while self.rows.is_empty() {
            if let Some(body) = self.bodies.pop_front() {
                self.document(execution, body)?;
                continue;
            }
            if self.frontier().is_some() && execution.job.gauge.page_is_over() {
                self.is_paused = true;
                execution.access.priced.add(std::mem::take(&mut self.unpaid));
                return Ok(());
            }
            if !self.unread.is_empty() {
                self.read_documents(execution).await?;
                continue;
            }
            if let Some(group) = self.group.take() {
                self.sort_group(execution, group).await?;
                continue;
            }
            let Some(section) = self.sections.pop_front() else {
                execution.access.priced.add(std::mem::take(&mut self.unpaid));
                return Ok(());
            };
            let rest = match section {
                Section::Entries(entries) => self.read_entries(execution, entries).await?,
                Section::Lacking(first, way, listed) => {
                    self.read_lacking(execution, first, way, listed).await?
                }
            };
            if let Some(rest) = rest {
                self.sections.push_front(rest);
            } else {
                self.step = STEP.0;
            }
        }
        Ok(())
    }

    /// Reads the next entries and their documents; gives what is left.
    async fn read_entries(
        &mut self,
        execution: &mut Execution<'_>,
        mut entries: KeyRange,
    ) -> Result<Option<Section>, ExecuteError> {
        if entries.start >= entries.end {
            return Ok(None);
        }
        let (direction, ordered) = (self.direction(), self.scanned.ordered);
        let limit = ScanLimit { entry_count_max: self.step, byte_count_max: usize::MAX };
        let began = Instant::now();
        let batch = self.finder.snapshot.scan_keys(&entries, direction, limit).await;
        let batch = batch.map_err(IndexError::from)?;
        execution.access.lookup += began.elapsed();
        self.step = (self.step * 4).min(STEP.1);
        charge_entries(batch.keys.len())?;
        execution.count(AccessWork { entries: batch.keys.len() as u64, ..AccessWork::default() });
        let mut numbers = Vec::new();
        for key in batch.keys.iter() {
            let (terms, number) = read_entry(key).map_err(IndexError::from)?;
            if let Some(length) = ordered.shortened_length(terms) {
                self.group = Some(self.finder.keys_with_terms(ordered.family, &terms[..length]));
                break;
            }
            numbers.push(number);
        }
        self.is_lacking = false;
        self.find_documents(&numbers).await?;
        let has_more = match (&self.group, batch.keys.last(), direction) {
            (Some(group), _, Direction::Forward) => {
                entries.start = group.end.clone();
                true
            }
            (Some(group), _, Direction::Backward) => {
                entries.end = group.start.clone();
                true
            }
            (None, Some(key), Direction::Forward) => {
                entries.start = just_after(key);
                batch.more
            }
            (None, Some(key), Direction::Backward) => {
                entries.end = key.to_vec().into();
                batch.more
            }
            (None, None, _) => false,
        };
        Ok(has_more.then_some(Section::Entries(entries)))
    }

    /// Reads the next documents without the path; gives what is left.
    async fn read_lacking(
        &mut self,
        execution: &mut Execution<'_>,
        first: Option<u64>,
        way: Lacking,
        mut listed: Option<Vec<u64>>,
    ) -> Result<Option<Section>, ExecuteError> {
        let Some(from) = first else { return Ok(None) };
        let direction = self.direction();
        if way == Lacking::Listed && listed.is_none() {
            listed = Some(self.list_lacking(execution).await?);
        }
        let numbers = match &listed {
            Some(listed) => numbers_from(listed, from, direction, self.step),
            None => self.scanned.reader.numbers(self.range, from, direction, self.step).await?,
        };
        let Some(furthest) = numbers.last().copied() else { return Ok(None) };
        self.step = (self.step * 4).min(STEP.1);
        self.is_lacking = true;
        self.find_documents(&numbers).await?;
        if self.unread.is_empty() {
            self.examined = Some((vec![Value::Undefined], (furthest, WHOLE_DOCUMENT)));
        }
        Ok(Some(Section::Lacking(beyond(furthest, direction), way, listed)))
    }

    async fn find_documents(&mut self, numbers: &[u64]) -> Result<(), ExecuteError> {
        let Scanned { reader, scope, .. } = self.scanned;
        self.unread = reader.find_documents(self.range, scope, numbers).await?;
        Ok(())
    }

    /// Reads the next of the documents that were found.
    async fn read_documents(&mut self, execution: &mut Execution<'_>) -> Result<(), ExecuteError> {
        let began = Instant::now();
        self.memory.keep(0);
        let bodies =
            self.scanned.reader.read_documents(self.range, &mut self.unread, &mut self.memory).await?;
        self.bodies = bodies.into();
        execution.access.load += began.elapsed();
        if let (true, true, Some(last)) = (self.is_lacking, self.bodies.is_empty(), self.unread.last_read()) {
            self.examined = Some((vec![Value::Undefined], (last, WHOLE_DOCUMENT)));
        }
        Ok(())
    }

    /// The numbers of documents without an entry.
    async fn list_lacking(&mut self, execution: &mut Execution<'_>) -> Result<Vec<u64>, ExecuteError> {
        let set = &self.scanned.plan.indexes.active;
        let (lacking, entries) = lacking(&self.finder, set, self.scanned.ordered.family).await?;
        execution.count(AccessWork { entries, ..AccessWork::default() });
        Ok(lacking)
    }

    /// Makes the rows of a document that belong to the section it was read for.
    fn document(&mut self, execution: &mut Execution<'_>, body: Body) -> Result<(), ExecuteError> {
        let number = body.header.number;
        execution.take_document(self.scanned.reader.container.rid(), body, 0)?;
        let given = self.after_row().filter(|(_, place)| place.0 == number);
        let (keys, mut rows) = document_rows(execution, self.is_lacking, given)?;
        let row_count = rows.len();
        if let (Some(AfterRow { long: Some(long), .. }), Some(keys)) = (&self.after, &keys) {
            let order = RowOrder::new(execution.plan.order_keys(), self.scanned.ordered.backward);
            rows.retain(|(index, _)| long.precedes((keys, (number, *index)), &order));
        }
        // A document of the other section is paid there, one that was given in part is paid already.
        let is_other = self.is_lacking
            && rows.is_empty()
            && keys.as_ref().is_some_and(|keys| !keys.iter().all(Value::is_undefined));
        if given.is_none() && !is_other && rows.len() == row_count {
            self.unpaid.add(execution.budget.end_document().0);
        }
        for (index, json) in rows {
            let keys = keys.clone().unwrap_or_default();
            let priced = std::mem::take(&mut self.unpaid);
            self.rows.push_back(SortedRow { keys, place: (number, index), json, priced });
        }
        let keys = if self.is_lacking { Some(vec![Value::Undefined]) } else { keys };
        self.examined = keys.map(|keys| (keys, (number, WHOLE_DOCUMENT))).or(self.examined.take());
        Ok(())
    }

    /// Sorts the documents of a shortened term, and makes their rows.
    async fn sort_group(
        &mut self,
        execution: &mut Execution<'_>,
        mut rest: KeyRange,
    ) -> Result<(), ExecuteError> {
        let Scanned { reader, scope, ordered, wanted, .. } = self.scanned;
        let plan = execution.plan;
        let order = RowOrder::new(plan.order_keys(), ordered.backward);
        let count_max = usize::try_from(wanted.saturating_add(1)).unwrap_or(usize::MAX);
        let mut sorted = TopK::new(order, self.after.clone(), count_max);
        loop {
            let limit = ScanLimit { entry_count_max: STEP.1, byte_count_max: usize::MAX };
            let batch = self.finder.snapshot.scan_keys(&rest, Direction::Forward, limit).await;
            let batch = batch.map_err(IndexError::from)?;
            let numbers = batch.keys.iter().map(|key| read_entry(key).map(|(_, number)| number));
            let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().map_err(IndexError::from)?;
            let mut unread = reader.find_documents(self.range, scope, &numbers).await?;
            while !unread.is_empty() {
                self.memory.keep(0);
                for body in reader.read_documents(self.range, &mut unread, &mut self.memory).await? {
                    let number = body.header.number;
                    execution.take_document(reader.container.rid(), body, 1)?;
                    execution.with_machine(|machine| {
                        let mut index = 0;
                        machine.visit(plan, &mut || {
                            sorted.take(&machine.row(), plan, (number, index))?;
                            index += 1;
                            Ok(Flow::Continue(()))
                        })
                    })?;
                }
            }
            match batch.keys.last() {
                Some(key) if batch.more => rest.start = just_after(key),
                _ => break,
            }
        }
        let mut rows = sorted.finish().0;
        if let Some(first) = rows.first_mut() {
            first.priced.add(std::mem::take(&mut self.unpaid));
        }
        self.rows.extend(rows);
        execution.budget.hold(0)?;
        // Its documents are in order only together: a page cannot end between them without a row.
        self.examined = None;
        Ok(())
    }
}

impl Execution<'_> {
    /// Binds a document, and counts it with its entries.
    fn take_document(
        &mut self,
        container: astrarium_keys::Rid,
        body: Body,
        entries: u64,
    ) -> Result<(), EvaluateError> {
        let bytes = body.text().len();
        charge_documents(1, bytes)?;
        self.budget.begin_document(bytes);
        self.count(AccessWork { documents: 1, bytes: bytes as u64, entries, ..AccessWork::default() });
        self.job.bind(&self.frame, Datum::Document(container, body));
        Ok(())
    }
}

/// The keys of a document, unless only a row would tell and it has none, and its rows, each with its index.
type DocumentRows = (Option<Vec<Value>>, Vec<(u32, Vec<u8>)>);

/// The rows of the document at hand: those without the sorted path, or those with it; without those up to the one that was
/// given, if it was given with the keys that it has.
fn document_rows(
    execution: &Execution<'_>,
    is_lacking: bool,
    given: Option<&LastRow>,
) -> Result<DocumentRows, EvaluateError> {
    let plan = execution.plan;
    // The keys of other sources are known only where these are bound.
    let mut read = Vec::new();
    for key in plan.order_keys() {
        key.key.slots(&mut read);
    }
    let are_of_documents =
        plan.sources.first().is_some_and(|source| read.iter().all(|slot| *slot == source.slot));
    let belongs = |keys: &Vec<Value>| !is_lacking || keys.iter().all(Value::is_undefined);
    let (mut keys, mut rows) = (None, Vec::new());
    execution.with_machine(|machine| {
        charge_row()?;
        if are_of_documents && !belongs(keys.insert(sort_keys(plan, &machine.row())?)) {
            return Ok(());
        }
        let mut index = 0;
        machine.visit(plan, &mut || {
            let keys = match &mut keys {
                Some(keys) => keys,
                none => none.insert(sort_keys(plan, &machine.row())?),
            };
            if belongs(keys)
                && given.is_none_or(|(last, place)| index > place.1 || last != keys)
                && let Some(json) = output(plan, &machine.row())?
            {
                rows.push((index, json));
            }
            index += 1;
            Ok(Flow::Continue(()))
        })
    })?;
    Ok((keys, rows))
}

/// Whether a position is among the documents without the path; none if there is no position.
pub(crate) fn is_lacking(after: Option<&AfterRow>) -> Option<bool> {
    after.map(|after| matches!(after.row.0[..], [Value::Undefined]))
}

/// The number next to one; none at the end of all numbers.
fn beyond(number: u64, direction: Direction) -> Option<u64> {
    match direction {
        Direction::Forward => number.checked_add(1),
        Direction::Backward => number.checked_sub(1),
    }
}

/// Up to so many numbers of a sorted list from one on, upwards or downwards.
fn numbers_from(listed: &[u64], first: u64, direction: Direction, count_max: usize) -> Vec<u64> {
    match direction {
        Direction::Forward => {
            let start = listed.partition_point(|number| *number < first);
            listed[start..].iter().take(count_max).copied().collect()
        }
        Direction::Backward => {
            let end = listed.partition_point(|number| *number <= first);
            listed[..end].iter().rev().take(count_max).copied().collect()
        }
    }
}
