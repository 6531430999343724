//! Durability: the server is killed with -9 and started again on the same folder and port; the same client goes on.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::models::{ContainerProperties, ThroughputProperties};
use azure_data_cosmos::options::CreateContainerOptions;
use futures::future::join_all;
use sdk_tests::expect::{
    answered, document, done, etag, if_match, item_answered, number, refused, same, with_content,
};
use sdk_tests::fixture::{Fixture, KEY};
use sdk_tests::server::Server;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const PARTITION: &str = "somewhere";

/// A server of the test's own, with a container in it.
async fn own_server(fixture: &Fixture) -> (tempfile::TempDir, Server, ContainerClient) {
    let folder = done(tempfile::tempdir());
    let server = Server::durable(folder.path());
    let client = done(fixture.way.client_at(&server.endpoint(fixture.way.scheme), KEY).await);
    answered(201, client.create_database("durable", None).await);
    let database = client.database_client("durable");
    let options = CreateContainerOptions::default().with_throughput(ThroughputProperties::manual(700));
    answered(
        201,
        database.create_container(ContainerProperties::new("items", "/pk".into()), Some(options)).await,
    );
    let container = done(database.container_client("items", None).await);
    (folder, server, container)
}

pub(crate) async fn kill_and_restart(fixture: Fixture) {
    let (_folder, mut server, container) = own_server(&fixture).await;
    let definition = done(answered(200, container.read(None).await).into_model());
    let kept = item_answered(
        201,
        container.create_item(PARTITION, "kept", &document("kept", 1), with_content()).await,
    );
    let (kept_etag, kept_token) = (etag(&kept), kept.headers().session_token().cloned());
    let kept: Value = done(kept.into_model());
    item_answered(201, container.create_item(PARTITION, "deleted", &document("deleted", 1), None).await);
    item_answered(204, container.delete_item(PARTITION, "deleted", None).await);

    server.restart();
    let read = item_answered(200, container.read_item(PARTITION, "kept", None).await);
    assert_eq!(done(read.into_model::<Value>()), kept);
    refused(404, container.read_item(PARTITION, "deleted", None).await);
    assert_eq!(done(answered(200, container.read(None).await).into_model()), definition);
    assert_eq!(done(container.read_throughput(None).await).expect("throughput").throughput(), Some(700));
    let replaced =
        container.replace_item(PARTITION, "kept", &document("kept", 2), if_match(&kept_etag)).await;
    assert_ne!(item_answered(200, replaced).headers().session_token().cloned(), kept_token);
    let later = item_answered(
        201,
        container.create_item(PARTITION, "later", &document("later", 1), with_content()).await,
    );
    assert_ne!(done(later.into_model::<Value>())["_rid"], kept["_rid"], "a resource id was given twice");
}

/// Several writers at once, and the kill in the middle of their writes: what was acknowledged is there.
pub(crate) async fn kill_under_writes(fixture: Fixture) {
    let (_folder, mut server, container) = own_server(&fixture).await;
    let (stopped, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let writers = (0..4).map(|writer| write_until(&container, writer, &stopped, &answered));
    let killer = async {
        // In the middle of writes, however slow the machine is.
        let began = Instant::now();
        while answered.load(Ordering::Relaxed) < 20 && began.elapsed() < Duration::from_mins(5) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stopped.store(true, Ordering::Relaxed);
        server.restart();
    };
    let (acknowledged, ()) = futures::join!(join_all(writers), killer);
    let acknowledged: Vec<String> = acknowledged.into_iter().flatten().collect();
    assert!(!acknowledged.is_empty(), "nothing was written before the kill");
    for id in acknowledged {
        same(
            &document(&id, id.as_str()),
            item_answered(200, container.read_item(PARTITION, &id, None).await),
        );
    }
}

async fn write_until(
    container: &ContainerClient,
    writer: usize,
    stopped: &AtomicBool,
    answered: &AtomicUsize,
) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for position in 0.. {
        if stopped.load(Ordering::Relaxed) {
            break;
        }
        let id = format!("{writer}-{position}");
        let result = container.create_item(PARTITION, &id, &document(&id, id.as_str()), None).await;
        if result.is_ok_and(|response| number(response.status()) == 201) {
            acknowledged.push(id);
            answered.fetch_add(1, Ordering::Relaxed);
        }
    }
    acknowledged
}
