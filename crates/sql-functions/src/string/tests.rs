//! Cases and laws of the functions of text.

use super::*;
use crate::testing::{check, check_all, check_wrong_types, value};
use proptest::prelude::*;

const WRONG: [&str; 6] = ["undefined", "null", "true", "1", "[]", "{}"];
const WRONG_NUMBER: [&str; 6] = ["undefined", "null", "true", "\"1\"", "[]", "0.5"];

#[test]
fn wrong_types() {
    for name in
        ["LENGTH", "LOWER", "UPPER", "LTRIM", "RTRIM", "TRIM", "REVERSE", "STRINGTOARRAY", "STRINGTOBOOLEAN"]
    {
        check_wrong_types(name, "[?]", &WRONG);
    }
    for name in ["STRINGTONULL", "STRINGTONUMBER", "STRINGTOOBJECT"] {
        check_wrong_types(name, "[?]", &WRONG);
    }
    for name in [
        "CONCAT",
        "CONTAINS",
        "STARTSWITH",
        "ENDSWITH",
        "STRINGEQUALS",
        "INDEX_OF",
        "LASTINDEXOF",
        "LTRIM",
        "RTRIM",
        "TRIM",
        "STRINGSPLIT",
        "SUBSTRINGAFTER",
        "SUBSTRINGBEFORE",
        "LASTSUBSTRINGAFTER",
        "LASTSUBSTRINGBEFORE",
    ] {
        check_wrong_types(name, "[?, \"a\"]", &WRONG);
        check_wrong_types(name, "[\"a\", ?]", &WRONG);
    }
    for name in ["CONTAINS", "STARTSWITH", "ENDSWITH", "STRINGEQUALS"] {
        check_wrong_types(name, "[\"a\", \"a\", ?]", &["undefined", "null", "1", "\"true\"", "[]"]);
    }
    for template in ["[?, \"a\", \"b\"]", "[\"a\", ?, \"b\"]", "[\"a\", \"a\", ?]"] {
        check_wrong_types("REPLACE", template, &WRONG);
    }
    for name in ["INDEX_OF", "LASTINDEXOF"] {
        check_wrong_types(name, "[\"a\", \"a\", ?]", &WRONG_NUMBER);
    }
    for name in ["LEFT", "RIGHT"] {
        check_wrong_types(name, "[?, 1]", &WRONG);
        check_wrong_types(name, "[\"a\", ?]", &WRONG_NUMBER);
    }
    check_wrong_types("SUBSTRING", "[?, 0, 1]", &WRONG);
    check_wrong_types("SUBSTRING", "[\"a\", ?, 1]", &WRONG_NUMBER);
    check_wrong_types("SUBSTRING", "[\"a\", 0, ?]", &WRONG_NUMBER);
    check_wrong_types("REPLICATE", "[?, 1]", &WRONG);
    check_wrong_types(
        "REPLICATE",
        "[\"a\", ?]",
        &["undefined", "null", "true", "\"1\"", "[]", "NaN", "Infinity"],
    );
    check_wrong_types("STRINGJOIN", "[?, \"a\"]", &["undefined", "null", "true", "1", "\"a\"", "{}"]);
    check_wrong_types("STRINGJOIN", "[[\"a\"], ?]", &WRONG);
    check_wrong_types("STRINGJOIN", "[[\"a\", ?], \"\"]", &WRONG);
}

