//! The blog platform of the article "How to model and partition data using a real-world example": every request of its three
//! versions beside the charge that the article prints.
//!
//! The article measures with 100,000 users of 5 to 50 posts, each with up to 25 comments and 100 likes: some hundred million
//! documents. What its requests touch can be told from its figures: listing comments costs 20 more where each needs its
//! user's name, a point read of 1 each, so there are 20 comments; likes are 50 likewise; the posts of a user are 25, each of
//! which costs two counts. How many physical partitions it had it does not say; `PARTITION_COUNT` is what its figure of a
//! fan-out comes to at our price of one. So the documents that requests touch are as many as in the article, and the other
//! users' are left out. `BLOG_POSTS` in the environment adds so many posts of others, for those who doubt that these do not
//! count.

use crate::world::{ONE_PAGE, World, assert_about, key_text};
use astrarium_database::definition::container::ContainerDefinition;
use astrarium_database::definition::throughput::Throughput;
use astrarium_database::{ChildKind, Container, Link, NewContainer, ScriptRequest, WriteMode};
use serde_json::{Value, json};
use std::sync::Arc;

const COMMENT_COUNT: usize = 20;
const LIKE_COUNT: usize = 50;
const POST_COUNT: usize = 25;
const FEED_COUNT: usize = 100;
const PARTITION_COUNT: u32 = 66;

/// Characters of a post's or comment's content, so that its document has about two kilobytes: what creating it costs in the
/// article, 8.76 and 8.57, is the published price of that size.
const CONTENT_LENGTH: usize = 1_700;
/// Characters of the content in lists, which only show the beginning.
const SUMMARY_LENGTH: usize = 300;

const CREATE_COMMENT: &str = "function create(postId, item, counter) {
    var collection = getContext().getCollection();
    collection.readDocument(collection.getAltLink() + '/docs/' + postId, function (err, post) {
        if (err) throw err;
        post[counter]++;
        collection.replaceDocument(post._self, post, function (err) {
            if (err) throw err;
            item.postId = postId;
            collection.createDocument(collection.getSelfLink(), item);
        });
    });
}";

/// Why a figure is not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    Yes,
    /// The article's server did something else than the published rules of 2026 say.
    OtherRules,
    /// It depends on data that the article has and we have not.
    OtherVolume,
    /// The article goes on with the figure of its first version, whose documents have fewer properties.
    FirstVersion,
}

struct Blog {
    world: World,
    users: Arc<Container>,
    posts: Arc<Container>,
    feed: Option<Arc<Container>>,
    version: u32,
    rows: Vec<(&'static str, f64, f64, Compared)>,
}

fn user(version: u32, number: usize) -> Value {
    let id = format!("user-{number:032}");
    let name = format!("name-{number}");
    if version < 3 {
        return json!({"id": id, "username": name});
    }
    json!({"id": id, "type": "user", "userId": id, "username": name})
}

fn id_of(kind: &str, post: usize, number: usize) -> String {
    format!("{kind}-{post:016}-{number:015}")
}

fn post_id(number: usize) -> String {
    id_of("post", number, 0)
}

/// A post, a comment or a like, by the user with a number.
fn item(
    version: u32,
    kind: &str,
    (post, number): (usize, usize),
    user_number: usize,
    content: usize,
) -> Value {
    let mut item = json!({
        "id": if kind == "post" { post_id(post) } else { id_of(kind, post, number) },
        "type": kind,
        "postId": post_id(post),
        "userId": format!("user-{user_number:032}"),
        "creationDate": format!("2019-01-{:02}T{:02}:{:02}:00.0000000Z", 1 + post % 28, number % 24, post % 60),
    });
    if kind == "post" {
        item["title"] = json!(format!("The title of post {post}"));
    }
    if kind != "like" {
        item["content"] = json!("c".repeat(content));
    }
    if version > 1 {
        item["userUsername"] = json!(format!("name-{user_number}"));
        if kind == "post" {
            (item["commentCount"], item["likeCount"]) = (json!(COMMENT_COUNT), json!(LIKE_COUNT));
        }
    }
    item
}

impl Blog {
    async fn new(version: u32) -> Blog {
        let world = World::in_memory().await;
        let users = world.create("users", if version < 3 { "/id" } else { "/userId" }, json!({})).await;
        let definition =
            json!({"id": "posts", "partitionKey": {"paths": ["/postId"], "kind": "Hash", "version": 2}});
        let definition = ContainerDefinition::from_json(&definition).unwrap();
        // So that it begins with as many ranges.
        let throughput = Some(Throughput::Manual(PARTITION_COUNT * 6_000));
        let new = NewContainer { definition, throughput };
        let posts = world.account.catalog().create_container(Link::Name("d"), &new).await.unwrap();
        assert_eq!(posts.ranges.len(), PARTITION_COUNT as usize);
        let feed = if version < 3 { None } else { Some(world.create("feed", "/type", json!({})).await) };
        let procedure = json!({"id": "create", "body": CREATE_COMMENT}).to_string();
        let kind = ChildKind::StoredProcedure(Link::Name("d"), Link::Name("posts"));
        world.account.catalog().create_child(kind, "create", &procedure).await.unwrap();
        let mut blog = Blog { world, users, posts, feed, version, rows: Vec::new() };
        blog.furnish().await;
        blog
    }

