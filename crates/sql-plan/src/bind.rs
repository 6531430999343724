//! Resolves a syntax tree: aliases to slots, names to functions, parameters to values; refuses what makes no sense.
//!
//! In: a checked tree, the container's definition, parameters. Out: a plan as written, not yet improved.
//! The files below follow the clauses: `sources` (FROM, JOIN), `expressions`, `grouping` (aggregates), `ordering`.

mod expressions;
mod grouping;
mod habits;
mod ordering;
mod settings;
mod sources;

use crate::Parameters;
use crate::error::PlanError;
use crate::expression::{Expr, Slot};
use crate::plan::{Grouping, Order, Projection, QueryPlan};
use astrarium_catalog::definition::container::ContainerDefinition;
use astrarium_sql_syntax::Span;
use astrarium_sql_syntax::ast::{self, Count, SelectQuery};
use astrarium_value::Value;
use grouping::Grouped;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a query can refer to besides its own text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Catalog<'a> {
    /// The container; absent for queries over the small feeds of the catalog.
    pub container: Option<&'a ContainerDefinition>,
}

/// Resolves a whole query.
pub fn bind(
    query: &SelectQuery,
    catalog: &Catalog<'_>,
    parameters: &Parameters,
) -> Result<QueryPlan, PlanError> {
    let mut binder = Binder {
        catalog: *catalog,
        parameters,
        scopes: Vec::new(),
        slot_count: 0,
        root: None,
        root_unnamed: false,
        computed_allowed: true,
        input: None,
    };
    let mut plan = binder.query(query)?;
    plan.slot_count = binder.slot_count;
    plan.input = binder.input.map(Arc::new);
    Ok(plan)
}

struct Binder<'a> {
    catalog: Catalog<'a>,
    parameters: &'a Parameters,
    /// Names of each query from the outermost to the current one.
    scopes: Vec<Vec<(String, Slot)>>,
    slot_count: usize,
    /// The slot of the whole document.
    root: Option<Slot>,
    /// Whether the next name for the container stands for that document: in the subquery of `FROM (SELECT ..)`.
    root_unnamed: bool,
    /// Off while a computed property is resolved: they may not use each other.
    computed_allowed: bool,
    /// The subquery that a whole query reads instead of the container.
    input: Option<QueryPlan>,
}

