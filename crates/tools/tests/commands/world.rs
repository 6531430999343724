//! A server, files in a folder of their own, and commands that run to their end.

use astrarium_testkit::{EngineKind, Key, Options, Request, Server};
use astrarium_tools::{AccountSettings, ExportSettings, ImportSettings, ToolError, ToolReport};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) folder: TempDir,
}

impl World {
    pub(crate) fn new() -> World {
        World::with(Options::on(EngineKind::Memory))
    }

    pub(crate) fn with(options: Options) -> World {
        World { server: Server::start(options), folder: tempfile::tempdir().unwrap() }
    }

    /// With the database `d` and the container `c`, whose key is `/pk`.
    pub(crate) fn furnished() -> World {
        let world = World::new();
        world
            .furnish("{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}");
        world
    }

    pub(crate) fn furnish(&self, container: &str) {
        let mut client = self.server.client();
        client.ask(&Request::new("POST", "/dbs").body("{\"id\":\"d\"}"));
        client.expect(201, &Request::new("POST", "/dbs/d/colls").body(container));
    }

    pub(crate) fn account(&self) -> AccountSettings {
        let endpoint = format!("http://127.0.0.1:{}", self.server.address().port());
        AccountSettings {
            clock: Some(Arc::new(self.server.clock().clone())),
            ..AccountSettings::new(&endpoint, &Key::Primary.text())
        }
    }

    /// Request units that the server has charged for items.
    pub(crate) fn spent(&self) -> f64 {
        let metrics = self.server.client().expect(200, &Request::new("GET", "/metrics")).text();
        let series = metrics.lines().filter(|line| line.starts_with("astrarium_item_request_units_total{"));
        series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn import_of(&self, file: PathBuf) -> ImportSettings {
        ImportSettings::new(self.account(), "d/c".parse().unwrap(), file)
    }

    #[track_caller]
    #[expect(clippy::unused_self, reason = "the settings name the server of a world that must live")]
    pub(crate) fn import(&self, settings: &ImportSettings) -> ToolReport {
        run(astrarium_tools::import(settings)).unwrap()
    }

    /// An import that must be refused, with a part of what is said.
    #[track_caller]
    #[expect(clippy::unused_self, reason = "the settings name the server of a world that must live")]
    pub(crate) fn refused(&self, settings: &ImportSettings, fragments: &[&str]) {
        let error = run(astrarium_tools::import(settings)).unwrap_err().to_string();
        for fragment in fragments {
            assert!(error.contains(fragment), "{fragment:?} in {error:?}");
        }
    }

    /// All documents of a container, sorted.
    pub(crate) fn documents_of(&self, container: &str) -> Vec<String> {
        let output = self.path("documents.out");
        let mut settings = ExportSettings::new(self.account(), container.parse().unwrap());
        settings.output = Some(output.clone());
        run(astrarium_tools::export(&settings)).unwrap();
        let text = std::fs::read_to_string(output).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    pub(crate) fn documents(&self) -> Vec<String> {
        self.documents_of("d/c")
    }
}

/// Runs a command as the program does.
pub(crate) fn run(
    work: impl Future<Output = Result<ToolReport, ToolError>>,
) -> Result<ToolReport, ToolError> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    let result = runtime.block_on(work);
    // A reader may wait for a pipe that stays open.
    runtime.shutdown_background();
    result
}