    async fn furnish(&mut self) {
        let (version, world) = (self.version, &self.world);
        for number in 0..=LIKE_COUNT {
            world.write(&self.users, WriteMode::Create, &user(version, number)).await;
        }
        let others: usize = std::env::var("BLOG_POSTS").map_or(0, |text| text.parse().unwrap());
        // The first posts are those of the first user, and only they are listed.
        for post in 0..FEED_COUNT + others {
            let author = if post < POST_COUNT { 0 } else { 1 + post % LIKE_COUNT };
            let whole = item(version, "post", (post, 0), author, CONTENT_LENGTH);
            world.write(&self.posts, WriteMode::Create, &whole).await;
            let short = item(version, "post", (post, 0), author, SUMMARY_LENGTH);
            if let Some(feed) = self.feed.as_ref().filter(|_| post < FEED_COUNT) {
                world.write(&self.users, WriteMode::Create, &short).await;
                world.write(feed, WriteMode::Create, &short).await;
            }
            // Their comments and likes are counted for the first user's posts, and for all on the front page.
            for (kind, count) in [("comment", COMMENT_COUNT), ("like", LIKE_COUNT)] {
                for number in 0..if post < FEED_COUNT && version == 1 || post == 0 { count } else { 0 } {
                    let item = item(version, kind, (post, number), 1 + number, CONTENT_LENGTH);
                    world.write(&self.posts, WriteMode::Create, &item).await;
                }
            }
        }
    }

    fn note(&mut self, request: &'static str, charge: f64, article: f64, compared: Compared) {
        self.rows.push((request, charge, article, compared));
    }

    async fn list(&self, kind: &str) -> f64 {
        let id = post_id(0);
        let text = format!("SELECT * FROM p WHERE p.postId = '{id}' AND p.type = '{kind}'");
        self.world.query(&self.posts, Some(&id), &text, ONE_PAGE).await.0
    }

    async fn count(&self, post: usize, kind: &str) -> f64 {
        let id = post_id(post);
        let text = format!("SELECT VALUE COUNT(1) FROM p WHERE p.postId = '{id}' AND p.type = '{kind}'");
        self.world.query(&self.posts, Some(&id), &text, ONE_PAGE).await.0
    }

    async fn username(&self, number: usize) -> f64 {
        let id = format!("user-{number:032}");
        let text = format!("SELECT u.username FROM u WHERE u.id = '{id}'");
        self.world.query(&self.users, Some(&id), &text, ONE_PAGE).await.0
    }

    /// What the first version needs besides a list of posts: names and counts.
    async fn added(&self, posts: std::ops::Range<usize>) -> f64 {
        let mut charge = 0.0;
        for post in posts {
            charge += self.count(post, "comment").await + self.count(post, "like").await;
        }
        charge
    }

    async fn create_item(&self, kind: &str, counter: &str) -> f64 {
        let item = item(self.version, kind, (0, 99), 1, CONTENT_LENGTH);
        if self.version == 1 {
            return self.world.write(&self.posts, WriteMode::Create, &item).await;
        }
        let parameters = json!([post_id(0), item, counter]).to_string();
        let (key, request) = (key_text(&post_id(0)), ScriptRequest::default());
        let scripts = self.world.account.scripts(&self.posts);
        let run =
            scripts.execute_procedure(Link::Name("create"), Some(&key), parameters.as_bytes(), &request);
        run.await.unwrap().charge
    }

