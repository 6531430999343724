//! How many scripts a container may have.

use crate::support::{furnished, new_script, new_trigger};
use astrarium_testkit::{EngineKind, Request};

const SOURCE: &str = "function () { }";

/// A feed, how many scripts it may hold, and the request that adds one.
type Kind = (&'static str, usize, fn(&str) -> Request);

#[test]
fn a_container_has_so_many_scripts_and_no_more() {
    let server = furnished(EngineKind::Memory);
    let mut client = server.client();
    let kinds: [Kind; 3] = [
        ("sprocs", 100, |id| new_script("sprocs", id, SOURCE)),
        ("udfs", 50, |id| new_script("udfs", id, SOURCE)),
        ("triggers", 25, |id| new_trigger(id, "Pre", "All", SOURCE)),
    ];
    for (kind, count_max, new) in kinds {
        for number in 0..count_max {
            client.expect(201, &new(&format!("s{number}")));
        }
        client.expect(400, &new("more"));
        let existing = format!("/dbs/d/colls/c/{kind}/s0");
        client.expect(404, &Request::new("GET", &format!("/dbs/d/colls/c/{kind}/more")));
        // What is there may be replaced, and what is removed makes room.
        let mut replace = new("s0");
        replace.verb = "PUT".to_owned();
        replace.target.clone_from(&existing);
        client.expect(200, &replace);
        client.expect(204, &Request::new("DELETE", &existing));
        client.expect(201, &new("more"));
        client.expect(400, &new("s0"));
    }
}
