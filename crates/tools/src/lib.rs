//! The commands that move data: `import`, `export`, `dump`, `load`, `copy`, and the folder of `serve --seed`.
//!
//! In: what was typed, files, and an account reached over the wire by `client`. Out: documents there or here, a line that says what was done,
//! and whether all of it was.
//! - `import`, `export`: rows of a file into a container and back; `formats` opens and writes them, `astrarium_rows` reads them and makes ids and keys;
//! - `dump`, `load`, `archive`: an account in one file; `snapshot` reads a container as of one moment;
//! - `copy`: from one account to another while the first is in use;
//! - `seed`: an account declared by a folder.
//!
//! Invariants
//! - Bad input is refused before anything is written wherever it can be read twice; where it cannot (standard input), what was written is told.
//! - Memory is bounded whatever the size of files: rows, pages and queues have limits, documents are text.
//! - Numbers and spelling of documents are never changed: no document passes through a double.
//!
//! Not here: the protocol (`client`), the command line as a whole (`server`).

mod archive;
mod bulk_writer;
mod check;
mod connection;
mod copy;
mod definitions;
mod documents;
mod dump;
mod error;
mod export;
mod formats;
pub mod fuzzing;
mod import;
mod input;
mod load;
mod output;
mod progress;
mod rate;
mod restore;
mod resume;
mod seed;
mod snapshot;

pub use astrarium_client::harmless_lines;
pub use bulk_writer::ExistingMode;
pub use connection::{AccountSettings, ContainerPath};
pub use copy::{CopySettings, copy};
pub use dump::{DumpSettings, dump};
pub use error::ToolError;
pub use export::{ExportSettings, export};
pub use formats::FileFormat;
pub use import::{ImportSettings, import};
pub use load::{LoadSettings, load};
pub use seed::SeedPlan;

/// What a command did, for its last line and its exit code.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolReport {
    /// A sentence for people.
    pub text: String,
    /// Whether everything was done.
    pub is_complete: bool,
}
