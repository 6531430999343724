//! Every setting, once: the command line, the environment and `--help` come from these definitions.

use astrarium_wire::consistency::ConsistencyLevel;
use astrarium_wire::key_text::EMULATOR_KEY;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

/// A document database that speaks the protocol of Azure Cosmos DB for NoSQL.
#[derive(Debug, Parser)]
#[command(name = "astrarium", version, about, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server until it is stopped (SIGTERM or Ctrl-C).
    Serve(Box<ServeSettings>),
    /// Check a data folder: checksums, and that documents, directory, change feed, indexes and unique keys agree. The server
    /// must be stopped.
    Verify {
        /// The data folder.
        #[arg(long, env = "ASTRARIUM_DATA", default_value = "astrarium-data", value_name = "DIR")]
        data: PathBuf,
    },
    /// Let a data folder be used again that lost acknowledged writes. Without --accept-loss it only tells what is missing.
    Repair {
        /// The data folder.
        #[arg(long, env = "ASTRARIUM_DATA", default_value = "astrarium-data", value_name = "DIR")]
        data: PathBuf,
        /// Go on without what is missing.
        #[arg(long)]
        accept_loss: bool,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ServeSettings {
    /// Address and port to listen on; plain HTTP and TLS share the port.
    #[arg(long, env = "ASTRARIUM_LISTEN", default_value = "127.0.0.1:8081", value_name = "ADDR:PORT")]
    pub(crate) listen: SocketAddr,

    /// Folder for the data; made if it is not there.
    #[arg(long, env = "ASTRARIUM_DATA", default_value = "astrarium-data", value_name = "DIR")]
    pub(crate) data: PathBuf,

    /// Keep everything in memory and nothing afterwards.
    #[arg(long, env = "ASTRARIUM_MEMORY")]
    pub(crate) memory: bool,

    /// Primary account key, base64. The default is the emulator's well-known key.
    #[arg(long, env = "ASTRARIUM_KEY", default_value = EMULATOR_KEY, value_name = "KEY", hide_default_value = true, hide_env_values = true)]
    pub(crate) key: String,

    /// Secondary account key.
    #[arg(long, env = "ASTRARIUM_SECONDARY_KEY", value_name = "KEY", hide_env_values = true)]
    pub(crate) secondary_key: Option<String>,

    /// Key that may read and query only.
    #[arg(long, env = "ASTRARIUM_READ_ONLY_KEY", value_name = "KEY", hide_env_values = true)]
    pub(crate) read_only_key: Option<String>,

    /// Second key that may read and query only.
    #[arg(long, env = "ASTRARIUM_SECONDARY_READ_ONLY_KEY", value_name = "KEY", hide_env_values = true)]
    pub(crate) secondary_read_only_key: Option<String>,

    /// Listen beyond this machine with the well-known key, which everybody knows.
    #[arg(long, env = "ASTRARIUM_ALLOW_WELL_KNOWN_KEY")]
    pub(crate) allow_well_known_key: bool,

    /// Endpoint to tell clients, if it is not the one they connect to.
    #[arg(long, env = "ASTRARIUM_PUBLIC_ENDPOINT", value_name = "URL")]
    pub(crate) public_endpoint: Option<String>,

    /// Believe X-Forwarded-Proto and X-Forwarded-Host; only behind a proxy that sets them.
    #[arg(long, env = "ASTRARIUM_TRUST_FORWARDED")]
    pub(crate) trust_forwarded: bool,

    /// Further names or addresses for the TLS certificate, when it is made.
    #[arg(long, env = "ASTRARIUM_CERTIFICATE_NAMES", value_name = "NAME", value_delimiter = ',')]
    pub(crate) certificate_name: Vec<String>,

    /// Origins whose browsers may use the server; * for all.
    #[arg(long, env = "ASTRARIUM_CORS_ORIGINS", value_name = "ORIGIN", value_delimiter = ',')]
    pub(crate) cors_origin: Vec<String>,

    /// The account's consistency level; all of them are met by a single server.
    #[arg(long, env = "ASTRARIUM_CONSISTENCY", default_value = "session", value_name = "LEVEL")]
    pub(crate) consistency: Consistency,

    /// Answer queries over several key ranges whole, instead of leaving the merging to the SDK as the service does.
    #[arg(long, env = "ASTRARIUM_WHOLE_QUERIES")]
    pub(crate) whole_queries: bool,

    /// Memory for stored blocks that were read, in megabytes. The default is a quarter of the machine's, at most 1024.
    #[arg(long, env = "ASTRARIUM_CACHE_MB", value_name = "MB")]
    pub(crate) cache_mb: Option<u64>,

    /// Refuse writes while the disk has fewer megabytes free.
    #[arg(long, env = "ASTRARIUM_RESERVE_MB", default_value_t = 256, value_name = "MB")]
    pub(crate) reserve_mb: u64,

    /// Open connections at most.
    #[arg(long, env = "ASTRARIUM_CONNECTIONS", default_value_t = 20_000, value_name = "COUNT")]
    pub(crate) connections: usize,

    /// What to log: error, warn, info, debug, or a filter of the tracing library.
    #[arg(long, env = "ASTRARIUM_LOG", default_value = "warn", value_name = "LEVEL")]
    pub(crate) log: String,

    /// Form of the log, on standard error.
    #[arg(long, env = "ASTRARIUM_LOG_FORMAT", default_value = "text", value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,

    /// Log every request: verb, path, status, time.
    #[arg(long, env = "ASTRARIUM_LOG_REQUESTS")]
    pub(crate) log_requests: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Consistency {
    Strong,
    BoundedStaleness,
    Session,
    ConsistentPrefix,
    Eventual,
}

impl Consistency {
    pub(crate) fn level(self) -> ConsistencyLevel {
        match self {
            Consistency::Strong => ConsistencyLevel::Strong,
            Consistency::BoundedStaleness => ConsistencyLevel::BoundedStaleness,
            Consistency::Session => ConsistencyLevel::Session,
            Consistency::ConsistentPrefix => ConsistencyLevel::ConsistentPrefix,
            Consistency::Eventual => ConsistencyLevel::Eventual,
        }
    }
}
