//! Mistakes that people make, and that each is told with what to do; a refused start leaves nothing behind.

use crate::program::{Ended, Program, command, refused, refused_with, run, wait};
use astrarium_testkit::Request;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder with files that are not what anybody wants.
struct Odds {
    folder: tempfile::TempDir,
}

impl Odds {
    fn new() -> Odds {
        let odds = Odds { folder: tempfile::tempdir().unwrap() };
        std::fs::write(odds.at("file"), "hello\n").unwrap();
        std::fs::create_dir(odds.at("folder")).unwrap();
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            odds.at("pipe"),
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        )
        .unwrap();
        odds
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_owned()
    }
}

#[test]
fn a_port_that_is_taken_leaves_no_folder_behind() {
    let odds = Odds::new();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    let port = holder.local_addr().unwrap().port().to_string();
    let data = odds.text("data");
    let ended =
        refused(&["serve", "--listen", &taken, "--data", &data], &[&taken, "--listen", "another program"]);
    assert_eq!(ended.stderr.matches("os error").count(), 1, "told once: {}", ended.stderr);
    let emulator = ["emulator", "--data-path", &data];
    let free = [("PORT", "0"), ("HEALTH_PORT", "0"), ("EXPLORER_PORT", "0")];
    for (variable, flag) in
        [("PORT", "--port"), ("HEALTH_PORT", "--health-port"), ("EXPLORER_PORT", "--explorer-port")]
    {
        let variables =
            free.map(|(name, value)| (name, if name == variable { port.as_str() } else { value }));
        refused_with(&variables, &emulator, &[&taken, flag]);
    }
    let certificate = [
        "serve",
        "--listen",
        "0",
        "--data",
        &data,
        "--tls-certificate",
        &odds.text("file"),
        "--tls-key",
        &odds.text("none"),
    ];
    refused(&certificate, &["--tls-key", "none"]);
    refused(
        &["serve", "--listen", "0", "--data", &data, "--seed", &odds.text("file")],
        &["--seed", "is no folder"],
    );
    assert!(!odds.at("data").exists(), "nothing was made");
}

#[test]
fn ports_that_need_rights() {
    // Whoever may listen there sees no refusal.
    if TcpListener::bind("127.0.0.1:81").is_ok() {
        return;
    }
    refused(
        &["serve", "--memory", "--listen", "127.0.0.1:81"],
        &["127.0.0.1:81", "CAP_NET_BIND_SERVICE", "--listen"],
    );
}

#[test]
fn data_that_is_no_folder() {
    let odds = Odds::new();
    let file = odds.text("file");
    refused(&["serve", "--listen", "0", "--data", &file], &[&file, "a file where a folder must be"]);
    refused(
        &["serve", "--listen", "0", "--data", &format!("{file}/below")],
        &["a file where a folder must be"],
    );
    refused(&["verify", "--data", &file], &["is a file", "--data"]);
    refused(&["repair", "--data", &odds.text("none")], &["no data folder", "--data"]);
    std::fs::write(odds.at("folder/FORMAT"), "astrarium storage format 999\n").unwrap();
    refused(
        &["serve", "--listen", "0", "--data", &odds.text("folder")],
        &["format 999", "run the release that wrote it"],
    );
    let data = odds.at("data");
    let first = Program::on(&data, &[]);
    let shown = data.to_str().unwrap();
    refused(&["serve", "--listen", "0", "--data", shown], &["in use by process", "stop that first"]);
    first.stop();
    // Root may write everywhere.
    std::fs::set_permissions(odds.at("folder"), std::fs::Permissions::from_mode(0o500)).unwrap();
    if std::fs::write(odds.at("folder/x"), "").is_err() {
        refused(&["serve", "--listen", "0", "--data", &odds.text("folder/new")], &["has no right to"]);
    }
}

#[test]
fn keys_that_are_none() {
    for (key, what) in [("short", "base64"), ("c2hvcnQ=", "at least 16 bytes")] {
        refused(
            &["serve", "--memory", "--listen", "0", "--key", key],
            &["--key", what, "openssl rand -base64 64"],
        );
    }
}

/// A pipe that nobody writes to, a device without an end, a folder: none of them holds up the start.
#[test]
fn files_that_do_not_end() {
    let odds = Odds::new();
    let emulator = |arguments: &[&str], fragments: &[&str]| {
        let free = [("PORT", "0"), ("HEALTH_PORT", "0"), ("EXPLORER_PORT", "0")];
        refused_with(&free, &[&["emulator"], arguments].concat(), fragments)
    };
    emulator(&["--key-file", &odds.text("pipe")], &["--key-file", "no plain file"]);
    emulator(&["--key-file", "/dev/zero"], &["--key-file", "more than"]);
    emulator(&["--key-file", &odds.text("folder")], &["--key-file", "is a folder"]);
    emulator(&["--cert-path", &odds.text("pipe")], &["--cert-path", "no plain file"]);
    let serve = ["serve", "--memory", "--listen", "0"];
    let (pipe, file) = (odds.text("pipe"), odds.text("file"));
    refused(
        &[&serve[..], &["--tls-certificate", &pipe, "--tls-key", &file]].concat(),
        &["--tls-certificate", "no plain file"],
    );
    let seed = odds.at("seed/d/c");
    std::fs::create_dir_all(&seed).unwrap();
    std::fs::rename(odds.at("pipe"), seed.join("container.json")).unwrap();
    refused(&[&serve[..], &["--seed", &odds.text("seed")]].concat(), &["container.json is no plain file"]);
}

