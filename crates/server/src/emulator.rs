//! `astrarium emulator`: the server in the place of the service's emulator, for tools that were written for that one.
//!
//! In: settings by the emulator's names. Out: settings of `serve`, and what is done besides: further ports, lines on standard output,
//! the certificate where it is looked for.
//! Invariants
//! - It is one server: everything but the three things above is what `serve` does.
//! - `Started` is written, by itself, when every port answers, and nothing follows on standard output.

use crate::ports::TakenPort;
use crate::serve;
use crate::settings::{self, EmulatorSettings};
use anyhow::{Context as _, bail};
use astrarium_env::read_file;
use astrarium_gateway::Gateway;
use astrarium_gateway::certificate::Certificate;
use astrarium_gateway::emulator_ports::PortRole;
use astrarium_gateway::listener::{self, ConnectionLimits};
use std::ffi::OsString;
use std::future::Future;
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Connections of probes, and of browsers, at once.
const SIDE_CONNECTIONS_MAX: usize = 256;
/// A key file that is larger is none.
const KEY_FILE_BYTES_MAX: usize = 64 << 10;
/// A certificate file that is larger is none.
const CERTIFICATE_BYTES_MAX: usize = 4 << 20;
/// What a file of the form that Windows and .NET use begins with: a sequence of more than 255 bytes.
const PKCS12_START: [u8; 2] = [0x30, 0x82];

/// What is done besides serving.
pub(crate) struct EmulatorProfile {
    scheme: &'static str,
    explorer_scheme: &'static str,
    health: SocketAddr,
    explorer: Option<SocketAddr>,
    certificate_file: Option<PathBuf>,
}

/// The emulator's further ports, open.
pub(crate) struct SidePorts {
    listeners: Vec<(PortRole, TcpListener)>,
}

pub(crate) fn run(settings: &EmulatorSettings) -> anyhow::Result<()> {
    let flags = flags(settings, |name| std::env::var_os(name).is_some())?;
    let own = settings::serve_settings(&flags);
    let profile = EmulatorProfile {
        scheme: settings.protocol.scheme(),
        explorer_scheme: settings.explorer_protocol.unwrap_or(settings.protocol).scheme(),
        health: SocketAddr::new(settings.address, settings.health_port),
        explorer: settings.enable_explorer.then(|| SocketAddr::new(settings.address, settings.explorer_port)),
        certificate_file: settings.certificate_file.clone(),
    };
    serve::run_as(&own, Some(&profile))
}

