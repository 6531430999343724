//! A folder becomes an account, twice the same.

use crate::world::{World, run};
use astrarium_testkit::Request;
use astrarium_tools::{SeedPlan, ToolError, ToolReport};

fn declare(world: &World, files: &[(&str, &str)]) {
    for (name, content) in files {
        let path = world.path(&format!("seed/{name}"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

fn plant(world: &World) -> Result<ToolReport, ToolError> {
    let plan = SeedPlan::read(&world.path("seed"))?;
    run(plan.apply(&world.account()))
}

#[test]
fn a_seed_is_planted_once() {
    let world = World::new();
    declare(
        &world,
        &[
            ("d/database.json", "{\"throughput\":500}"),
            (
                "d/users.json",
                "[{\"id\":\"ada\",\"permissions\":[{\"id\":\"q\",\"permissionMode\":\"Read\",\"resource\":\"dbs/d/colls/c\"}]}]",
            ),
            ("d/c/container.json", "{\"partitionKey\":\"/pk\",\"defaultTtl\":-1}"),
            (
                "d/c/items/a.jsonl",
                "{\"id\":\"1\",\"pk\":\"a\",\"n\":12345678901234567890}\n{\"id\":\"2\",\"pk\":\"a\"}\n",
            ),
            ("d/c/items/b.csv", "id,pk,n\n3,b,1.10\n"),
            ("d/c/sprocs/p.js", "function () { getContext().getResponse().setBody(7); }"),
            ("d/c/triggers/t.Pre.Create.js", "function () {}"),
            (
                "e/x/container.json",
                "{\"partitionKey\":{\"paths\":[\"/t\",\"/u\"],\"kind\":\"MultiHash\",\"version\":2},\"throughput\":600}",
            ),
        ],
    );
    let report = plant(&world).unwrap();
    assert_eq!(report.text, "seeded 2 databases, 2 containers, 3 documents");
    let documents = [
        "{\"id\":\"1\",\"pk\":\"a\",\"n\":12345678901234567890}",
        "{\"id\":\"2\",\"pk\":\"a\"}",
        "{\"id\":\"3\",\"pk\":\"b\",\"n\":1.10}",
    ];
    assert_eq!(world.documents(), documents);
    let mut client = world.server.client();
    let mut state = || {
        let paths = [
            "/dbs/d/colls/c/docs",
            "/dbs/d/colls",
            "/dbs/e/colls",
            "/dbs/d/colls/c/sprocs",
            "/dbs/d/colls/c/triggers",
            "/offers",
            "/dbs/d/users",
        ];
        paths.map(|path| client.expect(200, &Request::new("GET", path)).text())
    };
    let before = state();
    plant(&world).unwrap();
    assert_eq!(state(), before, "etags and all");
    // What differs is made so.
    declare(
        &world,
        &[
            ("d/c/items/b.csv", "id,pk,n\n3,b,2.5\n"),
            ("d/c/sprocs/p.js", "function () { getContext().getResponse().setBody(8); }"),
        ],
    );
    plant(&world).unwrap();
    assert_eq!(world.documents()[2], "{\"id\":\"3\",\"pk\":\"b\",\"n\":2.5}");
    let ran = world
        .server
        .client()
        .expect(200, &Request::new("POST", "/dbs/d/colls/c/sprocs/p").partition_key("[\"a\"]").body("[]"));
    assert_eq!(ran.text(), "8");
    // What contradicts the account is refused, wherever it stands.
    let before = state();
    declare(
        &world,
        &[
            ("a/new/container.json", "{\"partitionKey\":\"/pk\"}"),
            ("e/x/container.json", "{\"partitionKey\":\"/other\"}"),
        ],
    );
    let refused = plant(&world).unwrap_err().to_string();
    assert!(refused.contains("nothing was changed: e/x exists with another partitionKey"), "{refused}");
    assert_eq!(state(), before);
    assert_eq!(world.server.client().ask(&Request::new("GET", "/dbs/a")).status, 404);
}

/// Throughput that is declared otherwise than before is changed; its kind is not, and then nothing is.
#[test]
fn throughput_is_changed() {
    let world = World::new();
    let offers = || world.server.client().expect(200, &Request::new("GET", "/offers")).text();
    declare(&world, &[("d/c/container.json", "{\"partitionKey\":\"/pk\",\"throughput\":500}")]);
    plant(&world).unwrap();
    let before = offers();
    plant(&world).unwrap();
    assert_eq!(offers(), before, "the second time changes nothing");
    declare(&world, &[("d/c/container.json", "{\"partitionKey\":\"/pk\",\"throughput\":700}")]);
    plant(&world).unwrap();
    assert!(offers().contains("\"offerThroughput\":700"), "{}", offers());
    let before = offers();
    declare(&world, &[("d/c/container.json", "{\"partitionKey\":\"/pk\",\"autoscale\":4000}")]);
    declare(&world, &[("d/b/container.json", "{\"partitionKey\":\"/pk\"}")]);
    let refused = plant(&world).unwrap_err().to_string();
    assert!(refused.contains("nothing was changed: d/c exists with the throughput"), "{refused}");
    assert_eq!(offers(), before);
    assert_eq!(world.server.client().ask(&Request::new("GET", "/dbs/d/colls/b")).status, 404);
}
