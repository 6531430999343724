//! The command line of the shell.

#![allow(
    rustdoc::bare_urls,
    rustdoc::broken_intra_doc_links,
    reason = "the comments of settings are what --help prints, which knows no markup"
)]

use crate::rows::OutputMode;
use astrarium_client::{ClientOptions, DEFAULT_ENDPOINT};
use astrarium_wire::key_text::EMULATOR_KEY;
use clap::Args;
use std::path::PathBuf;

/// What `astrarium shell --help` ends with.
pub(crate) const HELP: &str = "\
Examples:
  astrarium shell                                          the local server
  astrarium shell https://NAME.documents.azure.com --key KEY
  astrarium shell --use library/books -c 'SELECT * FROM c'
  astrarium shell --use library/books --mode csv -f report.sql > report.csv

Exit codes: 0 all is done, 1 a statement failed, 2 wrong usage, 3 no connection to an account.";

/// Look at an account and work with it: ls, cd, SQL, items, scripts; from a terminal, a script or a pipe.
#[derive(Clone, Args)]
#[command(after_help = HELP)]
pub struct ShellSettings {
    /// The account: a URL or a connection string; the same as --endpoint.
    #[arg(value_name = "URL", conflicts_with = "endpoint")]
    pub url: Option<String>,

    /// URL or connection string of the account. Without both it is $ASTRARIUM_ENDPOINT, or http://127.0.0.1:8081.
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,

    /// Its key. The default is the emulator's well-known key.
    #[arg(long, env = "ASTRARIUM_KEY", default_value = EMULATOR_KEY, value_name = "KEY", hide_default_value = true, hide_env_values = true)]
    pub key: String,

    /// Where to begin, as with cd.
    #[arg(long = "use", value_name = "DB/CONTAINER")]
    pub place: Option<String>,

    /// Run this and end; may be given several times.
    #[arg(short = 'c', long = "command", value_name = "STATEMENT")]
    pub statements: Vec<String>,

    /// Run the statements of a file and end; - is standard input. After those of -c.
    #[arg(short = 'f', long, value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// How rows are shown: table on a terminal, JSON lines elsewhere, unless this says otherwise.
    #[arg(long, value_enum, value_name = "MODE")]
    pub mode: Option<OutputMode>,

    /// Say nothing about charges, times and counts.
    #[arg(short, long)]
    pub quiet: bool,

    /// Go on after a statement that failed; the exit code is still 1.
    #[arg(long)]
    pub keep_going: bool,

    /// Where to keep what is typed at the prompt; empty for nowhere. Usually astrarium/shell-history in the folder for state
    /// ($XDG_STATE_HOME or ~/.local/state).
    #[arg(long, env = "ASTRARIUM_HISTORY", value_name = "FILE")]
    pub history: Option<std::ffi::OsString>,

    /// Accept any certificate. A server on this machine is believed without.
    #[arg(long)]
    pub insecure: bool,

    /// PEM file with the authority to trust instead of the system's.
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
}

impl ShellSettings {
    /// What the client is made from.
    pub(crate) fn client_options(&self) -> ClientOptions {
        // Not by clap: to it a variable would be a second endpoint beside the URL that was typed.
        let variable = || std::env::var("ASTRARIUM_ENDPOINT").ok().filter(|endpoint| !endpoint.is_empty());
        let told = self.url.clone().or_else(|| self.endpoint.clone()).or_else(variable);
        let mut options = ClientOptions::new(told.as_deref().unwrap_or(DEFAULT_ENDPOINT), &self.key);
        options.insecure = self.insecure;
        options.authority.clone_from(&self.ca);
        options
    }
}

impl std::fmt::Debug for ShellSettings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ShellSettings").field("place", &self.place).finish_non_exhaustive()
    }
}
