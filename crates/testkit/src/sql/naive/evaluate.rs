//! Expressions of the naive evaluator, one arm for each form of the tree.

use super::data::{Data, equal, typed_order};
use super::{Context, Names, Unknown, functions, lookup};
use astrarium_sql_syntax::ast::{
    BinaryOperator, Expression, ExpressionKind, LogicalOperator, SelectQuery, SubqueryForm, UnaryOperator,
};
use std::cmp::Ordering;

impl Context<'_> {
    /// The value of an expression for a row, or for a group of rows.
    pub(super) fn value(
        &self,
        expression: &Expression,
        row: &Names,
        group: Option<&[Names]>,
    ) -> Result<Data, Unknown> {
        let value = |part: &Expression| self.value(part, row, group);
        Ok(match &expression.kind {
            ExpressionKind::Undefined => Data::Undefined,
            ExpressionKind::Null => Data::Null,
            ExpressionKind::Boolean(own) => Data::Bool(*own),
            ExpressionKind::Number(number) => Data::Number(number.to_double()),
            ExpressionKind::String(text) => Data::Text(text.clone()),
            ExpressionKind::Parameter(name) => self.parameter(name)?,
            ExpressionKind::Identifier(name) => {
                lookup(row, name).cloned().ok_or_else(|| format!("the name {name}"))?
            }
            ExpressionKind::Member { base, name, .. } => value(base)?.member(name),
            ExpressionKind::Index { base, index } => value(base)?.index(&value(index)?),
            ExpressionKind::Unary { operator, operand } => unary(*operator, &value(operand)?),
            ExpressionKind::Binary { operator, left, right } => {
                binary(*operator, &value(left)?, &value(right)?)
            }
            ExpressionKind::Logical { operator, operands } => {
                let truths = operands.iter().map(|operand| value(operand).map(|value| truth(&value)));
                logical(*operator, &truths.collect::<Result<Vec<_>, _>>()?)
            }
            ExpressionKind::Conditional { condition, then, otherwise } => {
                let chosen = matches!(value(condition)?, Data::Bool(true));
                value(if chosen { then } else { otherwise })?
            }
            ExpressionKind::Coalesce { left, right } => match value(left)? {
                Data::Undefined => value(right)?,
                left => left,
            },
            ExpressionKind::In { value: own, list, negated } => {
                let own = value(own)?;
                let list = list.iter().map(value).collect::<Result<Vec<_>, _>>()?;
                match own {
                    Data::Undefined => Data::Undefined,
                    own => Data::Bool(list.iter().any(|item| equal(&own, item)) != *negated),
                }
            }
            ExpressionKind::Between { value: own, low, high, negated } => {
                let own = value(own)?;
                let above = compare(BinaryOperator::GreaterOrEqual, &own, &value(low)?);
                let below = compare(BinaryOperator::LessOrEqual, &own, &value(high)?);
                let between = logical(LogicalOperator::And, &[truth(&above), truth(&below)]);
                if *negated { unary(UnaryOperator::Not, &between) } else { between }
            }
            ExpressionKind::Like { value: own, pattern, escape: None, negated } => {
                match (value(own)?, value(pattern)?) {
                    (Data::Text(text), Data::Text(pattern)) => {
                        let (text, pattern): (Vec<char>, Vec<char>) =
                            (text.chars().collect(), pattern.chars().collect());
                        Data::Bool(like(&text, &pattern) != *negated)
                    }
                    _ => Data::Undefined,
                }
            }
            ExpressionKind::Call { name, user_defined: false, arguments } => {
                self.call(name, arguments, row, group)?
            }
            ExpressionKind::Array(items) => {
                let items = items.iter().map(value).collect::<Result<Vec<_>, _>>()?;
                Data::Array(items.into_iter().filter(|item| !matches!(item, Data::Undefined)).collect())
            }
            ExpressionKind::Object(members) => {
                let members = members.iter().map(|member| Ok((member.name.clone(), value(&member.value)?)));
                Data::object(members.collect::<Result<Vec<_>, Unknown>>()?)
            }
            ExpressionKind::Subquery { form, query } => self.subquery(*form, query, row)?,
            other => return Err(format!("the expression {other:?}")),
        })
    }

    fn call(
        &self,
        name: &str,
        arguments: &[Expression],
        row: &Names,
        group: Option<&[Names]>,
    ) -> Result<Data, Unknown> {
        if functions::is_aggregate(name) {
            let [argument] = arguments else { return Err(format!("{name} of several")) };
            let group = group.ok_or_else(|| format!("{name} without a group"))?;
            let values =
                group.iter().map(|row| self.value(argument, row, None)).collect::<Result<Vec<_>, _>>()?;
            return functions::aggregate(name, &values);
        }
        let arguments = arguments.iter().map(|argument| self.value(argument, row, group));
        functions::call(name, &arguments.collect::<Result<Vec<_>, _>>()?)
    }

    fn subquery(&self, form: SubqueryForm, query: &SelectQuery, row: &Names) -> Result<Data, Unknown> {
        let mut rows = self.query(query, row)?;
        Ok(match form {
            SubqueryForm::Exists => Data::Bool(!rows.is_empty()),
            SubqueryForm::Array => Data::Array(rows),
            SubqueryForm::Scalar if rows.len() <= 1 => rows.pop().unwrap_or(Data::Undefined),
            other => return Err(format!("a subquery {other:?} of {} rows", rows.len())),
        })
    }
}

