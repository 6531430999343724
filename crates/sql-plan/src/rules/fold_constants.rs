//! What can be computed without a row is computed once, unless that takes long: then it is left to those who run the query,
//! where long work can be interrupted.

use crate::evaluate::{EvaluateError, Row, evaluate};
use crate::expression::{Expr, Slot, Step};
use crate::plan::{Order, Projection, QueryPlan, Score, SourceKind};
use astrarium_env::{Meter, Work};
use astrarium_sql_functions::Context;
use astrarium_sql_syntax::ast::SubqueryForm;
use astrarium_value::Value;
use std::sync::Arc;
use std::time::Duration;

/// What folding a plan may take.
const FOLDING_STEPS_MAX: u64 = 1_000_000;
const FOLDING_TIME_MAX: Duration = Duration::from_millis(100);

/// Folds every expression of a plan, subqueries included.
pub(super) fn apply(plan: QueryPlan) -> QueryPlan {
    let meter = Meter::with_steps(Arc::new(Work::new(FOLDING_TIME_MAX)), FOLDING_STEPS_MAX);
    meter.scope(|| fold_expressions(plan))
}

fn fold_expressions(mut plan: QueryPlan) -> QueryPlan {
    for source in &mut plan.sources {
        match &mut source.kind {
            SourceKind::Documents => {}
            SourceKind::Value(value) | SourceKind::Elements(value) => fold(value),
            SourceKind::Rows(inner) | SourceKind::ElementsOfRows(inner) => fold_plan(inner),
        }
    }
    plan.filters.iter_mut().flatten().for_each(fold);
    if let Some(grouping) = &mut plan.grouping {
        grouping.keys.iter_mut().for_each(fold);
        grouping.aggregates.iter_mut().for_each(|aggregate| fold(&mut aggregate.argument));
    }
    match &mut plan.projection {
        Projection::Star(_) => {}
        Projection::Value(value) => fold(value),
        Projection::Members(members) => members.iter_mut().for_each(|(_, value)| fold(value)),
    }
    match &mut plan.order {
        Order::None => {}
        Order::Keys(keys) => keys.iter_mut().for_each(|key| fold(&mut key.key)),
        Order::Rank(components) => components.iter_mut().for_each(|component| match &mut component.score {
            Score::FullText { terms, .. } => terms.iter_mut().for_each(fold),
            Score::Vector(score) => fold(score),
        }),
    }
    plan
}

fn fold_plan(plan: &mut QueryPlan) {
    let taken = std::mem::replace(plan, QueryPlan::nothing());
    *plan = fold_expressions(taken);
}

fn fold(expression: &mut Expr) {
    match expression {
        Expr::Constant(_) | Expr::Path(..) | Expr::GroupKey(_) | Expr::Aggregate(_) => return,
        Expr::Subquery(_, plan) => return fold_plan(plan),
        Expr::Access(one, _) | Expr::Unary(_, one) | Expr::Like(one, _) => fold(one),
        Expr::Index(a, b) | Expr::Binary(_, a, b) | Expr::Coalesce(a, b) | Expr::LikeComputed(a, b, _) => {
            fold(a);
            fold(b);
        }
        Expr::Conditional(a, b, c) | Expr::Between(a, b, c) => {
            fold(a);
            fold(b);
            fold(c);
        }
        Expr::And(all) | Expr::Or(all) | Expr::Array(all) => all.iter_mut().for_each(fold),
        Expr::Call(_, all, _) | Expr::UserDefined(_, all) => all.iter_mut().for_each(fold),
        Expr::In(one, all) => {
            fold(one);
            all.iter_mut().for_each(fold);
        }
        Expr::Object(members) => members.iter_mut().for_each(|(_, value)| fold(value)),
    }
    let computable = match expression {
        Expr::UserDefined(..) => false,
        Expr::Call(function, ..) => function.deterministic,
        _ => true,
    };
    let constant = expression.parts().iter().all(|part| part.as_constant().is_some());
    if computable && constant {
        let value = evaluate(expression, &NoRow).map(std::borrow::Cow::into_owned);
        if let Ok(value) = value {
            *expression = Expr::Constant(value);
        }
    }
}

/// Evaluation without a row; whatever needs one is not folded.
struct NoRow;

impl Row for NoRow {
    fn path(&self, _: Slot, _: &[Step]) -> Value {
        Value::Undefined
    }

    fn group_key(&self, _: usize) -> Value {
        Value::Undefined
    }

    fn aggregate(&self, _: usize) -> Value {
        Value::Undefined
    }

    fn subquery(&self, _: SubqueryForm, _: &QueryPlan) -> Result<Value, EvaluateError> {
        Err(EvaluateError::Query("a subquery is not constant".to_owned()))
    }

    fn user_defined(&self, _: &str, _: &[Value]) -> Result<Value, EvaluateError> {
        Err(EvaluateError::Query("a user-defined function is not constant".to_owned()))
    }

    fn context(&self) -> &Context<'_> {
        static NOTHING: std::sync::LazyLock<Context<'static>> = std::sync::LazyLock::new(Context::default);
        &NOTHING
    }
}
