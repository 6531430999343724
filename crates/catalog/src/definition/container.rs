//! The definition of a container: its partition key and all of its policies.
//!
//! In: the body of a create or replace request. Out: [`ContainerDefinition`], checked as a whole, with the defaults of
//! the original service; or the body as reads show it.
//! Invariants
//! - Policies agree with each other: vector indexes have embeddings, full-text indexes have a language, spatial
//!   indexes fit the coordinates, computed properties depend on documents only.
//! - Members with a default are always shown; the others only when they are set.
//!
//! Not here: whether the client encryption keys exist, and what a change costs to carry out (`database`, `index`).

mod composite_index;
mod computed_property;
mod conflict_resolution;
mod encryption;
mod full_text;
mod index_path;
mod indexing;
mod partition_key;
mod spatial_index;
mod time_to_live;
mod unique_key;
mod vector;

pub use composite_index::{CompositeIndex, CompositePath, SortOrder};
pub use computed_property::ComputedProperty;
pub use conflict_resolution::ConflictResolution;
pub use encryption::{ClientEncryptionPolicy, EncryptedPath, EncryptionType};
pub use full_text::{FullTextPath, FullTextPolicy, Language};
pub use index_path::{IndexPath, IndexStep, IndexTarget};
pub use indexing::{IndexingMode, IndexingPolicy};
pub use spatial_index::{BoundingBox, Geospatial, SpatialIndex};
pub use time_to_live::DefaultTtl;
pub use unique_key::UniqueKey;
pub use vector::{
    DistanceFunction, EmbeddingAuthentication, EmbeddingSource, Quantizer, VectorDataType, VectorEmbedding,
    VectorIndex, VectorIndexType,
};

use super::members::Members;
use super::{Invalid, Named, excerpt, id};
use astrarium_partition::PartitionKeyDefinition;
use astrarium_value::PropertyPath;
use serde_json::{Map, Value, json};

/// Members whose meaning we do not have. Silently leaving them out would make a container that is not what its author
/// relies on, so they are refused.
const UNSUPPORTED: [&str; 3] =
    ["materializedViewDefinition", "globalSecondaryIndexDefinition", "dataMaskingPolicy"];

/// A container as its author defines it.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerDefinition {
    /// Its name.
    pub id: String,
    /// Where documents belong.
    pub partition_key: PartitionKeyDefinition,
    /// What is indexed.
    pub indexing: IndexingPolicy,
    /// What may occur once within a logical partition.
    pub unique_keys: Vec<UniqueKey>,
    /// Whether and when documents expire.
    pub default_ttl: Option<DefaultTtl>,
    /// The property that lifetimes are counted from instead of the last write (of older clients).
    pub ttl_property_path: Option<PropertyPath>,
    /// How conflicting writes of several regions are settled.
    pub conflict_resolution: ConflictResolution,
    /// The coordinates of geometries.
    pub geospatial: Geospatial,
    /// Properties that queries see and documents do not hold.
    pub computed_properties: Vec<ComputedProperty>,
    /// Properties that hold vectors.
    pub vector_embeddings: Vec<VectorEmbedding>,
    /// Properties that hold prose.
    pub full_text: Option<FullTextPolicy>,
    /// For how many minutes all versions of documents stay in the change feed; 0 keeps none.
    pub change_feed_retention_minutes: Option<u32>,
    /// What clients encrypt.
    pub client_encryption: Option<ClientEncryptionPolicy>,
    /// Lifetime of analytical copies in seconds, -1 for ever; kept for its readers.
    pub analytical_storage_ttl: Option<i32>,
}

impl ContainerDefinition {
    /// Reads the body of a create request.
    pub fn from_create(body: &Value) -> Result<ContainerDefinition, Invalid> {
        let definition = ContainerDefinition::from_replace(body)?;
        partition_key::check_new(&definition.partition_key)?;
        Ok(definition)
    }

    /// Reads the body of a replace request.
    pub fn from_replace(body: &Value) -> Result<ContainerDefinition, Invalid> {
        let mut definition = ContainerDefinition::from_json(body)?;
        definition.indexing.normalise();
        Ok(definition)
    }

