//! All fuzz targets in one program, so that what they share is compiled and linked once: `FUZZ_TARGET` names the one that
//! runs, the arguments are libFuzzer's. `cargo xtask fuzz` builds it and runs every target.
#![no_main]

mod address;
mod authorization;
mod binary_json;
mod body_and_record;
mod change_feed_etag;
mod container_definition;
mod continuation;
mod etag_condition;
mod hybrid_row;
mod import_rows;
mod incoming_document;
mod json_text;
mod ordered_key;
mod partition_key_header;
mod patch;
mod query_resume;
mod request_headers;
mod resource_token;
mod rid;
mod script_source;
mod session_token;
mod sql_text;

use libfuzzer_sys::arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

/// What a target is fed with.
#[derive(Clone, Copy)]
enum Target {
    Bytes(fn(&[u8])),
    Text(fn(&str)),
}

const TARGETS: &[(&str, Target)] = &[
    ("address", Target::Text(address::run)),
    ("authorization", Target::Text(authorization::run)),
    ("binary_json", Target::Bytes(binary_json::run)),
    ("body_and_record", Target::Bytes(body_and_record::run)),
    ("change_feed_etag", Target::Text(change_feed_etag::run)),
    ("container_definition", Target::Bytes(container_definition::run)),
    ("continuation", Target::Bytes(continuation::run)),
    ("etag_condition", Target::Text(etag_condition::run)),
    ("hybrid_row", Target::Bytes(hybrid_row::run)),
    ("import_rows", Target::Bytes(import_rows::run)),
    ("incoming_document", Target::Bytes(incoming_document::run)),
    ("json_text", Target::Bytes(json_text::run)),
    ("ordered_key", Target::Bytes(ordered_key::run)),
    ("partition_key_header", Target::Text(partition_key_header::run)),
    ("patch", Target::Bytes(patch::run)),
    ("query_resume", Target::Bytes(query_resume::run)),
    ("request_headers", Target::Text(request_headers::run)),
    ("resource_token", Target::Text(resource_token::run)),
    ("rid", Target::Bytes(rid::run)),
    ("script_source", Target::Text(script_source::run)),
    ("session_token", Target::Text(session_token::run)),
    ("sql_text", Target::Text(sql_text::run)),
];

static CHOSEN: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let chosen = TARGETS.iter().find(|(known, _)| *known == name);
    let names = || TARGETS.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
    chosen.unwrap_or_else(|| panic!("FUZZ_TARGET has to be one of {}", names())).1
});

fuzz_target!(|bytes: &[u8]| {
    match *CHOSEN {
        Target::Bytes(run) => run(bytes),
        Target::Text(run) => {
            if let Ok(text) = <&str>::arbitrary_take_rest(Unstructured::new(bytes)) {
                run(text);
            }
        }
    }
});
