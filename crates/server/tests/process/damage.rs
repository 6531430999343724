//! Damage of a data folder, seen from outside: `verify` tells and changes nothing, `repair` either leaves a folder that is right
//! and takes what was lost again, or says that it cannot and changes nothing.

use crate::program::{Program, run};
use astrarium_testkit::{Client, Request};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Documents of each container.
const COUNT: usize = 24;
const DATABASES: [&str; 2] = ["d", "e"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Harm {
    Missing,
    Empty,
    Half,
    Altered,
}

fn documents(database: &str) -> String {
    format!("/dbs/{database}/colls/c/docs")
}

fn create(database: &str, number: usize) -> Request {
    let body = format!("{{\"id\":\"{number}\",\"pk\":\"a\",\"n\":{number},\"x\":\"{}\"}}", "z".repeat(3_000));
    Request::new("POST", &documents(database)).partition_key("[\"a\"]").body(body)
}

fn read(database: &str, number: usize) -> Request {
    Request::new("GET", &format!("{}/{number}", documents(database))).partition_key("[\"a\"]")
}

/// A folder with containers that have unique keys, with several tables, and a journal whose groups are in no table.
fn victim() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let program = Program::on(folder.path(), &[]);
        let mut client = program.client();
        for database in DATABASES {
            if round == 0 {
                client.expect(201, &Request::new("POST", "/dbs").body(format!("{{\"id\":\"{database}\"}}")));
                let container = "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2},\
                                 \"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/n\"]}]}}";
                client.expect(201, &Request::new("POST", &format!("/dbs/{database}/colls")).body(container));
            }
            for number in round * COUNT / 3..(round + 1) * COUNT / 3 {
                client.expect(201, &create(database, number));
            }
        }
        if round < 2 {
            program.stop();
        }
    }
    folder
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

/// Everything in a folder: files with their content, folders with nothing. The lock tells who looked last, and is left out.
pub(crate) fn content(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_path_buf();
            if path.is_dir() {
                found.insert(name, None);
                folders.push(path);
            } else if name != Path::new("LOCK") {
                found.insert(name, Some(std::fs::read(&path).unwrap()));
            }
        }
    }
    found
}

fn apply(harm: Harm, path: &Path) {
    if path.is_dir() {
        return std::fs::remove_dir_all(path).unwrap();
    }
    let mut bytes = std::fs::read(path).unwrap();
    match harm {
        Harm::Missing => return std::fs::remove_file(path).unwrap(),
        Harm::Empty => bytes.clear(),
        Harm::Half => bytes.truncate(bytes.len() / 2),
        Harm::Altered => {
            let place = bytes.len() / 3;
            if let Some(byte) = bytes.get_mut(place) {
                *byte ^= 0x11;
            }
        }
    }
    std::fs::write(path, bytes).unwrap();
}

/// Queries by way of the index name no document that was lost, whatever there is of it.
fn ask_index(client: &mut Client, what: &str) {
    let conditions = ["c.n = 1", "c.n > 20", "c.n >= 0 ORDER BY c.n DESC", "c.x > 'a' AND c.n < 12"];
    for database in DATABASES {
        for condition in conditions {
            let text = format!("{{\"query\":\"SELECT VALUE c.n FROM c WHERE {condition}\"}}");
            let query = Request::new("POST", &documents(database))
                .header("content-type", "application/query+json")
                .header("x-ms-documentdb-isquery", "true")
                .partition_key("[\"a\"]")
                .body(text);
            let answer = client.ask(&query);
            assert_eq!(answer.status, 200, "{what}: {condition}: {}", answer.text());
        }
    }
}

/// The status of each document, and what is missing created again.
fn create_again(client: &mut Client, what: &str) -> usize {
    let mut lost = 0;
    for database in DATABASES {
        for number in 0..COUNT {
            match client.ask(&read(database, number)).status {
                200 => {}
                404 => {
                    lost += 1;
                    let answer = client.ask(&create(database, number));
                    assert_eq!(answer.status, 201, "{what}: {database} {number}: {}", answer.text());
                }
                other => panic!("{what}: {database} {number} is {other}"),
            }
        }
        let query = Request::new("POST", &documents(database))
            .header("content-type", "application/query+json")
            .header("x-ms-documentdb-isquery", "true")
            .partition_key("[\"a\"]")
            .body("{\"query\":\"SELECT VALUE COUNT(1) FROM c WHERE c.n >= 0\"}");
        let count = client.expect(200, &query).text();
        assert!(count.contains(&format!("[{COUNT}]")), "{what}: {count}");
    }
    lost
}

