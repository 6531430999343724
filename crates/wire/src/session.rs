//! Session tokens: how far a client has seen each key range.
//!
//! In: `0:-1#42,1:-1#17` (range, version, position), with regions `0:0#42#1=40`, or the legacy `0:42`. Out: the position
//! of a range; and the one shape we write, `0:-1#42`, which must never change at run time because clients compare shapes.
//! Invariants
//! - A range that occurs twice counts with its highest position.
//! - Nothing is copied: entries borrow from the header.
//!
//! Not here: which ranges exist or are parents (`database`).

use std::fmt;

use smallvec::SmallVec;

/// Longest token read, in bytes; a client of a container with thousands of ranges sends tens of KiB.
pub const TOKEN_BYTES_MAX: usize = 64 * 1024;

/// What a client has seen, as it says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionToken<'a> {
    entries: SmallVec<[SessionEntry<'a>; 4]>,
}

/// The part of a token that speaks about one key range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionEntry<'a> {
    /// Id of the key range.
    pub range_id: &'a str,
    /// Version of the region set; `-1` where there is one region.
    pub version: i64,
    /// Position in the range's log.
    pub lsn: i64,
}

/// The text is no session token. The client's fault: 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("The session token of the request is invalid.")]
pub struct InvalidSessionToken;

impl<'a> SessionToken<'a> {
    /// Reads the header's value; blank text is a token without entries, and so is a lone comma.
    pub fn parse(text: &'a str) -> Result<Self, InvalidSessionToken> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(InvalidSessionToken);
        }
        let text = text.trim();
        // One client ends its lists with a comma.
        let text = text.strip_suffix(',').unwrap_or(text);
        if text.is_empty() {
            return Ok(SessionToken::default());
        }
        let entries = text.split(',').map(|entry| parse_entry(entry.trim()).ok_or(InvalidSessionToken));
        Ok(SessionToken { entries: entries.collect::<Result<_, _>>()? })
    }

    /// The highest position seen of a range, if the token speaks of it.
    pub fn lsn(&self, range_id: &str) -> Option<i64> {
        self.entries.iter().filter(|entry| entry.range_id == range_id).map(|entry| entry.lsn).max()
    }

    /// The entries in the order sent.
    pub fn entries(&self) -> &[SessionEntry<'a>] {
        &self.entries
    }
}

impl fmt::Display for SessionToken<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, entry) in self.entries.iter().enumerate() {
            let separator = if position == 0 { "" } else { "," };
            write!(formatter, "{separator}{}:{}#{}", entry.range_id, entry.version, entry.lsn)?;
        }
        Ok(())
    }
}

/// The token of a response, `0:-1#42`.
pub fn format_session_token(range_id: &str, lsn: u64) -> String {
    let mut text = String::with_capacity(range_id.len() + 24);
    append_session_token(&mut text, range_id, lsn);
    text
}

/// Adds one more range to a token that is being written.
pub fn append_session_token(text: &mut String, range_id: &str, lsn: u64) {
    if !text.is_empty() {
        text.push(',');
    }
    text.push_str(range_id);
    text.push_str(":-1#");
    text.push_str(itoa::Buffer::new().format(lsn));
}

fn parse_entry(text: &str) -> Option<SessionEntry<'_>> {
    let (range_id, position) = text.split_once(':')?;
    let valid_id = !range_id.is_empty() && range_id.bytes().all(|byte| byte.is_ascii_graphic());
    let (version, lsn) = match position.split_once('#') {
        None => (-1, number(position)?),
        Some((version, rest)) => {
            let (lsn, regions) =
                rest.split_once('#').map_or((rest, None), |(lsn, regions)| (lsn, Some(regions)));
            if !regions.into_iter().flat_map(|regions| regions.split('#')).all(is_region) {
                return None;
            }
            (number(version)?, number(lsn)?)
        }
    };
    valid_id.then_some(SessionEntry { range_id, version, lsn })
}

/// `<region>=<position>`, both numbers; one region's position does not matter to a single server.
fn is_region(text: &str) -> bool {
    text.split_once('=').is_some_and(|(region, lsn)| number(region).is_some() && number(lsn).is_some())
}

fn number(text: &str) -> Option<i64> {
    // `parse` takes a plus sign, which no client sends and which would not survive writing.
    if text.starts_with('+') { None } else { text.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, range_id: &str, expected: Result<Option<i64>, InvalidSessionToken>) {
        assert_eq!(SessionToken::parse(text).map(|token| token.lsn(range_id)), expected, "{text}");
    }

    #[test]
    fn forms() {
        check("0:-1#42", "0", Ok(Some(42)));
        check("0:-1#42,1:-1#17", "1", Ok(Some(17)));
        check("0:-1#42, 1:-1#17", "1", Ok(Some(17)));
        check("0:-1#42,1:-1#17", "2", Ok(None));
        check("0:42", "0", Ok(Some(42)));
        check("0:0#42#1=40", "0", Ok(Some(42)));
        check("0:0#42#1=40#2=-1", "0", Ok(Some(42)));
        check("0:-1#5,0:-1#9,0:-1#7", "0", Ok(Some(9)));
        check("0:-1#-1", "0", Ok(Some(-1)));
        check("0:-1#42,1:-1#17,", "1", Ok(Some(17)));
        check("0:-1#42, ", "0", Ok(Some(42)));
        check("", "0", Ok(None));
        check(",", "0", Ok(None));
        check("  ", "0", Ok(None));
    }

    #[test]
    fn refusals() {
        for text in [
            "x",
            "0",
            "0:",
            ":1",
            "0:x",
            "0:-1#",
            "0:-1#x",
            "0:#1",
            "0:-1#1#",
            "0:-1#1#1",
            "0:-1#1#1=",
            "0:-1#1#=1",
            ",,",
            "0:-1#1,,",
            ",0:-1#1",
            "0:-1#1,,1:-1#1",
            "0:99999999999999999999",
            "0:+1",
            "0 0:1",
            "é:1",
        ] {
            check(text, "0", Err(InvalidSessionToken));
        }
        check(&"0:1,".repeat(TOKEN_BYTES_MAX), "0", Err(InvalidSessionToken));
    }

    #[test]
    fn writing() {
        let mut text = format_session_token("0", 42);
        assert_eq!(text, "0:-1#42");
        append_session_token(&mut text, "1", u64::MAX);
        assert_eq!(text, "0:-1#42,1:-1#18446744073709551615");
    }

    proptest! {
        #[test]
        fn parse_is_total(text in ".*", near in "[0-9:#=,-]{0,40}") {
            let _ = SessionToken::parse(&text);
            if let Ok(token) = SessionToken::parse(&near) {
                let written = token.to_string();
                let again = SessionToken::parse(&written).unwrap();
                prop_assert_eq!(again.entries(), token.entries());
            }
        }

        #[test]
        fn written_tokens_read_back(positions in proptest::collection::btree_map(0..100_u32, 0..i64::MAX as u64, 1..9)) {
            let mut text = String::new();
            for (range, lsn) in &positions {
                append_session_token(&mut text, &range.to_string(), *lsn);
            }
            let token = SessionToken::parse(&text).unwrap();
            prop_assert_eq!(token.entries().len(), positions.len());
            for (range, lsn) in &positions {
                prop_assert_eq!(token.lsn(&range.to_string()), i64::try_from(*lsn).ok());
            }
            prop_assert_eq!(token.to_string(), text.as_str());
        }
    }
}
