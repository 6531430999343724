//! Consistency levels: their names and their order.
//!
//! A request may ask for the account's level or a weaker one, or, if it reads, name a strategy, which counts instead of a
//! level and whatever the account's is. One server satisfies all of them, so they only have to be checked.
//! Not here: session tokens (`session`).

/// A consistency level; the stronger is the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConsistencyLevel {
    /// Reads may see anything that was written, in any order.
    Eventual,
    /// Reads never see writes out of order.
    ConsistentPrefix,
    /// A client sees its own writes.
    Session,
    /// Reads lag by a bounded number of writes or seconds.
    BoundedStaleness,
    /// Reads see the last write.
    Strong,
}

/// The text names no level. The client's fault: 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "The consistency level is not one of Strong, BoundedStaleness, Session, ConsistentPrefix and Eventual."
)]
pub struct InvalidConsistencyLevel;

/// The text names no strategy. The client's fault: 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "The read consistency strategy is not one of Default, Eventual, Session, LatestCommitted and GlobalStrong."
)]
pub struct InvalidReadStrategy;

/// The strategies of reads, and the level that each of them comes to.
const READ_STRATEGIES: [(&str, Option<ConsistencyLevel>); 5] = [
    ("Default", None),
    ("Eventual", Some(ConsistencyLevel::Eventual)),
    ("Session", Some(ConsistencyLevel::Session)),
    ("LatestCommitted", Some(ConsistencyLevel::BoundedStaleness)),
    ("GlobalStrong", Some(ConsistencyLevel::Strong)),
];

/// The level that a read's strategy comes to, in any case of letters; none if it leaves that to the level.
pub fn parse_read_strategy(text: &str) -> Result<Option<ConsistencyLevel>, InvalidReadStrategy> {
    let named = |(name, _): &&(&str, _)| name.eq_ignore_ascii_case(text.trim());
    READ_STRATEGIES.iter().find(named).map(|(_, level)| *level).ok_or(InvalidReadStrategy)
}

impl ConsistencyLevel {
    /// Every level, the weakest first.
    pub const ALL: [ConsistencyLevel; 5] = [
        ConsistencyLevel::Eventual,
        ConsistencyLevel::ConsistentPrefix,
        ConsistencyLevel::Session,
        ConsistencyLevel::BoundedStaleness,
        ConsistencyLevel::Strong,
    ];

    /// Reads a name in any case.
    pub fn parse(text: &str) -> Result<Self, InvalidConsistencyLevel> {
        let text = text.trim();
        let named = |level: &ConsistencyLevel| level.name().eq_ignore_ascii_case(text);
        ConsistencyLevel::ALL.into_iter().find(named).ok_or(InvalidConsistencyLevel)
    }

    /// The name as the protocol spells it.
    pub const fn name(self) -> &'static str {
        match self {
            ConsistencyLevel::Eventual => "Eventual",
            ConsistencyLevel::ConsistentPrefix => "ConsistentPrefix",
            ConsistencyLevel::Session => "Session",
            ConsistencyLevel::BoundedStaleness => "BoundedStaleness",
            ConsistencyLevel::Strong => "Strong",
        }
    }

    /// True when an account with level `account` serves a request for this one.
    pub fn is_served_by(self, account: ConsistencyLevel) -> bool {
        self <= account
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_order() {
        for level in ConsistencyLevel::ALL {
            assert_eq!(ConsistencyLevel::parse(level.name()), Ok(level));
            assert_eq!(ConsistencyLevel::parse(&level.name().to_lowercase()), Ok(level));
        }
        assert!(ConsistencyLevel::ALL.is_sorted());
        assert!(ConsistencyLevel::Eventual.is_served_by(ConsistencyLevel::Session));
        assert!(ConsistencyLevel::Session.is_served_by(ConsistencyLevel::Session));
        assert!(!ConsistencyLevel::Strong.is_served_by(ConsistencyLevel::Session));
        assert_eq!(ConsistencyLevel::parse(""), Err(InvalidConsistencyLevel));
    }

    #[test]
    fn strategies() {
        assert_eq!(parse_read_strategy("Default"), Ok(None));
        assert_eq!(parse_read_strategy("eventual"), Ok(Some(ConsistencyLevel::Eventual)));
        assert_eq!(parse_read_strategy("Session"), Ok(Some(ConsistencyLevel::Session)));
        assert_eq!(parse_read_strategy(" LatestCommitted "), Ok(Some(ConsistencyLevel::BoundedStaleness)));
        assert_eq!(parse_read_strategy("GlobalStrong"), Ok(Some(ConsistencyLevel::Strong)));
        assert_eq!(parse_read_strategy("Strong"), Err(InvalidReadStrategy));
        assert_eq!(parse_read_strategy(""), Err(InvalidReadStrategy));
    }

    proptest! {
        #[test]
        fn parse_is_total(text in ".*") {
            let _ = ConsistencyLevel::parse(&text);
        }
    }
}
