//! Aggregates: what many values come to, taken in one by one, in parts, and across pauses.
//!
//! An accumulator can be merged with another over other rows, and written as a value and read back, so that a query
//! goes on where a page ended. Undefined is skipped by all of them.
//! Invariants
//! - Any split of the rows into parts, merged in order, comes to the same as one pass (sums up to rounding).
//! - `from_state(to_state())` goes on exactly where it was, as long as lists hold no NaN or infinity, which JSON lacks.
//! - `bytes` is what lists and sets hold; the caller bounds it.
//!
//! Not here: grouping and DISTINCT (`sql-exec`), the rewritten forms that clients merge themselves (`sql-plan`).

mod state;

use std::collections::BTreeSet;

use astrarium_value::Value;

use crate::limits::approximate_bytes;

/// The aggregate functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    /// How many values are defined.
    Count,
    /// How many values are true.
    CountIf,
    /// The sum of numbers.
    Sum,
    /// The mean of numbers.
    Average,
    /// The least primitive value.
    Minimum,
    /// The greatest primitive value.
    Maximum,
    /// All values as an array.
    MakeList,
    /// All distinct values as an array.
    MakeSet,
}

impl AggregateFunction {
    /// Every aggregate.
    pub const ALL: [AggregateFunction; 8] = [
        AggregateFunction::Count,
        AggregateFunction::CountIf,
        AggregateFunction::Sum,
        AggregateFunction::Average,
        AggregateFunction::Minimum,
        AggregateFunction::Maximum,
        AggregateFunction::MakeList,
        AggregateFunction::MakeSet,
    ];

    /// The aggregate of that name in query text, in any case.
    pub fn find(name: &str) -> Option<AggregateFunction> {
        AggregateFunction::ALL.into_iter().find(|function| function.name().eq_ignore_ascii_case(name))
    }

    /// The name in query text.
    pub fn name(self) -> &'static str {
        match self {
            AggregateFunction::Count => "COUNT",
            AggregateFunction::CountIf => "COUNTIF",
            AggregateFunction::Sum => "SUM",
            AggregateFunction::Average => "AVG",
            AggregateFunction::Minimum => "MIN",
            AggregateFunction::Maximum => "MAX",
            AggregateFunction::MakeList => "MAKELIST",
            AggregateFunction::MakeSet => "MAKESET",
        }
    }

    /// The name in query plans.
    pub fn plan_name(self) -> &'static str {
        match self {
            AggregateFunction::Count => "Count",
            AggregateFunction::CountIf => "CountIf",
            AggregateFunction::Sum => "Sum",
            AggregateFunction::Average => "Average",
            AggregateFunction::Minimum => "Min",
            AggregateFunction::Maximum => "Max",
            AggregateFunction::MakeList => "MakeList",
            AggregateFunction::MakeSet => "MakeSet",
        }
    }

    /// The type of the argument and that of the result, as of [`crate::ScalarFunction`].
    pub fn signature(self) -> &'static str {
        match self {
            AggregateFunction::Count | AggregateFunction::CountIf => "(value: any) -> number",
            AggregateFunction::Sum | AggregateFunction::Average => "(value: number) -> number",
            AggregateFunction::Minimum | AggregateFunction::Maximum => "(value: any) -> any",
            AggregateFunction::MakeList | AggregateFunction::MakeSet => "(value: any) -> array",
        }
    }

    /// One sentence for documentation and the explorer.
    pub fn summary(self) -> &'static str {
        match self {
            AggregateFunction::Count => "How many values are defined.",
            AggregateFunction::CountIf => "How many values are true.",
            AggregateFunction::Sum => "The sum of the values, when all are numbers.",
            AggregateFunction::Average => "The mean of the values, when all are numbers.",
            AggregateFunction::Minimum => "The least of the values, when all are primitive.",
            AggregateFunction::Maximum => "The greatest of the values, when all are primitive.",
            AggregateFunction::MakeList => "All defined values as an array.",
            AggregateFunction::MakeSet => "All distinct defined values as an array.",
        }
    }

    /// An accumulator that has seen no rows.
    pub fn start(self) -> Accumulator {
        match self {
            AggregateFunction::Count => Accumulator::Count(0),
            AggregateFunction::CountIf => Accumulator::CountIf(0),
            AggregateFunction::Sum => Accumulator::Sum(Some(0.0)),
            AggregateFunction::Average => Accumulator::Average { count: 0, sum: Some(0.0) },
            AggregateFunction::Minimum => Accumulator::Minimum(Extreme::Nothing),
            AggregateFunction::Maximum => Accumulator::Maximum(Extreme::Nothing),
            AggregateFunction::MakeList => Accumulator::MakeList { values: Vec::new(), bytes: 0 },
            AggregateFunction::MakeSet => Accumulator::MakeSet { values: BTreeSet::new(), bytes: 0 },
        }
    }
}

/// An aggregate under way.
#[derive(Clone, Debug, PartialEq)]
pub enum Accumulator {
    /// Values counted.
    Count(u64),
    /// True values counted.
    CountIf(u64),
    /// The sum; none once a value was no number.
    Sum(Option<f64>),
    /// The sum, none once a value was no number, and how many values it is of.
    Average {
        /// Numbers added.
        count: u64,
        /// Their sum.
        sum: Option<f64>,
    },
    /// The least value.
    Minimum(Extreme),
    /// The greatest value.
    Maximum(Extreme),
    /// The values in the order in which they came.
    MakeList {
        /// The list.
        values: Vec<Value>,
        /// About how much memory it holds.
        bytes: usize,
    },
    /// The values in their own order, which no split of the rows can change.
    MakeSet {
        /// The set.
        values: BTreeSet<Value>,
        /// About how much memory it holds.
        bytes: usize,
    },
}

