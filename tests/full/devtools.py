"""A headless Chromium, driven through a pipe by its DevTools protocol.

    with Chromium(folder) as browser:
        page = browser.open("http://127.0.0.1:9180/")
        page.evaluate("document.title")

Python 3 standard library only.
"""

import base64
import itertools
import json
import os
import subprocess
import time

LIMIT_S = 60


class Failure(Exception):
    """The browser did not do it."""


class Chromium:

    def __init__(self, folder, size=(960, 820)):
        # It reads requests at 3 and writes answers at 4, each with a 0 behind.
        reads, self._requests = os.pipe()
        self._answers, writes = os.pipe()
        self._ids, self._rest, self.events = itertools.count(1), b"", []
        self._process = subprocess.Popen(
            ["bash", "-c", 'exec "$@" 3<&%d 4>&%d' % (reads, writes), "-",
             "chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--hide-scrollbars",
             "--user-data-dir=" + folder, "--window-size=%d,%d" % size,
             "--remote-debugging-pipe", "about:blank"],
            pass_fds=(reads, writes), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(reads)
        os.close(writes)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._process.kill()
        self._process.wait()
        os.close(self._requests)
        os.close(self._answers)

    def call(self, method, session=None, **params):
        """The result of a command; events that come meanwhile are kept."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": params,
                   **({"sessionId": session} if session else {})}
        os.write(self._requests, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            answer = self._read()
            if answer.get("id") != number:
                self.events.append(answer)
            elif "error" in answer:
                raise Failure("%s: %s" % (method, answer["error"]))
            else:
                return answer["result"]
        raise Failure(method + ": no answer")

    def _read(self):
        while b"\0" not in self._rest:
            more = os.read(self._answers, 1 << 16)
            if not more:
                raise Failure("chromium has ended")
            self._rest += more
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def open(self, url):
        target = self.call("Target.createTarget", url="about:blank")
        session = self.call("Target.attachToTarget", flatten=True,
                            targetId=target["targetId"])["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(domain + ".enable")
        page.call("Page.navigate", url=url)
        return page


class Page:

    def __init__(self, browser, session):
        self._browser, self._session = browser, session

    def call(self, method, **params):
        return self._browser.call(method, self._session, **params)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression,
                           returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise Failure(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def await_true(self, expression):
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            if self.evaluate(expression):
                return
            # In the browser, whose own clock wakes it.
            self.evaluate("new Promise(done => setTimeout(done, 200))")
        raise Failure("not so: " + expression)

    def picture(self):
        return base64.b64decode(
            self.call("Page.captureScreenshot", format="png")["data"])

    def requested(self):
        """The addresses of all that the page has asked for."""
        return [event["params"]["request"]["url"]
                for event in self._browser.events
                if event.get("method") == "Network.requestWillBeSent"]

    def complaints(self):
        """What a console would show in red."""
        return [event["params"] for event in self._browser.events
                if event.get("method") == "Runtime.exceptionThrown" or
                event.get("method") == "Log.entryAdded" and
                event["params"]["entry"]["level"] == "error"]
