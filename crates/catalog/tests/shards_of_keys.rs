//! Every key that `keys` makes belongs to the shard that it is of, as storage tells shards by the bytes of keys.

#![allow(clippy::unwrap_used)]

use astrarium_catalog::CATALOG_SHARD;
use astrarium_keys::record::RecordKind;
use astrarium_keys::{Rid, document, feed, index_entry, index_state, lease, number, record, tags, unique};
use astrarium_kv::contract::{META_OF_SHARD, META_SHARD, check_key, check_range, shard_of};
use astrarium_kv::{KeyRange, ShardId, Space};
use astrarium_partition::{EffectiveKey, PartitionKey};

#[test]
fn keys_of_documents_belong_to_their_shard() {
    for shard in [1, 0x00FF, 0x0102_0304_0506_0708] {
        let of = |space, key: &[u8]| check_key(ShardId(shard), space, key).unwrap();
        let prefix = |space, key: &[u8]| {
            of(space, key);
            check_range(ShardId(shard), space, &KeyRange::prefix(key)).unwrap();
        };
        let (body, log, meta) = (Some(Space::Body), Some(Space::Log), Some(Space::Meta));
        of(
            body,
            &document::document_key(
                shard,
                &EffectiveKey::MIN,
                &PartitionKey::parse_header("[1]").unwrap(),
                "id",
            ),
        );
        prefix(body, &document::shard_prefix(shard));
        of(log, &number::number_key(shard, 5));
        prefix(log, &number::number_prefix(shard));
        of(log, &feed::feed_key(shard, 5, 0));
        prefix(log, &feed::feed_prefix(shard));
        of(log, &unique::unique_key(shard, 0, b"partition", &[]));
        prefix(log, &unique::unique_prefix(shard));
        of(meta, &index_state::watermark_key(shard));
        prefix(None, &index_entry::Family::of(1, b"a path").prefix(shard));
        prefix(None, &index_entry::generation_prefix(shard, 1));
    }
}

#[test]
fn definitions_belong_to_the_catalog() {
    assert_eq!((META_SHARD, META_OF_SHARD), (CATALOG_SHARD, tags::meta::WATERMARK));
    let keys = [
        record::record_key(RecordKind::Database, Rid::ROOT, 7).to_vec(),
        record::name_key(RecordKind::Database, Rid::ROOT, "name").to_vec(),
        record::ranges_key(Rid::database(7)).to_vec(),
        record::sweep_key(7).to_vec(),
        index_state::generations_key(Rid::database(7)).to_vec(),
        index_state::sweep_key(7, 1).to_vec(),
        lease::lease_key("build").to_vec(),
    ];
    for key in keys {
        assert_eq!(shard_of(Some(Space::Meta), &key), Some(CATALOG_SHARD), "{key:?}");
        check_range(CATALOG_SHARD, Some(Space::Meta), &KeyRange::prefix(&key[..1])).unwrap();
    }
}
