//! Parquet: files in, files out, and files that are refused.

use crate::world::{World, run};
use astrarium_tools::{ExportSettings, FileFormat};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use serde_json::Value;
use std::sync::Arc;

/// A file with a schema, whose columns are written one after another.
fn file(schema: &str, write: impl FnOnce(&mut SerializedRowGroupWriter<'_, Vec<u8>>)) -> Vec<u8> {
    let schema = parquet::schema::parser::parse_message_type(schema).unwrap();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    write(&mut group);
    group.close().unwrap();
    writer.into_inner().unwrap()
}

/// The next column, with a level for each row where it is optional.
fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[T::T],
    levels: Option<&[i16]>,
) {
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<T>().write_batch(values, levels, None).unwrap();
    column.close().unwrap();
}

fn texts(texts: &[&str]) -> Vec<ByteArray> {
    texts.iter().map(|text| ByteArray::from(*text)).collect()
}

/// A container as values, by id.
fn values(world: &World) -> Vec<Value> {
    world.documents().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn exported(world: &World, name: &str, change: impl FnOnce(&mut ExportSettings)) -> Result<String, String> {
    let mut settings = ExportSettings::new(world.account(), "d/c".parse().unwrap());
    settings.output = Some(world.path(name));
    change(&mut settings);
    run(astrarium_tools::export(&settings)).map(|report| report.text).map_err(|error| error.to_string())
}

#[test]
fn there_and_back() {
    let world = World::furnished();
    let mut lines: Vec<String> = (0..3_000)
        .map(|number| {
            format!(
                "{{\"id\":\"{number:04}\",\"pk\":\"k{}\",\"n\":{number},\"x\":{}.5,\"b\":{},\"t\":\"ä\\n{number}\"}}",
                number % 7,
                number,
                number % 2 == 0
            )
        })
        .collect();
    // What comes last changes what columns are: none of it may be bent to what was seen before.
    lines.push(
        "{\"id\":\"z1\",\"pk\":\"a\",\"n\":9223372036854775807,\"x\":1e300,\"mixed\":\"text\",\"late\":true}"
            .to_owned(),
    );
    lines.push("{\"id\":\"z2\",\"pk\":\"a\",\"mixed\":[1,{\"a\":null}],\"big\":123456789012345678901234567890,\"o\":{\"p\":1.10}}".to_owned());
    lines.push("{\"id\":\"z3\",\"pk\":\"a\",\"mixed\":7,\"big\":0.1,\"exact\":9007199254740993}".to_owned());
    lines.push("{\"id\":\"z4\",\"pk\":\"a\",\"exact\":0.5}".to_owned());
    world.import(&world.import_of(world.file("a.jsonl", lines.join("\n"))));
    let told = exported(&world, "out.parquet", |_| {}).unwrap();
    assert!(told.starts_with("3004 rows"), "{told}");
    let back = World::furnished();
    let report = back.import(&back.import_of(world.path("out.parquet")));
    assert!(report.is_complete && report.text.starts_with("3004 documents"), "{report:?}");
    let (before, after) = (world.documents(), back.documents());
    assert_eq!(values(&world), values(&back));
    // Numbers that no double holds are text in the file, so they come back as they were.
    for digits in
        ["123456789012345678901234567890", "9007199254740993", "\"n\":9223372036854775807", "{\"p\":1.10}"]
    {
        assert!(before.concat().contains(digits) && after.concat().contains(digits), "{digits}");
    }
    let columns =
        exported(&world, "two.parquet", |settings| settings.columns = vec!["id".to_owned(), "b".to_owned()]);
    columns.unwrap();
    let two = World::furnished();
    let mut settings = two.import_of(world.path("two.parquet"));
    settings.partition_key = vec!["{id}".to_owned()];
    two.import(&settings);
    assert_eq!(two.documents()[1], "{\"pk\":\"0001\",\"id\":\"0001\",\"b\":false}");
    // A name without an extension, a query, and nothing at all.
    exported(&world, "plain", |settings| {
        settings.format = Some(FileFormat::Parquet);
        settings.query = Some("SELECT c.id, c.n FROM c WHERE c.n < 0".to_owned());
    })
    .unwrap();
    assert!(back.import(&back.import_of(world.path("plain"))).text.starts_with("0 documents"));
    let whole = exported(&world, "a.parquet.gz", |_| {}).unwrap_err();
    assert!(whole.contains("compressed inside") && !world.path("a.parquet.gz").exists(), "{whole}");
    let scalars =
        exported(&world, "b.parquet", |settings| settings.query = Some("SELECT VALUE c.n FROM c".to_owned()));
    assert!(scalars.unwrap_err().contains("objects") && !world.path("b.parquet").exists());
}

#[test]
fn columns_of_many_types() {
    let world = World::furnished();
    let bytes = file(
        "message m { required int32 id; required binary pk (UTF8); optional int64 n; optional double d; optional boolean b;
         optional binary j (JSON); optional int64 money (DECIMAL(18,2)); optional int32 day (DATE); required int64 at (TIMESTAMP(MILLIS,true)); }",
        |group| {
            put::<Int32Type>(group, &[7, 8], None);
            put::<ByteArrayType>(group, &texts(&["a", "b"]), None);
            put::<Int64Type>(group, &[i64::MIN], Some(&[1, 0]));
            put::<DoubleType>(group, &[0.1, 1e21], Some(&[1, 1]));
            put::<BoolType>(group, &[true], Some(&[0, 1]));
            put::<ByteArrayType>(group, &texts(&["{\"x\": [1.10, null]}"]), Some(&[1, 0]));
            put::<Int64Type>(group, &[-5, 12_345], Some(&[1, 1]));
            put::<Int32Type>(group, &[19_782], Some(&[0, 1]));
            put::<Int64Type>(group, &[0, 1_700_000_000_123], None);
        },
    );
    let settings = world.import_of(world.file("a.csv", &bytes));
    world.import(&settings);
    assert_eq!(
        world.documents(),
        [
            "{\"id\":\"7\",\"pk\":\"a\",\"n\":-9223372036854775808,\"d\":0.1,\"j\":{\"x\":[1.10,null]},\"money\":-0.05,\"at\":\"1970-01-01T00:00:00.000Z\"}",
            "{\"id\":\"8\",\"pk\":\"b\",\"d\":1e21,\"b\":true,\"money\":123.45,\"day\":\"2024-02-29\",\"at\":\"2023-11-14T22:13:20.123Z\"}"
        ],
        "told by its bytes, whatever it is called"
    );
}

