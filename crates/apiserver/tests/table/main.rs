//! Tables as kubectl gets them: rows of an object and its cells, and tables put together.

mod dump;
mod moment;
mod rows;
mod whole;
