//! The life of a database, and what the account answers to keys.

use futures::TryStreamExt as _;
use sdk_tests::expect::{answered, done, refused};
use sdk_tests::fixture::Fixture;

pub(crate) async fn life(fixture: Fixture) {
    let id = format!("life of a dätabase {}", fixture.database_id);
    let database = fixture.client.database_client(id.clone());
    refused(404, database.read(None).await);

    let created = done(answered(201, fixture.client.create_database(&id, None).await).into_model());
    assert_eq!(created.id.as_deref(), Some(id.as_str()));
    let rid = created.system_properties.resource_id.clone().expect("a resource id");
    assert_eq!(created.system_properties.self_link, Some(format!("dbs/{rid}/")));
    let read = done(answered(200, database.read(None).await).into_model());
    assert_eq!(read, created);
    refused(409, fixture.client.create_database(&id, None).await);

    answered(204, database.delete(None).await);
    refused(404, database.delete(None).await);
    let again = done(answered(201, fixture.client.create_database(&id, None).await).into_model());
    assert_ne!(again.system_properties.resource_id, Some(rid), "a resource id was given twice");
    answered(204, database.delete(None).await);
}

/// The SDK lists databases by a query only. These the server answers without SQL: everything, and one property.
pub(crate) async fn list(fixture: Fixture) {
    let all: Vec<_> =
        done(done(fixture.client.query_databases("SELECT * FROM c", None).await).try_collect().await);
    assert!(all.iter().any(|database| database.id.as_deref() == Some(fixture.database_id.as_str())));
    let lookup = format!("SELECT * FROM root r WHERE r.id = '{}'", fixture.database_id);
    let found: Vec<_> = done(done(fixture.client.query_databases(lookup, None).await).try_collect().await);
    assert_eq!(found.len(), 1);
}

pub(crate) async fn ids(fixture: Fixture) {
    let long = "x".repeat(256);
    for id in ["", "a/b", "a\\b", "a?b", "a#b", "trailing ", &long] {
        refused(400, fixture.client.create_database(id, None).await);
    }
}

pub(crate) async fn keys(fixture: Fixture) {
    let endpoint = fixture.server.endpoint(fixture.way.scheme);
    // A client reads the account when it is built.
    refused(401, fixture.way.client_at(&endpoint, "d3Jvbmcta2V5LW9mLXRoZS10ZXN0LXN1aXRlcw==").await);
}
