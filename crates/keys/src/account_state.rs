//! What the servers of an account have done to all of its data: one record in space `Meta`, written by commits of the catalog.
//!
//! - `0C` -> format 1, then `01` while every container keeps the history of its changes, whatever its definition says, else `00`.
//!   Without the record none does.

use crate::{Malformed, tags};
use bytes::Bytes;

const FORMAT: u8 = 1;

/// The record of an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccountState {
    /// Whether every container keeps the history of its changes.
    pub keeps_all_history: bool,
}

/// The key of the record.
pub fn account_state_key() -> Bytes {
    Bytes::from_static(&[tags::meta::ACCOUNT_STATE])
}

impl AccountState {
    /// The bytes of the value.
    pub fn encode(self) -> Bytes {
        Bytes::copy_from_slice(&[FORMAT, u8::from(self.keeps_all_history)])
    }

    /// Reads a value.
    pub fn decode(value: &[u8]) -> Result<AccountState, Malformed> {
        match value {
            [FORMAT, keeps @ (0 | 1)] => Ok(AccountState { keeps_all_history: *keeps == 1 }),
            _ => Err(Malformed::new("state of the account")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for keeps_all_history in [false, true] {
            let state = AccountState { keeps_all_history };
            assert_eq!(AccountState::decode(&state.encode()), Ok(state));
        }
        for wrong in [&[][..], &[1], &[1, 2], &[2, 0], &[1, 0, 0]] {
            assert!(AccountState::decode(wrong).is_err(), "{wrong:?}");
        }
    }
}
