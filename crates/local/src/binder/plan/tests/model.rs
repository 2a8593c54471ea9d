//! The plan beside a slow reference: after whatever has happened, the next to be bound is the
//! first of all waiting Pods that fits anywhere, and no node is ever overfull.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    /// A Pod is created: what it asks for, how urgently, and whose it is.
    Create(i64, i32, Option<u8>),
    /// The Pod at this place, of those there are, ends.
    End(prop::sample::Index),
    /// It is gone.
    Remove(prop::sample::Index),
    /// What is known of it is told again.
    Echo(prop::sample::Index),
    /// Its binding, if there is one under way, is made or refused.
    Settle(prop::sample::Index, bool),
    /// Everything is listed anew.
    List,
    /// A node has another size, or goes.
    Node(usize, Option<i64>),
    /// An owner is told to be a Job, or that Job to be gone.
    Job(u8, bool),
    /// Up to so many Pods are bound.
    Bind(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => (0..4_i64, 0..2, prop::option::of(0..2_u8))
            .prop_map(|(cpu, priority, owner)| Step::Create(cpu, priority, owner)),
        2 => index().prop_map(Step::End),
        2 => index().prop_map(Step::Remove),
        1 => index().prop_map(Step::Echo),
        3 => (index(), any::<bool>()).prop_map(|(index, made)| Step::Settle(index, made)),
        1 => Just(Step::List),
        1 => (0..2_usize, prop::option::of(0..6_i64)).prop_map(|(node, cpu)| Step::Node(node, cpu)),
        2 => (0..2_u8, any::<bool>()).prop_map(|(owner, is_there)| Step::Job(owner, is_there)),
        4 => (1..4_usize).prop_map(Step::Bind),
    ]
}

#[derive(Clone, Debug, PartialEq)]
enum At {
    Waiting,
    Binding(Bind),
    On(String),
    Ended,
}

#[derive(Clone, Debug)]
struct Case {
    number: usize,
    cpu: i64,
    priority: i32,
    owner: Option<u8>,
    at: At,
}

const PODS_OF_A_NODE: i64 = 3;
const NODES: [&str; 2] = ["a", "b"];

struct Model {
    plan: Plan,
    start: Instant,
    cases: Vec<Case>,
    count: usize,
    /// The first Pod of each owner that was seen while it had no others, or how old its Job is.
    ranks: HashMap<u8, i64>,
    jobs: HashSet<u8>,
    sizes: [Option<i64>; 2],
}

impl Model {
    fn new() -> Self {
        let start = Instant::now();
        let plan = Bench::new(&[("a", "4", PODS_OF_A_NODE), ("b", "3", PODS_OF_A_NODE)]).plan;
        let (cases, ranks, jobs) = (Vec::new(), HashMap::new(), HashSet::new());
        Model { plan, start, cases, count: 0, ranks, jobs, sizes: [Some(4), Some(3)] }
    }

    fn sight(&self, case: &Case) -> PodSight {
        let created = format!("2026-01-01T{:02}:{:02}:00Z", case.number / 60, case.number % 60);
        let name = format!("p{}", case.number);
        let mut pod = match case.owner {
            Some(owner) => owned(&name, &format!("owner {owner}"), &created),
            None => pod(&name, "0"),
        };
        pod["metadata"]["creationTimestamp"] = json!(created);
        pod["metadata"]["resourceVersion"] = json!(case.number.to_string());
        pod["spec"]["priority"] = json!(case.priority);
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!(case.cpu.to_string());
        match &case.at {
            // As far as the API knows.
            At::Waiting | At::Binding(_) => {}
            At::On(node) => pod["spec"]["nodeName"] = json!(node),
            At::Ended => pod["status"] = json!({"phase": "Failed"}),
        }
        sight(pod)
    }

    fn tell(&mut self, place: usize) {
        let sight = self.sight(&self.cases[place]);
        self.plan.see_pod(sight, self.start);
    }

