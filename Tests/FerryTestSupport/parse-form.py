#!/usr/bin/env python3
"""Lets a server framework read a multipart/form-data body, and prints what it found.

usage: parse-form.py werkzeug|django CONTENT-TYPE FILE

A line a part, tab-separated, sorted: name and file name ("-" for a text) in hexadecimal, the media type ("-" for a
text), the size, and the content's SHA-256.
"""

import hashlib
import os
import sys


def digest(stream):
    size, sum = 0, hashlib.sha256()
    while piece := stream.read(1 << 20):
        size += len(piece)
        sum.update(piece)
    return size, sum.hexdigest()


def text(name, value):
    content = value.encode("utf-8")
    return name, None, None, len(content), hashlib.sha256(content).hexdigest()


def by_werkzeug(content_type, length, body):
    from werkzeug.wrappers import Request

    request = Request(
        {
            "REQUEST_METHOD": "POST",
            "CONTENT_TYPE": content_type,
            "CONTENT_LENGTH": str(length),
            "wsgi.input": body,
        }
    )
    for name, value in request.form.items(multi=True):
        yield text(name, value)
    for name, file in request.files.items(multi=True):
        yield name, file.filename, file.content_type, *digest(file.stream)


def by_django(content_type, length, body):
    from django.conf import settings

    settings.configure(DATA_UPLOAD_MAX_MEMORY_SIZE=None)
    from django.core.files.uploadhandler import TemporaryFileUploadHandler
    from django.http.multipartparser import MultiPartParser

    meta = {"CONTENT_TYPE": content_type, "CONTENT_LENGTH": str(length)}
    fields, files = MultiPartParser(meta, body, [TemporaryFileUploadHandler()]).parse()
    for name, values in fields.lists():
        for value in values:
            yield text(name, value)
    for name, values in files.lists():
        for file in values:
            yield name, file.name, file.content_type, *digest(file)


parser, content_type, path = sys.argv[1:]
read = {"werkzeug": by_werkzeug, "django": by_django}[parser]
lines = []
with open(path, "rb") as body:
    for name, file_name, kind, size, sum in read(content_type, os.path.getsize(path), body):
        shown = "-" if file_name is None else file_name.encode().hex()
        lines.append(f"{name.encode().hex()}\t{shown}\t{kind or '-'}\t{size}\t{sum}")
print("\n".join(sorted(lines)))
