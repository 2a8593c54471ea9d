//! The last lines of a log, found from its end.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::line::Line;
use super::{part_path, parts_of};

/// How much is looked at at once.
const BLOCK: u64 = 64 << 10;

/// The most that a termination message takes from a log: as a kubelet.
const EXCERPT_LINES: u64 = 80;
const EXCERPT_BYTES: usize = 2048;

/// The part and the place in it where the last so many lines begin; none if there are no more
/// lines than that.
pub(super) fn find(folder: &Path, run: u32, lines: u64) -> Option<(u32, u64)> {
    let mut wanted = lines;
    for (i, part) in parts_of(folder, run).into_iter().rev().enumerate() {
        let path = part_path(folder, run, part);
        let mut file = File::open(&path).ok()?;
        let length = file.metadata().ok()?.len();
        if i == 0 && lines == 0 {
            return Some((part, length));
        }
        match find_in(&mut file, length, &mut wanted) {
            Ok(Some(offset)) => return Some((part, offset)),
            Ok(None) => {}
            Err(_) => return None,
        }
    }
    None
}

/// Where the last `wanted` lines of a file begin; if it has fewer, how many are still wanted is
/// left in `wanted`.
fn find_in(file: &mut File, length: u64, wanted: &mut u64) -> io::Result<Option<u64>> {
    let mut end = length;
    let mut block = Vec::new();
    // The end of the last line begins none.
    let mut seen = 0;
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        block.resize(usize::try_from(end - start).expect("a block is small"), 0);
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut block)?;
        for (i, _) in block.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            let after = start + i as u64 + 1;
            if after < length {
                seen += 1;
                if seen == *wanted {
                    return Ok(Some(after));
                }
            }
        }
        end = start;
    }
    let lines_here = if length == 0 { 0 } else { seen + 1 };
    if lines_here >= *wanted {
        return Ok(Some(0));
    }
    *wanted -= lines_here;
    Ok(None)
}

/// The last lines of a run, cut to what a termination message may hold.
pub(super) fn excerpt(folder: &Path, run: u32) -> String {
    let place = find(folder, run, EXCERPT_LINES);
    let first = parts_of(folder, run).first().map(|part| (*part, 0));
    let Some((part, offset)) = place.or(first) else { return String::new() };
    let mut text = Vec::new();
    for part in parts_of(folder, run).into_iter().filter(|it| *it >= part) {
        let Ok(mut file) = File::open(part_path(folder, run, part)) else { continue };
        let mut bytes = Vec::new();
        let offset = if text.is_empty() { offset } else { 0 };
        if file.seek(SeekFrom::Start(offset)).is_err() || file.read_to_end(&mut bytes).is_err() {
            continue;
        }
        for line in bytes.split(|byte| *byte == b'\n').filter_map(Line::read) {
            text.extend_from_slice(line.text);
            if line.is_full {
                text.push(b'\n');
            }
        }
    }
    let start = text.len().saturating_sub(EXCERPT_BYTES);
    String::from_utf8_lossy(&text[start..]).into_owned()
}
