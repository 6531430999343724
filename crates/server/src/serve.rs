//! The life of a server: open the data, listen, say so, serve, and stop in good order.

use crate::background::BackgroundThread;
use crate::cluster::Servers;
use crate::emulator::{EmulatorProfile, SidePorts, account_door};
use crate::machine::FileShares;
use crate::memory::Shares;
use crate::ports::TakenPort;
use crate::settings::{self, ServeSettings};
use crate::{cluster, engines, logging, machine, memory, private_files, scripts, spending};
use anyhow::Context as _;
use astrarium_database::{Account, Env, Memory, Resources};
use astrarium_env::ClockShift;
use astrarium_gateway::certificate::{Certificate, GivenFile};
use astrarium_gateway::cluster::Cluster;
use astrarium_gateway::emulator_ports::PortRole;
use astrarium_gateway::listener::{self, ConnectionLimits};
use astrarium_gateway::{ExplorerSettings, Gateway, Settings};
use astrarium_kv::Engine;
use astrarium_kv_postgres::PostgresEngine;
use astrarium_tools::{AccountSettings, SeedPlan};
use astrarium_wire::authorization::{AccountKeys, DateWindow, MasterKey};
use astrarium_wire::key_text::{self, EMULATOR_KEY};
use std::future::Future;
use std::io::{IsTerminal as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};

/// Largest request body: twice the largest item, so that an item with spaces is still read and judged by its content.
const BODY_BYTES_MAX: usize = 4 << 20;

/// A file that is larger holds something else than certificates and a key.
const PEM_BYTES_MAX: usize = 4 << 20;

/// Longest time from the signal to the end: requests have ten seconds of it, storage the rest.
const STOP_TIME_MAX: Duration = Duration::from_secs(30);

pub(crate) fn run(settings: &ServeSettings) -> anyhow::Result<()> {
    run_as(settings, None)
}

/// Runs the server, in the emulator's place if there is a profile.
pub(crate) fn run_as(settings: &ServeSettings, profile: Option<&EmulatorProfile>) -> anyhow::Result<()> {
    logging::start(settings)?;
    for variable in settings::unknown_variables() {
        tracing::warn!(variable, "no setting has this name; the variable is ignored");
    }
    let keys = account_keys(settings)?;
    check_exposure(settings, &keys)?;
    let files = machine::share_files(machine::raise_file_limit(), settings.connections);
    let shares = memory::divide(settings.memory_budget, settings.cache_mb)?;
    // Before the data is opened: a start that is refused leaves no new data folder behind.
    let seed = settings.seed.as_deref().map(SeedPlan::read).transpose()?;
    let given = given_certificate(settings)?;
    let ports = TakenPorts::take(settings, profile)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("start runtime")?;
    let hangups = {
        let _entered = runtime.enter();
        signal(SignalKind::hangup()).context("listen for SIGHUP")?
    };
    runtime.spawn(note_hangups(hangups));
    let storage = OpenStorage::open(settings, &shares, &files)?;
    let start = ServerStart { profile, keys, storage, shares, files, seed, given, ports };
    runtime.block_on(serve(settings, start))
}

/// A closing terminal sends SIGHUP, and so do people who want settings to be read again. It ends no server, and settings are read at
/// the start only.
async fn note_hangups(mut hangups: Signal) {
    while hangups.recv().await.is_some() {
        tracing::info!(
            "SIGHUP changes nothing: settings are read at the start only; SIGTERM stops the server"
        );
    }
}

/// What a server starts with.
struct ServerStart<'a> {
    profile: Option<&'a EmulatorProfile>,
    keys: AccountKeys,
    storage: OpenStorage,
    shares: Shares,
    files: FileShares,
    seed: Option<SeedPlan>,
    /// The operator's own certificate.
    given: Option<Certificate>,
    ports: TakenPorts,
}

/// All ports of a server.
struct TakenPorts {
    account: TakenPort,
    side_ports: Vec<(PortRole, TakenPort)>,
}

impl TakenPorts {
    fn take(settings: &ServeSettings, profile: Option<&EmulatorProfile>) -> anyhow::Result<TakenPorts> {
        let setting = if profile.is_some() { "--port (or PORT)" } else { "--listen" };
        let account = TakenPort::take(settings.listen, setting)?;
        let side_ports = profile.map(EmulatorProfile::take_ports).transpose()?.unwrap_or_default();
        Ok(TakenPorts { account, side_ports })
    }
}

/// What holds the data.
enum OpenStorage {
    /// This process alone.
    Own(Arc<dyn Engine>),
    /// A store that other servers use too.
    Shared(Arc<PostgresEngine>),
}

