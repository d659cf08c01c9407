"""FHIR: DocumentReference resources in NDJSON, as the bulk export of FHIR servers writes them (hl7.org/fhir, R4, R5).

The contents of a resource are the same document in several formats: plain text is taken, else HTML or XML, whose tags
are left out. Other formats, and attachments that are only linked, are counted in the report.
"""

from __future__ import annotations

import base64
import binascii
import codecs
from collections.abc import Mapping
from typing import Any

from tertulia.corpus.formats.base import Record, undecodable
from tertulia.corpus.markup import plain_text
from tertulia.corpus.sources.base import Layout
from tertulia.errors import InputError

_PLAIN = ("text/plain", "")
_MARKED_UP = ("text/html", "application/xhtml+xml", "text/xml", "application/xml", "application/hl7-v3+xml")
_VOID = ("entered-in-error", "superseded")
_MOST_KINDS = 40  # characters of a format's name in the report


def _convert(record: Record) -> Record:
    values = record.values
    if values.get("resourceType") != "DocumentReference":
        return record._replace(values={}, problem="not a DocumentReference")
    for status in (values.get("status"), values.get("docStatus")):
        if status in _VOID:
            return record._replace(values={}, problem=f"its status is {status}")
    try:
        text = _text_of(values)
    except InputError as error:
        return record._replace(values={}, problem=str(error))
    found = {
        "text": text, "id": values.get("id"), "date": values.get("date"), "user": _subject_of(values),
        "type": _concept(values.get("type")), "category": _concept(_first(values.get("category"))),
    }  # fmt: skip
    return record._replace(values=found)


def _text_of(values: Mapping[str, Any]) -> str:
    """Decode the attachment that is best read as text; raise `InputError` with the reason why there is none."""
    contents = [content for content in _list(values.get("content")) if isinstance(content, dict)]
    attachments = [one for content in contents if isinstance(one := content.get("attachment"), dict)]
    for kinds, is_markup in ((_PLAIN, False), (_MARKED_UP, True)):
        for attachment in attachments:
            kind, charset = _content_type(attachment)
            if kind in kinds and isinstance(attachment.get("data"), str):
                text = _decode(attachment["data"], charset)
                return plain_text(text) if is_markup else text
    if not attachments:
        raise InputError("no attachment")
    if not any("data" in attachment for attachment in attachments):
        raise InputError("its attachment is only linked, and links are not followed")
    kind = _content_type(next(attachment for attachment in attachments if "data" in attachment))[0]
    raise InputError(f"its attachment is {kind[:_MOST_KINDS]}, which is not read")


def _content_type(attachment: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of an attachment, and its charset."""
    kind, _, rest = str(attachment.get("contentType") or "").lower().partition(";")
    charset = next((part.split("=", 1)[1] for part in rest.split(";") if part.strip().startswith("charset=")), "utf-8")
    return kind.strip(), charset.strip(" \"'")


def _decode(data: str, charset: str) -> str:
    try:
        name = codecs.lookup(charset).name
        return base64.b64decode("".join(data.split()), validate=True).decode(name)
    except LookupError:
        raise InputError("its charset is unknown") from None
    except binascii.Error:
        raise InputError("its attachment is no base64") from None
    except UnicodeError:
        raise InputError(undecodable(charset)) from None


def _subject_of(values: Mapping[str, Any]) -> str | None:
    """Return the reference to the patient, or the identifier where there is no reference."""
    subject = values.get("subject")
    if not isinstance(subject, dict):
        return None
    identifier = subject.get("identifier")
    return subject.get("reference") or (identifier.get("value") if isinstance(identifier, dict) else None)


def _concept(value: Any) -> str | None:
    """Return the name of a coded value."""
    if not isinstance(value, dict):
        return None
    coding = _first(value.get("coding"))
    named = coding if isinstance(coding, dict) else {}
    return value.get("text") or named.get("display") or named.get("code")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _first(value: Any) -> Any:
    return next(iter(_list(value)), None)


LAYOUT = Layout(
    columns={"text": "text", "id": "id", "date": "date", "label": "type", "user": "user"},
    marks=("resourceType",),
    raw=("resourceType", "status", "docStatus", "content", "id", "date", "subject", "type", "category"),
    gives=("text", "id", "date", "user", "type", "category"),
    convert=_convert,
    hint="it reads NDJSON with one FHIR resource per line",
)
