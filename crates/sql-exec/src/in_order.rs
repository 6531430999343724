//! ORDER BY from an index: documents come in the wanted order, so a page reads as many as it gives, not all.
//!
//! In: entries in order, from the position of the page before. Out: rows of the page.
//! Terms of long text and of arrays and objects stand for several values (`keys::index_entry`): the documents of such a
//! term are sorted among themselves.
//! Invariant: the rows and their order are those that sorting everything would give.

use crate::access::{IndexPlan, Search};
use crate::budget::{IndexUse, Pace};
use crate::page::{ExecuteError, Execution, LastRow, Offer, collect_row, output};
use crate::pipeline::Flow;
use crate::resume::{Place, keys_fit};
use crate::rows::Counts;
use astrarium_catalog::container::Range;
use astrarium_index::finder::just_after;
use astrarium_index::{Access, Finder, Ordered};
use astrarium_keys::body::Body;
use astrarium_keys::index_entry::read_entry;
use astrarium_kv::{Direction, KeyRange, ScanLimit};
use astrarium_sql_plan::evaluate::EvaluateError;
use astrarium_store::{FeedReader, FeedScope};
use astrarium_value::Value;

/// Entries read first, and at most, at once.
const STEP: (usize, usize) = (16, 512);
/// Looking at a document by its number costs about so many times what it costs in a scan.
const BY_NUMBER_COST: u64 = 3;

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

/// Whether the page goes on.
#[derive(PartialEq, Eq)]
enum Going {
    On,
    Over,
}

impl Walk<'_> {
    fn search(&self) -> Search<'_> {
        Search { plan: self.plan, reader: self.reader, scope: self.scope, index_use: self.index_use }
    }

    /// The one range to walk, if the index has all its documents and walking it is cheaper than sorting what the filter
    /// leaves. `wanted` is how many rows the page needs.
    pub(crate) async fn choose(&self, wanted: u64) -> Result<Option<&Range>, ExecuteError> {
        let ranges = self.reader.ranges(self.scope)?;
        let [range] = ranges[..] else { return Ok(None) };
        if self.index_use == IndexUse::Never {
            return Ok(None);
        }
        let set = &self.plan.indexes.active;
        let search = self.search();
        let finder = search.finder(range);
        let size = finder.count(set.documents()).await?;
        let complete = finder.count(set.excluded()).await? == 0
            && (self.ordered.complete || finder.count(self.ordered.family).await? == size);
        if !complete || self.index_use == IndexUse::Always {
            return Ok(complete.then_some(range));
        }
        let keyed = matches!(self.scope, FeedScope::Partition(_) | FeedScope::Slice(_));
        let mut matching = size;
        if keyed {
            let is_one = matches!(self.scope, FeedScope::Partition(_));
            let scope = set.partitions(self.reader.slice(self.scope, range).partitions(), is_one);
            matching = matching.min(finder.estimate(&scope).await?);
        }
        let sorting_cost = if self.plan.access == Access::Everything {
            matching
        } else {
            matching = matching.min(finder.rough_estimate(&self.plan.access).await?);
            matching.saturating_mul(BY_NUMBER_COST)
        };
        let walked = u128::from(wanted) * u128::from(size) / u128::from(matching.max(1));
        let cheaper = walked * u128::from(BY_NUMBER_COST) <= u128::from(sorting_cost.max(1_000));
        Ok((cheaper && matching > 0).then_some(range))
    }

    /// The entries to walk from a position on. Where the position's term is shortened, all of its documents.
    fn entries(&self, finder: &Finder, after: Option<&LastRow>) -> KeyRange {
        let prefix = self.ordered.family.prefix(finder.shard);
        let mut entries = KeyRange::prefix(&prefix);
        let Some((keys, (number, index))) = after else { return entries };
        // A document that was looked at to its end does not come again, so every page gets further.
        let is_over = *index == WHOLE_DOCUMENT;
        let terms = [&prefix[..], &self.ordered.terms(keys)].concat();
        let shortened = self.ordered.shortened_length(&terms[prefix.len()..]);
        let at = [&terms[..], &number.to_be_bytes()].concat();
        match (self.ordered.backward, shortened.map(|length| &terms[..prefix.len() + length])) {
            (false, None) => entries.start = if is_over { just_after(&at) } else { at.into() },
            (false, Some(group)) => entries.start = group.to_vec().into(),
            (true, None) => entries.end = if is_over { at.into() } else { just_after(&at) },
            (true, Some(group)) => entries.end = KeyRange::prefix(group).end,
        }
        entries
    }
}

