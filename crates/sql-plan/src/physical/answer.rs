//! Whether the index alone answers a query, so that no document is read.
//!
//! It has to know all documents, and which of them have expired. What only its entries tell (terms that stand for several
//! values, sums that would be rounded differently) turns out when they are read: the page is chosen again without it then.

use super::index_plan::AnswerEntries;
use super::postings::{Demand, choose_postings};
use super::{AccessPath, IndexAnswer, IndexPlan, IndexUse, KnownRange, PlannedAccess, Statistics};
use crate::cost::{ENTRY, LISTED_MAX, scan};

/// For each range which entries answer; none if documents have to be read. An entry costs a fraction of a document, and over whole ranges
/// nothing that entries answer needs more of them than there are documents. In a partition it may: the entries are those of all.
pub(super) async fn choose_answer<'a, S: Statistics>(
    plan: &'a IndexPlan,
    ranges: &mut [KnownRange<'a, S>],
) -> Result<Option<Vec<PlannedAccess<'a>>>, S::Error> {
    let Some(only) = &plan.only else { return Ok(None) };
    let is_of_documents = matches!(only, AnswerEntries::Count);
    if !is_of_documents && ranges.iter().any(|range| range.scope.is_some()) {
        // Entries of a path do not tell partitions.
        return Ok(None);
    }
    let mut found = Vec::with_capacity(ranges.len());
    for range in ranges {
        if range.statistics.excluded().await? > 0 || !range.statistics.knows_expired().await? {
            return Ok(None);
        }
        let Some(access) = answer_of(only, plan, range).await? else { return Ok(None) };
        found.push(access);
    }
    Ok((!found.is_empty()).then_some(found))
}

async fn answer_of<'a, S: Statistics>(
    only: &'a AnswerEntries,
    plan: &'a IndexPlan,
    range: &mut KnownRange<'a, S>,
) -> Result<Option<PlannedAccess<'a>>, S::Error> {
    let (answer, documents, cost) = match only {
        AnswerEntries::Count => {
            let counted = choose_postings(plan, &demand(range), &mut range.statistics).await?;
            if let Some(scope) = range.scope
                && counted.cost > scan(range.statistics.estimate(scope).await?)
            {
                return Ok(None);
            }
            // Without conditions the number of documents is known.
            let is_everything = counted.path == AccessPath::Scan;
            if !is_everything && !counted.exact {
                return Ok(None);
            }
            let cost = if is_everything { 0.0 } else { counted.cost };
            (IndexAnswer::Count(Box::new(counted)), 1, cost)
        }
        AnswerEntries::Extreme { entries, maximum } => {
            (IndexAnswer::Extreme { entries, maximum: *maximum }, 1, 0.0)
        }
        AnswerEntries::Values { entries, path, all } => {
            let mut has_lacking = false;
            if let Some(all) = all {
                let size = range.statistics.documents().await?;
                has_lacking = range.statistics.order(all).await?.all < size;
                if has_lacking && size > LISTED_MAX {
                    return Ok(None);
                }
            }
            let count = range.statistics.estimate(entries).await?;
            (IndexAnswer::Values { entries, path, has_lacking }, count, count as f64 * ENTRY as f64)
        }
    };
    Ok(Some(PlannedAccess { cost, ..PlannedAccess::of(AccessPath::IndexOnly(answer), documents) }))
}

/// All documents of a range, by its index alone.
fn demand<'a, S>(range: &KnownRange<'a, S>) -> Demand<'a> {
    Demand { rows: u64::MAX, in_order: false, whole: true, scope: range.scope, index_use: IndexUse::Always }
}
