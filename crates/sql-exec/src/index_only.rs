//! Answers from the index alone: counts, least and greatest values, distinct values.
//!
//! In: the entries that were chosen to answer (`sql-plan::physical`). Out: finished groups, or distinct values; nothing where
//! the entries turn out not to tell: a term stands for several values, a sum would be rounded differently.
//! Invariant: the answer is the one that reading all documents gives.

use crate::access::{PageAccess, RangeIndex};
use crate::error::ExecuteError;
use crate::expired::Expired;
use crate::operators::group::{FinishedGroup, RowPlace};
use crate::rows::AccessWork;
use astrarium_index::entry::{Family, is_shortened_term, is_type_only, read_entry, read_term};
use astrarium_index::finder::{Error as IndexError, charge_entries};
use astrarium_index::{Finder, Path, PathStep, Served, TermRange};
use astrarium_kv::{Direction, KeyRange, ScanLimit, just_after};
use astrarium_sql_functions::aggregates::AggregateFunction;
use astrarium_sql_plan::Expr;
use astrarium_sql_plan::physical::{AccessPath, IndexAnswer, PlannedAccess};
use astrarium_sql_plan::plan::Grouping;
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

/// What the indexes of all ranges tell.
pub(crate) enum IndexOnlyAnswer<'p> {
    /// One value: a count, the least or the greatest.
    One(Value),
    /// The distinct values at a path.
    Values(&'p Path, BTreeMap<Value, Occurrence>),
}

/// Asks indexes without documents.
#[derive(Default)]
pub(crate) struct Asking {
    pub(crate) work: AccessWork,
}

impl Asking {
    /// What the chosen entries tell; nothing if they do not, after all.
    pub(crate) async fn answer<'p>(
        &mut self,
        access: &mut PageAccess<'p, '_>,
    ) -> Result<Option<IndexOnlyAnswer<'p>>, ExecuteError> {
        let (mut count, mut best) = (0, None);
        let mut values: Option<(&'p Path, BTreeMap<Value, Occurrence>)> = None;
        let mut is_count = false;
        for (index, planned) in access.ways() {
            let AccessPath::IndexOnly(answer) = &planned.path else { return Ok(None) };
            self.work.entries += index.expired().map_or(0, Expired::count);
            let is_told = match answer {
                IndexAnswer::Count(counted) => {
                    is_count = true;
                    let own = self.count(index, counted).await?;
                    count += own.unwrap_or_default();
                    own.is_some()
                }
                IndexAnswer::Extreme { entries, maximum } => {
                    self.extreme(index, entries, *maximum, &mut best).await?
                }
                IndexAnswer::Values { entries, path, has_lacking } => {
                    let (_, found) = values.get_or_insert_with(|| (*path, BTreeMap::new()));
                    self.values(index, entries, *has_lacking, found).await?
                }
            };
            if !is_told {
                return Ok(None);
            }
        }
        // A document that is counted is paid, and so is each value that is told.
        let (answer, told) = match values {
            Some((path, values)) => {
                let told = values.len() as u64;
                (IndexOnlyAnswer::Values(path, values), told)
            }
            None if is_count => (IndexOnlyAnswer::One(Value::Number(count as f64)), count),
            None => (IndexOnlyAnswer::One(best.unwrap_or_default()), 1),
        };
        self.work.priced.documents = told;
        Ok(Some(answer))
    }

    async fn count(
        &mut self,
        index: &mut RangeIndex<'_>,
        counted: &PlannedAccess<'_>,
    ) -> Result<Option<u64>, ExecuteError> {
        let Some(expired) = index.expired().cloned() else { return Ok(None) };
        let finder = index.finder.clone();
        Ok(Some(match &counted.path {
            AccessPath::Scan => finder.count(index.set().documents()).await?.saturating_sub(expired.count()),
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
                let Some(mut found) = index.open(counted).await?.filter(|found| found.exact) else {
                    return Ok(None);
                };
                let numbers = found.numbers(&finder, 0, usize::MAX).await?;
                self.work.entries += found.entries;
                numbers.into_iter().filter(|number| !expired.has(*number)).count() as u64
            }
        }))
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
            self.work.entries += batch.keys.len() as u64;
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

    /// Keeps the least or greatest value of a range's entries, if it is better than what is known.
    async fn extreme(
        &mut self,
        index: &RangeIndex<'_>,
        entries: &Served,
        maximum: bool,
        best: &mut Option<Value>,
    ) -> Result<bool, ExecuteError> {
        let Some(expired) = index.expired() else { return Ok(false) };
        for terms in &entries.ranges {
            let keys = (index.finder.keys(entries.family, terms), expired);
            let greatest = self.end_term(&index.finder, &keys, Direction::Backward).await?;
            let wanted = if maximum {
                greatest.clone()
            } else {
                self.end_term(&index.finder, &keys, Direction::Forward).await?
            };
            let (Some(greatest), Some(wanted)) = (greatest, wanted) else { continue };
            if is_type_only(&greatest) || is_shortened_term(&wanted) {
                return Ok(false);
            }
            let value = read_term(&wanted).map_err(IndexError::from)?;
            let is_better =
                best.as_ref().is_none_or(|best| if maximum { value > *best } else { value < *best });
            if is_better {
                *best = Some(value);
            }
        }
        Ok(true)
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
            self.work.entries += batch.keys.len() as u64;
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

    /// Adds the distinct values of a range's entries.
    async fn values(
        &mut self,
        index: &RangeIndex<'_>,
        entries: &Served,
        has_lacking: bool,
        found: &mut BTreeMap<Value, Occurrence>,
    ) -> Result<bool, ExecuteError> {
        let (finder, Some(expired)) = (&index.finder, index.expired()) else { return Ok(false) };
        for terms in &entries.ranges {
            let mut rest = finder.keys(entries.family, terms);
            let mut current: Option<(Vec<u8>, Occurrence)> = None;
            loop {
                let scan = finder.snapshot.scan_keys(&rest, Direction::Forward, STEP);
                let batch = scan.await.map_err(IndexError::from)?;
                charge_entries(batch.keys.len())?;
                self.work.entries += batch.keys.len() as u64;
                for key in batch.keys.iter() {
                    let (term, number) = read_entry(key).map_err(IndexError::from)?;
                    if expired.has(number) {
                        continue;
                    }
                    match &mut current {
                        Some((own, occurrence)) if own == term => occurrence.count += 1,
                        _ => {
                            if is_shortened_term(term) || found.len() > VALUES_MAX {
                                return Ok(false);
                            }
                            keep_term(found, current.take())?;
                            current = Some((term.to_vec(), Occurrence { count: 1, first: number }));
                        }
                    }
                }
                match batch.keys.last() {
                    Some(last) if batch.more => rest.start = just_after(last),
                    _ => break,
                }
            }
            keep_term(found, current.take())?;
        }
        if has_lacking {
            let (mut lacking, read) = index.lacking(entries.family).await?;
            self.work.entries += read;
            lacking.retain(|number| !expired.has(*number));
            if let Some(first) = lacking.first() {
                let occurrence = Occurrence { count: lacking.len() as u64, first: *first };
                keep(found, Value::Undefined, occurrence);
            }
        }
        Ok(true)
    }
}

