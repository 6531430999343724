//! Servers that fail after they have done something, key ranges that go, pipes that stay open.

use crate::meddler::{meddler, refusal};
use crate::world::{World, run};
use astrarium_testkit::Request;
use astrarium_tools::{DumpSettings, ExistingMode, ImportSettings};
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What is changed of the first answer that is meant.
fn once(
    is_meant: impl Fn(&str) -> bool + Send + Sync + 'static,
    change: impl Fn(Vec<u8>) -> Vec<u8> + Send + Sync + 'static,
) -> impl Fn(&str, Vec<u8>) -> Vec<u8> + Send + Sync + 'static {
    let is_done = AtomicBool::new(false);
    move |request, answer| {
        if is_meant(request) && !is_done.swap(true, Ordering::Relaxed) { change(answer) } else { answer }
    }
}

fn is_write(request: &str) -> bool {
    request.starts_with("POST /dbs/d/colls/c/docs")
}

fn lines(count: usize) -> String {
    let line = |number: usize| format!("{{\"id\":\"{number}\",\"pk\":\"k{}\"}}\n", number % 5);
    (0..count).map(line).collect::<Vec<_>>().concat()
}

/// A write that the server has done and refused all the same is no failure, and is not done twice.
#[test]
fn writes_that_were_done_and_refused() {
    let port = |world: &World| world.server.address().port();
    for count in [1, 50] {
        for status in [408, 500, 503] {
            let world = World::furnished();
            let mut settings = world.import_of(world.file("a.jsonl", lines(count)));
            settings.account.endpoint = meddler(port(&world), once(is_write, move |_| refusal(status)));
            let report = world.import(&settings);
            let expected = format!("{count} documents written");
            assert!(report.is_complete && report.text.starts_with(&expected), "{status} {report:?}");
            assert_eq!(world.documents().len(), count);
        }
    }
    // The same of single operations in a request that is well.
    let world = World::furnished();
    let mut settings = world.import_of(world.file("a.jsonl", lines(50)));
    let failed = |answer: Vec<u8>| {
        String::from_utf8(answer).unwrap().replace("\"statusCode\":201", "\"statusCode\":503").into_bytes()
    };
    settings.account.endpoint = meddler(port(&world), once(is_write, failed));
    let report = world.import(&settings);
    assert!(report.is_complete && report.text.starts_with("50 documents written"), "{report:?}");
    // What was there before is a failure still.
    let report = world.import(&world.import_of(world.file("a.jsonl", lines(50))));
    assert!(report.text.contains("50 failed"), "{report:?}");
}

#[test]
fn upserts_of_one_document_are_done_in_order() {
    let world = World::furnished();
    let rows: Vec<String> = (0..3_000)
        .map(|number| format!("{{\"id\":\"{}\",\"pk\":\"a\",\"n\":{number}}}\n", number % 150))
        .collect();
    let mut settings = world.import_of(world.file("a.jsonl", rows.concat()));
    settings.mode = ExistingMode::Upsert;
    settings.workers = 16;
    assert!(world.import(&settings).is_complete);
    let documents = world.documents();
    assert_eq!(documents.len(), 150);
    for document in documents {
        let document: serde_json::Value = serde_json::from_str(&document).unwrap();
        assert!(document["n"].as_u64().unwrap() >= 2_850, "{document}");
    }
}

#[test]
fn a_resume_file_is_of_one_account_container_and_file() {
    let world = World::furnished();
    let rows = lines(5_000);
    let mut settings = world.import_of(world.file("a.jsonl", &rows));
    settings.resume = Some(world.path("resume"));
    world.import(&settings);
    let other = World::furnished();
    let elsewhere = ImportSettings { account: other.account(), ..settings.clone() };
    other.refused(&elsewhere, &["not a resume file of this import", "its endpoint is"]);
    let empty = ImportSettings { empty_as_null: true, ..settings.clone() };
    world.refused(&empty, &["its emptyAsNull is"]);
    // The same length and the same beginning.
    world.file("a.jsonl", rows.replace("\"4999\"", "\"x999\""));
    world.refused(&settings, &["its fileEnd is"]);
    world.file("a.jsonl", &rows);
    world.server.client().expect(204, &Request::new("DELETE", "/dbs/d/colls/c"));
    world.furnish("{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}");
    world.refused(&settings, &["the container was removed since, and made anew"]);
    // A container that the import makes itself is known from then on.
    let world = World::new();
    let mut settings = world.import_of(world.file("a.jsonl", lines(3)));
    settings.create_container = Some("/pk".to_owned());
    settings.resume = Some(world.path("resume"));
    world.import(&settings);
    assert!(world.import(&settings).text.contains("after 3 rows of an earlier run"));
}

