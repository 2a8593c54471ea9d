//! The index set against a plain `BTreeSet`, and its text row by row.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn set(text: &str) -> IndexSet {
    IndexSet::parse_strict(text, i32::MAX as u32).expect("the test's own text is well formed")
}

#[test]
fn the_text_is_canonical() {
    let rows = [
        (vec![], ""),
        (vec![0], "0"),
        (vec![3, 4], "3,4"),
        (vec![3, 4, 5], "3-5"),
        (vec![1, 3, 4, 5, 7], "1,3-5,7"),
        (vec![7, 5, 1, 4, 3, 3], "1,3-5,7"),
        (vec![0, 1, 3, 4, 2147483646], "0,1,3,4,2147483646"),
    ];
    for (indexes, expected) in rows {
        assert_eq!(IndexSet::from_iter(indexes).to_string(), expected);
    }
}

#[test]
fn strict_parsing_names_the_fragment_that_is_wrong() {
    let rows = [
        ("", 5, Ok("")),
        ("0", 1, Ok("0")),
        ("0-4", 5, Ok("0-4")),
        ("0-1", 5, Ok("0,1")),
        ("1,2,3", 5, Ok("1-3")),
        ("+1,02-3", 5, Ok("1-3")),
        ("5", 5, Err("too large index: \"5\"")),
        ("0", 0, Err("too large index: \"0\"")),
        ("0-5", 5, Err("too large index: \"5\"")),
        ("5-6", 5, Err("too large index: \"5\"")),
        ("2147483647", i32::MAX as u32, Err("too large index: \"2147483647\"")),
        ("99999999999", 5, Err("too large index: \"99999999999\"")),
        (
            "99999999999999999999",
            5,
            Err("cannot convert string to integer for index: \"99999999999999999999\""),
        ),
        ("a", 5, Err("cannot convert string to integer for index: \"a\"")),
        (",", 5, Err("cannot convert string to integer for index: \"\"")),
        ("1,", 5, Err("cannot convert string to integer for index: \"\"")),
        ("-1", 5, Err("cannot convert string to integer for index: \"\"")),
        ("1-", 5, Err("cannot convert string to integer for index: \"\"")),
        (" 1", 5, Err("cannot convert string to integer for index: \" 1\"")),
        ("1-x", 5, Err("cannot convert string to integer for index: \"x\"")),
        ("1_0", 50, Err("cannot convert string to integer for index: \"1_0\"")),
        (
            "1-2-3",
            5,
            Err(
                "the fragment \"1-2-3\" violates the requirement that an index interval can have at most two parts separated by '-'",
            ),
        ),
        ("1,1", 5, Err("non-increasing order, previous: 1, current: 1")),
        ("3,1", 5, Err("non-increasing order, previous: 3, current: 1")),
        ("0-3,3", 5, Err("non-increasing order, previous: 3, current: 3")),
        ("3-2", 5, Err("non-increasing order, previous: 3, current: 2")),
        ("2-2", 5, Err("non-increasing order, previous: 2, current: 2")),
    ];
    for (text, completions, expected) in rows {
        let parsed = IndexSet::parse_strict(text, completions);
        let rendered = parsed.map(|set| set.to_string()).map_err(|error| error.to_string());
        assert_eq!(rendered, expected.map(str::to_owned).map_err(str::to_owned), "for {text:?}");
    }
}

#[test]
fn lenient_parsing_skips_what_is_corrupt_and_cuts_at_completions() {
    let rows = [
        ("", 5, ""),
        ("0-3,x,5", 10, "0-3,5"),
        ("0-3,5-x,7", 10, "0-3,7"),
        ("1-2-3,4", 10, "4"),
        ("3-2,1", 10, "1"),
        ("7,1,3,2", 10, "1-3,7"),
        ("1-4,3-6", 10, "1-6"),
        ("0-9", 5, "0-4"),
        ("3-20,30", 5, "3,4"),
        ("7", 5, ""),
        ("0-99999999999", 5, "0-4"),
        ("0-99999999999999999999", 5, ""),
        ("0", 0, ""),
        (",,,", 5, ""),
    ];
    for (text, completions, expected) in rows {
        assert_eq!(
            IndexSet::parse_lenient(text, completions).to_string(),
            expected,
            "for {text:?} below {completions}"
        );
    }
}

#[test]
fn the_whole_range_of_indexes_costs_one_interval() {
    let limit = i32::MAX as u32;
    let mut all = set("0-2147483646");
    assert_eq!((all.count(), all.interval_count()), (2_147_483_647, 1));
    assert_eq!(all, IndexSet::below(limit));
    assert!(all.contains(2_147_483_646));
    assert!(all.complement(limit).is_empty());
    assert_eq!(IndexSet::new().complement(limit), all);
    assert!(all.remove(1_000_000_000));
    assert_eq!(all.to_string(), "0-999999999,1000000001-2147483646");
    assert_eq!(all.first_missing(3, limit), [1_000_000_000]);
    assert_eq!(all.intersection_count(&IndexSet::below(limit)), 2_147_483_646);
    all.cut(10);
    assert_eq!(all.to_string(), "0-9");
}

#[test]
fn the_highest_index_is_the_last_there_is() {
    let mut set = IndexSet::new();
    assert!(set.insert(2_147_483_646));
    assert_eq!(IndexSet::below(u32::MAX), IndexSet::below(2_147_483_647));
    assert_eq!(set.complement(u32::MAX).to_string(), "0-2147483645");
    for beyond in [2_147_483_647, u32::MAX] {
        let mut set = set.clone();
        assert!(std::panic::catch_unwind(move || set.insert(beyond)).is_err(), "{beyond}");
    }
}

