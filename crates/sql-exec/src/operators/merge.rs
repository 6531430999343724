//! The merge of ranges: rows that come in order from each of several ranges become one order.
//!
//! Numbers of documents are those of the container, so a position in the merged order is a position in each range.

use super::RowBatch;
use super::ordered_scan::{OrderedScan, Scanned};
use super::sort::{RowOrder, SortedRow};
use crate::access::{PageAccess, RangeIndex};
use crate::error::ExecuteError;
use crate::execution::Execution;
use crate::long_key::{AfterRow, LastRow};
use crate::resume::ResumePlace;
use astrarium_sql_plan::physical::{AccessPath, PlannedAccess};
use std::cmp::Ordering;

/// Merges ordered scans.
pub(crate) struct MergeOfRanges<'a> {
    scans: Vec<OrderedScan<'a>>,
    order: RowOrder,
}

impl<'a> MergeOfRanges<'a> {
    /// The ordered scans of all ranges.
    pub(crate) fn open(
        execution: &Execution<'_>,
        scanned: Scanned<'a>,
        after: Option<&AfterRow>,
        access: &mut PageAccess<'_, 'a>,
    ) -> MergeOfRanges<'a> {
        let scan = |(index, planned): (&mut RangeIndex<'a>, &PlannedAccess<'_>)| {
            let lacking =
                if let AccessPath::OrderedScan(_, lacking) = &planned.path { *lacking } else { None };
            OrderedScan::new(scanned, (index.range, index.finder.clone()), lacking, after.cloned())
        };
        let scans = access.ways().map(scan).collect();
        let order = RowOrder::new(execution.plan.order_keys(), scanned.ordered.backward);
        MergeOfRanges { scans, order }
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
