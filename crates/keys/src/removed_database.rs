//! Databases that are removed and whose content is not yet, in space `Meta`: `0D | database rid` -> format 1.
//!
//! Written by the commit of the catalog that removes the database and its name. What was below it is found through it only, so it is gone from
//! then on; a task removes it step by step, and the record with the last step.

use crate::{Malformed, Rid, tags};
use bytes::Bytes;

const FORMAT: u8 = 1;

/// The key of a removed database's record.
pub fn removed_database_key(database: Rid) -> Bytes {
    [&[tags::meta::REMOVED_DATABASE], database.as_bytes()].concat().into()
}

/// The value of the record.
pub fn removed_database_value() -> Bytes {
    Bytes::from_static(&[FORMAT])
}

/// Reads a record: the database.
pub fn read_removed_database(key: &[u8], value: &[u8]) -> Result<Rid, Malformed> {
    let malformed = Malformed::new("record of a removed database");
    if value != [FORMAT] {
        return Err(malformed);
    }
    let rid = key.get(1..).and_then(Rid::from_bytes).filter(|rid| rid.as_bytes().len() == 4);
    rid.ok_or(malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let database = Rid::database(7);
        let (key, value) = (removed_database_key(database), removed_database_value());
        assert_eq!(read_removed_database(&key, &value), Ok(database));
        assert!(read_removed_database(&key, &[2]).is_err());
        assert!(read_removed_database(&key[..3], &value).is_err());
        let container = Rid::container(database, 1);
        assert!(read_removed_database(&removed_database_key(container), &value).is_err());
    }
}
