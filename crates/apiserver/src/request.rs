//! What a request asks for, told from its method, path, query and headers. It knows no store,
//! and nothing of what comes of it.

pub mod delete_options;
pub mod list_options;
pub mod media;
pub mod query;
pub mod target;
pub mod write_options;