    fn take(&mut self, step: Step) {
        let place = |index: prop::sample::Index, cases: &[Case]| {
            (!cases.is_empty()).then(|| index.index(cases.len()))
        };
        match step {
            Step::Create(cpu, priority, owner) => {
                let number = self.count;
                self.count += 1;
                if let Some(owner) = owner {
                    let is_job = self.jobs.contains(&owner);
                    let rank = if is_job { job_rank(owner) } else { number as i64 };
                    self.ranks.entry(owner).or_insert(rank);
                }
                self.cases.push(Case { number, cpu, priority, owner, at: At::Waiting });
                self.tell(self.cases.len() - 1);
            }
            Step::End(index) => {
                let Some(place) = place(index, &self.cases) else { return };
                self.cases[place].at = At::Ended;
                self.tell(place);
            }
            Step::Remove(index) => {
                let Some(place) = place(index, &self.cases) else { return };
                let case = self.cases.remove(place);
                self.plan.pod_gone(&self.sight(&case).metadata);
                let is_last = !self.cases.iter().any(|other| other.owner == case.owner);
                if let Some(owner) = case.owner.filter(|_| is_last) {
                    self.ranks.remove(&owner);
                }
            }
            Step::Echo(index) => {
                if let Some(place) = place(index, &self.cases) {
                    self.tell(place);
                }
            }
            Step::Settle(index, is_made) => {
                let Some(place) = place(index, &self.cases) else { return };
                let At::Binding(bind) = self.cases[place].at.clone() else { return };
                let outcome = if is_made {
                    self.cases[place].at = At::On(bind.node.to_string());
                    Outcome::Bound
                } else {
                    self.cases[place].at = At::Waiting;
                    Outcome::Refused(Box::new(self.sight(&self.cases[place])))
                };
                self.plan.settle(&bind, outcome, self.start);
            }
            Step::List => {
                self.plan.begin_pods();
                (0..self.cases.len()).rev().for_each(|place| self.tell(place));
                self.plan.complete_pods(self.start);
            }
            Step::Node(number, cpu) => {
                self.sizes[number] = cpu;
                let size = cpu.unwrap_or(0).to_string();
                let node = node(NODES[number], &size, PODS_OF_A_NODE);
                match cpu {
                    Some(_) => self.plan.see_node(node),
                    None => self.plan.node_gone(&node.metadata),
                }
            }
            Step::Job(owner, is_there) => {
                // The second is older than the first.
                let meta =
                    job(&format!("owner {owner}"), &format!("2025-01-0{}T00:00:00Z", 2 - owner));
                if is_there {
                    self.plan.see_job(&meta);
                    self.ranks.entry(owner).and_modify(|rank| *rank = job_rank(owner));
                    self.jobs.insert(owner);
                } else {
                    self.plan.job_gone(&meta);
                    self.jobs.remove(&owner);
                }
            }
            Step::Bind(most) => (0..most).for_each(|_| self.bind()),
        }
    }

    /// What is used of a node: CPU and Pods.
    fn used(&self, node: &str) -> (i64, i64) {
        let is_there = |case: &&Case| match &case.at {
            At::On(other) => other == node,
            At::Binding(bind) => &*bind.node == node,
            At::Waiting | At::Ended => false,
        };
        let there = self.cases.iter().filter(is_there);
        there.fold((0, 0), |(cpu, pods), case| (cpu + case.cpu, pods + 1))
    }

    fn fits(&self, case: &Case, number: usize) -> bool {
        let (cpu, pods) = self.used(NODES[number]);
        self.sizes[number]
            .is_some_and(|size| (case.cpu == 0 || cpu + case.cpu <= size) && pods < PODS_OF_A_NODE)
    }

    fn bind(&mut self) {
        let fitting = self.cases.iter().enumerate().filter(|(_, case)| {
            case.at == At::Waiting && (0..2).any(|number| self.fits(case, number))
        });
        let rank = |case: &Case| case.owner.map_or(case.number as i64, |owner| self.ranks[&owner]);
        let first = fitting.min_by_key(|(_, case)| (-case.priority, rank(case), case.number));
        let first = first.map(|(place, _)| place);
        let bind = self.plan.next();
        let named = bind.as_ref().map(|bind| bind.key.name.to_string());
        let wanted = first.map(|place| format!("p{}", self.cases[place].number));
        assert_eq!(named, wanted);
        let (Some(place), Some(bind)) = (first, bind) else { return };
        let number = NODES.iter().position(|node| **node == *bind.node).expect("a node");
        assert!(self.fits(&self.cases[place], number), "{bind:?} is too much");
        self.cases[place].at = At::Binding(bind);
    }
}

/// Jobs are older than all Pods.
fn job_rank(owner: u8) -> i64 {
    -1 - i64::from(owner)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn the_first_that_fits_is_bound_and_no_node_is_overfull(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut model = Model::new();
        for step in steps {
            model.take(step);
        }
        // When all is over, nothing is left in memory.
        while !model.cases.is_empty() {
            let case = model.cases.remove(0);
            model.plan.pod_gone(&model.sight(&case).metadata);
        }
        let plan = model.plan;
        prop_assert!(plan.pods.is_empty() && plan.owners.is_empty() && plan.used.is_empty());
        prop_assert!(plan.lines.is_empty() && plan.heads.is_empty() && plan.tells.is_empty());
    }
}
