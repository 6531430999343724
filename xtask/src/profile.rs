//! Lengths of files and functions, beside what good looks like.

use crate::sources;

pub(crate) fn run() -> anyhow::Result<bool> {
    let mut files = Vec::new();
    let mut functions = Vec::new();
    for path in sources::rust_files()? {
        let text = sources::read(&path)?;
        files.push((text.lines().count(), sources::shown(&path)));
        for function in sources::functions(&text) {
            functions.push((
                function.length,
                format!("{}:{} {}", sources::shown(&path), function.line, function.name),
            ));
        }
    }
    print("files", "median about 150 lines, 95 % under 700", &mut files);
    print("functions", "median under 10 lines, 95 % under 50", &mut functions);
    Ok(true)
}

fn print(what: &str, aim: &str, lengths: &mut [(usize, String)]) {
    lengths.sort();
    let at = |part: f64| lengths.get((lengths.len() as f64 * part) as usize).map_or(0, |(length, _)| *length);
    println!("{what}: {} of them, median {}, 95 % under {} (aim: {aim})", lengths.len(), at(0.5), at(0.95));
    for (length, name) in lengths.iter().rev().take(5) {
        println!("  {length:5} {name}");
    }
}
