//! One request makes one plan, whatever is asked about it.

use crate::world::World;
use astrarium_database::{FeedScope, Limits, QueryScope, Resume};
use serde_json::json;

/// Texts with a parameter, whose plans are not kept with the text.
const QUERIES: [&str; 5] = [
    "SELECT * FROM c WHERE c.n > @least",
    "SELECT VALUE c.id FROM c WHERE c.n > @least ORDER BY c.n",
    "SELECT VALUE COUNT(1) FROM c WHERE c.n > @least",
    "SELECT c.g, COUNT(1) AS n FROM c WHERE c.n > @least GROUP BY c.g",
    "SELECT VALUE x FROM (SELECT DISTINCT VALUE c.g FROM c WHERE c.n > @least) x",
];

#[tokio::test]
async fn a_request_plans_once() {
    let world = World::new(json!({})).await;
    for number in 0..20 {
        world.put(&json!({"id": number.to_string(), "pk": "p", "n": number, "g": number % 6})).await;
    }
    let container = world.container().await;
    let documents = world.account.documents(&container);
    let scope = QueryScope::Given(FeedScope::All);
    for text in QUERIES {
        let mut resume: Option<Resume> = None;
        let mut pages = 0;
        loop {
            let parameters = vec![("@least".to_owned(), 2.0.into())];
            let query = world.account.parse_query(text, parameters).unwrap();
            let before = world.account.monitoring().plan_count();
            documents.check_no_scan(&query).unwrap();
            let limits = Limits { row_count_max: 2, ..Limits::default() };
            let page = documents.query(&query, &scope, resume.take(), limits).await.unwrap();
            let utilization = documents.index_utilization(&query, &scope).unwrap();
            assert_eq!(utilization.utilized_single.first().map(String::as_str), Some("/n/?"), "{text}");
            assert_eq!(world.account.monitoring().plan_count() - before, 1, "{text}");
            pages += 1;
            match page.resume {
                Some(next) => resume = Some(next),
                None => break,
            }
        }
        assert!(pages > 1 || text.contains("COUNT(1) FROM"), "{text}");
    }
}
