//! Calls of functions that can use an index, as their definitions say.
//!
//! What a function says exactly is translated so: tests of types, prefixes and equality with case, membership in arrays.
//! Of the others, what their being true implies is kept: the type of what they look at.

use super::filter::{equal_to, none_of_constants, one_of_constants};
use super::part::Part;
use super::place::ValuePlace;
use super::predicate::{between, constant, defined, one_of, primitive, range};
use super::translator::Translator;
use crate::expression::Expr;
use astrarium_index::{Predicate, Type};
use astrarium_sql_functions::{FunctionIndexUse, ScalarFunction, TypeName};
use astrarium_sql_syntax::ast::BinaryOperator;
use astrarium_value::Value;
use std::ops::Bound;
use std::sync::Arc;

/// Patterns beyond this length may be refused by the engine, and then match nothing.
const PATTERN_BYTES_MAX: usize = 256;

impl<'p> Translator<'p> {
    /// What rows meet for which a call has this truth.
    pub(super) fn call(
        &mut self,
        function: &'static ScalarFunction,
        arguments: &'p [Expr],
        wanted: bool,
    ) -> Part {
        match function.index_use {
            Some(FunctionIndexUse::TypeCheck { value, name }) if wanted => {
                // The finer tests of numbers share the type with IS_NUMBER.
                let exact = !matches!(function.name, "IS_INTEGER" | "IS_FINITE_NUMBER");
                self.argument(arguments, value, |place| Part::condition(place, type_test(name), exact))
            }
            Some(FunctionIndexUse::Prefix { text, prefix, ignore_case }) => {
                let test = text_test(arguments, text, prefix, ignore_case);
                match (test, self.constant_text(arguments, text, prefix)) {
                    (TextTranslation::Undefined, _) => Part::Never,
                    (TextTranslation::Exact, Some((place, prefix))) if wanted => {
                        starts_with(place, &prefix, true)
                    }
                    _ => self.are_texts(arguments, &[text, prefix]),
                }
            }
            Some(FunctionIndexUse::Equality { text, other, ignore_case }) => {
                let test = text_test(arguments, text, other, Some(ignore_case));
                let sides = self.constant_text(arguments, text, other);
                match (test, sides.or_else(|| self.constant_text(arguments, other, text))) {
                    (TextTranslation::Undefined, _) => Part::Never,
                    (TextTranslation::Exact, Some((place, other))) => string_equals(place, other, wanted),
                    _ => self.are_texts(arguments, &[text, other]),
                }
            }
            Some(FunctionIndexUse::Suffix { text, suffix: other }) => {
                match text_test(arguments, text, other, Some(2)) {
                    TextTranslation::Undefined => Part::Never,
                    _ => self.are_texts(arguments, &[text, other]),
                }
            }
            Some(FunctionIndexUse::Contains { text, .. }) => self.are_texts(arguments, &[text]),
            Some(FunctionIndexUse::Pattern { text, pattern, modifiers }) => {
                self.pattern(arguments, text, pattern, modifiers, wanted)
            }
            Some(FunctionIndexUse::ArrayContains { array, first }) => {
                self.array_contains(function.name, arguments, array, first, wanted)
            }
            _ => match arguments {
                [condition, then, otherwise] if function.name == "IIF" => {
                    let first = Part::all([self.truth(condition, true), self.truth(then, wanted)]);
                    Part::any([first, Part::all([self.truth(otherwise, wanted), Part::Unknown])])
                }
                _ => Part::Unknown,
            },
        }
    }

    /// What rows meet for which the comparison of a call with a constant is true.
    pub(super) fn compare_call(
        &self,
        operator: BinaryOperator,
        function: &'static ScalarFunction,
        arguments: &'p [Expr],
        value: &Value,
    ) -> Part {
        match function.index_use {
            Some(FunctionIndexUse::NumberRange { number }) => self.argument(arguments, number, |place| {
                let whole = arguments.len() == 1;
                match (function.name, value) {
                    (_, Value::Number(value)) if value.is_nan() => number_unlike(operator, place),
                    ("ABS", Value::Number(value)) => absolute(operator, place, *value),
                    (_, Value::Number(value)) if whole => rounded(operator, place, *value),
                    (_, Value::Number(_)) => is_number(place),
                    _ => number_unlike(operator, place),
                }
            }),
            Some(FunctionIndexUse::Beginning { text }) => {
                let from_start = match (function.name, arguments.get(1)) {
                    ("LEFT", _) => true,
                    (_, Some(Expr::Constant(Value::Number(start)))) => *start == 0.0,
                    _ => false,
                };
                self.argument(arguments, text, |place| match (operator, value) {
                    (BinaryOperator::Equal, Value::String(prefix)) if from_start => {
                        starts_with(place, prefix, false)
                    }
                    (BinaryOperator::NotEqual, _) | (_, Value::String(_)) => is_text(place),
                    _ => Part::Never,
                })
            }
            _ => Part::Unknown,
        }
    }

