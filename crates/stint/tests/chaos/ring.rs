//! Pods that find each other by name and talk.

use crate::home::as_everybody;
use crate::kit::example;

#[test]
fn eight_workers_find_each_other_by_name_and_pass_a_token_round() {
    let manifest = std::fs::read_to_string(example("ring.yaml")).expect("it is there");
    as_everybody(|home| {
        let ended = home.run(&manifest, &["--logs"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.lines(), ["[ring/0] round 0,1,2,3,4,5,6,7"], "{ended:?}");
    });
}