    /// Reads a definition, also one that was stored when more was let pass. A body without a partition key gets the key
    /// of older times (`/_partitionKey`, a system key).
    pub fn from_json(body: &Value) -> Result<ContainerDefinition, Invalid> {
        let body = Members::of(body, "the container")?;
        if let Some(name) = UNSUPPORTED.iter().find(|name| body.get(name).is_some()) {
            return Err(Invalid::new(format!(
                "'{name}' is not supported. Remove it from the container's definition."
            )));
        }
        let id = id::name_of(&body)?;
        let partition_key = partition_key::from_json(&body)?;
        let indexing = indexing::from_json(&body)?;
        let computed_properties = computed_property::from_json(&body, &indexing.spatial)?;
        let client_encryption = encryption::from_json(&body, &partition_key)?;
        let definition = ContainerDefinition {
            id,
            partition_key,
            indexing,
            unique_keys: unique_key::from_json(&body)?,
            default_ttl: time_to_live::default_from_json(&body)?,
            ttl_property_path: ttl_property_path(&body)?,
            conflict_resolution: conflict_resolution::from_json(&body)?,
            geospatial: spatial_index::geospatial_from_json(&body)?,
            computed_properties,
            vector_embeddings: vector::embeddings_from_json(&body)?,
            full_text: full_text::from_json(&body)?,
            change_feed_retention_minutes: change_feed_retention(&body)?,
            client_encryption,
            analytical_storage_ttl: time_to_live::analytical_from_json(&body)?,
        };
        definition.check_agreement()?;
        Ok(definition)
    }

