"""The server of the explorer: messages in, views out, for those who have the token."""

from __future__ import annotations

import json
import socket
import struct
import urllib.error
import urllib.request
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

import tir
from tir.library import rows
from tir.notebook.server import MOST_BYTES, Server


@pytest.fixture
def server():
    with Server(tir.Schedule(rows.softmax(8, 16))) as made:
        yield made


def asked(server: Server, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, str]:
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=20)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def sent(server: Server, message: object) -> dict:
    status, text = asked(server, "POST", "/", json.dumps(message).encode(), **{"X-Tir-Token": server.token})
    assert status == 200
    return json.loads(text)


def test_the_page_names_what_it_loads_and_all_of_it_is_there(server):
    page = urllib.request.urlopen(server.url).read().decode()
    for name in ("explorer.css", "page.js", "explorer.js"):
        assert name == "explorer.js" or f"{name}?token={server.token}" in page
        assert asked(server, "GET", f"/{name}?token={server.token}")[0] == 200


def test_a_message_is_a_step_of_the_schedule(server):
    loop = next(row["label"] for row in sent(server, {"do": "refresh"})["tree"] if row["kind"] != "block")
    view = sent(server, {"do": "apply", "name": "parallel", "given": {"loop": loop}})
    assert view["error"] == "" and len(server.explorer.schedule.history) == 2
    assert sent(server, {"do": "select", "place": loop})["offers"]


@pytest.mark.parametrize(
    "message", [{"do": "jump"}, {}, [], 3, None, "x", {"do": "apply", "name": 3}, {"do": "undo", "steps": 9}]
)
def test_a_message_that_is_none_is_answered_and_changes_nothing(server, message):
    assert sent(server, message)["error"] and len(server.explorer.schedule.history) == 1


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        ("GET", "/", b"", {}, 403),
        ("GET", "/explorer.js?token=wrong", b"", {}, 403),
        ("POST", "/", b"{}", {}, 403),
        ("POST", "/", b"{}", {"X-Tir-Token": "wrong"}, 403),
        ("GET", "/../server.py?token=TOKEN", b"", {}, 404),
        ("GET", "/server.py?token=TOKEN", b"", {}, 404),
        ("POST", "/", b"{", {"X-Tir-Token": "TOKEN"}, 400),
        ("POST", "/", b"[" * 100_000, {"X-Tir-Token": "TOKEN"}, 400),
        ("POST", "/", b"{}", {"X-Tir-Token": "TOKEN", "Content-Length": str(MOST_BYTES + 1)}, 413),
        ("POST", "/", b"{}", {"X-Tir-Token": "TOKEN", "Content-Length": "-1"}, 413),
    ],
)
def test_requests_of_others_are_refused(server, method, path, body, headers, status):
    given = {name: value.replace("TOKEN", server.token) for name, value in headers.items()}
    assert asked(server, method, path.replace("TOKEN", server.token), body, **given)[0] == status
    assert len(server.explorer.schedule.history) == 1


def test_a_port_in_use_is_an_error(server):
    with pytest.raises(OSError):
        Server(tir.Schedule(rows.softmax(8, 16)), port=urlsplit(server.url).port)


def test_the_address_of_a_server_at_every_address_can_be_opened():
    with Server(tir.Schedule(rows.softmax(8, 16)), "0.0.0.0") as made:
        assert "//0.0.0.0" not in made.url and b"<!doctype html>" in urllib.request.urlopen(made.url).read()


def test_a_page_that_is_closed_while_it_is_answered_is_no_error(server, capfd):
    """Its server writes no traceback, and answers others."""
    for _ in range(3):
        with socket.create_connection(urlsplit(server.url).netloc.split(":")) as made:
            body = b'{"do": "refresh"}'
            head = f"POST / HTTP/1.1\r\nX-Tir-Token: {server.token}\r\nContent-Length: {len(body)}\r\n\r\n"
            made.sendall(head.encode() + body)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closed at once
    assert sent(server, {"do": "refresh"})["error"] == ""
    assert capfd.readouterr().err == ""