/// The flags of `serve` that say the same. What its own variables say already, they say.
fn flags(settings: &EmulatorSettings, is_set: impl Fn(&str) -> bool) -> anyhow::Result<Vec<OsString>> {
    let mut flags = Flags::default();
    if !is_set("ASTRARIUM_LISTEN") {
        flags.add("--listen", SocketAddr::new(settings.address, settings.port).to_string());
    }
    flags.switch("--allow-well-known-key");
    if !is_set("ASTRARIUM_EXPLORER") {
        flags.add("--explorer", settings.enable_explorer.to_string());
    }
    storage(settings, &is_set, &mut flags);
    if let Some(key) = key(settings)? {
        flags.add("--key", key);
    }
    let given = |text: &Option<String>| {
        text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    match &settings.cert_path {
        Some(path) => {
            check_certificate(path, settings.cert_secret.is_some())?;
            flags.add("--tls-certificate", path);
            flags.add("--tls-key", path);
        }
        None => {
            for name in own_name().into_iter().chain(given(&settings.ip_address_override)) {
                flags.add("--certificate-name", name);
            }
        }
    }
    if let Some(endpoint) = given(&settings.gateway_public_endpoint) {
        flags.add("--public-endpoint", public_endpoint(settings, &endpoint));
    }
    match given(&settings.log_level).map(|level| level.to_ascii_lowercase()) {
        Some(level) if level == "quiet" => flags.add("--log", "off"),
        Some(level) if level == "warning" => flags.add("--log", "warn"),
        Some(level) => flags.add("--log", level),
        None => {}
    }
    Ok(flags.words)
}

/// Flags as they stand on a command line.
#[derive(Default)]
struct Flags {
    words: Vec<OsString>,
}

impl Flags {
    fn switch(&mut self, name: &str) {
        self.words.push(name.into());
    }

    fn add(&mut self, name: &str, value: impl Into<OsString>) {
        let mut word = OsString::from(name);
        word.push("=");
        word.push(value.into());
        self.words.push(word);
    }
}

/// Where the data goes, unless a variable of `serve` says so.
fn storage(settings: &EmulatorSettings, is_set: impl Fn(&str) -> bool, flags: &mut Flags) {
    if ["ASTRARIUM_DATA", "ASTRARIUM_STORE", "ASTRARIUM_MEMORY"].into_iter().any(is_set) {
        return;
    }
    match (&settings.data_path, settings.enable_data_persistence) {
        (_, Some(false)) | (None, None) => flags.switch("--memory"),
        (Some(path), _) => flags.add("--data", path),
        (None, Some(true)) => flags.add("--data", "astrarium-data"),
    }
}

fn key(settings: &EmulatorSettings) -> anyhow::Result<Option<String>> {
    let Some(path) = &settings.key_file else { return Ok(settings.key.clone()) };
    let read = || {
        format!(
            "the key file {} (--key-file, KEY_FILE) must hold an account key and nothing else",
            path.display()
        )
    };
    let bytes = read_file(path, KEY_FILE_BYTES_MAX).with_context(read)?;
    let text = String::from_utf8(bytes).with_context(read)?;
    Ok(Some(text.trim().to_owned()))
}

/// What this machine, or container, is called; nothing if that cannot stand in a certificate.
fn own_name() -> Option<String> {
    let uname = rustix::system::uname();
    let name = uname.nodename().to_str().ok()?.to_owned();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    (!name.is_empty() && name.len() <= 253 && name.bytes().all(is_name)).then_some(name)
}

/// A file that cannot be used is told what to do with.
fn check_certificate(path: &Path, has_secret: bool) -> anyhow::Result<()> {
    let bytes = read_file(path, CERTIFICATE_BYTES_MAX).with_context(|| {
        format!("the certificate {} (--cert-path, CERT_PATH) cannot be read", path.display())
    })?;
    if has_secret || bytes.starts_with(&PKCS12_START) {
        bail!(
            "{} is a PKCS#12 file (.pfx); give PEM with certificate and key instead: openssl pkcs12 -in {} -nodes -out server.pem, \
             then CERT_PATH=server.pem without CERT_SECRET",
            path.display(),
            path.display()
        );
    }
    Ok(())
}

/// The emulator takes a host alone; a URL says more.
fn public_endpoint(settings: &EmulatorSettings, endpoint: &str) -> String {
    if endpoint.contains("://") {
        return endpoint.to_owned();
    }
    let scheme = settings.protocol.scheme();
    let has_port = endpoint.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port {
        format!("{scheme}://{endpoint}/")
    } else {
        format!("{scheme}://{endpoint}:{}/", settings.port)
    }
}

impl EmulatorProfile {
    /// Takes the further ports.
    pub(crate) fn take_ports(&self) -> anyhow::Result<Vec<(PortRole, TakenPort)>> {
        let health = TakenPort::take(self.health, "--health-port (or HEALTH_PORT)")?;
        let mut taken = vec![(PortRole::Health, health)];
        if let Some(explorer) = self.explorer {
            taken
                .push((PortRole::Explorer, TakenPort::take(explorer, "--explorer-port (or EXPLORER_PORT)")?));
        }
        Ok(taken)
    }

    /// Puts the certificate where the emulator's users look for it.
    pub(crate) fn write_certificate(&self, pem: &str) -> anyhow::Result<()> {
        let Some(path) = &self.certificate_file else { return Ok(()) };
        let written =
            path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(path, pem));
        written.with_context(|| format!("write the certificate to {}", path.display()))
    }

    /// Says that the server is ready, as the emulator does. Nobody needs to listen.
    pub(crate) fn announce(&self, address: SocketAddr, side_ports: &[(PortRole, SocketAddr)]) {
        let _ = self.say_started(address, side_ports);
    }

    fn say_started(&self, address: SocketAddr, side_ports: &[(PortRole, SocketAddr)]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "Now listening on: {}://{address}", self.scheme)?;
        for (role, address) in side_ports {
            match role {
                PortRole::Explorer => {
                    writeln!(out, "Explorer also at: {}://{}/", self.explorer_scheme, shown(*address))?;
                }
                _ => writeln!(out, "Health: http://{}/ready", shown(*address))?,
            }
        }
        out.flush()?;
        // A write of its own: some readers want a piece of the log that is this and nothing else.
        out.write_all(b"Started\r\n")?;
        out.flush()
    }
}

/// An address that can be opened: nobody can connect to every network.
fn shown(address: SocketAddr) -> String {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => format!("localhost:{}", address.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => format!("localhost:{}", address.port()),
        _ => address.to_string(),
    }
}

