//! The life of a server: open the data, listen, say so, serve, and stop in good order.

use crate::background::BackgroundThread;
use crate::machine::FileShares;
use crate::memory::Shares;
use crate::settings::{self, ServeSettings};
use crate::{engines, logging, machine, memory, private_files, scripts};
use anyhow::Context as _;
use astrarium_database::{Account, Env, Memory, Resources};
use astrarium_gateway::certificate::Certificate;
use astrarium_gateway::listener::{self, ConnectionLimits};
use astrarium_gateway::{Gateway, Settings};
use astrarium_kv::Engine;
use astrarium_wire::authorization::{AccountKeys, DateWindow, MasterKey};
use astrarium_wire::key_text::{self, EMULATOR_KEY};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Largest request body: twice the largest item, so that an item with spaces is still read and judged by its content.
const BODY_BYTES_MAX: usize = 4 << 20;

pub(crate) fn run(settings: &ServeSettings) -> anyhow::Result<()> {
    logging::start(settings)?;
    for variable in settings::unknown_variables() {
        tracing::warn!(variable, "no setting has this name; the variable is ignored");
    }
    let keys = account_keys(settings)?;
    check_exposure(settings, &keys)?;
    let files = machine::share_files(machine::raise_file_limit(), settings.connections);
    let shares = memory::divide(settings.memory_budget, settings.cache_mb)?;
    let engine: Arc<dyn Engine> = if settings.memory {
        engines::memory()
    } else {
        let engine =
            engines::embedded(&settings.data, Some(shares.cache_mb), settings.reserve_mb, files.tables)?;
        // Only now, when it is known to be a data folder.
        private_files::withdraw(&settings.data);
        Arc::new(engine)
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("start runtime")?;
    runtime.block_on(serve(settings, keys, engine, shares, files))
}

async fn serve(
    settings: &ServeSettings,
    keys: AccountKeys,
    engine: Arc<dyn Engine>,
    shares: Shares,
    files: FileShares,
) -> anyhow::Result<()> {
    let resources = Resources {
        memory: Memory::new(shares.work_bytes),
        prepare_thread: machine::lower_thread_priority,
        scripts: scripts::settings(settings, shares.script_bytes)?,
        throttling: settings.throttle,
        ..Resources::default()
    };
    let env = if settings.test_clock { Env::with_advanced_clock() } else { Env::system() };
    let account = Account::open_within(engine, env, resources).await?;
    let certificate = certificate(settings)?;
    let listener = TcpListener::bind(settings.listen)
        .await
        .with_context(|| format!("listen on {} (is another server running there?)", settings.listen))?;
    let address = listener.local_addr()?;
    let gateway = Gateway::new(
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
            body_bytes_max: BODY_BYTES_MAX,
            body_timeout: Duration::from_mins(1),
            log_requests: settings.log_requests,
            slow_request: (settings.log_slow_ms > 0).then(|| Duration::from_millis(settings.log_slow_ms)),
            test_clock: settings.test_clock,
            authority_pem: Some(certificate.authority_pem),
        },
    );
    let limits = ConnectionLimits {
        connections_max: files.connections,
        handshake_timeout: Duration::from_secs(10),
        idle_timeout: Duration::from_mins(4),
        shutdown_timeout: Duration::from_secs(10),
    };
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let background = BackgroundThread::start(gateway.clone(), account.maintenance())?;
    println!("{}", ready_line(settings, address));
    let version = env!("CARGO_PKG_VERSION");
    tracing::info!(version, listen = %address, data = place(settings), "started");
    let shutdown = async move {
        let signal = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = tokio::signal::ctrl_c() => "SIGINT",
        };
        tracing::info!(signal, "stopping: running requests are answered, no new ones are taken");
    };
    listener::serve(gateway, listener, Some(certificate.config), limits, shutdown).await;
    background.stop();
    account.maintenance().close().context("close the data folder")?;
    tracing::info!("stopped");
    Ok(())
}

/// The operator's own certificate, or one that is made once for the data folder.
fn certificate(settings: &ServeSettings) -> anyhow::Result<Certificate> {
    let made = if let (Some(certificate), Some(key)) = (&settings.tls_certificate, &settings.tls_key) {
        Certificate::from_files(certificate, key)
    } else {
        let folder = (!settings.memory).then(|| settings.data.join("tls"));
        Certificate::load_or_make(folder.as_deref(), &settings.certificate_name)
    };
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

/// One line that can be pasted into an SDK; a key that is a secret is not printed.
fn ready_line(settings: &ServeSettings, mut address: SocketAddr) -> String {
    // Every network includes this machine, and nobody can connect to "every".
    if address.ip().is_unspecified() {
        let is_ipv6 = address.is_ipv6();
        address.set_ip(if is_ipv6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() });
    }
    let endpoint = settings.public_endpoint.clone().unwrap_or_else(|| format!("http://{address}/"));
    let is_known = MasterKey::from_base64(&settings.key).is_ok_and(|key| key.is_well_known());
    let key = if is_known { EMULATOR_KEY } else { "<the key given with --key>" };
    let place = place(settings);
    format!(
        "Astrarium is ready, data in {place}. Connection string: AccountEndpoint={endpoint};AccountKey={key};"
    )
}

/// Where the data is.
fn place(settings: &ServeSettings) -> String {
    if settings.memory { "memory".to_owned() } else { settings.data.display().to_string() }
}
