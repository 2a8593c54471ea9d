//! Any course of events against a slow reference: a world of objects in which the graph's ops
//! are carried out, and a function that says by looking at all of it what there is to be done.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use object::Owners;

const OTHER: &str = "example.com/other";

/// An owner reference: to the object that was made so many objects ago, and what is wrong
/// with it.
#[derive(Clone, Debug)]
struct Reference {
    back: usize,
    wrong: Wrong,
    blocks: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Nothing,
    Name,
    Kind,
    /// The kind is not served.
    Foreign,
}

#[derive(Clone, Debug)]
enum Step {
    Create {
        kind: usize,
        namespace: usize,
        owners: Vec<Reference>,
    },
    SetOwners {
        back: usize,
        owners: Vec<Reference>,
    },
    Touch {
        back: usize,
    },
    Hold {
        back: usize,
    },
    LetGo {
        back: usize,
    },
    Delete {
        back: usize,
        propagation: Propagation,
    },
    /// The news of a kind arrive: so many of them.
    Deliver {
        kind: usize,
        count: usize,
    },
    /// The watch of a kind is lost: there is a new list in place of news.
    Relist {
        kind: usize,
    },
    /// The graph is asked so many times, and every so many-th op is refused.
    Run {
        count: usize,
        refused: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let wrong = prop_oneof![
        8 => Just(Wrong::Nothing),
        1 => Just(Wrong::Name),
        1 => Just(Wrong::Kind),
        1 => Just(Wrong::Foreign),
    ];
    let reference = (0..6usize, wrong, any::<bool>()).prop_map(|(back, wrong, blocks)| Reference {
        back,
        wrong,
        blocks,
    });
    let owners = vec(reference, 0..3);
    let propagation = prop_oneof![
        Just(Propagation::Background),
        Just(Propagation::Foreground),
        Just(Propagation::Orphan)
    ];
    let back = 0..8usize;
    let step = prop_oneof![
        6 => (0..3usize, 0..2usize, owners.clone())
            .prop_map(|(kind, namespace, owners)| Step::Create { kind, namespace, owners }),
        2 => (back.clone(), owners).prop_map(|(back, owners)| Step::SetOwners { back, owners }),
        1 => back.clone().prop_map(|back| Step::Touch { back }),
        1 => back.clone().prop_map(|back| Step::Hold { back }),
        1 => back.clone().prop_map(|back| Step::LetGo { back }),
        4 => (back, propagation).prop_map(|(back, propagation)| Step::Delete { back, propagation }),
        4 => (0..3usize, 1..9usize).prop_map(|(kind, count)| Step::Deliver { kind, count }),
        1 => (0..3usize).prop_map(|kind| Step::Relist { kind }),
        4 => (1..9usize, 2..5usize).prop_map(|(count, refused)| Step::Run { count, refused }),
    ];
    vec(step, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// With all news at hand, each op is one that the reference asks for, and in the end it
    /// asks for nothing.
    #[test]
    fn the_graph_does_what_the_reference_says(steps in steps()) {
        World::new(false).play(&steps);
    }

    /// However late the news are, nothing is deleted that has an owner whom nobody has deleted,
    /// and in the end there is nothing left to be done.
    #[test]
    fn late_news_do_no_harm(steps in steps()) {
        World::new(true).play(&steps);
    }
}

/// The objects there are, what the graph has not been told yet, and the graph.
struct World {
    objects: BTreeMap<String, Thing>,
    /// All that were ever made.
    made: Vec<Thing>,
    version: u64,
    news: [VecDeque<News>; 3],
    graph: Graph,
    now: Instant,
    is_late: bool,
    ops: usize,
}

#[derive(Clone, Debug)]
struct Thing {
    kind: usize,
    meta: ObjectMeta,
}

enum News {
    Seen(ObjectMeta),
    Gone(ObjectMeta),
}

impl World {
    fn new(is_late: bool) -> Self {
        let mut graph = Graph::new(kinds());
        for kind in 0..3 {
            graph.begin(KindId(kind));
            graph.complete(KindId(kind));
        }
        World {
            objects: BTreeMap::new(),
            made: Vec::new(),
            version: 0,
            news: Default::default(),
            graph,
            now: Instant::now(),
            is_late,
            ops: 0,
        }
    }

    fn play(mut self, steps: &[Step]) {
        for step in steps {
            self.step(step);
            if !self.is_late {
                self.deliver_all();
            }
        }
        // In the end nobody holds anything.
        for back in 0..self.made.len() {
            self.step(&Step::LetGo { back });
        }
        for _ in 0..40 {
            self.deliver_all();
            self.run(usize::MAX, usize::MAX);
            self.now += Duration::from_secs(60);
        }
        self.deliver_all();
        assert_eq!(self.expected(), BTreeSet::new(), "{:#?}", self.objects);
        self.check_records();
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Create { kind, namespace, owners } => self.create(*kind, *namespace, owners),
            Step::SetOwners { back, owners } => {
                let owners = self.references(owners);
                self.change(*back, |meta| meta.owner_references = Some(owners));
            }
            Step::Touch { back } => self.change(*back, |_| {}),
            Step::Hold { back } => self.change(*back, |meta| {
                if meta.deletion_timestamp.is_none() {
                    meta.finalizers.get_or_insert_default().push(OTHER.to_owned());
                }
            }),
            Step::LetGo { back } => self.change(*back, |meta| {
                meta.finalizers.get_or_insert_default().retain(|finalizer| finalizer != OTHER);
            }),
            Step::Delete { back, propagation } => {
                self.change(*back, |meta| delete(meta, *propagation));
            }
            Step::Deliver { kind, count } => self.deliver(*kind, *count),
            Step::Relist { kind } => {
                self.news[*kind].clear();
                self.graph.begin(KindId(*kind));
                for thing in self.objects.values().filter(|thing| thing.kind == *kind) {
                    self.graph.see(KindId(*kind), &thing.meta);
                }
                self.graph.complete(KindId(*kind));
            }
            Step::Run { count, refused } => self.run(*count, *refused),
        }
    }

    fn create(&mut self, kind: usize, namespace: usize, owners: &[Reference]) {
        let count = self.made.len();
        let namespace = kinds()[kind].is_namespaced.then(|| format!("n{namespace}"));
        self.version += 1;
        let meta = ObjectMeta {
            name: Some(format!("o{count}")),
            namespace,
            uid: Some(format!("u{count:04}")),
            resource_version: Some(self.version.to_string()),
            owner_references: Some(self.references(owners)),
            ..ObjectMeta::default()
        };
        let thing = Thing { kind, meta };
        self.made.push(thing.clone());
        self.objects.insert(name_of(&thing.meta), thing.clone());
        self.news[kind].push_back(News::Seen(thing.meta));
    }

    fn references(&self, owners: &[Reference]) -> Vec<OwnerReference> {
        let count = self.made.len();
        let found = owners.iter().filter(|owner| owner.back < count);
        found.map(|owner| reference(&self.made[count - 1 - owner.back], owner)).collect()
    }

    /// Changes an object, if it is there, and removes it if nothing keeps it.
    fn change(&mut self, back: usize, change: impl FnOnce(&mut ObjectMeta)) {
        let Some(place) = self.made.len().checked_sub(1 + back) else { return };
        let name = name_of(&self.made[place].meta);
        self.change_named(&name, change);
    }

    fn change_named(&mut self, name: &str, change: impl FnOnce(&mut ObjectMeta)) {
        let Some(thing) = self.objects.get_mut(name) else { return };
        self.version += 1;
        change(&mut thing.meta);
        thing.meta.resource_version = Some(self.version.to_string());
        let (kind, meta) = (thing.kind, thing.meta.clone());
        let is_free = meta.finalizers.as_ref().is_none_or(Vec::is_empty);
        if meta.deletion_timestamp.is_some() && is_free {
            self.objects.remove(name);
            self.news[kind].push_back(News::Gone(meta));
        } else {
            self.news[kind].push_back(News::Seen(meta));
        }
    }

    fn deliver(&mut self, kind: usize, count: usize) {
        for _ in 0..count {
            match self.news[kind].pop_front() {
                Some(News::Seen(meta)) => self.graph.see(KindId(kind), &meta),
                Some(News::Gone(meta)) => self.graph.gone(&meta),
                None => return,
            }
        }
    }

    fn deliver_all(&mut self) {
        (0..3).for_each(|kind| self.deliver(kind, usize::MAX));
    }

    fn run(&mut self, count: usize, refused: usize) {
        for _ in 0..count {
            let Some(op) = self.graph.next(self.now) else { return };
            self.ops += 1;
            assert!(self.ops < 5_000, "it never ends: {op:?}");
            let outcome = if self.ops.is_multiple_of(refused) {
                Outcome::Refused
            } else {
                self.carry_out(&op)
            };
            if !self.is_late {
                self.deliver_all();
            }
            self.graph.settle(op.item(), outcome, self.now);
        }
    }

    fn carry_out(&mut self, op: &Op) -> Outcome {
        if let Op::Ask(id) = op {
            return if self.find(id).is_some() { Outcome::Present } else { Outcome::Absent };
        }
        if !self.is_late {
            let expected = self.expected();
            assert!(expected.contains(&print(op)), "{op:?} is not among {expected:?}");
        }
        let (Op::Delete { id, .. }
        | Op::DropOwners { id, .. }
        | Op::Unblock { id, .. }
        | Op::Release { id, .. }
        | Op::Ask(id)) = op;
        let Some(thing) = self.find(id).cloned() else { return Outcome::Gone };
        let name = name_of(&thing.meta);
        match op {
            Op::Ask(_) => unreachable!("it was answered"),
            Op::Delete { version, propagation, owners, .. } => {
                if thing.meta.resource_version != Some(version.to_string()) {
                    return Outcome::Refused;
                }
                let references = thing.meta.owner_references.as_deref().unwrap_or_default();
                let now = Owners::read(&kinds(), thing.meta.namespace.as_deref(), references);
                assert_eq!(*owners, now);
                let is_alive = |owner: &Thing| phase(&owner.meta) == Phase::Alive;
                let mut owners = references.iter().filter_map(|it| self.owner_of(&thing, it));
                assert!(now.foreign.is_empty() && !owners.any(is_alive), "{op:?}");
                self.change_named(&name, |meta| delete(meta, *propagation));
            }
            Op::DropOwners { owners, .. } => self.change_named(&name, |meta| {
                meta.owner_references
                    .get_or_insert_default()
                    .retain(|reference| !owners.contains(&Uid::new(&reference.uid)));
            }),
            Op::Unblock { owners, .. } => self.change_named(&name, |meta| {
                for reference in meta.owner_references.iter_mut().flatten() {
                    if owners.contains(&Uid::new(&reference.uid)) {
                        reference.block_owner_deletion = Some(false);
                    }
                }
            }),
            Op::Release { finalizer, .. } => self.change_named(&name, |meta| {
                meta.finalizers.get_or_insert_default().retain(|other| other != finalizer);
            }),
        }
        if self.objects.contains_key(&name) { Outcome::Done(self.version) } else { Outcome::Gone }
    }

    fn find(&self, id: &ObjectId) -> Option<&Thing> {
        self.objects.get(id.name()).filter(|thing| {
            thing.kind == id.kind.0
                && thing.meta.namespace.as_deref() == id.namespace()
                && object::uid(&thing.meta) == id.uid
        })
    }

    /// What a reference of an object means.
    fn owner_of(&self, thing: &Thing, reference: &OwnerReference) -> Option<&Thing> {
        self.objects.values().find(|owner| {
            let kind = &kinds()[owner.kind];
            Some(&reference.uid) == owner.meta.uid.as_ref()
                && Some(&reference.name) == owner.meta.name.as_ref()
                && reference.kind == kind.kind
                && reference.api_version == kind.api_version
                && (!kind.is_namespaced || owner.meta.namespace == thing.meta.namespace)
        })
    }

    /// How each owner of an object is, by looking at all of them.
    fn standings(&self, thing: &Thing) -> Vec<(String, &'static str)> {
        let references = thing.meta.owner_references.iter().flatten();
        let standing = |reference: &OwnerReference| {
            let kind = kinds().into_iter().find(|kind| {
                kind.kind == reference.kind && kind.api_version == reference.api_version
            });
            let Some(kind) = kind else { return "living" };
            if kind.is_namespaced && thing.meta.namespace.is_none() {
                return "living";
            }
            let Some(owner) = self.owner_of(thing, reference) else { return "absent" };
            match phase(&owner.meta) {
                Phase::Alive | Phase::Ending => "living",
                Phase::Orphaning => "orphaning",
                Phase::Foreground => "waiting",
            }
        };
        references.map(|reference| (reference.uid.clone(), standing(reference))).collect()
    }

    /// What is to be done, by looking at everything.
    fn expected(&self) -> BTreeSet<String> {
        self.objects.values().filter_map(|thing| self.expected_of(thing)).collect()
    }

    fn expected_of(&self, thing: &Thing) -> Option<String> {
        let uid = thing.meta.uid.clone().expect("it has one");
        let standings = self.standings(thing);
        let those = |which: &[&str]| -> BTreeSet<String> {
            let found = standings.iter().filter(|(_, standing)| which.contains(standing));
            found.map(|(uid, _)| uid.clone()).collect()
        };
        let join = |uids: &BTreeSet<String>| uids.iter().cloned().collect::<Vec<_>>().join(",");
        let orphaned = those(&["orphaning"]);
        if !orphaned.is_empty() {
            return Some(format!("drop {uid} {}", join(&orphaned)));
        }
        let dependents: Vec<(&Thing, bool)> = self
            .objects
            .values()
            .flat_map(|other| {
                let references = other.meta.owner_references.iter().flatten();
                let ours = references.filter(|reference| {
                    let owner = self.owner_of(other, reference);
                    owner.is_some_and(|owner| owner.meta.uid == thing.meta.uid)
                });
                ours.map(move |reference| (other, reference.block_owner_deletion == Some(true)))
            })
            .collect();
        match phase(&thing.meta) {
            Phase::Orphaning => {
                return dependents.is_empty().then(|| format!("release {uid} {ORPHAN}"));
            }
            Phase::Foreground => {
                let is_blocked = dependents.iter().any(|(_, blocks)| *blocks);
                return (!is_blocked).then(|| format!("release {uid} {FOREGROUND_DELETION}"));
            }
            Phase::Ending => return None,
            Phase::Alive => {}
        }
        let living = those(&["living"]);
        if !living.is_empty() {
            let dead: BTreeSet<String> =
                those(&["absent", "waiting"]).difference(&living).cloned().collect();
            return (!dead.is_empty()).then(|| format!("drop {uid} {}", join(&dead)));
        }
        if standings.is_empty() {
            return None;
        }
        if !those(&["waiting"]).is_empty() && !dependents.is_empty() {
            let references = thing.meta.owner_references.iter().flatten();
            let blocked: BTreeSet<String> = references
                .filter(|reference| reference.block_owner_deletion == Some(true))
                .map(|reference| reference.uid.clone())
                .collect();
            let is_circle = dependents.iter().any(|(it, _)| phase(&it.meta) == Phase::Foreground);
            if is_circle && !blocked.is_empty() {
                return Some(format!("unblock {uid} {}", join(&blocked)));
            }
            return Some(format!("delete {uid} Foreground"));
        }
        Some(format!("delete {uid} Background"))
    }

    /// The graph knows what there is, and nothing else.
    fn check_records(&self) {
        let known: BTreeSet<String> =
            self.graph.objects.values().map(|record| record.id.name().to_owned()).collect();
        assert_eq!(known, self.objects.keys().cloned().collect());
        let mut claims: BTreeMap<Arc<ObjectId>, (BTreeSet<Uid>, usize)> = BTreeMap::new();
        for record in self.graph.objects.values() {
            for owner in &record.owners {
                let claim = claims.entry(owner.id.clone()).or_default();
                claim.0.insert(record.id.uid.clone());
                claim.1 += usize::from(owner.blocks);
            }
        }
        let found = self
            .graph
            .claims
            .iter()
            .map(|(id, claim)| (id.clone(), (claim.dependents.clone(), claim.blocking)));
        assert_eq!(found.collect::<BTreeMap<_, _>>(), claims);
        assert_eq!(self.graph.wake_at(), None);
    }
}

fn name_of(meta: &ObjectMeta) -> String {
    meta.name.clone().expect("it has one")
}

fn reference(owner: &Thing, how: &Reference) -> OwnerReference {
    let kind = match how.wrong {
        Wrong::Kind => kinds().swap_remove((owner.kind + 1) % 3),
        Wrong::Nothing | Wrong::Name | Wrong::Foreign => kinds().swap_remove(owner.kind),
    };
    let suffix = if how.wrong == Wrong::Name { "x" } else { "" };
    let api_version = match how.wrong {
        Wrong::Foreign => "example.com/v1".to_owned(),
        Wrong::Nothing | Wrong::Name | Wrong::Kind => kind.api_version,
    };
    OwnerReference {
        api_version,
        kind: kind.kind.to_owned(),
        name: format!("{}{suffix}", name_of(&owner.meta)),
        uid: owner.meta.uid.clone().expect("it has one"),
        block_owner_deletion: Some(how.blocks),
        controller: None,
    }
}

fn phase(meta: &ObjectMeta) -> Phase {
    let has = |name: &str| meta.finalizers.iter().flatten().any(|finalizer| finalizer == name);
    match meta.deletion_timestamp {
        None => Phase::Alive,
        Some(_) if has(ORPHAN) => Phase::Orphaning,
        Some(_) if has(FOREGROUND_DELETION) => Phase::Foreground,
        Some(_) => Phase::Ending,
    }
}

/// Marks an object for deletion, as the API server does.
fn delete(meta: &mut ObjectMeta, propagation: Propagation) {
    let time = serde_json::from_str("\"2026-01-01T00:00:00Z\"").expect("a time");
    meta.deletion_timestamp = Some(time);
    let finalizers = meta.finalizers.get_or_insert_default();
    finalizers.retain(|finalizer| finalizer == OTHER);
    match propagation {
        Propagation::Background => {}
        Propagation::Foreground => finalizers.push(FOREGROUND_DELETION.to_owned()),
        Propagation::Orphan => finalizers.push(ORPHAN.to_owned()),
    }
}
