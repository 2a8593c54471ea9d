//! Lists while others write.

use kube::api::{ListParams, PostParams};

use crate::reach::{config_map, config_maps, each_way};

/// How many objects are written while lists are read.
const OBJECTS: usize = 300;

#[test]
fn the_pages_of_a_list_are_of_one_moment_while_others_write() {
    each_way(stint_store::Options::default(), |client| async {
        let api = config_maps(client);
        let writer = {
            let api = api.clone();
            tokio::spawn(async move {
                for number in 0..OBJECTS {
                    let object = config_map(&format!("n{number:04}"), "");
                    api.create(&PostParams::default(), &object).await.expect("it is new");
                }
            })
        };
        let mut seen = 0;
        while seen < OBJECTS {
            let mut names = Vec::new();
            let mut params = ListParams::default().labels("test=yes").limit(7);
            loop {
                let page = api.list(&params).await.expect("a page");
                names.extend(page.items.into_iter().filter_map(|item| item.metadata.name));
                match page.metadata.continue_.filter(|token| !token.is_empty()) {
                    Some(token) => params = params.continue_token(&token),
                    None => break,
                }
            }
            // Written one after the other, so at any moment a first part of them is there.
            let expected: Vec<String> = (0..names.len()).map(|n| format!("n{n:04}")).collect();
            assert_eq!(names, expected);
            assert!(names.len() >= seen, "a later list has at least as much");
            seen = names.len();
        }
        writer.await.expect("it writes");
    });
}
