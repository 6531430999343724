//! What is printed: tables of medians, and the goals with what was reached.

use std::fmt::Write as _;

/// Goals of all questions asked, in order.
#[derive(Default)]
pub(crate) struct Report {
    goals: Vec<Goal>,
    wrong: Vec<String>,
}

struct Goal {
    text: String,
    reached: f64,
    bound: Bound,
}

/// What a value must be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Report {
    /// Adds a goal and the value that was reached.
    pub(crate) fn goal(&mut self, text: impl Into<String>, reached: f64, bound: Bound) {
        self.goals.push(Goal { text: text.into(), reached, bound });
    }

    /// Notes a wrong answer: what it concerns has no figures, and the run fails in the end.
    pub(crate) fn wrong(&mut self, text: impl Into<String>) {
        self.wrong.push(text.into());
    }

    /// Fails if an answer was wrong.
    pub(crate) fn verdict(&self) -> anyhow::Result<()> {
        anyhow::ensure!(self.wrong.is_empty(), "wrong answers:\n- {}", self.wrong.join("\n- "));
        Ok(())
    }

    /// Prints all goals, and whether each is met.
    pub(crate) fn print_goals(&self) {
        println!("\nGoals");
        for Goal { text, reached, bound } in &self.goals {
            let (met, words) = match bound {
                Bound::AtMost(bound) => (reached <= bound, format!("at most {bound}")),
                Bound::AtLeast(bound) => (reached >= bound, format!("at least {bound}")),
            };
            let mark = if met { "x" } else { " " };
            println!("[{mark}] {text}: {} ({words})", short(*reached));
        }
    }
}

/// A table that prints itself with aligned columns.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(title: &str, columns: &[&str]) -> Table {
        println!("\n{title}");
        Table { rows: vec![columns.iter().map(|name| (*name).to_owned()).collect()] }
    }

    pub(crate) fn row(&mut self, name: &[&str], values: &[f64]) {
        let names = name.iter().map(|name| (*name).to_owned());
        self.rows.push(names.chain(values.iter().map(|value| short(*value))).collect());
    }

    pub(crate) fn print(&self) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|text| text.chars().count()).max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (text, width) in row.iter().zip(&widths) {
                let _ = write!(line, "{text:>width$}  ");
            }
            println!("{}", line.trim_end());
        }
    }
}

/// The value in the middle; the mean of the two for an even number.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[count / 2],
        count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}

/// Three digits are all that measurements on a shared machine can bear; nothing for a value that does not exist.
fn short(value: f64) -> String {
    match value {
        value if value.is_nan() => "-".to_owned(),
        value if value.abs() >= 100.0 => format!("{value:.0}"),
        value if value.abs() >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}
