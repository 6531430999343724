//! The fuzz targets as tests: each with its seeds, and with inputs that are made from them by a seed. No more is built for it than
//! for other tests; what an input reaches is not looked at, which `cargo xtask fuzz` does.
//!
//! `ASTRARIUM_FUZZ_SEED` repeats the inputs of a run; an input that fails is left in `fuzz/artifacts/<target>`.

#![expect(clippy::unwrap_used, reason = "a test that fails to set up fails")]

#[path = "../../../fuzz/fuzz_targets/address.rs"]
mod address;
#[path = "../../../fuzz/fuzz_targets/authorization.rs"]
mod authorization;
#[path = "../../../fuzz/fuzz_targets/binary_json.rs"]
mod binary_json;
#[path = "../../../fuzz/fuzz_targets/body_and_record.rs"]
mod body_and_record;
#[path = "../../../fuzz/fuzz_targets/change_feed_etag.rs"]
mod change_feed_etag;
#[path = "../../../fuzz/fuzz_targets/container_definition.rs"]
mod container_definition;
#[path = "../../../fuzz/fuzz_targets/continuation.rs"]
mod continuation;
#[path = "../../../fuzz/fuzz_targets/etag_condition.rs"]
mod etag_condition;
#[path = "../../../fuzz/fuzz_targets/hybrid_row.rs"]
mod hybrid_row;
#[path = "../../../fuzz/fuzz_targets/import_rows.rs"]
mod import_rows;
#[path = "../../../fuzz/fuzz_targets/incoming_document.rs"]
mod incoming_document;
#[path = "../../../fuzz/fuzz_targets/json_text.rs"]
mod json_text;
#[path = "../../../fuzz/fuzz_targets/ordered_key.rs"]
mod ordered_key;
#[path = "../../../fuzz/fuzz_targets/partition_key_header.rs"]
mod partition_key_header;
#[path = "../../../fuzz/fuzz_targets/patch.rs"]
mod patch;
#[path = "../../../fuzz/fuzz_targets/query_resume.rs"]
mod query_resume;
#[path = "../../../fuzz/fuzz_targets/request_headers.rs"]
mod request_headers;
#[path = "../../../fuzz/fuzz_targets/resource_token.rs"]
mod resource_token;
#[path = "../../../fuzz/fuzz_targets/rid.rs"]
mod rid;
#[path = "../../../fuzz/fuzz_targets/script_source.rs"]
mod script_source;
#[path = "../../../fuzz/fuzz_targets/session_token.rs"]
mod session_token;
#[path = "../../../fuzz/fuzz_targets/sql_text.rs"]
mod sql_text;

use astrarium_env::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Changes of one input at most.
const CHANGES_MAX: u64 = 6;
/// Bytes and words that parsers treat in a way of their own.
const PIECES: &[&[u8]] = &[
    b"\0",
    b"\xff",
    b"\"",
    b"\\",
    b"\\u0000",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"/",
    b"%",
    b"%2F",
    b"=",
    b"&",
    b"#",
    b" ",
    b"\n",
    b"'",
    b"-1",
    b"0",
    b"1e400",
    b"9007199254740993",
    b"18446744073709551616",
    b"null",
    b"true",
    b"undefined",
    b"NaN",
    b"\xed\xa0\x80",
    b"\xc3",
    "é".as_bytes(),
    "\u{10ffff}".as_bytes(),
    b"SELECT ",
    b"c.",
    b"(",
    b")",
    b"*",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\x7f",
];

