//! The one evaluator of expressions: rules fold constants with it, `sql-exec` runs queries with it.
//!
//! In: an expression and a [`Row`] that knows what slots hold. Out: a value, borrowed where the expression has it.
//! Semantics of operators and functions are those of `sql-functions`; here is only who is evaluated when: logic and
//! conditionals stop early, a user-defined function is not called with an undefined argument.
//! Every expression is charged to the meter of the thread, functions and comparisons by the size of what they look at.

use crate::expression::{CallSettings, Expr, Slot, Step};
use crate::plan::QueryPlan;
use astrarium_env::{Stopped, charge, check};
use astrarium_sql_functions::limits::{ARRAY_BYTES_MAX, TEXT_BYTES_PER_STEP, approximate_bytes, weight};
use astrarium_sql_functions::{Context, ScalarFunction, operators};
use astrarium_sql_syntax::ast::{BinaryOperator, SubqueryForm, UnaryOperator};
use astrarium_value::{Object, Value};
use std::borrow::Cow;

/// Why an evaluation ended without a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateError {
    /// The query itself is at fault, such as a scalar subquery with two rows or a failing user-defined function.
    #[error("{0}")]
    Query(String),
    /// The query needs too much memory.
    #[error("{0}")]
    Budget(String),
    /// The work has to end before it is done.
    #[error("the evaluation was stopped")]
    Stopped(Stopped),
}

impl From<Stopped> for EvaluateError {
    fn from(stopped: Stopped) -> EvaluateError {
        EvaluateError::Stopped(stopped)
    }
}

/// What an expression is evaluated on.
pub trait Row {
    /// A path into what a slot holds.
    fn path(&self, slot: Slot, steps: &[Step]) -> Value;
    /// The value of a grouping expression.
    fn group_key(&self, index: usize) -> Value;
    /// The result of an aggregate.
    fn aggregate(&self, index: usize) -> Value;
    /// The value of a subquery.
    fn subquery(&self, form: SubqueryForm, plan: &QueryPlan) -> Result<Value, EvaluateError>;
    /// The result of a user-defined function.
    fn user_defined(&self, name: &str, arguments: &[Value]) -> Result<Value, EvaluateError>;
    /// Time, randomness and what the container says.
    fn context(&self) -> &Context<'_>;
}

/// Evaluates an expression.
pub fn evaluate<'a>(expression: &'a Expr, row: &dyn Row) -> Result<Cow<'a, Value>, EvaluateError> {
    charge(1)?;
    let value = match expression {
        Expr::Constant(value) => return Ok(Cow::Borrowed(value)),
        Expr::Path(slot, steps) => row.path(*slot, steps),
        Expr::GroupKey(index) => row.group_key(*index),
        Expr::Aggregate(index) => row.aggregate(*index),
        Expr::Access(base, step) => step_into(&*evaluate(base, row)?, step),
        Expr::Index(base, index) => operators::index(&*evaluate(base, row)?, &*evaluate(index, row)?),
        Expr::Unary(operator, operand) => unary(*operator, &*evaluate(operand, row)?),
        Expr::Binary(operator, left, right) => {
            let (left, right) = (evaluate(left, row)?, evaluate(right, row)?);
            charge_large(&left)?;
            charge_large(&right)?;
            binary(*operator, &left, &right)
        }
        Expr::And(operands) => chain(operands, row, false)?,
        Expr::Or(operands) => chain(operands, row, true)?,
        Expr::Conditional(condition, then, otherwise) => {
            let chosen = if is_true(&*evaluate(condition, row)?) { then } else { otherwise };
            return evaluate(chosen, row);
        }
        Expr::Coalesce(left, right) => {
            let left = evaluate(left, row)?;
            return if left.is_undefined() { evaluate(right, row) } else { Ok(left) };
        }
        Expr::In(value, list) => member_of(&*evaluate(value, row)?, list, row)?,
        Expr::Between(value, low, high) => {
            operators::between(&*evaluate(value, row)?, &*evaluate(low, row)?, &*evaluate(high, row)?)
        }
        Expr::Like(value, pattern) => match &*evaluate(value, row)? {
            Value::String(text) => {
                charge((text.len() / TEXT_BYTES_PER_STEP) as u64)?;
                Value::Bool(pattern.matches(text))
            }
            _ => Value::Undefined,
        },
        Expr::LikeComputed(value, pattern, escape) => {
            like(&*evaluate(value, row)?, &*evaluate(pattern, row)?, *escape)?
        }
        Expr::Call(function, arguments, settings) => {
            call(function, &values(arguments, row)?, *settings, row)?
        }
        Expr::UserDefined(name, arguments) => {
            let arguments = values(arguments, row)?;
            if arguments.iter().any(Value::is_undefined) {
                Value::Undefined
            } else {
                row.user_defined(name, &arguments)?
            }
        }
        Expr::Array(items) => {
            let mut items = values(items, row)?;
            items.retain(|item| !item.is_undefined());
            bounded(Value::Array(items))?
        }
        Expr::Object(members) => {
            let mut values = Vec::with_capacity(members.len());
            for (name, member) in members {
                values.push((name.clone(), evaluate(member, row)?.into_owned()));
            }
            bounded(Value::Object(Object::from_members(values)))?
        }
        Expr::Subquery(form, plan) => row.subquery(*form, plan)?,
    };
    // What was stopped on the way has no value, whatever it gave.
    check()?;
    Ok(Cow::Owned(value))
}

