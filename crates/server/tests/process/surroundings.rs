//! What happens around a server: few descriptors, a data folder that is removed, rot in a stored file.

use crate::program::{Program, create, read};
use astrarium_testkit::Request;
use astrarium_testkit::http::Connection;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest time until a server has noticed something.
const PATIENCE: Duration = Duration::from_mins(5);

#[track_caller]
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Sets how many files a running server may have open; gives what it was.
fn limit_files(program: &Program, count: u64) -> Rlimit {
    let id = i32::try_from(program.process_id()).ok().and_then(Pid::from_raw).unwrap();
    let maximum = getrlimit(Resource::Nofile).maximum;
    prlimit(Some(id), Resource::Nofile, Rlimit { current: Some(count), maximum }).unwrap()
}

fn open_files(program: &Program) -> u64 {
    std::fs::read_dir(format!("/proc/{}/fd", program.process_id())).unwrap().count() as u64
}

#[test]
fn idle_connections_leave_storage_its_descriptors() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::under_limit(256, folder.path());
    program.furnish();
    let mut client = program.client();
    client.expect(201, &create("first", ""));
    // More than there are descriptors; those that do not fit are closed at once.
    let idle: Vec<_> = (0..400).filter_map(|_| Connection::open(program.address).ok()).collect();
    wait_until("connections are not taken", || open_files(&program) > 64);
    let filler = "x".repeat(200_000);
    for number in 0..200 {
        client.expect(201, &create(&number.to_string(), &filler));
    }
    assert!(open_files(&program) < 250, "{} files are open", open_files(&program));
    assert_eq!(client.expect(200, &Request::new("GET", "/ready")).text(), "ready\n");
    drop(idle);
    wait_until("new connections are not taken", || {
        Connection::open(program.address).is_ok_and(|mut connection| {
            let bytes = program.client().bytes(&Request::new("GET", "/alive"));
            connection.exchange("GET", &bytes).is_ok_and(|answer| answer.status == 200)
        })
    });
    let ended = program.stop();
    assert!(ended.stderr.contains("limit of open files"), "{}", ended.stderr);
}

/// Storage that met the end of descriptors takes writes again when there are some, without a restart.
#[test]
fn a_lack_of_descriptors_heals() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::on(folder.path(), &["--cache-mb", "8"]);
    program.furnish();
    let mut client = program.client();
    let filler: String =
        (0..400_000_u32).map(|number| char::from(b'a' + (number % 1009 * number % 23) as u8)).collect();
    client.expect(201, &create("first", &filler));
    let before = limit_files(&program, open_files(&program));
    let mut acknowledged = Vec::new();
    let refused = (0..2_000).any(|number| {
        let id = format!("n{number}");
        match client.ask(&create(&id, &filler)).status {
            201 => acknowledged.push(id),
            503 => return true,
            other => panic!("{other}"),
        }
        false
    });
    assert!(refused, "storage never needed a descriptor");
    let told = client.expect(503, &Request::new("GET", "/ready")).text();
    assert!(!told.contains("Poisoned") && !told.contains("Error"), "{told}");
    client.expect(200, &read("first"));
    limit_files(&program, before.current.unwrap_or(1024));
    wait_until("writes do not go on", || program.client().ask(&create("healed", "")).status == 201);
    for id in &acknowledged {
        client.expect(200, &read(id));
    }
    assert_eq!(client.expect(200, &Request::new("GET", "/ready")).text(), "ready\n");
    program.stop();
    let path = folder.path().to_str().unwrap();
    let verified = crate::program::run(&["verify", "--data", path]);
    assert!(verified.success, "{verified:?}");
}

#[test]
fn a_removed_folder_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let program = Program::on(&data, &[]);
    program.furnish();
    program.client().expect(201, &create("1", ""));
    std::fs::remove_dir_all(&data).unwrap();
    wait_until("nobody notices that the folder is gone", || {
        let answer = program.client().ask(&Request::new("GET", "/ready"));
        answer.status == 503 && answer.text().contains("was removed")
    });
    let answer = program.client().expect(503, &create("2", ""));
    assert!(answer.text().contains("was removed"), "{}", answer.text());
    // A folder that comes back is another one.
    std::fs::create_dir(&data).unwrap();
    program.client().expect(503, &create("2", ""));
    program.client().expect(200, &Request::new("GET", "/alive"));
}

fn tables(folder: &Path) -> Vec<PathBuf> {
    // The second keyspace holds documents.
    let folder = folder.join("engine/keyspaces/2/tables");
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn rot_in_a_table_is_told_with_the_containers_it_touches() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::on(folder.path(), &[]);
    program.furnish();
    let filler = "y".repeat(20_000);
    for number in 0..20 {
        program.client().expect(201, &create(&number.to_string(), &filler));
    }
    program.stop();
    let table = tables(folder.path()).pop().unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[200] ^= 1;
    std::fs::write(&table, &bytes).unwrap();

    let program = Program::on(folder.path(), &[]);
    wait_until("nobody is told of the damage", || {
        let told = program.client().ask(&Request::new("GET", "/ready")).text();
        told.contains("d/c") && told.contains("engine/keyspaces/2/tables") && told.contains("repair")
    });
    let metrics = program.client().expect(200, &Request::new("GET", "/metrics")).text();
    assert!(metrics.contains("astrarium_storage_damages 1"), "{metrics}");
    let statuses: Vec<_> =
        (0..20).map(|number| program.client().ask(&read(&number.to_string())).status).collect();
    assert!(statuses.contains(&500), "a read of what is damaged says so: {statuses:?}");
    assert!(statuses.contains(&200), "a read of the rest goes on: {statuses:?}");
    assert!(!statuses.contains(&404), "nothing seems never to have been: {statuses:?}");
    program.client().expect(201, &create("new", ""));
}
