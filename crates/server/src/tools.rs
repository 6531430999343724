//! Runs the commands that move data, and tells how they ended.

use astrarium_tools::{ToolError, ToolReport};
use std::process::ExitCode;

/// Runs a command to its end; 1 if something of it was not done.
pub(crate) fn run(work: impl Future<Output = Result<ToolReport, ToolError>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(work)?;
    // Standard output is for data.
    eprintln!("{}", report.text);
    Ok(if report.is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
