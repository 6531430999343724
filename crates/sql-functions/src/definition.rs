//! What is known about a built-in function, and what an evaluation is given from outside.
//!
//! A definition carries everything: lists, checks of argument counts, constant folding and the choice of an index are
//! derived from it.
//! Invariants
//! - `evaluate` is total: any arguments, in any number, give a value and never a panic.
//! - A deterministic function depends on its arguments and on the container's settings in `Context` only.

use std::fmt;
use std::ops::RangeInclusive;

use astrarium_value::Value;

use crate::full_text::TextLanguage;
use crate::vector::{DataType, VectorMetric};

/// The upper bound of `arguments` for functions that take any number.
pub const ANY_COUNT: usize = usize::MAX;

/// A built-in function.
pub struct ScalarFunction {
    /// The name in upper case; callers may write it in any case.
    pub name: &'static str,
    /// Names and types of the arguments and the type of the result, as `(text: string, ignoreCase?: boolean) -> boolean`:
    /// `?` marks what may be left out, `...` what may be repeated, `any` every type.
    pub signature: &'static str,
    /// How many arguments a call may have.
    pub arguments: RangeInclusive<usize>,
    /// One sentence for documentation and the explorer.
    pub summary: &'static str,
    /// Arguments as they stand in a call, and what the call gives, as JSON; none where the result is never the same.
    pub example: Option<(&'static str, &'static str)>,
    /// Computes the result; `Undefined` for arguments of a wrong type.
    pub evaluate: fn(&Context<'_>, &[Value]) -> Value,
    /// How a filter that calls the function can use an index.
    pub index_use: Option<FunctionIndexUse>,
    /// Whether the same arguments always give the same result, so that a call on constants can be folded.
    pub deterministic: bool,
}

impl ScalarFunction {
    /// What most functions share, for `..ScalarFunction::PLAIN` in definitions.
    pub(crate) const PLAIN: ScalarFunction = ScalarFunction {
        name: "",
        signature: "() -> any",
        arguments: 0..=0,
        summary: "",
        example: None,
        evaluate: |_, _| Value::Undefined,
        index_use: None,
        deterministic: true,
    };

    /// Whether a call may have that many arguments.
    pub fn takes(&self, count: usize) -> bool {
        self.arguments.contains(&count)
    }
}

impl fmt::Debug for ScalarFunction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ScalarFunction")
            .field("name", &self.name)
            .field("arguments", &self.arguments)
            .finish_non_exhaustive()
    }
}

/// How a filter can use an index: which argument is the path, and which say what to look for.
///
/// Numbers are places of arguments. An access path built from this finds a superset of the matching documents
/// unless said otherwise; the filter still runs on what it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionIndexUse {
    /// The path's text begins with the prefix: one range of the index, or an expanded one when case is ignored.
    Prefix {
        /// The path.
        text: usize,
        /// The prefix.
        prefix: usize,
        /// The flag that makes the test ignore case, when the function has one.
        ignore_case: Option<usize>,
    },
    /// The path's text ends with the suffix: every distinct text of the path is tested.
    Suffix {
        /// The path.
        text: usize,
        /// The suffix.
        suffix: usize,
    },
    /// The path's text contains the others: every distinct text of the path is tested.
    Contains {
        /// The path.
        text: usize,
        /// The first text looked for; those that follow up to the last are alternatives or further demands.
        first: usize,
    },
    /// The path's text equals the other: a seek, or an expanded range when case is ignored.
    Equality {
        /// The path.
        text: usize,
        /// The text it must equal.
        other: usize,
        /// The flag that makes the test ignore case.
        ignore_case: usize,
    },
    /// A pattern that may reduce to a prefix, suffix or substring (`regex::reduce`).
    Pattern {
        /// The path.
        text: usize,
        /// The pattern.
        pattern: usize,
        /// The modifiers.
        modifiers: usize,
    },
    /// The text's first units, for a comparison of the call with a constant: LEFT, and SUBSTRING from 0.
    Beginning {
        /// The path.
        text: usize,
    },
    /// A function of a number whose comparison with a constant asks for one or two ranges of the number.
    NumberRange {
        /// The path.
        number: usize,
    },
    /// The type of the path's value: one range of the index.
    TypeCheck {
        /// The path.
        value: usize,
        /// The type tested for.
        name: TypeName,
    },
    /// The path's array holds the value: a seek among the array's elements.
    ArrayContains {
        /// The path.
        array: usize,
        /// The first value looked for; those that follow up to the last are looked for as well.
        first: usize,
    },
    /// A distance between the path and a shape, for a comparison of the call with a constant.
    SpatialDistance,
    /// The one shape within the other, either of them the path.
    SpatialWithin,
    /// The two shapes have a point in common, either of them the path.
    SpatialIntersects,
    /// The path's text holds the terms.
    FullText {
        /// The path.
        text: usize,
        /// The first term.
        first: usize,
    },
    /// The vectors nearest to a given one, when used in ORDER BY.
    Vector,
}

/// What the type-checking functions test for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeName {
    /// An array.
    Array,
    /// A boolean.
    Boolean,
    /// Anything but undefined.
    Defined,
    /// Null.
    Null,
    /// A number.
    Number,
    /// An object.
    Object,
    /// Null, a boolean, a number or text.
    Primitive,
    /// Text.
    String,
}

/// Whether shapes lie on the Earth or in a plane; a setting of the container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpatialMode {
    /// Longitude and latitude in degrees, distances in metres, edges on great circles.
    #[default]
    Geography,
    /// Plane coordinates and straight edges.
    Geometry,
}

/// What the container's vector policy says about a path, for calls that do not say it themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VectorDefaults {
    /// How vectors are compared.
    pub distance_function: VectorMetric,
    /// How the numbers of a vector are stored.
    pub data_type: DataType,
}

/// What an evaluation is given besides its arguments.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The time of this evaluation, in microseconds since 1970.
    pub now_microseconds: u64,
    /// The time at which the query began, in microseconds since 1970; what the `..STATIC` functions answer with.
    pub query_start_microseconds: u64,
    /// Gives 64 random bits per call.
    pub random: &'a (dyn Fn() -> u64 + Sync),
    /// How the container's shapes are meant.
    pub spatial_mode: SpatialMode,
    /// The language of the text that full-text functions look at, resolved from the path by the caller.
    pub full_text_language: TextLanguage,
    /// What the container's vector policy says about the path that vector functions look at.
    pub vector: VectorDefaults,
}

impl Default for Context<'static> {
    /// Time zero, no randomness, and the settings of a container that has none: for constant folding and tests.
    fn default() -> Self {
        Self {
            now_microseconds: 0,
            query_start_microseconds: 0,
            random: &|| 0,
            spatial_mode: SpatialMode::default(),
            full_text_language: TextLanguage::default(),
            vector: VectorDefaults::default(),
        }
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Context")
            .field("now_microseconds", &self.now_microseconds)
            .field("query_start_microseconds", &self.query_start_microseconds)
            .field("spatial_mode", &self.spatial_mode)
            .field("full_text_language", &self.full_text_language)
            .field("vector", &self.vector)
            .finish_non_exhaustive()
    }
}
