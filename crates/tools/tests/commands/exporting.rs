//! Exports, and back.

use crate::world::{World, run};
use astrarium_tools::ExportSettings;

fn exported(world: &World, change: impl FnOnce(&mut ExportSettings), name: &str) -> Result<String, String> {
    let mut settings = ExportSettings::new(world.account(), "d/c".parse().unwrap());
    settings.output = Some(world.path(name));
    change(&mut settings);
    run(astrarium_tools::export(&settings)).map_err(|error| error.to_string())?;
    Ok(std::fs::read_to_string(world.path(name)).unwrap_or_default())
}

#[test]
fn formats() {
    let world = World::furnished();
    let lines = "{\"id\":\"1\",\"pk\":\"a\",\"t\":\"x,\\\"y\\\"\",\"n\":1.10}\n{\"id\":\"2\",\"pk\":\"b\",\"o\":{\"l\":[1]}}\n";
    world.import(&world.import_of(world.file("a.jsonl", lines)));
    let text = exported(&world, |_| {}, "b.jsonl").unwrap();
    assert_eq!(text, lines);
    let text = exported(&world, |settings| settings.system_properties = true, "b.jsonl").unwrap();
    assert!(text.contains("\"_etag\":"), "{text}");
    assert_eq!(
        exported(&world, |_| {}, "b.json").unwrap(),
        format!("[\n{}\n]\n", lines.trim_end().replace("}\n{", "},\n{"))
    );
    let csv = exported(&world, |_| {}, "b.csv").unwrap();
    assert_eq!(csv, "id,pk,t,n,o\r\n1,a,\"x,\"\"y\"\"\",1.10,\r\n2,b,,,\"{\"\"l\"\":[1]}\"\r\n");
    let told = exported(&world, |settings| settings.columns = vec!["n".to_owned(), "id".to_owned()], "b.tsv")
        .unwrap();
    assert_eq!(told, "n\tid\r\n1.10\t1\r\n\t2\r\n");
    let query = |text: &str| {
        let text = text.to_owned();
        exported(&world, |settings| settings.query = Some(text), "q.jsonl")
    };
    assert_eq!(query("SELECT VALUE COUNT(1) FROM c").unwrap(), "2\n");
    assert_eq!(query("SELECT c.n FROM c WHERE c.id = '1'").unwrap(), "{\"n\":1.1}\n");
    // What of the system was selected stays; a whole document is written without it.
    let selected = query("SELECT c.id, c._ts FROM c WHERE c.id = '1'").unwrap();
    assert!(selected.starts_with("{\"id\":\"1\",\"_ts\":"), "{selected}");
    assert_eq!(query("SELECT * FROM c").unwrap(), lines);
    assert!(query("SELECT FROM").unwrap_err().contains("400"));
    exported(&world, |_| {}, "c.jsonl.zst").unwrap_err_or_binary();
    let packed = std::fs::read(world.path("c.jsonl.zst")).unwrap();
    assert_eq!(zstd::decode_all(&packed[..]).unwrap(), lines.as_bytes());
    let missing =
        run(astrarium_tools::export(&ExportSettings::new(world.account(), "d/none".parse().unwrap())));
    assert!(missing.unwrap_err().to_string().contains("there is no container d/none"));
}

trait Binary {
    fn unwrap_err_or_binary(self);
}

impl Binary for Result<String, String> {
    /// What is compressed is no text, so reading it as such gives nothing.
    fn unwrap_err_or_binary(self) {
        assert_eq!(self.unwrap(), "");
    }
}
