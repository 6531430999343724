//! `GET /`: the account, with the addresses that SDKs send all further requests to.
//!
//! The addresses must be those the client can reach, so they are the configured public endpoint, or what the client
//! itself used: behind port mapping, containers and proxies nobody else knows.

use crate::answer::Answer;
use crate::cluster::ServerEndpoint;
use crate::request::header;
use crate::service::{Scheme, Settings};
use crate::wire::headers;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

/// The one region of an account on one server that has no name.
const REGION: &str = "South Central US";

/// The name in the account document. Not the host: the JavaScript SDK treats an account called `localhost` apart.
pub(crate) const ACCOUNT: &str = "astrarium";

pub(crate) fn answer(
    settings: &Settings,
    request: &HeaderMap,
    authority: Option<&str>,
    scheme: Scheme,
) -> Answer {
    let locations = locations(settings, endpoint(settings, request, authority, scheme));
    let location =
        |server: &ServerEndpoint| json!({"name": server.name, "databaseAccountEndpoint": server.endpoint});
    let location: Value = locations.iter().map(location).collect();
    let body = json!({
        "_self": "",
        "id": ACCOUNT,
        "_rid": ACCOUNT,
        "media": "//media/",
        "addresses": "//addresses/",
        "_dbs": "//dbs/",
        "writableLocations": location,
        "readableLocations": location,
        "enableMultipleWriteLocations": locations.len() > 1,
        "continuousBackupEnabled": settings.continuous_backup,
        "enableNRegionSynchronousCommit": false,
        "enablePerPartitionFailoverBehavior": false,
        "userReplicationPolicy": {"asyncReplication": false, "minReplicaSetSize": 1, "maxReplicasetSize": 4},
        "userConsistencyPolicy": {"defaultConsistencyLevel": settings.consistency.name()},
        "systemReplicationPolicy": {"minReplicaSetSize": 1, "maxReplicasetSize": 4},
        "readPolicy": {"primaryReadCoefficient": 1, "secondaryReadCoefficient": 1},
        "queryEngineConfiguration": query_engine_configuration(),
    });
    let mut answer = Answer::json(StatusCode::OK, body.to_string().into_bytes());
    for name in [
        headers::MAX_MEDIA_STORAGE_USAGE_MB,
        headers::MEDIA_STORAGE_USAGE_MB,
        headers::DATABASE_ACCOUNT_CONSUMED_MB,
        headers::DATABASE_ACCOUNT_RESERVED_MB,
        headers::DATABASE_ACCOUNT_PROVISIONED_MB,
    ] {
        answer.set_static(name, "0");
    }
    answer
}

/// The servers as regions of the account. A server alone is one region, under the endpoint that the client used. Of several, the one
/// that was asked comes first, so that clients without wishes stay where they were sent. All of them take writes: that is what several
/// writable regions mean to SDKs, which then go on at the next one when one is gone.
fn locations(settings: &Settings, here: String) -> Vec<ServerEndpoint> {
    let servers = settings.cluster.as_ref().map(|cluster| cluster.servers()).unwrap_or_default();
    let own_name = servers.iter().find(|server| server.is_here).map(|server| server.name.clone());
    let is_tls = settings.public_endpoint.is_none() && here.starts_with("https://");
    let mut locations =
        vec![ServerEndpoint { name: own_name.unwrap_or_default(), endpoint: here, is_here: true }];
    for server in servers.into_iter().filter(|server| !server.is_here) {
        let mut endpoint = format!("{}/", server.endpoint.trim_end_matches('/'));
        // Plain HTTP and TLS share their port on every server.
        if let Some(rest) = endpoint.strip_prefix("http://").filter(|_| is_tls) {
            endpoint = format!("https://{rest}");
        }
        // Behind a balancer all of them have one endpoint.
        if locations.iter().all(|known| known.endpoint != endpoint) {
            let name = free_name(&locations, server.name);
            locations.push(ServerEndpoint { name, endpoint, is_here: false });
        }
    }
    if let [alone] = &mut locations[..] {
        alone.name = settings.server_name.clone().unwrap_or_else(|| REGION.to_owned());
    }
    locations
}

/// A name that no other location has: SDKs know them by their names.
fn free_name(locations: &[ServerEndpoint], name: String) -> String {
    let is_taken = |name: &str| locations.iter().any(|known| known.name.eq_ignore_ascii_case(name));
    if !is_taken(&name) {
        return name;
    }
    let numbers = 2..=locations.len() + 1;
    let numbered = numbers.map(|number| format!("{name} {number}")).find(|name| !is_taken(name));
    numbered.unwrap_or(name)
}

