//! The headers of a change feed: its mode, and the text of a position in it, which is the `etag` of its pages.
//!
//! A position is `"123"`: all commits up to LSN 123 were seen, in every range that the request covers. Where several ranges are at
//! different places each has its own, `"0:123,2:17"`. A page that ended within a commit names the last entry, `"123.4"`, and a start
//! in the future is kept at the end, `"123@1722511591"`. Clients send positions back as they are and look at nothing but equality.
//! Invariant: a position that prints is the one that parses. Nothing here says what a request may see: that is its own scope.

use std::fmt::{self, Write as _};

/// What `A-IM` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedKind {
    /// `Incremental feed`: documents as they are now.
    Incremental,
    /// `Full-Fidelity Feed`: all versions and deletes.
    FullFidelity,
}

impl FeedKind {
    /// Reads the header, in any case and with any mark between the words.
    pub fn parse(text: &str) -> Option<FeedKind> {
        let letters: String = text.chars().filter(char::is_ascii_alphabetic).collect();
        match letters.to_ascii_lowercase().as_str() {
            "incrementalfeed" => Some(FeedKind::Incremental),
            "fullfidelityfeed" => Some(FeedKind::FullFidelity),
            _ => None,
        }
    }
}

/// Ranges that a position names at most.
const RANGES_MAX: usize = 10_000;

/// Where a page of a change feed ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedEtag {
    /// By range, or for all alike.
    pub ranges: Vec<RangeProgress>,
    /// Changes up to this time are left out still, in seconds since 1970.
    pub since: Option<u64>,
}

/// How far a range was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeProgress {
    /// The range; `None` for all alike.
    pub range_id: Option<u32>,
    /// The commit.
    pub lsn: u64,
    /// The last entry seen of it; `None` for all of them.
    pub sequence: Option<u32>,
}

impl FeedEtag {
    /// Reads a position, with quotes or without.
    pub fn parse(text: &str) -> Option<FeedEtag> {
        let text = text.trim();
        let text = text.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(text);
        let (ranges, since) = match text.split_once('@') {
            Some((ranges, since)) => (ranges, Some(number(since)?)),
            None => (text, None),
        };
        if ranges.bytes().filter(|byte| *byte == b',').count() >= RANGES_MAX {
            return None;
        }
        let ranges = ranges.split(',').map(RangeProgress::parse).collect::<Option<Vec<_>>>()?;
        let is_whole = ranges.len() == 1 || ranges.iter().all(|range| range.range_id.is_some());
        is_whole.then_some(FeedEtag { ranges, since })
    }
}

impl RangeProgress {
    fn parse(text: &str) -> Option<RangeProgress> {
        let (range_id, place) = match text.split_once(':') {
            Some((id, place)) => (Some(u32::try_from(number(id)?).ok()?), place),
            None => (None, text),
        };
        let (lsn, sequence) = match place.split_once('.') {
            Some((lsn, sequence)) => (lsn, Some(u32::try_from(number(sequence)?).ok()?)),
            None => (place, None),
        };
        Some(RangeProgress { range_id, lsn: number(lsn)?, sequence })
    }
}

/// Digits only: no sign, no blanks.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl fmt::Display for FeedEtag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_char('"')?;
        for (index, range) in self.ranges.iter().enumerate() {
            if index > 0 {
                formatter.write_char(',')?;
            }
            if let Some(id) = range.range_id {
                write!(formatter, "{id}:")?;
            }
            write!(formatter, "{}", range.lsn)?;
            if let Some(sequence) = range.sequence {
                write!(formatter, ".{sequence}")?;
            }
        }
        if let Some(since) = self.since {
            write!(formatter, "@{since}")?;
        }
        formatter.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn kinds() {
        for (text, kind) in [
            ("Incremental feed", Some(FeedKind::Incremental)),
            ("Incremental Feed", Some(FeedKind::Incremental)),
            ("Full-Fidelity Feed", Some(FeedKind::FullFidelity)),
            ("full-fidelity feed", Some(FeedKind::FullFidelity)),
            ("feed", None),
            ("", None),
        ] {
            assert_eq!(FeedKind::parse(text), kind, "{text}");
        }
    }

    #[test]
    fn positions() {
        let all = |lsn, sequence| vec![RangeProgress { range_id: None, lsn, sequence }];
        let check = |text: &str, expected| assert_eq!(FeedEtag::parse(text), expected, "{text}");
        check("\"123\"", Some(FeedEtag { ranges: all(123, None), since: None }));
        check("123", Some(FeedEtag { ranges: all(123, None), since: None }));
        check("\"123.4@99\"", Some(FeedEtag { ranges: all(123, Some(4)), since: Some(99) }));
        let two = [(0, 5), (2, 7)].map(|(id, lsn)| RangeProgress { range_id: Some(id), lsn, sequence: None });
        check("\"0:5,2:7\"", Some(FeedEtag { ranges: two.to_vec(), since: None }));
        let refused = [
            "",
            "\"\"",
            "*",
            "a",
            "-1",
            "+1",
            "1,2",
            "0:1,2",
            "1.",
            "1.-2",
            "1@",
            "1:",
            ":1",
            "99999999999999999999",
        ];
        for text in refused {
            check(text, None);
        }
    }

    proptest! {
        #[test]
        fn what_prints_parses(ranges in prop::collection::vec((any::<u32>(), any::<u64>(), any::<Option<u32>>()), 1..5),
                              since in any::<Option<u64>>()) {
            let ranges = ranges.into_iter().map(|(id, lsn, sequence)| RangeProgress { range_id: Some(id), lsn, sequence });
            let etag = FeedEtag { ranges: ranges.collect(), since };
            prop_assert_eq!(FeedEtag::parse(&etag.to_string()), Some(etag));
        }

        #[test]
        fn parse_is_total(text in ".*", near in "[\"0-9:.,@]{0,30}") {
            let _ = (FeedEtag::parse(&text), FeedEtag::parse(&near));
        }
    }
}
