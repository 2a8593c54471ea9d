//! The process runtime's helper by itself, for tests: `stint` is its own helper.

fn main() {
    stint_node::process_helper()
}
