//! Sets of fields against plain sets of paths.

use std::borrow::Cow;
use std::collections::BTreeSet;

use proptest::prelude::*;
use stint_apiserver::fields::element::Scalar;
use stint_apiserver::fields::set::read_text;
use stint_apiserver::fields::{Element, FieldSet};

type Path = Vec<Element<'static>>;
type Paths = BTreeSet<Path>;

proptest! {
    #[test]
    fn scalars_have_one_order(mut some in proptest::collection::vec(element(), 30..60)) {
        some.sort();
        for (at, one) in some.iter().enumerate() {
            for other in &some[at..] {
                prop_assert!(one <= other, "{one:?} after {other:?}");
                prop_assert_eq!(one.cmp(other), other.cmp(one).reverse());
            }
        }
    }

    #[test]
    fn sets_are_sets_of_paths(a in paths(), b in paths()) {
        let (one, other) = (set(&a), set(&b));
        prop_assert_eq!(of(&one), a.clone());
        prop_assert_eq!(of(&one.clone().union(other.clone())), a.union(&b).cloned().collect::<Paths>());
        let both: Paths = a.intersection(&b).cloned().collect();
        prop_assert_eq!(one.meets(&other), !both.is_empty());
        prop_assert_eq!(of(&one.intersection(&other)), both);
        prop_assert_eq!(of(&one.difference(&other)), a.difference(&b).cloned().collect::<Paths>());
        let is_below = |path: &Path| b.iter().any(|other| path.starts_with(other));
        let left: Paths = a.iter().filter(|path| !is_below(path)).cloned().collect();
        prop_assert_eq!(of(&one.clone().without_below(&other)), left);
        for path in a.union(&b) {
            prop_assert_eq!(one.has(path), a.contains(path));
        }
    }

    #[test]
    fn a_set_is_read_as_it_was_written(a in paths()) {
        let set = set(&a);
        let mut json = String::new();
        set.write(&mut json);
        let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        prop_assert!(value.is_object());
        prop_assert_eq!(of(&read_text(&json).expect("a set")), a);
        // In any order.
        prop_assert_eq!(read_text(&value.to_string()).expect("a set"), set);
    }
}

fn set(paths: &Paths) -> FieldSet<'static> {
    let mut set = FieldSet::default();
    paths.iter().for_each(|path| set.insert(path));
    set
}

fn of(set: &FieldSet<'static>) -> Paths {
    let mut paths = Paths::new();
    set.each(&mut |path| {
        paths.insert(path.iter().map(|element| (*element).clone()).collect());
    });
    paths
}

fn paths() -> impl Strategy<Value = Paths> {
    let path = proptest::collection::vec(element(), 1..4);
    proptest::collection::btree_set(path, 0..12)
}

/// Few enough that they meet, and odd enough.
/// Some are integers, too, and some are equal to several of those when these are made floats.
const FLOATS: [f64; 6] = [-1.0, 0.0, 0.5, 9_007_199_254_740_992.0, 1e20, -1e20];

fn element() -> impl Strategy<Value = Element<'static>> {
    let text = || proptest::sample::select(vec!["", "a", "b", "k:{}", ".", "é\"\\\n", "<&>"]);
    let scalar = prop_oneof![
        text().prop_map(|text| Scalar::Text(Cow::Borrowed(text))),
        (-1_i64..2).prop_map(Scalar::Int),
        ((1_i64 << 53)..(1 << 53) + 3).prop_map(Scalar::Int),
        proptest::sample::select(FLOATS.to_vec()).prop_map(Scalar::Float),
        any::<bool>().prop_map(Scalar::Bool),
    ];
    prop_oneof![
        4 => text().prop_map(|name| Element::Field(Cow::Borrowed(name))),
        2 => (scalar.clone(), scalar.clone()).prop_map(|(a, b)| {
            Element::Key(vec![(Cow::Borrowed("a"), a), (Cow::Borrowed("b"), b)])
        }),
        1 => scalar.prop_map(Element::Value),
        1 => (0_i64..3).prop_map(Element::Index),
    ]
}
