//! Settings of the commands about stores: `store`, `status`, `verify`.

use super::{ContainerName, ServerAddress};
use clap::{Args, Subcommand};
use std::path::PathBuf;

pub(super) const STORE_HELP: &str = "\
The address of a store may come from ASTRARIUM_STORE instead, so that its password is on no command line.

Examples:
  astrarium store init postgres://astrarium@db1:5432/astrarium
  astrarium store status postgres://astrarium@db1:5432/astrarium
  astrarium store add --store postgres://astrarium@db1/astrarium second postgres://astrarium@db2/astrarium
  astrarium store import --data astrarium-data --store postgres://astrarium@db1/astrarium
  astrarium store move library books 0 second
  astrarium store drain second
  astrarium store remove --store postgres://astrarium@db1/astrarium second

A store with standbys is named by all of its machines; the one that takes writes is used:
  postgres://astrarium@db1:5432,db1b:5432/astrarium
Further parameters: ?schema=NAME (several accounts in one database), ?sslmode=require, ?sslrootcert=FILE.";

pub(super) const STATUS_HELP: &str = "\
Ends with 1 if something is wrong: a server that went without saying so, a store that does not answer, a lost index, a
standby far behind.

Examples:
  astrarium status --store postgres://astrarium@db1:5432/astrarium
  ASTRARIUM_STORE=postgres://astrarium@db1/astrarium astrarium status --json";

#[derive(Debug, Clone, Args)]
pub(crate) struct StoreSettings {
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum StoreCommand {
    /// Make the tables of a store, unless they are there. The first store of an account, or one to be added.
    Init(StoreAddress),
    /// Show what a store is: version, format, account, size, dangerous settings. Ends with 1 if it cannot be used.
    Status(StoreAddress),
    /// Bring the tables of a store up to date, after all servers have the new program.
    Migrate(StoreAddress),
    /// Add a store to an account, for more data and more writes. Its tables are made if need be.
    Add {
        /// The account's first store.
        #[arg(long, env = "ASTRARIUM_STORE", value_name = "URL", hide_env_values = true)]
        store: String,
        /// What the new store is to be called.
        #[arg(value_parser = super::value::server_name)]
        name: String,
        /// Where the new store is, as every server reaches it.
        #[arg(value_name = "NEW_URL")]
        url: String,
    },
    /// Say where a store is that was moved, or restored from a backup elsewhere. Servers learn of it within seconds.
    SetUrl {
        /// The account's first store.
        #[arg(long, env = "ASTRARIUM_STORE", value_name = "URL", hide_env_values = true)]
        store: String,
        /// What the store is called; not the first one.
        name: String,
        /// Where it is now.
        #[arg(value_name = "NEW_URL")]
        url: String,
    },
    /// Remove a store that was drained from an account. Its tables stay, and can be dropped then.
    Remove {
        /// The account's first store.
        #[arg(long, env = "ASTRARIUM_STORE", value_name = "URL", hide_env_values = true)]
        store: String,
        /// What the store is called; not the first one.
        name: String,
    },
    /// Copy an account from a data folder into a store that has none, as it is: names, documents, etags, sessions and change-feed
    /// positions stay. The folder's server must be stopped; the folder stays as it is.
    Import {
        /// The data folder.
        #[arg(long, env = "ASTRARIUM_DATA", value_name = "DIR")]
        data: PathBuf,
        /// The store; its tables are made if need be.
        #[arg(long, env = "ASTRARIUM_STORE", value_name = "URL", hide_env_values = true)]
        store: String,
    },
    /// Copy an account from its stores into a new data folder, as it is. Its servers must be stopped; the stores stay as they are.
    Export {
        /// The account's first store.
        #[arg(long, env = "ASTRARIUM_STORE", value_name = "URL", hide_env_values = true)]
        store: String,
        /// The data folder; made if it is not there.
        #[arg(long, env = "ASTRARIUM_DATA", value_name = "DIR")]
        data: PathBuf,
    },
    /// Show the stores, and in which of them every partition key range is, as a running server tells it.
    Placement(ServerAddress),
    /// Move a partition key range to another store while clients work. A small container is done at once, a large one beside
    /// requests.
    Move {
        #[command(flatten)]
        server: ServerAddress,
        #[command(flatten)]
        of: ContainerName,
        /// The id of the range.
        range: u32,
        /// The name or the number of the store.
        #[arg(value_name = "STORE")]
        place: String,
    },
    /// Have everything moved away from a store, beside requests; nothing new is put there. Not the first one's catalog.
    Drain {
        #[command(flatten)]
        server: ServerAddress,
        /// The name or the number of the store.
        #[arg(value_name = "STORE")]
        place: String,
        /// End that: what is there still stays, and new ranges are put there again.
        #[arg(long)]
        stop: bool,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct StoreAddress {
    /// Where the store is, such as postgres://user@host:5432/database.
    #[arg(env = "ASTRARIUM_STORE", value_name = "URL", hide_env_values = true)]
    pub(crate) url: String,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct StatusSettings {
    /// The account's first store. No server needs to run.
    #[arg(long, env = "ASTRARIUM_STORE", value_name = "URL", hide_env_values = true)]
    pub(crate) store: String,
    /// As JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct VerifySettings {
    /// The data folder. The server must be stopped.
    #[arg(long, env = "ASTRARIUM_DATA", default_value = "astrarium-data", value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// The account's first store instead. Servers may go on.
    #[arg(
        long,
        env = "ASTRARIUM_STORE",
        value_name = "URL",
        hide_env_values = true,
        conflicts_with = "data"
    )]
    pub(crate) store: Option<String>,
}
