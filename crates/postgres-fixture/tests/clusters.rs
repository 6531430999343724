//! Clusters start, stop, crash, freeze and follow each other as their methods say, and leave nothing behind.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use astrarium_postgres_fixture::{Cluster, Installation, Settings, urls};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const TIME_MAX: Duration = Duration::from_mins(5);
/// Set for the copy of this program that is killed.
const VICTIM: &str = "ASTRARIUM_POSTGRES_FIXTURE_VICTIM";

#[test]
fn answers_and_ends() {
    let Some(installation) = installation() else { return };
    assert!(installation.version().unwrap().starts_with("postgres (PostgreSQL)"));
    let settings = Settings::default().with("work_mem", "5MB").with("application_name", "it's");
    let cluster = Cluster::start(&installation, settings).unwrap();
    assert_eq!(cluster.url(), format!("postgres://postgres@127.0.0.1:{}/postgres", cluster.port()));
    let shown =
        "SELECT current_setting('fsync'), current_setting('max_connections'), current_setting('work_mem')";
    assert_eq!(cluster.psql(shown).unwrap(), "off|800|5MB");
    assert_eq!(cluster.psql("SELECT n FROM generate_series(1, 3) AS n").unwrap(), "1\n2\n3");
    let refused = cluster.psql("SELECT * FROM missing").unwrap_err().to_string();
    assert!(refused.contains("relation \"missing\" does not exist"), "{refused}");
    assert!(cluster.log_tail().contains("relation \"missing\" does not exist"));
    let (processes, data) = (cluster.processes(), cluster.data().to_owned());
    assert!(processes.len() > 3, "{processes:?}");
    drop(cluster);
    assert_gone(&processes, &data);
}

#[test]
fn two_are_apart_and_sync_if_told() {
    let Some(installation) = installation() else { return };
    let place = tempfile::tempdir().unwrap();
    let first = Cluster::start(&installation, Settings::default()).unwrap();
    let second = Cluster::start(&installation, Settings::default().durable().within(place.path())).unwrap();
    assert_ne!(first.port(), second.port());
    assert!(second.data().starts_with(place.path()), "{:?}", second.data());
    assert_eq!(second.psql("SHOW fsync").unwrap(), "on");
    first.psql("CREATE TABLE here (n int)").unwrap();
    assert!(second.psql("SELECT * FROM here").is_err());
}

#[test]
fn a_setting_that_is_refused_is_told() {
    let Some(installation) = installation() else { return };
    let refused = Cluster::start(&installation, Settings::default().with("shared_buffers", "many"));
    let refused = refused.err().expect("it cannot start").to_string();
    assert!(refused.contains("invalid value for parameter \"shared_buffers\""), "{refused}");
}

#[test]
fn what_was_committed_outlives_stops_and_kills() {
    let Some(installation) = installation() else { return };
    let cluster = Cluster::start(&installation, Settings::default().durable()).unwrap();
    cluster.psql("CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)").unwrap();
    let before = (cluster.port(), cluster.processes());
    assert!(cluster.start_again().is_err(), "it is running");
    cluster.stop().unwrap();
    assert!(cluster.psql("SELECT 1").is_err());
    assert!(before.1.iter().all(|process| !is_running(*process)));
    cluster.start_again().unwrap();
    cluster.psql("INSERT INTO kept VALUES (2)").unwrap();
    // A busy backend does not notice that its postmaster is gone.
    let mut busy =
        spawn_psql(&installation, &cluster, "SELECT count(*) FROM generate_series(1, 1000000000000)");
    wait_until("the query runs", || {
        cluster.psql("SELECT count(*) FROM pg_stat_activity WHERE state = 'active'").unwrap() == "2"
    });
    let processes = cluster.processes();
    cluster.kill().unwrap();
    assert!(processes.iter().all(|process| !is_running(*process)));
    assert!(!busy.wait().unwrap().success());
    assert!(cluster.processes().is_empty());
    cluster.start_again().unwrap();
    assert!(cluster.log_tail().contains("was not properly shut down"), "{}", cluster.log_tail());
    assert_eq!(cluster.psql("SELECT n FROM kept ORDER BY n").unwrap(), "1\n2");
    assert_eq!(cluster.port(), before.0);
    // Killed and dropped: nothing is left either, nor the shared memory that a kill leaves.
    let lock = std::fs::read_to_string(cluster.data().join("postmaster.pid")).unwrap();
    let segment = lock.lines().nth(6).unwrap().split_whitespace().nth(1).unwrap().to_owned();
    assert!(has_segment(&segment));
    let (processes, data) = (cluster.processes(), cluster.data().to_owned());
    cluster.kill().unwrap();
    assert!(has_segment(&segment));
    drop(cluster);
    assert_gone(&processes, &data);
    assert!(!has_segment(&segment));
}

