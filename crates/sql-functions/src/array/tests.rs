//! Cases and laws of the functions of arrays.

use super::*;
use crate::testing::{any_value, check_all, check_wrong_types};
use proptest::prelude::*;

const WRONG: [&str; 6] = ["undefined", "null", "true", "1", "\"a\"", "{}"];

#[test]
fn only_arrays() {
    for name in ["ARRAY_LENGTH", "ARRAY_AVG", "ARRAY_SUM", "ARRAY_MEDIAN", "ARRAY_MIN", "ARRAY_MAX"] {
        check_wrong_types(name, "[?]", &WRONG);
    }
    for name in ["ARRAY_CONCAT", "SETUNION", "SETINTERSECT", "SETDIFFERENCE", "SETEQUAL"] {
        check_wrong_types(name, "[?, [1]]", &WRONG);
        check_wrong_types(name, "[[1], ?]", &WRONG);
    }
    for name in ["ARRAY_CONTAINS", "ARRAY_CONTAINS_ALL", "ARRAY_CONTAINS_ANY"] {
        check_wrong_types(name, "[?, 1]", &WRONG);
    }
    check_wrong_types("ARRAY_SLICE", "[?, 1]", &WRONG);
    check_wrong_types("ARRAY_SLICE", "[[1], ?]", &["undefined", "null", "true", "\"1\"", "0.5", "NaN"]);
    check_wrong_types("ARRAY_SLICE", "[[1], 0, ?]", &["undefined", "null", "true", "\"1\"", "0.5"]);
}

