//! Answers from the index alone: counts, least and greatest values, distinct values.
//!
//! In: what of an index answers the query (`sql-plan`). Out: finished groups, or nothing where the index cannot tell after
//! all: documents are left out of the index, a term stands for several values, a sum would be rounded
//! differently.
//! Invariant: the answer is the one that reading all documents gives.

use crate::access::{RangeIndex, finder, scope_entries};
use crate::error::ExecuteError;
use crate::expired::Expired;
use crate::operators::group::{FinishedGroup, RowPlace};
use crate::rows::Counts;
use astrarium_index::entry::{Family, is_shortened_term, is_type_only, read_entry, read_term};
use astrarium_index::finder::{Error as IndexError, charge_entries};
use astrarium_index::{Access, Finder, Need, OrderPath, Path, PathStep, TermRange};
use astrarium_kv::{Direction, KeyRange, ScanLimit, just_after};
use astrarium_sql_functions::aggregates::AggregateFunction;
use astrarium_sql_plan::Expr;
use astrarium_sql_plan::needs::IndexOnly;
use astrarium_sql_plan::physical::{AccessPath, Demand, IndexPlan, IndexUse, choose_postings};
use astrarium_sql_plan::plan::Grouping;
use astrarium_store::{FeedError, FeedReader, FeedScope};
use astrarium_value::{Object, Value};
use std::collections::BTreeMap;

/// Entries read at once.
const STEP: ScanLimit = ScanLimit { entry_count_max: 8_192, byte_count_max: usize::MAX };
/// Integers up to here are added without rounding.
const EXACT_SUM_MAX: f64 = 9_007_199_254_740_992.0;
/// Distinct values held at most.
const VALUES_MAX: usize = 1_000_000;

/// A value at a path: how many documents have it, and the first of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Occurrence {
    pub(crate) count: u64,
    pub(crate) first: u64,
}

/// Asks indexes without documents.
pub(crate) struct Asking<'a> {
    pub(crate) plan: &'a IndexPlan,
    pub(crate) reader: &'a FeedReader,
    pub(crate) scope: &'a FeedScope,
    pub(crate) counts: Counts,
    /// What has expired in each range, once that was asked for.
    expired: Vec<Expired>,
}

