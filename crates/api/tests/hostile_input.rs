//! Input that means harm: none of it may crash, hang or eat memory.
//!
//! First the known attacks, each with the answer it must get. Then a fuzzer that
//! mutates real manifests for a bounded time. It runs for three seconds unless
//! `STINT_FUZZ_SECONDS` says otherwise, and prints its seed; to repeat a run, set
//! `STINT_FUZZ_SEED` to it.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use k8s_openapi::api::batch::v1::Job;
use stint_api::decode::{
    self, Document, MAX_DOCUMENT_BYTES, MAX_DOCUMENTS_PER_FILE, MAX_FIELDS_PER_DOCUMENT,
    MAX_FILE_BYTES, MAX_NODES_PER_DOCUMENT, MAX_PROBLEMS_PER_DOCUMENT, Node, NodeValue,
    ProblemKind,
};
use stint_api::defaults::job::default_job;
use stint_api::diagnostic::Span;
use stint_api::feature_gates::FeatureGates;
use stint_api::manifest::Checker;
use stint_api::prepare::prepare_for_create;
use stint_api::validation::job::validate_job;
use stint_api::view::JobView;

/// No document has more findings than this, and a few of the decoder's.
const MAX_FINDINGS: usize = 1_002;

/// Reads a text, checks what holds for every text, and gives back the documents.
fn examine(text: &[u8]) -> Vec<Document> {
    let documents = decode::read(text);
    for document in &documents {
        check_span(text, document.span);
        assert!(document.problems.len() <= MAX_PROBLEMS_PER_DOCUMENT + 1);
        assert!(document.root.is_some() || !document.problems.is_empty());
        check_problems(text, &document.problems);
        if let Some(root) = &document.root {
            check_node(text, root);
            check_round_trip(document, root);
            let decoded = decode::decode::<Job>(root);
            check_problems(text, &decoded.problems);
            assert!(decoded.value.is_some() || !decoded.problems.is_empty());
            if let Some(job) = decoded.value {
                process(job);
            }
        }
    }
    if let Ok(text) = std::str::from_utf8(text) {
        check_findings(text);
    }
    documents
}

/// What happens to a Job after it was read: it is defaulted, validated, and written.
fn process(mut job: Job) {
    let gates = FeatureGates::default();
    job.metadata.uid = Some("uid".to_owned());
    prepare_for_create(&mut job, &gates);
    let errors = validate_job(&job);
    serde_json::to_string(&job).expect("a Job that was read can be written");
    default_job(&mut job, &gates);
    let mut again = job.clone();
    default_job(&mut again, &gates);
    assert_eq!(job, again, "defaulting twice is not once");
    // What validation lets pass, everyone inside can work with.
    if errors.is_empty() {
        JobView::parse(&job).expect("a valid Job has a view");
    }
}

/// The whole way of `stint check`: every finding has its place.
fn check_findings(text: &str) {
    Checker::default().keep_jobs().check(text, |document| {
        check_span(text.as_bytes(), document.span);
        assert!(document.diagnostics.len() <= MAX_FINDINGS + MAX_PROBLEMS_PER_DOCUMENT);
        for found in &document.diagnostics {
            assert!(!found.message.is_empty());
            check_span(text.as_bytes(), found.span);
        }
    });
}

fn check_span(text: &[u8], span: Span) {
    assert!(span.start <= span.end && span.end <= text.len(), "{span:?}");
    // Up to the first byte that is not UTF-8, all places are between characters.
    for offset in [span.start, span.end] {
        let on_boundary = text.get(offset).is_none_or(|byte| byte & 0xc0 != 0x80);
        assert!(on_boundary || std::str::from_utf8(text).is_err(), "{span:?}");
    }
}

fn check_problems(text: &[u8], problems: &[decode::Problem]) {
    for problem in problems {
        assert!(!problem.message.is_empty());
        check_span(text, problem.span);
        if let Some(related) = &problem.related {
            check_span(text, related.span);
        }
    }
}

fn check_node(text: &[u8], node: &Node) {
    check_span(text, node.span);
    match &node.value {
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => {}
        NodeValue::List(items) => items.iter().for_each(|item| check_node(text, item)),
        NodeValue::Map(entries) => {
            for entry in entries {
                check_span(text, entry.key_span);
                check_node(text, &entry.value);
            }
        }
    }
}

