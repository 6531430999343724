//! The merge of ranges: rows that come in order from each of several ranges become one order.
//!
//! Numbers of documents are those of the container, so a position in the merged order is a position in each range.

use super::RowBatch;
use super::ordered_scan::{OrderedScan, Scanned, is_lacking};
use super::sort::{RowOrder, SortedRow};
use crate::access::{RangeIndex, finder, scope_entries};
use crate::error::ExecuteError;
use crate::execution::Execution;
use crate::long_key::LastRow;
use crate::resume::ResumePlace;
use astrarium_index::Served;
use astrarium_sql_plan::physical::{
    AccessPath, IndexUse, OrderDemand, PlannedAccess, RangeOfOrder, choose_order,
};
use std::cmp::Ordering;

/// Merges ordered scans.
pub(crate) struct MergeOfRanges<'a> {
    scans: Vec<OrderedScan<'a>>,
    order: RowOrder,
}

impl<'a> MergeOfRanges<'a> {
    /// The ordered scans of all ranges, if that is cheaper than sorting.
    pub(crate) async fn open(
        execution: &mut Execution<'_>,
        scanned: Scanned<'a>,
        after: Option<&LastRow>,
        index_use: IndexUse,
    ) -> Result<Option<MergeOfRanges<'a>>, ExecuteError> {
        let Scanned { reader, scope, plan, ordered, wanted } = scanned;
        let ranges = reader.ranges(scope)?;
        let set = &plan.indexes.active;
        let scopes: Vec<Option<Served>> =
            ranges.iter().map(|range| scope_entries(set, reader, scope, range)).collect();
        let mut known: Vec<RangeOfOrder<'_, RangeIndex>> = Vec::with_capacity(ranges.len());
        for (range, scope) in ranges.iter().zip(&scopes) {
            let statistics = RangeIndex::new(finder(reader, range)?, plan);
            known.push(RangeOfOrder { statistics, scope: scope.as_ref() });
        }
        let demand = OrderDemand { rows: wanted, is_lacking: is_lacking(after), index_use };
        let Some(ways) = choose_order(plan, ordered, demand, &mut known).await? else { return Ok(None) };
        let mut scans = Vec::with_capacity(ranges.len());
        for (range, way) in ranges.into_iter().zip(ways) {
            let path = AccessPath::OrderedScan(ordered, way.lacking);
            execution.job.gauge.note(range.id, &PlannedAccess::of(path, way.matching));
            scans.push(OrderedScan::new(scanned, range, way.lacking, after.cloned())?);
        }
        let order = RowOrder::new(execution.plan.order_keys(), ordered.backward);
        Ok(Some(MergeOfRanges { scans, order }))
    }

    /// The next rows.
    pub(crate) async fn next(
        &mut self,
        execution: &mut Execution<'_>,
    ) -> Result<Option<RowBatch>, ExecuteError> {
        for scan in &mut self.scans {
            scan.fill(execution).await?;
        }
        let mut batch = RowBatch::default();
        let frontier = self.frontier();
        let first =
            self.first().filter(|(_, row)| frontier.is_none_or(|frontier| self.is_before(row, frontier)));
        let Some((place, _)) = first else {
            batch.end =
                frontier.map(|(keys, (number, index))| ResumePlace::Key(keys.clone(), *number, *index));
            return Ok(batch.end.is_some().then_some(batch));
        };
        let is_alone = self.scans.len() == 1;
        let rows = &mut self.scans[place].rows;
        let count = if is_alone { rows.len() } else { 1 };
        batch.rows.extend(rows.drain(..count).map(SortedRow::into_output));
        Ok(Some(batch))
    }

    /// The scan whose row comes first.
    fn first(&self) -> Option<(usize, &SortedRow)> {
        let heads =
            self.scans.iter().enumerate().filter_map(|(place, scan)| Some((place, scan.rows.front()?)));
        heads.min_by(|(_, left), (_, right)| {
            self.order.compare((&left.keys, left.place), (&right.keys, right.place))
        })
    }

    /// The place up to which all scans have read whose time is over: rows beyond it may not be all there are.
    fn frontier(&self) -> Option<&LastRow> {
        let paused = self.scans.iter().filter(|scan| scan.is_paused && scan.rows.is_empty());
        let frontiers = paused.filter_map(OrderedScan::frontier);
        frontiers.min_by(|left, right| self.order.compare((&left.0, left.1), (&right.0, right.1)))
    }

    fn is_before(&self, row: &SortedRow, frontier: &LastRow) -> bool {
        self.order.compare((&row.keys, row.place), (&frontier.0, frontier.1)) == Ordering::Less
    }
}
