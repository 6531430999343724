//! Aggregates and GROUP BY: what may stand in the SELECT clause of a grouped query.

use super::Binder;
use super::expressions::argument_count;
use crate::error::PlanError;
use crate::expression::Expr;
use crate::plan::Aggregate;
use astrarium_sql_functions::aggregates::AggregateFunction;
use astrarium_sql_syntax::ast::{self, ExpressionKind, OrderBy, SelectForm, SelectQuery};
use astrarium_sql_syntax::visit::TreePart;
use astrarium_sql_syntax::{Span, print_expression};
use std::collections::BTreeMap;

/// Up to here a list is looked through; a longer one is looked up by text, since a hostile query has thousands.
pub(super) const LOOKED_THROUGH_MAX: usize = 16;

/// What a grouped query has collected so far.
#[derive(Default)]
pub(super) struct Grouped {
    /// The grouping expressions, as written and as resolved.
    keys: Vec<(ast::Expression, Expr)>,
    /// The places of the grouping expressions by text, once there are many.
    key_texts: BTreeMap<String, usize>,
    /// The aggregates found, each once while there are few of them.
    pub(super) aggregates: Vec<Aggregate>,
    /// The places of the aggregates by text, once there are many.
    aggregate_texts: BTreeMap<String, usize>,
}

impl Grouped {
    /// Takes a grouping expression.
    pub(super) fn add_key(&mut self, key: &ast::Expression, bound: Expr) {
        self.keys.push((key.clone(), bound));
        let first_missing = match self.keys.len() {
            ..=LOOKED_THROUGH_MAX => return,
            count if count == LOOKED_THROUGH_MAX + 1 => 0,
            count => count - 1,
        };
        for (place, (key, _)) in self.keys.iter().enumerate().skip(first_missing) {
            self.key_texts.entry(print_expression(key)).or_insert(place);
        }
    }

    /// The grouping expressions, resolved.
    pub(super) fn into_parts(self) -> (Vec<Expr>, Vec<Aggregate>) {
        (self.keys.into_iter().map(|(_, key)| key).collect(), self.aggregates)
    }

    /// Which grouping expression this is.
    pub(super) fn key_of(&self, expression: &ast::Expression) -> Option<usize> {
        if self.keys.len() > LOOKED_THROUGH_MAX {
            return self.key_texts.get(&print_expression(expression)).copied();
        }
        self.keys.iter().position(|(key, _)| key == expression)
    }

    /// The place of an aggregate, which is added if it is new.
    fn place_of(&mut self, aggregate: Aggregate, argument: &ast::Expression) -> usize {
        let next = self.aggregates.len();
        if next < LOOKED_THROUGH_MAX {
            if let Some(place) = self.aggregates.iter().position(|own| *own == aggregate) {
                return place;
            }
        } else {
            let text = format!("{:?} {}", aggregate.function, print_expression(argument));
            let place = *self.aggregate_texts.entry(text).or_insert(next);
            if place < next {
                return place;
            }
        }
        self.aggregates.push(aggregate);
        next
    }
}

/// The aggregate of a name, in any case.
pub(super) fn aggregate_named(name: &str) -> Option<AggregateFunction> {
    AggregateFunction::find(name)
}

/// Whether the SELECT or ORDER BY clause has an aggregate outside of subqueries.
pub(super) fn has_aggregate(query: &SelectQuery) -> bool {
    let in_projection = match &query.select.projection {
        SelectForm::Star => false,
        SelectForm::Value(value) => find_aggregate(value).is_some(),
        SelectForm::List(items) => items.iter().any(|item| find_aggregate(&item.expression).is_some()),
    };
    let in_order = match &query.order_by {
        Some(OrderBy::Items { items, .. }) => {
            items.iter().any(|item| find_aggregate(&item.expression).is_some())
        }
        _ => false,
    };
    in_projection || in_order
}

/// The first aggregate of an expression outside of subqueries.
pub(super) fn find_aggregate(expression: &ast::Expression) -> Option<Span> {
    find(
        expression,
        &|expression| matches!(&expression.kind, ExpressionKind::Call { name, user_defined: false, .. } if aggregate_named(name).is_some()),
    )
}

fn find(expression: &ast::Expression, wanted: &dyn Fn(&ast::Expression) -> bool) -> Option<Span> {
    if wanted(expression) {
        return Some(expression.span);
    }
    let mut found = None;
    expression.parts(&mut |part| {
        if let (None, TreePart::Expression(child)) = (found, part) {
            found = find(child, wanted);
        }
    });
    found
}

/// A grouping expression must look at the row, and at nothing below or above it.
pub(super) fn check_key(key: &ast::Expression) -> Result<(), PlanError> {
    let subquery = find(key, &|expression| matches!(expression.kind, ExpressionKind::Subquery { .. }));
    if let Some(span) = subquery.or(find_aggregate(key)) {
        let message = "A GROUP BY expression may not contain an aggregate or a subquery.";
        return Err(PlanError::new(span, "SC2105", message));
    }
    if find(key, &|expression| matches!(expression.kind, ExpressionKind::Identifier(_))).is_none() {
        let message = "Each GROUP BY expression must contain at least one property reference.";
        return Err(PlanError::new(key.span, "SC2106", message));
    }
    Ok(())
}

/// The refusal of a look at rows where only groups are.
pub(super) fn ungrouped(name: &str, span: Span) -> PlanError {
    let message = format!(
        "Property reference '{name}' is invalid in the select list because it is not contained in either an aggregate \
         function or the GROUP BY clause."
    );
    PlanError::new(span, "SC2102", message)
}

impl Binder<'_> {
    pub(super) fn aggregate(
        &mut self,
        function: AggregateFunction,
        name: &str,
        arguments: &[ast::Expression],
        span: Span,
        grouped: &mut Grouped,
    ) -> Result<Expr, PlanError> {
        let [argument] = arguments else { return Err(argument_count(name, 1..=1, span)) };
        let subquery =
            find(argument, &|expression| matches!(expression.kind, ExpressionKind::Subquery { .. }));
        if find_aggregate(argument).or(subquery).is_some() {
            let message = "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.";
            return Err(PlanError::new(span, "SC2101", message));
        }
        let aggregate = Aggregate { function, argument: self.expression(argument)? };
        Ok(Expr::Aggregate(grouped.place_of(aggregate, argument)))
    }
}