/// A document without problems says the same when it is written as JSON.
fn check_round_trip(document: &Document, root: &Node) {
    let value = root.to_json();
    let json = value.to_string();
    if !document.problems.is_empty() || !value.is_object() || json.len() > MAX_DOCUMENT_BYTES {
        return;
    }
    let again = decode::read_str(&json);
    assert_eq!(again.len(), 1, "{json}");
    assert_eq!(again[0].problems, [], "{json}");
    let root = again[0].root.as_ref().expect("JSON without problems");
    assert_eq!(root.to_json(), value, "{json}");
}

/// The last problem of the last document must be of this kind and say this.
fn refuse(text: impl AsRef<[u8]>, kind: ProblemKind, words: &str) {
    let documents = examine(text.as_ref());
    let last = documents.last().expect("there is a document");
    let problem = last.problems.last().expect("there is a problem");
    assert_eq!(problem.kind, kind, "{problem}");
    assert!(problem.message.contains(words), "{problem}");
}

/// There must be so many documents, and nothing wrong with any of them.
fn accept(text: impl AsRef<[u8]>, document_count: usize) {
    let documents = examine(text.as_ref());
    assert_eq!(documents.len(), document_count);
    let mut problems = documents.iter().flat_map(|document| &document.problems);
    assert_eq!(problems.next(), None);
}

#[test]
fn deep_nesting_is_refused() {
    let deep = 100_000;
    let words = "nests more than 100 levels";
    refuse("[".repeat(deep), ProblemKind::Limit, words);
    refuse("{".repeat(deep), ProblemKind::Limit, words);
    refuse("{a: ".repeat(deep), ProblemKind::Limit, words);
    refuse("{\"a\":".repeat(deep), ProblemKind::Limit, words);
    let closed = format!("{{\"a\":{}{}}}", "[".repeat(deep), "]".repeat(deep));
    refuse(closed, ProblemKind::Limit, words);
    refuse("- ".repeat(deep), ProblemKind::Limit, words);
    refuse("? ".repeat(deep), ProblemKind::Limit, words);
    let block: String = (0..1_000).map(|n| " ".repeat(n) + "a:\n").collect();
    refuse(block, ProblemKind::Limit, words);
}

#[test]
fn nesting_up_to_the_limit_is_read() {
    let depth = decode::MAX_DEPTH;
    let json = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    accept(json(depth), 1);
    refuse(json(depth + 1), ProblemKind::Limit, "nests");
    let flow = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    accept(flow(depth), 1);
    refuse(flow(depth + 1), ProblemKind::Limit, "nests");
    let block = |depth: usize| (0..depth).map(|n| " ".repeat(n) + "a:\n").collect::<String>();
    accept(block(depth), 1);
    refuse(block(depth + 1), ProblemKind::Limit, "nests");
}

#[test]
fn aliases_cannot_multiply_without_bound() {
    let too_many = format!("more than {MAX_NODES_PER_DOCUMENT} values");
    let mut laughs = String::from("a0: &a0 [lol,lol,lol,lol,lol,lol,lol,lol,lol]\n");
    for n in 1..30 {
        let before = format!("*a{}", n - 1);
        laughs += &format!("a{n}: &a{n} [{}]\n", vec![before; 9].join(","));
    }
    refuse(laughs, ProblemKind::Limit, &too_many);

    let long = format!("a: &a {}\nb:\n{}", "x".repeat(100_000), "- *a\n".repeat(10_000));
    refuse(long, ProblemKind::Limit, &format!("expands to more than {MAX_DOCUMENT_BYTES} bytes"));

    let list = format!("a: &a [{}]\nb:\n{}", "x,".repeat(10_000), "- *a\n".repeat(10_000));
    refuse(list, ProblemKind::Limit, &too_many);

    let merges = format!(
        "a: &a {{{}}}\nb:\n{}",
        (0..1000).map(|n| format!("k{n}: 1,")).collect::<String>(),
        "- <<: *a\n".repeat(10_000)
    );
    refuse(merges, ProblemKind::Limit, &too_many);

    let nested: String = (0..90).map(|n| format!("&a{n} [")).collect();
    let nested = nested + &"1,".repeat(20_000) + &"]".repeat(90);
    refuse(nested, ProblemKind::Limit, &too_many);

    let mut deeper = String::from("a0: &a0 [[[[[[[[[[1]]]]]]]]]]\n");
    for n in 1..20 {
        deeper += &format!("a{n}: &a{n} [[[[[[[[[[*a{}]]]]]]]]]]\n", n - 1);
    }
    refuse(deeper, ProblemKind::Limit, "nests more than 100 levels");
}

