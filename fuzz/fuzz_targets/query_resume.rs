//! Positions of queries in continuation tokens: any bytes are one or are refused; what is read is written the same.
#![no_main]

use astrarium_sql_exec::Resume;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(resume) = Resume::decode(bytes) {
        let written = resume.encode();
        assert_eq!(Resume::decode(&written), Some(resume));
    }
});