    fn argument(&self, arguments: &[Expr], index: usize, then: impl FnOnce(ValuePlace) -> Part) -> Part {
        arguments.get(index).and_then(|one| self.places.of(one)).map_or(Part::Unknown, then)
    }

    /// The arguments that are places hold text; constants are known to.
    fn are_texts(&self, arguments: &[Expr], indexes: &[usize]) -> Part {
        let is_open = |index: &&usize| arguments.get(**index).is_some_and(|one| one.as_constant().is_none());
        let open: Vec<&usize> = indexes.iter().filter(is_open).collect();
        if open.is_empty() {
            return Part::Unknown;
        }
        Part::all(open.into_iter().map(|index| self.argument(arguments, *index, is_text)))
    }

    /// The place of one argument and the text of another.
    fn constant_text(&self, arguments: &[Expr], text: usize, other: usize) -> Option<(ValuePlace, Arc<str>)> {
        match arguments.get(other)? {
            Expr::Constant(Value::String(other)) => {
                Some((self.places.of(arguments.get(text)?)?, other.clone()))
            }
            _ => None,
        }
    }

    fn pattern(
        &self,
        arguments: &[Expr],
        text: usize,
        pattern: usize,
        modifiers: usize,
        wanted: bool,
    ) -> Part {
        let modifiers = match arguments.get(modifiers) {
            None => Some(""),
            Some(Expr::Constant(Value::String(modifiers))) => Some(&**modifiers),
            Some(_) => None,
        };
        match (self.constant_text(arguments, text, pattern), modifiers) {
            (Some((place, pattern)), Some("" | "s")) if wanted => match literal_beginning(&pattern) {
                Some((prefix, whole)) => starts_with(place, prefix, whole),
                None => is_text(place),
            },
            _ => self.are_texts(arguments, &[text]),
        }
    }

    fn array_contains(
        &self,
        name: &str,
        arguments: &[Expr],
        array: usize,
        first: usize,
        wanted: bool,
    ) -> Part {
        let Some(array) = arguments.get(array) else { return Part::Unknown };
        let many = name.ends_with("_ANY") || name.ends_with("_ALL");
        let needles = arguments.get(first..).unwrap_or_default();
        let needles = if many { needles } else { needles.get(..1).unwrap_or_default() };
        if let (Expr::Constant(Value::Array(values)), false, Some(needle)) = (array, many, needles.first()) {
            let exact = matches!(arguments.get(first + 1), None | Some(Expr::Constant(Value::Bool(false))));
            return self.array_has_place(values, needle, exact, wanted);
        }
        let Some(place) = self.places.of(array) else { return Part::Unknown };
        if !wanted {
            return Part::condition(place, Predicate::Types(vec![Type::Array]), false);
        }
        let element = place.some_element();
        let parts = needles.iter().map(|needle| match needle {
            Expr::Constant(value) => equal_to(element.clone(), value),
            // Some element must be there.
            _ => Part::condition(element.clone(), defined(), false),
        });
        if name.ends_with("_ANY") { Part::any(parts) } else { Part::all(parts) }
    }

    /// A constant array has what is at a place: `place IN (..)` in other words.
    fn array_has_place(&self, values: &[Value], needle: &Expr, exact: bool, wanted: bool) -> Part {
        let Some(place) = self.places.of(needle) else { return Part::Unknown };
        let values: Vec<&Value> = values.iter().collect();
        match (wanted, exact) {
            (true, true) => one_of_constants(&place, &values),
            // An object may be found in part.
            (true, false) => {
                let objects = Part::condition(place.clone(), Predicate::Types(vec![Type::Object]), false);
                Part::any([one_of_constants(&place, &values), objects])
            }
            (false, true) => none_of_constants(&place, &values),
            (false, false) => Part::condition(place, defined(), false),
        }
    }
}

/// How far a test of text can be translated.
enum TextTranslation {
    /// Whatever the row has, it is neither true nor false.
    Undefined,
    /// Case matters.
    Exact,
    /// Case may not matter.
    Inexact,
}

/// Whether a test of text can be translated: with case, and with constants of the right types.
fn text_test(arguments: &[Expr], text: usize, other: usize, ignore_case: Option<usize>) -> TextTranslation {
    let no_text = |index: usize| {
        let constant = arguments.get(index).and_then(Expr::as_constant);
        constant.is_some_and(|value| !matches!(value, Value::String(_)))
    };
    if no_text(text) || no_text(other) {
        return TextTranslation::Undefined;
    }
    match ignore_case.and_then(|index| arguments.get(index)) {
        None | Some(Expr::Constant(Value::Bool(false))) => TextTranslation::Exact,
        Some(Expr::Constant(value)) if !matches!(value, Value::Bool(_)) => TextTranslation::Undefined,
        Some(_) => TextTranslation::Inexact,
    }
}

