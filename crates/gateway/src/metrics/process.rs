//! What the system says about this process, under the names that dashboards know; nothing where it does not say it.

use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

pub(super) fn registry() -> Registry {
    let mut registry = Registry::with_prefix("process");
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut register = |name: &str, help: &str, value: Option<i64>| {
        if let Some(value) = value {
            registry.register(name, help, ConstGauge::new(value));
        }
    };
    let kilobytes = |name| Some(field(&status, name)? << 10);
    register("resident_memory_bytes", "Memory in use", kilobytes("VmRSS"));
    register("resident_memory_max_bytes", "Most memory that was in use", kilobytes("VmHWM"));
    register("virtual_memory_bytes", "Address space in use", kilobytes("VmSize"));
    register("threads", "Threads", field(&status, "Threads"));
    let files = std::fs::read_dir("/proc/self/fd").ok().map(Iterator::count);
    register("open_fds", "Open files and connections", files.and_then(|count| i64::try_from(count).ok()));
    registry
}

/// The number of a line such as `VmRSS:     5000 kB`.
fn field(status: &str, name: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn fields() {
        let status = "Name:\tastrarium\nVmRSS:\t    5120 kB\nThreads:\t7\n";
        assert_eq!(field(status, "VmRSS"), Some(5120));
        assert_eq!(field(status, "Threads"), Some(7));
        assert_eq!(field(status, "VmHWM"), None);
        assert_eq!(field(status, "Name"), None);
    }
}
