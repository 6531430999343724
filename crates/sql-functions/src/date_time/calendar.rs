//! The Gregorian calendar, extended backwards to year 1: dates to day numbers and back.
//!
//! Years are counted from March, so that the leap day is the last of its year; 400 years repeat exactly.

/// A date, valid by construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
}

const DAYS_PER_ERA: i64 = 146_097;
/// From 1 March of year 0 to 1 January 1970.
const DAYS_BEFORE_1970: i64 = 719_468;

impl Date {
    /// A date of the years 1 to 9999.
    pub(super) fn new(year: i64, month: i64, day: i64) -> Option<Date> {
        let valid = (1..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day);
        valid.then_some(Date { year, month, day })
    }

    /// Days since 1970-01-01.
    pub(super) fn day_number(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let month_from_march = (self.month + 9) % 12;
        let day_of_year = (153 * month_from_march + 2) / 5 + self.day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * DAYS_PER_ERA + day_of_era - DAYS_BEFORE_1970
    }

    /// The date of a day counted from 1970-01-01.
    pub(super) fn from_day_number(days: i64) -> Date {
        let days = days + DAYS_BEFORE_1970;
        let era = days.div_euclid(DAYS_PER_ERA);
        let day_of_era = days.rem_euclid(DAYS_PER_ERA);
        let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
        let year_of_era = (day_of_era - leap_days) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = (month_from_march + 2) % 12 + 1;
        Date {
            year: era * 400 + year_of_era + i64::from(month <= 2),
            month,
            day: day_of_year - (153 * month_from_march + 2) / 5 + 1,
        }
    }

    /// The date so many months later, on the last day of the month when it has no such day.
    pub(super) fn add_months(self, months: i64) -> Option<Date> {
        let total = self.month_number().checked_add(months)?;
        let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
        if !(1..=9999).contains(&year) {
            return None;
        }
        Date::new(year, month, self.day.min(days_in_month(year, month)))
    }

    /// Months since January of year 0.
    pub(super) fn month_number(self) -> i64 {
        self.year * 12 + self.month - 1
    }
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_days() {
        for (year, month, day, number) in [
            (1970, 1, 1, 0),
            (1969, 12, 31, -1),
            (2000, 3, 1, 11_017),
            (1601, 1, 1, -134_774),
            (1, 1, 1, -719_162),
        ] {
            assert_eq!(Date::new(year, month, day).unwrap().day_number(), number);
        }
        assert!(Date::new(1900, 2, 29).is_none() && Date::new(2000, 2, 29).is_some());
        assert!(Date::new(0, 1, 1).is_none() && Date::new(10_000, 1, 1).is_none());
    }

    proptest! {
        #[test]
        fn days_and_dates_agree(number in -719_162_i64..2_932_896) {
            let date = Date::from_day_number(number);
            prop_assert_eq!(date.day_number(), number);
            prop_assert_eq!(Date::new(date.year, date.month, date.day), Some(date));
            prop_assert_eq!(Date::from_day_number(number - 1).add_months(0), Some(Date::from_day_number(number - 1)).filter(|date| date.year > 0));
        }
    }
}
