//! ORDER BY from an index: documents come in the wanted order, so a page reads as many as it gives, not all.
//!
//! In: entries in order, from the position of the page before. Out: rows of the page.
//! Terms of long text and of arrays and objects stand for several values (`keys::index_entry`): the documents of such a
//! term are sorted among themselves. An index of one path has no entries for documents without it: they are equal in the
//! order, before all others, and read in the order of their numbers.
//! Invariant: the rows and their order are those that sorting everything would give.

use crate::access::{RangeIndex, finder, scope_entries};
use crate::budget::{charge_documents, charge_row};
use crate::long_key::LastRow;
use crate::operators::collect::SortedRow;
use crate::page::{ExecuteError, Execution, Offer, collect_row, output};
use crate::pipeline::Flow;
use crate::resume::{Place, keys_fit};
use crate::rows::Counts;
use astrarium_catalog::container::Range;
use astrarium_index::finder::charge_entries;
use astrarium_index::{Finder, Ordered};
use astrarium_keys::body::Body;
use astrarium_keys::index_entry::read_entry;
use astrarium_kv::{Direction, KeyRange, ScanLimit, just_after};
use astrarium_sql_plan::evaluate::EvaluateError;
use astrarium_sql_plan::physical::{IndexPlan, IndexUse, Lacking, OrderDemand, RangeOfOrder, choose_order};
use astrarium_store::{FeedReader, FeedScope};
use astrarium_value::Value;
use bytes::Bytes;

/// Entries read first, and at most, at once.
const STEP: (usize, usize) = (16, 512);

/// The index of a row that comes after all rows of its document.
const WHOLE_DOCUMENT: u32 = u32::MAX;

/// What an ordered walk reads.
pub(crate) struct Walk<'a> {
    pub(crate) reader: &'a FeedReader,
    pub(crate) scope: &'a FeedScope,
    pub(crate) plan: &'a IndexPlan,
    pub(crate) ordered: &'a Ordered,
    pub(crate) index_use: IndexUse,
}

/// What is walked.
pub(crate) struct Route<'a> {
    range: &'a Range,
    /// How documents without an entry are found; none if there are none.
    lacking: Option<Lacking>,
}

/// Documents that come one after another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Those that have an entry.
    Entries,
    /// Those without the path, among others that have been given or will be.
    Lacking,
}

/// What a document gives.
struct DocumentRows {
    /// Its sort keys, unless only a row would tell and it has none.
    keys: Option<Vec<Value>>,
    /// Its rows, each with its index.
    rows: Vec<(u32, Vec<u8>)>,
}

/// Whether the page goes on.
#[derive(PartialEq, Eq)]
enum Going {
    On,
    Over,
}

impl Walk<'_> {
    fn direction(&self) -> Direction {
        if self.ordered.backward { Direction::Backward } else { Direction::Forward }
    }

    /// What to walk, if the index has all documents that can pass and walking it is cheaper than sorting what the filter
    /// leaves. `wanted` is how many rows the page needs.
    pub(crate) async fn choose(
        &self,
        wanted: u64,
        after: Option<&LastRow>,
    ) -> Result<Option<Route<'_>>, ExecuteError> {
        let ranges = self.reader.ranges(self.scope)?;
        let [range] = ranges[..] else { return Ok(None) };
        let set = &self.plan.indexes.active;
        let scope = scope_entries(set, self.reader, self.scope, range);
        let mut own = [RangeOfOrder {
            statistics: RangeIndex::new(finder(self.reader, range)?, self.plan),
            scope: scope.as_ref(),
        }];
        let demand = OrderDemand { rows: wanted, is_lacking: is_lacking(after), index_use: self.index_use };
        let chosen = choose_order(self.plan, self.ordered, demand, &mut own).await?;
        Ok(chosen.and_then(|ways| ways.first().copied()).map(|lacking| Route { range, lacking }))
    }

    /// The entries to walk from a position on. Where the position's term is shortened, all of its documents.
    fn entries(&self, finder: &Finder, after: Option<&LastRow>) -> KeyRange {
        let prefix = self.ordered.family.prefix(finder.shard);
        let mut entries = finder.keys(self.ordered.family, &self.ordered.within);
        let Some((keys, (number, index))) = after else { return entries };
        // A document that was looked at to its end does not come again, so every page gets further.
        let is_over = *index == WHOLE_DOCUMENT;
        let terms = [&prefix[..], &self.ordered.terms(keys)].concat();
        let shortened = self.ordered.shortened_length(&terms[prefix.len()..]);
        let at = [&terms[..], &number.to_be_bytes()].concat();
        let bound: Bytes =
            match (self.ordered.backward, shortened.map(|length| &terms[..prefix.len() + length])) {
                (false, None) => {
                    if is_over {
                        just_after(&at)
                    } else {
                        at.into()
                    }
                }
                (false, Some(group)) => group.to_vec().into(),
                (true, None) => {
                    if is_over {
                        at.into()
                    } else {
                        just_after(&at)
                    }
                }
                (true, Some(group)) => KeyRange::prefix(group).end,
            };
        if self.ordered.backward {
            entries.end = entries.end.min(bound);
        } else {
            entries.start = entries.start.max(bound);
        }
        entries
    }
}

