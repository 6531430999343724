//! Dates of HTTP: reading what clients send, writing what they expect.
//!
//! In and out: seconds since 1970, negative before it. Three ways to read, cheapest first: the fixed form of 29 bytes
//! that all clients send (`Thu, 27 Apr 2017 00:51:12 GMT`, in any case), the same with other spacing, a one-digit day or
//! another name for UTC, and the two obsolete forms of HTTP.
//! Invariant: writing and reading again gives the same second, from year 1 to year 9999.
//! Not here: what time it is (`env`), the dates of the query language (`sql-functions`).

use std::time::UNIX_EPOCH;

const DAY_SECONDS: i64 = 86_400;

/// 1 January of year 1 and the last second of year 9999: what four digits can write.
const SECONDS_MIN: i64 = -62_135_596_800;
const SECONDS_MAX: i64 = 253_402_300_799;

const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// 1 January 1970 was a Thursday.
const WEEKDAYS_FROM_EPOCH: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];

/// The text is no date of HTTP. The client's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a date in RFC 1123 form")]
pub struct InvalidDate;

/// Reads a date; the name of the weekday is not checked against it.
pub fn parse(text: &str) -> Result<i64, InvalidDate> {
    parse_fixed(text.as_bytes())
        .or_else(|| parse_loose(text))
        .or_else(|| parse_obsolete(text))
        .ok_or(InvalidDate)
}

/// Writes `Thu, 27 Apr 2017 00:51:12 GMT`; times that four digits of a year cannot write become the nearest that can.
pub fn format_rfc1123(seconds: i64) -> String {
    let seconds = seconds.clamp(SECONDS_MIN, SECONDS_MAX);
    let days = seconds.div_euclid(DAY_SECONDS);
    let second = seconds.rem_euclid(DAY_SECONDS);
    let (year, month, day) = civil_from_days(days);
    let mut text = String::with_capacity(29);
    push_name(&mut text, WEEKDAYS_FROM_EPOCH.get(days.rem_euclid(7) as usize));
    text.push_str(", ");
    push_digits(&mut text, day, 2);
    text.push(' ');
    push_name(&mut text, MONTHS.get(month as usize - 1));
    text.push(' ');
    push_digits(&mut text, year, 4);
    text.push(' ');
    push_digits(&mut text, second / 3600, 2);
    text.push(':');
    push_digits(&mut text, second / 60 % 60, 2);
    text.push(':');
    push_digits(&mut text, second % 60, 2);
    text.push_str(" GMT");
    text
}

fn push_name(text: &mut String, name: Option<&&[u8; 3]>) {
    text.extend(name.into_iter().flat_map(|name| name.iter()).map(|byte| char::from(*byte)));
}

fn push_digits(text: &mut String, number: i64, width: u32) {
    for place in (0..width).rev() {
        text.push(char::from(b'0' + (number / 10_i64.pow(place) % 10) as u8));
    }
}

fn parse_fixed(text: &[u8]) -> Option<i64> {
    let text: &[u8; 29] = text.try_into().ok()?;
    let [_, _, _, b',', b' ', d1, d2, b' ', m1, m2, m3, b' ', y1, y2, y3, y4, b' ', rest @ ..] = text else {
        return None;
    };
    let [h1, h2, b':', n1, n2, b':', s1, s2, b' ', zone @ ..] = rest else {
        return None;
    };
    if !zone.eq_ignore_ascii_case(b"GMT") {
        return None;
    }
    seconds_of(
        number(&[*y1, *y2, *y3, *y4])?,
        month_number([*m1, *m2, *m3])?,
        number(&[*d1, *d2])?,
        [number(&[*h1, *h2])?, number(&[*n1, *n2])?, number(&[*s1, *s2])?],
    )
}

/// `[weekday,] day month year hour:minute:second zone`, with any white space between.
fn parse_loose(text: &str) -> Option<i64> {
    let text = text.trim();
    let text = text.split_once(',').map_or(text, |(_, after)| after);
    let mut words = text.split_ascii_whitespace();
    let day = number(words.next()?.as_bytes())?;
    let month = month_number(words.next()?.as_bytes().try_into().ok()?)?;
    let year = words.next().filter(|word| word.len() == 4)?;
    let mut clock = words.next()?.split(':').map(|part| number(part.as_bytes()));
    let clock = [clock.next()??, clock.next()??, clock.next()??];
    let zone = words.next()?;
    let is_utc = ["GMT", "UTC", "Z", "+0000", "-0000"].iter().any(|name| zone.eq_ignore_ascii_case(name));
    if !is_utc || words.next().is_some() {
        return None;
    }
    seconds_of(number(year.as_bytes())?, month, day, clock)
}

fn parse_obsolete(text: &str) -> Option<i64> {
    let time = httpdate::parse_http_date(text.trim()).ok()?;
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()
}

