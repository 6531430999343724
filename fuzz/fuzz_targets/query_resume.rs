//! Positions of queries in continuation tokens: any bytes are one or are refused; what is read is written the same.

use astrarium_sql_exec::Resume;

pub(crate) fn run(bytes: &[u8]) {
    if let Some(resume) = Resume::decode(bytes) {
        let written = resume.encode();
        assert_eq!(Resume::decode(&written), Some(resume));
    }
}
