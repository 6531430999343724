//! Session tokens that one process gave and another is shown.

use crate::world::{CONTAINER, DATABASE, Process, Processes};
use astrarium_database::{Error, FeedScope};
use serde_json::json;

/// Whether a process is as far as a token says.
async fn check(process: &Process, token: &[(u32, u64)]) -> Result<(), Error> {
    let container = process.container().await;
    let seen = |id| token.iter().find(|(own, _)| *own == id).map(|(_, lsn)| *lsn);
    process.account.documents(&container).check_session(&FeedScope::All, seen).await
}

#[tokio::test]
async fn a_process_honours_the_tokens_of_another() {
    let processes = Processes::new(json!({})).await;
    let (one, other) = (&processes.one, &processes.other);
    for number in 0..20 {
        let (writer, reader) = if number % 3 == 0 { (other, one) } else { (one, other) };
        let written = writer.create(&number.to_string(), "a").await.unwrap();
        check(reader, &[(written.range_id, written.lsn)]).await.unwrap();
        reader.read(&number.to_string(), "a").await.unwrap();
        let ahead = check(reader, &[(written.range_id, written.lsn + 1)]).await;
        assert!(matches!(ahead, Err(Error::SessionNotAvailable)), "{ahead:?}");
    }
    // Tokens of a range that was split elsewhere, and of the ranges that came of it.
    processes.split(0).await;
    check(other, &[(0, 20)]).await.unwrap();
    let written = one.create("20", "a").await.unwrap();
    check(other, &[(0, 20), (written.range_id, written.lsn)]).await.unwrap();
    other.read("20", "a").await.unwrap();
    let ahead = check(other, &[(written.range_id, written.lsn + 1)]).await;
    assert!(matches!(ahead, Err(Error::SessionNotAvailable)), "{ahead:?}");
}

/// A client who knew a container of the same name has seen no more of it than there is, in whichever process it went.
#[tokio::test]
async fn tokens_of_a_container_that_went_are_taken() {
    let processes = Processes::new(json!({})).await;
    let (one, other) = (&processes.one, &processes.other);
    let mut last = 0;
    for round in 0..3 {
        for number in 0..10 {
            last = one.create(&number.to_string(), "a").await.unwrap().lsn;
        }
        one.remove().await;
        one.make(&json!({}), None).await;
        assert!(matches!(other.read("0", "a").await, Err(Error::OwnerNotFound)), "{round}");
        for process in [one, other, &processes.third().await] {
            check(process, &[(0, last)]).await.unwrap();
            let ahead = check(process, &[(0, last + 1)]).await;
            assert!(matches!(ahead, Err(Error::SessionNotAvailable)), "{ahead:?}");
        }
        let first = other.create("first", "a").await.unwrap().lsn;
        assert_eq!(first, 2, "the creation is 1");
    }
    // One that was split, with its database.
    one.account.catalog().split_range(DATABASE, CONTAINER, 0).await.unwrap();
    let highest = one.create("more", "a").await.unwrap();
    one.account
        .catalog()
        .delete_database(DATABASE, &astrarium_database::Conditions::default())
        .await
        .unwrap();
    let database = astrarium_database::definition::database::DatabaseDefinition { id: "d".to_owned() };
    other.account.catalog().create_database(&database, None).await.unwrap();
    other.make(&json!({}), None).await;
    check(other, &[(0, highest.lsn), (highest.range_id, highest.lsn)]).await.unwrap();
    other.create("1", "a").await.unwrap();
    assert_eq!(other.problems().await, [] as [&str; 0]);
}