#[test]
fn tests_of_text() {
    check_all(&[
        ("CONTAINS", r#"["AdventureWorks", "Works"]"#, "true"),
        ("CONTAINS", r#"["AdventureWorks", "works"]"#, "false"),
        ("CONTAINS", r#"["AdventureWorks", "works", false]"#, "false"),
        ("CONTAINS", r#"["AdventureWorks", "works", true]"#, "true"),
        ("CONTAINS", r#"["Hello", ""]"#, "true"),
        ("CONTAINS", r#"["", "a"]"#, "false"),
        ("CONTAINS", r#"["ÉTÉ", "été", true]"#, "true"),
        ("CONTAINS", r#"["straße", "STRASSE", true]"#, "false"),
        ("CONTAINS", r#"["ΣΑΣ", "σας", true]"#, "true"),
        ("STARTSWITH", r#"["AdventureWorks", "Adventure"]"#, "true"),
        ("STARTSWITH", r#"["AdventureWorks", "adventure"]"#, "false"),
        ("STARTSWITH", r#"["AdventureWorks", "adventure", true]"#, "true"),
        ("STARTSWITH", r#"["", ""]"#, "true"),
        ("ENDSWITH", r#"["AdventureWorks", "Works"]"#, "true"),
        ("ENDSWITH", r#"["AdventureWorks", "works", true]"#, "true"),
        ("ENDSWITH", r#"["s", "Works"]"#, "false"),
        ("STRINGEQUALS", r#"["Ab", "Ab"]"#, "true"),
        ("STRINGEQUALS", r#"["Ab", "aB"]"#, "false"),
        ("STRINGEQUALS", r#"["Ab", "aB", true]"#, "true"),
        ("CONTAINS_ALL_CI", r#"["Have a nice day!", "HAVE", "nice"]"#, "true"),
        ("CONTAINS_ALL_CI", r#"["Have a nice day!", "had", "nice"]"#, "false"),
        ("CONTAINS_ALL_CI", r#"["Have a nice day!", undefined, "nice"]"#, "undefined"),
        ("CONTAINS_ALL_CI", r#"["Have a nice day!", undefined, "had"]"#, "false"),
        ("CONTAINS_ALL_CS", r#"["Have a nice day!", "HAVE", "nice"]"#, "false"),
        ("CONTAINS_ALL_CS", r#"["Have a nice day!", "Have", 1]"#, "undefined"),
        ("CONTAINS_ANY_CI", r#"["Have a nice day!", undefined, "NICE"]"#, "true"),
        ("CONTAINS_ANY_CI", r#"["Have a nice day!", undefined, "had"]"#, "undefined"),
        ("CONTAINS_ANY_CS", r#"["Have a nice day!", "HAVE", "DAY"]"#, "false"),
        ("CONTAINS_ANY_CS", r#"["Have a nice day!", "had", "day"]"#, "true"),
        ("CONTAINS_ANY_CS", r#"[1, "had"]"#, "undefined"),
    ]);
}

#[test]
fn positions() {
    check_all(&[
        ("INDEX_OF", r#"["AdventureWorks", "A"]"#, "0"),
        ("INDEX_OF", r#"["AdventureWorks", "Works"]"#, "9"),
        ("INDEX_OF", r#"["AdventureWorks", "Cosmos"]"#, "-1"),
        ("INDEX_OF", r#"["AdventureWorks", "Works", 5]"#, "9"),
        ("INDEX_OF", r#"["AdventureWorks", "Adventure", 5]"#, "-1"),
        ("INDEX_OF", r#"["AdventureWorks", "A", -5]"#, "0"),
        ("INDEX_OF", r#"["abc", "", 2]"#, "2"),
        ("INDEX_OF", r#"["abc", "", 3]"#, "3"),
        ("INDEX_OF", r#"["abc", "", 4]"#, "-1"),
        ("INDEX_OF", r#"["", ""]"#, "0"),
        ("INDEX_OF", r#"["a😀bé", "b"]"#, "3"),
        ("INDEX_OF", r#"["a😀bé", "é", 2]"#, "4"),
        ("INDEXOF", r#"["ab", "b"]"#, "1"),
        ("LASTINDEXOF", r#"["abcdeabc", "abc"]"#, "5"),
        ("LASTINDEXOF", r#"["abcdeabc", "abc", 6]"#, "0"),
        ("LASTINDEXOF", r#"["abcdeabc", "abc", 7]"#, "5"),
        ("LASTINDEXOF", r#"["abcdeabc", "abc", 100]"#, "5"),
        ("LASTINDEXOF", r#"["abcdeabc", "abc", -1]"#, "-1"),
        ("LASTINDEXOF", r#"["abcdeabc", "abc", 9223372036854775807]"#, "5"),
        ("LASTINDEXOF", r#"["abcdeabc", "fg"]"#, "-1"),
        ("LASTINDEXOF", r#"["😀a😀a", "a"]"#, "5"),
        ("LENGTH", r#"["AdventureWorks"]"#, "14"),
        ("LENGTH", r#"[""]"#, "0"),
        ("LENGTH", r#"["a😀é"]"#, "4"),
    ]);
}

#[test]
fn cuts() {
    check_all(&[
        ("LEFT", r#"["Hello", -3]"#, "\"\""),
        ("LEFT", r#"["Hello", 2]"#, "\"He\""),
        ("LEFT", r#"["Hello", 6]"#, "\"Hello\""),
        ("LEFT", r#"["a😀b", 2]"#, "\"a\u{fffd}\""),
        ("LEFT", r#"["a😀b", 3]"#, "\"a😀\""),
        ("RIGHT", r#"["Hello", 2]"#, "\"lo\""),
        ("RIGHT", r#"["Hello", 2147483648]"#, "\"Hello\""),
        ("RIGHT", r#"["Hello", -3]"#, "\"\""),
        ("RIGHT", r#"["a😀b", 2]"#, "\"\u{fffd}b\""),
        ("SUBSTRING", r#"["AdventureWorks", 0, 9]"#, "\"Adventure\""),
        ("SUBSTRING", r#"["AdventureWorks", 9, 500]"#, "\"Works\""),
        ("SUBSTRING", r#"["AdventureWorks", 0, -1]"#, "\"\""),
        ("SUBSTRING", r#"["Hello", -3, 5]"#, "\"\""),
        ("SUBSTRING", r#"["Hello", 5, 1]"#, "\"\""),
        ("SUBSTRING", r#"["Hello", 9223372036854775807, 9223372036854775807]"#, "\"\""),
        ("SUBSTRING", r#"["a😀b", 1, 2]"#, "\"😀\""),
        ("SUBSTRING", r#"["a😀b", 2, 2]"#, "\"\u{fffd}b\""),
        ("SUBSTRINGAFTER", r#"["a=b=c", "="]"#, "\"b=c\""),
        ("SUBSTRINGBEFORE", r#"["a=b=c", "="]"#, "\"a\""),
        ("LASTSUBSTRINGAFTER", r#"["a=b=c", "="]"#, "\"c\""),
        ("LASTSUBSTRINGBEFORE", r#"["a=b=c", "="]"#, "\"a=b\""),
        ("SUBSTRINGAFTER", r#"["abc", "="]"#, "\"\""),
        ("LTRIM", r#"["  AdventureWorks  "]"#, "\"AdventureWorks  \""),
        ("LTRIM", r#"["AdventureWorks", "Adventure"]"#, "\"Works\""),
        ("LTRIM", r#"["AdventureWorks", "AdventureWorks"]"#, "\"\""),
        ("LTRIM", r#"["AdventureWorks", ""]"#, "\"AdventureWorks\""),
        ("RTRIM", r#"["  AdventureWorks\t\u00a0"]"#, "\"  AdventureWorks\""),
        ("RTRIM", r#"["AdventureWorks", "Works"]"#, "\"Adventure\""),
        ("TRIM", r#"["  AdventureWorks  "]"#, "\"AdventureWorks\""),
        ("TRIM", r#"["-- AdventureWorks --", "-"]"#, "\" AdventureWorks \""),
        ("TRIM", r#"["-_-AdventureWorks-_-", "-_"]"#, "\"AdventureWorks\""),
        ("STRINGSPLIT", r#"["xenmoun mountain bike", "moun"]"#, r#"["xen"," ","tain bike"]"#),
        ("STRINGSPLIT", r#"["Helmet", ""]"#, r#"["Helmet"]"#),
        ("STRINGSPLIT", r#"["", ""]"#, r#"[""]"#),
        ("STRINGSPLIT", r#"["", ","]"#, r#"[""]"#),
        ("STRINGSPLIT", r#"["a,,b,", ","]"#, r#"["a","","b",""]"#),
    ]);
}

#[test]
fn built_texts() {
    check_all(&[
        ("CONCAT", r#"["adventure", "works"]"#, "\"adventureworks\""),
        ("CONCAT", r#"["a", "b", ""]"#, "\"ab\""),
        ("LOWER", r#"["ADVENTURE_Works ÉΣ"]"#, "\"adventure_works éσ\""),
        ("LOWER", r#"["İ"]"#, "\"İ\""),
        ("UPPER", r#"["Abc é ß ı ŉ"]"#, "\"ABC É ß ı ŉ\""),
        ("REPLACE", r#"["This is a Test", "Test", "desk"]"#, "\"This is a desk\""),
        ("REPLACE", r#"["aaa", "aa", "b"]"#, "\"ba\""),
        ("REPLACE", r#"["aaa", "", "b"]"#, "undefined"),
        ("REPLACE", r#"["aaa", "a", ""]"#, "\"\""),
        ("REPLICATE", r#"["Cosmic", 3]"#, "\"CosmicCosmicCosmic\""),
        ("REPLICATE", r#"["Hello", 1.5]"#, "\"Hello\""),
        ("REPLICATE", r#"["Hello", -0.5]"#, "\"\""),
        ("REPLICATE", r#"["Hello", 0]"#, "\"\""),
        ("REPLICATE", r#"["Hello", -1]"#, "undefined"),
        ("REPLICATE", r#"["Hello", 10000]"#, "undefined"),
        ("REPLICATE", r#"["", 1e300]"#, "\"\""),
        ("REPLICATE", r#"["a", 1e300]"#, "undefined"),
        ("REVERSE", r#"["AdventureWorks"]"#, "\"skroWerutnevdA\""),
        ("REVERSE", r#"["a😀é"]"#, "\"é😀a\""),
        ("STRINGJOIN", r#"[["Iropa", "Mountain", "Bike"], " "]"#, "\"Iropa Mountain Bike\""),
        ("STRINGJOIN", r#"[[], " "]"#, "\"\""),
        ("STRINGJOIN", r#"[["a"], " "]"#, "\"a\""),
    ]);
    check("REPLICATE", r#"["ab", 5000]"#, &format!("\"{}\"", "ab".repeat(5000)));
    check("REPLICATE", r#"["😀", 5001]"#, "undefined");
}

#[test]
fn built_texts_are_bounded() {
    let large = string("a".repeat(1 << 20));
    assert!(concat(&vec![large.clone(); 17]).is_none());
    assert!(join(&[Value::Array(vec![string("b"); 1000]), large.clone()]).is_none());
    assert!(replace(&[large.clone(), string("a"), large.clone()]).is_none());
    assert!(replace(&[large.clone(), string("b"), large]).is_some());
}

#[test]
fn conversions() {
    check_all(&[
        ("TOSTRING", "[125]", "\"125\""),
        ("TOSTRING", "[1.0000]", "\"1\""),
        ("TOSTRING", "[0.1234]", "\"0.1234\""),
        ("TOSTRING", "[1e21]", "\"1e+21\""),
        ("TOSTRING", "[false]", "\"false\""),
        ("TOSTRING", "[null]", "\"null\""),
        ("TOSTRING", "[\"Hello World\"]", "\"Hello World\""),
        ("TOSTRING", "[[1, 2, \"a\"]]", "\"[1,2,\\\"a\\\"]\""),
        ("TOSTRING", "[{\"department\": \"Bicycles\"}]", "\"{\\\"department\\\":\\\"Bicycles\\\"}\""),
        ("TOSTRING", "[NaN]", "\"NaN\""),
        ("TOSTRING", "[Infinity]", "\"Infinity\""),
        ("TOSTRING", "[-Infinity]", "\"-Infinity\""),
        ("TOSTRING", "[undefined]", "undefined"),
        ("STRINGTOARRAY", r#"["[ \"coats\", [1], null ]"]"#, r#"["coats",[1],null]"#),
        ("STRINGTOARRAY", r#"["[ 'coats' ]"]"#, "undefined"),
        ("STRINGTOARRAY", r#"["{}"]"#, "undefined"),
        ("STRINGTOBOOLEAN", r#"[" false "]"#, "false"),
        ("STRINGTOBOOLEAN", r#"["True"]"#, "undefined"),
        ("STRINGTONULL", r#"[" null"]"#, "null"),
        ("STRINGTONULL", r#"["NULL"]"#, "undefined"),
        ("STRINGTONUMBER", r#"[" 60 "]"#, "60"),
        ("STRINGTONUMBER", r#"["-1.79769e+308"]"#, "-1.79769e+308"),
        ("STRINGTONUMBER", r#"["Hello"]"#, "undefined"),
        ("STRINGTONUMBER", r#"["NaN"]"#, "undefined"),
        ("STRINGTONUMBER", r#"["1 2"]"#, "undefined"),
        ("STRINGTONUMBER", r#"[""]"#, "undefined"),
        (
            "STRINGTOOBJECT",
            r#"["{\"division\": {\"name\": \"Sales\"}}"]"#,
            r#"{"division":{"name":"Sales"}}"#,
        ),
        ("STRINGTOOBJECT", r#"["{'price': 27.55}"]"#, "undefined"),
    ]);
    let deep = format!("\"{}\"", "[".repeat(100_000));
    check("STRINGTOARRAY", &format!("[{deep}]"), "undefined");
}

proptest! {
    #[test]
    fn cuts_agree_with_utf16(text in "[aé😀]{0,6}", start in 0_u16..8, length in 0_u16..8) {
        let units: Vec<u16> = text.encode_utf16().collect();
        let expected: Vec<u16> = units.iter().copied().skip(start.into()).take(length.into()).collect();
        let result = cut::substring(&[string(&text), f64::from(start).into(), f64::from(length).into()]).unwrap();
        prop_assert_eq!(result, string(String::from_utf16_lossy(&expected)));
    }

    #[test]
    fn split_and_join_cancel(text in "[ab,]{0,12}", separator in "[ab,]{1,2}") {
        let parts = cut::split(&[string(&text), string(&separator)]).unwrap();
        prop_assert_eq!(join(&[parts, string(&separator)]).unwrap(), string(&text));
    }

    #[test]
    fn text_and_value_cancel(number in any::<f64>().prop_filter("JSON has it", |number| number.is_finite())) {
        let text = convert::to_string(&[number.into()]);
        prop_assert_eq!(convert::parse(&[text], |_| true).unwrap(), value(&format!("{number:?}")));
    }
}
