//! From an expression to what must hold where it is true, or where it is false.
//!
//! Three-valued logic makes the two different questions: `NOT (c.a = 1)` passes where the comparison is false, which
//! asks for a defined `c.a`. Asking for a truth instead of negating keeps undefined out of both answers.

use super::part::Part;
use super::place::ValuePlace;
use super::predicate::{constant, defined, one_of, primitive, range};
use super::translator::Translator;
use crate::expression::{Expr, SubqueryForm};
use astrarium_index::{Predicate, Type};
use astrarium_sql_functions::operators::{self, LikePattern};
use astrarium_sql_syntax::ast::{BinaryOperator, UnaryOperator};
use astrarium_value::Value;

/// Values that a path must differ from, listed at most; more are only said to be defined.
const DIFFERENCES_MAX: usize = 16;
/// Members and elements of a constant that are looked for, at most.
const CONTENTS_MAX: usize = 8;
/// Alternatives of a list that are translated one by one.
const ALTERNATIVES_MAX: usize = 256;

impl<'p> Translator<'p> {
    /// What rows meet for which a condition has this truth.
    pub(super) fn truth(&mut self, condition: &'p Expr, wanted: bool) -> Part {
        if !self.step() {
            return Part::Unknown;
        }
        if let Some(place) = self.places.of(condition) {
            return Part::condition(place, Predicate::OneOf(vec![Value::Bool(wanted)]), true);
        }
        match condition {
            Expr::Constant(value) => always_if(*value == Value::Bool(wanted)),
            Expr::Unary(UnaryOperator::Not, operand) => self.truth(operand, !wanted),
            Expr::And(operands) => self.chain(operands, wanted, wanted),
            Expr::Or(operands) => self.chain(operands, wanted, !wanted),
            Expr::Binary(operator, left, right) => match comparison(*operator, wanted) {
                Some(operator) => self.compare(operator, left, right),
                None => Part::Unknown,
            },
            Expr::In(value, list) => self.member(value, list, wanted),
            Expr::Between(value, low, high) if wanted => Part::all([
                self.compare(BinaryOperator::GreaterOrEqual, value, low),
                self.compare(BinaryOperator::LessOrEqual, value, high),
            ]),
            Expr::Between(value, low, high) => Part::any([
                self.compare(BinaryOperator::Less, value, low),
                self.compare(BinaryOperator::Greater, value, high),
            ]),
            Expr::Like(text, pattern) => match self.places.of(text) {
                Some(place) => like(place, pattern, wanted),
                None => Part::Unknown,
            },
            Expr::Conditional(condition, then, otherwise) => {
                let first = Part::all([self.truth(condition, true), self.truth(then, wanted)]);
                alternatives(first, self.truth(otherwise, wanted))
            }
            Expr::Coalesce(left, right) => {
                let first = self.truth(left, wanted);
                alternatives(first, self.truth(right, wanted))
            }
            Expr::Call(function, arguments, _) => self.call(function, arguments, wanted),
            Expr::Subquery(SubqueryForm::Exists, plan) if wanted => self.exists(plan),
            _ => Part::Unknown,
        }
    }

    /// Operands of AND or OR: `all` of them, or any, have the truth.
    fn chain(&mut self, operands: &'p [Expr], wanted: bool, all: bool) -> Part {
        let parts: Vec<Part> = operands.iter().map(|operand| self.truth(operand, wanted)).collect();
        if all { Part::all(parts) } else { Part::any(parts) }
    }

    /// What rows meet for which a comparison is true.
    pub(super) fn compare(&mut self, operator: BinaryOperator, left: &'p Expr, right: &'p Expr) -> Part {
        match (left, right) {
            (Expr::Constant(left), Expr::Constant(right)) => {
                always_if(constants(operator, left, right) == Value::Bool(true))
            }
            (expression, Expr::Constant(value)) => self.compare_constant(operator, expression, value),
            (Expr::Constant(value), expression) => {
                self.compare_constant(mirrored(operator), expression, value)
            }
            (left, right) => {
                // Both are defined, and alike in type where they have an order.
                let is_equality = matches!(operator, BinaryOperator::Equal | BinaryOperator::NotEqual);
                let side = |expression| match self.places.of(expression) {
                    Some(place) if is_equality => Part::condition(place, defined(), false),
                    Some(place) => Part::condition(place, primitive(), false),
                    None => Part::Unknown,
                };
                Part::all([side(left), side(right), Part::Unknown])
            }
        }
    }

