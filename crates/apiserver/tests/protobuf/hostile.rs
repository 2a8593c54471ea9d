//! Bytes that mean harm: they are refused or read, and cost no more than their length.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use proptest::collection::vec;
use proptest::prelude::*;
use stint_apiserver::LocalServer;
use stint_apiserver::protobuf::{MEDIA_TYPE, decode, envelope};
use stint_apiserver::schema;
use tower_service::Service;

use crate::rows;
use crate::server::{field, server};

/// The largest body there is.
const BODY_BYTES: usize = 3 << 20;

proptest! {
    #[test]
    fn arbitrary_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..512)) {
        let _ = envelope::open(&bytes);
        let _ = envelope::open(&[b"k8s\0", &bytes[..]].concat());
        for (_, _, message) in schema::KINDS {
            let _ = decode::object(&bytes, message);
        }
    }

    /// Fields that are mostly of the schema, so that what is read goes deep.
    #[test]
    fn fields_in_fields_are_read_or_refused(
        numbers in vec((1_u8..16, 0_u8..6, any::<u8>()), 0..64),
    ) {
        let mut bytes = Vec::new();
        for (number, wire_type, value) in numbers {
            let length = u8::try_from(bytes.len().min(127)).expect("below 128");
            let inner = std::mem::take(&mut bytes);
            match wire_type {
                0 => bytes.extend([number << 3, value]),
                1..=3 => bytes.extend([&[number << 3 | 2, length], &inner[..length.into()]].concat()),
                _ => bytes.extend([number << 3 | 5, value, value, value, value]),
            }
            bytes.extend(inner.get(usize::from(length)..).unwrap_or(&[]));
        }
        for (_, _, message) in schema::KINDS {
            let _ = decode::object(&bytes, message);
        }
    }

    #[test]
    fn a_changed_byte_is_read_or_refused(
        row in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let (message, mut raw) = SMALL_ROWS[row.index(SMALL_ROWS.len())].clone();
        let at = at.index(raw.len());
        raw[at] = byte;
        let _ = decode::object(&raw, message);
    }
}

#[test]
fn a_row_that_is_cut_off_anywhere_is_read_or_refused() {
    for (message, raw) in &*SMALL_ROWS {
        for end in 0..raw.len() {
            let _ = decode::object(&raw[..end], message);
        }
    }
}

