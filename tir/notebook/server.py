"""The explorer in a browser, without a notebook: a small server for one schedule, on this machine unless told otherwise.

The page is the notebook's (``explorer.js``). Each message that it sends is answered with the new view. Whoever has the
address, which carries a secret, may take steps, and nobody else.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ..schedule import Schedule
from .explorer import Explorer

MOST_BYTES = 1 << 20  # of a message
ANY = "0.0.0.0"  # every address of the machine, which no browser can open
_FILES = {"/explorer.js": "text/javascript", "/explorer.css": "text/css", "/page.js": "text/javascript"}
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<title>tir explorer</title>
<link rel="stylesheet" href="explorer.css?token={token}">
<link rel="icon" href="data:,">
<script type="module" src="page.js?token={token}"></script>
</head>
<body class="tir-page"><main id="explorer"></main></body>
</html>
"""


class Server:
    """Serves the explorer of ``schedule`` from a thread of its own until ``close``; also a context manager.

    ``url`` is the address to open. ``host`` is the address to listen at, ``port`` 0 any free one. Raises ``OSError`` where
    they are not to be had.

    >>> import tir
    >>> with Server(tir.Schedule(tir.library.rows.softmax(8, 16))) as server:
    ...     server.url.partition("?token=")[0].rpartition(":")[0]
    'http://127.0.0.1'
    """

    def __init__(self, schedule: Schedule, host: str = "127.0.0.1", port: int = 0):
        self.explorer = Explorer(schedule)
        self.token = secrets.token_urlsafe(24)
        self.lock = threading.Lock()  # one message at a time
        self._http = _Http((host, port), self)
        at, used = self._http.server_address[:2]
        place = at if isinstance(at, str) else at.decode()
        self.url = f"http://{_own_address() if place == ANY else place}:{used}/?token={self.token}"
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)
        self._thread.start()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def wait(self, seconds: float | None = None) -> None:
        """Return after ``seconds``, or when the process is interrupted (Ctrl-C)."""
        try:
            self._thread.join(seconds)
        except KeyboardInterrupt:
            return

    def answer(self, message: Any) -> dict[str, Any]:
        """The view after a message of the page."""
        with self.lock:
            self.explorer.handle(message)
            return self.explorer.view()


def _own_address() -> str:
    """The address of this machine by which others reach it; its own if there is no network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect(("192.0.2.1", 9))  # an address for documentation; nothing is sent
        except OSError:
            return "127.0.0.1"
        return asked.getsockname()[0]


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], owner: Server):
        self.owner = owner
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Http

    def do_GET(self) -> None:  # the name that http.server asks for
        place = urlsplit(self.path)
        if not self._knows_token(parse_qs(place.query).get("token", [""])[0]):
            return
        if place.path == "/":
            self._send(HTTPStatus.OK, "text/html", _PAGE.format(token=self.server.owner.token))
        elif place.path in _FILES:
            text = Path(__file__).with_name(place.path[1:]).read_text(encoding="utf-8")
            self._send(HTTPStatus.OK, _FILES[place.path], text)
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", "there is no such page")

    def do_POST(self) -> None:  # the name that http.server asks for
        size = self.headers.get("Content-Length", "")
        if not size.isdecimal() or int(size) > MOST_BYTES:
            self._send(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "text/plain", f"a message has at most {MOST_BYTES} bytes")
            return
        sent = self.rfile.read(int(size))
        if not self._knows_token(self.headers.get("X-Tir-Token", "")):
            return
        try:
            message = json.loads(sent)
        except (ValueError, RecursionError):
            self._send(HTTPStatus.BAD_REQUEST, "text/plain", "a message is JSON")
            return
        self._send(HTTPStatus.OK, "application/json", json.dumps(self.server.owner.answer(message)))

    def _knows_token(self, given: str) -> bool:
        if hmac.compare_digest(given.encode(), self.server.owner.token.encode()):
            return True
        self._send(HTTPStatus.FORBIDDEN, "text/plain", "open the whole address that was printed: it ends in a token")
        return False

    def _send(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in (
            ("Content-Type", f"{kind}; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Content-Security-Policy", "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:"),
        ):
            self.send_header(name, value)
        try:
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:  # the page is closed: there is nobody to tell
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: addresses hold the token."""