fn truth(value: &Data) -> Option<bool> {
    if let Data::Bool(value) = value { Some(*value) } else { None }
}

fn logical(operator: LogicalOperator, truths: &[Option<bool>]) -> Data {
    let deciding = operator == LogicalOperator::Or;
    if truths.contains(&Some(deciding)) {
        Data::Bool(deciding)
    } else if truths.contains(&None) {
        Data::Undefined
    } else {
        Data::Bool(!deciding)
    }
}

fn unary(operator: UnaryOperator, operand: &Data) -> Data {
    match (operator, operand) {
        (UnaryOperator::Not, Data::Bool(value)) => Data::Bool(!value),
        (UnaryOperator::Minus, Data::Number(number)) => Data::Number(-number),
        (UnaryOperator::Plus, Data::Number(number)) => Data::Number(*number),
        (UnaryOperator::BitNot, Data::Number(number)) => Data::Number(f64::from(!to_int(*number))),
        _ => Data::Undefined,
    }
}

/// A number as 32 bits, for the small numbers of tests.
fn to_int(number: f64) -> i32 {
    number as i64 as i32
}

fn binary(operator: BinaryOperator, left: &Data, right: &Data) -> Data {
    use BinaryOperator as Op;
    match (operator, left, right) {
        (_, Data::Undefined, _) | (_, _, Data::Undefined) => Data::Undefined,
        (Op::Equal, ..) => Data::Bool(equal(left, right)),
        (Op::NotEqual, ..) => Data::Bool(!equal(left, right)),
        (Op::Less | Op::LessOrEqual | Op::Greater | Op::GreaterOrEqual, ..) => compare(operator, left, right),
        (Op::Concatenate, Data::Text(left), Data::Text(right)) => Data::Text(format!("{left}{right}")),
        (_, Data::Number(left), Data::Number(right)) => numeric(operator, *left, *right),
        _ => Data::Undefined,
    }
}

fn compare(operator: BinaryOperator, left: &Data, right: &Data) -> Data {
    let Some(order) = typed_order(left, right) else { return Data::Undefined };
    Data::Bool(match operator {
        BinaryOperator::Less => order == Ordering::Less,
        BinaryOperator::LessOrEqual => order != Ordering::Greater,
        BinaryOperator::Greater => order == Ordering::Greater,
        _ => order != Ordering::Less,
    })
}

fn numeric(operator: BinaryOperator, left: f64, right: f64) -> Data {
    use BinaryOperator as Op;
    let (bits, other) = (to_int(left), to_int(right));
    Data::Number(match operator {
        Op::Add => left + right,
        Op::Subtract => left - right,
        Op::Multiply => left * right,
        Op::Divide => left / right,
        Op::Remainder => left % right,
        Op::BitAnd => f64::from(bits & other),
        Op::BitOr => f64::from(bits | other),
        Op::BitXor => f64::from(bits ^ other),
        Op::ShiftLeft => f64::from(bits << (other & 31)),
        Op::ShiftRight => f64::from(bits >> (other & 31)),
        Op::ShiftRightZero => f64::from((bits as u32) >> (other & 31)),
        _ => return Data::Undefined,
    })
}

/// LIKE with `%`, `_` and sets such as `[a-c]`.
fn like(text: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|start| like(&text[start..], rest)),
        ['_', rest @ ..] => !text.is_empty() && like(&text[1..], rest),
        ['[', low, '-', high, ']', rest @ ..] => {
            text.first().is_some_and(|first| (low..=high).contains(&first)) && like(&text[1..], rest)
        }
        [literal, rest @ ..] => text.first() == Some(literal) && like(&text[1..], rest),
    }
}
