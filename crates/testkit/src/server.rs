//! The real gateway in this process, on a free port, over a fresh engine.
//!
//! In: [`Options`]. Out: a [`Server`] that serves until it is dropped, and leaves nothing behind.
//! Invariants
//! - Each server has its own engine, folder, port and clock: tests cannot see each other.
//! - All servers share one runtime of two threads, as many as the machine that runs the tests may have.
//!
//! Not here: the program with its settings (`crates/server/tests`).

use crate::client::Client;
use crate::postgres;
use crate::request::Key;
use astrarium_database::{Account, Env, MaintenanceHandle, Resources};
use astrarium_env::{ManualClock, Random};
use astrarium_gateway::certificate::Certificate;
use astrarium_gateway::listener::{self, ConnectionLimits};
use astrarium_gateway::{ExplorerSettings, Gateway, Settings};
use astrarium_kv::Engine;
use astrarium_kv::memory::MemoryEngine;
use astrarium_kv_fjall::FjallEngine;
use astrarium_wire::authorization::{AccountKeys, DateWindow};
use astrarium_wire::consistency::ConsistencyLevel;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// When the clock of a test server stands at the start: 1 January 2026.
pub const START_SECONDS: u64 = 1_767_225_600;

/// Names the engines that tests run on.
const ENGINES: &str = "ASTRARIUM_TEST_ENGINES";

/// Which engine holds a test's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// In memory.
    Memory,
    /// In memory, with three places that ranges can move between.
    Places,
    /// Embedded, in a temporary folder.
    Fjall,
    /// PostgreSQL, in a schema of its own of one that all tests of a program share.
    Postgres,
    /// The same with three stores that ranges can move between.
    Stores,
}

impl EngineKind {
    /// Every engine that a case must pass on: memory and fjall, or those that `ASTRARIUM_TEST_ENGINES` names (`memory,postgres`). One
    /// that is not on this machine is told of and left out.
    pub fn all() -> Vec<EngineKind> {
        let every = [
            EngineKind::Memory,
            EngineKind::Fjall,
            EngineKind::Postgres,
            EngineKind::Places,
            EngineKind::Stores,
        ];
        let Ok(named) = std::env::var(ENGINES) else { return vec![EngineKind::Memory, EngineKind::Fjall] };
        let is_named = |kind: &EngineKind| named.split(',').any(|name| name.trim() == kind.name());
        every.into_iter().filter(is_named).filter(|kind| kind.is_here()).collect()
    }

    fn is_here(self) -> bool {
        !matches!(self, EngineKind::Postgres | EngineKind::Stores) || postgres::is_there()
    }

    /// Those of them that several servers can share.
    pub fn all_shared() -> Vec<EngineKind> {
        let is_shared = |kind: &EngineKind| matches!(kind, EngineKind::Memory | EngineKind::Postgres);
        EngineKind::all().into_iter().filter(is_shared).collect()
    }

    /// Its name in the list of tests.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Memory => "memory",
            EngineKind::Places => "places",
            EngineKind::Fjall => "fjall",
            EngineKind::Postgres => "postgres",
            EngineKind::Stores => "stores",
        }
    }
}

/// How a test server is to be.
#[derive(Debug, Clone)]
pub struct Options {
    /// What holds the data.
    pub engine: EngineKind,
    /// Bounds of connections.
    pub limits: ConnectionLimits,
    /// Longest time for a request's body to arrive.
    pub body_timeout: Duration,
    /// Endpoint to tell clients.
    pub public_endpoint: Option<String>,
    /// Names that it answers to, besides private ones.
    pub allowed_hosts: Vec<String>,
    /// Whether forwarded headers are believed.
    pub trust_forwarded: bool,
    /// Origins that browsers may come from.
    pub cors_origins: Vec<String>,
    /// The account's consistency level.
    pub consistency: ConsistencyLevel,
    /// Whether the server merges the rows of queries over all partitions.
    pub whole_queries: bool,
    /// Whether every container serves all versions and deletes.
    pub continuous_backup: bool,
    /// Whether that feed has the versions before.
    pub previous_images: bool,
    /// Whether requests beyond the provisioned throughput are refused.
    pub throttling: bool,
    /// How the explorer behaves, if there is one.
    pub explorer: Option<ExplorerSettings>,
    /// Whether TLS is offered on the same port; costs the making of a certificate.
    pub tls: bool,
}

