//! Scalar expressions, of rows and of groups.

use super::grouping::{self, Grouped};
use super::sources::step_into;
use super::{Binder, habits, unresolved};
use crate::error::PlanError;
use crate::expression::{Expr, Slot, Step};
use astrarium_sql_functions::operators::LikePattern;
use astrarium_sql_syntax::ast::{self, ExpressionKind, LogicalOperator, SubqueryForm, UnaryOperator};
use astrarium_sql_syntax::{Span, print_expression};
use astrarium_value::Value;
use std::sync::Arc;

impl Binder<'_> {
    /// An expression of a row.
    pub(super) fn expression(&mut self, expression: &ast::Expression) -> Result<Expr, PlanError> {
        self.bound(expression, &mut None)
    }

    /// An expression of a group: grouping keys and aggregates stand for themselves, nothing else may look at rows.
    pub(super) fn grouped_expression(
        &mut self,
        expression: &ast::Expression,
        grouped: &mut Grouped,
    ) -> Result<Expr, PlanError> {
        self.bound(expression, &mut Some(grouped))
    }

    fn bound(
        &mut self,
        expression: &ast::Expression,
        grouped: &mut Option<&mut Grouped>,
    ) -> Result<Expr, PlanError> {
        if let Some(key) = grouped.as_ref().and_then(|grouped| grouped.key_of(expression)) {
            return Ok(Expr::GroupKey(key));
        }
        let span = expression.span;
        if grouped.as_ref().is_some_and(|grouped| is_ungrouped_path(expression, grouped)) {
            self.check_alias(expression)?;
            return Err(grouping::ungrouped(&print_expression(expression), span));
        }
        match &expression.kind {
            ExpressionKind::Undefined => Ok(Expr::Constant(Value::Undefined)),
            ExpressionKind::Null => Ok(Expr::Constant(Value::Null)),
            ExpressionKind::Boolean(value) => Ok(Expr::Constant(Value::Bool(*value))),
            ExpressionKind::Number(number) => Ok(Expr::Constant(Value::Number(number.to_double()))),
            ExpressionKind::String(text) => Ok(Expr::Constant(Value::String(text.as_str().into()))),
            // One that the request gives no value is undefined.
            ExpressionKind::Parameter(name) => {
                Ok(Expr::Constant(self.parameters.get(name).cloned().unwrap_or_default()))
            }
            ExpressionKind::Identifier(name) => self.identifier(name, span, grouped.is_some()),
            ExpressionKind::Member { base, name, .. } => {
                if let Some(computed) = self.computed_property(base, name, grouped.is_some())? {
                    return Ok(computed);
                }
                let base = self.bound(base, grouped)?;
                Ok(step_into(base, Step::Name(name.as_str().into())))
            }
            ExpressionKind::Index { base, index } => {
                if !is_known_index(index) {
                    let message =
                        "The specified query includes 'member indexer' which is currently not supported.";
                    return Err(PlanError::new(span, "SC2990", message));
                }
                let base = self.bound(base, grouped)?;
                let index = self.bound(index, grouped)?;
                Ok(index_into(base, index))
            }
            ExpressionKind::Call { name, user_defined, arguments } => {
                self.call(name, *user_defined, arguments, span, grouped)
            }
            ExpressionKind::Subquery { form, query } => {
                if grouped.is_some() {
                    let message =
                        "A subquery may not appear beside aggregates or in a grouped query's SELECT clause.";
                    return Err(PlanError::new(span, "SC2104", message));
                }
                let plan = self.query(query)?;
                if *form == SubqueryForm::Scalar && plan.may_have_many_rows() {
                    let message =
                        "The cardinality of a scalar subquery result set cannot be greater than one.";
                    return Err(PlanError::new(span, "SC2107", message));
                }
                Ok(Expr::Subquery(*form, Box::new(plan)))
            }
            ExpressionKind::Raw(_) => Err(PlanError::new(span, "SC1001", "Syntax error, incorrect syntax.")),
            _ => self.operator(expression, grouped),
        }
    }

    /// Operators and literals whose parts are bound alike.
    fn operator(
        &mut self,
        expression: &ast::Expression,
        grouped: &mut Option<&mut Grouped>,
    ) -> Result<Expr, PlanError> {
        let mut part = |expression: &ast::Expression| self.bound(expression, grouped);
        Ok(match &expression.kind {
            ExpressionKind::Unary { operator, operand } => Expr::Unary(*operator, Box::new(part(operand)?)),
            ExpressionKind::Binary { operator, left, right } => {
                Expr::Binary(*operator, Box::new(part(left)?), Box::new(part(right)?))
            }
            ExpressionKind::Logical { operator, operands } => {
                let operands = operands.iter().map(part).collect::<Result<_, _>>()?;
                match operator {
                    LogicalOperator::And => Expr::And(operands),
                    LogicalOperator::Or => Expr::Or(operands),
                }
            }
            ExpressionKind::Conditional { condition, then, otherwise } => Expr::Conditional(
                Box::new(part(condition)?),
                Box::new(part(then)?),
                Box::new(part(otherwise)?),
            ),
            ExpressionKind::Coalesce { left, right } => {
                Expr::Coalesce(Box::new(part(left)?), Box::new(part(right)?))
            }
            ExpressionKind::In { value, list, negated } => {
                let list = list.iter().map(&mut part).collect::<Result<_, _>>()?;
                negated_if(*negated, Expr::In(Box::new(part(value)?), list))
            }
            ExpressionKind::Between { value, low, high, negated } => {
                let between =
                    Expr::Between(Box::new(part(value)?), Box::new(part(low)?), Box::new(part(high)?));
                negated_if(*negated, between)
            }
            ExpressionKind::Like { value, pattern, escape, negated } => {
                let (value, pattern) = (Box::new(part(value)?), part(pattern)?);
                negated_if(*negated, like(value, pattern, *escape))
            }
            ExpressionKind::Array(items) => Expr::Array(items.iter().map(part).collect::<Result<_, _>>()?),
            ExpressionKind::Object(members) => {
                let member =
                    |member: &ast::ObjectMember| Ok((member.name.as_str().into(), part(&member.value)?));
                Expr::Object(members.iter().map(member).collect::<Result<_, PlanError>>()?)
            }
            _ => Expr::Constant(Value::Undefined),
        })
    }

    /// The name at the root of a path must be known before anything else is said about the path.
    fn check_alias(&self, path: &ast::Expression) -> Result<(), PlanError> {
        match &path.kind {
            ExpressionKind::Identifier(name) => {
                self.lookup(name).map(|_| ()).ok_or_else(|| unresolved(name, path.span))
            }
            ExpressionKind::Member { base, .. } | ExpressionKind::Index { base, .. } => {
                self.check_alias(base)
            }
            _ => Ok(()),
        }
    }

    fn identifier(&self, name: &str, span: Span, grouped: bool) -> Result<Expr, PlanError> {
        let slot = self.lookup(name).ok_or_else(|| unresolved(name, span))?;
        if grouped {
            return Err(grouping::ungrouped(name, span));
        }
        Ok(Expr::Path(slot, Vec::new()))
    }

    /// `alias.name` where the alias is the document and the container computes `name`.
    fn computed_property(
        &mut self,
        base: &ast::Expression,
        name: &str,
        grouped: bool,
    ) -> Result<Option<Expr>, PlanError> {
        let ExpressionKind::Identifier(alias) = &base.kind else { return Ok(None) };
        let slot = self.lookup(alias).filter(|slot| Some(*slot) == self.root);
        let (Some(slot), Some(container), true) = (slot, self.catalog.container, self.computed_allowed)
        else {
            return Ok(None);
        };
        let Some(property) = container.computed_properties.iter().find(|property| property.name == name)
        else {
            return Ok(None);
        };
        if grouped {
            return Err(grouping::ungrouped(name, base.span));
        }
        let broken =
            |_| PlanError::new(base.span, "", format!("The computed property '{name}' cannot be evaluated."));
        let query = astrarium_sql_syntax::parse(&property.query).map_err(broken)?;
        self.computed_allowed = false;
        let bound = self.computed_query(&query, slot);
        self.computed_allowed = true;
        bound.map(Some)
    }

    /// `SELECT VALUE e FROM alias` over the document of a slot, as the expression `e`.
    fn computed_query(&mut self, query: &ast::SelectQuery, slot: Slot) -> Result<Expr, PlanError> {
        let unusable =
            || PlanError::new(query.span, "", "A computed property must be SELECT VALUE of one expression.");
        let ast::SelectForm::Value(value) = &query.select.projection else { return Err(unusable()) };
        let alias = match query.from.as_ref().map(|from| &from.first.kind) {
            Some(ast::FromSourceKind::Path { path, alias }) => match (&path.kind, alias) {
                (_, Some(alias)) => alias.text.clone(),
                (ExpressionKind::Identifier(name), None) => name.clone(),
                _ => return Err(unusable()),
            },
            _ => return Err(unusable()),
        };
        self.scopes.push(vec![(alias, slot)]);
        let bound = self.expression(value);
        self.scopes.pop();
        bound
    }

    fn call(
        &mut self,
        name: &str,
        user_defined: bool,
        arguments: &[ast::Expression],
        span: Span,
        grouped: &mut Option<&mut Grouped>,
    ) -> Result<Expr, PlanError> {
        if !user_defined && let Some(function) = grouping::aggregate_named(name) {
            if let Some(grouped) = grouped {
                return self.aggregate(function, name, arguments, span, grouped);
            }
            let message = format!("The aggregate function '{name}' may not appear here.");
            return Err(PlanError::new(span, "SC2103", message));
        }
        let bound: Vec<Expr> =
            arguments.iter().map(|argument| self.bound(argument, grouped)).collect::<Result<_, _>>()?;
        if user_defined {
            return Ok(Expr::UserDefined(Arc::from(name), bound));
        }
        if astrarium_sql_functions::is_rank_function(name) {
            let message = format!("The {name} function is only allowed in an ORDER BY RANK clause.");
            return Err(PlanError::new(span, "SC2240", message));
        }
        let Some(function) = astrarium_sql_functions::find(name) else {
            let message = format!("'{name}' is not a recognized built-in function name.");
            // The name alone is at fault, not its arguments.
            let span = Span::new(span.start as usize, span.start as usize + name.len());
            return Err(PlanError::new(span, "SC2005", message).instead(habits::instead_of(name)));
        };
        if !function.takes(bound.len()) {
            return Err(argument_count(name, function.arguments.clone(), span));
        }
        let settings = self.call_settings(name, &bound);
        Ok(Expr::Call(function, bound, settings))
    }
}

