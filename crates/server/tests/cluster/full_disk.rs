//! The disk of the store is full: writes are refused with a clear word, reads go on as far as PostgreSQL does, and space heals it.

use crate::site::{Plan, Site, seed};
use crate::store_outage::wait_for_writes;
use crate::story::Story;
use astrarium_postgres_fixture::{Cluster, Settings};
use astrarium_testkit::Request;
use serde_json::json;
use std::fmt::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Room for PostgreSQL, its log, and some documents.
const DISK_MEGABYTES: u32 = 220;
/// Room for tables alone.
const TABLES_MEGABYTES: u32 = 64;
/// What is left when the disk is about to be full.
const LEFT_MEGABYTES: u64 = 12;
const DOCUMENT_BYTES: usize = 200 << 10;

/// Everything is on the full disk, PostgreSQL's log too, without which it cannot go on at all.
#[test]
fn a_full_disk_refuses_writes_and_heals() {
    let Some(disk) = SmallDisk::mount(DISK_MEGABYTES) else { return };
    let settings = Settings::default().durable().within(disk.folder.path());
    // The log must not take the disk by itself.
    let settings =
        settings.with("wal_keep_size", "0").with("max_wal_size", "48MB").with("min_wal_size", "32MB");
    let settings = settings.with("checkpoint_timeout", "30s").with("wal_recycle", "off");
    let Some(site) = Site::start(Plan { servers: 2, settings, ..Plan::default() }) else { return };
    fill_and_heal(site, &disk);
}

/// Only tables are on the full disk: PostgreSQL goes on, and so do reads.
#[test]
fn full_tables_refuse_writes_and_heal() {
    let Some(disk) = SmallDisk::mount(TABLES_MEGABYTES) else { return };
    let folder = disk.folder.path().join("tables");
    std::fs::create_dir(&folder).expect("make a folder for tables");
    let prepare = Box::new(move |store: &Cluster| {
        let owner = std::fs::metadata(store.data()).expect("look at the data");
        chown(&folder, Some(owner.uid()), Some(owner.gid())).expect("give PostgreSQL a folder");
        let create = format!("CREATE TABLESPACE small LOCATION '{}'", folder.display());
        store.psql(&create).expect("make a tablespace");
        store.psql("ALTER DATABASE postgres SET default_tablespace = small").expect("use it for all tables");
    });
    let Some(site) = Site::start(Plan { servers: 2, prepare, ..Plan::default() }) else { return };
    fill_and_heal(site, &disk);
}

fn fill_and_heal(site: Site, disk: &SmallDisk) {
    let mut story = Story::begin(&site, seed());
    make_container(&site);
    story.live(&site, |pulse| {
        std::thread::sleep(Duration::from_secs(1));
        let ballast = disk.take_all_but(LEFT_MEGABYTES);
        let kept = fill(&site);
        println!("{} large documents until the disk was full", kept.len());
        read_while_full(&site, &kept);
        std::fs::remove_file(ballast).expect("give the space back");
        let healed = Instant::now();
        if site.store.psql("SELECT 1").is_err() {
            println!("PostgreSQL has given up, and is started again");
            site.store.start_again().expect("PostgreSQL starts again");
        }
        wait_for_writes(&site, pulse, healed);
        for id in &kept {
            site.client().expect(200, &read(id));
        }
    });
    story.end(site);
}

fn make_container(site: &Site) {
    let mut client = site.client();
    client.expect(201, &Request::new("POST", "/dbs").body("{\"id\":\"large\"}"));
    let definition = json!({"id": "c", "partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2}});
    client.expect(201, &Request::new("POST", "/dbs/large/colls").body(definition.to_string()));
}

fn read(id: &str) -> Request {
    Request::new("GET", &format!("/dbs/large/colls/c/docs/{id}")).partition_key(&format!("[\"{id}\"]"))
}

/// Writes large documents until they stay refused; gives the ids of those that were acknowledged.
fn fill(site: &Site) -> Vec<String> {
    let (mut kept, mut refused) = (Vec::new(), 0);
    // Not compressible, so that each takes its space.
    let mut state = 88_172_645_463_325_252_u64;
    for number in 0..2_000 {
        let mut filler = String::with_capacity(DOCUMENT_BYTES + 16);
        while filler.len() < DOCUMENT_BYTES {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let _ = write!(filler, "{state:016x}");
        }
        let id = format!("large-{number}");
        let body = json!({"id": id, "filler": filler}).to_string();
        let create = Request::new("POST", "/dbs/large/colls/c/docs").partition_key(&format!("[\"{id}\"]"));
        let began = Instant::now();
        let answer = site.client().ask(&create.body(body));
        let time = began.elapsed();
        if answer.status == 201 {
            refused = 0;
            kept.push(id);
            continue;
        }
        println!("refused after {time:?}: {} {}", answer.status, answer.text());
        assert_eq!(answer.status, 503, "{}", answer.text());
        refused += 1;
        if refused == 5 {
            return kept;
        }
    }
    panic!("the disk is never full");
}

/// Reads are answered, unless PostgreSQL itself has gone.
fn read_while_full(site: &Site, kept: &[String]) {
    let (mut served, mut refused) = (0, 0);
    for id in kept.iter().take(20) {
        match site.client().ask(&read(id)).status {
            200 => served += 1,
            503 => refused += 1,
            other => panic!("a read is answered {other} while the disk is full"),
        }
    }
    println!("{served} reads served and {refused} refused while the disk was full");
    assert!(served > 0 || site.store.psql("SELECT 1").is_err(), "PostgreSQL answers, but nobody can read");
}

/// A small disk of its own, if the system lets us have one.
struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    fn mount(megabytes: u32) -> Option<SmallDisk> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // Whom PostgreSQL runs as may pass.
        let open = std::fs::Permissions::from_mode(0o755);
        let size = format!("size={megabytes}m");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output();
        match mounted {
            Ok(output) if output.status.success() => {
                std::fs::set_permissions(folder.path(), open).expect("open the disk");
                Some(SmallDisk { folder })
            }
            Ok(output) => {
                let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                eprintln!("skipped: mounting is not permitted: {words}");
                None
            }
            Err(error) => {
                eprintln!("skipped: there is no mount command: {error}");
                None
            }
        }
    }

    /// Takes space away that can be given back.
    fn take_all_but(&self, megabytes: u64) -> PathBuf {
        let state = rustix::fs::statvfs(self.folder.path()).expect("look at the disk");
        let free = (state.f_bavail * state.f_frsize) >> 20;
        let path = self.folder.path().join("ballast");
        let take = usize::try_from(free.saturating_sub(megabytes)).expect("a small disk");
        std::fs::write(&path, vec![1; take << 20]).expect("take space");
        println!("{free} MB were free, {take} are taken");
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.folder.path()).output();
    }
}
