//! Throughput of containers: read, replace, manual and autoscale, refusals. Databases get none from this SDK.

use azure_data_cosmos::CosmosError;
use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::models::{ContainerProperties, ThroughputProperties};
use azure_data_cosmos::options::CreateContainerOptions;
use sdk_tests::expect::{done, refused};
use sdk_tests::fixture::Fixture;

async fn create(fixture: &Fixture, throughput: ThroughputProperties) -> Result<ContainerClient, CosmosError> {
    let options = CreateContainerOptions::default().with_throughput(throughput);
    fixture
        .database
        .create_container(ContainerProperties::new("scaled", "/pk".into()), Some(options))
        .await?;
    fixture.database.container_client("scaled", None).await
}

async fn read(container: &ContainerClient) -> ThroughputProperties {
    done(container.read_throughput(None).await).expect("throughput")
}

async fn replace(
    container: &ContainerClient,
    throughput: ThroughputProperties,
) -> Result<ThroughputProperties, CosmosError> {
    container.begin_replace_throughput(throughput, None).await?.await?.into_model()
}

pub(crate) async fn manual(fixture: Fixture) {
    let container = done(create(&fixture, ThroughputProperties::manual(400)).await);
    let before = read(&container).await;
    assert_eq!((before.throughput(), before.autoscale_maximum()), (Some(400), None));
    let after = done(replace(&container, ThroughputProperties::manual(1100)).await);
    assert_eq!(after.throughput(), Some(1100));
    for bad in [0, 399, 450, 1_000_100] {
        refused(400, replace(&container, ThroughputProperties::manual(bad)).await);
    }
    assert_eq!(read(&container).await.throughput(), Some(1100));
}

pub(crate) async fn autoscale(fixture: Fixture) {
    let container = done(create(&fixture, ThroughputProperties::autoscale(5000, Some(42))).await);
    let before = read(&container).await;
    assert_eq!((before.autoscale_maximum(), before.autoscale_increment()), (Some(5000), Some(42)));
    assert_eq!(before.throughput(), Some(500), "a tenth of the maximum");
    let after = done(replace(&container, ThroughputProperties::autoscale(10_000, None)).await);
    assert_eq!(after.autoscale_maximum(), Some(10_000));
    for bad in [500, 1500] {
        refused(400, replace(&container, ThroughputProperties::autoscale(bad, None)).await);
    }
    assert_eq!(read(&container).await.autoscale_maximum(), Some(10_000));
}

pub(crate) async fn absent(fixture: Fixture) {
    assert!(done(fixture.database.read_throughput(None).await).is_none());
    // A container outside a database with throughput always has some.
    assert_eq!(read(&fixture.container("default").await).await.throughput(), Some(400));
}

pub(crate) async fn refused_at_creation(fixture: Fixture) {
    for bad in [
        ThroughputProperties::manual(100),
        ThroughputProperties::manual(450),
        ThroughputProperties::autoscale(500, None),
        ThroughputProperties::autoscale(1500, None),
    ] {
        refused(400, create(&fixture, bad).await);
    }
    refused(404, fixture.database.container_client("scaled", None).await);
}
