//! Vectors: how alike two arrays of numbers are.
//!
//! All sums are taken as doubles whatever the stored type, so a result does not depend on the order of documents or on the
//! machine. What the container's policy says (`Context`) holds unless the call says otherwise.
//! Invariants
//! - Vectors of different length, empty ones, and arrays with anything but finite numbers have no distance: undefined.
//!
//! Not here: approximate search and quantisation (the index), the direction of ORDER BY (`sql-plan`).

use astrarium_value::{Object, Value};

use crate::arguments::{array, as_text, at, boolean};
use crate::{Context, FunctionIndexUse, ScalarFunction, VectorDefaults};

/// How vectors are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VectorMetric {
    /// The cosine of the angle between them, from -1 to 1, most alike first when descending.
    #[default]
    Cosine,
    /// The sum of the products of their elements, most alike first when descending.
    DotProduct,
    /// The length of the line between them, most alike first when ascending.
    Euclidean,
}

impl VectorMetric {
    /// By its name in policies and calls, in any case.
    pub fn from_name(name: &str) -> Option<VectorMetric> {
        Some(match name.to_ascii_lowercase().as_str() {
            "cosine" => VectorMetric::Cosine,
            "dotproduct" => VectorMetric::DotProduct,
            "euclidean" => VectorMetric::Euclidean,
            _ => return None,
        })
    }

    /// Whether a smaller result means more alike.
    pub fn is_ascending(self) -> bool {
        self == VectorMetric::Euclidean
    }

    /// The distance of two vectors of the same length.
    pub fn measure(self, a: &[f64], b: &[f64]) -> f64 {
        let sum = |term: fn(f64, f64) -> f64| a.iter().zip(b).map(|(a, b)| term(*a, *b)).sum::<f64>();
        let dot = |a: f64, b: f64| a * b;
        match self {
            VectorMetric::DotProduct => sum(dot),
            VectorMetric::Euclidean => sum(|a, b| (a - b) * (a - b)).sqrt(),
            VectorMetric::Cosine => {
                let lengths = sum(|a, _| a * a).sqrt() * sum(|_, b| b * b).sqrt();
                // The zero vector has no direction; it is taken as at right angles to everything.
                if lengths == 0.0 { 0.0 } else { (sum(dot) / lengths).clamp(-1.0, 1.0) }
            }
        }
    }
}

/// How the numbers of a vector are stored in an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataType {
    /// 32-bit floating point.
    #[default]
    Float32,
    /// 16-bit floating point.
    Float16,
    /// Signed bytes.
    Int8,
    /// Unsigned bytes.
    Uint8,
}

impl DataType {
    /// By its name in policies and calls, in any case.
    pub fn from_name(name: &str) -> Option<DataType> {
        Some(match name.to_ascii_lowercase().as_str() {
            "float32" => DataType::Float32,
            "float16" => DataType::Float16,
            "int8" => DataType::Int8,
            "uint8" => DataType::Uint8,
            _ => return None,
        })
    }
}

