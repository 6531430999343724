//! What this client has seen of each container, so that it reads its own writes.
//!
//! A token is kept for each key range, the furthest one. A request gets the tokens of its container.

use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Longest header; beyond it the request goes without, and reads what the account's own level gives.
const HEADER_BYTES_MAX: usize = 8 << 10;

/// Of each range its position and its token.
type RangeTokens = BTreeMap<String, (i64, String)>;

/// Tokens by container and range.
#[derive(Debug, Default)]
pub(crate) struct SessionTokens {
    containers: Mutex<BTreeMap<String, RangeTokens>>,
}

impl SessionTokens {
    /// Remembers the tokens of an answer.
    pub(crate) fn record(&self, container: &str, token: &str) {
        let mut containers = self.containers.lock();
        let ranges = containers.entry(container.to_owned()).or_default();
        for entry in token.split(',') {
            let Some((range, state)) = entry.trim().split_once(':') else { continue };
            let Some(lsn) = lsn(state) else { continue };
            let known = ranges.get(range).map_or(i64::MIN, |(known, _)| *known);
            if lsn > known {
                ranges.insert(range.to_owned(), (lsn, state.to_owned()));
            }
        }
    }

    /// The tokens for a request, of one range if it is about one.
    pub(crate) fn header(&self, container: &str, range: Option<&str>) -> Option<String> {
        let containers = self.containers.lock();
        let ranges = containers.get(container)?;
        let listed = ranges.iter().filter(|(id, _)| range.is_none_or(|range| range == id.as_str()));
        let listed: Vec<String> = listed.map(|(id, (_, state))| format!("{id}:{state}")).collect();
        let header = listed.join(",");
        (!header.is_empty() && header.len() <= HEADER_BYTES_MAX).then_some(header)
    }

    /// Forgets a container: another one may have its name now.
    pub(crate) fn forget(&self, container: &str) {
        self.containers.lock().remove(container);
    }
}

/// The global position in `version#lsn#…`, or in the old form that is a number alone.
fn lsn(state: &str) -> Option<i64> {
    let mut parts = state.split('#');
    let first = parts.next()?;
    parts.next().unwrap_or(first).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_furthest_is_kept() {
        let sessions = SessionTokens::default();
        assert_eq!(sessions.header("c", None), None);
        sessions.record("c", "0:-1#42,1:-1#17");
        sessions.record("c", "0:-1#41");
        sessions.record("c", "1:-1#18#1=3");
        sessions.record("c", "nonsense,:,2:x");
        assert_eq!(sessions.header("c", None).unwrap(), "0:-1#42,1:-1#18#1=3");
        assert_eq!(sessions.header("c", Some("0")).unwrap(), "0:-1#42");
        assert_eq!(sessions.header("c", Some("7")), None);
        assert_eq!(sessions.header("d", None), None);
        sessions.forget("c");
        assert_eq!(sessions.header("c", None), None);
    }
}