fn type_test(name: TypeName) -> Predicate {
    let types = match name {
        TypeName::Defined => Type::ALL.to_vec(),
        TypeName::Primitive => return primitive(),
        TypeName::Null => return Predicate::OneOf(vec![Value::Null]),
        TypeName::Boolean => vec![Type::Bool],
        TypeName::Number => vec![Type::Number],
        TypeName::String => vec![Type::String],
        TypeName::Array => vec![Type::Array],
        TypeName::Object => vec![Type::Object],
    };
    Predicate::Types(types)
}

fn is_text(place: ValuePlace) -> Part {
    Part::condition(place, Predicate::Types(vec![Type::String]), false)
}

fn is_number(place: ValuePlace) -> Part {
    Part::condition(place, Predicate::Types(vec![Type::Number]), false)
}

fn starts_with(place: ValuePlace, prefix: &str, exact: bool) -> Part {
    let predicate = match prefix {
        "" => Predicate::Types(vec![Type::String]),
        prefix => Predicate::Prefix(prefix.into()),
    };
    Part::condition(place, predicate, exact)
}

fn string_equals(place: ValuePlace, other: Arc<str>, wanted: bool) -> Part {
    let other = Value::String(other);
    if wanted {
        return Part::condition(place, Predicate::OneOf(vec![other]), true);
    }
    let text = Part::condition(place.clone(), Predicate::Types(vec![Type::String]), true);
    Part::all([text, Part::condition(place, Predicate::Not(other), true)])
}

/// The text with which everything begins that a pattern matches, and whether that is all the pattern says.
fn literal_beginning(pattern: &str) -> Option<(&str, bool)> {
    let rest = pattern.strip_prefix('^')?;
    // With alternatives or flags inside, the beginning binds only a part.
    if rest.contains('|') || rest.contains("(?") || pattern.len() > PATTERN_BYTES_MAX {
        return None;
    }
    let is_literal = |letter: char| letter.is_alphanumeric() || " _-:/,@".contains(letter);
    let end = rest.find(|letter| !is_literal(letter)).unwrap_or(rest.len());
    let (literal, after) = rest.split_at(end);
    if after.starts_with(['?', '*', '+', '{']) {
        // The last letter may be repeated, or be absent.
        let last = literal.char_indices().next_back()?.0;
        return Some((&literal[..last], false));
    }
    Some((literal, after.is_empty()))
}

/// A function of numbers compared with what no number equals: only `!=` is ever true.
fn number_unlike(operator: BinaryOperator, place: ValuePlace) -> Part {
    if operator == BinaryOperator::NotEqual { is_number(place) } else { Part::Never }
}

/// The number without its sign compares so with a value.
fn absolute(operator: BinaryOperator, place: ValuePlace, value: f64) -> Part {
    let number = |predicate: Option<Predicate>| {
        predicate.map_or(Part::Never, |predicate| Part::condition(place.clone(), predicate, true))
    };
    let limit = |value: f64| constant(&Value::Number(value)).unwrap_or_default();
    match operator {
        BinaryOperator::Equal if value >= 0.0 => number(one_of(vec![limit(-value), limit(value)])),
        BinaryOperator::Less if value > 0.0 => {
            number(between(Bound::Excluded(limit(-value)), Bound::Excluded(limit(value))))
        }
        BinaryOperator::LessOrEqual if value >= 0.0 => {
            number(between(Bound::Included(limit(-value)), Bound::Included(limit(value))))
        }
        BinaryOperator::Greater if value >= 0.0 => Part::any([
            number(range(BinaryOperator::Less, &limit(-value))),
            number(range(BinaryOperator::Greater, &limit(value))),
        ]),
        BinaryOperator::GreaterOrEqual if value > 0.0 => Part::any([
            number(range(BinaryOperator::LessOrEqual, &limit(-value))),
            number(range(BinaryOperator::GreaterOrEqual, &limit(value))),
        ]),
        BinaryOperator::Equal | BinaryOperator::Less | BinaryOperator::LessOrEqual => Part::Never,
        _ => is_number(place),
    }
}

/// The number rounded to a whole one compares so with a value. Rounding moves a number by one at most, and a whole number
/// that is not below `value` is not below `value - 1` either after that difference is rounded to a double.
fn rounded(operator: BinaryOperator, place: ValuePlace, value: f64) -> Part {
    let low = || Bound::Included(Value::Number(value - 1.0));
    let high = || Bound::Included(Value::Number(value + 1.0));
    let predicate = match operator {
        BinaryOperator::Equal => between(low(), high()),
        BinaryOperator::Less | BinaryOperator::LessOrEqual => between(Bound::Unbounded, high()),
        BinaryOperator::Greater | BinaryOperator::GreaterOrEqual => between(low(), Bound::Unbounded),
        _ => return is_number(place),
    };
    predicate.map_or(Part::Never, |predicate| Part::condition(place, predicate, false))
}
