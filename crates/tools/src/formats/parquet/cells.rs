//! What the values of a column are, and their text.
//!
//! In: the column as the file declares it, and values as the library decodes them. Out: the text of a JSON number, boolean or value, or of a string
//! without its quotes. Pure. Nothing is rounded: integers and decimals keep every digit, and what JSON cannot say is an error with a reason.

use astrarium_rows::csv::CellKind;
use base64::Engine as _;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as PhysicalType};
use parquet::data_type::Int96;
use parquet::schema::types::ColumnDescriptor;
use std::io::Write as _;

const SECONDS_A_DAY: i64 = 86_400;
/// The day 1970-01-01 in days of Julius Scaliger, which INT96 counts.
const JULIAN_EPOCH: i64 = 2_440_588;
/// Longest decimal number: 32 bytes are 77 digits.
const DECIMAL_BYTES_MAX: usize = 32;

const OTHER_TYPE: &str = "has a value of another type than it declares";

/// What the values of a column mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellForm {
    Boolean,
    Integer,
    Unsigned,
    Float,
    Half,
    Decimal(usize),
    Date,
    /// Digits of the fraction, and whether it is in UTC.
    Time(u32, bool),
    Timestamp(u32, bool),
    /// Nanoseconds of a day and the day, as old files have them.
    OldTimestamp,
    Text,
    Json,
    Uuid,
    Bytes,
}

