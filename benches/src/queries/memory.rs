//! What memory a running query takes: the server's resident memory before, and its peak until the answer is there.
//!
//! Each query has a server of its own, started on the loaded folder: what one query leaves with the allocator would
//! hide what the next one takes. A scan before fills the caches. Of an order over everything only the first page is asked
//! for: later pages take no more.

use super::documents::Documents;
use super::rows::Variant;
use super::session::{self, Pages, Refusal, Session};
use crate::items::Signer;
use crate::process::Server;
use crate::report::Table;
use serde_json::Value;
use std::path::Path;

const ITEM_COUNT_MAX: u32 = 1_000;
const TEXT_LENGTH_MAX: usize = 120;
const SCAN: &str = "SELECT VALUE SUM(c.amount) FROM c WHERE c.stock < 500";
const QUERIES: [(&str, &str); 6] = [
    ("filter, SUM", SCAN),
    ("GROUP BY, 1000 groups", "SELECT c.shop, SUM(c.amount) AS total FROM c GROUP BY c.shop"),
    ("GROUP BY, a group a document", "SELECT c.weight, SUM(c.amount) AS total FROM c GROUP BY c.weight"),
    ("ORDER BY, TOP 10", "SELECT TOP 10 * FROM c ORDER BY c.weight"),
    ("ORDER BY, first page of 1000", "SELECT * FROM c ORDER BY c.weight"),
    (
        "ORDER BY of a subquery, first page",
        "SELECT VALUE s FROM (SELECT c.id, c.weight + 0 AS weight FROM c) s ORDER BY s.weight",
    ),
];

/// Measures and prints.
pub(crate) fn answer(program: &Path, data: &Path, documents: &Documents) -> anyhow::Result<()> {
    let title = format!("Memory of a running query over {} documents (megabytes resident)", documents.count);
    let mut table = Table::new(&title, &["query", "answer", "before", "peak", "more"]);
    for (name, sql) in QUERIES {
        let server = Server::start(program, data)?;
        anyhow::ensure!(first_page(&server, SCAN)?.is_ok(), "the server refuses {SCAN}");
        // Also gives the allocator time to return what the scan has taken.
        server.usage_when_quiet()?;
        let before = server.resident_megabytes()?;
        server.forget_peak()?;
        let answer = match first_page(&server, sql)? {
            Ok(rows) => format!("{} rows", rows.len()),
            Err(refusal) => {
                let text: String = refusal.text.chars().take(TEXT_LENGTH_MAX).collect();
                format!("refused ({}): {text}", refusal.status)
            }
        };
        let peak = server.peak_megabytes()?;
        server.terminate()?;
        table.row(&[name, &answer], &[before, peak, peak - before]);
    }
    table.print();
    Ok(())
}

fn first_page(server: &Server, sql: &str) -> anyhow::Result<Result<Vec<Value>, Refusal>> {
    let variant = Variant::Parameters(Vec::new());
    let request = session::request(&Signer::new()?, Some(sql), &variant, ITEM_COUNT_MAX)?;
    Session::open(server.address)?.query(&request, Pages::First)
}
