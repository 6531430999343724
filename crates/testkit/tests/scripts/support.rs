//! A server with one container, and clients that run scripts in it.

use astrarium_testkit::http::Response;
use astrarium_testkit::json::{Json, escape};
use astrarium_testkit::{Client, EngineKind, Options, Request, Server};
use std::thread;

pub(crate) const DOCS: &str = "/dbs/d/colls/c/docs";
const CONTAINER: &str = "/dbs/d/colls/c";

/// A server whose database `d` has the container `c`, partitioned by `/pk`.
pub(crate) fn furnished(engine: EngineKind) -> Server {
    let server = Server::start(Options::on(engine));
    let mut client = server.client();
    client.expect(201, &Request::new("POST", "/dbs").body("{\"id\":\"d\"}"));
    let container = "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}";
    client.expect(201, &Request::new("POST", "/dbs/d/colls").body(container));
    server
}

/// A request that makes a stored procedure or a user-defined function.
pub(crate) fn new_script(kind: &str, id: &str, source: &str) -> Request {
    let body = format!("{{\"id\":\"{id}\",\"body\":\"{}\"}}", escape(source));
    Request::new("POST", &format!("{CONTAINER}/{kind}")).body(body)
}

/// A request that makes a trigger.
pub(crate) fn new_trigger(id: &str, kind: &str, operation: &str, source: &str) -> Request {
    let body = format!(
        "{{\"id\":\"{id}\",\"body\":\"{}\",\"triggerType\":\"{kind}\",\"triggerOperation\":\"{operation}\"}}",
        escape(source)
    );
    Request::new("POST", &format!("{CONTAINER}/triggers")).body(body)
}

/// A request that runs a stored procedure in the partition `key`.
pub(crate) fn execution(id: &str, key: &str, parameters: &str) -> Request {
    let target = format!("{CONTAINER}/sprocs/{id}");
    Request::new("POST", &target).partition_key(&format!("[\"{key}\"]")).body(parameters.to_owned())
}

/// A request that makes a document in the partition `key`.
pub(crate) fn creation(key: &str, body: &str) -> Request {
    Request::new("POST", DOCS).partition_key(&format!("[\"{key}\"]")).body(body.to_owned())
}

/// A request about a document.
pub(crate) fn about(verb: &str, id: &str, key: &str) -> Request {
    Request::new(verb, &format!("{DOCS}/{id}")).partition_key(&format!("[\"{key}\"]"))
}

/// The rows of a query over one partition.
pub(crate) fn rows(client: &mut Client, key: &str, query: &str) -> Vec<Json> {
    let body = json(&client.expect(200, &question(key, query)));
    match body.get("Documents") {
        Some(Json::Array { items, .. }) => items.clone(),
        _ => panic!("no rows in {body}"),
    }
}

/// A query over one partition.
pub(crate) fn question(key: &str, query: &str) -> Request {
    let request = creation(key, &format!("{{\"query\":\"{}\"}}", escape(query)));
    let request = request.header("x-ms-documentdb-isquery", "True");
    request.header("content-type", "application/query+json").header("x-ms-max-item-count", "1000")
}

pub(crate) fn json(response: &Response) -> Json {
    Json::parse(&response.text()).expect("a body of JSON")
}

/// A whole number of a document.
pub(crate) fn number(json: &Json, name: &str) -> i64 {
    let member = json.get(name).unwrap_or_else(|| panic!("no {name} in {json}"));
    member.to_string().parse().unwrap_or_else(|_| panic!("{name} is no number in {json}"))
}

/// The LSN that an answer names.
pub(crate) fn lsn(response: &Response) -> u64 {
    let token = response.header("x-ms-session-token").expect("a session token");
    token.rsplit('#').next().and_then(|lsn| lsn.parse().ok()).expect("an LSN")
}

/// Runs the same work in several threads and gives what each came to.
pub(crate) fn together<T: Send>(
    server: &Server,
    count: usize,
    work: impl Fn(usize, &mut Client) -> T + Sync,
) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let started: Vec<_> =
            (0..count).map(|number| scope.spawn(move || work(number, &mut server.client()))).collect();
        started
            .into_iter()
            .map(|thread| thread.join().expect("a client that panics fails the test"))
            .collect()
    })
}
