//! A full disk: writes are refused with 503, reads go on, nothing acknowledged is lost, and space heals it.

use crate::program::{Program, create, read};
use astrarium_testkit::Request;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A reserve that no disk has: more than sixteen thousand terabytes.
const NOBODY_HAS_SO_MUCH: &str = "17179869184";

#[test]
fn below_the_reserve_writes_are_refused_and_reads_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::on(folder.path(), &["--reserve-mb", "1"]);
    program.furnish();
    let etag = program.client().expect(201, &create("1", "")).header("etag").unwrap().to_owned();
    program.stop();

    let program = Program::on(folder.path(), &["--reserve-mb", NOBODY_HAS_SO_MUCH]);
    let mut client = program.client();
    let replace = Request::new("PUT", "/dbs/d/colls/c/docs/1").partition_key("[\"a\"]");
    for write in [
        create("2", ""),
        replace.body("{\"id\":\"1\",\"pk\":\"a\",\"n\":1}"),
        Request::new("POST", "/dbs").body("{\"id\":\"e\"}"),
        Request::new("POST", "/dbs/d/users").body("{\"id\":\"u\"}"),
    ] {
        let answer = client.expect(503, &write);
        assert!(answer.text().starts_with("{\"code\":\"ServiceUnavailable\""), "{}", answer.text());
        assert!(answer.text().contains("reserve"), "{}", answer.text());
    }
    assert_eq!(client.expect(200, &read("1")).header("etag"), Some(etag.as_str()));
    client.expect(404, &read("2"));
    client.expect(200, &Request::new("GET", "/dbs/d/colls/c/docs"));
    client.expect(404, &Request::new("GET", "/dbs/e"));
    // Whoever watches the server is told; it is alive all the same.
    let ready = client.expect(503, &Request::new("GET", "/ready"));
    assert!(ready.text().contains("reserve"), "{}", ready.text());
    client.expect(200, &Request::new("GET", "/alive"));
    program.stop();

    let program = Program::on(folder.path(), &["--reserve-mb", "1"]);
    assert_eq!(program.client().expect(200, &read("1")).header("etag"), Some(etag.as_str()));
    program.client().expect(201, &create("2", ""));
}

/// A small disk of its own, if the system lets us have one.
struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    fn mount(megabytes: u32) -> Option<SmallDisk> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={megabytes}m");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output();
        match mounted {
            Ok(output) if output.status.success() => Some(SmallDisk { folder }),
            Ok(output) => {
                println!(
                    "skipped: mounting is not permitted: {}",
                    String::from_utf8_lossy(&output.stderr).trim()
                );
                None
            }
            Err(error) => {
                println!("skipped: there is no mount command: {error}");
                None
            }
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Takes space away that can be given back.
    fn ballast(&self, megabytes: usize) -> PathBuf {
        let path = self.folder.path().join("ballast");
        std::fs::write(&path, vec![1; megabytes << 20]).unwrap();
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.folder.path()).output();
    }
}

/// Writes items of a quarter of a megabyte until they stay refused; gives the ids of those that were acknowledged.
///
/// A first refusal may pass: the engine frees its journal once what it holds is written elsewhere.
fn fill(program: &Program, prefix: &str) -> Vec<String> {
    let mut client = program.client();
    let mut acknowledged = Vec::new();
    // Not compressible, so that each item takes its space.
    let mut state = 88_172_645_463_325_252_u64;
    let mut refused_count = 0;
    for number in 0..4_000 {
        let mut filler = String::with_capacity(256 << 10);
        while filler.len() < 256 << 10 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let _ = write!(filler, "{state:016x}");
        }
        let id = format!("{prefix}{number}");
        let answer = client.ask(&create(&id, &filler));
        match answer.status {
            201 => {
                acknowledged.push(id);
                refused_count = 0;
            }
            503 if refused_count == 8 => return acknowledged,
            503 => {
                refused_count += 1;
                std::thread::sleep(Duration::from_millis(100));
            }
            _ => panic!("{} {}", answer.status, answer.text()),
        }
    }
    panic!("the disk never filled");
}

fn assert_all_there(program: &Program, ids: &[String]) {
    let mut client = program.client();
    for id in ids {
        client.expect(200, &read(id));
    }
}

/// The reserve stops writes in time, and they go on by themselves when there is space again.
#[test]
fn a_disk_that_fills_up_and_empties() {
    let Some(disk) = SmallDisk::mount(400) else { return };
    // The engine moves up to a buffer's worth of data at a time, so a smaller reserve could be jumped over.
    let program = Program::on(&disk.data(), &["--reserve-mb", "128", "--cache-mb", "8"]);
    program.furnish();
    let ballast = disk.ballast(150);
    let ids = fill(&program, "before-");
    assert!(ids.len() > 10, "only {} items fitted", ids.len());
    assert_all_there(&program, &ids);
    program.client().expect(503, &Request::new("GET", "/ready"));
    // Deleting is let through: it is how space comes back.
    let gone = Request::new("DELETE", &format!("/dbs/d/colls/c/docs/{}", ids[0])).partition_key("[\"a\"]");
    program.client().expect(204, &gone);

    std::fs::remove_file(ballast).unwrap();
    let began = Instant::now();
    while program.client().ask(&create("after", "")).status != 201 {
        assert!(began.elapsed() < Duration::from_mins(5), "writes do not go on though there is space");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_all_there(&program, &ids[1..]);
    program.stop();
    let program = Program::on(&disk.data(), &["--reserve-mb", "1", "--cache-mb", "8"]);
    assert_all_there(&program, &ids[1..]);
}

/// Without a reserve the disk is met at its very end: no write is acknowledged that is not there afterwards.
#[test]
fn a_disk_without_any_space_left() {
    let Some(disk) = SmallDisk::mount(256) else { return };
    let ballast = disk.ballast(100);
    let program = Program::on(&disk.data(), &["--reserve-mb", "0", "--cache-mb", "8"]);
    program.furnish();
    let ids = fill(&program, "full-");
    assert!(ids.len() > 10, "only {} items fitted", ids.len());
    assert_all_there(&program, &ids);
    let listed = program.client().expect(200, &Request::new("GET", "/dbs/d/colls"));
    assert!(listed.text().contains("\"id\":\"c\""));
    std::fs::remove_file(ballast).unwrap();
    let began = Instant::now();
    while program.client().ask(&create("healed", "")).status != 201 {
        assert!(began.elapsed() < Duration::from_mins(5), "writes do not go on though there is space");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_all_there(&program, &ids);
    drop(program);

    let program = Program::on(&disk.data(), &["--reserve-mb", "0", "--cache-mb", "8"]);
    assert_all_there(&program, &ids);
    program.client().expect(201, &create("after", ""));
    verify(&disk.data(), program);
}

fn verify(data: &Path, program: Program) {
    program.stop();
    let verified = crate::program::run(&["verify", "--data", data.to_str().unwrap()]);
    assert!(verified.success, "{verified:?}");
}
