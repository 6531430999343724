//! Cases and laws of dates.

use super::*;
use crate::testing::{check, check_all, check_in, check_wrong_types};
use proptest::prelude::*;

const WRONG_TEXT: [&str; 7] = ["undefined", "null", "true", "1", "[]", "{}", "\"nonsense\""];
const WRONG_NUMBER: [&str; 7] = ["undefined", "null", "true", "\"1\"", "[]", "0.5", "NaN"];

#[test]
fn wrong_types() {
    for (name, template) in [
        ("DATETIMEADD", "[?, 1, \"2020-07-03\"]"),
        ("DATETIMEADD", "[\"dd\", 1, ?]"),
        ("DATETIMEDIFF", "[?, \"2020-07-03\", \"2020-07-03\"]"),
        ("DATETIMEDIFF", "[\"dd\", ?, \"2020-07-03\"]"),
        ("DATETIMEDIFF", "[\"dd\", \"2020-07-03\", ?]"),
        ("DATETIMEPART", "[?, \"2020-07-03\"]"),
        ("DATETIMEPART", "[\"dd\", ?]"),
        ("YEAR", "[?]"),
        ("MONTH", "[?]"),
        ("DAY", "[?]"),
        ("DATETIMEBIN", "[?, \"dd\"]"),
        ("DATETIMEBIN", "[\"2020-07-03\", ?]"),
        ("DATETIMEBIN", "[\"2020-07-03\", \"dd\", 1, ?]"),
        ("DATETIMEFORMAT", "[?, \"yyyy\"]"),
        ("DATETIMETOTICKS", "[?]"),
        ("DATETIMETOTIMESTAMP", "[?]"),
        ("NOW", "[?, 1]"),
        ("AGO", "[?, 1]"),
    ] {
        check_wrong_types(name, template, &WRONG_TEXT);
    }
    for (name, template) in [
        ("DATETIMEADD", "[\"dd\", ?, \"2020-07-03\"]"),
        ("DATETIMEFROMPARTS", "[?, 1, 1]"),
        ("DATETIMEFROMPARTS", "[2020, 1, 1, ?]"),
        ("DATETIMEBIN", "[\"2020-07-03\", \"dd\", ?]"),
        ("TICKSTODATETIME", "[?]"),
        ("TIMESTAMPTODATETIME", "[?]"),
        ("NOW", "[\"dd\", ?]"),
        ("AGO", "[\"dd\", ?]"),
    ] {
        check_wrong_types(name, template, &WRONG_NUMBER);
    }
    check("DATETIMEADD", "[\"DD\", 1, \"2020-07-03\"]", "undefined");
    check("DATETIMEFORMAT", "[\"2020-07-03\", 1]", "undefined");
}

#[track_caller]
fn check_add(part: &str, amount: i64, date: &str, expected: &str) {
    let expected = if expected == "undefined" { expected.to_owned() } else { format!("\"{expected}\"") };
    check("DATETIMEADD", &format!("[\"{part}\", {amount}, \"{date}\"]"), &expected);
}

#[test]
fn addition() {
    let date = "2020-07-03T00:00:00.0000000";
    for (part, amount, expected) in [
        ("yyyy", 1, "2021-07-03T00:00:00.0000000Z"),
        ("year", -1, "2019-07-03T00:00:00.0000000Z"),
        ("mm", 1, "2020-08-03T00:00:00.0000000Z"),
        ("m", -7, "2019-12-03T00:00:00.0000000Z"),
        ("dd", -1, "2020-07-02T00:00:00.0000000Z"),
        ("hh", -1, "2020-07-02T23:00:00.0000000Z"),
        ("mi", 61, "2020-07-03T01:01:00.0000000Z"),
        ("n", 1, "2020-07-03T00:01:00.0000000Z"),
        ("ss", -25, "2020-07-02T23:59:35.0000000Z"),
        ("ms", 1, "2020-07-03T00:00:00.0010000Z"),
        ("mcs", 1, "2020-07-03T00:00:00.0000010Z"),
        ("ns", 100, "2020-07-03T00:00:00.0000001Z"),
        ("ns", 99, "2020-07-03T00:00:00.0000000Z"),
        ("yy", 7980, "undefined"),
        ("yy", -2020, "undefined"),
        ("day", i64::MAX, "undefined"),
        ("ns", i64::MIN, "1728-03-24T00:12:43.1452242Z"),
    ] {
        check_add(part, amount, date, expected);
    }
    check_add("month", 1, "2020-01-31T10:00:00Z", "2020-02-29T10:00:00.0000000Z");
    check_add("year", 1, "2020-02-29", "2021-02-28T00:00:00.0000000Z");
    check_add("ns", 100, "9999-12-31T23:59:59.9999999Z", "undefined");
    check_add("mcs", -1, "0001-01-01", "undefined");
}

