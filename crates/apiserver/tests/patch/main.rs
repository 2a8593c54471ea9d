//! Patches as a server sees them: rows of an object, a patch and what comes of it; laws that
//! hold for any patch; the table of merge keys; and patches that mean harm.

mod dump;
mod hostile;
mod laws;
mod reference;
mod rows;
mod table;