/// A command's output is as good as a file.
#[test]
fn a_key_from_a_pipe() {
    let odds = Odds::new();
    let path = odds.at("pipe");
    let writer = std::thread::spawn(move || {
        std::fs::File::options().write(true).open(path).unwrap().write_all(b"c2hvcnQ=\n").unwrap();
    });
    let free = [("PORT", "0"), ("HEALTH_PORT", "0"), ("EXPLORER_PORT", "0")];
    // It was read, and is too short.
    refused_with(&free, &["emulator", "--key-file", &odds.text("pipe")], &["at least 16 bytes"]);
    writer.join().unwrap();
}

#[test]
fn the_levels_as_the_service_writes_them() {
    for (text, shown) in [
        ("Strong", "Strong"),
        ("BoundedStaleness", "BoundedStaleness"),
        ("bounded-staleness", "BoundedStaleness"),
        ("SESSION", "Session"),
        ("consistentprefix", "ConsistentPrefix"),
        ("Eventual", "Eventual"),
    ] {
        let program = Program::in_memory(&["--consistency", text]);
        let account = program.client().expect(200, &Request::new("GET", "/")).text();
        assert!(account.contains(&format!("\"defaultConsistencyLevel\":\"{shown}\"")), "{text}: {account}");
    }
}

/// A terminal that closes, or a habit of operators: the server goes on, and says why nothing happened.
#[test]
fn a_hangup_ends_no_server() {
    let program = Program::in_memory(&[]);
    let process = rustix::process::Pid::from_raw(program.process_id().cast_signed()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::HUP).unwrap();
    program.client().expect(200, &Request::new("GET", "/dbs"));
    let ended = program.stop();
    assert!(ended.stderr.contains("SIGHUP changes nothing"), "{}", ended.stderr);
}

/// The terminal that the log went to is gone: requests are answered all the same.
#[test]
fn nobody_reads_the_log() {
    let mut child =
        command(&["serve", "--memory", "--listen", "127.0.0.1:0", "--log-requests"]).spawn().unwrap();
    drop(child.stderr.take());
    let mut told = [0; 512];
    let length = child.stdout.as_mut().unwrap().read(&mut told).unwrap();
    let told = String::from_utf8_lossy(&told[..length]).into_owned();
    let address =
        told.split("http://").nth(1).and_then(|rest| rest.split('/').next()).unwrap().parse().unwrap();
    let mut client = astrarium_testkit::Client::of_process(address);
    for _ in 0..3 {
        client.expect(200, &Request::new("GET", "/dbs"));
    }
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    assert!(wait(&mut child), "it ends well");
}

#[test]
fn the_version_names_the_commit() {
    let told = run(&["--version"]).stdout;
    let rest = told.trim_end().strip_prefix(concat!("astrarium ", env!("CARGO_PKG_VERSION"))).unwrap();
    // Built from an archive of the sources there is none.
    let commit = rest.strip_prefix(" (").and_then(|rest| rest.strip_suffix(')'));
    let is_commit = |commit: &str| commit.len() == 12 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(rest.is_empty() || commit.is_some_and(is_commit), "{told}");
}

/// Made from the definitions of the commands, so none is missing.
#[test]
fn completions_and_manual_pages() {
    let commands = ["serve", "emulator", "shell", "import", "store", "completions"];
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]);
        assert!(script.success && commands.iter().all(|name| script.stdout.contains(name)), "{shell}");
        assert!(!script.stdout.contains("script-worker"), "what is hidden is not offered");
        check_syntax(shell, &script);
    }
    refused(&["completions", "tcsh"], &["tcsh", "bash"]);
    let page = run(&["man", "store", "add"]);
    assert!(page.success && page.stdout.contains(".TH astrarium-store-add 1"), "{page:?}");
    assert!(run(&["man"]).stdout.contains("astrarium\\-serve(1)"));
    refused(&["man", "dance"], &["dance", "store add"]);
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    assert!(run(&["man", "--into", pages.to_str().unwrap()]).success);
    for name in commands {
        assert!(pages.join(format!("astrarium-{name}.1")).is_file(), "{name}");
    }
    assert!(pages.join("astrarium.1").is_file() && !pages.join("astrarium-script-worker.1").exists());
}

/// Has the shell read its script without running it, where there is such a shell.
fn check_syntax(shell: &str, script: &Ended) {
    let is_there = |folder: &str| Path::new(folder).join(shell).exists();
    if !["/bin", "/usr/bin"].into_iter().any(is_there) {
        return;
    }
    let mut child = Command::new(shell).arg("-n").stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(script.stdout.as_bytes()).unwrap();
    drop(stdin);
    assert!(wait(&mut child), "{shell} does not read its completions");
}
