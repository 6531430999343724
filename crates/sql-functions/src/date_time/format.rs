//! DATETIMEFORMAT: a time written by a pattern of letters.
//!
//! A run of one letter is one field: `y M d H h m s` numbers padded to the length of the run (`MMM`, `MMMM`, `ddd`, `dddd`
//! names in English), `f` that many digits of the fraction, `F` the same without trailing zeros, `t` and `tt` the half of
//! the day. A backslash makes the next character stand for itself, quotes the text between them; everything else
//! stands for itself. The documentation shows only some of these; the others follow the same letters elsewhere
//! (unsure).

use std::fmt::Write as _;

use super::instant::TimePoint;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// From the first day of 1970 on.
const WEEKDAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

/// Digits of a fraction in ticks.
const FRACTION_DIGITS: usize = 7;

pub(super) fn format(instant: TimePoint, pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    while let Some(letter) = rest.chars().next() {
        let run = rest.chars().take_while(|next| *next == letter).count();
        let used = match letter {
            '\\' => {
                let escaped = rest[1..].chars().next();
                out.extend(escaped);
                1 + escaped.map_or(0, char::len_utf8)
            }
            '\'' | '"' => quoted(&mut out, &rest[1..], letter) + 1,
            'y' | 'M' | 'd' | 'H' | 'h' | 'm' | 's' | 'f' | 'F' | 't' => {
                field(&mut out, instant, letter, run);
                run
            }
            _ => {
                out.push(letter);
                letter.len_utf8()
            }
        };
        rest = &rest[used..];
    }
    out
}

/// Copies up to the closing quote, or all when there is none; answers how much was read.
fn quoted(out: &mut String, rest: &str, quote: char) -> usize {
    let end = rest.find(quote);
    out.push_str(&rest[..end.unwrap_or(rest.len())]);
    end.map_or(rest.len(), |end| end + 1)
}

fn field(out: &mut String, instant: TimePoint, letter: char, run: usize) {
    let date = instant.date();
    match letter {
        'y' if run <= 2 => padded(out, date.year % 100, run),
        'y' => padded(out, date.year, run),
        'M' if run > 2 => name(out, MONTHS[(date.month - 1) as usize], run),
        'M' => padded(out, date.month, run),
        'd' if run > 2 => name(out, WEEKDAYS[date.day_number().rem_euclid(7) as usize], run),
        'd' => padded(out, date.day, run),
        'H' => padded(out, instant.hour(), run.min(2)),
        'h' => padded(out, (instant.hour() + 11) % 12 + 1, run.min(2)),
        'm' => padded(out, instant.minute(), run.min(2)),
        's' => padded(out, instant.second(), run.min(2)),
        't' => out.push_str(&(if instant.hour() < 12 { "AM" } else { "PM" })[..run.min(2)]),
        _ => fraction(out, instant, letter == 'F', run),
    }
}

/// Pads by hand: a pattern of very many letters must not meet the formatter's limit on widths.
fn padded(out: &mut String, number: i64, width: usize) {
    let start = out.len();
    let _ = write!(out, "{number}");
    let missing = width.saturating_sub(out.len() - start);
    out.insert_str(start, &"0".repeat(missing));
}

fn name(out: &mut String, name: &str, run: usize) {
    out.push_str(if run == 3 { &name[..3] } else { name });
}

/// Digits beyond the resolution are zeros.
fn fraction(out: &mut String, instant: TimePoint, trim: bool, digits: usize) {
    let all = format!("{:07}", instant.fraction());
    let shown = &all[..digits.min(FRACTION_DIGITS)];
    if trim {
        out.push_str(shown.trim_end_matches('0'));
    } else {
        out.push_str(shown);
        out.push_str(&"0".repeat(digits.saturating_sub(FRACTION_DIGITS)));
    }
}