#[test]
fn frozen_it_does_nothing_and_thawed_it_goes_on() {
    let Some(installation) = installation() else { return };
    let cluster = Cluster::start(&installation, Settings::default()).unwrap();
    cluster.freeze().unwrap();
    assert!(cluster.processes().iter().all(|process| state(*process) != Some('S')));
    assert_eq!(state(cluster.processes()[0]), Some('T'));
    let mut waiting = spawn_psql(&installation, &cluster, "SELECT 1");
    let still = Instant::now();
    while still.elapsed() < Duration::from_millis(300) {
        assert!(waiting.try_wait().unwrap().is_none(), "a frozen cluster answered");
        std::thread::sleep(Duration::from_millis(10));
    }
    cluster.thaw();
    assert!(waiting.wait().unwrap().success());
    // Frozen ones can be killed, started again, and dropped.
    cluster.freeze().unwrap();
    cluster.kill().unwrap();
    cluster.start_again().unwrap();
    cluster.freeze().unwrap();
    let (processes, data) = (cluster.processes(), cluster.data().to_owned());
    drop(cluster);
    assert_gone(&processes, &data);
}

#[test]
fn a_standby_follows_waits_and_takes_over() {
    let Some(installation) = installation() else { return };
    let primary = Cluster::start(&installation, Settings::default()).unwrap();
    primary.psql("CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)").unwrap();
    let standby = primary.standby().unwrap();
    assert_ne!(primary.port(), standby.port());
    primary.make_synchronous(standby.name()).unwrap();
    // A second one copies what the first waits for, and must not wait for itself later.
    let second = primary.standby().unwrap();
    primary.psql("INSERT INTO kept VALUES (2)").unwrap();
    wait_until("the standby has it", || standby.psql("SELECT count(*) FROM kept").unwrap() == "2");
    assert!(standby.psql("INSERT INTO kept VALUES (3)").unwrap_err().to_string().contains("read-only"));
    // Nothing is committed without the standby.
    standby.freeze().unwrap();
    let mut waiting = spawn_psql(&installation, &primary, "INSERT INTO kept VALUES (4)");
    wait_until("the commit waits", || {
        primary.psql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'").unwrap() == "1"
    });
    assert!(waiting.try_wait().unwrap().is_none());
    standby.thaw();
    assert!(waiting.wait().unwrap().success());
    primary.kill().unwrap();
    standby.promote().unwrap();
    standby.psql("INSERT INTO kept VALUES (5)").unwrap();
    assert_eq!(standby.psql("SELECT n FROM kept ORDER BY n").unwrap(), "1\n2\n4\n5");
    second.promote().unwrap();
    second.psql("INSERT INTO kept VALUES (6)").unwrap();
    let url = urls(&[&primary, &standby]);
    let (first, other) = (primary.port(), standby.port());
    let hosts = format!("127.0.0.1:{first},127.0.0.1:{other}");
    assert_eq!(url, format!("postgres://postgres@{hosts}/postgres?target_session_attrs=read-write"));
    let mut reached = Command::new(installation.folder().join("psql"));
    let reached = reached.args(["-X", "-A", "-t", "-d", &url, "-c", "SHOW port"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&reached.stdout).trim(), other.to_string());
}

/// This program is started once more, as a victim that starts a cluster and is killed; the cluster must end with it.
#[test]
fn nothing_outlives_a_killed_program() {
    let Some(installation) = installation() else { return };
    if std::env::var_os(VICTIM).is_some() {
        let cluster = Cluster::start(&installation, Settings::default()).unwrap();
        println!("victim {:?} {}", cluster.processes(), cluster.data().display());
        // Until it is killed.
        loop {
            std::thread::park();
        }
    }
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "nothing_outlives_a_killed_program", "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find_map(|line| Some(line.split_once("victim [")?.1.to_owned())).expect("it starts");
    let (processes, data) = line.split_once("] ").unwrap();
    let processes: Vec<u32> = processes.split(", ").map(|number| number.parse().unwrap()).collect();
    let was_there = is_running(processes[0]) && Path::new(data).exists();
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert!(was_there);
    wait_until("everything is gone", || {
        !Path::new(data).exists() && processes.iter().all(|process| !is_running(*process))
    });
}

fn installation() -> Option<Installation> {
    Installation::find().inspect_err(|missing| eprintln!("skipped: {missing}")).ok()
}

fn spawn_psql(installation: &Installation, cluster: &Cluster, sql: &str) -> std::process::Child {
    let mut psql = Command::new(installation.folder().join("psql"));
    psql.args(["-X", "-d", &cluster.url(), "-c", sql]).stdout(Stdio::null()).stderr(Stdio::null());
    psql.spawn().unwrap()
}

fn assert_gone(processes: &[u32], data: &Path) {
    assert!(processes.iter().all(|process| !is_running(*process)), "{processes:?}");
    assert!(!data.exists(), "{}", data.display());
}

fn is_running(process: u32) -> bool {
    state(process).is_some_and(|state| state != 'Z')
}

fn state(process: u32) -> Option<char> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit_once(')')?.1.trim().chars().next()
}

/// Whether the machine has a segment of shared memory of this number.
fn has_segment(number: &str) -> bool {
    let segments = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
    segments.lines().any(|line| line.split_whitespace().nth(1) == Some(number))
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < TIME_MAX, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(10));
    }
}
