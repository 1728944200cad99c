"""A worker of imports_test.py, in one process with other libraries:

    train_beside.py before|after TRAIN_DIR CLUSTER LIBRARY...

imports and uses them before it imports muster, or in mid-training; and uses
them again when the job is over.
"""

import sys
from concurrent import futures

import numpy

SIZE = 400
STEPS = 40
# Of the sum of w @ w, where w is of ones.
GRADIENT = numpy.full((SIZE, SIZE), 2.0 * SIZE, numpy.float32)


def use_torch():
    import torch
    w = torch.ones(SIZE, SIZE, requires_grad=True)
    (w @ w).sum().backward()
    numpy.testing.assert_array_equal(w.grad.numpy(), GRADIENT)


def use_tensorflow():
    import tensorflow
    w = tensorflow.Variable(tensorflow.ones((SIZE, SIZE)))
    with tensorflow.GradientTape() as tape:
        total = tensorflow.reduce_sum(w @ w)
    numpy.testing.assert_array_equal(tape.gradient(total, w).numpy(), GRADIENT)


def use_paddle():
    import paddle
    w = paddle.ones([SIZE, SIZE])
    w.stop_gradient = False
    (w @ w).sum().backward()
    numpy.testing.assert_array_equal(w.grad.numpy(), GRADIENT)


def use_grpc():
    import grpc
    server = grpc.server(futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(
        "test", {"Echo": grpc.unary_unary_rpc_method_handler(
            lambda request, _: request)}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel("127.0.0.1:%d" % port) as channel:
        assert channel.unary_unary("/test/Echo")(b"some", timeout=60) == b"some"
    server.stop(None).wait()


def message(number, *parts):
    """A field of protobuf's wire format that is a message, of less than 128
    bytes."""
    data = b"".join(parts)
    return bytes([number << 3 | 2, len(data)]) + data


def square_model():
    """An ONNX model: y = x @ x, of any size."""
    def value(number, name):
        # ValueInfoProto: name, type { tensor_type { elem_type: FLOAT } }
        return message(number, message(1, name),
                       message(2, message(1, b"\x08\x01")))

    node = message(1, message(1, b"x"), message(1, b"x"), message(2, b"y"),
                   message(4, b"MatMul"))
    graph = message(7, node, message(2, b"square"), value(11, b"x"),
                    value(12, b"y"))
    # ir_version, opset_import { version }
    return b"\x08\x08" + graph + message(8, b"\x10\x0d")


def use_onnxruntime():
    import onnxruntime
    session = onnxruntime.InferenceSession(
        square_model(), providers=["CPUExecutionProvider"])
    y, = session.run(None, {"x": numpy.ones((SIZE, SIZE), numpy.float32)})
    numpy.testing.assert_array_equal(y, GRADIENT / 2)


def main(order, train_dir, cluster, *libraries):
    def use():
        for library in libraries:
            globals()["use_" + library]()

    if order == "before":
        use()
    import muster
    w = numpy.zeros((SIZE, SIZE), numpy.float32)
    with muster.Model({"w": w}, "sgd", 1.0, train_dir=train_dir, steps=STEPS,
                      cluster=cluster, task_index=0) as model:
        while not model.done:
            numpy.testing.assert_array_equal(w, model.step - 1)
            if order == "after" and model.step == STEPS // 2:
                use()
            model.push_pull({"w": numpy.full_like(w, -1)})
    use()
    numpy.testing.assert_array_equal(muster.load(train_dir)["w"], STEPS)
    print("trained beside", *libraries)


if __name__ == "__main__":
    main(*sys.argv[1:])