    /// The body as reads show it, without system properties.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut body = Map::new();
        let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
        put("id", self.id.as_str().into());
        put("indexingPolicy", indexing::to_json(&self.indexing));
        put("partitionKey", partition_key::to_json(&self.partition_key));
        if let Some(ttl) = self.default_ttl {
            put("defaultTtl", time_to_live::default_to_json(ttl));
        }
        if let Some(path) = &self.ttl_property_path {
            put("ttlPropertyPath", path.as_str().into());
        }
        if !self.unique_keys.is_empty() {
            put("uniqueKeyPolicy", unique_key::to_json(&self.unique_keys));
        }
        put("conflictResolutionPolicy", conflict_resolution::to_json(&self.conflict_resolution));
        if let Some(minutes) = self.change_feed_retention_minutes {
            put("changeFeedPolicy", json!({ "retentionDuration": minutes }));
        }
        put("geospatialConfig", json!({"type": self.geospatial.name()}));
        if let Some(seconds) = self.analytical_storage_ttl {
            put("analyticalStorageTtl", seconds.into());
        }
        if !self.computed_properties.is_empty() {
            put("computedProperties", computed_property::to_json(&self.computed_properties));
        }
        if !self.vector_embeddings.is_empty() {
            put("vectorEmbeddingPolicy", vector::embeddings_to_json(&self.vector_embeddings));
        }
        if let Some(policy) = &self.full_text {
            put("fullTextPolicy", full_text::to_json(policy));
        }
        if let Some(policy) = &self.client_encryption {
            put("clientEncryptionPolicy", encryption::to_json(policy));
        }
        body
    }

    /// Checks that a replace changes only what may change. `new` is what the client sent; what to store is
    /// [`ContainerDefinition::replaced`].
    pub fn check_replacement(&self, new: &ContainerDefinition) -> Result<(), Invalid> {
        if new.id != self.id {
            return Err(Invalid::new(format!(
                "The id of a container cannot be changed: it is '{}', the request has '{}'.",
                excerpt(&self.id),
                excerpt(&new.id)
            )));
        }
        partition_key::check_unchanged(&self.partition_key, &new.partition_key)?;
        if !new.unique_keys.is_empty() && new.unique_keys != self.unique_keys {
            return Err(Invalid::new(
                "The unique keys of a container cannot be changed. Send them as they are, or make a new container.",
            ));
        }
        if new.client_encryption != self.client_encryption {
            return Err(Invalid::new(
                "'clientEncryptionPolicy' cannot be changed as part of collection replace operation. Send it as it is, \
                 or make a new container.",
            ));
        }
        let is_custom = |policy: &ConflictResolution| matches!(policy, ConflictResolution::Custom { .. });
        if is_custom(&new.conflict_resolution) && !is_custom(&self.conflict_resolution) {
            return Err(Invalid::new(
                "The conflict resolution mode Custom can only be chosen when a container is created.",
            ));
        }
        vector::check_replacement(
            (&self.vector_embeddings, &self.indexing.vector),
            (&new.vector_embeddings, &new.indexing.vector),
        )
    }

    /// The definition after a replace request: what the client sent, with what clients may leave out kept as it was.
    pub fn replaced(&self, new: ContainerDefinition) -> Result<ContainerDefinition, Invalid> {
        self.check_replacement(&new)?;
        // The version of the hash may be missing in `new`, and the unique keys, but neither ever changes.
        let (partition_key, unique_keys) = (self.partition_key.clone(), self.unique_keys.clone());
        Ok(ContainerDefinition { partition_key, unique_keys, ..new })
    }

    /// Whether both definitions ask for the same index entries of every document. Parts that only a kind of index reads
    /// count where there is such an index.
    pub fn has_same_indexes(&self, other: &ContainerDefinition) -> bool {
        let (own, others) = (&self.indexing, &other.indexing);
        let is_unused = |policy: &IndexingPolicy| policy.mode == IndexingMode::None;
        if is_unused(own) || is_unused(others) {
            return is_unused(own) && is_unused(others);
        }
        own.has_same_indexes(others)
            && self.computed_properties == other.computed_properties
            && (own.spatial.is_empty() || self.geospatial == other.geospatial)
            && (own.vector.is_empty() || self.vector_embeddings == other.vector_embeddings)
            && (own.full_text.is_empty() || self.full_text == other.full_text)
    }

    /// Whether the index has entries by which documents expire.
    pub fn indexes_expiry(&self) -> bool {
        self.default_ttl.is_some() && self.indexing.mode != IndexingMode::None
    }

    /// Checks what the service asks of containers whose documents expire. Those that were made before it was asked are read.
    pub fn check_expiry(&self) -> Result<(), Invalid> {
        if self.default_ttl.is_some() && self.indexing.mode == IndexingMode::None {
            return Err(Invalid::new(
                "A container with a defaultTtl needs an index. Set the indexing mode to consistent, excluding all paths if \
                 no query needs one, or remove the defaultTtl.",
            ));
        }
        Ok(())
    }

    /// Checks the rules that hold between policies.
    fn check_agreement(&self) -> Result<(), Invalid> {
        if self.ttl_property_path.is_some() && self.default_ttl.is_none() {
            return Err(Invalid::new("A ttlPropertyPath needs a defaultTtl. Set one, or remove the path."));
        }
        spatial_index::check_indexes(&self.indexing.spatial, self.geospatial)?;
        vector::check_indexes(&self.indexing.vector, &self.vector_embeddings)?;
        full_text::check_indexes(&self.indexing.full_text, self.full_text.as_ref())
    }
}

fn ttl_property_path(body: &Members<'_>) -> Result<Option<PropertyPath>, Invalid> {
    let Some(text) = body.text("ttlPropertyPath")? else {
        return Ok(None);
    };
    let path = PropertyPath::parse(text).map_err(|error| {
        Invalid::new(format!("The ttlPropertyPath '{}' could not be accepted: {error}.", excerpt(text)))
    })?;
    Ok(Some(path))
}

fn change_feed_retention(body: &Members<'_>) -> Result<Option<u32>, Invalid> {
    let Some(policy) = body.object("changeFeedPolicy", "changeFeedPolicy")? else {
        return Ok(None);
    };
    let Some(minutes) = policy.integer("retentionDuration")? else {
        return Ok(None);
    };
    let in_range = u32::try_from(minutes).ok().filter(|minutes| i32::try_from(*minutes).is_ok());
    in_range.map(Some).ok_or_else(|| policy.wrong("retentionDuration", "a number of minutes, 0 or more"))
}
