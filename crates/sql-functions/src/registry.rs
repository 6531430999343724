//! All built-in functions, found by name.
//!
//! A group's functions stand in its own table; this file lists the groups and the second names.
//! Invariants
//! - Names are upper case and distinct; `find` ignores case.

use std::cmp::Ordering;
use std::sync::LazyLock;

use crate::ScalarFunction;
use crate::{
    array, conditional, date_time, full_text, integer, item, math, object, regex, spatial, string,
    type_check, vector,
};

/// The groups by title, and their tables.
static GROUPS: &[(&str, &[ScalarFunction])] = &[
    ("Arrays", array::FUNCTIONS),
    ("Conditions", conditional::FUNCTIONS),
    ("Dates and times", date_time::FUNCTIONS),
    ("Full text", full_text::FUNCTIONS),
    ("Integers of 64 bits", integer::FUNCTIONS),
    ("Documents", item::FUNCTIONS),
    ("Numbers", math::FUNCTIONS),
    ("Objects", object::FUNCTIONS),
    ("Regular expressions", regex::FUNCTIONS),
    ("Shapes", spatial::FUNCTIONS),
    ("Text", string::FUNCTIONS),
    ("Types", type_check::FUNCTIONS),
    ("Vectors", vector::FUNCTIONS),
];

/// Second names: `IS_BOOLEAN` is what one SDK writes when it resumes an ordered query.
static SYNONYMS: &[(&str, &str)] = &[("IS_BOOLEAN", "IS_BOOL"), ("INDEXOF", "INDEX_OF")];

/// What stands only in ORDER BY RANK, where the planner replaces it.
static RANK_FUNCTIONS: &[RankFunction] = &[
    RankFunction {
        name: "FULLTEXTSCORE",
        signature: "(text: string, ...phrases: string) -> number",
        summary: "How well the text fits the phrases, for ORDER BY RANK only.",
    },
    RankFunction {
        name: "RRF",
        signature: "(...scores: number, weights?: array) -> number",
        summary: "Several rankings made one by their reciprocal ranks, for ORDER BY RANK only.",
    },
];

/// A scoring function that only ORDER BY RANK takes.
#[derive(Debug)]
pub struct RankFunction {
    /// The name in upper case; callers may write it in any case.
    pub name: &'static str,
    /// As of [`ScalarFunction`].
    pub signature: &'static str,
    /// One sentence for documentation and the explorer.
    pub summary: &'static str,
}

/// Sorted by name, so that a lookup is a handful of comparisons and needs no copy in upper case.
static BY_NAME: LazyLock<Vec<(&'static str, &'static ScalarFunction)>> = LazyLock::new(|| {
    let mut names: Vec<_> = all().map(|function| (function.name, function)).collect();
    for &(synonym, name) in SYNONYMS {
        let function = all().find(|function| function.name == name);
        names.extend(function.map(|function| (synonym, function)));
    }
    names.sort_unstable_by_key(|(name, _)| *name);
    names
});

/// The function of that name, written in any case.
pub fn find(name: &str) -> Option<&'static ScalarFunction> {
    let place = BY_NAME.binary_search_by(|(own, _)| compare_ignoring_case(own, name)).ok()?;
    Some(BY_NAME[place].1)
}

/// Every function once, without second names.
pub fn all() -> impl Iterator<Item = &'static ScalarFunction> {
    GROUPS.iter().flat_map(|(_, functions)| functions.iter())
}

/// The groups by title, each with its functions, for documentation.
pub fn groups() -> impl Iterator<Item = (&'static str, &'static [ScalarFunction])> {
    GROUPS.iter().copied()
}

/// The second names, each with the name of the function that it stands for.
pub fn synonyms() -> impl Iterator<Item = (&'static str, &'static str)> {
    SYNONYMS.iter().copied()
}

/// The scoring functions that only ORDER BY RANK takes.
pub fn rank_functions() -> impl Iterator<Item = &'static RankFunction> {
    RANK_FUNCTIONS.iter()
}

/// Whether the name, in any case, is one of the scoring functions that only ORDER BY RANK takes.
pub fn is_rank_function(name: &str) -> bool {
    RANK_FUNCTIONS.iter().any(|own| own.name.eq_ignore_ascii_case(name))
}