impl Binder<'_> {
    fn new_slot(&mut self) -> Slot {
        self.slot_count += 1;
        self.slot_count - 1
    }

    fn query(&mut self, query: &SelectQuery) -> Result<QueryPlan, PlanError> {
        self.scopes.push(Vec::new());
        let plan = self.query_in_scope(query);
        self.scopes.pop();
        plan
    }

    fn query_in_scope(&mut self, query: &SelectQuery) -> Result<QueryPlan, PlanError> {
        let sources = self.sources(query.from.as_ref())?;
        let filter = query.filter.as_ref().map(|filter| self.filter(filter)).transpose()?;
        let mut filters = vec![Vec::new(); sources.len() + 1];
        filters[sources.len()].extend(filter);
        let aggregated = !query.group_by.is_empty() || grouping::has_aggregate(query);
        let mut grouped = Grouped::default();
        let (projection, order);
        if aggregated {
            for key in &query.group_by {
                grouping::check_key(key)?;
                let bound = self.expression(key)?;
                grouped.add_key(key, bound);
            }
            projection = self.projection(query, Some(&mut grouped))?;
            order = self.grouped_order(query, &mut grouped)?;
        } else {
            projection = self.projection(query, None)?;
            order = self.order(query)?;
        }
        let grouping = aggregated.then(|| {
            let (keys, aggregates) = grouped.into_parts();
            Grouping { keys, aggregates }
        });
        let (offset, limit) = self.limits(query)?;
        let distinct = query.select.distinct;
        Ok(QueryPlan {
            sources,
            filters,
            grouping,
            projection,
            distinct,
            order,
            offset,
            limit,
            slot_count: 0,
            input: None,
        })
    }

    fn filter(&mut self, filter: &ast::Expression) -> Result<Expr, PlanError> {
        if let Some(span) = grouping::find_aggregate(filter) {
            let message = "An aggregate may not appear in the WHERE clause.";
            return Err(PlanError::new(span, "SC2103", message));
        }
        self.expression(filter)
    }

    fn projection(
        &mut self,
        query: &SelectQuery,
        mut grouped: Option<&mut Grouped>,
    ) -> Result<Projection, PlanError> {
        match &query.select.projection {
            ast::SelectForm::Star => {
                let span = query.select.span;
                let slot = self.scopes.last().and_then(|names| names.first()).map(|(_, slot)| *slot);
                let message = "'SELECT *' is not valid if FROM clause is omitted.";
                slot.map(Projection::Star).ok_or_else(|| PlanError::new(span, "SC2042", message))
            }
            ast::SelectForm::Value(value) => Ok(Projection::Value(self.projected(value, &mut grouped)?)),
            ast::SelectForm::List(items) => {
                let mut unnamed = 0;
                let mut names = BTreeSet::new();
                let mut members: Vec<(Arc<str>, Expr)> = Vec::with_capacity(items.len());
                for item in items {
                    let name: Arc<str> = output_name(item, &mut unnamed).into();
                    if !names.insert(name.clone()) {
                        let message = format!(
                            "Cannot assign two or more property values to the same property '{name}'."
                        );
                        return Err(PlanError::new(item.span, "SC2022", message));
                    }
                    members.push((name, self.projected(&item.expression, &mut grouped)?));
                }
                Ok(Projection::Members(members))
            }
        }
    }

    fn projected(
        &mut self,
        expression: &ast::Expression,
        grouped: &mut Option<&mut Grouped>,
    ) -> Result<Expr, PlanError> {
        match grouped {
            None => self.expression(expression),
            Some(grouped) => self.grouped_expression(expression, grouped),
        }
    }

    /// OFFSET LIMIT, or TOP, as rows to skip and rows to give.
    fn limits(&self, query: &SelectQuery) -> Result<(u64, Option<u64>), PlanError> {
        if let Some(clause) = &query.offset_limit {
            let offset = self.count(&clause.offset, "SC2062", "OFFSET")?;
            return Ok((offset, Some(self.count(&clause.limit, "SC2061", "LIMIT")?)));
        }
        let top = query.select.top.as_ref().map(|top| self.count(top, "SC2060", "TOP")).transpose()?;
        Ok((0, top))
    }

    fn count(&self, count: &Count, code: &'static str, clause: &str) -> Result<u64, PlanError> {
        match count {
            Count::Literal { value, .. } => Ok(u64::from(*value)),
            Count::Parameter { name, span } => {
                let wrong = || {
                    let message = format!(
                        "The value of {name} for {clause} must be a whole number from 0 to 2147483647."
                    );
                    PlanError::new(*span, code, message)
                };
                match self.parameters.get(name) {
                    Some(Value::Number(number))
                        if number.fract() == 0.0 && (0.0..=2_147_483_647.0).contains(number) =>
                    {
                        Ok(*number as u64)
                    }
                    _ => Err(wrong()),
                }
            }
        }
    }
}

/// The output name of a select item: its alias, the last name of a path, or a number.
pub(crate) fn output_name(item: &ast::SelectItem, unnamed: &mut usize) -> String {
    if let Some(alias) = &item.alias {
        return alias.text.clone();
    }
    match &item.expression.kind {
        ast::ExpressionKind::Identifier(name) | ast::ExpressionKind::Member { name, .. } => name.clone(),
        _ => {
            *unnamed += 1;
            format!("${unnamed}")
        }
    }
}

/// The refusal of a name that nothing has.
pub(crate) fn unresolved(name: &str, span: Span) -> PlanError {
    let told = PlanError::new(span, "SC2001", format!("Identifier '{name}' could not be resolved."));
    let shown: String = name.chars().take(60).collect();
    told.instead(format!("FROM has no such name; a property is read from its source, as in c.{shown}"))
}

/// The order of a query without ORDER BY.
pub(crate) const NO_ORDER: Order = Order::None;
