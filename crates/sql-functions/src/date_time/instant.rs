//! A point in time: ticks of 100 nanoseconds since 1970, read from text and written as text.
//!
//! Invariants
//! - Every instant lies in the years 1 to 9999, so its text always has four digits of year and reads back.

use std::fmt;

use super::calendar::Date;

pub(super) const TICKS_PER_MILLISECOND: i64 = 10_000;
pub(super) const TICKS_PER_SECOND: i64 = 10_000_000;
pub(super) const TICKS_PER_MINUTE: i64 = 60 * TICKS_PER_SECOND;
pub(super) const TICKS_PER_HOUR: i64 = 60 * TICKS_PER_MINUTE;
pub(super) const TICKS_PER_DAY: i64 = 24 * TICKS_PER_HOUR;

/// 0001-01-01T00:00:00 and the last tick of year 9999.
const TICKS_MIN: i64 = -719_162 * TICKS_PER_DAY;
const TICKS_MAX: i64 = 2_932_897 * TICKS_PER_DAY - 1;

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimePoint {
    ticks: i64,
}

impl TimePoint {
    pub(super) const EPOCH: TimePoint = TimePoint { ticks: 0 };

    pub(super) fn from_ticks(ticks: i64) -> Option<TimePoint> {
        (TICKS_MIN..=TICKS_MAX).contains(&ticks).then_some(TimePoint { ticks })
    }

    pub(super) fn from_microseconds(microseconds: u64) -> Option<TimePoint> {
        TimePoint::from_ticks(i64::try_from(microseconds).ok()?.checked_mul(10)?)
    }

    /// From year, month, day, hour, minute, second and ticks of the second, each in its range.
    pub(super) fn from_parts(
        [year, month, day, hour, minute, second, fraction]: [i64; 7],
    ) -> Option<TimePoint> {
        let date = Date::new(year, month, day)?;
        let valid = (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..TICKS_PER_SECOND).contains(&fraction);
        let time = hour * TICKS_PER_HOUR + minute * TICKS_PER_MINUTE + second * TICKS_PER_SECOND + fraction;
        valid.then(|| TimePoint::on(date, time))
    }

    /// A time of day, in ticks, on a date.
    pub(super) fn on(date: Date, time: i64) -> TimePoint {
        TimePoint { ticks: date.day_number() * TICKS_PER_DAY + time }
    }

    pub(super) fn ticks(self) -> i64 {
        self.ticks
    }

    pub(super) fn date(self) -> Date {
        Date::from_day_number(self.ticks.div_euclid(TICKS_PER_DAY))
    }

    /// Ticks since midnight.
    pub(super) fn time(self) -> i64 {
        self.ticks.rem_euclid(TICKS_PER_DAY)
    }

    pub(super) fn hour(self) -> i64 {
        self.time() / TICKS_PER_HOUR
    }

    pub(super) fn minute(self) -> i64 {
        self.time() / TICKS_PER_MINUTE % 60
    }

    pub(super) fn second(self) -> i64 {
        self.time() / TICKS_PER_SECOND % 60
    }

    /// Ticks since the last whole second.
    pub(super) fn fraction(self) -> i64 {
        self.time() % TICKS_PER_SECOND
    }
}

impl fmt::Display for TimePoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Date { year, month, day } = self.date();
        write!(
            formatter,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:07}Z",
            self.hour(),
            self.minute(),
            self.second(),
            self.fraction()
        )
    }
}

/// Reads `YYYY-MM-DD`, optionally with `T` or a space and `hh:mm:ss`, optionally with one to seven digits of
/// fraction, in all cases optionally with `Z`.
pub(crate) fn parse(text: &str) -> Option<TimePoint> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let mut reader = InstantReader { rest: text.as_bytes() };
    let mut parts = [0; 7];
    parts[0] = reader.number(4)?;
    reader.byte(b"-")?;
    parts[1] = reader.number(2)?;
    reader.byte(b"-")?;
    parts[2] = reader.number(2)?;
    if !reader.rest.is_empty() {
        reader.byte(b"T ")?;
        parts[3] = reader.number(2)?;
        reader.byte(b":")?;
        parts[4] = reader.number(2)?;
        reader.byte(b":")?;
        parts[5] = reader.number(2)?;
    }
    if !reader.rest.is_empty() {
        reader.byte(b".")?;
        let digits = reader.rest.len();
        let missing = 7_usize.checked_sub(digits).filter(|_| digits > 0)?;
        parts[6] = reader.number(digits)? * 10_i64.pow(missing as u32);
    }
    TimePoint::from_parts(parts)
}

struct InstantReader<'a> {
    rest: &'a [u8],
}

impl InstantReader<'_> {
    fn number(&mut self, digits: usize) -> Option<i64> {
        let (own, rest) = self.rest.split_at_checked(digits)?;
        self.rest = rest;
        own.iter().try_fold(0, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
        })
    }

    fn byte(&mut self, allowed: &[u8]) -> Option<()> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        allowed.contains(first).then_some(())
    }
}
