//! A site: PostgreSQL clusters, servers over them as processes, proxies between; all of it gone when it is dropped.
//!
//! In: how many servers, how stores are. Out: addresses, clients of some server, and everything that can be done to the parts.
//! Invariants
//! - One site at a time in this program: what one of them does is not felt by another.
//! - Servers have a key of their own, which is not the well-known one.

use crate::process::ServerProcess;
use astrarium_database::{Account, Env};
use astrarium_kv::Engine as _;
use astrarium_kv_postgres::{PostgresEngine, PostgresOptions, init_store};
use astrarium_postgres_fixture::{Cluster, Installation, Proxy, Settings};
use astrarium_testkit::{Client, Key, Request};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// The account's key.
const KEY: Key = Key::Secondary;

/// The end of a test that hangs. How quickly something works again is printed; it is not judged by a machine that does much else.
pub(crate) const RECOVERY_MAX: Duration = Duration::from_mins(5);

/// Lines of a server's log that are shown when a test fails.
const LOG_LINES: usize = 40;

/// What they are full of while a store is down or the machine is busy.
const NOISE: [&str; 3] = ["status=503", "slow_request", "read the throughput of containers"];

/// The PostgreSQL of this machine; nothing, and a word why, where there is none.
pub(crate) fn installation() -> Option<Installation> {
    Installation::find().inspect_err(|missing| eprintln!("skipped: {missing}")).ok()
}

/// Whether runs are to be long.
pub(crate) fn is_long() -> bool {
    std::env::var("ASTRARIUM_LONG").is_ok_and(|value| value != "0" && !value.is_empty())
}

/// So many of something: more in a long run.
pub(crate) fn scaled(count: u32) -> u32 {
    if is_long() { count * 10 } else { count }
}

/// Seconds of something: more in a long run.
pub(crate) fn seconds(count: u32) -> Duration {
    Duration::from_secs(scaled(count).into())
}

/// A seed for choices, printed.
pub(crate) fn seed() -> u64 {
    let seed = std::env::var("ASTRARIUM_CLUSTER_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| Env::system().random_u64());
    println!("ASTRARIUM_CLUSTER_SEED={seed}");
    seed
}

/// Something that is done to a cluster before it becomes a store.
pub(crate) type Preparation = Box<dyn FnOnce(&Cluster)>;

/// How a site is to be.
pub(crate) struct Plan {
    pub(crate) servers: usize,
    pub(crate) settings: Settings,
    /// Whether each server reaches the store through a proxy of its own.
    pub(crate) has_proxies: bool,
    /// Whether the store has a synchronous standby.
    pub(crate) has_standby: bool,
    pub(crate) prepare: Preparation,
    /// Addresses of further stores.
    pub(crate) other_stores: Vec<String>,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            servers: 3,
            settings: Settings::default().durable(),
            has_proxies: false,
            has_standby: false,
            prepare: Box::new(|_| {}),
            other_stores: Vec::new(),
        }
    }
}

/// Several servers over a store.
pub(crate) struct Site {
    /// The places of servers; empty while one is down.
    servers: Vec<RwLock<Option<ServerProcess>>>,
    addresses: Vec<RwLock<SocketAddr>>,
    pub(crate) proxies: Vec<Proxy>,
    pub(crate) store: Cluster,
    pub(crate) standby: Option<Cluster>,
    url: String,
    folder: tempfile::TempDir,
    next: AtomicUsize,
    _turn: MutexGuard<'static, ()>,
}

impl Site {
    /// A site whose servers are ready; nothing where PostgreSQL is missing.
    pub(crate) fn start(plan: Plan) -> Option<Site> {
        static TURN: Mutex<()> = Mutex::new(());
        let installation = installation()?;
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let store = Cluster::start(&installation, plan.settings).expect("PostgreSQL starts");
        (plan.prepare)(&store);
        let standby = plan.has_standby.then(|| {
            let standby = store.standby().expect("a standby starts");
            store.make_synchronous(standby.name()).expect("the standby becomes synchronous");
            standby
        });
        let url = match &standby {
            Some(standby) => astrarium_postgres_fixture::urls(&[&store, standby]),
            None => store.url(),
        };
        init_store(&url).expect("make the tables");
        crate::stores::add_stores(&url, &plan.other_stores);
        let target: SocketAddr = ([127, 0, 0, 1], store.port()).into();
        let proxies = (0..plan.servers).filter(|_| plan.has_proxies);
        let proxies = proxies.map(|_| Proxy::start(target).expect("a proxy starts")).collect();
        let nowhere: SocketAddr = ([0; 4], 0).into();
        let site = Site {
            servers: (0..plan.servers).map(|_| RwLock::new(None)).collect(),
            addresses: (0..plan.servers).map(|_| RwLock::new(nowhere)).collect(),
            proxies,
            store,
            standby,
            url,
            folder: tempfile::tempdir().expect("a temporary folder"),
            next: AtomicUsize::new(0),
            _turn: turn,
        };
        (0..plan.servers).for_each(|place| site.start_server(place));
        Some(site)
    }

