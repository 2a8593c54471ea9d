//! The rules of Pod templates, row by row: `rules/pod/*.yaml`.

use stint_rules::rows;
use stint_rules::template::KEYS;

use crate::judge;

#[test]
fn every_row_gets_the_errors_it_lists() {
    let files = rows::files("pod");
    assert!(files.len() >= 10, "rules/pod has lost files: {files:?}");
    for file in files {
        judge::run(&file, 5, &KEYS);
    }
}