#[test]
fn a_body_of_the_largest_size_takes_no_longer_than_it_is_long() {
    let pod = schema::of_kind("v1", "Pod").expect("a kind");
    let job = schema::of_kind("batch/v1", "Job").expect("a kind");
    let started = Instant::now();
    // The same label again and again; the metadata again and again; many empty groups; an
    // unknown field again and again; one list of numbers.
    for field in [&b"\x0a\x06\x5a\x04\x0a\x00\x12\x00"[..], b"\x0a\0", b"\x7b\x7c", b"\xf8\x07\x01"]
    {
        let body = field.repeat(BODY_BYTES / field.len());
        let _ = decode::object(&body, pod);
    }
    // Item after item in the list of exit codes of one rule.
    let mut body = b"\x20\x01".repeat(BODY_BYTES / 2 - 32);
    for number in [2_u8, 1, 11, 2] {
        let mut wrapped = vec![number << 3 | 2];
        let mut length = body.len();
        while length > 0x7f {
            wrapped.push(u8::try_from(length & 0x7f).expect("seven bits") | 0x80);
            length >>= 7;
        }
        wrapped.push(u8::try_from(length).expect("seven bits"));
        wrapped.extend(body);
        body = wrapped;
    }
    let _ = decode::object(&body, job);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

#[test]
fn many_empty_messages_are_refused_before_they_are_large() {
    let pod = schema::of_kind("v1", "Pod").expect("a kind");
    // A spec with empty containers.
    let containers = b"\x12\0".repeat(1 << 19);
    let body = [&b"\x12\x80\x80\x40"[..], &containers].concat();
    let refused = decode::object(&body, pod).expect_err("refused");
    assert_eq!(refused.to_string(), "proto: there are more than 100000 messages");
    let spec = decode::object(&[&b"\x12\x80\x80\x08"[..], &containers[..1 << 17]].concat(), pod);
    let spec = spec.expect("it is read");
    assert_eq!(spec["spec"]["containers"].as_array().map(Vec::len), Some(1 << 16));
}

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A ConfigMap of this name that says that somebody owns a field so many levels down.
fn owned_far_down(name: &str, levels: usize) -> (Vec<u8>, String) {
    let fields = format!("{}{}", r#"{"f:a":"#.repeat(levels - 1) + "{}", "}".repeat(levels - 1));
    let entry = [
        field(1, b"somebody"),
        field(2, b"Update"),
        field(3, b"v1"),
        field(6, b"FieldsV1"),
        field(7, &field(1, fields.as_bytes())),
    ];
    let meta = [field(1, name.as_bytes()), field(17, &entry.concat())];
    let body = [b"k8s\0", &field(2, &field(1, &meta.concat()))[..]].concat();
    let json = format!(
        r#"{{"metadata":{{"name":"{name}","managedFields":[{{"manager":"somebody","operation":"Update",
        "apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{fields}}}]}}}}"#
    );
    (body, json)
}

#[tokio::test]
async fn who_owns_fields_deep_down_can_be_read_in_every_form() {
    let server = server().await;
    for levels in [1, 63, 64, 65, 90, 120, 121, 122, 123, 124, 125, 126, 127, 128, 3000] {
        let (protobuf, json) = owned_far_down(&format!("in-protobuf-{levels}"), levels);
        let (code, said) = ask(&server, "POST", CONFIG_MAPS, [MEDIA_TYPE, "*/*"], protobuf).await;
        let expected = if levels > 64 { 400 } else { 201 };
        assert_eq!(code, expected, "{levels}: {said}");
        if levels <= 100 {
            let json = json.replace("in-protobuf", "in-json").into_bytes();
            let (code, said) =
                ask(&server, "POST", CONFIG_MAPS, ["application/json", "*/*"], json).await;
            assert_eq!(code, 201, "{levels}: {said}");
        }
    }
    let one = format!("{CONFIG_MAPS}/in-protobuf-64");
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let patch = "application/merge-patch+json";
    for path in [CONFIG_MAPS.to_owned(), one.clone()] {
        for (accept, query) in [
            ("*/*", ""),
            ("*/*", "?pretty=true"),
            ("application/yaml", ""),
            (table, "?includeObject=Object"),
        ] {
            let path = format!("{path}{query}");
            let (code, said) = ask(&server, "GET", &path, ["", accept], Vec::new()).await;
            assert_eq!((code, said.contains("error")), (200, false), "{path}: {said}");
        }
    }
    let (_, whole) = ask(&server, "GET", &one, ["", "*/*"], Vec::new()).await;
    assert_eq!(whole.matches("f:a").count(), 63, "{whole}");
    for (method, media_type, body) in [
        ("PATCH", patch, r#"{"data":{"a":"b"}}"#),
        ("PATCH", patch, r#"{"data":{"c":"d"},"metadata":{"managedFields":null}}"#),
        ("PUT", "application/json", &whole),
        ("DELETE", "application/json", ""),
    ] {
        let body = body.replace("resourceVersion", "ignored").into_bytes();
        let (code, said) = ask(&server, method, &one, [media_type, table], body).await;
        assert_eq!(code, 200, "{method}: {said}");
    }
}

/// What comes of a request of a media type, which takes another.
async fn ask(
    server: &LocalServer,
    method: &str,
    path: &str,
    [media_type, accept]: [&str; 2],
    body: Vec<u8>,
) -> (u16, String) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, media_type)
        .header(ACCEPT, accept)
        .body(Full::new(Bytes::from(body)))
        .expect("a request");
    let Ok(answer) = server.clone().call(request).await;
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("all of it").to_bytes();
    (code, String::from_utf8(body.to_vec()).expect("text"))
}

/// What is small enough to be read once for each of its bytes.
static SMALL_ROWS: LazyLock<Vec<(schema::Message, Vec<u8>)>> = LazyLock::new(|| {
    let raw = |row: &rows::Row| envelope::open(&row.body()).expect("an envelope").raw.to_vec();
    let rows = rows::read();
    let rows = rows.iter().map(|row| (row.message(), raw(row)));
    rows.filter(|(_, raw)| (1..4000).contains(&raw.len())).collect()
});
