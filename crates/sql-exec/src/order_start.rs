//! Where the rows of an order begin, as a client says that merges the rows of several ranges itself.
//!
//! In: the sort keys of the last row that the client gave, and for the range that it came from its document. Out: the place
//! in the order that a page comes after, like that of the page before.
//! - Without a document: after all rows with these keys, or before them.
//! - With one: after its rows, or before them. The client then leaves out those of its rows that it gave already.

use crate::error::ExecuteError;
use crate::hashed_key::{array_of, object_of};
use crate::long_key::{Directions, LastRow};
use crate::operators::ordered_scan::WHOLE_DOCUMENT;
use astrarium_sql_plan::plan::{Order, QueryPlan};
use astrarium_value::Value;

/// Where the rows of an order begin.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderStart {
    /// One for each sort key of the query.
    pub keys: Vec<StartKey>,
    /// The number of the document whose rows these keys are.
    pub document: Option<u64>,
    /// Whether rows with these keys, or of the document, are left out.
    pub exclude: bool,
}

/// A sort key as clients write it.
#[derive(Debug, Clone, PartialEq)]
pub enum StartKey {
    /// What is no array and no object.
    Value(Value),
    /// An array with this hash, the low half first.
    Array(u64, u64),
    /// An object with this hash.
    Object(u64, u64),
}

impl OrderStart {
    /// The place that all rows come after.
    pub(crate) fn row(&self, plan: &QueryPlan, directions: &Directions<'_>) -> Result<LastRow, ExecuteError> {
        let is_ordered = plan.grouping.is_none() && matches!(plan.order, Order::Keys(_));
        if !is_ordered || plan.order_keys().len() != self.keys.len() {
            return Err(ExecuteError::ForeignStart);
        }
        let key = |key: &StartKey| match key {
            StartKey::Value(value) => value.clone(),
            StartKey::Array(low, high) => array_of((*low, *high)),
            StartKey::Object(low, high) => object_of((*low, *high)),
        };
        let place = match (self.document, self.exclude) {
            (None, true) => directions.after_ties(),
            (None, false) => directions.before_ties(),
            (Some(number), true) => (number, WHOLE_DOCUMENT),
            (Some(number), false) => directions.before((number, 0)),
        };
        Ok((self.keys.iter().map(key).collect(), place))
    }
}