impl Options {
    /// The settings of the program, on an engine.
    pub fn on(engine: EngineKind) -> Options {
        Options {
            engine,
            limits: ConnectionLimits {
                connections_max: 20_000,
                handshake_timeout: Duration::from_secs(10),
                idle_timeout: Duration::from_mins(4),
                shutdown_timeout: Duration::from_secs(10),
            },
            body_timeout: Duration::from_mins(1),
            public_endpoint: None,
            // The name that the requests of tests have.
            allowed_hosts: vec!["astrarium.test".to_owned()],
            trust_forwarded: false,
            cors_origins: Vec::new(),
            consistency: ConsistencyLevel::Session,
            whole_queries: false,
            continuous_backup: false,
            previous_images: false,
            throttling: false,
            explorer: Some(ExplorerSettings::default()),
            tls: false,
        }
    }
}

/// A server of a test.
pub struct Server {
    address: SocketAddr,
    clock: ManualClock,
    account: Account,
    gateway: Gateway,
    authority_pem: Option<String>,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
    /// A second server over the same storage, by the same clock.
    beside: Option<Box<Server>>,
    /// Removed when the server is gone.
    folder: Option<TempDir>,
}

impl Server {
    /// Starts a server; it answers when this returns.
    pub fn start(options: Options) -> Server {
        let (engine, folder) = open_engine(options.engine);
        let mut server = Server::over(engine, options);
        server.folder = folder;
        server
    }

    /// Starts a server over an engine at hand.
    pub fn over(engine: Arc<dyn Engine>, options: Options) -> Server {
        Server::begin(engine, ManualClock::at_seconds(START_SECONDS), 1, options)
    }

    /// Starts servers over one storage, which have one clock.
    pub fn start_several<const COUNT: usize>(options: &Options) -> [Server; COUNT] {
        let engine = shared_storage(options.engine);
        let clock = ManualClock::at_seconds(START_SECONDS);
        let mut seed = 0;
        [(); COUNT].map(|()| {
            seed += 1;
            Server::begin(engine(), clock.clone(), seed, options.clone())
        })
    }

    /// Starts two servers over one storage, which clients ask by turns.
    pub fn start_two(options: &Options) -> Server {
        let [mut first, second] = Server::start_several(options);
        first.beside = Some(Box::new(second));
        first
    }

    fn begin(engine: Arc<dyn Engine>, clock: ManualClock, seed: u64, options: Options) -> Server {
        let env = Env::new(Box::new(clock.clone()), Random::from_seed(seed));
        let certificate =
            options.tls.then(|| Certificate::load_or_make(None, &[]).expect("make a certificate"));
        let authority_pem = certificate.as_ref().map(|certificate| certificate.authority_pem.clone());
        let tls = certificate.map(|certificate| certificate.config);
        runtime().block_on(async move {
            let resources = Resources {
                throttling: options.throttling,
                continuous_backup: Some(options.continuous_backup),
                ..Resources::default()
            };
            let account = Account::open_within(engine, env, resources).await.expect("open an empty account");
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("listen on a free port");
            let address = listener.local_addr().expect("know the port");
            let limits = options.limits;
            let settings = settings(options, address, authority_pem.clone());
            let gateway = Gateway::new(account.clone(), settings);
            let (stop, stopped) = oneshot::channel();
            let shutdown = async move {
                let _ = stopped.await;
            };
            let serving = runtime().spawn(listener::serve(gateway.clone(), listener, tls, limits, shutdown));
            let (stop, serving) = (Some(stop), Some(serving));
            Server {
                address,
                clock,
                account,
                gateway,
                authority_pem,
                stop,
                serving,
                beside: None,
                folder: None,
            }
        })
    }

