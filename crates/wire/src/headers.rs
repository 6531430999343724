//! The names of every header of the protocol, in lower case as HTTP libraries keep them.
//!
//! One macro writes each constant and the list [`ALL`] from the same line, so that the list cannot fall behind.
//! Not here: what the values mean (the other modules of this crate) and which are required (`gateway`).

macro_rules! header_names {
    ($($(#[$documentation:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$documentation])* pub const $name: &str = $text;)*
        /// Every name of this module, for instance to answer a browser's preflight request.
        pub const ALL: &[&str] = &[$($text),*];
    };
}

header_names! {
    // Identity and signature.
    /// Signature or token; see [`crate::authorization`].
    AUTHORIZATION = "authorization";
    /// The date that was signed; preferred over [`DATE`].
    X_MS_DATE = "x-ms-date";
    /// The date that was signed by clients that cannot set [`X_MS_DATE`].
    DATE = "date";
    /// Protocol version, a date such as `2020-07-15`.
    VERSION = "x-ms-version";
    /// UUID of the request: echoed, or made by the server.
    ACTIVITY_ID = "x-ms-activity-id";
    /// UUID shared by the requests of one query; may be echoed.
    CORRELATED_ACTIVITY_ID = "x-ms-cosmos-correlated-activityid";
    /// Where the client wants to be reached; decides the endpoints of the account answer.
    HOST = "host";
    /// Original host, from a trusted proxy.
    X_FORWARDED_HOST = "x-forwarded-host";
    /// Original scheme, from a trusted proxy.
    X_FORWARDED_PROTO = "x-forwarded-proto";
    /// Standard form of the two above.
    FORWARDED = "forwarded";

    // Accepted and ignored.
    /// Number of the client instance.
    CLIENT_ID = "x-ms-client-id";
    /// Name and version of the client.
    USER_AGENT = "user-agent";
    /// Every header of the thin-client proxy begins with this.
    THIN_CLIENT_PROXY_PREFIX = "x-ms-thinclient-proxy-";
    /// Every header of the dedicated gateway begins with this.
    DEDICATED_GATEWAY_PREFIX = "x-ms-dedicatedgateway-";
    /// Bit set of what the client can do, such as following merges.
    SDK_SUPPORTED_CAPABILITIES = "x-ms-cosmos-sdk-supportedcapabilities";
    /// `High` or `Low`; anything else is a bad request.
    PRIORITY_LEVEL = "x-ms-cosmos-priority-level";
    /// Number of a throughput bucket.
    THROUGHPUT_BUCKET = "x-ms-cosmos-throughput-bucket";
    /// Number the application gives to its kind of work.
    WORKLOAD_ID = "x-ms-cosmos-workload-id";
    /// The client retries status 449 itself.
    NO_RETRY_449 = "x-ms-noretry-449";
    /// Distributed trace position.
    TRACE_PARENT = "traceparent";
    /// Legacy throughput switch.
    DISABLE_RU_PER_MINUTE_USAGE = "x-ms-documentdb-disable-ru-per-minute-usage";
    /// The client can write in several regions.
    ALLOW_TENTATIVE_WRITES = "x-ms-cosmos-allow-tentative-writes";
    /// The body holds properties that the client encrypted.
    IS_CLIENT_ENCRYPTED = "x-ms-cosmos-is-client-encrypted";
    /// Resource id of the database, when the client knows it.
    DATABASE_RID = "x-ms-cosmos-database-rid";
    /// A cached answer would do.
    ALLOW_CACHED_READS = "x-ms-cosmos-allow-cachedreads";

    // Consistency.
    /// Level wanted, at most as strong as the account's; see [`crate::consistency`].
    CONSISTENCY_LEVEL = "x-ms-consistency-level";
    /// Newer way to ask for a level; together with the older header a bad request.
    READ_CONSISTENCY_STRATEGY = "x-ms-cosmos-read-consistency-strategy";
    /// Both ways: what the client has seen; see [`crate::session`].
    SESSION_TOKEN = "x-ms-session-token";

    // Scope of a request.
    /// JSON array with one value for each partition-key path.
    PARTITION_KEY = "x-ms-documentdb-partitionkey";
    /// Both ways: the key range asked, or that served.
    PARTITION_KEY_RANGE_ID = "x-ms-documentdb-partitionkeyrangeid";
    /// Lower bound, inclusive, of an effective partition key range.
    START_EPK = "x-ms-start-epk";
    /// Upper bound, exclusive, of an effective partition key range.
    END_EPK = "x-ms-end-epk";
    /// How the two bounds are meant, `EffectivePartitionKeyRange`.
    READ_KEY_TYPE = "x-ms-read-key-type";
    /// The container's resource id as the client's cache has it.
    INTENDED_COLLECTION_RID = "x-ms-cosmos-intended-collection-rid";

    // Writes.
    /// Makes a `POST` an upsert.
    IS_UPSERT = "x-ms-documentdb-is-upsert";
    /// `Default`, `Include` or `Exclude`.
    INDEXING_DIRECTIVE = "x-ms-indexing-directive";
    /// Triggers to run before the write, a comma list of ids.
    PRE_TRIGGER_INCLUDE = "x-ms-documentdb-pre-trigger-include";
    /// Triggers not to run before the write.
    PRE_TRIGGER_EXCLUDE = "x-ms-documentdb-pre-trigger-exclude";
    /// Triggers to run after the write.
    POST_TRIGGER_INCLUDE = "x-ms-documentdb-post-trigger-include";
    /// Triggers not to run after the write.
    POST_TRIGGER_EXCLUDE = "x-ms-documentdb-post-trigger-exclude";
    /// Collect what the script logs.
    SCRIPT_ENABLE_LOGGING = "x-ms-documentdb-script-enable-logging";
    /// The body is a batch of operations.
    IS_BATCH_REQUEST = "x-ms-cosmos-is-batch-request";
    /// The batch is one transaction.
    BATCH_ATOMIC = "x-ms-cosmos-batch-atomic";
    /// The operations run in order.
    BATCH_ORDERED = "x-ms-cosmos-batch-ordered";
    /// A failed operation does not stop the next.
    BATCH_CONTINUE_ON_ERROR = "x-ms-cosmos-batch-continue-on-error";
    /// `return=minimal` leaves the body out; see [`crate::header_values::prefers_minimal`].
    PREFER = "prefer";
    /// `true` leaves the links `_self` and `_attachments` out of items.
    EXCLUDE_SYSTEM_PROPERTIES = "x-ms-exclude-system-properties";

    // Conditions.
    /// See [`crate::condition`].
    IF_MATCH = "if-match";
    /// See [`crate::condition`]; also the position in a change feed.
    IF_NONE_MATCH = "if-none-match";
    /// Start of a change feed by time.
    IF_MODIFIED_SINCE = "if-modified-since";
    /// Both ways with quotes: the version of a resource, or the position in a feed.
    ETAG = "etag";

    // Feeds and queries.
    /// `Incremental feed` or `Full-Fidelity Feed`, in any case.
    A_IM = "a-im";
    /// Version of the change feed's shape, `2021-09-15`.
    CHANGE_FEED_WIRE_FORMAT_VERSION = "x-ms-cosmos-changefeed-wire-format-version";
    /// Milliseconds that a change feed may wait for something new.
    MAX_POLLING_INTERVAL = "x-ms-cosmos-max-polling-interval";
    /// Page size; see [`crate::header_values::parse_max_item_count`].
    MAX_ITEM_COUNT = "x-ms-max-item-count";
    /// Both ways: where the next page starts; see [`crate::continuation`].
    CONTINUATION = "x-ms-continuation";
    /// Greatest length of a continuation, in KiB; at least 1, which ours keep to without being asked.
    RESPONSE_CONTINUATION_LIMIT_KB = "x-ms-documentdb-responsecontinuationtokenlimitinkb";
    /// Makes a `POST` a query.
    IS_QUERY = "x-ms-documentdb-isquery";
    /// Makes a `POST` a query; the only marker that the Go client sends.
    QUERY = "x-ms-documentdb-query";
    /// Asks for the plan instead of the rows; looked at before the query markers.
    IS_QUERY_PLAN_REQUEST = "x-ms-cosmos-is-query-plan-request";
    /// Comma list of what the client can merge.
    SUPPORTED_QUERY_FEATURES = "x-ms-cosmos-supported-query-features";
    /// Version of the plan wanted.
    QUERY_VERSION = "x-ms-cosmos-query-version";
    /// Allows a query over several partitions.
    QUERY_ENABLE_CROSS_PARTITION = "x-ms-documentdb-query-enablecrosspartition";
    /// Hint that the client asks several ranges at once.
    QUERY_PARALLELIZE_CROSS_PARTITION = "x-ms-documentdb-query-parallelizecrosspartitionquery";
    /// Whether the client expects a continuation; one is sent all the same.
    QUERY_IS_CONTINUATION_EXPECTED = "x-ms-documentdb-query-iscontinuationexpected";
    /// The client sends the original text to one range and expects final rows.
    QUERY_OPTIMISTIC_DIRECT_EXECUTE = "x-ms-cosmos-query-optimisticdirectexecute";
    /// Allows a scan; always allowed here.
    QUERY_ENABLE_SCAN = "x-ms-documentdb-query-enable-scan";
    /// Forces a scan.
    FORCE_QUERY_SCAN = "x-ms-documentdb-force-query-scan";
    /// Legacy tracing switch.
    QUERY_EMIT_TRACES = "x-ms-documentdb-query-emit-traces";
    /// Legacy precision switch.
    QUERY_ENABLE_LOW_PRECISION_ORDER_BY = "x-ms-documentdb-query-enable-low-precision-order-by";
    /// Asks for [`QUERY_METRICS`].
    POPULATE_QUERY_METRICS = "x-ms-documentdb-populatequerymetrics";
    /// Asks for [`INDEX_UTILIZATION`] in its first form.
    POPULATE_INDEX_METRICS = "x-ms-cosmos-populateindexmetrics";
    /// Asks for [`INDEX_UTILIZATION`] in its second form.
    POPULATE_INDEX_METRICS_V2 = "x-ms-cosmos-populateindexmetrics-v2";
    /// Asks for [`QUERY_ADVICE`].
    POPULATE_QUERY_ADVICE = "x-ms-cosmos-populatequeryadvice";
    /// Asks a container read for quota, usage and index progress.
    POPULATE_QUOTA_INFO = "x-ms-documentdb-populatequotainfo";
    /// Asks a container read for its statistics.
    POPULATE_PARTITION_STATISTICS = "x-ms-documentdb-populatepartitionstatistics";

    // Throughput and permissions.
    /// Fixed request units per second.
    OFFER_THROUGHPUT = "x-ms-offer-throughput";
    /// Autoscale settings as JSON.
    OFFER_AUTOPILOT_SETTINGS = "x-ms-cosmos-offer-autopilot-settings";
    /// Changes fixed throughput into autoscale.
    MIGRATE_OFFER_TO_AUTOPILOT = "x-ms-cosmos-migrate-offer-to-autopilot";
    /// Changes autoscale into fixed throughput.
    MIGRATE_OFFER_TO_MANUAL_THROUGHPUT = "x-ms-cosmos-migrate-offer-to-manual-throughput";
    /// Legacy performance level.
    OFFER_TYPE = "x-ms-offer-type";
    /// Lifetime of the resource token of a permission.
    EXPIRY_SECONDS = "x-ms-documentdb-expiry-seconds";

    // Bodies.
    /// Both ways: media type.
    CONTENT_TYPE = "content-type";
    /// Both ways: bytes of the body; required on errors.
    CONTENT_LENGTH = "content-length";
    /// Compression of the body.
    CONTENT_ENCODING = "content-encoding";
    /// Compression that the client understands.
    ACCEPT_ENCODING = "accept-encoding";
    /// `JsonText`, `CosmosBinary` or both; the answer is always text.
    SUPPORTED_SERIALIZATION_FORMATS = "x-ms-cosmos-supported-serialization-formats";

    // Responses: cost and outcome.
    /// Request units, a decimal with a point, on every response.
    REQUEST_CHARGE = "x-ms-request-charge";
    /// Number that refines the status, only when not zero.
    SUBSTATUS = "x-ms-substatus";
    /// Milliseconds to wait after 429 or 449.
    RETRY_AFTER_MS = "x-ms-retry-after-ms";
    /// Seconds to wait, the standard form.
    RETRY_AFTER = "retry-after";
    /// Milliseconds the server spent.
    REQUEST_DURATION_MS = "x-ms-request-duration-ms";
    /// Documents in the page.
    ITEM_COUNT = "x-ms-item-count";
    /// Made by clients for their users; never sent by a server.
    THROTTLE_RETRY_COUNT = "x-ms-throttle-retry-count";
    /// Made by clients for their users; never sent by a server.
    THROTTLE_RETRY_WAIT_TIME_MS = "x-ms-throttle-retry-wait-time-ms";

    // Responses: who answered.
    /// Number of the physical partition.
    PHYSICAL_PARTITION_ID = "x-ms-cosmos-physical-partition-id";
    /// UUID of the physical partition.
    INTERNAL_PARTITION_ID = "x-ms-cosmos-internal-partition-id";
    /// Owner's path by name, without slashes at the ends; percent-encoded where not ASCII.
    ALT_CONTENT_PATH = "x-ms-alt-content-path";
    /// Owner's resource id.
    CONTENT_PATH = "x-ms-content-path";
    /// Position of the serving partition.
    LSN = "lsn";
    /// Position of the document's last write.
    ITEM_LSN = "x-ms-item-lsn";
    /// Local position of the serving partition.
    LOCAL_LSN = "x-ms-cosmos-llsn";
    /// Local position of the document's last write.
    ITEM_LOCAL_LSN = "x-ms-cosmos-item-llsn";
    /// Position that a quorum has.
    QUORUM_ACKED_LSN = "x-ms-quorum-acked-lsn";
    /// Local position that a quorum has.
    QUORUM_ACKED_LOCAL_LSN = "x-ms-cosmos-quorum-acked-llsn";
    /// Position that all regions have.
    GLOBAL_COMMITTED_LSN = "x-ms-global-committed-lsn";
    /// Replicas a write waits for.
    CURRENT_WRITE_QUORUM = "x-ms-current-write-quorum";
    /// Replicas there are.
    CURRENT_REPLICA_SET_SIZE = "x-ms-current-replica-set-size";
    /// Role of the replica.
    XP_ROLE = "x-ms-xp-role";
    /// Regions that serve reads only.
    NUMBER_OF_READ_REGIONS = "x-ms-number-of-read-regions";
    /// Number of the request within its connection.
    TRANSPORT_REQUEST_ID = "x-ms-transport-request-id";
    /// When the replica last changed its role.
    LAST_STATE_CHANGE_UTC = "x-ms-last-state-change-utc";
    /// Version of the resource shapes.
    SCHEMA_VERSION = "x-ms-schemaversion";
    /// Version of the service.
    SERVICE_VERSION = "x-ms-serviceversion";
    /// Version of the gateway, `version=2.14.0`.
    GATEWAY_VERSION = "x-ms-gatewayversion";
    /// Name of the server.
    SERVER = "server";
    /// Full address of the request.
    CONTENT_LOCATION = "content-location";
    /// Always `no-store, no-cache`.
    CACHE_CONTROL = "cache-control";
    /// Always `no-cache`.
    PRAGMA = "pragma";
    /// Keeps browsers on TLS.
    STRICT_TRANSPORT_SECURITY = "strict-transport-security";
    /// Never sent: a client takes it for a challenge of another scheme.
    WWW_AUTHENTICATE = "www-authenticate";

    // Responses: details that were asked for, and containers.
    /// Limits as `name=value;` pairs.
    RESOURCE_QUOTA = "x-ms-resource-quota";
    /// Use as `name=value;` pairs.
    RESOURCE_USAGE = "x-ms-resource-usage";
    /// Counters as `name=value` joined by `;`, none at the end.
    QUERY_METRICS = "x-ms-documentdb-query-metrics";
    /// JSON with two booleans that clients need to resume an ordered query.
    QUERY_EXECUTION_INFO = "x-ms-cosmos-query-execution-info";
    /// Indexes used and missed.
    INDEX_UTILIZATION = "x-ms-cosmos-index-utilization";
    /// Remarks about the text of a query.
    QUERY_ADVICE = "x-ms-cosmos-query-advice";
    /// What a script logged, percent-encoded.
    SCRIPT_LOG_RESULTS = "x-ms-documentdb-script-log-results";
    /// Percent of the documents that follow the indexing policy.
    INDEX_TRANSFORMATION_PROGRESS = "x-ms-documentdb-collection-index-transformation-progress";
    /// Always `-1`.
    LAZY_INDEXING_PROGRESS = "x-ms-documentdb-collection-lazy-indexing-progress";
    /// Whether a throughput change still runs.
    OFFER_REPLACE_PENDING = "x-ms-offer-replace-pending";
    /// Smallest throughput allowed.
    MIN_THROUGHPUT = "x-ms-cosmos-min-throughput";
    /// Whether a delete of a whole logical partition still runs.
    IS_PARTITION_KEY_DELETE_PENDING = "x-ms-cosmos-is-partition-key-delete-pending";

    // Responses: the account.
    /// Attachment space there is, MB.
    MAX_MEDIA_STORAGE_USAGE_MB = "x-ms-max-media-storage-usage-mb";
    /// Attachment space used, MB.
    MEDIA_STORAGE_USAGE_MB = "x-ms-media-storage-usage-mb";
    /// Space used by the account, MB.
    DATABASE_ACCOUNT_CONSUMED_MB = "x-ms-databaseaccount-consumed-mb";
    /// Space reserved for the account, MB.
    DATABASE_ACCOUNT_RESERVED_MB = "x-ms-databaseaccount-reserved-mb";
    /// Space provisioned for the account, MB.
    DATABASE_ACCOUNT_PROVISIONED_MB = "x-ms-databaseaccount-provisioned-mb";
}

#[cfg(test)]
mod tests {
    use super::ALL;

    #[test]
    fn names_are_lower_case_tokens_without_repetition() {
        let mut sorted = ALL.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), ALL.len());
        for name in ALL {
            let token = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            assert!(name.bytes().all(token), "{name}");
        }
    }
}
