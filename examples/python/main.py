"""Guards calls to a server that fails for a while, with a shipped component."""

import json, threading, time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.request import urlopen

from policy import Policy, Rejected, guard


class Orders(BaseHTTPRequestHandler):
    """Answers 503 to its first four requests and 200 from then on."""

    requests = 0

    def do_GET(self):
        Orders.requests += 1
        self.send_response(503 if Orders.requests <= 4 else 200)
        self.end_headers()

    log_message = lambda *_arguments: None


server = HTTPServer(("127.0.0.1", 0), Orders)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/"

components = Path(__file__).parents[2] / "host/sdk/components"
policy = Policy(components / "consecutive.wasm")()
settings = {"failure_threshold": 3, "open_for": "200ms", "success_threshold": 1, "call_timeout": "2s"}
circuit = policy.attach("orders", json.dumps(settings)).circuit

calls = succeeded = 0
while succeeded < 2:
    calls += 1
    try:
        print(f"call {calls}: HTTP {guard(policy, circuit, lambda limit: urlopen(url, timeout=limit).status)}")
        succeeded += 1
    except Rejected as rejected:
        print(f"call {calls}: {rejected}")
        # Once the wait is over, the next call goes through as a probe.
        time.sleep(rejected.retry_after)
    except OSError as error:
        print(f"call {calls}: {error}")
print(f"The circuit is {policy.inspect(circuit).state}. The server saw {Orders.requests} of {calls} calls.")