/// The end of a pipe to write to, and the path of the other.
fn pipe() -> (std::io::PipeWriter, std::io::PipeReader, PathBuf) {
    let (reader, writer) = std::io::pipe().unwrap();
    let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
    (writer, reader, path)
}

#[test]
fn pipes_are_read_once() {
    let world = World::furnished();
    let through = |text: &str, change: &dyn Fn(&mut ImportSettings)| {
        let (mut writer, reader, path) = pipe();
        writer.write_all(text.as_bytes()).unwrap();
        drop(writer);
        let mut settings = world.import_of(path);
        change(&mut settings);
        let result = run(astrarium_tools::import(&settings)).map_err(|error| error.to_string());
        drop(reader);
        result
    };
    let dry = |settings: &mut ImportSettings| settings.dry_run = true;
    let report = through("{\"id\":\"1\",\"pk\":\"a\"}\nnonsense\n", &dry).unwrap();
    assert!(!report.is_complete && report.text.contains("2 rows, 1 of them good"), "{report:?}");
    assert!(world.documents().is_empty());
    let refused = through("{}", &|settings| settings.resume = Some(world.path("resume"))).unwrap_err();
    assert!(refused.contains("--resume needs a plain file"), "{refused}");
    assert!(through("{\"id\":\"1\",\"pk\":\"a\"}\n", &|_| {}).unwrap().is_complete);
    let csv = |settings: &mut ImportSettings| settings.format = Some(astrarium_tools::FileFormat::Csv);
    assert!(through("id,pk\n2,a\n", &csv).unwrap().is_complete);
    assert_eq!(world.documents().len(), 2);
}

/// Rows of a pipe are there soon though it stays open, and an error ends the import though it stays open.
#[test]
fn pipes_that_stay_open() {
    let world = World::furnished();
    let (mut writer, reader, path) = pipe();
    let settings = world.import_of(path);
    std::thread::scope(|scope| {
        let import = scope.spawn(|| run(astrarium_tools::import(&settings)));
        writer.write_all(b"{\"id\":\"1\",\"pk\":\"a\"}\n").unwrap();
        let began = Instant::now();
        while world.documents().is_empty() && began.elapsed() < Duration::from_mins(5) {
            std::thread::sleep(Duration::from_millis(20));
        }
        // Asserted only after the import can end, or a failure would wait for it for ever.
        let has_arrived = !world.documents().is_empty();
        writer.write_all(b"nonsense\n").unwrap();
        let error = import.join().unwrap().unwrap_err().to_string();
        assert!(has_arrived, "it waits for more rows");
        assert!(
            error.contains("row 2: it is not JSON") && error.contains("1 documents were written"),
            "{error}"
        );
    });
    drop((writer, reader));
}

/// A dump goes on after a split: the container is read anew.
#[test]
fn key_ranges_that_go_during_a_dump() {
    let world = World::furnished();
    world.import(&world.import_of(world.file("a.jsonl", lines(50))));
    let is_feed = |request: &str| request.to_ascii_lowercase().contains("a-im:");
    let mut account = world.account();
    let port = world.server.address().port();
    account.endpoint = meddler(port, once(is_feed, |_| refusal(410)));
    let dump = |account| {
        let settings = DumpSettings { account, file: world.path("a.tar"), only: Vec::new(), quiet: true };
        run(astrarium_tools::dump(&settings)).map_err(|error| error.to_string())
    };
    assert!(dump(account.clone()).unwrap().text.starts_with("50 documents"));
    account.endpoint =
        meddler(port, move |request, answer| if is_feed(request) { refusal(410) } else { answer });
    let refused = dump(account).unwrap_err();
    assert!(refused.contains("change faster than it can be read"), "{refused}");
}

/// What is refused at the destination is kept whole, however long the row.
#[test]
fn failed_rows_are_whole() {
    let world = World::furnished();
    let long = format!("{{\"id\":\"1\",\"pk\":\"a\",\"x\":\"{}\"", "x".repeat(200_000));
    let mut settings = world.import_of(world.file("a.jsonl", format!("{long}\n")));
    settings.failed = Some(world.path("failed"));
    world.import(&settings);
    let row: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(world.path("failed")).unwrap()).unwrap();
    assert_eq!(row["text"], long);
}
