//! Commands on a data folder that no server uses at the moment: check it, or let it be used after a loss.

use crate::engines;
use anyhow::Context as _;
use astrarium_database::{Account, Env};
use astrarium_kv_fjall::FjallEngine;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Reads everything and reports each container; fails if anything disagrees.
pub(crate) fn verify(data: &Path) -> anyhow::Result<ExitCode> {
    must_exist(data)?;
    let engine = engines::embedded(data, None, 0)?;
    let files = engine.check_files().context("read stored files")?;
    println!("storage: {} entries, {} bytes, checksums good", files.entry_count, files.byte_count);
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut problem_count = 0;
    runtime.block_on(async {
        let account = Account::open(Arc::new(engine), Env::system()).await?;
        account
            .verify(|container, report| {
                problem_count += report.problems.len();
                let verdict = if report.problems.is_empty() { "good" } else { "DAMAGED" };
                let (documents, bytes, entries) = (report.documents, report.bytes, report.index_entries);
                println!(
                    "{container}: {documents} documents, {bytes} bytes, {entries} index entries, {verdict}"
                );
                for problem in &report.problems {
                    println!("  {problem}");
                }
            })
            .await?;
        account.close()
    })?;
    if problem_count == 0 {
        println!("no problems found");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{problem_count} problems found");
    Ok(ExitCode::FAILURE)
}

/// Tells what a folder lost, and goes on without it if that is accepted.
pub(crate) fn repair(data: &Path, accept_loss: bool) -> anyhow::Result<ExitCode> {
    must_exist(data)?;
    if !accept_loss {
        astrarium_kv::Engine::close(&engines::embedded(data, None, 0)?)?;
        println!("{} opens without loss; there is nothing to repair", data.display());
        return Ok(ExitCode::SUCCESS);
    }
    let loss = FjallEngine::accept_loss(data)?;
    let missing = loss.acknowledged.saturating_sub(loss.found);
    println!("{} can be used again; {missing} acknowledged commit groups are gone", data.display());
    Ok(ExitCode::SUCCESS)
}

fn must_exist(data: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(data.is_dir(), "there is no data folder {}", data.display());
    Ok(())
}
