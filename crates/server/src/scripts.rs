//! Where scripts run: in processes of this same program, started when a script first runs and gone when none has run for a
//! while.

use crate::settings::{ScriptIsolation, ServeSettings};
use anyhow::Context as _;
use astrarium_database::{ScriptIsolation as Isolation, ScriptSettings, WorkerCommand, run_worker};
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};

/// Memory that a script may have at the least; with less nothing useful runs.
const HEAP_MIN: usize = 8 << 20;

/// How the server has scripts run, within so much memory for all of them.
pub(crate) fn settings(settings: &ServeSettings, bytes: usize) -> anyhow::Result<ScriptSettings> {
    let isolation = match settings.script_isolation {
        ScriptIsolation::Thread => Isolation::Threads,
        ScriptIsolation::Process => Isolation::Processes(WorkerCommand {
            program: own_program()?,
            arguments: vec!["script-worker".to_owned()],
        }),
    };
    let memory_image = !settings.script_fresh_worlds;
    Ok(within(bytes, ScriptSettings { isolation, memory_image, ..ScriptSettings::default() }))
}

/// Fewer scripts at once where there is little memory, and less for each where there is very little.
fn within(bytes: usize, settings: ScriptSettings) -> ScriptSettings {
    let mut settings = settings;
    // Procedures and functions, of each the usual ones and as many long ones.
    let each = (bytes / settings.limits.memory_bytes_max / 4).max(1);
    settings.procedure_threads_max = settings.procedure_threads_max.min(each);
    settings.function_threads_max = settings.function_threads_max.min(each);
    settings.long_threads_max = settings.long_threads_max.min(each);
    settings.limits.memory_bytes_max = settings.limits.memory_bytes_max.min((bytes / 4).max(HEAP_MIN));
    settings.cache_bytes_max = settings.cache_bytes_max.min((bytes / 8).max(HEAP_MIN));
    settings
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
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let _ignored = kinds.into_iter().map(signal).collect::<Result<Vec<_>, _>>()?;
    run_worker().context("run scripts for a server")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_scripts_together_fit_into_their_memory() {
        for megabytes in [8, 32, 100, 256, 1_000, 100_000] {
            let settings = within(megabytes << 20, ScriptSettings::default());
            let threads = settings.procedure_threads_max
                + settings.function_threads_max
                + 2 * settings.long_threads_max;
            let heap = settings.limits.memory_bytes_max;
            assert!(
                threads * heap <= megabytes << 20 || heap == HEAP_MIN,
                "{megabytes}: {threads} of {heap}"
            );
        }
        let usual = ScriptSettings::default();
        assert_eq!(within(100_000 << 20, usual.clone()), usual);
    }
}
