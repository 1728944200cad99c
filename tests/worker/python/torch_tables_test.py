"""muster.torch.Embedding and EmbeddingBag, over a job in this process."""

import copy
import io
import unittest
from unittest import mock

import numpy
import torch
from torch import nn

import muster.torch
from muster import _torch_tables
from tests.integration import harness
from tests.worker.python.fake_job import FakeJob

torch.set_num_threads(1)
# Float32 beside float64, over 20 steps.
TOLERANCE = 1e-6
IDS = torch.tensor([[5, -2], [5, 2 ** 40]])


class Net(nn.Module):

    def __init__(self, dim=3, name="user"):
        super().__init__()
        self.user = muster.torch.Embedding(dim, name=name)
        self.top = nn.Linear(dim, 1)

    def forward(self, ids):
        return self.top(self.user(ids)).sum()


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=1.0)


def distributed(model, make=sgd, job=None, **rules):
    job = FakeJob() if job is None else job
    job.table_rules.update(rules)
    return muster.torch.DistributedOptimizer(make(model.parameters()), model,
                                             job), job


class TablesTestCase(unittest.TestCase):

    def assert_refused(self, pattern, call, *arguments, **named):
        with self.assertRaisesRegex(muster.ConfigError, pattern):
            call(*arguments, **named)

    def current(self, job):
        """Lets `job` be this process's."""
        patch = mock.patch.object(_torch_tables, "current", lambda: job)
        patch.start()
        self.addCleanup(patch.stop)


