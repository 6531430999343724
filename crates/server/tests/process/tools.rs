//! The commands that move data, as the program: their forms, an import that is killed and goes on, a seed.

use crate::program::{Program, refused, run};
use astrarium_testkit::Request;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn count(server: &Program) -> u64 {
    let query = Request::new("POST", "/dbs/d/colls/c/docs")
        .header("content-type", "application/query+json")
        .header("x-ms-documentdb-isquery", "True")
        .header("x-ms-documentdb-partitionkeyrangeid", "0")
        .body("{\"query\":\"SELECT VALUE COUNT(1) FROM c\"}");
    let text = server.client().expect(200, &query).text();
    let page: serde_json::Value = serde_json::from_str(&text).unwrap();
    page["Documents"][0].as_u64().unwrap()
}

#[test]
fn an_import_that_is_killed_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = Program::in_memory(&[]);
    server.furnish();
    let endpoint = format!("http://{}", server.address);
    let (file, resume) = (folder.path().join("a.jsonl"), folder.path().join("resume"));
    let lines: Vec<String> =
        (0..20_000).map(|number| format!("{{\"pk\":\"k{}\",\"n\":{number}}}\n", number % 100)).collect();
    std::fs::write(&file, lines.concat()).unwrap();
    let (file, resume) = (file.to_str().unwrap(), resume.to_str().unwrap());
    let arguments = ["import", "--endpoint", &endpoint, "d/c", file, "--resume", resume, "--rate", "20000"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_astrarium"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while count(&server) < 2_000 {
        assert!(began.elapsed() < Duration::from_mins(5), "the import does not get on");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = count(&server);
    assert!(before < 20_000, "it was killed too late to tell anything");
    let ended = run(&["import", "--endpoint", &endpoint, "d/c", file, "--resume", resume]);
    assert!(ended.success, "{ended:?}");
    assert_eq!(count(&server), 20_000, "every row once, though none has an id: {ended:?}");
    let output = folder.path().join("out.jsonl");
    assert!(run(&["export", "--endpoint", &endpoint, "d/c", "--output", output.to_str().unwrap()]).success);
    assert_eq!(std::fs::read_to_string(output).unwrap().lines().count(), 20_000);
    let few = run(&[
        "export",
        "--endpoint",
        &endpoint,
        "d/c",
        "--query",
        "SELECT c.n FROM c WHERE c.n < 2 ORDER BY c.n",
    ]);
    assert_eq!(few.stdout, "{\"n\":0}\n{\"n\":1}\n");
    let dump = folder.path().join("all.tar.zst");
    assert!(run(&["dump", "--endpoint", &endpoint, dump.to_str().unwrap()]).success);
    let other = Program::in_memory(&[]);
    let elsewhere = format!("http://{}", other.address);
    assert!(run(&["load", "--endpoint", &elsewhere, dump.to_str().unwrap()]).success);
    assert_eq!(count(&other), 20_000);
    let third = Program::in_memory(&[]);
    let elsewhere = format!("http://{}", third.address);
    let copied = run(&["copy", "--from", &endpoint, "--to", &elsewhere]);
    assert!(copied.success, "{copied:?}");
    assert_eq!(count(&third), 20_000);
}

/// Names in files cannot control the terminal, and a standard error that nobody reads is no failure.
#[test]
fn what_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let server = Program::in_memory(&[]);
    server.furnish();
    let endpoint = format!("http://{}", server.address);
    let file = folder.path().join("a.csv");
    std::fs::write(&file, "id,pk,\u{1b}[2Jx\n1,a,y\n").unwrap();
    let arguments = ["import", "--endpoint", &endpoint, "d/c", file.to_str().unwrap()];
    let ended = run(&arguments);
    assert!(ended.success && ended.stderr.contains("\\u001b[2Jx"), "{ended:?}");
    assert!(!ended.stderr.contains('\u{1b}'), "{ended:?}");
    for (mode, code) in [("skip", 0), ("insert", 1)] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_astrarium"));
        let status =
            command.args(arguments).args(["--mode", mode]).stdin(Stdio::null()).stderr(writer).status();
        assert_eq!(status.unwrap().code(), Some(code), "{mode}");
    }
}

/// An import ends with its error though the pipe that it reads stays open.
#[test]
fn an_import_does_not_wait_for_its_pipe() {
    let server = Program::in_memory(&[]);
    server.furnish();
    let endpoint = format!("http://{}", server.address);
    let mut child = Command::new(env!("CARGO_BIN_EXE_astrarium"))
        .args(["import", "--endpoint", &endpoint, "d/c", "-", "--format", "json-lines"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut pipe, b"{\"id\":\"1\",\"pk\":\"a\"}\nnonsense\n").unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_mins(5), "the import waits for more");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(pipe);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("row 2: it is not JSON"), "{ended:?}");
}

#[test]
fn a_seed_is_there_when_the_server_is_ready() {
    let folder = tempfile::tempdir().unwrap();
    let (seed, data) = (folder.path().join("seed"), folder.path().join("data"));
    let write = |name: &str, content: &str| {
        let path = seed.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    write("d/c/container.json", "{\"partitionKey\":\"/pk\"}");
    write("d/c/items/a.jsonl", "{\"id\":\"1\",\"pk\":\"a\"}\n{\"id\":\"2\",\"pk\":\"b\"}\n");
    let seed_text = seed.to_str().unwrap();
    let server = Program::on(&data, &["--seed", seed_text]);
    assert_eq!(count(&server), 2);
    let read =
        |server: &Program| server.client().expect(200, &Request::new("GET", "/dbs/d/colls/c/docs")).text();
    let before = read(&server);
    server.stop();
    let server = Program::on(&data, &["--seed", seed_text]);
    assert_eq!(read(&server), before, "the second time changes nothing");
    server.stop();
    write("d/c/container.json", "{\"partitionKey\":\"/other\"}");
    let data = data.to_str().unwrap();
    let listen = ["--listen", "127.0.0.1:0"];
    refused(
        &["serve", listen[0], listen[1], "--data", data, "--seed", seed_text],
        &["exists with another partitionKey"],
    );
    write("d/c/items/b.jsonl", "nonsense\n");
    refused(
        &["serve", listen[0], listen[1], "--data", data, "--seed", seed_text],
        &["row 1: it is not JSON"],
    );
}
