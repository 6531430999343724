//! Standbys: copies of a cluster that follow it, wait with it for commits, and take its place.

use crate::cluster::PAUSE;
use crate::installation::run;
use crate::{Cluster, Error, While as _};
use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const REPLICATION_MAX: Duration = Duration::from_mins(5);

impl Cluster {
    /// A hot standby of this cluster, with the same settings, a port and a name of its own; its data is always in the system's
    /// folder for temporary files. It takes connections for reading when this returns.
    pub fn standby(&self) -> Result<Cluster, Error> {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let name = format!("standby_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut standby = Cluster::prepare(self.installation(), self.settings().elsewhere(), &name)?;
        let source = format!("host=127.0.0.1 port={} user=postgres application_name={name}", self.port());
        let mut backup = self.installation().program("pg_basebackup");
        backup.args(["--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream", "--no-sync"]);
        run(backup.args(["--dbname", &source, "--pgdata"]).arg(standby.data()))?;
        // What the primary waits for is copied with its settings; once promoted, this one would wait for itself.
        let file = standby.data().join("postgresql.auto.conf");
        let mut file = std::fs::OpenOptions::new().append(true).open(file).while_doing("open settings")?;
        file.write_all(b"synchronous_standby_names = ''\n").while_doing("write settings")?;
        standby.launch_somewhere()?;
        Ok(standby)
    }

    /// Makes commits of this cluster wait until the standby of that name has them on its disk too.
    pub fn make_synchronous(&self, name: &str) -> Result<(), Error> {
        self.psql(&format!("ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (\"{name}\")'"))?;
        self.psql("SELECT pg_reload_conf()")?;
        let state = format!("SELECT sync_state FROM pg_stat_replication WHERE application_name = '{name}'");
        self.wait_for("the standby did not become synchronous", || Ok(self.psql(&state)? == "sync"))
    }

    /// Makes a primary of this standby; it takes writes when this returns.
    pub fn promote(&self) -> Result<(), Error> {
        self.psql("SELECT pg_promote(true, 30)")?;
        let state = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean";
        self.wait_for("the standby was not promoted", || Ok(self.psql(state)? == "f"))
    }

    fn wait_for(&self, what: &str, is_so: impl Fn() -> Result<bool, Error>) -> Result<(), Error> {
        let began = Instant::now();
        while !is_so()? {
            if began.elapsed() > REPLICATION_MAX {
                return Err(self.failure(&format!("{what} in time")));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

/// One address for several clusters, of which a client takes the one that can be written to.
pub fn urls(clusters: &[&Cluster]) -> String {
    let hosts: Vec<_> = clusters.iter().map(|cluster| format!("127.0.0.1:{}", cluster.port())).collect();
    format!("postgres://postgres@{}/postgres?target_session_attrs=read-write", hosts.join(","))
}
