//! What the shell knows while it runs, and how a statement is run: cancelled by Ctrl-C, its charge and time told.

use crate::commands;
use crate::completion::KnownNames;
use crate::failure::ShellFailure;
use crate::output::ShellOutput;
use crate::place::ShellPlace;
use crate::rows::OutputMode;
use crate::schema::SampledSchemas;
use crate::settings::ShellSettings;
use crate::statement;
use crate::terminal::{StandardStreams, coloured, tell};
use astrarium_client::{ContainerClient, CosmosClient, harmless_lines};
use astrarium_env::Instant;
use std::collections::BTreeMap;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// Most containers whose definitions are remembered.
const CONTAINERS_MAX: usize = 100;

/// The state of a shell.
pub(crate) struct Shell {
    pub(crate) client: CosmosClient,
    pub(crate) place: ShellPlace,
    pub(crate) output: ShellOutput,
    pub(crate) options: ShellOptions,
    /// Parameters of queries: names with `@`, values as JSON text.
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) names: KnownNames,
    pub(crate) schemas: SampledSchemas,
    /// Rows of the statement that runs.
    pub(crate) row_count: Option<u64>,
    /// Whether the statement that runs has no end but Ctrl-C.
    pub(crate) is_watching: bool,
    containers: BTreeMap<(String, String), ContainerClient>,
    /// The key, to keep it out of the history.
    secret: String,
}

/// What `.mode` and `.set` change.
#[derive(Debug, Clone)]
pub(crate) struct ShellOptions {
    pub(crate) mode: OutputMode,
    /// Whether charges and times are told.
    pub(crate) timing: bool,
    /// Whether tables have the server's own properties too.
    pub(crate) system: bool,
    /// Queries and scripts look only at this partition key, a JSON array.
    pub(crate) key: Option<String>,
    /// Rows of a page that the server is asked for.
    pub(crate) page: Option<u32>,
}

impl Shell {
    pub(crate) fn new(
        settings: &ShellSettings,
        surroundings: StandardStreams,
    ) -> Result<Shell, ShellFailure> {
        let options = settings.client_options();
        let secret = options.key.clone();
        let client = CosmosClient::new(options)?;
        let place = ShellPlace::default().follow_path(settings.place.as_deref().unwrap_or_default())?;
        if place.depth() > 2 {
            return Err(ShellFailure::told("--use takes a database or a container: DB or DB/CONTAINER"));
        }
        let usual = if surroundings.shows { OutputMode::Table } else { OutputMode::Jsonl };
        Ok(Shell {
            client,
            place,
            output: ShellOutput::new(surroundings, true),
            options: ShellOptions {
                mode: settings.mode.unwrap_or(usual),
                timing: !settings.quiet,
                system: false,
                key: None,
                page: None,
            },
            parameters: BTreeMap::new(),
            names: KnownNames::default(),
            schemas: SampledSchemas::default(),
            row_count: None,
            is_watching: false,
            containers: BTreeMap::new(),
            secret,
        })
    }

    /// Whether a text holds the key, whole: such lines are not remembered.
    pub(crate) fn holds_secret(&self, text: &str) -> bool {
        (!self.secret.is_empty() && text.contains(&self.secret)) || text.contains("AccountKey=")
    }

    /// Runs one statement to its end, or until Ctrl-C. Figures and complaints are told here.
    pub(crate) fn run(&mut self, runtime: &Runtime, text: &str) -> Result<(), ShellFailure> {
        let before = self.client.traffic();
        let began = Instant::now();
        self.row_count = None;
        let result = runtime.block_on(async {
            let mut interrupts = signal(SignalKind::interrupt())
                .map_err(|error| ShellFailure::told(format!("listen for Ctrl-C: {error}")))?;
            tokio::select! {
                biased;
                result = commands::run(self, text) => result,
                _ = interrupts.recv() => Err(ShellFailure::Interrupted),
            }
        });
        let is_watching = std::mem::take(&mut self.is_watching);
        let result = match result.and(self.output.finish()) {
            Err(ShellFailure::SeenEnough) => Ok(()),
            result => result,
        };
        let after = self.client.traffic();
        if matches!(result, Err(ShellFailure::Interrupted)) {
            // Ctrl-C is what was wanted, and of a watch the only end.
            self.remark(if is_watching { "ended" } else { "cancelled" });
        } else if let Err(failure) = &result {
            let query = statement::is_sql(text).then(|| statement::without_terminator(text));
            self.complain(&failure.message(query));
        }
        if after.requests > before.requests && self.options.timing {
            let charge = after.charge - before.charge;
            let rows = match self.row_count {
                Some(1) => "1 row, ".to_owned(),
                Some(count) => format!("{count} rows, "),
                None => String::new(),
            };
            let milliseconds = began.elapsed().as_secs_f64() * 1000.0;
            let digits = usize::from(milliseconds < 10.0);
            let line = format!("{rows}{charge:.2} RU, {milliseconds:.digits$} ms");
            tell(&coloured(&line, "2", self.output.surroundings().error_colours));
        }
        result
    }

    /// Says what went wrong.
    pub(crate) fn complain(&self, message: &str) {
        if !message.is_empty() {
            let lead = coloured("error:", "1;31", self.output.surroundings().error_colours);
            tell(&format!("{lead} {message}"));
        }
    }

    /// Says something that is no result.
    pub(crate) fn remark(&self, sentence: &str) {
        if self.options.timing {
            tell(&harmless_lines(sentence));
        }
    }

    /// A container, whose definition is read once.
    pub(crate) async fn container(
        &mut self,
        database: &str,
        container: &str,
    ) -> Result<ContainerClient, ShellFailure> {
        let id = (database.to_owned(), container.to_owned());
        if let Some(known) = self.containers.get(&id) {
            return Ok(known.clone());
        }
        let found = match self.client.container(database, container).await {
            Err(error) if error.status() == 404 => {
                return Err(commands::missing_container(self, database, container).await);
            }
            found => found?,
        };
        if self.containers.len() >= CONTAINERS_MAX {
            self.containers.clear();
        }
        self.containers.insert(id, found.clone());
        Ok(found)
    }

    /// The container that one is in.
    pub(crate) async fn current_container(&mut self) -> Result<ContainerClient, ShellFailure> {
        match self.place.container() {
            Some((database, container)) => {
                let (database, container) = (database.to_owned(), container.to_owned());
                self.container(&database, &container).await
            }
            None => Err(ShellFailure::told(format!(
                "this needs a container, and you are at {}: cd DATABASE/CONTAINER first, or start with --use DATABASE/CONTAINER",
                self.place
            ))),
        }
    }

    /// Forgets what it remembers of the account, after something was made or removed.
    pub(crate) fn forget(&mut self) {
        self.containers.clear();
        self.names = KnownNames::default();
        self.schemas = SampledSchemas::default();
    }
}
