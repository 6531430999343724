//! Text in columns, for people: what `astrarium status` and `astrarium store` print.

use std::fmt::Write as _;

/// Facts, one a line: their names in a column as wide as the longest.
pub(crate) fn facts(facts: &[(&str, String)]) -> String {
    let width = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, value) in facts {
        let _ = writeln!(text, "{name:<width$}  {value}");
    }
    text
}

/// A table: a line of headings, then the rows. Columns of numbers stand to the right.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let columns = headings.len();
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let heading = headings[column].chars().count();
            cells(column).map(|cell| cell.chars().count()).chain([heading]).max().unwrap_or(0)
        })
        .collect();
    let is_right: Vec<bool> =
        (0..columns).map(|column| !rows.is_empty() && cells(column).all(|cell| is_number(cell))).collect();
    let mut text = String::new();
    let headings = headings.iter().map(|heading| (*heading).to_owned()).collect::<Vec<_>>();
    for row in std::iter::once(&headings).chain(rows) {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate().take(columns) {
            let width = widths[column];
            let _ = if is_right[column] {
                write!(line, "{cell:>width$}  ")
            } else {
                write!(line, "{cell:<width$}  ")
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// A time in the largest unit that says enough: `17 s`, `5 min`, `3 h`, `2 d`.
pub(crate) fn duration(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_each_other() {
        let row = |name: &str, count: &str| vec![name.to_owned(), count.to_owned()];
        let text = table(&["name", "count"], &[row("a", "7"), row("longer", "1900")]);
        assert_eq!(text, "name    count\na           7\nlonger   1900\n");
        assert_eq!(
            table(&["name", "count"], &[row("a", "7"), row("b", "-")]),
            "name  count\na     7\nb     -\n"
        );
        assert_eq!(table(&["name"], &[]), "name\n");
        let told = facts(&[("store", "here".to_owned()), ("shards", "7".to_owned())]);
        assert_eq!(told, "store   here\nshards  7\n");
    }

    #[test]
    fn times_are_short() {
        let shown = [3, 119, 120, 7_199, 7_200, 172_799, 172_800].map(duration);
        assert_eq!(shown, ["3 s", "119 s", "2 min", "119 min", "2 h", "47 h", "2 d"]);
    }
}