#[test]
fn differences() {
    let (past, future) = ("2018-03-05T05:00:00.0000000", "2019-02-04T16:00:00.0000000");
    for (part, expected) in [
        ("yyyy", 1_i64),
        ("mm", 11),
        ("dd", 336),
        ("hh", 8075),
        ("mi", 484_500),
        ("ss", 29_070_000),
        ("ms", 29_070_000_000),
    ] {
        check("DATETIMEDIFF", &format!("[\"{part}\", \"{past}\", \"{future}\"]"), &expected.to_string());
        check("DATETIMEDIFF", &format!("[\"{part}\", \"{future}\", \"{past}\"]"), &(-expected).to_string());
    }
    check_all(&[
        ("DATETIMEDIFF", r#"["year", "2020-12-31T23:59:59.9999999Z", "2021-01-01"]"#, "1"),
        ("DATETIMEDIFF", r#"["hour", "2020-12-31T23:59:59Z", "2021-01-01"]"#, "1"),
        ("DATETIMEDIFF", r#"["hour", "2020-12-31T23:00:00Z", "2020-12-31T23:59:59Z"]"#, "0"),
        ("DATETIMEDIFF", r#"["day", "1969-12-31T23:00:00Z", "1970-01-01T01:00:00Z"]"#, "1"),
        ("DATETIMEDIFF", r#"["ns", "0001-01-01", "9999-12-31T23:59:59.9999999Z"]"#, "315537897600000000000"),
    ]);
}

#[test]
fn parts() {
    for (part, expected) in [
        ("yyyy", "2016"),
        ("mm", "5"),
        ("dd", "29"),
        ("hh", "8"),
        ("mi", "30"),
        ("ss", "0"),
        ("ms", "130"),
        ("mcs", "130161"),
        ("ns", "130161700"),
    ] {
        check("DATETIMEPART", &format!("[\"{part}\", \"2016-05-29T08:30:00.1301617\"]"), expected);
    }
    check_all(&[
        ("YEAR", r#"["2024-01-10T14:15:20"]"#, "2024"),
        ("MONTH", r#"["2000-12-12T10:00:00"]"#, "12"),
        ("DAY", r#"["1989-03-03T12:12:12.1234567Z"]"#, "3"),
        ("DATETIMEFROMPARTS", "[2017, 4, 20]", "\"2017-04-20T00:00:00.0000000Z\""),
        ("DATETIMEFROMPARTS", "[2017, 4, 20, 13, 15]", "\"2017-04-20T13:15:00.0000000Z\""),
        ("DATETIMEFROMPARTS", "[2017, 4, 20, 13, 15, 20, 3456789]", "\"2017-04-20T13:15:20.3456789Z\""),
        ("DATETIMEFROMPARTS", "[-2000, -1, -1]", "undefined"),
        ("DATETIMEFROMPARTS", "[2017, 2, 29]", "undefined"),
        ("DATETIMEFROMPARTS", "[2017, 2, 28, 24]", "undefined"),
        ("DATETIMEFROMPARTS", "[2017, 2, 28, 0, 60]", "undefined"),
        ("DATETIMEFROMPARTS", "[2017, 2, 28, 0, 0, 60]", "undefined"),
        ("DATETIMEFROMPARTS", "[2017, 2, 28, 0, 0, 0, 10000000]", "undefined"),
        ("DATETIMEFROMPARTS", "[9999, 12, 31, 23, 59, 59, 9999999]", "\"9999-12-31T23:59:59.9999999Z\""),
        ("DATETIMEFROMPARTS", "[10000, 1, 1]", "undefined"),
    ]);
}

#[test]
fn bins() {
    let case = |rest: &str, expected: &str| {
        let expected =
            if expected.is_empty() { "undefined".to_owned() } else { format!("\"{expected}.0000000Z\"") };
        check("DATETIMEBIN", &format!("[\"2021-01-08T18:35:00.0000000\", {rest}]"), &expected);
    };
    case("\"dd\"", "2021-01-08T00:00:00");
    case("\"hh\"", "2021-01-08T18:00:00");
    case("\"ss\"", "2021-01-08T18:35:00");
    case("\"hh\", 5", "2021-01-08T15:00:00");
    case("\"dd\", 7", "2021-01-07T00:00:00");
    case("\"dd\", 7, \"1601-01-01T00:00:00.0000000\"", "2021-01-04T00:00:00");
    case("\"hh\", 1, \"2022-01-01T00:30:00\"", "2021-01-08T18:30:00");
    case("\"dd\", 0", "");
    case("\"dd\", -1", "");
    case("\"mm\"", "");
    case("\"year\"", "");
    case("\"dd\", 1, \"1600-12-31\"", "");
    case("\"dd\", 9223372036854775807", "1970-01-01T00:00:00");
    check("DATETIMEBIN", r#"["1970-01-01T00:00:00.0000003", "ns", 250]"#, "\"1970-01-01T00:00:00.0000002Z\"");
    check("DATETIMEBIN", r#"["0001-01-01", "dd", 1000000]"#, "undefined");
}

#[test]
fn formats() {
    let date = "2024-10-10 14:40:20";
    for (date, pattern, expected) in [
        (date, "yyyyMMdd", "20241010"),
        (date, "yyyy-MM-dd [HH:mm:ss]", "2024-10-10 [14:40:20]"),
        (date, "To\\da\\y i\\s: yyyy-MM-ddTHH:mm:ss.fff", "Today is: 2024-10-10T14:40:20.000"),
        (date, "To\\da\\y i\\s: yyyy-MM-ddTHH:mm:ss.FFF", "Today is: 2024-10-10T14:40:20."),
        ("2024-03-05T09:07:08.1230000Z", "yy y M d H h m s", "24 24 3 5 9 9 7 8"),
        ("2024-03-05T09:07:08.1230000Z", "f FFFFFFF fffffffff", "1 123 123000000"),
        ("2024-03-05T00:07:08Z", "ddd dddd MMM MMMM hh tt t", "Tue Tuesday Mar March 12 AM A"),
        ("0007-03-05", "yyyyyy yyy yy", "000007 007 07"),
        (date, "'year' yyyy \"day", "year 2024 day"),
        (date, "😀\\", "😀"),
        (date, "", ""),
    ] {
        check(
            "DATETIMEFORMAT",
            &format!("[\"{date}\", \"{}\"]", pattern.replace('\\', "\\\\").replace('"', "\\\"")),
            &format!("\"{expected}\""),
        );
    }
    let long = "y".repeat(100_000);
    assert_eq!(format::format(TimePoint::EPOCH, &long).len(), 100_000);
}

#[test]
fn counts() {
    check_all(&[
        ("DATETIMETOTICKS", r#"["2015-05-19T12:00:00.0000000"]"#, "14320368000000000"),
        ("DATETIMETOTIMESTAMP", r#"["2015-05-19T12:00:00.0000000"]"#, "1432036800000"),
        ("DATETIMETOTIMESTAMP", r#"["1969-12-31T23:59:59.9999999"]"#, "-1"),
        ("TICKSTODATETIME", "[15973607943002652]", "\"2020-08-13T23:19:54.3002652Z\""),
        ("TICKSTODATETIME", "[0]", "\"1970-01-01T00:00:00.0000000Z\""),
        ("TICKSTODATETIME", "[-116444736000000000]", "\"1601-01-01T00:00:00.0000000Z\""),
        ("TICKSTODATETIME", "[9e18]", "undefined"),
        ("TIMESTAMPTODATETIME", "[1597360794300]", "\"2020-08-13T23:19:54.3000000Z\""),
        ("TIMESTAMPTODATETIME", "[-11644473600000]", "\"1601-01-01T00:00:00.0000000Z\""),
        ("TIMESTAMPTODATETIME", "[9e18]", "undefined"),
    ]);
}

#[test]
fn the_clock() {
    let context = Context {
        now_microseconds: 1_597_360_794_300_265,
        query_start_microseconds: 1_000_000,
        ..Context::default()
    };
    for (name, arguments, expected) in [
        ("GETCURRENTDATETIME", "[]", "\"2020-08-13T23:19:54.3002650Z\""),
        ("GETCURRENTTICKS", "[]", "15973607943002650"),
        ("GETCURRENTTIMESTAMP", "[]", "1597360794300"),
        ("GETCURRENTDATETIMESTATIC", "[]", "\"1970-01-01T00:00:01.0000000Z\""),
        ("GETCURRENTTICKSSTATIC", "[]", "10000000"),
        ("GETCURRENTTIMESTAMPSTATIC", "[]", "1000"),
        ("NOW", "[]", "\"2020-08-13T23:19:54.3002650Z\""),
        ("NOW", "[\"dd\", 1]", "\"2020-08-14T23:19:54.3002650Z\""),
        ("AGO", "[\"hour\", 23]", "\"2020-08-13T00:19:54.3002650Z\""),
        ("AGO", "[\"hour\", -9223372036854775808]", "undefined"),
    ] {
        check_in(&context, name, arguments, expected);
    }
    let context = Context { now_microseconds: u64::MAX, ..Context::default() };
    check_in(&context, "NOW", "[]", "undefined");
}

proptest! {
    #[test]
    fn text_reads_back(ticks in -621_355_968_000_000_000_i64..2_534_023_008_000_000_000) {
        let instant = TimePoint::from_ticks(ticks).unwrap();
        prop_assert_eq!(parse(&instant.to_string()), Some(instant));
    }

    #[test]
    fn adding_and_taking_away_cancel(ticks in -1_000_000_000_000_000_i64..1_000_000_000_000_000, amount in -100_000_i64..100_000) {
        let instant = TimePoint::from_ticks(ticks).unwrap();
        for part in [TimePart::Day, TimePart::Hour, TimePart::Minute, TimePart::Second, TimePart::Millisecond, TimePart::Microsecond] {
            let there = part.add(instant, amount).unwrap();
            prop_assert_eq!(part.add(there, -amount), Some(instant));
            prop_assert_eq!(part.boundary(there) - part.boundary(instant), i128::from(amount));
        }
    }

    #[test]
    fn any_text_is_a_date_or_not(text in "[0-9TZ:. -]{0,30}") {
        if let Some(instant) = parse(&text) {
            prop_assert_eq!(parse(&instant.to_string()), Some(instant));
        }
    }
}
