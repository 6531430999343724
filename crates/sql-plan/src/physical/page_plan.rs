//! The plan of a page: what stands on top of it, and by which way each range's documents are found.
//!
//! In: a logical plan, what indexes could do, what the page asks for, what is known of its ranges. Out: a [`PhysicalPlan`],
//! which `sql-exec` carries out and EXPLAIN prints.

use super::answer::choose_answer;
use super::ordered::{OrderDemand, choose_order};
use super::postings::{Demand, choose_postings};
use super::{AccessPath, IndexPlan, IndexUse, PlannedAccess, Statistics};
use crate::plan::{Order, QueryPlan};
use astrarium_index::{Access, Ordered, Served};

/// What stands on top of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageForm {
    /// Rows come as documents are found, in order of insertion; a page has those of one range.
    Streamed,
    /// Rows come in the order of an index, those of all ranges merged.
    Merged,
    /// All rows are looked at, and the first of them kept.
    Sorted,
    /// All rows are looked at, and each is kept once.
    Distinct,
    /// All rows are looked at, and become groups.
    Grouped,
    /// All rows are looked at, and ranked by their scores.
    Ranked,
}

/// How a page is made.
#[derive(Debug, Clone, PartialEq)]
pub struct PhysicalPlan<'a> {
    /// What stands on top.
    pub form: PageForm,
    /// How documents are found in each range that the page looks at; nothing if all are read.
    pub accesses: Vec<PlannedAccess<'a>>,
}

/// What a page asks for.
#[derive(Debug, Clone, Copy)]
pub struct PageDemand {
    /// Rows that the page needs.
    pub rows: u64,
    /// Whether indexes are used.
    pub index_use: IndexUse,
    /// Whether the page goes on among the documents without an entry of the order; none if it is the first.
    pub is_lacking: Option<bool>,
    /// Whether the page goes on in the middle of a walk in order of keys, which no index has.
    pub is_in_key_order: bool,
    /// Whether the index alone was found not to have the answer.
    pub needs_documents: bool,
}

/// A range of documents that a way is chosen for.
pub struct KnownRange<'a, S> {
    /// What is known of it.
    pub statistics: S,
    /// The partitions that are looked at, if not all.
    pub scope: Option<&'a Served>,
}

impl PageForm {
    /// What stands on top of a query's pages, unless an index has its order.
    fn of(plan: &QueryPlan) -> PageForm {
        match (&plan.order, &plan.grouping) {
            (Order::Rank(_), _) => PageForm::Ranked,
            (_, Some(_)) => PageForm::Grouped,
            _ if plan.distinct => PageForm::Distinct,
            (Order::Keys(_), None) => PageForm::Sorted,
            (Order::None, None) => PageForm::Streamed,
        }
    }
}

impl IndexPlan {
    /// Whether a choice depends on what is known of data; otherwise all documents are read.
    pub fn has_choice(&self) -> bool {
        self.access != Access::Everything || self.order.is_some() || self.only.is_some()
    }
}

impl PhysicalPlan<'_> {
    /// The plan of a page that looks at everything there is.
    pub fn of_all(plan: &QueryPlan) -> PhysicalPlan<'static> {
        PhysicalPlan { form: PageForm::of(plan), accesses: Vec::new() }
    }

    /// Whether no document is read.
    pub fn is_index_only(&self) -> bool {
        self.accesses.iter().any(|access| matches!(access.path, AccessPath::IndexOnly(_)))
    }
}

/// Whether of rows with equal sort keys those of later documents come first. It follows from query and policy alone, so that
/// pages whose rows are found in different ways fit together.
pub fn has_reversed_ties(plan: &QueryPlan, index: Option<&IndexPlan>) -> bool {
    // A value that comes once, like a group, comes from its first document, whatever reads it: a position names that document.
    if plan.distinct || plan.grouping.is_some() {
        return false;
    }
    let first_descends = plan.order_keys().first().is_some_and(|key| key.descending);
    index.and_then(|index| index.order.as_ref()).map_or(first_descends, |ordered: &Ordered| ordered.backward)
}

/// Chooses how a page is made. The ranges are those that it looks at: of rows in order of insertion the one that it is in.
pub async fn choose_page<'a, S: Statistics>(
    plan: &QueryPlan,
    index: &'a IndexPlan,
    demand: PageDemand,
    ranges: &mut [KnownRange<'a, S>],
) -> Result<PhysicalPlan<'a>, S::Error> {
    let form = PageForm::of(plan);
    let is_used = demand.index_use != IndexUse::Never && index.indexes.active.is_used();
    if !is_used || demand.is_in_key_order || !index.has_choice() {
        return Ok(PhysicalPlan::of_all(plan));
    }
    if matches!(form, PageForm::Distinct | PageForm::Grouped)
        && !demand.needs_documents
        && let Some(accesses) = choose_answer(index, ranges).await?
    {
        return Ok(PhysicalPlan { form, accesses });
    }
    if form == PageForm::Sorted
        && let Some(ordered) = &index.order
        && let Some(accesses) = in_order(index, ordered, demand, ranges).await?
    {
        return Ok(PhysicalPlan { form: PageForm::Merged, accesses });
    }
    let in_order = form == PageForm::Streamed;
    let rows = if in_order { demand.rows } else { u64::MAX };
    let mut accesses = Vec::with_capacity(ranges.len());
    for range in ranges {
        let demand = Demand { rows, in_order, whole: false, scope: range.scope, index_use: demand.index_use };
        accesses.push(choose_postings(index, &demand, &mut range.statistics).await?);
    }
    Ok(PhysicalPlan { form, accesses })
}

async fn in_order<'a, S: Statistics>(
    index: &'a IndexPlan,
    ordered: &'a Ordered,
    demand: PageDemand,
    ranges: &mut [KnownRange<'a, S>],
) -> Result<Option<Vec<PlannedAccess<'a>>>, S::Error> {
    let demand =
        OrderDemand { rows: demand.rows, is_lacking: demand.is_lacking, index_use: demand.index_use };
    let ways = choose_order(index, ordered, demand, ranges).await?;
    let access =
        |way: super::OrderWay| PlannedAccess::of(AccessPath::OrderedScan(ordered, way.lacking), way.matching);
    Ok(ways.map(|ways| ways.into_iter().map(access).collect()))
}
