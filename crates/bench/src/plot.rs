//! Rows of a report as a picture: bars, with the least and the most as a thin line. Where several
//! do the same work, each work has a scale of its own; else all rows share one.

use std::fmt::Write as _;

use crate::contest::words;
use crate::metric::Metric;
use crate::report::Row;
use crate::spread::Spread;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 250.0;
/// How long the longest bar is; what it stands for is written behind it.
const BAR: f64 = 360.0;
const LINE: f64 = 24.0;
const TITLE: f64 = 30.0;

/// One bar after another, on one scale.
struct Panel<'a> {
    title: String,
    bars: Vec<(String, &'a Spread)>,
}

/// The picture.
pub(crate) fn svg(about: &str, metric: &Metric, rows: &[Row]) -> String {
    let panels = panels(metric, rows);
    let lines: usize = panels.iter().map(|panel| panel.bars.len()).sum();
    let height = TITLE * (panels.len() + 1) as f64 + LINE * lines as f64 + 16.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"20\" font-weight=\"bold\">{}</text>\n",
        escaped(about)
    );
    let mut y = TITLE;
    for panel in &panels {
        let title = escaped(&panel.title);
        let _ = writeln!(text, "<text x=\"10\" y=\"{}\" fill=\"#444\">{title}</text>", y + 20.0);
        y += TITLE;
        let longest = panel.bars.iter().map(|(_, spread)| spread.most).fold(0.0, f64::max);
        for (name, spread) in &panel.bars {
            text.push_str(&bar(name, spread, metric, longest, y));
            y += LINE;
        }
    }
    text.push_str("</svg>\n");
    text
}

fn panels<'a>(metric: &Metric, rows: &'a [Row]) -> Vec<Panel<'a>> {
    let shown = |row: &'a Row| row.figure(metric).map(|spread| (row, spread));
    let is_contest = rows.windows(2).any(|pair| pair[0].work == pair[1].work);
    if !is_contest {
        let bars = rows.iter().filter_map(shown);
        let bars = bars.map(|(row, spread)| (words(&row.work), spread)).collect();
        return vec![Panel { title: metric.head.to_owned(), bars }];
    }
    let groups = rows.chunk_by(|one, other| one.work == other.work);
    let panel = |group: &'a [Row]| {
        let bars = group.iter().filter_map(shown);
        let bars = bars.map(|(row, spread)| (row.who.clone(), spread)).collect();
        Panel { title: format!("{}: {}", words(&group[0].work), metric.head), bars }
    };
    groups.map(panel).filter(|panel: &Panel<'_>| !panel.bars.is_empty()).collect()
}

fn bar(name: &str, spread: &Spread, metric: &Metric, longest: f64, y: f64) -> String {
    let length = |value: f64| if longest > 0.0 { value / longest * BAR } else { 0.0 };
    let (middle, top) = (y + LINE / 2.0, y + 4.0);
    let (least, most) = (LEFT + length(spread.least), LEFT + length(spread.most));
    format!(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n\
         <rect x=\"{LEFT}\" y=\"{top}\" width=\"{:.1}\" height=\"{}\" fill=\"#4878a8\"/>\n\
         <line x1=\"{least:.1}\" x2=\"{most:.1}\" y1=\"{middle}\" y2=\"{middle}\" stroke=\"#222\"/>\n\
         <text x=\"{:.1}\" y=\"{}\">{}</text>\n",
        LEFT - 8.0,
        middle + 4.0,
        escaped(name),
        length(spread.median),
        LINE - 8.0,
        most + 8.0,
        middle + 4.0,
        escaped(&metric.unit.text(spread.median)),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::metric::WALL;

    fn row(work: u64, who: &str, seconds: f64) -> Row {
        let figures = vec![(WALL, Spread::of(vec![seconds]))];
        Row { work: vec![("commands", json!(work))], who: who.to_owned(), figures }
    }

    #[test]
    fn each_work_has_its_own_scale_where_several_do_it() {
        let rows =
            [row(10, "a", 1.0), row(10, "b<c", 0.5), row(100, "a", 9.0), row(100, "b<c", 9.0)];
        let text = svg("What & how", &WALL, &rows);
        assert_eq!(text.matches("<rect x=").count(), 4);
        assert_eq!(text.matches("width=\"360.0\"").count(), 3, "the longest of each: {text}");
        assert!(text.contains("commands 100: time") && text.contains("What &amp; how"));
        assert!(text.contains(">b&lt;c<") && text.ends_with("</svg>\n"));
    }

    #[test]
    fn sizes_of_one_share_a_scale() {
        let text = svg("Sizes", &WALL, &[row(10, "a", 1.0), row(100, "a", 2.0)]);
        assert!(text.contains("width=\"180.0\"") && text.contains("commands 100<"), "{text}");
    }
}
