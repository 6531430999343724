//! The life of a container: its policies, what may be changed, its key ranges.
//!
//! Unique keys are defined and echoed here; that they bind is tested with the index, which comes later.

use azure_data_cosmos::ResourceId;
use azure_data_cosmos::feed::FeedRange;
use azure_data_cosmos::models::{
    ChangeFeedPolicy, CompositeIndex, CompositeIndexOrder, CompositeIndexProperty, ConflictResolutionMode,
    ConflictResolutionPolicy, ContainerProperties, FullTextPath, FullTextPolicy, IndexingMode,
    IndexingPolicy, PartitionKeyKind, PartitionKeyVersion, PropertyPath, SpatialIndex, SpatialType,
    TimeToLive, UniqueKey, UniqueKeyPolicy, VectorDataType, VectorDistanceFunction, VectorEmbedding,
    VectorEmbeddingPolicy, VectorIndex, VectorIndexType,
};
use futures::TryStreamExt as _;
use sdk_tests::expect::{answered, done, refused};
use sdk_tests::fixture::Fixture;
use std::time::Duration;

pub(crate) async fn life(fixture: Fixture) {
    refused(404, fixture.database.container_client("a container", None).await);
    let properties = ContainerProperties::new("a container", "/pk".into());
    let created =
        done(answered(201, fixture.database.create_container(properties.clone(), None).await).into_model());
    check_defaults(&created);
    refused(409, fixture.database.create_container(properties.clone(), None).await);
    let container = done(fixture.database.container_client("a container", None).await);
    assert_eq!(done(answered(200, container.read(None).await).into_model()), created);

    let changed = properties.clone().with_default_ttl(TimeToLive::NoDefault);
    let replaced = done(answered(200, container.replace(changed, None).await).into_model());
    assert_eq!(replaced.default_ttl, TimeToLive::NoDefault);
    assert_eq!(replaced.system_properties.resource_id, created.system_properties.resource_id);
    assert_ne!(replaced.system_properties.etag, created.system_properties.etag);

    answered(204, container.delete(None).await);
    refused(404, container.read(None).await);
    let again = done(answered(201, fixture.database.create_container(properties, None).await).into_model());
    assert_ne!(
        again.system_properties.resource_id, created.system_properties.resource_id,
        "a resource id was given twice"
    );
}

/// What the service fills in when a definition has only an id and a partition key.
fn check_defaults(properties: &ContainerProperties) {
    assert_eq!(properties.partition_key.paths(), ["/pk"]);
    assert_eq!(properties.partition_key.kind(), PartitionKeyKind::Hash);
    assert_eq!(properties.partition_key.version(), PartitionKeyVersion::V2);
    let indexing = properties.indexing_policy.as_ref().expect("an indexing policy");
    assert!(indexing.automatic);
    assert_eq!(indexing.indexing_mode, Some(IndexingMode::Consistent));
    assert_eq!(indexing.included_paths, [PropertyPath::from("/*")]);
    assert_eq!(indexing.excluded_paths, [PropertyPath::from("/\"_etag\"/?")]);
    let conflicts = properties.conflict_resolution_policy.as_ref().expect("a conflict policy");
    assert_eq!(conflicts.mode, ConflictResolutionMode::LastWriterWins);
    assert_eq!(conflicts.resolution_path, "/_ts");
    assert_eq!(properties.default_ttl, TimeToLive::Forever);
}

pub(crate) async fn policies(fixture: Fixture) {
    let sent = every_policy();
    let container = fixture.container_of(sent.clone()).await;
    let received = done(answered(200, container.read(None).await).into_model());
    assert_eq!(received.partition_key, sent.partition_key);
    assert_eq!(received.default_ttl, sent.default_ttl);
    assert_eq!(received.unique_key_policy, sent.unique_key_policy);
    assert_eq!(received.conflict_resolution_policy, sent.conflict_resolution_policy);
    assert_eq!(received.vector_embedding_policy, sent.vector_embedding_policy);
    assert_eq!(received.full_text_policy, sent.full_text_policy);
    assert_eq!(received.change_feed_policy, sent.change_feed_policy);
    let (indexing, expected) =
        (received.indexing_policy.as_ref().expect("one"), sent.indexing_policy.expect("one"));
    assert_eq!(indexing.composite_indexes, expected.composite_indexes);
    assert_eq!(indexing.spatial_indexes, expected.spatial_indexes);
    assert_eq!(indexing.vector_indexes, expected.vector_indexes);
    assert_eq!(indexing.full_text_indexes, expected.full_text_indexes);
    assert_eq!(indexing.included_paths, expected.included_paths);
    for path in expected.excluded_paths {
        assert!(indexing.excluded_paths.contains(&path), "{path:?}");
    }

    // What was read can be written back, and nothing of it changes.
    let replaced = done(answered(200, container.replace(received.clone(), None).await).into_model());
    assert_eq!(replaced.indexing_policy, received.indexing_policy);
}