    fn compare_constant(&mut self, operator: BinaryOperator, expression: &'p Expr, value: &'p Value) -> Part {
        if value.is_undefined() {
            return Part::Never;
        }
        if !self.step() {
            return Part::Unknown;
        }
        if let Some(place) = self.places.of(expression) {
            return match operator {
                BinaryOperator::Equal => equal_to(place, value),
                BinaryOperator::NotEqual => different_from(place, value),
                _ => range(operator, value)
                    .map_or(Part::Never, |predicate| Part::condition(place, predicate, true)),
            };
        }
        match (expression, operator, value) {
            (Expr::Conditional(condition, then, otherwise), ..) => {
                let first =
                    Part::all([self.truth(condition, true), self.compare_constant(operator, then, value)]);
                alternatives(first, self.compare_constant(operator, otherwise, value))
            }
            (Expr::Coalesce(left, right), ..) => {
                let first = self.compare_constant(operator, left, value);
                alternatives(first, self.compare_constant(operator, right, value))
            }
            (Expr::Constant(own), ..) => always_if(constants(operator, own, value) == Value::Bool(true)),
            (_, BinaryOperator::Equal, Value::Bool(wanted)) => self.truth(expression, *wanted),
            (Expr::Call(function, arguments, _), ..) => {
                self.compare_call(operator, function, arguments, value)
            }
            _ => Part::Unknown,
        }
    }

    /// `value IN (list)`.
    fn member(&mut self, value: &'p Expr, list: &'p [Expr], wanted: bool) -> Part {
        let constants: Option<Vec<&Value>> = list.iter().map(Expr::as_constant).collect();
        match (self.places.of(value), constants) {
            (Some(place), Some(constants)) if wanted => one_of_constants(&place, &constants),
            (Some(place), Some(constants)) => none_of_constants(&place, &constants),
            _ if wanted && list.len() <= ALTERNATIVES_MAX => {
                let alternatives: Vec<Part> =
                    list.iter().map(|item| self.compare(BinaryOperator::Equal, value, item)).collect();
                Part::any(alternatives)
            }
            // An undefined item is no member, so that nothing is known about items.
            (Some(place), _) => Part::condition(place, defined(), false),
            _ => Part::Unknown,
        }
    }
}

fn always_if(met: bool) -> Part {
    if met { Part::Always } else { Part::Never }
}

/// The first way to pass, or a second one that has a further demand about which nothing is known.
fn alternatives(first: Part, second: Part) -> Part {
    Part::any([first, Part::all([second, Part::Unknown])])
}

/// The comparison that is true where this one has the truth that is wanted.
fn comparison(operator: BinaryOperator, wanted: bool) -> Option<BinaryOperator> {
    use BinaryOperator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let opposite = match operator {
        Equal => NotEqual,
        NotEqual => Equal,
        Less => GreaterOrEqual,
        LessOrEqual => Greater,
        Greater => LessOrEqual,
        GreaterOrEqual => Less,
        _ => return None,
    };
    Some(if wanted { operator } else { opposite })
}

/// The operator that says the same with its sides exchanged.
fn mirrored(operator: BinaryOperator) -> BinaryOperator {
    match operator {
        BinaryOperator::Less => BinaryOperator::Greater,
        BinaryOperator::LessOrEqual => BinaryOperator::GreaterOrEqual,
        BinaryOperator::Greater => BinaryOperator::Less,
        BinaryOperator::GreaterOrEqual => BinaryOperator::LessOrEqual,
        other => other,
    }
}