/// Whether a position is among the documents without the path; none if there is no position.
fn is_lacking(after: Option<&LastRow>) -> Option<bool> {
    after.map(|(keys, _)| matches!(keys[..], [Value::Undefined]))
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

impl Execution<'_> {
    /// Gives rows in the order of an index.
    pub(crate) async fn in_index_order(
        &mut self,
        walk: &Walk<'_>,
        route: Route<'_>,
        after: Option<LastRow>,
    ) -> Result<(), ExecuteError> {
        let Route { range, lacking } = route;
        let after = after.as_ref();
        let mut last = None;
        let Some(way) = lacking else {
            return self.give_entries(walk, range, after, &mut last).await.map(drop);
        };
        // Where a page goes on in the second section, the first is behind it.
        match (walk.ordered.backward, is_lacking(after)) {
            (false, Some(false)) => self.give_entries(walk, range, after, &mut last).await?,
            (true, Some(true)) => self.give_lacking(walk, (range, way), after, &mut last).await?,
            (false, _) => match self.give_lacking(walk, (range, way), after, &mut last).await? {
                Going::On => self.give_entries(walk, range, None, &mut last).await?,
                Going::Over => Going::Over,
            },
            (true, _) => match self.give_entries(walk, range, after, &mut last).await? {
                Going::On => self.give_lacking(walk, (range, way), None, &mut last).await?,
                Going::Over => Going::Over,
            },
        };
        Ok(())
    }

    /// Gives the rows of documents that have entries, in their order.
    async fn give_entries(
        &mut self,
        walk: &Walk<'_>,
        range: &Range,
        after: Option<&LastRow>,
        last: &mut Option<LastRow>,
    ) -> Result<Going, ExecuteError> {
        let finder = finder(walk.reader, range)?;
        let mut entries = walk.entries(&finder, after);
        let direction = walk.direction();
        let mut step = STEP.0;
        while entries.start < entries.end {
            let limit = ScanLimit { entry_count_max: step, byte_count_max: usize::MAX };
            let batch = finder.snapshot.scan_keys(&entries, direction, limit).await;
            let batch = batch.map_err(astrarium_index::finder::Error::from)?;
            step = (step * 4).min(STEP.1);
            charge_entries(batch.keys.len())?;
            self.count(Counts { entries: batch.keys.len() as u64, ..Counts::default() });
            let mut numbers = Vec::new();
            let mut shortened = None;
            for key in batch.keys.iter() {
                let (terms, number) = read_entry(key).map_err(astrarium_index::finder::Error::from)?;
                if let Some(length) = walk.ordered.shortened_length(terms) {
                    let prefix = walk.ordered.family.prefix(finder.shard);
                    shortened = Some([&prefix[..], &terms[..length]].concat());
                    break;
                }
                numbers.push(number);
            }
            let bodies = walk.reader.by_numbers(range, walk.scope, &numbers).await?;
            if self.give_documents(walk, bodies, Section::Entries, after, last)? == Going::Over {
                return Ok(Going::Over);
            }
            match shortened {
                Some(term) => {
                    let group = KeyRange::prefix(&term);
                    if self.give_group(walk, &finder, range, &group, after, last).await? == Going::Over {
                        return Ok(Going::Over);
                    }
                    match direction {
                        Direction::Forward => entries.start = group.end,
                        Direction::Backward => entries.end = group.start,
                    }
                }
                None if batch.more => match (batch.keys.last(), direction) {
                    (Some(key), Direction::Forward) => entries.start = just_after(key),
                    (Some(key), Direction::Backward) => entries.end = key.to_vec().into(),
                    (None, _) => return Ok(Going::On),
                },
                None => return Ok(Going::On),
            }
        }
        Ok(Going::On)
    }

    /// Gives the rows of documents without the path.
    async fn give_lacking(
        &mut self,
        walk: &Walk<'_>,
        (range, way): (&Range, Lacking),
        after: Option<&LastRow>,
        last: &mut Option<LastRow>,
    ) -> Result<Going, ExecuteError> {
        let direction = walk.direction();
        let beyond = |number: u64| match direction {
            Direction::Forward => number.checked_add(1),
            Direction::Backward => number.checked_sub(1),
        };
        let mut first = match (after, direction) {
            (Some((_, (number, WHOLE_DOCUMENT))), _) => beyond(*number),
            (Some((_, (number, _))), _) => Some(*number),
            (None, Direction::Forward) => Some(0),
            (None, Direction::Backward) => Some(u64::MAX),
        };
        let listed = match way {
            Lacking::AmongAll => None,
            Lacking::Listed => Some(self.list_lacking(walk, range).await?),
        };
        let mut step = STEP.0;
        while let Some(from) = first {
            let numbers = match &listed {
                Some(listed) => numbers_from(listed, from, direction, step),
                None => walk.reader.numbers(range, from, direction, step).await?,
            };
            let Some(furthest) = numbers.last().copied() else { break };
            let bodies = walk.reader.by_numbers(range, walk.scope, &numbers).await?;
            if self.give_documents(walk, bodies, Section::Lacking, after, last)? == Going::Over {
                return Ok(Going::Over);
            }
            if self.job.gauge.page_is_over() {
                self.stop_at(Place::Key(vec![Value::Undefined], furthest, WHOLE_DOCUMENT));
                return Ok(Going::Over);
            }
            first = beyond(furthest);
            step = (step * 4).min(STEP.1);
        }
        Ok(Going::On)
    }

    /// The numbers of documents without an entry.
    async fn list_lacking(&mut self, walk: &Walk<'_>, range: &Range) -> Result<Vec<u64>, ExecuteError> {
        let finder = finder(walk.reader, range)?;
        let set = &walk.plan.indexes.active;
        let mut lists = Vec::new();
        for family in [set.documents(), walk.ordered.family] {
            let (numbers, entries) = finder.numbers(family).await?;
            self.count(Counts { entries, ..Counts::default() });
            lists.push(numbers);
        }
        let with = lists.pop().unwrap_or_default();
        let mut all = lists.pop().unwrap_or_default();
        let mut with = with.into_iter().peekable();
        all.retain(|number| {
            while with.next_if(|other| other < number).is_some() {}
            with.peek() != Some(number)
        });
        Ok(all)
    }

    /// Gives the rows of documents that are in order already.
    fn give_documents(
        &mut self,
        walk: &Walk<'_>,
        bodies: Vec<Body>,
        section: Section,
        after: Option<&LastRow>,
        last: &mut Option<LastRow>,
    ) -> Result<Going, ExecuteError> {
        let container = walk.reader.container.rid();
        let mut examined: Option<(Vec<Value>, u64)> = None;
        for body in bodies {
            let number = body.header.number;
            charge_documents(1, body.text().len())?;
            self.count(Counts { documents: 1, bytes: body.text().len() as u64, entries: 0 });
            self.job.bind(&self.frame, crate::frame::Datum::Document(container, body));
            let given = after.filter(|(_, place)| place.0 == number);
            let DocumentRows { keys, rows } = self.document_rows(section, given)?;
            for (index, json) in rows {
                let row = (keys.clone().unwrap_or_default(), (number, index));
                match self.offer(json) {
                    Offer::Taken => *last = Some(row),
                    Offer::Full => {
                        self.stop_after(last.take(), &row);
                        return Ok(Going::Over);
                    }
                    Offer::Done => return Ok(Going::Over),
                }
            }
            if self.is_done() {
                return Ok(Going::Over);
            }
            examined = keys.map(|keys| (keys, number));
        }
        if let Some((keys, number)) = examined
            && section == Section::Entries
            && self.job.gauge.page_is_over()
            && keys_fit(&keys)
        {
            self.stop_at(Place::Key(keys, number, WHOLE_DOCUMENT));
            return Ok(Going::Over);
        }
        Ok(Going::On)
    }

    /// The rows of the document at hand that belong to a section, without those up to the one that was given, if it was
    /// given with the keys that it has.
    fn document_rows(
        &mut self,
        section: Section,
        given: Option<&LastRow>,
    ) -> Result<DocumentRows, EvaluateError> {
        let plan = self.plan;
        let order = plan.order_keys();
        // The keys of other sources are known only where these are bound.
        let mut read = Vec::new();
        for key in order {
            key.key.slots(&mut read);
        }
        let are_of_documents =
            plan.sources.first().is_some_and(|source| read.iter().all(|slot| *slot == source.slot));
        let belongs = |keys: &Vec<Value>| section == Section::Entries || keys.iter().all(Value::is_undefined);
        let (mut keys, mut rows) = (None, Vec::new());
        self.with_machine(|machine| {
            charge_row()?;
            let evaluate = || -> Result<Vec<Value>, EvaluateError> {
                order.iter().map(|key| machine.evaluate(&key.key)).collect()
            };
            if are_of_documents && !belongs(keys.insert(evaluate()?)) {
                return Ok(());
            }
            let mut index = 0;
            machine.visit(plan, &mut || {
                let keys = match &mut keys {
                    Some(keys) => keys,
                    none => none.insert(evaluate()?),
                };
                if belongs(keys)
                    && given.is_none_or(|(last, place)| index > place.1 || last != keys)
                    && let Some(json) = output(&plan.projection, &machine.row())?
                {
                    rows.push((index, json));
                }
                index += 1;
                Ok(Flow::Continue(()))
            })
        })?;
        Ok(DocumentRows { keys, rows })
    }

    /// Sorts the documents of a shortened term, and gives their rows.
    async fn give_group(
        &mut self,
        walk: &Walk<'_>,
        finder: &Finder,
        range: &Range,
        group: &KeyRange,
        after: Option<&LastRow>,
        last: &mut Option<LastRow>,
    ) -> Result<Going, ExecuteError> {
        let plan = self.plan;
        let keys = plan.order_keys();
        let container = walk.reader.container.rid();
        let mut collector = self.collector(keys, after.cloned(), walk.ordered.backward);
        let mut rest = group.clone();
        loop {
            let limit = ScanLimit { entry_count_max: STEP.1, byte_count_max: usize::MAX };
            let batch = finder.snapshot.scan_keys(&rest, Direction::Forward, limit).await;
            let batch = batch.map_err(astrarium_index::finder::Error::from)?;
            let numbers = batch.keys.iter().map(|key| read_entry(key).map(|(_, number)| number));
            let numbers: Vec<u64> =
                numbers.collect::<Result<_, _>>().map_err(astrarium_index::finder::Error::from)?;
            for body in walk.reader.by_numbers(range, walk.scope, &numbers).await? {
                let number = body.header.number;
                charge_documents(1, body.text().len())?;
                self.count(Counts { documents: 1, bytes: body.text().len() as u64, entries: 1 });
                self.job.bind(&self.frame, crate::frame::Datum::Document(container, body));
                self.with_machine(|machine| {
                    let mut index = 0;
                    machine.visit(plan, &mut || {
                        collect_row(&machine.row(), plan, keys, (number, index), &mut collector)?;
                        index += 1;
                        Ok(Flow::Continue(()))
                    })
                })
                .map_err(|error: EvaluateError| error)?;
            }
            match batch.keys.last() {
                Some(key) if batch.more => rest.start = just_after(key),
                _ => break,
            }
        }
        for SortedRow { keys, place, json } in collector.finish() {
            match self.offer(json) {
                Offer::Taken => *last = Some((keys, place)),
                Offer::Full => {
                    self.stop_after(last.take(), &(keys, place));
                    return Ok(Going::Over);
                }
                Offer::Done => return Ok(Going::Over),
            }
        }
        self.budget.hold(0)?;
        Ok(if self.is_done() { Going::Over } else { Going::On })
    }
}
