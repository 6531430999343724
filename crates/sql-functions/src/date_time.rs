//! Dates and times as text: `YYYY-MM-DDThh:mm:ss.fffffffZ`, always UTC, from year 1 to year 9999.
//!
//! Inside, a time is its number of ticks of 100 nanoseconds since 1970 (`instant`); parts are years down to
//! nanoseconds (`part`). Whatever leaves the range of years gives undefined.
//! Not here: the clock, which comes with `Context`.

mod calendar;
mod format;
mod instant;
mod part;

use astrarium_value::Value;

use crate::arguments::{integer, string, text};
use crate::{Context, ScalarFunction};

use instant::{TICKS_PER_MILLISECOND, TimePoint};
use part::TimePart;

pub(crate) use instant::parse;

pub(crate) static FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction {
        name: "DATETIMEADD",
        signature: "(part: string, amount: number, time: string) -> string",
        arguments: 3..=3,
        summary: "The time that is a number of parts later, or earlier when negative.",
        example: Some((r#""day",3,"2026-11-18T10:00:00.0000000Z""#, r#""2026-11-21T10:00:00.0000000Z""#)),
        evaluate: |_, arguments| add(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "DATETIMEDIFF",
        signature: "(part: string, start: string, end: string) -> number",
        arguments: 3..=3,
        summary: "How many boundaries of a part lie between two times.",
        example: Some((r#""day","2026-11-18T10:00:00.0000000Z","2026-12-01T00:00:00.0000000Z""#, "13")),
        evaluate: |_, arguments| difference(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "DATETIMEPART",
        signature: "(part: string, time: string) -> number",
        arguments: 2..=2,
        summary: "The value of a part of the time.",
        example: Some((r#""hour","2026-11-18T10:30:00.0000000Z""#, "10")),
        evaluate: |_, arguments| part_of(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "YEAR",
        signature: "(time: string) -> number",
        arguments: 1..=1,
        summary: "The year of the time.",
        example: Some((r#""2026-11-18T10:30:00.0000000Z""#, "2026")),
        evaluate: |_, arguments| fixed_part(arguments, TimePart::Year).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "MONTH",
        signature: "(time: string) -> number",
        arguments: 1..=1,
        summary: "The month of the time, from 1.",
        example: Some((r#""2026-11-18T10:30:00.0000000Z""#, "11")),
        evaluate: |_, arguments| fixed_part(arguments, TimePart::Month).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "DAY",
        signature: "(time: string) -> number",
        arguments: 1..=1,
        summary: "The day of the month of the time, from 1.",
        example: Some((r#""2026-11-18T10:30:00.0000000Z""#, "18")),
        evaluate: |_, arguments| fixed_part(arguments, TimePart::Day).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "DATETIMEFROMPARTS",
        signature: "(year: number, month: number, day: number, hour?: number, minute?: number, second?: number, ticks?: number) -> string",
        arguments: 3..=7,
        summary: "The time with the given year, month, day, hour, minute, second and 100 ns ticks.",
        example: Some(("2026,11,18,10,30", r#""2026-11-18T10:30:00.0000000Z""#)),
        evaluate: |_, arguments| from_parts(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "DATETIMEBIN",
        signature: "(time: string, part: string, size?: number, origin?: string) -> string",
        arguments: 2..=4,
        summary: "The beginning of the bin of parts in which the time lies.",
        example: Some((r#""2026-11-18T10:37:00.0000000Z","minute",15"#, r#""2026-11-18T10:30:00.0000000Z""#)),
        evaluate: |_, arguments| bin(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "DATETIMEFORMAT",
        signature: "(time: string, pattern: string) -> string",
        arguments: 2..=2,
        summary: "The time written by a pattern of letters such as yyyy, MM, dd, HH, mm, ss and fff.",
        example: Some((r#""2026-11-18T10:37:00.0000000Z","dd.MM.yyyy HH:mm""#, r#""18.11.2026 10:37""#)),
        evaluate: |_, arguments| formatted(arguments).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "DATETIMETOTICKS",
        signature: "(time: string) -> number",
        arguments: 1..=1,
        summary: "The time in ticks of 100 nanoseconds since 1970.",
        example: Some((r#""2026-11-18T10:30:00.0000000Z""#, "17949978000000000")),
        evaluate: |_, arguments| instant(arguments, 0).map(to_ticks).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "TICKSTODATETIME",
        signature: "(ticks: number) -> string",
        arguments: 1..=1,
        summary: "The time that is so many ticks of 100 nanoseconds after 1970.",
        example: Some(("17949990000000000", r#""2026-11-18T10:50:00.0000000Z""#)),
        evaluate: |_, arguments| from_count(arguments, 1).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "DATETIMETOTIMESTAMP",
        signature: "(time: string) -> number",
        arguments: 1..=1,
        summary: "The time in milliseconds since 1970.",
        example: Some((r#""2026-11-18T10:30:00.0000000Z""#, "1794997800000")),
        evaluate: |_, arguments| instant(arguments, 0).map(to_timestamp).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "TIMESTAMPTODATETIME",
        signature: "(milliseconds: number) -> string",
        arguments: 1..=1,
        summary: "The time that is so many milliseconds after 1970.",
        example: Some(("1794999000000", r#""2026-11-18T10:50:00.0000000Z""#)),
        evaluate: |_, arguments| from_count(arguments, TICKS_PER_MILLISECOND).unwrap_or_default(),
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "GETCURRENTDATETIME",
        signature: "() -> string",
        arguments: 0..=0,
        summary: "The current time as text.",
        evaluate: |context, _| now(context).map(to_text).unwrap_or_default(),
        deterministic: false,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "GETCURRENTDATETIMESTATIC",
        signature: "() -> string",
        arguments: 0..=0,
        summary: "The time at which the query began, as text.",
        evaluate: |context, _| query_start(context).map(to_text).unwrap_or_default(),
        deterministic: false,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "GETCURRENTTICKS",
        signature: "() -> number",
        arguments: 0..=0,
        summary: "The current time in ticks of 100 nanoseconds since 1970.",
        evaluate: |context, _| now(context).map(to_ticks).unwrap_or_default(),
        deterministic: false,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "GETCURRENTTICKSSTATIC",
        signature: "() -> number",
        arguments: 0..=0,
        summary: "The time at which the query began, in ticks of 100 nanoseconds since 1970.",
        evaluate: |context, _| query_start(context).map(to_ticks).unwrap_or_default(),
        deterministic: false,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "GETCURRENTTIMESTAMP",
        signature: "() -> number",
        arguments: 0..=0,
        summary: "The current time in milliseconds since 1970.",
        evaluate: |context, _| now(context).map(to_timestamp).unwrap_or_default(),
        deterministic: false,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "GETCURRENTTIMESTAMPSTATIC",
        signature: "() -> number",
        arguments: 0..=0,
        summary: "The time at which the query began, in milliseconds since 1970.",
        evaluate: |context, _| query_start(context).map(to_timestamp).unwrap_or_default(),
        deterministic: false,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "NOW",
        signature: "(part?: string, amount?: number) -> string",
        arguments: 0..=2,
        summary: "The current time as text, or the time a number of parts after it.",
        evaluate: |context, arguments| shifted_now(context, arguments, 1).unwrap_or_default(),
        deterministic: false,
        ..ScalarFunction::PLAIN
    },
    ScalarFunction {
        name: "AGO",
        signature: "(part: string, amount: number) -> string",
        arguments: 2..=2,
        summary: "The time a number of parts before the current one, as text.",
        evaluate: |context, arguments| shifted_now(context, arguments, -1).unwrap_or_default(),
        deterministic: false,
        ..ScalarFunction::PLAIN
    },
];

fn instant(arguments: &[Value], place: usize) -> Option<TimePoint> {
    parse(text(arguments, place)?)
}

fn part(arguments: &[Value], place: usize) -> Option<TimePart> {
    TimePart::parse(text(arguments, place)?)
}

fn to_text(instant: TimePoint) -> Value {
    string(instant.to_string())
}

/// Rounded to a double, which tells single ticks apart until 1998 and pairs of them after that.
fn to_ticks(instant: TimePoint) -> Value {
    Value::Number(instant.ticks() as f64)
}

fn to_timestamp(instant: TimePoint) -> Value {
    Value::Number(instant.ticks().div_euclid(TICKS_PER_MILLISECOND) as f64)
}

fn add(arguments: &[Value]) -> Option<Value> {
    let (part, amount) = (part(arguments, 0)?, integer(arguments, 1)?);
    part.add(instant(arguments, 2)?, amount).map(to_text)
}

fn difference(arguments: &[Value]) -> Option<Value> {
    let (part, start, end) = (part(arguments, 0)?, instant(arguments, 1)?, instant(arguments, 2)?);
    Some(Value::Number((part.boundary(end) - part.boundary(start)) as f64))
}

fn part_of(arguments: &[Value]) -> Option<Value> {
    let (part, instant) = (part(arguments, 0)?, instant(arguments, 1)?);
    Some(Value::Number(part.of(instant) as f64))
}

fn fixed_part(arguments: &[Value], part: TimePart) -> Option<Value> {
    Some(Value::Number(part.of(instant(arguments, 0)?) as f64))
}

fn from_parts(arguments: &[Value]) -> Option<Value> {
    let mut parts = [0; 7];
    for (place, part) in parts.iter_mut().enumerate().take(arguments.len()) {
        *part = integer(arguments, place)?;
    }
    TimePoint::from_parts(parts).map(to_text)
}

fn bin(arguments: &[Value]) -> Option<Value> {
    let (instant_given, part) = (instant(arguments, 0)?, part(arguments, 1)?);
    let size = if arguments.len() > 2 { integer(arguments, 2)? } else { 1 };
    let origin = if arguments.len() > 3 { instant(arguments, 3)? } else { TimePoint::EPOCH };
    part.bin(instant_given, size, origin).map(to_text)
}

fn formatted(arguments: &[Value]) -> Option<Value> {
    let (instant, pattern) = (instant(arguments, 0)?, text(arguments, 1)?);
    Some(string(format::format(instant, pattern)))
}

fn from_count(arguments: &[Value], ticks_each: i64) -> Option<Value> {
    let ticks = integer(arguments, 0)?.checked_mul(ticks_each)?;
    TimePoint::from_ticks(ticks).map(to_text)
}

fn now(context: &Context<'_>) -> Option<TimePoint> {
    TimePoint::from_microseconds(context.now_microseconds)
}

fn query_start(context: &Context<'_>) -> Option<TimePoint> {
    TimePoint::from_microseconds(context.query_start_microseconds)
}

fn shifted_now(context: &Context<'_>, arguments: &[Value], direction: i64) -> Option<Value> {
    let now = now(context)?;
    if arguments.is_empty() {
        return Some(to_text(now));
    }
    let amount = integer(arguments, 1)?.checked_mul(direction)?;
    part(arguments, 0)?.add(now, amount).map(to_text)
}

#[cfg(test)]
mod tests;
