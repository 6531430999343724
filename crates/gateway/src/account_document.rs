//! `GET /`: the account, with the addresses that SDKs send all further requests to.
//!
//! The addresses must be those the client can reach, so they are the configured public endpoint, or what the client
//! itself used: behind port mapping, containers and proxies nobody else knows.

use crate::answer::Answer;
use crate::request::header;
use crate::service::{Scheme, Settings};
use crate::wire::headers;
use http::{HeaderMap, StatusCode};
use serde_json::json;

/// The one region of an account on one server.
const REGION: &str = "South Central US";

/// The name in the account document. Not the host: the JavaScript SDK treats an account called `localhost` apart.
const ACCOUNT: &str = "astrarium";

pub(crate) fn answer(
    settings: &Settings,
    request: &HeaderMap,
    authority: Option<&str>,
    scheme: Scheme,
) -> Answer {
    let endpoint = endpoint(settings, request, authority, scheme);
    let location = json!([{"name": REGION, "databaseAccountEndpoint": endpoint}]);
    let body = json!({
        "_self": "",
        "id": ACCOUNT,
        "_rid": ACCOUNT,
        "media": "//media/",
        "addresses": "//addresses/",
        "_dbs": "//dbs/",
        "writableLocations": location,
        "readableLocations": location,
        "enableMultipleWriteLocations": false,
        "continuousBackupEnabled": false,
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

    #[test]
    fn both_kinds_of_forwarding_are_read() {
        let value = Some("for=10.0.0.1;proto=https;host=\"db.example:8443\", for=10.0.0.2;proto=http");
        assert_eq!(forwarded_part(value, "proto"), Some("https"));
        assert_eq!(forwarded_part(value, "Host"), Some("db.example:8443"));
        assert_eq!(forwarded_part(value, "by"), None);
        assert_eq!(first(Some("https, http")), Some("https"));
    }

    #[test]
    fn a_host_is_only_a_host() {
        assert!(is_authority("[::1]:8081") && is_authority("db.example"));
        assert!(!is_authority("a/b") && !is_authority("a\"b") && !is_authority("a b"));
    }
}
