//! One blocking connection to our server: a request with all its pages.
//!
//! As little work as possible around each exchange, like `postgres::client`, so that both sides are timed alike.

use super::answers;
use super::documents::Documents;
use super::rows::Variant;
use crate::caller::{self, Answer, Caller};
use crate::items::Signer;
use crate::load;
use crate::process::Server;
use crate::writes::load_items;
use anyhow::Context as _;
use astrarium_wire::headers;
use memchr::memmem;
use serde_json::{Value, json};
use std::net::SocketAddr;

const DATABASE: &str = "bench";
const CONTAINER: &str = "documents";
const PAGE_COUNT_MAX: usize = 100_000;

/// A connection.
pub(crate) struct Session(Caller);

/// A signed request; a continuation goes between its head and the rest.
pub(crate) struct Request {
    bytes: Vec<u8>,
    head_length: usize,
}

/// Why an answer is not what was asked for.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) text: String,
}

/// Whether a page is followed by others that are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pages {
    All,
    First,
}

/// Makes database and container, and creates all documents.
pub(crate) fn load(server: &Server, documents: &Documents) -> anyhow::Result<()> {
    let signer = Signer::new()?;
    let container = Documents::container(CONTAINER).to_string();
    let setup = [
        signer.request("POST", "dbs", "", &json!({"id": DATABASE}).to_string())?,
        signer.request("POST", &format!("dbs/{DATABASE}/colls"), "", &container)?,
    ];
    for request in setup {
        let answer = load::once(server.address, &request)?;
        anyhow::ensure!(load::status_of(&answer) == 201, "setup: {}", String::from_utf8_lossy(&answer));
    }
    let container = format!("dbs/{DATABASE}/colls/{CONTAINER}");
    load_items(server, &container, documents.count, |number| documents.document(number))?;
    Ok(())
}

/// The request of a variant; without a query it reads the document.
pub(crate) fn request(
    signer: &Signer,
    sql: Option<&str>,
    variant: &Variant,
    item_count_max: u32,
) -> anyhow::Result<Request> {
    let bytes = match variant {
        Variant::Read(number) => {
            let path = format!("{}/{}", documents_path(), Documents::id(*number));
            signer.request("GET", &path, &partition_key_line(&Documents::partition_key(*number)), "")?
        }
        Variant::Parameters(parameters) => {
            let named = parameters.iter().map(|(name, value)| json!({"name": name, "value": value}));
            let body = json!({"query": sql.unwrap_or_default(), "parameters": named.collect::<Vec<_>>()});
            let lines = format!(
                "content-type: application/query+json\r\n{}: True\r\n{}: True\r\n{}: {item_count_max}\r\n{}: 0\r\n",
                headers::IS_QUERY,
                headers::QUERY_ENABLE_CROSS_PARTITION,
                headers::MAX_ITEM_COUNT,
                // The only range: without it, orders and aggregates are left to clients that merge ranges.
                headers::PARTITION_KEY_RANGE_ID,
            );
            signer.request("POST", &documents_path(), &lines, &body.to_string())?
        }
    };
    let head_length = memmem::find(&bytes, b"\r\n\r\n").context("a request has a head")? + 2;
    Ok(Request { bytes, head_length })
}

impl Request {
    /// As it is sent first.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Session {
    pub(crate) fn open(address: SocketAddr) -> anyhow::Result<Session> {
        Ok(Session(Caller::open(address)?))
    }

    /// Receives the answer without looking at its body.
    pub(crate) fn run(&mut self, request: &Request) -> anyhow::Result<()> {
        let refused = |refusal: Refusal| anyhow::anyhow!("status {}: {}", refusal.status, refusal.text);
        self.pages(request, Pages::All, |_| Ok(()))?.map_err(refused)
    }

    /// Receives the answer's rows.
    pub(crate) fn query(
        &mut self,
        request: &Request,
        wanted: Pages,
    ) -> anyhow::Result<Result<Vec<Value>, Refusal>> {
        let mut rows = Vec::new();
        let outcome = self.pages(request, wanted, |body| {
            rows.extend(answers::rows_of(body)?);
            Ok(())
        })?;
        Ok(outcome.map(|()| rows))
    }

    fn pages(
        &mut self,
        request: &Request,
        wanted: Pages,
        mut page: impl FnMut(&[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<Result<(), Refusal>> {
        let mut continued: Option<Vec<u8>> = None;
        for _ in 0..PAGE_COUNT_MAX {
            let Answer { status, head, body } = self.0.ask(continued.as_deref().unwrap_or(&request.bytes))?;
            if status != 200 {
                let text = String::from_utf8_lossy(body).into_owned();
                return Ok(Err(Refusal { status, text }));
            }
            page(body)?;
            let Some(token) = caller::header(head, headers::CONTINUATION).filter(|_| wanted == Pages::All)
            else {
                return Ok(Ok(()));
            };
            let (first, rest) = request.bytes.split_at(request.head_length);
            let line = [headers::CONTINUATION.as_bytes(), b": ", token, b"\r\n"].concat();
            continued = Some([first, &line, rest].concat());
        }
        anyhow::bail!("more than {PAGE_COUNT_MAX} pages")
    }
}

fn documents_path() -> String {
    format!("dbs/{DATABASE}/colls/{CONTAINER}/docs")
}

fn partition_key_line(partition_key: &str) -> String {
    format!("{}: [\"{partition_key}\"]\r\n", headers::PARTITION_KEY)
}