/// The least or greatest value so far.
#[derive(Clone, Debug, PartialEq)]
pub enum Extreme {
    /// No value came.
    Nothing,
    /// The best value so far.
    Value(Value),
    /// An array or object came, so there is no result.
    Incomparable,
}

impl Accumulator {
    /// Takes in the value of one more row.
    pub fn add(&mut self, value: &Value) {
        if value.is_undefined() {
            return;
        }
        match self {
            Accumulator::Count(count) => *count += 1,
            Accumulator::CountIf(count) => *count += u64::from(*value == Value::Bool(true)),
            Accumulator::Sum(sum) => *sum = plus(*sum, value),
            Accumulator::Average { count, sum } => {
                *count += 1;
                *sum = plus(*sum, value);
            }
            Accumulator::Minimum(extreme) => extreme.add(value, |new, old| new < old),
            Accumulator::Maximum(extreme) => extreme.add(value, |new, old| new > old),
            Accumulator::MakeList { values, bytes } => {
                *bytes += approximate_bytes(value);
                values.push(value.clone());
            }
            Accumulator::MakeSet { values, bytes } => {
                if !values.contains(value) {
                    *bytes += approximate_bytes(value);
                    values.insert(value.clone());
                }
            }
        }
    }

    /// Takes in what another accumulator of the same function came to over later rows.
    ///
    /// Accumulators of different functions do not mix: that would be a fault of the caller.
    pub fn merge(&mut self, other: Accumulator) {
        match (self, other) {
            (Accumulator::Count(count), Accumulator::Count(other))
            | (Accumulator::CountIf(count), Accumulator::CountIf(other)) => *count += other,
            (Accumulator::Sum(sum), Accumulator::Sum(other)) => *sum = sum.zip(other).map(|(a, b)| a + b),
            (
                Accumulator::Average { count, sum },
                Accumulator::Average { count: other_count, sum: other },
            ) => {
                *count += other_count;
                *sum = sum.zip(other).map(|(a, b)| a + b);
            }
            (Accumulator::Minimum(extreme), Accumulator::Minimum(other)) => {
                extreme.merge(other, |new, old| new < old);
            }
            (Accumulator::Maximum(extreme), Accumulator::Maximum(other)) => {
                extreme.merge(other, |new, old| new > old);
            }
            (
                Accumulator::MakeList { values, bytes },
                Accumulator::MakeList { values: other, bytes: other_bytes },
            ) => {
                values.extend(other);
                *bytes += other_bytes;
            }
            (set @ Accumulator::MakeSet { .. }, Accumulator::MakeSet { values: other, .. }) => {
                for value in &other {
                    set.add(value);
                }
            }
            (own, other) => panic!("cannot merge {other:?} into {own:?}"),
        }
    }

    /// What the rows came to.
    pub fn finish(self) -> Value {
        match self {
            Accumulator::Count(count) | Accumulator::CountIf(count) => Value::Number(count as f64),
            Accumulator::Sum(sum) => sum.map(Value::Number).unwrap_or_default(),
            Accumulator::Average { count: 0, .. } => Value::Undefined,
            Accumulator::Average { count, sum } => {
                sum.map(|sum| Value::Number(sum / count as f64)).unwrap_or_default()
            }
            Accumulator::Minimum(Extreme::Value(value)) | Accumulator::Maximum(Extreme::Value(value)) => {
                value
            }
            Accumulator::Minimum(_) | Accumulator::Maximum(_) => Value::Undefined,
            Accumulator::MakeList { values, .. } => Value::Array(values),
            Accumulator::MakeSet { values, .. } => Value::Array(values.into_iter().collect()),
        }
    }

    /// About how many bytes the values hold that the accumulator keeps.
    pub fn bytes(&self) -> usize {
        match self {
            Accumulator::MakeList { bytes, .. } | Accumulator::MakeSet { bytes, .. } => *bytes,
            Accumulator::Minimum(Extreme::Value(value)) | Accumulator::Maximum(Extreme::Value(value)) => {
                approximate_bytes(value)
            }
            _ => 0,
        }
    }
}

impl Extreme {
    fn add(&mut self, value: &Value, better: fn(&Value, &Value) -> bool) {
        match self {
            _ if matches!(value, Value::Array(_) | Value::Object(_)) => *self = Extreme::Incomparable,
            Extreme::Incomparable => {}
            Extreme::Value(best) if !better(value, best) => {}
            Extreme::Nothing | Extreme::Value(_) => *self = Extreme::Value(value.clone()),
        }
    }

    fn merge(&mut self, other: Extreme, better: fn(&Value, &Value) -> bool) {
        match other {
            Extreme::Nothing => {}
            Extreme::Value(value) => self.add(&value, better),
            Extreme::Incomparable => *self = Extreme::Incomparable,
        }
    }
}

fn plus(sum: Option<f64>, value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => sum.map(|sum| sum + number),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
