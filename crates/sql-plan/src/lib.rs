//! From a syntax tree to a plan: names resolved, rules checked, expressions made ready to be evaluated.
//!
//! `bind` turns the tree, the parameters and what the container defines into a [`QueryPlan`]; `rules` improve it, each in
//! a file of its own, without changing its answer; `routing` finds the partition keys that a filter pins; `explain`
//! prints a plan for people, `client_plan` for SDKs; `advice` says what could be asked more cheaply.
//! Invariants
//! - A plan holds no names: aliases are slots, functions are pointers, parameters are values.
//! - A rule takes a plan and gives a plan with the same rows.
//!
//! Not here: reading documents and evaluating (`sql-exec`), the grammar (`sql-syntax`).

pub mod advice;
mod bind;
pub mod client_plan;
pub mod cost;
mod error;
pub mod estimates;
pub mod evaluate;
pub mod explain;
pub mod expression;
pub mod needs;
pub mod physical;
pub mod plan;
pub mod routing;
mod rules;
mod serving;

pub use bind::{Catalog, bind};
pub use error::{NOT_JSON, PlanError};
pub use expression::Expr;
pub use plan::QueryPlan;

use astrarium_sql_syntax::ast::SelectQuery;
use astrarium_value::Value;
use std::collections::BTreeMap;

/// The values of a query's parameters, by name with the `@`.
#[derive(Debug, Clone, Default)]
pub struct Parameters {
    values: BTreeMap<String, Value>,
}

impl Parameters {
    /// Parameters from pairs; of equal names the last counts.
    pub fn new(values: Vec<(String, Value)>) -> Parameters {
        Parameters { values: values.into_iter().collect() }
    }

    /// All names with their values, in order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// A parameter's value.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }
}

/// Makes the plan of a query: bound, checked against the indexing policy, and improved by all rules.
pub fn plan(
    query: &SelectQuery,
    catalog: &Catalog<'_>,
    parameters: &Parameters,
) -> Result<QueryPlan, PlanError> {
    let plan = bind(query, catalog, parameters)?;
    serving::check(&plan, *catalog)?;
    Ok(rules::apply(plan))
}
