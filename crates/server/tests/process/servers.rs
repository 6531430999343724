//! Several servers over one store, from outside: what clients are told of them, a balancer before them, and a store that is away.

use crate::program::{DOCS, Program, create, read};
use astrarium_postgres_fixture::{Cluster, Installation, Settings};
use astrarium_testkit::http::Response;
use astrarium_testkit::{Client, Request, postgres};
use serde_json::Value;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Longest time until a change is seen by everybody: a heartbeat counts for six seconds.
const PATIENCE: Duration = Duration::from_mins(5);

/// Waits until something is so.
#[track_caller]
fn until(what: &str, is_so: impl FnMut() -> bool) {
    let mut is_so = is_so;
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn account(client: &mut Client) -> Value {
    serde_json::from_str(&client.expect(200, &Request::new("GET", "/")).text()).unwrap()
}

/// Names and endpoints of one of an account document's lists.
fn locations(document: &Value, list: &str) -> Vec<(String, String)> {
    let text = |location: &Value, name: &str| location[name].as_str().unwrap().to_owned();
    let location = |location: &Value| (text(location, "name"), text(location, "databaseAccountEndpoint"));
    document[list].as_array().unwrap().iter().map(location).collect()
}

#[test]
fn clients_are_told_of_every_server_that_is_alive() {
    let Some(_) = postgres::cluster() else { return };
    let store = postgres::empty_store();
    let first = Program::on_store(&store, &[]);
    let mut client = first.client();
    let alone = account(&mut client);
    let memory = account(&mut Program::in_memory(&[]).client());
    assert_eq!(alone, memory, "a server alone is as it always was");
    let named = |name: &str| Program::on_store(&store, &["--server-name", name]);
    let (west, east) = (named("West"), named("East"));
    until("all servers are known", || locations(&account(&mut client), "writableLocations").len() == 3);
    let document = account(&mut client);
    assert_eq!(document["enableMultipleWriteLocations"], true);
    let own = (first.address.to_string(), "http://localhost:8081/".to_owned());
    let of = |name: &str, server: &Program| (name.to_owned(), format!("http://{}/", server.address));
    let all = [own, of("West", &west), of("East", &east)];
    assert_eq!(locations(&document, "writableLocations"), all);
    assert_eq!(locations(&document, "readableLocations"), all);
    until("the last one knows all", || {
        locations(&account(&mut east.client()), "readableLocations").len() == 3
    });
    let seen_there = locations(&account(&mut east.client()), "readableLocations");
    assert_eq!(seen_there[0].0, "East", "whoever is asked comes first");
    west.kill();
    until("a killed server is told of no more", || {
        locations(&account(&mut client), "writableLocations").len() == 2
    });
    east.stop();
    until("a server alone is as before", || account(&mut client) == memory);
}

/// Passes each connection on to the next of some servers, as a plain TCP balancer does, until the program ends.
fn balance(targets: Vec<SocketAddr>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let Ok(client) = client else { return };
            // One that is gone is passed over.
            let mut tried = (0..targets.len()).map(|offset| targets[(number + offset) % targets.len()]);
            let Some(server) = tried.find_map(|target| TcpStream::connect(target).ok()) else {
                continue;
            };
            for (mut from, mut to) in
                [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)]
            {
                std::thread::spawn(move || {
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    address
}

/// An address that nobody listens on.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Each request by a connection of its own, so that each goes to another server.
fn ask(balancer: SocketAddr, request: &Request) -> Response {
    Client::of_process(balancer).ask(request)
}

#[test]
fn a_session_holds_behind_a_balancer() {
    let Some(_) = postgres::cluster() else { return };
    let store = postgres::empty_store();
    let addresses: Vec<SocketAddr> = (0..3).map(|_| free_address()).collect();
    let balancer = balance(addresses.clone());
    let public = format!("http://{balancer}/");
    let start = |address: &SocketAddr| {
        let listen = address.to_string();
        let arguments = ["--listen", &listen, "--store", &store, "--public-endpoint", &public];
        Program::start_with(&[], &arguments)
    };
    let mut servers: Vec<Program> = addresses.iter().map(start).collect();
    servers[0].furnish();
    let mut client = Client::of_process(addresses[1]);
    until("all servers are known", || {
        let metrics = client.expect(200, &Request::new("GET", "/metrics")).text();
        metrics.contains("astrarium_servers_alive 3.0")
    });
    let told = account(&mut client);
    let behind = vec![("South Central US".to_owned(), public.clone())];
    assert_eq!(locations(&told, "writableLocations"), behind, "a balancer is one place");
    assert_eq!(told["enableMultipleWriteLocations"], false);
    let mut token = String::new();
    for number in 0..60 {
        if number == 30 {
            servers.remove(2).kill();
        }
        let id = number.to_string();
        let created = ask(balancer, &create(&id, "x"));
        assert_eq!(created.status, 201, "{}", created.text());
        token = created.header("x-ms-session-token").unwrap().to_owned();
        // Another server has it at once.
        let found = ask(balancer, &read(&id).header("x-ms-session-token", &token));
        assert_eq!(found.status, 200, "{}", found.text());
        let count = Request::new("POST", DOCS)
            .partition_key("[\"a\"]")
            .header("content-type", "application/query+json")
            .header("x-ms-documentdb-isquery", "True")
            .header("x-ms-session-token", &token)
            .body("{\"query\":\"SELECT VALUE COUNT(1) FROM c\"}");
        let counted = ask(balancer, &count);
        let expected = format!("[{}]", number + 1);
        assert!(counted.text().replace(char::is_whitespace, "").contains(&expected), "{}", counted.text());
    }
    // The creation of the container is 1.
    assert!(token.ends_with("#61"), "{token}");
}

#[test]
fn a_store_that_is_away_is_told_quickly_and_comes_back() {
    let Ok(installation) = Installation::find() else { return };
    let cluster = Cluster::start(&installation, Settings::default()).unwrap();
    assert!(crate::program::run(&["store", "init", &cluster.url()]).success);
    let server = Program::on_store(&cluster.url(), &[]);
    server.furnish();
    let mut client = server.client();
    client.expect(201, &create("1", "x"));
    assert_eq!(client.ask(&Request::new("GET", "/ready")).status, 200);
    cluster.kill().unwrap();
    for request in [read("1"), create("2", "x"), Request::new("GET", "/dbs/d")] {
        // The store stays away until all of them are refused.
        let refusal = client.ask(&request);
        assert_eq!(refusal.status, 503, "{}", refusal.text());
        assert_eq!(refusal.header("x-ms-retry-after-ms"), Some("1000"));
        assert_eq!(refusal.header("retry-after"), Some("1"));
    }
    let is_ready = |client: &mut Client| client.ask(&Request::new("GET", "/ready")).status == 200;
    until("the server is not ready", || !is_ready(&mut client));
    let metrics = client.expect(200, &Request::new("GET", "/metrics")).text();
    assert!(metrics.contains("astrarium_store_up{store=\"first\"} 0.0"), "{metrics}");
    cluster.start_again().unwrap();
    until("the server is ready again", || is_ready(&mut client));
    client.expect(200, &read("1"));
    client.expect(201, &create("3", "x"));
    let metrics = client.expect(200, &Request::new("GET", "/metrics")).text();
    for line in [
        "astrarium_store_up{store=\"first\"} 1.0",
        "astrarium_store_connections_max{store=\"first\",purpose=\"commit\"} 8.0",
        "astrarium_index_merges_total 0.0",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    // A heartbeat comes every second.
    until("the heart beats again", || {
        let metrics = client.expect(200, &Request::new("GET", "/metrics")).text();
        metrics.contains("astrarium_heartbeat_age_seconds 0.")
    });
}

#[test]
fn a_store_that_freezes_makes_the_server_unready() {
    let Ok(installation) = Installation::find() else { return };
    let cluster = Cluster::start(&installation, Settings::default()).unwrap();
    assert!(crate::program::run(&["store", "init", &cluster.url()]).success);
    let server = Program::on_store(&cluster.url(), &[]);
    let is_ready = || server.client().ask(&Request::new("GET", "/ready")).status == 200;
    until("the server is ready", is_ready);
    cluster.freeze().unwrap();
    until("the server is not ready", || !is_ready());
    cluster.thaw();
    until("the server is ready again", is_ready);
}
