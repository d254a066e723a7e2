"""A headless Chromium, driven through its DevTools protocol."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import urllib.request

try:
    import websocket
except ImportError:
    websocket = None

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def missing():
    """Why there is no browser to test with, or None."""
    if not CHROMIUM:
        return "chromium is not installed"
    return None if websocket else "python3-websocket is not installed"


class Browser:
    """Opens pages and notes what they complain about and ask the network for."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0",
             "--remote-allow-origins=*", f"--user-data-dir={self.profile.name}", "about:blank"],
            env={**os.environ, "HOME": self.profile.name, "XDG_CONFIG_HOME": self.profile.name,
                 "XDG_CACHE_HOME": self.profile.name}, stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        port = None
        for line in self.process.stderr:
            if found := re.search(r"DevTools listening on ws://127.0.0.1:(\d+)/", line):
                port = found.group(1)
                break
        assert port, "chromium did not start"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
            page = next(target for target in json.load(answer) if target["type"] == "page")
        self.socket = websocket.create_connection(page["webSocketDebuggerUrl"], timeout=300)
        self.number = 0
        self.complaints, self.requests, self.loaded = [], [], set()
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)
        self.call("Performance.enable", timeDomain="threadTicks")

    def close(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait()
        self.process.stderr.close()
        self.profile.cleanup()

    def note(self, message):
        method, what = message.get("method"), message.get("params", {})
        if method == "Page.lifecycleEvent" and what["name"] == "load":
            self.loaded.add(what["loaderId"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(what["exceptionDetails"].get("exception", {}).get("description", str(what)))
        elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(what["args"]))
        elif method == "Log.entryAdded" and what["entry"]["level"] == "error":
            self.complaints.append(what["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])
        elif method == "Browser.downloadProgress" and what["state"] == "completed":
            self.saved.append(pathlib.Path(what["filePath"]))

    def call(self, method, **params):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == self.number:
                assert "error" not in message, message
                return message["result"]
            self.note(message)

    def busy(self):
        """Seconds for which the page kept its processor at work, however many others want it."""
        metrics = self.call("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    def open(self, path):
        """Loads a file and waits until it is drawn; returns the seconds of work that its process did."""
        self.complaints, self.requests, self.loaded = [], [], set()
        loader = self.call("Page.navigate", url=pathlib.Path(path).absolute().as_uri())["loaderId"]
        while loader not in self.loaded:
            self.note(json.loads(self.socket.recv()))
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return self.busy()

    def run(self, script):
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key):
        """A key on the keyboard, for what has the focus."""
        codes = {"ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, "Tab": 9}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key])

    def window(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def downloads(self, folder, count, script):
        """The files, complete, that a JavaScript expression lets the page save."""
        self.saved = []
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder), eventsEnabled=True)
        self.run(script)
        while len(self.saved) < count:
            self.note(json.loads(self.socket.recv()))
        return self.saved