#[test]
fn lists() {
    check_all(&[
        ("ARRAY_CONCAT", r#"[["a"], ["b", [1]], []]"#, r#"["a","b",[1]]"#),
        ("ARRAY_CONCAT", r#"[["a"], ["b"], 5]"#, "undefined"),
        ("ARRAY_LENGTH", "[[]]", "0"),
        ("ARRAY_LENGTH", "[[70,[86]]]", "2"),
        ("ARRAY_SLICE", "[[1,2,3], 0]", "[1,2,3]"),
        ("ARRAY_SLICE", "[[1,2,3], -1]", "[3]"),
        ("ARRAY_SLICE", "[[1,2,3], -9]", "[1,2,3]"),
        ("ARRAY_SLICE", "[[1,2,3], 9]", "[]"),
        ("ARRAY_SLICE", "[[1,2,3], -2, 1]", "[2]"),
        ("ARRAY_SLICE", "[[1,2,3], 1, 0]", "[]"),
        ("ARRAY_SLICE", "[[1,2,3], 1, 1000]", "[2,3]"),
        ("ARRAY_SLICE", "[[1,2,3], 1, -100]", "[]"),
        ("ARRAY_SLICE", "[[1,2,3], -9223372036854775808, 9223372036854775807]", "[1,2,3]"),
    ]);
}

#[test]
fn membership() {
    check_all(&[
        ("ARRAY_CONTAINS", r#"[["coats","jackets"], "coats"]"#, "true"),
        ("ARRAY_CONTAINS", r#"[["coats"], "Coats"]"#, "false"),
        ("ARRAY_CONTAINS", r#"[[1], "1"]"#, "false"),
        ("ARRAY_CONTAINS", "[[1, null], null]", "true"),
        ("ARRAY_CONTAINS", "[[1], undefined]", "undefined"),
        ("ARRAY_CONTAINS", r#"[[{"a":1,"b":2}], {"b":2,"a":1}]"#, "true"),
        ("ARRAY_CONTAINS", r#"[[{"a":1,"b":2}], {"a":1}]"#, "false"),
        ("ARRAY_CONTAINS", r#"[[{"a":1,"b":2}], {"a":1}, false]"#, "false"),
        ("ARRAY_CONTAINS", r#"[[{"a":1,"b":2}], {"a":1}, undefined]"#, "false"),
        ("ARRAY_CONTAINS", r#"[[{"a":1,"b":2}], {"a":1}, true]"#, "true"),
        ("ARRAY_CONTAINS", r#"[[{"a":1,"b":2}], {"a":2}, true]"#, "false"),
        ("ARRAY_CONTAINS", r#"[[{"a":{"x":1,"y":2}}], {"a":{"x":1}}, true]"#, "false"),
        ("ARRAY_CONTAINS", r#"[[{"a":1}], {}, true]"#, "true"),
        ("ARRAY_CONTAINS", "[[4, 4], 2, true]", "false"),
        ("ARRAY_CONTAINS", "[[4, 4], 4, true]", "true"),
        ("ARRAY_CONTAINS_ALL", r#"[[1,true,"3",[1,2,3]], 1, true, "3", [1,2,3]]"#, "true"),
        ("ARRAY_CONTAINS_ALL", "[[1,2,3,4], 2, 3, 4, 5]", "false"),
        ("ARRAY_CONTAINS_ALL", "[[1,2,3,4], 1, undefined]", "undefined"),
        ("ARRAY_CONTAINS_ALL", "[[1,2,3,4], 5, undefined]", "false"),
        ("ARRAY_CONTAINS_ALL", "[[], 1]", "false"),
        ("ARRAY_CONTAINS_ANY", "[[1,2,3,4], 2, 5]", "true"),
        ("ARRAY_CONTAINS_ANY", "[[1,2,3,4], undefined, 1]", "true"),
        ("ARRAY_CONTAINS_ANY", "[[1,2,3,4], 5, undefined]", "undefined"),
        ("ARRAY_CONTAINS_ANY", "[[1,2,3,4], 5, 6]", "false"),
        ("ARRAY_CONTAINS_ANY", "[[], 1]", "false"),
    ]);
}

#[test]
fn partial_matches_of_large_objects() {
    let members: Vec<String> = (0..200).map(|number| format!("\"{number}\":{number}")).collect();
    let object = format!("{{{}}}", members.join(","));
    let subset = format!("{{{}}}", members[100..].join(","));
    check_all(&[
        ("ARRAY_CONTAINS", &format!("[[{object}], {subset}, true]"), "true"),
        ("ARRAY_CONTAINS", &format!("[[{subset}], {object}, true]"), "false"),
        ("ARRAY_CONTAINS", &format!("[[{object}], {}, true]", subset.replace(":199}", ":0}")), "false"),
    ]);
}

#[test]
fn computed() {
    let mixed = r#"[[12,"abc",true,false,null,undefined]]"#;
    check_all(&[
        ("ARRAY_AVG", "[[1,2,3,4]]", "2.5"),
        ("ARRAY_AVG", "[[1.0,2.0,3.3,4.7]]", "2.75"),
        ("ARRAY_AVG", "[[1,-2.7,3,-4,undefined]]", "-0.675"),
        ("ARRAY_AVG", mixed, "undefined"),
        ("ARRAY_AVG", "[[]]", "undefined"),
        ("ARRAY_SUM", "[[1,2,3,4,undefined]]", "10"),
        ("ARRAY_SUM", "[[]]", "0"),
        ("ARRAY_SUM", mixed, "undefined"),
        ("ARRAY_MEDIAN", "[[4,1,3,2]]", "2.5"),
        ("ARRAY_MEDIAN", "[[1.0,2.0,3.3,4.7,7.8]]", "3.3"),
        ("ARRAY_MEDIAN", "[[1,-2.7,3,-4,undefined]]", "-0.8500000000000001"),
        ("ARRAY_MEDIAN", mixed, "undefined"),
        ("ARRAY_MEDIAN", "[[]]", "undefined"),
        ("ARRAY_MIN", r#"[["abc","ABC","aBc","AbC"]]"#, "\"ABC\""),
        ("ARRAY_MIN", mixed, "null"),
        ("ARRAY_MIN", "[[]]", "undefined"),
        ("ARRAY_MIN", "[[1,[2]]]", "undefined"),
        ("ARRAY_MAX", "[[true,false]]", "true"),
        ("ARRAY_MAX", mixed, "\"abc\""),
        ("ARRAY_MAX", "[[null,null]]", "null"),
        ("ARRAY_MAX", "[[{}]]", "undefined"),
    ]);
}

#[test]
fn sets() {
    check_all(&[
        ("SETUNION", r#"[[1,2,"A","B"], ["A",1]]"#, r#"[1,2,"A","B"]"#),
        ("SETUNION", "[[1,1], [2,1,2]]", "[1,2]"),
        ("SETINTERSECT", r#"[[1,2,"A","B"], ["A",1]]"#, r#"["A",1]"#),
        ("SETINTERSECT", "[[1,2,3,4], [1,1,1,1]]", "[1]"),
        ("SETINTERSECT", "[[1,2], []]", "[]"),
        ("SETDIFFERENCE", "[[1,2,6,7], [1,2,3]]", "[6,7]"),
        ("SETDIFFERENCE", "[[1,1,1,1], [2,3,4]]", "[1]"),
        ("SETDIFFERENCE", "[[], [1]]", "[]"),
        ("SETEQUAL", "[[1,2,3,3], [1,2,2,3,1,2]]", "true"),
        ("SETEQUAL", "[[], [1]]", "false"),
        ("SETEQUAL", r#"[[{"a":1,"b":2}], [{"b":2,"a":1}]]"#, "true"),
        ("SETEQUAL", "[[0], [-0.0]]", "true"),
    ]);
}

#[test]
fn repeated_arguments_do_not_grow_without_bound() {
    let large = Value::Array(vec![Value::Array(vec![Value::Null; 20_000])]);
    assert!(concat(&vec![large; 200]).is_none());
}

proptest! {
    #[test]
    fn sets_obey_their_laws(
        a in prop::collection::vec(any_value(), 0..6),
        b in prop::collection::vec(any_value(), 0..6),
    ) {
        let call = |function: fn(&[Value]) -> Option<Value>, a: &Value, b: &Value| function(&[a.clone(), b.clone()]).unwrap();
        let (a, b) = (Value::Array(a), Value::Array(b));
        let equal = |a: &Value, b: &Value| set_equal(&[a.clone(), b.clone()]).unwrap() == true.into();
        prop_assert!(equal(&call(union, &a, &b), &call(union, &b, &a)));
        prop_assert!(equal(&call(intersection, &a, &b), &call(intersection, &b, &a)));
        prop_assert!(equal(&call(union, &a, &a), &a));
        prop_assert!(equal(&call(union, &call(difference, &a, &b), &call(intersection, &a, &b)), &a));
        prop_assert_eq!(call(intersection, &call(difference, &a, &b), &b), Value::Array(vec![]));
    }
}
