//! Kubernetes' protobuf as clients send it: rows that Go has written, the schema against the
//! types, bytes that mean harm, and requests through the server.

mod everything;
mod fields;
mod hostile;
mod rows;
mod server;
mod typed;