#[test]
fn size_has_limits() {
    let too_many = format!("more than {MAX_NODES_PER_DOCUMENT} values");
    refuse(vec![b'x'; MAX_FILE_BYTES + 1], ProblemKind::Limit, "the file has more than");
    refuse(vec![b'x'; MAX_DOCUMENT_BYTES + 1], ProblemKind::Limit, "the document has more than");
    let json = format!("{{\"a\": \"{}\"}}", "x".repeat(MAX_DOCUMENT_BYTES));
    refuse(json, ProblemKind::Limit, "the document has more than");
    let values = format!("[{}]", "1,".repeat(MAX_NODES_PER_DOCUMENT + 1));
    refuse(values, ProblemKind::Limit, &too_many);
    accept(format!("a: {}\n", "x".repeat(1_000_000)), 1);
    accept(format!("{{\"a\": \"{}\"}}", "é".repeat(1_000_000)), 1);
    let large = format!("a: {}\n", "x".repeat(1_000_000));
    accept(format!("{large}---\n{large}---\n{large}---\n{large}"), 4);
}

#[test]
fn many_keys_take_time_in_proportion() {
    let keys: String = (0..100_000).map(|n| format!("k{n}: 1\n")).collect();
    accept(keys, 1);
    let keys: String = (0..100_000).map(|n| format!("\"k{n}\":1,")).collect();
    accept(format!("{{{keys}\"z\":1}}"), 1);
    let same = "a: 1\n".repeat(50_000);
    let more = format!("{} more problems", 50_000 - 1 - MAX_PROBLEMS_PER_DOCUMENT);
    refuse(same, ProblemKind::Limit, &more);
}

#[test]
fn many_documents_have_a_limit() {
    let many = MAX_DOCUMENTS_PER_FILE + 1;
    refuse("{}".repeat(many), ProblemKind::Limit, "more than 100000 documents");
    refuse("---\n{}\n".repeat(many), ProblemKind::Limit, "more than 100000 documents");
    accept("---\n".repeat(1_000_000), 0);
    accept("...\n".repeat(100_000), 0);
    accept("{}".repeat(1_000), 1_000);
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    refuse(b"a: \0\n", ProblemKind::Syntax, "NUL");
    refuse(vec![0; 100_000], ProblemKind::Syntax, "NUL");
    refuse(b"{\"a\": \"\0\"}", ProblemKind::Syntax, "U+0000");
    refuse(b"a: \x1b[31m\n", ProblemKind::Syntax, "U+001B");
    refuse(b"a: \xff\n", ProblemKind::Syntax, "0xff at offset 3");
    refuse(b"a: \xed\xa0\x80\n", ProblemKind::Syntax, "not UTF-8");
    refuse(b"\xfe\xff\0a", ProblemKind::Syntax, "UTF-16");
    refuse("{\"a\": \"\\ud800\"}", ProblemKind::Syntax, "surrogate");
    refuse("a: \"\\ud800\"", ProblemKind::Syntax, "surrogate");
}

