"""A TCP proxy on loopback whose connections a test cuts, with no right to, or
whose bytes it changes behind TCP's back.

    proxy = CuttingProxy(listen_port=20001, to_port=20002)
    proxy.cut()    # how many connections
    proxy.damage(rb"worker", lambda found: b"walker").wait(60)
    proxy.close()

A cut is at once, on both sides, in the middle of whatever is on its way: what
the proxy has read and not passed on yet is gone. A connection to a port where
nobody listens yet is closed again.

Connections for tensors, which it knows by their first byte, may be kept from the
server: `tensors` is what is said to them before they are closed, or SILENCE.
"""

import asyncio
import re
import threading

# As much as is read at once, and kept for a slow reader.
BUFFER_BYTES = 1 << 18
# common/rpc/tensor_magic.h
TENSOR_MAGIC = b"\xa7MUSTER1"
SILENCE = b""


class CuttingProxy:

    def __init__(self, listen_port, to_port, tensors=None):
        self._to_port = to_port
        self._tensors = tensors
        # (writer to the client, writer to the server); the loop's thread alone.
        self._connections = set()
        # What is to be damaged next: (pattern, change, for tensors, an event).
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

    def damage(self, pattern, change, tensors=False):
        """Has `change` replace the match of `pattern` in the next bytes for the
        server that have it, of a connection for tensors or of another one;
        returns an event that says that some had."""
        done = threading.Event()
        self._damage = (pattern, change, tensors, done)
        return done

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
            first = await reader.read(BUFFER_BYTES)
            tensors = first.startswith(TENSOR_MAGIC[:1])
            if tensors and self._tensors is not None:
                await self._refuse(reader, writer)
            else:
                await self._connect(first, tensors, reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    async def _refuse(self, reader, writer):
        if self._tensors == SILENCE:
            await reader.read()
            return
        writer.write(self._tensors)
        writer.write_eof()
        await reader.read()

    async def _connect(self, first, tensors, reader, writer):
        to_reader, to_writer = await asyncio.open_connection(
            "127.0.0.1", self._to_port, limit=BUFFER_BYTES)
        writers = (writer, to_writer)
        self._connections.add(writers)
        try:
            to_writer.write(self._changed(first, tensors))
            await asyncio.gather(
                self._pump(reader, to_writer,
                           lambda data: self._changed(data, tensors)),
                self._pump(to_reader, writer))
        finally:
            self._connections.discard(writers)
            to_writer.transport.abort()

    def _changed(self, data, tensors):
        if self._damage is None or self._damage[2] != tensors:
            return data
        pattern, change, _, done = self._damage
        data, found = re.subn(pattern, change, data, count=1)
        if found:
            self._damage = None
            done.set()
        return data

    async def _pump(self, reader, writer, change=lambda data: data):
        while True:
            data = await reader.read(BUFFER_BYTES)
            if not data:
                raise ConnectionError("one side has closed it")
            writer.write(change(data))
            await writer.drain()
