//! Cases and laws of JSON text: what is read, what is refused, what is printed. `serde_json` serves as the oracle.

use super::*;
use proptest::prelude::*;

fn parse(text: &str) -> Text<'_> {
    Text::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn minimal(text: &str, omit: &[&str]) -> String {
    let mut out = b">".to_vec();
    parse(text).write_minimal(omit, &mut out);
    String::from_utf8(out.split_off(1)).unwrap()
}

fn refused(text: &[u8], fault: JsonFault, offset: usize) {
    let shown = String::from_utf8_lossy(&text[..text.len().min(60)]).into_owned();
    assert_eq!(Text::parse(text).err(), Some(JsonError { fault, offset }), "{shown}");
}

#[test]
fn refuses_what_is_not_json() {
    use JsonFault::{Escape, LoneSurrogate, NumberRange, UnexpectedByte, UnexpectedEnd};
    refused(b"", UnexpectedEnd, 0);
    refused(b"  ", UnexpectedEnd, 2);
    refused(b"{} x", UnexpectedByte, 3);
    refused(b"1 2", UnexpectedByte, 2);
    refused(b"\xEF\xBB\xBF{}", UnexpectedByte, 0);
    refused(b"[\"\xFF\"]", JsonFault::Encoding, 2);
    refused(b"\"\xED\xA0\x80\"", JsonFault::Encoding, 1);
    for (text, offset) in
        [("[1,]", 3), ("{,}", 1), ("{\"a\":1,}", 7), ("{a:1}", 1), ("{\"a\" 1}", 5), ("[1 2]", 3)]
    {
        refused(text.as_bytes(), UnexpectedByte, offset);
    }
    for text in [
        "[",
        "{",
        "[1",
        "[1,",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "\"",
        "\"abc",
        "tru",
        "-",
        "1.",
        "1e",
    ] {
        refused(text.as_bytes(), UnexpectedEnd, text.len());
    }
    for (text, offset) in
        [("NaN", 0), ("Infinity", 0), ("-Infinity", 1), ("+1", 0), (".5", 0), ("01", 1), ("1.e3", 2)]
    {
        refused(text.as_bytes(), UnexpectedByte, offset);
    }
    for (text, offset) in [("-01", 2), ("1e+", 3), ("0x1", 1), ("truE", 3), ("'a'", 0), ("nulll", 4)] {
        let fault = if offset == text.len() { UnexpectedEnd } else { UnexpectedByte };
        refused(text.as_bytes(), fault, offset);
    }
    refused(b"\"a\nb\"", JsonFault::ControlCharacter, 2);
    refused(b"\"0123456789\x00\"", JsonFault::ControlCharacter, 11);
    refused(br#""\x""#, Escape, 1);
    refused(br#""ab\u12g4""#, Escape, 3);
    refused(br#""\u12"#, UnexpectedEnd, 5);
    refused(b"\"\\", UnexpectedEnd, 2);
    refused(br#""\ud83d""#, LoneSurrogate, 1);
    refused(br#""\ud83d\n""#, LoneSurrogate, 1);
    refused(br#""\ud83d\u0041""#, LoneSurrogate, 1);
    refused(br#""a\udc00\ud800""#, LoneSurrogate, 2);
    refused(b"[1e400]", NumberRange, 1);
    refused(b"-1.8e308", NumberRange, 0);
    refused(format!("1{}", "0".repeat(309)).as_bytes(), NumberRange, 0);
}

#[test]
fn bounds_depth() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested = |depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        let value = parse(&nested(DEPTH_MAX)).root().to_value();
        assert!(!value.is_undefined());
        assert_eq!(minimal(&nested(DEPTH_MAX).replace('1', " 1"), &[]), nested(DEPTH_MAX));
        refused(nested(DEPTH_MAX + 1).as_bytes(), JsonFault::Depth, open.len() * DEPTH_MAX);
        refused(open.repeat(100_000).as_bytes(), JsonFault::Depth, open.len() * DEPTH_MAX);
    }
}

#[test]
fn finds_values() {
    let text = parse(
        r#" {"a":{"b c":[1, "x\ty", {"d":null}], "":true}, "n":-12.50e1,"f":false,"\u0062":"\ud83d\ude00\/"} "#,
    );
    let root = text.root();
    let at = |path: &str| root.at(&PropertyPath::parse(path).unwrap());
    assert_eq!(root.kind(), Kind::Object);
    assert_eq!(at("/a/'b c'").unwrap().raw(), r#"[1, "x\ty", {"d":null}]"#);
    let kinds: Vec<Kind> = at("/a/'b c'").unwrap().elements().map(Node::kind).collect();
    assert_eq!(kinds, [Kind::Number, Kind::String, Kind::Object]);
    assert_eq!(at("/a/\"\"").unwrap().as_bool(), Some(true));
    assert_eq!(at("/n").unwrap().as_f64(), Some(-125.0));
    assert_eq!(at("/n").unwrap().raw(), "-12.50e1");
    assert_eq!(at("/f").unwrap().as_bool(), Some(false));
    assert_eq!(at("/b").unwrap().as_str().as_deref(), Some("😀/"));
    assert!(at("/a/x").is_none() && at("/n/x").is_none() && at("/a/'b c'/d").is_none());
    assert!(root.as_str().is_none() && root.as_f64().is_none() && root.as_bool().is_none());
    assert_eq!(root.elements().count() + at("/n").unwrap().members().count(), 0);
    let names: Vec<Cow<'_, str>> = root.members().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "n", "f", "b"]);
}

#[test]
fn the_last_of_equal_names_wins() {
    let text = parse(r#"{"a":1,"b":{"x":1,"x":{"y":2}},"\u0061":2,"c":3,"a":[4]}"#);
    assert_eq!(text.root().get("a").unwrap().raw(), "[4]");
    let members: Vec<String> =
        text.root().members().map(|(name, node)| format!("{name}={}", node.raw())).collect();
    assert_eq!(members, [r#"b={"x":1,"x":{"y":2}}"#, "c=3", "a=[4]"]);
    assert_eq!(text.root().to_value(), parse(r#"{"a":[4],"b":{"x":{"y":2}},"c":3}"#).root().to_value());
    assert_eq!(minimal(text.root().raw(), &[]), r#"{"b":{"x":{"y":2}},"c":3,"a":[4]}"#);
}

#[test]
fn many_equal_names_take_little_time() {
    // One to two MiB each: all names equal, all names different, all different with the same escaped beginning.
    let long = format!("\\u0061{}", "a".repeat(90));
    let objects: [Vec<String>; 3] = [
        vec!["\"a\":1".to_owned(); 350_000],
        (0..200_000).map(|number| format!("\"{number}\":1")).collect(),
        (0..20_000).map(|number| format!("\"{long}{number}\":1")).collect(),
    ];
    for (members, expected) in objects.iter().zip([1, 200_000, 20_000]) {
        let json = format!("{{{}}}", members.join(","));
        assert_eq!(parse(&json).root().members().count(), expected);
    }
}

#[test]
fn writes_minimal_text() {
    let check =
        |text: &str, omit: &[&str], expected: &str| assert_eq!(minimal(text, omit), expected, "{text}");
    check(" 1.0E+2 ", &[], "1.0E+2");
    check("\t\"a b\\u0041\" \n", &["a"], "\"a b\\u0041\"");
    check("[ ]", &[], "[]");
    check("{ }", &["a"], "{}");
    check(r#"{"a":1,"b":[1,2]}"#, &["c"], r#"{"a":1,"b":[1,2]}"#);
    check(r#"{"a":1,"b":[1,2],"c":3}"#, &["b"], r#"{"a":1,"c":3}"#);
    check(r#"{"a":1,"b":[1,2],"c":3}"#, &["a", "c"], r#"{"b":[1,2]}"#);
    check(r#"{"a":1}"#, &["a"], "{}");
    check(r#"{"x":{"a":1},"\u0061":1}"#, &["a"], r#"{"x":{"a":1}}"#);
    check(
        r#"{ "a" : [ 1 , { "b" : "x  y" } , [] ] , "c":1e5 }"#,
        &[],
        r#"{"a":[1,{"b":"x  y"},[]],"c":1e5}"#,
    );
    check(r#"{"a":[1,{"b":1,"b":2}],"_ts":1}"#, &["_ts"], r#"{"a":[1,{"b":2}]}"#);
    check(r#"{"_ts":1,"a":0,"_ts":2}"#, &["_ts"], r#"{"a":0}"#);
}

#[test]
fn prints_like_javascript() {
    let check = |number: f64, expected: &str| {
        let mut out = Vec::new();
        write_number(number, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    };
    for (number, expected) in [
        (0.0, "0"),
        (-0.0, "0"),
        (5.0, "5"),
        (-1.5, "-1.5"),
        (0.1, "0.1"),
        (1e-6, "0.000001"),
        (-1.25e-6, "-0.00000125"),
        (1e-7, "1e-7"),
        (1.5e-7, "1.5e-7"),
        (9_007_199_254_740_991.0, "9007199254740991"),
        (9_007_199_254_740_992.0, "9007199254740992"),
        (2_049_537_175_849_502_700.0, "2049537175849502700"),
        (123_456_789_012_345_680_000.0, "123456789012345680000"),
        (1e21, "1e+21"),
        (-1.234e300, "-1.234e+300"),
        (5e-324, "5e-324"),
        (f64::MAX, "1.7976931348623157e+308"),
        (123_456.789, "123456.789"),
        (f64::NAN, "null"),
        (f64::NEG_INFINITY, "null"),
    ] {
        check(number, expected);
    }
    let mut out = Vec::new();
    write_string("a\"\\/\n\r\t\u{8}\u{c}\u{1}\u{7f}é😀", &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), "\"a\\\"\\\\/\\n\\r\\t\\b\\f\\u0001\u{7f}é😀\"");
    let mut out = Vec::new();
    Value::Array(vec![Value::Undefined, Value::Null, Value::Undefined, true.into()]).write_json(&mut out);
    assert_eq!(out, b"[null,true]");
}

/// Texts that are JSON, with odd spacing, equal names and spellings worth keeping.
fn any_json() -> impl Strategy<Value = String> {
    let scalar = proptest::sample::select(vec![
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1.50",
        "1E+2",
        "123456789012345678901234567890",
        "\"\"",
        "\"a\"",
        "\"\\u00e9 \\\" , } ]\"",
        "\"0123456789abcdef\\\\\"",
        "\"\\ud83d\\ude00\"",
        "\"日本\"",
    ]);
    let space = proptest::sample::select(vec!["", "", " ", "\n\t", "\r"]);
    let name = proptest::sample::select(vec!["\"a\"", "\"\\u0061\"", "\"b\"", "\"\"", "\"long name here\""]);
    scalar.prop_map(str::to_owned).prop_recursive(4, 40, 6, move |inner| {
        let member =
            (name.clone(), space.clone(), inner.clone()).prop_map(|(n, s, v)| format!("{s}{n}{s}:{s}{v}{s}"));
        prop_oneof![
            (prop::collection::vec(inner, 0..6), space.clone())
                .prop_map(|(values, s)| format!("{s}[{s}{}{s}]", values.join(&format!(",{s}")))),
            prop::collection::vec(member, 0..6).prop_map(|members| format!("{{{}}}", members.join(","))),
        ]
    })
}

fn oracle(text: &[u8]) -> Option<serde_json::Value> {
    serde_json::from_slice(text).ok()
}

proptest! {
    #[test]
    fn accepts_and_minimises_json(text in any_json()) {
        let minimised = minimal(&text, &[]);
        prop_assert_eq!(oracle(text.as_bytes()), oracle(minimised.as_bytes()));
        prop_assert_eq!(&minimal(&minimised, &[]), &minimised);
        let mut printed = Vec::new();
        parse(&text).root().to_value().write_json(&mut printed);
        prop_assert_eq!(parse(std::str::from_utf8(&printed).unwrap()).root().to_value(), parse(&text).root().to_value());
        let without = oracle(minimal(&text, &["a", "long name here"]).as_bytes()).unwrap();
        let mut expected = oracle(text.as_bytes()).unwrap();
        if let Some(members) = expected.as_object_mut() {
            members.retain(|name, _| name != "a" && name != "long name here");
        }
        prop_assert_eq!(without, expected);
    }

    #[test]
    fn damaged_json_is_judged_like_the_oracle(text in any_json(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        prop_assert_eq!(Text::parse(&bytes).is_ok(), oracle(&bytes).is_some(), "{}", String::from_utf8_lossy(&bytes));
        bytes.truncate(at);
        prop_assert_eq!(Text::parse(&bytes).is_ok(), oracle(&bytes).is_some(), "{}", String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_bytes_are_judged_like_the_oracle(text in "[\\[\\]{}:,\"\\\\u0d8cetrfalsn.+\\- 1-9]{0,12}") {
        prop_assert_eq!(Text::parse(text.as_bytes()).is_ok(), oracle(text.as_bytes()).is_some());
    }

    #[test]
    fn strings_and_numbers_come_back(text in any::<String>(), number in any::<f64>()) {
        let mut out = Vec::new();
        write_string(&text, &mut out);
        let read = Text::parse(&out).unwrap();
        let content = read.root().as_str().map(Cow::into_owned);
        prop_assert_eq!(content.as_deref(), Some(text.as_str()));
        if number.is_finite() {
            let mut out = Vec::new();
            write_number(number, &mut out);
            prop_assert_eq!(Text::parse(&out).unwrap().root().as_f64(), Some(number));
        }
    }

    #[test]
    fn plain_strings_end_where_they_end(text in "[a-z\u{7f}-\u{ff}😀]{0,40}") {
        let json = format!("\"{text}\"");
        let read = parse(&json);
        let content = read.root().as_str();
        prop_assert_eq!(content, Some(Cow::Borrowed(text.as_str())));
    }
}
