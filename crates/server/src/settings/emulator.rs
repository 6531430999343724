//! Settings of `emulator` and `health`: the names that the service's emulator has for them, so that whoever starts that one can start
//! this one without a change.

use super::value;
use clap::{ArgAction, Args, ValueEnum};
use std::net::IpAddr;
use std::path::PathBuf;

pub(super) const EMULATOR_HELP: &str = "\
Takes the flags and variables of the service's emulator for Linux, prints what its users wait for (a line that begins with \"Now \
listening on: \", then \"Started\"), and has its ports. Settings of astrarium serve hold too, by their ASTRARIUM_ variables. Plain \
HTTP and TLS share every port, whatever the protocol is said to be.

Examples:
  astrarium emulator                             nothing is kept; ports 8081, 8080 and 1234 of this machine
  astrarium emulator --data-path data --enable-explorer false
  PORT=0 ENABLE_EXPLORER=false astrarium emulator --address 0.0.0.0";

/// The settings of the service's emulator, by its names.
#[derive(Debug, Clone, Args)]
pub(crate) struct EmulatorSettings {
    /// The protocol of the address that is printed: http, https or https-insecure.
    #[arg(long, env = "PROTOCOL", default_value = "http", value_name = "PROTOCOL", ignore_case = true)]
    pub(crate) protocol: EmulatorProtocol,

    /// The account's port; 0 takes a free one.
    #[arg(long, env = "PORT", default_value_t = 8081, value_name = "PORT")]
    pub(crate) port: u16,

    /// The address to listen on, for all ports. The default is this machine only, since everybody knows the key; the images set it to
    /// 0.0.0.0, every network, as a container needs it.
    #[arg(long, env = "ASTRARIUM_ADDRESS", default_value = "127.0.0.1", value_name = "ADDR")]
    pub(crate) address: IpAddr,

    /// The account key, base64. The default is the emulator's well-known key.
    #[arg(long, env = "AZURE_COSMOS_EMULATOR_KEY", value_name = "KEY", hide_env_values = true)]
    pub(crate) key: Option<String>,

    /// A file with the account key.
    #[arg(long, env = "KEY_FILE", value_name = "FILE", conflicts_with = "key")]
    pub(crate) key_file: Option<PathBuf>,

    /// Folder for the data; without it nothing is kept. The images set it to /data.
    #[arg(long, env = "DATA_PATH", value_name = "DIR")]
    pub(crate) data_path: Option<PathBuf>,

    /// Whether data is kept; false keeps nothing even if there is a folder for it.
    #[arg(long, env = "AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE", value_name = "BOOLEAN", value_parser = value::boolean, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub(crate) enable_data_persistence: Option<bool>,

    /// A further address or name of this machine for the certificate. Clients are told the address that they used in any case.
    #[arg(long, env = "AZURE_COSMOS_EMULATOR_IP_ADDRESS_OVERRIDE", value_name = "ADDR")]
    pub(crate) ip_address_override: Option<String>,

    /// Accepted for the emulator's sake: there are as many partitions as are needed.
    #[arg(long, env = "AZURE_COSMOS_EMULATOR_PARTITION_COUNT", value_name = "COUNT", value_parser = partition_count)]
    pub(crate) partition_count: Option<PartitionCount>,

    /// The host, or the whole endpoint, to tell clients instead of the one that they used.
    #[arg(long, env = "GATEWAY_PUBLIC_ENDPOINT", value_name = "HOST")]
    pub(crate) gateway_public_endpoint: Option<String>,

    /// Whether the explorer is served.
    #[arg(long, env = "ENABLE_EXPLORER", value_name = "BOOLEAN", default_value = "true", value_parser = value::boolean, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub(crate) enable_explorer: bool,

    /// The protocol of the explorer's address that is printed; the account's unless given.
    #[arg(long, env = "EXPLORER_PROTOCOL", value_name = "PROTOCOL", ignore_case = true)]
    pub(crate) explorer_protocol: Option<EmulatorProtocol>,

    /// The explorer's port; 0 takes a free one.
    #[arg(long, env = "EXPLORER_PORT", default_value_t = 1234, value_name = "PORT")]
    pub(crate) explorer_port: u16,

    /// The port of /alive and /ready; 0 takes a free one.
    #[arg(long, env = "HEALTH_PORT", default_value_t = 8080, value_name = "PORT")]
    pub(crate) health_port: u16,

    /// File with a certificate of your own and its key, as PEM; without it one is made.
    #[arg(long, env = "CERT_PATH", value_name = "FILE")]
    pub(crate) cert_path: Option<PathBuf>,

    /// The password of that file.
    #[arg(long, env = "CERT_SECRET", value_name = "TEXT", hide_env_values = true)]
    pub(crate) cert_secret: Option<String>,

    /// File to write the certificate to that clients may trust, as PEM. The images set it to where the emulator has it.
    #[arg(long, env = "ASTRARIUM_CERTIFICATE_FILE", value_name = "FILE")]
    pub(crate) certificate_file: Option<PathBuf>,

    /// Accepted for the emulator's sake: there is no telemetry.
    #[arg(long, env = "ENABLE_TELEMETRY", value_name = "BOOLEAN", default_value = "false", value_parser = value::boolean, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub(crate) enable_telemetry: bool,

    /// Accepted for the emulator's sake: metrics are at /metrics of the account's port, nothing is sent.
    #[arg(long, env = "ENABLE_OTLP_EXPORTER", value_name = "BOOLEAN", default_value = "false", value_parser = value::boolean, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub(crate) enable_otlp_exporter: bool,

    /// What to log: quiet, error, warn, info, debug or trace.
    #[arg(long, env = "LOG_LEVEL", value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,
}

/// How the emulator's address is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EmulatorProtocol {
    Http,
    Https,
    HttpsInsecure,
}

impl EmulatorProtocol {
    /// As in a URL.
    pub(crate) fn scheme(self) -> &'static str {
        match self {
            EmulatorProtocol::Http => "http",
            EmulatorProtocol::Https | EmulatorProtocol::HttpsInsecure => "https",
        }
    }
}

/// A number of partitions that nobody needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartitionCount;

/// A number, or what one of its users writes for none.
fn partition_count(text: &str) -> Result<PartitionCount, String> {
    let text = text.trim();
    if text.is_empty() || text.eq_ignore_ascii_case("none") || text.parse::<u32>().is_ok() {
        return Ok(PartitionCount);
    }
    Err("write a number, or leave it out: there are as many partitions as are needed".to_owned())
}

/// A server to ask how it is.
#[derive(Debug, Clone, Args)]
pub(crate) struct HealthSettings {
    /// Where the server listens. The default is this machine, at the port that PORT says or else 8081.
    #[arg(long, env = "ASTRARIUM_ENDPOINT", value_name = "URL")]
    pub(crate) endpoint: Option<String>,

    /// The port of this machine, if no endpoint is given.
    #[arg(long, env = "PORT", default_value_t = 8081, value_name = "PORT")]
    pub(crate) port: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_nobody_needs() {
        for text in ["3", "None", " none", ""] {
            assert_eq!(partition_count(text), Ok(PartitionCount), "{text}");
        }
        for text in ["many", "-1", "3.5"] {
            assert!(partition_count(text).is_err(), "{text}");
        }
    }
}
