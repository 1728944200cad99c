"""A TCP proxy on loopback whose connections a test cuts, with no right to, or
whose bytes it changes behind TCP's back.

    proxy = CuttingProxy(listen_port=20001, to_port=20002)
    proxy.cut()    # how many connections
    proxy.damage(b"worker", b"walker")
    proxy.close()

A cut is at once, on both sides, in the middle of whatever is on its way: what
the proxy has read and not passed on yet is gone. A connection to a port where
nobody listens yet is closed again.
"""

import asyncio
import threading

# As much as is read at once, and kept for a slow reader.
BUFFER_BYTES = 1 << 18


class CuttingProxy:

    def __init__(self, listen_port, to_port):
        self._to_port = to_port
        # (writer to the client, writer to the server); the loop's thread alone.
        self._connections = set()
        # What is to be damaged next: (old, new, an event).
        self._damage = None
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(asyncio.start_server(
            self._serve, "127.0.0.1", listen_port, limit=BUFFER_BYTES))
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def cut(self):
        """Ends every connection; returns how many there were."""
        return asyncio.run_coroutine_threadsafe(
            self._abort_all(), self._loop).result()

    def damage(self, old, new, deadline_s=60):
        """Puts `new` in the place of `old` in the next bytes for the server that
        have it; returns whether some had."""
        done = threading.Event()
        self._damage = (old, new, done)
        return done.wait(deadline_s)

    def close(self):
        self._loop.call_soon_threadsafe(self._server.close)
        self.cut()
        asyncio.run_coroutine_threadsafe(self._drain(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _drain(self):
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _abort_all(self):
        cut = list(self._connections)
        for writers in cut:
            for writer in writers:
                writer.transport.abort()
        return len(cut)

    async def _serve(self, reader, writer):
        try:
            to_reader, to_writer = await asyncio.open_connection(
                "127.0.0.1", self._to_port, limit=BUFFER_BYTES)
        except OSError:
            writer.transport.abort()
            return
        writers = (writer, to_writer)
        self._connections.add(writers)
        try:
            await asyncio.gather(self._pump(reader, to_writer, self._changed),
                                 self._pump(to_reader, writer))
        except OSError:
            pass
        finally:
            self._connections.discard(writers)
            for each in writers:
                each.transport.abort()

    def _changed(self, data):
        if self._damage is None or self._damage[0] not in data:
            return data
        (old, new, done), self._damage = self._damage, None
        done.set()
        return data.replace(old, new, 1)

    async def _pump(self, reader, writer, change=lambda data: data):
        while True:
            data = await reader.read(BUFFER_BYTES)
            if not data:
                raise ConnectionError("one side has closed it")
            writer.write(change(data))
            await writer.drain()
