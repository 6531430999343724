//! Which account, and which container: the settings that all commands share.

use crate::error::ToolError;
use astrarium_client::{ClientOptions, ContainerClient, CosmosClient, DEFAULT_ENDPOINT};
use astrarium_env::Clock;
use astrarium_wire::key_text::EMULATOR_KEY;
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;

/// The account to work with.
#[derive(Clone, Args)]
pub struct AccountSettings {
    /// URL of the account, or its whole connection string. Any server of Cosmos DB's protocol will do.
    #[arg(long, env = "ASTRARIUM_ENDPOINT", default_value = DEFAULT_ENDPOINT, value_name = "URL")]
    pub endpoint: String,

    /// Its account key. The default is the emulator's well-known key.
    #[arg(long, env = "ASTRARIUM_KEY", default_value = EMULATOR_KEY, value_name = "KEY", hide_default_value = true, hide_env_values = true)]
    pub key: String,

    /// Accept any TLS certificate. For a server on this machine that goes without saying.
    #[arg(long)]
    pub insecure: bool,

    /// File with the certificate authority to trust, as PEM, instead of the system's.
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,

    /// The clock that requests are dated by, if not the machine's; for tests.
    #[arg(skip)]
    pub clock: Option<Arc<dyn Clock>>,
}

impl AccountSettings {
    /// The account at an endpoint with a key.
    pub fn new(endpoint: &str, key: &str) -> AccountSettings {
        AccountSettings {
            endpoint: endpoint.to_owned(),
            key: key.to_owned(),
            insecure: false,
            ca: None,
            clock: None,
        }
    }

    /// A client of the account, which is there and takes the key.
    pub(crate) async fn connect(&self, connections_max: usize) -> Result<CosmosClient, ToolError> {
        let mut options = ClientOptions::new(&self.endpoint, &self.key);
        options.insecure = self.insecure;
        options.authority.clone_from(&self.ca);
        options.connections_max = connections_max.max(2);
        if let Some(clock) = &self.clock {
            options.clock = Arc::clone(clock);
        }
        let client = CosmosClient::new(options).map_err(ToolError::account("read the settings"))?;
        match client.check().await {
            Ok(_) => Ok(client),
            Err(error) if error.status() == 401 => {
                let endpoint = client.endpoint();
                Err(ToolError::account(format!(
                    "{endpoint} refuses the key; give its account key with --key or ASTRARIUM_KEY (copy: --from-key, --to-key)"
                ))(error))
            }
            Err(error) => Err(ToolError::account("reach the account")(error)),
        }
    }
}

impl std::fmt::Debug for AccountSettings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The endpoint may be a connection string, which has the key.
        formatter.write_str("AccountSettings(..)")
    }
}

/// Opens a container that must be there.
pub(crate) async fn open_container(
    client: &CosmosClient,
    database: &str,
    name: &str,
) -> Result<ContainerClient, ToolError> {
    client.container(database, name).await.map_err(|error| match error.status() {
        404 => ToolError::input(format!(
            "there is no container {database}/{name} in {}; astrarium shell lists what there is with ls",
            client.endpoint()
        )),
        _ => ToolError::account(format!("open {database}/{name}"))(error),
    })
}

/// A container by names, `DB/CONTAINER`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerPath {
    /// The database.
    pub database: String,
    /// The container.
    pub container: String,
}

impl std::str::FromStr for ContainerPath {
    type Err = String;

    fn from_str(text: &str) -> Result<ContainerPath, String> {
        match text.split_once('/') {
            Some((database, container))
                if !database.is_empty() && !container.is_empty() && !container.contains('/') =>
            {
                Ok(ContainerPath { database: database.to_owned(), container: container.to_owned() })
            }
            _ => Err("a container is written DATABASE/CONTAINER".to_owned()),
        }
    }
}

impl std::fmt::Display for ContainerPath {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.database, self.container)
    }
}

/// A number of workers that makes sense.
pub(crate) fn worker_count(text: &str) -> Result<usize, String> {
    let count: Option<usize> = text.parse().ok().filter(|count| (1..=256).contains(count));
    count.ok_or_else(|| "it must be from 1 to 256".to_owned())
}
