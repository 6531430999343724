//! Plain HTTP and TLS on one port, and handshakes that go wrong.

use crate::world::{World, assert_refusal, create};
use astrarium_testkit::http::{Connection, PATIENCE};
use astrarium_testkit::{EngineKind, Options, Request};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

fn encrypted() -> World {
    let mut options = Options::on(EngineKind::Memory);
    options.tls = true;
    options.limits.handshake_timeout = Duration::from_secs(3);
    options.limits.idle_timeout = Duration::from_secs(2);
    World::with(options)
}

type Tls = Connection<StreamOwned<ClientConnection, TcpStream>>;

/// A connection that trusts the server's authority and nobody else.
fn connect(address: SocketAddr, authority_pem: &str, name: &str) -> Tls {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority_pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let session =
        ClientConnection::new(Arc::new(config), ServerName::try_from(name.to_owned()).unwrap()).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    Connection::over(StreamOwned::new(session, stream))
}

#[test]
fn both_on_one_port() {
    let mut world = encrypted();
    let pem = world.server.authority_pem().unwrap().to_owned();
    let address = world.server.address();
    // The authority is offered to whoever asks, in clear text.
    let page = Request::new("GET", "/_explorer/emulator.pem").credential(astrarium_testkit::Credential::None);
    assert_eq!(world.client.expect(200, &page).text(), pem);
    for name in ["localhost", "127.0.0.1", "host.docker.internal"] {
        let mut secure = connect(address, &pem, name);
        let account = secure.exchange("GET", &world.client.bytes(&Request::new("GET", "/"))).unwrap();
        assert_eq!(account.status, 200);
        // The endpoint to go on with is the encrypted one.
        assert!(account.text().contains("https://astrarium.test:8081/"), "{}", account.text());
        let created =
            secure.exchange("POST", &world.client.bytes(&create("{\"id\":\"1\",\"pk\":\"a\"}"))).unwrap();
        assert_eq!(created.status, 201);
        let gone = Request::new("DELETE", "/dbs/d/colls/c/docs/1").partition_key("[\"a\"]");
        assert_eq!(secure.exchange("DELETE", &world.client.bytes(&gone)).unwrap().status, 204);
    }
    world.assert_unchanged();
}

/// A body too large over TLS is refused with an answer that the client can read.
#[test]
fn a_body_too_large_is_answered() {
    let mut world = encrypted();
    let pem = world.server.authority_pem().unwrap().to_owned();
    let mut secure = connect(world.server.address(), &pem, "localhost");
    let response = secure.exchange("POST", &world.client.bytes(&create(vec![b' '; 5 << 20]))).unwrap();
    assert_refusal(413, "too large", &response);
    world.assert_unchanged();
}

#[test]
fn handshakes_that_go_wrong() {
    let mut world = encrypted();
    let mut attempts: Vec<Vec<u8>> =
        vec![b"\x16".to_vec(), b"\x16\x03\x01\x00\x05hello".to_vec(), vec![0x16; 20_000]];
    attempts.push([b"\x16\x03\x01\xff\xff".to_vec(), vec![1; 70_000]].concat());
    for bytes in attempts {
        let mut connection = Connection::open(world.server.address()).unwrap();
        let _ = connection.send(&bytes);
        let _ = connection.read_to_close().unwrap();
    }
    world.assert_unchanged();
}
