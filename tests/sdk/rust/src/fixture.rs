//! A client and a database of a test's own, on one way to connect.

use crate::server::Server;
use azure_data_cosmos::clients::{ContainerClient, DatabaseClient};
use azure_data_cosmos::models::{ContainerProperties, PartitionKeyDefinition};
use azure_data_cosmos::options::{BinaryEncodingOptions, ConnectionPoolOptions, Region};
use azure_data_cosmos::{
    AccountReference, CosmosClient, CosmosClientBuilder, CosmosRuntime, RoutingStrategy,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The key that every emulator of the service has.
pub const KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

static COUNTER: AtomicUsize = AtomicUsize::new(1);

/// How a client connects and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// `http` or `https`.
    pub scheme: &'static str,
    /// Items as text, which the SDK must be asked for; its default is the service's binary form of JSON.
    pub text: bool,
    /// HTTP/1.1, which the SDK must be asked for; its default is HTTP/2, also in clear text.
    pub http1: bool,
}

impl Way {
    /// The SDK as it comes.
    pub const fn default_over(scheme: &'static str) -> Way {
        Way { scheme, text: false, http1: false }
    }

    /// For the name of a test.
    pub fn name(self) -> String {
        let form = if self.text { "text" } else { "binary" };
        let version = if self.http1 { "http1" } else { "http2" };
        format!("{}-{version}-{form}", self.scheme)
    }

    /// A client for an endpoint.
    pub async fn client_at(self, endpoint: &str, key: &str) -> azure_data_cosmos::Result<CosmosClient> {
        let account =
            AccountReference::with_authentication_key(endpoint.parse().expect("an endpoint"), key.to_owned());
        self.builder().await.build(account, RoutingStrategy::ProximityTo(Region::EAST_US)).await
    }

    async fn builder(self) -> CosmosClientBuilder {
        let mut pool = ConnectionPoolOptions::builder();
        if self.http1 {
            pool = pool.with_is_http2_allowed(false);
        }
        // By default all clients of a process share one runtime, and with it the authorities that were trusted when the
        // first of them connected. A test that starts a server of its own needs a fresh one.
        let pool = pool.build().expect("options");
        let runtime = CosmosRuntime::builder().with_connection_pool(pool).build().await.expect("a runtime");
        let builder = CosmosClient::builder().with_runtime(runtime);
        if self.text {
            builder.with_binary_encoding_options(BinaryEncodingOptions::new().with_enabled(false))
        } else {
            builder
        }
    }
}

/// What a test gets.
pub struct Fixture {
    /// The server, shared by all tests.
    pub server: Arc<Server>,
    /// How `client` connects.
    pub way: Way,
    /// A client of its own.
    pub client: CosmosClient,
    /// A database of its own.
    pub database: DatabaseClient,
    /// The database's id.
    pub database_id: String,
}

impl Fixture {
    /// Connects, and makes the database.
    pub async fn new(server: Arc<Server>, way: Way) -> Fixture {
        let client = way.client_at(&server.endpoint(way.scheme), KEY).await.expect("a client");
        let database_id = format!("database-{}", COUNTER.fetch_add(1, Ordering::Relaxed));
        client.create_database(&database_id, None).await.expect("a database");
        let database = client.database_client(database_id.clone());
        Fixture { server, way, client, database, database_id }
    }

    /// Makes a container with the partition key `/pk`.
    pub async fn container(&self, id: &'static str) -> ContainerClient {
        self.container_of(ContainerProperties::new(id, "/pk".into())).await
    }

    /// Makes a container with these paths of its partition key.
    pub async fn container_by(
        &self,
        id: &'static str,
        key: impl Into<PartitionKeyDefinition>,
    ) -> ContainerClient {
        self.container_of(ContainerProperties::new(id, key.into())).await
    }

    /// Makes a container.
    pub async fn container_of(&self, properties: ContainerProperties) -> ContainerClient {
        let id = properties.id.to_string();
        self.database.create_container(properties, None).await.expect("a container");
        self.database.container_client(id, None).await.expect("its client")
    }
}