#[test]
fn huge_numbers_keys_and_strings_are_dealt_with() {
    accept("a: 1e999999999\n", 1);
    accept(format!("a: {}\n", "9".repeat(1_000_000)), 1);
    accept(format!("a: {}\n", "0".repeat(1_000_000)), 1);
    refuse("{\"a\": 1e999999999}", ProblemKind::Type, "too large");
    let digits = format!("{{\"a\": {}}}", "9".repeat(1_000_000));
    refuse(digits, ProblemKind::Type, "too large");
    accept(format!("{{\"a\": {}}}", "9".repeat(300)), 1);
    let key = "k".repeat(1_000_000);
    refuse(format!("{key}: 1\n"), ProblemKind::Limit, "a key must not have more than 1024");
    accept(format!("{{\"{key}\": 1}}"), 1);
    let open = "x".repeat(1_000_000);
    refuse(format!("a: \"{open}"), ProblemKind::Syntax, "never closed");
    refuse(format!("a: '{open}\n"), ProblemKind::Syntax, "never closed");
    refuse(format!("{{\"a\": \"{open}"), ProblemKind::Syntax, "never closed");
    refuse(format!("a: [{open}"), ProblemKind::Syntax, "never closed");
    refuse(format!("a:\n{}b: 1\n", "\t".repeat(100_000)), ProblemKind::Syntax, "tab");
    refuse("%".repeat(100_000), ProblemKind::Syntax, "directive");
    refuse("*".repeat(100_000), ProblemKind::Syntax, "stands for nothing");
    accept("&".repeat(100_000), 0);
    refuse("!".repeat(100_000), ProblemKind::Syntax, "tag");
    refuse(format!("a:\n{}b\n", "\n".repeat(100_000)), ProblemKind::Syntax, "");
}

#[test]
fn what_is_said_stays_short() {
    let key = "k".repeat(1_000_000);
    let members: String = (0..200).map(|n| format!("\"k{n}\": 1,")).collect();
    let twice = format!("{{\"metadata\": {{\"{key}\": {{{members}{members}\"z\": 1}}}}}}");
    let unknown = format!("{{\"metadata\": {{\"labels\": {{\"{key}\": [\"{key}\"]}}}}}}");
    for text in [twice, unknown] {
        let documents = examine(text.as_bytes());
        let root = documents[0].root.as_ref().expect("JSON");
        let decoded = decode::decode::<Job>(root);
        assert!(!decoded.problems.is_empty());
        for problem in documents[0].problems.iter().chain(&decoded.problems) {
            let help = problem.help.as_deref().unwrap_or("");
            assert!(problem.to_string().len() < 2_000, "{}", problem.message);
            assert!(help.len() < 2_000, "{help}");
        }
    }
}

/// Every list of a Pod, as long as the limits allow, with every item wrong.
#[test]
fn a_list_of_wrong_items_is_not_compared_with_itself() {
    let pod = |lines: String| {
        let head =
            "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec:\n  template:\n    spec:\n";
        format!("{head}      restartPolicy: Never\n{lines}")
    };
    let containers =
        |lines: &str| pod(format!("      containers:\n      - name: a\n        image: b\n{lines}"));
    let count = 20_000;
    let attacks = [
        pod(format!("      containers:\n{}", "      - {name: c, image: b}\n".repeat(count))),
        containers(&format!("        env:\n{}", "        - {name: ''}\n".repeat(count))),
        containers(&format!("        ports:\n{}", "        - {containerPort: 0}\n".repeat(count))),
        containers(&format!(
            "        volumeMounts:\n{}",
            "        - {name: v, mountPath: /p}\n".repeat(count)
        )),
        containers(&format!("      tolerations:\n{}", "      - {operator: X}\n".repeat(count))),
        containers(&format!(
            "      topologySpreadConstraints:\n{}",
            "      - {maxSkew: 0, topologyKey: k, whenUnsatisfiable: X}\n".repeat(count)
        )),
        containers("").replace(
            "  template:\n",
            &format!(
                "  template:\n    metadata:\n      labels:\n{}",
                (0..count).map(|n| format!("        \"{n} \": x\n")).collect::<String>()
            ),
        ),
    ];
    for text in attacks {
        let mut count = 0;
        Checker::default().check(&text, |document| {
            assert!(!document.is_valid());
            count += document.diagnostics.len();
        });
        assert!((1..=MAX_FINDINGS).contains(&count), "{count}: {}", &text[..200]);
    }
}

