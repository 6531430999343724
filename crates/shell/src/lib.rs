//! `astrarium shell`: an account looked at and worked with from a terminal, a script or a pipe.
//!
//! In: [`ShellSettings`], and statements from the command line, a file, a pipe or a person. Out: rows and texts on standard output,
//! figures and complaints on standard error, and an exit code: 0 all is done, 1 a statement failed, 2 wrong usage, 3 no connection.
//! - `settings`, `sources`: the command line, and where statements come from;
//! - `statement`, `words`: where a statement ends, what its words are;
//! - `session`, `place`, `commands/*`: what statements do, one file per family;
//! - `json_text`, `table`, `rows`, `output`, `terminal`: how answers look, the pager, colours;
//! - `prompt`, `completion`, `schema`, `history`: the line editor's side.
//!
//! Invariants
//! - Only the wire is spoken (`client`): any server of the protocol will do.
//! - Documents are text from the server to the output and back: no number passes through a double.
//! - What a server sends cannot control the terminal (`client::harmless`).
//! - A key is never written anywhere: not into the history, not into messages.
//!
//! Not here: import, export, dump and load (`tools`).

mod commands;
mod completion;
mod failure;
mod history;
mod json_text;
mod output;
mod place;
mod prompt;
mod rows;
mod schema;
mod session;
mod settings;
mod sources;
mod statement;
mod table;
mod terminal;
mod words;

pub use settings::ShellSettings;
pub use sources::run;