impl OpenStorage {
    fn open(settings: &ServeSettings, shares: &Shares, files: &FileShares) -> anyhow::Result<OpenStorage> {
        if let Some(url) = &settings.store {
            return Ok(OpenStorage::Shared(Arc::new(engines::postgres(url, shares.cache_mb)?)));
        }
        if settings.memory {
            return Ok(OpenStorage::Own(engines::memory()));
        }
        let engine =
            engines::embedded(&settings.data, Some(shares.cache_mb), settings.reserve_mb, files.tables)?;
        // Only now, when it is known to be a data folder.
        private_files::withdraw(&settings.data);
        Ok(OpenStorage::Own(Arc::new(engine)))
    }

    /// The servers that share it, if there may be any.
    fn cluster(&self) -> Option<Arc<dyn Cluster>> {
        match self {
            OpenStorage::Own(_) => None,
            OpenStorage::Shared(engine) => Some(Arc::new(Servers::over(engine))),
        }
    }

    fn engine(&self) -> Arc<dyn Engine> {
        match self {
            OpenStorage::Own(engine) => Arc::clone(engine),
            OpenStorage::Shared(engine) => Arc::clone(engine) as Arc<dyn Engine>,
        }
    }
}

/// The clock, which servers of one store set by the store's, and randomness.
fn environment(settings: &ServeSettings) -> (Env, ClockShift) {
    match (settings.test_clock, &settings.store) {
        (true, _) => (Env::with_advanced_clock(), ClockShift::default()),
        (false, Some(_)) => Env::with_shifted_clock(),
        (false, None) => (Env::system(), ClockShift::default()),
    }
}

async fn serve(settings: &ServeSettings, start: ServerStart<'_>) -> anyhow::Result<()> {
    let ServerStart { profile, keys, storage, shares, files, seed, given, ports } = start;
    let resources = Resources {
        memory: Memory::new(shares.work_bytes),
        prepare_thread: machine::lower_thread_priority,
        scripts: scripts::settings(settings, shares.script_bytes)?,
        throttling: settings.throttle,
        continuous_backup: Some(settings.continuous_backup),
        ..Resources::default()
    };
    let (env, clock_shift) = environment(settings);
    let account = Account::open_within(storage.engine(), env, resources).await?;
    let certificate = given.map_or_else(|| made_certificate(settings), Ok)?;
    let listener = ports.account.listen()?;
    let address = listener.local_addr()?;
    if let Some(profile) = profile {
        profile.write_certificate(&certificate.authority_pem)?;
    }
    let side_ports = SidePorts::listen(ports.side_ports)?;
    let gateway = gateway(settings, keys, &account, &storage, address, certificate.authority_pem.clone());
    let gateway = gateway.at(account_door(profile));
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    if let OpenStorage::Shared(engine) = &storage {
        cluster::join(settings, engine, address, clock_shift)?;
        spending::share(engine, &account);
    }
    let background = BackgroundThread::start(gateway.clone(), account.maintenance())?;
    let limits = limits(&files);
    let (stop, stopped) = watch::channel(false);
    let addresses = side_ports.addresses()?;
    let side_served = side_ports.serve(&gateway, &certificate, limits, &stopped);
    let input_closed = input_closed(settings);
    let (refused, seeding) = oneshot::channel();
    let explorer_line = settings.explorer.then(|| explorer_line(settings, &gateway, address));
    // The seed goes over the wire like everything else; the server is ready, and says so, once it is in.
    let beginning = async {
        plant(settings, seed.as_ref(), address, refused).await?;
        let version = env!("CARGO_PKG_VERSION");
        tracing::info!(version, listen = %address, data = place(settings), "started");
        say_ready(&ready_line(settings, address), explorer_line.as_deref());
        if let Some(profile) = profile {
            profile.announce(address, &addresses);
        }
        anyhow::Ok(())
    };
    let shutdown = async move {
        let reason = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = tokio::signal::ctrl_c() => "SIGINT",
            () = input_closed => "standard input was closed",
            Ok(()) = seeding => "a seed that is refused",
        };
        tracing::info!(signal = reason, "stopping: running requests are answered, no new ones are taken");
        end_after(STOP_TIME_MAX);
        // Those that listen may all be gone already.
        let _ = stop.send(true);
    };
    let serving = listener::serve(gateway, listener, Some(certificate.config), limits, shutdown);
    let (outcome, ()) = tokio::join!(beginning, serving);
    side_served.await;
    background.stop();
    account.maintenance().close().context("close the data folder")?;
    tracing::info!("stopped");
    outcome
}

/// Ends the process if it has not ended by itself by then. What was acknowledged is on stable storage, whoever waits for what.
fn end_after(time: Duration) {
    let end = move || {
        std::thread::sleep(time);
        tracing::error!(
            "stopping took longer than {time:?}: the process ends where it is; nothing acknowledged is lost"
        );
        std::process::exit(1);
    };
    if let Err(error) = std::thread::Builder::new().name("stop-watch".to_owned()).spawn(end) {
        tracing::warn!(%error, "nobody watches how long stopping takes");
    }
}

