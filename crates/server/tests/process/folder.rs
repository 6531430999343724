//! Data folders that are taken, of a newer format, foreign, or damaged: refused in words, and left as they are.

use crate::program::{Program, create, read, refused, run};
use astrarium_testkit::Request;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every file of a folder with its content.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(content(&path));
        } else {
            files.insert(path.clone(), std::fs::read(path).unwrap());
        }
    }
    files
}

#[test]
fn a_second_process_is_refused_and_the_first_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let first = Program::on(folder.path(), &[]);
    first.furnish();
    let etag = first.client().expect(201, &create("1", "")).header("etag").unwrap().to_owned();
    let holder = first.process_id().to_string();
    for arguments in [
        vec!["serve", "--listen", "127.0.0.1:0", "--data", path],
        vec!["verify", "--data", path],
        vec!["repair", "--data", path],
        vec!["repair", "--accept-loss", "--data", path],
    ] {
        refused(&arguments, &[path, &holder]);
    }
    let answer = first.client().expect(200, &read("1"));
    assert_eq!(answer.header("etag"), Some(etag.as_str()));
    first.client().expect(201, &create("2", ""));
    first.stop();
    // Free again once the first has ended.
    let second = Program::on(folder.path(), &[]);
    assert_eq!(second.client().expect(200, &read("1")).header("etag"), Some(etag.as_str()));
    second.client().expect(200, &read("2"));
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let program = Program::on(folder.path(), &[]);
    program.furnish();
    program.client().expect(201, &create("1", ""));
    program.stop();
    let format = folder.path().join("FORMAT");
    let own = std::fs::read_to_string(&format).unwrap();
    std::fs::write(&format, "astrarium storage format 4711\n").unwrap();
    let mut before = content(folder.path());
    refused(&["serve", "--listen", "127.0.0.1:0", "--data", path], &["4711"]);
    refused(&["verify", "--data", path], &["4711"]);
    let mut after = content(folder.path());
    // Whoever tries to open a folder may leave a number in the lock.
    for files in [&mut before, &mut after] {
        files.remove(&folder.path().join("LOCK"));
    }
    assert_eq!(before, after);
    std::fs::write(&format, own).unwrap();
    Program::on(folder.path(), &[]).client().expect(200, &read("1"));
}

#[test]
fn a_folder_of_somebody_else_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("letter.txt"), "dear").unwrap();
    let before = content(folder.path());
    let path = folder.path().to_str().unwrap();
    refused(&["serve", "--listen", "127.0.0.1:0", "--data", path], &[path]);
    refused(&["verify", "--data", path], &[path]);
    assert_eq!(content(folder.path()), before);
    let file = folder.path().join("letter.txt");
    refused(&["serve", "--listen", "127.0.0.1:0", "--data", file.to_str().unwrap()], &["letter.txt"]);
    let missing = folder.path().join("missing");
    refused(&["verify", "--data", missing.to_str().unwrap()], &["missing"]);
    assert!(!missing.exists(), "verify makes no folder");
}

/// A life: made, verified, opened again, everything there.
#[test]
fn what_was_stored_is_there_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let program = Program::on(folder.path(), &[]);
    program.furnish();
    let mut client = program.client();
    for number in 0..50 {
        client.expect(201, &create(&number.to_string(), "x"));
    }
    let feed = Request::new("GET", "/dbs/d/colls/c/docs").header("x-ms-max-item-count", "20");
    let first = client.expect(200, &feed);
    let token = first.header("x-ms-continuation").unwrap().to_owned();
    let container = client.expect(200, &Request::new("GET", "/dbs/d/colls/c"));
    program.stop();

    let verified = run(&["verify", "--data", path]);
    assert!(verified.success && verified.stdout.contains("d/c: 50 documents"), "{verified:?}");
    assert!(verified.stdout.contains("no problems found"), "{verified:?}");

    let program = Program::on(folder.path(), &[]);
    let mut client = program.client();
    assert_eq!(client.expect(200, &Request::new("GET", "/dbs/d/colls/c")).body, container.body);
    assert_eq!(client.expect(200, &feed).body, first.body);
    // A continuation survives a restart.
    let next = client.expect(200, &feed.header("x-ms-continuation", &token)).text();
    assert!(next.contains("\"id\":\"20\"") && next.contains("\"_count\":20"), "{next}");
}