class EmbeddingTest(TablesTestCase):

    def check_like_torch(self, dim, make_rule, rule):
        """20 steps, in each of which each row is touched, some twice."""
        torch.manual_seed(4)
        ids = torch.tensor([3, 0, 1, 3, 2, 0, 3])
        weights = torch.randn(7, dim)
        ours = muster.torch.Embedding(dim, name="user")
        model = nn.ModuleDict({"user": ours, "dense": nn.Linear(1, 1)})
        optimizer, job = distributed(model, user=rule)
        theirs = nn.Embedding.from_pretrained(
            torch.from_numpy(job.first_rows("user", dim, numpy.arange(4))),
            freeze=False, sparse=True)
        torch_optimizer = make_rule(theirs.parameters())
        for _ in range(20):
            found = []
            for layer in (ours, theirs):
                values = layer(ids)
                (values.tanh() * weights).sum().backward()
                found.append(values.detach().numpy())
            numpy.testing.assert_allclose(*found, atol=TOLERANCE, rtol=0)
            optimizer.step()
            torch_optimizer.step()
            torch_optimizer.zero_grad()
        model.eval()
        numpy.testing.assert_allclose(
            ours(torch.arange(4)), theirs.weight.detach(), atol=TOLERANCE,
            rtol=0)

    def test_trains_as_torchs_with_sparse_adam(self):
        for dim in (1, 4):
            self.check_like_torch(
                dim, lambda p: torch.optim.SparseAdam(list(p), 1e-2, eps=1e-12),
                ("adam", {"learning_rate": 1e-2, "beta1": 0.9, "beta2": 0.999,
                          "epsilon": 1e-12}))

    def test_trains_as_torchs_with_sgd(self):
        self.check_like_torch(3, lambda p: torch.optim.SGD(p, lr=0.5),
                              ("sgd", {"learning_rate": 0.5}))

    def test_has_the_shape_of_the_ids_and_a_row(self):
        model = Net()
        _, job = distributed(model)
        values = model.user(IDS)
        self.assertEqual(values.shape, (2, 2, 3))
        numpy.testing.assert_allclose(values[0, 1].detach(), [-0.2] * 3)
        self.assertEqual(model.user(torch.tensor(5)).shape, (3,))
        self.assertEqual(model.user(torch.zeros(2, 0, dtype=int)).shape,
                         (2, 0, 3))
        self.assertEqual(model.user(IDS.int()[:, :1]).shape, (2, 1, 3))
        self.assertEqual(job.arguments["tables"], [("user", 3)])

    def test_pulls_distinct_ids_once_a_step(self):
        model = Net()
        optimizer, job = distributed(model)
        for _ in range(2):
            model(IDS)
            model(IDS.flip(0))
            model(IDS[:1])
            optimizer.step()
        self.assertEqual(job.pulls, [("user", [-2, 5, 2 ** 40]),
                                     ("user", [-2, 5])] * 2)

    def test_gradients_of_a_batch_and_of_several_passes_are_summed(self):
        model = Net()
        optimizer, job = distributed(model)
        model.user(IDS).sum().backward()
        (2 * model.user(IDS)).sum().backward()
        model.user(torch.tensor([-2, 9])).sum().backward()
        optimizer.step()
        self.assertAlmostEqual(job.row("user", 5)[0], 0.5 - 6, places=5)
        self.assertAlmostEqual(job.row("user", -2)[0], -0.2 - 4, places=5)
        self.assertAlmostEqual(job.row("user", 9)[0], 0.9 - 1, places=5)

    def test_rows_in_no_step_stay(self):
        model = Net()
        optimizer, job = distributed(model, lambda p: torch.optim.Adam(p, 0.1))
        for ids in ([1, 2], [2, 3], [2, 2]):
            model(torch.tensor(ids)).backward()
            optimizer.step()
            before = job.row("user", 1).copy() if ids == [1, 2] else before
        numpy.testing.assert_array_equal(job.row("user", 1), before)
        self.assertNotEqual(job.row("user", 1)[0], numpy.float32(0.1))
        self.assertEqual(len(job.table_rows), 3)

    def test_zero_grad_forgets_the_gradients_of_rows(self):
        model = Net()
        optimizer, job = distributed(model)
        loss = model.user(IDS).sum()
        loss.backward(retain_graph=True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        self.assertAlmostEqual(job.row("user", 5)[0], 0.5 - 2, places=5)

    def test_a_pass_without_a_backward_pushes_no_rows(self):
        model = Net()
        optimizer, job = distributed(model)
        model(IDS)
        optimizer.step()
        self.assertEqual(job.table_rows, {})

    def test_a_rate_of_a_scheduler_holds_for_rows(self):
        model = Net()
        optimizer, job = distributed(model)
        model.user(IDS).sum()
        optimizer.param_groups[0]["lr"] = 0.5
        model.user(IDS).sum().backward()
        optimizer.step()
        self.assertAlmostEqual(job.row("user", 5)[0], 0.5 - 1, places=5)

    def test_eval_and_no_grad_read_and_make_no_row(self):
        model = Net()
        optimizer, job = distributed(model)
        model(IDS).backward()
        optimizer.step()
        with torch.no_grad():
            seen = model.user(torch.tensor([5, 77]))
        model.eval()
        again = model.user(torch.tensor([5, 77]))
        self.assertFalse(again.requires_grad)
        for values in (seen, again):
            numpy.testing.assert_array_equal(values[0], job.row("user", 5))
            numpy.testing.assert_allclose(values[1], [7.7] * 3, rtol=1e-6)
        optimizer.step()
        self.assertEqual(len(job.table_rows), 3)

    def test_first_values_before_the_job_begins(self):
        model = Net().eval()
        _, job = distributed(model)
        numpy.testing.assert_allclose(model.user(IDS)[1, 0], [0.5] * 3)
        self.assertFalse(job.is_started)
        model.train()
        # A layer by itself begins it, too.
        model.user(IDS)
        self.assertTrue(job.is_started)

    def test_a_job_that_ends_in_mid_step_ends_the_loop_without_an_error(self):
        model = Net()
        model.item = muster.torch.Embedding(3, name="item")
        optimizer, job = distributed(model, job=FakeJob(steps=5))
        model(IDS).backward()
        optimizer.step()
        job.ends_in_pull = True
        loss = (model.user(IDS) + model.item(IDS)).sum()
        loss.backward()
        self.assertEqual(loss.item(), 0)
        optimizer.step()
        self.assertEqual(len(job.pushes), 1)
        self.assert_refused(r"Embedding\('user'\): the job is over.*use\(", model,
                            IDS)
        model.eval()
        self.assert_refused("the job is over", model, IDS)

    def test_a_look_at_a_job_that_ends_is_job_over(self):
        model = Net()
        optimizer, job = distributed(model)
        optimizer.start()
        job.ends_in_pull = True
        model.eval()
        with self.assertRaisesRegex(muster.JobOver, r"use\(muster.load"):
            model(IDS)

    def test_a_saved_table_is_read_instead_of_a_job(self):
        model = Net()
        saved = mock.Mock(dim=3)
        saved.lookup = lambda ids: numpy.repeat(
            ids.reshape(-1, 1), 3, 1).astype(numpy.float32)
        model.user.use(saved)
        numpy.testing.assert_array_equal(
            model.user(IDS)[..., 2], IDS.numpy().astype(numpy.float32))
        self.assertFalse(model.user(IDS).requires_grad)
        model.user.use(None)
        self.assert_refused("no model of a DistributedOptimizer", model, IDS)
        saved.dim, saved.name = 4, "user"
        self.assert_refused(r"have 4 floats, Embedding\('user'\) has 3",
                            model.user.use, saved)

    def test_without_a_job_there_are_no_rows(self):
        self.current(None)
        self.assert_refused(r"no job: use\(muster.load", Net().eval(), IDS)

    def test_a_copy_looks_and_trains_nothing(self):
        model = Net()
        _, job = distributed(model)
        model(IDS)
        self.current(job)
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        for other in (copy.deepcopy(model),
                      torch.load(file, weights_only=False)):
            self.assert_refused("in no model of a Distributed", other, IDS)
            other.eval()
            numpy.testing.assert_array_equal(other(IDS).detach(),
                                             model(IDS).detach())

    def test_has_no_parameters_and_no_state(self):
        model = Net()
        self.assertEqual(sorted(model.state_dict()), ["top.bias", "top.weight"])
        self.assertIn("Embedding(3, name='user')", repr(model))

    def test_arguments_that_cannot_be_are_refused(self):
        self.assert_refused("dim: wanted 1 or more, found 0",
                            muster.torch.Embedding, 0, name="a")
        self.assert_refused("name: wanted", muster.torch.Embedding, 3, name="")
        model = Net()
        distributed(model)
        self.assert_refused("tensor of ids, int64, found torch.float32", model,
                            torch.zeros(2))
        self.assert_refused("found list", model, [1])


class BagTest(TablesTestCase):

    def bags(self, mode, dim=2):
        torch.manual_seed(5)
        bag = muster.torch.EmbeddingBag(dim, name="genre", mode=mode)
        model = nn.ModuleDict({"bag": bag, "dense": nn.Linear(1, 1)})
        optimizer, job = distributed(model)
        theirs = nn.EmbeddingBag.from_pretrained(
            torch.from_numpy(job.first_rows("genre", dim, numpy.arange(6))),
            freeze=False, mode=mode)
        return bag, theirs, optimizer, job

    def check(self, mode, *arguments):
        bag, theirs, optimizer, job = self.bags(mode)
        found = []
        for layer in (bag, theirs):
            values = layer(*arguments)
            (values * torch.arange(1., 1 + len(values)).view(-1, 1)
             ).sum().backward()
            found.append(values.detach().numpy())
        numpy.testing.assert_allclose(*found, atol=TOLERANCE)
        before = theirs.weight.detach().clone()
        optimizer.step()
        for row in arguments[0].unique().tolist():
            numpy.testing.assert_allclose(
                job.row("genre", row), (before - theirs.weight.grad)[row],
                atol=TOLERANCE)

    def test_sums_and_means_are_torchs(self):
        for mode in ("mean", "sum"):
            with self.subTest(mode):
                self.check(mode, torch.tensor([[1, 2, 1], [5, 4, 0]]))
                self.check(mode, torch.tensor([3, 1, 3, 3, 0]),
                           torch.tensor([0, 2, 2]))

    def test_a_bag_without_ids_is_zeros(self):
        bag, _, optimizer, job = self.bags("mean")
        values = bag(torch.tensor([], dtype=int), torch.tensor([0, 0]))
        self.assertEqual(values.tolist(), [[0, 0], [0, 0]])
        values.sum().backward()
        optimizer.step()
        self.assertEqual(job.table_rows, {})

    def test_other_modes_are_refused(self):
        self.assert_refused("wanted \"mean\" or \"sum\", found 'max'",
                            muster.torch.EmbeddingBag, 2, name="a", mode="max")


class OptimizerTest(TablesTestCase):

    def test_two_layers_of_one_table_are_refused_with_both(self):
        model = nn.Sequential(Net(), Net())
        self.assert_refused("'0.user' and '1.user' both have the table 'user'",
                            distributed, model)

    def test_one_layer_in_two_places_is_one_table(self):
        model = Net()
        model.again = model.user
        optimizer, job = distributed(model)
        (model.user(IDS) + model.again(IDS)).sum().backward()
        optimizer.step()
        self.assertAlmostEqual(job.row("user", 5)[0], 0.5 - 4, places=5)

    def test_overlap_is_refused(self):
        model = Net()
        self.assert_refused(
            "overlap=True, and the model has the sparse table 'user'",
            muster.torch.DistributedOptimizer, sgd(model.parameters()), model,
            FakeJob(), overlap=True)

    def test_weight_decay_is_refused_but_for_tables_with_a_rule(self):
        def decaying(parameters):
            return torch.optim.SGD(parameters, lr=0.5, weight_decay=0.1)
        model = Net()
        distributed(model, decaying)
        self.assert_refused(r"weight_decay=0.1, which rows of table 'user'.*"
                            r'job.table\("user", "sgd"\)', model, IDS)
        model = Net()
        optimizer, _ = distributed(model, decaying,
                                   user=("sgd", {"learning_rate": 1.0}))
        model(IDS).backward()
        optimizer.step()

    def test_a_compiled_model_trains(self):
        model = Net()
        compiled = torch.compile(model, backend="eager")
        optimizer, job = distributed(model)
        optimizer.start()
        compiled(IDS).backward()
        optimizer.step()
        self.assertEqual(len(job.table_rows), 3)


if __name__ == "__main__":
    harness.main()
