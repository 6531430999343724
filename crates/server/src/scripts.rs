//! Where scripts run: in processes of this same program, started when a script first runs and gone when none has run for a
//! while.

use crate::settings::{ScriptIsolation, ServeSettings};
use anyhow::Context as _;
use astrarium_database::{ScriptIsolation as Isolation, ScriptSettings, WorkerCommand, run_worker};
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};

/// How the server has scripts run.
pub(crate) fn settings(settings: &ServeSettings) -> anyhow::Result<ScriptSettings> {
    let isolation = match settings.script_isolation {
        ScriptIsolation::Thread => Isolation::Threads,
        ScriptIsolation::Process => Isolation::Processes(WorkerCommand {
            program: own_program()?,
            arguments: vec!["script-worker".to_owned()],
        }),
    };
    let memory_image = !settings.script_fresh_worlds;
    Ok(ScriptSettings { isolation, memory_image, ..ScriptSettings::default() })
}

/// The program that runs, also after its file was replaced by another version.
fn own_program() -> anyhow::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        return Ok(PathBuf::from("/proc/self/exe"));
    }
    std::env::current_exe().context("find the program for scripts (--script-isolation thread needs none)")
}

/// The life of such a process. The server decides when it ends: a service manager that sends its signals to all processes
/// of a service must not end scripts that the server still waits for.
pub(crate) fn work() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    let _ignored = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    run_worker().context("run scripts for a server")
}