#[test]
fn nulls_are_not_blown_up_into_containers() {
    let nulls = "~, ".repeat(300_000);
    let text = format!(
        "apiVersion: batch/v1\nkind: Job\nspec: {{template: {{spec: {{containers: [{nulls}]}}}}}}\n"
    );
    let mut messages = Vec::new();
    Checker::default().check(&text, |document| {
        messages.extend(document.diagnostics.into_iter().map(|found| found.message));
    });
    let expected =
        format!("the objects up to here have more than {MAX_FIELDS_PER_DOCUMENT} fields");
    assert_eq!(messages, [expected]);
}

/// Each document is within its own limits; together they are not.
#[test]
fn many_alias_bombs_share_one_budget() {
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (name, before) in [("b", "a"), ("c", "b"), ("d", "c")] {
        let aliases = vec![format!("*{before}"); 10].join(", ");
        bomb += &format!("{name}: &{name} [{aliases}]\n");
    }
    let text = vec![bomb; 2_000].join("---\n");
    let documents = decode::documents(&text);
    let mut count = 0;
    let mut last = None;
    for document in documents {
        count += 1;
        last = Some(document);
    }
    assert!(count < 1_000, "{count} documents of over 11,000 values each");
    let last = last.expect("documents");
    assert!(last.root.is_none());
    assert!(last.problems[0].message.contains("the file holds more than"), "{:?}", last.problems);
}

#[test]
fn mutated_manifests_do_no_harm() {
    let seed = from_env("STINT_FUZZ_SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.expect("the clock is past 1970").as_nanos() as u64
    });
    let seconds = from_env("STINT_FUZZ_SECONDS").unwrap_or(3);
    println!("STINT_FUZZ_SEED={seed} STINT_FUZZ_SECONDS={seconds}");
    let corpus = corpus();
    for text in &corpus {
        examine(text);
    }
    let mut random = Random(seed | 1);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut last = Reveal(Vec::new());
    let mut run_count = 0u64;
    while Instant::now() < end {
        let mut text = random.pick(&corpus).clone();
        for _ in 0..=random.below(4) {
            mutate(&mut text, &corpus, &mut random);
        }
        last.0.clone_from(&text);
        examine(&text);
        run_count += 1;
    }
    last.0.clear();
    println!("{run_count} texts were read");
}

fn from_env(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is a number, not {value:?}")))
}

/// Prints the text at hand when a check fails.
struct Reveal(Vec<u8>);

impl Drop for Reveal {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the text was:\n{}", self.0.escape_ascii());
        }
    }
}

/// A xorshift generator: repeatable from its seed, and random enough for this.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A range of at most `longest` bytes.
    fn range(&mut self, length: usize, longest: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let end = start + self.below((length - start).min(longest) + 1);
        start..end
    }
}

/// Texts grow by splicing and repeating; beyond this they only cost time.
const MAX_MUTANT_BYTES: usize = 64 * 1024;

fn mutate(text: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    let at = random.below(text.len() + 1);
    match random.below(8) {
        0 if at < text.len() => text[at] ^= 1 << random.below(8),
        1 if at < text.len() => text[at] = random.next() as u8,
        2 => {
            let token = *random.pick(&TOKENS);
            text.splice(at..at, token.iter().copied());
        }
        3 => {
            let range = random.range(text.len(), 200);
            text.drain(range);
        }
        4 => {
            let other = random.pick(corpus);
            let range = random.range(other.len(), 2_000);
            text.splice(at..at, other[range].iter().copied());
        }
        5 => {
            let mut lines: Vec<Vec<u8>> = text.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
            let (a, b) = (random.below(lines.len()), random.below(lines.len()));
            lines.swap(a, b);
            *text = lines.join(&b'\n');
        }
        6 => {
            let token = *random.pick(&TOKENS);
            let count = random.below(300);
            text.splice(at..at, token.repeat(count));
        }
        _ => {
            let range = random.range(text.len(), 300);
            let copy = text[range].to_vec();
            text.splice(at..at, copy.repeat(1 + random.below(3)));
        }
    }
    text.truncate(MAX_MUTANT_BYTES);
}