static SEED: LazyLock<u64> = LazyLock::new(|| {
    let given = std::env::var("ASTRARIUM_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(|| Random::from_system().next_u64())
});

/// What a target takes.
#[derive(Clone, Copy)]
enum Target {
    Bytes(fn(&[u8])),
    Text(fn(&str)),
}

/// Runs a target with its seeds and so many inputs made from them.
fn check(name: &str, target: Target, count: usize) {
    let folder = fuzz().join("seeds").join(name);
    let seeds: Vec<Vec<u8>> = files(&folder).iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert!(!seeds.is_empty(), "{name} has no seed in {}", folder.display());
    let random = Random::from_seed(*SEED);
    for input in &seeds {
        run(name, target, input);
    }
    for _ in 0..count {
        run(name, target, &changed(&seeds, &random));
    }
}

fn run(name: &str, target: Target, input: &[u8]) {
    let ran = catch_unwind(AssertUnwindSafe(|| match target {
        Target::Bytes(run) => run(input),
        Target::Text(run) => run(&String::from_utf8_lossy(input)),
    }));
    if ran.is_err() {
        let folder = fuzz().join("artifacts").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("test-{}", *SEED));
        std::fs::write(&file, input).unwrap();
        panic!(
            "ASTRARIUM_FUZZ_SEED={}: {name} fails with {}, {:?}",
            *SEED,
            file.display(),
            input.escape_ascii().to_string()
        );
    }
}

/// A seed after some changes.
fn changed(seeds: &[Vec<u8>], random: &Random) -> Vec<u8> {
    let below = |bound: usize| usize::try_from(random.next_u64() % (bound.max(1) as u64)).unwrap();
    let mut input = seeds[below(seeds.len())].clone();
    for _ in 0..=random.next_u64() % CHANGES_MAX {
        let (from, length) = (below(input.len() + 1), below(9));
        let to = (from + length).min(input.len());
        match random.next_u64() % 7 {
            0 => drop(input.drain(from..to)),
            1 => input.truncate(from),
            2 => input.iter_mut().skip(from).take(1).for_each(|byte| *byte ^= 1 << below(8)),
            3 => input
                .iter_mut()
                .skip(from)
                .take(1)
                .for_each(|byte| *byte = random.next_u64().to_le_bytes()[0]),
            4 => drop(input.splice(from..from, PIECES[below(PIECES.len())].iter().copied())),
            5 => {
                let piece = input[from..to].repeat(1 + below(40));
                drop(input.splice(from..from, piece));
            }
            _ => {
                let other = &seeds[below(seeds.len())];
                let start = below(other.len());
                let end = (start + below(64)).min(other.len());
                drop(input.splice(from..to, other[start..end].iter().copied()));
            }
        }
    }
    input
}

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Tests of targets: what each takes, and how many inputs are tried.
macro_rules! targets {
    ($($name:ident: $kind:ident $count:literal,)*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name), Target::$kind(self::$name::run), $count);
            }
        )*
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

targets! {
    address: Text 100_000,
    authorization: Text 100_000,
    binary_json: Bytes 100_000,
    body_and_record: Bytes 100_000,
    change_feed_etag: Text 100_000,
    container_definition: Bytes 100_000,
    continuation: Bytes 100_000,
    etag_condition: Text 100_000,
    hybrid_row: Bytes 100_000,
    import_rows: Bytes 30_000,
    incoming_document: Bytes 100_000,
    json_text: Bytes 100_000,
    ordered_key: Bytes 100_000,
    partition_key_header: Text 100_000,
    patch: Bytes 100_000,
    query_resume: Bytes 100_000,
    request_headers: Text 100_000,
    resource_token: Text 100_000,
    rid: Bytes 100_000,
    script_source: Text 1_500,
    session_token: Text 100_000,
    sql_text: Text 30_000,
}

#[test]
fn every_fuzz_target_is_a_test() {
    let all = files(&fuzz().join("fuzz_targets"));
    let names: Vec<_> = all.iter().map(|file| file.file_stem().unwrap().to_str().unwrap()).collect();
    let names: Vec<_> = names.into_iter().filter(|name| *name != "main").collect();
    assert_eq!(names, NAMES, "a target is a line here and one in fuzz/fuzz_targets/main.rs");
    let main = std::fs::read_to_string(fuzz().join("fuzz_targets/main.rs")).unwrap();
    for name in NAMES {
        assert!(main.contains(&format!("(\"{name}\", ")), "{name} is missing in main.rs");
    }
}
