//! Rows as a table that fits a width, and as records where it cannot.
//!
//! In: cells as text, harmless already. Out: lines, none wider than the width. Wide columns give way first; a column keeps at least
//! [`COLUMN_MIN`] cells of the terminal, and where there are too many for that, every row becomes lines of name and value.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Least width of a column that was cut.
const COLUMN_MIN: usize = 6;
/// Between columns.
const GAP: &str = "  ";

/// One value of a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TableCell {
    pub(crate) text: String,
    /// Numbers stand to the right.
    pub(crate) is_number: bool,
}

/// The lines of a table; `width` is the terminal's.
pub(crate) fn lines(columns: &[String], rows: &[Vec<TableCell>], width: Option<usize>) -> Vec<String> {
    let natural: Vec<usize> = (0..columns.len())
        .map(|index| {
            let cells = rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.text.width());
            cells.chain([columns[index].width()]).max().unwrap_or(0).max(1)
        })
        .collect();
    let Some(widths) = fitted(&natural, width.unwrap_or(usize::MAX)) else {
        return records(columns, rows, width.unwrap_or(usize::MAX));
    };
    let heading =
        columns.iter().map(|name| TableCell { text: name.clone(), is_number: false }).collect::<Vec<_>>();
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let mut lines = vec![line(&heading, &widths), rule.join(GAP)];
    lines.extend(rows.iter().map(|row| line(row, &widths)));
    lines
}

/// Widths that sum up to at most `width` with their gaps; none if there is no room.
fn fitted(natural: &[usize], width: usize) -> Option<Vec<usize>> {
    let gaps = GAP.len() * natural.len().saturating_sub(1);
    let room = width.saturating_sub(gaps);
    let total: usize = natural.iter().sum();
    if total <= room {
        return Some(natural.to_vec());
    }
    let least: usize = natural.iter().map(|width| (*width).min(COLUMN_MIN)).sum();
    if least > room {
        return None;
    }
    // The greatest width that all columns may have so that they fit.
    let fits = |most: usize| natural.iter().map(|width| (*width).min(most)).sum::<usize>() <= room;
    let most = (COLUMN_MIN..=room).rev().find(|most| fits(*most)).unwrap_or(COLUMN_MIN);
    let mut widths: Vec<usize> = natural.iter().map(|width| (*width).min(most)).collect();
    let mut left = room - widths.iter().sum::<usize>();
    for (width, natural) in widths.iter_mut().zip(natural) {
        if left > 0 && *width < *natural {
            *width += 1;
            left -= 1;
        }
    }
    Some(widths)
}

fn line(row: &[TableCell], widths: &[usize]) -> String {
    let mut line = String::new();
    let missing = TableCell::default();
    for (index, width) in widths.iter().enumerate() {
        let cell = row.get(index).unwrap_or(&missing);
        let text = cut(&cell.text, *width);
        let padding = " ".repeat(width.saturating_sub(text.width()));
        if index > 0 {
            line.push_str(GAP);
        }
        if cell.is_number {
            line.push_str(&padding);
            line.push_str(&text);
        } else {
            line.push_str(&text);
            line.push_str(&padding);
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// Every row as lines of name and value.
fn records(columns: &[String], rows: &[Vec<TableCell>], width: usize) -> Vec<String> {
    let longest = columns.iter().map(|name| name.width()).max().unwrap_or(0);
    let name_width = longest.min((width / 3).max(1));
    let value_width = width.saturating_sub(name_width + GAP.len()).max(1);
    let mut lines = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        if number > 0 {
            lines.push(String::new());
        }
        for (name, cell) in columns.iter().zip(row).filter(|(_, cell)| !cell.text.is_empty()) {
            let name = cut(name, name_width);
            let padding = " ".repeat(name_width.saturating_sub(name.width()));
            let line = format!("{name}{padding}{GAP}{}", cut(&cell.text, value_width));
            lines.push(cut(&line, width));
        }
    }
    lines
}

/// Text of at most so many cells; what is cut ends with an ellipsis.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut taken = 0;
    for character in text.chars() {
        let own = character.width().unwrap_or(0);
        if taken + own + 1 > width {
            break;
        }
        taken += own;
        shown.push(character);
    }
    if width > 0 {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(text: &str) -> TableCell {
        TableCell { text: text.to_owned(), is_number: text.parse::<f64>().is_ok() }
    }

    fn shown(columns: &[&str], rows: &[&[&str]], width: usize) -> Vec<String> {
        let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        let rows: Vec<Vec<TableCell>> =
            rows.iter().map(|row| row.iter().map(|text| cell(text)).collect()).collect();
        lines(&columns, &rows, Some(width))
    }

    #[test]
    fn tables_fit() {
        assert_eq!(
            shown(&["id", "pages"], &[&["1", "66"], &["abc", "7"]], 40),
            ["id   pages", "---  -----", "  1     66", "abc      7"]
        );
        let long = "x".repeat(300);
        for width in [1, 8, 20, 40, 41, 80, 200] {
            let lines = shown(
                &["id", "a long name of a column", "漢字"],
                &[&["1", &long, "漢字漢字漢字漢字"], &[&long, "2", "3"]],
                width,
            );
            assert!(lines.iter().all(|line| line.width() <= width), "{width}: {lines:?}");
        }
        let many: Vec<String> = (0..30).map(|number| format!("column{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let lines = shown(&many, &[&many], 40);
        assert_eq!(lines.len(), 30, "a record has a line for each column: {lines:?}");
        assert!(lines.iter().all(|line| line.width() <= 40));
        assert!(shown(&["a"], &[], 40).len() == 2);
    }

    #[test]
    fn cuts() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(cut("漢字漢", 4), "漢…");
        assert_eq!(cut("ab", 0), "");
    }
}
