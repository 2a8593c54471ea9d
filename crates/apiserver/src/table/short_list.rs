//! A list that is cut after three items, as in `10.0.0.1,10.0.0.2,10.0.0.3 + 2 more...`.

/// How many items are shown.
const SHOWN: usize = 3;

/// The first items, and how many more there are.
pub(super) fn join(items: impl Iterator<Item = String>) -> String {
    let mut items = items.fuse();
    let shown: Vec<String> = items.by_ref().take(SHOWN).collect();
    let joined = shown.join(",");
    match items.count() {
        0 => joined,
        more => format!("{joined} + {more} more..."),
    }
}
