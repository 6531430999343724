//! A way to documents in one line, for people.

use super::{AccessPath, Lacking, PlannedAccess};
use astrarium_index::Served;
use std::fmt;

impl fmt::Display for PlannedAccess<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            AccessPath::Scan => formatter.write_str("scan"),
            AccessPath::Empty => formatter.write_str("nothing: no document can pass"),
            AccessPath::Seek(served) => write!(formatter, "seek {}", ShownEntries(served)),
            AccessPath::Range(served) => write!(formatter, "range {}", ShownEntries(served)),
            AccessPath::Composite(served) => write!(formatter, "composite {}", ShownEntries(served)),
            AccessPath::Intersection(parts) => list(formatter, "intersection", parts),
            AccessPath::Union(parts) => list(formatter, "union", parts),
            AccessPath::OrderedScan(ordered, lacking) => {
                write!(formatter, "ordered scan {}", ordered.shown)?;
                if ordered.backward {
                    formatter.write_str(" backwards")?;
                }
                match lacking {
                    None => Ok(()),
                    Some(Lacking::AmongAll) => formatter.write_str(", and documents without it among all"),
                    Some(Lacking::Listed) => formatter.write_str(", and documents without it by a list"),
                }
            }
            AccessPath::IndexOnly => formatter.write_str("index only"),
        }
    }
}

fn list(formatter: &mut fmt::Formatter<'_>, word: &str, parts: &[PlannedAccess<'_>]) -> fmt::Result {
    write!(formatter, "{word} (")?;
    for (place, part) in parts.iter().enumerate() {
        let separator = if place > 0 { "; " } else { "" };
        write!(formatter, "{separator}{part} ~{}", part.documents)?;
    }
    formatter.write_str(")")
}

struct ShownEntries<'a>(&'a Served);

impl fmt::Display for ShownEntries<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShownEntries(served) = self;
        let terms = served.ranges.iter().filter(|range| range.is_point).count();
        let ranges = served.ranges.len() - terms;
        formatter.write_str(&served.shown)?;
        let counted = |count: usize, one: &str| match count {
            1 => format!("1 {one}"),
            _ => format!("{count} {one}s"),
        };
        match (terms, ranges) {
            (_, 0) => write!(formatter, " [{}", counted(terms, "term"))?,
            (0, _) => write!(formatter, " [{}", counted(ranges, "range"))?,
            _ => write!(formatter, " [{}, {}", counted(terms, "term"), counted(ranges, "range"))?,
        }
        formatter.write_str(if served.exact { "]" } else { ", checked again]" })
    }
}
