//! Runs the commands that move data, and tells how they ended.

use astrarium_tools::{ToolError, ToolReport};
use std::io::Write as _;
use std::process::ExitCode;

/// Runs a command to its end; 1 if something of it was not done.
pub(crate) fn run(work: impl Future<Output = Result<ToolReport, ToolError>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (text, is_complete) = match runtime.block_on(work) {
        Ok(report) => (report.text, report.is_complete),
        Err(error) => (format!("astrarium: {}", crate::sentence(&error.into())), false),
    };
    // A reader may wait for a pipe that nobody closes, and the command has ended.
    runtime.shutdown_background();
    // Standard output is for data. If nobody can be told, the exit code still is.
    let _ = writeln!(std::io::stderr(), "{}", astrarium_tools::harmless_lines(&text));
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