impl SidePorts {
    /// Opens the ports that were taken.
    pub(crate) fn listen(taken: Vec<(PortRole, TakenPort)>) -> anyhow::Result<SidePorts> {
        let listeners = taken.into_iter().map(|(role, port)| Ok((role, port.listen()?)));
        Ok(SidePorts { listeners: listeners.collect::<anyhow::Result<_>>()? })
    }

    /// Where they are.
    pub(crate) fn addresses(&self) -> io::Result<Vec<(PortRole, SocketAddr)>> {
        self.listeners.iter().map(|(role, listener)| Ok((*role, listener.local_addr()?))).collect()
    }

    /// Serves the further ports until `stopped` says so.
    pub(crate) fn serve(
        self,
        gateway: &Gateway,
        certificate: &Certificate,
        limits: ConnectionLimits,
        stopped: &watch::Receiver<bool>,
    ) -> impl Future<Output = ()> + use<> {
        let limits = ConnectionLimits { connections_max: SIDE_CONNECTIONS_MAX, ..limits };
        let mut side_ports = tokio::task::JoinSet::new();
        for (role, listener) in self.listeners {
            let (gateway, tls, mut stopped) =
                (gateway.at(role), Arc::clone(&certificate.config), stopped.clone());
            side_ports.spawn(async move {
                let shutdown = async move {
                    let _ = stopped.wait_for(|stopped| *stopped).await;
                };
                listener::serve(gateway, listener, Some(tls), limits, shutdown).await;
            });
        }
        async move { while side_ports.join_next().await.is_some() {} }
    }
}

/// The role of the account itself.
pub(crate) fn account_door(profile: Option<&EmulatorProfile>) -> PortRole {
    if profile.is_some() { PortRole::Emulator } else { PortRole::Account }
}

/// Settings of a test.
#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args as _, FromArgMatches as _};

    fn parsed(words: &[&str]) -> EmulatorSettings {
        // Without the variables of whoever runs the tests.
        let command = EmulatorSettings::augment_args(clap::Command::new("emulator"))
            .mut_args(|argument| argument.env(clap::builder::Resettable::Reset));
        let words = [&["emulator"], words].concat();
        EmulatorSettings::from_arg_matches(&command.get_matches_from(words)).expect("settings")
    }

    fn check(words: &[&str], set: &[&str], expected: &[&str], absent: &[&str]) {
        let flags = flags(&parsed(words), |name| set.contains(&name)).expect("flags");
        let flags: Vec<&str> = flags.iter().filter_map(|word| word.to_str()).collect();
        for flag in expected {
            assert!(flags.contains(flag), "{flag} in {flags:?}");
        }
        for flag in absent {
            assert!(!flags.iter().any(|word| word.starts_with(flag)), "{flag} not in {flags:?}");
        }
    }

    #[test]
    fn the_emulators_names_become_ours() {
        check(
            &[],
            &[],
            &["--listen=127.0.0.1:8081", "--memory", "--allow-well-known-key"],
            &["--data", "--key", "--log"],
        );
        check(
            &["--port", "9000", "--data-path", "/x", "--address", "0.0.0.0"],
            &[],
            &["--listen=0.0.0.0:9000", "--data=/x"],
            &["--memory"],
        );
        let kept = ["--enable-data-persistence", "true"];
        check(&kept, &[], &["--data=astrarium-data"], &["--memory"]);
        let dropped = ["--data-path", "/x", "--enable-data-persistence", "False"];
        check(&dropped, &[], &["--memory"], &["--data"]);
        check(&["--data-path", "/x"], &["ASTRARIUM_STORE"], &[], &["--data", "--memory"]);
        check(&["--log-level", "Quiet"], &[], &["--log=off"], &[]);
        check(&["--ip-address-override", "10.0.0.7"], &[], &["--certificate-name=10.0.0.7"], &[]);
        let none = flags(&parsed(&["--ip-address-override", ""]), |_| false).expect("flags");
        assert!(!none.contains(&"--certificate-name=".into()), "{none:?}");
        let host = ["--gateway-public-endpoint", "cosmos", "--protocol", "https"];
        check(&host, &[], &["--public-endpoint=https://cosmos:8081/"], &[]);
        check(&["--gateway-public-endpoint", "cosmos:9"], &[], &["--public-endpoint=http://cosmos:9/"], &[]);
        check(&["--gateway-public-endpoint", "https://a/"], &[], &["--public-endpoint=https://a/"], &[]);
        check(&["--enable-explorer", "--partition-count", "None", "--key", "k"], &[], &["--key=k"], &[]);
        assert!(parsed(&["--enable-explorer"]).enable_explorer);
        assert!(!parsed(&["--enable-explorer=false"]).enable_explorer);
    }
}
