//! Commands on a store that servers may be using: to look at all of its account, and to check it.

use crate::{engines, offline};
use astrarium_database::{Account, Env};
use astrarium_kv::Engine as _;
use astrarium_kv_postgres::{FORMAT, Overview, PostgresEngine};
use std::process::ExitCode;
use std::sync::Arc;

/// Opens the account of a store beside its servers, does something with it, and closes it.
pub(crate) fn with_account<T>(
    url: &str,
    work: impl AsyncFnOnce(&Account, &Arc<PostgresEngine>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let engine = Arc::new(engines::postgres_for_command(url)?);
    let outcome = runtime.block_on(async {
        let account = Account::open(Arc::clone(&engine) as _, Env::system()).await?;
        work(&account, &engine).await
    });
    engine.close()?;
    outcome
}

/// Reads everything and reports each container; fails if anything disagrees. Servers may write meanwhile.
pub(crate) fn verify(url: &str) -> anyhow::Result<ExitCode> {
    let count = with_account(url, async |account, engine| {
        let mut count = check_stores(&engine.overview()?);
        match offline::check_containers(&account.maintenance(), true).await {
            Ok(found) => count += found,
            Err(error) => {
                println!("  {error}");
                count += 1;
            }
        }
        Ok(count)
    })?;
    if count == 0 {
        println!("no problems found");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{count} problems found");
    Ok(ExitCode::FAILURE)
}

/// Reports each store; gives how many problems there are.
fn check_stores(overview: &Overview) -> usize {
    let mut count = 0;
    for store in &overview.stores {
        let mut problems: Vec<String> = store.trouble.iter().cloned().collect();
        if let Some(status) = &store.status {
            if status.format != Some(FORMAT) {
                problems.push(format!("its format is {}", crate::stores::format_words(status.format)));
            }
            if status.account.as_ref() != Some(&overview.account) {
                problems
                    .push(format!("it belongs to account {}", status.account.as_deref().unwrap_or("(none)")));
            }
        }
        let lost = store.shards.iter().filter(|shard| shard.is_index_lost);
        problems.extend(
            lost.map(|shard| format!("the index of shard {} is lost; servers build it anew", shard.shard.0)),
        );
        let bytes = store.status.as_ref().map_or(0, |status| status.bytes);
        let verdict = if problems.is_empty() { "good" } else { "DAMAGED" };
        println!("store {}: {} shards, {bytes} bytes, {verdict}", store.name, store.shards.len());
        for problem in &problems {
            println!("  {problem}");
        }
        count += problems.len();
    }
    count
}
