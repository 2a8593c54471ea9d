//! What a benchmark has found: as a table, as JSON, and as plots.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::contest::{Rounds, Work};
use crate::error::BenchError;
use crate::machine::Machine;
use crate::metric::{Metric, WALL};
use crate::plot;
use crate::spread::Spread;
use crate::table::table;

/// The stint that is measured.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The program.
    pub program: PathBuf,
    /// Which one it is, in words.
    pub version: String,
}

/// What one entrant has made of a piece of work.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) work: Work,
    pub(crate) who: String,
    pub(crate) figures: Vec<(Metric, Spread)>,
}

impl Row {
    pub(crate) fn figure(&self, metric: &Metric) -> Option<&Spread> {
        self.figures.iter().find(|(it, _)| it == metric).map(|(_, spread)| spread)
    }
}

/// What a benchmark has found.
#[derive(Clone, Debug)]
pub struct Report {
    name: &'static str,
    /// What is measured, in a sentence.
    about: &'static str,
    rounds: Rounds,
    machine: Machine,
    versions: Vec<(String, String)>,
    rows: Vec<Row>,
    notes: Vec<String>,
    /// What the plot shows.
    plotted: Metric,
}

impl Report {
    pub(crate) fn new(
        name: &'static str,
        about: &'static str,
        rounds: Rounds,
        subject: &Subject,
    ) -> Self {
        let versions = vec![("stint".to_owned(), subject.version.clone())];
        let (rows, notes) = (Vec::new(), Vec::new());
        let machine = Machine::look();
        Report { name, about, rounds, machine, versions, rows, notes, plotted: WALL }
    }

    /// Another metric than the time for the plot.
    pub(crate) fn plotting(mut self, metric: Metric) -> Self {
        self.plotted = metric;
        self
    }

    pub(crate) fn add_version(&mut self, program: &str, version: String) {
        self.versions.push((program.to_owned(), version));
    }

    pub(crate) fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    pub(crate) fn add(&mut self, rows: Vec<Row>) {
        self.rows.extend(rows);
    }

    /// All is measured.
    pub(crate) fn finish(mut self) -> Self {
        self.machine.look_again();
        self
    }

    /// For people.
    pub fn text(&self) -> String {
        let Rounds { warmups, repetitions } = self.rounds;
        let mut text = format!("{}: {}\n\n", self.name, self.about);
        text.push_str(&table(&self.rows));
        text.push_str(&format!(
            "\nMedians of {repetitions} after {warmups} to warm up; in brackets the least and the most.\n"
        ));
        text.push_str(&format!("Machine: {}\n", self.machine.words()));
        for (program, version) in &self.versions {
            text.push_str(&format!("Version: {program} {version}\n"));
        }
        for note in &self.notes {
            text.push_str(&format!("Note: {note}\n"));
        }
        text
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let versions = self.versions.iter().map(|(name, version)| (name.clone(), json!(version)));
        let results: Vec<Value> = self.rows.iter().map(|row| self.row_json(row)).collect();
        json!({
            "benchmark": self.name,
            "about": self.about,
            "warmups": self.rounds.warmups,
            "repetitions": self.rounds.repetitions,
            "machine": self.machine.json(),
            "versions": versions.collect::<Map<_, _>>(),
            "notes": self.notes,
            "results": results,
        })
    }

    fn row_json(&self, row: &Row) -> Value {
        let work = row.work.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let figures = row.figures.iter().map(|(metric, it)| (metric.key.to_string(), it.json()));
        let mut value = json!({
            "work": work.collect::<Map<_, _>>(),
            "who": row.who,
            "figures": figures.collect::<Map<_, _>>(),
        });
        if let Some(ratio) = ratio(&self.rows, row) {
            value["time_ratio"] = json!(ratio);
        }
        value
    }

    /// Draws what was measured into a folder, and answers with the file.
    ///
    /// # Errors
    ///
    /// [`BenchError::File`] if it cannot be written.
    pub fn draw(&self, folder: &Path) -> Result<PathBuf, BenchError> {
        let file = folder.join(format!("{}.svg", self.name));
        let text = plot::svg(self.about, &self.plotted, &self.rows);
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&file, text));
        written.map_err(|source| BenchError::File { path: file.clone(), source })?;
        Ok(file)
    }
}

/// The time of a row against that of the first one with the same work, if there are several.
pub(crate) fn ratio(rows: &[Row], row: &Row) -> Option<f64> {
    let mut same = rows.iter().filter(|it| it.work == row.work);
    let first = same.next()?.figure(&WALL)?;
    same.next()?;
    Some(row.figure(&WALL)?.median / first.median)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::PEAK;

    fn row(work: u64, who: &str, seconds: f64) -> Row {
        let figures = vec![
            (WALL, Spread::of(vec![seconds, seconds * 2.0, seconds * 3.0])),
            (PEAK, Spread::of(vec![1_048_576.0])),
        ];
        Row { work: vec![("commands", json!(work))], who: who.to_owned(), figures }
    }

    fn report() -> Report {
        let subject = Subject { program: PathBuf::from("stint"), version: "1.2.3".to_owned() };
        let rounds = Rounds { warmups: 1, repetitions: 3 };
        let mut report = Report::new("process", "Short commands.", rounds, &subject);
        report.add_version("xargs", "4.9".to_owned());
        report.note("GNU parallel is not installed".to_owned());
        report.add(vec![row(1000, "stint run", 1.0), row(1000, "xargs", 0.5)]);
        report.add(vec![row(10, "stint run", 0.1)]);
        report.finish()
    }

    #[test]
    fn json_has_everything_with_its_unit() {
        let json = report().json();
        assert_eq!(json["benchmark"], "process");
        assert_eq!(json["versions"]["xargs"], "4.9");
        assert_eq!(json["results"][1]["work"]["commands"], 1000);
        let wall = &json["results"][1]["figures"]["wall_seconds"];
        assert_eq!((&wall["median"], &wall["max"]), (&json!(1.0), &json!(1.5)));
        assert_eq!(json["results"][1]["time_ratio"], 0.5);
        assert!(json["results"][2].get("time_ratio").is_none(), "there is nobody to compare with");
        assert!(json["machine"]["cores"].as_u64().is_some_and(|cores| cores > 0));
    }

    #[test]
    fn a_table_has_a_line_for_each_row() {
        let text = report().text();
        let line = text.lines().find(|line| line.contains("xargs")).expect("a line");
        let expected = "1,000     xargs      1.00 s [500 ms, 1.50 s]       0.50x   1.0 MiB";
        assert_eq!(
            line.split_whitespace().collect::<Vec<_>>(),
            expected.split_whitespace().collect::<Vec<_>>()
        );
        assert!(text.contains("Note: GNU parallel is not installed"), "{text}");
    }
}
