//! Commands on a data folder that no server uses at the moment: check it, or let it be used after a loss.
//!
//! Both work on a shadow of the folder (`kv_fjall::Shadow`): checking changes nothing, and so works on a copy that may only be
//! read; repairing takes the folder's place only when what it made opens and is found to be right.

use crate::engines;
use anyhow::Context as _;
use astrarium_database::{Account, Env, MaintenanceHandle};
use astrarium_kv::Engine as _;
use astrarium_kv_fjall::{FjallEngine, Shadow};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Tables that are kept open.
const OPEN_TABLES: usize = 64;

/// What a check found.
#[derive(Default)]
struct CheckFindings {
    problem_count: usize,
    /// Whether all of them are of the index, which the server builds anew by itself.
    is_index_only: bool,
}

/// Reads everything and reports each container; fails if anything disagrees.
pub(crate) fn verify(data: &Path) -> anyhow::Result<ExitCode> {
    must_exist(data)?;
    let shadow = Shadow::for_reading(data)?;
    let found = check(shadow.path(), true).map_err(|error| in_place(&error, shadow.path(), data))?;
    if found.problem_count == 0 {
        println!("no problems found");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{} problems found", found.problem_count);
    if found.is_index_only {
        println!("they are of the index only: the server sets it aside and builds it anew when it starts");
    }
    Ok(ExitCode::FAILURE)
}

/// Tells what a folder lost, and goes on without it if that is accepted.
pub(crate) fn repair(data: &Path, accept_loss: bool) -> anyhow::Result<ExitCode> {
    must_exist(data)?;
    if !accept_loss {
        let shadow = Shadow::for_reading(data)?;
        let opened = engines::embedded(shadow.path(), None, 0, OPEN_TABLES);
        let engine = opened.map_err(|error| in_place(&error, shadow.path(), data))?;
        engine.close()?;
        println!("{} opens without loss; there is nothing to repair", data.display());
        return Ok(ExitCode::SUCCESS);
    }
    let shadow = Shadow::for_repair(data)?;
    let repaired = repair_shadow(&shadow).map_err(|error| in_place(&error, shadow.path(), data));
    let repaired = repaired.map_err(|error| without_advice(&error));
    repaired.with_context(|| {
        format!("{} cannot be repaired and was left as it is; restore it from a backup", data.display())
    })?;
    shadow.put_in_place()?;
    println!(
        "{} can be used again; what it was before is in {}",
        data.display(),
        data.join("before-repair").display()
    );
    Ok(ExitCode::SUCCESS)
}

fn repair_shadow(shadow: &Shadow) -> anyhow::Result<()> {
    let loss = FjallEngine::accept_loss(shadow.path())?;
    if loss.acknowledged > loss.found {
        println!("the last writes are gone, back to the first one that cannot be read");
    }
    let states = with_maintenance(shadow.path(), async |maintenance, _| {
        let states = maintenance
            .restore(|container, documents, dropped| {
                println!("{container}: {documents} documents kept, {dropped} dropped");
            })
            .await?;
        Ok(states)
    })?;
    FjallEngine::set_shards(shadow.path(), &states)?;
    // With the counters right, so that what is written from here on is.
    with_maintenance(shadow.path(), async |maintenance, _| Ok(maintenance.settle().await?))?;
    let found = check(shadow.path(), false)?;
    anyhow::ensure!(found.problem_count == 0, "{} problems remain", found.problem_count);
    Ok(())
}

/// Builds all indexes of a folder anew.
pub(crate) fn repair_index(data: &Path) -> anyhow::Result<ExitCode> {
    must_exist(data)?;
    let shadow = Shadow::for_repair(data)?;
    let rebuilt =
        with_maintenance(shadow.path(), async |maintenance, _| Ok(maintenance.rebuild_indexes().await?))
            .and_then(|()| check(shadow.path(), false));
    let found = rebuilt.map_err(|error| in_place(&error, shadow.path(), data))?;
    anyhow::ensure!(
        found.problem_count == 0,
        "{} problems remain that are not of the index, and {} was left as it is; see what can be saved with `astrarium repair \
         --data {} --accept-loss`",
        found.problem_count,
        data.display(),
        data.display()
    );
    shadow.put_in_place()?;
    println!(
        "the indexes in {} are built anew; what it was before is in {}",
        data.display(),
        data.join("before-repair").display()
    );
    Ok(ExitCode::SUCCESS)
}

/// Opens the account in a folder, does what its maintenance can do, and closes it.
fn with_maintenance<T>(
    folder: &Path,
    work: impl AsyncFnOnce(&MaintenanceHandle, &FjallEngine) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let engine = Arc::new(engines::embedded(folder, None, 0, OPEN_TABLES)?);
    runtime.block_on(async {
        let maintenance = Account::open(engine.clone(), Env::system()).await?.maintenance();
        let outcome = work(&maintenance, &engine).await?;
        maintenance.close()?;
        Ok(outcome)
    })
}

/// Reads everything in a folder; reports what is there, if wished, and all problems.
fn check(folder: &Path, is_told: bool) -> anyhow::Result<CheckFindings> {
    let mut found = CheckFindings::default();
    with_maintenance(folder, async |maintenance, engine| {
        while engine.check_next_file() {}
        for damage in engine.damages() {
            println!("  {}", damage.file);
            found.problem_count += 1;
        }
        let other_count = found.problem_count;
        let losses = engine.set_losses();
        for loss in &losses {
            println!("  the index is damaged: {}", loss.what);
            found.problem_count += 1;
        }
        if !losses.is_empty() {
            // To see whether everything else is right.
            maintenance.settle().await?;
        }
        if found.problem_count == 0 {
            found.problem_count += check_files(engine, is_told);
        }
        engine.wait_until_merged()?;
        let container_count = check_containers(maintenance, is_told).await;
        found.is_index_only =
            other_count == 0 && matches!(container_count, Ok(0)) && engine.damages().is_empty();
        found.problem_count += match container_count {
            Ok(count) => count,
            Err(error) => {
                println!("  {error}");
                1
            }
        };
        Ok(())
    })?;
    Ok(found)
}

/// Reads all files of the engine; gives how many problems there are.
fn check_files(engine: &FjallEngine, is_told: bool) -> usize {
    match engine.check_files() {
        Ok(files) => {
            if is_told {
                println!(
                    "storage: {} entries, {} bytes, checksums good",
                    files.entry_count, files.byte_count
                );
            }
            0
        }
        Err(error) => {
            println!("  {error}");
            1
        }
    }
}

/// Checks all containers; gives how many problems there are.
pub(crate) async fn check_containers(
    maintenance: &MaintenanceHandle,
    is_told: bool,
) -> anyhow::Result<usize> {
    let mut problem_count = 0;
    maintenance
        .verify(|container, report| {
            problem_count += report.problems.len();
            let verdict = if report.problems.is_empty() { "good" } else { "DAMAGED" };
            let (documents, bytes, entries) = (report.documents, report.bytes, report.index_entries);
            if is_told || !report.problems.is_empty() {
                println!(
                    "{container}: {documents} documents, {bytes} bytes, {entries} index entries, {verdict}"
                );
            }
            for problem in &report.problems {
                println!("  {problem}");
            }
        })
        .await?;
    Ok(problem_count)
}

/// An error as it would be told of the folder itself.
fn in_place(error: &anyhow::Error, shadow: &Path, data: &Path) -> anyhow::Error {
    let text = format!("{error:#}");
    anyhow::Error::msg(text.replace(&*shadow.to_string_lossy(), &data.to_string_lossy()))
}

/// An error of opening without the advice to repair.
fn without_advice(error: &anyhow::Error) -> anyhow::Error {
    let text = error.to_string();
    let end = [". Put the files back", ". Restore a backup"].iter().find_map(|advice| text.find(advice));
    anyhow::Error::msg(text[..end.unwrap_or(text.len())].to_owned())
}

pub(crate) fn must_exist(data: &Path) -> anyhow::Result<()> {
    let shown = data.display();
    anyhow::ensure!(
        !data.is_file(),
        "{shown} is a file; --data names the folder that the server has its data in"
    );
    anyhow::ensure!(
        data.is_dir(),
        "there is no data folder {shown}; --data names the one that the server has its data in"
    );
    Ok(())
}
