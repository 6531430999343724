//! What the operating system has and gives: memory, disk space, file descriptors, a name.

use rustix::process::{Resource, getrlimit, setrlimit};
use std::io;
use std::path::Path;

/// Memory of the machine, or of the container it runs in, or what the process is limited to, whichever is least; 1 GiB if
/// nobody tells.
pub(crate) fn memory_bytes() -> u64 {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    let machine = machine.map_or(1 << 30, |kilobytes| kilobytes << 10);
    let group = control_group_limit(Path::new("/sys/fs/cgroup"), Path::new("/proc/self/cgroup"));
    let addresses = getrlimit(Resource::As).current;
    [group, addresses].into_iter().flatten().fold(machine, u64::min)
}

/// What the machine is called.
pub(crate) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}

/// The least memory limit of the control groups that the process is in, of version 1 or 2, up to the root that it sees.
fn control_group_limit(root: &Path, membership: &Path) -> Option<u64> {
    let lines = std::fs::read_to_string(membership).unwrap_or_default();
    let mut limits = Vec::new();
    for line in lines.lines() {
        // number : controllers : path
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (base, file) = if controllers.is_empty() {
            (root.to_owned(), "memory.max")
        } else if controllers.split(',').any(|name| name == "memory") {
            (root.join("memory"), "memory.limit_in_bytes")
        } else {
            continue;
        };
        // In a container the path may be one of the host's, which is not to be seen; then the root has the limit.
        let mut group = base.join(path.trim_start_matches('/'));
        loop {
            let text = std::fs::read_to_string(group.join(file)).unwrap_or_default();
            limits.extend(text.trim().parse::<u64>().ok());
            if group == base || !group.pop() {
                break;
            }
        }
    }
    limits.into_iter().min()
}

/// How much less the system cares for threads that run queries than for those that answer requests.
const QUERY_NICENESS: i32 = 5;

/// Has the system prefer other threads to this one. Where it does not, queries disturb more.
pub(crate) fn lower_thread_priority() {
    // On Linux a priority is a thread's.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, QUERY_NICENESS);
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

/// Lets the process have as many open files, and so connections, as the system allows it; tells how many.
pub(crate) fn raise_file_limit() -> u64 {
    let before = getrlimit(Resource::Nofile);
    let mut limit = before;
    limit.current = limit.maximum;
    match setrlimit(Resource::Nofile, limit) {
        Ok(()) => getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
        Err(error) => {
            // Without it fewer connections fit.
            tracing::warn!(%error, "raise limit of open files");
            before.current.unwrap_or(u64::MAX)
        }
    }
}

/// How the files that the process may have open are shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileShares {
    /// Tables that storage keeps open.
    pub(crate) tables: usize,
    /// Connections.
    pub(crate) connections: usize,
}

/// Files that are open besides tables and connections: journals, index runs, tables being written and merged, pipes to script
/// processes, the runtime's.
const OTHER_FILES: u64 = 160;
const TABLES_MIN: u64 = 16;
const TABLES_MAX: u64 = 900;
const CONNECTIONS_MIN: u64 = 16;

/// Connections if nobody says.
const CONNECTIONS_DEFAULT: u64 = 20_000;

/// Shares a limit of open files: storage gets what it needs, connections the rest, and not more than is wished.
pub(crate) fn share_files(limit: u64, wished: Option<u64>) -> FileShares {
    let tables = (limit / 8).clamp(TABLES_MIN, TABLES_MAX);
    let rest = limit.saturating_sub(OTHER_FILES + tables).max(CONNECTIONS_MIN);
    let connections = wished.unwrap_or(CONNECTIONS_DEFAULT).min(rest);
    match wished {
        Some(wished) if connections < wished => tracing::warn!(
            limit,
            wished,
            connections,
            "the limit of open files leaves room for fewer connections beside storage than --connections asks for"
        ),
        None if connections < CONNECTIONS_DEFAULT => {
            tracing::info!(limit, connections, "the limit of open files bounds the number of connections");
        }
        _ => {}
    }
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    FileShares { tables: count(tables), connections: count(connections) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_has_its_share_of_files() {
        let check = |limit, wished, tables, connections| {
            assert_eq!(share_files(limit, wished), FileShares { tables, connections }, "{limit}, {wished:?}");
        };
        check(1 << 20, None, 900, 20_000);
        check(1 << 20, Some(30_000), 900, 30_000);
        check(1024, None, 128, 736);
        check(1024, Some(100), 128, 100);
        check(256, Some(20_000), 32, 64);
        check(64, None, 16, 16);
    }

    fn check(files: &[(&str, &str)], membership: &str, expected: Option<u64>) {
        let folder = tempfile::tempdir().expect("make a folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("make a folder");
            std::fs::write(path, text).expect("write a file");
        }
        let own = folder.path().join("cgroup");
        std::fs::write(&own, membership).expect("write a file");
        assert_eq!(control_group_limit(folder.path(), &own), expected, "{files:?}");
    }

    #[test]
    fn limits_of_control_groups() {
        check(&[], "0::/\n", None);
        check(&[("memory.max", "max\n")], "0::/\n", None);
        check(&[("memory.max", "1000\n")], "0::/\n", Some(1000));
        // The nearest limit is not always the least.
        check(&[("a/memory.max", "500\n"), ("a/b/memory.max", "900\n")], "0::/a/b\n", Some(500));
        // Version 1, as the host names the group and as the container sees it.
        let first = "12:cpu,cpuacct:/x\n9:memory:/docker/77\n";
        check(&[("memory/memory.limit_in_bytes", "4096\n")], first, Some(4096));
        check(&[("memory/docker/77/memory.limit_in_bytes", "2048\n")], first, Some(2048));
    }
}
