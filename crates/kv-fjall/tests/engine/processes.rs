//! Other processes: one that holds the folder, one that is killed, one whose disk fails.
//!
//! The test program starts itself with the name of one test and a folder in the environment; without the folder that
//! test does nothing.

use crate::fixture::{SHARD, count, open, small_set, view, write};
use astrarium_kv::contract::{block_on, shard_key};
use astrarium_kv::{Engine, Error, Space};
use astrarium_kv_fjall::{FjallEngine, OpenError, Options};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const FOLDER: &str = "ASTRARIUM_TEST_FOLDER";

fn start(mut command: Command, name: &str, folder: &Path) -> Child {
    let test = format!("processes::{name}");
    command.args(["--exact", &test, "--nocapture", "--test-threads", "1"]).env(FOLDER, folder);
    command.stdout(Stdio::piped()).spawn().unwrap()
}

fn this_program() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

/// The numbers that the child says were acknowledged.
fn acknowledged(child: &mut Child) -> impl Iterator<Item = u64> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    lines.filter_map(|line| line.strip_prefix("acknowledged ").and_then(|number| number.parse().ok()))
}

#[test]
fn child_writes_until_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let engine = FjallEngine::open(Path::new(&folder), small_set()).unwrap();
    for number in count(&engine) + 1.. {
        write(&engine, number, 3000).unwrap();
        println!("acknowledged {number}");
        std::io::stdout().flush().unwrap();
    }
}

#[test]
fn a_killed_process_loses_nothing_and_leaves_no_lock() {
    let folder = tempfile::tempdir().unwrap();
    let mut expected = 0;
    for _ in 0..6 {
        let mut child = start(this_program(), "child_writes_until_killed", folder.path());
        let mut numbers = acknowledged(&mut child);
        expected = numbers.by_ref().nth(60).unwrap();
        let error = FjallEngine::open(folder.path(), Options::default()).err().unwrap();
        let is_locked =
            matches!(error, OpenError::Locked { holder: Some(holder), .. } if holder == child.id());
        assert!(is_locked, "another process is named: {error}");
        child.kill().unwrap();
        child.wait().unwrap();
        expected = numbers.last().unwrap_or(expected);
    }
    let engine = open(folder.path());
    let found = count(&engine);
    assert!(found >= expected, "{expected} were acknowledged, {found} are there");
    engine.check_files().unwrap();
}

#[test]
fn child_writes_until_the_disk_fails() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let engine = open(Path::new(&folder));
    let mut number = 1;
    let error = loop {
        match write(&engine, number, 30_000) {
            Ok(()) => println!("acknowledged {number}"),
            Err(error) => break error,
        }
        number += 1;
    };
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert!(engine.write_refusal().is_some());
    assert!(matches!(write(&engine, number, 1), Err(Error::Unavailable { .. })), "nothing is tried again");
    let last = block_on(view(&engine, SHARD).get(Space::Meta, &shard_key(SHARD, b"last"))).unwrap().unwrap();
    assert_eq!(last[..], (number - 1).to_be_bytes(), "reads go on, and show what was acknowledged");
    drop(engine);
    println!("ended well");
}

/// A limit on the size of files stands for the disk: the journal cannot grow past it.
#[cfg(unix)]
#[test]
fn a_failing_disk_stops_writes_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    // A closed engine has an empty journal; a new one would be too long for the limit at once.
    open(folder.path()).close().unwrap();
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg("trap '' XFSZ; ulimit -f 2000; exec \"$0\" \"$@\"")
        .arg(std::env::current_exe().unwrap());
    let mut child = start(shell, "child_writes_until_the_disk_fails", folder.path());
    let expected = acknowledged(&mut child).last().unwrap();
    assert!(child.wait().unwrap().success());
    assert!(expected > 10);
    let found = count(&open(folder.path()));
    assert!(found == expected || found == expected + 1, "{expected} were acknowledged, {found} are there");
}
