//! What a query's index utilisation names: the indexes that serve it, and those that would.

use crate::world::World;
use astrarium_database::{FeedScope, Query, QueryScope};
use serde_json::json;

/// Composite indexes are written as their paths, one after another.
struct Expected<'e> {
    utilized: &'e [&'e str],
    potential: &'e [&'e str],
    utilized_composite: &'e [&'e str],
    potential_composite: &'e [&'e str],
}

#[tokio::test]
async fn composite_indexes_serve_filters_and_orders() {
    let path = |path: &str, order: &str| json!({"path": path, "order": order});
    let policy = json!({
        "includedPaths": [{"path": "/*"}],
        "excludedPaths": [{"path": "/price/?"}],
        "compositeIndexes": [
            [path("/a", "ascending"), path("/b", "descending")],
            [path("/a", "ascending"), path("/b", "ascending"), path("/price", "ascending")],
        ],
    });
    let world = World::new(json!({"indexingPolicy": policy})).await;
    let container = world.container().await;
    let check = |clauses: &str, expected: Expected<'_>| {
        let query = Query::parse(&format!("SELECT * FROM c {clauses}"), Vec::new()).unwrap();
        let everywhere = QueryScope::Given(FeedScope::All);
        let found = world.account.documents(&container).index_utilization(&query, &everywhere).unwrap();
        assert_eq!(found.utilized_single, expected.utilized, "{clauses}");
        assert_eq!(found.potential_single, expected.potential, "{clauses}");
        let joined =
            |indexes: &[Vec<String>]| indexes.iter().map(|specs| specs.join(", ")).collect::<Vec<_>>();
        assert_eq!(joined(&found.utilized_composite), expected.utilized_composite, "{clauses}");
        assert_eq!(joined(&found.potential_composite), expected.potential_composite, "{clauses}");
    };
    let (short, long) = ("/a ASC, /b DESC", "/a ASC, /b ASC, /price ASC");
    check(
        "WHERE c.a = 1",
        Expected { utilized: &["/a/?"], potential: &[], utilized_composite: &[], potential_composite: &[] },
    );
    check(
        "WHERE c.b > 2 AND c.a = 1",
        Expected {
            utilized: &["/b/?", "/a/?"],
            potential: &[],
            utilized_composite: &[short],
            potential_composite: &[],
        },
    );
    check(
        "WHERE c.a = 1 AND c.b = 2 AND c.price < 3",
        Expected {
            utilized: &["/a/?", "/b/?"],
            potential: &["/price/?"],
            utilized_composite: &[long],
            potential_composite: &[],
        },
    );
    check(
        "WHERE c.b = 1 AND c.x > 2",
        Expected {
            utilized: &["/b/?", "/x/?"],
            potential: &[],
            utilized_composite: &[],
            potential_composite: &["/b ASC, /x ASC"],
        },
    );
    check(
        "WHERE c.a = 1 AND c.b > 2 AND c.x > 3",
        Expected {
            utilized: &["/a/?", "/b/?", "/x/?"],
            potential: &[],
            utilized_composite: &[short],
            potential_composite: &["/a ASC, /x ASC"],
        },
    );
    check(
        "WHERE c.a = 1 ORDER BY c.a, c.b DESC",
        Expected {
            utilized: &["/a/?", "/b/?"],
            potential: &[],
            utilized_composite: &[short],
            potential_composite: &[],
        },
    );
    check(
        "WHERE (c.a = 1 AND c.b = 2) OR c.x = 3",
        Expected {
            utilized: &["/a/?", "/b/?", "/x/?"],
            potential: &[],
            utilized_composite: &[short],
            potential_composite: &[],
        },
    );
}
