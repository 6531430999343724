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

fn endpoint(settings: &Settings, request: &HeaderMap, authority: Option<&str>, scheme: Scheme) -> String {
    if let Some(endpoint) = &settings.public_endpoint {
        return format!("{}/", endpoint.trim_end_matches('/'));
    }
    let forwarded = |name| settings.trust_forwarded.then(|| first(header(request, name))).flatten();
    let scheme = forwarded(headers::X_FORWARDED_PROTO).unwrap_or(scheme.name());
    let host = forwarded(headers::X_FORWARDED_HOST).or(header(request, headers::HOST)).or(authority);
    let host = host.filter(|host| is_authority(host)).unwrap_or(&settings.fallback_authority);
    format!("{scheme}://{host}/")
}

/// The first of a list of forwarded values: the one nearest to the client.
fn first(value: Option<&str>) -> Option<&str> {
    value?.split(',').next().map(str::trim)
}

fn is_authority(host: &str) -> bool {
    host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]%".contains(&byte))
}
