//! Every setting, once: the command line, the environment and `--help` come from these definitions.
//!
//! What texts mean is in `value`, what cannot go together in `conflict`, how all of it is read in `read`.

#![allow(
    rustdoc::bare_urls,
    rustdoc::broken_intra_doc_links,
    reason = "the comments of settings are what --help prints, which knows no markup"
)]

mod conflict;
mod emulator;
#[cfg(test)]
mod page;
mod read;
mod store;
mod tools;
mod value;

use astrarium_tools::{CopySettings, DumpSettings, ExportSettings, ImportSettings, LoadSettings};
use astrarium_wire::consistency::ConsistencyLevel;
use astrarium_wire::key_text::EMULATOR_KEY;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

pub(crate) use emulator::{EmulatorSettings, HealthSettings};
pub(crate) use read::{definitions, read, serve_settings, unknown_variables};
pub(crate) use store::{StatusSettings, StoreAddress, StoreCommand, StoreSettings, VerifySettings};

/// What `--version` says: the version, and the commit that the program was built from where that is known.
pub(crate) const VERSION: &str = env!("ASTRARIUM_VERSION");

/// Least megabytes of the memory budget.
const MEMORY_BUDGET_MIN: u64 = 64;
/// Most megabytes of a setting: what a number of bytes can count.
const MEGABYTES_MAX: u64 = u64::MAX >> 20;
/// Most connections of a setting; no machine has so many.
const CONNECTIONS_MAX: u64 = 10_000_000;

/// Longest session of the explorer: a month.
const SESSION_MINUTES_MAX: u64 = 31 * 24 * 60;

const SERVE_HELP: &str = "\
Each setting is a flag or an environment variable; a flag counts more. Flags without a value are on with 1, true, yes or on in the \
environment, and off with 0, false, no, off or nothing.

Examples:
  astrarium serve                          data in ./astrarium-data, port 8081
  astrarium serve --memory --listen 9000   nothing is kept, port 9000

  openssl rand -base64 64 > key            a key of your own, for a network
  astrarium serve --listen 0.0.0.0:8081 --key \"$(cat key)\"";

const COMPLETIONS_HELP: &str = "\
Examples:
  astrarium completions bash > ~/.local/share/bash-completion/completions/astrarium
  astrarium completions zsh > ~/.zfunc/_astrarium                 with fpath+=~/.zfunc before compinit in ~/.zshrc
  astrarium completions fish > ~/.config/fish/completions/astrarium.fish";

const MAN_HELP: &str = "\
Examples:
  astrarium man serve | man -l -
  astrarium man --into ~/.local/share/man/man1";

/// A document database that speaks the protocol of Azure Cosmos DB for NoSQL.
#[derive(Debug, Parser)]
#[command(
    name = "astrarium",
    version = VERSION,
    about,
    after_help = "Start with: astrarium serve. All settings: astrarium help serve."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server until it is stopped (SIGTERM or Ctrl-C). SIGHUP changes nothing: settings are read at the start only.
    #[command(after_help = SERVE_HELP)]
    Serve(Box<ServeSettings>),
    /// Run the server in the place of the service's emulator: its flags, variables, ports and log lines. What the container images run.
    #[command(after_help = emulator::EMULATOR_HELP)]
    Emulator(Box<EmulatorSettings>),
    /// Ask a server whether it takes requests. Ends with 0 if it does, and with 1 and the reason if not.
    Health(HealthSettings),
    /// Show an account on PostgreSQL: its servers, stores and key ranges, and what is wrong.
    #[command(after_help = store::STATUS_HELP)]
    Status(StatusSettings),
    /// Look after the PostgreSQL stores that servers keep an account in: make, show, migrate and add them; move data between them.
    #[command(after_help = store::STORE_HELP)]
    Store(StoreSettings),
    /// Check a data folder or a store: checksums, and that documents, directory, change feed, indexes and unique keys agree. Ends
    /// with 1 if they do not.
    Verify(VerifySettings),
    /// Let a data folder be used again that lost acknowledged writes. Without --accept-loss it only tells what is missing.
    Repair {
        /// The data folder.
        #[arg(long, env = "ASTRARIUM_DATA", default_value = "astrarium-data", value_name = "DIR")]
        data: PathBuf,
        /// Go on without what is missing.
        #[arg(long)]
        accept_loss: bool,
        /// Build all indexes anew from the documents instead. The server does that by itself, beside requests, where it meets
        /// damage.
        #[arg(long, conflicts_with = "accept_loss")]
        index: bool,
    },
    /// Look at an account and work with it: ls, cd, SQL, items, scripts; from a terminal, a script or a pipe.
    Shell(Box<astrarium_shell::ShellSettings>),
    /// Ask something of a running server: what its partitions hold, and to split or merge them.
    Admin(AdminSettings),
    /// Write the rows of a file into a container: JSON lines, JSON, CSV; compressed or not.
    #[command(after_help = tools::IMPORT_HELP)]
    Import(Box<ImportSettings>),
    /// Write the documents of a container, or the rows of a query, to a file or to standard output.
    #[command(after_help = tools::EXPORT_HELP)]
    Export(Box<ExportSettings>),
    /// Write a whole account into one archive: databases, containers, policies, throughput, scripts, users, documents.
    #[command(after_help = tools::DUMP_HELP)]
    Dump(DumpSettings),
    /// Make databases and containers of an archive that a dump has written.
    Load(LoadSettings),
    /// Copy databases and containers from one account to another, while the first is in use.
    #[command(after_help = tools::COPY_HELP)]
    Copy(Box<CopySettings>),
    /// Write the completions of a shell to standard output.
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// The shell.
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Write the manual page of the program, or of one of its commands, to standard output.
    #[command(after_help = MAN_HELP)]
    Man {
        /// The command, such as serve, or store add.
        #[arg(value_name = "COMMAND", conflicts_with = "into")]
        command: Vec<String>,
        /// Write the pages of the program and of all its commands into this folder instead.
        #[arg(long, value_name = "DIR")]
        into: Option<PathBuf>,
    },
    /// Run scripts for a server, which starts this itself.
    #[command(hide = true)]
    ScriptWorker,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct AdminSettings {
    #[command(flatten)]
    pub(crate) server: ServerAddress,

    #[command(subcommand)]
    pub(crate) command: AdminCommand,
}

