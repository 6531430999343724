//! What `--help` says after the settings of the commands that move data.

pub(super) const IMPORT_HELP: &str = "\
A file with a bad row changes nothing, unless --failed takes such rows. Ends with 1 if rows failed.

Examples:
  astrarium import shop/orders orders.jsonl.gz
  astrarium import shop/orders orders.csv --create-container /customer --id '{customer}-{number}'
  zcat orders.gz | astrarium import shop/orders - --mode upsert --failed failed.jsonl
  astrarium import shop/orders big.jsonl --resume big.resume --rate 5000";

pub(super) const EXPORT_HELP: &str = "\
Examples:
  astrarium export shop/orders > orders.jsonl
  astrarium export shop/orders --output orders.json.zst
  astrarium export shop/orders --output orders.parquet
  astrarium export shop/orders --query 'SELECT c.id, c.total FROM c' --output totals.csv";

pub(super) const DUMP_HELP: &str = "\
Each container is consistent as of one moment, also while it is written to.

Examples:
  astrarium dump account.tar.zst
  astrarium dump shop.tar.gz --only shop --endpoint https://example.documents.azure.com --key KEY
  astrarium load account.tar.zst --endpoint http://127.0.0.1:8082";

pub(super) const COPY_HELP: &str = "\
Examples:
  astrarium copy --from https://example.documents.azure.com --from-key KEY --to http://127.0.0.1:8081 --only shop
  astrarium copy --from http://127.0.0.1:8081 --to http://127.0.0.1:8082 --follow";