/// Plants the seed, if there is one; or has the server stop.
async fn plant(
    settings: &ServeSettings,
    seed: Option<&SeedPlan>,
    address: SocketAddr,
    refused: oneshot::Sender<()>,
) -> anyhow::Result<()> {
    let Some(seed) = seed else { return Ok(()) };
    let account = AccountSettings::new(&format!("http://{}", reachable(address)), &settings.key);
    match seed.apply(&account).await {
        Ok(report) => {
            tracing::info!("{}", report.text);
            Ok(())
        }
        Err(error) => {
            // The listener is there until it is told.
            let _ = refused.send(());
            Err(error).context("plant the seed")
        }
    }
}

fn gateway(
    settings: &ServeSettings,
    keys: AccountKeys,
    account: &Account,
    storage: &OpenStorage,
    address: SocketAddr,
    authority_pem: String,
) -> Gateway {
    Gateway::new(
        account.clone(),
        Settings {
            keys,
            date_window: DateWindow::default(),
            public_endpoint: settings.public_endpoint.clone(),
            allowed_hosts: allowed_hosts(settings),
            fallback_authority: address.to_string(),
            trust_forwarded: settings.trust_forwarded,
            cors_origins: settings.cors_origin.clone(),
            consistency: settings.consistency.level(),
            whole_queries: settings.whole_queries,
            continuous_backup: settings.continuous_backup,
            previous_images: settings.previous_images,
            body_bytes_max: BODY_BYTES_MAX,
            body_timeout: Duration::from_mins(1),
            log_requests: settings.log_requests,
            slow_request: (settings.log_slow_ms > 0).then(|| Duration::from_millis(settings.log_slow_ms)),
            test_clock: settings.test_clock,
            authority_pem: Some(authority_pem),
            explorer: explorer(settings),
            server_name: settings.server_name.clone(),
            cluster: storage.cluster(),
        },
    )
}

/// Says that the server is ready, in one write. Whoever started it may read a line and close the pipe; that ends no server.
fn say_ready(line: &str, explorer_line: Option<&str>) {
    let text = explorer_line.map_or_else(|| format!("{line}\n"), |other| format!("{line}\n{other}\n"));
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Ends when standard input is closed, if that is asked for.
fn input_closed(settings: &ServeSettings) -> impl Future<Output = ()> + use<> {
    let (tell, told) = oneshot::channel::<()>();
    let watched = settings.until_stdin_closes.then(|| {
        std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
            // Whatever is written there is nothing to us, and an error is an end too.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            drop(tell);
        })
    });
    async move {
        match watched {
            Some(Ok(_)) => drop(told.await),
            Some(Err(error)) => {
                tracing::warn!(%error, "watch standard input; the server does not stop when that is closed");
                std::future::pending::<()>().await;
            }
            None => std::future::pending().await,
        }
    }
}

fn limits(files: &FileShares) -> ConnectionLimits {
    ConnectionLimits {
        connections_max: files.connections,
        handshake_timeout: Duration::from_secs(10),
        idle_timeout: Duration::from_mins(4),
        shutdown_timeout: Duration::from_secs(10),
    }
}

/// The operator's own certificate, if there is one.
fn given_certificate(settings: &ServeSettings) -> anyhow::Result<Option<Certificate>> {
    let (Some(certificate), Some(key)) = (&settings.tls_certificate, &settings.tls_key) else {
        return Ok(None);
    };
    let read = |name: &str, path: &Path| {
        astrarium_env::read_file(path, PEM_BYTES_MAX)
            .with_context(|| format!("{name} {} cannot be read", path.display()))
    };
    let (pem, private) = (read("--tls-certificate", certificate)?, read("--tls-key", key)?);
    let certificate = GivenFile { path: certificate, content: &pem };
    let made = Certificate::from_files(certificate, GivenFile { path: key, content: &private });
    Ok(Some(made.context("prepare the TLS certificate")?))
}

/// A certificate that is made once for the data folder.
fn made_certificate(settings: &ServeSettings) -> anyhow::Result<Certificate> {
    let is_folder = !settings.memory && settings.store.is_none();
    let folder = is_folder.then(|| settings.data.join("tls"));
    let made = Certificate::load_or_make(folder.as_deref(), &settings.certificate_name);
    made.context("prepare the TLS certificate")
}

/// Names that the operator calls the server by.
fn allowed_hosts(settings: &ServeSettings) -> Vec<String> {
    settings.allowed_host.iter().chain(&settings.certificate_name).cloned().collect()
}