impl Execution<'_> {
    /// Gives rows in the order of an index.
    pub(crate) async fn in_index_order(
        &mut self,
        walk: &Walk<'_>,
        range: &Range,
        after: Option<LastRow>,
    ) -> Result<(), ExecuteError> {
        let search = walk.search();
        let finder = search.finder(range);
        let mut entries = walk.entries(&finder, after.as_ref());
        let direction = if walk.ordered.backward { Direction::Backward } else { Direction::Forward };
        let mut step = STEP.0;
        let mut last = None;
        let mut pace = Pace::default();
        loop {
            let limit = ScanLimit { entry_count_max: step, byte_count_max: usize::MAX };
            let batch = finder.snapshot.scan_keys(&entries, direction, limit).await;
            let batch = batch.map_err(astrarium_index::finder::Error::from)?;
            step = (step * 4).min(STEP.1);
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
            if self.give_documents(walk, bodies, after.as_ref(), &mut last)? == Going::Over {
                return Ok(());
            }
            match shortened {
                Some(term) => {
                    let group = KeyRange::prefix(&term);
                    if self.give_group(walk, &finder, range, &group, after.as_ref(), &mut last).await?
                        == Going::Over
                    {
                        return Ok(());
                    }
                    match direction {
                        Direction::Forward => entries.start = group.end,
                        Direction::Backward => entries.end = group.start,
                    }
                }
                None if batch.more => match (batch.keys.last(), direction) {
                    (Some(key), Direction::Forward) => entries.start = just_after(key),
                    (Some(key), Direction::Backward) => entries.end = key.to_vec().into(),
                    (None, _) => return Ok(()),
                },
                None => return Ok(()),
            }
            pace.step(numbers.len() as u64, 0).await;
        }
    }

    /// Gives the rows of documents that are in order already.
    fn give_documents(
        &mut self,
        walk: &Walk<'_>,
        bodies: Vec<Body>,
        after: Option<&LastRow>,
        last: &mut Option<Place>,
    ) -> Result<Going, ExecuteError> {
        let plan = self.plan;
        let keys = plan.order_keys();
        let container = walk.reader.container.rid();
        let mut examined: Option<(Vec<Value>, u64)> = None;
        for body in bodies {
            let number = body.header.number;
            self.count(Counts { documents: 1, bytes: body.text().len() as u64, entries: 0 });
            self.job.bind(&self.frame, crate::frame::Datum::Document(container, body));
            let given = after.filter(|(_, place)| place.0 == number).map(|(_, place)| place.1);
            let is_given = |index: u32| given.is_some_and(|given| index <= given);
            let mut rows = Vec::new();
            let mut sort_keys = Vec::new();
            self.with_machine(|machine| {
                machine.budget.step()?;
                for key in keys {
                    sort_keys.push(machine.evaluate(&key.key)?);
                }
                let mut index = 0;
                machine.visit(plan, &mut || {
                    if !is_given(index)
                        && let Some(json) = output(&plan.projection, &machine.row())?
                    {
                        rows.push((index, json));
                    }
                    index += 1;
                    Ok(Flow::Continue(()))
                })
            })?;
            for (index, json) in rows {
                match self.offer(json) {
                    Offer::Taken => {
                        let keys = keys_fit(&sort_keys).then(|| sort_keys.clone());
                        *last = Some(Place::Key(keys, number, index));
                    }
                    Offer::Full => {
                        if let Some(last) = last.take() {
                            self.stop_at(last);
                        }
                        return Ok(Going::Over);
                    }
                    Offer::Done => return Ok(Going::Over),
                }
            }
            if self.is_done() {
                return Ok(Going::Over);
            }
            examined = Some((sort_keys, number));
        }
        if let Some((keys, number)) = examined
            && self.job.gauge.page_is_over()
            && keys_fit(&keys)
        {
            self.stop_at(Place::Key(Some(keys), number, WHOLE_DOCUMENT));
            return Ok(Going::Over);
        }
        Ok(Going::On)
    }

    /// Sorts the documents of a shortened term, and gives their rows.
    async fn give_group(
        &mut self,
        walk: &Walk<'_>,
        finder: &Finder,
        range: &Range,
        group: &KeyRange,
        after: Option<&LastRow>,
        last: &mut Option<Place>,
    ) -> Result<Going, ExecuteError> {
        let plan = self.plan;
        let keys = plan.order_keys();
        let container = walk.reader.container.rid();
        let mut collector = self.collector(keys, after.cloned(), walk.ordered.backward);
        let mut rest = group.clone();
        let mut pace = Pace::default();
        loop {
            let limit = ScanLimit { entry_count_max: STEP.1, byte_count_max: usize::MAX };
            let batch = finder.snapshot.scan_keys(&rest, Direction::Forward, limit).await;
            let batch = batch.map_err(astrarium_index::finder::Error::from)?;
            let numbers = batch.keys.iter().map(|key| read_entry(key).map(|(_, number)| number));
            let numbers: Vec<u64> =
                numbers.collect::<Result<_, _>>().map_err(astrarium_index::finder::Error::from)?;
            for body in walk.reader.by_numbers(range, walk.scope, &numbers).await? {
                let number = body.header.number;
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
            pace.step(numbers.len() as u64, 0).await;
        }
        for row in collector.finish() {
            match self.offer(row.json) {
                Offer::Taken => {
                    let keys = keys_fit(&row.keys).then_some(row.keys);
                    *last = Some(Place::Key(keys, row.place.0, row.place.1));
                }
                Offer::Full => {
                    if let Some(last) = last.take() {
                        self.stop_at(last);
                    }
                    return Ok(Going::Over);
                }
                Offer::Done => return Ok(Going::Over),
            }
        }
        self.budget.hold(0)?;
        Ok(if self.is_done() { Going::Over } else { Going::On })
    }
}