impl<'a> Asking<'a> {
    pub(crate) fn new(plan: &'a IndexPlan, reader: &'a FeedReader, scope: &'a FeedScope) -> Asking<'a> {
        Asking { plan, reader, scope, counts: Counts::default(), expired: Vec::new() }
    }

    /// The groups of a query, if the index can tell them.
    pub(crate) async fn groups(
        &mut self,
        only: &IndexOnly,
        grouping: &Grouping,
    ) -> Result<Option<Vec<FinishedGroup>>, ExecuteError> {
        if !self.is_complete().await? {
            return Ok(None);
        }
        let one = |value: Value| FinishedGroup { keys: Vec::new(), results: vec![value], first: (0, 0) };
        match only {
            IndexOnly::Count => Ok(self.count().await?.map(|count| vec![one(Value::Number(count as f64))])),
            IndexOnly::Extreme { path, maximum } => {
                Ok(self.extreme(path, *maximum).await?.map(|value| vec![one(value)]))
            }
            IndexOnly::Values { path, undefined } => {
                let Some(values) = self.values(path, *undefined).await? else { return Ok(None) };
                let groups = values.into_iter().map(|(value, found)| {
                    let results = grouping.aggregates.iter().map(|aggregate| {
                        let counts_rows = matches!(aggregate.argument, Expr::Constant(_))
                            || matches!(&aggregate.argument, Expr::Path(_, steps) if steps.is_empty());
                        result(aggregate.function, &value, counts_rows, found.count)
                    });
                    let results = results.collect::<Option<Vec<Value>>>()?;
                    let first: RowPlace = (found.first, 0);
                    Some(FinishedGroup { keys: vec![value], results, first })
                });
                Ok(groups.collect())
            }
        }
    }

    /// Whether the index has all documents, and can tell which of them have expired.
    pub(crate) async fn is_complete(&mut self) -> Result<bool, ExecuteError> {
        let set = &self.plan.indexes.active;
        if !set.is_used() {
            return Ok(false);
        }
        for range in self.reader.ranges(self.scope)? {
            let finder = finder(self.reader, range)?;
            if finder.count(set.excluded()).await? > 0 {
                return Ok(false);
            }
            let Some(expired) = Expired::find(self.reader, set, &finder).await? else { return Ok(false) };
            self.counts.entries += expired.entries;
            self.expired.push(expired);
        }
        Ok(true)
    }

    /// What looks into each range, and what has expired there.
    fn finders(&self) -> Result<Vec<(Finder, Expired)>, ExecuteError> {
        let finders = self.reader.ranges(self.scope)?.into_iter().map(|range| finder(self.reader, range));
        let finders = finders.zip(self.expired.iter().cloned());
        Ok(finders.map(|(finder, expired)| Ok((finder?, expired))).collect::<Result<_, FeedError>>()?)
    }

    fn is_keyed(&self) -> bool {
        matches!(self.scope, FeedScope::Partition(_) | FeedScope::Slice(_))
    }

    async fn count(&mut self) -> Result<Option<u64>, ExecuteError> {
        let set = &self.plan.indexes.active;
        let mut sum = 0;
        for (range, (finder, expired)) in self.reader.ranges(self.scope)?.into_iter().zip(self.finders()?) {
            let scope = scope_entries(set, self.reader, self.scope, range);
            let mut index = RangeIndex::new(finder.clone(), self.plan);
            let demand = Demand {
                rows: u64::MAX,
                in_order: false,
                whole: true,
                scope: scope.as_ref(),
                index_use: IndexUse::Always,
            };
            let access = choose_postings(self.plan, &demand, &mut index).await?;
            sum += match &access.path {
                AccessPath::Scan => finder.count(set.documents()).await?.saturating_sub(expired.count()),
                _ if !access.exact => return Ok(None),
                AccessPath::Seek(served) | AccessPath::Range(served) | AccessPath::Composite(served)
                    if !served.repeated =>
                {
                    let mut count = 0;
                    for terms in &served.ranges {
                        count += self.count_entries(&finder, served.family, terms, &expired).await?;
                    }
                    count
                }
                _ => {
                    let Some(mut found) = index.open(&access).await?.filter(|found| found.exact) else {
                        return Ok(None);
                    };
                    let numbers = found.numbers(&finder, 0, usize::MAX).await?;
                    self.counts.entries += found.entries;
                    numbers.into_iter().filter(|number| !expired.has(*number)).count() as u64
                }
            };
        }
        Ok(Some(sum))
    }

    async fn count_entries(
        &mut self,
        finder: &Finder,
        family: Family,
        terms: &TermRange,
        expired: &Expired,
    ) -> Result<u64, ExecuteError> {
        if *terms == TermRange::everything() && expired.count() == 0 {
            return Ok(finder.count(family).await?);
        }
        let mut rest = finder.keys(family, terms);
        let mut count = 0;
        loop {
            let batch =
                finder.snapshot.scan_keys(&rest, Direction::Forward, STEP).await.map_err(IndexError::from)?;
            charge_entries(batch.keys.len())?;
            self.counts.entries += batch.keys.len() as u64;
            count += batch.keys.len() as u64;
            if expired.count() > 0 {
                for key in batch.keys.iter() {
                    count -= u64::from(expired.has(read_entry(key).map_err(IndexError::from)?.1));
                }
            }
            match batch.keys.last() {
                Some(last) if batch.more => rest.start = just_after(last),
                _ => break,
            }
        }
        Ok(count)
    }

    /// The family of a path's values, and the terms of it that the need leaves. A need is about the same path, so it is one
    /// access to that family or none.
    fn family(&self, path: &Path) -> Option<(Family, Vec<TermRange>)> {
        let order = OrderPath { path: path.clone(), descending: false };
        let ordered =
            self.plan.indexes.active.order(&[order], &Need::Anything).filter(|ordered| ordered.all_types)?;
        match &self.plan.access {
            Access::Everything => Some((ordered.family, vec![TermRange::values()])),
            Access::Entries(served) if served.exact && served.family == ordered.family => {
                Some((ordered.family, served.ranges.clone()))
            }
            _ => None,
        }
    }

    async fn extreme(&mut self, path: &Path, maximum: bool) -> Result<Option<Value>, ExecuteError> {
        let Some((family, ranges)) = self.family(path).filter(|_| !self.is_keyed()) else { return Ok(None) };
        let mut best: Option<Value> = None;
        for (finder, expired) in self.finders()? {
            for terms in &ranges {
                let keys = (finder.keys(family, terms), &expired);
                let greatest = self.end_term(&finder, &keys, Direction::Backward).await?;
                let wanted = if maximum {
                    greatest.clone()
                } else {
                    self.end_term(&finder, &keys, Direction::Forward).await?
                };
                let (Some(greatest), Some(wanted)) = (greatest, wanted) else { continue };
                if is_type_only(&greatest) || is_shortened_term(&wanted) {
                    return Ok(None);
                }
                let value = read_term(&wanted).map_err(IndexError::from)?;
                let better =
                    best.as_ref().is_none_or(|best| if maximum { value > *best } else { value < *best });
                if better {
                    best = Some(value);
                }
            }
        }
        Ok(Some(best.unwrap_or_default()))
    }

    /// The first term in a direction that a document has which has not expired.
    async fn end_term(
        &mut self,
        finder: &Finder,
        (keys, expired): &(KeyRange, &Expired),
        direction: Direction,
    ) -> Result<Option<Vec<u8>>, ExecuteError> {
        let mut rest = keys.clone();
        let mut limit = ScanLimit { entry_count_max: 1, byte_count_max: usize::MAX };
        loop {
            let batch = finder.snapshot.scan_keys(&rest, direction, limit).await.map_err(IndexError::from)?;
            charge_entries(batch.keys.len())?;
            self.counts.entries += batch.keys.len() as u64;
            for key in batch.keys.iter() {
                let (term, number) = read_entry(key).map_err(IndexError::from)?;
                if !expired.has(number) {
                    return Ok(Some(term.to_vec()));
                }
            }
            match (batch.keys.last(), direction) {
                (Some(last), Direction::Forward) if batch.more => rest.start = just_after(last),
                (Some(last), Direction::Backward) if batch.more => rest.end = last.to_vec().into(),
                _ => return Ok(None),
            }
            limit.entry_count_max = STEP.entry_count_max;
        }
    }

    /// The distinct values at a path; none if documents without a value count, and there are some.
    pub(crate) async fn values(
        &mut self,
        path: &Path,
        undefined: bool,
    ) -> Result<Option<BTreeMap<Value, Occurrence>>, ExecuteError> {
        let Some((family, ranges)) = self.family(path).filter(|_| !self.is_keyed()) else { return Ok(None) };
        let set = &self.plan.indexes.active;
        let mut found: BTreeMap<Value, Occurrence> = BTreeMap::new();
        for (finder, expired) in self.finders()? {
            if undefined && finder.count(family).await? != finder.count(set.documents()).await? {
                return Ok(None);
            }
            for terms in &ranges {
                let mut rest = finder.keys(family, terms);
                let mut current: Option<(Vec<u8>, Occurrence)> = None;
                loop {
                    let batch = finder
                        .snapshot
                        .scan_keys(&rest, Direction::Forward, STEP)
                        .await
                        .map_err(IndexError::from)?;
                    charge_entries(batch.keys.len())?;
                    self.counts.entries += batch.keys.len() as u64;
                    for key in batch.keys.iter() {
                        let (term, number) = read_entry(key).map_err(IndexError::from)?;
                        if expired.has(number) {
                            continue;
                        }
                        match &mut current {
                            Some((own, occurrence)) if own == term => occurrence.count += 1,
                            _ => {
                                if is_shortened_term(term) || found.len() > VALUES_MAX {
                                    return Ok(None);
                                }
                                keep(&mut found, current.take())?;
                                current = Some((term.to_vec(), Occurrence { count: 1, first: number }));
                            }
                        }
                    }
                    match batch.keys.last() {
                        Some(last) if batch.more => rest.start = just_after(last),
                        _ => break,
                    }
                }
                keep(&mut found, current.take())?;
            }
        }
        Ok(Some(found))
    }
}

fn keep(
    found: &mut BTreeMap<Value, Occurrence>,
    current: Option<(Vec<u8>, Occurrence)>,
) -> Result<(), ExecuteError> {
    let Some((term, occurrence)) = current else { return Ok(()) };
    let value = read_term(&term).map_err(IndexError::from)?;
    let own = found.entry(value).or_insert(Occurrence { count: 0, first: u64::MAX });
    own.count += occurrence.count;
    own.first = own.first.min(occurrence.first);
    Ok(())
}

/// An aggregate over so many times the same value; none if it would be rounded differently row by row.
fn result(function: AggregateFunction, value: &Value, counts_rows: bool, count: u64) -> Option<Value> {
    if counts_rows {
        return Some(Value::Number(count as f64));
    }
    let sum = || match value {
        Value::Number(number) => {
            let sum = number * count as f64;
            (number.fract() == 0.0 && sum.abs() <= EXACT_SUM_MAX).then_some(Value::Number(sum))
        }
        _ => Some(Value::Undefined),
    };
    match function {
        AggregateFunction::Count => Some(Value::Number(count as f64)),
        AggregateFunction::Minimum | AggregateFunction::Maximum => Some(value.clone()),
        AggregateFunction::Sum => sum(),
        AggregateFunction::Average => sum().map(|sum| if sum.is_undefined() { sum } else { value.clone() }),
        AggregateFunction::CountIf | AggregateFunction::MakeList | AggregateFunction::MakeSet => None,
    }
}

/// A document that has only this value at a path.
pub(crate) fn document_with(path: &Path, value: Value) -> Value {
    path.0.iter().rev().fold(value, |value, step| match step {
        PathStep::Name(name) => Value::Object(Object::from_members([(name.clone(), value)])),
        PathStep::Elements => Value::Array(vec![value]),
    })
}