/// The limits of the query engine: a text that holds JSON, as some SDKs parse it.
fn query_engine_configuration() -> String {
    json!({
        "maxSqlQueryInputLength": 524_288,
        "maxJoinsPerSqlQuery": 10,
        "maxLogicalAndPerSqlQuery": 2_147_483_647,
        "maxLogicalOrPerSqlQuery": 2_147_483_647,
        "maxUdfRefPerSqlQuery": 10,
        "maxInExpressionItemsCount": 2_147_483_647,
        "queryMaxInMemorySortDocumentCount": -1000,
        "maxQueryRequestTimeoutFraction": 0.9,
        "sqlAllowNonFiniteNumbers": false,
        "sqlAllowAggregateFunctions": true,
        "sqlAllowSubQuery": true,
        "sqlAllowScalarSubQuery": true,
        "allowNewKeywords": true,
        "sqlAllowLike": true,
        "sqlAllowGroupByClause": true,
        "maxSpatialQueryCells": 2_147_483_647,
        "spatialMaxGeometryPointCount": 4096,
        "sqlDisableOptimizationFlags": 0,
        "sqlAllowTop": true,
        "enableSpatialIndexing": true,
    })
    .to_string()
}

/// The address of the server as a client knows it, with a slash at the end.
pub(crate) fn endpoint(
    settings: &Settings,
    request: &HeaderMap,
    authority: Option<&str>,
    scheme: Scheme,
) -> String {
    if let Some(endpoint) = &settings.public_endpoint {
        return format!("{}/", endpoint.trim_end_matches('/'));
    }
    // Asked for each request: what is not trusted is not looked up.
    let trusted = |name| if settings.trust_forwarded { header(request, name) } else { None };
    let standard = |part| forwarded_part(trusted(headers::FORWARDED), part);
    let forwarded = |name, part| first(trusted(name)).or_else(|| standard(part));
    let scheme = forwarded(headers::X_FORWARDED_PROTO, "proto").unwrap_or(scheme.name());
    let host = forwarded(headers::X_FORWARDED_HOST, "host").or(header(request, headers::HOST)).or(authority);
    let host = host.filter(|host| is_authority(host)).unwrap_or(&settings.fallback_authority);
    // The path of the request follows, in most cases.
    let mut endpoint = String::with_capacity(scheme.len() + host.len() + 96);
    for part in [scheme, "://", host, "/"] {
        endpoint.push_str(part);
    }
    endpoint
}

/// Every name that proxies say clients used, if they are ours.
pub(crate) fn forwarded_hosts<'a>(
    settings: &Settings,
    request: &'a HeaderMap,
) -> impl Iterator<Item = &'a str> + use<'a> {
    // What is no text is no name either, and passes nowhere.
    let elements = |name: &str| {
        let lines = request.get_all(name).iter().map(|line| line.to_str().unwrap_or("\u{FFFD}"));
        lines.flat_map(|line| line.split(',')).map(str::trim).filter(|element| !element.is_empty())
    };
    let standard = elements(headers::FORWARDED).filter_map(|element| forwarded_part(Some(element), "host"));
    let all = elements(headers::X_FORWARDED_HOST).chain(standard);
    settings.trust_forwarded.then_some(all).into_iter().flatten()
}

/// The first of a list of forwarded values: the one nearest to the client.
fn first(value: Option<&str>) -> Option<&str> {
    value?.split(',').next().map(str::trim)
}

/// A part of the first element of a `Forwarded` header, such as `proto=https;host="example.org:8081"`.
fn forwarded_part<'a>(value: Option<&'a str>, part: &str) -> Option<&'a str> {
    let pairs = first(value)?.split(';').filter_map(|pair| pair.split_once('='));
    let found =
        pairs.map(|(name, value)| (name.trim(), value)).find(|(name, _)| name.eq_ignore_ascii_case(part));
    found.map(|(_, value)| value.trim().trim_matches('"'))
}

