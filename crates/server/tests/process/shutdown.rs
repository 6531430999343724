//! The end: what runs is answered, what was acknowledged is there, and the process says that all is well.

use crate::program::{Program, create, read};
use astrarium_testkit::Request;

#[test]
fn writers_are_answered_until_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::on(folder.path(), &["--log-slow-ms", "3600000"]);
    program.furnish();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let mut client = program.client();
            std::thread::spawn(move || {
                let mut acknowledged = Vec::new();
                for number in 0.. {
                    let id = format!("{writer}-{number}");
                    match client.send(&create(&id, "")) {
                        Ok(answer) if answer.status == 201 => acknowledged.push(id),
                        Ok(answer) => panic!("{} {}", answer.status, answer.text()),
                        Err(_) => return acknowledged,
                    }
                }
                unreachable!("the numbers do not end")
            })
        })
        .collect();
    let mut watcher = program.client();
    let count = Request::new("GET", "/dbs/d/colls/c/docs").header("x-ms-max-item-count", "100");
    while watcher.expect(200, &count).header("x-ms-item-count") != Some("100") {}
    let ended = program.stop();
    let log: Vec<&str> = ended.stderr.lines().collect();
    assert!(log.iter().all(|line| line.contains(" INFO ")), "nothing to complain about: {log:?}");
    for event in ["started", "stopping", "stopped"] {
        assert!(log.iter().any(|line| line.contains(event)), "{event} in {log:?}");
    }
    let acknowledged: Vec<String> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
    assert!(acknowledged.len() >= 100);
    let program = Program::on(folder.path(), &[]);
    let mut client = program.client();
    for id in &acknowledged {
        client.expect(200, &read(id));
    }
}
