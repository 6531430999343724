//! A way to documents in one line, for people.
//!
//! `{}` prints it with how many documents its parts were expected to find, `{:#}` without such figures: what follows from
//! query, policy and choice.

use super::{AccessPath, IndexAnswer, Lacking, PhysicalPlan, PlannedAccess};
use astrarium_index::Served;
use std::fmt;

impl fmt::Display for PhysicalPlan<'_> {
    /// The ways to the documents of all ranges.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = formatter.alternate();
        let text = |access: &PlannedAccess<'_>| {
            if is_plain { format!("{access:#}") } else { access.to_string() }
        };
        match &self.accesses[..] {
            [] => formatter.write_str("scan"),
            [first, rest @ ..] => {
                let same = text(first);
                if rest.iter().all(|access| text(access) == same) {
                    formatter.write_str(&same)?;
                    return if rest.is_empty() {
                        Ok(())
                    } else {
                        write!(formatter, " in each of {} ranges", self.accesses.len())
                    };
                }
                for (place, access) in self.accesses.iter().enumerate() {
                    let separator = if place > 0 { "; " } else { "" };
                    write!(formatter, "{separator}range {place}: {}", text(access))?;
                }
                Ok(())
            }
        }
    }
}

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
            AccessPath::IndexOnly(answer) => answered(formatter, answer),
        }
    }
}

fn answered(formatter: &mut fmt::Formatter<'_>, answer: &IndexAnswer<'_>) -> fmt::Result {
    formatter.write_str("index only: ")?;
    match answer {
        IndexAnswer::Count(counted) if counted.path == AccessPath::Scan => {
            formatter.write_str("count of all documents")
        }
        IndexAnswer::Count(counted) if formatter.alternate() => write!(formatter, "count of {counted:#}"),
        IndexAnswer::Count(counted) => write!(formatter, "count of {counted}"),
        IndexAnswer::Extreme { entries, maximum: false } => {
            write!(formatter, "first of {}", ShownEntries(entries))
        }
        IndexAnswer::Extreme { entries, maximum: true } => {
            write!(formatter, "last of {}", ShownEntries(entries))
        }
        IndexAnswer::Values { entries, has_lacking, .. } => {
            write!(formatter, "values of {}", ShownEntries(entries))?;
            formatter.write_str(if *has_lacking { ", and documents without it by a list" } else { "" })
        }
    }
}

fn list(formatter: &mut fmt::Formatter<'_>, word: &str, parts: &[PlannedAccess<'_>]) -> fmt::Result {
    write!(formatter, "{word} (")?;
    for (place, part) in parts.iter().enumerate() {
        formatter.write_str(if place > 0 { "; " } else { "" })?;
        if formatter.alternate() {
            write!(formatter, "{part:#}")?;
        } else {
            write!(formatter, "{part} ~{}", part.documents)?;
        }
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
