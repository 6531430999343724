//! What the operating system has and gives: memory, disk space, file descriptors.

use rustix::process::{Resource, getrlimit, setrlimit};
use std::io;
use std::path::Path;

/// Memory of the machine, or of the container it runs in; 1 GiB if nobody tells.
pub(crate) fn memory_bytes() -> u64 {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse::<u64>().ok());
    let machine = machine.map_or(1 << 30, |kilobytes| kilobytes << 10);
    group.map_or(machine, |group| group.min(machine))
}

/// Bytes that we may still write to the disk of a folder.
pub(crate) fn free_disk_bytes(folder: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Has the system give memory in small pages. A cache grows by a few kilobytes at a time all over the memory, and clearing
/// a page of two megabytes for each of them costs more than the reads that fill it; nothing that was measured gains from
/// large pages.
pub(crate) fn use_small_pages() {
    #[cfg(target_os = "linux")]
    // Where the system does not know the wish, it has no large pages to give.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Lets the process have as many open files, and so connections, as the system allows it.
pub(crate) fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without it fewer connections fit; the listener copes.
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "raise limit of open files");
    }
}