const TOKENS: [&[u8]; 62] = [
    b"- ",
    b"? ",
    b": ",
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
    b"#",
    b" #",
    b"&a ",
    b"*a ",
    b"!!int ",
    b"!!binary ",
    b"!x ",
    b"|\n",
    b">-\n",
    b"|+2\n",
    b"'",
    b"\"",
    b"\\",
    b"\\u",
    b"\\ud83d",
    b"---\n",
    b"...\n",
    b"%YAML 1.1\n",
    b"\t",
    b"\n",
    b"\r",
    b" ",
    b"  ",
    b"<<: *a\n",
    b"<<",
    b"~",
    b"null",
    b"yes",
    b"0x1F",
    b"010",
    b"1e999",
    b".inf",
    b"1_0",
    b"\xef\xbb\xbf",
    b"\0",
    b"\xff",
    b"\xc3\xa9",
    b"\xe2\x80\xa8",
    b"\xc2\x85",
    b"\xf0\x9f\x98\x80",
    b"apiVersion: ",
    b"spec:\n",
    b"template:\n",
    b"containers:\n",
    b"name: ",
    b"\"a\": ",
    b"{\"a\":",
    b"true",
    b"-1",
    b"18446744073709551616",
    b"1Gi",
    b"2024-01-31T12:00:00Z",
    b"@",
    b"`",
];

/// The examples of the repository and some texts that use all of YAML.
fn corpus() -> Vec<Vec<u8>> {
    let mut corpus: Vec<Vec<u8>> = INLINE.iter().map(|text| text.as_bytes().to_vec()).collect();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut paths: Vec<_> = std::fs::read_dir(examples)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    paths.sort();
    for path in paths {
        if path.extension().is_some_and(|extension| extension == "yaml") {
            corpus.push(std::fs::read(&path).expect("an example can be read"));
        }
    }
    corpus
}

const INLINE: [&str; 5] = [
    "\
# A Job with most of what a Job can have.
apiVersion: batch/v1
kind: Job
metadata:
  name: pi
  labels: {app: pi, 'quoted': \"yes\"}
  annotations:
    text: |
      several
      lines
  creationTimestamp: 2024-01-31T12:00:00Z
spec:
  completions: 10
  parallelism: 0x3
  completionMode: Indexed
  backoffLimitPerIndex: 1
  maxFailedIndexes: 5
  suspend: no
  podFailurePolicy:
    rules:
    - action: FailJob
      onExitCodes: {containerName: main, operator: In, values: [42, 43]}
    - action: Ignore
      onPodConditions:
      - type: DisruptionTarget
  successPolicy:
    rules:
    - succeededIndexes: 0-3,7
      succeededCount: 2
  template:
    metadata:
      labels:
        app: pi
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 30
      containers:
      - name: main
        image: perl:5.34
        command: [\"perl\", \"-Mbignum=bpi\", '-wle', \"print bpi(2000)\"]
        env:
        - name: GREETING
          value: >-
            hello
            world
        - name: INDEX
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        resources:
          requests: {cpu: 100m, memory: 64Mi}
          limits: {cpu: 0.5, memory: 1e9}
        ports:
        - containerPort: 80
        livenessProbe:
          httpGet: {path: /, port: web}
",
    "\
base: &base
  restartPolicy: Never
  containers: &c
  - {name: a, image: b}
---
apiVersion: batch/v1
kind: Job
metadata: &m {name: x}
spec:
  template:
    metadata: *m
    spec:
      <<: {restartPolicy: OnFailure}
      containers: [&one {name: a}, {<<: *one, image: b}]
...
%YAML 1.1
---
? complex
: !!str 5
",
    "{\"apiVersion\": \"batch/v1\", \"kind\": \"Job\", \"metadata\": {\"name\": \"j\\u00e9\\ud83d\\ude00\"},
 \"spec\": {\"completions\": 3, \"parallelism\": 1.0, \"template\": {\"spec\": {\"containers\": [
  {\"name\": \"a\", \"image\": \"b\", \"args\": [\"-c\", \"x\\n\"], \"resources\": {\"limits\": {\"cpu\": 1.5}}}]}}}}
{\"apiVersion\": \"v1\"}",
    "a: [1, 2.5, ~, yes, 'x', \"y\\t\", {b: c, ? d}, [e: f]]\r\ng: \u{e9}\u{1f600}\r\n",
    "{a: {b: [c, d], \"e\": 'f'}, g: !!float 1}\n",
];