    pub(crate) fn server_count(&self) -> usize {
        self.servers.len()
    }

    /// The address of the store, as servers without a proxy have it.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Starts the server of a place.
    pub(crate) fn start_server(&self, place: usize) {
        let store = match self.proxies.get(place) {
            Some(proxy) => {
                self.url.replace(&format!(":{}", self.store.port()), &format!(":{}", proxy.address().port()))
            }
            None => self.url.clone(),
        };
        let key = KEY.text();
        let arguments = ["--listen", "127.0.0.1:0", "--store", &store, "--key", &key, "--log", "info"];
        let arguments: Vec<String> = arguments.map(str::to_owned).into();
        let server = ServerProcess::start(&arguments, &self.log(place));
        *self.addresses[place].write().unwrap_or_else(PoisonError::into_inner) = server.address();
        *self.place(place) = Some(server);
    }

    /// SIGKILL.
    pub(crate) fn kill_server(&self, place: usize) {
        let server = self.place(place).take();
        server.expect("it runs").kill();
    }

    /// SIGTERM, and waits for the end.
    pub(crate) fn terminate_server(&self, place: usize) {
        let server = self.place(place).take();
        server.expect("it runs").terminate();
    }

    /// SIGSTOP.
    pub(crate) fn freeze_server(&self, place: usize) {
        self.place(place).as_mut().expect("it runs").freeze();
    }

    /// SIGCONT.
    pub(crate) fn thaw_server(&self, place: usize) {
        self.place(place).as_mut().expect("it runs").thaw();
    }

    /// A client of the server of a place, wherever that is now.
    pub(crate) fn client_of(&self, place: usize) -> Client {
        Client::of_process(self.address(place)).with_primary(KEY)
    }

    /// A client of some server, of each in turn; every other one asks all servers by turns.
    pub(crate) fn client(&self) -> Client {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let place = |next: usize| (number / 2 + next) % self.servers.len();
        let client = self.client_of(place(0));
        let others = (1..self.servers.len()).filter(|_| number.is_multiple_of(2));
        others.fold(client, |client, next| client.and_of(self.address(place(next))))
    }

    fn address(&self, place: usize) -> SocketAddr {
        *self.addresses[place].read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until every server writes and reads again, by itself.
    pub(crate) fn wait_until_well(&self) {
        let began = Instant::now();
        for place in 0..self.servers.len() {
            loop {
                let answer = self.client_of(place).send(&Request::new("GET", "/ready"));
                if answer.as_ref().is_ok_and(|answer| answer.status == 200) {
                    break;
                }
                let told = answer.map(|answer| answer.text());
                assert!(began.elapsed() < RECOVERY_MAX, "server {place} does not recover: {told:?}");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        println!("well again after {:?}", began.elapsed());
    }

    /// Reads the whole account by the library, beside the servers and after their end; nothing may be wrong.
    pub(crate) fn verify(self) {
        verify(&self.url);
        for place in 0..self.servers.len() {
            self.terminate_server(place);
        }
        verify(&self.url);
    }

    /// The end of each server's log.
    fn show_logs(&self) {
        for place in 0..self.servers.len() {
            let log = std::fs::read_to_string(self.log(place)).unwrap_or_default();
            let is_noise = |line: &&str| NOISE.iter().any(|noise| line.contains(noise));
            let lines: Vec<&str> = log.lines().filter(|line| !is_noise(line)).collect();
            let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
            eprintln!("--- server {place}:\n{}", last.join("\n"));
        }
    }

    fn log(&self, place: usize) -> PathBuf {
        self.folder.path().join(format!("server-{place}.log"))
    }

    fn place(&self, place: usize) -> std::sync::RwLockWriteGuard<'_, Option<ServerProcess>> {
        self.servers[place].write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.show_logs();
        }
    }
}

/// Reads everything; fails at the first thing that is wrong.
pub(crate) fn verify(url: &str) {
    let engine = Arc::new(PostgresEngine::open(url, PostgresOptions::default()).expect("open the store"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut problems = Vec::new();
    let mut documents = 0;
    runtime.block_on(async {
        let account = Account::open(engine.clone(), Env::system()).await.expect("open the account");
        let maintenance = account.maintenance();
        let verified = maintenance.verify(|container, report| {
            documents += report.documents;
            problems.extend(report.problems.iter().map(|problem| format!("{container}: {problem}")));
        });
        verified.await.expect("read the whole account");
    });
    assert!(problems.is_empty(), "{problems:#?}");
    assert_eq!(engine.set_losses(), Vec::new(), "no index is lost");
    engine.close().expect("close the store");
    println!("verified: {documents} documents");
}
