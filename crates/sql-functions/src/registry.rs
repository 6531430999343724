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

/// The tables of the groups.
static GROUPS: &[&[ScalarFunction]] = &[
    array::FUNCTIONS,
    conditional::FUNCTIONS,
    date_time::FUNCTIONS,
    full_text::FUNCTIONS,
    integer::FUNCTIONS,
    item::FUNCTIONS,
    math::FUNCTIONS,
    object::FUNCTIONS,
    regex::FUNCTIONS,
    spatial::FUNCTIONS,
    string::FUNCTIONS,
    type_check::FUNCTIONS,
    vector::FUNCTIONS,
];

/// Second names: `IS_BOOLEAN` is what one SDK writes when it resumes an ordered query.
static SYNONYMS: &[(&str, &str)] = &[("IS_BOOLEAN", "IS_BOOL"), ("INDEXOF", "INDEX_OF")];

/// Names that stand only in ORDER BY RANK, where the planner replaces them.
static RANK_FUNCTIONS: &[&str] = &["FULLTEXTSCORE", "RRF"];

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
    GROUPS.iter().flat_map(|group| group.iter())
}

/// Whether the name, in any case, is one of the scoring functions that only ORDER BY RANK takes.
pub fn is_rank_function(name: &str) -> bool {
    RANK_FUNCTIONS.iter().any(|own| own.eq_ignore_ascii_case(name))
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
