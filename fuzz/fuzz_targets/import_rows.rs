//! Files of strangers: whatever they hold, rows are read or refused; so are templates, and the archives of dumps.
//!
//! The first byte chooses what the others are.

use astrarium_tools::{FileFormat, fuzzing};
use std::sync::Once;

static QUIET: Once = Once::new();

pub(crate) fn run(bytes: &[u8]) {
    QUIET.call_once(expect_panics_of_the_library);
    let Some((choice, rest)) = bytes.split_first() else { return };
    match choice % 7 {
        0 => _ = fuzzing::read_rows(rest, FileFormat::Csv),
        1 => _ = fuzzing::read_rows(rest, FileFormat::Tsv),
        2 => _ = fuzzing::read_rows(rest, FileFormat::JsonLines),
        3 => _ = fuzzing::read_rows(rest, FileFormat::Json),
        4 => _ = fuzzing::read_rows(rest, FileFormat::Parquet),
        5 => {
            let middle = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
            let (template, row) = rest.split_at(middle);
            if let Ok(template) = std::str::from_utf8(template) {
                _ = fuzzing::fill_template(template, row.get(1..).unwrap_or_default());
            }
        }
        _ => _ = fuzzing::check_archive(rest),
    }
}

/// A panic in the library that decodes Parquet is caught by our reader, and means that the file is broken. libFuzzer's hook would end the program
/// before; panics anywhere else are findings.
fn expect_panics_of_the_library() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let file = panic.location().map_or("", |location| location.file());
        if !["/parquet-", "/bytes-"].iter().any(|name| file.contains(name)) {
            hook(panic);
        }
    }));
}
