"""A parameter server as PyTorch's tutorials of its RPC framework make one: it
keeps the model and its optimizer; a trainer sends the gradients of its own
replica, and gets the parameters, when it comes, whatever others do."""

import os
import threading

from torch.distributed import rpc

import torch_small_cnn


class ParameterServer:
    """In the ps process."""

    def __init__(self):
        self._model = torch_small_cnn.make_model()
        self._optimizer = torch_small_cnn.adam(self._model)
        # Calls come on several threads.
        self._lock = threading.Lock()

    def update_and_fetch(self, gradients):
        with self._lock:
            for parameter, gradient in zip(self._model.parameters(),
                                           gradients):
                parameter.grad = gradient
            self._optimizer.step()
            return [p.detach() for p in self._model.parameters()]


# That of the ps process.
_servers = []


def update_and_fetch(gradients):
    return _servers[0].update_and_fetch(gradients)


class RemoteOptimizer:
    """Of a trainer's replica; the update is the ps'."""

    def __init__(self, model):
        self._model = model

    def zero_grad(self):
        self._model.zero_grad()

    def step(self):
        gradients = [p.grad for p in self._model.parameters()]
        values = rpc.rpc_sync("ps", update_and_fetch, args=(gradients,))
        for parameter, value in zip(self._model.parameters(), values):
            parameter.data = value


def join(name, rank, workers, folder):
    rpc.init_rpc(name, rank=rank, world_size=1 + workers,
                 rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
                     init_method="file://" + os.path.join(folder, "rpc")))


def serve(workers, folder):
    _servers.append(ParameterServer())
    join("ps", 0, workers, folder)
    rpc.shutdown()
