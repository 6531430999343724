//! Numbers that refine a status. Clients decide by them whether to retry, so each is only for what it says.
//!
//! A few exist only to be recognised: a server with one region never sends them, since clients would retry for minutes.
//! Not here: the decision which failure gets which number (`gateway`).

/// 400: the partition key of the header is not that of the document; clients reload the container once.
pub const PARTITION_KEY_MISMATCH: u32 = 1001;
/// 400: the query must be merged by the client; the body holds the plan.
pub const CROSS_PARTITION_QUERY_NOT_SERVABLE: u32 = 1004;
/// 400: the container is not the one that the client's cache knows.
pub const COLLECTION_RID_MISMATCH: u32 = 1024;
/// 400: another change of throughput is running.
pub const OFFER_REPLACE_IN_PROGRESS: u32 = 3205;
/// 400: a script does not compile.
pub const SCRIPT_COMPILE_ERROR: u32 = 0xFFFF;

/// 401: there is no token of the identity platform.
pub const AAD_MISSING_HEADER: u32 = 5000;
/// 401: the token's header has a wrong form.
pub const AAD_BAD_FORMAT: u32 = 5001;
/// 401: the token cannot be read.
pub const AAD_BAD_TOKEN: u32 = 5003;
/// 401: the token's signature is wrong.
pub const AAD_BAD_SIGNATURE: u32 = 5004;
/// 401: the token is not valid yet.
pub const AAD_NOT_YET_VALID: u32 = 5005;
/// 401: the token has expired.
pub const AAD_EXPIRED: u32 = 5006;
/// 401: the token has a wrong issuer.
pub const AAD_WRONG_ISSUER: u32 = 5007;
/// 401: the token is for somebody else.
pub const AAD_WRONG_AUDIENCE: u32 = 5008;
/// 401: shared access signatures are not served.
pub const SAS_NOT_SUPPORTED: u32 = 5012;
/// 401: a newer token is wanted; clients fetch one.
pub const AAD_TOKEN_REFRESH_WANTED: u32 = 5013;
/// 401: keys are switched off.
pub const LOCAL_AUTH_DISABLED: u32 = 5202;

/// 403, never sent: the region takes no writes; clients retry 120 times.
pub const WRITE_FORBIDDEN: u32 = 3;
/// 403: a limit of provisioning or storage.
pub const PROVISIONING_LIMIT_REACHED: u32 = 1005;
/// 403, never sent: the account is not in this region; clients retry 120 times.
pub const ACCOUNT_NOT_FOUND_IN_REGION: u32 = 1008;
/// 403: the logical partition is full.
pub const PARTITION_KEY_QUOTA_EXCEEDED: u32 = 1014;
/// 403: the account's total throughput is used up.
pub const ACCOUNT_THROUGHPUT_CAP_EXCEEDED: u32 = 1028;
/// 403: the role does not allow the operation.
pub const RBAC_DENIED: u32 = 5300;

/// 404: the session token is ahead of the server.
pub const READ_SESSION_NOT_AVAILABLE: u32 = 1002;
/// 404: the container or database of the resource is missing.
pub const OWNER_NOT_FOUND: u32 = 1003;
/// 404: the container is still being made.
pub const COLLECTION_CREATE_IN_PROGRESS: u32 = 1013;

/// 409: a control operation is running.
pub const CONTROL_PLANE_CONFLICT: u32 = 1006;
/// 409: the name of the database exists.
pub const DATABASE_NAME_EXISTS: u32 = 3206;
/// 409: another document of the logical partition has the values of a unique key.
pub const UNIQUE_KEY_VIOLATION: u32 = 3301;
/// 409: two keys of the first hash version agree in their first 101 bytes.
pub const PARTITION_KEY_HASH_COLLISION: u32 = 3302;

/// 410: the name belongs to a new container.
pub const NAME_CACHE_STALE: u32 = 1000;
/// 410: the key range no longer exists; clients reload the ranges.
pub const PARTITION_KEY_RANGE_GONE: u32 = 1002;
/// 410: a split or merge is being completed.
pub const COMPLETING_SPLIT: u32 = 1007;
/// 410: a partition is being moved.
pub const COMPLETING_PARTITION_MIGRATION: u32 = 1008;
/// 410: a lease is gone.
pub const LEASE_NOT_FOUND: u32 = 1022;

/// 413: the response would be too large.
pub const RESPONSE_SIZE_EXCEEDED: u32 = 3402;

/// 429: too many stored procedures at once.
pub const SCRIPT_CONCURRENCY_EXCEEDED: u32 = 3084;
/// 429: throttled because of a split.
pub const THROTTLED_BY_SPLIT: u32 = 3088;
/// 429: the machine is short of something; clients take it for 503.
pub const SYSTEM_RESOURCE_UNAVAILABLE: u32 = 3092;
/// 429: the request units of this second are used up.
pub const REQUEST_RATE_TOO_LARGE: u32 = 3200;
/// 429: the gateway itself throttles.
pub const GATEWAY_THROTTLED: u32 = 3201;
/// 429: too many changes of throughput buckets.
pub const THROUGHPUT_BUCKET_UPDATES_EXCEEDED: u32 = 3213;