/// The groups that an answer makes; none if an aggregate would be rounded differently row by row.
pub(crate) fn groups(answer: IndexOnlyAnswer<'_>, grouping: &Grouping) -> Option<Vec<FinishedGroup>> {
    let values = match answer {
        IndexOnlyAnswer::One(value) => {
            return Some(vec![FinishedGroup { keys: Vec::new(), results: vec![value], first: (0, 0) }]);
        }
        IndexOnlyAnswer::Values(_, values) => values,
    };
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
    groups.collect()
}

fn keep_term(
    found: &mut BTreeMap<Value, Occurrence>,
    current: Option<(Vec<u8>, Occurrence)>,
) -> Result<(), ExecuteError> {
    if let Some((term, occurrence)) = current {
        keep(found, read_term(&term).map_err(IndexError::from)?, occurrence);
    }
    Ok(())
}

fn keep(found: &mut BTreeMap<Value, Occurrence>, value: Value, occurrence: Occurrence) {
    let own = found.entry(value).or_insert(Occurrence { count: 0, first: u64::MAX });
    own.count += occurrence.count;
    own.first = own.first.min(occurrence.first);
}

/// An aggregate over so many times the same value; none if it would be rounded differently row by row.
fn result(function: AggregateFunction, value: &Value, counts_rows: bool, count: u64) -> Option<Value> {
    if counts_rows {
        return Some(Value::Number(count as f64));
    }
    if value.is_undefined() {
        // However often it occurs, it says the same.
        let mut accumulator = function.start();
        accumulator.add(value);
        return Some(accumulator.finish());
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
    if value.is_undefined() {
        return Value::Object(Object::from_members([]));
    }
    path.0.iter().rev().fold(value, |value, step| match step {
        PathStep::Name(name) => Value::Object(Object::from_members([(name.clone(), value)])),
        PathStep::Elements => Value::Array(vec![value]),
    })
}