#[test]
fn the_lowest_missing_indexes_come_first() {
    let some = set("0,2-4,8");
    assert_eq!(some.first_missing(3, 100), [1, 5, 6]);
    assert_eq!(some.first_missing(10, 9), [1, 5, 6, 7]);
    assert!(some.first_missing(0, 9).is_empty());
    assert!(some.first_missing(5, 0).is_empty());
    assert!(some.first_missing(5, 1).is_empty());
    assert_eq!(some.complement(12).to_string(), "1,5-7,9-11");
    assert_eq!(IndexSet::below(0), IndexSet::new());
}

#[test]
fn two_sets_know_the_first_index_they_share() {
    assert_eq!(set("0-3,7").first_common(&set("4-9")), Some(7));
    assert_eq!(set("0-3").first_common(&set("4-9")), None);
    assert_eq!(set("").first_common(&set("4-9")), None);
}

/// One change to a set.
#[derive(Clone, Debug)]
enum Change {
    Insert(u32),
    Remove(u32),
    Cut(u32),
    Union(Vec<u32>),
}

fn change(limit: u32) -> impl Strategy<Value = Change> {
    prop_oneof![
        8 => (0..limit).prop_map(Change::Insert),
        4 => (0..limit).prop_map(Change::Remove),
        1 => (limit / 2..limit + 2).prop_map(Change::Cut),
        1 => vec(0..limit, 0..40).prop_map(Change::Union),
    ]
}

/// Small ranges make intervals join and split; large ones make many chunks.
fn changes() -> impl Strategy<Value = Vec<Change>> {
    prop_oneof![vec(change(60), 0..200), vec(change(100_000), 0..3_000)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_change_does_what_it_does_to_a_plain_set(changes in changes()) {
        let (mut set, mut model) = (IndexSet::new(), BTreeSet::new());
        for change in &changes {
            match change {
                Change::Insert(index) => prop_assert_eq!(set.insert(*index), model.insert(*index)),
                Change::Remove(index) => prop_assert_eq!(set.remove(*index), model.remove(index)),
                Change::Cut(limit) => {
                    set.cut(*limit);
                    model.retain(|index| index < limit);
                }
                Change::Union(indexes) => {
                    set.union(&indexes.iter().copied().collect());
                    model.extend(indexes);
                }
            }
            prop_assert_eq!(set.count(), model.len() as u64);
        }
        assert_shape(&set);
        prop_assert!(set.iter().eq(model.iter().copied()));
        prop_assert_eq!(set.first(), model.first().copied());
        prop_assert_eq!(set.last(), model.last().copied());
        for probe in (0..200).chain(99_000..99_100) {
            prop_assert_eq!(set.contains(probe), model.contains(&probe));
        }
    }

    #[test]
    fn the_text_reads_back_as_the_same_set(indexes in vec(0_u32..500, 0..300)) {
        let set: IndexSet = indexes.iter().copied().collect();
        let text = set.to_string();
        prop_assert_eq!(&IndexSet::parse_strict(&text, 500).unwrap(), &set);
        prop_assert_eq!(&IndexSet::parse_lenient(&text, 500), &set);
    }

    #[test]
    fn sets_of_two_relate_as_plain_sets_do(
        one in vec(0_u32..300, 0..200),
        two in vec(0_u32..300, 0..200),
        limit in 0_u32..320,
        count in 0_usize..50,
    ) {
        let (set_one, set_two): (IndexSet, IndexSet) =
            (one.iter().copied().collect(), two.iter().copied().collect());
        let (one, two): (BTreeSet<u32>, BTreeSet<u32>) =
            (one.into_iter().collect(), two.into_iter().collect());
        let common: Vec<u32> = one.intersection(&two).copied().collect();
        prop_assert_eq!(set_one.intersection_count(&set_two), common.len() as u64);
        prop_assert_eq!(set_one.first_common(&set_two), common.first().copied());
        let mut both = set_one.clone();
        both.union(&set_two);
        assert_shape(&both);
        prop_assert!(both.iter().eq(one.union(&two).copied()));
        let missing: Vec<u32> = (0..limit).filter(|index| !one.contains(index)).collect();
        prop_assert!(set_one.complement(limit).iter().eq(missing.iter().copied()));
        prop_assert_eq!(
            set_one.first_missing(count, limit),
            missing.into_iter().take(count).collect::<Vec<_>>()
        );
    }

    #[test]
    fn no_text_breaks_the_parsers(text in "[0-9,+x-]{0,60}", completions in 0_u32..200) {
        let lenient = IndexSet::parse_lenient(&text, completions);
        assert_shape(&lenient);
        prop_assert!(lenient.last().is_none_or(|last| last < completions));
        if let Ok(strict) = IndexSet::parse_strict(&text, completions) {
            prop_assert_eq!(strict, lenient);
        }
    }
}

/// Intervals are sorted and apart, chunks are neither empty nor too full, and the
/// counts are those of what is there.
fn assert_shape(set: &IndexSet) {
    let intervals: Vec<Interval> = set.intervals().collect();
    assert!(intervals.windows(2).all(|pair| pair[0].last + 1 < pair[1].first), "{set:?}");
    assert!(intervals.iter().all(|interval| interval.first <= interval.last), "{set:?}");
    assert_eq!(intervals.iter().map(|interval| interval.count()).sum::<u64>(), set.count);
    assert_eq!(intervals.len(), set.interval_count);
    assert_eq!(set.firsts.len(), set.chunks.len());
    for (first, chunk) in set.firsts.iter().zip(&set.chunks) {
        assert!((1..=CHUNK_MAX).contains(&chunk.len()));
        assert_eq!(*first, chunk[0].first);
    }
}
