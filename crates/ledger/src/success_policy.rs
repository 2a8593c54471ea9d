//! Whether enough indexes have succeeded.

use stint_api::index_set::IndexSet;
use stint_api::view::{SuccessPolicy, SuccessRule};

/// How far each rule of a success policy is from being met. A new success costs a look-up
/// in each rule, whatever has succeeded before.
#[derive(Clone, Debug)]
pub struct SuccessProgress {
    rules: Vec<RuleProgress>,
    any_success: bool,
}

#[derive(Clone, Debug)]
struct RuleProgress {
    indexes: Option<IndexSet>,
    /// How many successes meet the rule; `None` if none ever do.
    needed: Option<u64>,
    reached: u64,
}

impl SuccessProgress {
    /// The progress of a policy when these indexes have succeeded.
    pub fn new(policy: &SuccessPolicy, completed: &IndexSet) -> Self {
        Self {
            rules: policy.rules.iter().map(|rule| RuleProgress::new(rule, completed)).collect(),
            any_success: !completed.is_empty(),
        }
    }

    /// One more index has succeeded; it had not before.
    pub fn insert(&mut self, index: u32) {
        self.any_success = true;
        for rule in &mut self.rules {
            if rule.indexes.as_ref().is_none_or(|indexes| indexes.contains(index)) {
                rule.reached += 1;
            }
        }
    }

    /// The first rule that is met. Before the first success none is, not even one that
    /// asks for nothing.
    pub fn met(&self) -> Option<usize> {
        let is_met = |rule: &RuleProgress| rule.needed.is_some_and(|needed| rule.reached >= needed);
        self.rules.iter().position(is_met).filter(|_| self.any_success)
    }
}

impl RuleProgress {
    fn new(rule: &SuccessRule, completed: &IndexSet) -> Self {
        let needed = match (&rule.indexes, rule.count) {
            (Some(indexes), _) if indexes.is_empty() => None,
            // A count beyond the list is met by the whole list.
            (Some(indexes), Some(count)) => Some(u64::from(count).min(indexes.count())),
            (Some(indexes), None) => Some(indexes.count()),
            (None, Some(count)) => Some(u64::from(count)),
            (None, None) => None,
        };
        let reached = match &rule.indexes {
            Some(indexes) => indexes.intersection_count(completed),
            None => completed.count(),
        };
        Self { indexes: rule.indexes.clone(), needed, reached }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    fn set(text: &str) -> IndexSet {
        IndexSet::parse_strict(text, 100).expect("the test's own list is well formed")
    }

    fn rule(indexes: Option<&str>, count: Option<u32>) -> SuccessRule {
        SuccessRule { indexes: indexes.map(set), count }
    }

    fn met(rules: Vec<SuccessRule>, completed: &str) -> Option<usize> {
        SuccessProgress::new(&SuccessPolicy { rules }, &set(completed)).met()
    }

    #[test]
    fn rules_are_met_by_their_indexes_their_count_or_both() {
        let leader = || vec![rule(Some("0"), None)];
        assert_eq!(met(leader(), "1-9"), None);
        assert_eq!(met(leader(), "0"), Some(0));
        let any_two = || vec![rule(None, Some(2))];
        assert_eq!(met(any_two(), "7"), None);
        assert_eq!(met(any_two(), "3,7"), Some(0));
        let three_of_four = || vec![rule(Some("1-4"), Some(3))];
        assert_eq!(met(three_of_four(), "1,3,5"), None);
        assert_eq!(met(three_of_four(), "1,3,4"), Some(0));
    }

    #[test]
    fn the_first_rule_that_is_met_wins() {
        let rules = || vec![rule(Some("0"), None), rule(Some("1-9"), Some(5))];
        assert_eq!(met(rules(), "1-5"), Some(1));
        assert_eq!(met(rules(), "0-5"), Some(0));
    }

    #[test]
    fn nothing_is_met_before_the_first_success() {
        assert_eq!(met(vec![rule(None, Some(0))], ""), None);
        assert_eq!(met(vec![rule(None, Some(0))], "4"), Some(0));
        assert_eq!(met(vec![rule(Some(""), None)], "4"), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Success by success comes to the same as looking at all of them at once.
        #[test]
        fn progress_agrees_with_a_fresh_look(
            rules in vec((option::of(vec(0_u32..30, 0..10)), option::of(0_u32..12)), 1..5),
            order in Just((0_u32..30).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let rules = rules
                .into_iter()
                .map(|(indexes, count)| SuccessRule { indexes: indexes.map(IndexSet::from_iter), count })
                .collect();
            let policy = SuccessPolicy { rules };
            let mut completed = IndexSet::new();
            let mut progress = SuccessProgress::new(&policy, &completed);
            for index in order {
                completed.insert(index);
                progress.insert(index);
                prop_assert_eq!(progress.met(), SuccessProgress::new(&policy, &completed).met());
                prop_assert_eq!(progress.met(), plainly_met(&policy, &completed));
            }
        }
    }

    /// The rules as KEP-3998 words them.
    fn plainly_met(policy: &SuccessPolicy, completed: &IndexSet) -> Option<usize> {
        policy.rules.iter().position(|rule| match (&rule.indexes, rule.count) {
            (Some(indexes), _) if indexes.is_empty() => false,
            (Some(indexes), count) => {
                let succeeded = indexes.iter().filter(|&index| completed.contains(index)).count();
                succeeded as u64 == indexes.count()
                    || count.is_some_and(|count| succeeded >= count as usize)
            }
            (None, Some(count)) => completed.count() >= u64::from(count),
            (None, None) => false,
        })
    }
}