fn is_authority(host: &str) -> bool {
    host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]%".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cluster, Measure};
    use crate::wire::authorization::{AccountKeys, DateWindow, MasterKey};
    use crate::wire::consistency::ConsistencyLevel;
    use crate::wire::key_text::EMULATOR_KEY;
    use std::sync::Arc;
    use std::time::Duration;

    /// Servers by name and endpoint, of which the first is this one.
    #[derive(Debug)]
    struct Fixed(Vec<(&'static str, &'static str)>);

    impl Cluster for Fixed {
        fn servers(&self) -> Vec<ServerEndpoint> {
            let server = |(index, (name, endpoint)): (usize, &(&str, &str))| ServerEndpoint {
                name: (*name).to_owned(),
                endpoint: (*endpoint).to_owned(),
                is_here: index == 0,
            };
            // The others give this one last.
            self.0.iter().enumerate().map(server).rev().collect()
        }

        fn trouble(&self) -> Option<String> {
            None
        }

        fn remarks(&self) -> Vec<String> {
            Vec::new()
        }

        fn measures(&self) -> Vec<Measure> {
            Vec::new()
        }
    }

    fn settings(servers: &[(&'static str, &'static str)]) -> Settings {
        let primary = MasterKey::from_base64(EMULATOR_KEY).expect("a key");
        Settings {
            keys: AccountKeys { primary, secondary: None, primary_readonly: None, secondary_readonly: None },
            date_window: DateWindow::default(),
            public_endpoint: None,
            allowed_hosts: Vec::new(),
            fallback_authority: "127.0.0.1:8081".to_owned(),
            trust_forwarded: false,
            cors_origins: Vec::new(),
            consistency: ConsistencyLevel::Session,
            whole_queries: false,
            continuous_backup: false,
            previous_images: false,
            body_bytes_max: 1,
            body_timeout: Duration::ZERO,
            log_requests: false,
            slow_request: None,
            test_clock: false,
            authority_pem: None,
            server_name: None,
            explorer: None,
            cluster: (!servers.is_empty()).then(|| Arc::new(Fixed(servers.to_vec())) as Arc<dyn Cluster>),
        }
    }

    #[track_caller]
    fn check(settings: &Settings, here: &str, expected: &[(&str, &str)]) {
        let found = locations(settings, here.to_owned());
        let found: Vec<(&str, &str)> =
            found.iter().map(|one| (one.name.as_str(), one.endpoint.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn servers_are_regions() {
        let here = "http://localhost:8081/";
        check(&settings(&[]), here, &[(REGION, here)]);
        check(&settings(&[("a", "http://10.0.0.1:8081/")]), here, &[(REGION, here)]);
        let named = Settings { server_name: Some("West".to_owned()), ..settings(&[]) };
        check(&named, here, &[("West", here)]);
        let three = [("a", "http://10.0.0.1:1"), ("b", "http://10.0.0.2:1"), ("c", "http://10.0.0.3:1/")];
        let others = [("c", "http://10.0.0.3:1/"), ("b", "http://10.0.0.2:1/")];
        check(&settings(&three), here, &[("a", here), others[0], others[1]]);
        // Whoever comes by TLS is sent on by TLS.
        let here = "https://localhost:8081/";
        check(
            &settings(&three),
            here,
            &[("a", here), ("c", "https://10.0.0.3:1/"), ("b", "https://10.0.0.2:1/")],
        );
    }

    #[test]
    fn locations_differ() {
        let here = "http://localhost:8081/";
        let namesakes =
            [("a", "http://10.0.0.1:1/"), ("a", "http://10.0.0.2:1/"), ("A", "http://10.0.0.3:1/")];
        let expected = [("a", here), ("A 2", "http://10.0.0.3:1/"), ("a 3", "http://10.0.0.2:1/")];
        check(&settings(&namesakes), here, &expected);
        // Behind a balancer there is one of them.
        let balancer = "https://db.example/";
        let behind = Settings {
            public_endpoint: Some(balancer.to_owned()),
            ..settings(&[("a", balancer), ("b", balancer), ("c", balancer)])
        };
        check(&behind, balancer, &[(REGION, balancer)]);
    }

    #[test]
    fn both_kinds_of_forwarding_are_read() {
        let value = Some("for=10.0.0.1;proto=https;host=\"db.example:8443\", for=10.0.0.2;proto=http");
        assert_eq!(forwarded_part(value, "proto"), Some("https"));
        assert_eq!(forwarded_part(value, "Host"), Some("db.example:8443"));
        assert_eq!(forwarded_part(value, "by"), None);
        assert_eq!(first(Some("https, http")), Some("https"));
    }

    #[test]
    fn every_forwarded_name_is_told() {
        let mut request = HeaderMap::new();
        for (name, value) in [
            ("x-forwarded-host", "a.example, b.example:8443"),
            ("x-forwarded-host", "c.example"),
            ("forwarded", "for=1;host=d.example, proto=http;Host=\"e.example:1\""),
        ] {
            request.append(name, value.parse().unwrap());
        }
        let told = |trust_forwarded| {
            let settings = Settings { trust_forwarded, ..settings(&[]) };
            forwarded_hosts(&settings, &request).collect::<Vec<_>>()
        };
        assert_eq!(told(true), ["a.example", "b.example:8443", "c.example", "d.example", "e.example:1"]);
        assert!(told(false).is_empty());
    }

    #[test]
    fn a_host_is_only_a_host() {
        assert!(is_authority("[::1]:8081") && is_authority("db.example"));
        assert!(!is_authority("a/b") && !is_authority("a\"b") && !is_authority("a b"));
    }
}