    /// A server in memory with the settings of the program.
    pub fn in_memory() -> Server {
        Server::start(Options::on(EngineKind::Memory))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its clock, which stands until it is moved.
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// Does what is to be done beside requests, which nobody does unless a test does.
    pub fn settle(&self) {
        let settled = runtime().block_on(self.account.maintenance().settle());
        settled.expect("work beside requests");
    }

    /// Has each of two servers let go of what the other may wait for: the right to change key ranges, which a server keeps until it finds
    /// that there is nothing left to do.
    pub fn let_go(&self) {
        for server in self.beside.iter().map(AsRef::as_ref).chain(self.beside.is_some().then_some(self)) {
            let maintenance = server.account.maintenance();
            while runtime().block_on(maintenance.reshard()).expect("work beside requests") {}
        }
    }

    /// The same for whoever does it step by step.
    pub fn maintenance(&self) -> MaintenanceHandle {
        self.account.maintenance()
    }

    /// The certificate authority to trust, if TLS is offered.
    pub fn authority_pem(&self) -> Option<&str> {
        self.authority_pem.as_deref()
    }

    /// A token to sign in to the explorer with once.
    pub fn explorer_link(&self) -> String {
        self.gateway.make_explorer_link().expect("the server has an explorer")
    }

    /// A client with the server's clock; of two servers it asks one after the other.
    pub fn client(&self) -> Client {
        let client = Client::new(self.address, Box::new(self.clock.clone()));
        match &self.beside {
            Some(beside) => client.and_of(beside.address),
            None => client,
        }
    }

    /// Stops accepting, waits for running requests, and tells how long that took.
    pub fn stop(&mut self) -> Duration {
        let began = std::time::Instant::now();
        if let Some(stop) = self.stop.take() {
            // The receiver is gone only if the listener has ended already.
            let _ = stop.send(());
        }
        if let Some(serving) = self.serving.take() {
            runtime().block_on(serving).expect("the listener ends in good order");
        }
        began.elapsed()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        if let Err(error) = self.account.maintenance().close() {
            // A second panic while a test fails would only hide the first.
            eprintln!("close the engine: {error}");
        }
    }
}

pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2).enable_all().build().expect("start a runtime")
    })
}

/// Gives each server an engine over one empty storage.
fn shared_storage(kind: EngineKind) -> Box<dyn Fn() -> Arc<dyn Engine>> {
    match kind {
        EngineKind::Memory => {
            let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::default());
            Box::new(move || Arc::clone(&engine))
        }
        EngineKind::Places => {
            let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::with_places(3));
            Box::new(move || Arc::clone(&engine))
        }
        EngineKind::Fjall => panic!("{} is of one server", kind.name()),
        EngineKind::Postgres | EngineKind::Stores => {
            let count = if kind == EngineKind::Stores { 3 } else { 1 };
            let url = postgres::empty_stores(count);
            Box::new(move || Arc::new(postgres::open_joined(&url)))
        }
    }
}

pub(crate) fn open_engine(kind: EngineKind) -> (Arc<dyn Engine>, Option<TempDir>) {
    match kind {
        EngineKind::Memory => (Arc::new(MemoryEngine::default()), None),
        EngineKind::Places => (Arc::new(MemoryEngine::with_places(3)), None),
        EngineKind::Fjall => {
            let folder = tempfile::tempdir().expect("make a temporary folder");
            let options = astrarium_kv_fjall::Options::default();
            let engine = FjallEngine::open(folder.path(), options).expect("open an empty folder");
            (Arc::new(engine), Some(folder))
        }
        EngineKind::Postgres => (Arc::new(postgres::open_empty()), None),
        EngineKind::Stores => (Arc::new(postgres::open_with_stores(3)), None),
    }
}

fn settings(options: Options, address: SocketAddr, authority_pem: Option<String>) -> Settings {
    Settings {
        keys: AccountKeys {
            primary: Key::Primary.master_key(),
            secondary: Some(Key::Secondary.master_key()),
            primary_readonly: Some(Key::ReadOnly.master_key()),
            secondary_readonly: Some(Key::SecondaryReadOnly.master_key()),
        },
        date_window: DateWindow::default(),
        public_endpoint: options.public_endpoint,
        allowed_hosts: options.allowed_hosts,
        fallback_authority: address.to_string(),
        trust_forwarded: options.trust_forwarded,
        cors_origins: options.cors_origins,
        consistency: options.consistency,
        whole_queries: options.whole_queries,
        continuous_backup: options.continuous_backup,
        previous_images: options.previous_images,
        body_bytes_max: 4 << 20,
        body_timeout: options.body_timeout,
        log_requests: false,
        slow_request: None,
        test_clock: true,
        authority_pem,
        explorer: options.explorer,
        server_name: None,
        cluster: None,
    }
}