/// One value.
#[derive(Debug, Clone, Copy)]
pub(super) enum ParquetCell<'a> {
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    Int96(&'a Int96),
    Float(f32),
    Double(f64),
    Bytes(&'a [u8]),
}

impl CellForm {
    pub(super) fn of(column: &ColumnDescriptor) -> Result<CellForm, String> {
        let physical = column.physical_type();
        let is_integer = matches!(physical, PhysicalType::INT32 | PhysicalType::INT64);
        let is_bytes = matches!(physical, PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY);
        let decimal = |scale: i32| {
            usize::try_from(scale).map(CellForm::Decimal).map_err(|_| "it has a negative scale".to_owned())
        };
        let logical = column.logical_type_ref();
        Ok(match (logical, column.converted_type()) {
            (Some(LogicalType::Integer(kind)), _) if is_integer && !kind.is_signed => CellForm::Unsigned,
            (Some(LogicalType::Decimal(kind)), _) if is_integer || is_bytes => return decimal(kind.scale),
            (Some(LogicalType::Date), _) if is_integer => CellForm::Date,
            (Some(LogicalType::Time(kind)), _) if is_integer => {
                CellForm::Time(digits(kind.unit), kind.is_adjusted_to_u_t_c)
            }
            (Some(LogicalType::Timestamp(kind)), _) if is_integer => {
                CellForm::Timestamp(digits(kind.unit), kind.is_adjusted_to_u_t_c)
            }
            (Some(LogicalType::String | LogicalType::Enum), _) if is_bytes => CellForm::Text,
            (Some(LogicalType::Json), _) if is_bytes => CellForm::Json,
            (Some(LogicalType::Uuid), _) if is_bytes => CellForm::Uuid,
            (Some(LogicalType::Float16), _) if is_bytes => CellForm::Half,
            // Files of before 2017 have these only.
            (None, ConvertedType::UTF8 | ConvertedType::ENUM) if is_bytes => CellForm::Text,
            (None, ConvertedType::JSON) if is_bytes => CellForm::Json,
            (None, ConvertedType::DECIMAL) if is_integer || is_bytes => return decimal(column.type_scale()),
            (None, ConvertedType::DATE) if is_integer => CellForm::Date,
            (None, ConvertedType::TIME_MILLIS) if is_integer => CellForm::Time(3, true),
            (None, ConvertedType::TIME_MICROS) if is_integer => CellForm::Time(6, true),
            (None, ConvertedType::TIMESTAMP_MILLIS) if is_integer => CellForm::Timestamp(3, true),
            (None, ConvertedType::TIMESTAMP_MICROS) if is_integer => CellForm::Timestamp(6, true),
            (
                None,
                ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64,
            ) if is_integer => CellForm::Unsigned,
            _ => match physical {
                PhysicalType::BOOLEAN => CellForm::Boolean,
                PhysicalType::INT32 | PhysicalType::INT64 => CellForm::Integer,
                PhysicalType::INT96 => CellForm::OldTimestamp,
                PhysicalType::FLOAT | PhysicalType::DOUBLE => CellForm::Float,
                PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY => CellForm::Bytes,
            },
        })
    }

    /// What it is in JSON.
    pub(super) fn kind(self) -> CellKind {
        match self {
            CellForm::Boolean => CellKind::Boolean,
            CellForm::Integer
            | CellForm::Unsigned
            | CellForm::Float
            | CellForm::Half
            | CellForm::Decimal(_) => CellKind::Number,
            CellForm::Json => CellKind::Json,
            _ => CellKind::Text,
        }
    }

    /// The text of a value, or why there is none.
    pub(super) fn write(self, cell: ParquetCell<'_>, out: &mut Vec<u8>) -> Result<(), String> {
        match cell {
            ParquetCell::Boolean(value) if self == CellForm::Boolean => put(out, format_args!("{value}")),
            ParquetCell::Int32(value) if self == CellForm::Unsigned => {
                put(out, format_args!("{}", value.cast_unsigned()));
            }
            ParquetCell::Int64(value) if self == CellForm::Unsigned => {
                put(out, format_args!("{}", value.cast_unsigned()));
            }
            ParquetCell::Int32(value) => return self.write_integer(i64::from(value), out),
            ParquetCell::Int64(value) => return self.write_integer(value, out),
            ParquetCell::Int96(value) if self == CellForm::OldTimestamp => {
                return write_old_timestamp(value, out);
            }
            ParquetCell::Float(value) if self == CellForm::Float => {
                write_float(f64::from(value), &format!("{value:?}"), out);
            }
            ParquetCell::Double(value) if self == CellForm::Float => {
                write_float(value, &format!("{value:?}"), out);
            }
            ParquetCell::Bytes(bytes) => return self.write_bytes(bytes, out),
            _ => return Err(OTHER_TYPE.to_owned()),
        }
        Ok(())
    }

    fn write_integer(self, value: i64, out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            CellForm::Integer => put(out, format_args!("{value}")),
            CellForm::Decimal(scale) => return write_decimal(&value.to_be_bytes(), scale, out),
            CellForm::Date => return write_date(value, out),
            CellForm::Time(digits, is_utc) => return write_time(value, digits, is_utc, out),
            CellForm::Timestamp(digits, is_utc) => {
                let day = SECONDS_A_DAY * 10_i64.pow(digits);
                write_date(value.div_euclid(day), out)?;
                out.push(b'T');
                return write_time(value.rem_euclid(day), digits, is_utc, out);
            }
            _ => return Err(OTHER_TYPE.to_owned()),
        }
        Ok(())
    }

    fn write_bytes(self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            CellForm::Text | CellForm::Json => out.extend_from_slice(bytes),
            CellForm::Decimal(scale) => return write_decimal(bytes, scale, out),
            CellForm::Half => {
                let bytes = bytes.try_into().map_err(|_| "is no number of 16 bits")?;
                let value = half(u16::from_le_bytes(bytes));
                write_float(f64::from(value), &format!("{value:?}"), out);
            }
            CellForm::Uuid if bytes.len() == 16 => {
                for (index, byte) in bytes.iter().enumerate() {
                    let dash = if matches!(index, 4 | 6 | 8 | 10) { "-" } else { "" };
                    put(out, format_args!("{dash}{byte:02x}"));
                }
            }
            CellForm::Bytes | CellForm::Uuid => {
                out.extend_from_slice(base64::engine::general_purpose::STANDARD.encode(bytes).as_bytes());
            }
            _ => return Err(OTHER_TYPE.to_owned()),
        }
        Ok(())
    }
}

