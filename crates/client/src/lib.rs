//! A client of the Cosmos DB REST protocol: of this project's server, of Azure's, and of any other that speaks it.
//!
//! In: an endpoint, a key, and what is asked. Out: [`WireAnswer`]s with the text of bodies as the server sent it (no number passes
//! through a double), pages of items, and [`ClientError`]s that say whose fault it is.
//! - `options`, `endpoint`: what a client is made from, defaults of the local server included;
//! - `target`, `cosmos_client`: what is signed, sent, tried again (429, 449, lost connections; reads after 503 too) and given up;
//! - `container_client`: items, queries, change feed, bulk and scripts of one container;
//! - `query`, `fan_out`: queries page by page; where a server leaves the merging to clients, it is done here;
//! - `transport`, `tls`: connections, which are kept and bounded;
//! - `harmless_text`: what servers and files say, for terminals.
//!
//! Invariants
//! - Every wait has an end: connecting, an answer, and the trying again.
//! - A write is sent a second time only if the server said that it did not do it, or it never left this machine. Otherwise the error
//!   tells ([`ClientError::is_ambiguous`]).
//! - No answer is longer than [`ClientOptions::answer_bytes_max`].
//!
//! Not here: what people type and see (`tools`, and the shell).

mod bulk;
mod container_client;
mod cosmos_client;
mod endpoint;
mod error;
mod fan_out;
mod harmless_text;
mod options;
mod query;
mod resources;
mod retry;
mod sessions;
mod target;
mod tls;
mod transport;

pub use astrarium_value::raw_json;
pub use bulk::{BulkOperation, BulkResult, BulkVerb};
pub use container_client::{
    ChangesPage, ContainerClient, FeedStart, ItemPage, ItemWrite, RangeOfKeys, UnreadPage, key_text,
};
pub use cosmos_client::{CosmosClient, Traffic, WireAnswer};
pub use endpoint::Endpoint;
pub use error::{ClientError, ServerRefusal};
pub use harmless_text::{harmless, harmless_lines};
pub use options::{ClientOptions, DEFAULT_ENDPOINT};
pub use query::{QueryPages, QueryRequest};
pub use resources::ScriptKind;
pub use target::RequestTarget;
