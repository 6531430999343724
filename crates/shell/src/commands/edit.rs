//! `.edit`: an item in the person's editor, written back only if nobody has changed it meanwhile.
//!
//! Invariant: what was typed in the editor is never lost. The file stays, and is named, unless the server has taken its content or it
//! was not changed.

use super::items::{self, FoundItem};
use crate::failure::ShellFailure;
use crate::json_text::{compact, pretty};
use crate::session::Shell;
use crate::words::{CommandArguments, CommandWord};
use astrarium_client::ItemWrite;
use astrarium_value::json::{Node, Text};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::Command;

/// Most lines of two versions that are compared.
const COMPARED_LINES_MAX: usize = 2_000;

pub(super) async fn edit(shell: &mut Shell, words: Vec<CommandWord>) -> Result<(), ShellFailure> {
    let mut arguments = CommandArguments::sort(words, &["--key"], &[])?;
    let word = arguments.need("the item's id")?;
    arguments.end()?;
    let place = shell.place.follow(&word)?;
    let item = items::find(shell, &place, arguments.option("--key")).await?;
    let before = pretty(&items::without_system(&item.text), 0);
    let mut file = EditedFile::make(&before)?;
    file.open_editor()?;
    let after = file.read()?;
    if compact(&after) == compact(&before) {
        file.is_done = true;
        shell.remark("nothing was changed");
        return Ok(());
    }
    check(&item, &after)?;
    let how = ItemWrite { if_match: item.etag(), minimal: true, ..ItemWrite::default() };
    match item.container.replace(&item.id, &item.key, after.clone(), &how).await {
        Ok(_) => {
            file.is_done = true;
            shell.remark("replaced");
            Ok(())
        }
        Err(error) if error.status() == 412 => conflict(shell, &item, &before, &after).await,
        Err(error) => Err(error.into()),
    }
}

/// Refuses what could not replace the item.
fn check(item: &FoundItem, after: &str) -> Result<(), ShellFailure> {
    let text = Text::parse(after.as_bytes())
        .map_err(|error| ShellFailure::told(format!("what you wrote is no JSON: {error}")))?;
    let id = text.root().get("id").and_then(Node::as_str);
    let (_, key) =
        item.container.key_of(after.as_bytes()).map_err(|error| ShellFailure::told(error.to_string()))?;
    let (_, known) =
        item.container.key_of(&item.text).map_err(|error| ShellFailure::told(error.to_string()))?;
    if id.as_deref() != Some(&item.id) || key != known {
        return Err(ShellFailure::told(
            "id and partition key of an item cannot change; write a new item with put, and remove this one",
        ));
    }
    Ok(())
}

/// Shows what others have changed, and what was to be changed here.
async fn conflict(shell: &mut Shell, item: &FoundItem, before: &str, mine: &str) -> Result<(), ShellFailure> {
    let now = match item.container.read(&item.id, &item.key).await {
        Ok(answer) => pretty(&items::without_system(&answer.body), 0),
        Err(error) if error.status() == 404 => {
            return Err(ShellFailure::told("the item was removed meanwhile; nothing was written"));
        }
        Err(error) => return Err(error.into()),
    };
    let mine = pretty(mine, 0);
    for (title, version) in [("changed by somebody else:", &now), ("changed by you:", &mine)] {
        shell.output.line(title)?;
        for line in differences(before, version) {
            let line = shell.output.for_eyes(&line).into_owned();
            shell.output.line(&line)?;
        }
    }
    Err(ShellFailure::told(
        "somebody else has changed the item meanwhile; nothing was written. Run .edit again and bring both together",
    ))
}

/// The lines that are gone (`-`) and those that are new (`+`).
fn differences(old: &str, new: &str) -> Vec<String> {
    let old: Vec<&str> = old.lines().take(COMPARED_LINES_MAX).collect();
    let new: Vec<&str> = new.lines().take(COMPARED_LINES_MAX).collect();
    // Lengths of the longest common part of the ends from each pair of lines on.
    let width = new.len() + 1;
    let mut common = vec![0_u16; (old.len() + 1) * width];
    for (row, left) in old.iter().enumerate().rev() {
        for (column, right) in new.iter().enumerate().rev() {
            common[row * width + column] = if left == right {
                common[(row + 1) * width + column + 1] + 1
            } else {
                common[(row + 1) * width + column].max(common[row * width + column + 1])
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    let mut lines = Vec::new();
    while row < old.len() || column < new.len() {
        if row < old.len() && column < new.len() && old[row] == new[column] {
            (row, column) = (row + 1, column + 1);
        } else if column == new.len()
            || (row < old.len() && common[(row + 1) * width + column] >= common[row * width + column + 1])
        {
            lines.push(format!("- {}", old[row]));
            row += 1;
        } else {
            lines.push(format!("+ {}", new[column]));
            column += 1;
        }
    }
    lines
}

/// A file that only its owner may read; removed when it is done, named otherwise.
struct EditedFile {
    path: PathBuf,
    is_done: bool,
    is_opened: bool,
}

impl EditedFile {
    fn make(text: &str) -> Result<EditedFile, ShellFailure> {
        let told = |error: std::io::Error| ShellFailure::told(format!("make a file to edit: {error}"));
        let number = astrarium_env::Env::system().random_u64();
        let path = std::env::temp_dir().join(format!("astrarium-{number:016x}.json"));
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(told)?;
        file.write_all(text.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(told)?;
        Ok(EditedFile { path, is_done: false, is_opened: false })
    }

    fn open_editor(&mut self) -> Result<(), ShellFailure> {
        let set = |name: &str| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
        let editor = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned());
        let status =
            Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(&self.path).status();
        match status {
            Ok(status) if status.success() => {
                self.is_opened = true;
                Ok(())
            }
            Ok(status) => {
                self.is_opened = true;
                Err(ShellFailure::told(format!(
                    "the editor {editor:?} ended with {status}; nothing was written"
                )))
            }
            Err(error) => {
                Err(ShellFailure::told(format!("start the editor {editor:?} (set EDITOR): {error}")))
            }
        }
    }

    fn read(&self) -> Result<String, ShellFailure> {
        std::fs::read_to_string(&self.path)
            .map_err(|error| ShellFailure::told(format!("read what you wrote: {error}")))
    }
}

impl Drop for EditedFile {
    fn drop(&mut self) {
        if self.is_done || !self.is_opened {
            let _ = std::fs::remove_file(&self.path);
        } else {
            crate::terminal::tell(&format!("what you wrote is kept in {}", self.path.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_lines() {
        assert_eq!(differences("a\nb\nc", "a\nx\nc\nd"), ["- b", "+ x", "+ d"]);
        assert_eq!(differences("a", "a"), [""; 0]);
        assert_eq!(differences("", "a"), ["+ a"]);
    }

    #[test]
    fn the_servers_own_members_are_left_out() {
        let raw = b"{\"id\":\"1\",\"n\":1.10,\"_rid\":\"x\",\"_ts\":7,\"_mine\":[1, 2]}";
        assert_eq!(items::without_system(raw), "{\"id\":\"1\",\"n\":1.10,\"_mine\":[1, 2]}");
    }
}