/// The result of a built-in function.
fn call(
    function: &ScalarFunction,
    arguments: &[Value],
    settings: CallSettings,
    row: &dyn Row,
) -> Result<Value, Stopped> {
    charge(arguments.iter().map(weight).sum())?;
    if settings == CallSettings::default() {
        return Ok((function.evaluate)(row.context(), arguments));
    }
    let mut context = *row.context();
    context.full_text_language = settings.language.unwrap_or(context.full_text_language);
    context.vector = settings.vector.unwrap_or(context.vector);
    Ok((function.evaluate)(&context, arguments))
}

/// LIKE with a pattern that is made anew for each row.
fn like(value: &Value, pattern: &Value, escape: Option<char>) -> Result<Value, Stopped> {
    charge_large(value)?;
    charge(weight(pattern).saturating_mul(8))?;
    let escape = escape.map(|escape| Value::String(escape.to_string().into()));
    Ok(operators::like(value, pattern, escape.as_ref()))
}

/// Charges for looking at a value, unless it is so small that its expression was charged for it.
fn charge_large(value: &Value) -> Result<(), Stopped> {
    match value {
        Value::String(text) if text.len() < TEXT_BYTES_PER_STEP => Ok(()),
        Value::String(_) | Value::Array(_) | Value::Object(_) => charge(weight(value)),
        _ => Ok(()),
    }
}

/// A value that was put together from others, unless it has grown too large: literals in nested subqueries can double it at
/// every level.
pub fn bounded(value: Value) -> Result<Value, EvaluateError> {
    let nested = |item: &Value| matches!(item, Value::Array(_) | Value::Object(_));
    let may_grow = match &value {
        Value::Array(items) => items.iter().any(nested),
        Value::Object(object) => object.iter().any(|(_, item)| nested(item)),
        _ => false,
    };
    if may_grow && approximate_bytes(&value) > ARRAY_BYTES_MAX {
        let message = format!("A value of the query is larger than {} MB.", ARRAY_BYTES_MAX >> 20);
        return Err(EvaluateError::Budget(message));
    }
    Ok(value)
}

/// Whether a condition lets a row through: only `true` does.
pub fn is_true(value: &Value) -> bool {
    matches!(value, Value::Bool(true))
}

/// A property or element of a value.
pub fn step_into(value: &Value, step: &Step) -> Value {
    match step {
        Step::Name(name) => operators::member(value, name),
        Step::Position(position) => operators::element(value, *position),
    }
}

/// Constants are copied, which counts with the rest of what is done to them.
fn values(expressions: &[Expr], row: &dyn Row) -> Result<Vec<Value>, EvaluateError> {
    expressions.iter().map(|one| evaluate(one, row).map(Cow::into_owned)).collect()
}

/// AND (`deciding` false) or OR (`deciding` true): the first operand of the deciding truth ends it.
fn chain(operands: &[Expr], row: &dyn Row, deciding: bool) -> Result<Value, EvaluateError> {
    let mut result = Some(!deciding);
    for operand in operands {
        match operators::truth(&*evaluate(operand, row)?) {
            Some(truth) if truth == deciding => return Ok(Value::Bool(deciding)),
            Some(_) => {}
            None => result = None,
        }
    }
    Ok(operators::truth_value(result))
}

fn member_of(value: &Value, list: &[Expr], row: &dyn Row) -> Result<Value, EvaluateError> {
    if value.is_undefined() {
        return Ok(Value::Undefined);
    }
    for item in list {
        charge_large(value)?;
        if operators::equals(value, &*evaluate(item, row)?) == Some(true) {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn unary(operator: UnaryOperator, operand: &Value) -> Value {
    match operator {
        UnaryOperator::Minus => operators::negate(operand),
        UnaryOperator::Plus => operators::plus(operand),
        UnaryOperator::BitNot => operators::bit_not(operand),
        UnaryOperator::Not => operators::not(operand),
    }
}

fn binary(operator: BinaryOperator, left: &Value, right: &Value) -> Value {
    let apply = match operator {
        BinaryOperator::Multiply => operators::multiply,
        BinaryOperator::Divide => operators::divide,
        BinaryOperator::Remainder => operators::remainder,
        BinaryOperator::Add => operators::add,
        BinaryOperator::Subtract => operators::subtract,
        BinaryOperator::Concatenate => operators::concatenate,
        BinaryOperator::ShiftLeft => operators::shift_left,
        BinaryOperator::ShiftRight => operators::shift_right,
        BinaryOperator::ShiftRightZero => operators::shift_right_unsigned,
        BinaryOperator::BitAnd => operators::bit_and,
        BinaryOperator::BitXor => operators::bit_exclusive_or,
        BinaryOperator::BitOr => operators::bit_or,
        BinaryOperator::Equal => operators::equal,
        BinaryOperator::NotEqual => operators::not_equal,
        BinaryOperator::Less => operators::less,
        BinaryOperator::LessOrEqual => operators::less_or_equal,
        BinaryOperator::Greater => operators::greater,
        BinaryOperator::GreaterOrEqual => operators::greater_or_equal,
    };
    apply(left, right)
}
