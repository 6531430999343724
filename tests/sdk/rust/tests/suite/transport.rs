//! The protocol that was really spoken, by the SDK's own account and by the bytes on the wire.

use sdk_tests::expect::{document, done, item_answered};
use sdk_tests::fixture::{Fixture, KEY};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What a client of HTTP/2 says first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) async fn protocol(fixture: Fixture) {
    fixture.container("items").await;
    let (port, openings) = tap(fixture.server.port()).await;
    // The server names the endpoint that the client used, so all of the client's traffic goes through the tap.
    let endpoint = format!("{}://127.0.0.1:{port}/", fixture.way.scheme);
    let client = done(fixture.way.client_at(&endpoint, KEY).await);
    let container =
        done(client.database_client(fixture.database_id.clone()).container_client("items", None).await);
    let created = item_answered(201, container.create_item("somewhere", "1", &document("1", 1), None).await);

    let requests = created.diagnostics().requests();
    assert_eq!(requests.len(), 1, "the write was sent once");
    assert_eq!(requests[0].transport_http_version().is_http2(), !fixture.way.http1);
    let openings = openings.lock().expect("no panic in the tap").clone();
    assert!(!openings.is_empty(), "nothing went through the tap");
    for opening in openings {
        if fixture.way.scheme == "https" {
            assert_eq!(opening[..2], [0x16, 0x03], "a TLS handshake");
        } else {
            assert_eq!(opening.starts_with(PREFACE), !fixture.way.http1, "{opening:?}");
        }
    }
}

/// Passes connections on to the server's port, and keeps the first bytes of each.
async fn tap(server_port: u16) -> (u16, Arc<Mutex<Vec<Vec<u8>>>>) {
    let listener = done(TcpListener::bind("127.0.0.1:0").await);
    let port = done(listener.local_addr()).port();
    let openings = Arc::new(Mutex::new(Vec::new()));
    let seen = openings.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let seen = seen.clone();
            tokio::spawn(async move {
                let mut opening = vec![0; PREFACE.len()];
                client.read_exact(&mut opening).await?;
                let mut server = TcpStream::connect(("127.0.0.1", server_port)).await?;
                server.write_all(&opening).await?;
                seen.lock().expect("no panic in the tap").push(opening);
                tokio::io::copy_bidirectional(&mut client, &mut server).await
            });
        }
    });
    (port, openings)
}