fn check(harm: Harm, victim: &Path, name: &Path) {
    let what = format!("{} {harm:?}", name.display());
    let folder = tempfile::tempdir().unwrap();
    copy(victim, folder.path());
    apply(harm, &folder.path().join(name));
    let path = folder.path().to_str().unwrap();
    let before = content(folder.path());
    let verified = run(&["verify", "--data", path]);
    assert!(content(folder.path()) == before, "{what}: verify has changed something");
    for word in ["Poisoned", "LsmTree", "Fjall", "panicked", "groups missing", "astrarium-shadow"] {
        assert!(!verified.stderr.contains(word) && !verified.stdout.contains(word), "{what}: {verified:?}");
    }
    if verified.success {
        let program = Program::on(folder.path(), &[]);
        assert_eq!(create_again(&mut program.client(), &what), 0, "{what}: verify did not tell of a loss");
        return;
    }
    let repaired = run(&["repair", "--accept-loss", "--data", path]);
    if !repaired.success {
        let is_told = repaired.stderr.contains("left as it is") || repaired.stderr.contains("FORMAT");
        assert!(is_told, "{what}: {repaired:?}");

        let after = content(folder.path());
        assert!(
            after == before,
            "{what}: repair says that it cannot, and has changed something: {repaired:?}"
        );
        return;
    }
    let program = Program::on(folder.path(), &[]);
    ask_index(&mut program.client(), &what);
    create_again(&mut program.client(), &what);
    program.stop();
    let verified = run(&["verify", "--data", path]);
    assert!(verified.success, "{what}, repaired: {repaired:?} {verified:?}");
}

#[test]
fn every_damage_is_told_and_mended_or_left_alone() {
    let victim = victim();
    // What is inside the engine's own keyspace and that of definitions is tried out with the engine alone.
    let is_tried = |name: &PathBuf| {
        let inner = ["tls", "engine/keyspaces/0/", "engine/keyspaces/1/"];
        !inner.iter().any(|inner| name.starts_with(inner) && name.as_path() != Path::new(inner))
    };
    let names: Vec<_> = content(victim.path()).into_keys().filter(is_tried).collect();
    let others = [Harm::Altered, Harm::Half, Harm::Empty];
    for (index, name) in names.iter().enumerate() {
        check(Harm::Missing, victim.path(), name);
        if !victim.path().join(name).is_dir() {
            check(others[index % others.len()], victim.path(), name);
        }
    }
    // The one that repairing is mostly for.
    for harm in others {
        check(harm, victim.path(), Path::new("engine/0.jnl"));
    }
}

#[test]
fn a_damaged_index_is_repaired_offline() {
    let folder = victim();
    let path = folder.path().to_str().unwrap();
    let is_run = |name: &PathBuf| name.extension().is_some_and(|extension| extension == "run");
    let runs: Vec<_> = content(folder.path()).into_keys().filter(is_run).collect();
    assert!(!runs.is_empty());
    for name in runs {
        apply(Harm::Altered, &folder.path().join(name));
    }
    assert!(!run(&["verify", "--data", path]).success);
    let repaired = run(&["repair", "--index", "--data", path]);
    assert!(repaired.success && repaired.stdout.contains("built anew"), "{repaired:?}");
    let verified = run(&["verify", "--data", path]);
    assert!(verified.success, "{verified:?}");
    let program = Program::on(folder.path(), &[]);
    assert_eq!(create_again(&mut program.client(), "a repaired index"), 0);
}

/// A copy that nobody may write to, not even the super user.
#[test]
fn a_copy_that_may_only_be_read_is_verified() {
    let victim = victim();
    let mounted = |folder: &Path| {
        let bind = std::process::Command::new("mount").arg("--bind").arg(folder).arg(folder).output();
        let remount =
            std::process::Command::new("mount").args(["-o", "remount,ro,bind"]).arg(folder).output();
        [bind, remount].into_iter().all(|done| done.is_ok_and(|done| done.status.success()))
    };
    let is_mounted = mounted(victim.path());
    if !is_mounted {
        println!("mounting is not permitted: only checked that nothing changes");
    }
    let before = content(victim.path());
    let verified = run(&["verify", "--data", victim.path().to_str().unwrap()]);
    let after = content(victim.path());
    if is_mounted {
        let _ = std::process::Command::new("umount").arg(victim.path()).output();
    }
    assert!(verified.success, "{verified:?}");
    assert!(before == after);
}