fn write_old_timestamp(value: &Int96, out: &mut Vec<u8>) -> Result<(), String> {
    let &[low, high, day] = value.data() else { return Err(OTHER_TYPE.to_owned()) };
    write_date(i64::from(day) - JULIAN_EPOCH, out)?;
    out.push(b'T');
    let nanoseconds = i64::try_from(u64::from(high) << 32 | u64::from(low));
    write_time(nanoseconds.unwrap_or(i64::MAX), 9, true, out)
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Memory takes whatever is written.
    let _ = out.write_fmt(text);
}

fn digits(unit: TimeUnit) -> u32 {
    match unit {
        TimeUnit::MILLIS => 3,
        TimeUnit::MICROS => 6,
        TimeUnit::NANOS => 9,
    }
}

/// The shortest text that gives the same value; `NaN` and `inf` are told apart by whoever checks that it is a number.
fn write_float(value: f64, shortest: &str, out: &mut Vec<u8>) {
    if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"Infinity" } else { b"-Infinity" });
    } else {
        out.extend_from_slice(shortest.strip_suffix(".0").unwrap_or(shortest).as_bytes());
    }
}

/// A number of 16 bits: sign, five bits of exponent, ten of fraction.
fn half(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 0x3ff));
    match exponent {
        0 => sign * fraction * 2_f32.powi(-24),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1.0 + fraction / 1024.0) * 2_f32.powi(exponent - 15),
    }
}

/// A whole number of any size, highest byte first, with a point before its last digits.
fn write_decimal(bytes: &[u8], scale: usize, out: &mut Vec<u8>) -> Result<(), String> {
    if bytes.is_empty() || bytes.len() > DECIMAL_BYTES_MAX || scale > 100 {
        return Err("has a decimal number that is too long".to_owned());
    }
    let is_negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let mut magnitude: Vec<u8> = bytes.iter().map(|byte| if is_negative { !byte } else { *byte }).collect();
    if is_negative {
        // The other way round and one more is what it is without its sign.
        for byte in magnitude.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
    }
    // The least number of a width has no counterpart: all its bytes stay as they are, which is right as a magnitude.
    let mut reversed = Vec::new();
    while reversed.len() <= scale || magnitude.iter().any(|byte| *byte != 0) {
        let mut rest = 0_u32;
        for byte in &mut magnitude {
            let value = rest * 256 + u32::from(*byte);
            *byte = (value / 10) as u8;
            rest = value % 10;
        }
        if reversed.len() == scale && scale > 0 {
            reversed.push(b'.');
        }
        reversed.push(b'0' + rest as u8);
    }
    if is_negative {
        out.push(b'-');
    }
    reversed.reverse();
    out.extend_from_slice(&reversed);
    Ok(())
}

fn write_date(days: i64, out: &mut Vec<u8>) -> Result<(), String> {
    let (year, month, day) = civil(days);
    if !(0..=9999).contains(&year) {
        return Err(format!("has the year {year}, which ISO 8601 does not write with four digits"));
    }
    put(out, format_args!("{year:04}-{month:02}-{day:02}"));
    Ok(())
}

