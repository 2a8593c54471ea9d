//! A list as the body of an answer, made as it is read: however long it is, only a piece of
//! it is in memory besides what is stored anyway. Whoever wants it as YAML or pretty has to
//! read all of it first.

use bytes::BytesMut;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;

use super::body::Body;
use super::shown::Shown;
use crate::request::media::View;
use crate::table;
use crate::verb::list::Listed;

/// How large a piece of a list is: large enough for the cost of a frame not to matter.
const PIECE_BYTES: usize = 64 * 1024;

/// A list of objects.
pub(crate) fn list_body(shown: Shown, listed: Listed) -> Body {
    let metadata = ListMeta {
        resource_version: Some(listed.revision.to_string()),
        continue_: listed.token.clone(),
        remaining_item_count: listed
            .remaining
            .map(|count| i64::try_from(count).expect("memory holds fewer")),
        ..ListMeta::default()
    };
    let metadata = serde_json::to_string(&metadata).expect("plain data serialises");
    let names = shown.kind.names();
    let typed = |kind: &str, api_version: &str| {
        format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{metadata},"#)
    };
    let head = match shown.view {
        View::Whole => typed(&names.list_kind(), &names.api_version()) + r#""items":["#,
        View::Metadata(_) => typed("PartialObjectMetadataList", "meta.k8s.io/v1") + r#""items":["#,
        View::Table(_) => {
            let columns = table::definitions(shown.kind.columns());
            typed("Table", "meta.k8s.io/v1") + &format!(r#""columnDefinitions":{columns},"rows":["#)
        }
    };
    let mut entries = listed.entries.into_iter();
    let mut head = Some(head);
    let mut is_first = true;
    let mut is_over = false;
    Body::pieces(std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let mut piece = BytesMut::new();
        if let Some(head) = head.take() {
            piece.extend_from_slice(head.as_bytes());
        }
        while piece.len() < PIECE_BYTES {
            let Some(entry) = entries.next() else {
                piece.extend_from_slice(b"]}\n");
                is_over = true;
                break;
            };
            if !std::mem::take(&mut is_first) {
                piece.extend_from_slice(b",");
            }
            shown.put_item(&mut piece, &entry);
        }
        Some(piece.freeze())
    }))
}
