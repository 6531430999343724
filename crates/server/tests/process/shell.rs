//! `astrarium shell` as a part of the program; what it can do is tested in its own crate.

use crate::program::{Program, refused, run};

#[test]
fn the_program_is_a_shell_too() {
    let program = Program::in_memory(&[]);
    let endpoint = format!("http://{}", program.address);
    let made = run(&["shell", &endpoint, "-q", "-c", "mkdb d", "-c", "mkcontainer /d/c /pk"]);
    assert!(made.success, "{made:?}");
    let item = "put {\"id\":\"1\",\"pk\":\"a\",\"n\":12345678901234567890}";
    let ended = run(&["shell", "--endpoint", &endpoint, "--use", "d/c", "-c", item, "-c", "SELECT * FROM c"]);
    assert!(ended.success && ended.stdout.contains("\"n\":12345678901234567890"), "{ended:?}");
    refused(&["shell", &endpoint, "-c", "nonsense"], &["neither a command nor a query"]);
    refused(&["shell", &endpoint, "--endpoint", &endpoint], &["cannot be used with"]);
}