#[test]
fn rows_that_json_cannot_tell() {
    let world = World::furnished();
    let bytes = file(
        "message m { required binary id (UTF8); required double x; required binary j (JSON); }",
        |group| {
            put::<ByteArrayType>(group, &texts(&["1", "2", "3", "4"]), None);
            put::<DoubleType>(group, &[1.5, f64::NAN, f64::INFINITY, 2.5], None);
            put::<ByteArrayType>(group, &texts(&["1", "2", "3", "{"]), None);
        },
    );
    let mut settings = world.import_of(world.file("a.parquet", bytes));
    world.refused(
        &settings,
        &[
            "3 bad rows of 4",
            "row 2: column \"x\" has \"NaN\", which is not a number; say --type x=string",
            "row 4: column \"j\"",
        ],
    );
    assert!(world.documents().is_empty());
    settings.dry_run = true;
    assert!(world.import(&settings).text.contains("4 rows, 1 of them good"));
    settings.dry_run = false;
    settings.failed = Some(world.path("failed.jsonl"));
    settings.resume = Some(world.path("resume"));
    let report = world.import(&settings);
    assert!(
        !report.is_complete
            && report.text.contains("1 documents written")
            && report.text.contains("3 failed"),
        "{report:?}"
    );
    let failed = std::fs::read_to_string(world.path("failed.jsonl")).unwrap();
    assert!(
        failed.contains("{\"row\":2,") && failed.contains("\"document\":{\"id\":\"2\",\"j\":2}"),
        "{failed}"
    );
    let report = world.import(&settings);
    assert!(report.text.contains("after 4 rows of an earlier run"), "{report:?}");
    settings.failed = None;
    settings.resume = None;
    settings.types = vec!["x=string".to_owned(), "j=string".to_owned()];
    settings.id = Some("s{id}".to_owned());
    world.import(&settings);
    assert!(
        world.documents().contains(&"{\"id\":\"s2\",\"x\":\"NaN\",\"j\":\"2\"}".to_owned()),
        "{:?}",
        world.documents()
    );
}

#[test]
fn files_that_are_refused() {
    let world = World::furnished();
    let good = file("message m { required binary id (UTF8); required binary pk (UTF8); }", |group| {
        put::<ByteArrayType>(group, &texts(&["1"]), None);
        put::<ByteArrayType>(group, &texts(&["a"]), None);
    });
    let nested = file(
        "message m { required binary id (UTF8); optional group address { required int32 zip; } }",
        |group| {
            put::<ByteArrayType>(group, &texts(&["1"]), None);
            put::<Int32Type>(group, &[7], Some(&[1]));
        },
    );
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, &good).unwrap();
    let mut long_footer = good.clone();
    let end = good.len();
    long_footer[end - 8..end - 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut encrypted = good.clone();
    encrypted[end - 1] = b'E';
    let mut flipped = good.clone();
    flipped[4] ^= 0xff;
    let cases: &[(&str, &[u8], &[&str])] = &[
        ("nested.parquet", &nested, &["column \"address\" is a group", "nothing was written", "JSON lines"]),
        ("cut.parquet", &good[..good.len() - 3], &["cut"]),
        ("short.parquet", &good[..6], &["cannot be read as Parquet"]),
        ("long.parquet", &long_footer, &["4294967295 bytes"]),
        ("encrypted.parquet", &encrypted, &["encrypted"]),
        ("flipped.parquet", &flipped, &["cannot be read after row 0: column \"id\""]),
        ("packed.parquet.gz", &packed.finish().unwrap(), &["Parquet begins at its end", "plain file"]),
        ("text.parquet", b"id,pk\n1,a\n", &["no Parquet", "PAR1"]),
        ("empty.parquet", b"", &["no Parquet"]),
    ];
    for (name, bytes, fragments) in cases {
        world.refused(&world.import_of(world.file(name, bytes)), fragments);
    }
    let mut other = world.import_of(world.file("a.parquet", &good));
    other.format = Some(FileFormat::Csv);
    world.refused(&other, &["--format says otherwise"]);
    other.format = None;
    other.types = vec!["pk=number".to_owned()];
    world.refused(&other, &["1 bad rows of 1", "not a number"]);
    assert!(world.documents().is_empty());
    other.types.clear();
    world.import(&other);
    assert_eq!(world.documents(), ["{\"id\":\"1\",\"pk\":\"a\"}"]);
}