    async fn measure(&mut self) {
        let (version, yes) = (self.version, Compared::Yes);
        let by_version = |figures: [f64; 3]| figures[version as usize - 1];
        let stranger = user(version, 1_000);
        let created = self.world.write(&self.users, WriteMode::Create, &stranger).await;
        let of_first = |same: bool| if same { Compared::Yes } else { Compared::FirstVersion };
        self.note("C1 create a user", created, 5.71, of_first(version < 3));
        let read = self.world.read(&self.users, &stranger).await;
        self.note("Q1 read a user", read, 1.0, yes);
        let post = item(version, "post", (999_999, 0), 0, CONTENT_LENGTH);
        let created = self.world.write(&self.posts, WriteMode::Create, &post).await;
        self.note("C2 create a post", created, 8.76, of_first(version == 1));
        let own = item(version, "post", (0, 0), 0, CONTENT_LENGTH);
        let mut read = self.world.read(&self.posts, &own).await;
        if version == 1 {
            read += self.username(0).await + self.added(0..1).await;
        }
        self.note("Q2 read a post", read, by_version([19.54, 1.0, 1.0]), yes);
        self.measure_posts().await;
        let fan_out = if version == 1 { Compared::Yes } else { Compared::OtherRules };
        let names = if version == 1 { 1.0 } else { 0.0 };
        let listed = self.list("comment").await + names * COMMENT_COUNT as f64;
        self.note("Q4 list comments", listed, by_version([27.72, 7.72, 7.72]), yes);
        let listed = self.list("like").await + names * LIKE_COUNT as f64;
        self.note("Q5 list likes", listed, by_version([58.92, 8.92, 8.92]), yes);
        let created = self.create_item("comment", "commentCount").await;
        self.note("C3 create a comment", created, by_version([8.57, 15.27, 15.27]), fan_out);
        let created = self.create_item("like", "likeCount").await;
        self.note("C4 create a like", created, by_version([7.05, 14.67, 14.67]), fan_out);
    }

    async fn measure_posts(&mut self) {
        let (version, author) = (self.version, format!("user-{:032}", 0));
        let by_version = |figures: [f64; 3]| figures[version as usize - 1];
        let text = format!("SELECT * FROM p WHERE p.type = 'post' AND p.userId = '{author}'");
        let mut listed = match version {
            3 => self.world.query(&self.users, Some(&author), &text, ONE_PAGE).await.0,
            _ => self.world.query(&self.posts, None, &text, ONE_PAGE).await.0,
        };
        let text =
            format!("SELECT TOP {FEED_COUNT} * FROM p WHERE p.type = 'post' ORDER BY p.creationDate DESC");
        let (mut front, rows) = match &self.feed {
            Some(feed) => self.world.query(feed, Some("post"), &text, ONE_PAGE).await,
            None => self.world.query(&self.posts, None, &text, ONE_PAGE).await,
        };
        assert_eq!(rows, FEED_COUNT);
        if version == 1 {
            listed += self.username(0).await + self.added(0..POST_COUNT).await;
            front += self.added(0..FEED_COUNT).await + FEED_COUNT as f64 * self.username(0).await;
        }
        let listed_as = by_version([619.41, 201.54, 6.46]);
        self.note("Q3 list a user's posts", listed, listed_as, Compared::Yes);
        let front_as = by_version([2063.54, 532.33, 16.97]);
        let compared = if version == 2 { Compared::OtherVolume } else { Compared::Yes };
        self.note("Q6 front page", front, front_as, compared);
    }
}

#[test]
fn requests_of_the_blog_platform_cost_what_the_article_says() {
    crate::run(async {
        println!("| version | request | charge | article | ratio | |\n|---|---|---|---|---|---|");
        let mut all = Vec::new();
        for version in 1..=3 {
            let mut blog = Blog::new(version).await;
            blog.measure().await;
            for (request, charge, article, compared) in blog.rows {
                let remark = match compared {
                    Compared::Yes => "",
                    Compared::OtherRules => "other rules",
                    Compared::OtherVolume => "other data",
                    Compared::FirstVersion => "figure of V1",
                };
                let ratio = charge / article;
                println!("| V{version} | {request} | {charge:.2} | {article:.2} | {ratio:.2} | {remark} |");
                all.push((format!("V{version} {request}"), charge, article, compared));
            }
        }
        for (request, charge, article, _) in all.iter().filter(|row| row.3 == Compared::Yes) {
            assert_about(request, *charge, *article);
        }
    });
}
