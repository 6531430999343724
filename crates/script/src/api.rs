//! What scripts find in their world: the JavaScript half (`api/*.js`), and the native functions under it.
//!
//! - `base.js`: errors, clock, randomness, console, for every script;
//! - `collection.js`: context, request, response and collection, for procedures and triggers;
//! - `clock.js`, `query.js`: parts that are loaded when a script first asks for them;
//! - `programs`: all four compiled, once in the life of the process;
//! - `natives`: what those two call; `callback`: what a callback can see; `state`: what one execution has, behind the natives.
//!
//! A new call of the API is a function in `collection.js`, a native beside its likes, and a method of `Host`.

mod callback;
mod natives;
mod programs;
mod state;

pub(crate) use natives::install;
pub(crate) use programs::{Program, load};
pub(crate) use state::{SandboxState, Start};

/// The file name of our own programs in stack traces, where they are left out.
pub(crate) const OWN_FILE: &str = "<api>";
