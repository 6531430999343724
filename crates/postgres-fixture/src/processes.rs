//! A process and all that came of it, as `/proc` tells; signals to them.
//!
//! Processes of PostgreSQL each lead a group of their own, so that no single signal reaches them all.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long processes may take to follow a signal that they cannot refuse: they may have to wait for a disk.
const SIGNALLED_MAX: Duration = Duration::from_mins(5);

/// Sends a signal; nothing happens if the process has ended.
pub(crate) fn signal(process: Pid, signal: Signal) {
    let _ = kill_process(process, signal);
}

/// Processes that came of one, that one left out, parents first.
pub(crate) fn descendants(process: Pid) -> Vec<Pid> {
    let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for (child, parent) in std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
        let child = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        Some((child, Pid::from_raw(status(child)?.1)?))
    }) {
        children.entry(parent).or_default().push(child);
    }
    let mut found = Vec::new();
    let mut open = vec![process];
    while let Some(parent) = open.pop() {
        let of_parent = children.remove(&parent).unwrap_or_default();
        found.extend(of_parent.iter().copied());
        open.extend(of_parent);
    }
    found
}

/// Stops a process and all that came of it where they are. Out: whether all have stopped, or ended.
pub(crate) fn stop_family(process: Pid) -> bool {
    // The first one first, so that it makes no further ones.
    signal(process, Signal::STOP);
    wait_until(SIGNALLED_MAX, || is_stopped(process)) && {
        let family = descendants(process);
        for one in &family {
            signal(*one, Signal::STOP);
        }
        wait_until(SIGNALLED_MAX, || family.iter().all(|one| is_stopped(*one)))
    }
}

/// Kills a process and all that came of it. While it is stopped it makes no further ones. Out: whether all are gone.
pub(crate) fn kill_family(process: Pid) -> bool {
    signal(process, Signal::STOP);
    wait_until(SIGNALLED_MAX, || is_stopped(process));
    let mut family = descendants(process);
    family.push(process);
    for one in &family {
        signal(*one, Signal::KILL);
    }
    wait_until_ended(&family, SIGNALLED_MAX)
}

/// Waits until processes have ended. Out: whether all have, in that time.
pub(crate) fn wait_until_ended(processes: &[Pid], time_max: Duration) -> bool {
    wait_until(time_max, || !processes.iter().any(|process| is_running(*process)))
}

fn wait_until(time_max: Duration, is_so: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !is_so() {
        if began.elapsed() > time_max {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

/// Whether a process can still do anything; one that only waits to be reaped cannot.
pub(crate) fn is_running(process: Pid) -> bool {
    status(process).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
}

/// Whether a process does nothing, having stopped or ended.
fn is_stopped(process: Pid) -> bool {
    status(process).is_none_or(|(state, _)| matches!(state, 'T' | 'Z' | 'X'))
}

/// State and parent of a process.
fn status(process: Pid) -> Option<(char, i32)> {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    // The name before may contain anything, also parentheses.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}
