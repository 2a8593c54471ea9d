//! Writers that get in each other's way.

use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use crate::reach::{config_map, config_maps, each_way};

#[test]
fn a_stale_version_is_a_conflict() {
    each_way(stint_store::Options::default(), |client| async {
        let api = config_maps(client);
        let created =
            api.create(&PostParams::default(), &config_map("a", "1")).await.expect("it is new");
        let mut mine = created.clone();
        mine.data = config_map("a", "2").data;
        api.replace("a", &PostParams::default(), &mine).await.expect("it is the newest");
        let mut late = created;
        late.data = config_map("a", "3").data;
        let refused = api.replace("a", &PostParams::default(), &late).await.expect_err("stale");
        match refused {
            kube::Error::Api(status) => {
                assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
            }
            other => panic!("{other}"),
        }
        // Without a version the last one wins.
        late.metadata.resource_version = None;
        let won = api.replace("a", &PostParams::default(), &late).await.expect("unconditional");
        assert_eq!(won.data, late.data);
    });
}

#[test]
fn every_one_of_many_increments_counts() {
    each_way(stint_store::Options::default(), |client| async {
        let api = config_maps(client);
        api.create(&PostParams::default(), &config_map("sum", "0")).await.expect("it is new");
        let writers = (0..8).map(|_| {
            let api = api.clone();
            tokio::spawn(async move {
                for _ in 0..25 {
                    loop {
                        let mut current = api.get("sum").await.expect("it is there");
                        let data = current.data.as_mut().expect("it has data");
                        let sum: u64 = data["value"].parse().expect("a number");
                        data.insert("value".to_owned(), (sum + 1).to_string());
                        match api.replace("sum", &PostParams::default(), &current).await {
                            Ok(_) => break,
                            Err(kube::Error::Api(status)) if status.code == 409 => {}
                            Err(other) => panic!("{other}"),
                        }
                    }
                }
            })
        });
        for writer in writers.collect::<Vec<_>>() {
            writer.await.expect("it counts");
        }
        let sum = api.get("sum").await.expect("it is there");
        assert_eq!(sum.data.expect("it has data")["value"], "200");
    });
}

#[test]
fn patches_without_a_version_never_conflict_and_none_is_lost() {
    each_way(stint_store::Options::default(), |client| async {
        let api = config_maps(client);
        api.create(&PostParams::default(), &config_map("all", "")).await.expect("it is new");
        let writers = (0..8).map(|writer| {
            let api = api.clone();
            tokio::spawn(async move {
                for round in 0..25 {
                    let key = format!("w{writer}-r{round}");
                    let patch = Patch::Merge(json!({"data": {key: "x"}}));
                    api.patch("all", &PatchParams::default(), &patch).await.expect("no conflict");
                }
            })
        });
        for writer in writers.collect::<Vec<_>>() {
            writer.await.expect("it patches");
        }
        let all = api.get("all").await.expect("it is there");
        assert_eq!(all.data.expect("it has data").len(), 8 * 25 + 1);
    });
}