/// The well-known key is no secret, so it is not offered to a network without being asked for.
fn check_exposure(settings: &ServeSettings, keys: &AccountKeys) -> anyhow::Result<()> {
    let local = settings.listen.ip().is_loopback();
    if local || settings.allow_well_known_key || !keys.has_well_known() {
        return Ok(());
    }
    let named = [
        ("--key", Some(&keys.primary)),
        ("--secondary-key", keys.secondary.as_ref()),
        ("--read-only-key", keys.primary_readonly.as_ref()),
        ("--secondary-read-only-key", keys.secondary_readonly.as_ref()),
    ];
    let known = named.iter().find(|(_, key)| key.is_some_and(MasterKey::is_well_known));
    let name = known.map_or("--key", |(name, _)| name);
    anyhow::bail!(
        "listening on {} would offer the data to the network under the emulator's well-known key. Set a key of your \
         own with {name} (for example from `openssl rand -base64 64`), or add --allow-well-known-key if that is wanted",
        settings.listen
    )
}

fn account_keys(settings: &ServeSettings) -> anyhow::Result<AccountKeys> {
    let key = |name: &str, text: &str| {
        let variable = name.trim_start_matches('-').replace('-', "_").to_ascii_uppercase();
        MasterKey::from_base64(text)
            .with_context(|| format!("{name} (or ASTRARIUM_{variable}) is not an account key"))
    };
    let optional =
        |name: &str, text: &Option<String>| text.as_deref().map(|text| key(name, text)).transpose();
    check_read_only(settings)?;
    Ok(AccountKeys {
        primary: key("--key", &settings.key)?,
        secondary: optional("--secondary-key", &settings.secondary_key)?,
        primary_readonly: optional("--read-only-key", &settings.read_only_key)?,
        secondary_readonly: optional("--secondary-read-only-key", &settings.secondary_read_only_key)?,
    })
}

/// A key that may only read must not be one that may write.
fn check_read_only(settings: &ServeSettings) -> anyhow::Result<()> {
    let decoded = |text: &str| key_text::decode_key(text).ok();
    let full = [("--key", Some(&settings.key)), ("--secondary-key", settings.secondary_key.as_ref())];
    let read_only = [
        ("--read-only-key", settings.read_only_key.as_ref()),
        ("--secondary-read-only-key", settings.secondary_read_only_key.as_ref()),
    ];
    for (name, key) in read_only {
        let Some(bytes) = key.and_then(|key| decoded(key)) else { continue };
        let same = full.iter().find(|(_, key)| key.and_then(|key| decoded(key)).as_ref() == Some(&bytes));
        if let Some((other, _)) = same {
            anyhow::bail!("{name} is the same key as {other}, so it could write. Give it a key of its own");
        }
    }
    Ok(())
}

/// Whether everybody knows the account's key.
fn has_known_key(settings: &ServeSettings) -> bool {
    MasterKey::from_base64(&settings.key).is_ok_and(|key| key.is_well_known())
}

/// One line that can be pasted into an SDK; a key that is a secret is not printed.
fn ready_line(settings: &ServeSettings, address: SocketAddr) -> String {
    let address = reachable(address);
    let endpoint = settings.public_endpoint.clone().unwrap_or_else(|| format!("http://{address}/"));
    let key = if has_known_key(settings) { EMULATOR_KEY } else { "<the key given with --key>" };
    let place = place(settings);
    format!(
        "Astrarium is ready, data in {place}. Connection string: AccountEndpoint={endpoint};AccountKey={key};"
    )
}

fn explorer(settings: &ServeSettings) -> Option<ExplorerSettings> {
    let session_seconds = settings.explorer_session_minutes * 60;
    let is_local = settings.listen.ip().is_loopback();
    settings.explorer.then_some(ExplorerSettings { session_seconds, is_local })
}

/// Where the explorer is. On this machine with a link that signs in once: for somebody at a terminal, who could read the server's memory,
/// too; or for whoever reads it, while everybody knows the key anyway. With a secret key, what goes elsewhere may be kept in a journal
/// that others read, or by a collector of logs.
fn explorer_line(settings: &ServeSettings, gateway: &Gateway, address: SocketAddr) -> String {
    let may_be_read = std::io::stdout().is_terminal() || has_known_key(settings);
    let is_for_link = address.ip().is_loopback() && may_be_read;
    let link = is_for_link.then(|| gateway.make_explorer_link()).flatten();
    match link {
        Some(link) => format!("Explorer: http://{address}/_explorer/#link={link}"),
        None => format!("Explorer: http://{}/_explorer/ (sign in with an account key)", reachable(address)),
    }
}

/// Where this machine reaches an address that is listened on: every network includes it, and nobody can connect to "every".
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        let is_ipv6 = address.is_ipv6();
        address.set_ip(if is_ipv6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() });
    }
    address
}

/// Where the data is.
fn place(settings: &ServeSettings) -> String {
    match &settings.store {
        Some(_) => "store".to_owned(),
        None if settings.memory => "memory".to_owned(),
        None => settings.data.display().to_string(),
    }
}
