//! The parts of a time: their names, and arithmetic in units of them.

use super::instant::{
    TICKS_PER_DAY, TICKS_PER_HOUR, TICKS_PER_MILLISECOND, TICKS_PER_MINUTE, TICKS_PER_SECOND, TimePoint,
};

const NANOSECONDS_PER_TICK: i128 = 100;

/// A part of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimePart {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

impl TimePart {
    /// By one of its names, in lower case as documented.
    pub(super) fn parse(name: &str) -> Option<TimePart> {
        Some(match name {
            "year" | "yyyy" | "yy" => TimePart::Year,
            "month" | "mm" | "m" => TimePart::Month,
            "day" | "dd" | "d" => TimePart::Day,
            "hour" | "hh" => TimePart::Hour,
            "minute" | "mi" | "n" => TimePart::Minute,
            "second" | "ss" | "s" => TimePart::Second,
            "millisecond" | "ms" => TimePart::Millisecond,
            "microsecond" | "mcs" => TimePart::Microsecond,
            "nanosecond" | "ns" => TimePart::Nanosecond,
            _ => return None,
        })
    }

    /// The value of this part; of the parts below a second, the whole fraction in that unit.
    pub(super) fn of(self, instant: TimePoint) -> i64 {
        match self {
            TimePart::Year => instant.date().year,
            TimePart::Month => instant.date().month,
            TimePart::Day => instant.date().day,
            TimePart::Hour => instant.hour(),
            TimePart::Minute => instant.minute(),
            TimePart::Second => instant.second(),
            TimePart::Millisecond => instant.fraction() / TICKS_PER_MILLISECOND,
            TimePart::Microsecond => instant.fraction() / 10,
            TimePart::Nanosecond => instant.fraction() * 100,
        }
    }

    /// The instant so many parts later. Years and months keep the day where the month has it; nanoseconds are taken
    /// in whole ticks.
    pub(super) fn add(self, instant: TimePoint, amount: i64) -> Option<TimePoint> {
        if let Some(each) = self.nanoseconds() {
            let ticks = each * i128::from(amount) / NANOSECONDS_PER_TICK;
            return TimePoint::from_ticks(i64::try_from(i128::from(instant.ticks()) + ticks).ok()?);
        }
        let months = if self == TimePart::Year { amount.checked_mul(12)? } else { amount };
        let date = instant.date().add_months(months)?;
        Some(TimePoint::on(date, instant.time()))
    }

    /// How many boundaries of this part lie before the instant, counted from a fixed one.
    pub(super) fn boundary(self, instant: TimePoint) -> i128 {
        match self.nanoseconds() {
            Some(each) => nanoseconds_of(instant).div_euclid(each),
            None if self == TimePart::Year => instant.date().year.into(),
            None => instant.date().month_number().into(),
        }
    }

    /// The beginning of the bin in which the instant lies, bins being `size` parts wide and one of them beginning at
    /// the origin. Only days and finer parts have a fixed width; the origin may not lie before 1601.
    pub(super) fn bin(self, instant: TimePoint, size: i64, origin: TimePoint) -> Option<TimePoint> {
        if size <= 0 || origin.date().year < 1601 {
            return None;
        }
        let width = self.nanoseconds()? * i128::from(size);
        let since = nanoseconds_of(instant) - nanoseconds_of(origin);
        let start = nanoseconds_of(origin) + since.div_euclid(width) * width;
        TimePoint::from_ticks(i64::try_from(start.div_euclid(NANOSECONDS_PER_TICK)).ok()?)
    }

    /// The width of the part, when it has a fixed one.
    fn nanoseconds(self) -> Option<i128> {
        let ticks = match self {
            TimePart::Year | TimePart::Month => return None,
            TimePart::Day => TICKS_PER_DAY,
            TimePart::Hour => TICKS_PER_HOUR,
            TimePart::Minute => TICKS_PER_MINUTE,
            TimePart::Second => TICKS_PER_SECOND,
            TimePart::Millisecond => TICKS_PER_MILLISECOND,
            TimePart::Microsecond => 10,
            TimePart::Nanosecond => return Some(1),
        };
        Some(i128::from(ticks) * NANOSECONDS_PER_TICK)
    }
}

fn nanoseconds_of(instant: TimePoint) -> i128 {
    i128::from(instant.ticks()) * NANOSECONDS_PER_TICK
}
