//! Cases and laws of the aggregates.

use super::*;
use crate::testing::{any_value, list, print, value};
use proptest::prelude::*;

fn accumulate(function: AggregateFunction, rows: &[Value]) -> Accumulator {
    let mut accumulator = function.start();
    for row in rows {
        accumulator.add(row);
    }
    accumulator
}

/// The results of all aggregates, in the order of `ALL`.
#[track_caller]
fn check(rows: &str, expected: [&str; 8]) {
    for (function, expected) in AggregateFunction::ALL.into_iter().zip(expected) {
        let result = accumulate(function, &list(rows)).finish();
        assert_eq!(print(&result), print(&value(expected)), "{} of {rows}", function.name());
    }
}

#[test]
fn results() {
    check("[]", ["0", "0", "0", "undefined", "undefined", "undefined", "[]", "[]"]);
    check("[undefined]", ["0", "0", "0", "undefined", "undefined", "undefined", "[]", "[]"]);
    check(
        "[20.28,5.11,62.21]",
        ["3", "0", "87.6", "29.2", "5.11", "62.21", "[20.28,5.11,62.21]", "[5.11,20.28,62.21]"],
    );
    check("[1,undefined,1]", ["2", "0", "2", "1", "1", "1", "[1,1]", "[1]"]);
    check("[null]", ["1", "0", "undefined", "undefined", "null", "null", "[null]", "[null]"]);
    check(
        "[true,false,1]",
        ["3", "1", "undefined", "undefined", "false", "1", "[true,false,1]", "[false,true,1]"],
    );
    check(
        r#"["b","a",2]"#,
        ["3", "0", "undefined", "undefined", "2", "\"b\"", r#"["b","a",2]"#, r#"[2,"a","b"]"#],
    );
    check(
        "[1,[2],0]",
        ["3", "0", "undefined", "undefined", "undefined", "undefined", "[1,[2],0]", "[0,1,[2]]"],
    );
    check(
        r#"[{"a":1,"b":2},{"b":2,"a":1}]"#,
        [
            "2",
            "0",
            "undefined",
            "undefined",
            "undefined",
            "undefined",
            r#"[{"a":1,"b":2},{"b":2,"a":1}]"#,
            r#"[{"a":1,"b":2}]"#,
        ],
    );
}

#[test]
fn names() {
    for function in AggregateFunction::ALL {
        assert_eq!(AggregateFunction::find(&function.name().to_lowercase()), Some(function));
        assert!(function.summary().ends_with('.') && !function.plan_name().is_empty());
    }
    assert!(AggregateFunction::find("AVERAGE").is_none());
}

#[test]
fn bytes_grow_with_what_is_kept() {
    let text: Value = "x".repeat(1000).as_str().into();
    let mut set = AggregateFunction::MakeSet.start();
    set.add(&text);
    let bytes = set.bytes();
    assert!((1000..1100).contains(&bytes));
    set.add(&text);
    assert_eq!(set.bytes(), bytes);
    let mut more = set.clone();
    more.merge(set);
    assert_eq!(more.bytes(), bytes);
    let mut list = AggregateFunction::MakeList.start();
    list.add(&text);
    list.add(&text);
    assert_eq!(list.bytes(), 2 * bytes);
    assert_eq!(accumulate(AggregateFunction::Sum, &[1.0.into()]).bytes(), 0);
}

#[test]
fn foreign_states_are_refused() {
    for (function, state) in [
        (AggregateFunction::Count, "-1"),
        (AggregateFunction::Count, "0.5"),
        (AggregateFunction::Count, "\"1\""),
        (AggregateFunction::Sum, "\"abc\""),
        (AggregateFunction::Sum, "[]"),
        (AggregateFunction::Average, "1"),
        (AggregateFunction::Average, "[1]"),
        (AggregateFunction::Average, "[1, 2, 3]"),
        (AggregateFunction::Minimum, "1"),
        (AggregateFunction::Minimum, "[1, 2]"),
        (AggregateFunction::Maximum, "[[1]]"),
        (AggregateFunction::Maximum, "[{}]"),
        (AggregateFunction::MakeList, "null"),
        (AggregateFunction::MakeSet, "{}"),
    ] {
        assert!(Accumulator::from_state(function, &value(state)).is_none(), "{function:?} {state}");
    }
}

proptest! {
    #[test]
    fn any_split_and_any_pause_give_the_same(
        rows in prop::collection::vec(any_value(), 0..12),
        at in any::<prop::sample::Index>(),
    ) {
        let at = at.index(rows.len() + 1);
        for function in AggregateFunction::ALL {
            let whole = accumulate(function, &rows).finish();
            let mut merged = accumulate(function, &rows[..at]);
            merged.merge(accumulate(function, &rows[at..]));
            let (merged, sums) = (merged.finish(), matches!(function, AggregateFunction::Sum | AggregateFunction::Average));
            prop_assert!(merged == whole || sums && !merged.is_undefined() && !whole.is_undefined());
            let state = accumulate(function, &rows[..at]).to_state();
            let mut resumed = Accumulator::from_state(function, &state).unwrap();
            rows[at..].iter().for_each(|row| resumed.add(row));
            prop_assert_eq!(resumed.finish(), whole);
        }
    }
}
