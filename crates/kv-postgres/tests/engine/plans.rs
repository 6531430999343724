//! PostgreSQL answers our reads from primary keys, also on tables without fresh statistics.

use crate::ground::{cluster, fresh_store, open};
use astrarium_kv::contract::{block_on, shard_key};
use astrarium_kv::{Engine, ShardId, Space, Stamp, WriteBatch};

#[test]
fn scans_and_lookups_use_the_primary_key() {
    let Some(cluster) = cluster() else { return };
    let url = fresh_store(cluster);
    let schema = url.split("schema=").nth(1).unwrap();
    let engine = open(&url);
    let mut batch = WriteBatch::new(ShardId(1), 0);
    for number in 0..2000u32 {
        let key = shard_key(ShardId(1), &number.to_be_bytes());
        batch.put(Space::Body, key, vec![1; 50].into(), Stamp::NONE);
    }
    block_on(engine.commit(batch)).unwrap();
    let settings = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; \
        SET enable_hashjoin = off; SET enable_mergejoin = off;";
    let lateral = "SELECT e.i, kv.v FROM unnest(ARRAY['\\x00'::bytea]) WITH ORDINALITY AS e(k, i) \
        CROSS JOIN LATERAL (SELECT v FROM kv WHERE kv.shard = 1 AND kv.space = 1 AND kv.k = e.k LIMIT 1) AS kv";
    let delete = "DELETE FROM kv WHERE ctid = ANY(ARRAY(SELECT found.ctid FROM unnest(ARRAY['\\x00'::bytea]) AS e(k) \
        CROSS JOIN LATERAL (SELECT ctid FROM kv WHERE kv.shard = 1 AND kv.space = 1 AND kv.k = e.k LIMIT 1) AS found))";
    let first = "SELECT i, v FROM (SELECT e.i, kv.v, coalesce(sum(octet_length(kv.v)) OVER (ORDER BY e.i ROWS BETWEEN UNBOUNDED \
        PRECEDING AND 1 PRECEDING), 0) AS before FROM unnest(ARRAY['\\x00'::bytea]) WITH ORDINALITY AS e(k, i) CROSS JOIN LATERAL \
        (SELECT v FROM kv WHERE kv.shard = 1 AND kv.space = 1 AND kv.k = e.k LIMIT 1) AS kv) AS counted WHERE before < 9";
    for (statement, is_wanted) in [
        (
            "SELECT k, v FROM kv WHERE shard = 1 AND space = 1 AND k >= '\\x00' AND k < '\\xff' ORDER BY k LIMIT 100",
            "Index Cond: ((shard = 1) AND (space = 1) AND (k >=",
        ),
        (
            "SELECT v FROM kv WHERE shard = 1 AND space = 1 AND k = '\\x00'",
            "Index Cond: ((shard = 1) AND (space = 1) AND (k =",
        ),
        (lateral, "Index Cond: ((shard = 1) AND (space = 1) AND (k = e.k))"),
        (delete, "Index Cond: ((shard = 1) AND (space = 1) AND (k = e.k))"),
        (first, "Index Cond: ((shard = 1) AND (space = 1) AND (k = e.k))"),
        (
            "SELECT version FROM shard WHERE id = ANY(ARRAY[1::bigint]) ORDER BY id FOR UPDATE",
            "Index Scan using shard_pkey",
        ),
    ] {
        let plan =
            cluster.psql(&format!("SET search_path TO {schema}; {settings} EXPLAIN {statement}")).unwrap();
        // The keys that are asked for, some hundred at most, may be put in order.
        let is_sorted = plan.contains("Sort") && statement != first;
        let is_right = plan.contains(is_wanted) && !is_sorted && !plan.contains("Seq Scan");
        assert!(is_right, "{statement}: {plan}");
    }
}
