"""A server on loopback that sends files as they are, or with a fault: cut short, of another length, changed, never."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server = self.server
        server.asked.append(self.path)
        content = server.files.get(self.path.lstrip("/"))
        times = sum(path == self.path for path in server.asked)
        fault = server.fault if times <= server.faulty_times else ""
        self.close_connection = True
        if content is None or fault == "missing":
            self.send_error(404)
            return
        half = len(content) // 2
        length = half if fault == "short length" else 2 * len(content) if fault == "long length" else len(content)
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if fault == "cut":
            self.wfile.write(content[:half])
        elif fault == "other bytes":
            self.wfile.write(bytes(byte ^ 1 for byte in content))
        elif fault == "silent":
            server.ended.wait(30)
        else:
            self.wfile.write(content)

    def log_message(self, *words):
        pass


@contextmanager
def serving(files, fault="", faulty_times=10**9):
    """Serve `files`, by path; the first `faulty_times` times each is sent with a `fault`, none if it is empty."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.files, server.fault, server.faulty_times = files, fault, faulty_times
    server.asked, server.ended = [], threading.Event()
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    server.handle_error = lambda *_: None  # a client that gave up
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