/// The year, month and day of a day since 1970-01-01, in the Gregorian calendar. Years are counted from March, so that the odd day is their last.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn write_time(value: i64, digits: u32, is_utc: bool, out: &mut Vec<u8>) -> Result<(), String> {
    let unit = 10_i64.pow(digits);
    let (seconds, fraction) = (value.div_euclid(unit), value.rem_euclid(unit));
    if !(0..SECONDS_A_DAY).contains(&seconds) {
        return Err("has a time that is not within a day".to_owned());
    }
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let zone = if is_utc { "Z" } else { "" };
    let width = digits as usize;
    put(out, format_args!("{hours:02}:{minutes:02}:{seconds:02}.{fraction:0width$}{zone}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(form: CellForm, cell: ParquetCell<'_>, expected: &str) {
        let mut out = Vec::new();
        let text = match form.write(cell, &mut out) {
            Ok(()) => String::from_utf8(out).unwrap(),
            Err(reason) => reason,
        };
        assert_eq!(text, expected, "{form:?} {cell:?}");
    }

    #[test]
    fn numbers() {
        check(CellForm::Unsigned, ParquetCell::Int64(-1), "18446744073709551615");
        check(CellForm::Unsigned, ParquetCell::Int32(-1), "4294967295");
        check(CellForm::Integer, ParquetCell::Int64(i64::MIN), "-9223372036854775808");
        check(CellForm::Float, ParquetCell::Float(0.1), "0.1");
        check(CellForm::Float, ParquetCell::Double(1e300), "1e300");
        check(CellForm::Float, ParquetCell::Double(-0.0), "-0");
        check(CellForm::Float, ParquetCell::Double(f64::NAN), "NaN");
        check(CellForm::Float, ParquetCell::Float(f32::NEG_INFINITY), "-Infinity");
        for (bits, expected) in
            [(0x3c00, "1"), (0xc000, "-2"), (0x7bff, "65504"), (1, "5.9604645e-8"), (0x7c00, "Infinity")]
        {
            check(CellForm::Half, ParquetCell::Bytes(&u16::to_le_bytes(bits)), expected);
        }
        check(CellForm::Decimal(2), ParquetCell::Int32(-12345), "-123.45");
        check(CellForm::Decimal(2), ParquetCell::Int32(-5), "-0.05");
        check(CellForm::Decimal(0), ParquetCell::Int64(i64::MIN), "-9223372036854775808");
        check(CellForm::Decimal(3), ParquetCell::Bytes(&[0]), "0.000");
        check(CellForm::Decimal(1), ParquetCell::Bytes(&[0xff, 0xff]), "-0.1");
        check(CellForm::Decimal(0), ParquetCell::Bytes(&[0x80]), "-128");
        check(
            CellForm::Decimal(4),
            ParquetCell::Bytes(&[1, 0, 0, 0, 0, 0, 0, 0, 0]),
            "1844674407370955.1616",
        );
        check(CellForm::Decimal(0), ParquetCell::Bytes(&[1; 33]), "has a decimal number that is too long");
    }

    #[test]
    fn times() {
        check(CellForm::Date, ParquetCell::Int32(0), "1970-01-01");
        check(CellForm::Date, ParquetCell::Int32(-1), "1969-12-31");
        check(CellForm::Date, ParquetCell::Int32(19_782), "2024-02-29");
        check(CellForm::Date, ParquetCell::Int32(-719_528), "0000-01-01");
        check(CellForm::Date, ParquetCell::Int32(2_932_896), "9999-12-31");
        check(
            CellForm::Date,
            ParquetCell::Int32(2_932_897),
            "has the year 10000, which ISO 8601 does not write with four digits",
        );
        check(CellForm::Time(3, false), ParquetCell::Int32(86_399_999), "23:59:59.999");
        check(
            CellForm::Time(6, true),
            ParquetCell::Int64(86_400_000_000),
            "has a time that is not within a day",
        );
        check(CellForm::Timestamp(3, true), ParquetCell::Int64(-1), "1969-12-31T23:59:59.999Z");
        check(CellForm::Timestamp(9, false), ParquetCell::Int64(1), "1970-01-01T00:00:00.000000001");
        check(CellForm::Timestamp(9, true), ParquetCell::Int64(i64::MIN), "1677-09-21T00:12:43.145224192Z");
        let mut old = Int96::new();
        old.set_data(1, 0, 2_440_589);
        check(CellForm::OldTimestamp, ParquetCell::Int96(&old), "1970-01-02T00:00:00.000000001Z");
    }

    #[test]
    fn bytes() {
        check(CellForm::Uuid, ParquetCell::Bytes(&[0xab; 16]), "abababab-abab-abab-abab-abababababab");
        check(CellForm::Bytes, ParquetCell::Bytes(&[0, 255]), "AP8=");
        check(CellForm::Text, ParquetCell::Boolean(true), "has a value of another type than it declares");
    }
}