/// A running server, and the right to ask something of it.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServerAddress {
    /// Where the server listens; of several, any one.
    #[arg(
        long,
        global = true,
        env = "ASTRARIUM_ENDPOINT",
        default_value = "http://127.0.0.1:8081",
        value_name = "URL"
    )]
    pub(crate) endpoint: String,

    /// Its account key. The default is the emulator's well-known key.
    #[arg(long, global = true, env = "ASTRARIUM_KEY", default_value = EMULATOR_KEY, value_name = "KEY", hide_default_value = true, hide_env_values = true)]
    pub(crate) key: String,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum AdminCommand {
    /// Show the partition key ranges of a container, and what they hold.
    Ranges(ContainerName),
    /// Split a partition key range in two. A small container is done at once, a large one beside requests.
    Split {
        #[command(flatten)]
        of: ContainerName,
        /// The id of the range.
        range: u32,
    },
    /// Make one partition key range of two neighbours.
    Merge {
        #[command(flatten)]
        of: ContainerName,
        /// The id of the lower one.
        low: u32,
        /// The id of the next one.
        high: u32,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ContainerName {
    /// The database.
    pub(crate) database: String,
    /// The container.
    pub(crate) container: String,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ServeSettings {
    /// Address and port to listen on; plain HTTP and TLS share the port. 8081, :8081 and localhost:8081 mean this machine
    /// only (127.0.0.1); 0.0.0.0:8081 or [::]:8081 mean every network; port 0 takes a free one.
    #[arg(long, env = "ASTRARIUM_LISTEN", default_value = "127.0.0.1:8081", value_name = "ADDR:PORT", value_parser = value::listen)]
    pub(crate) listen: SocketAddr,

    /// Folder for the data; made if it is not there.
    #[arg(long, env = "ASTRARIUM_DATA", default_value = "astrarium-data", value_name = "DIR")]
    pub(crate) data: PathBuf,

    /// Keep everything in memory and nothing afterwards; not together with --data.
    #[arg(long, env = "ASTRARIUM_MEMORY", value_parser = value::boolean)]
    pub(crate) memory: bool,

    /// Keep the data in PostgreSQL instead, such as postgres://user@host:5432/database: any number of servers over the same store
    /// are one account. Make its tables first: astrarium store init URL. Not together with --data or --memory.
    #[arg(long, env = "ASTRARIUM_STORE", value_name = "URL", hide_env_values = true)]
    pub(crate) store: Option<String>,

    /// What this server is called among those of its store: by operators, and as a region by SDKs (preferred locations). The default
    /// is its address.
    #[arg(long, env = "ASTRARIUM_SERVER_NAME", value_name = "NAME", value_parser = value::server_name, requires = "store")]
    pub(crate) server_name: Option<String>,

    /// Address and port on which this server listens for others of its store, which it knows by certificates in the store. The
    /// default is a free port of the address that clients use, if that is a single one.
    #[arg(long, env = "ASTRARIUM_PEER_LISTEN", value_name = "ADDR:PORT", value_parser = value::listen, requires = "store")]
    pub(crate) peer_listen: Option<SocketAddr>,

    /// Where other servers reach that, if it is not the address it listens on, such as db1.internal:8082.
    #[arg(long, env = "ASTRARIUM_PEER_ADDRESS", value_name = "HOST:PORT", requires = "peer_listen")]
    pub(crate) peer_address: Option<String>,

    /// Folder that declares databases, containers, documents and scripts, which are there when the server is ready: for tests. What differs is
    /// made so, everything else stays; contradictions are refused. See docs/tools.md.
    #[arg(long, env = "ASTRARIUM_SEED", value_name = "DIR")]
    pub(crate) seed: Option<PathBuf>,

    /// Primary account key, base64; line breaks within it are ignored. The default is the emulator's well-known key.
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
    #[arg(long, env = "ASTRARIUM_ALLOW_WELL_KNOWN_KEY", value_parser = value::boolean)]
    pub(crate) allow_well_known_key: bool,

    /// Endpoint to tell clients, if it is not the one they connect to, such as https://db.example.org/. Servers of one store that are
    /// behind a balancer all have the balancer's.
    #[arg(long, env = "ASTRARIUM_PUBLIC_ENDPOINT", value_name = "URL", value_parser = value::endpoint)]
    pub(crate) public_endpoint: Option<String>,

    /// Names to answer to while the well-known key is in use, besides addresses, localhost, names without a dot, *.local,
    /// *.internal and the public endpoint's; *.example.org is every name below, * is every name.
    #[arg(long, env = "ASTRARIUM_ALLOWED_HOSTS", value_name = "NAME", value_delimiter = ',', value_parser = value::host)]
    pub(crate) allowed_host: Vec<String>,

    /// Believe X-Forwarded-Proto and X-Forwarded-Host; only behind a proxy that sets them.
    #[arg(long, env = "ASTRARIUM_TRUST_FORWARDED", value_parser = value::boolean)]
    pub(crate) trust_forwarded: bool,

    /// File with a TLS certificate of your own and those it was issued by, as PEM; without it one is made.
    #[arg(long, env = "ASTRARIUM_TLS_CERTIFICATE", value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,

    /// File with the key of that certificate, as PEM.
    #[arg(long, env = "ASTRARIUM_TLS_KEY", value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Further names or addresses for the TLS certificate that is made.
    #[arg(long, env = "ASTRARIUM_CERTIFICATE_NAMES", value_name = "NAME", value_delimiter = ',')]
    pub(crate) certificate_name: Vec<String>,

    /// Origins whose browsers may use the server, such as https://app.example.org; * for all.
    #[arg(long, env = "ASTRARIUM_CORS_ORIGINS", value_name = "ORIGIN", value_delimiter = ',', value_parser = value::origin)]
    pub(crate) cors_origin: Vec<String>,

    /// Offer the explorer, a page for looking at data, at /_explorer: true or false. ENABLE_EXPLORER in the environment means the same,
    /// and counts less.
    #[arg(long, alias = "enable-explorer", env = "ASTRARIUM_EXPLORER", default_value_t = value::explorer_default(), action = ArgAction::Set, value_name = "BOOL", value_parser = value::boolean)]
    pub(crate) explorer: bool,

    /// How long somebody who signed in to the explorer stays signed in.
    #[arg(long, env = "ASTRARIUM_EXPLORER_SESSION_MINUTES", default_value_t = 720, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..=SESSION_MINUTES_MAX))]
    pub(crate) explorer_session_minutes: u64,

    /// The account's consistency level, in any case and as the service writes it too (BoundedStaleness); all of them are met by a
    /// single server.
    #[arg(
        long,
        env = "ASTRARIUM_CONSISTENCY",
        default_value = "session",
        value_name = "LEVEL",
        ignore_case = true
    )]
    pub(crate) consistency: Consistency,

    /// Answer queries over several key ranges whole, instead of leaving the merging to the SDK as the service does.
    #[arg(long, env = "ASTRARIUM_WHOLE_QUERIES", value_parser = value::boolean)]
    pub(crate) whole_queries: bool,

    /// Serve the change feed of all versions and deletes for every container, as the service does for accounts with continuous
    /// backup: changes are kept for 7 days, or longer where a container's changeFeedPolicy says so. The feed of a container that is
    /// there already begins when this is switched on. The same on all servers of an account.
    #[arg(long, env = "ASTRARIUM_CONTINUOUS_BACKUP", value_parser = value::boolean)]
    pub(crate) continuous_backup: bool,

    /// Give the version before each replace and delete in the change feed of all versions and deletes, as the service does for
    /// accounts that ask for previous images.
    #[arg(long, env = "ASTRARIUM_PREVIOUS_IMAGES", value_parser = value::boolean)]
    pub(crate) previous_images: bool,

    /// Refuse requests beyond the provisioned throughput with 429, as the service does: each key range has its share of its
    /// container's request units a second. A single container does so, or does not, if its offer's content says
    /// "astrariumThrottling": true or false.
    #[arg(long, env = "ASTRARIUM_THROTTLE", value_parser = value::boolean)]
    pub(crate) throttle: bool,

    /// Memory for caches, queries, scripts, requests and answers altogether, in megabytes; what does not fit waits or is refused
    /// with 429. The default is a quarter of the memory of the machine or container.
    #[arg(long, env = "ASTRARIUM_MEMORY_BUDGET", value_name = "MB", value_parser = clap::value_parser!(u64).range(MEMORY_BUDGET_MIN..=MEGABYTES_MAX))]
    pub(crate) memory_budget: Option<u64>,

    /// Memory for stored blocks that were read, in megabytes, out of the memory budget. The default is half of it, at most 1024.
    #[arg(long, env = "ASTRARIUM_CACHE_MB", value_name = "MB", value_parser = clap::value_parser!(u64).range(..=MEGABYTES_MAX))]
    pub(crate) cache_mb: Option<u64>,

    /// Refuse writes while the disk has fewer megabytes free.
    #[arg(long, env = "ASTRARIUM_RESERVE_MB", default_value_t = 256, value_name = "MB", value_parser = clap::value_parser!(u64).range(..=MEGABYTES_MAX))]
    pub(crate) reserve_mb: u64,

    /// Where stored procedures, triggers and user-defined functions run: in processes, which are killed when their time is
    /// over, or on threads of the server, where some loops cannot be stopped.
    #[arg(long, env = "ASTRARIUM_SCRIPT_ISOLATION", default_value = "process", value_name = "WHERE")]
    pub(crate) script_isolation: ScriptIsolation,

    /// Make a new JavaScript world for every run of a script, instead of putting back the memory of one. Costs some hundred
    /// microseconds a run.
    #[arg(long, env = "ASTRARIUM_SCRIPT_FRESH_WORLDS", value_parser = value::boolean)]
    pub(crate) script_fresh_worlds: bool,

    /// Open connections at most. The default is 20000, or as many as the limit of open files leaves beside storage.
    #[arg(long, env = "ASTRARIUM_CONNECTIONS", value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=CONNECTIONS_MAX))]
    pub(crate) connections: Option<u64>,

    /// Stop as soon as standard input is closed, as it is when the process that started the server ends, however that ends: for tests
    /// that start a server of their own.
    #[arg(long, env = "ASTRARIUM_UNTIL_STDIN_CLOSES", value_parser = value::boolean)]
    pub(crate) until_stdin_closes: bool,

    /// What to log: off, error, warn, info, debug, trace, or a list such as warn,astrarium_gateway=debug.
    #[arg(long, env = "ASTRARIUM_LOG", default_value = "info", value_name = "LEVEL", value_parser = value::log_filter)]
    pub(crate) log: String,

    /// Form of the log, on standard error.
    #[arg(long, env = "ASTRARIUM_LOG_FORMAT", default_value = "text", value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,

    /// Log every request: verb, path, status and substatus, charge, time, why it failed, the shape of a query without its
    /// values, user agent. Never keys, tokens or documents.
    #[arg(long, env = "ASTRARIUM_LOG_REQUESTS", value_parser = value::boolean)]
    pub(crate) log_requests: bool,

    /// Let POST /_admin/clock {"advanceSeconds": 60}, signed with an account key, move the server's clock forwards: for tests of what expires.
    /// Never where data matters.
    #[arg(long, env = "ASTRARIUM_TEST_CLOCK", value_parser = value::boolean)]
    pub(crate) test_clock: bool,

    /// Log requests, as warnings, that take at least so many milliseconds; 0 for none.
    #[arg(long, env = "ASTRARIUM_LOG_SLOW_MS", default_value_t = 1_000, value_name = "MS")]
    pub(crate) log_slow_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScriptIsolation {
    Process,
    Thread,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Consistency {
    Strong,
    #[value(alias = "boundedstaleness")]
    BoundedStaleness,
    Session,
    #[value(alias = "consistentprefix")]
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
