//! Two processes and one folder. In a file of its own: a test that starts a process holds, for a
//! moment, the locks of every other test beside it.

use std::process::Command;
use stint_store::{Options, Store, StoreError};

const SECOND: &str = "STINT_STORE_SECOND_FOLDER";

#[test]
fn a_second_process_on_the_same_folder_is_refused() {
    if let Ok(folder) = std::env::var(SECOND) {
        let error = Store::open(folder, Options::default()).expect_err("it is in use");
        assert!(matches!(error, StoreError::InUse { .. }), "{error:?}");
        let holder = format!("is in use by process {}", std::os::unix::process::parent_id());
        assert!(error.to_string().contains(&holder), "{error}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let open = || Store::open(folder.path(), Options::default());
    let store = open().expect("an empty folder");
    let second = Command::new(std::env::current_exe().expect("a test has a file"))
        .args(["--exact", "a_second_process_on_the_same_folder_is_refused"])
        .env(SECOND, folder.path())
        .output()
        .expect("a test can start itself");
    assert!(second.status.success(), "{}", String::from_utf8_lossy(&second.stdout));
    assert!(matches!(open(), Err(StoreError::InUse { .. })), "nor twice in one process");
    drop(store);
    open().expect("it is free");
}