fn every_policy() -> ContainerProperties {
    ContainerProperties::new("every policy", "/address/city".into())
        .with_default_ttl(3600)
        .with_unique_key_policy(
            UniqueKeyPolicy::default()
                .with_unique_key(UniqueKey::default().with_path("/email"))
                .with_unique_key(UniqueKey::default().with_path("/name/first").with_path("/name/last")),
        )
        .with_conflict_resolution_policy(
            ConflictResolutionPolicy::new(ConflictResolutionMode::LastWriterWins)
                .with_resolution_path("/revision"),
        )
        .with_vector_embedding_policy(VectorEmbeddingPolicy::default().with_embedding(VectorEmbedding::new(
            "/embedding",
            VectorDataType::Float32,
            8,
            VectorDistanceFunction::Cosine,
        )))
        .with_full_text_policy(
            FullTextPolicy::new("en-US")
                .with_full_text_path(FullTextPath::new("/text").with_language("en-US")),
        )
        .with_change_feed_policy(
            ChangeFeedPolicy::default().with_retention_duration(Duration::from_secs(600)),
        )
        .with_indexing_policy(every_index())
}

fn every_index() -> IndexingPolicy {
    // All four types, because the service indexes and echoes all four whichever are listed.
    let spatial =
        [SpatialType::Point, SpatialType::LineString, SpatialType::Polygon, SpatialType::MultiPolygon]
            .into_iter()
            .fold(SpatialIndex::new("/place/*"), SpatialIndex::with_type);
    IndexingPolicy::default()
        .with_indexing_mode(IndexingMode::Consistent)
        .with_included_path("/*")
        .with_excluded_path("/notes/?")
        .with_excluded_path("/embedding/*")
        .with_composite_index(
            CompositeIndex::default()
                .with_property(CompositeIndexProperty::new("/name", CompositeIndexOrder::Ascending))
                .with_property(CompositeIndexProperty::new("/age", CompositeIndexOrder::Descending)),
        )
        .with_spatial_index(spatial)
        .with_vector_index(VectorIndex::new("/embedding", VectorIndexType::Flat))
        .with_full_text_index("/text")
}

pub(crate) async fn without_index(fixture: Fixture) {
    let mut policy = IndexingPolicy::default().with_indexing_mode(IndexingMode::None);
    policy.automatic = false;
    let properties = ContainerProperties::new("no index", "/pk".into()).with_indexing_policy(policy);
    let container = fixture.container_of(properties).await;
    let received =
        done(answered(200, container.read(None).await).into_model()).indexing_policy.expect("a policy");
    assert_eq!(received.indexing_mode, Some(IndexingMode::None));
    assert!(!received.automatic);
}

pub(crate) async fn refusals(fixture: Fixture) {
    let one_path = CompositeIndex::default()
        .with_property(CompositeIndexProperty::new("/a", CompositeIndexOrder::Ascending));
    let plain = || ContainerProperties::new("refused", "/pk".into());
    for properties in [
        ContainerProperties::new("refused", "pk".into()),
        ContainerProperties::new("refused", "/pk/*".into()),
        plain().with_default_ttl(0),
        plain().with_indexing_policy(
            IndexingPolicy::default().with_included_path("/*").with_composite_index(one_path),
        ),
        plain().with_indexing_policy(
            IndexingPolicy::default()
                .with_included_path("/*")
                .with_vector_index(VectorIndex::new("/embedding", VectorIndexType::Flat)),
        ),
    ] {
        refused(400, fixture.database.create_container(properties, None).await);
    }
    refused(404, fixture.database.container_client("refused", None).await);
}

pub(crate) async fn replace_refusals(fixture: Fixture) {
    let container = fixture.container("fixed").await;
    let before = done(answered(200, container.read(None).await).into_model());
    refused(400, container.replace(ContainerProperties::new("fixed", "/other".into()), None).await);
    let unique = UniqueKeyPolicy::default().with_unique_key(UniqueKey::default().with_path("/email"));
    let changed = ContainerProperties::new("fixed", "/pk".into()).with_unique_key_policy(unique);
    refused(400, container.replace(changed, None).await);
    assert_eq!(done(answered(200, container.read(None).await).into_model()), before);
}

/// The SDK lists containers by a query only. This one the server answers, as it has no condition.
pub(crate) async fn list(fixture: Fixture) {
    for id in ["alpha", "beta", "gamma"] {
        fixture.container(id).await;
    }
    let found: Vec<ContainerProperties> =
        done(done(fixture.database.query_containers("SELECT * FROM c", None).await).try_collect().await);
    let mut ids: Vec<_> = found.into_iter().map(|container| container.id.into_owned()).collect();
    ids.sort();
    assert_eq!(ids, ["alpha", "beta", "gamma"]);
}

/// The SDK reads the key ranges in a loop that ends with 304 only.
pub(crate) async fn feed_ranges(fixture: Fixture) {
    let container = fixture.container("ranges").await;
    assert_eq!(done(container.read_feed_ranges(None).await), [FeedRange::full()]);
    let narrow = done(container.feed_range_from_partition_key("somewhere", None).await);
    assert_eq!(narrow.len(), 1);
}

/// The same resources, addressed by the ids that the server gave them. Items the SDK addresses by name only.
pub(crate) async fn by_resource_id(fixture: Fixture) {
    let named = fixture.container("named").await;
    let properties = done(answered(200, named.read(None).await).into_model());
    let database = done(answered(200, fixture.database.read(None).await).into_model());
    let database_rid = ResourceId::from(database.system_properties.resource_id.expect("a resource id"));
    let container_rid =
        ResourceId::from(properties.system_properties.resource_id.clone().expect("a resource id"));

    let database = fixture.client.database_client(database_rid);
    let container = done(database.container_client(container_rid, None).await);
    assert_eq!(done(answered(200, container.read(None).await).into_model()), properties);
    assert_eq!(done(container.read_throughput(None).await).expect("throughput").throughput(), Some(400));
    refused(404, database.container_client(ResourceId::from("AAAAAIAAAAE="), None).await);
}