/// One to four decimal digits.
fn number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 4 {
        return None;
    }
    digits
        .iter()
        .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0')))
}

fn month_number(name: [u8; 3]) -> Option<i64> {
    MONTHS.iter().zip(1..).find(|(month, _)| month.eq_ignore_ascii_case(&name)).map(|(_, number)| number)
}

fn seconds_of(year: i64, month: i64, day: i64, [hour, minute, second]: [i64; 3]) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let month_days = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    // HTTP allows second 60, the leap second; it counts as the first of the next minute.
    let valid = year >= 1 && (1..=month_days).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    let seconds = days_from_civil(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second;
    (valid && seconds <= SECONDS_MAX).then_some(seconds)
}

/// Days since 1970 of a date of the Gregorian calendar.
///
/// Years are counted from 1 March, so that the leap day is the last of its year; 400 of them have 146,097 days, and the
/// months from March on have (153 × month + 2) / 5 days before them.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

/// The inverse of [`days_from_civil`]: year, month, day.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    // Leap days so far in the era, so that what is left divides evenly by 365.
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VECTOR: i64 = 1_493_254_272;

    #[track_caller]
    fn check(text: &str, expected: Option<i64>) {
        assert_eq!(parse(text).ok(), expected, "{text}");
    }

    #[test]
    fn forms_that_clients_send() {
        check("Thu, 27 Apr 2017 00:51:12 GMT", Some(VECTOR));
        check("thu, 27 apr 2017 00:51:12 gmt", Some(VECTOR));
        check("THU, 27 APR 2017 00:51:12 GMT", Some(VECTOR));
        check("  Thu, 27 Apr 2017 00:51:12 GMT ", Some(VECTOR));
        check("Thu,  27 Apr 2017 00:51:12 UTC", Some(VECTOR));
        check("27 Apr 2017 00:51:12 +0000", Some(VECTOR));
        check("Mon, 1 May 2017 00:00:00 GMT", Some(1_493_596_800));
        check("Thursday, 27-Apr-17 00:51:12 GMT", Some(VECTOR));
        check("Thu Apr 27 00:51:12 2017", Some(VECTOR));
        check("Thu, 01 Jan 1970 00:00:00 GMT", Some(0));
        check("Mon, 01 Jan 0001 00:00:00 GMT", Some(SECONDS_MIN));
        check("Fri, 31 Dec 9999 23:59:59 GMT", Some(SECONDS_MAX));
        check("Sat, 29 Feb 2020 12:00:00 GMT", Some(1_582_977_600));
        check("Sat, 31 Dec 2016 23:59:60 GMT", Some(1_483_228_800));
    }

    #[test]
    fn refusals() {
        for text in [
            "",
            "now",
            "2017-04-27T00:51:12Z",
            "Thu, 27 Apr 2017 00:51:12",
            "Thu, 27 Apr 2017 00:51:12 CET",
            "Thu, 32 Jan 2017 00:00:00 GMT",
            "Thu, 29 Feb 2017 00:00:00 GMT",
            "Thu, 29 Feb 1900 00:00:00 GMT",
            "Thu, 00 Jan 2017 00:00:00 GMT",
            "Thu, 01 Foo 2017 00:00:00 GMT",
            "Thu, 01 Jan 2017 24:00:00 GMT",
            "Thu, 01 Jan 2017 00:60:00 GMT",
            "Thu, 01 Jan 2017 00:00:61 GMT",
            "Thu, 01 Jan 0000 00:00:00 GMT",
            "Fri, 31 Dec 9999 23:59:60 GMT",
            "Thu, 01 Jan 2017 00:00:0é GMT",
            "Thu, 01 Jan 20170 00:00:00 GMT",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn writing() {
        assert_eq!(format_rfc1123(VECTOR), "Thu, 27 Apr 2017 00:51:12 GMT");
        assert_eq!(format_rfc1123(-1), "Wed, 31 Dec 1969 23:59:59 GMT");
        assert_eq!(format_rfc1123(i64::MIN), "Mon, 01 Jan 0001 00:00:00 GMT");
        assert_eq!(format_rfc1123(i64::MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
    }

    proptest! {
        #[test]
        fn parse_is_total(text in ".*", date in "[A-Za-z]{3}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT") {
            let _ = parse(&text);
            let _ = parse(&date);
        }

        #[test]
        fn written_dates_read_back(seconds in SECONDS_MIN..=SECONDS_MAX) {
            let text = format_rfc1123(seconds);
            prop_assert_eq!(parse_fixed(text.as_bytes()), Some(seconds));
            prop_assert_eq!(parse(&text.to_lowercase()), Ok(seconds));
        }

        #[test]
        fn agrees_with_httpdate(seconds in 0..SECONDS_MAX) {
            let time = UNIX_EPOCH + std::time::Duration::from_secs(seconds as u64);
            prop_assert_eq!(format_rfc1123(seconds), httpdate::fmt_http_date(time));
        }
    }
}
