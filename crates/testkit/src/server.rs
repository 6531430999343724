//! The real gateway in this process, on a free port, over a fresh engine.
//!
//! In: [`Options`]. Out: a [`Server`] that serves until it is dropped, and leaves nothing behind.
//! Invariants
//! - Each server has its own engine, folder, port and clock: tests cannot see each other.
//! - All servers share one runtime of two threads, as many as the machine that runs the tests may have.
//!
//! Not here: the program with its settings (`crates/server/tests`).

use crate::client::Client;
use crate::request::Key;
use astrarium_database::{Account, Env, MaintenanceHandle, Resources};
use astrarium_env::{ManualClock, Random};
use astrarium_gateway::certificate::Certificate;
use astrarium_gateway::listener::{self, ConnectionLimits};
use astrarium_gateway::{Gateway, Settings};
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

/// Which engine holds a test's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// In memory.
    Memory,
    /// Embedded, in a temporary folder.
    Fjall,
}

impl EngineKind {
    /// Every engine that a case must pass on.
    pub const ALL: [EngineKind; 2] = [EngineKind::Memory, EngineKind::Fjall];

    /// Its name in the list of tests.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Memory => "memory",
            EngineKind::Fjall => "fjall",
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
    /// Whether requests beyond the provisioned throughput are refused.
    pub throttling: bool,
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
            throttling: false,
            tls: false,
        }
    }
}

/// A server of a test.
pub struct Server {
    address: SocketAddr,
    clock: ManualClock,
    account: Account,
    authority_pem: Option<String>,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
    /// Removed when the server is gone.
    _folder: Option<TempDir>,
}

impl Server {
    /// Starts a server; it answers when this returns.
    pub fn start(options: Options) -> Server {
        let (engine, folder) = open_engine(options.engine);
        Server::begin(engine, folder, options)
    }

    /// Starts a server over an engine at hand.
    pub fn over(engine: Arc<dyn Engine>, options: Options) -> Server {
        Server::begin(engine, None, options)
    }

    fn begin(engine: Arc<dyn Engine>, folder: Option<TempDir>, options: Options) -> Server {
        let clock = ManualClock::at_seconds(START_SECONDS);
        let env = Env::new(Box::new(clock.clone()), Random::from_seed(1));
        let certificate =
            options.tls.then(|| Certificate::load_or_make(None, &[]).expect("make a certificate"));
        let authority_pem = certificate.as_ref().map(|certificate| certificate.authority_pem.clone());
        let tls = certificate.map(|certificate| certificate.config);
        runtime().block_on(async move {
            let resources = Resources { throttling: options.throttling, ..Resources::default() };
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
            let serving = runtime().spawn(listener::serve(gateway, listener, tls, limits, shutdown));
            let (stop, serving) = (Some(stop), Some(serving));
            Server { address, clock, account, authority_pem, stop, serving, _folder: folder }
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

    /// The same for whoever does it step by step.
    pub fn maintenance(&self) -> MaintenanceHandle {
        self.account.maintenance()
    }

    /// The certificate authority to trust, if TLS is offered.
    pub fn authority_pem(&self) -> Option<&str> {
        self.authority_pem.as_deref()
    }

    /// A client with the server's clock.
    pub fn client(&self) -> Client {
        Client::new(self.address, Box::new(self.clock.clone()))
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

pub(crate) fn open_engine(kind: EngineKind) -> (Arc<dyn Engine>, Option<TempDir>) {
    match kind {
        EngineKind::Memory => (Arc::new(MemoryEngine::default()), None),
        EngineKind::Fjall => {
            let folder = tempfile::tempdir().expect("make a temporary folder");
            let options = astrarium_kv_fjall::Options::default();
            let engine = FjallEngine::open(folder.path(), options).expect("open an empty folder");
            (Arc::new(engine), Some(folder))
        }
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
        body_bytes_max: 4 << 20,
        body_timeout: options.body_timeout,
        log_requests: false,
        slow_request: None,
        test_clock: true,
        authority_pem,
    }
}
