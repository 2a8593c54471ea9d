//! What the documentation says of the simulator.

use stint_sim::invariant::Invariant;

#[test]
fn the_page_about_testing_names_every_invariant() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/testing.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    for invariant in Invariant::ALL {
        let line = format!("| {} | ", invariant.name());
        assert!(page.contains(&line), "docs/testing.md does not name {}", invariant.name());
        assert!(page.contains(invariant.why()), "docs/testing.md: {}", invariant.why());
    }
}