/// A path into a row of which no part is a grouping expression.
fn is_ungrouped_path(expression: &ast::Expression, grouped: &Grouped) -> bool {
    if grouped.key_of(expression).is_some() {
        return false;
    }
    match &expression.kind {
        ExpressionKind::Identifier(_) => true,
        ExpressionKind::Member { base, .. } | ExpressionKind::Index { base, .. } => {
            is_ungrouped_path(base, grouped)
        }
        _ => false,
    }
}

/// An index may be a literal or a parameter, nothing that depends on the row.
fn is_known_index(index: &ast::Expression) -> bool {
    matches!(index.kind, ExpressionKind::Number(_) | ExpressionKind::String(_) | ExpressionKind::Parameter(_))
}

/// The refusal of a call with too many or too few arguments.
pub(super) fn argument_count(name: &str, wanted: std::ops::RangeInclusive<usize>, span: Span) -> PlanError {
    let (min, max) = (*wanted.start(), *wanted.end());
    let wanted = match max {
        _ if min == max => format!("{min}"),
        usize::MAX => format!("at least {min}"),
        _ => format!("{min} to {max}"),
    };
    PlanError::new(span, "SC2050", format!("The {name} function requires {wanted} argument(s)."))
}

fn negated_if(negated: bool, expression: Expr) -> Expr {
    if negated { Expr::Unary(UnaryOperator::Not, Box::new(expression)) } else { expression }
}

fn like(value: Box<Expr>, pattern: Expr, escape: Option<char>) -> Expr {
    match &pattern {
        Expr::Constant(Value::String(text)) => match LikePattern::compile(text, escape) {
            Some(compiled) => Expr::Like(value, Arc::new(compiled)),
            None => Expr::Constant(Value::Undefined),
        },
        Expr::Constant(_) => Expr::Constant(Value::Undefined),
        _ => Expr::LikeComputed(value, Box::new(pattern), escape),
    }
}

/// An index into a value: a step where it is known, a computation otherwise.
pub(super) fn index_into(base: Expr, index: Expr) -> Expr {
    match &index {
        Expr::Constant(Value::String(name)) => step_into(base, Step::Name(name.clone())),
        Expr::Constant(Value::Number(number))
            if number.fract() == 0.0 && (0.0..=4_294_967_295.0).contains(number) =>
        {
            step_into(base, Step::Position(*number as usize))
        }
        _ => Expr::Index(Box::new(base), Box::new(index)),
    }
}
