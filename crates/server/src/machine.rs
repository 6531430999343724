//! What the operating system has and gives: memory, disk space, file descriptors.

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

/// Lets the process have as many open files, and so connections, as the system allows it.
pub(crate) fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without it fewer connections fit; the listener copes.
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "raise limit of open files");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
