//! Changes of containers and documents between queries, and what runs beside requests.
//!
//! Not here: making containers and asking queries (`stage`).

use super::{Set, Stage, definition_body};
use crate::json::Json;
use crate::server::runtime;
use astrarium_database::definition::container::ContainerDefinition;
use astrarium_database::partition::PartitionKey;
use astrarium_database::value::json;
use astrarium_database::{ChildKind, Conditions, Container, IndexDirective, Link, WriteMode, WriteOptions};
use astrarium_env::ManualClock;
use std::sync::Arc;

impl Stage {
    /// The clock, which stands until it is moved.
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// Gives the containers of a set user-defined functions: names and sources.
    pub fn define_functions(&self, set: &Set, functions: &[(String, String)]) -> Result<(), String> {
        for container in [Some(&set.spread), set.together.as_ref()].into_iter().flatten() {
            for (name, source) in functions {
                let definition = serde_json::json!({"id": name, "body": source}).to_string();
                let kind = ChildKind::UserDefinedFunction(
                    Link::Name("d"),
                    Link::Name(&container.resource.record.id),
                );
                let made = runtime().block_on(self.account.catalog().create_child(kind, name, &definition));
                made.map_err(|error| format!("{name}: {error}"))?;
            }
        }
        Ok(())
    }

    /// Writes a document into a container that is furnished.
    pub fn put(&self, container: &Arc<Container>, document: &str) -> Result<(), String> {
        self.put_with(container, document, IndexDirective::Default)
    }

    /// Writes a document, and says whether it shall be in the index.
    pub fn put_with(
        &self,
        container: &Arc<Container>,
        document: &str,
        directive: IndexDirective,
    ) -> Result<(), String> {
        runtime().block_on(self.write(container, document, directive))
    }

    pub(super) async fn write(
        &self,
        container: &Arc<Container>,
        document: &str,
        index_directive: IndexDirective,
    ) -> Result<(), String> {
        let text = json::Text::parse(document.as_bytes()).map_err(|error| error.to_string())?;
        let key = container.definition.partition_key.extract(text.root());
        let conditions = Conditions::default();
        let options = WriteOptions { partition_key: Some(&key), conditions: &conditions, index_directive };
        let written =
            self.account.documents(container).write(WriteMode::Upsert, document.as_bytes(), options).await;
        written.map(drop).map_err(|error| error.to_string())
    }

    /// Removes a document.
    pub fn remove(&self, container: &Arc<Container>, key: &str, id: &str) -> Result<(), String> {
        let key = PartitionKey::parse_header(key).map_err(|error| error.to_string())?;
        let conditions = Conditions::default();
        let removed = self.account.documents(container).delete(Link::Name(id), Some(&key), &conditions);
        runtime().block_on(removed).map(drop).map_err(|error| error.to_string())
    }

    /// Removes all documents of a partition.
    pub fn clear(&self, container: &Arc<Container>, key: &str) -> Result<(), String> {
        let key = PartitionKey::parse_header(key).map_err(|error| error.to_string())?;
        let cleared = self.account.documents(container).delete_partition(&key);
        runtime().block_on(cleared).map(drop).map_err(|error| error.to_string())
    }

    /// Changes the definition of a container; gives it as it is then.
    pub fn redefine(&self, container: &Arc<Container>, definition: &Json) -> Result<Arc<Container>, String> {
        let mut body = definition_body(definition, 0)?;
        body["id"] = container.definition.id.clone().into();
        let definition = ContainerDefinition::from_json(&body).map_err(|error| error.to_string())?;
        let (link, conditions) = (Link::Name(&container.definition.id), Conditions::default());
        let replaced =
            self.account.catalog().replace_container(Link::Name("d"), link, &definition, &conditions);
        runtime().block_on(replaced).map_err(|error| error.to_string())
    }

    /// A container as it is now.
    pub fn renewed(&self, container: &Container) -> Result<Arc<Container>, String> {
        let found = self.account.catalog().container(Link::Name("d"), Link::Name(&container.definition.id));
        runtime().block_on(found).map_err(|error| error.to_string())
    }

    /// Does one step of building indexes whose policies changed; whether there was something to do.
    pub fn build_indexes(&self) -> Result<bool, String> {
        runtime().block_on(self.account.maintenance().build_indexes()).map_err(|error| error.to_string())
    }

    /// Erases some documents that have expired.
    pub fn erase_expired(&self) -> Result<bool, String> {
        runtime().block_on(self.account.maintenance().erase_expired()).map_err(|error| error.to_string())
    }

    /// Frees the space of what is gone.
    pub fn sweep(&self) -> Result<(), String> {
        while runtime().block_on(self.account.maintenance().sweep()).map_err(|error| error.to_string())? {}
        Ok(())
    }

    /// Removes a container.
    pub fn discard(&self, container: &Container) -> Result<(), String> {
        let (link, conditions) = (Link::Name(&container.definition.id), Conditions::default());
        let deleted = self.account.catalog().delete_container(Link::Name("d"), link, &conditions);
        runtime().block_on(deleted).map_err(|error| error.to_string())
    }

    /// What is wrong with everything stored.
    pub fn problems(&self) -> Result<Vec<String>, String> {
        let mut problems = Vec::new();
        let maintenance = self.account.maintenance();
        let checked = maintenance.verify(|_, report| problems.extend(report.problems.iter().cloned()));
        runtime().block_on(checked).map_err(|error| error.to_string())?;
        Ok(problems)
    }
}