fn compare_ignoring_case(upper: &str, name: &str) -> Ordering {
    upper.bytes().cmp(name.bytes().map(|byte| byte.to_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;
    use astrarium_value::Value;
    use proptest::prelude::*;

    #[test]
    fn names_are_distinct_and_found_in_any_case() {
        assert!(BY_NAME.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(BY_NAME.len(), all().count() + SYNONYMS.len());
        for (name, function) in BY_NAME.iter() {
            assert_eq!(name.to_ascii_uppercase(), *name);
            let mixed: String = name
                .chars()
                .enumerate()
                .map(|(place, letter)| if place % 2 == 0 { letter.to_ascii_lowercase() } else { letter })
                .collect();
            assert_eq!(find(&mixed).map(|found| found.name), Some(function.name));
            assert!(function.summary.ends_with('.'), "{name}");
            assert!(!function.arguments.is_empty(), "{name}");
        }
        for unknown in ["", "ABSX", "AB", "COUNT", "FULLTEXTSCORE", "ÀBS"] {
            assert!(find(unknown).is_none(), "{unknown}");
        }
        assert!(is_rank_function("FullTextScore") && is_rank_function("rrf") && !is_rank_function("ABS"));
    }

    #[test]
    fn counts_are_checked_by_the_definition() {
        let takes = |name: &str, count| find(name).unwrap().takes(count);
        assert!(takes("startswith", 2) && takes("startswith", 3) && !takes("startswith", 4));
        assert!(takes("concat", 2000) && !takes("concat", 1));
        assert!(takes("pi", 0) && !takes("pi", 1));
    }

    /// How many arguments a signature says a call may have.
    fn counted(signature: &str) -> (usize, usize) {
        let (inside, result) = signature.strip_prefix('(').unwrap().split_once(") -> ").unwrap();
        assert!(TYPES.contains(&result), "{signature}");
        let mut counts = (0, 0);
        for parameter in inside.split(", ").filter(|parameter| !parameter.is_empty()) {
            let (name, kind) = parameter.split_once(": ").unwrap();
            assert!(TYPES.contains(&kind), "{signature}");
            let optional = name.ends_with('?');
            assert!(optional || counts.0 == counts.1, "{signature}: only the last arguments can be left out");
            counts.0 += usize::from(!optional);
            counts.1 = if name.starts_with("...") { crate::ANY_COUNT } else { counts.1 + 1 };
        }
        counts
    }

    const TYPES: [&str; 7] = ["any", "array", "boolean", "null", "number", "object", "string"];

    #[test]
    fn signatures_say_what_calls_may_have() {
        for function in all() {
            let (least, most) = counted(function.signature);
            let name = function.name;
            assert_eq!(most, *function.arguments.end(), "{name}");
            // What can be repeated stands there once; joining and concatenating need two of it.
            let repeated = most == crate::ANY_COUNT;
            assert!(least == *function.arguments.start() || repeated && function.takes(least + 1), "{name}");
        }
        for aggregate in crate::aggregates::AggregateFunction::ALL {
            assert_eq!(counted(aggregate.signature()), (1, 1), "{}", aggregate.name());
        }
    }

    #[test]
    fn examples_give_what_they_say() {
        for function in all() {
            let Some((arguments, result)) = function.example else {
                let internal = function.name.starts_with('_');
                assert!(
                    !function.deterministic || internal || function.arguments == (0..=0),
                    "{}",
                    function.name
                );
                continue;
            };
            crate::testing::check(function.name, &format!("[{arguments}]"), result);
        }
    }

    proptest! {
        /// Whatever a client sends, in whatever number, gives a value.
        #[test]
        fn no_function_fails(
            which in any::<prop::sample::Index>(),
            arguments in prop::collection::vec(crate::testing::any_value(), 0..6),
        ) {
            let functions: Vec<_> = all().collect();
            let function = which.get(&functions);
            let value = (function.evaluate)(&Context::default(), &arguments);
            prop_assert!(value.is_undefined() || matches!(value.cmp(&value), std::cmp::Ordering::Equal));
            if function.deterministic {
                prop_assert_eq!(&value, &(function.evaluate)(&Context::default(), &arguments));
            }
            let nothing = vec![Value::Undefined; arguments.len()];
            (function.evaluate)(&Context::default(), &nothing);
        }
    }
}