pub(crate) static FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction {
        name: "VECTORDISTANCE",
        signature: "(first: array, second: array, exact?: boolean, options?: object) -> number",
        arguments: 2..=4,
        summary: "How alike two vectors are, by the container's or the given distance function.",
        example: Some((r#"[1,0],[0,1],false,{"distanceFunction":"euclidean"}"#, "1.4142135623730951")),
        evaluate: |context, arguments| distance(context, arguments).unwrap_or_default(),
        index_use: Some(FunctionIndexUse::Vector),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "_VECTORSCORE",
        signature: "(first: array, second: array, exact?: boolean, options?: object) -> number",
        arguments: 2..=4,
        summary: "How alike two vectors are, greater always meaning more alike; used in rewritten queries.",
        example: Some(("[1,0],[-3,0]", "-1")),
        evaluate: |context, arguments| score(context, arguments).unwrap_or_default(),
        index_use: Some(FunctionIndexUse::Vector),
        ..ScalarFunction::PLAIN
    },
];

fn distance(context: &Context<'_>, arguments: &[Value]) -> Option<Value> {
    let (distance, _) = measure(context, arguments)?;
    Some(Value::Number(distance))
}

/// Rewritten queries give a missing score as the least number, so more alike must be greater.
fn score(context: &Context<'_>, arguments: &[Value]) -> Option<Value> {
    let (distance, function) = measure(context, arguments)?;
    Some(Value::Number(if function.is_ascending() { -distance } else { distance }))
}

fn measure(context: &Context<'_>, arguments: &[Value]) -> Option<(f64, VectorMetric)> {
    // The third argument asks for a search without index, which a single call always is.
    if arguments.len() > 2 {
        boolean(arguments, 2)?;
    }
    let options = match at(arguments, 3) {
        Value::Undefined if arguments.len() <= 3 => context.vector,
        Value::Object(options) => read_options(options, context.vector)?,
        _ => return None,
    };
    let (a, b) = (numbers(array(arguments, 0)?)?, numbers(array(arguments, 1)?)?);
    if a.is_empty() || a.len() != b.len() {
        return None;
    }
    Some((options.distance_function.measure(&a, &b), options.distance_function))
}

/// The other options only steer the index.
fn read_options(options: &Object, defaults: VectorDefaults) -> Option<VectorDefaults> {
    let distance_function = match options.get("distanceFunction") {
        Some(name) => VectorMetric::from_name(as_text(name)?)?,
        None => defaults.distance_function,
    };
    let data_type = match options.get("dataType") {
        Some(name) => DataType::from_name(as_text(name)?)?,
        None => defaults.data_type,
    };
    Some(VectorDefaults { distance_function, data_type })
}

fn numbers(values: &[Value]) -> Option<Vec<f64>> {
    let number = |value: &Value| match value {
        Value::Number(number) if number.is_finite() => Some(*number),
        _ => None,
    };
    values.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{check, check_all, check_in, check_wrong_types};
    use proptest::prelude::*;

    #[test]
    fn distances() {
        check_all(&[
            ("VECTORDISTANCE", "[[1,0],[1,0]]", "1"),
            ("VECTORDISTANCE", "[[1,0],[0,1]]", "0"),
            ("VECTORDISTANCE", "[[1,0],[-3,0]]", "-1"),
            ("VECTORDISTANCE", "[[0,0],[1,0]]", "0"),
            ("VECTORDISTANCE", "[[1,2],[3,4], false]", "0.9838699100999074"),
            ("VECTORDISTANCE", "[[1,2],[3,4], true, {}]", "0.9838699100999074"),
            ("VECTORDISTANCE", r#"[[1,2],[3,4], false, {"distanceFunction": "dotproduct"}]"#, "11"),
            (
                "VECTORDISTANCE",
                r#"[[1,2],[4,6], false, {"distanceFunction": "Euclidean", "dataType": "Float32"}]"#,
                "5",
            ),
            ("_VECTORSCORE", "[[1,0],[-3,0]]", "-1"),
            ("_VECTORSCORE", r#"[[1,2],[4,6], false, {"distanceFunction": "euclidean"}]"#, "-5"),
            ("VECTORDISTANCE", "[[],[]]", "undefined"),
            ("VECTORDISTANCE", "[[1],[1,2]]", "undefined"),
            ("VECTORDISTANCE", "[[1,\"2\"],[1,2]]", "undefined"),
            ("VECTORDISTANCE", "[[1,NaN],[1,2]]", "undefined"),
            ("VECTORDISTANCE", r#"[[1],[1], false, {"distanceFunction": "manhattan"}]"#, "undefined"),
            ("VECTORDISTANCE", r#"[[1],[1], false, {"distanceFunction": 1}]"#, "undefined"),
            ("VECTORDISTANCE", r#"[[1],[1], false, {"dataType": "float64"}]"#, "undefined"),
        ]);
        let vector =
            VectorDefaults { distance_function: VectorMetric::DotProduct, data_type: DataType::Int8 };
        let context = Context { vector, ..Context::default() };
        check_in(&context, "VECTORDISTANCE", "[[1,2],[3,4]]", "11");
        check_in(
            &context,
            "VECTORDISTANCE",
            r#"[[1,2],[4,6], false, {"distanceFunction": "euclidean"}]"#,
            "5",
        );
    }

    #[test]
    fn wrong_types() {
        let wrong = ["undefined", "null", "true", "1", "\"a\"", "{}"];
        for name in ["VECTORDISTANCE", "_VECTORSCORE"] {
            check_wrong_types(name, "[?, [1]]", &wrong);
            check_wrong_types(name, "[[1], ?]", &wrong);
            check_wrong_types(name, "[[1], [1], ?]", &["undefined", "null", "1", "\"true\"", "{}"]);
            check_wrong_types(name, "[[1], [1], true, ?]", &["undefined", "null", "1", "\"cosine\"", "[]"]);
        }
        check("VECTORDISTANCE", "[[1], [1], true]", "1");
    }

    proptest! {
        #[test]
        fn symmetric_and_bounded(pairs in prop::collection::vec((-1e3..1e3, -1e3..1e3), 1..8)) {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            for function in [VectorMetric::Cosine, VectorMetric::DotProduct, VectorMetric::Euclidean] {
                prop_assert!((function.measure(&a, &b) - function.measure(&b, &a)).abs() < 1e-6);
            }
            prop_assert!((-1.0..=1.0).contains(&VectorMetric::Cosine.measure(&a, &b)));
            prop_assert!(VectorMetric::Euclidean.measure(&a, &a) == 0.0);
        }
    }
}