fn constants(operator: BinaryOperator, left: &Value, right: &Value) -> Value {
    match operator {
        BinaryOperator::Equal => operators::equal(left, right),
        BinaryOperator::NotEqual => operators::not_equal(left, right),
        BinaryOperator::Less => operators::less(left, right),
        BinaryOperator::LessOrEqual => operators::less_or_equal(left, right),
        BinaryOperator::Greater => operators::greater(left, right),
        BinaryOperator::GreaterOrEqual => operators::greater_or_equal(left, right),
        _ => Value::Undefined,
    }
}

/// What is at the place equals a value. Of arrays and objects only some of what they hold is looked for.
pub(super) fn equal_to(place: ValuePlace, value: &Value) -> Part {
    if let Some(value) = constant(value) {
        return Part::condition(place, Predicate::OneOf(vec![value]), true);
    }
    if matches!(value, Value::Array(_) | Value::Object(_)) {
        let mut found = Vec::new();
        contents(place, value, &mut found);
        return Part::all(found);
    }
    Part::Never
}

/// Conditions on what an array or object holds, each by itself and so never exact.
fn contents(place: ValuePlace, value: &Value, found: &mut Vec<Part>) {
    let before = found.len();
    let own_type = match value {
        Value::Object(object) => {
            for (name, member) in object.iter().take(CONTENTS_MAX) {
                contents(place.clone().named(&name.into()), member, found);
            }
            Type::Object
        }
        Value::Array(elements) => {
            for element in elements.iter().take(CONTENTS_MAX) {
                contents(place.clone().some_element(), element, found);
            }
            Type::Array
        }
        primitive => {
            if found.len() < CONTENTS_MAX {
                let predicate = constant(primitive).map(|value| Predicate::OneOf(vec![value]));
                found.extend(predicate.map(|predicate| Part::condition(place, predicate, false)));
            }
            return;
        }
    };
    if found.len() == before {
        found.push(Part::condition(place, Predicate::Types(vec![own_type]), false));
    }
}

fn different_from(place: ValuePlace, value: &Value) -> Part {
    match constant(value) {
        Some(value) => Part::condition(place, Predicate::Not(value), true),
        // NaN differs from everything.
        None => Part::condition(place, defined(), matches!(value, Value::Number(_))),
    }
}

/// What is at the place equals one of these.
pub(super) fn one_of_constants(place: &ValuePlace, values: &[&Value]) -> Part {
    let listed = one_of(values.iter().filter_map(|value| constant(value)).collect());
    let listed = listed.map_or(Part::Never, |predicate| Part::condition(place.clone(), predicate, true));
    let held = values.iter().filter(|value| matches!(value, Value::Array(_) | Value::Object(_)));
    Part::any(std::iter::once(listed).chain(held.map(|value| equal_to(place.clone(), value))))
}

/// What is at the place is defined and equals none of these.
pub(super) fn none_of_constants(place: &ValuePlace, values: &[&Value]) -> Part {
    let described = |value: &Value| constant(value).is_some() || matches!(value, Value::Undefined);
    let exact = values.len() <= DIFFERENCES_MAX
        && values.iter().all(|value| described(value) || matches!(value, Value::Number(_)));
    let listed = values.iter().take(DIFFERENCES_MAX).filter_map(|value| constant(value));
    let parts = std::iter::once(Part::condition(place.clone(), defined(), exact))
        .chain(listed.map(|value| Part::condition(place.clone(), Predicate::Not(value), true)));
    Part::all(parts)
}

fn like(place: ValuePlace, pattern: &LikePattern, wanted: bool) -> Part {
    let text = Predicate::Types(vec![Type::String]);
    let (predicate, exact) = match (pattern.literal(), pattern.literal_prefix()) {
        _ if !wanted => (text, false),
        (Some(whole), _) => (Predicate::OneOf(vec![Value::String(whole.into())]), true),
        (None, "") => (text, pattern.is_prefix_only()),
        (None, prefix) => (Predicate::Prefix(prefix.into()), pattern.is_prefix_only()),
    };
    Part::condition(place, predicate, exact)
}
